r"""Screening: thousands of laws a second fitted in compiled code, and told apart by their curves.

A law that was screened has a squared error, a rank and the log q that a linear law with these
would have, within some tenths of a nat of the truth; whether it deserves to be weighed, others
decide. No algebra and no Python for each law.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pmsr.equation.descent import FITTED, Plan, law_keys, make_work, run_screen
from pmsr.equation.operators import operator_code
from pmsr.equation.program import Program
from pmsr.equation.structure import MAX_PARAMETERS
from pmsr.evidence.multistart import CURVED_TOLERANCE, N_AROUND, RANK_TOLERANCE, SPREAD
from pmsr.evidence.noise import Columns
from pmsr.evidence.problem import Problem

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

N_PROBES = 32  # places between the rows at which curves are compared
# Chosen among two dozen on the laws of benchmarks/screening.py: fewer starts miss minima, fewer
# steps leave slow valleys before their end. Its 97 % is therefore not from laws held back.
DEFAULT_PLAN = Plan(
    n_points=48,
    n_starts=8,
    n_steps=30,
    n_finishers=2,
    n_more=600,
    spread=SPREAD,
    affine_tolerance=RANK_TOLERANCE,
    curved_tolerance=CURVED_TOLERANCE,
    n_around=N_AROUND,
)
NEGLIGIBLE = 50.0  # nats below its maximum at which the integral over log sigma ends
N_SIMPSON = 64  # intervals on either side of the maximum


@dataclass(frozen=True, eq=False)
class Batch:
    """Programs side by side, padded: what folding hands over and screening takes.

    Parameters
    ----------
    nodes
        As in `Program`, of shape (n_laws, most nodes, 3).
    lengths
        Number of nodes of each, of shape (n_laws,).
    literals
        Of shape (n_laws, most literals).
    n_parameters
        Of shape (n_laws,).

    Examples
    --------
    >>> from pmsr.equation.expression import Equation
    >>> from pmsr.settings import Settings
    >>> Batch.of([Equation("c0*x", ["x"]).program, Equation("x**2", ["x"]).program]).lengths
    array([3, 2])
    """

    nodes: NDArray[np.int32]
    lengths: Integers
    literals: Floats
    n_parameters: Integers

    def __post_init__(self) -> None:
        most = int(self.n_parameters.max(initial=0))
        if most > MAX_PARAMETERS:
            raise ValueError(
                f"Laws of at most {MAX_PARAMETERS} parameters can be screened, got {most}. "
                "Limit max_parameters."
            )

    @classmethod
    def of(cls, programs: Sequence[Program]) -> "Batch":
        """Put programs side by side."""
        lengths = np.array([len(one.nodes) for one in programs], dtype=np.int64)
        n_literals = max((len(one.literals) for one in programs), default=0)
        nodes = np.zeros((len(programs), lengths.max(initial=1), 3), dtype=np.int32)
        literals = np.zeros((len(programs), max(1, n_literals)))
        for k, one in enumerate(programs):
            nodes[k, : len(one.nodes)] = one.nodes
            literals[k, : len(one.literals)] = one.literals
        n_parameters = np.array([one.n_parameters for one in programs], dtype=np.int64)
        return cls(nodes, lengths, literals, n_parameters)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """Digests of the integer tables, of shape (n_laws,)."""
        keys = np.empty(len(self.nodes), dtype=np.uint64)
        law_keys(self.nodes, self.lengths, self.literals, self.n_parameters, keys)
        return keys

    def whiten(self, problem: Problem) -> "Batch":
        """Return the laws that explain `problem.white`, as `Problem.whiten` does for one."""
        added = problem.added_nodes
        if not added:
            return self
        n_laws, n_nodes, _ = self.nodes.shape
        nodes = np.zeros((n_laws, n_nodes + len(added), 3), dtype=np.int32)
        nodes[:, :n_nodes] = self.nodes
        laws, lengths = np.arange(n_laws), self.lengths.copy()
        for code, column in added:
            nodes[laws, lengths, 0] = code
            if column >= 0:
                nodes[laws, lengths, 1] = column
            elif code == operator_code("*"):
                nodes[laws, lengths, 1], nodes[laws, lengths, 2] = lengths - 2, lengths - 1
            else:
                nodes[laws, lengths, 1] = lengths - 1
            lengths += 1
        return Batch(nodes, lengths, self.literals, self.n_parameters)

    def take(self, which: Integers | slice) -> "Batch":
        """Choose some of the laws, with room for the largest of them."""
        lengths = np.ascontiguousarray(self.lengths[which])
        return Batch(
            np.ascontiguousarray(self.nodes[which][:, : lengths.max(initial=1)]),
            lengths,
            np.ascontiguousarray(self.literals[which]),
            np.ascontiguousarray(self.n_parameters[which]),
        )


@dataclass(frozen=True, eq=False)
class Screened:
    """What screening found, one row a law.

    Parameters
    ----------
    sse
        Least sum of squared errors among minima that the rules of the surface allow: no pole
        between rows, no alias. Infinite if there is none.
    rank
        How many parameters the data determine, at generic places of the law.
    theta
        The parameters there, of shape (n_laws, most parameters).
    log_q
        Log q of a linear law with this rank and error; -inf if it cannot be fitted.
    curves
        Predictions at the rows, or at some of them, and at the probes, of shape (n_laws, N + 32),
        in the space of `Problem.white`; NaN where the law is not a number.
    outcome
        ``FITTED``, ``NEVER_FINITE`` or ``FORBIDDEN`` of `pmsr.equation.descent`.
    n_evaluations
        How often the law was computed.
    """

    sse: Floats
    rank: Integers
    theta: Floats
    log_q: Floats
    curves: Floats
    outcome: Integers
    n_evaluations: Integers


def screen(
    batch: Batch,
    problem: Problem,
    random_seed: int,
    *,
    keys: NDArray[np.uint64] | None = None,
    plan: Plan = DEFAULT_PLAN,
) -> Screened:
    """Fit a batch of laws.

    Parameters
    ----------
    batch
        The laws; some may have no parameters.
    problem
        The rows, gamma and the noise, with weights that suit a typical fit where they depend on it.
    random_seed
        Seed of the run. Together with its key it decides a law's starts, so that the result
        depends neither on the order of a batch nor on how laws are shared out.
    keys
        Of shape (n_laws,); by default digests of the integer tables.
    plan
        How hard to try.

    Examples
    --------
    >>> from pmsr.data import load_galileo, make_data
    >>> from pmsr.equation.expression import Equation
    >>> from pmsr.settings import Settings
    >>> problem = Problem.of(make_data(*load_galileo("shelf")), Settings())
    >>> laws = Batch.of([Equation(text, ["H"]).program for text in ("c0*sqrt(H)", "c0*H")])
    >>> found = screen(laws, problem, 0)
    >>> found.theta[0].round(2), found.rank, found.log_q.round(2)
    (array([47.09]), array([1, 1]), array([-13.13, -19.08]))
    """
    if keys is None:
        keys = batch.keys
    if problem.parts:
        return _screen_groups(batch, problem, random_seed, keys, plan)
    return _screen_group(batch, problem, random_seed, keys, plan)


def _screen_group(
    batch: Batch,
    problem: Problem,
    random_seed: int,
    keys: NDArray[np.uint64],
    plan: Plan,
    *,
    by_itself: bool = True,
) -> Screened:
    """Fit a batch of laws to one group; its log q is NaN unless it is weighed by itself."""
    data = problem.white
    plain, batch = batch, batch.whiten(problem)
    deviation = data.spread
    n = len(data.y)
    places = probe_points(data.X)
    found = fit_batch(batch, data.X, data.y, deviation, places, n, random_seed, keys, plan)
    squares, excess = found.squares, np.full(len(found.squares), problem.log_weight)
    if by_itself and not problem.noise.is_exact:
        with np.errstate(all="ignore"):
            columns = _columns_at(plain, problem, found.theta)
            squares, excess = problem.working(problem.unwhiten(found.curves[:, :n]), columns)
            lost = (found.outcome != FITTED) | ~np.isfinite(squares)
            squares = np.where(lost, np.inf, squares / deviation**2)
    log_q = np.full(len(squares), np.nan)
    if by_itself:
        log_q = linear_log_qs(found.rank, squares, problem, excess)
    with np.errstate(over="ignore"):  # as far off as floats go is infinitely far
        sse = found.squares * deviation**2
    return Screened(
        sse,
        found.rank,
        found.theta,
        log_q,
        found.curves,
        found.outcome,
        found.n_evaluations,
    )


def _screen_groups(
    batch: Batch, problem: Problem, random_seed: int, keys: NDArray[np.uint64], plan: Plan
) -> Screened:
    """Fit a batch of laws to each of several groups.

    Theta is that of the first group. Curves are those at all rows, by group, and then at the probes
    of each group.
    """
    is_shared = problem.shared_sigma
    found = [
        _screen_group(batch, part, random_seed, keys, plan, by_itself=not is_shared)
        for part in problem.parts
    ]
    sizes = [len(part.data.y) for part in problem.parts]
    rows = [one.curves[:, :n] for one, n in zip(found, sizes, strict=True)]
    probes = [one.curves[:, n:] for one, n in zip(found, sizes, strict=True)]
    outcomes = np.array([one.outcome for one in found])
    outcome = outcomes[np.argmax(outcomes != FITTED, axis=0), np.arange(len(batch.nodes))]
    rank = np.sum([one.rank for one in found], axis=0)
    sse = np.sum([one.sse for one in found], axis=0)
    if not is_shared:
        log_q = np.sum([one.log_q for one in found], axis=0)
    else:
        squares, excess = sse, np.full(len(sse), problem.log_weight)
        if not problem.noise.is_exact:
            values = [
                part.unwhiten(curves) for part, curves in zip(problem.parts, rows, strict=True)
            ]
            squares, excess = problem.working(np.concatenate(values, axis=1))
        with np.errstate(all="ignore"):
            squares = np.where(outcome == FITTED, squares / problem.white.spread**2, np.inf)
        log_q = linear_log_qs(rank, squares, problem, excess)
    return Screened(
        sse,
        rank,
        found[0].theta,
        np.where(outcome == FITTED, log_q, -np.inf),
        np.ascontiguousarray(np.concatenate([*rows, *probes], axis=1)),
        outcome,
        np.sum([one.n_evaluations for one in found], axis=0),
    )


def _columns_at(batch: Batch, problem: Problem, theta: Floats) -> Columns:
    """Return what the noise knows of each row, of shape (n_laws, N) where it depends on the law."""
    if not problem.noise.uses_slopes:
        return problem.columns
    errors = np.empty((len(batch.nodes), len(problem.data.y)))
    for k, length in enumerate(batch.lengths):
        p = int(batch.n_parameters[k])
        law = Program(np.ascontiguousarray(batch.nodes[k, :length]), batch.literals[k], p)
        columns = problem.columns_at(law, np.ascontiguousarray(theta[k : k + 1, :p]))
        errors[k] = columns["y_err"][0]
    return {"y_err": errors}


class Fitted(NamedTuple):
    """Like `Screened`; squares are sums of squared errors in units of the target's variance."""

    theta: Floats
    squares: Floats
    rank: Integers
    curves: Floats
    outcome: Integers
    n_evaluations: Integers

    def take(self, which: Integers) -> "Fitted":
        """Choose some of the laws."""
        return Fitted(
            self.theta[which],
            self.squares[which],
            self.rank[which],
            self.curves[which],
            self.outcome[which],
            self.n_evaluations[which],
        )


