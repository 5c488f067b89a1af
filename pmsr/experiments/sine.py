"""Section 3.1: Bayesian and conventional search on noisy points of a sine curve."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.experiments.datasets import read_source, sine
from pmsr.experiments.fits import (
    fit_one,
    fit_task,
    to_prediction,
    to_row,
)
from pmsr.experiments.pages import Claim, Formula, Page, write_page
from pmsr.experiments.searches import PAPER, search_one, search_task
from pmsr.experiments.verdicts import judge
from pmsr.experiments.work import Record, run_units
from pmsr.plots import plot_fit
from pmsr.plots.experiments import (
    add_curve,
    add_level,
    add_title,
    new_panels,
    plot_curves,
    plot_draws,
    plot_groups,
    same_range,
    save_png,
)

BAYESIAN, CONVENTIONAL = "Bayesian GPSR", "conventional GPSR"
ENGINES = {BAYESIAN: "evidence", CONVENTIONAL: "rmse"}
SIGMAS = (0.0, 0.1, 0.3, 0.5)
SHOWN_SIGMA = 0.3
GENERATIONS, QUICK_GENERATIONS = 1000, 50
TEST_SEED, N_TEST = 10_000, 1000
RANGE, BEYOND = (0.0, 1.5 * np.pi), (0.0, 2.0 * np.pi)
N_COMPARED = 3
IN_FRAME = 3.0  # times sigma: an overfit curve may miss by any number
# Equation (10) of the paper, the result of one of its searches.
PAPER_EQUATION = "theta1 + (theta2 + theta3*x0)*(x0 + x0*(theta2 + theta3*x0))"
# What the words of the paper are taken to mean.
SLIGHTLY_ABOVE = 1.25  # times sigma
RISEN = 1.05  # times the least test error
LEAST_SHARE, LEAST_GAP = 0.1, 2.0
CORRELATED, UNCORRELATED = 0.9, 0.3


def run(
    out: str | Path,
    *,
    quick: bool = False,
    n_seeds: int | None = None,
    n_jobs: int | None = None,
    random_seed: int = 0,
) -> Path:
    """Compare Bayesian and conventional search on the sine data.

    Parameters
    ----------
    out
        Folder for figures, numbers.csv, page.md and page.html. What is done in it already is not
        done again.
    quick
        50 generations instead of 1000.
    n_seeds
        Number of datasets of each noise level, if it shall be other than three; at σ = 0.3, where
        three are compared, at least that many.
    n_jobs
        Units of work at a time, in the sense of joblib.
    random_seed
        Seed of the first dataset and search; the others follow.

    Returns
    -------
    Path
        The page, page.html.
    """
    out = Path(out)
    n_seeds = n_seeds or N_COMPARED
    seeds = range(random_seed, random_seed + n_seeds)
    compared_seeds = range(random_seed, random_seed + max(n_seeds, N_COMPARED))
    generations = QUICK_GENERATIONS if quick else GENERATIONS
    labels = [
        (engine, sigma, seed)
        for sigma in SIGMAS
        # Where datasets are compared with each other, one would not do.
        for seed in (compared_seeds if sigma == SHOWN_SIGMA else seeds)
        for engine in ENGINES
    ]
    records = run_units(
        search_one,
        [
            search_task(
                f"search-{ENGINES[engine]}-sigma{sigma:g}-{seed}",
                sine(sigma, seed),
                {
                    "operators": ["+", "-", "*"],
                    "generations": generations,
                    "fitness": ENGINES[engine],
                    **PAPER,
                },
                seed,
                test=sine(sigma, TEST_SEED, N_TEST),
            )
            for engine, sigma, seed in labels
        ],
        out,
        n_jobs=n_jobs,
        title="sine: searching",
    )
    runs, history = to_tables(labels, records)
    compared = [
        record
        for (engine, sigma, seed), record in zip(labels, records, strict=True)
        if sigma == SHOWN_SIGMA and seed - random_seed < N_COMPARED
    ]
    source = sine(SHOWN_SIGMA, random_seed)
    bayesian = compared[:: len(ENGINES)]
    conventional = compared[1 :: len(ENGINES)]
    single, *curves = run_units(
        fit_one,
        [
            fit_task("fit-paper", PAPER_EQUATION, source, BEYOND, random_seed),
            *(
                fit_task(
                    f"fit-winner-{record['seed']}",
                    record["winner"]["equation"],
                    record["source"],
                    BEYOND,
                    random_seed,
                )
                for record in bayesian
            ),
        ],
        out,
        n_jobs=n_jobs,
        title="sine: sampling",
    )
    modes = describe_modes(single)
    spreads = compare_spreads(curves, conventional)
    page = Page(
        title="Bayesian and conventional search on a noisy sine (Section 3.1)",
        summary=(
            f"{len(labels)} searches for polynomials (operators + − ×, population 120, "
            f"{generations} generations) on 20 points of y = 2 sin(x) + 3 with normal noise, "
            f"{len(labels) // len(ENGINES)} datasets with {len(SIGMAS)} levels of noise. The "
            f"test error is the RMSE at {N_TEST} other points of the same noise."
        ),
        claims=[
            *claims_of_posterior(single, modes),
            *claims_of_searches(runs, history, spreads),
        ],
        figures=_draw(out, runs, history, single, curves, conventional, source),
        formulas=[
            Formula("The paper's equation, whose posterior is shown", _read(PAPER_EQUATION), "f"),
            *(
                Formula(
                    f"{engine}: winner of median complexity ({row['complexity']} nodes, "
                    f"σ = {row['sigma']:g}, seed {row['seed']})",
                    _read(row["equation"]),
                    "f",
                )
                for engine, row in ((engine, median_winner(runs, engine)) for engine in ENGINES)
            ),
        ],
        tables={"Medians over the datasets": medians(runs)},
        numbers={
            "runs": runs,
            "history": history[(history["generation"] <= 20) | (history["generation"] % 10 == 0)],
            "modes": pd.DataFrame([modes]),
            "spreads": pd.DataFrame([spreads]),
            "fits": pd.DataFrame([to_row(fit) for fit in (single, *curves)]),
        },
        notes=[
            "As in the paper, a parameter may stand in several places (share_parameters=True: the "
            "paper's equations share theirs), and the search does nothing but crossover, mutation "
            "and crowding (refresh=None). By default pmsr does otherwise.",
            "The best of a generation is the best equation seen so far, by log q less two standard "
            "errors, or by RMSE.",
            "Winners are counted in canonical form. So are the equations of a Bayesian search; "
            "those of a conventional one are counted as they evolve, like the paper's, which makes "
            "them some 15 % larger in the figure against the generation.",
            "The Bayesian winner is the simplest equation within 1.5 nats of the best; the "
            "conventional one has the least RMSE.",
            *(
                [
                    f"This is a quick run of {generations} generations; the paper's have "
                    f"{GENERATIONS}, which gives the conventional search more time to overfit."
                ]
                if quick
                else []
            ),
        ],
    )
    return write_page(out, page)


def _read(text: str) -> Equation:
    return Equation(text, ["x0"])


def to_tables(
    labels: Sequence[tuple[str, float, int]], records: Sequence[Record]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one row a search, and one row a generation of every search."""
    runs, history = [], []
    for (engine, sigma, seed), record in zip(labels, records, strict=True):
        label = {"engine": engine, "sigma": sigma, "seed": seed}
        winner = {name: value for name, value in record["winner"].items() if name != "theta"}
        runs.append(
            label | winner | {"cpu_seconds": record["cpu_seconds"], "stopped": record["stopped"]}
        )
        history += [label | row for row in record["history"]]
    return pd.DataFrame(runs), pd.DataFrame(history)


