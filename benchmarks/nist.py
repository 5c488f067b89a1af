"""Posteriors against NIST's certified regressions, and against exact draws where these are cheap.

python benchmarks/nist.py [--quick] [--prior invariant|flat|both] [--seeds 5] [--files NAME ...]

The certified standard deviations are those of least squares; under flat priors of theta and sigma
the posterior of a linear equation is wider by sqrt((N - p)/(N - p - 3)). The invariant prior, the
default, is flat where an equation is linear, so that the same is asked of it. A file counts as
close to normal if the profile likelihood of every parameter, two standard deviations from the
minimum on either side, is within 15 % of the quadratic one. Where an equation has at most three
parameters in which it is not affine, exact draws (a grid over these, the others from their
conditional distribution, rejection outside the region, weighed by the surface's volume if the
prior is invariant) tell errors of the sampler from a posterior that is not normal. They are
compared by median and half the width of the central 68 %: under the invariant prior b1 of BoxBOD
has no mean, because b1*(1 - exp(-b2*x)) becomes a line as b1 grows and its density falls like
1/b1**2.

Asked under either prior, of the files in `EQUATIONS` (tests/certified.py):

* the minimum is found with every seed;
* close to normal: means within 0.2 posterior sd of the certified values, sds within 15 %;
* files in `GRIDS`: the sampler's medians within 0.1 half widths of those of exact draws, half
  widths within 10 %.
"""

import argparse
import json
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytensor.tensor as pt
import report
import sympy
from scipy.optimize import least_squares

import pmsr
from pmsr.data import make_data
from pmsr.equation.program import evaluate, evaluate_jacobian
from pmsr.evidence.evidence import make_target, seed_for
from pmsr.evidence.problem import Problem
from pmsr.settings import Settings

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from certified import EQUATIONS, GRIDS, Linearised, exact_draws, fold, read_problem

SETTINGS = Settings(n_multistarts=32)
SHIFT, RATIO = 0.2, 0.15  # asked of means, in posterior standard deviations, and of deviations
NORMAL = 0.15  # how far the profile likelihood of a nearly normal posterior is from quadratic
SAMPLED = 0.1  # how far median, in half widths, and half width may be from those of exact draws
PRIORS = ("invariant", "flat")
QUICK = ("BoxBOD", "DanWood", "Misra1a", "Nelson")


def add_arctan():
    """Roszman1 needs an operator that is not in the table: one row."""
    pmsr.add_operator(
        pmsr.Operator(
            "arctan",
            1,
            sympy.atan,
            pt.arctan,
            lambda a: np.arctan(a),
            lambda a, v: 1.0 / (1.0 + a * a),
        )
    )


def profile_error(problem, program, place):
    """How far the profile likelihood of a parameter is from quadratic at two deviations."""
    X, linear = problem.X.to_numpy(), Linearised(problem, program)
    sd = np.sqrt(np.diag(linear.covariance))
    others = [k for k in range(len(sd)) if k != place]
    errors = []
    for side in (-2.0, 2.0):
        slope = linear.covariance[:, place] / sd[place]
        start = problem.theta + side * slope

        def at(z, start=start):
            theta = start.copy()
            theta[others] += z * sd[others]
            return theta[None]

        found = least_squares(
            lambda z: (evaluate(program, at(z), X)[0] - problem.y) / linear.noise,
            np.zeros(len(others)),
            jac=lambda z: (
                evaluate_jacobian(program, at(z), X)[1][0][others].T * sd[others] / linear.noise
            ),
            method="lm",
        )
        rise = 2 * found.cost - problem.sse / linear.noise**2
        errors.append(abs(np.sqrt(max(rise, 0.0)) / 2.0 - 1.0))
    return max(errors)


