"""Log q of polynomials on the paper's sine data against its exact value, for both priors of sigma.

python benchmarks/evidence_linear.py [--quick]
"""

import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import report

import pmsr
from pmsr.settings import FINALIST, Settings

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from exact import linear_log_q

N_SEEDS = 20
# What is asked of both settings: bias beyond three standard errors, and spread.
ASKED = {"default": (0.03, 0.12), "finalist": (0.01, 0.04)}
SETTINGS = {
    ("default", "flat"): Settings(),
    ("default", "log-flat"): Settings(sigma_prior="log-flat"),
    ("finalist", "flat"): FINALIST,
    ("finalist", "log-flat"): Settings(
        sigma_prior="log-flat",
        n_draws=FINALIST.n_draws,
        n_particles=FINALIST.n_particles,
        n_replicates=FINALIST.n_replicates,
    ),
}


def polynomial(order):
    return " + ".join(["c0", *(f"c{k}*x0**{k}" for k in range(1, order + 1))])


def measure(case, order, sigma, data_seed, name, prior):
    """Weigh one polynomial on one dataset with 20 seeds of its own."""
    settings = SETTINGS[name, prior]
    X, y = pmsr.make_sine(n_points=20, sigma=sigma, random_seed=data_seed)
    exact = linear_log_q(X.to_numpy() ** np.arange(order + 1), y.to_numpy(), settings)
    equation = pmsr.Equation(polynomial(order), ["x0"])
    pmsr.compute_evidence(equation, X, y, settings=settings, random_seed=0)  # compiles
    started = time.process_time()
    runs = [
        pmsr.compute_evidence(equation, X, y, settings=settings, random_seed=seed)
        for seed in range(case * N_SEEDS, (case + 1) * N_SEEDS)
    ]
    seconds = (time.process_time() - started) / N_SEEDS
    log_q = np.array([run.log_q for run in runs])
    reported = np.array([run.log_q_se for run in runs])
    sd = log_q.std(ddof=1)
    bias = log_q.mean() - exact
    allowed, spread = ASKED[name]
    return {
        "settings": name,
        "prior": prior,
        "order": order,
        "sigma": sigma,
        "data_seed": data_seed,
        "exact": exact,
        "bias": bias,
        "bias_in_se": bias / (sd / np.sqrt(N_SEEDS)),
        "allowed_bias": allowed + 3 * sd / np.sqrt(N_SEEDS),
        "sd": sd,
        "allowed_sd": spread,
        "reported_se": np.sqrt(np.mean(reported**2)),
        "cpu_ms": 1e3 * seconds,
        "ok": abs(bias) <= allowed + 3 * sd / np.sqrt(N_SEEDS) and sd <= spread,
    }


def main(quick):
    orders = (0, 3, 7) if quick else range(8)
    sigmas, data_seeds = ((0.3,), (0,)) if quick else ((0.1, 0.3, 0.5), (0, 1, 2))
    names = ("default",) if quick else ("default", "finalist")
    cases = list(product(orders, sigmas, data_seeds, names, ("flat", "log-flat")))
    tracked = report.track(enumerate(cases), len(cases), "weighing polynomials")
    rows = [measure(number, *case) for number, case in tracked]
    frame = pd.DataFrame(rows).sort_values(["settings", "prior", "order"], kind="stable")
    worst = frame.groupby(["settings", "prior", "order"], as_index=False).agg(
        datasets=("ok", "size"),
        largest_bias=("bias", lambda bias: np.abs(bias).max()),
        in_se=("bias_in_se", lambda bias: np.abs(bias).max()),
        largest_sd=("sd", "max"),
        allowed_sd=("allowed_sd", "max"),
        reported_se=("reported_se", "max"),
        cpu_ms=("cpu_ms", "mean"),
        ok=("ok", "all"),
    )
    formats = {
        "largest_bias": ".4f",
        "in_se": ".1f",
        "largest_sd": ".4f",
        "reported_se": ".4f",
        "cpu_ms": ".1f",
    }
    title = f"Polynomials, N = 20, {N_SEEDS} seeds each: the worst over the datasets"
    report.show(title, worst, formats)
    report.save("evidence_linear", frame, quick)
    passed = [
        report.judge(
            f"{name}: |bias| <= {ASKED[name][0]} + 3 sd/sqrt({N_SEEDS}) and sd <= {ASKED[name][1]}",
            frame.loc[frame["settings"] == name, "ok"].to_list(),
        )
        for name in names
    ]
    return all(passed)


if __name__ == "__main__":
    report.run(main, __doc__)
