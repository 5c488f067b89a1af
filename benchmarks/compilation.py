"""CPU seconds of the first compilation, part by part, on a machine that has compiled nothing yet.

python benchmarks/compilation.py [--quick] [--functions]
python benchmarks/compilation.py --added

Each part is run twice in one process with an empty cache; what the first time takes longer is
compilation. In the order of a first `pmsr fit`: what a part shares with one above it is counted
there. With --functions also every compiled function, with all that it calls for the first time
(wall clock); with --quick only what a search compiles.

With --added something else: what gets a search ready in a first process, in a second, and in a
third that has an operator of the user's own.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

RESULTS = Path(__file__).parent / "results"


def parts(quick):
    """Yield names and functions, each of which compiles what it needs."""
    import numpy as np

    from pmsr.data import load_galileo, make_data
    from pmsr.equation.expression import Equation
    from pmsr.evidence.evidence import compute_evidence
    from pmsr.evidence.problem import Problem
    from pmsr.laws.prior import LawPrior
    from pmsr.search.curves import KnownLaws
    from pmsr.search.enumeration import enumerate_laws
    from pmsr.search.folding import fold
    from pmsr.search.screening import Batch, screen
    from pmsr.settings import Settings

    data = make_data(*load_galileo("no_shelf"))
    problem = Problem.of(data, Settings())
    laws = [Equation(text, list(data.names)) for text in ("D**2/(c0 + c1*D)", "c0*D**c1")]
    batch = Batch.of([law.program for law in laws])
    rows = np.array([[[1, 0, 0], [0, 0, 0], [6, 0, 1]]], dtype=np.int32)
    yield "folding", lambda: fold(rows)
    yield "enumeration", lambda: list(enumerate_laws(["+", "*"], 1, max_laws=40))
    yield "screening", lambda: screen(batch, problem, 0)
    yield "identity", lambda: KnownLaws(data).add(screen(batch, problem, 0))
    if quick:
        return
    yield "prior", lambda: LawPrior()(laws[0])
    yield "evidence", lambda: [compute_evidence(law, data.X, data.y, random_seed=0) for law in laws]


def measure(quick, with_functions):
    """Print name and seconds of each part, in this process."""
    from numba.core import event

    for name, run in parts(quick):
        with event.install_recorder("numba:compile") as recorder:
            begin = time.process_time()
            run()
            first = time.process_time() - begin
        begin = time.process_time()
        run()
        print("part", name, first - (time.process_time() - begin), sep="\t", flush=True)
        if with_functions:
            begun = []
            for when, one in recorder.buffer:
                if one.is_start:
                    begun.append(when)
                else:
                    since = begun.pop()
                    where = one.data["dispatcher"].py_func
                    place = f"{where.__module__}.{where.__qualname__}"
                    print("function", place, when - since, len(begun), sep="\t", flush=True)


WARM_UP = """
import time
import sympy
import pmsr
from pmsr.search.warm_up import warm_up
begin = time.process_time()
{add}
warm_up()
print(time.process_time() - begin)
"""
ADD = """
pmsr.add_operator("sinc", lambda x: sympy.sin(x) / x)
law = pmsr.Equation("c0*sinc(x)", ["x"])
pmsr.compute_evidence(law, [[1.0], [2.0], [3.0], [4.0]], [0.9, 0.4, 0.1, -0.2], random_seed=0)
"""


def measure_added():
    """Print and keep the CPU seconds that get a search ready, also with an added operator."""
    found = []
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        for name, add in (
            ("first process", ""),
            ("second process", ""),
            ("with an added operator", ADD),
        ):
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", WARM_UP.format(add=add)],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            found.append((name, float(done.stdout)))
            print(f"{name:24} {found[-1][1]:6.1f}", flush=True)
    with (RESULTS / "added_operator.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("process", "cpu_seconds"))
        writer.writerows(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--functions", action="store_true")
    parser.add_argument("--added", action="store_true")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options.quick, options.functions)
    if options.added:
        return measure_added()
    command = [sys.executable, __file__, "--measure", *sys.argv[1:]]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    found = [(line[1], float(line[2])) for line in lines if line[0] == "part"]
    found.append(("all", sum(seconds for _, seconds in found)))
    for line in lines:
        if line[0] == "function":
            print(f"{float(line[2]):7.2f}  {'  ' * int(line[3])}{line[1]}")
    for name, seconds in found:
        print(f"{name:12} {seconds:6.1f}")
    with (RESULTS / "compilation.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("part", "cpu_seconds"))
        writer.writerows(found)


if __name__ == "__main__":
    main()
