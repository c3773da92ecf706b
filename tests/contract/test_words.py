"""Every verdict and action has words for a reader who has never seen its name."""

from __future__ import annotations

import pytest

from kagent import reference_pages
from kagent.contract.recommendation import Action, ActionType, Verdict
from kagent.contract.words import ACTIONS, VERDICTS, action_words, verdict_words
from kagent.errors import InputError


def test_no_verdict_and_no_action_is_without_words() -> None:
    assert set(VERDICTS) == set(Verdict)
    assert set(ACTIONS) == set(ActionType)
    assert all(words.meaning.endswith(".") and words.first.endswith(".") for words in VERDICTS.values())


def test_the_page_of_verdicts_refuses_one_without_words(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {verdict: words for verdict, words in VERDICTS.items() if verdict is not Verdict.STALLED}
    monkeypatch.setattr(reference_pages, "VERDICTS", without)

    with pytest.raises(InputError, match="stalled"):
        reference_pages.verdicts_page()


def test_the_page_has_the_same_words() -> None:
    written = reference_pages.WORDS_OF_THE_PAGE.read_text(encoding="utf-8")

    assert written == reference_pages.words_of_the_page(), "run `make docs`"


def test_a_verdict_of_a_newer_worker_is_shown_by_its_name() -> None:
    assert verdict_words("rebalance") == "uneven work"
    assert verdict_words("too_many_topics") == "too many topics"


def test_words_of_a_table_tell_verdicts_and_actions_apart_and_are_short() -> None:
    for words in ({v.short for v in VERDICTS.values()}, set(ACTIONS.values())):
        assert max(map(len, words)) <= 24
    assert len({v.short for v in VERDICTS.values()}) == len(Verdict)
    assert len(set(ACTIONS.values())) == len(ActionType)


@pytest.mark.parametrize(
    ("kind", "params", "words"),
    [
        (ActionType.SET_MEMBER_COUNT, {"members": 4, "fitting": [4, 8]}, "run 4 members"),
        (ActionType.SET_MEMBER_COUNT, {}, "start consumers"),
        (ActionType.SWITCH_ASSIGNOR, {"strategy": "range"}, "switch to range"),
        (ActionType.RAISE_PARALLELISM, {"members": 6}, "parallelism 6"),
        (ActionType.RESTART_MEMBER, {"member": "c-1"}, "restart a member"),
        (ActionType.RESTART_MEMBER, {"member": "c-1", "others": ["c-2"]}, "restart several members"),
    ],
)
def test_an_action_says_the_number_that_it_is_about(kind: ActionType, params: object, words: str) -> None:
    action = Action.model_validate({"type": kind, "how": "-", "feasible": "yes", "params": params})

    assert action_words(action.type, action.params) == words
