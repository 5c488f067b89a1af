"""Test error and size of the winner against noise: Bayesian and conventional search (Section 3.1).

python benchmarks/noise.py [--sigmas 0.1 0.3 0.5] [--seeds 5] [--generations 1000] [--time 120]
    [--islands 1] [--evidence screened]

The data are the paper's: y = 2 sin(x) + 3 + noise at 20 points, operators + - *. The test error is
the RMSE at 1000 other noisy points, the same for all seeds; the true law's would be sigma. One
island of 120 is the paper's population.
"""

import argparse
import csv
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

import pmsr
from pmsr.data import make_data
from pmsr.equation.program import evaluate
from pmsr.search.evolution import run_evolution
from pmsr.settings import Search

RESULTS = Path(__file__).parent / "results"
TEST_SEED = 10_000
ENGINES = {"Bayesian": "evidence", "conventional": "rmse"}


def rmse(equation, theta, data):
    values = evaluate(equation.program, theta[None, :], data.X)[0]
    return float(np.sqrt(np.mean((values - data.y) ** 2)))


def run(engine, sigma, seed, generations, seconds, islands, evidence):
    """One search; the winner's size and errors, and those of every finalist."""
    data = make_data(*pmsr.make_sine(n_points=20, sigma=sigma, random_seed=seed))
    test = make_data(*pmsr.make_sine(n_points=1000, sigma=sigma, random_seed=TEST_SEED))
    search = Search(
        operators=("+", "-", "*"),
        generations=generations,
        max_time=seconds,
        fitness=ENGINES[engine],
        n_islands=islands,
        evidence=evidence,
    )
    started = time.monotonic()
    found = run_evolution(data, search=search, random_seed=seed)
    rows = [
        {
            "engine": engine,
            "sigma": sigma,
            "seed": seed,
            "winner": equation is found.winner,
            "equation": str(equation),
            "log_q": evidence.log_q,
            "log_q_se": evidence.log_q_se,
            "complexity": equation.complexity,
            "parameters": len(equation.parameters),
            "train": evidence.rmse,
            "test": rmse(equation, evidence.theta, test) if np.isfinite(evidence.rmse) else np.inf,
            "generations": found.history[-1]["generation"],
            "seconds": time.monotonic() - started,
        }
        for equation, evidence in found.finalists
    ]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sigmas", type=float, nargs="+", default=[0.1, 0.3, 0.5])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--generations", type=int, default=1000)
    parser.add_argument("--time", type=float, default=None, help="seconds a search may take")
    parser.add_argument("--islands", type=int, default=1)
    parser.add_argument("--evidence", choices=("screened", "smc"), default="screened")
    parser.add_argument("--jobs", type=int, default=1, help="searches at a time")
    arguments = parser.parse_args()
    tasks = [
        (engine, sigma, seed)
        for sigma in arguments.sigmas
        for seed in range(arguments.seeds)
        for engine in ENGINES
    ]
    found = Parallel(n_jobs=arguments.jobs, verbose=10)(
        delayed(run)(
            *task, arguments.generations, arguments.time, arguments.islands, arguments.evidence
        )
        for task in tasks
    )
    rows = [row for one in found for row in one]
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "noise.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    table = Table(title=f"winners, median / worst of {arguments.seeds} seeds")
    for column in ("sigma", "engine", "test/sigma", "train/sigma", "complexity", "parameters"):
        table.add_column(column, justify="right")
    for sigma in arguments.sigmas:
        for engine in ENGINES:
            mine = [r for r in rows if r["winner"] and (r["engine"], r["sigma"]) == (engine, sigma)]
            cells = []
            for name in ("test", "train", "complexity", "parameters"):
                unit = sigma if name in ("test", "train") else 1.0
                values = np.array([row[name] for row in mine]) / unit
                cells.append(f"{np.median(values):.3g} / {values.max():.3g}")
            table.add_row(f"{sigma:g}", engine, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
