"""Log q under the prior that is flat on predictions: exact, and the law's own.

python benchmarks/evidence_surface.py [--quick]

Brute force in one and two parameters, spellings, units, Galileo's shelf, what R and sigma_max do,
time and memory, and whether claimed standard errors are true.
"""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import report

import pmsr
from pmsr.settings import FINALIST, QUICK, Settings

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from exact import linear_log_q
from quadrature import CHARTS, surface_log_q

FINAL = replace(FINALIST, parameter_prior="invariant")
SETTINGS = {
    "quick": replace(QUICK, parameter_prior="invariant"),
    "default": Settings(parameter_prior="invariant"),
}
# What is asked, in nats unless said otherwise.
MAX_BIAS = 0.03  # of ten finalists' runs against quadrature
MAX_SE = {"finalist": 0.05, "quick": 0.15}  # claimed by one run
MAX_BETWEEN_SPELLINGS = 0.05
MAX_BETWEEN_UNITS = 0.05
MIN_AHEAD = 1.0  # of the shelf's law
MAX_BY_RADIUS = 0.01  # R/2 to 4R
MAX_COST = 1.5  # times that of the flat prior
MAX_MEMORY = 1000.0  # MB, at 100,000 rows
# Spread of 40 runs, in claimed standard errors: 99.9 % quantile of chi^2, 39 degrees of freedom.
MAX_SPREAD = 1.36
MAX_BIAS_IN_SE = 1.0  # of 40 runs, in standard errors that one of them claims
N_SEEDS, N_SPREAD = 10, 40


def make_data():
    """Datasets by name: x, y."""
    rng = np.random.default_rng(0)

    def noisy(low, high, n, law, sigma):
        x = np.sort(rng.uniform(low, high, n))
        return x, law(x) + sigma * rng.standard_normal(n)

    def galileo(name):
        X, y = pmsr.load_galileo(name)
        return X.to_numpy(dtype=float)[:, 0], np.asarray(y, dtype=float)

    return {
        "shelf": galileo("shelf"),
        "no shelf": galileo("no_shelf"),
        "decay 5": noisy(0.5, 3, 5, lambda x: 2 * np.exp(-0.7 * x), 0.05),
        "decay 20": noisy(0, 4, 20, lambda x: 2 * np.exp(-0.7 * x), 0.2),
        "growth 50": noisy(0, 4, 50, lambda x: 0.5 * np.exp(0.6 * x), 0.3),
        "power 10": noisy(0.2, 5, 10, lambda x: 2 * x**1.5, 0.5),
        "power 50": noisy(0.2, 5, 50, lambda x: 2 * x**1.5, 0.5),
        "saturation 10": noisy(0.2, 5, 10, lambda x: 3 * x / (1 + x), 0.1),
        "saturation 50": noisy(0.2, 5, 50, lambda x: 3 * x / (1 + x), 0.3),
        "sine 20": noisy(0.5, 4, 20, lambda x: 2 * np.sin(1.3 * x), 0.3),
        "sine 8": noisy(0.5, 4, 8, lambda x: 2 * np.sin(1.3 * x), 0.3),
        "step 15": noisy(0.1, 4, 15, lambda x: 2 * np.tanh(0.8 * x), 0.1),
        "inverse 12": noisy(0.5, 5, 12, lambda x: 4 / (1 + x) ** 2, 0.05),
        "log 12": noisy(0.2, 6, 12, lambda x: 1.5 * np.log(1 + 2 * x), 0.1),
        "rate 10": noisy(0, 3, 10, lambda x: np.exp(-0.8 * x), 0.1),
        "exponent 10": noisy(0.5, 3, 10, lambda x: x**1.7, 0.3),
        "line 20": noisy(0.5, 4, 20, lambda x: 1 + 2 * x, 0.5),
        "low line 20": noisy(0.5, 4, 20, lambda x: 0.05 + x, 0.5),
        "negative line 20": noisy(0.5, 4, 20, lambda x: -1.5 + 2 * x, 0.5),
        "square 15": noisy(0.2, 4, 15, lambda x: (0.5 + 0.7 * x) ** 2, 0.3),
        "offset 20": noisy(0.0, 4, 20, lambda x: 1 + 2 * np.exp(-1.1 * x), 0.1),
        "ratio 10": noisy(0.2, 5, 10, lambda x: (1 + 3 * x) / (1 + x), 0.05),
        "wave 20": noisy(0, 5, 20, lambda x: 2 * np.sin(1.3 * x + 0.4), 0.3),
        "peak 20": noisy(0, 5, 20, lambda x: 2 / (1 + (x - 2) ** 2), 0.1),
    }


