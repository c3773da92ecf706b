"""When to speak: a frozen policy per group pattern. State is apart (``kagent.detect.state``), the clock is passed in.

All times are seconds. The defaults are for production; a demonstration may shorten them and should say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from kagent.contract.recommendation import GroupKind, Severity, Verdict
from kagent.docstrings import descriptions
from kagent.duration_fields import Seconds
from kagent.errors import SettingsError
from kagent.group_pattern import check, matches

IGNORED = (
    "kagent-*",
    "console-consumer-*",
    "_confluent*",
    "schema-registry*",
    "connect-cluster*",
    "__*",
    "spark-kafka-source-*",
    "spark-kafka-relation-*",
)
"""Never judged by default: kagent's own groups, people's console consumers, clusters of workers, and the groups that Spark
makes up for each query, which never commit."""


AUTO = "auto"
"""The value of ``apply`` with which the worker has groups take their plans."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What it takes to open, to resolve, and what is known about the group beforehand."""

    threshold: float = 1.5
    """A group that catches up by itself counts as badly spread from this skew on. With `min_behind` and `hold` at 0 every
    crossing is reported."""
    lower_threshold: float = 1.25
    """Used only where `min_behind` and `hold` are 0: an open incident resolves below this skew. It may not be greater than `threshold`.
    If it is not set and `threshold` is below 1.25, it is equal to `threshold`."""
    min_behind: float = 60.0
    """From how far behind a member counts as late: the time since the log ends of its partitions were where its commits are now."""
    hold: float = 300.0
    """How long kagent waits before it reports. Lag that drains by itself within this time is not reported. A standstill is reported
    after this time. A silent member is reported after 85 % of it (4 min 15 s by default). A member that gets later and later is
    reported after 20 % of it (1 min by default) at the earliest."""
    evidence: float = 1.0
    """How sure kagent must be: 2 asks for twice the evidence, 0.5 for half."""
    cooldown: float = 1800.0
    """After an incident resolved, none opens for this long, or for as long as the predicted drain, if that is longer; but one that is
    more urgent than it was does (lost records, then a standstill, then a member that is late), and so do a standstill from `page_behind` on and
    a member that falls behind after something else than such a member, or another slow member.
    The number of members for autoscalers falls once fewer have been enough for this long."""
    min_gain: float = 0.15
    """A plan must shorten the time to catch up, or lower the greatest work, by this share to count as help. A backlog that drains is
    reported only where a better spread shortens that time by as much."""
    max_moves: int | None = None
    """The maximum number of moves in a plan: a plan with more is cut to those that help most."""
    settle: float = 60.0
    """No skew is judged for this long after partitions changed hands."""
    update_every: float = 300.0
    """The minimum time between two messages with new figures of an open incident; another verdict, a higher severity or a new plan does not
    wait for it. What still holds is published again before `valid` has passed."""
    rewrite_every: float = 86_400.0
    """An open incident that does not change is published again once in this time, so that new subscribers get a recent message."""
    valid: float = 900.0
    """A recommendation may be acted on for this long after it was judged."""
    expire_after: float = 86_400.0
    """An open incident of a group that could not be judged for this long ends as expired."""
    storm_generations: int = 5
    """This many generations within `storm_window` are a rebalance storm."""
    storm_window: float = 600.0
    """See `storm_generations`."""
    deploy_silence: float = 900.0
    """Members that come and go in turn are a deployment: nothing is reported for this long."""
    idle_after: float = 604_800.0
    """Members without a partition for this long are reported."""
    absent_after: float = 3600.0
    """A group whose lag grows without members for this long is reported."""
    cadence: float = 10.0
    """The time between commits that is assumed until the group's own is known."""
    await_drain: float = 1800.0
    """After a plan was followed, the outcome is published once the lag has drained, or after this time. Any incident whose cause is gone
    stays open while a member is still late, at most until the group has come neither nearer nor later (by `min_behind`) for this time. A lateness that ends by
    itself again and again is reported from this length on."""
    allowed_lag: int = 2
    """Records per partition that count as caught up (transaction markers at the end of the log)."""
    tolerance: float = 0.05
    """The plan's greatest member work may exceed that of the best assignment by this share: 0.05 is 5 %."""
    reset_policy: str | None = None
    """The consumers' auto.offset.reset, where it is known: earliest, latest, none."""
    stateful: bool = False
    """Members keep state by partition: no moves are advised."""
    apply: str = "off"
    """auto: the worker has a KIP-848 group take its open plan as `kagent apply` would, once per 15 minutes and three times a day."""
    uniform_follows: bool = False
    """The brokers run kagent's assignor as their `uniform` (`kagent assignor --as-uniform`): groups that name it can take plans."""
    co_partitioned: bool | None = None
    """Partition p of all topics must stay together; not set: only where the client makes it so (Kafka Streams, Faust)."""
    kind: GroupKind | None = None
    """What the group is, where kagent's guess is wrong. Share groups are not judged, with `share` or without."""
    ignore: bool = False
    """true: these groups are not judged. false in an entry of `groups`: they are judged, even if the list `ignore` or kagent itself leaves
    them out."""
    owner: str | None = None
    """Whom the groups belong to: shown in `watch`, messages and alerts."""
    runbook_url: str | None = None
    """Linked from messages and alerts."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Added to messages and alerts, as they are."""
    severity: Mapping[str, str] = field(default_factory=dict)
    """Verdict → page, ticket or info, in place of the built-in one."""
    page_behind: float = 600.0
    """A stalled partition pages only from this many seconds behind."""

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem:
            raise SettingsError(f"The policy is wrong: {problem}.")


