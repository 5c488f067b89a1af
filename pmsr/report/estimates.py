"""The parameters on the page: of the law that is put forward, of all laws, of each group."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from pmsr.equation.mathml import name_to_mathml
from pmsr.equation.notation import latex_estimate, plus_minus, typeset
from pmsr.evidence.diagnostics import summarise_parameters
from pmsr.laws.units import unit_latex
from pmsr.report.content import ReportContent
from pmsr.report.digits import short
from pmsr.report.rows import key_of, typeset_unit


def summarise_winner(content: ReportContent) -> pd.DataFrame | None:
    """Return estimates of the winner's parameters, those of all groups one after the other."""
    if not content.posteriors:
        if content.posterior is None:
            return None
        return summarise_parameters(content.posterior, level=content.level)
    tables = []
    for label, posterior in content.posteriors.items():
        table = summarise_parameters(posterior, level=content.level)
        table.insert(0, "group", label)
        tables.append(table)
    return pd.concat(tables)


def parameter_rows(
    parameters: pd.DataFrame | None, units: Mapping[str, str]
) -> list[dict[str, Any]] | None:
    """Return the parameters of the winner as text; None if they are not known."""
    if parameters is None:
        return None
    return [
        _parameter_row(str(name), row, units.get(str(name), ""))
        for name, row in zip(parameters.index, parameters.to_dict("records"), strict=True)
    ]


def by_group(content: ReportContent, parameters: pd.DataFrame | None) -> dict[str, Any] | None:
    """Return the parameters as a table with a row for each group."""
    if parameters is None or not content.labels:
        return None
    names = list(dict.fromkeys(map(str, parameters.index)))
    rows = []
    for label in content.labels:
        own = parameters[parameters["group"] == label]
        known = own[["mean", "sd"]].to_numpy(dtype=np.float64)
        cells = [typeset(plus_minus(float(mean), float(sd))) for mean, sd in known]
        rows.append((label, cells))
    heads = [
        (
            Markup(f"<math>{name_to_mathml(n)}</math>"),
            typeset_unit(content.parameter_units.get(n, "")),
        )
        for n in names
    ]
    return {"heads": heads, "rows": rows}


# Any: pandas does not know what is in its cells.
def _parameter_row(name: str, row: Mapping[Any, Any], unit: str) -> dict[str, Any]:
    estimate = plus_minus(row["mean"], row["sd"])
    # What is smaller than this is zero, but for rounding errors.
    size = max(abs(row["low"]), abs(row["high"]), abs(row["sd"]))
    return {
        "math": Markup(f"<math>{name_to_mathml(name)}</math>"),
        "name": name,
        "group": row.get("group"),
        "unit": typeset_unit(unit),
        "latex": latex_estimate(name, estimate, unit_latex(unit)),
        "estimate": "held" if row.get("held") else typeset(estimate),
        "low": short(row["low"], size=size),
        "high": short(row["high"], size=size),
        "map": short(row["map"], size=size),
    }


def estimate_rows(content: ReportContent) -> list[tuple[str, list[dict[str, Any]]]]:
    """Key and parameters of every law that the page can show."""
    found = []
    for name, law in content.laws.items():
        if law.estimates is None:
            names = content.equations[name].parameters
            labels: Sequence[str | None] = content.labels or [None]
            rows = [
                {
                    "math": Markup(f"<math>{name_to_mathml(one)}</math>"),
                    "name": one,
                    "group": label,
                    "estimate": short(float(value)),
                    "span": "",
                    "unit": "",
                }
                for label, part in zip(labels, law.parts, strict=True)
                for one, value in zip(names, part.theta, strict=True)
            ]
        else:
            rows = []
            for one, row in law.estimates.to_dict("index").items():
                group, own = one if isinstance(one, tuple) else (None, one)
                cells = {**row, "map": row["best_fit"], "group": group}
                written = _parameter_row(str(own), cells, row.get("unit", ""))
                written["span"] = f"{written['low']} to {written['high']}"
                rows.append(written)
        found.append((key_of(content, name), rows))
    return found
