"""How often 95 % intervals cover the truth, over synthetic datasets of known equations.

python benchmarks/calibration.py [--quick] [--datasets 1000] [--few 200] [--noisy]

Under the invariant prior, the default, and under the flat one, on the same datasets; for a line
they are the same prior. Asked:

* N = 20 and 40, three equations: parameters and a new observation between 92 and 98 %, under
  either prior;
* `c0*exp(c1*x0)`, N = 6, 8, 12, 20: the same of the invariant prior; the flat one is shown;
* with `--noisy`, nothing but that, five times the noise, where curvature is felt: the same;
* a line, N = 5, 7, 10, 20: within three standard errors of the exact coverage.

For a line the coverage is also known exactly. With flat priors and an unbounded sigma, the
posterior of a parameter, and of a new observation, is Student's t with N - p - 1 degrees of
freedom, and the truth lies t-distributed with N - p around the estimate, so that

    coverage = P(|t_(N-p)| <= t_(0.975; N-p-1) sqrt((N - p)/(N - p - 1))).

The bound sigma_max = 2 std(y) changes this a little; its exact effect is an average over many
datasets, for each of which the posterior is a one-dimensional integral.
"""

import argparse
import sys

import numpy as np
import pandas as pd
import report
from scipy.special import ndtr
from scipy.stats import t as student

import pmsr
from pmsr.settings import Settings

LEVEL = 0.95
LOW, HIGH = 0.92, 0.98
# Truth, range of x, noise.
LAWS = {
    "c0 + c1*x0": ((1.0, 2.0), (0.0, 3.0), 0.5),
    "c0*exp(c1*x0)": ((2.0, -0.7), (0.0, 3.0), 0.1),
    "c0*x0/(c1 + x0)": ((3.0, 1.0), (0.2, 5.0), 0.1),
}
LINE = "c0 + c1*x0"
FEW = "c0*exp(c1*x0)"  # with few points
FEW_POINTS = (6, 8, 12, 20)
PRIORS = ("invariant", "flat")
QUANTITIES = ("c0", "c1", "prediction")


def value(text, theta, x):
    if text == LINE:
        return theta[0] + theta[1] * x
    if "exp" in text:
        return theta[0] * np.exp(theta[1] * x)
    return theta[0] * x / (theta[1] + x)


def make_dataset(text, n, seed):
    """Return x and y, and one new observation in the same range of x."""
    rng = np.random.default_rng([seed, n, list(LAWS).index(text)])
    theta, (low, high), sigma = LAWS[text]
    x = rng.uniform(low, high, n + 1)
    y = value(text, theta, x) + sigma * rng.standard_normal(n + 1)
    return x[:n], y[:n], x[n], y[n]


def cover(text, n, seed, prior):
    """Tell whether the intervals of one dataset hold c0, c1 and the new observation."""
    x, y, x_new, y_new = make_dataset(text, n, seed)
    posterior = pmsr.sample_posterior(
        text,
        x,
        y,
        settings=Settings(parameter_prior=prior),
        random_seed=seed,
        chains=2,
        pointwise=False,
    )
    tails = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    covered = []
    for name, truth in zip(("c0", "c1"), LAWS[text][0], strict=True):
        low, high = np.quantile(posterior.posterior[name].to_numpy(), tails)
        covered.append(low <= truth <= high)
    table = pmsr.predict(posterior, [x_new], level=LEVEL)
    covered.append(
        bool(table["prediction_low"].iloc[0] <= y_new <= table["prediction_high"].iloc[0])
    )
    return covered


