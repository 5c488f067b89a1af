r"""How measurements scatter around a law: a noise model is a row of `NOISES`.

All that knows a noise model's distribution stands here. A row says what its density is, in NumPy
and in PyMC, and in which space it is nearly normal: a link h, logarithm or root, that is applied
to predictions and measurements alike, and weights w. Residuals :math:`w_i (h(y_i) - h(f_i))` are
those that a normal noise of one size would leave: with their sum of squares S, the fit, the
proposal and the surface's volume, whose weights are :math:`w_i h'(f_i)`, are the same for all rows.
What the exact density adds to that, the importance weights know.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy.special import gammaln, pdtr, pdtrc

from pmsr.data import Data
from pmsr.evidence.mixture import (
    NORMAL,
    STUDENT,
    STUDENT_NU,
    Standard,
    log_probability,
    mixture_quantile,
    poisson_quantile,
)
from pmsr.evidence.scale import FreeScale, KnownScale, Scale

Floats = NDArray[np.float64]
Columns: TypeAlias = Mapping[str, Floats]
"""What a noise model knows of each row, besides the target: known errors, for instance."""

GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)  # whose multiples fill (0, 1) evenly, but for whole parts
LOG_2_PI = math.log(2.0 * math.pi)
N_ROUNDS = 60  # of a fixed-point iteration for a scale, which gains a digit in two or three


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(values)


def _sqrt(values: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.sqrt(values)


class Link(NamedTuple):
    """A function of the law in whose values noise is nearly normal.

    Parameters
    ----------
    operator
        Its name among the operators of equations.
    apply
        The function; NaN where it has no value.
    inverse
        What undoes it.
    slope
        Size of its derivative.
    """

    operator: str
    apply: Callable[[Floats], Floats]
    inverse: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]


LOG = Link("log", _log, np.exp, lambda values: np.asarray(1.0 / np.abs(values)))
ROOT = Link("sqrt", _sqrt, np.square, lambda values: np.asarray(0.5 / np.sqrt(values)))


class Noise:
    """A noise model: normal noise, of which other rows change what is different.

    Rows keep no data. What they know of each row of a table, such as its error, comes from the
    data by `columns` and returns to them as ``columns``.
    """

    name = "gaussian"

    has_sigma = True
    """Whether the size of the noise is a parameter; if not, sigma is 1 for weighed residuals."""

    is_exact = True
    """Whether the density is normal in the space in which residuals are weighed."""

    needs_tuning = False
    """Whether the weights of residuals follow from a fit, of which there are then several."""

    uses_slopes = False
    """Whether errors of the variables count, by the slopes of the law at each row."""

    link: Link | None = None
    """What is applied to predictions; None if they are taken as they are."""

    standard: Standard = NORMAL
    """The distribution of a new observation, less its mean, in units of its size."""

    is_mirrored = False
    """Whether the density alone would let predictions have the wrong sign."""

    words = "normal noise of one size"

    @property
    def has_one_size(self) -> bool:
        """Whether noise is normal and of one size, so that residuals are told as they are."""
        return self.is_exact and self.has_sigma and self.link is None

    @property
    def is_relative(self) -> bool:
        """Whether sigma is a pure number: that of the logarithm of the target."""
        return self.link is LOG

    def check(self, data: Data) -> None:
        """Refuse measurements that this noise cannot have made."""

    def columns(self, data: Data) -> Columns:
        """Return what the noise model knows of each row."""
        return {}

    def weights(self, data: Data) -> Floats | None:
        """Return the weights of residuals, of shape (N,); None if all are 1."""
        return None

    def signs(self, data: Data) -> Floats | None:
        """Return the signs that predictions must have, of shape (N,); None if any will do."""
        return None

    def transform(self, y: Floats) -> Floats:
        """Return the target in the space in which the noise is nearly normal."""
        return y

    def apply_link(self, values: Floats, data: Data) -> Floats:
        """Return predictions in that space; NaN where they cannot be."""
        if self.link is None:
            return values
        signs = self.signs(data)
        return self.link.apply(values if signs is None else values * signs)

    def middle(self, y: Floats, counts: Floats) -> float:
        """Return the constant law that suits measurements, or nearly."""
        return float(np.sum(counts * y) / np.sum(counts))

    def log_jacobian(self, data: Data) -> Floats:
        """Return the log density of each row of the target that the normal one lacks."""
        return np.zeros(len(data.y))

    def n_training(self, n_parameters: int, sigma_power: int) -> int:
        """Return the least number of observations whose likelihood can be normalised.

        The number of parameters, one more for a sigma, and one for its flat prior to be
        integrable at infinity: see :meth:`pmsr.Settings.resolve_gamma`.
        """
        return n_parameters + (2 - sigma_power if self.has_sigma else 0)

    def scale(self, bounds: tuple[float, float], power: int) -> Scale:
        """Return the prior of sigma."""
        return FreeScale(bounds, power) if self.has_sigma else KnownScale()

    def tune(
        self, residuals: Floats, columns: Columns, counts: Floats, least: float
    ) -> tuple[Floats | None, float]:
        """Return weights that suit the residuals of a fit, and the most likely sigma.

        Parameters
        ----------
        residuals
            Measurements less predictions, of shape (N,).
        columns
            What is known of each row.
        counts
            How often each was observed.
        least
            Lower bound of sigma.
        """
        return None, float(np.sqrt(np.sum(counts * residuals**2) / np.sum(counts)))

    def log_density(self, y: Floats, mu: Floats, sigma: Floats, columns: Columns) -> Floats:
        """Return the log density of each observation; all shapes are broadcast."""
        return -0.5 * ((y - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * LOG_2_PI

    def most_likely_sigma(self, y: Floats, mu: Floats, counts: Floats, columns: Columns) -> Floats:
        """Return the sigma at which the likelihood of each row of mu, of shape (n, N), is largest.

        Of shape (n, 1).
        """
        total = np.sum(counts * (y - mu) ** 2, axis=1, keepdims=True)
        return np.asarray(np.sqrt(total / np.sum(counts)))

    def draw(self, mu: Floats, sigma: Floats, columns: Columns, rng: np.random.Generator) -> Floats:
        """Draw new observations of the same rows; all shapes are broadcast."""
        return np.asarray(mu + sigma * rng.standard_normal(mu.shape))

    def residuals(self, y: Floats, mu: Floats, sigma: Floats | float, columns: Columns) -> Floats:
        """Return residuals in units of their noise, about standard normal: for plots and tests."""
        return self.standardize(y, mu, sigma, columns)

    def standardize(self, y: Floats, mu: Floats, sigma: Floats | float, columns: Columns) -> Floats:
        """Return what has the distribution ``standard``."""
        return np.asarray((y - mu) / sigma)

    def new_sigma(self, sigma: Floats, columns: Columns, counts: Floats) -> Floats:
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
        return mixture_quantile(probability, mu, sigma, weights, self.standard)

    # Any: PyTensor's variables, and PyMC's distributions.
    def distribution(self, mu: Any, sigma: Any, columns: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return PyMC's distribution of the observations and its arguments.

        Sigma is None where it is not a parameter.
        """
        return pm.Normal, {"mu": mu, "sigma": sigma}

    def observe(
        self, mu: Any, sigma: Any, y: Any, columns: Mapping[str, Any], **options: Any
    ) -> Any:
        """Add the observations ``y`` to the PyMC model in context."""
        kind, arguments = self.distribution(mu, sigma, columns)
        return kind("y", **arguments, observed=y, **options)


