"""The equations that are weighed again at the end: which, in which order, and within the time."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import numpy as np

from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import CHAINS, DRAWS, Weighed
from pmsr.evidence.posterior import OVERSAMPLING
from pmsr.evidence.smc import MAX_SWEEPS
from pmsr.laws.identity import SAME_ERROR, Trace, group_laws, is_among
from pmsr.laws.prior import LawPrior
from pmsr.laws.spelling import best_spelling, nonzero_columns
from pmsr.search.archive import Candidate
from pmsr.search.bench import Bench
from pmsr.search.funnel import REACH, candidate_of
from pmsr.search.leaders import Leaders
from pmsr.search.workers import Workers, batches
from pmsr.settings import Settings

FINAL_SHARE = 0.2  # of max_time, at least, for all that comes after the last generation
MOST_SHARE = 0.5  # of max_time, at most, for the same
# Nats behind the best within which a screened law is weighed with replicates, and spelled for a
# reader: what is farther behind has a fiftieth of its probability.
NEAR = 4.0
# Laws that a part of a search passes on, at least: these are screened under every noise. Of 77
# datasets of benchmarks/noise_models.py, 20 gave the same choice, and the same best law, as 200.
N_PASSED_ON = 25


def order_finalists(
    leaders: Sequence[Candidate],
    front: Sequence[Candidate],
    variables: Sequence[str],
    n: int,
    constants: Collection[str] = (),
) -> list[Candidate]:
    """Choose the laws to weigh again, so ordered that the first few are worth having alone.

    Parameters
    ----------
    leaders, front
        Candidates, best first and simplest first.
    variables
        Names of the variables.
    n
        How many of the leaders; all of the front are taken.
    constants
        Those of the variables that are known constants: laws that differ by them alone are one.

    Returns
    -------
    list of Candidate
        One spelling of each law: the simplest, the best, the next simplest, the next best, ...
    """
    best = distinct_laws(leaders, variables, constants)[:n]
    laws = best + [
        law
        for law in distinct_laws(front, variables, constants)
        if not _among(law, best, variables, constants)
    ]
    simple = sorted(
        (law for law in laws if _among(law, front, variables, constants)),
        key=lambda law: law.complexity,
    )
    pairs = zip_longest(simple, best)
    return list(dict.fromkeys(law for pair in pairs for law in pair if law is not None))


def gather(judges: Sequence[Any], bench: Bench, at_least: int = 0) -> list[Candidate]:
    """Return what several islands know, each law once: all, or what is within reach of the best.

    And the first few, if so many are asked for.
    """
    if not bench.is_screened:
        known = {key: one for judge in judges for key, one in judge.candidates.items()}
        return list(known.values())
    leaders = Leaders(bench.screening.white)
    for judge in judges:
        leaders.add(judge.leaders.laws)
    best = max((law.score for law in leaders.laws), default=0.0)
    smallest = np.inf
    near = []
    for place, law in enumerate(leaders.laws):
        # The front goes down to the simplest: best first, so what is simpler than all so far.
        if law.score >= best - REACH or law.size < smallest or place < at_least:
            near.append(law)
        smallest = min(smallest, law.size)
    return [candidate_of(law, bench.names) for law in near]


def spell(law: Candidate, best: float, bench: Bench) -> tuple[Equation, bool]:
    """Return the equation of a candidate, as a reader should see it, and whether it is near."""
    equation = read_key(law.key, bench.names)
    if not bench.is_screened:
        return equation, True
    is_near = law.score >= best - NEAR
    if not is_near:
        return equation, False
    prior = bench.search.law_prior
    own = prior if isinstance(prior, LawPrior) else None
    spelled = best_spelling(equation, own, nonzero=nonzero_columns(bench.problem.data))
    return spelled if breaks(spelled, bench) is None else equation, True


def breaks(equation: Equation, bench: Bench) -> str | None:
    """Say which of the user's rules an equation breaks, if any, as it is spelled."""
    rules = bench.restrictions
    return None if rules is None else rules.describe(equation.program)


@lru_cache(maxsize=1024)
def read_key(key: str, variables: tuple[str, ...]) -> Equation:
    """Return the equation of a key: whoever asks for it gets the same object, read once."""
    return Equation(key, variables)


def distinct_laws(
    candidates: Sequence[Candidate], variables: Sequence[str], constants: Collection[str] = ()
) -> list[Candidate]:
    """Choose one spelling of each law: the simplest, then that with the fewest curved parameters.

    c0*sqrt(H), sqrt(c0*H) and sqrt(c0)*sqrt(c1*H/c0) have keys of their own, because flat priors on
    their parameters are not the same prior; but they fit equally well, to all digits, and a
    report of all of them would divide the probability of one law among its spellings.
    """

    def simplicity(candidate: Candidate) -> tuple[float, ...]:
        program = read_key(candidate.key, tuple(variables)).program
        n_curved = program.n_parameters - len(program.affine)
        return candidate.complexity, candidate.n_parameters, n_curved, -candidate.score

    traces = [_trace(candidate, variables, constants) for candidate in candidates]
    laws = group_laws(traces, relative=SAME_ERROR).values()
    return [min((candidates[k] for k in spellings), key=simplicity) for spellings in laws]


