"""Numbers that tell how far a result can be trusted."""

import json
from typing import Any

import arviz as az
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import shapiro

from pmsr.magnitude import mean_and_deviation, take_out_exponent

MAX_SHAPIRO = 5000  # more residuals than this are thinned: the test is not made for them
ESTIMATES = ("mean", "sd", "low", "high", "map", "ess", "r_hat", "held")  # of a parameter


def normality(residuals: ArrayLike) -> float | None:
    """Probability of residuals at least as far from a normal distribution, if they were normal.

    Parameters
    ----------
    residuals
        Observations less predictions.

    Returns
    -------
    float or None
        The p value of the test of Shapiro and Wilk. None where it cannot be made: fewer than three
        finite residuals, or all of them equal.

    Examples
    --------
    >>> round(normality([0.1, 0.1, 0.2, 0.3, 0.5, 3.0]), 4)
    0.0006
    >>> normality([0.0, 0.0, 0.0]) is None
    True
    """
    values = np.asarray(residuals, dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    values = values[:: -(-len(values) // MAX_SHAPIRO) or 1]
    if len(values) < 3 or np.ptp(values) == 0.0:
        return None
    return float(shapiro(values / np.ptp(values)).pvalue)


# A posterior is Any because its type depends on ArviZ.
def summarise_parameters(posterior: Any, *, level: float = 0.95) -> pd.DataFrame:
    """Estimates of the parameters and of the noise, with their uncertainty.

    Parameters
    ----------
    posterior
        The ArviZ data of :func:`pmsr.sample_posterior`.
    level
        Probability of the intervals, which leave out the same probability on either side.

    Returns
    -------
    DataFrame
        One row for each parameter and one for sigma, under their names:

        - ``mean``, ``sd``: of the draws;
        - ``low``, ``high``: the credible interval;
        - ``map``: the best fit, NaN for sigma;
        - ``ess``, ``r_hat``: effective sample size, the lesser of bulk and tail, and agreement of
          the chains; NaN for a parameter that is held, and where there are too few draws;
        - ``held``: whether the data do not determine it, so that it stays at its best fit.
    """
    group = posterior.posterior
    held = json.loads(group.attrs.get("held", "{}"))
    names = json.loads(group.attrs["parameters"])
    theta_map = dict(zip(names, json.loads(group.attrs["theta_map"]), strict=False))
    rows = {}
    # Where errors are known, sigma is not a parameter.
    sigmas = [str(name) for name in group.data_vars if str(name).partition("[")[0] == "sigma"]
    for name in (*names, *sigmas):
        draws = np.asarray(group[name], dtype=np.float64)
        low, high = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
        ess, r_hat = (np.nan, np.nan) if name in held else _convergence(draws)
        mean, deviation = mean_and_deviation(draws.ravel())
        rows[name] = {
            "mean": mean,
            "sd": deviation,
            "low": low,
            "high": high,
            "map": theta_map.get(name, np.nan),
            "ess": ess,
            "r_hat": r_hat,
            "held": name in held,
        }
    if not rows:  # no parameters, and errors that are known
        return pd.DataFrame(columns=list(ESTIMATES), dtype=np.float64)
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(ESTIMATES))


def _convergence(draws: np.ndarray) -> tuple[float, float]:
    # With one chain, or draws that are all alike, ArviZ divides by zero and returns NaN, which says
    # it all. Not by warnings.catch_warnings, which changes the filters of all threads.
    with np.errstate(all="ignore"):
        # Neither number depends on the unit, and ArviZ squares the draws.
        draws = take_out_exponent(draws)[0]
        # ArviZ 1.x has no default for the tails of an array.
        tail = az.ess(draws, method="tail", prob=(0.05, 0.95))
        ess = min(float(az.ess(draws, method="bulk")), float(tail))
        return ess, float(az.rhat(draws))
