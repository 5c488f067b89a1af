"""What an attack has tried and what it broke; a limit on the time of one call."""

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import numpy as np

MAX_SECONDS = 2.0  # for one string or graph; more is a hang


class TookTooLong(BaseException):
    """Raised in the middle of a call whose time is up; no ``except Exception`` swallows it."""


@dataclass
class Tally:
    """Counts of one attack.

    Parameters
    ----------
    name
        What was attacked.
    tried
        How many inputs.
    outcomes
        How often each legitimate outcome occurred, such as "accepted" or "refused".
    faults
        One line for each input that broke something.
    slowest
        Seconds of CPU that the slowest input took.
    """

    name: str
    tried: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def count(self, outcome: str) -> None:
        """Count a legitimate outcome."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def attempt(self, about: str, call: Callable[[], str], seconds: float | None = None) -> None:
        """Make one call, which returns the name of its outcome or raises: then it is a fault."""
        self.tried += 1
        clock = time.process_time()
        try:
            with limit(seconds):
                self.count(call())
        except TookTooLong:
            self.faults.append(f"more than {seconds:g} s: {about}")
        except Exception as error:
            self.faults.append(f"{type(error).__name__}: {str(error)[:200]}: {about}")
        self.slowest = max(self.slowest, time.process_time() - clock)

    def join(self, other: "Tally") -> None:
        """Add what another part of the same attack has counted."""
        self.tried += other.tried
        for outcome, n in other.outcomes.items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + n
        self.faults += other.faults
        self.slowest = max(self.slowest, other.slowest)


@contextmanager
def limit(seconds: float | None) -> Iterator[None]:
    """Interrupt what runs inside after so many seconds of CPU time; main thread only."""
    if seconds is None:
        yield
        return

    def stop(*_: Any) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def generator(seed: int, place: int) -> np.random.Generator:
    """Return the generator of one input, the same whatever was tried before."""
    return np.random.default_rng([seed, place])


def share(
    name: str, attempt: Callable[[Tally, int, int], None], n: int, seed: int, workers: int = 2
) -> Tally:
    """Attempt n inputs by their places, in two processes: each has its own main thread and clock.

    Parameters
    ----------
    name
        What is attacked.
    attempt
        A function of a module that tries one input, given the tally, the seed and the place.
    n, seed
        How many inputs, and which.
    workers
        How many processes.
    """
    tally = Tally(name)
    parts = [(name, attempt, range(first, n, workers), seed) for first in range(workers)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as processes:
        for part in processes.map(_attempt_all, parts):
            tally.join(part)
    return tally


def _attempt_all(part: tuple[str, Callable[[Tally, int, int], None], range, int]) -> Tally:
    name, attempt, places, seed = part
    tally = Tally(name)
    for place in places:
        attempt(tally, seed, place)
    return tally