def exact_cover(x, y, x_new, y_new):
    """Tell the same for many datasets of the line at once, by integration over sigma.

    Parameters
    ----------
    x, y
        Shape (n_datasets, N).
    x_new, y_new
        Shape (n_datasets,).
    """
    n, p = x.shape[1], 2
    design = np.stack([np.ones_like(x), x], axis=2)
    inverse = np.linalg.inv(design.transpose(0, 2, 1) @ design)
    theta = np.einsum("bij,bnj,bn->bi", inverse, design, y)
    sse = np.sum((y - np.einsum("bnj,bj->bn", design, theta)) ** 2, axis=1)
    new = np.column_stack([np.ones_like(x_new), x_new])
    spread = np.column_stack(
        [
            np.sqrt(np.einsum("bii->bi", inverse)),
            np.sqrt(1 + np.einsum("bi,bij,bj->b", new, inverse, new)),
        ]
    )
    distance = np.column_stack(
        [np.array(LAWS[LINE][0]) - theta, y_new - np.sum(new * theta, axis=1)]
    )
    # The density of log sigma is exp((p + 1 - N) u - SSE e^(-2u)/2) up to the bound.
    mode = 0.5 * np.log(sse / (n - p - 1))
    bound = np.log(Settings().sigma_max * y.std(axis=1))
    top = np.minimum(bound, mode + 16.0)
    u = np.minimum(bound, mode)[:, None] - 4.0
    u = u + (top[:, None] - u) * (np.arange(1200) + 0.5) / 1200
    log_p = (p + 1 - n) * u - 0.5 * sse[:, None] * np.exp(-2 * u)
    weight = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    below = np.stack(
        [
            np.sum(weight * ndtr((distance / spread)[:, [k]] * np.exp(-u)), axis=1)
            for k in range(p + 1)
        ],
        axis=1,
    )
    return np.abs(below - 0.5) <= LEVEL / 2


