"""Settings that are right by themselves and wrong beside others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from kagent import file_systems
from kagent.durations import to_text
from kagent.errors import SettingsError
from kagent.group_pattern import is_right, matches
from kagent.policy import make_policy
from kagent.settings.all_settings import Settings
from kagent.settings.given_settings import GivenSettings
from kagent.settings.mistakes import Mistake, absent, dotted
from kagent.settings.pipeline_settings import PipelineSettings
from kagent.settings.settings_file import Where
from kagent.settings.unknown_names import suggestion


def contradictions(settings: Settings, given: GivenSettings, taken: Collection[Where]) -> list[Mistake]:
    """What is right by itself and wrong beside something else. ``taken``: ways to what was wrong and left out."""
    found = []
    home = settings.home
    # Those of the file too: what was wrong about one of them was taken out.
    names = list(dict.fromkeys([*settings.clusters, *_names(given.file.values.get("clusters"))]))
    if home is not None and names and home not in names:
        near = suggestion(home, names)
        hint = f"; did you mean {near}?" if near else f"; there are: {', '.join(names)}"
        found.append(Mistake(given.place(("home",)), "home", f"no cluster is named {home!r}{hint}"))
    found += _folders_spark_cannot_open(settings.pipeline, given)
    found += _filters_that_match_no_cluster(settings, names, given)
    if settings.redact_salt and settings.redact_salt_file:
        name = "redact_salt_file"
        found.append(
            Mistake(given.place((name,)), name, "needs either redact_salt or redact_salt_file, not both")
        )
    found += _over_before_it_is_renewed(settings, given)
    base = make_policy(settings.policy)
    for at, group in enumerate(settings.groups):
        where = ("groups", at)
        try:
            # With the base: a field can be right alone and contradict what `policy` sets for all.
            make_policy({k: v for k, v in group.model_dump(exclude_unset=True).items() if k != "match"}, base)
        except SettingsError as error:
            problem = str(error).removeprefix("The policy is wrong: ").rstrip(".")
            # What the group does not say itself it has from `policy`, which may have been left out as wrong.
            inherited = [way for way in taken if way[-1] not in group.model_fields_set]
            if not absent(problem, ("policy",), inherited) and not absent(problem, where, taken):
                found.append(Mistake(given.place_named(where, problem), f"groups[{at}]", problem))
    return found


def _over_before_it_is_renewed(settings: Settings, given: GivenSettings) -> Iterator[Mistake]:
    """An open recommendation is renewed by the next judgement: one that is over by then could hardly be acted on."""
    tick = to_text(settings.worker.tick)
    ways: list[Where] = [("policy",), *(("groups", at) for at in range(len(settings.groups)))]
    for way, each in zip(ways, (settings.policy, *settings.groups), strict=True):
        if (
            "valid" in each.model_fields_set
            and each.model_dump(include={"valid"})["valid"] <= settings.worker.tick
        ):
            setting = dotted((*way, "valid"))
            why = f"must be above worker.tick ({tick}), the time until the next judgement; the default is 15m"
            yield Mistake(given.place((*way, "valid")), setting, why)


def _folders_spark_cannot_open(pipeline: PipelineSettings, given: GivenSettings) -> Iterator[Mistake]:
    for name, place in (("checkpoint", pipeline.checkpoint), ("history", pipeline.history)):
        why = file_systems.problem(place or "", pipeline.options)
        if why is not None:
            yield Mistake(given.place(("pipeline", name)), f"pipeline.{name}", why)


def _filters_that_match_no_cluster(
    settings: Settings, names: Sequence[str], given: GivenSettings
) -> Iterator[Mistake]:
    """Of a destination that takes incidents of certain clusters only: with a typo it would never hear of one."""
    for name, patterns in _clusters_of_destinations(settings, given).items():
        for at, pattern in enumerate(patterns):
            if names and not any(matches(pattern, cluster) for cluster in names):
                where = ("alert", "destinations", name, "only", "clusters", at)
                near = suggestion(pattern, names)
                hint = f"did you mean {near}?" if near else f"there are: {', '.join(names)}"
                setting = f"alert.destinations.{name}.only.clusters[{at}]"
                yield Mistake(given.place(where), setting, f"no cluster is named {pattern!r}; {hint}")


def _clusters_of_destinations(settings: Settings, given: GivenSettings) -> dict[str, list[str]]:
    """Destination → the clusters it is about; those of the file too, of which something else was wrong."""
    of = {name: each.only.clusters for name, each in settings.alert.destinations.items()}
    for name in _names(given.file.written(("alert", "destinations"))):
        written = given.file.written(("alert", "destinations", name, "only", "clusters"))
        if name not in of and isinstance(written, list):
            of[name] = [pattern for pattern in written if is_right(pattern)]
    return of


def _names(section: Any) -> list[str]:
    return list(section) if isinstance(section, Mapping) else []
