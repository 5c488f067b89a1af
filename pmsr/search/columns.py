"""Which columns matter, at first sight: those that a search of many columns begins with.

Greedy: of all columns, the one whose best smooth function explains most of what is left of the
target joins, as long as chance would not explain as much; and where no column does, the best
product, quotient, sum or difference of two. A column that matters only together with another, such
as a factor that is as often negative as positive, is found by the pair.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pmsr.data import Data
from pmsr.equation.expression import Equation
from pmsr.settings import Search

MANY = 5  # columns up to which a search has all from the beginning
MOST = 10  # columns to begin with
UNCHANGED = 20  # generations without a better law, after which the others come back
LATEST = 100  # generations after which they come back in any case
CHANCE = 1e-3  # that in data without any law something is taken for one
ALIKE = 0.98  # rank correlation beyond which two columns say the same
_MAX_ROWS = 300  # that are looked at
_MAX_PAIRED = 40  # columns whose pairs are looked at
_CHUNK = 200  # features that are judged together

Floats = NDArray[np.float64]


def find_relevant(data: Data, keep: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the columns to begin with, in the order of the data; all, if nothing is to be seen.

    Parameters
    ----------
    data
        Measurements.
    keep
        Names of columns that are to be among them.

    Examples
    --------
    >>> from pmsr.data import make_data
    >>> X = np.random.default_rng(0).normal(size=(80, 12))
    >>> y = X[:, 2] * X[:, 7] + 0.1 * X[:, 4]
    >>> find_relevant(make_data(X, y))
    ('x2', 'x4', 'x7')
    """
    if len(data.names) <= MANY:
        return data.names
    rows = _some_rows(len(data.y))
    X, y = data.X[rows], data.y[rows]
    if data.groups is not None:
        y = _without_means(y, np.asarray(data.groups, dtype=object)[rows])
    # The target itself, and its ranks: of what spans decades, few rows are all of the variance.
    found: list[int] = []
    for target in (y, stats.rankdata(y)):
        found += [column for column in _choose(X, target) if column not in found]
    if not found:
        return data.names
    chosen = [data.names.index(name) for name in keep if name in data.names]
    for column in found:
        if len(chosen) < max(MOST, len(keep)) and column not in chosen:
            chosen.append(column)
    chosen += _alike(X, chosen)
    return tuple(name for place, name in enumerate(data.names) if place in chosen)


def find_left_out(data: Data, search: Search, guesses: Sequence[Equation] = ()) -> tuple[str, ...]:
    """Return the columns that a search does not begin with, besides those that it must not use.

    Examples
    --------
    >>> from pmsr.data import make_data
    >>> find_left_out(make_data([[1.0, 2.0], [2.0, 5.0]], [1.0, 2.0]), Search())
    ()
    """
    # Known constants are columns too, and cost nothing to begin with.
    never = {*search.exclude, *data.constants}
    allowed = [name for name in data.names if name not in never]
    if not search.screen_columns or len(allowed) <= MANY:
        return ()
    named = {symbol.name for guess in guesses for symbol in guess.expression.free_symbols} | set(
        search.require
    )
    keep = [name for name in allowed if name in named]
    relevant = find_relevant(data.select(allowed), keep)
    return tuple(name for name in allowed if name not in relevant)


def find_return(history: Sequence[Mapping[str, Any]], period: int) -> int | None:
    """Return the generation after which the columns that were left out came back; None if none.

    When the best score has not risen for a while, or at the latest after a fixed number of
    generations: never by the clock, so that a search can be repeated.

    Parameters
    ----------
    history
        Records of the generations so far.
    period
        Generations between two exchanges; what is left out changes only there.
    """
    best, improved = -np.inf, 0
    for record in history:
        generation = int(record["generation"])
        if record["score_best"] > best:
            best, improved = float(record["score_best"]), generation
        is_late = generation >= LATEST or generation - improved >= UNCHANGED
        if generation > 0 and generation % period == 0 and is_late:
            return generation
    return None


def _some_rows(n: int) -> NDArray[np.intp]:
    """Return rows from the first to the last, all if there are few."""
    return np.unique(np.linspace(0, n - 1, min(n, _MAX_ROWS)).astype(np.intp))


def _without_means(y: Floats, groups: NDArray[np.generic]) -> Floats:
    """Return the target without the mean of each group: their constants differ."""
    _, group = np.unique(groups, return_inverse=True)
    return y - (np.bincount(group, y) / np.bincount(group))[group]


