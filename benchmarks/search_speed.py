"""Distinct laws a CPU second against an older commit, the paper's setting, and several workers.

python benchmarks/search_speed.py [--seconds 30] [--seeds 3] [--generations 1000] [--base a6c5d8b]
    [--skip laws paper workers dask] [--peer PYTHON] [--peer-seconds 600]

A distinct law is a distinct finite error of the best fit, to seven digits, with a number of
parameters; one function counts them on both commits. What was refused, failed or was enumerated
does not count. Both do generations for the same CPU time, one island of 120 on one core, with the
same operators and refresh; compiling, the first population, enumeration and finalists are left out.
The older commit is checked out as a git worktree in a temporary folder, and removed.

PYTHON is that of an environment with the paper's own implementation (Bingo and SMCPy).
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import fields
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import joblib
import numpy as np
from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).parent / "results"
PEER = Path(__file__).parent / "search_peer.py"
BASE = "a6c5d8b"  # the last commit whose search weighed every candidate
POPULATION, REFRESH = 120, 10
MEASURES = ("laws", "paper", "workers", "dask")
console = Console()


class Enough(Exception):
    """The time is up: finalists are not wanted."""


def datasets(seed):
    """Make the sine with N = 20 and one variable; Newton's law with N = 40 and three."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 2.0 * np.pi, 20)
    yield "sine", x[:, None], 2.0 * np.sin(x) + 3.0 + 0.3 * rng.standard_normal(20), "+ - *"
    X = rng.uniform(1.0, 3.0, (40, 3))
    y = 2.0 * X[:, 0] * X[:, 1] / X[:, 2] ** 2
    yield "newton", X, y + 0.05 * np.std(y) * rng.standard_normal(40), "+ - * /"


def make_search(operators, **options):
    """Return options, of which an older commit may not know all."""
    from pmsr.settings import Search

    known = {field.name for field in fields(Search)}
    options = {"population_size": POPULATION, "refresh": REFRESH, **options}
    return Search(
        operators=tuple(operators.split()),
        **{name: value for name, value in options.items() if name in known},
    )


def count_distinct(rmse, n_parameters):
    """Count distinct laws by their errors, to seven digits, and numbers of parameters."""
    return len(
        {
            (f"{error:.6e}", int(n))
            for error, n in zip(rmse, n_parameters, strict=True)
            if np.isfinite(error)
        }
    )


def laws_of(run):
    """Return errors and numbers of parameters of all that evolution has seen, on either commit."""
    if hasattr(run, "archive"):
        found = [one for one in run.archive.candidates.values() if one.failure is None]
        return [one.rmse for one in found], [one.n_parameters for one in found]
    records = [judge.memory.records for judge in run.judges]
    records = [one.take((one.level == 0) & np.isfinite(one.log_q)) for one in records]
    return (
        np.concatenate([getattr(one, name) for one in records]) for name in ("rmse", "n_parameters")
    )


@contextmanager
def watched():
    """Lend a list in which the run of the next search will stand."""
    from pmsr.search import evolution

    original, runs = evolution._Run, []

    class Watched(original):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            runs.append(self)

    evolution._Run = Watched
    try:
        yield runs
    finally:
        evolution._Run = original


# What varies graphs, by the names that islands and the funnel know it under.
VARIATION = {
    "islands": ("random_genome", "crossover", "mutate", "distance", "neighbours", "program_genome"),
    "funnel": ("expansions",),
}


@contextmanager
def variation_timed():
    """Lend a list with the seconds that variation has taken so far."""
    modules = {name: import_module(f"pmsr.search.{name}") for name in VARIATION}
    spent = [0.0]

    def timed(function):
        def call(*arguments, **options):
            clock = time.monotonic()
            try:
                return function(*arguments, **options)
            finally:
                spent[0] += time.monotonic() - clock

        return call

    with ExitStack() as stack:
        for name, functions in VARIATION.items():
            for one in functions:
                function = getattr(modules[name], one)
                stack.callback(setattr, modules[name], one, function)
                setattr(modules[name], one, timed(function))
        yield spent


