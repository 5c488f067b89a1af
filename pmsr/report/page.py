"""The report: one HTML page with everything a colleague needs to judge a result."""

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from pmsr import __version__
from pmsr.equation.expression import Equation
from pmsr.equation.grammar import without_quotes
from pmsr.equation.mathml import name_to_mathml, to_mathml
from pmsr.equation.notation import latex_estimate, percent, plus_minus, typeset
from pmsr.evidence.diagnostics import normality, summarise_parameters
from pmsr.files import write_file
from pmsr.laws.units import unit_html, unit_latex
from pmsr.plots import (
    plot_front,
    plot_graph,
    plot_history,
    plot_pairs,
    plot_parity,
    plot_posterior,
    plot_residuals,
    plot_suggestion,
    to_svg,
)
from pmsr.plots.predictions import draw_fit
from pmsr.report.content import ReportContent
from pmsr.result.doubts import doubt_failures, doubt_sampling

Floats = NDArray[np.float64]

N_ROWS = 25  # equations that are shown at once; the others unfold
MAX_GRAPH = 40  # nodes of a graph that can still be read

PAPER = {
    "authors": "G. F. Bomarito, P. E. Leser, N. C. M. Strauss, K. M. Garbrecht and "
    "J. D. Hochhalter",
    "title": "Automated learning of interpretable models with quantified uncertainty",
    "journal": "Computer Methods in Applied Mechanics and Engineering",
    "volume": "403",
    "number": "115732",
    "year": "2022",
    "doi": "10.1016/j.cma.2022.115732",
}
SOFTWARE = {
    "authors": "The pmsr developers",
    "title": "pmsr: symbolic regression that weighs equations by their Bayesian evidence",
    "version": __version__,
}


@dataclass(frozen=True)
class Picture:
    """A figure in the page: its address, which holds the whole picture, and what it shows."""

    address: str
    alt: str
    caption: str
    width: int


def write_report(path: str | Path, content: ReportContent) -> Path:
    """Write a report as one HTML file that needs nothing else, neither network nor scripts.

    Parameters
    ----------
    path
        Where to; an older file is replaced.
    content
        What to show.

    Returns
    -------
    Path
        The file.
    """
    page = render_report(content)
    path = Path(path)
    write_file(path, page.encode())
    return path


