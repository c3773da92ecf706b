"""What can be watched of the pipeline itself: its metrics, and the bar while it catches up."""

from __future__ import annotations

import io
import sys
import urllib.request

import pytest

from kagent.contract.events import Beat
from kagent.embedded.broker import free_port
from kagent.errors import SetupError
from kagent.pipeline.catchup import CatchUp
from kagent.pipeline.stream_metrics import Metrics


def beat(reached: int, end: int, stable: int) -> Beat:
    return Beat("main", 1_760_000_000_000, "run", 1.0, False, [0], [0], [reached], [end], [stable])


def test_batches_and_beats_are_counted_and_served() -> None:
    metrics, port = Metrics("main"), free_port()
    seen = {"kagent": {"records": 50, "messages": 7, "dead": 2}}
    metrics.batch({"batchDuration": 1500, "numInputRows": 1000, "sources": [], "observedMetrics": seen})
    metrics.batch({"batchDuration": 500, "numInputRows": 0, "sources": [], "observedMetrics": {}})
    metrics.beat(beat(90, 110, 100))
    metrics.serve("127.0.0.1", port)

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if line[0] != "#")

    found = {name.split("{")[0].removeprefix("kagent_pipeline_"): float(v) for name, v in lines.items()}
    wanted = {
        "batch_seconds": 0.5,
        "records_in_total": 1000,
        "records_kept_total": 50,
        "messages_out_total": 7,
        "dead_letters_total": 2,
        "collapse_ratio": 20,
        "behind_records": 20,
        "unstable_records": 10,
        "progress_time_seconds": 1_760_000_000,
    }
    assert {name: found[name] for name in wanted} == wanted
    with pytest.raises(SetupError, match=f"Port {port} cannot be used"):
        Metrics("main").serve("127.0.0.1", port)


class Terminal(io.StringIO):
    """A terminal's side of stderr."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "140")
    bar = CatchUp()

    bar.see(beat(0, 1_000_000, 1_000_000), now=0.0)
    bar.see(beat(250_000, 1_000_000, 1_000_000), now=1.0)
    bar.close()
    drawn = terminal.getvalue()
    bar.see(beat(1_000_000, 1_000_000, 1_000_000), now=4.0)

    assert "catching up" in drawn
    assert "250,000 of 1,000,000 records" in drawn
    assert "250,000/s" in drawn
    assert bar.ready


def test_a_short_backlog_is_not_worth_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    bar = CatchUp()

    bar.see(beat(0, 500, 500), now=0.0)

    assert terminal.getvalue() == ""
