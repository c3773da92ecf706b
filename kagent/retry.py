"""The one back-off of kagent: 1, 2, 4, … seconds, at most LONGEST_S, by tenacity.

What is tried until it succeeds once uses ``tenacity`` with ``wait=BACKOFF``; a start that waits for its cluster, a right or a topic is
:func:`while_mendable`. What runs until it fails, and may run for days before it
does, counts its failures itself and begins again at one after a healthy run: that is :func:`pause_s`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from tenacity import BaseRetrying, RetryCallState, Retrying, retry_if_exception, wait_exponential

from kagent.errors import mendable
from kagent.text import in_words

# A cluster that has come back is found at most this much later.
LONGEST_S = 30.0
BACKOFF = wait_exponential(multiplier=1, max=LONGEST_S)
R = TypeVar("R", bound=BaseRetrying)


def pause_s(failures: int) -> float:
    """Seconds to wait after this many failures in a row."""
    # tenacity computes a wait from a call's state only: made up here, with the one field that it reads.
    state = RetryCallState(Retrying(wait=BACKOFF), None, (), {})
    state.attempt_number = max(1, failures)
    return BACKOFF(state)


def while_mendable(kind: type[R], before_sleep: Callable[[RetryCallState], None], **more: Any) -> R:
    """tenacity's ``Retrying`` or ``AsyncRetrying`` that tries again what waiting may mend, and raises the rest as it is."""
    return kind(
        retry=retry_if_exception(mendable), wait=BACKOFF, before_sleep=before_sleep, reraise=True, **more
    )


def warned(log: logging.Logger, what: str) -> Callable[[RetryCallState], None]:
    """For tenacity's ``before_sleep``: a line of the log at each failure, that begins with ``what``."""

    def warn(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        log.warning("%s: %s", what, in_words(error))

    return warn