# Data, equation, and its chart in tests/quadrature.py.
QUADRATURE = [
    ("no shelf", "k1*x0**2/(1 + k2*x0)", "k1*x**2/(1 + k2*x)"),
    ("no shelf", "x0**2/(c0 + c1*x0)", "k1*x**2/(1 + k2*x)"),
    ("no shelf", "c0*x0**c1", "c0*x**c1"),
    ("no shelf", "c0**sqrt(x0)", "c0**sqrt(x)"),
    ("shelf", "sqrt(c0*x0/(c1 + x0))", "sqrt(c0*x/(c1 + x))"),
    ("shelf", "c0*sqrt(x0)/(c1 + 2*x0)", "c0*sqrt(x)/(c1 + 2*x)"),
    ("shelf", "sqrt(x0*(c0 + x0)/c1)", "sqrt(x*(c0 + x)/c1)"),
    ("decay 5", "c0*exp(c1*x0)", "c0*exp(c1*x)"),
    ("decay 20", "c0*exp(c1*x0)", "c0*exp(c1*x)"),
    ("decay 20", "exp(c0 + c1*x0)", "exp(c0 + c1*x)"),
    ("growth 50", "c0*exp(c1*x0)", "c0*exp(c1*x)"),
    ("power 10", "c0*x0**c1", "c0*x**c1"),
    ("power 50", "c0*x0**c1", "c0*x**c1"),
    ("saturation 10", "c0*x0/(c1 + x0)", "c0*x/(c1 + x)"),
    ("saturation 50", "c0*x0/(c1 + x0)", "c0*x/(c1 + x)"),
    ("sine 8", "c0*sin(c1*x0)", "c0*sin(c1*x)"),
    ("sine 20", "c0*sin(c1*x0)", "c0*sin(c1*x)"),
    ("sine 20", "c0*sin(x0/c1)", "c0*sin(c1*x)"),
    ("step 15", "c0*tanh(c1*x0)", "c0*tanh(c1*x)"),
    ("inverse 12", "c0/(c1 + x0)**2", "c0/(c1 + x)**2"),
    ("log 12", "c0*log(1 + c1*x0)", "c0*log(1 + c1*x)"),
    ("rate 10", "exp(c0*x0)", "exp(c0*x)"),
    ("exponent 10", "x0**c0", "x**c0"),
    ("line 20", "c0**2 + c1*x0", "c0**2 + c1*x"),
    ("low line 20", "c0**2 + c1*x0", "c0**2 + c1*x"),
    ("negative line 20", "c0**2 + c1*x0", "c0**2 + c1*x"),
    ("square 15", "(c0 + c1*x0)**2", "(c0 + c1*x)**2"),
    # Three parameters, one of them an offset.
    ("offset 20", "c0*exp(c1*x0) + c2", "c0*exp(c1*x) + c2"),
    ("offset 20", "c0 + exp(c1*x0)/c2", "c0*exp(c1*x) + c2"),
    ("offset 20", "c0*c1**x0 + c2", "c0*exp(c1*x) + c2"),
    ("ratio 10", "(c0 + c1*x0)/(c2 + x0)", "(c0 + c1*x)/(c2 + x)"),
]