def shortened(seconds: float, hold: float) -> float:
    """A time that is no share of ``hold``, with this ``hold``: a shorter one than the default shortens it by the same share."""
    return seconds * min(1.0, hold / _default_hold())


@cache
def _default_hold() -> float:
    return Policy().hold


def _problem(p: Policy) -> str | None:
    try:
        PolicySettings.model_validate({f.name: getattr(p, f.name) for f in fields(p)})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"
    return None


# All other floats are durations and take units; a ratio of `2m` must be an error.
RATIOS = {"evidence", "threshold", "lower_threshold", "min_gain", "tolerance"}
"""The float fields that are not seconds."""

LIMITS: dict[str, dict[str, Any]] = {
    "threshold": {"gt": 1},
    "lower_threshold": {"ge": 1},
    "evidence": {"gt": 0},
    "min_gain": {"ge": 0, "lt": 1},
    # A share too: 5 would be 500 %.
    "tolerance": {"ge": 0, "le": 1},
    "max_moves": {"ge": 1},
}
"""What a number may be; every other number must not be negative."""

CHOICES: dict[str, Any] = {
    "reset_policy": Literal["earliest", "latest", "none"] | None,
    "severity": Mapping[Verdict, Severity],
    # YAML 1.1 reads a bare `off` as false.
    "apply": Annotated[
        Literal["off", "auto"], BeforeValidator(lambda value: "off" if value is False else value)
    ],
}
"""Fields of text whose words are few."""

RETIRED: dict[str, str] = {
    "evaluations": "kagent weighs how long a member has been late in commit time instead of counting judgements; remove it",
    "confirmations": "the coordinator confirms every finding once; remove it",
    "learn": "a new group is judged at once and needs more evidence in its first hour; remove it",
    "learn_commits": "a new group is judged at once and needs more evidence in its first hour; remove it",
    "stall_after": "`hold` is also the least length of a standstill; set that instead",
    "clock_slack": "clocks that differ by seconds do not affect the evaluation; remove it",
}
"""Former fields and what to do about them: read with a note, without effect. A name that is still a field is one."""


def retired(name: object) -> str | None:
    """The note about a policy field of an older kagent; None for any other name."""
    return RETIRED.get(str(name)) if name not in _names() else None


@cache
def _names() -> frozenset[str]:
    return frozenset(f.name for f in fields(Policy))


def _annotation(name: str, kind: Any) -> Any:
    if name in CHOICES:
        return CHOICES[name]
    return Seconds if kind is float and name not in RATIOS else kind


def _declared() -> dict[str, Any]:
    """Name → (annotation, field) of every field of Policy, for pydantic."""
    hints, found = get_type_hints(Policy), {}
    described = descriptions(Policy)
    for f in fields(Policy):
        kind = _annotation(f.name, hints[f.name])
        default = {} if f.default is MISSING else f.default
        number = kind in (int, float, Seconds)
        limits = LIMITS.get(f.name, {"ge": 0} if number else {})
        found[f.name] = (kind, Field(default, description=described.get(f.name), **limits))
    return found


def refuse_truth(value: Any, annotation: Any) -> Any:
    """The value of a setting. Raises ValueError for true or false where a number belongs: pydantic takes them for 1 and 0."""
    if isinstance(value, bool) and annotation in (int, int | None, float, float | None):
        raise ValueError(f"must be a number, not {str(value).lower()}")
    return value


