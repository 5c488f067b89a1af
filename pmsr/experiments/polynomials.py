"""Section 2.3: polynomials of growing order, by evidence and by error."""

from pathlib import Path

import numpy as np
import pandas as pd

from pmsr.evidence.evidence import compute_evidence
from pmsr.experiments.datasets import read_source, sine
from pmsr.experiments.exact import exact_linear_log_q, polynomial, polynomial_design
from pmsr.experiments.fits import fit_one, fit_task, to_prediction, to_row
from pmsr.experiments.pages import Claim, Page, write_page
from pmsr.experiments.paper_settings import FINALIST
from pmsr.experiments.verdicts import count, judge, judge_peak
from pmsr.experiments.work import Record, Task, run_units
from pmsr.plots import plot_fit
from pmsr.plots.experiments import (
    add_curve,
    add_title,
    new_panels,
    plot_order,
    same_range,
    save_png,
)

ORDERS = range(7)
SHOWN = (3, 6)
SIGMA = 0.3
RANGE = (0.0, 1.5 * np.pi)


def run(
    out: str | Path,
    *,
    quick: bool = False,
    n_seeds: int | None = None,
    n_jobs: int | None = None,
    random_seed: int = 0,
) -> Path:
    """Fit and weigh polynomials of order 0 to 6 on the sine data.

    Parameters
    ----------
    out
        Folder for figures, numbers.csv, page.md and page.html. What is done in it already is not
        done again.
    quick
        Three datasets instead of 20.
    n_seeds
        Number of datasets, if it shall be another.
    n_jobs
        Units of work at a time, in the sense of joblib.
    random_seed
        Seed of the first dataset; the others follow.

    Returns
    -------
    Path
        The page, page.html.
    """
    out = Path(out)
    n_seeds = n_seeds or (3 if quick else 20)
    seeds = range(random_seed, random_seed + n_seeds)
    weighed = run_units(
        weigh_orders,
        [{"name": f"orders-{seed}", "source": sine(SIGMA, seed), "seed": seed} for seed in seeds],
        out,
        n_jobs=n_jobs,
        title="polynomials: weighing",
    )
    fits = run_units(
        fit_one,
        [
            fit_task(
                f"fit-order{order}-{random_seed}",
                polynomial(order),
                sine(SIGMA, random_seed),
                RANGE,
                random_seed,
            )
            for order in SHOWN
        ],
        out,
        n_jobs=n_jobs,
        title="polynomials: sampling",
    )
    table = pd.DataFrame([row for record in weighed for row in record["rows"]])
    lines = [
        _least_squares(order, random_seed, np.array(fit["grid"]))
        for order, fit in zip(SHOWN, fits, strict=True)
    ]
    gaps = [
        float(np.max(np.abs(line - np.array(fit["prediction"]["map"]))) / SIGMA)
        for line, fit in zip(lines, fits, strict=True)
    ]
    figures = _draw(out, table, fits, lines, random_seed)
    page = Page(
        title="Polynomials of growing order (Section 2.3)",
        summary=(
            f"Polynomials of order 0 to 6 on {n_seeds} datasets of 20 points from y = 2 sin(x) + 3 "
            f"with normal noise of σ = {SIGMA}. The evidence of each is known in closed form, up "
            "to one integral over σ, so that the estimate of Sequential Monte Carlo can be checked."
        ),
        claims=make_claims(table, fits, gaps),
        figures=figures,
        tables={"Log q on the first dataset, and exactly": _first(table)},
        numbers={
            "orders": table,
            "fits": pd.DataFrame([to_row(fit) for fit in fits]),
            "map_against_rmse": pd.DataFrame({"order": SHOWN, "largest_gap_in_sigma": gaps}),
        },
        notes=[
            "The paper does not say how large the noise of its example is; we took σ = 0.3.",
            "σ is flat between 1e-6 and 2 standard deviations of y. With an unbounded flat prior "
            "the normalised marginal likelihood of four or more parameters on 20 points does not "
            "exist.",
        ],
    )
    return write_page(out, page)


def weigh_orders(task: Task) -> Record:
    """Weigh all orders on one dataset, by sampling and in closed form."""
    X, y = read_source(task["source"])
    rows = []
    for order in ORDERS:
        evidence = compute_evidence(
            polynomial(order), X, y, settings=FINALIST, random_seed=task["seed"]
        )
        design = polynomial_design(X["x0"].to_numpy(), order)
        rows.append(
            {
                "dataset": task["source"]["seed"],
                "order": order,
                "log_q": evidence.log_q,
                "log_q_se": evidence.log_q_se,
                "exact": exact_linear_log_q(design, y.to_numpy(), FINALIST),
                "rmse": evidence.rmse,
                "rmse_in_sigma": evidence.rmse / task["source"]["sigma"],
            }
        )
    return {"rows": rows}


