"""Measurements as they are: log q and intervals under every noise model, and which noise is chosen.

python benchmarks/noise_models.py exact | coverage | prior | outliers | arrhenius | chronometers |
    galileo | speed   [--quick] [--seeds 10] [--datasets 300] [--base COMMIT]

Problems, seeds, budgets and thresholds were fixed before the first run that they judge. Budgets of
searches are generations, not seconds: they do not depend on how busy the machine is. Times are CPU
times of one process.

exact         log q of a linear law with known errors within 0.02 of its closed form; Student,
              Poisson, log-normal and proportional noise within three standard errors (and the
              grid's 0.01, 0.03) of quadrature that shares no code with the sampler, in one and two
              parameters
coverage      95 % intervals of parameters and of a new observation hold the truth in 92 to 98 % of
              300 datasets of each noise model, the law being given
prior         how often the evidence alone, and with a prior against noise that is not normal,
              chooses a noise which did not make the data, the law being given: chooses that prior
outliers      a tenth of the rows ten sigma off, six laws: with noise="auto" the law wins in at
              least 8 of 10 seeds, in at most twice the CPU time of a search under normal noise;
              without outliers normal noise is chosen in at least 9 of 10
arrhenius     c0*exp(-c1/T) with an error of 4 %, T in kelvin: the law wins in 9 of 10
chronometers  32 Hubble rates with known errors: the best laws, and Lambda-CDM written by hand
galileo       the table of noise models of Galileo's ramp without a shelf
speed         the default search at most 5 % slower than at commit c7d0651

A law wins if it is the first of the result in any algebraic form, with as many parameters, or
with some of its parameters replaced by numbers (pmsr.experiments.laws).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import report

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from noise_quadrature import DENSITIES, N, decay, draw, grid, line, log_q_by_quadrature, x

import pmsr
from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.evidence.evidence import seed_for, weigh
from pmsr.evidence.posterior import draw_posterior, to_arviz
from pmsr.evidence.prediction import predict
from pmsr.evidence.problem import Problem
from pmsr.experiments.laws import is_law, is_special_case
from pmsr.settings import Search, Settings

ROOT = Path(__file__).resolve().parent.parent

# exact
CLOSED_FORM = 0.02
GRID = {1: 0.01, 2: 0.03}  # what the grid, and the region beyond which nobody looks, are good to
EXACT_SEEDS = 3
# coverage
LEVEL, LOW, HIGH = 0.95, 0.92, 0.98
N_ROWS = 25
TRUTH = (3.0, -0.4)  # of c0*exp(c1*x) on 0.5 to 4; counts are forty times that
COVERED = ("gaussian", "known", "extra", "student", "proportional", "lognormal", "poisson")
# prior
COSTS = (0.0, 1.0, 1.4, 2.0, 2.5, 3.0, 4.0)
PRIOR_LAWS = {"c0 + c1*x": (1.0, 2.0), "c0*exp(c1*x)": (3.0, -0.4), "c0*x/(c1 + x)": (5.0, 2.0)}
PRIOR_ROWS = (10, 20, 40, 80)
FALSE_CHOICES = 0.05  # of datasets of normal noise, at most, at any number of rows
# outliers: name, law, columns with their range, constants, operators
ARITHMETIC = ("+", "-", "*", "/")
LAWS = {
    "line": ("c0 + c1*x", {"x": (0.0, 4.0)}, (1.0, 2.0), ARITHMETIC),
    "decay": ("c0*exp(c1*t)", {"t": (0.0, 4.0)}, (3.0, -0.7), (*ARITHMETIC, "exp")),
    "root": ("c0*sqrt(p/d)", {"p": (1.0, 4.0), "d": (1.0, 4.0)}, (3.0,), (*ARITHMETIC, "sqrt")),
    "saturation": ("c0*s/(c1 + s)", {"s": (0.2, 8.0)}, (5.0, 2.0), ARITHMETIC),
    "product": ("c0*a*b", {"a": (1.0, 3.0), "b": (1.0, 3.0)}, (2.0,), ARITHMETIC),
    "square": ("c0 + c1*v**2", {"v": (0.0, 3.0)}, (1.0, 1.5), ARITHMETIC),
}
OUTLIER_ROWS, SHARE, SIZE = 40, 0.1, 10.0
SIGMA = 0.03  # of the standard deviation of the law
SEARCH = Search(population_size=40, generations=30, n_enumerated=200, n_islands=1, n_finalists=5)
MOST_TIME = 2.0
WINS, NORMAL = 8, 9  # of 10
# arrhenius: R in J/(mol K) times an activation energy of 50 kJ/mol, a rate of 1 per second at 330 K
ARRHENIUS = "c0*exp(-c1/T)"
ARRHENIUS_TRUTH = (8.2e7, 6014.0)
ARRHENIUS_ROWS, ARRHENIUS_ERROR = 24, 0.04
# chronometers
LAMBDA_CDM = "c0*sqrt(c1*(1 + z)**3 + 1 - c1)"
# speed
BASE, SLOWER = "c7d0651", 0.05
ROUNDS = 5
RAMP = ("k1*D**2/(1 + k2*D)", "c0*D**c1", "c0*D**2", "c0*exp(c1*D)", "c0 + c1*D")


def exact(seeds, datasets):
    """Weigh laws under every noise, and compare with the closed form or with quadrature."""
    del datasets
    rows, settings = [], Settings(n_replicates=4)
    for seed in range(min(seeds, EXACT_SEEDS)):
        rng = np.random.default_rng([1, seed])
        errors = rng.uniform(0.1, 0.4, N)
        y = 1.0 + 2.0 * x + errors * rng.standard_normal(N)
        data = make_data(x, y, names=["x"], y_err=errors)
        problem = Problem.of(data, settings)
        for text, columns in (("c0*x", [x]), ("c0 + c1*x", [np.ones(N), x])):
            found = weigh(Equation(text, ["x"]).program, problem, settings, seed_for(text, seed))
            A = np.stack(columns, axis=1) / errors[:, None]
            theta, *_ = np.linalg.lstsq(A, y / errors, rcond=None)
            chi2 = float(np.sum((y / errors - A @ theta) ** 2))
            log_l = -0.5 * N * np.log(2 * np.pi) - np.sum(np.log(errors)) - 0.5 * chi2
            expected = (1 - problem.gamma) * log_l + 0.5 * len(columns) * np.log(problem.gamma)
            rows.append(exact_row("known", text, seed, found.evidence, expected, CLOSED_FORM, 0.0))
        for noise in DENSITIES:
            for text, curve, truth in (
                ("c0*x", line, (1.3,)),
                ("c0*exp(c1*x)", decay, (3.0, -0.4)),
            ):
                p, size = len(truth), 12.0 if noise == "poisson" else 1.0
                y = draw(noise, curve(*np.array(truth)[:, None])[0][0], rng)
                own = Settings(n_replicates=4, noise=noise)
                problem = Problem.of(make_data(x, y, names=["x"]), own)
                found = weigh(Equation(text, ["x"]).program, problem, own, seed_for(text, seed))
                spans = [(truth[0] * size, 0.2 * size / 10 ** (2 - p), 60.0 * size)]
                spans += [(-0.4, 0.05, 12.0)][: p - 1]
                points, weight = grid(spans, 20_001 if p == 1 else 301)
                bounds = problem.sigma_bounds if problem.noise.has_sigma else None
                expected = log_q_by_quadrature(noise, y, points, weight, curve, bounds)
                rows.append(exact_row(noise, text, seed, found.evidence, expected, GRID[p], 3.0))
    table = pd.DataFrame(rows)
    formats = dict.fromkeys(("log_q", "expected", "off", "log_q_se"), ".3f")
    report.show("Log q against closed form (known) and quadrature", table, formats)
    passed = [
        report.judge(f"{noise}: within", part["ok"]) for noise, part in table.groupby("noise")
    ]
    return table, all(passed)


def exact_row(noise, text, seed, evidence, expected, allowed, errors):
    off = evidence.log_q - expected
    return {
        "noise": noise,
        "law": text,
        "seed": seed,
        "log_q": evidence.log_q,
        "expected": expected,
        "off": off,
        "log_q_se": evidence.log_q_se,
        "ok": bool(abs(off) < allowed + errors * evidence.log_q_se),
    }


def coverage(seeds, datasets):
    """Count how often 95 % intervals hold the truth, the law being given."""
    del seeds
    law, rows = Equation("c0*exp(c1*x)", ["x"]), []
    for noise in COVERED:
        truth = np.array(TRUTH) * (40.0 if noise == "poisson" else 1.0, 1.0)
        for seed in report.track(range(datasets), datasets, noise):
            rng = np.random.default_rng([2, COVERED.index(noise), seed])
            xs = rng.uniform(0.5, 4.0, N_ROWS + 1)
            f = evaluate(law.program, truth[None, :], xs[:, None])[0]
            y, errors = measure(noise, f, rng)
            measured = {"y_err": errors[:-1]} if errors is not None else {}
            settings = Settings(
                noise="gaussian" if errors is not None else noise, extra_noise=noise == "extra"
            )
            problem = Problem.of(make_data(xs[:-1], y[:-1], names=["x"], **measured), settings)
            seeds_of = seed_for(law.key, seed)
            sample = draw_posterior(law, problem, settings, seeds_of, draws=500, chains=2)
            tails = (0.5 * (1 - LEVEL), 0.5 * (1 + LEVEL))
            low, high = np.quantile(sample.flat_theta, tails, axis=0)
            table = predict(to_arviz(law, problem, sample, None), xs[-1:], level=LEVEL)
            new = table["prediction_low"][0] <= y[-1] <= table["prediction_high"][0]
            hit = (low <= truth) & (truth <= high)
            rows.append({"noise": noise, "seed": seed, "c0": hit[0], "c1": hit[1], "new": new})
    table = pd.DataFrame(rows)
    shares = table.groupby("noise", sort=False)[["c0", "c1", "new"]].mean().reset_index()
    report.show(
        f"Coverage of {LEVEL:.0%} intervals", shares, dict.fromkeys(shares.columns[1:], ".3f")
    )
    values = shares[["c0", "c1", "new"]].to_numpy().ravel()
    return table, report.judge(
        f"{LOW:.0%} to {HIGH:.0%}", [bool(LOW <= value <= HIGH) for value in values]
    )


def measure(noise, f, rng):
    """Return measurements of f and, where they are known, their errors; the last row is new."""
    n = len(f)
    if noise in ("known", "extra"):
        errors = rng.uniform(0.05, 0.2, n)
        # A new observation has the error of a typical row.
        errors[-1] = np.sqrt(np.mean(errors[:-1] ** 2))
        size = errors if noise == "known" else np.hypot(errors, 0.1)
        return f + size * rng.standard_normal(n), errors
    if noise == "gaussian":
        return f + 0.15 * rng.standard_normal(n), None
    if noise == "student":
        return f + 0.12 * rng.standard_t(4, n), None
    if noise == "proportional":
        return f * (1.0 + 0.1 * rng.standard_normal(n)), None
    if noise == "lognormal":
        return f * np.exp(0.15 * rng.standard_normal(n)), None
    return rng.poisson(f).astype(float), None


def prior(seeds, datasets):
    """Weigh given laws under every noise; ask what a prior against the others would choose."""
    del seeds
    kinds, rows = ("gaussian", "outliers", "proportional"), []
    each = max(1, datasets // 10)
    cases = [(kind, text, n) for kind in kinds for text in PRIOR_LAWS for n in PRIOR_ROWS]
    for kind, text, n in report.track(cases, len(cases), "weighing"):
        law = Equation(text, ["x"])
        for seed in range(each):
            rng = np.random.default_rng([3, kinds.index(kind), n, seed, len(text)])
            xs = rng.uniform(0.5, 4.0, n)
            f = evaluate(law.program, np.array([PRIOR_LAWS[text]]), xs[:, None])[0]
            sigma = 0.05 * np.std(f)
            y = f + sigma * rng.standard_normal(n)
            if kind == "outliers":
                y = with_outliers(y, sigma, rng)
            elif kind == "proportional":
                y = f * (1.0 + ARRHENIUS_ERROR * rng.standard_normal(n))
            found = {"kind": kind, "law": text, "n": n, "seed": seed}
            for noise in ("gaussian", "student", "proportional", "lognormal"):
                own = Settings(n_draws=1000, noise=noise)
                try:
                    problem = Problem.of(make_data(xs, y, names=["x"]), own)
                except ValueError:
                    found[noise] = -np.inf
                    continue
                weighed = weigh(law.program, problem, own, seed_for(text, seed))
                found[noise] = weighed.evidence.log_q
            rows.append(found)
    table = pd.DataFrame(rows)
    gain = table[["student", "proportional", "lognormal"]].max(axis=1) - table["gaussian"]
    shown = [
        {
            "kind": kind,
            "n": n,
            **{f"{cost:g}": float(np.mean(gain[part.index] > cost)) for cost in COSTS},
        }
        for (kind, n), part in table.groupby(["kind", "n"], sort=False)
    ]
    shown = pd.DataFrame(shown)
    formats = dict.fromkeys((f"{cost:g}" for cost in COSTS), ".2f")
    report.show(
        "How often a noise that is not normal is chosen, by its cost in nats", shown, formats
    )
    worst = shown[shown["kind"] == "gaussian"][list(formats)].max()
    enough = [cost for cost in COSTS if worst[f"{cost:g}"] <= FALSE_CHOICES]
    report.console.print(f"least cost with at most {FALSE_CHOICES:.0%} false choices: {enough[:1]}")
    return table, True


def with_outliers(y, sigma, rng):
    """Move a tenth of the rows, at least one, by ten sigma up or down."""
    y, n = y.copy(), max(1, round(SHARE * len(y)))
    rows = rng.choice(len(y), n, replace=False)
    y[rows] += SIZE * sigma * rng.choice([-1.0, 1.0], n)
    return y


def outliers(seeds, datasets):
    """Search with and without outliers."""
    del datasets
    cases, rows = [(name, seed) for name in LAWS for seed in range(seeds)], []
    run_search(*make_outliers("line", 0, True)[:3], "auto", 0)  # compiles
    for name, seed in report.track(cases, len(cases), "searching"):
        row = {"law": name, "seed": seed}
        for kind in ("outliers", "clean"):
            X, y, operators, truth = make_outliers(name, seed, kind == "outliers")
            found = run_search(X, y, operators, "auto", seed)
            row |= {
                f"{kind}_wins": wins(found, LAWS[name][0], truth),
                f"{kind}_noise": found.noise,
                f"{kind}_best": str(found.result_.best.equation),
                f"{kind}_seconds": found.seconds,
            }
            if kind == "outliers":
                plain = run_search(X, y, operators, "gaussian", seed)
                row["gaussian_wins"] = wins(plain, LAWS[name][0], truth)
                row["gaussian_seconds"] = plain.seconds
        rows.append(row)
        report.console.print(json.dumps(row, default=str))
    table = pd.DataFrame(rows)
    by_law = table.groupby("law", sort=False).agg(
        wins=("outliers_wins", "sum"),
        student=("outliers_noise", lambda names: int(np.sum(names == "student"))),
        gaussian_wins=("gaussian_wins", "sum"),
        clean_wins=("clean_wins", "sum"),
        clean_normal=("clean_noise", lambda names: int(np.sum(names == "gaussian"))),
        seconds=("outliers_seconds", "sum"),
        gaussian_seconds=("gaussian_seconds", "sum"),
        runs=("seed", "count"),
    )
    by_law["ratio"] = by_law["seconds"] / by_law["gaussian_seconds"]
    report.show("Outliers", by_law.reset_index(), {"ratio": ".2f", "seconds": ".1f"})
    passed = [
        report.judge(
            f"the law wins in {WINS} of 10", by_law["wins"] >= 0.1 * WINS * by_law["runs"]
        ),
        report.judge(f"CPU time at most {MOST_TIME:g} times", by_law["ratio"] <= MOST_TIME),
        report.judge(
            f"without outliers normal noise in {NORMAL} of 10",
            by_law["clean_normal"] >= 0.1 * NORMAL * by_law["runs"],
        ),
    ]
    return table, all(passed)


def make_outliers(name, seed, planted):
    text, columns, truth, operators = LAWS[name]
    rng = np.random.default_rng([4, list(LAWS).index(name), seed])
    X = np.column_stack([rng.uniform(low, high, OUTLIER_ROWS) for low, high in columns.values()])
    f = evaluate(Equation(text, list(columns)).program, np.array([truth]), X)[0]
    sigma = SIGMA * np.std(f)
    y = f + sigma * rng.standard_normal(OUTLIER_ROWS)
    y = with_outliers(y, sigma, rng) if planted else y
    return pd.DataFrame(X, columns=list(columns)), pd.Series(y, name="y"), operators, truth


def run_search(X, y, operators, noise, seed, search=SEARCH, **measured):
    """Return a fitted estimator, with its CPU seconds and the noise it had."""
    found = pmsr.BayesianSymbolicRegressor(
        operators,
        noise=noise,
        population_size=search.population_size,
        generations=search.generations,
        max_time=None,
        search=search,
        random_state=seed,
        n_jobs=1,
        verbose=False,
    )
    clock = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pmsr.ResultWarning)
        found.fit(X, y, **measured)
    found.seconds = time.process_time() - clock
    found.noise = found.result_.problem.noise.name
    return found


def wins(found, text, truth):
    """Tell whether the first of the result is the law in some form."""
    best = found.result_.equations[0]
    names = list(found.result_.data.names)
    law, X = Equation(text, names), found.result_.data.X
    equation = Equation(best.equation.text, names, best.equation.parameters)
    if is_law(equation, law, truth, X):
        return True
    theta = best.evidence.theta
    return theta is not None and is_special_case(equation, theta, law, X)


def arrhenius(seeds, datasets):
    """Search for Arrhenius' law in rates with a relative error."""
    del datasets
    rows = []
    for seed in report.track(range(seeds), seeds, "searching"):
        rng = np.random.default_rng([5, seed])
        T = np.sort(rng.uniform(290.0, 370.0, ARRHENIUS_ROWS))
        rate = ARRHENIUS_TRUTH[0] * np.exp(-ARRHENIUS_TRUTH[1] / T)
        y = rate * (1.0 + ARRHENIUS_ERROR * rng.standard_normal(ARRHENIUS_ROWS))
        X = pd.DataFrame({"T": T})
        found = run_search(X, pd.Series(y, name="k"), (*ARITHMETIC, "exp"), "auto", seed)
        rows.append(
            {
                "seed": seed,
                "wins": wins(found, ARRHENIUS, ARRHENIUS_TRUTH),
                "noise": found.noise,
                "best": str(found.result_.best.equation),
                "seconds": found.seconds,
            }
        )
        report.console.print(json.dumps(rows[-1], default=str))
    table = pd.DataFrame(rows)
    report.show("Arrhenius, 4 % relative error", table, {"seconds": ".1f"})
    enough = bool(np.sum(table["wins"]) >= 0.1 * NORMAL * seeds)
    return table, report.judge(f"the law wins in {NORMAL} of 10", [enough])