class _PolicyBase(BaseModel):
    """Reads text from variables and numbers from YAML alike; a name that does not exist is an error."""

    model_config = ConfigDict(
        defer_build=True, extra="forbid", frozen=True, coerce_numbers_to_str=True, allow_inf_nan=False
    )

    @field_validator("*", mode="before")
    @classmethod
    def _number(cls, value: Any, info: ValidationInfo) -> Any:
        return refuse_truth(value, cls.model_fields[str(info.field_name)].annotation)

    @model_validator(mode="before")
    @classmethod
    def _without_retired(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        # Dropped, not refused: a file of an older release still starts, with a note.
        return {name: value for name, value in values.items() if retired(name) is None}

    @field_validator("lower_threshold", check_fields=False)
    @classmethod
    def _below(cls, lower: float, info: ValidationInfo) -> float:
        upper = info.data.get("threshold")
        # `threshold` is missing from info.data where it was refused itself: one mistake, not two.
        if upper is not None and lower > upper and "threshold" in info.data:
            raise ValueError(f"must not be above threshold ({upper:g}), and is {lower:g}")
        return lower

    def model_post_init(self, context: Any, /) -> None:
        """A lower threshold by default: one that a threshold below it takes along."""
        values = self.__dict__  # of a frozen model
        if "lower_threshold" not in self.model_fields_set and "threshold" in values:
            values["lower_threshold"] = min(values["lower_threshold"], values["threshold"])

    @field_validator("runbook_url", check_fields=False)
    @classmethod
    def _url(cls, url: str | None) -> str | None:
        if url is not None and not re.match(r"https?://[^/\s]+", url):
            raise ValueError(f"must be an http:// or https:// URL, not {url!r}")
        return url


if TYPE_CHECKING:
    PolicySettings = _PolicyBase
else:
    # Made at run time, which a type checker cannot follow: it sees the base.
    PolicySettings = create_model(
        "PolicySettings", __base__=_PolicyBase, __doc__="What kagent judges by.", **_declared()
    )
    """The policy as the settings have it: the fields of Policy, checked; made from them, so that none can be forgotten."""


def make_policy(values: Mapping[str, Any] | BaseModel, base: Policy | None = None) -> Policy:
    """A policy from settings. Raises SettingsError naming the field that does not exist or does not fit."""
    given = values.model_dump(exclude_unset=True) if isinstance(values, BaseModel) else dict(values)
    try:
        checked = PolicySettings.model_validate(_inherited(base or Policy(), given) | given)
    except ValidationError as error:
        raise SettingsError(f"The policy is wrong: {_first(error)}.") from error
    return Policy(**{f.name: getattr(checked, f.name) for f in fields(Policy)})


def _inherited(base: Policy, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is not given: a lower threshold that only ``base`` has is no reason to refuse a threshold below it."""
    found = {name: value for name, value in _asdict(base).items() if name not in given}
    if isinstance(threshold := given.get("threshold"), int | float) and "lower_threshold" in found:
        found["lower_threshold"] = max(1.0, min(base.lower_threshold, threshold))
    return found


def _asdict(policy: Policy) -> dict[str, Any]:
    return {f.name: getattr(policy, f.name) for f in fields(policy)}


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        known = sorted(f.name for f in fields(Policy))
        near = get_close_matches(name, known, 1)
        return f"there is no {name}" + (
            f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(known)}"
        )
    return f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"


class Pattern(Protocol):
    """One entry of the settings' ``groups``: ``match`` and the policy's fields."""

    @property
    def match(self) -> str:
        """A glob, or a regular expression between slashes."""

    def model_dump(self, *, exclude_unset: bool = False) -> dict[str, Any]:
        """All its fields, or those that were given."""


def _unset_left_out(entry: Pattern) -> dict[str, Any]:
    return {k: v for k, v in entry.model_dump(exclude_unset=True).items() if k != "match"}


class Entry(NamedTuple):
    """One entry of ``groups``. ``decides``: it says itself whether its groups are ignored."""

    match: str
    policy: Policy
    decides: bool


class Policies:
    """The policy of every group, from the settings: ``policy`` for all, ``groups`` by pattern, ``ignore``.

    What ``ignore`` or ``IGNORED`` leaves out is left out, unless the entry of ``groups`` that matches sets ``ignore`` itself.
    """

    def __init__(
        self,
        policy: Mapping[str, Any] | BaseModel | None = None,
        groups: Iterable[Pattern] = (),
        ignore: Iterable[str] = (),
    ) -> None:
        self.base = make_policy(policy or {})
        given = [(entry.match, _unset_left_out(entry)) for entry in groups]
        self.patterns = [Entry(match, make_policy(own, self.base), "ignore" in own) for match, own in given]
        self.ignored = (*IGNORED, *ignore)
        # A pattern that does not compile is refused here, not at the first group it meets.
        for pattern in (*self.ignored, *(match for match, _ in given)):
            check(pattern)
        self._of: dict[str, Policy] = {}

    @property
    def applied(self) -> tuple[str, ...]:
        """The patterns of the groups that take their plans unasked (``apply: auto``), `*` where ``policy`` says so for all."""
        if self.base.apply == AUTO:
            return ("*",)
        auto = (e for e in self.patterns if e.policy.apply == AUTO and not e.policy.ignore)
        return tuple(e.match for e in auto)

    def __call__(self, group: str) -> Policy:
        """The policy of a group: the first pattern that matches, else the one for all, and whether it is ignored."""
        known = self._of.get(group)
        if known is None:
            # Names of groups come from clients: the cache must not grow with whatever they make up.
            if len(self._of) > 100_000:
                self._of.clear()
            known = self._of[group] = self._find(group)
        return known

    def _find(self, group: str) -> Policy:
        found = (entry for entry in self.patterns if matches(entry.match, group))
        first = next(found, Entry(group, self.base, decides=False))
        # `match: "*"` that names an owner must not have people's console consumers judged.
        left_out = not first.decides and any(matches(pattern, group) for pattern in self.ignored)
        return replace(first.policy, ignore=True) if left_out else first.policy


def policy_for(policy: Mapping[str, Any] | BaseModel, groups: Iterable[Pattern], group: str) -> Policy:
    """The policy of one group; ``Policies`` is the same for many."""
    return Policies(policy, groups)(group)
