"""Section 3.2: Galileo's ramp without a shelf, H = k1 D^2 / (1 + k2 D)."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.optimize import least_squares

from pmsr.equation.expression import Equation
from pmsr.evidence.diagnostics import normality
from pmsr.experiments.datasets import NO_SHELF_LAW, galileo, no_shelf_least_squares, read_source
from pmsr.experiments.fits import fit_one, fit_task, to_posterior, to_prediction, to_row
from pmsr.experiments.galileo import (
    OURS,
    RIVAL_COLUMNS,
    THEIRS,
    WINNER_NOTE,
    describe_engines,
    latex_names,
    log_q_of,
    search_all,
    show_searches,
    weigh_rivals,
)
from pmsr.experiments.pages import Claim, Formula, Page, write_page
from pmsr.experiments.poles import EQUATION as TWO_POLES
from pmsr.experiments.poles import weigh_by_poles
from pmsr.experiments.verdicts import count, judge, judge_share
from pmsr.experiments.work import Record, run_units
from pmsr.plots import plot_fit, plot_posterior
from pmsr.plots.experiments import add_title, new_panels, plot_rivals, same_range, save_png

SOURCE = galileo("no_shelf")
TRUTH = (1.1e-3, -1.12e-3)
PAPER_K1, PAPER_K2 = 1.099e-3, -1.121e-3
PAPER_POLE = 535.5
RARE = 0.01  # share of the posterior below which it says nothing for a pole
BESIDE = 2.0  # how far from there a pole may be
N_FITS = 4  # whose regions the overfit equation is integrated over
PAPER_P_LAW, PAPER_P_OVERFIT = 0.06, 0.18
CLEARLY = 1.0  # nats: what is called significantly better
RIVALS = {
    "law": "theta1*D**2/(1 + theta2*D)",
    "law, other parameters": "D**2/(theta1 + theta2*D)",
    "law with one parameter": "-D**2/(theta1 + D)",
    "overfit": TWO_POLES,
    "exponential": "theta1**sqrt(D)",
    "power": "theta1*D**theta2",
    "cube": "theta1*D**3",
    "parabola": "theta1 + theta2*D + theta3*D**2",
}


def run(
    out: str | Path,
    *,
    quick: bool = False,
    n_seeds: int | None = None,
    n_jobs: int | None = None,
    random_seed: int = 0,
) -> Path:
    """Search for the law of Galileo's ramp without a shelf, and weigh its rivals.

    Parameters
    ----------
    out
        Folder for figures, numbers.csv, page.md and page.html. What is done in it already is not
        done again.
    quick
        Three short searches of each kind instead of eleven.
    n_seeds
        Number of searches of each kind, if it shall be other than the paper's eleven.
    n_jobs
        Units of work at a time, in the sense of joblib.
    random_seed
        Seed of the first search; the others follow.

    Returns
    -------
    Path
        The page, page.html.
    """
    out = Path(out)
    n_seeds = n_seeds or (3 if quick else 11)
    seeds = range(random_seed, random_seed + n_seeds)
    title = "Galileo, no shelf"
    searches = search_all(
        out,
        [SOURCE] * n_seeds,
        seeds,
        NO_SHELF_LAW,
        TRUTH,
        quick=quick,
        n_jobs=n_jobs,
        title=title,
    )
    rivals = weigh_rivals(
        out,
        RIVALS,
        ["law", "law, other parameters", "law with one parameter"],
        SOURCE,
        n_repeats=4 if quick else 8,
        random_seed=random_seed,
        n_jobs=n_jobs,
        title=title,
    )
    law, overfit = run_units(
        fit_one,
        [
            fit_task(f"fit-{name}", RIVALS[name], SOURCE, (240.0, 620.0), random_seed)
            for name in ("law", "overfit")
        ],
        out,
        n_jobs=n_jobs,
        title=f"{title}: sampling",
    )
    pole = fit_second_pole()
    regions = pd.DataFrame(
        run_units(
            weigh_by_poles,
            [
                {
                    "name": f"poles-{seed}",
                    "source": SOURCE,
                    "seed": seed,
                    "place": PAPER_POLE,
                    "distance": BESIDE,
                    "n_draws": 400_000 if quick else 2_000_000,
                }
                for seed in range(random_seed, random_seed + N_FITS)
            ],
            out,
            n_jobs=n_jobs,
            title=f"{title}: integrating over poles",
        )
    )
    page = Page(
        title="Galileo's ramp without a shelf (Section 3.2)",
        summary=(
            "Seven measurements of the height H of the ramp and of the distance D at which the "
            "ball hits the floor. Physics says H = k1 D² / (1 + k2 D). "
            f"{n_seeds} searches of each kind with + − × / pow sqrt."
        ),
        claims=make_claims(searches, rivals, law, overfit, pole, regions),
        figures=_draw(out, law, overfit, rivals, pole),
        formulas=[
            Formula("The correct form", Equation(RIVALS["law"], ["D"]), "H"),
            Formula("The overfit form", Equation(RIVALS["overfit"], ["D"]), "H"),
            Formula(
                "What the evidence prefers to the law with two parameters",
                Equation(RIVALS["law with one parameter"], ["D"]),
                "H",
            ),
        ],
        tables={
            "Rivals": rivals[RIVAL_COLUMNS],
            "The overfit form, over the regions of several fits: log q by Sequential Monte Carlo "
            "and over the places of the poles, and the share of the posterior with a pole at "
            f"{PAPER_POLE:g} ± {BESIDE:g}": regions.drop(columns="share_gamma"),
            "Searches": show_searches(searches),
        },
        numbers={
            "searches": searches,
            "rivals": rivals,
            "fits": pd.DataFrame([to_row(fit) for fit in (law, overfit)]),
            "second_pole": pd.DataFrame([pole]),
            "regions": regions,
        },
        notes=[
            "The law with two parameters is not what the evidence likes best here. Least squares "
            f"gives k1 = {pole['k1']:.3e} and −k2 = {-pole['k2']:.3e}, "
            f"{-pole['k2'] / pole['k1'] - 1:.0%} apart, so that −D² / (c0 + D), the same law with "
            "k1 = −k2 = 1/c0, fits almost as well with one parameter less. So does "
            "c0**sqrt(D), which has nothing to do with the physics. Seven measurements do not "
            "tell them apart from the law.",
            "Log q of an equation that is not linear in its parameters depends on how it is "
            "written, since flat priors of other parameters are other priors: compare the two "
            "forms of the law in the table of rivals.",
            describe_engines(quick),
            WINNER_NOTE,
        ],
    )
    return write_page(out, page)


def fit_second_pole() -> dict[str, float]:
    """Least squares of the paper's overfit equation, from the values that the paper gives."""
    X, y = read_source(SOURCE)
    D, H = X["D"].to_numpy(), y.to_numpy()
    k1, k2, _ = no_shelf_least_squares()

    def residuals(theta: np.ndarray) -> np.ndarray:
        first, second, third, fourth = theta
        law = first * D**2 / (1 + second * D)
        return np.asarray(H - law * (1 + third * D) / (1 + fourth * D))

    start = np.array([k1, k2, -1 / PAPER_POLE, -1 / PAPER_POLE])
    scale = np.abs(start) * np.array([1e-2, 1e-2, 1e-3, 1e-3])
    found = least_squares(
        residuals, start, x_scale=scale, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=5000
    )
    left = residuals(found.x)
    law = H - k1 * D**2 / (1 + k2 * D)
    return {
        **{f"theta{k}": float(value) for k, value in enumerate(found.x, 1)},
        "pole": float(-1 / found.x[3]),
        "rmse": float(np.sqrt(np.mean(left**2))),
        "law_rmse": float(np.sqrt(np.mean(law**2))),
        "shapiro_p": float(normality(left) or np.nan),
        "law_shapiro_p": float(normality(law) or np.nan),
        "k1": k1,
        "k2": k2,
    }


