"""How often, and how fast, the search finds known laws.

python benchmarks/search.py [--problems shelf no_shelf ...] [--seeds 10] [--time 120] [--jobs 1]
    [--options '{"refresh": null}'] [--name search]

A law counts as found in any algebraic form: an equation with as many parameters as the law that
fits noiseless data of the law, for several values of its parameters, to six digits. As a winner, it
may also be the law with some of its numbers, such as the 2 in 2*sin(x) + c0.
"""

import argparse
import csv
import json
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import pmsr
import pmsr.evidence.evidence
from pmsr.data import make_data
from pmsr.equation.program import evaluate
from pmsr.evidence.evidence import fit_rmse
from pmsr.evidence.problem import Problem
from pmsr.search.evolution import run_evolution
from pmsr.settings import Search, Settings

RESULTS = Path(__file__).parent / "results"
ARITHMETIC = ("+", "-", "*", "/")


def sine(seed):
    return pmsr.make_sine(n_points=20, sigma=0.3, random_seed=seed)


def with_noise(text, columns, truth, seed, share=0.05, n=100):
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 3.0, size=(n, len(columns)))
    law = pmsr.Equation(text, columns)
    y = evaluate(law.program, np.array([truth]), X)[0]
    return make_data(X, y + share * np.std(y) * rng.normal(size=n), names=columns)


def synthetic_no_shelf(seed):
    """One of the paper's datasets with normal noise on the least-squares law."""
    rng = np.random.default_rng(seed)
    D = rng.uniform(0, 800, size=7)
    H = 1.099e-3 * D**2 / (1 - 1.121e-3 * D)
    return make_data(D, H + 8.79 * rng.normal(size=7), names=["D"])


# name: (data of a seed, operators, law, parameters of the law)
PROBLEMS = {
    "shelf": (
        lambda seed: make_data(*pmsr.load_galileo("shelf")),
        (*ARITHMETIC, "pow", "sqrt"),
        "c0*sqrt(H)",
        [47.0],
    ),
    "no_shelf": (
        lambda seed: make_data(*pmsr.load_galileo("no_shelf")),
        (*ARITHMETIC, "pow", "sqrt"),
        "k1*D**2/(1 + k2*D)",
        [1.1e-3, -1.12e-3],
    ),
    "synthetic": (
        synthetic_no_shelf,
        (*ARITHMETIC, "pow", "sqrt"),
        "k1*D**2/(1 + k2*D)",
        [1.1e-3, -1.12e-3],
    ),
    "sine": (
        lambda seed: make_data(*sine(seed)),
        ("+", "-", "*", "sin"),
        "c0*sin(x0) + c1",
        [2, 3],
    ),
    "products": (
        lambda seed: with_noise("c0*x0*x1 + c1*x2", ["x0", "x1", "x2"], [2.0, -3.0], seed),
        ARITHMETIC,
        "c0*x0*x1 + c1*x2",
        [2.0, -3.0],
    ),
    "newton": (
        lambda seed: with_noise("c0*m1*m2/r**2", ["m1", "m2", "r"], [6.7], seed),
        ARITHMETIC,
        "c0*m1*m2/r**2",
        [6.7],
    ),
}


def contains(equation, law, truth, X):
    """Tell whether an equation with no more parameters is the law at its true parameters."""
    if len(equation.parameters) > len(law.parameters):
        return False
    y = evaluate(law.program, np.array([truth], dtype=float), X)[0]
    data = make_data(X, y, names=equation.variables)
    found = fit_rmse(
        equation.program, Problem.of(data, Settings()), Settings(), np.random.SeedSequence(0)
    )
    return found.failure is None and found.rmse <= 1e-6 * np.std(y)


def is_law(equation, law, truth, X):
    """Tell whether an equation is the law in other words."""
    if len(equation.parameters) != len(law.parameters):
        return False
    rng = np.random.default_rng(0)
    for _ in range(3):
        theta = np.array(truth) * rng.uniform(0.7, 1.0, size=len(truth))
        y = evaluate(law.program, theta[None, :], X)[0]
        data = make_data(X, y, names=equation.variables)
        found = fit_rmse(
            equation.program, Problem.of(data, Settings()), Settings(), np.random.SeedSequence(0)
        )
        if found.failure is not None or found.rmse > 1e-6 * np.std(y):
            return False
    return True