def fit_batch(
    batch: Batch,
    X: Floats,
    y: Floats,
    deviation: float,
    probes: Floats,
    n_kept: int,
    random_seed: int,
    keys: NDArray[np.uint64],
    plan: Plan,
    theta: Floats | None = None,
) -> Fitted:
    """Fit laws to rows; their curves are those at the first `n_kept` rows and at the probes.

    With `theta`, of shape (n_laws, most parameters), each law descends from there alone.
    """
    n_laws, p = len(batch.nodes), max(1, int(batch.n_parameters.max(initial=0)))
    if theta is None:
        theta = np.zeros((n_laws, p))
    else:
        theta = np.array(theta[:, :p])
        plan = plan._replace(n_points=0, n_starts=1, n_finishers=0)
    work = make_work(batch.nodes.shape[1], max(len(y), N_PROBES), p, plan.n_starts)
    squares, curves = np.empty(n_laws), np.empty((n_laws, n_kept + N_PROBES))
    rank, outcome, n_evaluations = (np.empty(n_laws, dtype=np.int64) for _ in range(3))
    run_screen(
        batch.nodes,
        batch.lengths,
        batch.literals,
        batch.n_parameters,
        keys,
        np.uint64(random_seed),
        # Compiled for arrays that may be written to, whatever came in.
        np.require(X, requirements=["C", "W"]),
        np.require(y, requirements=["C", "W"]),
        1.0 / deviation,
        probes,
        plan,
        work,
        theta,
        squares,
        rank,
        curves,
        outcome,
        n_evaluations,
    )
    return Fitted(theta, squares, rank, curves, outcome, n_evaluations)