def chronometers(seeds, datasets):
    """Search for the Hubble rate; compare what is found with Lambda-CDM."""
    del seeds, datasets
    X, y, errors = pmsr.load_chronometers()
    found = run_search(X, y, (*ARITHMETIC, "sqrt", "exp"), "gaussian", 1, y_err=errors)
    laws = [str(one.equation) for one in found.result_.equations[:8]]
    table = pmsr.compare([*laws, LAMBDA_CDM], X, y, y_err=errors, random_seed=1, verbose=False)
    prior_of = pmsr.compare(
        [*laws, LAMBDA_CDM],
        X,
        y,
        y_err=errors,
        random_seed=1,
        law_prior="description",
        verbose=False,
    )
    table = table[["log_q", "log_q_se", "probability", "estimates"]].copy()
    table["with_prior"] = prior_of["probability"].reindex(table.index)
    table = table.rename_axis("equation").reset_index()
    formats = {"log_q": ".2f", "log_q_se": ".2f", "probability": ".3f", "with_prior": ".3f"}
    report.show("Cosmic chronometers", table, formats)
    return table, True


def galileo(seeds, datasets):
    """Weigh Galileo's ramp under every noise: laws that are given, and a search."""
    del seeds, datasets
    X, y = pmsr.load_galileo("no_shelf")
    found = run_search(X, y, (*ARITHMETIC, "sqrt"), "auto", 1)
    rows = [{"by": "search", **row} for row in found.noise_table_.to_dict("records")]
    for noise in ("gaussian", "student", "proportional", "lognormal", "poisson"):
        table = pmsr.compare(
            list(RAMP), X, y, settings=Settings(noise=noise, n_replicates=4), random_seed=1,
            verbose=False,
        )  # fmt: skip
        rows += [
            {"by": "given", "noise": noise, "equation": name, "log_q": row.log_q}
            for name, row in table.iterrows()
        ]
    table = pd.DataFrame(rows)
    report.show("Galileo's ramp without a shelf", table, {"log_q": ".2f", "score": ".2f"})
    return table, True


