"""Normal approximations around the minima (Eqs. 7 and 8), their region and their mixture."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lgamma, log, pi
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data
from pmsr.equation.kernels import affine_normal
from pmsr.equation.program import Program, evaluate, evaluate_jacobian
from pmsr.evidence.multistart import Fit, FitError, Minimum, Region
from pmsr.evidence.problem import Problem
from pmsr.evidence.scale import SigmaLaw
from pmsr.limits import check_time
from pmsr.magnitude import column_lengths, take_out_exponent

Floats = NDArray[np.float64]
Evaluate: TypeAlias = Callable[[Program, Problem, Floats, Floats], Floats]
"""Log likelihood of particles: `pmsr.model.Template.log_likelihood`."""

WIDTH = 6.0  # of the defensive part, in units of log rho
NEGLIGIBLE = log(100.0)  # a minimum with less than 1 % of the best one's L**gamma is left out


@dataclass(frozen=True, eq=False)
class Target:
    r"""The density to integrate: :math:`L^\phi \sigma^{-k}` on the region, in (theta, log sigma).

    Parameters
    ----------
    fit
        The equation and its minima; theta has its ``rank`` parameters here.
    problem
        Observations, fraction, and prior of sigma.
    radius_share
        Factor of the radius of the region.
    """

    fit: Fit
    problem: Problem
    radius_share: float = 1.0

    @property
    def data(self) -> Data:
        """The observations."""
        return self.problem.data

    @property
    def gamma(self) -> float:
        """The fraction of Eq. (5)."""
        return self.problem.gamma

    @property
    def sigma_bounds(self) -> tuple[float, float]:
        """Lower and upper bound of sigma."""
        return self.problem.sigma_bounds

    @property
    def size_bounds(self) -> tuple[float, float]:
        """The same in units of weighed residuals."""
        low, high = np.exp(self.problem.scale.log_size(np.log(self.sigma_bounds)))
        return float(low), float(high)

    @property
    def sigma_power(self) -> int:
        """Exponent k of sigma's prior."""
        return self.problem.sigma_power

    @cached_property
    def charts(self) -> tuple["Chart", ...]:
        """The minima whose likelihood matters at gamma, each with its coordinates."""
        best, worst = self.fit.minima[0], self._worst
        return tuple(Chart.at(m) for m in self.fit.minima if m is best or m.sse <= worst)

    @property
    def _worst(self) -> float:
        """Largest squared error of a minimum that matters."""
        nats = NEGLIGIBLE / self.gamma
        return self.problem.scale.largest_square(self.problem.n, self.fit.minima[0].sse, nats)

    @cached_property
    def white_program(self) -> Program:
        """The equation that explains weighed data."""
        return self.problem.whiten(self.fit.program)

    @cached_property
    def region(self) -> Any:
        r"""Where theta is flat, with :math:`R = \sigma_{max} (\sqrt r + 4) / \sqrt\gamma`."""
        rank = self.fit.program.n_parameters
        radius = float(self.size_bounds[1] * (np.sqrt(rank) + 4.0) / np.sqrt(self.gamma))
        radius *= self.radius_share
        centres = tuple(chart.theta for chart in self.charts)
        whitens = tuple(chart.whiten for chart in self.charts)
        return Region(centres, whitens, radius, self.fit.free, self.fit.theta)

    @property
    def halved(self) -> "Target":
        """The same with half the radius of the region and half the largest sigma.

        Where sigma is known to a factor of two, as its bounds say, only the radius is halved:
        no sigma would be left.
        """
        halved = self.problem.halved
        if halved is not self.problem:
            return replace(self, problem=halved)
        return replace(self, radius_share=0.5 * self.radius_share)

    @property
    def n_flat(self) -> int:
        """Number of parameters without priors of their own."""
        return self.fit.program.n_parameters

    @property
    def log_learnt(self) -> float:
        """What parameters with priors add to log q if the equation is linear in them."""
        return 0.0

    @property
    def log_misfit(self) -> float:
        r"""Log of :math:`\mathrm{SSE} / 2\sigma^2` for the largest sigma, at the best minimum."""
        sse = self.fit.minima[0].sse
        return log(0.5 * sse) - 2.0 * log(self.size_bounds[1]) if sse > 0.0 else -np.inf

    def log_likelihood_at_best(self, log_sigma: Floats) -> Floats:
        """Return log L at the best minimum for some sizes of the noise."""
        best = self.fit.minima[0]
        if self.problem.noise.is_exact:
            return np.asarray(self.problem.log_likelihood(best.sse, log_sigma))
        theta = np.repeat(best.theta[None, :], len(log_sigma), axis=0)
        return self.problem.exact_log_likelihood(self.fit.program, theta, log_sigma)

    @cached_property
    def excess(self) -> float:
        """Log likelihood at the best minimum, less that of normal noise of weighed residuals."""
        problem = self.problem
        if problem.scale.knows_rows:
            # Its integral over log sigma is of the likelihood itself, but for a constant.
            return 0.0
        if problem.noise.is_exact:
            return problem.log_weight
        best = self.fit.minima[0]
        theta = best.theta[None, :]
        values = evaluate(self.fit.program, theta, self.data.X)
        squares, excess = problem.working(values, problem.columns_at(self.fit.program, theta))
        # The squares of tuned weights are those of the most likely sigma.
        return float(excess[0]) if np.isfinite(squares[0]) else -np.inf

    def check_range(self) -> None:
        """Refuse what floating-point numbers cannot hold, instead of computing without it.

        Raises
        ------
        FitError
            If draws of a parameter would overflow, or lose digits next to zero; or if the least
            misfit, in units of the largest sigma, is beyond the largest number.
        """
        numbers = np.finfo(np.float64)
        if self.halved.log_misfit > log(numbers.max):
            raise FitError("too far from the data: its log likelihood is beyond all numbers")
        for chart in self.charts:
            # Deviation of each parameter for the least sigma, and its reach for the largest.
            sizes = column_lengths(chart.B.T)
            least, most = sizes * self.size_bounds[0], sizes * self.region.radius
            if not (np.all(least > numbers.tiny / numbers.eps) and np.all(most < numbers.max)):
                raise FitError(
                    "out of range: a parameter would be below 1e-292 or above 1e308; "
                    "change the unit of a variable or of the target"
                )

    def inside(self, theta: Floats, fraction: float = 1.0) -> NDArray[np.bool_]:
        """Tell which theta are in the region, or in that of a fraction of its radius.

        The prior is flat on the union over the minima, so that no theta counts twice.
        """
        nearest = np.min(self.region.squares(theta), axis=0)
        return np.asarray(nearest <= (fraction * self.region.radius) ** 2)

    def keeps_signs(self, theta: Floats) -> NDArray[np.bool_]:
        """Tell which theta have the signs of the best fit, if parameters are to keep them."""
        if not self.problem.positive:
            return np.ones(len(theta), dtype=np.bool_)
        own = [k for k, place in enumerate(self.fit.free) if place not in self.problem.given.places]
        signs = np.where(self.fit.minima[0].theta < 0.0, -1.0, 1.0)
        return np.asarray(np.all((theta * signs)[:, own] > 0.0, axis=1))

    def inside_half(self, theta: Floats) -> NDArray[np.bool_]:
        """Tell which theta would stay if the bounds were halved."""
        return self.inside(theta, 0.5)

    def log_prior(self, theta: Floats, log_sigma: Floats) -> Floats:
        r"""Log prior density in (theta, log sigma): :math:`\sigma^{1-k}` on the region, or -inf."""
        low, high = np.log(self.sigma_bounds)
        allowed = self.inside(theta) & (log_sigma >= low) & (log_sigma <= high)
        allowed &= self.keeps_signs(theta)
        return np.where(allowed, (1 - self.sigma_power) * log_sigma, -np.inf)

    def densities(
        self, theta: Floats, log_sigma: Floats, evaluate: Evaluate | None, look: Any = None
    ) -> tuple[Floats, Floats]:
        """Log prior and log likelihood of a batch; the latter where the prior allows it."""
        log_prior = self.log_prior(theta, log_sigma)
        allowed = np.isfinite(log_prior)
        log_likelihood = np.full(len(theta), -np.inf)
        if evaluate is not None and allowed.any():
            noise = self.problem.noise
            # PyMC's density is that of every row, once, and knows no slopes; only normal noise
            # needs it.
            if self.data.counts is not None or noise.uses_slopes or not noise.is_exact:
                log_likelihood[allowed] = self.problem.exact_log_likelihood(
                    self.fit.program, theta[allowed], log_sigma[allowed]
                )
            else:
                log_likelihood[allowed] = evaluate(
                    self.fit.program, self.problem, theta[allowed], np.exp(log_sigma[allowed])
                )
        return log_prior, log_likelihood

    def propose(self, n_draws: int, *, rng: np.random.Generator) -> "Mixture":
        """Make the mixture from which particles are drawn."""
        return Proposal(self, (self.gamma, 1.0))

    def log_sigma(self, chart: "Chart", phi: float) -> SigmaLaw:
        """Distribution of log sigma at temperature phi if f were linear around a minimum."""
        return self.problem.scale.law(len(chart.theta), self.problem.n, chart.sse, phi)