def _trace(candidate: Candidate, variables: Sequence[str], constants: Collection[str]) -> Trace:
    """Return by what a candidate's law is recognised: its error, and which variables it has.

    The search keeps no more. Of two columns that say the same, such as a length in mm and in cm,
    either may be the cause: laws of one and of the other are two. A known constant causes nothing:
    c0*g and c0 are one.
    """
    symbols = read_key(candidate.key, tuple(variables)).expression.free_symbols
    used = {symbol.name for symbol in symbols}
    varying = [name for name in variables if name not in constants]
    return Trace(candidate.key, (candidate.rmse, *(float(name in used) for name in varying)))


def _among(
    candidate: Candidate,
    others: Sequence[Candidate],
    variables: Sequence[str],
    constants: Collection[str],
) -> bool:
    traces = (_trace(other, variables, constants) for other in others)
    return is_among(_trace(candidate, variables, constants), traces, relative=SAME_ERROR)


def reserve(whole: float, quick: float, settings: Settings) -> float:
    """Return the seconds to keep for what comes after the last generation.

    Parameters
    ----------
    whole
        Seconds that the search may take.
    quick
        Seconds that weighing an equation has taken so far, on average.
    settings
        Of the search.

    Returns
    -------
    float
        What a finalist and the winner's posterior need, as far as the numbers of draws decide it,
        within the least and the most share of the whole.
    """
    posterior = _posterior_work(settings.for_finalists())
    needed = _expected(quick, settings) * (1.0 + posterior)
    return min(MOST_SHARE * whole, max(FINAL_SHARE * whole, needed))


def weigh_finalists(
    keys: Mapping[str, bool],
    workers: Workers,
    settings: Settings,
    seed: int,
    *,
    limit: float,
    quick: float,
) -> Iterator[tuple[Equation, Weighed]]:
    """Weigh equations again, in order, until the time that is left is a posterior's.

    At least half of the time is theirs: without them there is no winner to sample.

    Parameters
    ----------
    keys
        Of the equations, each with whether it is so near the best that it is worth replicates and
        more draws; all are fitted from as many starts. The first two are weighed in any case.
    workers, settings, seed
        Of the search.
    limit
        When, by ``time.monotonic``, everything must have come to its end.
    quick
        As in `reserve`.
    """
    thorough = settings.for_finalists()
    # With few starts a curved law may miss its best fit, in one group of several above all: log q
    # would then be tens of nats too small, and its standard error would not say so.
    rough = replace(settings, n_multistarts=thorough.n_multistarts)
    slowest, weighed = _expected(quick, settings), set()
    half = 0.5 * (time.monotonic() + limit)
    for chunk in batches(list(keys), workers.n_workers):
        until = max(half, limit - _posterior_work(thorough) * slowest)
        clock = time.monotonic()
        if clock > until:
            break
        # With other random numbers: the search has chosen those that its own had favoured.
        effort = [thorough if keys[key] else rough for key in chunk]
        found = list(_weigh_again(chunk, workers, effort, seed + 1, until))
        # What few draws cannot weigh, more may.
        failed = {equation.key for equation, one in found if one.evidence.failure is not None}
        doubtful = [k for k in chunk if not keys[k] and read_key(k, workers.names).key in failed]
        more = [thorough] * len(doubtful)
        found += _weigh_again(doubtful, workers, more, seed + 1, until)
        last = {equation.key: (equation, one) for equation, one in found}
        weighed |= set(last)
        yield from last.values()
        slowest = max(slowest, time.monotonic() - clock)
    # The simplest and the best must be there. For those that there was no time for, what the
    # search itself knows of them, with its larger standard error, has to do.
    missing = [key for key in list(keys)[:2] if read_key(key, workers.names).key not in weighed]
    yield from _weigh_again(missing, workers, [settings] * len(missing), seed, None)


def _weigh_again(
    keys: Sequence[str],
    workers: Workers,
    effort: Sequence[Settings],
    seed: int,
    until: float | None,
) -> Iterator[tuple[Equation, Weighed]]:
    """Weigh each equation in a worker of its own; those that end in time."""
    equations = [read_key(key, workers.names) for key in keys]
    tasks = [
        (key, one.program, settings)
        for key, one, settings in zip(keys, equations, effort, strict=True)
    ]
    found = workers.weigh(tasks, seed, until)
    for equation, weighed in zip(equations, found, strict=True):
        if weighed is not None:
            yield equation, weighed


def _expected(quick: float, settings: Settings) -> float:
    """Return the seconds that a finalist will take, from what weighing took in the search."""
    return quick * _work(settings.for_finalists()) / _work(settings)


def _work(settings: Settings) -> int:
    """Return how many draws the evidence of one equation takes, if they cover the posterior."""
    return settings.n_draws * settings.n_replicates


def _posterior_work(settings: Settings) -> float:
    """Return how many times as many draws a posterior takes as the evidence of the equation."""
    # In its last stage every particle may be moved, three times in each sweep.
    chain = max(settings.n_draws, OVERSAMPLING * DRAWS) + 3 * MAX_SWEEPS * DRAWS
    return CHAINS * chain / _work(settings)