class FittingClock:
    """Adds up the time that `evidence` spends on fitting, in this process."""

    def __enter__(self):
        self.seconds, self.real = 0.0, pmsr.evidence.evidence.make_target

        def timed(*arguments, **options):
            started = time.monotonic()
            try:
                return self.real(*arguments, **options)
            finally:
                self.seconds += time.monotonic() - started

        pmsr.evidence.evidence.make_target = timed
        return self

    def __exit__(self, *_):
        pmsr.evidence.evidence.make_target = self.real


def run(problem, seed, seconds, generations, jobs, options):
    """One search; who won, when the law was first seen, and where it ranks."""
    make, operators, text, truth = PROBLEMS[problem]
    data = make(seed)
    law = pmsr.Equation(text, data.names)
    search = Search(
        **{
            "operators": operators,
            "generations": generations,
            "max_time": seconds,
            "patience": 150,
            **options,
        }
    )
    started, cpu = time.monotonic(), time.process_time()
    with FittingClock() as fitting:
        found = run_evolution(data, search=search, random_seed=seed, n_jobs=jobs)
    spent = found.seconds
    elapsed, cpu = time.monotonic() - started, time.process_time() - cpu
    equations = [equation for equation, _ in found.finalists]
    places = [k for k, e in enumerate(equations) if is_law(e, law, truth, data.X)]
    last = found.history[-1]
    best = found.finalists[0][1].log_q
    return {
        "problem": problem,
        "seed": seed,
        "winner": str(found.winner),
        "won": is_law(found.winner, law, truth, data.X)
        or contains(found.winner, law, truth, data.X),
        "reported": bool(places),
        "behind": best - found.finalists[places[0]][1].log_q if places else np.nan,
        "generations": last["generation"],
        "seconds": elapsed,
        "cpu": cpu,
        "candidates": found.n_candidates,
        "hit_rate": last["cache_hits"] / max(1, last["cache_lookups"]),
        "distinct": last["n_distinct"],
        "stopped": found.stopped,
        "variation_s": spent["variation"],
        "algebra_s": spent["algebra"],
        "fitting_s": fitting.seconds,
        "weighing_s": spent["weighing"],
        "finalists_s": spent["finalists"],
    }


def symbolic_share(row):
    """Share of the search, without the finalists, that goes to variation and algebra."""
    symbolic = row["variation_s"] + row["algebra_s"]
    return symbolic / (symbolic + row["weighing_s"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--time", type=float, default=120.0, help="seconds a search may take")
    parser.add_argument("--generations", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--options", type=json.loads, default={}, help="of Search, as JSON")
    parser.add_argument("--name", default="search", help="of the file with the results")
    arguments = parser.parse_args()
    tasks = [(problem, seed) for problem in arguments.problems for seed in range(arguments.seeds)]
    RESULTS.mkdir(exist_ok=True)
    rows = []
    with (RESULTS / f"{arguments.name}.csv").open("w", newline="") as file:
        for problem, seed in track(tasks, "searching"):
            limits = (arguments.time, arguments.generations, arguments.jobs)
            rows.append(run(problem, seed, *limits, arguments.options))
            if len(rows) == 1:
                writer = csv.DictWriter(file, rows[0])
                writer.writeheader()
            writer.writerow(rows[-1])
            file.flush()
    table = Table(title=f"{arguments.seeds} seeds, at most {arguments.time:.0f} s each")
    for column in (
        "problem",
        "won",
        "reported",
        "nats behind",
        "seconds",
        "generations",
        "eq/s",
        "cache hits",
        "variation + algebra",
    ):
        table.add_column(column, justify="right")
    for problem in arguments.problems:
        mine = [row for row in rows if row["problem"] == problem]

        def spread(name, mine=mine):
            values = [row[name] for row in mine]
            return f"{np.nanmedian(values):.1f} / {np.nanmax(values):.1f}"

        table.add_row(
            problem,
            f"{sum(row['won'] for row in mine)}",
            f"{sum(row['reported'] for row in mine)}",
            spread("behind"),
            spread("seconds"),
            spread("generations"),
            f"{np.median([row['candidates'] / row['seconds'] for row in mine]):.0f}",
            f"{np.median([row['hit_rate'] for row in mine]):.0%}",
            f"{np.median([symbolic_share(row) for row in mine]):.0%}",
        )
    console = Console(width=120)
    console.print(table)
    console.print("median / worst where there are two numbers")
    for row in rows:
        if not row["won"]:
            console.print(f"{row['problem']} seed {row['seed']}: {row['winner']}")


if __name__ == "__main__":
    main()
