r"""One size of noise for several groups: their joint integral, one group at a time.

Given sigma the groups are independent, so that

.. math:: Z(\varphi) = \int \pi(\sigma) \prod_g I_g(\sigma, \varphi) \, d\sigma, \qquad
          I_g(\sigma, \varphi) = \int L_g^\varphi \, d\theta_g,

and only functions of one variable are to be known. Of draws :math:`(\theta_i, \sigma_i)` with
weights W, the density of sigma is the weighted mean of :math:`p(\sigma \mid \theta_i)`, each of
which is exact. Draws of a group are made with the likelihood that the others would have were their
laws linear (`Rest`), so that they are where sigma is according to all; it is divided out again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid

from pmsr.equation.program import Program, evaluate
from pmsr.evidence.noise import LOG_2_PI
from pmsr.evidence.problem import Problem
from pmsr.evidence.proposal import Draws, Target, log_sum_exp
from pmsr.evidence.scale import Rest, narrow
from pmsr.evidence.smc import effective_sample_size, pareto_k, systematic_indexes
from pmsr.evidence.trust import Trust
from pmsr.limits import check_time

Floats = NDArray[np.float64]

# Over fifty nats on either side of the maximum, some twenty standard deviations: a sixth of one.
N_GRID = 129
N_FINE = 513  # where bounds are all that is known
CHUNK = 2**20  # numbers at a time


class Group(NamedTuple):
    """Draws of one group, with the log weights of each temperature.

    Parameters
    ----------
    target
        The group's density, with what the others say of sigma.
    draws
        Points, whose last field is not needed any more.
    squares
        Sums of squares of weighed residuals, of shape (n,).
    log_weights
        One array of shape (n,) for each temperature.
    """

    target: Target
    draws: Draws
    squares: Floats
    log_weights: tuple[Floats, ...]


@dataclass(frozen=True, eq=False)
class AtTemperature:
    """What is known at one temperature.

    Parameters
    ----------
    u
        Places of log sigma.
    density
        Of log sigma there, given all groups.
    log_z
        Log of the integral.
    shares
        Of each group, the share of each draw in its conditional integral at each place, of shape
        (n, n_places): columns add up to one. At temperature 1 only: the others are not drawn from.
    influence
        Of each group, by how much the log of the integral would grow with a draw's weight, of
        shape (n,), times n: one on average.
    """

    u: Floats
    density: Floats
    log_z: float
    shares: tuple[Floats, ...]
    influence: tuple[Floats, ...]

    def share_below(self, log_sigma: float) -> float:
        """Return the probability that sigma is not above."""
        inside = self.u <= log_sigma
        if not inside.any():
            return 0.0
        edge = np.interp(log_sigma, self.u, self.density)
        places = np.append(self.u[inside], log_sigma)
        values = np.append(self.density[inside], edge)
        return min(1.0, float(trapezoid(values, places)))


@dataclass(frozen=True, eq=False)
class Joint:
    """The joint integral of all groups.

    Parameters
    ----------
    targets
        Of the groups.
    groups
        Their draws.
    ends
        What is known at gamma and at 1.
    """

    targets: tuple[Target, ...]
    groups: tuple[Group, ...]
    ends: tuple[AtTemperature, AtTemperature]

    @property
    def log_q(self) -> float:
        """Log Z(1) less log Z(gamma)."""
        return self.ends[1].log_z - self.ends[0].log_z

    @property
    def log_q_variance(self) -> float:
        """Estimated variance of log q, to first order."""
        total = 0.0
        for group, low, high in zip(
            self.groups, self.ends[0].influence, self.ends[1].influence, strict=True
        ):
            terms = (high - low) / len(high)
            sums = np.bincount(group.draws.part, terms)
            counts = np.maximum(np.bincount(group.draws.part), 1)
            total += max(0.0, float(terms @ terms - np.sum(sums**2 / counts)))
        return total

    @property
    def _log_influences(self) -> list[Floats]:
        with np.errstate(divide="ignore"):
            return [np.log(one) for end in self.ends for one in end.influence]

    @property
    def ess(self) -> float:
        """Least effective number of draws of a group at a temperature."""
        return min(effective_sample_size(one) for one in self._log_influences)

    @property
    def pareto_k(self) -> float:
        """Largest tail index of the same."""
        return max(pareto_k(one) for one in self._log_influences)

    @property
    def top_share(self) -> float:
        """Largest share of one draw."""
        return max(float(one.max() / len(one)) for end in self.ends for one in end.influence)

    def sensitivity(self) -> float:
        """By how much log q would change if the largest sigma were halved."""
        high = np.log(0.5 * self.targets[0].sigma_bounds[1])
        tiny = np.finfo(np.float64).tiny
        shares = [np.log(max(tiny, end.share_below(high))) for end in self.ends]
        return float(shares[1] - shares[0])

    def draw(
        self, n: int, piece: slice, *, rng: np.random.Generator
    ) -> tuple[tuple[Floats, ...], Floats]:
        """Draw from the posterior: sigma first, then each group's theta given sigma.

        Parameters
        ----------
        n
            How many.
        piece
            Of the draws of each group, which may be used.
        rng
            Source of randomness.

        Returns
        -------
        tuple
            Theta of each group, of shape (n, p), and sigma, of shape (n,).
        """
        end = self.ends[1]
        width = end.u[1] - end.u[0]
        places = systematic_indexes(end.density, n, rng)
        jitter = width * (rng.random(n) - 0.5)
        low, high = np.log(self.targets[0].sigma_bounds)
        log_sigma = np.clip(end.u[places] + jitter, low, high)
        thetas = []
        for group, shares in zip(self.groups, end.shares, strict=True):
            chosen = np.empty(n, dtype=np.int64)
            some = shares[piece]
            for place in np.unique(places):
                here = np.flatnonzero(places == place)
                weights = some[:, place] if some[:, place].any() else some.sum(axis=1)
                found = systematic_indexes(weights, len(here), rng)
                chosen[here] = rng.permutation(found.clip(max=len(some) - 1))
            fit = group.target.fit
            thetas.append(fit.full_theta(group.draws.theta[piece][chosen]))
        # Neighbours came from the same place.
        order = rng.permutation(n)
        return tuple(theta[order] for theta in thetas), np.exp(log_sigma[order])


def rests_of(targets: Sequence[Target]) -> list[Rest | None]:
    """Return for each group what the others say of sigma; None where that is not so simple."""
    if any(one.problem.scale.knows_rows for one in targets):
        return [None] * len(targets)
    n = [one.problem.n for one in targets]
    squares = [one.fit.minima[0].sse for one in targets]
    ranks = [one.fit.program.n_parameters for one in targets]
    return [
        Rest(sum(n) - n[k], sum(squares) - squares[k], sum(ranks) - ranks[k])
        for k in range(len(targets))
    ]


def linear_shared_log_q(targets: Sequence[Target], whole: Problem) -> float:
    """Log q that laws which are linear, of the same ranks and best fits, would have.

    Parameters
    ----------
    targets
        Of the groups, without rests.
    whole
        The problem of all rows.
    """
    problem, squares, excess = targets[0].problem, None, 0.0
    if not (problem.noise.is_exact or problem.scale.knows_rows):
        # As in screening: normal noise of weighed residuals, and what it lacks at the best fit.
        values = [
            evaluate(one.fit.program, one.fit.minima[0].theta[None, :], one.data.X)[0]
            for one in targets
        ]
        found = whole.working(np.concatenate(values)[None, :])
        squares, excess = float(found[0][0]), float(found[1][0])
    rank = sum(one.fit.program.n_parameters for one in targets)
    low, high = np.log(problem.sigma_bounds)
    log_z = []
    for phi in (1.0, problem.gamma):
        low_here, high_here = _range(targets, phi)
        u = np.linspace(max(low, low_here), min(high, high_here), 2 * N_FINE - 1)
        value = (1 - problem.sigma_power) * u
        for one in targets:
            value = value + one.fit.program.n_parameters * one.problem.scale.log_size(u)
            if squares is None:
                value = value + phi * one.log_likelihood_at_best(u)
        if squares is not None:
            rest = Rest(whole.n, squares, 0)
            value = value + phi * (rest.log_likelihood(u) - 0.5 * whole.n * LOG_2_PI)
        log_z.append(_log_integral(value, u) + 0.5 * rank * (LOG_2_PI - np.log(phi)))
    return float(log_z[0] - log_z[1] + (1.0 - problem.gamma) * excess)


def integrate(
    targets: Sequence[Target], n_draws: int, *, rngs: Sequence[np.random.Generator], trust: Trust
) -> Joint:
    """Integrate over the parameters of all groups and the sigma that they share.

    Parameters
    ----------
    targets
        Of the groups, all with the same gamma and bounds of sigma.
    n_draws
        Points drawn for each group, at least.
    rngs
        A generator for each group.
    trust
        How many more are drawn where these do not suffice.
    """
    groups = []
    for target, rest, rng in zip(targets, rests_of(targets), rngs, strict=True):
        if rest is not None:
            target = _with(target, target.problem.with_rest(rest))
        groups.append(_draw(target, n_draws, rng, trust))
    phis = (targets[0].gamma, 1.0)
    ends = [_at(groups, targets, place, phi) for place, phi in enumerate(phis)]
    return Joint(tuple(targets), tuple(groups), (ends[0], ends[1]))


def _with(target: Target, problem: Problem) -> Target:
    return type(target)(target.fit, problem, target.radius_share)


def _exact(program: Program, problem: Problem, theta: Floats, sigma: Floats) -> Floats:
    return problem.exact_log_likelihood(program, theta, np.log(sigma))


def _draw(target: Target, n_draws: int, rng: np.random.Generator, trust: Trust) -> Group:
    """Draw from a proposal that has learnt where the density is, until both ends are covered."""
    phis = (target.gamma, 1.0)
    proposal = target.propose(n_draws, rng=rng)
    n, most = n_draws, trust.max_growth * n_draws
    while True:
        check_time()
        draws = proposal.draw(n, rng=rng)
        log_prior, log_likelihood = target.densities(
            draws.theta, draws.log_sigma, _exact, draws.look
        )
        known = np.isfinite(log_prior) & np.isfinite(log_likelihood)
        with np.errstate(invalid="ignore"):
            ends = tuple(
                np.where(known, log_prior + phi * log_likelihood - draws.log_density, -np.inf)
                for phi in phis
            )
        ess = min(map(effective_sample_size, ends))
        tail = max(map(pareto_k, ends)) if ess > 0.0 else np.inf
        tops = [float(np.exp(end.max() - log_sum_exp(end))) for end in ends if ess > 0.0]
        if trust.covers(ess, tail, max(tops, default=1.0)) or n >= most:
            break
        proposal = proposal.follow(draws, list(ends), rng=rng)
        n = min(2 * n, most)
    if not ess > 0.0:
        raise FloatingPointError("never finite: no particle has positive density")
    white = target.problem.white
    squares = np.empty(n)
    size = max(1, CHUNK // len(white.y))
    with np.errstate(all="ignore"):
        for k in range(0, n, size):
            values = evaluate(target.white_program, draws.theta[k : k + size], white.X)
            squares[k : k + size] = np.sum((white.y - values) ** 2, axis=1)
    return Group(target, draws._replace(look=None), squares, ends)


def _range(targets: Sequence[Target], phi: float) -> tuple[float, float]:
    """Return the bounds of log sigma between which all that matters at a temperature is."""
    problem = targets[0].problem
    bounds = np.log(problem.sigma_bounds)
    if any(one.problem.scale.knows_rows for one in targets):
        return float(bounds[0]), float(bounds[1])
    rank = sum(one.fit.program.n_parameters for one in targets)
    square = sum(one.fit.minima[0].sse for one in targets)
    n = sum(one.problem.n for one in targets)
    a = rank + 1 - problem.sigma_power - phi * n
    low, _, high = narrow(a, 0.5 * phi * square, bounds)
    if not problem.noise.is_exact:  # the squares are only about those of normal noise
        low, high = max(low - 1.0, bounds[0]), min(high + 1.0, bounds[1])
    return low, high


def _at(
    groups: Sequence[Group], targets: Sequence[Target], place: int, phi: float
) -> AtTemperature:
    """Integrate at one temperature."""
    problem = targets[0].problem
    low, high = _range(targets, phi)
    is_wide = problem.scale.knows_rows
    u = np.linspace(low, high, N_FINE if is_wide else N_GRID)
    log_integrand = (1 - problem.sigma_power) * u
    shares: list[tuple[NDArray[np.int64], Floats]] = []
    for group in groups:
        own = group.target.problem
        inside = (group.draws.log_sigma >= low) & (group.draws.log_sigma <= high)
        log_weights = np.where(inside, group.log_weights[place], -np.inf)
        used = np.flatnonzero(np.isfinite(log_weights))
        if not len(used):
            raise FloatingPointError("never finite: no particle has positive density")
        power = (1 - own.sigma_power) * u
        log_density = power + phi * _log_likelihoods(group, used, u)
        log_density -= _log_integrals(log_density, u)[:, None]
        log_density += log_weights[used, None]
        column = log_sum_exp(log_density)
        shares.append((used, np.exp(log_density - column)))
        log_integrand = log_integrand + column - np.log(len(inside)) - power
        if own.rest is not None:
            log_integrand = log_integrand - phi * own.rest.log_likelihood(u)
    log_z = _log_integral(log_integrand, u)
    density = np.exp(log_integrand - log_z)
    weights = density * _simpson(len(u)) * (u[1] - u[0])
    influence, whole = [], []
    for group, (used, some) in zip(groups, shares, strict=True):
        n = len(group.draws.theta)
        one = np.zeros(n)
        one[used] = n * (some @ weights)
        influence.append(one)
        if phi == 1.0:
            table = np.zeros((n, len(u)))
            table[used] = some
            whole.append(table)
    return AtTemperature(u, density, log_z, tuple(whole), tuple(influence))


def _log_likelihoods(group: Group, used: NDArray[np.int64], u: Floats) -> Floats:
    """Return log L of draws, the others' included, at each place of log sigma."""
    problem = group.target.problem
    if problem.noise.is_exact:
        return np.asarray(problem.log_likelihood(group.squares[used, None], u))
    found = np.empty((len(used), len(u)))
    program, theta = group.target.fit.program, group.draws.theta[used]
    for k, value in enumerate(u):
        found[:, k] = problem.exact_log_likelihood(program, theta, np.full(len(used), value))
    return found


def _simpson(n: int) -> Floats:
    """Return Simpson's weights of an odd number of places, one unit apart."""
    weights = np.where(np.arange(n) % 2 == 1, 4.0, 2.0)
    weights[[0, -1]] = 1.0
    return weights / 3.0


def _log_integrals(log_values: Floats, u: Floats) -> Floats:
    """Return the logs of the integrals of rows, by Simpson's rule."""
    top = np.max(log_values, axis=1)
    with np.errstate(divide="ignore"):
        inner = np.exp(log_values - top[:, None]) @ (_simpson(len(u)) * (u[1] - u[0]))
        return np.asarray(top + np.log(inner))


def _log_integral(log_values: Floats, u: Floats) -> float:
    return float(_log_integrals(log_values[None, :], u)[0])