def describe_modes(fit: Record) -> dict[str, float]:
    """Describe the two modes of the posterior of the paper's equation.

    It is the same for θ2, θ3 and −1 − θ2, −θ3, so that θ3 has one sign in each mode. The gap is
    Ashman's D: the distance of the means in units of the deviations; above 2 two modes are clear.
    """
    theta2, theta3 = (np.ravel(fit["draws"][name]) for name in ("theta2", "theta3"))
    upper = theta3 > 0
    share = float(np.mean(upper))
    theta1 = np.ravel(fit["draws"]["theta1"])
    others = [abs(float(np.corrcoef(theta1, values)[0, 1])) for values in (theta2, theta3)]
    found = {
        "share": min(share, 1.0 - share),
        "correlation": float(np.corrcoef(theta2, theta3)[0, 1]),
        "correlation_in_mode": _correlation(theta2, theta3, upper),
        "other_correlations": max(others),
    }
    for name, values in (("theta2", theta2), ("theta3", theta3)):
        if 0.0 < share < 1.0:
            first, second = values[upper], values[~upper]
            deviation = np.sqrt(0.5 * (first.var() + second.var()))
            found[f"gap_{name}"] = float(abs(first.mean() - second.mean()) / deviation)
        else:
            found[f"gap_{name}"] = 0.0
    return found