# Data, and spellings that have the same image.
SPELLINGS = [
    ("no shelf", "k1*x0**2/(1 + k2*x0)", "x0**2/(c0 + c1*x0)", "x0/(c0/x0 + c1)"),
    ("decay 20", "c0*exp(c1*x0)", "c0*c1**x0", "exp(c1*x0)/c0", "c0*exp(x0/c1)"),
    ("saturation 10", "c0*x0/(c1 + x0)", "x0/(c0 + c1*x0)", "c0/(1 + c1/x0)"),
    ("square 15", "(c0 + c1*x0)**2", "c0**2*(1 + c1*x0)**2", "(c0*(c1 + x0))**2"),
    ("power 10", "c0*x0**c1", "c0*exp(c1*log(x0))", "x0**c1/c0", "c0*x0**(1/c1)"),
    ("sine 20", "c0*sin(c1*x0)", "c0*sin(x0/c1)", "sin(c1*x0)/c0"),
    ("step 15", "c0*tanh(c1*x0)", "c0*tanh(x0/c1)", "c0*(1 - 2/(exp(c1*x0) + 1))"),
    ("log 12", "c0*log(1 + c1*x0)", "c0*log(1 + x0/c1)", "log(1 + c1*x0)/c0"),
    ("shelf", "sqrt(c0*x0/(c1 + x0))", "sqrt(x0/(c0 + c1*x0))", "sqrt(c0/(1 + c1/x0))"),
    ("inverse 12", "c0/(c1 + x0)**2", "c0/(1 + c1*x0)**2", "1/(c0*(c1 + x0)**2)"),
    ("rate 10", "exp(c0*x0)", "c0**x0", "exp(x0/c0)"),
    ("exponent 10", "x0**c0", "exp(c0*log(x0))", "x0**(1/c0)"),
    ("line 20", "c0 + c1*x0", "c0*(c1 + x0)", "c0*(1 + x0/c1)", "c0 + x0/c1"),
    ("offset 20", "c0*exp(c1*x0) + c2", "c0 + exp(c1*x0)/c2", "c0*c1**x0 + c2"),
    ("ratio 10", "(c0 + c1*x0)/(c2 + x0)", "(c0 + c1*x0)/(1 + c2*x0)", "c0 + c1/(c2 + x0)"),
    ("wave 20", "c0*sin(c1*x0 + c2)", "c0*cos(c1*x0 + c2)", "c0*sin(c1*x0) + c2*cos(c1*x0)"),
]

# Data, the smaller law, the whole one, and their charts.
HALVES = [
    ("decay 20", "exp(c0 + c1*x0)", "c0*exp(c1*x0)", "exp(c0 + c1*x)", "c0*exp(c1*x)"),
    ("decay 5", "exp(c0 + c1*x0)", "c0*exp(c1*x0)", "exp(c0 + c1*x)", "c0*exp(c1*x)"),
    ("power 10", "exp(c0)*x0**c1", "c0*x0**c1", "exp(c0)*x**c1", "c0*x**c1"),
    ("low line 20", "c0**2 + c1*x0", "c0 + c1*x0", "c0**2 + c1*x", "c0 + c1*x"),
    ("negative line 20", "c0**2 + c1*x0", "c0 + c1*x0", "c0**2 + c1*x", "c0 + c1*x"),
    ("inverse 12", "1/(c0 + c1*x0)**2", "c0/(c1 + x0)**2", "1/(c0 + c1*x)**2", "c0/(c1 + x)**2"),
    (
        "shelf",
        "sqrt(c0*x0/(c1 + x0))",
        "c0*sqrt(x0/(c1 + x0))",
        "sqrt(c0*x/(c1 + x))",
        "c0*sqrt(x/(c1 + x))",
    ),
]

# Data and laws that have no unit coincidence.
UNITS = [
    ("power 10", "c0*x0**c1"),
    ("decay 20", "c0*exp(c1*x0)"),
    ("saturation 10", "c0*x0/(c1 + x0)"),
    ("no shelf", "x0**2/(c0 + c1*x0)"),
    ("sine 20", "c0*sin(c1*x0)"),
    ("step 15", "c0*tanh(c1*x0)"),
    ("log 12", "c0*log(1 + c1*x0)"),
    ("inverse 12", "c0/(c1 + x0)**2"),
    ("offset 20", "c0*exp(c1*x0) + c2"),
    ("ratio 10", "(c0 + c1*x0)/(c2 + x0)"),
    ("square 15", "(c0 + c1*x0)**2"),
    ("log 12", "c0 + c1*log(x0)"),
]

