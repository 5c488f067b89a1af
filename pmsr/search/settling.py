"""A search whose noise is to be chosen: a first part under normal noise, the choice, the rest."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from pmsr.data import leave_out_constant
from pmsr.equation.expression import Equation
from pmsr.evidence.noise import GAUSSIAN
from pmsr.evidence.problem import Problem
from pmsr.limits import OutOfTime
from pmsr.search.evolution import Callback, Evolution, genome_of, run_evolution
from pmsr.search.genome import Primitives
from pmsr.search.pilot import N_LEADERS, Choice, choose_noise
from pmsr.search.restrictions import Restrictions
from pmsr.settings import Search, Settings

FIRST_SHARE = 0.4  # of every budget, under normal noise
LEAST_TIME = 0.2  # of the time, at least, for what comes after a choice


@dataclass(frozen=True, eq=False)
class Settled:
    """What is known once the noise is chosen.

    Parameters
    ----------
    problem, settings, search
        With which the search goes on: under the noise that was chosen, for the rest of the budget.
    laws
        The best that were found, to go on from.
    table
        What each noise makes of the data, best first; empty if there was no choice.
    first
        The search under normal noise.
    is_over
        Whether the first part is all: a user has ended it, or nothing better was found for long.
    """

    problem: Problem
    settings: Settings
    search: Search
    laws: tuple[Equation, ...]
    table: tuple[Choice, ...]
    first: Evolution
    is_over: bool = False

    @property
    def is_normal(self) -> bool:
        """Whether normal noise was chosen, so that the first search simply goes on."""
        return self.settings.noise == GAUSSIAN.name


def settle_noise(
    problem: Problem,
    *,
    search: Search,
    settings: Settings,
    random_seed: int,
    seeds: Sequence[Equation] = (),
    n_jobs: int | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool | Callable[[str], None] = False,
) -> Settled:
    """Search under normal noise for a part of the budget, and see which noise suits what is found.

    Parameters
    ----------
    problem, settings
        Under normal noise.
    search, random_seed, seeds, n_jobs, callbacks, verbose
        As in `pmsr.search.evolution.run_evolution`.
    """
    first = run_evolution(
        problem,
        search=first_part(search),
        settings=settings,
        seeds=seeds,
        random_seed=random_seed,
        n_jobs=n_jobs,
        callbacks=callbacks,
        is_part=True,
        verbose=verbose,
    )
    left = rest(search, first)
    data = leave_out_constant(problem.data)
    laws = find_writable(first.known[:N_LEADERS], search, data.names)
    if first.stopped in ("interrupted", "callback"):
        return Settled(problem, settings, left, laws, (), first, is_over=True)
    clock = time.monotonic()
    try:
        programs = [equation.program for equation in first.known]
        noise, table = choose_noise(data, search, settings, random_seed, programs)
    except OutOfTime:
        noise, table = GAUSSIAN.name, ()
    left = without_time(left, time.monotonic() - clock, search)
    if noise == GAUSSIAN.name:
        is_over = first.stopped == "patience"
        return Settled(problem, settings, left, laws, table, first, is_over)
    settings = replace(settings, noise=noise)
    problem = Problem.of(problem.data, settings, search.max_parameters)
    best = Equation(table[0].equation, data.names)
    rules = Restrictions.of(search, data.names)
    if rules is None or rules.describe(best.program) is None:  # as it is spelled
        laws = (*find_writable([best], search, data.names), *laws)
    return Settled(problem, settings, left, laws, table, first)


def find_writable(
    laws: Sequence[Equation], search: Search, names: tuple[str, ...]
) -> tuple[Equation, ...]:
    """Return the laws that a search can begin from: algebra may bring in what graphs may not have.

    Examples
    --------
    >>> laws = [Equation(text, ["x"]) for text in ("c0*x**(1/4)", "c0*sqrt(x)")]
    >>> find_writable(laws, Search(operators=("*", "sqrt")), ("x",))
    (Equation('c0*sqrt(x)', variables=['x']),)
    """
    primitives = Primitives(
        search.operators, names, search.max_complexity, shared=search.share_parameters
    )
    found = []
    for law in laws:
        with suppress(ValueError):
            genome_of(law, primitives)
            found.append(law)
    return tuple(found)


def first_part(search: Search) -> Search:
    """Return the options of the first part of a search.

    Its generations end with an exchange between the islands: going on from there is the same as
    never to have stopped.

    Examples
    --------
    >>> first_part(Search(generations=98, refresh=10)).generations
    40
    """
    period = search.refresh or 1
    generations = ceil(FIRST_SHARE * search.generations / period) * period
    budget: dict[str, Any] = {"generations": min(search.generations, generations)}
    if search.max_time is not None:
        budget["max_time"] = FIRST_SHARE * search.max_time
    for name in ("max_evaluations", "max_units"):
        if getattr(search, name) is not None:
            budget[name] = ceil(FIRST_SHARE * getattr(search, name))
    return replace(search, **budget)


def rest(search: Search, first: Evolution) -> Search:
    """Return the options for what a first part has left of the budget."""
    state = first.state
    if state is None:
        return search
    budget: dict[str, Any] = {"generations": max(0, search.generations - state.generation)}
    for name, used in (("max_evaluations", first.n_candidates), ("max_units", state.n_units)):
        if getattr(search, name) is not None:
            budget[name] = max(1, getattr(search, name) - used)
    return without_time(replace(search, **budget), state.elapsed, search)


def without_time(left: Search, seconds: float, whole: Search) -> Search:
    """Return the options with so much less time, but for a least share of that of the whole.

    Examples
    --------
    >>> [without_time(Search(max_time=6), s, Search(max_time=10)).max_time for s in (1.0, 5.5)]
    [5.0, 2.0]
    """
    if left.max_time is None or whole.max_time is None:
        return left
    return replace(left, max_time=max(LEAST_TIME * whole.max_time, left.max_time - seconds))