class KnownErrors(Noise):
    """Normal noise whose size is known for every row: sigma is not a parameter."""

    name = "known"
    has_sigma = False
    words = "normal noise of the given errors"

    def columns(self, data: Data) -> Columns:
        return {"y_err": _errors(data)}

    def weights(self, data: Data) -> Floats | None:
        return 1.0 / _errors(data)

    def log_jacobian(self, data: Data) -> Floats:
        return -np.log(_errors(data))

    def log_density(self, y: Floats, mu: Floats, sigma: Floats, columns: Columns) -> Floats:
        return super().log_density(y, mu, sigma * columns["y_err"], columns)

    def most_likely_sigma(self, y: Floats, mu: Floats, counts: Floats, columns: Columns) -> Floats:
        return np.ones((len(mu), 1))

    def draw(self, mu: Floats, sigma: Floats, columns: Columns, rng: np.random.Generator) -> Floats:
        return super().draw(mu, sigma * columns["y_err"], columns, rng)

    def residuals(self, y: Floats, mu: Floats, sigma: Floats | float, columns: Columns) -> Floats:
        return np.asarray((y - mu) / columns["y_err"])

    def new_sigma(self, sigma: Floats, columns: Columns, counts: Floats) -> Floats:
        # A new observation's error is not known: that of a typical one.
        return np.asarray(sigma * np.sqrt(np.average(columns["y_err"] ** 2, weights=counts)))

    def distribution(self, mu: Any, sigma: Any, columns: Mapping[str, Any]) -> tuple[Any, Any]:
        return pm.Normal, {"mu": mu, "sigma": columns["y_err"]}


