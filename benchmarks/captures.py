"""How right the evaluation is on captures of real groups of which the truth is known.

    python benchmarks/captures.py FOLDER…              all groups of a folder at once, as on a real cluster
    python benchmarks/captures.py --alone FOLDER…      each group alone
    python benchmarks/captures.py --each FOLDER…       and a line for every group

A folder holds a capture (see ``kagent.capture.folder``), ``progress.jsonl.gz`` (what each member had truly processed, every
5 s) and ``truth.json`` (a verdict for each group, what must not be said). The delay counts from the moment at which some
member (of a standstill: some partition) was truly 60 s behind: the logs had then for 60 s been longer than it had read.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from kagent.capture.folder import read_folder
from kagent.contract.recommendation import ActionType, Recommendation, Status
from kagent.errors import KagentError
from kagent.incident.session import EvaluationSession
from kagent.policy import Policies
from kagent.replay.captured_events import Recording, recording
from kagent.replay.driver import replay

BEHIND = 60_000
KNOWN_FOR = 7 * 86_400_000
WORDS = {
    "stalled": "stalled",
    "stuck member": "stuck_member",
    "slow member": "slow_member",
    "hot partition": "hot_partition",
    "too few members": "under_provisioned",
    "no members": "no_members",
    "unstable": "unstable",
    "badly spread": "rebalance",
    "rebalance": "rebalance",
}
SKIP = "skip a record"
STANDSTILL = {"stalled"}


@dataclass(frozen=True, slots=True)
class Score:
    """One group: what should be said, what was, and how long it took (minutes since it was 60 s behind)."""

    scenario: str
    group: str
    right: frozenset[str]
    verdicts: tuple[str, ...]
    forbidden: tuple[str, ...]
    delay: float | None = None
    behind: bool = False
    spread: bool | None = None
    """Whether the first plan that was published puts the hot partitions on different members; None without such a plan."""

    @property
    def healthy(self) -> bool:
        return not self.right

    @property
    def first(self) -> bool:
        return bool(self.verdicts) and self.verdicts[0] in self.right

    @property
    def last(self) -> bool:
        return bool(self.verdicts) and self.verdicts[-1] in self.right


def verdicts_of(text: str) -> frozenset[str]:
    """The verdicts that a phrase of the truth names; none for ``healthy``."""
    said = text.split(" until ")[0]
    return frozenset(word for phrase, word in WORDS.items() if re.search(rf"\b{phrase}\b", said))


def forbidden(truth: Mapping[str, Any], messages: Sequence[Recommendation]) -> tuple[str, ...]:
    """What of ``must_not_be_said`` was said."""
    said = {str(m.verdict) for m in messages}
    skipped = any(a.type is ActionType.SKIP_OR_FIX_RECORD for m in messages for a in m.actions)
    found = []
    for phrase in truth["must_not_be_said"]:
        name = phrase.split(" (")[0]
        if phrase.startswith("anything"):
            found += sorted(said)
        elif (name == SKIP and skipped) or WORDS.get(name) in said:
            found.append(name)
    return (*found, *_blamed(truth, messages))


def _blamed(truth: Mapping[str, Any], messages: Sequence[Recommendation]) -> list[str]:
    """Partitions whose records were to be skipped though no poison is in them: a good record would be lost."""
    skips = {a.params["partition"] for m in messages for a in m.actions if "offset" in a.params}
    return [f"skip in {p}" for p in sorted(skips - {truth.get("poison_partition")})]


@dataclass(slots=True)
class Work:
    """What truly happened to one group's partitions: log ends over time, and what members had processed of them."""

    times: np.ndarray
    ends: dict[int, np.ndarray]
    done: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    held: dict[str, list[tuple[int, tuple[int, ...]]]] = field(default_factory=lambda: defaultdict(list))

    def read(self, partition: int, at: int) -> int:
        """The highest offset that had been processed by then."""
        return max((offset for when, offset in self.done.get(partition, ()) if when <= at), default=0)

    def late(self, partitions: Sequence[int], at: int, inflow: float) -> float:
        """How many ms ago the log ends, summed, were where the processed offsets are; before the first sample estimated."""
        total = np.sum([self.ends[p] for p in partitions], axis=0).astype(float)
        read = float(sum(self.read(p, at) for p in partitions))
        now = float(np.interp(at, self.times, total))
        if now - read <= 0:
            return 0.0
        if read < total[0]:
            return float(at - self.times[0] + (total[0] - read) / max(inflow, 1e-3) * 1000)
        after = int(np.searchsorted(total, read, side="right"))
        if after >= len(total):
            return 0.0
        low, high = total[after - 1], total[after]
        then = self.times[after - 1] + (read - low) / (high - low) * (
            self.times[after] - self.times[after - 1]
        )
        return max(0.0, at - float(then))


