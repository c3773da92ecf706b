"""What every detector has, whoever wrote it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from kagent.contract.recommendation import Verdict
from kagent.detect import detectors
from kagent.detect.decision import LINES
from kagent.detect.finding import Asks, Urgency
from kagent.detect.remedies import Remedy

PAGE = Path(__file__).parents[3] / "docs" / "judgement.md"
TYPES = {
    "VERDICT": Verdict,
    "SPREAD": bool,
    "URGENCY": Urgency,
    "MEMBERS_MAY_HELP": bool,
    "MOVES_CURE": bool,
    "ONE_MEMBER": bool,
    "ASKS": Asks,
    "REMEDIES": tuple,
    "SIGNS": tuple,
}


def test_every_file_is_in_the_order_and_every_verdict_has_one() -> None:
    files = {file.stem for file in Path(str(detectors.__file__)).parent.glob("[a-z]*.py")}

    assert {detector.__name__.rpartition(".")[2] for detector in detectors.ORDER} == files
    assert set(detectors.OF) == set(Verdict) - {Verdict.BALANCED}


def test_every_detector_has_a_file_of_tests() -> None:
    here = {file.stem.removeprefix("test_") for file in Path(__file__).parent.glob("test_*.py")}

    assert {detector.__name__.rpartition(".")[2] for detector in detectors.ORDER} <= here


def test_the_lines_about_a_late_member_are_those_of_the_detectors_in_their_order() -> None:
    verdicts = [line.verdict for line in LINES if line.verdict]

    assert list(dict.fromkeys(verdicts)) == [d.VERDICT for d in detectors.ORDER if d.SPREAD]
    assert [line.why for line in LINES if not line.verdict] == [
        "after_pause",
        "pausing",
        "perhaps_slow",
        "draining",
    ]


@pytest.mark.parametrize(
    "detector", detectors.ORDER, ids=lambda detector: detector.__name__.rpartition(".")[2]
)
def test_each_says_all_that_others_ask_of_it(detector: ModuleType) -> None:
    wrong = {name for name, kind in TYPES.items() if not isinstance(getattr(detector, name, None), kind)}
    assert not wrong, (
        f"{detector.__name__} needs {', '.join(sorted(wrong))}: see the docstring of the package"
    )
    assert detector.REMEDIES
    assert all(isinstance(remedy, Remedy) for remedy in detector.REMEDIES)
    # Without a sign it would be asked only about groups that other detectors' signs lead to.
    assert detector.SIGNS
    assert set(detector.SIGNS) <= set(detectors.SIGNS)
    assert callable(detector.reason)
    assert hasattr(detector, "MEMBER_REMARK") is detector.ONE_MEMBER
    assert detector.LINES if detector.SPREAD else callable(detector.find)
    assert f"`{detector.VERDICT}`" in PAGE.read_text(encoding="utf-8"), (
        "docs/judgement.md does not explain it"
    )
