"""Which of several equations is better: score, order, winner, probabilities and Pareto front."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pmsr.evidence.trust import are_known
from pmsr.laws.identity import Trace, group_laws


def rank(values: Sequence[float], complexity: Sequence[int] | None = None) -> list[int]:
    """Places of equations, best first.

    Parameters
    ----------
    values
        Larger is better; ``-inf`` for those that failed, NaN, which comes last, for those that
        have no value.
    complexity
        Of equals the simplest comes first, or without it the first.

    Examples
    --------
    >>> rank([-12.0, float("nan"), -10.0, -12.0], [5, 1, 9, 3])
    [2, 3, 0, 1]
    """

    def key(place: int) -> tuple[bool, float, int]:
        unknown = bool(np.isnan(values[place]))
        size = 0 if complexity is None else complexity[place]
        return unknown, 0.0 if unknown else -values[place], size

    return sorted(range(len(values)), key=key)


def find_winner(
    scores: Sequence[float], log_q_se: Sequence[float], complexity: Sequence[int] | None = None
) -> int:
    """Place of the winner: the highest score, and of equals the simplest.

    Parameters
    ----------
    scores
        Larger is better: log q + log prior.
    log_q_se
        Standard errors. What was not sampled at all, for want of time, is not known: it wins only
        if nothing is.
    complexity
        As in `rank`.

    Examples
    --------
    >>> find_winner([-10.0, -9.0, -9.0], [0.01, 0.01, 0.01], [9, 4, 3])
    2
    """
    known = are_known(np.asarray(log_q_se, dtype=float)) & np.isfinite(scores)
    values = np.where(known, scores, -np.inf) if known.any() else np.asarray(scores)
    return rank(values.tolist(), complexity)[0]


def model_probabilities(
    scores: Sequence[float], keys: Sequence[str], log_rest: float = -np.inf
) -> NDArray[np.float64]:
    """Posterior probabilities of equations, Eq. (4).

    Parameters
    ----------
    scores
        Log q + log prior; ``-inf`` or NaN for those that could not be weighed.
    keys
        Their canonical keys: spellings of the same equation share its probability.
    log_rest
        Log of the sum of exp(score) over all other equations that are known.

    Returns
    -------
    ndarray
        Together with the share of the rest they add up to one; all are zero if no equation could be
        weighed, and NaN if none was.

    Examples
    --------
    >>> model_probabilities([-10.0, -10.0, -10.0], ["c0", "c0", "c0*x"])
    array([0.25, 0.25, 0.5 ])
    >>> model_probabilities([-10.0], ["c0"], log_rest=-10.0)
    array([0.5])
    """
    values = np.asarray(scores, dtype=float)
    if np.isnan(values).all():
        return np.full(len(values), np.nan)
    values = np.where(np.isnan(values), -np.inf, values)
    best = max(values.max(), log_rest)
    if not np.isfinite(values.max()):
        return np.zeros(len(values))
    n_spellings = np.empty(len(values))
    for spellings in group_laws([Trace(key) for key in keys]).values():
        n_spellings[spellings] = len(spellings)
    weights = np.exp(values - best) / n_spellings
    return np.asarray(weights / (weights.sum() + np.exp(log_rest - best)))


def pareto_front(score: Sequence[float], complexity: Sequence[int]) -> list[int]:
    """Places of the equations that no other beats in both score and complexity.

    Parameters
    ----------
    score
        Larger is better: log q + log prior, or the negative RMSE. What is not finite is never on
        the front.
    complexity
        Smaller is better.

    Returns
    -------
    list of int
        Simplest first, so with rising score. Of equals the first.

    Examples
    --------
    >>> pareto_front([-10.0, -12.0, -11.0, -13.0], [9, 4, 4, 3])
    [3, 2, 0]
    """
    best, front = -np.inf, []
    for place in sorted(range(len(score)), key=lambda k: (complexity[k], -score[k])):
        if np.isfinite(score[place]) and score[place] > best:
            best = score[place]
            front.append(place)
    return front