def make_claims(
    searches: pd.DataFrame,
    rivals: pd.DataFrame,
    law: Record,
    overfit: Record,
    pole: dict[str, float],
    regions: pd.DataFrame,
) -> list[Claim]:
    """Compare the paper's claims with the numbers."""
    ours, theirs = (searches[searches["engine"] == engine] for engine in (OURS, THEIRS))
    n = len(ours)
    k1, k2 = pole["k1"], pole["k2"]
    found, found_theirs = int(ours["law_found"].sum()), int(theirs["law_found"].sum())
    with_law = ours[ours["law_found"]]
    beaten = int((with_law["law_behind"].astype(float) > CLEARLY).sum())
    leaders = sorted(set(with_law[with_law["law_behind"].astype(float) > CLEARLY]["best"]))
    lead = float(with_law["law_behind"].astype(float).median()) if len(with_law) else np.nan
    first, second = law["estimates"]["theta1"], law["estimates"]["theta2"]
    is_close = all(
        abs(value - one["mean"]) < one["sd"] for value, one in ((k1, first), (k2, second))
    )
    place = _place_in_interval(law, 534.0, 800.0)
    (log_q, se), (other, other_se) = (log_q_of(rivals, name) for name in ("law", "overfit"))
    simple, simple_se = log_q_of(rivals, "law with one parameter")
    exponential, _ = log_q_of(rivals, "exponential")
    is_ahead = other - log_q > 2 * np.hypot(se, other_se) and other - simple > 2 * np.hypot(
        other_se, simple_se
    )
    share = float(regions["share"].max())
    noise, law_noise = overfit["estimates"]["sigma"], law["estimates"]["sigma"]
    return [
        Claim(
            "Section 3.2",
            "Least squares gives k1 = 1.099e−3 and k2 = −1.121e−3, a terminal distance of 892.",
            f"k1 = {k1:.4g}, k2 = {k2:.4g}, terminal distance {-1 / k2:.0f}.",
            "reproduced if all three agree to the paper's digits.",
            judge(
                abs(k1 - PAPER_K1) < 6e-7 and abs(k2 - PAPER_K2) < 6e-7 and round(-1 / k2) == 892
            ),
        ),
        Claim(
            "Section 3.2",
            "The true model was present in the final population in 5 of 11 repetitions.",
            f"{OURS}: found in {count(found, n)}; {THEIRS}: in {count(found_theirs, n)}. The "
            "winner is the law, or the law with one parameter, k1 = −k2, in "
            f"{count(int((ours['law_won'] | ours['special_case_won']).sum()), n)}.",
            f"better if {OURS} finds it, among the finalists or in the last population, in a "
            "larger share of the repetitions; reproduced if in at least 80 % of the paper's share.",
            judge_share(found, n, 5 / 11),
            f"{THEIRS[0].upper()}{THEIRS[1:]} leaves it for equations with more evidence: "
            f"θ1^√D has {exponential - log_q:.1f} nats more than the law as the paper writes it."
            if found_theirs < found
            else "",
        ),
        Claim(
            "Section 3.2, Figure 13",
            "The estimates of both parameters match well with least squares.",
            f"θ1 = {first['mean']:.3g} ± {first['sd']:.1g}, θ2 = {second['mean']:.3g} ± "
            f"{second['sd']:.1g}.",
            "reproduced if least squares is within one posterior standard deviation of the "
            "posterior mean.",
            judge(is_close),
        ),
        Claim(
            "Section 3.2, Figure 12",
            "The datapoint near D = 535 is near the upper edge of the 95 % prediction interval.",
            f"It lies at {place:.0%} of the way from the lower to the upper end.",
            "reproduced if it lies in the upper 20 % of the interval.",
            judge(0.8 <= place <= 1.0),
            "Our interval averages over all σ of the posterior; with seven points and a flat prior "
            f"that has a long tail, up to {law['estimates']['sigma']['high']:.0f} at 97.5 %.",
        ),
        Claim(
            "Section 3.2",
            "Of the five repetitions with the true equation, four contained equations with a "
            "significantly better Bayes factor.",
            f"{OURS}: in {beaten} of {len(with_law)} repetitions with the law some equation is "
            f"more than {CLEARLY:g} nat ahead of it (median lead {lead:.1f} nats). −D²/(c0 + D), "
            f"the law with k1 = −k2, is {simple - log_q:.2f} ± {np.hypot(se, simple_se):.2f} nats "
            "ahead of the form with two parameters.",
            "better if that share is smaller than 4/5; reproduced if it is at least 4/5.",
            judge(
                len(with_law) > 0 and beaten >= 0.8 * len(with_law),
                len(with_law) > 0 and beaten < 0.8 * len(with_law),
            ),
            f"Ahead are {', '.join(leaders)}." if leaders else "",
        ),
        Claim(
            "Section 3.2",
            "An equation with a second pole, x²(θ1 + θ2 x)/(θ3 x² + θ4 x + θ5), is identified "
            "frequently with a high Bayes factor.",
            f"Its log q is {other:.2f} ± {other_se:.2f}, that of the law {log_q:.2f} ± {se:.2f}, "
            f"and that of −D²/(c0 + D) {simple:.2f} ± {simple_se:.2f}. Of its posterior, "
            f"{share:.0e} has a pole at {PAPER_POLE:g} ± {BESIDE:g}.",
            "reproduced if it is ahead of every form of the law by two standard errors and most "
            f"of its posterior has the pole; better if it is not ahead, or less than {RARE:.0%} "
            "has it: then its evidence says nothing for a second asymptote.",
            judge(is_ahead and share > 0.5, not is_ahead or share < RARE),
            "Integrated over the places of its poles, a calculation of its own, log q is "
            f"{_write_range(regions['log_q'])} (standard errors up to "
            f"{regions['log_q_se'].max():.2f}), and {_write_range(regions['smc_log_q'])} by "
            "Sequential Monte Carlo over the same regions; it depends on the region, that is on "
            "the minima that were found."
            + (
                " What it has comes from parameters far from the best fit, where no pole is beside "
                "the datapoint. Particles that start around the best fit do not get there: the "
                "Bayes factor that the paper gives to the second asymptote is an artefact."
                if share < RARE
                else ""
            ),
        ),
        Claim(
            "Section 3.2, Figure 12",
            "There θ3 ≈ θ4 ≈ −1/535.5: a pole beside the datapoint at D = 534, which so is nearly "
            "exactly matched.",
            f"Least squares puts the pole at {pole['pole']:.1f}; the RMSE falls from "
            f"{pole['law_rmse']:.2f} to {pole['rmse']:.2f}, and in our own fit to "
            f"{overfit['rmse']:.2f}.",
            "reproduced if the pole is at 535.5 ± 0.1 and the RMSE less than half.",
            judge(abs(pole["pole"] - PAPER_POLE) < 0.1 and pole["rmse"] < 0.5 * pole["law_rmse"]),
        ),
        Claim(
            "Section 3.2, Figure 13",
            "This leads to a much smaller estimate of the noise level σ.",
            f"Posterior σ = {noise['mean']:.1f} ± {noise['sd']:.1f} with the second pole, "
            f"{law_noise['mean']:.1f} ± {law_noise['sd']:.1f} with the law.",
            "reproduced if the posterior mean of σ is less than half that of the law.",
            judge(noise["mean"] < 0.5 * law_noise["mean"]),
            f"The best fit has the pole beside the datapoint, but {share:.0e} of the posterior "
            "does: its pole and its zero are only "
            f"{abs(1 / pole['theta3'] - 1 / pole['theta4']):.2f} apart. Particles that start "
            "around the best fit need not find that out."
            if noise["mean"] >= 0.5 * law_noise["mean"]
            else "",
        ),
        Claim(
            "Section 3.2",
            f"Shapiro-Wilk: p = {PAPER_P_LAW} for the residuals of the law, "
            f"{PAPER_P_OVERFIT} for those of the overfit equation.",
            f"p = {pole['law_shapiro_p']:.3f} and {pole['shapiro_p']:.3f}.",
            "reproduced if both agree to the paper's digits.",
            judge(
                abs(pole["law_shapiro_p"] - PAPER_P_LAW) <= 0.005
                and abs(pole["shapiro_p"] - PAPER_P_OVERFIT) <= 0.005
            ),
        ),
    ]


