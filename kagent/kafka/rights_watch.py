"""Which of its rights a process lacks, in its log: Kafka's clients only say that something was refused, if they say anything."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable
from types import TracebackType

from kagent.errors import KafkaError
from kagent.kafka.acls import Rule, needed_on, rules
from kagent.kafka.admin import Admin
from kagent.kafka.rights import LOOK_EVERY_S, Announcer, lacking
from kagent.settings import Cluster, Settings

END_WITHIN_S = 2.0


class RightsWatch:
    """Asks for rights again and again, in a thread of its own, between entry and exit. ``wanted``: what is needed on each
    cluster; ``log``: of the process."""

    def __init__(self, wanted: Iterable[tuple[Cluster, Collection[Rule]]], log: logging.Logger) -> None:
        self._wanted = [(Admin(cluster, deadline=10), needed) for cluster, needed in wanted]
        self._log, self._announcer, self._over = log, Announcer(log), threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, daemon=True, name="kagent-rights")

    def __enter__(self) -> RightsWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        # A cluster that is away takes as long as its deadline; that must not hold up the end.
        self._thread.join(END_WITHIN_S)

    def _keep_looking(self) -> None:
        while not self._over.is_set():
            self.look()
            self._over.wait(LOOK_EVERY_S)

    def look(self) -> None:
        """Ask once, and log what changed."""
        try:
            found = [lack for admin, wanted in self._wanted for lack in lacking(admin, wanted)]
        except KafkaError as error:  # what needs the cluster reports that it is away
            self._log.debug("rights are not known: %s", error)
            return
        self._announcer.say([f"{lack}." for lack in found])


def of_pipeline(settings: Settings, name: str, cluster: Cluster) -> list[tuple[Cluster, list[Rule]]]:
    """What the pipeline of this cluster needs, and where."""
    home, clusters = settings.home or name, {name: cluster}
    clusters.setdefault(home, settings.home_cluster(name))
    needed = [
        (rule, needed_on(rule, settings.topics, name, home)) for rule in rules(settings.topics)["pipeline"]
    ]
    return [(where, [rule for rule, on in needed if at in on]) for at, where in clusters.items()]
