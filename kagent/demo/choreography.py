"""The demo's choreography: start all, watch, have one of each two twins follow its advice, and say what came of it."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import yaml
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kagent.assignor import JAR, broker_lines
from kagent.client.client import recommendations
from kagent.client.incident_text import headline
from kagent.contract.recommendation import Recommendation
from kagent.demo import screen
from kagent.demo.own_environment import without_settings
from kagent.demo.processes import Processes
from kagent.demo.progress_timeout import Patience
from kagent.demo.scene import Scene, group_lag
from kagent.demo.topology import (
    APPLY,
    FOLLOWER,
    FOLLOWERS,
    GROUPS,
    LOADS,
    PIPELINE,
    POLICY,
    WORKER,
    DemoGroup,
    DemoMember,
    Follow,
)
from kagent.embedded.broker import HOST, Broker, free_port
from kagent.errors import KafkaError, KagentError, SetupError
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import GroupDescription
from kagent.kafka.group_lag import shown_lag
from kagent.kafka.topics import TopicSpec, ensure, wanted
from kagent.settings import Cluster, Settings, load

log = logging.getLogger("kagent.demo")
LIMIT = 225.0
"""Seconds without anything new to see after which the demo ends; on a quiet machine all is seen within them."""
START_LIMIT = 120.0
"""Seconds of a quiet machine without progress after which a step of the start has failed."""
MOST = 1800.0
"""Seconds after which a step, or the whole, ends even if something still moves."""
LOOK_EVERY = 1.5
PLAIN_EVERY = 10.0
INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it. That is no failure whose logs are wanted."""
PLAIN_WIDTH = 120