class TunedErrors(KnownErrors):
    """Errors that are whole only at a fit: until then no row weighs more than another."""

    needs_tuning = True
    is_exact = False

    def weights(self, data: Data) -> Floats | None:
        return None

    def log_jacobian(self, data: Data) -> Floats:
        return np.zeros(len(data.y))


class ExtraNoise(TunedErrors):
    """Known errors, and a noise of one size that adds to them in quadrature."""

    name = "extra"
    has_sigma = True
    words = "normal noise of the given errors and, in quadrature, of a size that is inferred"

    def tune(
        self, residuals: Floats, columns: Columns, counts: Floats, least: float
    ) -> tuple[Floats | None, float]:
        errors = columns["y_err"]
        sigma = float(_extra_sigma(residuals[None, :], errors, counts)[0, 0])
        sigma = max(sigma, least) if self.uses_slopes else sigma  # errors may all be zero
        return 1.0 / np.sqrt(errors**2 + sigma**2), sigma

    def log_density(self, y: Floats, mu: Floats, sigma: Floats, columns: Columns) -> Floats:
        return Noise.log_density(self, y, mu, np.hypot(sigma, columns["y_err"]), columns)

    def most_likely_sigma(self, y: Floats, mu: Floats, counts: Floats, columns: Columns) -> Floats:
        return _extra_sigma(y - mu, columns["y_err"], counts)

    def draw(self, mu: Floats, sigma: Floats, columns: Columns, rng: np.random.Generator) -> Floats:
        return Noise.draw(self, mu, np.hypot(sigma, columns["y_err"]), columns, rng)

    def residuals(self, y: Floats, mu: Floats, sigma: Floats | float, columns: Columns) -> Floats:
        return np.asarray((y - mu) / np.hypot(sigma, columns["y_err"]))

    def new_sigma(self, sigma: Floats, columns: Columns, counts: Floats) -> Floats:
        return np.asarray(np.hypot(sigma, super().new_sigma(np.ones(1), columns, counts)))

    def distribution(self, mu: Any, sigma: Any, columns: Mapping[str, Any]) -> tuple[Any, Any]:
        return pm.Normal, {"mu": mu, "sigma": (sigma**2 + columns["y_err"] ** 2) ** 0.5}


class KnownInputErrors(TunedErrors):
    r"""Known errors of the variables, by effective variance, and of the target.

    An error of a variable shifts the law by its slope, so that the variance of a row is
    :math:`s_i^2 + \sum_j (\partial f/\partial x_{ij})^2 e_{ij}^2`. It depends on the parameters:
    ``columns["y_err"]`` is then its root for each law and each theta, from
    `Problem.columns_at`, and the weights of residuals are those at a fit.

    References
    ----------
    Orear (1982), doi:10.1119/1.12972.
    """

    name = "known_inputs"
    uses_slopes = True
    words = "normal noise of the given errors, those of the variables by the slope of the law"

    def columns(self, data: Data) -> Columns:
        return {} if data.y_err is None else {"y_err": data.y_err}

    def tune(
        self, residuals: Floats, columns: Columns, counts: Floats, least: float
    ) -> tuple[Floats | None, float]:
        with np.errstate(divide="ignore"):
            return 1.0 / columns["y_err"], 1.0


class InputErrors(ExtraNoise):
    """The same, and a noise of one size that adds in quadrature."""

    name = "inputs"
    uses_slopes = True
    words = (
        "normal noise of a size that is inferred and, in quadrature, of the given errors, those of "
        "the variables by the slope of the law"
    )

    def columns(self, data: Data) -> Columns:
        return {} if data.y_err is None else {"y_err": data.y_err}

    def new_sigma(self, sigma: Floats, columns: Columns, counts: Floats) -> Floats:
        return super().new_sigma(sigma, columns, counts) if columns else sigma


