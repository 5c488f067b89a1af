"""Laws screened a second on many rows, by halving and each on all rows, and what halving loses.

python benchmarks/halving.py [--quick]

Random laws of 5 to 15 nodes. How fast all rows are, a few laws tell. What is lost: a term of 0.1
sigma in 100,000 rows, among laws of the enumeration that could stand in for it.
"""

import argparse
import time

import numpy as np
from rich.console import Console
from screening import random_laws, write

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.problem import Problem
from pmsr.search.enumeration import enumerate_laws
from pmsr.search.halving import Stages, screen_many
from pmsr.search.screening import Batch, screen
from pmsr.settings import Settings

console = Console()


def problem_of(n, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 3.0, n)
    y = np.sin(2.0 * x) * x + 0.1 * rng.standard_normal(n)
    return Problem.of(make_data(x[:, None], y), Settings())


def speed(n_laws):
    laws, rows = Batch.of(random_laws(("x0",), n_laws)), []
    screen_many(laws, problem_of(200), 0, Stages.of(problem_of(200).data, 0))  # compiled by now
    for n in (1_000, 10_000, 100_000):
        problem = problem_of(n)
        stages = Stages.of(problem.data, 0)
        reference = screen_many(laws, problem, 0, stages).reference
        begin = time.process_time()
        found = screen_many(laws, problem, 0, stages, reference)
        rate = n_laws / (time.process_time() - begin)
        few = laws.take(np.arange(0, n_laws, max(1, n_laws * n // 200_000)))
        begin = time.process_time()
        whole = screen(few, problem, 0)
        slow = len(few.nodes) / (time.process_time() - begin)
        times = found.n_points.mean() / (whole.n_evaluations.mean() * n)
        rows.append((n, n_laws, rate, slow, len(few.nodes), times, int(np.sum(found.n_rows == n))))
        console.print(
            f"N = {n}: {rate:.0f} laws per CPU second, {slow:.1f} if each is fitted on all rows; "
            f"{rows[-1][-1]} laws of {n_laws} reach all rows"
        )
    return rows


def small_terms(n_seeds):
    operators = ["+", "-", "*", "/", "sqrt", "exp"]
    levels = [level.laws for level in enumerate_laws(operators, 1, max_laws=8000)]
    rng, rows = np.random.default_rng(0), []
    chosen = rng.choice(len(levels[-1]), 1000, replace=False)
    texts = ("c0 + c1*x0 + c2*x0**2", "c0 + c1*x0")
    programs = [Equation(text, ["x0"]).program for text in texts]
    laws = Batch.of(programs + [levels[-1].program(k) for k in chosen])
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0.2, 2.2, 100_000)
        bend = ((x - 1.2) ** 2 - 1.0 / 3.0) / np.sqrt(4.0 / 45.0)
        y = 2.0 + 3.0 * x + 0.05 * bend + 0.5 * rng.standard_normal(len(x))
        problem = Problem.of(make_data(x[:, None], y), Settings())
        found = screen_many(laws, problem, seed, Stages.of(problem.data, seed))
        ahead = found.log_q[0] - found.log_q[1]
        rows.append((seed, found.n_rows[0], found.n_rows[1], ahead, found.log_q_error[1]))
    reached = sum(row[1] == 100_000 for row in rows)
    console.print(f"A term of 0.1 sigma reaches all of 100,000 rows in {reached} of {n_seeds}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    header = ("n", "n_laws", "laws_per_second", "laws_per_second_all_rows", "n_laws_all_rows",
              "share_of_values", "n_laws_that_reach_all_rows")  # fmt: skip
    write("halving_speed.csv", header, speed(100 if quick else 1000))
    header = ("seed", "n_rows_with_term", "n_rows_without", "nats_ahead", "standard_error")
    write("halving_terms.csv", header, small_terms(4 if quick else 40))


if __name__ == "__main__":
    main()
