"""The report: one HTML page with everything a colleague needs to judge a result."""

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from pmsr import __version__
from pmsr.evidence.diagnostics import normality
from pmsr.files import write_file
from pmsr.laws.units import unit_beside
from pmsr.magnitude import spans_decades
from pmsr.report.content import ReportContent
from pmsr.report.digits import ROUNDING
from pmsr.report.estimates import by_group, estimate_rows, parameter_rows, summarise_winner
from pmsr.report.explorer import encode_laws, to_json
from pmsr.report.formulas import Formulas
from pmsr.report.pictures import draw_pictures, residuals_of
from pmsr.report.rows import (
    data_rows,
    describe_credible,
    describe_prior,
    describe_rival,
    describe_unweighed,
    describe_winner,
    diagnostic_rows,
    equation_rows,
    family_rows,
    find_doubts,
    has_evidence,
    inclusion_rows,
    key_of,
    legend_rows,
    next_steps,
    noise_rows,
    outlook_rows,
    robustness_rows,
    suggestion_rows,
)

N_ROWS = 25  # equations that are shown at once; the others unfold
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
    residuals = residuals_of(content)
    p_normal = None if residuals is None else normality(residuals)
    parameters = summarise_winner(content)
    formulas = Formulas.of(content)
    rows = equation_rows(content, formulas)
    estimates = estimate_rows(content)
    fitted: Sequence[Mapping[str, Any]] = ()
    if parameters is None and content.winner in content.laws:
        fitted = dict(estimates)[key_of(content, str(content.winner))]
    script = _read_script() if content.winner in content.laws else ""
    numbers = _page_numbers(content, formulas, rows) if script else None
    # A script that is not this one is not run, whatever gets into the page.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # What is not used by all sections is None where there is nothing to show.
    return environment.get_template("report.html").render(
        title=content.title or f"The law behind {content.data.target}",
        content=content,
        script=Markup(script),
        script_digest=digest,
        numbers=None if numbers is None else Markup(to_json(numbers)),
        has_evidence=has_evidence(content.table),
        prior=describe_prior(content.table),
        data_rows=data_rows(content),
        winner=describe_winner(content, formulas),
        rival=describe_rival(content, formulas),
        legend=legend_rows(content, formulas),
        outlook=outlook_rows(content, formulas),
        target=formulas.symbol(content.data.target),
        steps=next_steps(content),
        parameters=parameter_rows(parameters, content.parameter_units),
        estimates=estimates,
        fitted=fitted,
        by_group=by_group(content, parameters),
        doubts=[formulas.typeset(doubt) for doubt in find_doubts(content, parameters)],
        notes=[formulas.typeset(note) for note in content.search_notes],
        families=family_rows(content, formulas),
        rows=rows,
        n_rows=N_ROWS,
        pictures=draw_pictures(content, parameters, formulas),
        inclusion=inclusion_rows(content),
        noises=noise_rows(content, formulas),
        robustness=robustness_rows(content, formulas),
        credible=describe_credible(content),
        unweighed=describe_unweighed(content),
        suggestions=suggestion_rows(content),
        diagnostics=diagnostic_rows(content, parameters, p_normal),
        probability=f"{100 * content.level:g} %",
        paper=PAPER,
        software=SOFTWARE,
    )


def _read_script() -> str:
    """Return what makes the page answer, as it stands between its tags."""
    return (files("pmsr.report") / "templates" / "report.js").read_text(encoding="utf-8")


# Any: what JSON holds.
def _page_numbers(
    content: ReportContent, formulas: Formulas, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what the page's script works with."""
    data = content.data
    winner = str(content.winner)
    known = [str(name) for name in content.table.index if str(name) in content.laws]
    shares = content.table["probability"].astype(float).fillna(0.0)
    order = sorted(known, key=lambda name: (name != winner, -float(shares[name])))
    encoded = encode_laws(content.laws, data, order=order, noise=content.noise, level=content.level)
    laws = encoded.pop("laws")
    measure = "score" if has_evidence(content.table) else "rmse"
    about, front = {}, []
    for row in [one for face in rows for one in (face, *face["members"])]:
        name, key = row["key"], str(row["rank"])
        if name not in content.laws:
            continue
        text = formulas.plain(content.equations[name].text)
        facts = [f"rank {row['rank']}"]
        if measure == "score":
            facts += [f"probability {row['probability']}", f"score {row['score']}"]
        facts += [
            f"RMSE {row['rmse']}",
            f"{row['complexity']} node{'' if row['complexity'] == 1 else 's'}",
        ]
        about[key] = {"title": _cut(f"{key}: {row['name'] or text}", 70), "facts": ", ".join(facts)}
        value = float(content.table.loc[name, measure])
        if math.isfinite(value):
            front.append({"key": key, "size": row["complexity"], "value": value, "text": text})
    name = f"residual of {data.target}"
    columns = [
        {
            "name": one,
            "label": _with_unit(one, content.units),
            "low": float(data.X[:, k].min()),
            "high": float(data.X[:, k].max()),
            "isKnown": one in data.constants,
            "middle": _middle(data.X[:, k]),
            "isLog": spans_decades(data.X[:, k]),
        }
        for k, one in enumerate(data.names)
    ]
    beside = unit_beside(data.target, content.units)
    return encoded | {
        "laws": {key_of(content, name): law for name, law in laws.items()},
        "winner": key_of(content, winner),
        "about": dict(sorted(about.items(), key=lambda one: int(one[0]))),
        "front": front,
        "measure": measure,
        "columns": columns,
        "target": {
            "name": data.target,
            "label": _with_unit(data.target, content.units),
            "unitText": f" {beside}" if beside else "",
            "isLog": spans_decades(data.y),
        },
        "rounding": ROUNDING,
        "levelText": f"{100 * content.level:g} %",
        "groups": content.labels,
        "residualName": name if content.residuals is None else f"{name} / its noise",
    }


def _middle(values: NDArray[np.float64]) -> float:
    """Return a number to start from: the median, in few digits."""
    middle = float(np.median(values))
    is_zero = abs(middle) < ROUNDING * np.max(np.abs(values))
    return 0.0 if is_zero else float(f"{middle:.6g}")


def _with_unit(name: str, units: Mapping[str, str]) -> str:
    unit = unit_beside(name, units)
    return f"{name} [{unit}]" if unit else name


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}\N{HORIZONTAL ELLIPSIS}"