class Student(Noise):
    r"""Student's noise with :math:`\nu = 4`: outliers are expected, and count less.

    Sigma is the scale; the standard deviation is :math:`\sqrt 2` times that. With fewer degrees of
    freedom log q would lean on the region's radius.
    """

    name = "student"
    needs_tuning = True
    is_exact = False
    standard = STUDENT
    words = f"Student noise with {STUDENT_NU} degrees of freedom, for outliers"

    _constant: ClassVar[float] = float(
        gammaln((STUDENT_NU + 1) / 2)
        - gammaln(STUDENT_NU / 2)
        - 0.5 * math.log(STUDENT_NU * math.pi)
    )

    def middle(self, y: Floats, counts: Floats) -> float:
        """Return the median, which outliers do not move."""
        order = np.argsort(y, kind="stable")
        seen = np.cumsum(counts[order])
        ends = [order[np.searchsorted(seen, 0.5 * seen[-1], side)] for side in ("left", "right")]
        return float(np.mean(y[ends]))

    def tune(
        self, residuals: Floats, columns: Columns, counts: Floats, least: float
    ) -> tuple[Floats | None, float]:
        sigma = float(_student_sigma(residuals[None, :], counts)[0, 0])
        ratio = residuals / sigma if sigma > 0.0 else np.zeros_like(residuals)
        return np.sqrt((STUDENT_NU + 1) / (STUDENT_NU + ratio**2)), sigma

    def log_density(self, y: Floats, mu: Floats, sigma: Floats, columns: Columns) -> Floats:
        # In place: with many rows, new arrays take longer than what is computed.
        log = np.asarray((y - mu) / sigma)
        log *= log
        log /= STUDENT_NU
        np.log1p(log, out=log)
        log *= -0.5 * (STUDENT_NU + 1)
        log += self._constant - np.log(sigma)
        return log

    def most_likely_sigma(self, y: Floats, mu: Floats, counts: Floats, columns: Columns) -> Floats:
        return _student_sigma(y - mu, counts)

    def draw(self, mu: Floats, sigma: Floats, columns: Columns, rng: np.random.Generator) -> Floats:
        return np.asarray(mu + sigma * rng.standard_t(STUDENT_NU, mu.shape))

    def residuals(self, y: Floats, mu: Floats, sigma: Floats | float, columns: Columns) -> Floats:
        z = self.standardize(y, mu, sigma, columns)
        # In the lower tail the probability is known to all digits.
        return np.asarray(-np.sign(z) * NORMAL.quantile(np.exp(STUDENT.log_cdf(-np.abs(z)))))

    def spread(self, mu: Floats, sigma: Floats) -> Floats:
        return np.asarray(math.sqrt(STUDENT_NU / (STUDENT_NU - 2)) * sigma[:, None])

    def distribution(self, mu: Any, sigma: Any, columns: Mapping[str, Any]) -> tuple[Any, Any]:
        return pm.StudentT, {"nu": STUDENT_NU, "mu": mu, "sigma": sigma}


class Proportional(Noise):
    """Normal noise in proportion to the prediction: sigma is the relative error.

    Predictions have the sign of the measurements: noise would vanish where one crosses zero.
    """

    name = "proportional"
    is_exact = False
    is_mirrored = True
    link = LOG
    words = "normal noise in proportion to the prediction"

    def check(self, data: Data) -> None:
        zero = np.flatnonzero(data.y == 0.0)
        if len(zero):
            raise ValueError(
                f'noise="proportional" needs a target that is never 0, got {data.target!r} = 0 in '
                f"row {zero[0]} (counted from 0): its noise would have no size there. Leave such "
                'rows out, or use noise="gaussian".'
            )

    def signs(self, data: Data) -> Floats | None:
        return None if np.all(data.y > 0.0) else np.sign(data.y)

    def transform(self, y: Floats) -> Floats:
        return np.log(np.abs(y))

    def log_density(self, y: Floats, mu: Floats, sigma: Floats, columns: Columns) -> Floats:
        return super().log_density(y, mu, sigma * np.abs(mu), columns)

    def most_likely_sigma(self, y: Floats, mu: Floats, counts: Floats, columns: Columns) -> Floats:
        total = np.sum(counts * ((y - mu) / mu) ** 2, axis=1, keepdims=True)
        return np.asarray(np.sqrt(total / np.sum(counts)))

    def draw(self, mu: Floats, sigma: Floats, columns: Columns, rng: np.random.Generator) -> Floats:
        return super().draw(mu, sigma * np.abs(mu), columns, rng)

    def standardize(self, y: Floats, mu: Floats, sigma: Floats | float, columns: Columns) -> Floats:
        return np.asarray((y - mu) / (sigma * np.abs(mu)))

    def spread(self, mu: Floats, sigma: Floats) -> Floats:
        return np.asarray(sigma[:, None] * np.abs(mu))

    def mixture_quantile(
        self, probability: float, mu: Floats, sigma: Floats, weights: Floats | None = None
    ) -> Floats:
        return mixture_quantile(probability, mu, sigma[:, None] * np.abs(mu), weights)

    def distribution(self, mu: Any, sigma: Any, columns: Mapping[str, Any]) -> tuple[Any, Any]:
        return pm.Normal, {"mu": mu, "sigma": sigma * abs(mu)}


