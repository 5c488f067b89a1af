r"""How measurements scatter around a law: a noise model is a row of `NOISES`.

All that knows a noise model's distribution stands here. A row says how it weighs residuals and
derivatives, whether its size, sigma, is a parameter, and what its density is, in NumPy and in PyMC.

Weighed residuals :math:`w_i (y_i - f_i)` are those that a noise of one size would leave; with
their sum of squares S, the fit, the proposal and the surface's volume are the same for all rows.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log, pi
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid, simpson
from scipy.special import ndtr, ndtri

from pmsr.data import Data

Floats = NDArray[np.float64]
Columns: TypeAlias = Mapping[str, Floats]
"""What a noise model knows of each row, besides the target: known errors, for instance."""

N_GRID = 1024  # cells of the histogram from which log sigma is drawn
N_CONDITIONAL = 4096  # cells of the histogram of log v
FLOOR = 1e-6  # of a histogram's mass, spread evenly: no cell is impossible
N_SIGMA = 20_001  # grid points of log sigma, for equations without parameters
N_NEWTON = 100  # steps; draws that differ by tens of orders of magnitude need other ones
N_ORDERED = 66  # halvings of the order of all floating-point numbers


class Noise:
    """A noise model: normal noise, of which other rows change what is different.

    Rows keep no data. What they know of each row of a table, such as its error, comes from the
    data by `columns` and returns to them as ``columns``.
    """

    name = "gaussian"

    has_sigma = True
    """Whether the size of the noise is a parameter; if not, sigma is 1 for weighed residuals."""

    def columns(self, data: Data) -> Columns:
        """Return what the noise model knows of each row."""
        return {}

    def weights(self, data: Data) -> Floats | None:
        """Return the weights of residuals, of shape (N,); None if all are 1."""
        return None

    def n_training(self, n_parameters: int, sigma_power: int) -> int:
        """Return the least number of observations whose likelihood can be normalised.

        The number of parameters, one more for a sigma, and one for its flat prior to be
        integrable at infinity: see :meth:`pmsr.Settings.resolve_gamma`.
        """
        return n_parameters + (2 - sigma_power if self.has_sigma else 0)

    def scale(self, bounds: tuple[float, float], power: int) -> "Scale":
        """Return the prior of sigma."""
        return FreeScale(bounds, power) if self.has_sigma else KnownScale()

    def log_likelihood(self, n: int, log_weight: float, square: Any, log_sigma: Any) -> Any:
        r"""Return log L from the sum of squares S of weighed residuals.

        Parameters
        ----------
        n
            Number of observations.
        log_weight
            Sum of the logarithms of the weights.
        square, log_sigma
            S and log sigma, of equal shapes.
        """
        value = -0.5 * n * log(2.0 * pi) - n * log_sigma
        return value - 0.5 * square * np.exp(-2.0 * log_sigma) + log_weight

    def log_density(self, y: Floats, mu: Floats, sigma: Floats, columns: Columns) -> Floats:
        """Return the log density of each observation; all shapes are broadcast."""
        return -0.5 * ((y - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * math.log(2 * math.pi)

    def draw(self, mu: Floats, sigma: Floats, columns: Columns, rng: np.random.Generator) -> Floats:
        """Draw new observations of the same rows; all shapes are broadcast."""
        return np.asarray(mu + sigma * rng.standard_normal(mu.shape))

    def new_sigma(self, sigma: Floats, columns: Columns) -> Floats:
        """Return the size of the noise of a new observation, for each draw of sigma."""
        return sigma

    def spread(self, mu: Floats, sigma: Floats) -> Floats:
        """Return the standard deviations of new observations, broadcast against mu.

        Parameters
        ----------
        mu, sigma
            Of shapes (n_draws, n_points) and (n_draws,), sigma from `new_sigma`.
        """
        return sigma[:, None]

    def mixture_quantile(
        self, probability: float, mu: Floats, sigma: Floats, weights: Floats | None = None
    ) -> Floats:
        """Return the quantile of new observations over all draws, for each column of mu."""
        return mixture_quantile(probability, mu, sigma, weights)

    # Any: PyTensor's variables.
    def observe(self, mu: Any, sigma: Any, y: Any, columns: Mapping[str, Any]) -> Any:
        """Add the observations ``y`` to the PyMC model in context.

        Sigma is None where it is not a parameter.
        """
        return pm.Normal("y", mu, sigma, observed=y)


GAUSSIAN = Noise()

NOISES: dict[str, Noise] = {GAUSSIAN.name: GAUSSIAN}
"""The noise models by name: what ``Settings(noise=...)`` may be."""


def find_noise(name: str) -> Noise:
    """Return a row by its name.

    Examples
    --------
    >>> find_noise("cauchy")
    Traceback (most recent call last):
        ...
    ValueError: Unknown noise 'cauchy'. Available: gaussian.
    """
    if name not in NOISES:
        raise ValueError(f"Unknown noise {name!r}. Available: {', '.join(NOISES)}.")
    return NOISES[name]


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

    def law(self, m: int, n: int, square: float, phi: float) -> SigmaLaw:
        """Return the distribution of log sigma."""

    def conditional(
        self, m: int, n: int, phi: float, log_b_range: tuple[float, float]
    ) -> ConditionalLaw:
        """Return the distributions of log sigma for all sums of squares."""

    def log_integral(self, m: int, n: int, square: float, phi: float) -> float:
        """Return the log of the integral over log sigma, exact."""

    def draw(self, n: int, square: float, strata: Floats) -> Floats:
        """Return quantiles of sigma at temperature 1, where there are no parameters."""

    def largest_square(self, n: int, square: float, nats: float) -> float:
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
    WIDTH = 6.0  # of the defensive parts, in units of log sigma

    def _exponents(self, m: int, n: int, square: float, phi: float) -> tuple[float, float]:
        return m + 1 - self.power - phi * n, phi * square / 2.0

    def law(self, m: int, n: int, square: float, phi: float) -> "LogSigma":
        """Return the distribution of log sigma, as a histogram."""
        return LogSigma.of(*self._exponents(m, n, square, phi), np.log(self.bounds))

    def conditional(
        self, m: int, n: int, phi: float, log_b_range: tuple[float, float]
    ) -> "ScaleLaw":
        """Return the distributions of log sigma for all sums of squares."""
        a = m + 1 - self.power - phi * n
        return ScaleLaw(a, log_b_range, np.log(self.bounds))

    def log_integral(self, m: int, n: int, square: float, phi: float) -> float:
        """Return the log of the integral over log sigma, by Simpson's rule."""
        low, high = np.log(self.bounds)
        return log_sigma_integral(*self._exponents(m, n, square, phi), low, high)

    def draw(self, n: int, square: float, strata: Floats) -> Floats:
        """Return quantiles of sigma, by the inverse of its distribution function."""
        a, b = self._exponents(0, n, square, 1.0)
        low, _, high = narrow(a, b, np.log(self.bounds))
        u = np.linspace(low, high, N_SIGMA)
        log_density = log_kernel(a, b, u)
        cumulative = cumulative_trapezoid(np.exp(log_density - log_density.max()), u, initial=0)
        return np.asarray(np.exp(np.interp(strata * cumulative[-1], cumulative, u)))

    def largest_square(self, n: int, square: float, nats: float) -> float:
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