def _correlation(first: np.ndarray, second: np.ndarray, upper: np.ndarray) -> float:
    """Return the correlation inside the larger mode."""
    mode = upper if 2 * upper.sum() >= len(upper) else ~upper
    return float(np.corrcoef(first[mode], second[mode])[0, 1])


def compare_spreads(curves: list[Record], conventional: list[Record]) -> dict[str, float]:
    """Deviation between the curves of several datasets, where there are data and beyond."""
    grid = np.linspace(*BEYOND, 201)
    inside = grid <= RANGE[1]
    found = {"n_datasets": float(len(curves))}
    for name, lines in (
        ("bayesian", [np.interp(grid, fit["grid"], fit["prediction"]["map"]) for fit in curves]),
        ("conventional", [_curve(record, grid) for record in conventional]),
    ):
        deviation = np.std(np.array(lines), axis=0)
        found[f"{name}_inside"] = float(np.mean(deviation[inside]))
        found[f"{name}_beyond"] = float(np.mean(deviation[~inside]))
    return found


def _curve(record: Record, grid: np.ndarray) -> np.ndarray:
    """Return the curve of a search's winner."""
    equation = _read(record["winner"]["equation"])
    theta = np.array(record["winner"]["theta"], dtype=np.float64)
    return np.asarray(evaluate(equation.program, theta[None, :], grid[:, None])[0])


def claims_of_posterior(fit: Record, modes: dict[str, float]) -> list[Claim]:
    """Compare what the paper says of a single result with the numbers."""
    prediction, grid = to_prediction(fit), np.array(fit["grid"])
    width = (prediction["credible_high"] - prediction["credible_low"]).to_numpy()
    growth = float(width[-1] / np.median(width[grid <= RANGE[1]]))
    gap = min(modes["gap_theta2"], modes["gap_theta3"])
    return [
        Claim(
            "Section 3.1, Figure 4",
            "θ2 and θ3 of the paper's own equation are bimodal.",
            f"The smaller mode holds {modes['share']:.0%} of the posterior; Ashman's D is "
            f"{modes['gap_theta2']:.1f} for θ2 and {modes['gap_theta3']:.1f} for θ3.",
            f"reproduced if the smaller mode holds at least {LEAST_SHARE:.0%} and Ashman's D is "
            f"above {LEAST_GAP:g} for both.",
            judge(modes["share"] >= LEAST_SHARE and gap > LEAST_GAP),
            "The equation is the same for (θ2, θ3) and (−1 − θ2, −θ3), so that both modes hold "
            "one half, exactly.",
        ),
        Claim(
            "Section 3.1, Figure 4",
            "The parameters are largely uncorrelated, except θ2 and θ3, which are highly "
            "correlated.",
            f"The correlation of θ2 and θ3 is {modes['correlation']:.2f}, and inside one mode "
            f"{modes['correlation_in_mode']:.2f}; that of θ1 with either is at most "
            f"{modes['other_correlations']:.2f}.",
            f"reproduced if the first is at least {CORRELATED:g} in magnitude and the last at most "
            f"{UNCORRELATED:g}.",
            judge(
                abs(modes["correlation"]) >= CORRELATED
                and modes["other_correlations"] <= UNCORRELATED
            ),
        ),
        Claim(
            "Section 3.1, Figure 5",
            "Beyond the data the uncertainty of the prediction increases.",
            f"At 2π the credible interval is {growth:.1f} times as wide as inside the data.",
            "reproduced if it is more than twice as wide at 2π as the median up to 3π/2.",
            judge(growth > 2.0),
        ),
    ]


