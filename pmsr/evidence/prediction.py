"""What an equation predicts: credible and prediction intervals from its posterior."""

import json
import math
import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.data import Constant, check_X
from pmsr.equation.expression import Equation
from pmsr.equation.program import Program, evaluate
from pmsr.evidence.mixture import weighted_mean
from pmsr.evidence.noise import GAUSSIAN, Noise, find_noise
from pmsr.evidence.posterior import sample_posterior
from pmsr.limits import check_time
from pmsr.settings import RandomSeed, Settings

Floats = NDArray[np.float64]

CHUNK = 2**18  # predictions at a time: 2 MB
# Sums and differences of predictions beyond HUGE are out of range: they are divided by 2**ROOM.
ROOM = 64
HUGE = math.ldexp(1.0, 1023 - ROOM)
SUMMARY = ("mean", "std", "credible_low", "credible_high", "prediction_low", "prediction_high")


# X_new, X and y are Any as in `data`; a posterior is Any because its type depends on ArviZ.
def predict(
    equation_or_posterior: Any,
    X_new: Any,
    *,
    level: float = 0.95,
    X: Any = None,
    y: Any = None,
    settings: Settings | None = None,
    random_seed: RandomSeed = None,
) -> pd.DataFrame:
    r"""Predict new observations, with the uncertainty of the parameters and of the noise.

    Parameters
    ----------
    equation_or_posterior
        The ArviZ data of :func:`sample_posterior`; or an equation, as object or text, to be
        sampled first from the data ``X`` and ``y``.
    X_new
        Values of the variables: a table with their names as columns, or an array with their
        columns in order.
    level
        Probability of the intervals, which leave out the same probability on either side.
    X, y, settings, random_seed
        As in :func:`sample_posterior`; only together with an equation.

    Returns
    -------
    DataFrame
        One row for each row of ``X_new``, under the same index:

        - ``mean``: the posterior mean of :math:`f(x, \theta)`, and so of a new observation;
        - ``std``: the standard deviation of a new observation (theta and sigma);
        - ``map``: f at the maximum a posteriori, the best minimum of the sum of squares;
        - ``credible_low``, ``credible_high``: where :math:`f(x, \theta)` lies (theta only);
        - ``prediction_low``, ``prediction_high``: where a new observation lies (theta and sigma).

        Its ``attrs`` hold the level.

    Warns
    -----
    UserWarning
        If f is not finite for some draws. Mean and intervals are then those of the other draws;
        they are NaN where these are fewer than half.

    Notes
    -----
    The prediction interval comes from the exact quantiles of the mixture of normal distributions
    :math:`N(f(x, \theta_s), \sigma_s)` over the draws s: it adds no noise of its own.

    Examples
    --------
    >>> from pmsr.data import load_galileo
    >>> X, y = load_galileo("shelf")
    >>> table = predict("c0*sqrt(H)", [400.0, 900.0], X=X, y=y, random_seed=1)
    >>> table["map"].round(1).to_list()
    [941.7, 1412.6]
    """
    level = check_level(level)
    if isinstance(equation_or_posterior, Equation | str):
        if X is None or y is None:
            raise ValueError(
                f"The equation {str(equation_or_posterior)!r} needs data to be sampled. "
                "Pass X= and y=, or the result of sample_posterior."
            )
        posterior = sample_posterior(
            equation_or_posterior,
            X,
            y,
            settings=settings,
            random_seed=random_seed,
            pointwise=False,
        )
    else:
        if not (X is None and y is None and settings is None and random_seed is None):
            raise ValueError(
                "X, y, settings and random_seed go with an equation, got them with a posterior. "
                "Leave them out: it is sampled already."
            )
        posterior = equation_or_posterior
    equation, theta_map, theta, sigma = read_draws(posterior)
    noise = read_noise(posterior)
    group: Any = posterior
    known = json.loads(group.posterior.attrs.get("constants", "{}"))
    constants = {name: Constant(value) for name, value in known.items()}
    points = check_X(X_new, equation.variables, constants=constants)
    component = Component(equation.program, theta, sigma, points)
    summary, undefined = predict_mixture([component], level, noise)
    table = pd.DataFrame(summary.T, columns=list(SUMMARY))
    table.insert(2, "map", _finite(evaluate(equation.program, theta_map[None, :], points)[0]))
    if isinstance(X_new, pd.DataFrame | pd.Series):
        table.index = X_new.index
    table.attrs["level"] = level
    if undefined.any():
        warnings.warn(describe_undefined(undefined), stacklevel=2)
    return table


