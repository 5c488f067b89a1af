"""Where to measure next: inputs at which the leading families disagree most, relative to noise."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp, roots_hermitenorm, softmax
from scipy.stats import qmc

from pmsr.data import Data
from pmsr.equation.program import evaluate
from pmsr.result.family import Family
from pmsr.result.fitted import FittedEquation

Floats = NDArray[np.float64]
Bounds = Mapping[str, tuple[float, float]]

LEAST = 0.01  # probability of a family that has a say
MOST = 8  # families that have one
N_DRAWS = 256  # of a posterior, for a mean and a variance
N_LINE = 401  # places to choose from, if one variable matters
N_BOX = 512  # places to choose from, if several do
N_OUTCOMES = 16  # measurements that are imagined under each family, before the next place is chosen
# Twelve values make the integral over a normal distribution: information is right to a hundredth.
NODES, RULE = roots_hermitenorm(12)
RULE = RULE / RULE.sum()


class Forecast(NamedTuple):
    """What the leading families expect at some points.

    Parameters
    ----------
    shares
        Their probabilities, which add up to one, of shape (k,).
    mean
        Posterior means of their curves, of shape (k, n); NaN where a law is not defined for half of
        its draws.
    curve
        Posterior variances of these curves.
    noise
        Variances of the noise of a measurement.
    """

    shares: Floats
    mean: Floats
    curve: Floats
    noise: Floats


def leading_families(families: Sequence[Family]) -> list[Family]:
    """Return the families that have a say; at least the first.

    Raises
    ------
    ValueError
        If there are no probabilities.
    """
    known = [one for one in families if one.probability > 0.0]
    if not known:
        raise ValueError(
            "There are no probabilities to tell laws by: no equation has been weighed. Search with "
            'fitness="evidence".'
        )
    return [one for one in known if one.probability >= LEAST][:MOST] or known[:1]


def forecast(families: Sequence[Family], points: Floats, names: Sequence[str]) -> Forecast:
    """Return what families, by the posteriors of their faces, expect at points.

    Parameters
    ----------
    families
        As `leading_families` returns them.
    points, names
        Values of all variables, of shape (n, d), and their names.
    """
    shares = np.array([one.probability for one in families])
    parts = [_forecast_one(one.face, points, names) for one in families]
    mean, curve, noise = (np.array(part) for part in zip(*parts, strict=True))
    return Forecast(shares / shares.sum(), mean, curve, noise)


def _forecast_one(
    face: FittedEquation, points: Floats, names: Sequence[str]
) -> tuple[Floats, Floats, Floats]:
    columns = [list(names).index(name) for name in face.equation.variables]
    theta, sigma = face.draws.flat_theta, face.draws.flat_sigma
    some = np.linspace(0, len(theta) - 1, min(len(theta), N_DRAWS)).astype(int)
    where = np.ascontiguousarray(points[:, columns])
    values = evaluate(face.equation.program, np.ascontiguousarray(theta[some]), where)
    finite = np.isfinite(values)
    is_known = finite.mean(axis=0) > 0.5
    n = np.maximum(1, finite.sum(axis=0))
    with np.errstate(all="ignore"):
        mean = np.where(finite, values, 0.0).sum(axis=0) / n
        curve = np.where(finite, (values - mean) ** 2, 0.0).sum(axis=0) / n
    # The mean of sigma squared may be that of a tail which few measurements leave.
    noise = np.median(face.problem.new_sigma(sigma[some])) ** 2
    return np.where(is_known, mean, np.nan), curve, np.full(len(points), noise)


def information(expected: Forecast, weights: Floats | None = None) -> Floats:
    r"""Return the nats that a measurement at each point is expected to tell about the families.

    Parameters
    ----------
    expected
        What k families expect at n points.
    weights
        Probabilities of the families, of shape (..., k); by default those of the forecast.

    Returns
    -------
    ndarray
        The mutual information of family and measurement,
        :math:`\sum_a p_a \int N_a(y) \log(N_a(y) / \sum_b p_b N_b(y)) dy`, where :math:`N_a` is the
        normal distribution of a measurement under family a: noise, and posterior of its curve. Of
        shape (..., n).

    Examples
    --------
    >>> none, one = np.zeros((2, 2)), np.ones((2, 2))
    >>> mean = np.array([[0.0, 0.0], [0.0, 100.0]])    # alike, and far apart
    >>> information(Forecast(np.array([0.5, 0.5]), mean, none, one)).round(3).tolist()
    [0.0, 0.693]
    """
    weights = expected.shares if weights is None else weights
    variance = expected.curve + expected.noise
    # Values at which integrals over each family's distribution are taken: (k, q, n).
    y = expected.mean[:, None] + np.sqrt(variance)[:, None] * NODES[:, None]
    log_density = _log_density(y[:, :, None], expected.mean, variance)  # (k, q, k, n)
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    total = np.zeros((*weights.shape[:-1], y.shape[-1]))
    for k in range(len(expected.shares)):
        mixed = logsumexp(log_density[k] + log_weights[..., None, :, None], axis=-2)
        told = np.einsum("q,...qn->...n", RULE, log_density[k, :, k] - mixed)
        total += weights[..., k, None] * told
    # What is nothing may come out as minus rounding.
    return np.maximum(total, 0.0)


def _log_density(y: Floats, mean: Floats, variance: Floats) -> Floats:
    return np.asarray(-0.5 * ((y - mean) ** 2 / variance + np.log(variance)))


def suggest_points(
    families: Sequence[Family], data: Data, n: int = 3, bounds: Bounds | None = None
) -> pd.DataFrame:
    """Return inputs at which measurements would tell most about which family is right.

    Parameters
    ----------
    families
        All of them, the most probable first.
    data
        What they explain.
    n
        How many places.
    bounds
        Between which values to look, by the names of variables; by default the data's.

    Returns
    -------
    DataFrame
        As :meth:`pmsr.result.result.Result.suggest`.

    Notes
    -----
    Places are chosen one after the other: each has the most information about the families that the
    measurements at the places before it are expected to leave. So a place that tells the same as
    another is not chosen. Where one family has all of the probability, places are those where its
    own curve is least certain.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be an integer of at least 1, got {n!r}.")
    leading = leading_families(families)
    used = [name for name in data.names if any(name in one.face.used for one in leading)]
    limits = _check_bounds(bounds, data)
    points = _candidates(data, used, limits)
    expected = forecast(leading, points, data.names)
    defined = np.isfinite(expected.mean).all(axis=0)
    if not defined.any():
        raise ValueError("Within these bounds no place is in the domain of all leading laws.")
    points = points[defined]
    expected = Forecast(expected.shares, *(part[:, defined] for part in expected[1:]))
    chosen = choose_places(expected, _scaled(points, used, limits, data), int(n))
    places = list(chosen)
    middle = expected.shares @ expected.mean
    between = expected.shares @ (expected.mean - middle) ** 2
    scatter = np.sqrt(expected.curve[0] + expected.noise[0])
    table = pd.DataFrame(points[places], columns=list(data.names))[list(data.measured)]
    names = _distinct_names(data.names)
    table[names[0]] = list(chosen.values())
    table[names[1]] = np.sqrt(between[places])
    table[names[2]] = scatter[places]
    return table