@dataclass(frozen=True, eq=False)
class Chart:
    r"""Coordinates around a minimum in which a linear model is a standard normal.

    :math:`\theta = \theta^* + \sigma B z` with :math:`B = V S^{-1}` from the singular value
    decomposition of the Jacobian; its columns are first scaled to unit length, because parameters
    may differ by many orders of magnitude.

    Parameters
    ----------
    theta, sse
        The minimum.
    B, whiten
        The matrix B and its inverse.
    log_det
        log |B|.
    """

    theta: Floats
    sse: float
    B: Floats
    whiten: Floats
    log_det: float

    @classmethod
    def at(cls, minimum: Minimum, least: float = 0.0) -> "Chart":
        """Make the chart of a minimum.

        Its Jacobian has full rank, or else directions in which nothing changes get a share
        `least` of the length of the others.
        """
        length = column_lengths(minimum.jacobian)
        if least > 0.0:
            length = np.maximum(length, least * length.max())
        _, s, vt = np.linalg.svd(minimum.jacobian / length, full_matrices=False)
        if least > 0.0:
            s = np.maximum(s, least)
        B = vt.T / s / length[:, None]
        whiten = s[:, None] * vt * length
        log_det = float(-np.sum(np.log(s)) - np.sum(np.log(length)))
        return cls(minimum.theta, minimum.sse, B, whiten, log_det)