def _write_range(values: pd.Series) -> str:
    return f"{values.min():.2f} to {values.max():.2f}"


def _place_in_interval(fit: Record, x: float, y: float) -> float:
    """Tell where an observation lies in its prediction interval: 0 is low, 1 is high."""
    prediction = to_prediction(fit)
    low, high = (
        float(np.interp(x, fit["grid"], prediction[f"prediction_{end}"])) for end in ("low", "high")
    )
    return (y - low) / (high - low)


def reparametrise(fit: Record) -> Any:
    """Return the posterior of θ1, θ2 and σ of the overfit equation in the paper's second form.

    x²(a + b x)/(c x² + d x + e) is θ1 x²/(1 + θ2 x) times (1 + θ3 x)/(1 + θ4 x), with the pole of
    θ4 that nearest the zero. Draws without real poles are left out.
    """
    a, b, c, d, e = (np.ravel(fit["draws"][f"theta{k}"]) for k in range(1, 6))
    sigma = np.ravel(fit["draws"]["sigma"])
    inside = d**2 - 4 * c * e
    kept = (inside > 0) & (a != 0) & (e != 0)
    a, b, c, d, e, sigma, inside = (part[kept] for part in (a, b, c, d, e, sigma, inside))
    # 1 + d/e x + c/e x² = (1 + θ2 x)(1 + θ4 x): half the sum of both, and half their difference.
    middle, half = d / (2 * e), np.sqrt(inside) / (2 * np.abs(e))
    third = b / a
    candidates = np.stack([middle - half, middle + half])
    nearest = np.argmin(np.abs(candidates - third), axis=0)
    columns = np.arange(len(third))
    draws = {
        "theta1": a / e,
        "theta2": candidates[1 - nearest, columns],
        "sigma": sigma,
    }
    group = xr.Dataset(
        {name: (("chain", "draw"), values[None, :]) for name, values in draws.items()},
        attrs={"parameters": json.dumps(["theta1", "theta2"]), "held": "{}"},
    )
    return SimpleNamespace(posterior=group)


