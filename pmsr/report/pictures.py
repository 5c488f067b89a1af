"""The pictures of the page, which are there without a script, too."""

import base64
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.equation.grammar import without_quotes
from pmsr.plots import (
    plot_families,
    plot_front,
    plot_graph,
    plot_history,
    plot_pairs,
    plot_parity,
    plot_posterior,
    plot_suggestion,
    to_svg,
)
from pmsr.plots.marks import axis_label, new_axes
from pmsr.plots.predictions import draw_fit, draw_groups, draw_quantiles, draw_residuals
from pmsr.report.content import ReportContent
from pmsr.report.formulas import Formulas
from pmsr.report.rows import find_families, has_evidence, share_of

Floats = NDArray[np.float64]

MAX_GRAPH = 40  # nodes of a graph that can still be read


@dataclass(frozen=True)
class Picture:
    """A figure in the page: its address, which holds the whole picture, and what it shows."""

    address: str
    alt: str
    caption: str
    width: int


def residuals_of(content: ReportContent) -> Floats | None:
    """Return what the winner leaves unexplained, where it has a size in units of its noise."""
    if content.residuals is not None or content.prediction is None:
        return content.residuals
    return content.data.y - content.prediction["map"].to_numpy(dtype=np.float64)


def draw_pictures(
    content: ReportContent, parameters: pd.DataFrame | None, formulas: Formulas
) -> dict[str, Picture]:
    """Draw every picture that there are numbers for."""
    pictures: dict[str, Picture] = {}
    if content.winner is not None:
        pictures |= _draw_fit(content) | _draw_winner(content, parameters)
    measure: Literal["score", "rmse"] = "score" if has_evidence(content.table) else "rmse"
    weighed = content.table[content.table["failure"].isna()]
    if np.isfinite(weighed[measure].astype(float)).any():
        what = "Score" if measure == "score" else "Error"
        pictures["front"] = _picture(
            plot_front(content.table, measure=measure, winner=content.winner),
            f"{what} of the equations against their complexity",
            f"{what} against complexity. The line is the best that each complexity can do"
            + ("; bars are Monte-Carlo standard errors." if measure == "score" else "."),
        )
    if (content.table["probability"].astype(float) > 0.0).any():
        families = [
            (formulas.plain(content.equations[one[0]].text), share_of(content, one), len(one))
            for one in find_families(content)
        ]
        table = pd.DataFrame(families, columns=["equation", "probability", "laws"])
        pictures["families"] = _picture(
            plot_families(table.sort_values("probability", ascending=False, kind="stable")),
            "Probabilities of the families of laws",
            "How probable the families are, each named by its best law.",
        )
    if content.suggestions is not None and content.rivals is not None:
        names = content.data.measured
        is_line = len(names) == 1
        places = content.suggestions[names[0]] if is_line else content.rivals.index
        pictures["suggest"] = _picture(
            plot_suggestion(
                content.rivals.rename(columns=formulas.plain),
                np.asarray(places),
                content.data.select(names),
                units=content.units,
            ),
            "Predictions of the leading families, and where to measure next",
            "What the leading families predict, each by its best law"
            + ("; dashed lines are where a measurement tells most." if is_line else "."),
        )
    if content.history is not None and len(content.history) > 1:
        pictures["history"] = _picture(
            plot_history(content.history)[0],
            "The search, generation by generation",
            "The search, generation by generation: its best equation and the mean of the "
            "population.",
        )
    return pictures


