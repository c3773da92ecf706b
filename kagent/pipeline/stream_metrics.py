"""The pipeline's own metrics, for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from kagent.contract.events import Beat
from kagent.errors import SetupError


class Metrics:
    """Every series has the label ``cluster``; the registry is the instance's own."""

    def __init__(self, cluster: str) -> None:
        self.registry = CollectorRegistry()

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"kagent_pipeline_{name}", text, ["cluster"], registry=self.registry).labels(cluster)

        def counter(name: str, text: str) -> Counter:
            return Counter(f"kagent_pipeline_{name}", text, ["cluster"], registry=self.registry).labels(
                cluster
            )

        self.batch_seconds = gauge("batch_seconds", "How long the last batch took.")
        self.rows_in = counter("records_in", "Records read from __consumer_offsets.")
        self.rows_kept = counter("records_kept", "Records left after collapsing: in events or dead letters.")
        self.messages = counter("messages_out", "Events and dead letters written.")
        self.dead_letters = counter("dead_letters", "Records that no decoder knows.")
        self.collapse = gauge("collapse_ratio", "Records read per record kept, in the last batch.")
        self.behind = gauge("behind_records", "Records between the stream and the log's end.")
        self.unstable = gauge(
            "unstable_records", "High watermark minus last stable offset: rises while a transaction hangs."
        )
        self.restarts = counter("restarts", "How often the query was started again after a failure.")
        self.reached_at = gauge(
            "progress_time_seconds", "When progress was last sent, in seconds since 1970."
        )

    def batch(self, progress: Mapping[str, Any]) -> None:
        """Take in Spark's report on one batch."""
        self.batch_seconds.set(progress.get("batchDuration", 0) / 1000)
        rows = progress.get("numInputRows") or sum(s.get("numInputRows", 0) for s in progress["sources"])
        self.rows_in.inc(rows)
        seen = (progress.get("observedMetrics") or {}).get("kagent") or {}
        kept = seen.get("records") or 0
        self.rows_kept.inc(kept)
        self.messages.inc(seen.get("messages") or 0)
        self.dead_letters.inc(seen.get("dead") or 0)
        if kept:
            self.collapse.set(rows / kept)

    def beat(self, beat: Beat) -> None:
        """Count one progress batch that was sent."""
        self.behind.set(sum(beat.log_end) - sum(beat.offset))
        # The worst partition: a hanging transaction stops the reading of one partition, whatever the others do.
        self.unstable.set(max(e - s for e, s in zip(beat.log_end, beat.stable_end, strict=True)))
        self.reached_at.set(beat.time / 1000)

    def serve(self, host: str, port: int) -> None:
        """Answer scrapes at this port. Raises SetupError if it is in use."""
        try:
            start_http_server(port, host, self.registry)
        except OSError as error:
            raise SetupError(f"Port {port} cannot be used for metrics ({error.strerror}).") from error