@dataclass(slots=True)
class Demo:
    """One run of the demo in a folder of its own."""

    console: Console
    folder: Path
    keep: bool = False
    scene: Scene = field(default_factory=Scene)
    began: float = field(default_factory=time.monotonic)
    _listening: asyncio.Task[None] | None = None
    _patience: Patience = field(default_factory=lambda: Patience(LIMIT, MOST))

    async def run(self) -> int:
        """Exit code 0 if all went as it must. Raises KagentError when a step fails."""
        processes, broker = Processes(self.folder), self._broker()
        try:
            with self._bars() as step:
                await step("broker", lambda: asyncio.to_thread(broker.start))
                # Not before it runs: a broker without a process counts as one that has ended.
                processes.broker = broker
                settings = self._settings(broker)
                cluster = settings.cluster("demo")[1]
                await step("topics", lambda: asyncio.to_thread(self._topics, settings, cluster))
                # Before the long steps: a person who waits can look at the logs, and at the page once the worker runs.
                self._introduce(settings, cluster)
                await step("producer and consumers", lambda: self._load(processes, cluster))
                listening = self._listening = asyncio.create_task(self._listen(settings, cluster, processes))
                await step("pipeline and worker", lambda: self._services(processes))
                await step("first look", lambda: self._seen(processes, listening))
            await self._watch(processes, cluster, listening)
            return self._end()
        except KagentError:
            # What is asked of a process that has ended fails, mostly before the next look at the processes: that it ended is the reason.
            processes.check()
            raise
        finally:
            await self._hang_up()
            await asyncio.to_thread(processes.stop)
            await asyncio.to_thread(broker.stop)

    def _broker(self) -> Broker:
        """A broker with kagent's assignor; only groups that name it are assigned by it."""
        port = free_port()
        lines = broker_lines(f"{HOST}:{port}", "demo", apply="follow")
        return Broker(self.folder / "broker", port=port, plugins=(JAR,), extra=lines)

    async def _hang_up(self) -> None:
        """Stop listening while there is a broker to say so to; without one the client would try for ever."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening}, timeout=10)

    def _bars(self) -> _Steps:
        return _Steps(self.console)

    def _settings(self, broker: Broker) -> Settings:
        """The settings file that all processes of the demo read."""
        file = self.folder / "kagent.yaml"
        values = {
            "clusters": {"demo": {"bootstrap": broker.bootstrap}},
            # Little of everything: broker, Spark, worker and seventeen consumers share two cores.
            "topics": {"partitions": 2},
            "pipeline": {**PIPELINE, "checkpoint": str(self.folder / "checkpoint"), "master": "local[1]"},
            "worker": {
                **WORKER,
                "data": str(self.folder / "worker"),
                "web_port": free_port(),
                "web_host": "127.0.0.1",
            },
            "policy": POLICY,
        }
        file.write_text(yaml.safe_dump(values))
        return load(file)

    def _introduce(self, settings: Settings, cluster: Cluster) -> None:
        """Where everything is, for a look from another terminal while it runs."""
        config = self.folder / "kagent.yaml"
        url = f"http://{settings.worker.web_host}:{settings.worker.web_port}"
        self.console.print(f"broker     {cluster.bootstrap}")
        self.console.print(f"page       {url}/ (groups: {url}/api/groups, metrics: {url}/metrics)")
        self.console.print(f"settings   {config}")
        self.console.print(f"data       {self.folder}")
        self.console.print(f"next       kagent watch --config {config}")

    def _topics(self, settings: Settings, cluster: Cluster) -> None:
        loads = [TopicSpec(load.topic, len(load.rates), {}) for load in LOADS]
        ensure(Admin(cluster), settings.topics, needed=[*wanted(settings.topics), *loads])

    async def _load(self, processes: Processes, cluster: Cluster) -> None:
        for group in GROUPS:
            for place in range(group.members):
                member = self._member(group, place, cluster)
                processes.start(member.client_id, "-m", "kagent.demo.member", orjson.dumps(member).decode())
        loads = orjson.dumps(LOADS).decode()
        processes.start("producer", "-m", "kagent.demo.producer", cluster.bootstrap, loads)
        # Soon given up, and asked again: a cluster that has just started may leave a question without an answer.
        admin, wanted = Admin(cluster, deadline=3), {group.name: group.members for group in GROUPS}
        patience = Patience(START_LIMIT, MOST)
        while patience.left_s > 0:
            processes.check()
            try:
                found = await asyncio.to_thread(admin.describe, wanted)
            except KafkaError:
                continue  # the coordinators of a new cluster take a moment
            joined = {name: len(group.members) for name, group in found.items()}
            patience.saw((joined, processes.printed_bytes))
            if all(name in found and _joined(found[name], count) for name, count in wanted.items()):
                return
            await asyncio.sleep(0.5)
        raise SetupError(f"The consumers did not all join, and nothing moves any more (logs: {self.folder}).")

    def _member(self, group: DemoGroup, place: int, cluster: Cluster) -> DemoMember:
        """The twin of a group that follows has a follower too, in a dry run: they differ in nothing else."""
        follow: Follow = "apply" if group.follows == FOLLOWER else "dry run"
        return DemoMember(
            cluster.bootstrap,
            group.name,
            place,
            group.topics,
            cost=group.cost,
            commit=group.commit,
            client=group.client,
            start=group.start,
            follow=follow if group.start else None,
        )

    async def _services(self, processes: Processes) -> None:
        config = str(self.folder / "kagent.yaml")
        processes.start("pipeline", "-m", "kagent", "--config", config, "pipeline")
        faust = (
            "-m",
            "faust",
            "--datadir",
            str(self.folder / "worker"),
            "-A",
            "kagent.app",
            "worker",
            "-l",
            "info",
        )
        processes.start("worker", *faust, env={"KAGENT_CONFIG": config})

    async def _seen(self, processes: Processes, listening: asyncio.Task[None]) -> None:
        """Until the state message says that kagent watches."""
        patience = Patience(START_LIMIT, MOST)
        while patience.left_s > 0:
            processes.check()
            if listening.done():
                listening.result()
            # Output counts as progress: while Spark starts, nothing else can be seen.
            patience.saw((self.scene.state and self.scene.state.reason, processes.printed_bytes))
            if self.scene.state is not None and self.scene.state.status == "watching":
                return
            await asyncio.sleep(0.2)
        reason = self.scene.state.reason if self.scene.state else "no state message came"
        raise SetupError(
            f"kagent did not begin to watch, and nothing moves any more: {reason} (logs: {self.folder})."
        )

    async def _listen(self, settings: Settings, cluster: Cluster, processes: Processes) -> None:
        heard = recommendations(cluster, topic=settings.topics.recommendations, states=True)
        async with aclosing(heard):
            await self._hear(heard, processes)

    async def _hear(self, heard: AsyncIterator[Any], processes: Processes) -> None:
        async for message in heard:
            before = self.scene.messages.get(message.group) if isinstance(message, Recommendation) else None
            self.scene.hear(message)
            if isinstance(message, Recommendation) and (before is None or before.status != message.status):
                self.console.print(
                    screen.advice(message) if screen.worth_a_panel(message) else headline(message)
                )
            # With each message, not at the next look: a group that follows by itself may have superseded its advice by then.
            self._follow(processes)

    async def _watch(self, processes: Processes, cluster: Cluster, listening: asyncio.Task[None]) -> None:
        """Look and show until all was seen or time is up; apply the advice when it comes."""
        admin = Admin(cluster, deadline=5)
        self.console.print(screen.settings_said(), style="dim")
        terminal = self.console.is_terminal
        last_line = 0.0
        # Transient: the table goes when the summary is printed below the messages.
        panel = Live(console=self.console, auto_refresh=False, transient=True) if terminal else None
        with panel or nullcontext():
            while self.keep or (self._left > 0 and not self.scene.finished):
                processes.check()
                if listening.done():
                    listening.result()
                await self._look(admin)
                self._patience.saw(self.scene.reached)
                if panel is not None:
                    left = None if self.keep else max(0.0, self._left)
                    panel.update(screen.live(self.scene, left, self.console.width), refresh=True)
                elif time.monotonic() - last_line > PLAIN_EVERY:
                    last_line = time.monotonic()
                    self.console.print(screen.plain(self.scene))
                await asyncio.sleep(LOOK_EVERY)

    async def _look(self, admin: Admin) -> None:
        try:
            shown = await asyncio.to_thread(shown_lag, admin, [group.name for group in GROUPS])
        except KafkaError as error:
            log.warning("%s", error)  # one look more or less; the next one tells
            return
        self.scene.look({g.group.group: group_lag(g) for g in shown.groups}, time.monotonic())

    @property
    def _left(self) -> float:
        return self._patience.left_s

    def _follow(self, processes: Processes) -> None:
        """Groups whose advice has come follow it: by themselves, or because ``kagent apply`` has them do it."""
        for group in FOLLOWERS:
            advice = self.scene.advice(group.name)
            if advice is None or group.name in self.scene.followed:
                continue
            # Noted before anything is started: the next look must not start it again.
            self.scene.follow(group.name, time.monotonic())
            if group.follows == APPLY:
                config = str(self.folder / "kagent.yaml")
                processes.run(
                    f"apply-{group.name}", "-m", "kagent", "--config", config, "apply", group.name, "--yes"
                )
            self.console.print(
                f"{group.name} follows the advice by {group.follows}: {advice.move_count} moves. {group.twin} does not.",
                style="bold",
            )

    def _end(self) -> int:
        width = self.console.width if self.console.is_terminal else None
        self.console.print(screen.summary(self.scene, width), soft_wrap=True)
        failures = self.scene.failures()
        for failure in failures:
            self.console.print(f"[red]The demo failed:[/red] {failure} (logs: {self.folder}).")
        if not failures:
            self.console.print(
                f"The demo took {time.monotonic() - self.began:.0f} s. All processes are stopped.",
                style="green",
            )
        return 1 if failures else 0


def _joined(group: GroupDescription, members: int) -> bool:
    """Whether all members are in, and hold something between them."""
    return len(group.members) == members and any(member.assigned for member in group.members)


class _Steps:
    """Bars for the start-up; plain lines where there is no terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (TextColumn("{task.description:<24}"), BarColumn(30), TimeElapsedColumn())
        self.progress = Progress(*columns, console=console, disable=not console.is_terminal)

    def __enter__(self) -> Callable[[str, Callable[[], Awaitable[object]]], Awaitable[None]]:
        self.progress.start()
        return self._step

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    async def _step(self, name: str, doing: Callable[[], Awaitable[object]]) -> None:
        task = self.progress.add_task(name, total=None)
        began = time.monotonic()
        await doing()
        self.progress.update(task, total=1, completed=1)
        if not self.console.is_terminal:
            self.console.print(f"{name}: {time.monotonic() - began:.1f} s")