def _draw_fit(content: ReportContent) -> dict[str, Picture]:
    """Draw the winner with its data, and what it leaves unexplained."""
    pictures = {}
    data, level = content.data, content.level
    y = pd.Series(data.y, name=data.target)
    share = f"hold {100 * level:g} % of the probability"
    grid, drawn = content.grid, content.grid_prediction
    if content.curves:
        pictures["fit"] = _picture(
            draw_groups(content.curves, level=level, units=content.units),
            f"{data.target} against {content.variable}: data, best fit and intervals of each group",
            f"Data and best fit of each group. Bands {share} of a new observation.",
        )
    if content.variable is not None and grid is not None and drawn is not None:
        bands = f"Bands {share}: the credible interval where the law lies, the prediction interval"
        bands += " where a new observation would fall."
        pictures["fit"] = _picture(
            draw_fit(
                grid, drawn, data.select([content.variable]), level=level, units=content.units
            ),
            f"{data.target} against {content.variable}: data, best fit and intervals",
            f"Data and best fit. {bands if 'prediction_low' in drawn else ''}".rstrip(),
        )
    if content.prediction is None or not np.isfinite(content.prediction["map"]).any():
        return pictures
    if "fit" not in pictures:
        has_bars = "prediction_low" in content.prediction
        pictures["fit"] = _picture(
            plot_parity(y, content.prediction, level=level, units=content.units),
            f"Predicted against observed {data.target}{', with intervals' if has_bars else ''}",
            "Predictions against observations."
            + (f" Bars {share} of a new observation." if has_bars else ""),
        )
    residuals = residuals_of(content)
    if residuals is None:
        return pictures
    name = f"residual of {axis_label(data.target, content.units)}"
    if content.residuals is not None:
        name += " / its noise"
    labels = (f"{axis_label(data.target, content.units)}, predicted", name)
    fitted = content.prediction["map"].to_numpy(dtype=np.float64)
    # Two pictures, not one of both: side by side they would not fit a phone.
    pictures["residuals"] = _picture(
        draw_residuals(fitted, residuals, labels=labels, ax=new_axes(4.2, 3.6)),
        "Residuals against predictions",
        "What the law leaves unexplained: no trend should be seen.",
    )
    pictures["quantiles"] = _picture(
        draw_quantiles(residuals, label=name, ax=new_axes(4.2, 3.6)),
        "Quantiles of the residuals against normal ones",
        "Normal noise follows the line.",
    )
    return pictures


def _draw_winner(content: ReportContent, parameters: pd.DataFrame | None) -> dict[str, Picture]:
    """Draw the posterior of the winner and its graph."""
    pictures = {}
    equation = content.equations[str(content.winner)]
    is_free = parameters is not None and bool((~parameters["held"].astype(bool)).any())
    if parameters is not None and is_free and content.posterior is not None:
        fitted = {} if content.posteriors else parameters["map"].dropna().to_dict()
        reference = {str(name): float(value) for name, value in fitted.items()}
        has_sigma = "sigma" in content.posterior.posterior
        dashed = " Dashed: least squares." if reference else ""
        pictures["posterior"] = _picture(
            plot_posterior(
                content.posterior,
                reference=reference,
                reference_label="least squares",
                level=content.level,
                units=content.parameter_units,
            )[0],
            "Posterior densities of the parameters",
            f"Posterior of each parameter{' and of the noise σ' if has_sigma else ''}.",
        )
        if (~parameters["held"].astype(bool)).sum() > 2:
            pictures["pairs"] = _picture(
                plot_pairs(content.posterior, reference=reference, units=content.parameter_units)[
                    0, 0
                ],
                "Posterior draws of every two parameters",
                f"Draws of every two parameters: a narrow diagonal is a correlation.{dashed}",
            )
    if equation.complexity <= MAX_GRAPH:
        pictures["graph"] = _picture(
            plot_graph(equation),
            f"Acyclic graph of {without_quotes(equation.text)}",
            f"The law as the graph that evolves, with {equation.complexity} nodes. Boxes are "
            "variables, filled rounded boxes parameters; arrows point to arguments.",
        )
    return pictures


def _picture(ax: Any, alt: str, caption: str) -> Picture:
    """Turn the figure of Axes into an image that is part of the page."""
    figure = ax.figure
    width = round(96 * figure.get_figwidth())
    encoded = base64.b64encode(to_svg(figure).encode()).decode()
    return Picture(f"data:image/svg+xml;base64,{encoded}", alt, caption, width)
