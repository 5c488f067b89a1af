"""Whether a conclusion hangs on the priors: the winner under others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from pmsr.evidence.evidence import seed_for, weigh
from pmsr.laws.order import model_probabilities, rank
from pmsr.result.family import Family
from pmsr.result.fitted import FittedEquation
from pmsr.result.scoring import find_log_prior

N_REWEIGHED = 5  # of the leading laws that are weighed again under the other prior of parameters


def tabulate_robustness(
    equations: Sequence[FittedEquation],
    families: Sequence[Family],
    chosen: int,
    n_reweighed: int = N_REWEIGHED,
) -> pd.DataFrame:
    """Return the winner, and the probability of what was chosen, under other priors.

    Parameters
    ----------
    equations
        The laws, best first.
    families
        The families of them.
    chosen
        Place of the law that is put forward.
    n_reweighed
        How many of the leading laws are weighed again with parameters that are flat, as in the
        paper, or invariant if they were flat; 0 for none.

    Returns
    -------
    DataFrame
        As :meth:`pmsr.result.result.Result.robustness`.
    """
    is_count = isinstance(n_reweighed, int | np.integer) and not isinstance(n_reweighed, bool)
    if not is_count or n_reweighed < 0:
        raise ValueError(f"n_reweighed must be an integer of at least 0, got {n_reweighed!r}.")
    leading = [k for k, one in enumerate(equations) if np.isfinite(one.score)]
    own = next((one.places for one in families if chosen in one.places), (chosen,))
    rows = []
    for name, scores in _other_scores(equations, leading, n_reweighed).items():
        places = list(scores)
        keys = [equations[k].equation.key for k in places]
        probabilities = model_probabilities(list(scores.values()), keys)
        sizes = [equations[k].equation.complexity for k in places]
        first = rank(list(scores.values()), sizes)[0]
        shares = dict(zip(places, probabilities.tolist(), strict=True))
        rows.append(
            {
                "prior": name,
                "winner": equations[places[first]].equation.text,
                "probability": shares[places[first]],
                "of_best": shares.get(chosen, np.nan),
                "of_family": float(sum(shares.get(k, 0.0) for k in own)),
                "same_family": places[first] in own,
            }
        )
    columns = ["prior", "winner", "probability", "of_best", "of_family", "same_family"]
    table = pd.DataFrame(rows, columns=columns).set_index("prior")
    is_robust = bool(table["same_family"].all())
    table.attrs["verdict"] = "robust" if is_robust else "depends on the prior"
    return table


def _other_scores(
    equations: Sequence[FittedEquation], leading: Sequence[int], n_reweighed: int
) -> Mapping[str, Mapping[int, float]]:
    """Return scores by place under each prior."""
    if not leading:
        return {}
    log_q = {k: equations[k].evidence.log_q for k in leading}
    cost = {k: equations[k].log_prior for k in leading}
    scores = {"as reported": {k: log_q[k] + cost[k] for k in leading}}
    if any(cost.values()):
        scores["laws equally probable"] = log_q
        scores["costs halved"] = {k: log_q[k] + 0.5 * cost[k] for k in leading}
        scores["costs doubled"] = {k: log_q[k] + 2.0 * cost[k] for k in leading}
    else:
        described = {
            k: find_log_prior(
                equations[k].equation,
                equations[k].data,
                "description",
                units=equations[k].units,
                evidence=equations[k].evidence,
            )
            for k in leading
        }
        scores["short laws more probable"] = {k: log_q[k] + described[k] for k in leading}
    few = leading[:n_reweighed]
    if few:
        was_flat = equations[few[0]].problem.parameter_prior == "flat"
        name = "parameters invariant" if was_flat else "parameters flat"
        scores[name] = {k: _reweigh(equations[k]) + cost[k] for k in few}
    return scores


def _reweigh(fitted: FittedEquation) -> float:
    """Return log q under the other prior of the parameters."""
    was_flat = fitted.problem.parameter_prior == "flat"
    problem = replace(fitted.problem, parameter_prior="invariant" if was_flat else "flat")
    seed = seed_for(fitted.equation.key, fitted.random_seed)
    return weigh(fitted.equation.program, problem, fitted.settings, seed).evidence.log_q
