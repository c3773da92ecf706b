"""One fault on a whole kagent: what it says, what it loses, how it heals: `python benchmarks/faults.py full-checkpoint`.

A real broker, pipeline, worker and consumers, as in the soak of the tests: one group whose incident is open, and 20 that commit now and then.
The fault lasts for ``--seconds``, and is then taken away. Printed as it happens, with the seconds since the fault: each change of the state
message, of ``/healthz``, and each message about an incident; then as JSON the seconds from the end of the fault until all is judged again, and
incidents that were doubled, ended or lost. Some names stand for several faults, one after the other. At the end: memory of worker and pipeline (MB: before, at
most, after), tracebacks in their logs, processes that ended by themselves, and what is wrong, such as rows of the lag table that are not what the
broker's admin API says.

Disks are made full by a small tmpfs (which needs root); clocks jump in the process that is named alone, by ``wall_clock.c``, and name servers hang for
pipeline and worker alone, by ``slow_names.c`` (both need ``cc``). ``longest_s``: what a page of the worker took at most.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import faults_made
import faults_poison
import faults_preloaded
from faults_made import Fault, Stage
from faults_watch import Watch, keep_logs

from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure
from kagent.settings import load
from tests.worker import soak as soaks
from tests.worker.conftest import POLICY, Kagent
from tests.worker.soak import Soak

FAULTS = {**faults_made.FAULTS, **faults_poison.FAULTS, **faults_preloaded.FAULTS}
SHOWN_WITHIN_S = 30.0
"""Longer than progress may be old."""
JUDGED_WITHIN_S = 5.0
"""What a look takes while all is judged, at most."""


def started(stage: Stage, folder: Path, stack: ExitStack, options: argparse.Namespace) -> Soak:
    """A kagent around the stage's broker, whose incident is open."""
    running = Kagent(folder, stage.broker, stage.worker, stage.topics, stage.environments)
    stack.callback(running.end)
    running.configure({**POLICY, "hold": 20})
    ensure(Admin(running.cluster), load(running.config).topics)
    soak = Soak(running, 1, workers=1)
    soak.start()
    soak.wait_until_judged()
    soaks.PATIENCE_S = options.patience
    return soak


def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="faults-") as name, ExitStack() as stack:
        folder = Path(name)
        stage, faults = stack.enter_context(FAULTS[options.fault](folder, options))
        soak = started(stage, folder, stack, options)
        watch = stack.enter_context(Watch(soak))
        try:
            for said, fault in faults.items():
                print(
                    json.dumps({"fault": said, **_inflicted(soak, watch, fault, options.seconds)}), flush=True
                )
            print(json.dumps({**watch.figures(), "findings": _verdict(soak)}), flush=True)
        finally:
            if options.logs:
                keep_logs(folder, options.logs)


def _inflicted(soak: Soak, watch: Watch, fault: Fault, seconds: float) -> dict[str, Any]:
    watch.begin()
    with fault(soak):
        _meanwhile(soak, seconds)
    watch.note("the fault is over")
    healed_s = _healed_s(soak)
    watch.note("all is judged")
    return {
        "healed_s": round(healed_s, 1),
        "longest_s": watch.longest_s,
        "findings": soak.seen_now(),
    }


def _healed_s(soak: Soak) -> float:
    """Seconds until all is judged again and stays so for a while: what stands still is late, and so blind, only after some time."""
    over = time.monotonic()
    soak.wait_until_judged()
    healed = time.monotonic()
    while time.monotonic() < over + SHOWN_WITHIN_S:
        looked = time.monotonic()
        soak.wait_until_judged()
        if time.monotonic() - looked > JUDGED_WITHIN_S:
            healed = time.monotonic()
        time.sleep(1)
    return healed - over


def _meanwhile(soak: Soak, seconds: float) -> None:
    """Groups go on committing; that a broker does not take it is part of the fault."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        soak.revive()
        time.sleep(1)


def _verdict(soak: Soak) -> list[str]:
    try:
        return [*soak.seen_now(), *soak.verdict()]
    except BaseException as error:  # pytest's Failed is one
        return [*soak.findings, str(error).splitlines()[0]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("--seconds", type=float, default=60, help="how long it lasts")
    jumps, whose = (600, -600, 86_400, -86_400), ("worker", "pipeline", "broker", "clients")
    parser.add_argument("--jump", type=int, nargs="*", default=jumps, help="seconds by which clocks jump")
    parser.add_argument("--of", nargs="*", choices=whose, default=whose, help="whose clocks jump")
    parser.add_argument("--patience", type=float, default=150, help="seconds in which it has to heal")
    parser.add_argument("--logs", type=Path, help="where the logs of all processes are put")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
