"""Generations per CPU second at the paper's setting, one and two workers, and the peer's.

python benchmarks/search_speed.py [--generations 100] [--peer PYTHON] [--peer-seconds 600]

Sine data (N = 20), operators + - *, population 120. PYTHON is that of an environment with the
paper's own implementation (Bingo and SMCPy).
"""

import argparse
import csv
import json
import os
import subprocess
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.console import Console

import pmsr
from pmsr.data import make_data
from pmsr.search.evolution import run_evolution
from pmsr.settings import Search

RESULTS = Path(__file__).parent / "results"
PEER = Path(__file__).parent / "search_peer.py"
console = Console()


def ours(generations, n_jobs, seed=0):
    """Seconds of wall clock and of this process that the generations take, finalists excluded."""
    X, y = pmsr.make_sine(n_points=20, sigma=0.3, random_seed=seed)
    ticks = []

    def tick(generation):
        ticks.append((time.monotonic(), time.process_time()))

    search = Search(operators=("+", "-", "*"), generations=generations + 1, n_finalists=1)
    run_evolution(make_data(X, y), search=search, random_seed=seed, n_jobs=n_jobs, callbacks=[tick])
    (wall, cpu), (wall_end, cpu_end) = ticks[0], ticks[-1]
    return wall_end - wall, cpu_end - cpu


def peers(python, seconds):
    X, y = pmsr.make_sine(n_points=20, sigma=0.3, random_seed=0)
    task = {"x": X["x0"].tolist(), "y": y.tolist(), "generations": 30, "seconds": seconds}
    done = subprocess.run(
        [python, str(PEER)], input=json.dumps(task), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generations", type=int, default=100)
    parser.add_argument("--peer")
    parser.add_argument("--peer-seconds", type=float, default=600.0)
    arguments = parser.parse_args()
    rows = []
    ours(2, None)  # compiles
    ours(2, 2)
    for _ in range(3):
        one, cpu = ours(arguments.generations, None)
        two, _ = ours(arguments.generations, 2)
        rows.append(("pmsr", arguments.generations, cpu, one, two, one / two))
        console.print(
            f"{arguments.generations} generations: {cpu:.1f} s of CPU, {one:.1f} s with one "
            f"worker, {two:.1f} s with two: {one / two:.2f} times faster"
        )
    if arguments.peer:
        seconds = peers(arguments.peer, arguments.peer_seconds)
        mine = np.median([row[2] / row[1] for row in rows])
        console.print(
            f"peer: {len(seconds)} generations, {np.median(seconds):.1f} s of CPU each "
            f"(first {seconds[0]:.1f}); ratio {np.median(seconds) / mine:.0f}"
        )
        rows.append(("bingo", len(seconds), float(np.sum(seconds)), "", "", ""))
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "search_speed.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("engine", "generations", "cpu", "wall_one", "wall_two", "speed_up"))
        writer.writerows(rows)


if __name__ == "__main__":
    main()
