"""Quantiles of new observations over all draws: mixtures of one distribution, moved and scaled."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri, pdtr, stdtrit

Floats = NDArray[np.float64]

NARROW = 1e-3  # of an interval, in units of the noise
N_NEWTON = 100  # steps; draws that differ by tens of orders of magnitude need other ones
N_ORDERED = 66  # halvings of the order of all floating-point numbers


class Standard(NamedTuple):
    """A distribution around 0, of size 1."""

    cdf: Callable[[Floats], Floats]
    pdf: Callable[[Floats], Floats]
    quantile: Callable[[Any], Any]
    log_cdf: Callable[[Floats], Floats]


STUDENT_NU = 4  # even: the distribution function is a root and a polynomial


def _student_cdf(z: Floats) -> Floats:
    share = z / np.sqrt(STUDENT_NU + z * z)
    return np.asarray(0.5 + 0.75 * share * (1.0 - share * share / 3.0))


def _student_pdf(z: Floats) -> Floats:
    return np.asarray(0.375 * (1.0 + z * z / STUDENT_NU) ** -2.5)


def _log_student_cdf(z: Floats) -> Floats:
    cosine = np.abs(z) / np.sqrt(STUDENT_NU + z * z)
    # 1 - cosine, without cancellation.
    rest = STUDENT_NU / ((STUDENT_NU + z * z) * (1.0 + cosine))
    tail = 0.25 * rest * rest * (3.0 - rest)
    return np.asarray(np.where(z <= 0.0, np.log(tail), np.log1p(-tail)))


NORMAL = Standard(ndtr, lambda z: np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi), ndtri, log_ndtr)
STUDENT = Standard(_student_cdf, _student_pdf, lambda p: stdtrit(STUDENT_NU, p), _log_student_cdf)


def log_probability(low: Floats, high: Floats, standard: Standard = NORMAL) -> Floats:
    """Return the log of the probability between two values; all shapes are broadcast.

    Examples
    --------
    >>> log_probability(np.array([-1.0, 40.0]), np.array([1.0, 41.0])).round(3).tolist()
    [-0.382, -804.608]
    """
    flip = low + high > 0.0  # to the lower tail, where differences are exact
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    with np.errstate(all="ignore"):
        ends = standard.log_cdf(low), standard.log_cdf(high)
        between = ends[1] + np.log(-np.expm1(ends[0] - ends[1]))
        middle = 0.5 * (low + high)
        narrow = np.log(standard.pdf(middle) * (high - low))
    # Of what is narrow, the difference would be rounding; of the density there, a tenth of a
    # millionth is missing.
    return np.asarray(np.where(high - low < NARROW, narrow, between))


def weighted_mean(values: NDArray[Any], weights: Floats | None) -> Floats:
    """Mean of each column."""
    if weights is None:
        return np.asarray(values.mean(axis=0))
    # Not a matrix product: its last digits depend on the number of threads.
    return np.asarray(np.sum(weights[:, None] * values, axis=0))


def mixture_quantile(
    probability: float,
    mu: Floats,
    sigma: Floats,
    weights: Floats | None = None,
    standard: Standard = NORMAL,
) -> Floats:
    r"""Quantile of the mixture :math:`\sum_s w_s N(\mu_s, \sigma_s)`, for each column of mu.

    Parameters
    ----------
    probability
        In (0, 1).
    mu, sigma
        Means, of shape (n_draws, n_points), and sizes, of shape (n_draws,) or that of the means.
    weights
        Their weights w, of shape (n_draws,), which add up to one; by default 1/n_draws.
    standard
        What is moved and scaled, the normal distribution by default.

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
    width = sigma[:, None] if sigma.ndim == 1 else sigma
    ends = mu + width * standard.quantile(probability)
    low, high = ends.min(axis=0), ends.max(axis=0)
    mean = weighted_mean(mu, weights)
    with np.errstate(over="ignore"):
        spread = np.sqrt(
            weighted_mean((mu - mean) ** 2, weights) + weighted_mean(width**2, weights)
        )
    spread = np.where(np.isfinite(spread), spread, high - low)  # squares of 1e160 are out of range
    value = np.clip(mean + spread * standard.quantile(probability), low, high)
    for k in range(N_NEWTON + N_ORDERED):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = (value - mu) / width
            missing = probability - weighted_mean(standard.cdf(z), weights)
            low, high = np.where(missing >= 0.0, value, low), np.where(missing <= 0.0, value, high)
            density = weighted_mean(standard.pdf(z) / width, weights)
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


def poisson_quantile(probability: float, mu: Floats, weights: Floats | None = None) -> Floats:
    """Quantile of a mixture of Poisson distributions, for each column of their means.

    Examples
    --------
    >>> poisson_quantile(0.5, np.array([[3.0, 0.1]]))
    array([3., 0.])
    """
    # Of the largest mean; the normal tail is far beyond.
    low = np.full(mu.shape[1], -1.0)
    high = np.ceil(mu.max(axis=0) + 12.0 * np.sqrt(mu.max(axis=0) + 1.0) + 12.0)
    while np.any(high - low > 1.0):
        middle = np.floor(0.5 * (low + high))
        enough = weighted_mean(pdtr(middle, np.clip(mu, 0.0, None)), weights) >= probability
        done = high - low <= 1.0
        high = np.where(enough & ~done, middle, high)
        low = np.where(~enough & ~done, middle, low)
    return np.asarray(high)
