"""One search on one dataset, as a unit of work: what was found, and how it went."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pmsr.data import Data, make_data
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.evidence.evidence import fit_rmse, seed_for
from pmsr.evidence.problem import Problem
from pmsr.experiments.datasets import Source, read_source
from pmsr.experiments.laws import extends_law, is_law, is_special_case, rmse_of
from pmsr.experiments.paper_settings import QUICK, SEARCH
from pmsr.experiments.work import Record, Task
from pmsr.search.evolution import Evolution, run_evolution
from pmsr.settings import Search, Settings

KEPT_HISTORY = (
    "generation",
    "complexity_best",
    "complexity_mean",
    "parameters_mean",
    "rmse_best",
    "n_distinct",
    "n_candidates",
)

# The paper's conventional search optimises from one start.
SETTINGS = {"evidence": QUICK, "rmse": replace(QUICK, n_multistarts=1)}

# The paper's search: a parameter may stand in several places, a variable in an exponent, and
# nothing is done but crossover, mutation and crowding.
PAPER: dict[str, Any] = {
    "share_parameters": True,
    "variable_exponents": True,
    "nested_functions": True,
    "refresh": None,
}


def search_task(
    name: str,
    source: Source,
    search: dict[str, Any],
    seed: int,
    *,
    test: Source | None = None,
    law: str | None = None,
    truth: Sequence[float] = (),
) -> Task:
    """Describe a search: its data, options of `Search`, and what to compare the results with."""
    return {
        "name": name,
        "source": source,
        "search": search,
        "seed": seed,
        "test": test,
        "law": law,
        "truth": list(truth),
    }


def search_one(task: Task) -> Record:
    """Search once; the winner, the finalists, the last population, and every generation."""
    data = make_data(*read_source(task["source"]))
    search = Search(**SEARCH, **task["search"])
    clock, cpu = time.monotonic(), time.process_time()
    found = run_evolution(
        data, search=search, settings=SETTINGS[search.fitness], random_seed=task["seed"], n_jobs=1
    )
    if found.stopped == "interrupted":
        # Half a search must not be taken for a whole one when the experiment goes on.
        raise KeyboardInterrupt
    record: Record = {
        "source": task["source"],
        "seed": task["seed"],
        "winner": _describe(found, found.winner, data),
        "finalists": [_describe(found, equation, data) for equation, _ in found.finalists],
        "stopped": found.stopped,
        "n_candidates": found.n_candidates,
        "seconds": time.monotonic() - clock,
        "cpu_seconds": time.process_time() - cpu,
        "history": [{name: row[name] for name in KEPT_HISTORY} for row in found.history],
    }
    if task["test"] is not None:
        _add_test(record, found, data, make_data(*read_source(task["test"])))
    if task["law"] is not None:
        law = Equation(task["law"], data.names)
        record |= _recognise(record, found, law, task["truth"], data)
    return record


def _describe(found: Evolution, equation: Equation, data: Data) -> Record:
    evidence = next(evidence for other, evidence in found.finalists if other is equation)
    return {
        "equation": str(equation),
        "complexity": equation.complexity,
        "n_parameters": len(equation.parameters),
        "log_q": evidence.log_q,
        "log_q_se": evidence.log_q_se,
        "rmse": evidence.rmse,
        "theta": evidence.theta,
    }


def _add_test(record: Record, found: Evolution, data: Data, test: Data) -> None:
    """Add the error on other data, of the winner and of the best of every generation."""
    errors: dict[str, float] = {}
    problem = Problem.of(data, Settings())
    for row, kept in zip(found.history, record["history"], strict=True):
        if row["best"] not in errors:
            equation = Equation(row["best"], data.names)
            seed = seed_for(row["best"], 0)
            fit = fit_rmse(equation.program, problem, Settings(n_multistarts=4), seed)
            errors[row["best"]] = error_on(equation, fit.theta, test)
        kept["test_rmse"] = errors[row["best"]]
    for one in (record["winner"], *record["finalists"]):
        one["test_rmse"] = error_on(
            Equation(one["equation"], data.names), np.asarray(one["theta"]), test
        )


def error_on(equation: Equation, theta: np.ndarray, data: Data) -> float:
    """Root mean squared error on data, infinite where the equation is not finite.

    Examples
    --------
    >>> error_on(Equation("c0*x", ["x"]), np.array([2.0]), make_data([1.0, 2.0], [2.0, 5.0]))
    0.7071067811865476
    """
    with np.errstate(all="ignore"):
        values = evaluate(equation.program, theta[None, :], data.X)[0]
        error = float(np.sqrt(np.mean((values - data.y) ** 2)))
    return error if np.isfinite(error) else np.inf


def _recognise(
    record: Record, found: Evolution, law: Equation, truth: list[float], data: Data
) -> Record:
    """Look for the law among winner, finalists and the last population."""
    target = rmse_of(law, data)

    def matches(equation: Equation) -> bool:
        # The same law fits the data equally well: a cheap test before the thorough one.
        same = abs(rmse_of(equation, data) - target) <= 1e-4 * target
        return same and is_law(equation, law, truth, data.X)

    finalists = [equation for equation, _ in found.finalists]
    place = next((k for k, equation in enumerate(finalists) if matches(equation)), None)
    best = found.finalists[0][1].log_q
    counts = Counter(found.population)
    laws, extensions, others = 0, 0, Counter[float]()
    for key, n in counts.items():
        if key.startswith("!"):
            continue
        equation = Equation(key, data.names)
        rmse = rmse_of(equation, data)
        if abs(rmse - target) <= 1e-4 * target and is_law(equation, law, truth, data.X):
            laws += n
            continue
        if len(equation.parameters) > len(law.parameters) and rmse < (1 + 1e-6) * target:
            extensions += n if extends_law(equation, law, truth, data.X) else 0
        if np.isfinite(rmse):
            # Spellings of one equation fit equally well, to all digits.
            others[float(f"{rmse:.6g}")] += n
    return {
        "law_won": matches(found.winner),
        "special_case_won": is_special_case(
            found.winner, np.asarray(record["winner"]["theta"]), law, data.X
        ),
        "law_place": place,
        "law_behind": best - found.finalists[place][1].log_q if place is not None else np.nan,
        "law_in_population": laws,
        "extensions_in_population": extensions,
        "largest_other": max(others.values(), default=0),
        "population_size": len(found.population),
        "law_found": place is not None or laws > 0,
    }
