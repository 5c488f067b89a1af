"""Numbers and plain words that tell how far a result can be trusted."""

import json
import warnings
from typing import Any

import arviz as az
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import shapiro

MIN_ESS = 400.0  # below, ArviZ's authors mistrust means and intervals
MAX_R_HAT = 1.01
CLOSE = 1.0  # nats: what is closer to the winner is not told apart
MAX_SHAPIRO = 5000  # more residuals than this are thinned: the test is not made for them


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
    for name in (*names, "sigma"):
        draws = np.asarray(group[name], dtype=np.float64)
        low, high = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
        ess, r_hat = (np.nan, np.nan) if name in held else _convergence(draws)
        rows[name] = {
            "mean": draws.mean(),
            "sd": draws.std(),
            "low": low,
            "high": high,
            "map": theta_map.get(name, np.nan),
            "ess": ess,
            "r_hat": r_hat,
            "held": name in held,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _convergence(draws: np.ndarray) -> tuple[float, float]:
    with warnings.catch_warnings():
        # With one chain, or a handful of draws, ArviZ warns and returns NaN, which says it all.
        warnings.simplefilter("ignore")
        # ArviZ 1.x has no default for the tails of an array.
        tail = az.ess(draws, method="tail", prob=(0.05, 0.95))
        ess = min(float(az.ess(draws, method="bulk")), float(tail))
        return ess, float(az.rhat(draws))


def describe_doubts(
    table: pd.DataFrame,
    winner: str,
    *,
    parameters: pd.DataFrame | None = None,
    p_normal: float | None = None,
    n_candidates: int | None = None,
    n_failed: int | None = None,
) -> list[str]:
    """Say in plain words what speaks against trusting a result.

    Parameters
    ----------
    table
        Equations and their evidence, as :func:`pmsr.compare` returns them.
    winner
        Name of the equation that is put forward.
    parameters
        From `summarise_parameters`.
    p_normal
        From `normality`.
    n_candidates, n_failed
        Distinct equations that the search has weighed, and how many of them failed.

    Returns
    -------
    list of str
        Sentences; empty if nothing was found.

    Examples
    --------
    >>> columns = ["log_q", "log_q_se", "prior_sensitivity"]
    >>> rows = [(-10.0, 0.1, 0.2), (-10.4, 0.1, 0.1)]
    >>> table = pd.DataFrame(rows, index=["root", "line"], columns=columns)
    >>> print(*describe_doubts(table, "root"))
    The data do not decide between the winner and line: log q differs by less than 1 nat.
    """
    doubts = _doubt_evidence(table, winner)
    if parameters is not None:
        doubts += _doubt_sampling(parameters)
    if p_normal is not None and p_normal < 0.05:
        doubts.append(
            f"The residuals do not look normal (Shapiro-Wilk p = {p_normal:.2g}): the noise model "
            "may be wrong, or the equation lacks a term. Log q and the intervals assume normal "
            "noise."
        )
    if n_candidates and n_failed is not None and n_failed > 0.5 * n_candidates:
        doubts.append(
            f"{n_failed / n_candidates:.0%} of the equations that the search met could not be "
            "weighed. Other operators, or scaled variables, may leave more of them."
        )
    return doubts


def _doubt_evidence(table: pd.DataFrame, winner: str) -> list[str]:
    log_q = table["log_q"].astype(float)
    if not np.isfinite(log_q[winner]):
        return ["The winner has no evidence: it was chosen by its error alone, with no penalty."]
    doubts = []
    # Any: pandas does not know what is in its cells.
    row: Any = table.loc[winner]
    gap = log_q[winner] - log_q.drop(index=winner)
    rivals = [str(name) for name in gap.index[np.isfinite(gap) & (gap.abs() < CLOSE)]]
    if rivals:
        shown = ", ".join(rivals[:3]) + (f" and {len(rivals) - 3} more" if rivals[3:] else "")
        doubts.append(
            f"The data do not decide between the winner and {shown}: log q differs by less than "
            f"{CLOSE:g} nat."
        )
    if row["log_q_se"] > 0.5:
        doubts.append(
            f"Repeated runs disagree about the winner's log q (standard error "
            f"{row['log_q_se']:.2g}). Weigh it again with more draws."
        )
    sensitivity = abs(float(row["prior_sensitivity"]))
    behind = gap[np.isfinite(gap) & (gap > 0)]
    if np.isfinite(sensitivity) and len(behind) and CLOSE <= behind.min() < sensitivity:
        doubts.append(
            f"Halving the bounds of the prior would change the winner's log q by {sensitivity:.2g} "
            f"nats, more than it is ahead ({behind.min():.2g}). Smaller differences are not "
            "evidence."
        )
    return doubts


def _doubt_sampling(parameters: pd.DataFrame) -> list[str]:
    doubts = []
    for name, value in parameters.loc[parameters["held"].astype(bool), "mean"].items():
        doubts.append(
            f"The data do not determine {name} by itself: it is held at {value:.4g}, and has no "
            "uncertainty of its own."
        )
    few = parameters.index[parameters["ess"] < MIN_ESS]
    if len(few):
        doubts.append(
            f"Few independent draws of {', '.join(map(str, few))} (effective sample size "
            f"{parameters['ess'].min():.0f}, wanted {MIN_ESS:.0f}): sample more for the intervals."
        )
    apart = parameters.index[parameters["r_hat"] > MAX_R_HAT]
    if len(apart):
        doubts.append(
            f"The chains disagree about {', '.join(map(str, apart))} (R-hat "
            f"{parameters['r_hat'].max():.2f}): sample more, or look for several minima."
        )
    return doubts