class Component(NamedTuple):
    """One equation of a mixture.

    Parameters
    ----------
    program
        The equation.
    theta, sigma
        Draws from its posterior, of shapes (n, p) and (n,).
    points
        Where to predict: the values of its variables, of shape (n_points, d).
    probability
        Its share of the mixture; the shares need not add up to one.
    """

    program: Program
    theta: Floats
    sigma: Floats
    points: Floats
    probability: float = 1.0


def predict_mixture(
    components: Sequence[Component], level: float | None, noise: Noise = GAUSSIAN
) -> tuple[Floats, Floats]:
    """Predict from the posteriors of one or several equations, mixed by their probabilities.

    Parameters
    ----------
    components
        The equations, with equally many points.
    level
        Probability of the intervals; None to leave them out.
    noise
        How new observations scatter.

    Returns
    -------
    summary : ndarray
        As from `summarise`.
    undefined : ndarray
        The probability that the mixture is not finite, of shape (n_points,).

    Examples
    --------
    >>> identity = Program.of([(0, 0, 0)], [], 0)
    >>> one = Component(identity, np.empty((2, 0)), np.array([0.3, 0.5]), np.array([[1.0], [2.0]]))
    >>> predict_mixture([one, one._replace(points=one.points + 4.0)], None)[0][0]
    array([3., 4.])
    """
    sigma = np.concatenate([component.sigma for component in components])
    weights = None
    if len(components) > 1:
        shares = [np.full(len(c.sigma), c.probability / len(c.sigma)) for c in components]
        weights = np.concatenate(shares)
        weights /= weights.sum()
    n_points = len(components[0].points)
    size = max(1, CHUNK // len(sigma))
    columns, undefined = [], np.zeros(n_points)
    for start in range(0, n_points, size):
        check_time()
        chunk = slice(start, start + size)
        mu = np.vstack([evaluate(c.program, c.theta, c.points[chunk]) for c in components])
        undefined[chunk] = weighted_mean(~np.isfinite(mu), weights)
        columns.append(summarise(mu, sigma, level, weights, noise))
    return np.hstack(columns), undefined


def summarise(
    mu: Floats,
    sigma: Floats,
    level: float | None,
    weights: Floats | None = None,
    noise: Noise = GAUSSIAN,
) -> Floats:
    """Mean and standard deviation of new observations, credible and prediction interval.

    Parameters
    ----------
    mu
        Predictions, of shape (n_draws, n_points). What is not finite is left out.
    sigma
        Noise level, of shape (n_draws,).
    level
        Probability of the intervals; None to leave them out.
    weights
        Probabilities of the draws, of shape (n_draws,); by default all alike.
    noise
        How new observations scatter.

    Returns
    -------
    ndarray
        Shape (6, n_points): mean, standard deviation, credible low and high, prediction low and
        high; only the first two without a level. NaN where fewer than half of the draws are
        finite.

    Examples
    --------
    >>> summarise(np.array([[1.0], [3.0]]), np.array([1e-9, 1e-9]), 0.5).round(3).ravel()
    array([2. , 1. , 1.5, 2.5, 1. , 3. ])
    """
    finite = np.isfinite(mu)
    whole = finite.all(axis=0)
    if np.max(np.abs(mu), where=finite, initial=0.0) > HUGE:
        scaled = summarise(np.ldexp(mu, -ROOM), np.ldexp(sigma, -ROOM), level, weights, noise)
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(scaled, ROOM))
    summary = np.full((2 if level is None else len(SUMMARY), mu.shape[1]), np.nan)
    if whole.any():
        summary[:, whole] = _summarise_finite(mu[:, whole], sigma, level, weights, noise)
    for column in np.flatnonzero(~whole & (weighted_mean(finite, weights) >= 0.5)):
        kept = finite[:, column]
        rest = None if weights is None else weights[kept] / weights[kept].sum()
        summary[:, [column]] = _summarise_finite(
            mu[kept, column][:, None], sigma[kept], level, rest, noise
        )
    return summary