def _distinct_names(taken: Sequence[str]) -> list[str]:
    names = []
    for name in ("information", "disagreement", "scatter"):
        while name in taken:
            name += "_"
        names.append(name)
    return names


# Any: what users hand over.
def _check_bounds(bounds: Any, data: Data) -> dict[str, tuple[float, float]]:
    limits = {
        name: (float(data.X[:, k].min()), float(data.X[:, k].max()))
        for k, name in enumerate(data.names)
    }
    if bounds is not None and not isinstance(bounds, Mapping):
        raise ValueError(f'bounds must be a dictionary, {{"x": (0.0, 1.0)}}, got {bounds!r}.')
    for name, pair in (bounds or {}).items():
        if name not in limits:
            raise ValueError(
                f"bounds name {name!r}, which is not a variable. Variables: "
                f"{', '.join(data.names)}."
            )
        try:
            low, high = map(float, pair)
        except (TypeError, ValueError):
            low, high = np.nan, np.nan
        if not -np.inf < low < high < np.inf:
            shown = " and ".join(map(str, pair)) if isinstance(pair, Sequence) else pair
            raise ValueError(f"bounds of {name!r} must be two rising numbers, got {shown}.")
        limits[name] = (low, high)
    return limits


def _candidates(
    data: Data, used: Sequence[str], limits: Mapping[str, tuple[float, float]]
) -> Floats:
    """Return the places to choose from; what matters to no leading law stays as it usually was."""
    d = len(used)
    if d == 1:
        unit = np.linspace(0.0, 1.0, N_LINE)[:, None]
    else:
        unit = qmc.Halton(max(d, 1), scramble=False).random(N_BOX)
        if d <= 8:  # laws differ most in corners
            corners = np.array(np.meshgrid(*[[0.0, 1.0]] * max(d, 1))).reshape(max(d, 1), -1).T
            unit = np.vstack([corners, unit])
    points = np.repeat(np.median(data.X, axis=0)[None, :], len(unit), axis=0)
    for k, name in enumerate(used):
        low, high = limits[name]
        points[:, data.names.index(name)] = low + (high - low) * unit[:, k]
    return points


