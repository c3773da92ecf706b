"""Which of its rights the pipeline's user lacks, in its log: Spark and the producer only say that something was refused."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from kagent.errors import KafkaError
from kagent.kafka.acls import Rule, needed_on, rules
from kagent.kafka.admin import Admin
from kagent.kafka.rights import Announcer, lacking
from kagent.settings import Cluster, Settings

log = logging.getLogger("kagent.pipeline")
# Kafka has no notice of a changed ACL: what is lacking has to be asked again.
LOOK_EVERY_S = 10.0


class RightsWatch:
    """Asks both clusters of a pipeline for its rights, in a thread of its own, between entry and exit."""

    def __init__(self, settings: Settings, name: str, cluster: Cluster) -> None:
        home = settings.home or name
        self._asked = {
            home: Admin(settings.home_cluster(name), deadline=10),
            name: Admin(cluster, deadline=10),
        }
        self._wanted: dict[str, list[Rule]] = {home: [], name: []}
        for rule in rules(settings.topics)["pipeline"]:
            for where in needed_on(rule, settings.topics, name, home):
                self._wanted[where].append(rule)
        self._announcer, self._over = Announcer(log), threading.Event()

    def __enter__(self) -> RightsWatch:
        threading.Thread(target=self._keep_looking, daemon=True, name="kagent-rights").start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()

    def _keep_looking(self) -> None:
        while not self._over.is_set():
            self.look()
            self._over.wait(LOOK_EVERY_S)

    def look(self) -> None:
        """Ask once, and log what changed."""
        try:
            found = [
                lack for name, admin in self._asked.items() for lack in lacking(admin, self._wanted[name])
            ]
        except KafkaError as error:  # a cluster that is away is told of by the stream
            log.debug("rights are not known: %s", error)
            return
        self._announcer.say([f"{lack}." for lack in found])
