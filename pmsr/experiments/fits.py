"""One equation on one dataset, as a unit of work: evidence, posterior, predictions."""

import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.evidence.diagnostics import normality
from pmsr.evidence.evidence import compute_evidence
from pmsr.evidence.posterior import sample_posterior
from pmsr.evidence.prediction import predict
from pmsr.experiments.datasets import Source, read_source
from pmsr.experiments.paper_settings import FINALIST
from pmsr.experiments.work import Record, Task

LEVEL = 0.95
N_KEPT = 250  # draws of each chain that are kept for the figures
N_MULTISTARTS = 32  # more than a search can afford: a minimum next to a pole is easily missed


def fit_task(
    name: str, equation: str, source: Source, grid: tuple[float, float], seed: int
) -> Task:
    """Describe the fit of one equation; ``grid`` is the range in which it shall predict."""
    return {
        "name": name,
        "equation": equation,
        "source": source,
        "grid": list(grid),
        "seed": seed,
        "n_multistarts": N_MULTISTARTS,
    }


def fit_one(task: Task) -> Record:
    """Weigh, sample and predict one equation."""
    X, y = read_source(task["source"])
    equation = Equation(task["equation"], list(X.columns))
    # A pole next to an observation would fall between two points of a plain grid.
    low, high = task["grid"]
    grid = np.unique(np.concatenate([np.linspace(low, high, 241), X.to_numpy()[:, 0]]))
    settings = replace(FINALIST, n_multistarts=task["n_multistarts"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evidence = compute_evidence(equation, X, y, settings=settings, random_seed=task["seed"])
        # Any: the type of a posterior depends on ArviZ.
        posterior: Any = sample_posterior(
            equation, X, y, settings=settings, random_seed=task["seed"], pointwise=False
        )
        table = predict(posterior, grid, level=LEVEL)
    group = posterior.posterior
    kept = {name: np.asarray(group[name])[:, ::4][:, :N_KEPT] for name in group.data_vars}
    fitted = evaluate(equation.program, evidence.theta[None, :], X.to_numpy())[0]
    return {
        "equation": task["equation"],
        "parameters": list(equation.parameters),
        "complexity": equation.complexity,
        "log_q": evidence.log_q,
        "log_q_se": evidence.log_q_se,
        "prior_sensitivity": evidence.prior_sensitivity,
        "failure": evidence.failure,
        "theta": evidence.theta,
        "rmse": evidence.rmse,
        "shapiro_p": normality(y.to_numpy() - fitted),
        "estimates": {
            name: {
                "mean": float(group[name].mean()),
                "sd": float(group[name].std()),
                "low": float(group[name].quantile(0.5 - LEVEL / 2)),
                "high": float(group[name].quantile(0.5 + LEVEL / 2)),
            }
            for name in group.data_vars
        },
        "attrs": {name: group.attrs[name] for name in ("parameters", "held", "theta_map")},
        "draws": {name: _rounded(values) for name, values in kept.items()},
        "grid": grid,
        "prediction": {name: _rounded(table[name].to_numpy()) for name in table},
        "warnings": sorted({str(warning.message) for warning in caught}),
    }


def _rounded(values: Any) -> Any:
    """Six digits are enough for a figure."""
    return [
        _rounded(value) if isinstance(value, list) else float(f"{value:.6g}")
        for value in (values.tolist() if isinstance(values, np.ndarray) else values)
    ]


def to_posterior(record: Record) -> Any:
    """Return the kept draws in the shape that `pmsr.plots` draws."""
    variables = {
        name: (("chain", "draw"), np.array(values)) for name, values in record["draws"].items()
    }
    return SimpleNamespace(posterior=xr.Dataset(variables, attrs=record["attrs"]))


def to_prediction(record: Record) -> pd.DataFrame:
    """Return the predictions as `pmsr.predict` did."""
    table = pd.DataFrame(record["prediction"])
    table.attrs["level"] = LEVEL
    return table


def to_row(record: Record) -> dict[str, Any]:
    """Return the numbers of a fit that are not arrays, for a table."""
    row = {
        name: record[name]
        for name in ("equation", "complexity", "log_q", "log_q_se", "prior_sensitivity", "rmse")
    }
    row |= {"n_parameters": len(record["parameters"]), "shapiro_p": record["shapiro_p"]}
    for name, value in zip(record["parameters"], record["theta"], strict=True):
        row[f"best_{name}"] = value
    for name, estimate in record["estimates"].items():
        row |= {f"{kind}_{name}": value for kind, value in estimate.items()}
    return row


def weigh_task(name: str, equation: str, source: Source, seed: int, n_repeats: int) -> Task:
    """Describe the weighing of one equation, by independent repetitions."""
    return {
        "name": name,
        "equation": equation,
        "source": source,
        "seed": seed,
        "n_repeats": n_repeats,
        "n_multistarts": N_MULTISTARTS,
    }


def weigh_one(task: Task) -> Record:
    """Weigh one equation several times, each with fits of its own.

    The standard error is the larger of what the repetitions claim and of what they show.
    """
    X, y = read_source(task["source"])
    settings = replace(FINALIST, n_multistarts=task["n_multistarts"])
    equation = Equation(task["equation"], list(X.columns))
    runs = [
        compute_evidence(equation, X, y, settings=settings, random_seed=task["seed"] + k)
        for k in range(task["n_repeats"])
    ]
    invariant = replace(settings, parameter_prior="invariant")
    other = compute_evidence(equation, X, y, settings=invariant, random_seed=task["seed"])
    log_q = np.array([run.log_q for run in runs])
    claimed = float(np.sqrt(np.mean([run.log_q_se**2 for run in runs]) / len(runs)))
    shown = float(np.std(log_q, ddof=1) / np.sqrt(len(runs))) if len(runs) > 1 else 0.0
    best = min(runs, key=lambda run: run.rmse)
    return {
        "equation": task["equation"],
        "n_parameters": len(equation.parameters),
        "complexity": equation.complexity,
        "log_q": float(np.mean(log_q)),
        "log_q_se": max(claimed, shown),
        "log_q_invariant": other.log_q,
        "log_q_runs": log_q,
        "prior_sensitivity": best.prior_sensitivity,
        "rmse": best.rmse,
        "theta": best.theta,
        "failure": next((run.failure for run in runs if run.failure), None),
    }
