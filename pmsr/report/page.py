"""The report: one HTML page with everything a colleague needs to judge a result."""

import base64
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from numpy.typing import NDArray

from pmsr import __version__
from pmsr.equation.expression import Equation
from pmsr.equation.grammar import quoted, without_quotes
from pmsr.equation.mathml import name_to_mathml, to_mathml_lines
from pmsr.equation.notation import latex_estimate, percent, plus_minus, typeset
from pmsr.equation.symbols import short_symbols
from pmsr.evidence.diagnostics import normality, summarise_parameters
from pmsr.files import write_file
from pmsr.laws.units import unit_beside, unit_html, unit_latex
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
from pmsr.plots.predictions import draw_fit, draw_quantiles, draw_residuals
from pmsr.report.content import ReportContent
from pmsr.report.explorer import encode_laws, to_json
from pmsr.result.doubts import doubt_failures, doubt_sampling

Floats = NDArray[np.float64]

_QUOTED = re.compile(r"('[^'\n]+')")  # an equation within a sentence
_WORD = re.compile(r"(?:`(?:[^`]|``)+`|[^\s`])+")  # where names in backquotes are one
N_ROWS = 25  # equations that are shown at once; the others unfold
ROUNDING = 1e-12  # of numbers beside it: what is smaller is zero
N_FAMILIES = 6  # in the picture
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
    formulas = Formulas.of(content)
    rows = _equation_rows(content, formulas)
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
        has_evidence=_has_evidence(content.table),
        prior=_describe_prior(content.table),
        data_rows=_data_rows(content),
        winner=_describe_winner(content, formulas),
        rival=_describe_rival(content, formulas),
        legend=_legend_rows(content, formulas),
        outlook=_outlook_rows(content, formulas),
        target=formulas.symbol(content.data.target),
        steps=_next_steps(content),
        parameters=_parameter_rows(parameters, content.parameter_units),
        estimates=_estimate_rows(content),
        doubts=[formulas.typeset(doubt) for doubt in _doubts(content, parameters)],
        notes=[formulas.typeset(note) for note in content.search_notes],
        families=_family_rows(content, formulas),
        rows=rows,
        n_rows=N_ROWS,
        pictures=_draw(content, parameters, formulas),
        inclusion=_inclusion_rows(content),
        robustness=_robustness_rows(content, formulas),
        suggestions=_suggestion_rows(content),
        diagnostics=_diagnostic_rows(content, parameters, p_normal),
        probability=f"{100 * content.level:g} %",
        paper=PAPER,
        software=SOFTWARE,
    )