def _choose(X: Floats, target: Floats) -> list[int]:
    """Choose columns, one or two at a time, best first."""
    n, n_columns = X.shape
    n_waves = int(np.clip(n // 10, 1, 6))
    base = np.ones((n, 1)) / np.sqrt(n)  # orthonormal: what was explained so far
    chosen: list[int] = []
    singles = [_standard(X[:, k]) for k in range(n_columns)]
    n_pairs = min(n_columns, _MAX_PAIRED) ** 2 * 2
    while len(chosen) < MOST and base.shape[1] + n_waves + 1 < n - 4:
        residual = target - base @ (base.T @ target)
        if np.linalg.norm(residual) <= 1e-9 * np.linalg.norm(target - target.mean()):
            break
        place, log_p = _best(singles, residual, base, n_waves)
        if place is not None and log_p < np.log(CHANCE / n_columns):
            base = _extended(base, singles[place], n_waves)
            chosen += [place] if place not in chosen else []
            continue
        pairs, features = _pairs(X, singles, residual)
        place, log_p = _best(features, residual, base, n_waves)
        if place is None or log_p >= np.log(CHANCE / n_pairs):
            break
        base = _extended(base, features[place], n_waves)
        chosen += [column for column in pairs[place] if column not in chosen]
    return chosen


def _pairs(
    X: Floats, singles: Sequence[Floats], residual: Floats
) -> tuple[list[tuple[int, int]], list[Floats]]:
    """Return products, quotients, sums and differences of two columns each."""
    pairs: list[tuple[int, int]] = []
    features: list[Floats] = []
    for j, k in combinations(range(min(X.shape[1], _MAX_PAIRED)), 2):
        a, b = X[:, j], X[:, k]
        made = [singles[j] * singles[k], singles[j] + singles[k], singles[j] - singles[k], a - b]
        if np.all(b != 0.0):
            made.append(a / b)
        if np.all(a != 0.0):
            made.append(b / a)
        pairs += [(j, k)] * len(made)
        features += [_standard(one) for one in made]
    return pairs, features


def _standard(column: Floats) -> Floats:
    """Return a column without its mean, in units of its deviation."""
    centred = column - column.mean()
    size = np.abs(centred).max()
    if not 0.0 < size < np.inf:
        return np.zeros_like(column)
    centred = centred / size
    return np.asarray(centred / np.sqrt(np.mean(centred**2)))


def _waves(features: Floats, n_waves: int) -> Floats:
    """Return what smooth functions of features are made of, of shape (n_features, N, n_waves + 1).

    The feature itself and cosines of its rank, which together make any smooth function of it.
    """
    ranks = (stats.rankdata(features, axis=1) - 0.5) / features.shape[1]
    waves = np.cos(np.pi * np.arange(1, n_waves + 1) * ranks[:, :, None])
    return np.concatenate([features[:, :, None], waves], axis=2)


def _best(
    features: Sequence[Floats], residual: Floats, base: Floats, n_waves: int
) -> tuple[int | None, float]:
    """Return the feature that explains most, and the log of the chance to do so by accident."""
    n = len(residual)
    total = residual @ residual
    best: tuple[int | None, float] = (None, 0.0)
    for start in range(0, len(features), _CHUNK):
        basis = _waves(np.array(features[start : start + _CHUNK]), n_waves)
        basis = basis - base @ (base.T @ basis)
        left, sizes, _ = np.linalg.svd(basis, full_matrices=False)
        is_new = sizes > 1e-6 * np.sqrt(n)
        explained = ((residual @ left) ** 2 * is_new).sum(axis=1)
        n_new = is_new.sum(axis=1)
        n_rest = n - base.shape[1] - n_new
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (explained / n_new) / (np.maximum(total - explained, 1e-12 * total) / n_rest)
        log_p = np.where(n_new > 0, stats.f.logsf(ratio, np.maximum(n_new, 1), n_rest), 0.0)
        log_p = np.where(np.isfinite(log_p) | np.isneginf(log_p), log_p, 0.0)
        # Chances that are too small for a float are told apart by what is explained.
        order = np.lexsort((-explained, log_p))
        if log_p[order[0]] < best[1]:
            best = start + int(order[0]), float(log_p[order[0]])
    return best


def _extended(base: Floats, feature: Floats, n_waves: int) -> Floats:
    """Return the base with all smooth functions of a feature in it."""
    basis = _waves(feature[None], n_waves)[0]
    basis = basis - base @ (base.T @ basis)
    left, sizes, _ = np.linalg.svd(basis, full_matrices=False)
    return np.hstack([base, left[:, sizes > 1e-6 * np.sqrt(len(base))]])


def _alike(X: Floats, chosen: Sequence[int]) -> list[int]:
    """Return columns that say the same as one that was chosen: either may be the cause."""
    ranks = np.apply_along_axis(stats.rankdata, 0, X)
    size = np.corrcoef(ranks.T)
    return [
        k
        for k in range(X.shape[1])
        if k not in chosen and any(abs(size[k, one]) > ALIKE for one in chosen)
    ]
