"""Who survives, on plain numbers: Algorithm 1 and its conventional counterpart."""

import numpy as np
from scipy.special import expit


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
