"""What every other strategy would give a group as it stands: its skew, greatest work and moves."""

from __future__ import annotations

import numpy as np

from kagent.advice.actions import Option
from kagent.advice.look import Look
from kagent.advice.relief import Relief
from kagent.errors import KagentError
from kagent.strategies import STRATEGIES, Member, Scenario, assign

MOST = 20_000
"""Above so many partitions the other strategies are left to `kagent plan`."""


def options(look: Look, relief: Relief | None) -> tuple[Option, ...]:
    """One entry per strategy that has an answer, the evenest first."""
    roster = look.roster
    if relief is None or roster is None or len(relief.rows) > MOST:
        return ()
    problem = relief.plan.problem
    scenario = _scenario(look, relief)
    work = problem.lag * (1.0 if problem.cost is None else problem.cost[problem.topic])
    made = []
    for name in STRATEGIES:
        try:
            owner = _owners(look, relief, assign(name, scenario).to_dict())
        except KagentError:
            continue
        held = owner >= 0
        done = np.bincount(owner[held], work[held], len(roster.members)).astype(np.float64)
        per = done if problem.speed is None else done / problem.speed
        mean = float(per.mean())
        unsafe = "co-partitioning" if relief.paired and name not in ("range", "kip848-range") else None
        made.append(
            Option(
                name,
                float(per.max()),
                float(per.max()) / mean if mean > 0 else 1.0,
                int((owner != problem.owner).sum()),
                unsafe,
            )
        )
    return tuple(sorted(made, key=lambda o: (o.skew, o.moves, o.strategy)))


def _scenario(look: Look, relief: Relief) -> Scenario:
    roster = look.roster
    assert roster is not None
    lags, rows = look.lags, relief.rows
    counts = {t: look.seen.ends[t].partitions for t in lags.topics if look.seen.ends[t].partitions}
    column = {t: np.zeros(n, np.int64) for t, n in counts.items()}
    for at, lag in zip(rows.tolist(), relief.plan.problem.lag.tolist(), strict=True):
        topic, partition = lags.name(at)
        column[topic][partition] = int(lag)
    members = [
        Member(
            m.member_id,
            tuple(t for t in counts if roster.eligible(at, t)),
            m.instance_id,
            m.rack,
            generation=roster.generation,
            remembered_generation=roster.generation,
        )
        for at, m in enumerate(roster.members)
    ]
    owned = {
        m.member_id: [(t, p) for t, ps in m.assigned.items() if t in counts for p in ps]
        for m in roster.members
    }
    return Scenario.of(members, counts, owned=owned, lags=column)


def _owners(look: Look, relief: Relief, assigned: dict[str, list[tuple[str, int]]]) -> np.ndarray:
    roster = look.roster
    assert roster is not None
    code = {m.member_id: at for at, m in enumerate(roster.members)}
    holder = {tp: code[member] for member, held in assigned.items() for tp in held}
    return np.array([holder.get(look.lags.name(at), -1) for at in relief.rows.tolist()], np.int64)
