"""What the judgement remembers of a group between evaluations: the row of the verdicts table. Frozen and JSON-able.

All times are ms and come from commits, log-end samples or the tick; nothing here reads a clock. An evaluation that is
delivered twice changes nothing: the row remembers the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class OtherAction:
    """An action that may be carried out in place of the plan: another assignor, or another number of members; and what it predicts."""

    assignor: str | None = None
    members: int | None = None
    drain: float | None = None
    skew: float | None = None


@dataclass(frozen=True, slots=True)
class Advised:
    """What a message of an incident advised, under the names that :class:`Incident` has for it."""

    verdict: str
    member: str
    plan: tuple[tuple[str, int, str], ...] = ()
    others: tuple[OtherAction, ...] = ()
    started_with: tuple[str, ...] = ()
    predicted_drain: float | None = None
    predicted_skew: float | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """What is open. ``message``: the last one sent, without its long parts. Times in ms.

    ``digest``: assignment it rests on; ``plan``: [topic, partition, member], where it is advised; ``others``: what else is; ``calm_since``: since when nothing has been the
    matter, 0 if something is; ``other_since``: since when another verdict has led; ``drained_at``: since when no member has
    been behind.
    """

    id: str
    opened_at: int
    verdict: str
    member: str
    message: Mapping[str, Any]
    digest: str
    sent_at: int
    skew: float = 1.0
    behind: float = 0.0
    """Seconds, as published; 0 where an older version published it."""
    predicted_drain: float | None = None
    predicted_skew: float | None = None
    """What the plan predicts: s until all members have caught up, and the skew; once an action was followed, what that one does."""
    plan: tuple[tuple[str, int, str], ...] = ()
    others: tuple[OtherAction, ...] = ()
    started_with: tuple[str, ...] = ()
    calm_since: int = 0
    other_since: int = 0
    superseded: bool = False
    stale: bool = False
    blind_since: int = 0
    fresh_since: int = 0
    changed_at: int | None = None
    followed_at: int | None = None
    followed_behind: float | None = None
    """How far behind the latest member was when advice was followed, s."""
    drained_at: int | None = None
    least_behind: float | None = None
    """How far behind the latest member has been since nothing has been found any more, s, and, ``least_at``, since when; None while something is."""
    least_at: int = 0
    nothing_since: int = 0
    """Since when nothing has been found, whether a member is still late or not; 0 while something is."""
    replaced: Advised | None = None
    """What the message before the last update advised, if the group had not followed it by then: it may be about to."""


@dataclass(frozen=True, slots=True)
class Window:
    """What a member did while it was certainly busy: until when (ms), for how many seconds, records by topic; ``late_s``: how late it
    was in the end, None where an older version wrote it."""

    until: int
    seconds: float
    records: Mapping[str, int]
    late_s: float | None = None


@dataclass(frozen=True, slots=True)
class WindowStart:
    """Where a capacity window began: time (ms) and committed offset of each partition, by ``<topic>/<partition>``; ``busy_s``: for
    how long the member has been certainly busy since; ``unproven_s``: for how long, from ``unproven_since`` (ms) on, records waited only in
    partitions that had not been served since the window began."""

    time: int
    committed: Mapping[str, int]
    busy_s: float = 0.0
    unproven_since: int = 0
    unproven_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Older:
    """The part of a lateness that is older than the known log ends: how long it is, s, and the inflow by which it is extrapolated, records/s."""

    seconds: float
    inflow: float


@dataclass(frozen=True, slots=True)
class Spell:
    """A stretch of commit time in which a member is late and getting later.

    ``began``, ``last``: its first and its latest commit, ms; ``reference``: greatest lateness of its first minute, s;
    ``grown_s``: how long it has been late and growing; ``grew_at``: the latest commit at which it was; ``commits`` and
    ``records`` done since it began; ``votes``: verdict → looks, ``voted``: the commits up to the latest of them; ``topics``: of a
    member that holds several, each topic's own greatest lateness of that minute and its latest at least, s; ``older``: how much of the first
    is older than the log ends that were known, where a part is; ``extrapolated_s``: how much of
    ``reference`` is older than the log ends that were known, and ``unsure_s``: how far what it rose by may be off, for that or for the samples of the log ends;
    ``carried_s``: the part of ``grown_s`` from before the lateness was measured.
    """

    began: int
    last: int
    reference: float
    grown_s: float = 0.0
    grew_at: int = 0
    commits: int = 1
    records: int = 0
    votes: Mapping[str, float] = field(default_factory=dict)
    voted: int = 0
    topics: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    older: Mapping[str, Older] = field(default_factory=dict)
    unsure_s: float = 0.0
    extrapolated_s: float = 0.0
    carried_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Fall:
    """How a lateness falls: from what (s) and since when (ms), to what value, and when that was reached."""

    most: float
    since: int
    least: float
    least_at: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """A stretch in which a member is late, growing or not. ``most``, ``most_at``: its greatest lateness (s) and when (ms);
    ``falls``: the latest fall of each topic's lateness, under "" where the member holds one topic; ``late_s``: how long it has been late in commit time; ``ramp_s``, ``ramp_records``: how long the member fell behind before it was
    late, and what it did meanwhile; ``votes``, ``voted``: as of a spell."""

    began: int
    last: int
    most: float
    most_at: int
    late_s: float = 0.0
    commits: int = 1
    records: int = 0
    ramp_s: float = 0.0
    ramp_records: int = 0
    votes: Mapping[str, float] = field(default_factory=dict)
    voted: int = 0
    falls: Mapping[str, Fall] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemberState:
    """What is remembered of a member that has, or lately had, something to do.

    ``time``: its latest commit, ms; ``done``: <topic>/<partition> → committed offset then; ``gaps``: its latest gaps between
    commits, ms; ``lateness``: (time, lateness in s) of the last two minutes; ``on_time_at``: when it was last not late;
    ``ramp_s``, ``ramp_records``: how long it has fallen behind since then, before it was late, and what it did meanwhile;
    ``longest_spell_s``: of the spells since it was last not late, and ``longest_from``: how late it was when that one began, s;
    ``longest_late_s``: of the backlogs since then, in commit time;
    ``silent_s``: for how long none of its unread partitions has moved while others did.
    """

    time: int = 0
    done: Mapping[str, int] = field(default_factory=dict)
    gaps: tuple[int, ...] = ()
    mark: WindowStart | None = None
    windows: tuple[Window, ...] = ()
    lateness: tuple[tuple[int, float], ...] = ()
    on_time_at: int = 0
    ramp_s: float = 0.0
    ramp_records: int = 0
    spell: Spell | None = None
    backlog: Backlog | None = None
    continued: float = 0.0
    """The inflow (work/s) by which ``lateness`` and the spell are extrapolated; 0 where they are measured."""
    longest_spell_s: float = 0.0
    longest_from: float = 0.0
    longest_late_s: float = 0.0
    silent_s: float = 0.0
    silent_seen: int = 0
    """The others' latest move when ``silent_s`` was last advanced, ms."""

    @property
    def running(self) -> bool:
        """Whether a clock runs."""
        return self.spell is not None or self.backlog is not None or self.silent_s > 0