def _read_script() -> str:
    """Return what makes the page answer, as it stands between its tags."""
    return (files("pmsr.report") / "templates" / "report.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Formulas:
    """How formulas are typeset on the page: by short symbols of the columns' names."""

    names: tuple[str, ...]
    symbols: Mapping[str, str]
    texts: Mapping[str, Equation]

    @classmethod
    def of(cls, content: ReportContent) -> "Formulas":
        """Choose symbols that mean nothing else in any law of the page."""
        names = [*content.data.names, content.data.target]
        equations = content.equations.values()
        taken = {name for equation in equations for name in equation.parameters}
        unique = list(dict.fromkeys(names))
        texts = {equation.text: equation for equation in equations}
        return cls(content.data.names, short_symbols(unique, sorted(taken)), texts)

    def lines(self, equation: Equation, target: str | None = None) -> Markup:
        """Return an equation, between whose terms a line may be broken."""
        parts = to_mathml_lines(equation, target, symbols=self.symbols)
        return Markup(" ".join(parts))

    def symbol(self, name: str) -> Markup:
        """Return a column's symbol."""
        return Markup(f"<math>{name_to_mathml(self.symbols.get(name, name))}</math>")

    def plain(self, text: str) -> str:
        """Return the text of an equation by symbols, for places where no formula may stand."""
        for name in self.names:
            text = text.replace(quoted(name), self.symbols[name])
        return without_quotes(text)

    def typeset(self, text: str) -> Markup:
        """Return a sentence, in which quoted equations are formulas."""
        pieces = _QUOTED.split(text)
        shown = [escape(piece) for piece in pieces]
        for place, piece in enumerate(pieces):
            equation = self._read(piece[1:-1]) if place % 2 else None
            if equation is not None:
                shown[place] = self.lines(equation)
            elif "`" in piece:
                shown[place] = self._unquote(piece)
        return Markup("").join(shown)

    def _unquote(self, text: str) -> Markup:
        """Typeset what holds names in backquotes: as much as can be read as one formula."""
        words = [found for found in _WORD.finditer(text)]
        shown, place, done = Markup(""), 0, 0
        while place < len(words):
            start, best = words[place].start(), None
            for last in range(min(len(words), place + 16) - 1, place - 1, -1):
                piece = text[start : words[last].end()].rstrip(",.;:")
                if piece.count("`") < 2 or piece.count("(") != piece.count(")"):
                    continue
                with suppress(ValueError):
                    best = last, piece, Equation(piece, self.columns)
                    break
            if best is not None:
                last, piece, equation = best
                shown += escape(text[done:start]) + self.lines(equation)
                done, place = start + len(piece), last
            place += 1
        return shown + escape(text[done:])

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, that of the target among them."""
        return tuple(self.symbols)

    def _read(self, text: str) -> Equation | None:
        if text in self.texts:
            return self.texts[text]
        if text in self.names or not re.search(r"[-+*/^(`]|^[^\W\d_]+\d+$", text):
            return None
        try:
            return Equation(text, self.names)
        except ValueError:
            return None


def _has_evidence(table: pd.DataFrame) -> bool:
    return bool(np.isfinite(table["log_q"].astype(float)).any())


def _describe_prior(table: pd.DataFrame) -> str:
    """Say what was thought of the equations before the data were seen."""
    if table["log_prior"].isin([0.0, -math.inf]).all():
        return "here it is 0, all equations were equally probable beforehand."
    return "the shorter a law, and the less it depends on units, the more probable beforehand."


def _residuals(content: ReportContent) -> Floats | None:
    """Return what the winner leaves unexplained, where it has a size in units of its noise."""
    if content.residuals is not None or content.prediction is None:
        return content.residuals
    return content.data.y - content.prediction["map"].to_numpy(dtype=np.float64)


def _data_rows(content: ReportContent) -> list[tuple[str, str, str, str, str]]:
    """Name, role, unit, least and largest value of every column."""
    data = content.data
    columns = [(data.target, "target", data.y)]
    columns += [(name, "variable", data.X[:, k]) for k, name in enumerate(data.names)]
    return [
        (
            name,
            role,
            _unit(content.units.get(name, "")),
            short(v.min(), size=float(np.max(np.abs(v)))),
            short(v.max(), size=float(np.max(np.abs(v)))),
        )
        for name, role, v in columns
    ]


def _unit(text: str) -> Markup:
    return Markup(unit_html(text))


def _describe_winner(content: ReportContent, formulas: Formulas) -> dict[str, Any] | None:
    """Return the winner as the page shows it."""
    if content.winner is None:
        return None
    equation = content.equations[content.winner]
    # Any: pandas does not know what is in its cells.
    row: Any = content.table.loc[content.winner]
    best = content.table["score"].astype(float).max()
    return {
        "name": _own_name(content.winner, equation),
        "math": formulas.lines(equation, content.data.target),
        "text": without_quotes(equation.text),
        "latex": equation.latex(),
        "log_q": _log_q(row["log_q"], row["log_q_se"]),
        "probability": percent(row["probability"]),
        **_describe_family(content, content.winner),
        "coincidences": [
            formulas.typeset(one) for one in content.coincidences.get(content.winner, ())
        ],
        "rmse": short(row["rmse"]),
        "complexity": int(row["complexity"]),
        "is_best": bool(row["score"] >= best),
        "behind": short(best - row["score"], 2),
    }


def _describe_rival(content: ReportContent, formulas: Formulas) -> dict[str, Any] | None:
    """Return the most probable family beside that of the winner."""
    others = [one for one in _families(content) if content.winner not in one]
    shares = [_share(content, one) for one in others]
    if not others or not any(share > 0.0 for share in shares):
        return None
    place = int(np.nanargmax(shares))
    equation = content.equations[others[place][0]]
    return {"math": formulas.lines(equation), "probability": percent(shares[place])}


def _legend_rows(content: ReportContent, formulas: Formulas) -> list[tuple[Markup, str, Markup]]:
    """Symbol, name and unit of what stands in the winner, where these are not all the same."""
    if content.winner is None:
        return []
    symbols = content.equations[content.winner].expression.free_symbols
    used = {symbol.name for symbol in symbols}
    data = content.data
    return [
        (formulas.symbol(name), name, _unit(unit_beside(name, content.units)))
        for name in (data.target, *(one for one in data.names if one in used))
        if formulas.symbols[name] != name or unit_beside(name, content.units)
    ]


def _outlook_rows(content: ReportContent, formulas: Formulas) -> dict[str, Any] | None:
    """Symbols of the inputs, and rows of inputs with the prediction and its interval."""
    table = content.outlook
    if table is None:
        return None
    values = table.to_numpy(dtype=np.float64)
    rows = []
    for row in values:
        digits = digits_for(row[-2], row[-1])
        inputs = [short(value, 5) for value in row[:-3]]
        rows.append(
            [
                *inputs,
                short(row[-3], digits),
                f"{short(row[-2], digits)} to {short(row[-1], digits)}",
            ]
        )
    return {"names": [formulas.symbol(str(name)) for name in table.columns[:-3]], "rows": rows}


def digits_for(low: float, high: float) -> int:
    """Return how many digits show the width of an interval.

    Examples
    --------
    >>> digits_for(900.0, 1100.0), digits_for(1000.1, 1000.2)
    (4, 8)
    """
    size, width = max(abs(low), abs(high)), high - low
    if not (width > 0.0 and math.isfinite(size)):
        return 4
    return min(10, max(4, math.ceil(math.log10(size / width)) + 3))


def _next_steps(content: ReportContent) -> dict[str, Any]:
    """Return what to do next: where to measure, the commands, what was not tried."""
    place = ""
    if content.suggestions is not None and len(content.suggestions):
        first = content.suggestions.iloc[0]
        place = ", ".join(
            f"{name} = {short(float(first.iloc[k]), 5)}"
            for k, name in enumerate(content.data.names)
        )
    commands = []
    if content.folder:
        commands.append((f"pmsr predict {content.folder} new.csv", "predictions for other inputs"))
        if content.history is not None:
            commands.append((f"pmsr resume {content.folder} --time 10m", "search ten minutes more"))
    elif content.history is not None:
        commands.append(("model.predict_interval(X_new)", "predictions for other inputs"))
        commands.append(("model.set_params(warm_start=True).fit(X, y)", "search on"))
    else:
        commands.append(("result.predict_table(X_new)", "predictions for other inputs"))
    return {
        "place": place,
        "commands": commands,
        "untried": " ".join(content.untried),
        "time": "" if content.seconds is None else _duration(content.seconds),
    }


def _duration(seconds: float) -> str:
    """Write a time as people say it.

    Examples
    --------
    >>> _duration(3.2), _duration(95.0), _duration(7300.0)
    ('3.2 s', '95 s', '2.0 h')
    """
    if seconds < 100.0:
        return f"{seconds:.2g} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 6000.0 else f"{seconds / 3600.0:.1f} h"


def _families(content: ReportContent) -> list[list[str]]:
    """Return all equations of the table in families; what is in none is one of its own."""
    families = [list(family) for family in content.families]
    known = {name for family in families for name in family}
    return families + [[str(name)] for name in content.table.index if name not in known]


def _share(content: ReportContent, family: Sequence[str]) -> float:
    """Return the probability of a family; NaN without evidence."""
    return float(content.table.loc[list(family), "probability"].astype(float).sum(skipna=False))


def _family_rows(content: ReportContent, formulas: Formulas) -> list[dict[str, Any]]:
    """Key of the face, formula, number of laws and probability of the leading families."""
    rows = []
    families = [(family, _share(content, family)) for family in _families(content)]
    for family, share in sorted(families, key=lambda one: -np.nan_to_num(one[1])):
        if share > 0.0:
            rows.append(
                {
                    "key": _key(content, family[0]),
                    "math": formulas.lines(content.equations[family[0]]),
                    "n_like": len(family) - 1,
                    "probability": percent(share),
                    "width": f"{100.0 * share:.2f}",
                }
            )
    return rows[:N_FAMILIES]


def _key(content: ReportContent, name: str) -> str:
    """Return by what the page's script knows a law: its rank."""
    return str(list(content.table.index).index(name) + 1)


def _describe_family(content: ReportContent, name: str) -> dict[str, Any]:
    """Return how many laws are like this one, and the probability of all of them."""
    family = next(one for one in _families(content) if name in one)
    return {"n_like": len(family) - 1, "family_probability": percent(_share(content, family))}


def _own_name(name: str, equation: Equation) -> str:
    """Return the name of an equation, or nothing if it is just the equation."""
    return "" if without_quotes(name) in (without_quotes(equation.text), str(equation)) else name


def _parameter_rows(
    parameters: pd.DataFrame | None, units: Mapping[str, str]
) -> list[dict[str, Any]] | None:
    if parameters is None:
        return None
    return [
        _parameter_row(str(name), row, units.get(str(name), ""))
        for name, row in parameters.to_dict("index").items()
    ]


# Any: pandas does not know what is in its cells.
def _parameter_row(name: str, row: Mapping[Any, Any], unit: str) -> dict[str, Any]:
    estimate = plus_minus(row["mean"], row["sd"])
    # What is smaller than this is zero, but for rounding errors.
    size = max(abs(row["low"]), abs(row["high"]), abs(row["sd"]))
    return {
        "math": Markup(f"<math>{name_to_mathml(name)}</math>"),
        "name": name,
        "unit": _unit(unit),
        "latex": latex_estimate(name, estimate, unit_latex(unit)),
        "estimate": "held" if row.get("held") else typeset(estimate),
        "low": short(row["low"], size=size),
        "high": short(row["high"], size=size),
        "map": short(row["map"], size=size),
    }


def _estimate_rows(content: ReportContent) -> list[tuple[str, list[dict[str, Any]]]]:
    """Key and parameters of every law that the page can show."""
    found = []
    for name, law in content.laws.items():
        if law.estimates is None:
            names = content.equations[name].parameters
            rows = [
                {
                    "math": Markup(f"<math>{name_to_mathml(one)}</math>"),
                    "name": one,
                    "estimate": short(float(value)),
                    "span": "",
                    "unit": "",
                }
                for one, value in zip(names, law.theta, strict=True)
            ]
        else:
            rows = []
            for one, row in law.estimates.to_dict("index").items():
                written = _parameter_row(
                    str(one), {**row, "map": row["best_fit"]}, row.get("unit", "")
                )
                written["span"] = f"{written['low']} to {written['high']}"
                rows.append(written)
        found.append((_key(content, name), rows))
    return found


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


def _equation_rows(content: ReportContent, formulas: Formulas) -> list[dict[str, Any]]:
    """Return the faces of the families as text, each with the other members beneath."""
    texts = {row["key"]: row for row in _text_rows(content, formulas)}
    rows = []
    for face, *others in _families(content):
        members = [texts[name] for name in others]
        has_winner = any(member["is_winner"] for member in members)
        rows.append({**texts[face], "members": members, "has_winner": has_winner})
    return rows


def _text_rows(content: ReportContent, formulas: Formulas) -> list[dict[str, Any]]:
    """Return the ranked table as text."""
    rows = []
    for place, (name, row) in enumerate(content.table.to_dict("index").items(), start=1):
        equation = content.equations[str(name)]
        failure = row["failure"]
        rows.append(
            {
                "key": str(name),
                "coincidences": [
                    formulas.typeset(one) for one in content.coincidences.get(str(name), ())
                ],
                "rank": place,
                **_describe_family(content, str(name)),
                "name": _own_name(str(name), equation),
                "math": formulas.lines(equation),
                "is_winner": name == content.winner,
                "failure": failure if isinstance(failure, str) else None,
                "log_q": _log_q(row["log_q"], row["log_q_se"]),
                "score": _log_q(row["score"]),
                "probability": percent(row["probability"]),
                "bayes_factor": short(row["bayes_factor"], 3),
                "parameters": row["parameters"],
                "complexity": row["complexity"],
                "rmse": short(row["rmse"]),
                "prior_sensitivity": short(row["prior_sensitivity"], 2, size=1e6),
            }
        )
    return rows


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
    measure = "score" if _has_evidence(content.table) else "rmse"
    about, front = {}, []
    for row in [one for face in rows for one in (face, *face["members"])]:
        name, key = row["key"], str(row["rank"])
        if name not in content.laws:
            continue
        text = formulas.plain(content.equations[name].text)
        facts = [f"rank {row['rank']}"]
        if measure == "score":
            facts += [f"probability {row['probability']}", f"score {row['score']}"]
        facts += [f"RMSE {row['rmse']}", f"{row['complexity']} nodes"]
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
            "middle": float(f"{np.median(data.X[:, k]):.6g}"),
        }
        for k, one in enumerate(data.names)
    ]
    beside = unit_beside(data.target, content.units)
    return encoded | {
        "laws": {_key(content, name): law for name, law in laws.items()},
        "winner": _key(content, winner),
        "about": dict(sorted(about.items(), key=lambda one: int(one[0]))),
        "front": front,
        "measure": measure,
        "columns": columns,
        "target": {
            "name": data.target,
            "label": _with_unit(data.target, content.units),
            "unitText": f" {beside}" if beside else "",
        },
        "levelText": f"{100 * content.level:g} %",
        "residualName": name if content.residuals is None else f"{name} / its noise",
    }


