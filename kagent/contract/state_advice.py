"""What to do about a cluster that is not watched, from its state message: for the API's page and for ``kagent status``."""

from __future__ import annotations


def what_to_do(status: str, reason: str | None) -> str | None:
    """A sentence without its full stop; None where nothing need be done, or where the reason itself says it."""
    if status == "watching":
        return None
    text = reason or ""
    if "no worker" in text:
        return "Start a worker: kagent worker"
    if "log ends" in text:
        return "See whether the brokers answer, and whether the worker may describe topics: kagent lag"
    if "--replay" in text:
        return "Fill the gap: kagent pipeline --replay"
    if "stands still" in text:
        return "Restart the pipeline with `kagent pipeline`; its log says why it reads nothing"
    if status == "catching_up":
        return "Wait: the pipeline is reading what it missed; if the number grows, give it more cores"
    if "pipeline" in text:
        return "Start the pipeline with `kagent pipeline`; if it runs already, read its log"
    return None if text else "Read the worker's log"
