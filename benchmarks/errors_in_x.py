"""Errors in x by effective variance: bias and coverage against the size of the errors.

A slope and a rate are fitted to measurements whose x is known to within an error, and the 95 %
credible intervals counted that hold the truth. Errors are "classical" where x is measured, as with
a ruler, and "berkson" where x is set, as with a dial, and is not quite what it should be.

python benchmarks/errors_in_x.py [--quick] [--datasets 120] [--output results/errors_in_x.csv]
"""

import argparse
import csv
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import pmsr
from pmsr.settings import QUICK

N, Y_ERR = 30, 0.1
SIZES = (0.05, 0.1, 0.2, 0.4)  # errors of x, relative to its standard deviation
LAWS = {  # text, parameter that is looked at, truth, function
    "line": ("c0 + c1*x", "c1", 2.0, lambda x: 1.0 + 2.0 * x),
    "decay": ("c0*exp(c1*x)", "c1", -1.5, lambda x: 3.0 * np.exp(-1.5 * x)),
}
CASES = (  # law, kind of error, what the fit is told
    ("line", "classical", "X_err"),
    ("line", "berkson", "X_err"),
    ("decay", "classical", "X_err"),
    ("line", "classical", "nothing"),
)
OUTPUT = Path(__file__).parent / "results" / "errors_in_x.csv"


def measure(law: str, kind: str, error: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return x as it is known, and y."""
    first, noise = rng.uniform(0.0, 2.0, N), error * rng.standard_normal(N)
    truth = first if kind == "classical" else first + noise
    known = first + noise if kind == "classical" else first
    y = LAWS[law][3](truth) + Y_ERR * rng.standard_normal(N)
    return known, y


def fit(law: str, kind: str, told: str, size: float, seed: int) -> tuple[float, bool]:
    """Return the error of the posterior mean, and whether its interval holds the truth."""
    text, name, truth, _ = LAWS[law]
    error = size * 2.0 / np.sqrt(12.0)
    x, y = measure(law, kind, error, np.random.default_rng([seed, int(1000 * size)]))
    equation = pmsr.Equation(text, ["x"])
    # Sigma is known to the fit that knows the errors, and free for the other.
    known: Any = {"X_err": error, "y_err": Y_ERR} if told == "X_err" else {}
    posterior: Any = pmsr.sample_posterior(
        equation,
        x,
        y,
        settings=QUICK,
        random_seed=seed,
        draws=500,
        chains=1,
        pointwise=False,
        **known,
    ).posterior
    draws = np.asarray(posterior[name]).ravel()
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(draws.mean() - truth), bool(low <= truth <= high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="five datasets, nothing is written")
    parser.add_argument("--datasets", type=int, default=120)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    n = 5 if arguments.quick else arguments.datasets
    path = Path(os.devnull) if arguments.quick else arguments.output
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["law", "errors", "told", "size", "datasets", "bias_percent", "coverage"])
        for law, kind, told in CASES:
            for size in SIZES:
                clock = time.monotonic()
                found = [fit(law, kind, told, size, seed) for seed in range(n)]
                bias = 100.0 * float(np.mean([e for e, _ in found])) / abs(LAWS[law][2])
                coverage = float(np.mean([inside for _, inside in found]))
                table.writerow([law, kind, told, size, n, f"{bias:.2f}", f"{coverage:.3f}"])
                file.flush()
                print(law, kind, told, size, f"{bias:.2f} %", coverage, time.monotonic() - clock)


if __name__ == "__main__":
    main()
