"""When to speak: a frozen policy per group pattern. State is apart (``kagent.detect.state``), the clock is passed in.

All times are seconds. The defaults are for production; a demonstration may shorten them and should say so.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Protocol

from kagent.contract.recommendation import GroupKind
from kagent.errors import SettingsError

IGNORED = (
    "kagent-*",
    "console-consumer-*",
    "_confluent*",
    "schema-registry*",
    "connect-cluster*",
    "__*",
)
"""Never judged by default: kagent's own groups, people's console consumers, and clusters of workers."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What it takes to open, to resolve, and what is known about the group beforehand."""

    threshold: float = 1.5
    """Skew from which on a group's work counts as badly spread."""
    lower_threshold: float = 1.25
    """Skew below which an open incident resolves."""
    min_behind: float = 60.0
    """How far behind the overloaded member must be, in seconds of its inflow; 0 switches it off."""
    evaluations: int = 3
    """In how many judgements in a row it must hold, resting on two different commits of that member."""
    confirmations: int = 2
    """How often the coordinator must bear out what was found, with fresh numbers and one commit gap apart, before it is
    said. What cannot heal by itself (lost records) or is told by the generations alone (a storm) is confirmed once."""
    cooldown: float = 1800.0
    """After an incident resolved, none opens for so long (longer if the predicted drain was)."""
    min_gain: float = 0.15
    """A plan must lower the greatest work by this share to count as help."""
    max_moves: int | None = None
    """Plans with more moves are cut to the best of so many."""
    settle: float = 60.0
    """No skew is judged so long after a new generation (or for three commits, if that is longer)."""
    learn: float = 3600.0
    """A group first seen may not open for so long, unless ``learn_commits`` came first and a quarter of it has passed."""
    learn_commits: int = 20
    hold: float = 300.0
    """What would drain by itself within this time is not spoken of."""
    stall_after: float = 300.0
    """No progress for so long, or for 2.75 of the group's own commit gaps, is a standstill."""
    update_every: float = 300.0
    """An open incident is told again when it changed, at most this often."""
    rewrite_every: float = 86_400.0
    """And unchanged once in this time, so that a new subscriber finds it young."""
    valid: float = 900.0
    """Nobody may act on a recommendation later than this after it was judged."""
    expire_after: float = 86_400.0
    """An open incident of a group that can no longer be judged ends as expired."""
    storm_generations: int = 5
    """So many generations within ``storm_window`` are a rebalance storm."""
    storm_window: float = 600.0
    deploy_silence: float = 900.0
    """Members that come and go in turn are a deployment: silent for so long."""
    idle_after: float = 604_800.0
    """Members without a partition for so long are worth a remark."""
    absent_after: float = 3600.0
    """A group whose lag grows without members for so long is worth a remark."""
    clock_slack: float = 0.25
    """How far the brokers' clocks and ours may differ."""
    cadence: float = 10.0
    """Seconds between commits, assumed until the group's own are known."""
    await_drain: float = 1800.0
    """After advice was followed, wait at most so long for the drain before the outcome is told."""
    allowed_lag: int = 2
    """Records per partition that count as caught up (transaction markers at the end of the log)."""
    tolerance: float = 0.05
    """The plan's greatest work may be this far above the best."""
    reset_policy: str | None = None
    """The consumers' auto.offset.reset, where it is known: earliest, latest, none."""
    stateful: bool = False
    """Members keep state by partition: no moves are advised."""
    co_partitioned: bool | None = None
    """Partition p of all topics must stay together; None: found out."""
    kind: GroupKind | None = None
    """What the group is, where kagent's guess is wrong."""
    ignore: bool = False
    owner: str | None = None
    runbook_url: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    severity: Mapping[str, str] = field(default_factory=dict)
    """Verdict → page, ticket or info, in place of the built-in one."""
    page_behind: float = 600.0
    """A standstill pages only when it is so many seconds behind."""

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem:
            raise SettingsError(f"The policy is wrong: {problem}.")