class LogNormal(Noise):
    """Noise that multiplies: the logarithm of the target is normal around that of the law.

    The law is the median of a measurement, not its mean.
    """

    name = "lognormal"
    link = LOG
    words = "log-normal noise, a factor"

    def check(self, data: Data) -> None:
        wrong = np.flatnonzero(data.y <= 0.0)
        if len(wrong):
            raise ValueError(
                f'noise="lognormal" needs a positive target, got {data.target!r} = '
                f"{data.y[wrong[0]]:g} in row {wrong[0]} (counted from 0). Leave such rows out, or "
                'use noise="gaussian" or "proportional".'
            )

    def transform(self, y: Floats) -> Floats:
        return np.log(y)

    def log_jacobian(self, data: Data) -> Floats:
        return -np.log(data.y)

    def log_density(self, y: Floats, mu: Floats, sigma: Floats, columns: Columns) -> Floats:
        return super().log_density(np.log(y), _log(mu), sigma, columns) - np.log(y)

    def most_likely_sigma(self, y: Floats, mu: Floats, counts: Floats, columns: Columns) -> Floats:
        return super().most_likely_sigma(np.log(y), _log(mu), counts, columns)

    def draw(self, mu: Floats, sigma: Floats, columns: Columns, rng: np.random.Generator) -> Floats:
        return np.asarray(mu * np.exp(sigma * rng.standard_normal(mu.shape)))

    def standardize(self, y: Floats, mu: Floats, sigma: Floats | float, columns: Columns) -> Floats:
        return np.asarray((_log(y) - _log(mu)) / sigma)

    def spread(self, mu: Floats, sigma: Floats) -> Floats:
        square = (sigma**2)[:, None]
        return np.asarray(np.abs(mu) * np.sqrt(np.expm1(square) * np.exp(square)))

    def mixture_quantile(
        self, probability: float, mu: Floats, sigma: Floats, weights: Floats | None = None
    ) -> Floats:
        return np.exp(mixture_quantile(probability, _log(mu), sigma, weights))

    def distribution(self, mu: Any, sigma: Any, columns: Mapping[str, Any]) -> tuple[Any, Any]:
        return Factors, {"mu": pm.math.log(pm.math.maximum(mu, 0.0)), "sigma": sigma}


class FactorsRV(type(pm.LogNormal.rv_op)):  # type: ignore[misc]
    """What cannot be drawn where the law has no logarithm: NaN."""

    def rng_fn(self, rng: np.random.Generator, mu: Any, sigma: Any, size: Any) -> Any:
        return np.where(np.isneginf(mu), np.nan, rng.lognormal(mu, sigma, size))


class Factors(pm.LogNormal):
    """PyMC's log-normal distribution: its density is zero where the law has no logarithm."""

    rv_op = FactorsRV()