def make_claims(table: pd.DataFrame, fits: list[Record], gaps: list[float]) -> list[Claim]:
    """Compare the paper's claims with the numbers."""
    parts = [part.sort_values("order") for _, part in table.groupby("dataset", sort=False)]
    n = len(parts)
    peaks = [int(part["order"].iloc[part["log_q"].argmax()]) for part in parts]
    exact_peaks = [int(part["order"].iloc[part["exact"].argmax()]) for part in parts]
    at = {order: peaks.count(order) for order in sorted(set(peaks))}
    falling = sum(bool(np.all(np.diff(part["rmse"]) <= 1e-9)) for part in parts)
    errors = (table["log_q"] - table["exact"]).abs()
    allowed = np.maximum(3 * table["log_q_se"], 0.05)
    widths = [_widening(fit) for fit in fits]
    return [
        Claim(
            "Section 2.3, Figure 3",
            "The fractional Bayes factor penalises complexity: it falls after order 3.",
            "Peak of log q at order "
            + ", ".join(f"{order} on {k}" for order, k in at.items())
            + f" of {n} datasets (exact log q: the same order on "
            + f"{count(sum(a == b for a, b in zip(peaks, exact_peaks, strict=True)), n)}).",
            "reproduced if the peak is at order 3 or 4 on more than half of the datasets.",
            judge_peak(peaks, (3, 4)),
        ),
        Claim(
            "Section 2.3, Figure 3",
            "The RMSE keeps falling with the order: by itself it overfits.",
            f"It never rises on {count(falling, n)} datasets.",
            "reproduced if the RMSE never rises with the order, on every dataset.",
            judge(falling == n),
        ),
        Claim(
            "Section 2.3",
            "Sequential Monte Carlo can estimate the fractional Bayes factor.",
            f"Largest error of log q {errors.max():.3f} nats, mean {errors.mean():.3f}, over "
            f"{len(table)} fits.",
            "reproduced if every log q is within three standard errors, or 0.05 nats, of the "
            "exact value.",
            judge(bool((errors <= allowed).all())),
        ),
        Claim(
            "Section 2.3, Figure 2",
            "RMSE and MAP fit are very similar.",
            f"Between 0 and 3π/2 they differ by at most {max(gaps):.2g} σ.",
            "reproduced if least squares and MAP differ by less than 0.05 σ everywhere.",
            judge(max(gaps) < 0.05),
        ),
        Claim(
            "Section 2.3, Figure 2",
            "The intervals widen at the edges of the domain, where the errors are largest.",
            "; ".join(
                f"order {order}: {ends:.1f} times as wide at the ends as in the middle"
                for order, ends in zip(SHOWN, widths, strict=True)
            )
            + ".",
            "reproduced if the credible intervals at both ends of the domain are wider than the "
            "median width, for both orders.",
            judge(min(widths) > 1.0),
        ),
    ]


def _widening(fit: Record) -> float:
    """Width of the credible interval at the narrower end, in units of the median width."""
    prediction = to_prediction(fit)
    width = (prediction["credible_high"] - prediction["credible_low"]).to_numpy()
    return float(min(width[0], width[-1]) / np.median(width))


def _least_squares(order: int, seed: int, grid: np.ndarray) -> np.ndarray:
    X, y = read_source(sine(SIGMA, seed))
    theta = np.linalg.lstsq(polynomial_design(X["x0"].to_numpy(), order), y, rcond=None)[0]
    return np.asarray(polynomial_design(grid, order) @ theta)


def _first(table: pd.DataFrame) -> pd.DataFrame:
    part = table[table["dataset"] == table["dataset"].iloc[0]]
    return part[["order", "log_q", "log_q_se", "exact", "rmse_in_sigma"]]


def _draw(
    out: Path, table: pd.DataFrame, fits: list[Record], lines: list[np.ndarray], seed: int
) -> list[tuple[str, str]]:
    X, y = read_source(sine(SIGMA, seed))
    panels = new_panels(2, 5.2, 4.2)
    for ax, order, fit, line in zip(panels, SHOWN, fits, lines, strict=True):
        grid = np.array(fit["grid"])
        plot_fit(grid, to_prediction(fit), X, y, ax=ax)
        add_curve(ax, grid, line, "least squares")
        add_curve(ax, grid, 2 * np.sin(grid) + 3, "true law", is_truth=True)
        add_title(ax, f"order {order}")
    same_range(panels)
    return [
        (
            save_png(panels, out / "fits.png"),
            "Polynomials of order 3 and 6: best fit with 95 % credible and prediction intervals, "
            "and the fit by least squares.",
        ),
        (
            save_png(plot_order(table), out / "orders.png"),
            "Left: log q against the order, exact and estimated (bars: two standard errors). "
            "Right: the error, in units of the noise.",
        ),
    ]
