"""Which of several equations is better: score, order, winner, probabilities and Pareto front."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import Evidence
from pmsr.evidence.trust import are_known
from pmsr.laws.identity import Trace, group_laws

# The best of many noisy estimates would be the noisiest: what counts is what is nearly certain.
N_ERRORS = 2.0
MARGIN = 1.0  # nats that the data need to reject an equation, if few are compared
# Among thousands of forms some gain a nat by chance: on Galileo's shelf data sqrt(c0*H/(c1 + H))
# is 1.05 nats ahead of c0*sqrt(H), by quadrature. So the winner may be farther behind than in a
# comparison of a few equations.
SEARCH_MARGIN = 1.5


def certain_log_q(evidence: Evidence) -> float:
    """Return log q less two of its standard errors: what a search takes for the score."""
    return float(evidence.log_q - N_ERRORS * evidence.log_q_se)


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


def find_winner(weighed: Sequence[tuple[Equation, Evidence]], *, margin: float = MARGIN) -> int:
    """Place of the winner: the simplest equation that the data do not clearly reject."""
    return simplest_close(
        [evidence.log_q for _, evidence in weighed],
        [evidence.log_q_se for _, evidence in weighed],
        [equation.complexity for equation, _ in weighed],
        [len(equation.parameters) for equation, _ in weighed],
        margin=margin,
    )


def simplest_close(
    log_q: Sequence[float],
    log_q_se: Sequence[float],
    complexity: Sequence[int],
    n_parameters: Sequence[int],
    *,
    margin: float = MARGIN,
) -> int:
    """Place of the simplest equation that the data do not clearly reject.

    Parameters
    ----------
    log_q, log_q_se
        Evidence and its standard error; failed equations have ``-inf``.
    complexity, n_parameters
        What counts as simple: first the complexity, then the parameters, then the evidence.
    margin
        How many nats behind the best an equation may be.

    Returns
    -------
    int
        Among those within the margin of the best, or within two standard errors of the
        difference where these are larger.

    Examples
    --------
    >>> simplest_close([-10.0, -10.7, -12.0], [0.01] * 3, [9, 4, 3], [2, 1, 1])
    1
    """
    values, errors = np.asarray(log_q, dtype=float), np.asarray(log_q_se, dtype=float)
    if not np.isfinite(values).any():
        raise ValueError("No equation could be weighed: every log_q is -inf.")
    # A value that is not known to two nats cannot set the standard for the others.
    is_known = are_known(errors)
    known = np.where(is_known, values, -np.inf)
    best = int(np.argmax(known if np.isfinite(known).any() else values))
    margins = np.maximum(margin, N_ERRORS * np.hypot(errors, errors[best]))
    close = [k for k in range(len(values)) if values[best] - values[k] <= margins[k]]
    trusted = [k for k in close if is_known[k]] or close
    return min(trusted, key=lambda k: (complexity[k], n_parameters[k], -values[k]))


def model_probabilities(log_q: Sequence[float], keys: Sequence[str]) -> NDArray[np.float64]:
    """Posterior probabilities of equations that were equally likely beforehand, Eq. (4).

    Parameters
    ----------
    log_q
        Their evidence; ``-inf`` or NaN for those that could not be weighed.
    keys
        Their canonical keys: spellings of the same equation share its probability.

    Returns
    -------
    ndarray
        They add up to one; all are zero if no equation could be weighed, and NaN if none was.

    Examples
    --------
    >>> model_probabilities([-10.0, -10.0, -10.0], ["c0", "c0", "c0*x"])
    array([0.25, 0.25, 0.5 ])
    """
    values = np.asarray(log_q, dtype=float)
    if np.isnan(values).all():
        return np.full(len(values), np.nan)
    values = np.where(np.isnan(values), -np.inf, values)
    best = values.max()
    if not np.isfinite(best):
        return np.zeros(len(values))
    n_spellings = np.empty(len(values))
    for spellings in group_laws([Trace(key) for key in keys]).values():
        n_spellings[spellings] = len(spellings)
    weights = np.exp(values - best) / n_spellings
    return np.asarray(weights / weights.sum())


def pareto_front(score: Sequence[float], complexity: Sequence[int]) -> list[int]:
    """Places of the equations that no other beats in both score and complexity.

    Parameters
    ----------
    score
        Larger is better: log q, or the negative RMSE. What is not finite is never on the front.
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