# Forms that were seen ahead of c0*sqrt(H), or are in the paper's or our own tables.
SHELF_RIVALS = [
    "sqrt(c0*x0/(c1 + x0))",
    "c0*sqrt(x0)/(c1 + 2*x0)",
    "sqrt(x0*(c0 + x0)/c1)",
    "c0*x0**c1",
    "c0*sqrt(x0)/(1 + c1*x0)",
    "c0 + c1*sqrt(x0)",
    "sqrt(c0/(x0 + c1/x0))",
    "sqrt(c0*x0 + c1)",
    "sqrt(c0*x0 + c1**(c2**c3))",
    "sqrt(c0*(x0 - sqrt(x0))/(c1 + x0))",
    "sqrt(c0*(x0 - sqrt(x0))/(c1 + sqrt(x0)))",
    "x0/sqrt(c0*(x0 + sqrt(x0))/(c1 + sqrt(x0)))",
]

RADIUS = ["no shelf", "decay 5", "decay 20", "power 10", "saturation 10", "sine 8", "step 15"]
RADIUS = [row for row in QUADRATURE if row[0] in (*RADIUS, "inverse 12", "log 12")]
RADIUS = [row for k, row in enumerate(RADIUS) if row[2] not in [r[2] for r in RADIUS[:k]]]

# The laws of the design's table, and those with two curved parameters; data, equation, chart.
ERRORS = [
    ("shelf", "sqrt(c0*x0/(c1 + x0))", "sqrt(c0*x/(c1 + x))"),
    ("shelf", "c0*sqrt(x0)/(c1 + 2*x0)", "c0*sqrt(x)/(c1 + 2*x)"),
    ("shelf", "sqrt(x0*(c0 + x0)/c1)", "sqrt(x*(c0 + x)/c1)"),
    ("no shelf", "k1*x0**2/(1 + k2*x0)", "k1*x**2/(1 + k2*x)"),
    ("no shelf", "x0**2/(c0 + c1*x0)", "k1*x**2/(1 + k2*x)"),
    ("no shelf", "c0*x0**c1", "c0*x**c1"),
    ("saturation 10", "c0*x0/(c1 + x0)", "c0*x/(c1 + x)"),
    ("saturation 10", "x0/(c0 + c1*x0)", "c0*x/(c1 + x)"),
    ("power 10", "c0*x0**c1", "c0*x**c1"),
    ("sine 20", "c0*sin(c1*x0)", "c0*sin(c1*x)"),
    ("negative line 20", "c0**2 + c1*x0", "c0**2 + c1*x"),
    ("ratio 10", "(c0 + c1*x0)/(c2 + x0)", "(c0 + c1*x)/(c2 + x)"),
    ("wave 20", "c0*sin(c1*x0 + c2)", ""),
    ("peak 20", "c0/(c1 + (x0 - c2)**2)", ""),
]

COST = [
    ("2*np.exp(-0.7*x)", "c0*exp(c1*x0)"),
    ("2*np.exp(-0.7*x)", "c0*exp(c1*x0) + c2"),
    ("3*x/(1 + x)", "c0*x0/(c1 + x0)"),
    ("3*x/(1 + x)", "(c0 + c1*x0)/(c2 + x0)"),
    ("2*x**1.5", "c0*x0**c1"),
    ("2*np.sin(1.3*x)", "c0*sin(c1*x0) + c2"),
    ("2*np.tanh(0.8*x)", "c0*tanh(c1*x0)"),
    ("np.sqrt(1 + x)", "sqrt(c0 + c1*x0)"),
]


def weigh(text, x, y, settings, seeds):
    """Log q and its standard error for each seed, of shape (2, n)."""
    equation = pmsr.Equation(text, ["x0"])
    runs = [pmsr.compute_evidence(equation, x, y, settings=settings, random_seed=s) for s in seeds]
    return np.array([(run.log_q, run.log_q_se) for run in runs]).T


