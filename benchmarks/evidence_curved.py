"""Log q with flat parameters against brute force over the same region: one or two parameters.

python benchmarks/evidence_curved.py [--quick]
"""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import report

import pmsr
from pmsr.data import make_data
from pmsr.evidence.evidence import make_target, seed_for
from pmsr.evidence.problem import Problem
from pmsr.experiments.exact import brute_force_log_q
from pmsr.settings import FINALIST, Settings

N_SEEDS = 20
MAX_ANGLES = 4000  # of the finest grid
FLAT = Settings(parameter_prior="flat")
SETTINGS = {"default": FLAT, "finalist": replace(FINALIST, parameter_prior="flat")}
# Standard error of one run that is asked, and that of power laws.
ASKED = {"default": (0.3, 0.6), "finalist": (0.1, 0.2)}

HEADINGS = {
    "grid_error": "grid",
    "region_spread": "spread",
    "bias_in_se": "bias/se",
    "reported_se": "reported",
    "allowed_se": "asked",
}


def make_cases():
    """Equations with their data: name, text, X, y."""
    rng = np.random.default_rng(0)

    def noisy(low, high, n, law, sigma):
        x = rng.uniform(low, high, n)
        return x, law(x) + sigma * rng.standard_normal(n)

    shelf, no_shelf = pmsr.load_galileo("shelf"), pmsr.load_galileo("no_shelf")
    decay, growth = lambda x: 2 * np.exp(-0.7 * x), lambda x: 0.5 * np.exp(0.6 * x)
    sine, power = lambda x: 2 * np.sin(1.3 * x), lambda x: 2 * x**1.5
    galileo, saturation = lambda x: x**2 / (1 + 0.5 * x), lambda x: 3 * x / (1 + x)
    return [
        ("Galileo's law", "k1*D**2/(1 + k2*D)", *no_shelf),
        ("the same family", "D**2/(c0 + c1*D)", *no_shelf),
        ("root of H", "c0*sqrt(H)", *shelf),
        ("c0 to the root", "c0**sqrt(D)", *no_shelf),
        ("power law, Galileo", "c0*D**c1", *no_shelf),
        ("power law", "c0*x0**c1", *noisy(0.2, 5, 50, power, 0.5)),
        ("exponent", "x0**c0", *noisy(0.5, 3, 10, lambda x: x**1.7, 0.3)),
        ("decay", "c0*exp(c1*x0)", *noisy(0.5, 3, 5, decay, 0.05)),
        ("decay", "c0*exp(c1*x0)", *noisy(0, 4, 20, decay, 0.2)),
        ("growth", "c0*exp(c1*x0)", *noisy(0, 4, 50, growth, 0.3)),
        ("rate", "exp(c0*x0)", *noisy(0, 3, 10, lambda x: np.exp(-0.8 * x), 0.1)),
        ("pole", "c0*x0**2/(1 + c1*x0)", *noisy(0.5, 5, 20, galileo, 0.3)),
        ("saturation", "c0*x0/(c1 + x0)", *noisy(0.2, 5, 10, saturation, 0.1)),
        ("saturation", "c0*x0/(c1 + x0)", *noisy(0.2, 5, 50, saturation, 0.3)),
        ("sine", "c0*sin(c1*x0)", *noisy(0.5, 4, 20, sine, 0.3)),
        ("sine", "c0*sin(c1*x0)", *noisy(0, 5, 50, sine, 0.5)),
        ("two signs", "c0**2*x0", *noisy(0.5, 3, 10, lambda x: 2 * x, 0.5)),
        ("two signs", "c0**2 + c1*x0", *noisy(0.5, 4, 20, lambda x: 1 + 2 * x, 0.5)),
        ("two signs, merging", "c0**2 + c1*x0", *noisy(0.5, 4, 20, lambda x: 0.05 + x, 0.5)),
    ]