CHILD = """
import json, sys, time
import numpy as np
from pmsr.data import make_data
from pmsr.search.evolution import run_evolution
from pmsr.settings import Search

rng = np.random.default_rng(0)
x = np.linspace(0.3, 5.0, 30)
X = rng.uniform(1.0, 3.0, (40, 3))
y = 2.0 * X[:, 0] * X[:, 1] / X[:, 2] ** 2
PROBLEMS = [
    (make_data(x, 3.0 * np.exp(-0.5 * x) + 0.05 * rng.standard_normal(30)), "+ - * / exp"),
    (make_data(X, y + 0.05 * np.std(y) * rng.standard_normal(40)), "+ - * /"),
]

def run(problem, seed, **options):
    data, operators = problem
    options = {"population_size": 60, "n_islands": 1, "n_finalists": 5, **options}
    search = Search(operators=tuple(operators.split()), **options)
    return run_evolution(data, search=search, random_seed=seed, n_jobs=1)

for problem in PROBLEMS:
    run(problem, 0, generations=2, n_enumerated=50)
print("ready", flush=True)
for line in sys.stdin:
    found = []
    for problem in PROBLEMS:
        clock = time.process_time()
        one = run(problem, int(line), generations=20, n_enumerated=300)
        found.append((time.process_time() - clock, str(one.winner), one.n_screened))
    print(json.dumps(found), flush=True)
"""