def work_of(folder: Path, capture: Recording, truths: Sequence[Mapping[str, Any]]) -> dict[str, Work]:
    """The truth of every group's work."""
    times = np.array([s.answered_ms for s in capture.samples], np.int64)
    made = {}
    for truth in truths:
        topic, count = truth["topic"], truth["partitions"]
        ends = {
            p: np.array([s.ends.get(topic, [0] * count)[p] for s in capture.samples]) for p in range(count)
        }
        work = made[truth["group"]] = Work(times, ends)
        for member, partitions in truth["held_at_start"].items():
            work.held[member].append(
                (truth["started_ms"], tuple(partitions))
            )  # not all clients tell of changes
        for change in truth["holding_changes"]:
            work.held[change["member"]].append((change["at"], tuple(change["held"])))
    for line in _lines(folder / "progress.jsonl.gz"):
        if line["g"] in made:
            for partition, offset in line["pos"].items():
                made[line["g"]].done[int(partition)].append((line["at"], offset))
    for work in made.values():
        for changes in work.held.values():
            changes.sort()
    return made


def behind_at(truth: Mapping[str, Any], work: Work, end: int) -> int | None:
    """When some member (of a standstill: some partition) was first 60 s behind, in ms; None if none was."""
    rates = truth["inflow_per_s"]["after"]
    standing = bool(verdicts_of(truth["verdict"]) & STANDSTILL)
    for at in work.times.tolist():
        if not truth["started_ms"] <= at <= end:
            continue
        for member in truth["members"]:
            held = next((h for when, h in reversed(work.held[member]) if when <= at), ())
            for partitions in [(p,) for p in held] if standing else [held]:
                inflow = sum(float(rates.get(str(p), 0)) for p in partitions)
                if partitions and work.late(partitions, at, inflow) >= BEHIND:
                    return int(at)
    return None


def _lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rb") as file:
        yield from map(orjson.loads, file)


def score(
    folder: Path, policies: Policies, alone: bool, known_for: int
) -> tuple[list[Score], list[Recommendation]]:
    """The scores of a folder's groups, and the messages that were about no single group."""
    capture = recording(read_folder(folder))
    truths = orjson.loads((folder / "truth.json").read_bytes())["groups"]
    works = work_of(folder, capture, truths)
    about: dict[str, list[Recommendation]] = defaultdict(list)
    for only in [t["group"] for t in truths] if alone else [None]:
        session = EvaluationSession(policies)
        found = replay(capture, session, lambda g, only=only: only in (None, g), known_for_ms=known_for)  # type: ignore[misc]
        for message in found.messages:
            about[message.group].append(message)
    scores = [_score(t, works[t["group"]], about.get(t["group"], []), capture, folder.name) for t in truths]
    known = {t["group"] for t in truths}
    return scores, [m for group, said in about.items() if group not in known for m in said]


