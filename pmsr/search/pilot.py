"""A first look at small laws, before a search: which noise, and which rows are to be trusted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pmsr.data import Data
from pmsr.equation.expression import Equation
from pmsr.equation.program import Program, Tables
from pmsr.evidence.evidence import linear_log_q, make_target, seed_for, weigh
from pmsr.evidence.multistart import FitError
from pmsr.evidence.noise import GAUSSIAN, KNOWN, NOISES, Noise, of_counts
from pmsr.evidence.problem import Problem, Tuning
from pmsr.laws.prior import LawPrior
from pmsr.limits import check_time, time_limit
from pmsr.search.bench import Bench
from pmsr.search.columns import find_left_out
from pmsr.search.funnel import REACH, Funnel, enumerate_into
from pmsr.search.leaders import Leader
from pmsr.search.screening import Batch, screen
from pmsr.settings import Search, Settings

AUTO = "auto"
COUNTS = "poisson"
N_LEADERS = 5  # laws from which weights are tuned, and with which a search goes on
N_WEIGHED = 3  # laws that are weighed under each noise
LARGEST_ERROR = 0.5  # nats, beyond which a law is weighed again with more draws
N_SMALL = 1000  # laws, at most, that are looked at where a search has not found any
TIE = 0.1  # nats
MOST_ROWS = 1000  # that a choice looks at: which noise it is shows in so many
# Half of the probability is normal noise's; the four others share the rest. What that does to data
# of normal noise is asked by benchmarks/noise_models.py: one dataset in twenty is taken for other.
NOISE_COST = math.log(4.0)


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
        Of that law; the score has the prior over laws and that over noise models.
    """

    noise: str
    equation: str
    log_q: float
    score: float


def look_at_small_laws(bench: Bench) -> tuple[Leader, ...]:
    """Screen the smallest of the laws that a search enumerates first; return the best of them."""
    search = replace(bench.search, n_enumerated=min(N_SMALL, bench.search.n_enumerated))
    bench = replace(bench, search=search)
    last = Funnel(bench)
    for more, unit in enumerate_into(last, bench):
        if unit.kind != "laws":
            break
        last = more
    return last.leaders.laws[:N_LEADERS]


def find_tuning(
    bench: Bench, programs: Sequence[Program] = ()
) -> Tuning | tuple[Tuning, ...] | None:
    """Return the weights of residuals that suit the best of some laws.

    None where weights do not depend on a fit. A robust noise then knows its outliers before it
    meets the other laws. `programs` are good ones, perhaps under normal noise; without any, the
    best small laws under normal noise are taken. Of several groups each has weights of its own.
    """
    problem = bench.problem
    if not problem.noise.needs_tuning:
        return None
    if not programs:
        plain = _under_normal_noise(problem)
        programs = [law.program for law in look_at_small_laws(replace(bench, problem=plain))]
    best: tuple[float, list[Tuning | None]] = (-np.inf, [None])
    for key, program in zip(Batch.of(programs).keys.tolist(), programs, strict=True):
        rng = np.random.default_rng(seed_for(f"{key:016x}", bench.seed))
        try:
            targets = [
                make_target(program, part, bench.settings.n_multistarts, rng=rng)
                for part in problem.parts or (problem,)
            ]
        except (FitError, np.linalg.LinAlgError):
            continue
        score = sum(linear_log_q(target) for target in targets) + bench.log_prior(program)
        if score > best[0]:
            best = score, [target.problem.tuning for target in targets]
    known = [one for one in best[1] if one is not None]
    if len(known) < len(best[1]):
        return None
    return tuple(known) if problem.parts else known[0]


def _under_normal_noise(problem: Problem) -> Problem:
    """Return the same measurements, were their noise normal and of one size."""
    # Where sigma is no parameter, there are errors of the target.
    noise, y_err = (GAUSSIAN, None) if problem.noise.has_sigma else (KNOWN, problem.data.y_err)
    parts = tuple(map(_under_normal_noise, problem.parts))
    data = replace(problem.data, y_err=y_err, X_err=None)
    return replace(problem, noise=noise, data=data, parts=parts)


def make_bench(
    problem: Problem,
    search: Search,
    settings: Settings,
    seed: int,
    guesses: Sequence[Equation] = (),
) -> Bench:
    """Make what the laws of a search are judged by, and see which columns it begins with.

    That takes a second or so, whatever time is left: no law can be judged without, and how it is
    judged must not depend on how fast the machine is.
    """
    bench = Bench(problem, search, settings, seed)
    if not bench.is_screened:
        return bench
    with time_limit(None):
        bench = replace(bench, left_out=find_left_out(problem.data, search, guesses))
        return replace(bench, tuning=find_tuning(bench))


