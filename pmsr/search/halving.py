r"""Screening on many rows: all laws on few of them, and those that may be the best on more.

A term of a tenth of sigma is invisible in 500 rows and worth hundreds of nats in 100,000; to fit
every law to all of them would take a thousand times as long. So rows come in nested stages of n,
4n, 16n, ..., N, the same for all laws of a run, and a law goes on if it is among the better ones
or not certainly worse than the best law known.

What its log q on all rows will be is judged in pairs. Both laws meet the same noise in the same
rows, so that the ratio of their squared errors is known much better than either:

.. math:: \widehat{SSE}_N = SSE_N^{ref} \, \frac{SSE_n / (n - p)}{SSE_n^{ref} / (n - p^{ref})}
          \, \frac{N - p}{N - p^{ref}}.

Squared errors count by degree of freedom: a parameter that is of no use takes 1/n of them, which
would be hundreds of nats on all rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.descent import FITTED, Plan
from pmsr.equation.program import Program, evaluate
from pmsr.evidence.problem import Problem
from pmsr.search.screening import (
    DEFAULT_PLAN,
    Batch,
    Fitted,
    Screened,
    fit_batch,
    linear_log_qs,
    probe_points,
    screen,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Below, the time of a law hardly falls with the rows (64 rows: 2/3 of it); above, it grows with
# them. On any of 64 to 1,024 rows the minimum is found from which a descent on 4,096 reaches
# theirs, for 99 % of random laws.
FIRST = 128
GROWTH = 4
# With this share every stage takes as long as any other that descends from one start.
SHARE = 1.0 / GROWTH
# At most so many go on because they are not certainly worse: then each stage takes twice as long
# as the one before, from the little that one start takes. Some may always: among few laws a share
# would leave the best one alone while nothing is decided.
MOST = 0.5
FEW = 8
N_DEVIATIONS = 2.0  # of the paired difference within which a law is not certainly worse
CHUNK = 1 << 21  # predictions that are in memory together


@dataclass(frozen=True, eq=False)
class Stages:
    """The rows in the order in which laws meet them: made once, the same for a whole run.

    Parameters
    ----------
    data
        The rows, permuted if there are several stages.
    sizes
        How many of the first rows each stage has, N last.
    probes
        Further places at which curves are known.

    Examples
    --------
    >>> from pmsr.data import make_data
    >>> x = np.arange(1000.0)
    >>> Stages.of(make_data(x[:, None], x), 0).sizes
    (128, 512, 1000)
    """

    data: Data
    sizes: tuple[int, ...]
    probes: Floats

    @classmethod
    def of(cls, data: Data, random_seed: int, *, whole: bool = False) -> "Stages":
        """Permute the rows by the seed of the run; or leave them, in one stage."""
        n, probes = len(data.y), probe_points(data.X)
        if n <= FIRST or whole:
            return cls(data, (n,), probes)
        sizes = [FIRST]
        while GROWTH * sizes[-1] < n:
            sizes.append(GROWTH * sizes[-1])
        order = np.random.default_rng(random_seed).permutation(n)
        X = np.ascontiguousarray(data.X[order])
        return cls(Data(X, data.y[order], data.names, data.target), (*sizes, n), probes)

    @property
    def n_kept(self) -> int:
        """At how many rows curves are known: `KnownLaws(data, stages.n_kept)`."""
        return self.sizes[0]


@dataclass(frozen=True, eq=False)
class Reference:
    """A law that was fitted in all stages, with which others are paired, and what others reached.

    Parameters
    ----------
    program
        The law.
    theta, squares
        Its parameters (n_stages, p) and squared errors in each stage, in units of the variance.
    rank
        Of the law.
    log_q
        On all rows.
    levels
        Of shape (n_stages - 1, 2): the log q that `SHARE` and `MOST` of the laws reached, in each
        stage, in the batch after which this was made.
    """

    program: Program
    theta: Floats
    squares: Floats
    rank: int
    log_q: float
    levels: Floats


@dataclass(frozen=True, eq=False)
class Halved(Screened):
    """What screening found on many rows: as `Screened`, with the rows behind each number.

    SSE and log q are those on all rows, extrapolated where there were fewer. Theta, rank and
    outcome are of a law's last stage; its curve is that of the first, in which all laws met the
    same rows, so that two spellings agree however far each of them came.

    Parameters
    ----------
    n_rows
        On how many rows a law was fitted. Only those with all of them may be contenders.
    log_q_error
        Standard error of the extrapolated log q; 0 on all rows.
    n_points
        How many values were computed for the law: evaluations times rows.
    reference
        For batches to come: the best law known on all rows, and what this batch reached. None if
        there is one stage only, or no law could be fitted.
    """

    n_rows: Integers
    log_q_error: Floats
    n_points: Integers
    reference: Reference | None


def screen_many(
    batch: Batch,
    problem: Problem,
    random_seed: int,
    stages: Stages,
    reference: Reference | None = None,
    *,
    keys: NDArray[np.uint64] | None = None,
    plan: Plan = DEFAULT_PLAN,
) -> Halved:
    """Fit a batch of laws on as many rows as each of them deserves.

    Given the reference, the result for a law depends neither on the others nor on how they are
    shared out. Without one, the best of the batch on few rows is it.

    Parameters
    ----------
    batch, problem, random_seed, keys, plan
        As in `screen`.
    stages
        The problem's rows: ``Stages.of(problem.white, seed)``.
    reference
        From an earlier batch.

    Examples
    --------
    >>> from pmsr.data import make_data
    >>> from pmsr.equation.expression import Equation
    >>> from pmsr.settings import Settings
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0.5, 4.0, 2000)
    >>> data = make_data(x[:, None], 2.0 * np.sqrt(x) + 0.1 * rng.standard_normal(2000))
    >>> texts = ("c0*sqrt(x0)", "c0*x0", "c0 + c1*x0", "c0*log(x0)", "c0*x0**2")
    >>> laws = Batch.of([Equation(text, ["x0"]).program for text in texts])
    >>> found = screen_many(laws, Problem.of(data, Settings()), 0, Stages.of(data, 0))
    >>> found.n_rows
    array([2000,  128,  512,  128,  128])
    """
    if keys is None:
        keys = batch.keys
    if len(stages.sizes) == 1:
        plain = screen(batch, problem, random_seed, keys=keys, plan=plan)
        n_rows = np.full(len(batch.nodes), stages.sizes[0])
        return Halved(
            **vars(plain),
            n_rows=n_rows,
            log_q_error=np.zeros(len(n_rows)),
            n_points=plain.n_evaluations * n_rows,
            reference=None,
        )
    batch = batch.whiten(problem)
    task = _Task(batch, problem, random_seed, stages, keys, plan)
    path = _Path.of(batch, stages)
    which = np.arange(len(batch.nodes))
    first = task.fit(0, which)
    path.enter(0, stages, which, first)
    if reference is None:
        reference = _carry_through(task, first)
    levels = np.full((len(stages.sizes) - 1, 2), np.nan)
    for stage in range(len(stages.sizes)):
        for some in _chunks(which, stages.sizes[stage]):
            fitted = first.take(some)
            if stage:
                fitted = task.descend(stage, some, path.theta[stage - 1, some])
                path.enter(stage, stages, some, fitted)
            path.log_q[some], path.sse[some], path.log_q_error[some] = task.extrapolate(
                stage, fitted, reference
            )
        if stage < len(levels):
            levels[stage] = _levels(path.log_q[which])
            which = which[_goes_on(path, which, stage, reference, levels)]
    return Halved(
        path.sse,
        path.rank,
        path.theta[path.stage, np.arange(len(batch.nodes))],
        path.log_q,
        first.curves,
        path.outcome,
        path.n_evaluations,
        np.array(stages.sizes)[path.stage],
        path.log_q_error,
        path.n_points,
        _best(task, path, which, levels, reference),
    )


@dataclass(frozen=True, eq=False)
class _Task:
    """What one call is about."""

    batch: Batch
    problem: Problem
    random_seed: int
    stages: Stages
    keys: NDArray[np.uint64]
    plan: Plan

    @cached_property
    def deviation(self) -> float:
        return self.problem.white.spread

    def fit(self, stage: int, which: Integers, theta: Floats | None = None) -> Fitted:
        """Fit some laws, from all starts or from one; curves at all rows, but for the last stage.

        Nobody asks for those: there is nothing to extrapolate to.
        """
        n, data = self.stages.sizes[stage], self.stages.data
        return fit_batch(
            self.batch.take(which),
            data.X[:n],
            data.y[:n],
            self.deviation,
            self.stages.probes,
            n if n < len(data.y) else 0,
            self.random_seed,
            self.keys[which],
            self.plan,
            theta,
        )

    def descend(self, stage: int, which: Integers, theta: Floats) -> Fitted:
        """Fit some laws from where they were; from all starts where that leads nowhere.

        As when a row that is new lies beyond a pole.
        """
        fitted = self.fit(stage, which, theta)
        lost = np.flatnonzero(fitted.outcome != FITTED)
        if len(lost):
            again = self.fit(stage, which[lost])
            fitted.theta[lost, : again.theta.shape[1]] = again.theta
            fitted.n_evaluations[lost] += again.n_evaluations
            for name in ("squares", "rank", "curves", "outcome"):
                getattr(fitted, name)[lost] = getattr(again, name)
        return fitted

    def extrapolate(
        self, stage: int, fitted: Fitted, reference: "Reference | None"
    ) -> tuple[Floats, Floats, Floats]:
        """Return log q and squared error on all rows, and the standard error of the former."""
        n, n_all = self.stages.sizes[stage], self.stages.sizes[-1]
        squares, error = fitted.squares, np.zeros(len(fitted.squares))
        if n < n_all:
            # A law may be as far off as floats go, and then it is infinitely far.
            with np.errstate(over="ignore", invalid="ignore"):
                squares = squares * (n_all - fitted.rank) / (n - fitted.rank)
                # A fit without any error says nothing of the noise in the other rows.
                if reference is not None and reference.squares[stage] > 0.0:
                    expected = reference.squares[stage] * (n_all - reference.rank)
                    squares = squares * (reference.squares[-1] * (n - reference.rank) / expected)
                error = self._error(stage, fitted, reference)
        log_q = linear_log_qs(fitted.rank, squares, self.problem)
        return log_q, squares * self.deviation**2, error

    def _error(self, stage: int, fitted: Fitted, reference: "Reference | None") -> Floats:
        r"""Return the standard error of log q.

        To first order :math:`\log(SSE/SSE^{ref})` changes with each row by the difference of its
        shares; log q by half of (1 - gamma) N times that. What the p parameters of either law took
        of its error is, in units of the variance of the noise, chi squared of variance 2p: a term
        that happens to be fitted as zero makes two curves one, and yet may be there. Of N rows n
        are known.
        """
        n, n_all = self.stages.sizes[stage], self.stages.sizes[-1]
        data, rank = self.stages.data, fitted.rank
        shares = ((data.y[:n] - fitted.curves[:, :n]) / self.deviation) ** 2
        shares /= np.sum(shares, axis=1, keepdims=True)
        theirs: Floats | float = 1.0 / n
        if reference is not None:
            theta = reference.theta[stage, None, : reference.program.n_parameters]
            values = evaluate(reference.program, theta, data.X[:n])[0]
            theirs = ((data.y[:n] - values) / self.deviation) ** 2
            theirs = theirs / np.sum(theirs)
            rank = rank + reference.rank
        variance = np.sum((shares - theirs) ** 2, axis=1) + 2.0 * rank / n**2
        error = 0.5 * (1.0 - self.problem.gamma) * n_all * np.sqrt(variance * (1.0 - n / n_all))
        return np.where(np.isfinite(error), error, 0.0)


@dataclass(frozen=True, eq=False)
class _Path:
    """How far each law has come, filled in place: arrays of (n_stages, ...) or one entry a law."""

    theta: Floats
    squares: Floats
    stage: Integers
    rank: Integers
    outcome: Integers
    n_evaluations: Integers
    n_points: Integers
    log_q: Floats
    sse: Floats
    log_q_error: Floats

    @classmethod
    def of(cls, batch: Batch, stages: Stages) -> "_Path":
        n_laws, n_stages = len(batch.nodes), len(stages.sizes)
        p = max(1, int(batch.n_parameters.max(initial=0)))
        return cls(
            theta=np.zeros((n_stages, n_laws, p)),
            squares=np.zeros((n_stages, n_laws)),
            stage=np.zeros(n_laws, dtype=np.int64),
            rank=np.zeros(n_laws, dtype=np.int64),
            outcome=np.zeros(n_laws, dtype=np.int64),
            n_evaluations=np.zeros(n_laws, dtype=np.int64),
            n_points=np.zeros(n_laws, dtype=np.int64),
            log_q=np.zeros(n_laws),
            sse=np.zeros(n_laws),
            log_q_error=np.zeros(n_laws),
        )

    def enter(self, stage: int, stages: Stages, which: Integers, fitted: Fitted) -> None:
        self.theta[stage, which, : fitted.theta.shape[1]] = fitted.theta
        self.squares[stage, which] = fitted.squares
        self.stage[which] = stage
        self.rank[which], self.outcome[which] = fitted.rank, fitted.outcome
        self.n_evaluations[which] += fitted.n_evaluations
        self.n_points[which] += fitted.n_evaluations * stages.sizes[stage]


def _chunks(which: Integers, n: int) -> Iterator[Integers]:
    """Yield as many laws as may have their predictions at n rows in memory."""
    size = max(1, CHUNK // n)
    for start in range(0, len(which), size):
        yield which[start : start + size]


def _levels(log_q: Floats) -> Floats:
    """Return the log q that `SHARE` and `MOST` of the laws reach; NaN if there is none."""
    best_first = -np.sort(-log_q[np.isfinite(log_q)])
    n = len(best_first)
    if n == 0:
        return np.full(2, np.nan)
    return best_first[[ceil(SHARE * n) - 1, min(n, max(FEW, ceil(MOST * n))) - 1]]


def _goes_on(
    path: _Path, which: Integers, stage: int, reference: Reference | None, levels: Floats
) -> Flags:
    """Tell which of the laws go on: the better ones, and some that are not certainly worse."""
    if reference is None:
        return np.zeros(len(which), dtype=np.bool_)
    good, fair = reference.levels[stage] if len(reference.levels) else levels[stage]
    log_q = path.log_q[which]
    open_yet = log_q + N_DEVIATIONS * path.log_q_error[which] >= reference.log_q
    return np.isfinite(log_q) & ((log_q >= good) | (open_yet & (log_q >= fair)))


def _carry_through(task: _Task, first: Fitted) -> Reference | None:
    """Return the best law of the first stage that can be fitted in all of them."""
    log_q = task.extrapolate(0, first, None)[0]
    for law in np.argsort(-log_q, kind="stable"):
        if not np.isfinite(log_q[law]):
            return None
        one, fitted = np.array([law]), first.take(np.array([law]))
        theta, squares = [fitted.theta[0]], [fitted.squares[0]]
        for stage in range(1, len(task.stages.sizes)):
            fitted = task.descend(stage, one, theta[-1][None, :])
            if fitted.outcome[0] != FITTED:
                break
            theta.append(fitted.theta[0])
            squares.append(fitted.squares[0])
        else:
            whole = task.extrapolate(len(squares) - 1, fitted, None)[0]
            return Reference(
                _program(task.batch, law),
                np.array([row[: fitted.theta.shape[1]] for row in theta]),
                np.array(squares),
                int(fitted.rank[0]),
                float(whole[0]),
                np.empty((0, 2)),
            )
    return None


def _best(
    task: _Task, path: _Path, which: Integers, levels: Floats, reference: Reference | None
) -> Reference | None:
    """Return the best law on all rows, of those that came so far and the reference."""
    if reference is None:
        return None
    # Where nobody came, nobody knows better than before.
    if len(reference.levels):
        levels = np.where(np.isfinite(levels), levels, reference.levels)
    if not len(which) or not np.max(path.log_q[which]) > reference.log_q:
        return replace(reference, levels=levels)
    law = which[np.argmax(path.log_q[which])]
    return Reference(
        _program(task.batch, law),
        path.theta[:, law, :],
        path.squares[:, law],
        int(path.rank[law]),
        float(path.log_q[law]),
        levels,
    )


def _program(batch: Batch, law: int) -> Program:
    nodes = batch.nodes[law, : batch.lengths[law]].tolist()
    return Program.of(
        [tuple(row) for row in nodes], batch.literals[law].tolist(), int(batch.n_parameters[law])
    )
