"""A limit on time, which long computations look at between their steps."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_until: ContextVar[float] = ContextVar("until", default=float("inf"))


class OutOfTime(Exception):
    """Raised in the middle of a computation whose time is up; what it had is lost."""


@contextmanager
def time_limit(until: float | None) -> Iterator[None]:
    """Limit what runs inside, in this thread, to a time of ``time.monotonic``.

    An earlier limit around this one stays; None lifts all, for what must be done in any case.

    Examples
    --------
    >>> with time_limit(time.monotonic() + 60.0):
    ...     0.0 < time_left() <= 60.0
    True
    """
    token = _until.set(float("inf") if until is None else min(until, _until.get()))
    try:
        yield
    finally:
        _until.reset(token)


def time_left() -> float:
    """Return the seconds that are left; infinity without a limit."""
    return _until.get() - time.monotonic()


def check_time() -> None:
    """Raise `OutOfTime` if the time is up."""
    if time_left() < 0.0:
        raise OutOfTime("the time was up")