def claims_of_searches(
    runs: pd.DataFrame, history: pd.DataFrame, spreads: dict[str, float]
) -> list[Claim]:
    """Compare what the paper says of the two engines with the numbers."""
    noisy = runs[runs["sigma"] > 0]
    levels = sorted(set(noisy["sigma"]))
    test = runs.groupby(["engine", "sigma"])["test_rmse"].median()
    rises = {engine: rise_of_test_error(history, engine) for engine in ENGINES}
    ratios = {level: float(test[BAYESIAN, level]) / level for level in levels}
    falls = {engine: fall_of_training_error(history, engine) for engine in ENGINES}
    wins = sum(test[BAYESIAN, level] < test[CONVENTIONAL, level] for level in levels)
    growth = {engine: late_growth(history, engine) for engine in ENGINES}
    size = runs.groupby(["engine", "sigma"])["complexity"].median()
    overall = noisy.groupby("engine")["complexity"].median()
    zero = {engine: float(test.get((engine, 0.0), np.nan)) for engine in ENGINES}
    low, high = levels[0], levels[-1]
    return [
        Claim(
            "Section 3.1, Figure 6",
            "Models of conventional GPSR vary wildly between three datasets; those of Bayesian "
            "GPSR are more invariant, and extrapolate better.",
            f"Deviation between the curves of {spreads['n_datasets']:g} datasets: {BAYESIAN} "
            f"{spreads['bayesian_inside']:.2f} inside the data and "
            f"{spreads['bayesian_beyond']:.2g} beyond; {CONVENTIONAL} "
            f"{spreads['conventional_inside']:.2f} and {spreads['conventional_beyond']:.2g}.",
            f"reproduced if that of {BAYESIAN} is smaller, inside and beyond.",
            judge(
                spreads["bayesian_inside"] < spreads["conventional_inside"]
                and spreads["bayesian_beyond"] < spreads["conventional_beyond"]
            ),
        ),
        Claim(
            "Section 3.1, Figure 7",
            "The training error falls with continued evolution in both; the test error of "
            "conventional GPSR starts to increase early.",
            f"Training error at the end, as a share of that at the start: {BAYESIAN} "
            f"{falls[BAYESIAN]:.0%}, {CONVENTIONAL} {falls[CONVENTIONAL]:.0%}. Test error at the "
            f"end over its least: {BAYESIAN} {rises[BAYESIAN]:.2f}, {CONVENTIONAL} "
            f"{rises[CONVENTIONAL]:.2f} (medians over all searches with noise).",
            f"reproduced if both training errors fall, and the test error of {CONVENTIONAL} ends "
            f"at least {RISEN - 1:.0%} above its least and farther above than that of {BAYESIAN}.",
            judge(
                max(falls.values()) < 1.0
                and rises[CONVENTIONAL] >= RISEN
                and rises[CONVENTIONAL] > rises[BAYESIAN]
            ),
        ),
        Claim(
            "Section 3.1, Figures 7 and 8",
            "The test error of Bayesian GPSR stays only slightly above σ.",
            "The winner's test error, median over the datasets: "
            + "; ".join(f"{ratios[level]:.2f} σ at σ = {level:g}" for level in levels)
            + ".",
            f"reproduced if it is at most {SLIGHTLY_ABOVE:g} σ at every noise level.",
            judge(max(ratios.values()) <= SLIGHTLY_ABOVE),
        ),
        Claim(
            "Section 3.1, Figure 8",
            "Once any noise is added, Bayesian GPSR has the lower test error.",
            "Medians: "
            + "; ".join(
                f"σ = {level:g}: {test[BAYESIAN, level]:.3f} against "
                f"{test[CONVENTIONAL, level]:.3g}"
                for level in levels
            )
            + ".",
            "reproduced if its median is lower at every noise level above zero.",
            judge(wins == len(levels)),
        ),
        Claim(
            "Section 3.1, Figure 8",
            "Without noise conventional GPSR is more accurate.",
            f"Median test error without noise: {BAYESIAN} {zero[BAYESIAN]:.2g}, {CONVENTIONAL} "
            f"{zero[CONVENTIONAL]:.2g}.",
            f"reproduced if that of {CONVENTIONAL} is lower; better if that of {BAYESIAN} is.",
            judge(zero[CONVENTIONAL] < zero[BAYESIAN], zero[BAYESIAN] < zero[CONVENTIONAL]),
        ),
        Claim(
            "Section 3.1, Figure 9a",
            "Conventional GPSR grows continuously in complexity; in Bayesian GPSR bloat slows or "
            "stops.",
            "Mean complexity of the population gained in the second half of the generations: "
            f"{BAYESIAN} {growth[BAYESIAN]:+.1f} nodes, {CONVENTIONAL} "
            f"{growth[CONVENTIONAL]:+.1f} (medians over all searches with noise).",
            f"reproduced if {CONVENTIONAL} gains and {BAYESIAN} gains less than half of that.",
            judge(
                growth[CONVENTIONAL] > 0 and growth[BAYESIAN] < 0.5 * growth[CONVENTIONAL],
            ),
        ),
        Claim(
            "Section 3.1, Figure 9b",
            "With less noise Bayesian GPSR permits more complex equations.",
            f"Median complexity of its winners: {size[BAYESIAN, low]:g} nodes at σ = {low:g}, "
            f"{size[BAYESIAN, high]:g} at σ = {high:g}.",
            "reproduced if it is larger at the lowest noise above zero than at the highest.",
            judge(size[BAYESIAN, low] > size[BAYESIAN, high]),
        ),
        Claim(
            "Section 3.1",
            "Bayesian GPSR produces models of less complexity, which are easier to interpret.",
            f"Median complexity of the winners: {BAYESIAN} {overall[BAYESIAN]:g} nodes, "
            f"{CONVENTIONAL} {overall[CONVENTIONAL]:g}.",
            f"reproduced if that of {BAYESIAN} is smaller.",
            judge(overall[BAYESIAN] < overall[CONVENTIONAL]),
        ),
    ]