def brute_force(data, quick):
    rows = []
    cases = QUADRATURE[::6] if quick else QUADRATURE
    for name, text, chart in report.track(cases, len(cases), "quadrature"):
        x, y = data[name]
        exact = surface_log_q(CHARTS[chart], x, y, tolerance=1e-3)
        log_q, se = weigh(text, x, y, FINAL, range(2 if quick else N_SEEDS))
        claimed = np.sqrt(np.mean(se**2))
        bias, error = np.mean(log_q) - exact, claimed / np.sqrt(len(log_q))
        rows.append(
            {
                "data": name,
                "equation": text,
                "N": len(y),
                "exact": exact,
                "bias": bias,
                "sd": np.std(log_q, ddof=1),
                "claimed_se": claimed,
                "largest_error_in_se": np.max(np.abs(log_q - exact) / se),
                # Quadrature itself is good to its tolerance at both ends.
                "agrees": abs(bias) <= 3.0 * error + 2e-3,
                "unbiased": abs(bias) <= MAX_BIAS,
                "precise": np.max(se) <= MAX_SE["finalist"],
            }
        )
    frame = pd.DataFrame(rows)
    formats = {"exact": ".3f", "bias": "+.4f", "sd": ".4f", "claimed_se": ".4f"}
    report.show("Brute force, finalists' settings", frame, formats | {"largest_error_in_se": ".1f"})
    report.save("surface_quadrature", frame, quick)
    return [
        report.judge("quadrature: mean within three standard errors", frame["agrees"]),
        report.judge(f"quadrature: bias at most {MAX_BIAS}", frame["unbiased"]),
        report.judge(f"finalists: standard error at most {MAX_SE['finalist']}", frame["precise"]),
    ]


def spellings(data, quick):
    rows, seeds = [], range(1 if quick else 4)
    families = SPELLINGS[::5] if quick else SPELLINGS
    for name, *texts in report.track(families, len(families), "spellings"):
        found = [weigh(text, *data[name], FINAL, seeds)[0].mean() for text in texts]
        rows += [
            {"data": name, "equation": text, "log_q": log_q, "difference": log_q - found[0]}
            for text, log_q in zip(texts, found, strict=True)
        ]
    frame = pd.DataFrame(rows)
    frame["ok"] = frame["difference"].abs() <= MAX_BETWEEN_SPELLINGS
    report.show("Spellings", frame, {"log_q": ".3f", "difference": "+.4f"})
    report.save("surface_spellings", frame, quick)
    rows = []
    cases = HALVES[:2] if quick else HALVES
    for name, half, whole, *charts in report.track(cases, len(cases), "halves"):
        x, y = data[name]
        sampled = [weigh(text, x, y, FINAL, seeds)[0].mean() for text in (half, whole)]
        exact = [surface_log_q(CHARTS[chart], x, y) for chart in charts]
        rows.append(
            {
                "data": name,
                "half": half,
                "whole": whole,
                "gain": sampled[0] - sampled[1],
                "exact_gain": exact[0] - exact[1],
            }
        )
    halves = pd.DataFrame(rows)
    halves["ok"] = (halves["gain"] - halves["exact_gain"]).abs() <= MAX_BETWEEN_SPELLINGS
    report.show("Half of a surface", halves, {"gain": "+.3f", "exact_gain": "+.3f"})
    report.save("surface_halves", halves, quick)
    return [
        report.judge(f"spellings: within {MAX_BETWEEN_SPELLINGS}", frame["ok"]),
        report.judge("half of a surface: the gain is that of quadrature", halves["ok"]),
    ]


def units(data, quick):
    rows, seeds = [], range(1 if quick else 4)
    cases = UNITS[::5] if quick else UNITS
    for name, text in report.track(cases, len(cases), "units"):
        x, y = data[name]
        base = weigh(text, x, y, FINAL, seeds)[0].mean()
        row = {"data": name, "equation": text, "log_q": base}
        for factor in (1e-6, 1e3, 1e6):
            row[f"x_times_{factor:g}"] = weigh(text, factor * x, y, FINAL, seeds)[0].mean() - base
        n, factor = len(y), 1e3
        expected = -n * (1.0 - 1.0 / np.sqrt(n)) * np.log(factor)
        row["y_times_1000"] = weigh(text, x, factor * y, FINAL, seeds)[0].mean() - base - expected
        rows.append(row)
    frame = pd.DataFrame(rows)
    frame["ok"] = frame.filter(like="times").abs().max(axis=1) <= MAX_BETWEEN_UNITS
    formats = {name: "+.4f" for name in frame if "times" in name} | {"log_q": ".3f"}
    report.show("Units: change of log q (for y, beyond what all share)", frame, formats)
    report.save("surface_units", frame, quick)
    return [report.judge(f"units: within {MAX_BETWEEN_UNITS}", frame["ok"])]