def choose_noise(
    data: Data,
    search: Search,
    settings: Settings,
    seed: int,
    programs: Sequence[Program] = (),
) -> tuple[str, tuple[Choice, ...]]:
    """Weigh the best of some laws under every noise that the data admit.

    Parameters
    ----------
    data, search, settings
        Of the search whose noise is to be chosen, without columns that do not vary.
    seed
        Of the run.
    programs
        What a search under normal noise has found; without any, small laws are looked at.

    Returns
    -------
    tuple
        The name of the best noise, and the table, best first. With known errors it is normal.

    Notes
    -----
    All laws are screened under every noise, and the best few of each are weighed. Where the data
    may be counts, densities are integrated over unit cells, so that they can be compared with
    Poisson's probabilities.
    """
    if data.y_err is not None or data.X_err is not None:
        return GAUSSIAN.name, ()
    if len(data.y) > MOST_ROWS and data.groups is None:
        rng = np.random.default_rng(seed)
        data = data.take(np.sort(rng.choice(len(data.y), MOST_ROWS, replace=False)))
    names = _admitted(data)
    if data.groups is not None and settings.shared_sigma:
        names = [name for name in names if NOISES[name].has_sigma]
    if not programs:
        plain = replace(settings, noise=GAUSSIAN.name)
        bench = Bench(Problem.of(data, plain, search.max_parameters), search, plain, seed)
        bench = replace(bench, left_out=find_left_out(data, search, ()))
        programs = [law.program for law in look_at_small_laws(bench)]
    choices: list[Choice] = []
    best = -np.inf
    for name in names:
        own = replace(settings, noise=name)
        problem = Problem.of(data, own, search.max_parameters)
        if COUNTS in names:
            noise = of_counts(problem.noise)
            parts = tuple(replace(part, noise=noise) for part in problem.parts)
            problem = replace(problem, noise=noise, parts=parts)
        choices.append(_best_under(Bench(problem, search, own, seed), programs, best - REACH))
        best = max(best, choices[-1].score)
    # What few draws leave open is no reason to depart from normal noise.
    choices.sort(key=lambda one: -one.score - TIE * (one.noise == GAUSSIAN.name))
    return choices[0].noise, tuple(choices)


def _admitted(data: Data) -> list[str]:
    """Return the names of all noise that may have made the data, the normal one first."""
    names = []
    for name, noise in NOISES.items():
        try:
            noise.check(data)
        except ValueError:
            continue
        names.append(name)
    return names


def _best_under(bench: Bench, programs: Sequence[Program], floor: float) -> Choice:
    """Return the law with the best score under one noise.

    Where the closed form is below a floor, too far behind for a tenth of a nat to matter, it has to
    do.
    """
    log_p = bench.log_priors(Tables.of(programs)) if bench.search.fitness == "evidence" else 0.0
    order = np.arange(len(programs))
    if bench.is_screened:
        bench = replace(bench, tuning=find_tuning(bench, programs[:N_LEADERS]))
        scores = screen(Batch.of(programs), bench.screening, bench.seed).log_q + log_p
        order = np.argsort(-scores, kind="stable")
        first = int(order[0])
        score = float(scores[first]) + log_prior(bench.problem.noise)
        if score < floor:
            text = str(Equation.from_program(programs[first], bench.names))
            log_q = float(scores[first] - np.broadcast_to(log_p, scores.shape)[first])
            return Choice(bench.problem.noise.name, text, log_q, score)
    found = []
    for place in order[:N_WEIGHED].tolist():
        check_time()
        program = programs[place]
        seed = seed_for(f"{int(Batch.of([program]).keys[0]):016x}", bench.seed)
        evidence = weigh(program, bench.problem, bench.settings, seed).evidence
        if not evidence.log_q_se < LARGEST_ERROR:
            thorough = replace(bench.settings, thorough=True)
            evidence = weigh(program, bench.problem, thorough, seed).evidence
        text = str(Equation.from_program(program, bench.names))
        score = evidence.log_q + log_prior(bench.problem.noise) + bench.log_prior(program)
        found.append(Choice(bench.problem.noise.name, text, evidence.log_q, score))
    return max(found, key=lambda one: one.score)


def log_prior(noise: Noise) -> float:
    """Return the log prior probability of a noise model, but for a constant.

    Normal noise is the most probable. Poisson's does not survive a change of the target's unit, and
    pays for that coincidence as a law does: whole numbers are often lengths that were rounded.
    """
    if noise.name == GAUSSIAN.name:
        return 0.0
    return -NOISE_COST - (LawPrior().per_coincidence if noise.name == COUNTS else 0.0)
