"""What a kagent says while a fault lasts: state messages, `/healthz`, incidents, log lines, memory."""

from __future__ import annotations

import re
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from kagent.contract.recommendation import Recommendation, State
from tests.worker.conftest import message_of
from tests.worker.soak import Soak

GROUP = re.compile(r"^[\w-]+: ")
"""The group of which the reason is one: any of those that have it."""
NUMBER = re.compile(r"(?<!^)\b\d[\d,.:]*")
"""Not a status code at the beginning."""
PAGE_WITHIN_S = 15.0
"""What a page may take, at most, until it is said to have no answer."""


class Watch(threading.Thread):
    """Prints what changes; a number alone is no change."""

    def __init__(self, soak: Soak) -> None:
        super().__init__(daemon=True)
        self.soak, self.done = soak, threading.Event()
        self.began, self.last = time.monotonic(), dict[str, str]()
        self.memory: dict[str, list[int]] = {"worker": [], "pipeline": []}
        self.longest_s: dict[str, float] = {"/healthz": 0.0, "/metrics": 0.0}
        """Of the worker's event loop alone, and of its threads too."""
        config = {
            "bootstrap.servers": soak.running.broker.bootstrap,
            "group.id": "kagent-faults",
            "log_level": 0,
        }
        self.consumer = Consumer({**config, "isolation.level": "read_committed", "enable.auto.commit": False})
        # Not subscribed: kagent would see, and judge, a group more.
        self.consumer.assign([TopicPartition("kagent-recommendations", p, OFFSET_END) for p in range(2)])

    def __enter__(self) -> Watch:
        for name in self.memory:
            self.memory[name].append(self._resident_mb(name))
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.done.set()
        self.join()
        self.consumer.close()

    def run(self) -> None:
        looked = 0.0
        while not self.done.is_set():
            record = self.consumer.poll(0.5)
            if record is not None and not record.error():
                self._message(message_of((record.key(), record.value())))
            if time.monotonic() - looked > 2:
                looked = time.monotonic()
                self._changed("healthz", self._page("/healthz"))
                self._page("/metrics")
                for name, held in self.memory.items():
                    held.append(self._resident_mb(name))

    def begin(self) -> None:
        """A fault begins now."""
        self.began = time.monotonic()
        self.longest_s = dict.fromkeys(self.longest_s, 0.0)

    def note(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:6.0f} s  {text}", flush=True)

    def _message(self, message: Any) -> None:
        if isinstance(message, State):
            said = message.reason or message.blind_reason or message.set_aside_reason or ""
            counts = f"judged {message.judged}, blind {message.blind}, open {message.open}"
            self._changed("state", f"{message.status} ({counts}) {GROUP.sub('', said)}")
        elif isinstance(message, Recommendation):
            self._changed(
                f"incident {message.group} {message.id}", f"{message.status.value} stale={message.stale}"
            )

    def _changed(self, what: str, said: str) -> None:
        plain = NUMBER.sub("n", said)
        if self.last.get(what) != plain:
            self.last[what] = plain
            self.note(f"{what}: {said}")

    def _page(self, path: str) -> str:
        asked = time.monotonic()
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.soak.ports['worker']}{path}", timeout=PAGE_WITHIN_S
            ) as answer:
                return f"{answer.status} {answer.read().decode()}"
        except urllib.error.HTTPError as error:
            return f"{error.code} {error.read().decode()}"
        except OSError as error:
            return f"no answer ({type(error).__name__})"
        finally:
            self.longest_s[path] = max(self.longest_s[path], round(time.monotonic() - asked, 1))

    def _resident_mb(self, name: str) -> int:
        try:
            root = psutil.Process(self.soak.running.processes[name].pid)
            return sum(p.memory_info().rss for p in [root, *root.children(recursive=True)]) >> 20
        except (KeyError, psutil.Error):
            return 0

    def figures(self) -> dict[str, Any]:
        memory = {f"{name}_mb": [held[0], max(held), held[-1]] for name, held in self.memory.items()}
        logs = {name: self.soak.running.log(name) for name in self.memory}
        tracebacks = {name: text.count("Traceback") + text.count("\tat ") for name, text in logs.items()}
        lines = {name: warned(text) for name, text in logs.items()}
        for name, found in lines.items():
            for line, count in found.items():
                print(f"  {name} {count:4}x {line}")
        return {**memory, "tracebacks": tracebacks, "exits": dict(self.soak.exits)}


def warned(text: str) -> Counter[str]:
    """Lines of the log from warnings on, without their numbers."""
    found = (
        line for line in text.splitlines() if re.search(r"WARN|ERROR|CRITICAL|Traceback|Exception", line)
    )
    return Counter(NUMBER.sub("n", line)[:260] for line in found)


def keep_logs(folder: Path, to: Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    for log in folder.rglob("*.log"):
        if "data" not in log.parts:
            (to / log.name).write_bytes(log.read_bytes())
