r"""The size of the noise, sigma: its prior, and what the likelihood leaves of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid, simpson

from pmsr.limits import check_time

Floats = NDArray[np.float64]

N_GRID = 1024  # cells of the histogram from which log sigma is drawn
N_CONDITIONAL = 4096  # cells of the histogram of log v
FLOOR = 1e-6  # of a histogram's mass, spread evenly: no cell is impossible
EXTRA_FLOOR = 1e-3  # of a histogram's highest cell, where it is not exact
N_SIGMA = 20_001  # grid points of log sigma, for equations without parameters
# Where every row has an error of its own: first looks at the range, and then fine steps of what is
# left of it, some twenty standard deviations, of which Simpson's rule needs few for each.
N_LOOK, N_FINE = 129, 1025
NEGLIGIBLE = 50.0  # nats below the highest, as in `narrow`
CHUNK = 2**18  # values between two looks at the clock


class SigmaLaw(Protocol):
    """A distribution of log sigma from which a proposal draws."""

    @property
    def log_mass(self) -> float:
        """Log of the integral of the density before it was normalised."""

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw n values."""

    def log_pdf(self, u: Floats) -> Floats:
        """Log density at u."""

    def mean(self, function: Callable[[Floats], Floats]) -> float:
        """Return the mean of a function of log sigma."""


class ConditionalLaw(Protocol):
    """Distributions of log sigma, one for each sum of squares."""

    def draw(self, log_b: Floats, rng: np.random.Generator) -> Floats:
        """Draw log sigma for each b."""

    def log_pdf(self, log_sigma: Floats, log_b: Floats) -> Floats:
        """Log density of log sigma given b."""


class Scale(Protocol):
    r"""The prior of sigma, and what the likelihood leaves of it.

    With a sum of squares S at temperature :math:`\varphi`, once m parameters are integrated out, a
    normal likelihood leaves :math:`e^{a u - b e^{-2u}}` of u = log sigma, where
    :math:`a = m + 1 - k - \varphi N` and :math:`b = \varphi S/2`.
    """

    @property
    def is_free(self) -> bool:
        """Whether sigma is a parameter."""

    @property
    def knows_rows(self) -> bool:
        """Whether it integrates the likelihood itself at a fit, and not by a sum of squares."""

    def log_size(self, log_sigma: Floats) -> Floats:
        """Return the log of the size of weighed residuals."""

    def law(self, m: int, n: float, square: float, phi: float) -> SigmaLaw:
        """Return the distribution of log sigma."""

    def conditional(
        self, m: int, n: float, phi: float, log_b_range: tuple[float, float]
    ) -> ConditionalLaw:
        """Return the distributions of log sigma for all sums of squares."""

    def log_integral(self, m: int, n: float, square: float, phi: float) -> float:
        """Return the log of the integral over log sigma, exact."""

    def draw(self, n: float, square: float, strata: Floats) -> Floats:
        """Return quantiles of sigma at temperature 1, where there are no parameters."""

    def largest_square(self, n: float, square: float, nats: float) -> float:
        """Return the sum of squares whose best likelihood is so much worse than another's."""

    def log_even(self, width: float) -> float:
        """Log volume of a part that is even in so many units of log rho, and in log sigma."""

    @property
    def width(self) -> float:
        """Range of log sigma that a wide part of a proposal covers."""

    @property
    def log_bulk(self) -> float:
        """Log mass of sigma over that range, in units of the largest."""