class Exact:
    """Brute force on the region of each run: seeds that found the same minima share a value."""

    def __init__(self, text, X, y, quick):
        self.data = make_data(X, y)
        self.equation = pmsr.Equation(text, self.data.names)
        self.tolerance = 1e-2 if quick else 1e-3
        self.values = {}

    def __call__(self, seed):
        """Log q, and by how much it differs on a grid of half the resolution.

        The grid is doubled until that is small: the banana of c0*D**c1 is narrow.
        """
        seed_fit = seed_for(self.equation.key, seed).spawn(1)[0]
        rng = np.random.Generator(np.random.PCG64(seed_fit))
        target = make_target(self.equation.program, Problem.of(self.data, FLAT), 8, rng=rng)
        centres = np.array([chart.whiten @ chart.theta for chart in target.charts])
        scale = np.sqrt(target.charts[0].sse / len(self.data.y))
        key = tuple(sorted(map(tuple, np.round(centres / scale, 1) + 0.0)))
        if key not in self.values:
            coarse, fine, n = np.inf, brute_force_log_q(target, 1000, 500), 500
            while abs(fine - coarse) > self.tolerance and n < MAX_ANGLES:
                n *= 2
                coarse, fine = fine, brute_force_log_q(target, 2 * n, n)
            self.values[key] = fine, abs(fine - coarse)
        return self.values[key]


def measure(case, settings_names, quick):
    """Weigh one equation with 20 seeds and each of the settings."""
    name, text, X, y = case
    exact = Exact(text, X, y, quick)
    truth, error = np.array([exact(seed) for seed in range(N_SEEDS)]).T
    rows = []
    for settings_name in settings_names:
        settings = SETTINGS[settings_name]
        pmsr.compute_evidence(exact.equation, X, y, settings=settings, random_seed=N_SEEDS)
        started = time.process_time()
        runs = [
            pmsr.compute_evidence(exact.equation, X, y, settings=settings, random_seed=seed)
            for seed in range(N_SEEDS)
        ]
        seconds = (time.process_time() - started) / N_SEEDS
        errors = np.array([run.log_q for run in runs]) - truth
        reported = np.array([run.log_q_se for run in runs])
        sd = errors.std(ddof=1)
        allowed = ASKED[settings_name]["power" in name]
        rows.append(
            {
                "case": name,
                "equation": text,
                "N": len(y),
                "settings": settings_name,
                "exact": truth[0],
                "grid_error": error.max(),
                "regions": len(exact.values),
                "region_spread": np.ptp(truth),
                "bias": errors.mean(),
                "bias_in_se": errors.mean() / (sd / np.sqrt(N_SEEDS)),
                "sd": sd,
                "reported_se": np.sqrt(np.mean(reported**2)),
                "largest_se": reported.max(),
                "allowed_se": allowed,
                "prior_sensitivity": np.mean([run.prior_sensitivity for run in runs]),
                "cpu_ms": 1e3 * seconds,
                "same_region": np.ptp(truth) <= 0.05,
                "unbiased": abs(errors.mean()) <= 3 * sd / np.sqrt(N_SEEDS),
                "precise": sd <= allowed,
            }
        )
    return rows


def main(quick):
    names = ("default",) if quick else ("default", "finalist")
    cases = make_cases()
    cases = [cases[k] for k in (0, 3, 7, 16)] if quick else cases
    tracked = report.track(cases, len(cases), "weighing curved equations")
    frame = pd.DataFrame([row for case in tracked for row in measure(case, names, quick)])
    formats = {
        "exact": ".3f",
        "grid_error": ".0e",
        "region_spread": ".3f",
        "bias": "+.3f",
        "bias_in_se": "+.1f",
        "sd": ".3f",
        "reported_se": ".3f",
    }
    for name in names:
        shown = frame[frame["settings"] == name]
        columns = [
            "equation",
            "N",
            "exact",
            "grid_error",
            "region_spread",
            "bias",
            "bias_in_se",
            "sd",
        ]
        columns += ["reported_se", "allowed_se", "same_region", "unbiased", "precise"]
        title = f"Curved equations, {name} settings, {N_SEEDS} seeds each"
        shown = shown[columns].rename(columns=HEADINGS)
        report.show(title, shown, {HEADINGS.get(k, k): v for k, v in formats.items()})
    report.save("evidence_curved", frame, quick)
    passed = []
    for name in names:
        rows = frame[frame["settings"] == name]
        passed += [
            report.judge(
                f"{name}: all seeds find the same region (exact log q within 0.05)",
                rows["same_region"].to_list(),
            ),
            report.judge(f"{name}: bias within three standard errors", rows["unbiased"].to_list()),
            report.judge(f"{name}: sd per run as asked", rows["precise"].to_list()),
        ]
    report.console.print(
        "grid: by how much brute force differs on half the grid; spread: of the exact log q over "
        "the regions that the seeds found"
    )
    return all(passed)


if __name__ == "__main__":
    report.run(main, __doc__)
