"""CPU time per equation, ours and the paper's implementation in one run; scaling; import time.

python benchmarks/speed.py [--peer .venv-peer/bin/python] [--quick]

The peer needs an environment of its own:

python3.11 -m venv .venv-peer
.venv-peer/bin/pip install bingo-nasa==0.5.7 smcpy==0.1.17 mpich==5.0.2
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.console import Console
from rich.table import Table

import pmsr
from pmsr.data import make_data
from pmsr.evidence.evidence import compute_evidence, weigh
from pmsr.evidence.problem import Problem

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from exact import linear_log_q

RESULTS = Path(__file__).parent / "results"
console = Console()


def polynomial(order):
    return " + ".join(["c0", *(f"c{k}*x0**{k}" for k in range(1, order + 1))])


def time_ours(X, y, orders, repeats):
    """CPU seconds and log q of each order, data prepared, after one equation of each size."""
    results, settings = {}, pmsr.Settings()
    problem = Problem.of(make_data(X, y), settings)
    for order in orders:
        program = pmsr.Equation(polynomial(order), ["x0"]).program
        weigh(program, problem, settings, np.random.SeedSequence(0))
        seconds, log_q = [], []
        for seed in range(repeats):
            started = time.process_time()
            log_q.append(
                weigh(program, problem, settings, np.random.SeedSequence(seed)).evidence.log_q
            )
            seconds.append(time.process_time() - started)
        results[order] = {"seconds": seconds, "log_q": log_q}
    return results


def time_peer(python, X, y, orders, repeats):
    task = {"x": X["x0"].tolist(), "y": y.tolist(), "orders": orders, "repeats": repeats}
    done = subprocess.run(
        [python, str(Path(__file__).parent / "speed_peer.py")],
        input=json.dumps(task) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return {int(k): v for k, v in json.loads(done.stdout.splitlines()[-1]).items()}


def compare_engines(python, quick):
    """Time both engines, ours before and after the peer."""
    orders = list(range(7))
    repeats = 3 if quick else 10
    X, y = pmsr.make_sine(n_points=20, sigma=0.3, random_seed=0)
    with console.status("weighing polynomials"):
        before = time_ours(X, y, orders, 10 * repeats)
        peer = time_peer(python, X, y, orders, repeats) if python else None
        after = time_ours(X, y, orders, 10 * repeats)
    table = Table(title="CPU time per equation, polynomials on the sine data, N = 20")
    for name in ("order", "exact log q", "ours ms", "ours log q", "peer ms", "peer log q", "ratio"):
        table.add_column(name, justify="right")
    rows, totals = [], np.zeros(2)
    for order in orders:
        exact = linear_log_q(X.to_numpy() ** np.arange(order + 1), y.to_numpy(), pmsr.Settings())
        ours = before[order]["seconds"] + after[order]["seconds"]
        ours_q = before[order]["log_q"] + after[order]["log_q"]
        row = [order, exact, 1e3 * np.mean(ours), np.mean(ours_q), np.std(ours_q)]
        cells = [f"{order}", f"{exact:.2f}", f"{row[2]:.2f}", f"{row[3]:.2f} ± {row[4]:.2f}"]
        if peer:
            theirs, theirs_q = peer[order]["seconds"], peer[order]["log_q"]
            row += [1e3 * np.mean(theirs), np.nanmean(theirs_q), np.nanstd(theirs_q)]
            cells += [f"{row[5]:.0f}", f"{row[6]:.2f} ± {row[7]:.2f}", f"{row[5] / row[2]:.0f}"]
            if order >= 1:
                totals += [row[2], row[5]]
        table.add_row(*cells)
        rows.append(row)
    console.print(table)
    if peer:
        console.print(
            f"orders 1 to 6: ours {totals[0]:.1f} ms, peer {totals[1]:.0f} ms of CPU, "
            f"ratio [bold]{totals[1] / totals[0]:.0f}[/] (asked: 50)"
        )
    header = [
        "order",
        "exact",
        "ours_ms",
        "ours_log_q",
        "ours_sd",
        "peer_ms",
        "peer_log_q",
        "peer_sd",
    ]
    write("speed", header, rows)


def scale_with_points(quick):
    """CPU time and memory against the number of points."""
    sizes = [20, 100, 1000, 10_000] + ([] if quick else [100_000])
    texts = {"cubic": polynomial(3), "curved": "c0*exp(c1*x0) + c2"}
    table = Table(title="CPU time against the number of points")
    for name in ("N", *(f"{name} ms" for name in texts), "µs per point", "peak memory MB"):
        table.add_column(name, justify="right")
    rows = []
    for n in sizes:
        X, y = pmsr.make_sine(n_points=n, sigma=0.3, random_seed=0)
        milliseconds = []
        for text in texts.values():
            compute_evidence(text, X, y, random_seed=0)
            started = time.process_time()
            repeats = max(1, 2000 // n)
            for seed in range(repeats):
                compute_evidence(text, X, y, random_seed=seed)
            milliseconds.append(1e3 * (time.process_time() - started) / repeats)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append([n, *milliseconds, memory])
        per_point = ", ".join(f"{1e3 * ms / n:.0f}" for ms in milliseconds)
        table.add_row(f"{n:,}", *(f"{ms:.1f}" for ms in milliseconds), per_point, f"{memory:.0f}")
    console.print(table)
    write("scaling", ["n", *(f"{name}_ms" for name in texts), "memory_mb"], rows)


def time_import():
    """Seconds that `import pmsr` adds to `import pymc`."""
    code = (
        "import time; import pymc; t = time.perf_counter(); import pmsr; "
        "print(time.perf_counter() - t)"
    )
    seconds = [
        float(
            subprocess.run(
                [sys.executable, "-W", "ignore", "-c", code],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for _ in range(3)
    ]
    console.print(f"import pmsr after import pymc: {min(seconds):.3f} s (asked: 0.3)")


def write(name, header, rows):
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="Python of the peer's environment")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    arguments = parser.parse_args()
    compare_engines(arguments.peer, arguments.quick)
    scale_with_points(arguments.quick)
    time_import()
