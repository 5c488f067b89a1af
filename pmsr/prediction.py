"""What an equation predicts: credible and prediction intervals from its posterior."""

import json
import math
import warnings
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from pmsr.data import check_X
from pmsr.expression import Equation
from pmsr.posterior import sample_posterior
from pmsr.program import evaluate
from pmsr.settings import RandomSeed, Settings

Floats = NDArray[np.float64]

CHUNK = 2**18  # predictions at a time: 2 MB
_SUMMARY = ("mean", "credible_low", "credible_high", "prediction_low", "prediction_high")


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

        - ``mean``: the posterior mean of :math:`f(x, \theta)`;
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
    level = _check_level(level)
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
    points = check_X(X_new, equation.variables)

    size = max(1, CHUNK // len(sigma))
    columns = []
    n_undefined = np.zeros(len(points), dtype=np.int64)
    for start in range(0, len(points), size):
        chunk = points[start : start + size]
        mu = evaluate(equation.program, theta, chunk)
        n_undefined[start : start + size] = np.sum(~np.isfinite(mu), axis=0)
        columns.append(summarise(mu, sigma, level))
    table = pd.DataFrame(np.hstack(columns).T, columns=list(_SUMMARY))
    table.insert(1, "map", _finite(evaluate(equation.program, theta_map[None, :], points)[0]))
    if isinstance(X_new, pd.DataFrame | pd.Series):
        table.index = X_new.index
    table.attrs["level"] = level
    if n_undefined.any():
        warnings.warn(_describe_undefined(n_undefined, len(sigma)), stacklevel=2)
    return table


def summarise(mu: Floats, sigma: Floats, level: float) -> Floats:
    """Mean of the predictions, credible interval and prediction interval.

    Parameters
    ----------
    mu
        Predictions, of shape (n_draws, n_points). What is not finite is left out.
    sigma
        Noise level, of shape (n_draws,).
    level
        Probability of the intervals.

    Returns
    -------
    ndarray
        Shape (5, n_points): mean, credible low and high, prediction low and high; NaN where fewer
        than half of the draws are finite.

    Examples
    --------
    >>> summarise(np.array([[1.0], [3.0]]), np.array([1e-9, 1e-9]), 0.5).round(3).ravel()
    array([2. , 1.5, 2.5, 1. , 3. ])
    """
    finite = np.isfinite(mu)
    whole = finite.all(axis=0)
    summary = np.full((len(_SUMMARY), mu.shape[1]), np.nan)
    if whole.any():
        summary[:, whole] = _summarise_finite(mu[:, whole], sigma, level)
    for column in np.flatnonzero(~whole & (finite.mean(axis=0) >= 0.5)):
        kept = finite[:, column]
        summary[:, [column]] = _summarise_finite(mu[kept, column][:, None], sigma[kept], level)
    return summary


def _summarise_finite(mu: Floats, sigma: Floats, level: float) -> Floats:
    tails = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
    credible = np.quantile(mu, tails, axis=0)
    prediction = [mixture_quantile(tail, mu, sigma) for tail in tails]
    return np.vstack([mu.mean(axis=0), credible, prediction])


def mixture_quantile(probability: float, mu: Floats, sigma: Floats) -> Floats:
    r"""Quantile of the mixture :math:`\frac1n \sum_s N(\mu_s, \sigma_s)`, for each column of mu.

    Parameters
    ----------
    probability
        In (0, 1).
    mu, sigma
        Means, of shape (n_draws, n_points), and standard deviations, of shape (n_draws,).

    Returns
    -------
    ndarray
        Shape (n_points,).

    Notes
    -----
    Newton's method, which bisection takes over where a step would leave the bracket: the quantile
    lies between the least and the largest of the components' own quantiles.

    Examples
    --------
    >>> mixture_quantile(0.5, np.array([[1.0], [2.0]]), np.array([0.1, 0.1]))
    array([1.5])
    """
    width = sigma[:, None]
    ends = mu + width * ndtri(probability)
    low, high = ends.min(axis=0), ends.max(axis=0)
    spread = np.sqrt(mu.var(axis=0) + np.mean(sigma**2))
    value = np.clip(mu.mean(axis=0) + spread * ndtri(probability), low, high)
    for _ in range(200):
        z = (value - mu) / width
        missing = probability - ndtr(z).mean(axis=0)
        low, high = np.where(missing >= 0.0, value, low), np.where(missing <= 0.0, value, high)
        density = np.mean(np.exp(-0.5 * z * z) / width, axis=0) / math.sqrt(2.0 * math.pi)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            new = value + missing / density
        new = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        step, value = np.abs(new - value), new
        if np.all(step <= 1e-10 * sigma.min() + 1e-15 * np.abs(value)):
            break
    return np.asarray(value)


def read_draws(posterior: Any) -> tuple[Equation, Floats, Floats, Floats]:
    """Take an equation and its draws out of the ArviZ data of :func:`sample_posterior`.

    Returns
    -------
    tuple
        The equation, theta at the best minimum (p,), and all chains' draws of theta (n, p) and of
        sigma (n,).
    """
    group = getattr(posterior, "posterior", None)
    attrs = getattr(group, "attrs", {})
    if "theta_map" not in attrs:
        raise ValueError(
            "Predictions need the result of sample_posterior, or an equation with X= and y=, got "
            f"{type(posterior).__name__}."
        )
    parameters = json.loads(attrs["parameters"])
    equation = Equation(attrs["equation"], json.loads(attrs["variables"]), parameters)
    # Any: InferenceData or DataTree; both give arrays by name.
    variables: Any = group
    sigma = np.asarray(variables["sigma"], dtype=np.float64).ravel()
    theta = np.empty((len(sigma), len(parameters)))
    for place, name in enumerate(parameters):
        theta[:, place] = np.asarray(variables[name], dtype=np.float64).ravel()
    return equation, np.array(json.loads(attrs["theta_map"]), dtype=np.float64), theta, sigma


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, np.nan)


def _describe_undefined(n_undefined: NDArray[np.int64], n_draws: int) -> str:
    worst = int(np.argmax(n_undefined))
    n_lost = int(np.sum(n_undefined > 0.5 * n_draws))
    return (
        f"The equation is not finite for some posterior draws in {np.count_nonzero(n_undefined)} "
        f"of {len(n_undefined)} rows of X_new; row {worst} (counted from 0) is worst, with "
        f"{n_undefined[worst] / n_draws:.1%} of the draws. Mean and intervals there are those of "
        f"the other draws, and NaN where these are fewer than half ({n_lost} rows)."
    )


def _check_level(level: Any) -> float:
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(f"level must be in (0, 1), got {level!r}. Use 0.95 for 95 %.")
    return float(level)
