"""The study by which the defaults of the search are chosen, on half of the laws of science.

python benchmarks/search_options.py [--seconds 8] [--laws 34]

Data: of every training law of benchmarks/laws_of_science.py with at least seven nodes (smaller ones
are enumerated in any case) one dataset (seed 1000), with the operators + - * / sqrt and the law's
own functions. Each row of OPTIONS searches all of them, for
the same CPU seconds on one core. Measured: whether the law was seen (a law of its rank and its
curve was screened), and whether it won.

The rule for choosing, fixed before the first run: the options under which most laws are seen; what
is seen less often by less than two laws counts as equal; of equals the first row.
"""

import argparse
import csv
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from laws_of_science import LAWS, make

import pmsr.search.funnel
import pmsr.search.islands
from pmsr.evidence.problem import Problem
from pmsr.search.curves import digest_curves
from pmsr.search.evolution import run_evolution
from pmsr.search.folding import Rules, fold_genomes
from pmsr.search.genome import Genome
from pmsr.search.screening import Batch, screen
from pmsr.settings import QUICK, Search

RESULTS = Path(__file__).parent / "results"
N_RENEWALS, N_EXPANDED = pmsr.search.islands.N_RENEWALS, pmsr.search.funnel.N_EXPANDED
SHAPES = pmsr.search.funnel.SHAPES
FUNCTIONS = ("exp", "log", "sin", "cos", "tan", "tanh", "pow")

# Beside options of `Search`, constants of the modules by their names.
OPTIONS = {
    "4 islands, 10,000 enumerated": {},
    "1 island": {"n_islands": 1},
    "2 islands": {"n_islands": 2},
    "no expansion": {"N_EXPANDED": 0},
    "no shapes": {"SHAPES": 0},
    "30,000 enumerated": {"n_enumerated": 30_000},
    "children as in the paper": {"N_RENEWALS": 0},
}


def operators_of(law):
    """Return the operators of a search for a law."""
    own = [name for name in FUNCTIONS if name + "(" in law.text]
    powers = ["pow"] if any(f"**c{k}" in law.text for k in range(9)) else []
    return ("+", "-", "*", "/", "sqrt", *own, *powers)


def size_of(law):
    """Count the nodes of a law's tree."""
    return int(fold_genomes([Genome(law.equation.program.nodes)], Rules()).size[0])


def run(law, options, seconds, seed=0):
    """Search for so many CPU seconds; tell what became of the law."""
    data, *_ = make(law, 1000)
    options = dict(options)
    pmsr.search.islands.N_RENEWALS = options.pop("N_RENEWALS", N_RENEWALS)
    pmsr.search.funnel.SHAPES = options.pop("SHAPES", SHAPES)
    pmsr.search.funnel.N_EXPANDED = options.pop("N_EXPANDED", N_EXPANDED)
    search = Search(operators=operators_of(law), generations=10**6, n_finalists=1, **options)
    started = time.process_time()
    found = run_evolution(
        data,
        search=search,
        random_seed=seed,
        n_jobs=1,
        callbacks=[lambda told: time.process_time() - started > seconds],
    )
    problem = Problem.of(data, QUICK)
    truth = screen(Batch.of([law.equation.program]), problem, 0)
    digest = digest_curves(truth, data, np.zeros(1, dtype=np.uint64))[0]
    best = found.screened.law[np.argmax(found.screened.score)]
    return {
        "law": law.name,
        "seen": bool(np.isin(digest, found.screened.law)),
        "won": bool(digest == best),
        "winner": str(found.winner),
        "generations": found.history[-1]["generation"],
        "screened": found.n_screened,
        "enumerated": found.n_enumerated,
        "cpu": time.process_time() - started,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--laws", type=int, default=len(LAWS))
    parser.add_argument("--rows", nargs="+", default=list(OPTIONS), choices=list(OPTIONS))
    parser.add_argument("--name", default="search_options")
    arguments = parser.parse_args()
    training = [law for law in LAWS if law.is_for_training and size_of(law) >= 7][: arguments.laws]
    rows = []
    with (RESULTS / f"{arguments.name}.csv").open("w", newline="") as file:
        for name in arguments.rows:
            mine = []
            for law in training:
                mine.append({"options": name} | run(law, OPTIONS[name], arguments.seconds))
                if not rows and len(mine) == 1:
                    writer = csv.DictWriter(file, mine[0])
                    writer.writeheader()
                writer.writerow(mine[-1])
                file.flush()
            rows += mine
            seen, won = (sum(row[what] for row in mine) for what in ("seen", "won"))
            rate = np.median([row["screened"] / row["cpu"] for row in mine])
            print(
                f"{name:32}  seen {seen}, won {won} of {len(mine)}  {rate:.0f} laws/s", flush=True
            )


if __name__ == "__main__":
    main()
