"""Islands evolved and finalists weighed by several processes, as many as there is time for."""

import time
import warnings
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from joblib import Parallel, delayed, effective_n_jobs

from pmsr.equation.expression import Equation
from pmsr.equation.operators import Operator, added_operators, take_over
from pmsr.equation.program import Program
from pmsr.evidence.evidence import Weighed, seed_for
from pmsr.limits import OutOfTime, check_time, time_limit
from pmsr.search.bench import Bench
from pmsr.search.islands import Island, evolve_island
from pmsr.settings import Settings


@dataclass(frozen=True, eq=False)
class Workers:
    """Processes that work on one search.

    Parameters
    ----------
    bench
        What laws are judged by.
    parallel
        joblib's workers, to be entered once around all work.
    n_workers
        How many there are.
    """

    bench: Bench
    parallel: Any  # joblib comes without types
    n_workers: int

    @classmethod
    def hire(cls, bench: Bench, n_jobs: int | None) -> Self:
        """Return workers in the sense of joblib's ``n_jobs``."""
        parallel = Parallel(n_jobs=n_jobs, batch_size=1, pre_dispatch="all")
        return cls(bench, parallel, effective_n_jobs(n_jobs))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return self.bench.names

    def dismiss(self) -> Self:
        """Return workers that leave all work to this process."""
        return replace(self, parallel=Parallel(n_jobs=1))

    def _call(self, tasks: Sequence[Any]) -> list[Any]:
        """Do tasks, functions of their arguments; if a worker dies, once more with others."""
        try:
            return list(self.parallel(tasks))
        except BrokenExecutor:
            warnings.warn(
                "A worker process died, perhaps for lack of memory; its work is done again by "
                "another.",
                RuntimeWarning,
                stacklevel=2,
            )
        fresh = Parallel(n_jobs=self.n_workers, batch_size=1, pre_dispatch="all")
        try:
            return list(fresh(tasks))
        except BrokenExecutor as error:
            raise RuntimeError(
                "Worker processes died twice, perhaps for lack of memory. Use fewer of them "
                "(n_jobs=1 uses none). A search with a checkpoint goes on from there, with the "
                "same result."
            ) from error

    def evolve(
        self,
        islands: Sequence[Island],
        seeds: Sequence[Equation],
        generation: int,
        deadline: float | None,
    ) -> list[Island] | None:
        """Let all islands go on to a generation; None if one of them did not get there in time.

        Parameters
        ----------
        islands
            Where they are; they stay as they are.
        seeds
            Equations that are part of the first population.
        generation
            The last to do.
        deadline
            When to stop, by ``time.monotonic``.
        """
        until, added = _to_wall_clock(deadline), added_operators()
        found = self._call(
            [
                delayed(_evolve)(island, self.bench, seeds, generation, added, until)
                for island in islands
            ]
        )
        return None if any(island is None for island in found) else list(found)

    def weigh(
        self,
        tasks: Sequence[tuple[str, Program, Settings]],
        seed: int,
        deadline: float | None,
    ) -> list[Weighed | None]:
        """Weigh equations, each in a worker of its own; None of those left when time is up.

        Parameters
        ----------
        tasks
            Keys, programs, and options of the evidence.
        seed
            A task's own seed follows from this one and from its key.
        deadline
            When to stop, by ``time.monotonic``.
        """
        until, added = _to_wall_clock(deadline), added_operators()
        return self._call(
            [
                delayed(_weigh)(key, program, self.bench, settings, seed, added, until)
                for key, program, settings in tasks
            ]
        )


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


def _evolve(
    island: Island,
    bench: Bench,
    seeds: Sequence[Equation],
    generation: int,
    added: tuple[Operator, ...],
    until: float | None,
) -> Island | None:
    take_over(added)
    with time_limit(_from_wall_clock(until)), suppress(OutOfTime):
        return evolve_island(island, bench, seeds, generation)
    return None


def _weigh(
    key: str,
    program: Program,
    bench: Bench,
    settings: Settings,
    seed: int,
    added: tuple[Operator, ...],
    until: float | None,
) -> Weighed | None:
    take_over(added)
    with time_limit(_from_wall_clock(until)), suppress(OutOfTime):
        check_time()
        own = seed_for(key, seed)
        return bench.engine.weigh(program, bench.problem, settings, own, keep=True)
    return None