def sample(problem, equation, settings, seed):
    """Folded draws of theta, the best minimum's sum of squares, and CPU seconds."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pmsr.sample_posterior(
            equation,
            problem.X,
            problem.y,
            settings=settings,
            random_seed=seed,
            pointwise=False,
        ).posterior
    seconds = time.process_time() - started
    best = np.array(json.loads(posterior.attrs["theta_map"]))
    sse = float(
        np.sum((evaluate(equation.program, best[None], problem.X.to_numpy())[0] - problem.y) ** 2)
    )
    theta = np.column_stack([posterior[name].to_numpy().ravel() for name in equation.parameters])
    return fold(problem.name, theta), sse, seconds


def middle(theta, weight):
    """Median and half the width of the central 68 % of weighted draws, for each parameter."""
    order = np.argsort(theta, axis=0)
    below = np.cumsum(weight[order], axis=0) / weight.sum()
    low, centre, high = (
        np.array([column[row, k] for k, row in enumerate(np.argmax(below >= level, axis=0))])
        for column in [np.take_along_axis(theta, order, axis=0)]
        for level in (0.16, 0.5, 0.84)
    )
    return centre, 0.5 * (high - low)


def measure(name, prior, n_seeds):
    """One row for each parameter of a file."""
    settings = replace(SETTINGS, parameter_prior=prior)
    problem = read_problem(name)
    equation = pmsr.Equation(problem.equation, list(problem.X.columns))
    n, p = len(problem.y), len(problem.theta)
    runs = [sample(problem, equation, settings, seed) for seed in range(n_seeds)]
    sse = np.array([run[1] for run in runs]) / problem.sse
    found = sse < 1.0 + 1e-6
    # Means over the seeds that found the minimum; of all, if none did.
    kept = [run[0] for run, hit in zip(runs, found, strict=True) if hit] or [run[0] for run in runs]
    means = np.array([theta.mean(axis=0) for theta in kept])
    draws = np.concatenate(kept)
    mean, sd = draws.mean(axis=0), draws.std(axis=0)
    widening = np.sqrt((n - p) / (n - p - 3))
    profile = [profile_error(problem, equation.program, k) for k in range(p)]
    exact_mean = exact_sd = np.full(p, np.nan)
    centre, width = middle(draws, np.ones(len(draws)))
    exact_centre = exact_width = np.full(p, np.nan)
    outside = np.nan
    if name in GRIDS:
        child = seed_for(equation.key, 0).spawn(1)[0]
        rng = np.random.Generator(np.random.PCG64(child))
        data = make_data(problem.X, problem.y)
        target = make_target(
            equation.program, Problem.of(data, settings), settings.n_multistarts, rng=rng
        )
        theta, weight, outside = exact_draws(problem, equation.program, target)
        exact_mean = weight @ theta / weight.sum()
        exact_sd = np.sqrt(weight @ (theta - exact_mean) ** 2 / weight.sum())
        exact_centre, exact_width = middle(theta, weight)
    return [
        {
            "prior": prior,
            "file": name,
            "N": n,
            "parameter": equation.parameters[k],
            "found": int(found.sum()),
            "seeds": n_seeds,
            "worst_sse": sse.max(),
            "profile_error": profile[k],
            "normal": max(profile) <= NORMAL,
            "shift": (mean[k] - problem.theta[k]) / sd[k],
            "shift_sd": means[:, k].std(ddof=1) / sd[k] if len(kept) > 1 else np.nan,
            "ratio": sd[k] / (problem.theta_sd[k] * widening),
            "exact_shift": (exact_mean[k] - problem.theta[k]) / exact_sd[k],
            "exact_ratio": exact_sd[k] / (problem.theta_sd[k] * widening),
            "off_exact": (centre[k] - exact_centre[k]) / exact_width[k],
            "width_of_exact": width[k] / exact_width[k],
            "outside": outside,
            "cpu_s": np.mean([run[2] for run in runs[1:] or runs]),
        }
        for k in range(p)
    ]


def largest(column):
    return column.loc[column.abs().idxmax()] if column.notna().any() else np.nan


def furthest_from_one(column):
    return column.loc[(column - 1).abs().idxmax()] if column.notna().any() else np.nan


def main(quick, names, priors, n_seeds):
    add_arctan()
    jobs = [(name, prior) for prior in priors for name in names]
    tracked = report.track(jobs, len(jobs), "sampling NIST's regressions")
    frame = pd.DataFrame([row for job in tracked for row in measure(*job, n_seeds)])
    passed = [judge(prior, frame[frame["prior"] == prior], n_seeds) for prior in priors]
    for prior in priors:
        report.save(f"nist_{prior}", frame[frame["prior"] == prior], quick)
    return all(passed)


def judge(prior, frame, n_seeds):
    """Show the worst parameter of each file under one prior, and tell whether all is as asked."""
    table = frame.groupby("file", sort=False, as_index=False).agg(
        N=("N", "first"),
        p=("parameter", "size"),
        found=("found", "first"),
        worst_sse=("worst_sse", "first"),
        profile=("profile_error", "max"),
        normal=("normal", "first"),
        shift=("shift", largest),
        ratio=("ratio", furthest_from_one),
        exact_shift=("exact_shift", largest),
        exact_ratio=("exact_ratio", furthest_from_one),
        off_exact=("off_exact", largest),
        width_of_exact=("width_of_exact", furthest_from_one),
        outside=("outside", "first"),
        cpu_s=("cpu_s", "first"),
    )
    formats = {
        "worst_sse": ".4g",
        "profile": ".3f",
        "shift": "+.3f",
        "ratio": ".3f",
        "exact_shift": "+.3f",
        "exact_ratio": ".3f",
        "off_exact": "+.3f",
        "width_of_exact": ".3f",
        "outside": ".3f",
        "cpu_s": ".2f",
    }
    title = (
        f"NIST, {prior} prior, {SETTINGS.n_multistarts} starts, {n_seeds} seeds: "
        "the worst parameter of each file"
    )
    headings = {"worst_sse": "sse", "exact_shift": "e_shift", "exact_ratio": "e_ratio"}
    headings |= {"off_exact": "off", "width_of_exact": "w/e", "outside": "cut"}
    formats = {headings.get(name, name): spec for name, spec in formats.items()}
    report.show(title, table.rename(columns=headings), formats)
    report.console.print(
        "sse: over the certified one, worst seed; shift: of the mean, in posterior sd; ratio: of "
        "sd to the certified and widened one; e_: the same of exact draws; off, w/e: the "
        "sampler's median and central 68 % against these; cut: share of the posterior on the "
        "grid that is outside the region",
    )
    normal = table[table["normal"]]
    sampled = table[table["off_exact"].notna()]
    right = (normal["shift"].abs() <= SHIFT) & ((normal["ratio"] - 1).abs() <= RATIO)
    passed = [
        report.judge("the minimum is found with every seed", (table["found"] == n_seeds).to_list()),
        report.judge(
            f"close to normal, where the minimum is found: means within {SHIFT} sd, sd {RATIO:.0%}",
            right.to_list(),
        ),
        report.judge(
            "close to normal, every seed: the same",
            (right & (normal["found"] == n_seeds)).to_list(),
        ),
        report.judge(
            f"sampler within {SAMPLED} half widths and {SAMPLED:.0%} of exact draws",
            (
                (sampled["off_exact"].abs() <= SAMPLED)
                & ((sampled["width_of_exact"] - 1).abs() <= SAMPLED)
            ).to_list(),
        ),
    ]
    return all(passed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="four files, two seeds, in seconds")
    parser.add_argument("--prior", choices=(*PRIORS, "both"), default="both", help="(both)")
    parser.add_argument("--seeds", type=int, default=5, help="for each file (5)")
    parser.add_argument("--files", nargs="+", choices=tuple(EQUATIONS), default=tuple(EQUATIONS))
    options = parser.parse_args()
    files, n_seeds = (QUICK, 2) if options.quick else (options.files, options.seeds)
    chosen = PRIORS if options.prior == "both" else (options.prior,)
    sys.exit(0 if main(options.quick, files, chosen, n_seeds) else 1)