class Poisson(Noise):
    """Counts of events, whose mean is the law."""

    name = "poisson"
    has_sigma = False
    is_exact = False
    link = ROOT
    words = "Poisson's counts"

    def check(self, data: Data) -> None:
        wrong = np.flatnonzero((data.y < 0.0) | (data.y != np.round(data.y)))
        if len(wrong):
            raise ValueError(
                f'noise="poisson" needs counts, 0, 1, 2, ..., got {data.target!r} = '
                f"{data.y[wrong[0]]:g} in row {wrong[0]} (counted from 0). If it is a rate, give "
                'the counts themselves; or use noise="gaussian" with y_err.'
            )

    def weights(self, data: Data) -> Floats | None:
        # The root of a count has a standard deviation of a half, whatever the mean.
        return np.full(len(data.y), 2.0)

    def transform(self, y: Floats) -> Floats:
        return np.sqrt(y + 0.375)  # Anscombe's: the best for its variance

    def log_density(self, y: Floats, mu: Floats, sigma: Floats, columns: Columns) -> Floats:
        with np.errstate(all="ignore"):
            events = np.where(y > 0.0, y * np.log(mu), 0.0)
        return np.asarray(np.where(mu >= 0.0, events - mu - gammaln(y + 1.0), -np.inf))

    def most_likely_sigma(self, y: Floats, mu: Floats, counts: Floats, columns: Columns) -> Floats:
        return np.ones((len(mu), 1))

    def draw(self, mu: Floats, sigma: Floats, columns: Columns, rng: np.random.Generator) -> Floats:
        return rng.poisson(np.clip(mu, 0.0, MOST_EVENTS)).astype(np.float64)

    def residuals(self, y: Floats, mu: Floats, sigma: Floats | float, columns: Columns) -> Floats:
        """Return the quantiles of counts as those of a standard normal distribution.

        Each count is spread over its own probability, by a sequence that fills (0, 1) evenly: left
        where they are, a few counts would look like no normal noise whatever the law.

        References
        ----------
        Dunn and Smyth (1996), doi:10.2307/1390802.
        """
        share = np.mod(GOLDEN * np.arange(1.0, len(y) + 1.0), 1.0)
        # In the tail where the count lies, the probability is known to all digits.
        below, up_to = pdtr(np.maximum(y - 1.0, 0.0), mu) * (y > 0.0), pdtr(y, mu)
        beyond, from_it = pdtrc(y, mu), np.where(y > 0.0, pdtrc(np.maximum(y - 1.0, 0.0), mu), 1.0)
        low = NORMAL.quantile(below + share * (up_to - below))
        high = -NORMAL.quantile(from_it + share * (beyond - from_it))
        found = np.where(y > mu, high, low)
        far = 2.0 * (self.transform(y) - np.sqrt(mu))  # where probabilities underflow
        return np.asarray(np.where(np.isfinite(found), found, far))

    def spread(self, mu: Floats, sigma: Floats) -> Floats:
        return np.sqrt(np.clip(mu, 0.0, None))

    def mixture_quantile(
        self, probability: float, mu: Floats, sigma: Floats, weights: Floats | None = None
    ) -> Floats:
        return poisson_quantile(probability, mu, weights)

    def distribution(self, mu: Any, sigma: Any, columns: Mapping[str, Any]) -> tuple[Any, Any]:
        return Counts, {"mu": mu}


class CountsRV(type(pm.Poisson.rv_op)):  # type: ignore[misc]
    """Counts that are -1 where the law has no mean, where NumPy's would fail."""

    def rng_fn(self, rng: np.random.Generator, mu: Any, size: Any) -> Any:
        known = (mu >= 0.0) & (mu <= MOST_EVENTS)
        return np.where(known, rng.poisson(np.where(known, mu, 0.0), size), -1)


class Counts(pm.Poisson):
    """PyMC's Poisson, of which ``pm.model_to_graphviz`` can find the shape whatever the mean."""

    rv_op = CountsRV()


MOST_EVENTS = 1e18  # beyond, integers end


class InCells(Noise):
    """Noise of whole numbers: the probability of the unit cell around a number, not its density."""

    is_exact = False

    def log_density(self, y: Floats, mu: Floats, sigma: Floats, columns: Columns) -> Floats:
        low, high = (self.standardize(y + end, mu, sigma, columns) for end in (-0.5, 0.5))
        return log_probability(low, high, self.standard)


class GaussianInCells(InCells):
    """Normal noise that was rounded."""


class StudentInCells(InCells, Student):
    """Student's noise that was rounded."""


class ProportionalInCells(InCells, Proportional):
    """Noise in proportion that was rounded."""


class LogNormalInCells(InCells, LogNormal):
    """A factor, rounded."""


GAUSSIAN, KNOWN, EXTRA = Noise(), KnownErrors(), ExtraNoise()
KNOWN_INPUTS, INPUTS = KnownInputErrors(), InputErrors()

NOISES: dict[str, Noise] = {
    row.name: row for row in (GAUSSIAN, Student(), Proportional(), LogNormal(), Poisson())
}
"""The noise models by name: what ``Settings(noise=...)`` may be."""

_WITH_ERRORS: dict[str, Noise] = {row.name: row for row in (KNOWN, EXTRA, KNOWN_INPUTS, INPUTS)}


