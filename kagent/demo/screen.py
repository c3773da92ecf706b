"""What the demo shows: a live table of groups and members, the advice as it comes, and the table at the end."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.panel import Panel
from rich.text import Text

from kagent.client.incident_text import age, headline, number, state_line, story
from kagent.contract.recommendation import ActionType, Recommendation, Status
from kagent.contract.words import VERDICTS, action_words
from kagent.demo.scene import GroupLag, Scene
from kagent.demo.topology import GROUPS, PIPELINE, POLICY, TWINS, WORKER, DemoGroup
from kagent.text_table import TableColumn, lines

BAR = 12
FULL_SECONDS = 60.0
BARS = {"green": "▏|█", "yellow": "█{2,4}", "red": "█{5,}"}
"""Colour by length: from 5 s behind, and from 22 s behind."""
COLUMNS = (
    TableColumn("group", "GROUP"),
    TableColumn("member", "MEMBER", rank=1),
    TableColumn("partitions", "PARTITIONS", rank=4, right=True),
    TableColumn("lag", "LAG", rank=3, right=True),
    TableColumn("behind", "BEHIND", right=True),
    TableColumn("bar", "", rank=5),
    TableColumn("ratio", "MAX/MEAN LAG", rank=2, right=True),
    TableColumn("says", "KAGENT SAYS", least=23, keep="start"),
)
SUMMARY = (
    TableColumn("group", "GROUP"),
    TableColumn("verdict", "VERDICT", rank=2),
    TableColumn("action", "ACTION", rank=3, least=15, keep="start"),
    TableColumn("taken", "TAKEN"),
    TableColumn("predicted", "PREDICTED", rank=1, right=True),
    TableColumn("measured", "MEASURED", right=True),
    TableColumn("twin", "TWIN LATE", right=True),
)
NO_GROUP = {"group": "", "ratio": "", "says": ""}


def settings_said() -> str:
    """Which waiting times are shortened."""
    usual = "settle 1 min, min_behind 60 s, hold 5 min, cooldown 30 min, tick 10 s"
    here = f"settle {POLICY['settle']:.0f} s, min_behind {POLICY['min_behind']:.0f} s, hold {POLICY['hold']:.0f} s"
    return f"Waiting times are shortened for the demo: {here}, tick {WORKER['tick']:.0f} s, trigger {PIPELINE['trigger']} s (in production: {usual})."


def live(scene: Scene, left_s: float | None, width: int) -> RenderableType:
    """Groups, members, their shown lag and its ratio (greatest ÷ mean) now, in this many cells. ``left_s``: None without an end."""
    title = (
        "runs until Ctrl-C"
        if left_s is None
        else f"ends if nothing new comes within {age(int(left_s * 1000))}"
    )
    rows = [row for group in GROUPS for row in _rows(scene, group)]
    table = Text("\n").join(Text(line) for line in lines(COLUMNS, rows, width))
    table.highlight_regex("(?m)^GROUP.*$", "bold")
    for style, bar in BARS.items():
        table.highlight_regex(f"(?<!█)(?:{bar})(?!█)", style)
    state = state_line(scene.state) if scene.state else "waiting for the first state message"
    return Stack(Text(title, style="italic"), table, Text(state, style="dim"))


def _rows(scene: Scene, group: DemoGroup) -> Iterator[dict[str, str]]:
    lag = scene.lags.get(group.name)
    if lag is None or not lag.members:
        yield {"group": group.name, "says": group.role}
        return
    verdict = scene.messages.get(group.name)
    says = f"{verdict.status.value}: {VERDICTS[verdict.verdict].short}" if verdict else "–"
    of_group = {"group": group.name, "ratio": number(lag.skew), "says": says}
    for member in lag.members:
        yield (
            NO_GROUP
            | of_group
            | {
                "member": member.name,
                "partitions": str(member.partitions),
                "lag": f"{member.lag:,}",
                "behind": f"{member.seconds:.0f} s",
                "bar": _bar(member.seconds),
            }
        )
        # The group's own columns stand in its first row alone.
        of_group = NO_GROUP


def _bar(seconds: float) -> str:
    return "█" * min(BAR, round(BAR * seconds / FULL_SECONDS)) or "▏"


def plain(scene: Scene) -> str:
    """The same in one line, where there is no terminal."""
    parts = []
    for group in GROUPS:
        lag = scene.lags.get(group.name)
        if lag is not None and lag.members:
            behind = "/".join(f"{m.seconds:.0f}" for m in lag.members)
            parts.append(f"{group.name} {behind} s behind, max/mean lag {number(lag.skew)}")
    return " · ".join(parts)


def worth_a_panel(rec: Recommendation) -> bool:
    """Whether it is shown in full: when it opens and when it is resolved."""
    return rec.status in (Status.OPEN, Status.RESOLVED)


def advice(rec: Recommendation) -> Panel:
    """A recommendation as a person wants to read it."""
    style = "green" if rec.status is Status.RESOLVED else "yellow"
    # The headline within, where it is folded: a panel cuts a title that is wider than the terminal.
    return Panel(
        Text("\n").join([Text(headline(rec), style="bold"), *map(Text, story(rec))]), border_style=style
    )


def summary(scene: Scene, width: int | None) -> Text:
    """Group, verdict, action, drain predicted and measured, the twin's. In this many cells; None: as wide as it is."""
    table = "\n".join(lines(SUMMARY, [_outcome(scene, group.name) for group in GROUPS], width))
    return Text(f"What came of it: the time to catch up, and how late the twin was then\n{table}")


def _outcome(scene: Scene, name: str) -> dict[str, str]:
    first, rec, followed = scene.opened.get(name), scene.messages.get(name), scene.followed.get(name)
    verdict = VERDICTS[first.verdict].short if first and rec else "never opened"
    if rec is not None and name == "hot":
        verdict = VERDICTS[rec.verdict].short
    return {
        "group": name,
        "verdict": verdict,
        "action": _action(first) if first else "–",
        "taken": "yes" if followed else "no" if first is not None and name in TWINS else "–",
        "predicted": _seconds(predicted(scene, name)) if followed else "–",
        "measured": _seconds(followed.drained_after) if followed else "–",
        "twin": _twin(followed.twin_at_drain) if followed else "–",
    }


def _action(advice: Recommendation) -> str:
    return action_words(advice.actions[0].type, advice.actions[0].params) if advice.actions else "–"


def predicted(scene: Scene, group: str) -> float | None:
    """The drain in seconds that the advice promised, from the outcome, else from the followed plan's gain."""
    latest = scene.messages.get(group)
    if latest is not None and latest.outcome is not None and latest.outcome.predicted_drain_s is not None:
        return latest.outcome.predicted_drain_s
    followed = scene.followed.get(group)
    follow = [a for a in (followed.advice.actions if followed else ()) if a.type is ActionType.FOLLOW_PLAN]
    gain = follow[0].gain if follow else {}
    return gain.get("after") or gain.get("likely")


def _seconds(value: float | None) -> str:
    return "not known" if value is None else f"{value:.0f} s"


def _twin(twin: GroupLag | None) -> str:
    return "–" if twin is None else f"{twin.greatest:.0f} s"