def main(keep: bool) -> int:
    """Run the demo; the logs stay where they are only if it failed."""
    console = Console(highlight=False)
    if not console.is_terminal:
        # rich takes 80 cells where there is no terminal, and would fold most sentences.
        console = Console(highlight=False, width=PLAIN_WIDTH)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # what matters comes as an exception
    without_settings(os.environ)
    with _Folder() as folder:
        demo = Demo(console, folder.path, keep)
        code = _run_out(demo)
        folder.keep = code not in (0, INTERRUPTED)
        return code


def _run_out(demo: Demo) -> int:
    """Its exit code."""
    try:
        return asyncio.run(_interruptible(demo))
    except SystemExit:
        # rich ends a program so when its output is no longer read: Ctrl-C in `kagent demo | tee LOG` ends `tee` first.
        return INTERRUPTED


class _Folder:
    """A temporary folder that stays if the demo failed."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="kagent-demo-"))
        self.keep = True

    def __enter__(self) -> _Folder:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.keep:
            shutil.rmtree(self.path, ignore_errors=True)


async def _interruptible(demo: Demo) -> int:
    """Ctrl-C and SIGTERM end the demo with everything stopped."""
    task = asyncio.create_task(demo.run())
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        # Cancelled, not killed: the broker and the processes are stopped in `finally`.
        loop.add_signal_handler(name, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        demo.console.print("The demo was interrupted; all its processes are stopped.")
        return INTERRUPTED
    except KagentError as error:
        demo.console.print(f"[red]The demo failed:[/red] {error}")
        return 1