def probe_points(X: Floats) -> Floats:
    """Return 32 places in the range of the data, well spread, the same for all laws.

    A Kronecker sequence with the generalised golden ratio.

    Examples
    --------
    >>> probe_points(np.array([[0.0], [1.0]]))[:3, 0].round(3)
    array([0.118, 0.736, 0.354])
    """
    d = X.shape[1]
    ratio = 2.0
    for _ in range(64):  # the root of ratio**(d + 1) = ratio + 1
        ratio = (1.0 + ratio) ** (1.0 / (d + 1))
    shares = (0.5 + np.outer(np.arange(1, N_PROBES + 1), ratio ** -np.arange(1.0, d + 1))) % 1.0
    low, high = X.min(axis=0), X.max(axis=0)
    return np.ascontiguousarray(low * (1.0 - shares) + high * shares)


def linear_log_qs(
    rank: Integers, squares: Floats, problem: Problem, excess: Floats | float | None = None
) -> Floats:
    """Return `evidence.linear_log_q` for many laws, from ranks and squared errors.

    Parameters
    ----------
    rank
        Of each law.
    squares
        Sums of squares of weighed residuals in units of the variance of `problem.white`.
    problem
        The rows, gamma and the prior of sigma.
    excess
        Largest log likelihood less that of normal noise, as from `Problem.working`; by default
        that of noise which is normal.
    """
    n, deviation, gamma = problem.n, problem.white.spread, problem.gamma
    excess = problem.log_weight if excess is None else excess
    if not problem.noise.has_sigma:
        with np.errstate(over="ignore", invalid="ignore"):
            log_l = excess - 0.5 * (n * np.log(2.0 * np.pi) + squares * deviation**2)
        log_q = 0.5 * rank * np.log(gamma) + (1.0 - gamma) * log_l
        return np.where(np.isfinite(squares), log_q, -np.inf)
    low, high = np.log(problem.sigma_bounds) - np.log(deviation)
    log_q = np.empty(len(squares))
    _log_qs(rank, squares, gamma, float(n), problem.sigma_power, low, high, log_q)
    # Sigma in units of the deviation, and the density of y with it.
    density = (1.0 - gamma) * n * (0.5 * np.log(2.0 * np.pi) + np.log(deviation))
    return np.where(np.isfinite(squares), log_q - density + (1.0 - gamma) * excess, -np.inf)