@dataclass(frozen=True)
class KnownScale:
    """Sigma that is 1: no parameter."""

    is_free = False
    width = 0.0
    log_bulk = 0.0

    def law(self, m: int, n: int, square: float, phi: float) -> "Known":
        """Return the point where log sigma is."""
        return Known(-phi * square / 2.0)

    def conditional(self, m: int, n: int, phi: float, log_b_range: tuple[float, float]) -> "Known":
        """Return the same point."""
        return Known(0.0)

    def log_integral(self, m: int, n: int, square: float, phi: float) -> float:
        """Return what the likelihood is there."""
        return -phi * square / 2.0

    def draw(self, n: int, square: float, strata: Floats) -> Floats:
        """Return ones."""
        return np.ones_like(strata)

    def largest_square(self, n: int, square: float, nats: float) -> float:
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
        middle = log_kernel(a, b, 0.5 * (edges[1:] + edges[:-1]))
        top = float(middle.max())
        # A floor keeps every cell possible: the true noise may be larger than the minimum's.
        weight = np.exp(middle - top) + 1e-6
        total = float(weight.sum())
        width = (high - low) / N_GRID
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


def weighted_mean(values: NDArray[Any], weights: Floats | None) -> Floats:
    """Mean of each column."""
    if weights is None:
        return np.asarray(values.mean(axis=0))
    # Not a matrix product: its last digits depend on the number of threads.
    return np.asarray(np.sum(weights[:, None] * values, axis=0))


def mixture_quantile(
    probability: float, mu: Floats, sigma: Floats, weights: Floats | None = None
) -> Floats:
    r"""Quantile of the mixture :math:`\sum_s w_s N(\mu_s, \sigma_s)`, for each column of mu.

    Parameters
    ----------
    probability
        In (0, 1).
    mu, sigma
        Means, of shape (n_draws, n_points), and standard deviations, of shape (n_draws,).
    weights
        Their weights w, of shape (n_draws,), which add up to one; by default 1/n_draws.

    Returns
    -------
    ndarray
        Shape (n_points,).

    Notes
    -----
    Newton's method, which bisection takes over where a step would leave the bracket: the quantile
    lies between the least and the largest of the components' own quantiles. Where these are so
    many orders of magnitude apart that halving does not end, the ordered numbers are halved.

    Examples
    --------
    >>> mixture_quantile(0.5, np.array([[1.0], [2.0]]), np.array([0.1, 0.1]))
    array([1.5])
    """
    width = sigma[:, None]
    ends = mu + width * ndtri(probability)
    low, high = ends.min(axis=0), ends.max(axis=0)
    mean = weighted_mean(mu, weights)
    with np.errstate(over="ignore"):
        spread = np.sqrt(
            weighted_mean((mu - mean) ** 2, weights) + weighted_mean(width**2, weights)
        )
    spread = np.where(np.isfinite(spread), spread, high - low)  # squares of 1e160 are out of range
    value = np.clip(mean + spread * ndtri(probability), low, high)
    for k in range(N_NEWTON + N_ORDERED):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = (value - mu) / width
            missing = probability - weighted_mean(ndtr(z), weights)
            low, high = np.where(missing >= 0.0, value, low), np.where(missing <= 0.0, value, high)
            density = weighted_mean(np.exp(-0.5 * z * z) / width, weights) / math.sqrt(
                2.0 * math.pi
            )
            new = value + missing / density
        if k < N_NEWTON:
            new = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        else:
            new = _between(low, high)
        step, value = np.abs(new - value), new
        if np.all(step <= 1e-10 * sigma.min() + 1e-15 * np.abs(value)):
            break
    return np.asarray(value)


def _between(low: Floats, high: Floats) -> Floats:
    """Halve the number of floating-point numbers between two: 64 times leave none."""
    bits = np.stack([low, high]).view(np.int64)
    least = np.iinfo(np.int64).min
    order = np.where(bits < 0, least - bits, bits)
    middle = (order[0] >> 1) + (order[1] >> 1)
    return np.where(middle < 0, least - middle, middle).view(np.float64)