def speed(seeds, datasets, base=BASE):
    """Run the default search on this tree and on an older commit, in turns."""
    del seeds, datasets
    git = ["git", "-C", str(ROOT)]
    with tempfile.TemporaryDirectory() as folder:
        is_tree = Path(base).is_dir()
        tree = base if is_tree else str(Path(folder) / "base")
        if not is_tree:
            subprocess.run([*git, "worktree", "add", "--detach", tree, base], check=True)
        try:
            children = {name: start_child(where) for name, where in (("base", tree), ("new", ROOT))}
            rows = []
            for seed in range(ROUNDS):
                for name in ("base", "new") if seed % 2 else ("new", "base"):
                    child = children[name]
                    child.stdin.write(f"{seed}\n")
                    child.stdin.flush()
                    found = json.loads(child.stdout.readline())
                    rows += [
                        {"tree": name, "seed": seed, "problem": k, "seconds": seconds}
                        | {"winner": winner, "n_screened": n}
                        for k, (seconds, winner, n) in enumerate(found)
                    ]
            for child in children.values():
                child.stdin.close()
                child.wait()
        finally:
            if not is_tree:
                subprocess.run([*git, "worktree", "remove", "--force", tree], check=True)
    table = pd.DataFrame(rows)
    wide = table.pivot(index=["seed", "problem"], columns="tree", values="seconds")
    ratio = wide["new"] / wide["base"]
    total = float(wide["new"].sum() / wide["base"].sum())
    middle = float(ratio.median())
    report.console.print(f"CPU time, new over {base}: total {total:.3f}, median {middle:.3f}")
    same = table.groupby(["seed", "problem"])["winner"].nunique() == 1
    passed = [
        report.judge(f"median ratio at most {1 + SLOWER:g}", [middle <= 1 + SLOWER]),
        report.judge("the same winner", same),
    ]
    return table, all(passed)


def start_child(tree):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    child.stdout.readline()
    return child


FIGURES = {
    one.__name__: one
    for one in (exact, coverage, prior, outliers, arrhenius, chronometers, galileo, speed)
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", choices=FIGURES)
    parser.add_argument("--quick", action="store_true", help="a small sample")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--datasets", type=int, default=300)
    parser.add_argument(
        "--base", default=BASE, help="commit, or its checkout, that speed compares with"
    )
    options = parser.parse_args()
    seeds, datasets = (1, 10) if options.quick else (options.seeds, options.datasets)
    more = {"base": options.base} if options.figure == "speed" else {}
    table, passed = FIGURES[options.figure](seeds, datasets, **more)
    report.save(f"noise_{options.figure}", table, options.quick)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