@njit(error_model="numpy", nogil=True, cache=True)
def _log_qs(rank, squares, gamma, n, power, low, high, log_q):  # type: ignore[no-untyped-def]
    for law in range(len(squares)):
        log_q[law] = -np.inf
        if squares[law] < np.inf:
            a, b = rank[law] + 1 - power, 0.5 * squares[law]
            log_q[law] = (
                _log_integral(a - n, b, low, high)
                - _log_integral(a - gamma * n, gamma * b, low, high)
                + 0.5 * rank[law] * np.log(gamma)
            )


@njit(error_model="numpy", nogil=True, cache=True)
def _log_integral(a, b, low, high):  # type: ignore[no-untyped-def]
    """Integrate exp(a u - b exp(-2 u)) like `evidence.log_sigma_integral`, some times faster."""
    mode = low if a < 0.0 else high
    if a < 0.0 < b:
        mode = min(max(0.5 * np.log(2.0 * b / -a), low), high)
    top = a * mode - b * np.exp(-2.0 * mode)
    total = 0.0
    for side in range(2):
        end = high if side else low
        for _ in range(60):  # halve while the far half is negligible
            middle = 0.5 * (mode + end)
            if not a * middle - b * np.exp(-2.0 * middle) < top - NEGLIGIBLE:
                break
            end = middle
        width = abs(end - mode) / N_SIMPSON
        part = 0.0
        for i in range(N_SIMPSON + 1):
            u = mode + (end - mode) * i / N_SIMPSON
            weight = 1.0 if i in (0, N_SIMPSON) else (4.0 if i % 2 else 2.0)
            part += weight * np.exp(a * u - b * np.exp(-2.0 * u) - top)
        total += part * width / 3.0
    return top + np.log(total)