def _scaled(
    points: Floats, used: Sequence[str], limits: Mapping[str, tuple[float, float]], data: Data
) -> Floats:
    """Return the used variables of points, from 0 to 1."""
    columns = []
    for name in used:
        low, high = limits[name]
        columns.append((points[:, data.names.index(name)] - low) / ((high - low) or 1.0))
    return np.array(columns).T.reshape(len(points), -1)


def choose_places(expected: Forecast, unit: Floats, n: int) -> dict[int, float]:
    """Choose places one after the other, and return what each is expected to tell, in nats.

    Parameters
    ----------
    expected
        What the families expect at all places.
    unit
        The places, from 0 to 1: two of them are at least 1/(2 n) apart in some variable.
    n
        How many; fewer if there is no room for them.
    """
    k = len(expected.shares)
    own = np.log1p(expected.curve[0] / expected.noise[0]) / 2.0
    # What the measurements at the places so far may turn out to say: probabilities of the families,
    # each as probable as its weight.
    beliefs, chances = expected.shares[None, :], np.ones(1)
    is_free = np.ones(len(unit), dtype=bool)
    chosen: dict[int, float] = {}
    while len(chosen) < n and is_free.any():
        told = chances @ information(expected, beliefs) if k > 1 else own
        place = int(np.argmax(np.where(is_free, told, -np.inf)))
        chosen[place] = float(told[place])
        if k > 1 and len(chosen) < n:
            beliefs, chances = _measure(expected, list(chosen))
        is_free[place] = False
        if unit.shape[1]:
            is_free &= np.max(np.abs(unit - unit[place]), axis=1) >= 0.5 / n
    return chosen


def _measure(expected: Forecast, places: list[int]) -> tuple[Floats, Floats]:
    """Return what families may be thought of after measurements, and how probable that is."""
    mean = expected.mean[:, places]
    variance = (expected.curve + expected.noise)[:, places]
    k = len(mean)
    # The same outcomes at the places before, whatever comes after.
    noise = np.random.default_rng(0).standard_normal((len(places), k, N_OUTCOMES))
    noise = np.moveaxis(noise, 0, -1)
    y = mean[:, None] + np.sqrt(variance)[:, None] * noise
    log_density = _log_density(y[:, :, None], mean, variance).sum(axis=-1)  # (k, outcomes, k)
    beliefs = softmax(log_density + np.log(expected.shares), axis=-1)
    chances = np.repeat(expected.shares / N_OUTCOMES, N_OUTCOMES)
    return beliefs.reshape(-1, k), chances