def _problem(p: Policy) -> str | None:
    if p.threshold <= 1:
        return f"threshold must be above 1, not {p.threshold}"
    if not 1 <= p.lower_threshold <= p.threshold:
        return f"lower_threshold must lie between 1 and threshold ({p.threshold}), not {p.lower_threshold}"
    if p.evaluations < 1:
        return f"evaluations must be at least 1, not {p.evaluations}"
    if p.confirmations < 1:
        return f"confirmations must be at least 1, not {p.confirmations}"
    if not 0 <= p.min_gain < 1:
        return f"min_gain is a share between 0 and 1, not {p.min_gain}"
    if p.max_moves is not None and p.max_moves < 1:
        return f"max_moves must be at least 1, not {p.max_moves}"
    if p.reset_policy not in (None, "earliest", "latest", "none"):
        return f"reset_policy is earliest, latest or none, not {p.reset_policy!r}"
    for name in ("severity",):
        wrong = set(getattr(p, name).values()) - {"page", "ticket", "info"}
        if wrong:
            return f"{name} is page, ticket or info, not {', '.join(sorted(map(str, wrong)))}"
    for f in fields(p):
        value = getattr(p, f.name)
        if f.type in ("float", "int") and value < 0:
            return f"{f.name} must not be negative"
    return None


def make_policy(values: Mapping[str, Any], base: Policy | None = None) -> Policy:
    """A policy from settings. Raises SettingsError naming the field that does not exist or does not fit."""
    known = {f.name: f for f in fields(Policy)}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise SettingsError(
            f"The policy has no field {', '.join(unknown)}; there are: {', '.join(sorted(known))}."
        )
    return replace(base or Policy(), **{n: _typed(n, str(known[n].type), v) for n, v in values.items()})


def _typed(name: str, kind: str, value: Any) -> Any:
    """The value as the field wants it; environment variables come as text."""
    try:
        if value is None and "None" in kind:
            return None
        if name == "kind":
            return GroupKind(value)
        if kind.startswith("Mapping"):
            return {str(k): str(v) for k, v in dict(value).items()}
        if kind.startswith("bool"):
            return _flag(value)
        if kind.startswith(("float", "int")):
            return (float if kind.startswith("float") else int)(value)
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"The policy's {name} cannot be {value!r}: it is {kind.replace(' | None', '')}."
        ) from error
    return str(value)


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False}
    if str(value).lower() in (words | {"0": False}):
        return (words | {"0": False})[str(value).lower()]
    raise ValueError(value)


class Pattern(Protocol):
    """One entry of the settings' ``groups``: ``match`` and the policy's fields."""

    @property
    def match(self) -> str:
        """A glob, or a regular expression between slashes."""

    def model_dump(self) -> dict[str, Any]:
        """All its fields."""


class Policies:
    """The policy of every group, from the settings: ``policy`` for all, ``groups`` by pattern, ``ignore``."""

    def __init__(
        self,
        policy: Mapping[str, Any] | None = None,
        groups: Iterable[Pattern] = (),
        ignore: Iterable[str] = (),
    ) -> None:
        self.base = make_policy(policy or {})
        self.patterns = [
            (
                entry.match,
                make_policy({k: v for k, v in entry.model_dump().items() if k != "match"}, self.base),
            )
            for entry in groups
        ]
        self.ignored = (*IGNORED, *ignore)
        for pattern in (*self.ignored, *(match for match, _ in self.patterns)):
            matches(pattern, "")
        self._of: dict[str, Policy] = {}

    def __call__(self, group: str) -> Policy:
        """The policy of a group: the first pattern that matches, else the one for all."""
        known = self._of.get(group)
        if known is None:
            if len(self._of) > 100_000:
                self._of.clear()
            known = self._of[group] = self._find(group)
        return known

    def _find(self, group: str) -> Policy:
        for pattern, policy in self.patterns:
            if matches(pattern, group):
                return policy
        if any(matches(pattern, group) for pattern in self.ignored):
            return replace(self.base, ignore=True)
        return self.base


def policy_for(policy: Mapping[str, Any], groups: Iterable[Pattern], group: str) -> Policy:
    """The policy of one group; ``Policies`` is the same for many."""
    return Policies(policy, groups)(group)


def matches(pattern: str, group: str) -> bool:
    """Whether a glob, or a regular expression between slashes, matches the whole name."""
    return _compiled(pattern).fullmatch(group) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/"):
            return re.compile(pattern[1:-1].removeprefix("^").removesuffix("$"), re.DOTALL)
        return re.compile(fnmatch.translate(pattern))
    except re.error as error:
        raise SettingsError(f"The group pattern {pattern!r} is no regular expression: {error}.") from error