@dataclass(frozen=True, slots=True)
class Standing:
    """Clocks of one partition that has unread records and stands. ``since``: later of its last move and the arrival of its
    oldest unread record, ms; ``turn``: the first commit after that at which a sibling had moved, 0 before;
    ``passed_over_s``, ``idle_s``: how long its siblings have been served, or have had nothing to do, beside it, in this assignment; ``before_s``: the same in
    earlier ones; ``on_time_s``: how long
    its member has been on time with all that goes on beside it, while its topic goes on elsewhere, and ``topic_rest_s`` while no member reads its topic;
    ``holder``: the member that holds it or held it last; ``handed_over``: when another got it since, ms;
    ``others_left``: how often another member than its holder has left the group since."""

    since: int
    turn: int = 0
    passed_over_s: float = 0.0
    idle_s: float = 0.0
    seen: int = 0
    handed_over: int = 0
    holder: str = ""
    others_left: int = 0
    on_time_s: float = 0.0
    topic_rest_s: float = 0.0
    before_s: float = 0.0

    @property
    def stood_s(self) -> float:
        """For how long it has stood beside members that had time for it."""
        return self.before_s + max(self.passed_over_s, self.idle_s)


@dataclass(frozen=True, slots=True)
class Delay:
    """A topic that is read late. ``least_s``, ``most_s``: how late since ``since`` (ms), as of the commits up to ``last`` (ms); ``known``: that it is on purpose."""

    least_s: float
    most_s: float
    since: int
    last: int
    known: bool = False


@dataclass(frozen=True, slots=True)
class Habit:
    """The longest thing of its kind that ended by itself: how long (s), and when it ended (ms)."""

    longest_s: float
    ended: int


@dataclass(frozen=True, slots=True)
class Useful:
    """How many members would help (see ``kagent.detect.useful_members``). ``because``: why no more do; ``capacity``: of a usual
    member as it was measured last, work/s; ``more_since``, ``fewer_since``: since when another number has been due, ms, 0 if none
    is; ``looked_at``: ms; ``raised_at``: when the number last rose, ms, 0 if at some time since no member was late."""

    members: int
    because: str = ""
    capacity: float = 0.0
    more_since: int = 0
    fewer_since: int = 0
    looked_at: int = 0
    raised_at: int = 0


