"""Equations in a table: what they are ranked by, and which of them is put forward."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import Evidence
from pmsr.laws.order import find_winner, model_probabilities
from pmsr.result.fitted import FittedEquation
from pmsr.search.engines import engine_of
from pmsr.settings import Search


def rank_by(equations: Sequence[FittedEquation], search: Search | None) -> list[float]:
    """Return what equations are ranked by, larger first."""
    engine = engine_of(search)
    if engine.has_evidence:
        return [fitted.score for fitted in equations]
    return [engine.rank(fitted.evidence) for fitted in equations]


def choose_winner(equations: Sequence[FittedEquation], search: Search | None = None) -> int:
    """Return the place of the equation that is put forward, see `find_winner`."""
    return find_winner(
        rank_by(equations, search),
        [fitted.evidence.log_q_se for fitted in equations],
        [fitted.equation.complexity for fitted in equations],
    )


def make_table(
    equations: Sequence[Equation],
    evidences: Sequence[Evidence],
    log_priors: Sequence[float] | None = None,
    log_rest: float = -np.inf,
) -> pd.DataFrame:
    """Arrange equations and their evidence as in :attr:`Result.table`, in their order."""
    log_q = np.array([evidence.log_q for evidence in evidences])
    log_prior = np.zeros(len(log_q)) if log_priors is None else np.array(log_priors)
    score = log_q + log_prior
    # If all failed, all are infinitely far from an equation that could be weighed.
    best = int(np.argmax(np.where(np.isfinite(score), score, -np.inf)))
    top, standard = (v[best] if np.isfinite(v[best]) else 0.0 for v in (score, log_q))
    with np.errstate(over="ignore"):
        bayes_factor = np.exp(standard - log_q)
    table = pd.DataFrame(
        {
            "equation": [equation.text for equation in equations],
            "log_q": log_q,
            "log_q_se": [evidence.log_q_se for evidence in evidences],
            "log_prior": log_prior,
            "score": score,
            "difference": score - top,
            "probability": model_probabilities(
                score.tolist(), [equation.key for equation in equations], log_rest
            ),
            "bayes_factor": bayes_factor,
            "parameters": [len(equation.parameters) for equation in equations],
            "complexity": [equation.complexity for equation in equations],
            "rmse": [evidence.rmse for evidence in evidences],
            "prior_sensitivity": [evidence.prior_sensitivity for evidence in evidences],
        }
    )
    # Of dtype object: a column of strings would turn None into NaN.
    table["failure"] = pd.Series([evidence.failure for evidence in evidences], dtype=object)
    table["latex"] = [equation.latex() for equation in equations]
    table.attrs["gamma"] = evidences[0].gamma
    table.attrs["sigma_bounds"] = evidences[0].sigma_bounds
    return table
