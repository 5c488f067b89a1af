"""How often, and how fast, the search finds known laws.

python benchmarks/search.py [--problems shelf no_shelf ...] [--seeds 10] [--time 30] [--jobs 1]
    [--options '{"refresh": null}'] [--name search]

The law is reported if it is among the finalists, and so weighed; it wins if it is the first. Noise
is 5 to 10 % of the standard deviation of the target, but for Galileo's and the sine. The aims,
fixed before the first run: reported in at least 9 of 10 seeds of every problem, 30 s each; the
winner in 85 % in all and in at least 6 of 10 of each; on pure noise a constant in 9 of 10.

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


def with_noise(text, columns, truth, seed, share=0.05, n=40, low=1.0, high=3.0, whole=False):
    rng = np.random.default_rng(seed)
    X = rng.uniform(low, high, size=(n, len(columns)))
    if whole:  # Rydberg's: whole numbers, the second larger
        X = np.cumsum(rng.integers(1, 4, size=X.shape), axis=1).astype(float)
    law = pmsr.Equation(text, columns)
    y = evaluate(law.program, np.array([truth]), X)[0]
    return make_data(X, y + share * np.std(y) * rng.normal(size=n), names=columns)


def synthetic_no_shelf(seed):
    """One of the paper's datasets with normal noise on the least-squares law."""
    rng = np.random.default_rng(seed)
    D = rng.uniform(0, 800, size=7)
    H = 1.099e-3 * D**2 / (1 - 1.121e-3 * D)
    return make_data(D, H + 8.79 * rng.normal(size=7), names=["D"])


def plain(text, truth, columns, *more, **options):
    """Return the row of a law with a few percent of noise, 20 to 60 rows."""
    return (
        lambda seed: with_noise(text, columns, truth, seed, **options),
        (*ARITHMETIC, *more),
        text,
        truth,
    )


def noise(seed):
    rng = np.random.default_rng(seed)
    return make_data(rng.uniform(1.0, 3.0, size=30), rng.normal(size=30), names=["x"])


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
    "radiation": plain("c0*(T1**4 - T2**4)", [0.5], ["T1", "T2"]),
    "hill": plain("c0*x**2/(c1 + x**2)", [2.0, 1.5], ["x"], n=30, low=0.1, high=5.0),
    "log_ratio": plain("c0 + c1*log(x/y)", [1.0, 2.0], ["x", "y"], "log"),
    "root": plain("c0*sqrt(p/d)", [3.0], ["p", "d"], "sqrt", n=30, share=0.1),
    "rydberg": plain("R0*(1/n1**2 - 1/n2**2)", [10.97], ["n1", "n2"], n=30, whole=True),
    "hypotenuse": plain("sqrt(x**2 + y**2)", [], ["x", "y"], "sqrt", n=30),
    "powers": plain("c0*x**c1*y**c2", [1.5, 0.7, -1.3], ["x", "y"], "pow"),
    "beam": plain("c0*F*L**3/b", [0.25], ["F", "L", "b"], share=0.1),
    "decay": plain("c0*exp(-t/c1) + c2", [3.0, 0.8, 1.0], ["t"], "exp", n=30, low=0.0),
    "noise": (noise, (*ARITHMETIC, "sqrt"), "c0", [0.0]),
}


def varies(equation):
    """Tell whether an equation depends on a variable at all."""
    return any(symbol.name in equation.variables for symbol in equation.expression.free_symbols)


def contains(equation, law, truth, X):
    """Tell whether an equation with no more parameters is the law at its true parameters."""
    if not varies(law):
        return not varies(equation)
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
    if not varies(law):
        return not varies(equation)
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


def run(problem, seed, seconds, generations, jobs, options):
    """One search; who won, when the law was first seen, and where it ranks."""
    make, operators, text, truth = PROBLEMS[problem]
    data = make(seed)
    law = pmsr.Equation(text, data.names)
    search = Search(
        **{
            "operators": operators,
            "generations": generations,
            **options,
        }
    )
    started, cpu = time.monotonic(), time.process_time()
    found = run_evolution(
        data,
        search=search,
        random_seed=seed,
        n_jobs=jobs,
        callbacks=[lambda told: time.process_time() - cpu > seconds],
    )
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
        "place": places[0] + 1 if places else 0,
        "behind": best - found.finalists[places[0]][1].log_q if places else np.nan,
        "generations": last["generation"],
        "seconds": elapsed,
        "cpu": cpu,
        "candidates": found.n_candidates,
        "folded": found.n_folded,
        "sampled": found.n_sampled,
        "enumerated": found.n_enumerated,
        "distinct": last["n_distinct"],
        "stopped": found.stopped,
        **{f"{name}_s": seconds for name, seconds in spent.items()},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--time", type=float, default=30.0, help="CPU seconds of a search, but for the finalists"
    )
    parser.add_argument("--generations", type=int, default=10**6)
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
    table = Table(title=f"{arguments.seeds} seeds, {arguments.time:.0f} CPU s each")
    for column in (
        "problem",
        "won",
        "reported",
        "nats behind",
        "seconds",
        "generations",
        "eq/s",
        "sampled",
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
            f"{np.median([row['sampled'] / row['candidates'] for row in mine]):.1%}",
        )
    console = Console(width=120)
    console.print(table)
    console.print("median / worst where there are two numbers")
    for row in rows:
        if not row["won"]:
            console.print(f"{row['problem']} seed {row['seed']}: {row['winner']}")


if __name__ == "__main__":
    main()
