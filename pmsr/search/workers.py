"""Graphs read and equations weighed by several processes, as many as there is time for."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from pmsr.equation.operators import Operator, added_operators, take_over
from pmsr.equation.program import Program
from pmsr.evidence.evidence import Weighed, seed_for
from pmsr.evidence.problem import Problem
from pmsr.limits import OutOfTime, check_time, time_left, time_limit
from pmsr.search.constraints import Reading, read_graph
from pmsr.search.engines import engine_of
from pmsr.search.genome import Genome
from pmsr.settings import Search, Settings

SHARES = 2  # batches for each worker: few, because each costs milliseconds, yet of even lengths


@dataclass(frozen=True, eq=False)
class Workers:
    """Processes that work on one search.

    Parameters
    ----------
    problem, search
        What the search is about.
    parallel
        joblib's workers, to be entered once around all work.
    n_workers
        How many there are.
    """

    problem: Problem
    search: Search
    parallel: Any  # joblib comes without types
    n_workers: int

    @classmethod
    def hire(cls, problem: Problem, search: Search, n_jobs: int | None) -> Self:
        """Return workers in the sense of joblib's ``n_jobs``."""
        parallel = Parallel(n_jobs=n_jobs, batch_size=1, pre_dispatch="all")
        return cls(problem, search, parallel, effective_n_jobs(n_jobs))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return self.problem.data.names

    def dismiss(self) -> Self:
        """Return workers that leave all work to this process."""
        return replace(self, parallel=Parallel(n_jobs=1))

    def read(self, genomes: Sequence[Genome], deadline: float | None) -> list[Reading | None]:
        """Find out what graphs mean; None of those left when time is up."""
        until = _to_wall_clock(deadline)
        readings = self.parallel(
            delayed(_read_batch)(batch, self.names, self.search, added_operators(), until)
            for batch in batches(genomes, self._share(len(genomes)))
        )
        return [reading for batch in readings for reading in batch]

    def weigh(
        self,
        tasks: Sequence[tuple[str, Program]],
        settings: Settings,
        seed: int,
        deadline: float | None,
        *,
        floor: float = -np.inf,
        size: int | None = None,
        keep: bool = False,
    ) -> list[Weighed | None]:
        """Weigh equations; None of those left when time is up.

        Parameters
        ----------
        tasks
            Keys and programs.
        settings, seed
            Of the evidence; a task's own seed follows from this one and from its key.
        deadline
            When to stop, by ``time.monotonic``.
        floor
            The score below which a rough value will do.
        size
            How many equations a worker gets at a time; by default a fair share.
        keep
            Whether fits and particles come back too.
        """
        until = _to_wall_clock(deadline)
        added = added_operators()
        found = self.parallel(
            delayed(_weigh_batch)(
                batch, self.problem, self.search, settings, seed, added, until, floor, keep
            )
            for batch in batches(tasks, size or self._share(len(tasks)))
        )
        return [weighed for batch in found for weighed in batch]

    def _share(self, n_tasks: int) -> int:
        """Return how many tasks a batch should hold."""
        return max(1, -(-n_tasks // (SHARES * self.n_workers)))


def batches(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Cut a sequence into pieces.

    Examples
    --------
    >>> batches("abcde", 2)
    ['ab', 'cd', 'e']
    """
    return [items[k : k + size] for k in range(0, len(items), size)]


def _to_wall_clock(deadline: float | None) -> float | None:
    """Return a time of ``time.monotonic`` as one of ``time.time``, which other machines share."""
    return None if deadline is None else deadline - time.monotonic() + time.time()


def _from_wall_clock(until: float | None) -> float | None:
    return None if until is None else until - time.time() + time.monotonic()


# What a worker does. It gets arrays and rows, never models, and keeps its own compiled loops.


def _read_batch(
    genomes: Sequence[Genome],
    variables: Sequence[str],
    search: Search,
    added: tuple[Operator, ...],
    until: float | None,
) -> list[Reading | None]:
    take_over(added)
    with time_limit(_from_wall_clock(until)):
        return [
            read_graph(genome, variables, search) if time_left() > 0.0 else None
            for genome in genomes
        ]


def _weigh_batch(
    tasks: Sequence[tuple[str, Program]],
    problem: Problem,
    search: Search,
    settings: Settings,
    seed: int,
    added: tuple[Operator, ...],
    until: float | None,
    floor: float,
    keep: bool,
) -> list[Weighed | None]:
    take_over(added)
    engine = engine_of(search)
    found: list[Weighed | None] = []
    with time_limit(_from_wall_clock(until)), suppress(OutOfTime):
        for key, program in tasks:
            check_time()
            own = seed_for(key, seed)
            found.append(engine.weigh(program, problem, settings, own, floor=floor, keep=keep))
    return found + [None] * (len(tasks) - len(found))
