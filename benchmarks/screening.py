"""Minima that screening and SciPy find in laws of a search, and laws screened a second.

python benchmarks/screening.py [--quick]

300 laws from searches on four datasets, fitted by `multistart.fit` from 32 starts and by screening;
and random laws of 5 to 15 nodes, for the speed.
"""

import argparse
import csv
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.console import Console

import pmsr
from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.multistart import FitError, fit
from pmsr.evidence.problem import Problem
from pmsr.evidence.surface import Surface
from pmsr.search.evolution import run_evolution
from pmsr.search.funnel import Funnel
from pmsr.search.genome import Primitives, random_genome
from pmsr.search.screening import Batch, screen
from pmsr.settings import Search, Settings
from pmsr.threads import one_blas_thread

RESULTS = Path(__file__).parent / "results"
console = Console()


def datasets():
    rng = np.random.default_rng(5)
    X, y = pmsr.make_sine(n_points=20, sigma=0.3, random_seed=0)
    yield "sine", make_data(X, y), ("+", "-", "*", "/", "sin", "exp")
    x = rng.uniform(0.2, 5.0, (20, 1))
    y = 3.0 * np.exp(-x[:, 0] / 1.5) + 0.5 + 0.1 * rng.standard_normal(20)
    yield "decay", make_data(x, y), ("+", "-", "*", "/", "sqrt", "exp", "log")
    X = rng.uniform(0.5, 3.0, (40, 3))
    y = 2.0 * X[:, 0] * X[:, 1] / X[:, 2] ** 2
    y = y + 0.05 * np.std(y) * rng.standard_normal(40)
    yield "newton", make_data(X, y), ("+", "-", "*", "/", "sqrt", "pow")
    yield "no_shelf", make_data(*load_galileo("no_shelf")), ("+", "-", "*", "/", "sqrt", "pow")


def searched(data, operators, n_laws, rng):
    """Draw from the distinct laws with parameters that two short searches screen."""
    programs = {}
    screen_laws = Funnel._screen

    def spy(self, laws, *arguments):
        for k in range(len(laws)):
            program = laws.program(k)
            if program.n_parameters:
                programs[int(laws.key[k])] = program
        return screen_laws(self, laws, *arguments)

    Funnel._screen = spy
    try:
        for seed in range(2):
            search = Search(
                operators=operators,
                generations=25,
                population_size=40,
                n_finalists=1,
                n_islands=1,
                n_enumerated=0,
            )
            run_evolution(data, search=search, random_seed=seed)
    finally:
        Funnel._screen = screen_laws
    keys = sorted(programs)
    drawn = [programs[keys[k]] for k in rng.choice(len(keys), n_laws, replace=False)]
    return [(str(Equation.from_program(program, data.names)), program) for program in drawn]


def by_scipy(program, data):
    """Least squared error and rank; infinite if there is no fit."""
    rng = np.random.default_rng(1)
    try:
        with one_blas_thread():
            found = fit(
                program,
                Problem.of(data, Settings()),
                32,
                rng=rng,
                generic=True,
                rule=lambda one: Surface.of(one, data).obeys,
            )
    except FitError:
        return np.inf, 0
    return found.minima[0].sse, len(found.free)


def compare(n_laws):
    rng, rows = np.random.default_rng(0), []
    for name, data, operators in datasets():
        laws = searched(data, operators, n_laws, rng)
        found = screen(Batch.of([program for _, program in laws]), Problem.of(data, Settings()), 3)
        floor = 1e-24 * np.sum(data.y**2)
        for k, (key, program) in enumerate(laws):
            sse, rank = by_scipy(program, data)
            reached = bool(found.sse[k] <= sse * (1.0 + 1e-6) + floor)
            rows.append((name, key, sse, rank, found.sse[k], found.rank[k], reached))
        mine = [row for row in rows if row[0] == name]
        console.print(
            f"{name}: {np.mean([row[-1] for row in mine]):.1%} of {len(mine)} reach the least error"
            f" of 32 SciPy starts, {np.mean([row[4] < row[2] / (1.0 + 1e-6) for row in mine]):.1%}"
            f" are better; rank differs in {sum(row[3] != row[5] for row in mine)}"
        )
    console.print(f"all: {np.mean([row[-1] for row in rows]):.1%}")
    return rows


def random_laws(variables, n_laws):
    rng, programs = np.random.default_rng(0), {}
    operators = ("+", "-", "*", "/", "sqrt", "exp", "sin")
    primitives = Primitives(operators, variables, size=16)
    while len(programs) < n_laws:
        try:
            equation = random_genome(primitives, rng=rng).equation(variables)
            if equation.parameters and 5 <= len(equation.program.nodes) <= 15:
                programs.setdefault(str(equation), equation.program)
        except (ValueError, TypeError):
            continue
    return list(programs.values())


def speed(n_laws):
    rows = []
    for n, d in ((20, 1), (40, 3)):
        rng = np.random.default_rng(1)
        X = rng.uniform(0.5, 3.0, (n, d))
        data = make_data(X, np.sin(2.0 * X[:, 0]) * X[:, -1] + 0.1 * rng.standard_normal(n))
        programs = random_laws(data.names, n_laws)
        groups = {
            "all": programs,
            "affine": [p for p in programs if len(p.affine) == p.n_parameters],
            "curved": [p for p in programs if len(p.affine) < p.n_parameters],
        }
        for kind, group in groups.items():
            batch = Batch.of(group)
            screen(batch, Problem.of(data, Settings()), 0)
            begin = time.process_time()
            found = screen(batch, Problem.of(data, Settings()), 0)
            rate = len(group) / (time.process_time() - begin)
            rows.append((n, d, kind, len(group), rate, found.n_evaluations.mean()))
            console.print(
                f"N = {n}, {d} variables, {kind}: {rate:.0f} laws per CPU second, "
                f"{found.n_evaluations.mean():.0f} evaluations each"
            )
    return rows


def write(name, header, rows):
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    header = ("data", "law", "sse_scipy", "rank_scipy", "sse", "rank", "reached")
    write(
        "screening_speed.csv",
        ("n", "variables", "laws", "n_laws", "laws_per_second", "evaluations"),
        speed(50 if quick else 400),
    )
    write("screening.csv", header, compare(10 if quick else 75))


if __name__ == "__main__":
    main()