def _with_unit(name: str, units: Mapping[str, str]) -> str:
    unit = unit_beside(name, units)
    return f"{name} [{unit}]" if unit else name


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}\N{HORIZONTAL ELLIPSIS}"


def _inclusion_rows(content: ReportContent) -> list[tuple[str, str, str]] | None:
    """Name, kind and probability of what may be part of the law."""
    if content.inclusion is None:
        return None
    table = content.inclusion
    rows = zip(table.index, table["kind"], table["probability"], strict=True)
    return [(str(name), str(kind), percent(float(share))) for name, kind, share in rows]


def _robustness_rows(
    content: ReportContent, formulas: Formulas
) -> list[tuple[str, Markup, str, str]] | None:
    """Prior, winner, its probability, and that of what was reported, with its family."""
    if content.robustness is None:
        return None
    return [
        (
            str(prior),
            formulas.typeset(f"'{row['winner']}'"),
            percent(float(row["probability"])),
            percent(float(row["of_family"])),
        )
        for prior, row in content.robustness.iterrows()
    ]


def _suggestion_rows(content: ReportContent) -> list[list[str]] | None:
    """Where to measure, and what it is expected to tell."""
    if content.suggestions is None:
        return None
    sizes = [*np.max(np.abs(content.data.X), axis=0), 1.0, *2 * [float(np.ptp(content.data.y))]]
    return [
        [
            short(float(value), 4 if place < len(row) - 3 else 2, size=float(sizes[place]))
            for place, value in enumerate(row)
        ]
        for row in content.suggestions.itertuples(index=False, name=None)
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
                f"{short(row['prior_sensitivity'], 2, size=1e6)} nats",
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


def _draw(
    content: ReportContent, parameters: pd.DataFrame | None, formulas: Formulas
) -> dict[str, Picture]:
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
    if (content.table["probability"].astype(float) > 0.0).any():
        families = [
            (formulas.plain(content.equations[one[0]].text), _share(content, one), len(one))
            for one in _families(content)
        ]
        table = pd.DataFrame(families, columns=["equation", "probability", "laws"])
        pictures["families"] = _picture(
            plot_families(table.sort_values("probability", ascending=False, kind="stable")),
            "Probabilities of the families of laws",
            "How probable the families are, each named by its best law.",
        )
    if content.suggestions is not None and content.rivals is not None:
        names = content.data.names
        is_line = len(names) == 1
        places = content.suggestions[names[0]] if is_line else content.rivals.index
        pictures["suggest"] = _picture(
            plot_suggestion(
                content.rivals.rename(columns=formulas.plain),
                np.asarray(places),
                content.data,
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
    residuals = _residuals(content)
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


def short(number: float, digits: int = 4, *, size: float = 0.0) -> str:
    """Write a number with few digits; a dash for what is not known.

    Parameters
    ----------
    number, digits
        The number, and how many digits.
    size
        That of the numbers beside it: what is smaller by twelve orders of magnitude is zero, but
        for rounding errors.

    Examples
    --------
    >>> short(13.00061), short(-0.25, 2), short(2.5e9), short(float("nan"))
    ('13', '−0.25', '2.5 × 10⁹', '–')
    >>> short(-1.4e-13, size=10.0)
    '0'
    """
    if math.isfinite(size) and abs(number) < ROUNDING * size:
        return "0"
    return typeset(f"{number:.{digits}g}")


def _log_q(value: float, error: float = 0.0) -> str:
    """Write a logarithm to a hundredth of a nat, which is more than it can be trusted."""
    if not math.isfinite(value):
        return short(value)
    return typeset(f"{value:.2f} ± {max(error, 0.01):.2f}" if error > 0.0 else f"{value:.2f}")