def shelf(data, quick):
    x, y = data["shelf"]
    law = weigh("c0*sqrt(x0)", x, y, FINAL, range(4))[0].mean()
    rows = []
    for text in SHELF_RIVALS[:3] if quick else SHELF_RIVALS:
        log_q, se = weigh(text, x, y, FINAL, range(4))
        flat = weigh(text, x, y, FINALIST, range(1))[0].mean()
        rows.append(
            {
                "equation": text.replace("x0", "H"),
                "flat_log_q": flat,
                "log_q": log_q.mean(),
                "se": se.max(),
                "law_ahead": law - log_q.mean(),
            }
        )
    frame = pd.DataFrame(rows)
    # A form that could not be weighed is not behind.
    frame["ok"] = (frame["law_ahead"] > MIN_AHEAD) & np.isfinite(frame["log_q"])
    formats = {"flat_log_q": ".2f", "log_q": ".2f", "se": ".3f", "law_ahead": ".2f"}
    report.show(f"Galileo's shelf: c0*sqrt(H) has {law:.2f}", frame, formats)
    report.save("surface_shelf", frame, quick)
    return [report.judge(f"shelf: the law is ahead by more than {MIN_AHEAD} nat", frame["ok"])]


def bounds(data, quick):
    rows = []
    cases = RADIUS[:2] if quick else RADIUS
    for name, text, chart in report.track(cases, len(cases), "radius"):
        x, y = data[name]
        whole = surface_log_q(CHARTS[chart], x, y, tolerance=3e-4)
        row = {"data": name, "equation": text, "N": len(y), "log_q": whole}
        for factor in (0.5, 2.0, 4.0):
            other = surface_log_q(CHARTS[chart], x, y, tolerance=3e-4, radius_factor=factor)
            row[f"R_times_{factor:g}"] = other - whole
        for factor in (0.5, 2.0):
            other = surface_log_q(CHARTS[chart], x, y, tolerance=3e-4, sigma_max=2.0 * factor)
            row[f"sigma_max_times_{factor:g}"] = other - whole
        rows.append(row)
    frame = pd.DataFrame(rows)
    frame["ok"] = frame.filter(like="R_times").abs().max(axis=1) <= MAX_BY_RADIUS
    formats = {name: "+.3f" for name in frame if "times" in name} | {"log_q": ".3f"}
    report.show("What R and sigma_max do, by quadrature", frame, formats)
    report.save("surface_radius", frame, quick)
    rows = []
    for n in (7, 20):
        x = np.linspace(-1.0, 1.0, n)
        y = 1.0 + x + 0.5 * np.random.default_rng(0).standard_normal(n)
        for p in (1, 2, 3, 4):
            design = x[:, None] ** np.arange(p)
            log_q = {m: linear_log_q(design, y, Settings(sigma_max=m)) for m in (1.0, 2.0, 4.0)}
            rows.append(
                {"N": n, "p": p, "halved": log_q[1] - log_q[2], "doubled": log_q[4] - log_q[2]}
            )
    report.show(
        "sigma_max and polynomials", pd.DataFrame(rows), {"halved": "+.3f", "doubled": "+.3f"}
    )
    report.save("surface_sigma_max", pd.DataFrame(rows), quick)
    return [report.judge(f"R/2 to 4R: within {MAX_BY_RADIUS}", frame["ok"])]


MEMORY = """
import re, numpy as np, pmsr
x = np.linspace(0.1, 4.0, 100_000)
y = 2*np.exp(-0.7*x) + 0.2*np.random.default_rng(0).standard_normal(len(x))
settings = pmsr.Settings(parameter_prior={!r})
evidence = pmsr.compute_evidence("c0*exp(c1*x0) + c2", x, y, settings=settings, random_seed=0)
assert evidence.failure is None, evidence.failure
# Not getrusage: a process inherits the peak of the one that started it.
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])/1024)
"""