def render_report(content: ReportContent) -> str:
    """Return the text of a report, see `write_report`."""
    environment = Environment(
        loader=PackageLoader("pmsr.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    residuals = _residuals(content)
    p_normal = None if residuals is None else normality(residuals)
    parameters = None
    if content.posterior is not None:
        parameters = summarise_parameters(content.posterior, level=content.level)
    # What is not used by all sections is None where there is nothing to show.
    return environment.get_template("report.html").render(
        title=content.title or f"The law behind {content.data.target}",
        content=content,
        has_evidence=_has_evidence(content.table),
        prior=_describe_prior(content.table),
        data_rows=_data_rows(content),
        winner=_describe_winner(content),
        parameters=_parameter_rows(parameters, content.parameter_units),
        doubts=_doubts(content, parameters),
        rows=_equation_rows(content),
        n_rows=N_ROWS,
        pictures=_draw(content, parameters),
        inclusion=_inclusion_rows(content),
        robustness=_robustness_rows(content),
        suggestions=_suggestion_rows(content),
        diagnostics=_diagnostic_rows(content, parameters, p_normal),
        probability=f"{100 * content.level:g} %",
        paper=PAPER,
        software=SOFTWARE,
    )


def _has_evidence(table: pd.DataFrame) -> bool:
    return bool(np.isfinite(table["log_q"].astype(float)).any())


def _describe_prior(table: pd.DataFrame) -> str:
    """Say what was thought of the equations before the data were seen."""
    if table["log_prior"].isin([0.0, -math.inf]).all():
        return "here it is 0, all equations were equally probable beforehand."
    return "the shorter a law, and the less it depends on units, the more probable beforehand."


def _residuals(content: ReportContent) -> Floats | None:
    if content.prediction is None:
        return None
    return content.data.y - content.prediction["map"].to_numpy(dtype=np.float64)


def _data_rows(content: ReportContent) -> list[tuple[str, str, str, str, str]]:
    """Name, role, unit, least and largest value of every column."""
    data = content.data
    columns = [(data.target, "target", data.y)]
    columns += [(name, "variable", data.X[:, k]) for k, name in enumerate(data.names)]
    return [
        (name, role, _unit(content.units.get(name, "")), short(v.min()), short(v.max()))
        for name, role, v in columns
    ]


def _unit(text: str) -> Markup:
    return Markup(unit_html(text))


def _describe_winner(content: ReportContent) -> dict[str, Any] | None:
    """Return the winner as the page shows it."""
    if content.winner is None:
        return None
    equation = content.equations[content.winner]
    # Any: pandas does not know what is in its cells.
    row: Any = content.table.loc[content.winner]
    best = content.table["score"].astype(float).max()
    return {
        "name": _own_name(content.winner, equation),
        "math": Markup(to_mathml(equation, content.data.target, display=True)),
        "text": without_quotes(equation.text),
        "latex": equation.latex(),
        "log_q": _log_q(row["log_q"], row["log_q_se"]),
        "probability": percent(row["probability"]),
        **_describe_family(content, content.winner),
        "coincidences": list(content.coincidences.get(content.winner, ())),
        "rmse": short(row["rmse"]),
        "complexity": int(row["complexity"]),
        "is_best": bool(row["score"] >= best),
        "behind": short(best - row["score"], 2),
    }


def _families(content: ReportContent) -> list[list[str]]:
    """Return all equations of the table in families; what is in none is one of its own."""
    families = [list(family) for family in content.families]
    known = {name for family in families for name in family}
    return families + [[str(name)] for name in content.table.index if name not in known]


def _describe_family(content: ReportContent, name: str) -> dict[str, Any]:
    """Return how many laws are like this one, and the probability of all of them."""
    family = next(one for one in _families(content) if name in one)
    total = float(content.table.loc[family, "probability"].astype(float).sum(skipna=False))
    return {"n_like": len(family) - 1, "family_probability": percent(total)}


def _own_name(name: str, equation: Equation) -> str:
    """Return the name of an equation, or nothing if it is just the equation."""
    return "" if without_quotes(name) in (without_quotes(equation.text), str(equation)) else name


def _parameter_rows(
    parameters: pd.DataFrame | None, units: Mapping[str, str]
) -> list[dict[str, Any]] | None:
    if parameters is None:
        return None
    rows = []
    for name, row in parameters.to_dict("index").items():
        unit = units.get(str(name), "")
        estimate = plus_minus(row["mean"], row["sd"])
        rows.append(
            {
                "math": Markup(f"<math>{name_to_mathml(str(name))}</math>"),
                "name": str(name),
                "unit": _unit(unit),
                "latex": latex_estimate(str(name), estimate, unit_latex(unit)),
                "estimate": "held" if row["held"] else typeset(estimate),
                "low": short(row["low"]),
                "high": short(row["high"]),
                "map": short(row["map"]),
            }
        )
    return rows


def _doubts(content: ReportContent, parameters: pd.DataFrame | None) -> list[str]:
    if content.winner is None:
        return ["No equation could be weighed. The table says why.", *content.warnings]
    doubts = list(content.warnings)
    if not _has_evidence(content.table):
        doubts.append(
            "The winner has no evidence: it was chosen by its error alone, with no penalty."
        )
    if parameters is not None:
        doubts += doubt_sampling(parameters)
    return doubts + doubt_failures(content.n_failed, content.n_candidates)


def _equation_rows(content: ReportContent) -> list[dict[str, Any]]:
    """Return the faces of the families as text, each with the other members beneath."""
    texts = {row["key"]: row for row in _text_rows(content)}
    rows = []
    for face, *others in _families(content):
        members = [texts[name] for name in others]
        has_winner = any(member["is_winner"] for member in members)
        rows.append({**texts[face], "members": members, "has_winner": has_winner})
    return rows


def _text_rows(content: ReportContent) -> list[dict[str, Any]]:
    """Return the ranked table as text."""
    rows = []
    for place, (name, row) in enumerate(content.table.to_dict("index").items(), start=1):
        equation = content.equations[str(name)]
        failure = row["failure"]
        rows.append(
            {
                "key": str(name),
                "coincidences": list(content.coincidences.get(str(name), ())),
                "rank": place,
                **_describe_family(content, str(name)),
                "name": _own_name(str(name), equation),
                "math": Markup(to_mathml(equation)),
                "is_winner": name == content.winner,
                "failure": failure if isinstance(failure, str) else None,
                "log_q": _log_q(row["log_q"], row["log_q_se"]),
                "score": _log_q(row["score"]),
                "probability": percent(row["probability"]),
                "bayes_factor": short(row["bayes_factor"], 3),
                "parameters": row["parameters"],
                "complexity": row["complexity"],
                "rmse": short(row["rmse"]),
                "prior_sensitivity": short(row["prior_sensitivity"], 2),
            }
        )
    return rows


def _inclusion_rows(content: ReportContent) -> list[tuple[str, str, str]] | None:
    """Name, kind and probability of what may be part of the law."""
    if content.inclusion is None:
        return None
    table = content.inclusion
    rows = zip(table.index, table["kind"], table["probability"], strict=True)
    return [(str(name), str(kind), percent(float(share))) for name, kind, share in rows]


def _robustness_rows(content: ReportContent) -> list[tuple[str, str, str, str]] | None:
    """Prior, winner, its probability, and that of what was reported, with its family."""
    if content.robustness is None:
        return None
    return [
        (
            str(prior),
            without_quotes(str(row["winner"])),
            percent(float(row["probability"])),
            percent(float(row["of_family"])),
        )
        for prior, row in content.robustness.iterrows()
    ]


def _suggestion_rows(content: ReportContent) -> list[list[str]] | None:
    """Where to measure, and what it is expected to tell."""
    if content.suggestions is None:
        return None
    rows = content.suggestions.itertuples(index=False, name=None)
    return [
        [short(float(value)) for value in row[:-3]] + [short(float(v), 2) for v in row[-3:]]
        for row in rows
    ]


def _diagnostic_rows(
    content: ReportContent, parameters: pd.DataFrame | None, p_normal: float | None
) -> list[tuple[str, str, str]]:
    """Name, value and meaning of the numbers that tell how far to trust the result."""
    rows = []
    if content.winner is not None and _has_evidence(content.table):
        row: Any = content.table.loc[content.winner]
        rows += [
            (
                "Standard error of log q",
                short(row["log_q_se"], 2),
                "how far repeated runs agree; below 0.5 is good",
            ),
            (
                "Prior sensitivity",
                f"{short(row['prior_sensitivity'], 2)} nats",
                "change of log q if the bounds of the priors were halved; smaller differences "
                "between equations are not evidence",
            ),
        ]
    if parameters is not None:
        rows += [
            (
                "Effective sample size",
                short(parameters["ess"].min(), 4),
                "independent draws of the worst parameter; 400 or more is good",
            ),
            (
                "R-hat",
                f"{parameters['r_hat'].max():.3f}".replace("nan", "–"),
                "agreement of the chains; below 1.01 is good",
            ),
        ]
    if content.prediction is not None:
        rows.append(
            (
                "Shapiro-Wilk p",
                "–" if p_normal is None else f"{p_normal:.2g}",
                "are the residuals normal noise? below 0.05 they hardly are",
            )
        )
    if content.n_candidates is not None:
        rows.append(
            ("Equations met", f"{content.n_candidates:,}", "distinct candidates of the search")
        )
        if content.n_failed is not None:
            share = content.n_failed / max(1, content.n_candidates)
            rows.append(
                (
                    "Failed candidates",
                    f"{content.n_failed:,} ({share:.0%})",
                    "not finite on the data, not identifiable, or beyond the limits",
                )
            )
    return rows


def _draw(content: ReportContent, parameters: pd.DataFrame | None) -> dict[str, Picture]:
    """Draw every picture that there are numbers for."""
    pictures: dict[str, Picture] = {}
    if content.winner is not None:
        pictures |= _draw_fit(content) | _draw_winner(content, parameters)
    measure: Literal["score", "rmse"] = "score" if _has_evidence(content.table) else "rmse"
    weighed = content.table[content.table["failure"].isna()]
    if np.isfinite(weighed[measure].astype(float)).any():
        what = "Score" if measure == "score" else "Error"
        pictures["front"] = _picture(
            plot_front(content.table, measure=measure, winner=content.winner),
            f"{what} of the equations against their complexity",
            f"{what} against complexity. The line is the best that each complexity can do"
            + ("; bars are Monte-Carlo standard errors." if measure == "score" else "."),
        )
    if content.suggestions is not None and content.rivals is not None:
        names = content.data.names
        is_line = len(names) == 1
        places = content.suggestions[names[0]] if is_line else content.rivals.index
        pictures["suggest"] = _picture(
            plot_suggestion(content.rivals, np.asarray(places), content.data, units=content.units),
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
    bands = f"Bands hold {100 * level:g} % of the probability: the credible interval where the law"
    bands += " lies, the prediction interval where a new observation would fall."
    grid, drawn = content.grid, content.grid_prediction
    if content.variable is not None and grid is not None and drawn is not None:
        pictures["fit"] = _picture(
            draw_fit(
                grid, drawn, data.select([content.variable]), level=level, units=content.units
            ),
            f"{data.target} against {content.variable}: data, best fit and intervals",
            f"Data and best fit. {bands}",
        )
    if content.prediction is None or not np.isfinite(content.prediction["map"]).any():
        return pictures
    if "fit" not in pictures:
        pictures["fit"] = _picture(
            plot_parity(y, content.prediction, level=level, units=content.units),
            f"Predicted against observed {data.target}, with prediction intervals",
            f"Predictions against observations. Bars hold {100 * level:g} % of the probability of "
            "a new observation.",
        )
    pictures["residuals"] = _picture(
        plot_residuals(y, content.prediction["map"], units=content.units)[0],
        "Residuals against predictions, and their quantiles against normal ones",
        "What the law leaves unexplained. Left: no trend should be seen. Right: normal noise "
        "follows the line.",
    )
    return pictures


def _draw_winner(content: ReportContent, parameters: pd.DataFrame | None) -> dict[str, Picture]:
    """Draw the posterior of the winner and its graph."""
    pictures = {}
    equation = content.equations[str(content.winner)]
    if parameters is not None:
        fitted = parameters["map"].dropna().to_dict()
        reference = {str(name): float(value) for name, value in fitted.items()}
        dashed = " Dashed: least squares." if reference else ""
        pictures["posterior"] = _picture(
            plot_posterior(
                content.posterior,
                reference=reference,
                reference_label="least squares",
                level=content.level,
                units=content.parameter_units,
            )[0],
            "Posterior densities of the parameters and of the noise",
            "Posterior of each parameter and of the noise σ.",
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


def short(number: float, digits: int = 4) -> str:
    """Write a number with few digits; a dash for what is not known.

    Examples
    --------
    >>> short(13.00061), short(-0.25, 2), short(2.5e9), short(float("nan"))
    ('13', '−0.25', '2.5 × 10⁹', '–')
    """
    return typeset(f"{number:.{digits}g}")


def _log_q(value: float, error: float = 0.0) -> str:
    """Write a logarithm to a hundredth of a nat, which is more than it can be trusted."""
    if not math.isfinite(value):
        return short(value)
    return typeset(f"{value:.2f} ± {max(error, 0.01):.2f}" if error > 0.0 else f"{value:.2f}")
