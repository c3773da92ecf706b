"""How far a long backlog is: a bar on a terminal, a line every few seconds in a log; then one line when it is done."""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from kagent.contract.events import Beat

log = logging.getLogger("kagent.pipeline")
EVERY = 5.0
WORTH_A_BAR = 10_000


@dataclass(slots=True)
class CatchUp:
    """Watches the beats until the stream has reached the log end that an earlier beat saw. ``now`` in seconds."""

    ready: bool = False
    _began: float | None = None
    _first: int = 0
    _end: dict[int, int] = field(default_factory=dict)
    _said: float = 0.0
    _bar: Progress | None = None
    _task: TaskID | None = None

    def see(self, beat: Beat, now: float | None = None) -> None:
        """Take one beat in, and say what is worth saying."""
        if self.ready:
            return
        now = time.monotonic() if now is None else now
        if self._began is None:
            self._began, self._said, self._first = now, now, sum(beat.offset)
        reached = dict(zip(beat.source, beat.offset, strict=True))
        # Compared with the ends of the beat before: the log grows while a batch is read, so its newest end is never reached.
        if self._end and all(reached.get(p, 0) >= end for p, end in self._end.items()):
            self._done(sum(beat.offset), now)
        else:
            # The last stable offset: the stream reads committed records only and stops before an open transaction.
            self._tell(sum(beat.offset), sum(beat.stable_end), now)
        self._end = dict(zip(beat.source, beat.stable_end, strict=True))

    def close(self) -> None:
        """Take the bar away."""
        if self._bar:
            self._bar.stop()
            self._bar = None

    def rate(self, reached: int, now: float) -> float:
        """Records a second since the first beat; 0 while unknown."""
        return (
            (reached - self._first) / (now - self._began)
            if self._began is not None and now > self._began
            else 0.0
        )

    def _done(self, reached: int, now: float) -> None:
        self.ready = True
        self.close()
        rate = self.rate(reached, now)
        speed = f", {rate:,.0f} records/s" if reached - self._first > WORTH_A_BAR else ""
        log.info("Ready: all of __consumer_offsets up to now is read (%s records%s).", f"{reached:,}", speed)

    def _tell(self, reached: int, end: int, now: float) -> None:
        # In a log file a bar would be one line for each redraw.
        if end - reached > WORTH_A_BAR and sys.stderr.isatty() and self._bar is None:
            columns = (
                TextColumn("catching up"),
                BarColumn(),
                TextColumn("{task.completed:,.0f} of {task.total:,.0f} records"),
                TextColumn("{task.fields[rate]:,.0f}/s"),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("catching up", total=end, completed=reached, rate=0.0)
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=reached, total=end, rate=self.rate(reached, now))
        elif now - self._said >= EVERY:
            self._said = now
            rate = self.rate(reached, now)
            left = f", {(end - reached) / rate:.0f} s left" if rate > 0 else ""
            log.info(
                "Catching up: %s of %s records (%.0f %%), %s/s%s.",
                f"{reached:,}",
                f"{end:,}",
                100 * reached / max(end, 1),
                f"{rate:,.0f}",
                left,
            )