@dataclass(frozen=True)
class FreeScale:
    r"""Sigma between two bounds, with the prior :math:`\sigma^{-k}`."""

    bounds: tuple[float, float]
    power: int
    is_free = True
    knows_rows = False
    WIDTH = 6.0  # of the defensive parts, in units of log sigma

    def log_size(self, log_sigma: Floats) -> Floats:
        """Return the same: it is sigma."""
        return log_sigma

    def _exponents(self, m: int, n: float, square: float, phi: float) -> tuple[float, float]:
        return m + 1 - self.power - phi * n, phi * square / 2.0

    def law(self, m: int, n: float, square: float, phi: float) -> "LogSigma":
        """Return the distribution of log sigma, as a histogram."""
        return LogSigma.of(*self._exponents(m, n, square, phi), np.log(self.bounds))

    def conditional(
        self, m: int, n: float, phi: float, log_b_range: tuple[float, float]
    ) -> ConditionalLaw:
        """Return the distributions of log sigma for all sums of squares."""
        a = m + 1 - self.power - phi * n
        return ScaleLaw(a, log_b_range, np.log(self.bounds))

    def log_integral(self, m: int, n: float, square: float, phi: float) -> float:
        """Return the log of the integral over log sigma, by Simpson's rule."""
        low, high = np.log(self.bounds)
        return log_sigma_integral(*self._exponents(m, n, square, phi), low, high)

    def draw(self, n: float, square: float, strata: Floats) -> Floats:
        """Return quantiles of sigma, by the inverse of its distribution function."""
        a, b = self._exponents(0, n, square, 1.0)
        low, _, high = narrow(a, b, np.log(self.bounds))
        u = np.linspace(low, high, N_SIGMA)
        return sigma_quantiles(u, log_kernel(a, b, u), strata)

    def largest_square(self, n: float, square: float, nats: float) -> float:
        """Return where the best likelihood, of sigma at its least bound or above, is worse."""
        floor = n * self.bounds[0] ** 2
        return float((square + floor) * np.exp(2.0 * nats / n) - floor)

    @property
    def width(self) -> float:
        """Range of log sigma below its upper bound."""
        low, high = self.bounds
        return min(self.WIDTH, log(high) - log(low))

    def log_even(self, width: float) -> float:
        """Log volume of a part that is even in log rho and in log sigma."""
        return log(width * self.width)

    @property
    def log_bulk(self) -> float:
        """Log mass of sigma over the range, in units of the largest."""
        return log(-np.expm1(-self.width))


class Rest(NamedTuple):
    """What other groups say of a sigma that is shared, were their laws linear.

    Parameters
    ----------
    n, square, rank
        Their observations, the sum of squares that their fits leave, and the number of their
        parameters, over which they are integrated.
    """

    n: float
    square: float
    rank: int

    # Any: an array of any shape.
    def log_likelihood(self, log_sigma: Any) -> Any:
        """Return the log of their likelihood, but for a constant."""
        return -self.n * log_sigma - 0.5 * self.square * np.exp(-2.0 * log_sigma)


@dataclass(frozen=True)
class SharedScale(FreeScale):
    """Sigma of one group out of several that share it; the power of its prior has their ranks."""

    rest: Rest

    def _exponents(self, m: int, n: float, square: float, phi: float) -> tuple[float, float]:
        return super()._exponents(m, n + self.rest.n, square + self.rest.square, phi)

    def conditional(
        self, m: int, n: float, phi: float, log_b_range: tuple[float, float]
    ) -> ConditionalLaw:
        """Return the distributions of log sigma for all sums of squares, the others' included."""
        return super().conditional(m, n + self.rest.n, phi, log_b_range)