def _parts(history: pd.DataFrame, engine: str) -> list[pd.DataFrame]:
    """Return the searches of one engine on noisy data, generation by generation."""
    mine = history[(history["engine"] == engine) & (history["sigma"] > 0)]
    return [part.sort_values("generation") for _, part in mine.groupby(["sigma", "seed"])]


def rise_of_test_error(history: pd.DataFrame, engine: str) -> float:
    """Test error at the end over the least of all generations, median of the searches."""
    ratios = [
        part["test_rmse"].iloc[-1] / part["test_rmse"].min() for part in _parts(history, engine)
    ]
    return float(np.median(ratios))


def fall_of_training_error(history: pd.DataFrame, engine: str) -> float:
    """Training error at the end over that at the start, median of the searches."""
    ratios = [
        part["rmse_best"].iloc[-1] / part["rmse_best"].iloc[0] for part in _parts(history, engine)
    ]
    return float(np.median(ratios))


def late_growth(history: pd.DataFrame, engine: str) -> float:
    """Mean complexity of the population gained in the second half, median of the searches."""
    gains = [
        part["complexity_mean"].iloc[-1] - part["complexity_mean"].iloc[len(part) // 2]
        for part in _parts(history, engine)
    ]
    return float(np.median(gains))


def median_winner(runs: pd.DataFrame, engine: str) -> dict[str, Any]:
    """Return the winner of median complexity among the searches of one engine on noisy data."""
    mine = runs[(runs["engine"] == engine) & (runs["sigma"] > 0)].sort_values("complexity")
    row = mine.iloc[(len(mine) - 1) // 2]
    return {str(name): value for name, value in row.items()}


def medians(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the medians of every engine and noise level."""
    groups = runs.groupby(["sigma", "engine"], sort=False)
    return (
        groups[["rmse", "test_rmse", "complexity", "n_parameters", "cpu_seconds"]]
        .median()
        .reset_index()
    )


def _draw(
    out: Path,
    runs: pd.DataFrame,
    history: pd.DataFrame,
    single: Record,
    curves: list[Record],
    conventional: list[Record],
    source: dict[str, Any],
) -> list[tuple[str, str]]:
    X, y = read_source(source)
    grid = np.array(single["grid"])
    extrapolation = plot_fit(grid, to_prediction(single), X, y)
    add_curve(extrapolation, grid, 2 * np.sin(grid) + 3, "true law", is_truth=True)
    return [
        (
            save_png(
                plot_draws(
                    {name: np.ravel(values) for name, values in single["draws"].items()},
                    pair=("theta2", "theta3"),
                ),
                out / "posterior.png",
            ),
            "Posterior of the parameters and of the noise, for the paper's equation; last, θ2 "
            "against θ3.",
        ),
        (
            save_png(extrapolation, out / "extrapolation.png"),
            "The paper's equation, inside the data and beyond, with 95 % credible and prediction "
            "intervals.",
        ),
        (
            _draw_three(out, curves, conventional),
            f"Winners on datasets of σ = {SHOWN_SIGMA}; the bands are 95 % prediction intervals.",
        ),
        (
            _draw_errors(out, history),
            f"Error of the best equation so far against the generation, σ = {SHOWN_SIGMA}: medians "
            "and middle halves of the datasets. What leaves the frame is larger.",
        ),
        (
            _draw_noise(out, runs),
            "Test error of the winner against noise: medians and middle halves of the datasets. "
            "The true law would have the error σ. What leaves the frame is larger.",
        ),
        (
            _draw_bloat(out, runs, history),
            f"Left: mean complexity of the population against the generation, σ = {SHOWN_SIGMA}. "
            "Right: complexity of the winner against noise.",
        ),
    ]


def _draw_three(out: Path, curves: list[Record], conventional: list[Record]) -> str:
    grid = np.array(curves[0]["grid"])
    data = [read_source(record["source"]) for record in conventional]
    points = [(X["x0"], y) for X, y in data]
    truth = 2 * np.sin(grid) + 3
    lines = {
        CONVENTIONAL: [(_curve(record, grid), None, None) for record in conventional],
        BAYESIAN: [
            tuple(
                np.interp(grid, fit["grid"], fit["prediction"][name])
                for name in ("map", "prediction_low", "prediction_high")
            )
            for fit in curves
        ],
    }
    panels = new_panels(2, 4.8, 4.0)
    for ax, (engine, drawn) in zip(panels, lines.items(), strict=True):
        plot_curves(grid, drawn, truth, points, ax=ax)
        add_title(ax, engine)
        ax.set(xlabel="x0", ylabel="y")
    return save_png(panels, out / "three.png")


def _draw_errors(out: Path, history: pd.DataFrame) -> str:
    shown = history[history["sigma"] == SHOWN_SIGMA]
    panels = new_panels(2)
    for ax, engine in zip(panels, (CONVENTIONAL, BAYESIAN), strict=True):
        mine = shown[shown["engine"] == engine]
        both = pd.concat(
            [
                mine.assign(RMSE=mine["rmse_best"], error="training error"),
                mine.assign(RMSE=mine["test_rmse"], error="test error"),
            ]
        )
        plot_groups(both, "generation", "RMSE", by="error", ax=ax)
        add_level(ax, SHOWN_SIGMA, "σ of the noise")
        add_title(ax, engine)
    same_range(panels)
    for ax in panels:
        ax.set_ylim(0.0, min(ax.get_ylim()[1], IN_FRAME * SHOWN_SIGMA))
    return save_png(panels, out / "errors.png")


def _draw_noise(out: Path, runs: pd.DataFrame) -> str:
    ax = plot_groups(runs, "sigma", "test_rmse", marks=True)
    levels = sorted(set(runs["sigma"]))
    add_curve(ax, levels, levels, "error of the true law")
    ax.set(xlabel="σ of the noise", ylabel="test error of the winner (RMSE)", ylim=(0.0, None))
    ax.set_ylim(0.0, min(ax.get_ylim()[1], IN_FRAME * max(levels)))
    return save_png(ax, out / "noise.png")


def _draw_bloat(out: Path, runs: pd.DataFrame, history: pd.DataFrame) -> str:
    left, right = new_panels(2)
    shown = history[history["sigma"] == SHOWN_SIGMA]
    plot_groups(shown, "generation", "complexity_mean", ax=left)
    left.set(ylabel="mean complexity of the population")
    plot_groups(runs, "sigma", "complexity", marks=True, ax=right)
    right.set(xlabel="σ of the noise", ylabel="complexity of the winner", ylim=(0.0, None))
    return save_png([left, right], out / "bloat.png")