def _score(
    truth: Mapping[str, Any], work: Work, messages: Sequence[Recommendation], capture: Recording, name: str
) -> Score:
    right = verdicts_of(truth["verdict"])
    told = [m for m in messages if m.status in (Status.OPEN, Status.UPDATED)]
    since = behind_at(truth, work, capture.end_ms) if right else None
    first_right = next((m for m in told if str(m.verdict) in right), None)
    delay = None
    if since is not None and first_right is not None:
        delay = max(0.0, (first_right.as_of - since) / 60_000)
    verdicts = tuple(str(m.verdict) for m in told)
    plan = spreads(truth, next((m for m in told if m.moves and str(m.verdict) == "rebalance"), None))
    return Score(
        name, truth["group"], right, verdicts, forbidden(truth, told), delay, since is not None, plan
    )


def spreads(truth: Mapping[str, Any], message: Recommendation | None) -> bool | None:
    """Whether a plan takes the hot partitions apart; None where there is no plan or nothing to take apart."""
    hot = truth.get("hot_partitions") or []
    if message is None or len(hot) < 2:
        return None
    owner = {p: member for member, held in truth["held_at_start"].items() for p in held}
    # Hot partitions are of the first topic; a group may read others, whose partitions have the same numbers.
    moves = [move for move in message.moves if move.topic == truth["topic"]]
    owner |= {move.partition: move.to.split("/")[0] for move in moves}
    return len({owner.get(p) for p in hot}) == len(hot)


def table(scores: Sequence[Score], common: Mapping[str, int], each: bool) -> None:
    """Print a line a scenario, one for all, and on request one a group."""
    if each:
        for s in scores:
            said = " → ".join(dict.fromkeys(s.verdicts)) or "-"
            late = f"{s.delay:.1f} min" if s.delay is not None else "behind" if s.behind else "-"
            plan = "" if s.spread is None else "good plan " if s.spread else "bad plan "
            print(
                f"{s.group:16} {'/'.join(sorted(s.right)) or 'healthy':24} {said:44} {late:9} {plan}{', '.join(s.forbidden)}"
            )
        print()
    head = (
        "scenario",
        "groups",
        "first right",
        "last right",
        "wrong",
        "silent",
        "forbidden",
        "opened",
        "plans",
        "good plans",
        "common",
    )
    print(("{:10} " + "{:>11} " * 10).format(*head), f"{'p50 min':>8} {'p95':>6}")
    for name in [*dict.fromkeys(s.scenario for s in scores), "sick", "healthy"]:
        some = [s for s in scores if name in (s.scenario, "healthy" if s.healthy else "sick")]
        if some:
            _line(name, some, common.get(name, 0))


def _line(name: str, some: Sequence[Score], common: int) -> None:
    sick = [s for s in some if not s.healthy]
    delays = [s.delay for s in sick if s.delay is not None]
    spread = f"{np.median(delays):8.1f} {np.quantile(delays, 0.95):6.1f}" if delays else f"{'-':>8} {'-':>6}"
    counts = (
        len(some),
        sum(s.first for s in sick),
        sum(s.last for s in sick),
        sum(bool(s.verdicts) and not s.first for s in sick),
        sum(not s.verdicts for s in sick),
        sum(bool(s.forbidden) for s in some),
        sum(bool(s.verdicts) for s in some),
        sum(s.spread is not None for s in some),
        sum(bool(s.spread) for s in some),
        common,
    )
    print(f"{name:10} " + " ".join(f"{n:>11}" for n in counts), spread)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--alone", action="store_true", help="each group alone")
    parser.add_argument("--each", action="store_true", help="a line for every group")
    parser.add_argument("--new", action="store_true", help="groups are first seen when the capture begins")
    asked = parser.parse_args()
    began, scores, common = time.perf_counter(), [], {}
    try:
        for folder in asked.folders:
            found, others = score(folder, Policies(), asked.alone, 0 if asked.new else KNOWN_FOR)
            scores += found
            common[folder.name] = len(others)
    except KagentError as error:
        sys.exit(str(error))
    common["sick"] = sum(common.values())
    table(scores, common, asked.each)
    print(
        f"\n{len(asked.folders)} folders in {time.perf_counter() - began:.0f} s, {'each group alone' if asked.alone else 'all groups at once'}"
    )


if __name__ == "__main__":
    main()