@dataclass(frozen=True, eq=False)
class ExtraScale(FreeScale):
    r"""Sigma that adds to known errors in quadrature, next to the residuals of a fit.

    Residuals are weighed by :math:`(s_i^2 + \hat\sigma^2)^{-1/2}`, so that their size is about 1,
    and changes with sigma as a typical row's does.

    Parameters
    ----------
    errors, residuals, counts
        Of the rows, each of shape (N,).
    typical
        Most likely sigma.
    """

    errors: Floats
    residuals: Floats
    counts: Floats
    typical: float
    knows_rows = True

    @property
    def _error(self) -> float:
        """A typical error, of the rows that count."""
        weights = self.counts / (self.errors**2 + self.typical**2)
        return float(np.sqrt(np.sum(weights * self.errors**2) / np.sum(weights)))

    def log_size(self, log_sigma: Floats) -> Floats:
        """Return the log of the size that sigma gives to the weighed residuals of a typical row."""
        sigma = np.exp(log_sigma)
        return np.log(np.hypot(sigma, self._error) / np.hypot(self.typical, self._error))

    @cached_property
    def _rows(self) -> tuple[Floats, Floats, Floats]:
        """The squares of the errors, each once, and for each the counts and squared residuals."""
        squares, place = np.unique(self.errors**2, return_inverse=True)
        counts, left = (
            np.bincount(place, values).astype(np.float64)
            for values in (self.counts, self.counts * self.residuals**2)
        )
        return squares, counts, left

    def _log_likelihood(self, u: Floats) -> Floats:
        """Return that of each log sigma, but for a constant; it looks at the clock."""
        squares, counts, left = self._rows
        step = max(1, CHUNK // len(squares))
        found = np.empty(len(u))
        for start in range(0, len(u), step):
            check_time()
            some = slice(start, start + step)
            variance = squares + np.exp(2.0 * u[some])[:, None]
            found[some] = -0.5 * (np.log(variance) @ counts + (1.0 / variance) @ left)
        return found

    def _log_density(self, m: int, phi: float, u: Floats, log_l: Floats) -> Floats:
        return np.asarray(phi * log_l + m * self.log_size(u) + (1 - self.power) * u)

    def _on_grid(self, m: int, phi: float) -> tuple[Floats, Floats]:
        """Return places of log sigma, and the log density there, where it is not negligible.

        Many rows know sigma well: an even grid over all of its range would be too coarse for them,
        and take gigabytes.
        """
        low, high = log(self.bounds[0]), log(self.bounds[1])
        while True:
            u = np.linspace(low, high, N_LOOK)
            density = self._log_density(m, phi, u, self._log_likelihood(u))
            if not np.isfinite(density.max()):  # a law that is nowhere near: no place is better
                break
            near = np.flatnonzero(density > density.max() - NEGLIGIBLE)
            first, last = max(near[0] - 1, 0), min(near[-1] + 1, N_LOOK - 1)
            if last - first > N_LOOK // 2:
                break
            low, high = float(u[first]), float(u[last])
        u = np.linspace(low, high, N_FINE)
        return u, self._log_density(m, phi, u, self._log_likelihood(u))

    @cached_property
    def _cells(self) -> tuple[Floats, Floats, Floats]:
        """Edges and middles of the cells of a histogram, and the log likelihood at the middles."""
        edges = np.linspace(log(self.bounds[0]), log(self.bounds[1]), N_GRID + 1)
        u = 0.5 * (edges[1:] + edges[:-1])
        return edges, u, self._log_likelihood(u)

    def _histogram(self, m: int, phi: float) -> "LogSigma":
        edges, u, log_l = self._cells
        return LogSigma.from_log(edges, self._log_density(m, phi, u, log_l), EXTRA_FLOOR)

    def law(self, m: int, n: float, square: float, phi: float) -> "LogSigma":
        """Return the distribution of log sigma, were the predictions those of the fit."""
        return self._histogram(m, phi)

    def conditional(
        self, m: int, n: float, phi: float, log_b_range: tuple[float, float]
    ) -> ConditionalLaw:
        """Return the same for all sums of squares: the exact density is in the weights."""
        return Unconditional(self._histogram(m, phi))

    def log_integral(self, m: int, n: float, square: float, phi: float) -> float:
        """Return the log of the integral over log sigma, by Simpson's rule."""
        u, log_density = self._on_grid(m, phi)
        return log_simpson(log_density, u)

    def draw(self, n: float, square: float, strata: Floats) -> Floats:
        """Return quantiles of sigma, by the inverse of its distribution function."""
        u, log_density = self._on_grid(0, 1.0)
        return sigma_quantiles(u, log_density, strata)

    def largest_square(self, n: float, square: float, nats: float) -> float:
        """Return where the likelihood of weighed residuals is so much worse."""
        return float(square * np.exp(2.0 * nats / n) + 2.0 * nats)


class Unconditional(NamedTuple):
    """A distribution of log sigma that is the same for all sums of squares."""

    histogram: "LogSigma"

    def draw(self, log_b: Floats, rng: np.random.Generator) -> Floats:
        """Draw log sigma for each b."""
        return self.histogram.draw(len(log_b), rng)

    def log_pdf(self, log_sigma: Floats, log_b: Floats) -> Floats:
        """Log density of log sigma."""
        return self.histogram.log_pdf(log_sigma)


@dataclass(frozen=True)
class KnownScale:
    """Sigma that is 1: no parameter."""

    is_free = False
    knows_rows = False
    width = 0.0
    log_bulk = 0.0

    def log_size(self, log_sigma: Floats) -> Floats:
        """Return the same: zero."""
        return log_sigma

    def law(self, m: int, n: float, square: float, phi: float) -> "Known":
        """Return the point where log sigma is."""
        return Known(-phi * square / 2.0)

    def conditional(
        self, m: int, n: float, phi: float, log_b_range: tuple[float, float]
    ) -> "Known":
        """Return the same point."""
        return Known(0.0)

    def log_integral(self, m: int, n: float, square: float, phi: float) -> float:
        """Return what the likelihood is there."""
        return -phi * square / 2.0

    def draw(self, n: float, square: float, strata: Floats) -> Floats:
        """Return ones."""
        return np.ones_like(strata)

    def largest_square(self, n: float, square: float, nats: float) -> float:
        """Return where the likelihood is so much worse."""
        return square + 2.0 * nats

    def log_even(self, width: float) -> float:
        """Log volume of a part that is even in log rho."""
        return log(width)


class Known(NamedTuple):
    """Log sigma that is 0, as a distribution: densities are relative to that point."""

    log_mass: float

    # Any: n, or an array of n values of log b.
    def draw(self, n: Any, rng: np.random.Generator) -> Floats:
        """Return zeros."""
        return np.zeros(n if np.ndim(n) == 0 else len(n))

    def log_pdf(self, u: Floats, log_b: Floats | None = None) -> Floats:
        """Return zeros at the point; -inf elsewhere."""
        return np.where(u == 0.0, 0.0, -np.inf)

    def mean(self, function: Callable[[Floats], Floats]) -> float:
        """Return the value at the point."""
        return float(function(np.zeros(1))[0])


def sigma_quantiles(u: Floats, log_density: Floats, strata: Floats) -> Floats:
    """Return quantiles of sigma, from the log density of u = log sigma on a grid.

    Examples
    --------
    >>> sigma_quantiles(np.log([1.0, 4.0]), np.zeros(2), np.array([0.0, 0.5, 1.0])).round(6)
    array([1., 2., 4.])
    """
    cumulative = cumulative_trapezoid(np.exp(log_density - log_density.max()), u, initial=0)
    return np.asarray(np.exp(np.interp(strata * cumulative[-1], cumulative, u)))


def log_simpson(log_values: Floats, u: Floats) -> float:
    """Return the log of the integral of exp(log_values) over places u, by Simpson's rule.

    Examples
    --------
    >>> u = np.linspace(0.0, 1.0, 101)
    >>> round(log_simpson(1000.0 + u, u) - 1000.0, 6) == round(log(np.e - 1.0), 6)
    True
    """
    top = float(log_values.max())
    return top + float(np.log(simpson(np.exp(log_values - top), x=u)))


def log_kernel(a: float, b: float, u: Floats) -> Floats:
    r"""Return :math:`a u - b e^{-2u}`: what the Gaussian likelihood leaves of log sigma."""
    with np.errstate(over="ignore"):
        return a * u - b * np.exp(-2.0 * u)


def narrow(a: float, b: float, bounds: Floats) -> tuple[float, float, float]:
    """Bounds between which `log_kernel` is within 50 nats of its maximum, and where that is.

    Examples
    --------
    >>> low, mode, high = narrow(-20.0, 10.0, np.log([1e-6, 1e6]))
    >>> mode, low > -3.0, high < 4.0
    (0.0, True, True)
    """
    low, high = (float(bound) for bound in bounds)
    mode = 0.5 * (log(2.0 * b) - log(-a)) if a < 0.0 < b else (low if a < 0.0 else high)
    mode = min(max(mode, low), high)
    for _ in range(60):  # halve each side while its far half is negligible
        places = np.array([0.5 * (low + mode), mode, 0.5 * (high + mode)])
        values = log_kernel(a, b, places)
        cut_low, _, cut_high = values < values[1] - 50.0
        low, high = (places[0] if cut_low else low), (places[2] if cut_high else high)
        if not (cut_low or cut_high):
            break
    return float(low), mode, float(high)


class LogSigma(NamedTuple):
    r"""A histogram on log sigma that follows :math:`\exp(a u - b e^{-2u})` between two bounds.

    The density that is evaluated is exactly the one that is drawn from: the histogram's.
    """

    edges: Floats
    cumulative: Floats
    log_density: Floats
    log_mass: float

    @classmethod
    def of(cls, a: float, b: float, bounds: Floats) -> "LogSigma":
        """Lay the histogram where the density is not negligible.

        Examples
        --------
        >>> peak = LogSigma.of(-20.0, 10.0, np.log([1e-6, 1e6]))
        >>> abs(float(peak.edges[np.argmax(peak.log_density)])) < 0.05    # at log sqrt(2b / -a) = 0
        True
        """
        low, _, high = narrow(a, b, bounds)
        edges = np.linspace(low, high, N_GRID + 1)
        return cls.from_log(edges, log_kernel(a, b, 0.5 * (edges[1:] + edges[:-1])), 1e-6)

    @classmethod
    def from_log(cls, edges: Floats, middle: Floats, floor: float) -> "LogSigma":
        """Make a histogram of cells of one width from log densities at their middles."""
        top = float(middle.max())
        # A floor keeps every cell possible: the true noise may be larger than the minimum's.
        weight = np.exp(middle - top) + floor
        total = float(weight.sum())
        width = float(edges[-1] - edges[0]) / N_GRID
        cumulative = np.concatenate([[0.0], np.cumsum(weight)]) / total
        return cls(edges, cumulative, np.log(weight / (total * width)), top + log(total * width))

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw stratified values: one from each n-th of the distribution, in random order."""
        strata = (rng.permutation(n) + rng.random(n)) / n
        return np.interp(strata, self.cumulative, self.edges)

    def mean(self, function: Callable[[Floats], Floats]) -> float:
        """Return the mean of a function of log sigma."""
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])
        return float(np.diff(self.cumulative) @ function(middle))

    def log_pdf(self, u: Floats) -> Floats:
        """Log density at u; -inf outside the histogram."""
        low, high = self.edges[0], self.edges[-1]
        cell = ((u - low) * (N_GRID / (high - low))).astype(np.int64)
        inside = (u >= low) & (u <= high)
        return np.where(inside, self.log_density[np.clip(cell, 0, N_GRID - 1)], -np.inf)


class ScaleLaw:
    r"""Distribution of log sigma given the squared error: :math:`e^{a u - b e^{-2u}}`, truncated.

    In :math:`\log v = \log b - 2u` it is one law for all b, so that one histogram serves all
    draws; b enters by the bounds only. The density is that of the histogram.
    """

    def __init__(self, a: float, log_b_range: tuple[float, float], bounds: Floats) -> None:
        self.a, self.bounds = a, bounds
        low, high = log_b_range[0] - 2.0 * bounds[1], log_b_range[1] - 2.0 * bounds[0]
        self.edges = np.linspace(low, high, N_CONDITIONAL + 1)
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])
        with np.errstate(over="ignore"):
            log_density = -0.5 * a * middle - np.exp(middle)
        weight = np.exp(log_density - log_density.max())
        weight = weight / weight.sum() + FLOOR / N_CONDITIONAL
        self.cumulative = np.concatenate([[0.0], np.cumsum(weight)])
        self.log_density = np.log(weight / (self.edges[1] - self.edges[0]))

    def _ends(self, log_b: Floats) -> tuple[Floats, Floats]:
        ends = log_b[:, None] - 2.0 * self.bounds[::-1]
        low, high = np.interp(ends, self.edges, self.cumulative).T
        return low, high

    def draw(self, log_b: Floats, rng: np.random.Generator) -> Floats:
        """Draw log sigma for each b."""
        low, high = self._ends(log_b)
        places = low + (high - low) * rng.random(len(log_b))
        log_v = np.interp(places, self.cumulative, self.edges)
        return np.clip(0.5 * (log_b - log_v), *self.bounds)

    def log_pdf(self, log_sigma: Floats, log_b: Floats) -> Floats:
        """Log density of log sigma given b; -inf outside of its bounds."""
        low, high = self._ends(log_b)
        log_v = log_b - 2.0 * log_sigma
        width = self.edges[1] - self.edges[0]
        cell = np.clip(((log_v - self.edges[0]) / width), 0, N_CONDITIONAL - 1).astype(np.int64)
        inside = (log_sigma >= self.bounds[0]) & (log_sigma <= self.bounds[1])
        # Two for d log v = -2 du.
        value = self.log_density[cell] + log(2.0) - np.log(high - low)
        return np.where(inside, value, -np.inf)


def log_sigma_integral(a: float, b: float, low: float, high: float) -> float:
    r"""Return :math:`\log \int e^{a u - b e^{-2u}} du` between two bounds, by Simpson's rule.

    Examples
    --------
    >>> round(log_sigma_integral(1.0, 0.0, -1.0, 1.0), 8) == round(float(np.log(2 * np.sinh(1))), 8)
    True
    """
    low, mode, high = narrow(a, b, np.array([low, high]))
    top = float(log_kernel(a, b, np.array(mode)))
    pieces = [np.linspace(low, mode, 2001), np.linspace(mode, high, 2001)]
    integrals = [simpson(np.exp(log_kernel(a, b, u) - top), x=u) for u in pieces if u[-1] > u[0]]
    return top + float(np.log(sum(integrals)))
