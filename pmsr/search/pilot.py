"""A first look at small laws, before a search: which noise, and which rows are to be trusted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pmsr.data import Data
from pmsr.equation.expression import Equation
from pmsr.equation.program import Program
from pmsr.evidence.evidence import linear_log_q, make_target, seed_for, weigh
from pmsr.evidence.multistart import FitError
from pmsr.evidence.noise import GAUSSIAN, NOISES
from pmsr.evidence.problem import Problem, Tuning
from pmsr.search.bench import Bench
from pmsr.search.funnel import Funnel, candidate_of, enumerate_into
from pmsr.search.leaders import Leader
from pmsr.settings import Search, Settings

AUTO = "auto"
N_LEADERS = 5  # laws that are weighed under each noise


@dataclass(frozen=True)
class Choice:
    """What one noise model makes of the data: a row of the table of a choice.

    Parameters
    ----------
    noise
        The model.
    equation
        Its best law, as text in the names of the variables.
    log_q, score
        Of that law; the score has the prior over laws.
    """

    noise: str
    equation: str
    log_q: float
    score: float


def look_at_small_laws(bench: Bench) -> tuple[Leader, ...]:
    """Screen the small laws that a search enumerates first; return the best of them."""
    last = Funnel(bench)
    for more, unit in enumerate_into(last, bench):
        if unit.kind != "laws":
            break
        last = more
    return last.leaders.laws[:N_LEADERS]


def find_tuning(
    bench: Bench, leaders: Sequence[Leader] | None = None
) -> Tuning | tuple[Tuning, ...] | None:
    """Return the weights of residuals that suit the best of some small laws.

    None where weights do not depend on a fit. A robust noise then knows its outliers before it
    meets the other laws. `leaders` are the best under normal noise, if they are known. Of several
    groups each has weights of its own.
    """
    problem = bench.problem
    if not problem.noise.needs_tuning:
        return None
    if leaders is None:
        plain = _under_normal_noise(problem)
        leaders = look_at_small_laws(replace(bench, problem=plain))
    best: tuple[float, list[Tuning | None]] = (-np.inf, [None])
    for law in leaders:
        rng = np.random.default_rng(seed_for(f"{law.law:016x}", bench.seed))
        try:
            targets = [
                make_target(law.program, part, bench.settings.n_multistarts, rng=rng)
                for part in problem.parts or (problem,)
            ]
        except (FitError, np.linalg.LinAlgError):
            continue
        score = sum(linear_log_q(target) for target in targets) + law.log_p
        if score > best[0]:
            best = score, [target.problem.tuning for target in targets]
    known = [one for one in best[1] if one is not None]
    if len(known) < len(best[1]):
        return None
    return tuple(known) if problem.parts else known[0]


def _under_normal_noise(problem: Problem) -> Problem:
    """Return the same measurements, were their noise normal and of one size."""
    parts = tuple(map(_under_normal_noise, problem.parts))
    return replace(problem, noise=GAUSSIAN, data=replace(problem.data, y_err=None), parts=parts)


def make_bench(problem: Problem, search: Search, settings: Settings, seed: int) -> Bench:
    """Make what the laws of a search are judged by."""
    bench = Bench(problem, search, settings, seed)
    return replace(bench, tuning=find_tuning(bench)) if bench.is_screened else bench


def choose_noise(
    data: Data,
    search: Search,
    settings: Settings,
    seed: int,
    laws: Sequence[Equation] = (),
) -> tuple[str, tuple[Choice, ...]]:
    """Weigh the best of some small laws, and laws that are given, under every noise.

    Returns
    -------
    tuple
        The name of the best noise among those that the data admit, and the table, best first. With
        known errors it is normal.
    """
    if data.y_err is not None:
        return GAUSSIAN.name, ()
    choices: list[Choice] = []
    leaders: Sequence[Leader] | None = None
    for name in NOISES:  # the normal one first
        settings = replace(settings, noise=name)
        try:
            problem = Problem.of(data, settings, search.max_parameters)
        except ValueError:  # the data cannot have been made by this noise
            continue
        bench = Bench(problem, search, settings, seed)
        if not bench.is_screened:
            return GAUSSIAN.name, ()
        small = look_at_small_laws(replace(bench, tuning=find_tuning(bench, leaders)))
        leaders = small if leaders is None else leaders
        found = [
            _weigh(bench, candidate_of(law, data.names).key, law.program, law.log_p)
            for law in small
        ]
        found += [
            _weigh(bench, law.text, law.program, bench.log_prior(law.program)) for law in laws
        ]
        choices.append(max(found, key=lambda one: one.score))
    choices.sort(key=lambda one: -one.score)
    return choices[0].noise, tuple(choices)


def _weigh(bench: Bench, text: str, program: Program, log_p: float) -> Choice:
    seed = seed_for(text, bench.seed)
    log_q = weigh(program, bench.problem, bench.settings, seed).evidence.log_q
    return Choice(bench.problem.noise.name, text, log_q, log_q + log_p)