_IN_CELLS: dict[str, Noise] = {
    row.name: row
    for row in (GaussianInCells(), StudentInCells(), ProportionalInCells(), LogNormalInCells())
}


def of_counts(noise: Noise) -> Noise:
    """Return the row whose density of a count is a probability, as Poisson's is.

    Examples
    --------
    >>> float(of_counts(GAUSSIAN).log_density(*map(np.array, (3.0, 3.0, 1e-3)), {}))
    0.0
    """
    return _IN_CELLS.get(noise.name, noise)


def find_noise(name: str, data: Data | None = None, *, extra_noise: bool = False) -> Noise:
    """Return a row by its name; normal noise of data with errors is a row of its own.

    Examples
    --------
    >>> find_noise("cauchy")
    Traceback (most recent call last):
        ...
    ValueError: Unknown noise 'cauchy'. Available: gaussian, student, proportional, lognormal, poisson.
    """  # noqa: E501
    if name == "auto":
        raise ValueError(
            'noise="auto" is for a search, BayesianSymbolicRegressor(noise="auto"). To weigh '
            f"equations, name one: {', '.join(NOISES)}."
        )
    if name not in NOISES and name not in _WITH_ERRORS:
        raise ValueError(f"Unknown noise {name!r}. Available: {', '.join(NOISES)}.")
    if data is None:
        return (NOISES | _WITH_ERRORS)[name]
    is_normal = name in (GAUSSIAN.name, *_WITH_ERRORS)
    if data.X_err is not None and not is_normal:
        raise ValueError(
            f'X_err goes with noise="gaussian", got noise={name!r}: an error of a variable is '
            "normal, and so is what it does to the target. Leave one of them out."
        )
    if data.y_err is None:
        if extra_noise:
            raise ValueError(
                "extra_noise=True adds to errors that are known, got no y_err. Give y_err, or "
                "leave extra_noise out: the size of the noise is inferred in any case."
            )
        row = (NOISES | _WITH_ERRORS)[name] if data.X_err is None else INPUTS
    elif is_normal and data.X_err is not None:
        row = INPUTS if extra_noise else KNOWN_INPUTS
    elif is_normal:
        row = EXTRA if extra_noise else KNOWN
    else:
        does = (
            "infers how large errors are" if NOISES[name].has_sigma else "says how large errors are"
        )
        raise ValueError(
            f'y_err goes with noise="gaussian", got noise={name!r}, which {does} by itself. Leave '
            "one of them out."
        )
    row.check(data)
    return row


def _errors(data: Data) -> Floats:
    if data.y_err is None:
        raise ValueError("This noise needs the errors of the target. Give y_err.")
    return data.y_err


def _student_sigma(residuals: Floats, counts: Floats) -> Floats:
    """Return the most likely scale of each row of residuals, of shape (n, 1)."""
    # From the median, which outliers do not move.
    squared = residuals**2
    square = np.median(squared, axis=1, keepdims=True)
    square = square + 1e-3 * np.mean(squared, axis=1, keepdims=True)
    total = np.sum(counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(N_ROUNDS):
            terms = squared / square  # and in place, as new arrays take longer than the rest
            terms += STUDENT_NU
            np.divide(STUDENT_NU + 1, terms, out=terms)
            terms *= counts
            terms *= squared
            before, square = square, np.sum(terms, axis=1, keepdims=True) / total
            if np.array_equal(before, square, equal_nan=True):  # to the last bit
                break
    return np.sqrt(np.where(np.all(residuals == 0.0, axis=1, keepdims=True), 0.0, square))


def _extra_sigma(residuals: Floats, errors: Floats, counts: Floats) -> Floats:
    """Return the most likely extra noise of each row of residuals, of shape (n, 1)."""

    def slope(square: Floats) -> Floats:
        variance = errors**2 + square
        return np.sum(counts * (residuals**2 / variance - 1.0) / variance, axis=1, keepdims=True)

    # The likelihood may have several maxima; from above, halving finds the largest sigma's.
    high = np.max(residuals**2, axis=1, keepdims=True)
    low = np.zeros_like(high)
    for _ in range(N_ROUNDS):
        middle = 0.5 * (low + high)
        up = slope(middle) > 0.0
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    return np.sqrt(np.where(high < 1e-12 * np.min(errors) ** 2, 0.0, low))
