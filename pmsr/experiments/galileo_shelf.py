"""Section 3.2: Galileo's ramp with a shelf, D = k sqrt(H)."""

from pathlib import Path

import pandas as pd

from pmsr.equation.expression import Equation
from pmsr.experiments.datasets import galileo, read_source
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
from pmsr.experiments.verdicts import count, judge
from pmsr.experiments.work import Record, run_units
from pmsr.plots import plot_fit, plot_posterior
from pmsr.plots.experiments import add_title, new_panels, plot_rivals, save_png

SOURCE = galileo("shelf")
LAW = "theta1*sqrt(H)"
TRUTH = (47.0,)
PAPER_K = 47.09
RIVALS = {
    "law": LAW,
    "approximate": "theta1*sqrt(H)/(1 + theta2*H)",
    "power": "theta1*H**theta2",
    "shifted": "theta1 + theta2*sqrt(H)",
    "saturating": "sqrt(theta1*H/(theta2 + H))",
    "line": "theta1 + theta2*H",
    "constant": "theta1",
}


def run(
    out: str | Path,
    *,
    quick: bool = False,
    n_seeds: int | None = None,
    n_jobs: int | None = None,
    random_seed: int = 0,
) -> Path:
    """Search for the law of Galileo's ramp with a shelf, and weigh its rivals.

    Parameters
    ----------
    out
        Folder for figures, numbers.csv, page.md and page.html. What is done in it already is not
        done again.
    quick
        Three short searches of each kind instead of ten.
    n_seeds
        Number of searches of each kind, if it shall be another; the paper has five.
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
    n_seeds = n_seeds or (3 if quick else 10)
    seeds = range(random_seed, random_seed + n_seeds)
    title = "Galileo, shelf"
    searches = search_all(
        out, [SOURCE] * n_seeds, seeds, LAW, TRUTH, quick=quick, n_jobs=n_jobs, title=title
    )
    rivals = weigh_rivals(
        out,
        RIVALS,
        ["law"],
        SOURCE,
        n_repeats=4 if quick else 8,
        random_seed=random_seed,
        n_jobs=n_jobs,
        title=title,
    )
    fits = run_units(
        fit_one,
        [
            fit_task(f"fit-{name}", RIVALS[name], SOURCE, (0.0, 1100.0), random_seed)
            for name in ("law", "approximate")
        ],
        out,
        n_jobs=n_jobs,
        title=f"{title}: sampling",
    )
    page = Page(
        title="Galileo's ramp with a shelf (Section 3.2)",
        summary=(
            "Five measurements of the distance D at which a ball hits the floor after it rolled "
            "down a ramp of height H and over a shelf. Physics says D = k √H. "
            f"{n_seeds} searches of each kind with + − × / pow sqrt."
        ),
        claims=make_claims(searches, rivals, fits[0], fits[1]),
        figures=_draw(out, fits, rivals),
        formulas=[
            Formula("The law, as found", Equation(LAW, ["H"]), "D"),
            Formula(
                "The paper's numerically approximate rival",
                Equation(RIVALS["approximate"], ["H"]),
                "D",
            ),
        ],
        tables={
            "Rivals": rivals[RIVAL_COLUMNS],
            "Searches": show_searches(searches),
        },
        numbers={
            "searches": searches,
            "rivals": rivals,
            "fits": pd.DataFrame([to_row(fit) for fit in fits]),
        },
        notes=[describe_engines(quick), WINNER_NOTE],
    )
    return write_page(out, page)


def make_claims(
    searches: pd.DataFrame, rivals: pd.DataFrame, law: Record, approximate: Record
) -> list[Claim]:
    """Compare the paper's claims with the numbers."""
    ours, theirs = (searches[searches["engine"] == engine] for engine in (OURS, THEIRS))
    n = len(ours)
    found, found_theirs = int(ours["law_found"].sum()), int(theirs["law_found"].sum())
    won, won_theirs = int(ours["law_won"].sum()), int(theirs["law_won"].sum())
    forms = float((theirs["law_in_population"] / theirs["population_size"]).median())
    larger = int((theirs["law_in_population"] > theirs["largest_other"]).sum())
    near = int((theirs["extensions_in_population"] > 0).sum())
    k, estimate = law["theta"][0], law["estimates"]["theta1"]
    second = approximate["estimates"]["theta2"]
    (log_q, se), (rival, rival_se) = (log_q_of(rivals, name) for name in ("law", "approximate"))
    beaten = int((searches["law_behind"] > 0).sum())
    margin = float(searches["law_behind"].max())
    ahead, error = log_q - rival, (se**2 + rival_se**2) ** 0.5
    return [
        Claim(
            "Section 3.2",
            "The correct form was found in all of five repetitions.",
            f"{OURS}: found in {count(found, n)} repetitions; {THEIRS}: in "
            f"{count(found_theirs, n)}.",
            f"reproduced if {OURS} finds it in all repetitions.",
            judge(found == n),
        ),
        Claim(
            "Section 3.2",
            "The final population consisted primarily of different algebraic forms of the law.",
            f"{THEIRS}: forms of the law are {forms:.0%} of the last population (median), and "
            f"more frequent than any other equation in {count(larger, n)} repetitions.",
            "reproduced if they are more than half of it (median of the repetitions).",
            judge(forms > 0.5),
            ""
            if forms > 0.5
            else "Equal evidence is no reason to replace an equation: forms "
            "with nearly the same log q share the population.",
        ),
        Claim(
            "Section 3.2, Figure 11",
            f"The MAP of θ1 aligns well with the least-squares fit, {PAPER_K}.",
            f"MAP {k:.4g}, posterior {estimate['mean']:.4g} ± {estimate['sd']:.2g}.",
            f"reproduced if the MAP is {PAPER_K} to all its digits, and within one posterior "
            "standard deviation of the posterior mean.",
            judge(
                abs(k - PAPER_K) <= 0.005 and abs(k - estimate["mean"]) < estimate["sd"],
            ),
        ),
        Claim(
            "Section 3.2",
            "The final population contained numerically approximate equations in all repetitions.",
            f"{THEIRS}: in {count(near, n)} repetitions.",
            "reproduced if in all repetitions the last population holds an equation with more "
            "parameters that has the law as a special case.",
            judge(near == n),
        ),
        Claim(
            "Section 3.2",
            "Occasionally numerically approximate equations are favoured over the law by the "
            "Bayes factor; it remains the user's task to tell.",
            f"Some equation has a larger log q than the law in {count(beaten, 2 * n)} searches, by "
            f"at most {margin:.2f} nats. The winner, which has the largest log q, is "
            f"the law in {count(won, n)} repetitions of {OURS} and in {count(won_theirs, n)} of "
            f"{THEIRS}.",
            "better if the law is the winner of all searches nevertheless; reproduced if some "
            "equation has a larger log q.",
            judge(beaten > 0, won == n and won_theirs == n),
        ),
        Claim(
            "Section 3.2",
            "The example of such an equation is θ1 √x0 / (1 + θ2 x0), with θ2 ≈ −7.6e−19.",
            f"The law is {ahead:.2f} ± {error:.2f} nats ahead of it; θ2 = {second['mean']:.1e} ± "
            f"{second['sd']:.1e}.",
            "better if the law is ahead by more than two standard errors; reproduced if zero is "
            "in the 95 % credible interval of θ2.",
            judge(second["low"] < 0 < second["high"], ahead > 2 * error),
            "θ2 is not determined more closely than 1e−4 by five measurements; the paper's value "
            "is the best fit of one run.",
        ),
    ]


def _draw(out: Path, fits: list[Record], rivals: pd.DataFrame) -> list[tuple[str, str]]:
    X, y = read_source(SOURCE)
    panels = new_panels(2, 5.0, 4.0)
    for ax, fit in zip(panels, fits, strict=True):
        plot_fit(fit["grid"], to_prediction(fit), X, y, ax=ax)
        add_title(ax, f"$D = {Equation(fit['equation'], ['H']).latex()}$")
    posterior = plot_posterior(
        to_posterior(fits[0]),
        reference={"theta1": fits[0]["theta"][0]},
        reference_label="least squares",
    )
    return [
        (
            save_png(panels, out / "fits.png"),
            "The law (left) and the paper's numerically approximate equation (right), with 95 % "
            "credible and prediction intervals.",
        ),
        (
            save_png(posterior, out / "posterior.png"),
            "Posterior of θ1 and of the noise σ, for the law.",
        ),
        (
            save_png(plot_rivals(rivals, names=latex_names(rivals, SOURCE)), out / "rivals.png"),
            "Evidence of the law and of its rivals (bars: two standard errors).",
        ),
    ]