def cost(quick):
    rows = []
    sizes = (20, 100) if quick else (20, 100, 1000)
    for n in sizes:
        rng = np.random.default_rng(0)
        x = rng.uniform(0.1, 4.0, n)
        for kind, settings in {"quick": QUICK, "default": Settings()}.items():
            row = {"N": n, "settings": kind}
            for prior in ("flat", "invariant"):
                seconds = 0.0
                for source, text in COST:
                    y = eval(source, {"np": np, "x": x}) + 0.2 * rng.standard_normal(n)
                    one = replace(settings, parameter_prior=prior)
                    weigh(text, x, y, one, [99])
                    started = time.process_time()
                    weigh(text, x, y, one, range(3 if quick or n == 1000 else 10))
                    seconds += (time.process_time() - started) / (3 if quick or n == 1000 else 10)
                row[f"{prior}_ms"] = 1e3 * seconds / len(COST)
            row["ratio"] = row["invariant_ms"] / row["flat_ms"]
            rows.append(row)
    frame = pd.DataFrame(rows)
    frame["ok"] = frame["ratio"] <= MAX_COST
    formats = {"flat_ms": ".1f", "invariant_ms": ".1f", "ratio": ".2f"}
    report.show("CPU time per equation", frame, formats)
    report.save("surface_cost", frame, quick)
    passed = [report.judge(f"cost: at most {MAX_COST} times the flat prior's", frame["ok"])]
    if not quick:
        memory = {
            prior: float(
                subprocess.run(
                    [sys.executable, "-c", MEMORY.format(prior)], capture_output=True, check=True
                ).stdout
            )
            for prior in ("flat", "invariant")
        }
        report.console.print(f"peak memory at 100,000 rows, MB: {memory}")
        passed.append(report.judge("memory below 1 GB", [memory["invariant"] <= MAX_MEMORY]))
    return passed


def errors(data, quick):
    rows, n_seeds = [], 10 if quick else N_SPREAD
    cases = ERRORS[::5] if quick else ERRORS
    for name, text, chart in report.track(cases, len(cases), "standard errors"):
        x, y = data[name]
        if chart:
            truth = surface_log_q(CHARTS[chart], x, y)
        else:
            truth = weigh(text, x, y, FINAL, range(1000, 1008))[0].mean()
        for kind, settings in SETTINGS.items():
            log_q, se = weigh(text, x, y, settings, range(n_seeds))
            found = np.isfinite(log_q)
            log_q, claimed = log_q[found], np.sqrt(np.mean(se[found] ** 2))
            sd, bias = np.std(log_q, ddof=1), np.mean(log_q) - truth
            rows.append(
                {
                    "data": name,
                    "equation": text,
                    "settings": kind,
                    "truth": truth,
                    "bias": bias,
                    "sd": sd,
                    "claimed_se": claimed,
                    "largest_se": se[found].max(),
                    "failed": int(np.sum(~found)),
                    "spread_ok": sd <= MAX_SPREAD * claimed,
                    "bias_ok": abs(bias) <= MAX_BIAS_IN_SE * claimed,
                    "se_ok": kind != "quick" or se[found].max() <= MAX_SE["quick"],
                    "all_found": bool(found.all()),
                }
            )
    frame = pd.DataFrame(rows)
    formats = {name: ".3f" for name in ("truth", "sd", "claimed_se", "largest_se")}
    report.show(f"Claimed errors, {n_seeds} seeds", frame, formats | {"bias": "+.3f"})
    report.save("surface_errors", frame, quick)
    return [
        report.judge(f"spread at most {MAX_SPREAD} times what is claimed", frame["spread_ok"]),
        report.judge("bias at most what is claimed", frame["bias_ok"]),
        report.judge(f"quick: standard error at most {MAX_SE['quick']}", frame["se_ok"]),
        report.judge("no failure", frame["all_found"]),
    ]


def main(quick):
    data = make_data()
    passed = [
        *brute_force(data, quick),
        *spellings(data, quick),
        *units(data, quick),
        *shelf(data, quick),
        *bounds(data, quick),
        *errors(data, quick),
        *cost(quick),
    ]
    return all(passed)


if __name__ == "__main__":
    report.run(main, __doc__)