@dataclass(frozen=True, slots=True)
class JudgeState:
    """One group's memory. ``generations``: (time, generation) of the changes within the storm window; ``comings``: member
    name → when it came back after leaving, within the storm window, ms; ``habits``: what kinds of pauses and spells ended by themselves;
    ``track``: how many incidents were opened, and how they ended; ``last_tick``: the last tick that looked at it closely, ms."""

    first_seen: int
    last_tick: int = 0
    generation: int | None = None
    digest: str = ""
    generation_at: int = 0
    generations: tuple[tuple[int, int], ...] = ()
    restless_since: int = 0
    """When the rebalances began that have followed each other within the storm window since."""
    restless_from: int | None = None
    """The generation before them; None where it was not seen."""
    restless_s: float = 0.0
    """For how long the latest of them have come at the pace of a storm."""
    names: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    """Short hashes of the members' ids: a process that is started again has another."""
    comings: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    assignment: str = ""
    assigned_at: int = 0
    """When who holds what was last seen to change."""
    incident: Incident | None = None
    stopping: Mapping[str, int] = field(default_factory=dict)
    """Member → its last commit before who holds what changed at ``stopped_at``, ms, until it commits again."""
    stopped_at: int = 0
    pauses_s: tuple[float, ...] = ()
    """For how long members paused at the latest changes of who holds what: their commit gap beyond the usual one."""
    useful: Useful | None = None
    """How many members would help; None until a member was busy and so its speed is known."""
    cooldown_until: int = 0
    cooldown_of: str = ""
    cooldown_member: str = ""
    """The verdict of the incident whose end began it, and the member that it named."""
    cooldown_partitions: tuple[tuple[str, int], ...] = ()
    """Those that it named."""
    empty_since: int = 0
    members_at: int = 0
    returned_at: int = 0
    """When members came back after there had been none, ms."""
    longest_absence: int = 0
    members: Mapping[str, MemberState] = field(default_factory=dict)
    standing: Mapping[str, Standing] = field(default_factory=dict)
    """<topic>/<partition> → its clocks, where it has unread records and stands."""
    at_rest_s: float = 0.0
    """For how long the whole group has had unread records and none of its partitions has moved."""
    rest_since: int = 0
    """When that rest began, ms, 0 without one."""
    rest_unseen_s: float = 0.0
    """How much of the time since then the cluster could not be seen, which is not counted."""
    going_since: int = 0
    """Since when the group has gone on without a rest of a minute."""
    committed_together: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """<topic>/<partition> → (label of those it is committed with, how often), where the coordinator knows no members."""
    committed_at: int = 0
    """The latest commit at the look that last changed ``committed_together``, ms."""
    habits: Mapping[str, Habit] = field(default_factory=dict)
    trail: Mapping[str, int] = field(default_factory=dict)
    """<topic>/<partition> → committed at the last evaluation, where there is a backlog and log starts move."""
    lost: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """<topic>/<partition> → (time, records) that retention took before they were read."""
    track: Mapping[str, int] = field(default_factory=dict)
    delays: Mapping[str, Delay] = field(default_factory=dict)
    """Topic → how late it is read on purpose, or perhaps."""
    from_start: bool = False
    """Whether the group was seen to begin topics at their log start (auto.offset.reset is earliest)."""

    def to_row(self) -> dict[str, Any]:
        """As it is kept in a table: what JSON knows, defaults left out."""
        # Nearly all fields of nearly all groups are at their defaults, and the row is written to a changelog topic.
        row: dict[str, Any] = _codec().dump_python(self, mode="json", exclude_defaults=True)
        return {"first_seen": self.first_seen, **row}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> JudgeState:
        """The state that :meth:`to_row` wrote, or an older version did: what it has under names that are no longer known, or
        in a shape that is not, is left out, so that it is learned again. Raises ValueError without ``first_seen``."""
        # Field by field: one that another version wrote differently must cost what was learned in it, not the whole group's memory.
        kept = dict(row)
        while True:
            try:
                return _codec().validate_python(kept)
            except ValueError as error:
                wrong = (
                    {e["loc"][0] for e in error.errors() if e["loc"]} if hasattr(error, "errors") else set()
                )
                if not wrong & kept.keys() or "first_seen" in wrong:
                    raise
                kept = {name: value for name, value in kept.items() if name not in wrong}

    def lasting(self) -> JudgeState:
        """The state without what need not outlive the process."""
        return _without_tick(self)


def _without_tick(state: JudgeState) -> JudgeState:
    values = {f.name: getattr(state, f.name) for f in fields(JudgeState)}
    return JudgeState(**{**values, "last_tick": 0})


@cache
def _codec() -> TypeAdapter[JudgeState]:
    # Once a process, since building the validator is dear:
    # https://docs.pydantic.dev/latest/concepts/performance/#typeadapter-instantiated-once
    return TypeAdapter(JudgeState)
