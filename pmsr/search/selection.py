"""Decisions on plain numbers: Algorithm 1, its conventional counterpart, and the winner shown."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Replacement = Callable[[float, float, np.random.Generator], bool]


def replacement_probability(log_q_child: float, log_q_parent: float) -> float:
    r"""Probability that the child replaces its paired parent.

    Parameters
    ----------
    log_q_child, log_q_parent
        Log normalized marginal likelihood, :math:`\log q(\gamma)` of Eq. (5); ``-inf`` if the
        candidate failed.

    Returns
    -------
    float
        :math:`q_1 / (q_1 + q_2)`, line 4 of Algorithm 1. Two failed candidates tie at 0.5.

    Notes
    -----
    Evaluated as a logistic function of the log Bayes factor: q itself underflows for
    a few hundred observations.

    Examples
    --------
    >>> round(replacement_probability(-10.0, -12.0), 3)
    0.881
    >>> replacement_probability(-np.inf, -np.inf)
    0.5
    """
    if log_q_child == log_q_parent:
        return 0.5
    return float(expit(log_q_child - log_q_parent))


def replaces_probabilistically(
    log_q_child: float, log_q_parent: float, rng: np.random.Generator
) -> bool:
    """Decide by lines 4 to 10 of Algorithm 1 whether the child takes its parent's place."""
    return bool(rng.random() <= replacement_probability(log_q_child, log_q_parent))


def replaces_if_better(score_child: float, score_parent: float, rng: np.random.Generator) -> bool:
    """Decide by deterministic crowding (Section 2.1): the child must be at least as good.

    Scores are larger for better candidates, such as the negative RMSE. The generator is not used:
    both decisions are called alike.
    """
    return score_child >= score_parent


def pair_by_distance(
    distances: tuple[float, float, float, float],
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Pair two parents with their most similar children.

    Parameters
    ----------
    distances
        From the first parent to both children, then from the second parent to both.

    Returns
    -------
    tuple
        Two pairs of places, of a parent and of its child.

    Examples
    --------
    >>> pair_by_distance((5, 1, 1, 5))
    ((0, 1), (1, 0))
    """
    if distances[0] + distances[3] <= distances[1] + distances[2]:
        return (0, 0), (1, 1)
    return (0, 1), (1, 0)


def simplest_close(
    log_q: Sequence[float],
    log_q_se: Sequence[float],
    complexity: Sequence[int],
    n_parameters: Sequence[int],
    *,
    margin: float = 1.0,
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
    known = np.where(errors < 1.0, values, -np.inf)
    best = int(np.argmax(known if np.isfinite(known).any() else values))
    margins = np.maximum(margin, 2.0 * np.hypot(errors, errors[best]))
    close = [k for k in range(len(values)) if values[best] - values[k] <= margins[k]]
    trusted = [k for k in close if errors[k] < 1.0] or close
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
    spellings = Counter(keys)
    weights = np.exp(values - best) / [spellings[key] for key in keys]
    return np.asarray(weights / weights.sum())


def group_alike(
    curves: NDArray[np.float64], order: Sequence[int], tolerance: float
) -> dict[int, list[int]]:
    """Group equations that are the same curve in other parameters.

    Parameters
    ----------
    curves
        Values of each equation's best fit at some points, of shape (n_equations, n_points).
    order
        Places of the equations; the first of a group speaks for it.
    tolerance
        By how much the values of one curve may differ.

    Returns
    -------
    dict
        The places of each group, the speaker's included, by the place of the speaker.

    Examples
    --------
    >>> group_alike(np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0]]), [2, 1, 0], 0.01)
    {2: [2, 0], 1: [1]}
    """
    groups: dict[int, list[int]] = {}
    for place in order:
        for speaker, members in groups.items():
            if np.allclose(curves[place], curves[speaker], rtol=0, atol=tolerance, equal_nan=True):
                members.append(place)
                break
        else:
            groups[place] = [place]
    return groups


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