class Draws(NamedTuple):
    """Points in (theta, log sigma), the log density of the mixture there, and who drew them."""

    theta: Floats
    log_sigma: Floats
    log_density: Floats
    part: NDArray[np.int64]
    look: Any = None  # what an atlas has computed there already


class Mixture(Protocol):
    """From which a kernel draws particles, and whose density it knows."""

    @property
    def curved(self) -> Any:
        """Whether the equation is not linear."""

    def draw(self, n: int, *, rng: np.random.Generator) -> Draws:
        """Draw n points."""

    def log_pdf(self, theta: Floats, log_sigma: Floats, look: Any = None) -> Floats:
        """Log density in (theta, log sigma)."""

    def at(self, phi: float) -> "Mixture":
        """Return the mixture for one temperature."""

    def follow(
        self, draws: Draws, log_weights: list[Floats], *, rng: np.random.Generator
    ) -> "Mixture":
        """Return one that has learnt from draws and their weights at each end, or itself."""


class _Part(NamedTuple):
    """One component of the mixture."""

    weight: float
    chart: int
    phi: float
    spread: str  # "normal": the chart's; "even": all scales of the region; "bulk": its volume
    conditional: bool  # affine parameters from their exact conditional normal


class Proposal:
    r"""Mixture of normal approximations at two temperatures, with defensive parts.

    Around every minimum: the chart's own normal approximation, for linear f all that is needed;
    one part that spreads evenly over all scales of the region and one that fills its bulk, without
    which nobody sees what a bent f does far away; and the same three for the curved parameters
    only, the affine ones following from their exact conditional normal given the curved ones and
    sigma, which follows bananas such as that of ``c0*x**c1``.

    Parameters
    ----------
    target
        What to approximate.
    phis
        One or two temperatures of the normal parts. With gamma and 1 together, the same draws
        estimate both integrals: for linear f with weights below 2, whatever the dimension.
    """

    def __init__(self, target: Target, phis: Sequence[float]) -> None:
        self.target = target
        # Where noise is only nearly normal, nothing is linear.
        problem, n_parameters = target.problem, target.fit.program.n_parameters
        is_normal = problem.noise.is_exact and problem.noise.link is None
        self.affine = list(target.fit.program.affine) if is_normal else []
        self.curved = [k for k in range(n_parameters) if k not in self.affine]
        self.parts = self._parts(phis)
        self.log_sigma = {
            (index, phi): target.log_sigma(chart, phi)
            for index, chart in enumerate(target.charts)
            for phi in dict.fromkeys(phis)
        }
        # Root of the marginal covariance of the curved parameters, for sigma = 1.
        self.roots = [
            np.asarray(np.linalg.qr(chart.B[self.curved].T)[1]).T
            for chart in (target.charts if self.curved and self.affine else ())
        ]

    def _parts(self, phis: Sequence[float]) -> tuple[_Part, ...]:
        first, last = phis[0], phis[-1]
        shares = {("normal", first, False): 1.0, ("normal", last, False): 1.0}
        if self.curved:
            shares |= {("even", first, False): 1.0, ("bulk", first, False): 2.0}
        if self.curved and self.affine:
            shares |= {
                ("normal", first, True): 2.0,
                ("normal", last, True): 2.0,
                ("even", first, True): 1.0,
                ("even", last, True): 1.0,
                ("bulk", first, True): 2.0,
            }
        n_charts = len(self.target.charts)
        total = sum(shares.values()) * n_charts
        return tuple(
            _Part(share / total, chart, phi, spread, conditional)
            for (spread, phi, conditional), share in shares.items()
            for chart in range(n_charts)
        )

    def draw(self, n: int, *, rng: np.random.Generator) -> Draws:
        """Draw n points, each part as often as its weight says (to the nearest integer)."""
        last = np.rint(np.cumsum([part.weight for part in self.parts]) * n).astype(int)
        counts = np.diff(last, prepend=0)
        pieces = [
            self._draw_part(part, int(count), rng)
            for part, count in zip(self.parts, counts, strict=True)
        ]
        theta = np.concatenate([piece[0] for piece in pieces])
        log_sigma = np.concatenate([piece[1] for piece in pieces])
        log_density = self.log_pdf(theta, log_sigma, weights=counts / n)
        return Draws(theta, log_sigma, log_density, np.repeat(np.arange(len(counts)), counts))

    def _draw_part(self, part: _Part, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        chart = self.target.charts[part.chart]
        places = self.curved if part.conditional else list(range(len(chart.theta)))
        z = rng.standard_normal((n, len(places)))
        if part.spread == "normal":
            u = self.log_sigma[part.chart, part.phi].draw(n, rng)
            z *= (np.exp(self._log_size(u)) / np.sqrt(part.phi))[:, None]
        else:
            if part.spread == "even":
                below = self.target.problem.scale.width * rng.random(n)
                log_rho = -WIDTH * rng.random(n)
            else:
                below = -np.log1p(np.expm1(-self.target.problem.scale.width) * rng.random(n))
                log_rho = np.log(rng.random(n)) / max(1, len(places))
            u = log(self.target.sigma_bounds[1]) - below
            z *= (self.target.region.radius * np.exp(log_rho) / np.sqrt(_squares(z)))[:, None]
        if not part.conditional:
            return chart.theta + z @ chart.B.T, u
        theta = np.repeat(chart.theta[None, :], n, axis=0)
        theta[:, places] += z @ self.roots[part.chart].T
        # From zero: a step from the minimum to a value many orders smaller would lose its digits.
        theta[:, self.affine] = 0.0
        noise = rng.standard_normal((n, len(self.affine)))
        noise *= (np.exp(self._log_size(u)) / np.sqrt(part.phi))[:, None]
        theta[:, self.affine] = self._conditional(theta, noise)[0]
        return theta, u

    def _log_size(self, log_sigma: Floats) -> Floats:
        return self.target.problem.scale.log_size(log_sigma)

    def at(self, phi: float) -> "Proposal":
        """Return the mixture for one temperature."""
        return Proposal(self.target, (phi,))

    def follow(
        self, draws: Draws, log_weights: list[Floats], *, rng: np.random.Generator
    ) -> "Proposal":
        """Return itself: more draws are all that helps."""
        return self

    def log_pdf(
        self, theta: Floats, log_sigma: Floats, look: Any = None, weights: Floats | None = None
    ) -> Floats:
        """Log density of the mixture in (theta, log sigma)."""
        if weights is None:
            weights = np.array([part.weight for part in self.parts])
        charts = self.target.charts
        log_size = self._log_size(log_sigma)
        inverse_square = np.exp(-2.0 * log_size)
        squares = self.target.region.squares(theta)
        marginal, square_c, log_det_c = [], np.zeros(0), np.zeros(0)
        if self.roots:
            marginal = [
                _squares(_solve(root, (theta - chart.theta)[:, self.curved].T).T)
                for root, chart in zip(self.roots, charts, strict=True)
            ]
            _, square_c, log_det_c = self._conditional(
                theta, np.zeros((len(theta), len(self.affine)))
            )
        terms = np.empty((len(self.parts), len(theta)))
        for row, (part, weight) in enumerate(zip(self.parts, weights, strict=True)):
            if part.conditional:
                n, square = len(self.curved), marginal[part.chart]
                log_det = float(np.sum(np.log(np.abs(np.diag(self.roots[part.chart])))))
            else:
                n, square, log_det = theta.shape[1], squares[part.chart], charts[part.chart].log_det
            if part.spread == "normal":
                term = self.log_sigma[part.chart, part.phi].log_pdf(log_sigma)
                term = term + _log_normal(n, part.phi, square * inverse_square) - n * log_size
            else:
                term = self._log_spread(part.spread, n, square, log_sigma)
            if part.conditional:
                n_c = len(self.affine)
                term = term + _log_normal(n_c, part.phi, square_c * inverse_square)
                term = term + log_det_c - n_c * log_size
            terms[row] = term + (log(weight) if weight > 0.0 else -np.inf) - log_det
        terms[np.isnan(terms)] = -np.inf  # the conditional normal does not exist there
        return log_sum_exp(terms)

    def _log_spread(self, spread: str, n: int, square: Floats, log_sigma: Floats) -> Floats:
        """Log density of a defensive part in the curved, or all, parameters and log sigma."""
        with np.errstate(divide="ignore"):
            log_rho = 0.5 * np.log(square)
        log_radius, scale = log(self.target.region.radius), self.target.problem.scale
        below = log(self.target.sigma_bounds[1]) - log_sigma
        inside = (log_rho <= log_radius) & (below >= 0.0) & (below <= scale.width)
        log_sphere = log(2.0) + (n / 2) * log(pi) - lgamma(n / 2)
        if spread == "even":
            inside &= log_rho >= log_radius - WIDTH
            log_density = -n * log_rho - scale.log_even(WIDTH)
        else:
            log_density = log(n) - n * log_radius - below - scale.log_bulk
        return np.where(inside, log_density - log_sphere, -np.inf)

    def _conditional(self, theta: Floats, noise: Floats) -> tuple[Floats, Floats, Floats]:
        """Step of the affine parameters to their conditional draw, and that normal's constants."""
        data, program = self.target.problem.white, self.target.white_program
        size = max(1, 2**18 // len(data.y))
        parts = []
        for start in range(0, len(theta), size):
            check_time()
            values, jacobian = evaluate_jacobian(program, theta[start : start + size], data.X)
            parts.append(
                affine_normal(
                    np.ascontiguousarray(jacobian[:, self.affine]),
                    data.y - values,
                    noise[start : start + size],
                )
            )
        steps, squares, log_dets = zip(*parts, strict=True)
        return np.concatenate(steps), np.concatenate(squares), np.concatenate(log_dets)


def log_sum_exp(terms: Floats) -> Floats:
    """Log of the sum of exponentials over the first axis; SciPy's takes five times as long.

    Examples
    --------
    >>> float(log_sum_exp(np.array([-np.inf, -np.inf])))
    -inf
    """
    top = np.max(terms, axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.sum(np.exp(terms - top), axis=0)) + top)


def _solve(root: Floats, right: Floats) -> Floats:
    """Solve for a triangular matrix whose rows may differ by hundreds of orders of magnitude."""
    scaled, exponents = take_out_exponent(root, axis=1)
    if np.ptp(exponents) < 256:  # the quotient of two rows, 1e77, is far from being out of range
        return np.asarray(np.linalg.solve(root, right))
    return np.asarray(np.linalg.solve(scaled, np.ldexp(right, -exponents[:, None])))


def _squares(rows: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _log_normal(n: int, phi: float, square: Floats) -> Floats:
    return (n / 2) * log(phi / (2.0 * pi)) - (phi / 2.0) * square