def _summarise_finite(
    mu: Floats, sigma: Floats, level: float | None, weights: Floats | None, noise: Noise
) -> Floats:
    mean = weighted_mean(mu, weights)
    # Scaled: squares of 1e160 leave the range of floating-point numbers.
    deviation = noise.spread(mu, sigma)
    scale = np.max(np.abs(mu - mean), axis=0) + np.max(deviation)
    spread = ((mu - mean) / scale) ** 2 + (deviation / scale) ** 2
    std = scale * np.sqrt(weighted_mean(spread, weights))
    if level is None:
        return np.vstack([mean, std])
    tails = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
    if weights is None:
        credible = np.quantile(mu, tails, axis=0)
    else:
        credible = np.column_stack([weighted_quantile(tails, column, weights) for column in mu.T])
    prediction = [noise.mixture_quantile(tail, mu, sigma, weights) for tail in tails]
    return np.vstack([mean, std, credible, prediction])


def weighted_quantile(probabilities: Sequence[float], values: Floats, weights: Floats) -> Floats:
    """Quantiles of values that have weights; with equal weights, those of ``np.quantile``.

    Parameters
    ----------
    probabilities
        In [0, 1].
    values, weights
        Both of shape (n,); the weights are positive.

    Returns
    -------
    ndarray
        One value for each probability.

    Notes
    -----
    Every value stands in the middle of its weight; the least and the largest are the quantiles
    at 0 and 1, and between two values the quantile is linear.

    Examples
    --------
    >>> weighted_quantile([0.0, 0.25, 1.0], np.array([1.0, 2.0, 3.0]), np.ones(3))
    array([1. , 1.5, 3. ])
    """
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    middle = np.cumsum(weights) - 0.5 * weights
    length = middle[-1] - middle[0]
    if length <= 0.0:
        return np.full(len(probabilities), values[0])
    return np.asarray(np.interp(probabilities, (middle - middle[0]) / length, values))


def read_draws(posterior: Any) -> tuple[Equation, Floats, Floats, Floats]:
    """Take an equation and its draws out of the ArviZ data of :func:`sample_posterior`.

    Returns
    -------
    tuple
        The equation, theta at the best minimum (p,), and all chains' draws of theta (n, p) and of
        the size of a new observation's noise (n,).
    """
    group = getattr(posterior, "posterior", None)
    attrs = getattr(group, "attrs", {})
    if "theta_map" not in attrs:
        raise ValueError(
            "Predictions need the result of sample_posterior, or an equation with X= and y=, got "
            f"{type(posterior).__name__}."
        )
    if "groups" in attrs:
        raise ValueError(
            "This posterior is of several groups, each with its own parameters. Use "
            "pmsr.result.comparison.weigh_equations(..., groups=...).best.predict(X, groups=...)."
        )
    parameters = json.loads(attrs["parameters"])
    equation = Equation(attrs["equation"], json.loads(attrs["variables"]), parameters)
    # Any: InferenceData or DataTree; both give arrays by name.
    variables: Any = group
    n_draws = int(np.prod([variables.sizes[name] for name in ("chain", "draw")]))
    sigma = np.ones(n_draws)
    noise = read_noise(posterior)
    if noise.has_sigma:
        sigma = np.asarray(variables["sigma"], dtype=np.float64).ravel()
    known: Any = posterior.constant_data
    columns = {str(name): np.asarray(known[name]) for name in known.data_vars}
    counts = columns.pop("counts", np.ones(posterior.observed_data.sizes["observation"]))
    columns = {name: values for name, values in columns.items() if name not in ("X", "X_err")}
    sigma = noise.new_sigma(sigma, columns, counts)
    theta = np.empty((len(sigma), len(parameters)))
    for place, name in enumerate(parameters):
        theta[:, place] = np.asarray(variables[name], dtype=np.float64).ravel()
    return equation, np.array(json.loads(attrs["theta_map"]), dtype=np.float64), theta, sigma


def read_noise(posterior: Any) -> Noise:
    """Return the noise model of the ArviZ data of :func:`sample_posterior`."""
    # Those of an earlier version know one only.
    return find_noise(posterior.posterior.attrs.get("noise", GAUSSIAN.name))


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, np.nan)


def describe_undefined(undefined: Floats) -> str:
    """Say for how many rows, and how often, an equation is not finite."""
    worst = int(np.argmax(undefined))
    return (
        f"The equation is not finite for some posterior draws in {np.count_nonzero(undefined)} "
        f"of {len(undefined)} rows of X_new; row {worst} (counted from 0) is worst, with "
        f"{undefined[worst]:.1%} of the draws. Mean and intervals there are those of the other "
        f"draws, and NaN where these are fewer than half ({np.sum(undefined > 0.5)} rows)."
    )


def check_level(level: Any) -> float:
    """Return the probability of an interval as a float, or say what it must be."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(f"level must be in (0, 1), got {level!r}. Use 0.95 for 95 %.")
    return float(level)