def _draw(
    out: Path,
    law: Record,
    overfit: Record,
    rivals: pd.DataFrame,
    pole: dict[str, float],
) -> list[tuple[str, str]]:
    X, y = read_source(SOURCE)
    panels = new_panels(2, 5.0, 4.2)
    for ax, fit, title in zip(
        panels, (law, overfit), ("correct form", "overfit form"), strict=True
    ):
        plot_fit(fit["grid"], to_prediction(fit), X, y, ax=ax)
        add_title(ax, f"{title}: $H = {Equation(fit['equation'], ['D']).latex()}$")
    same_range(panels)
    reference = {"theta1": pole["k1"], "theta2": pole["k2"]}
    label = "least squares of the law"
    return [
        (
            save_png(panels, out / "fits.png"),
            "The correct form (left) and the overfit form with a second pole (right), with 95 % "
            "credible and prediction intervals.",
        ),
        (
            save_png(
                plot_posterior(to_posterior(law), reference=reference, reference_label=label),
                out / "posterior_law.png",
            ),
            "Posterior of θ1, θ2 and σ, for the correct form.",
        ),
        (
            save_png(
                plot_posterior(reparametrise(overfit), reference=reference, reference_label=label),
                out / "posterior_overfit.png",
            ),
            "Posterior of θ1, θ2 and σ, for the overfit form, in the paper's second "
            "parametrisation.",
        ),
        (
            save_png(plot_rivals(rivals, names=latex_names(rivals, SOURCE)), out / "rivals.png"),
            "Evidence of the law, in three forms, and of its rivals (bars: two standard errors).",
        ),
    ]