def measure_shares(X, y, operators, seed, seconds):
    """Return which shares of the time variation and folding take, in a search of its own."""
    with variation_timed() as varied:
        found = rate(X, y, operators, seed, seconds, lambda: varied[0])
    return {name: found[name] for name in ("variation", "folding", "others")}


def rate(X, y, operators, seed, seconds, varied=lambda: 0.0):
    """Let a search do generations for some CPU seconds; count what it sees between."""
    from pmsr.data import make_data
    from pmsr.search.evolution import run_evolution

    ticks = []
    with watched() as runs:

        def tick(generation):
            # Counting is not part of the search.
            ended = time.process_time(), time.monotonic()
            if not ticks or ended[0] - ticks[0][1][0] > seconds:
                count = count_distinct(*laws_of(runs[0]))
                spent = [
                    judge.seconds | {"variation": varied()}
                    for judge in getattr(runs[0], "judges", ())
                ]
                began = time.process_time(), time.monotonic()
                ticks.append((ended, began, count, spent))
            if len(ticks) == 2:
                raise Enough

        search = make_search(operators, generations=10**6, n_islands=1)
        try:
            run_evolution(make_data(X, y), search=search, random_seed=seed, callbacks=[tick])
        except Enough:
            pass
    (_, began, before, spent), (ended, _, after, spent_then) = ticks
    cpu, wall = (end - begin for end, begin in zip(ended, began, strict=True))
    found = {"seconds": cpu, "laws": after - before, "rate": (after - before) / cpu}
    if spent:
        found |= {name: (spent_then[0][name] - spent[0][name]) / wall for name in spent[0]}
        found["others"] = 1.0 - sum(found[name] for name in spent[0])
    return found


def compute_rates(seconds, seeds):
    """Measure the pmsr that is first on the path."""
    for _, X, y, operators in datasets(0):
        rate(X, y, operators, 0, 0.5)  # compiles
    rows = []
    for seed in range(seeds):
        for name, X, y, operators in datasets(seed):
            row = {"data": name, "seed": seed} | rate(X, y, operators, seed, seconds)
            if "folding" in row:
                # With clocks around variation, which would slow the other one down.
                row |= measure_shares(X, y, operators, seed, seconds)
            rows.append(row)
    return rows


def compare_rates(base, seconds, seeds):
    """Measure another commit and this one, one after the other, on one core."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(tree), base], check=True)
        try:
            found = {}
            for name, place in (("before", tree), ("now", ROOT)):
                out = Path(folder) / f"{name}.json"
                options = ["--seconds", str(seconds), "--seeds", str(seeds), "--compute", str(out)]
                environment = os.environ | {
                    "PYTHONPATH": str(place),
                    "NUMBA_CACHE_DIR": str(ROOT / ".cache" / "numba" / f"speed-{name}"),
                }
                command = [sys.executable, "-W", "ignore", __file__, *options]
                subprocess.run(command, env=environment, cwd=folder, check=True)
                found[name] = json.loads(out.read_text())
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
    return found


def show_rates(found):
    for name in ("sine", "newton"):
        rates = {
            commit: np.median([one["rate"] for one in rows if one["data"] == name])
            for commit, rows in found.items()
        }
        mine = [row for row in found["now"] if row["data"] == name]
        share = np.median([row["variation"] + row["folding"] for row in mine])
        console.print(
            f"{name}: {rates['before']:.0f} distinct laws per CPU second before, "
            f"{rates['now']:.0f} now, {rates['now'] / rates['before']:.1f} times; variation and "
            f"folding {share:.0%} of the time"
        )


def paper_setting(generations):
    """CPU seconds of the paper's setting, with enumeration and finalists, compiled before."""
    from pmsr.data import make_data
    from pmsr.search.evolution import run_evolution

    _, X, y, operators = next(datasets(0))
    data = make_data(X, y)
    run_evolution(data, search=make_search(operators, generations=12, n_islands=1), random_seed=1)
    search = make_search(operators, generations=generations, n_islands=1)
    clock = time.process_time()
    found = run_evolution(data, search=search, random_seed=0)
    return {
        "seconds": time.process_time() - clock,
        "laws": found.n_screened,
        "finalists": found.seconds["finalists"],
    }