def exact_coverage(n, n_datasets):
    """Coverage of c0, c1 and a new observation of the line, with its Monte-Carlo error."""
    rng = np.random.default_rng(n)
    (c0, c1), (low, high), sigma = LAWS[LINE]
    covered = []
    for _ in range(n_datasets // 2000):
        x = rng.uniform(low, high, (2000, n + 1))
        y = c0 + c1 * x + sigma * rng.standard_normal(x.shape)
        covered.append(exact_cover(x[:, :n], y[:, :n], x[:, n], y[:, n]))
    return np.concatenate(covered).mean(axis=0)


def exact_on_the_same(n, n_datasets):
    """Tell what exact intervals cover on the very datasets that `cover` sees."""
    sets = [make_dataset(LINE, n, seed) for seed in range(n_datasets)]
    return exact_cover(*(np.array(column) for column in zip(*sets, strict=True)))


def unbounded_coverage(n, p=2):
    """Coverage for a sigma without bounds."""
    edge = student.ppf((1 + LEVEL) / 2, n - p - 1) * np.sqrt((n - p) / (n - p - 1))
    return float(1 - 2 * student.sf(edge, n - p))


def share_of(covered):
    """Shares of the datasets whose intervals hold the truth, with their binomial errors."""
    share = np.mean(covered, axis=0)
    return share, np.sqrt(share * (1 - share) / len(covered))


def compare_priors(covered, n_few):
    """Show what the intervals of either prior hold, with few points."""
    rows = []
    for n in FEW_POINTS:
        both = {prior: np.array(covered[FEW, n, prior][:n_few]) for prior in PRIORS}
        (invariant, error), (flat, _) = (share_of(both[prior]) for prior in PRIORS)
        for k, quantity in enumerate(QUANTITIES):
            rows.append(
                {
                    "N": n,
                    "interval": quantity,
                    "datasets": len(both["flat"]),
                    "invariant": invariant[k],
                    "error": error[k],
                    "flat": flat[k],
                    "only_invariant": int(np.sum(both["invariant"][:, k] & ~both["flat"][:, k])),
                    "only_flat": int(np.sum(both["flat"][:, k] & ~both["invariant"][:, k])),
                    "a_line": unbounded_coverage(n),
                    "ok": LOW <= invariant[k] <= HIGH,
                }
            )
    few = pd.DataFrame(rows)
    title = (
        f"{FEW} and few points: coverage of either prior; only_: datasets where the other misses"
    )
    formats = dict.fromkeys(("error", "invariant", "flat", "a_line"), ".1%")
    report.show(title, few, formats)
    return few


def main_noisy(n_few):
    """Compare the priors where data are noisy; without a posterior nothing is covered."""
    theta, where, sigma = LAWS[FEW]
    LAWS[FEW] = (theta, where, 5.0 * sigma)
    covered = {(FEW, n, prior): [] for n in FEW_POINTS for prior in PRIORS}
    for (text, n, prior), found in covered.items():
        for seed in range(1000, 1000 + n_few):
            try:
                found.append(cover(text, n, seed, prior))
            except ValueError:
                found.append([False] * 3)
    few = compare_priors(covered, n_few)
    report.save("calibration_noisy", few, False)
    what = f"noisy, invariant prior: coverage between {LOW:.0%} and {HIGH:.0%}"
    return report.judge(what, few["ok"].to_list())


def main(quick, n_datasets, n_few):
    n_exact = 4000 if quick else 200_000
    cases = [
        (text, n, prior)
        for text in LAWS
        for n in (20, 40)
        for prior in (PRIORS if text != LINE else PRIORS[:1])
    ]
    line_cases = [(LINE, n, PRIORS[0]) for n in (5, 7, 10)]
    few_cases = [(FEW, n, prior) for n in FEW_POINTS for prior in PRIORS]
    sizes = dict.fromkeys(few_cases, n_few) | dict.fromkeys(cases + line_cases, n_datasets)
    jobs = [(*case, seed) for case, size in sizes.items() for seed in range(size)]
    covered = {case: [] for case in sizes}
    for text, n, prior, seed in report.track(jobs, len(jobs), "sampling datasets"):
        covered[text, n, prior].append(cover(text, n, seed, prior))

    rows = []
    for text, n, prior in cases:
        share, error = share_of(covered[text, n, prior])
        for k, quantity in enumerate(QUANTITIES):
            rows.append(
                {
                    "equation": text,
                    "N": n,
                    "prior": prior if text != LINE else "either",
                    "interval": quantity,
                    "datasets": n_datasets,
                    "coverage": share[k],
                    "error": error[k],
                    "ok": LOW <= share[k] <= HIGH,
                }
            )
    frame = pd.DataFrame(rows)
    formats = {"coverage": ".1%", "error": ".1%"}
    report.show("Coverage of 95 % intervals; error: binomial standard error", frame, formats)

    few = compare_priors(covered, n_few)

    rows = []
    for n in report.track((5, 7, 10, 20), 4, "integrating"):
        share = np.array(covered[LINE, n, PRIORS[0]])
        same = exact_on_the_same(n, n_datasets)
        exact = exact_coverage(n, n_exact)
        for k, quantity in enumerate(QUANTITIES):
            error = np.sqrt(exact[k] * (1 - exact[k]) / n_datasets)
            rows.append(
                {
                    "N": n,
                    "interval": quantity,
                    "coverage": share[:, k].mean(),
                    "exact_same_data": same[:, k].mean(),
                    "disagreements": int(np.sum(share[:, k] != same[:, k])),
                    "exact": exact[k],
                    "error": error,
                    "exact_unbounded": unbounded_coverage(n),
                    "ok": abs(share[:, k].mean() - exact[k]) <= 3 * error,
                }
            )
    line = pd.DataFrame(rows)
    formats |= {"exact_same_data": ".1%", "exact": ".2%", "exact_unbounded": ".2%"}
    title = f"A line and few points, {n_datasets} datasets: coverage against the exact one"
    report.show(title, line, formats)
    report.save("calibration", frame, quick)
    report.save("calibration_few", few, quick)
    report.save("calibration_line", line, quick)
    # A small sample may stray further.
    slack = 3 * np.sqrt(LEVEL * (1 - LEVEL) / n_datasets) if quick else 0.0
    range_text = f"between {LOW:.0%} and {HIGH:.0%}"
    passed = [
        report.judge(
            f"{prior} prior: coverage {range_text}",
            some["coverage"].between(LOW - slack, HIGH + slack).to_list(),
        )
        for prior in PRIORS
        for some in [frame[frame["prior"].isin((prior, "either"))]]
    ]
    within = few["invariant"].between(LOW - slack, HIGH + slack)
    passed += [
        report.judge(f"few points, invariant prior: coverage {range_text}", within.to_list()),
        report.judge("line: within three standard errors of the exact", line["ok"].to_list()),
    ]
    return all(passed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="15 datasets each, in seconds")
    # With 300, the binomial error of 1.3 % is most of the margin.
    parser.add_argument("--datasets", type=int, default=1000, help="for each case (1000)")
    parser.add_argument("--few", type=int, default=200, help="for each case with few points (200)")
    parser.add_argument("--noisy", action="store_true", help="few points and much noise only")
    options = parser.parse_args()
    if options.noisy:
        sys.exit(0 if main_noisy(options.few) else 1)
    counts = (15, 15) if options.quick else (options.datasets, options.few)
    sys.exit(0 if main(options.quick, *counts) else 1)