def wall_clock(generations, n_jobs):
    """Seconds of wall clock that the generations of four islands take."""
    from pmsr.data import make_data
    from pmsr.search.evolution import run_evolution

    _, X, y, operators = list(datasets(0))[1]
    search = make_search(operators, generations=10**6, n_islands=4)

    def measure(last):
        ticks = []

        def tick(generation):
            ticks.append(time.monotonic())
            if generation.number >= last:
                raise Enough

        options = {"search": search, "random_seed": 0, "n_jobs": n_jobs, "callbacks": [tick]}
        try:
            run_evolution(make_data(X, y), **options)
        except Enough:
            pass
        return ticks[-1] - ticks[0]

    measure(2 * REFRESH)  # workers come, and compile all that they need
    return measure(generations)


@contextmanager
def cluster():
    """Work on a Dask cluster of two workers."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as local,
        distributed.Client(local),
        joblib.parallel_config(backend="dask"),
    ):
        yield


def compare_workers(generations, kind):
    """Seconds with one worker, with two, and how many times faster two are."""
    one = wall_clock(generations, 1)
    with cluster() if kind == "dask" else nullcontext():
        two = wall_clock(generations, None if kind == "dask" else 2)
    return {"one": one, "two": two, "rate": one / two}


def peers(python, seconds):
    _, X, y, _ = next(datasets(0))
    task = {"x": X[:, 0].tolist(), "y": y.tolist(), "generations": 30, "seconds": seconds}
    done = subprocess.run(
        [python, str(PEER)], input=json.dumps(task), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="of CPU, of each search")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--generations", type=int, default=1000)
    parser.add_argument("--base", default=BASE)
    parser.add_argument("--skip", nargs="*", default=(), choices=MEASURES)
    parser.add_argument("--peer")
    parser.add_argument("--peer-seconds", type=float, default=600.0)
    parser.add_argument("--compute", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compute is not None:
        found = compute_rates(arguments.seconds, arguments.seeds)
        arguments.compute.write_text(json.dumps(found))
        return
    rows = []
    if "laws" not in arguments.skip:
        rates = compare_rates(arguments.base, arguments.seconds, arguments.seeds)
        rows += [{"measure": "laws", "tree": t} | row for t, some in rates.items() for row in some]
        show_rates(rates)
    if "paper" not in arguments.skip:
        row = paper_setting(arguments.generations)
        rows.append({"measure": "paper", "tree": "now", "data": "sine"} | row)
        console.print(
            f"population {POPULATION}, {arguments.generations} generations, N = 20: "
            f"{row['seconds']:.1f} s of CPU, of which {row['finalists']:.1f} s for finalists"
        )
    for kind in ("workers", "dask"):
        if kind not in arguments.skip:
            row = compare_workers(max(3 * REFRESH, arguments.generations // 5), kind)
            rows.append({"measure": kind, "tree": "now", "data": "newton"} | row)
            console.print(
                f"{kind}: {row['one']:.1f} s with one, {row['two']:.1f} s with two: "
                f"{row['rate']:.2f} times faster"
            )
    if arguments.peer:
        seconds = peers(arguments.peer, arguments.peer_seconds)
        console.print(f"peer: {len(seconds)} generations, {np.median(seconds):.1f} s of CPU each")
        rows.append({"measure": "bingo", "data": "sine", "seconds": float(np.sum(seconds))})
    RESULTS.mkdir(exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with (RESULTS / "search_speed.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
