"""The tables of the page: what is shown, as text."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from pmsr.equation.expression import Equation
from pmsr.equation.grammar import without_quotes
from pmsr.equation.notation import percent, typeset
from pmsr.evidence.noise import find_noise
from pmsr.laws.units import unit_beside, unit_html
from pmsr.report.content import ReportContent
from pmsr.report.digits import ROUNDING, digits_for, short, write_duration, write_log_q
from pmsr.report.formulas import Formulas
from pmsr.result.doubts import doubt_failures, doubt_sampling

N_FAMILIES = 6  # in the picture
ROUNDING_OF_SHARES = 1e-9  # of sums of probabilities
LEAST_SHOWN = 5e-4  # of a probability: what is less is not seen in a table


def has_evidence(table: pd.DataFrame) -> bool:
    """Return whether any equation has been weighed."""
    return bool(np.isfinite(table["log_q"].astype(float)).any())


def describe_prior(table: pd.DataFrame) -> str:
    """Say what was thought of the equations before the data were seen."""
    if table["log_prior"].isin([0.0, -math.inf]).all():
        return "here it is 0, all equations were equally probable beforehand."
    return "the shorter a law, and the less it depends on units, the more probable beforehand."


def data_rows(content: ReportContent) -> list[tuple[str, str, str, str, str]]:
    """Name, role, unit, least and largest value of every column."""
    data = content.data
    columns = [(data.target, "target", data.y)]
    columns += [
        (name, "known constant" if name in data.constants else "variable", data.X[:, k])
        for k, name in enumerate(data.names)
    ]
    return [
        (
            name,
            role,
            typeset_unit(content.units.get(name, "")),
            short(v.min(), size=float(np.max(np.abs(v)))),
            short(v.max(), size=float(np.max(np.abs(v)))),
        )
        for name, role, v in columns
    ]


def typeset_unit(text: str) -> Markup:
    """Return a unit with its powers raised."""
    return Markup(unit_html(text))


def describe_winner(content: ReportContent, formulas: Formulas) -> dict[str, Any] | None:
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
        "log_q": write_log_q(row["log_q"], row["log_q_se"]),
        "probability": percent(row["probability"]),
        **_describe_family(content, content.winner),
        "coincidences": [
            formulas.phrase(one) for one in content.coincidences.get(content.winner, ())
        ],
        "rmse": short(row["rmse"]),
        "complexity": int(row["complexity"]),
        "is_best": bool(row["score"] >= best),
        "behind": short(best - row["score"], 2),
    }


def describe_rival(content: ReportContent, formulas: Formulas) -> dict[str, Any] | None:
    """Return the most probable family beside that of the winner."""
    others = [one for one in find_families(content) if content.winner not in one]
    shares = [share_of(content, one) for one in others]
    if not others or not any(share > 0.0 for share in shares):
        return None
    place = int(np.nanargmax(shares))
    equation = content.equations[others[place][0]]
    own = sum(share_of(content, one) for one in find_families(content) if content.winner in one)
    return {
        "math": formulas.lines(equation),
        "probability": percent(shares[place]),
        "is_ahead": shares[place] > own,
    }


def legend_rows(content: ReportContent, formulas: Formulas) -> list[tuple[Markup, str, Markup]]:
    """Symbol, name and unit of what stands in the winner, where these are not all the same."""
    if content.winner is None:
        return []
    symbols = content.equations[content.winner].expression.free_symbols
    used = {symbol.name for symbol in symbols}
    data = content.data
    rows = [
        (formulas.symbol(name), name, typeset_unit(unit_beside(name, content.units)))
        for name in (data.target, *(one for one in data.measured if one in used))
        if formulas.symbols[name] != name or unit_beside(name, content.units)
    ]
    known = [(name, typeset(words)) for name, words in content.known.items() if name in used]
    return rows + [(formulas.symbol(name), f"{words}, known", Markup()) for name, words in known]


def outlook_rows(content: ReportContent, formulas: Formulas) -> dict[str, Any] | None:
    """Symbols of the inputs, and rows of inputs with the prediction and its interval."""
    table = content.outlook
    if table is None:
        return None
    used = list(table.columns[bool(content.labels) : -3])
    rows = []
    sizes = [np.abs(content.data.X[:, k]).max() for k in map(content.data.names.index, used)]
    for row in table.itertuples(index=False, name=None):
        mean, low, high = map(float, row[-3:])
        digits, size = digits_for(low, high), max(abs(low), abs(high))
        inputs = [
            short(float(one), 5, size=float(own))
            for one, own in zip(row[len(row) - 3 - len(used) : -3], sizes, strict=True)
        ]
        ends = f"{short(low, digits, size=size)} to {short(high, digits, size=size)}"
        group = row[:1] if content.labels else ()
        rows.append([*group, *inputs, short(mean, digits, size=size), ends])
    names: list[str | Markup] = [formulas.symbol(str(name)) for name in used]
    if content.labels:
        names.insert(0, "group")
    return {"names": names, "rows": rows}


def next_steps(content: ReportContent) -> dict[str, Any]:
    """Return what to do next: where to measure, the commands, what was not tried."""
    place = ""
    if content.suggestions is not None and len(content.suggestions):
        first = content.suggestions.iloc[0]
        if first.iloc[-3] > ROUNDING:  # nats, of which there are none where all is known
            place = ", ".join(
                f"{name} = {short(float(first.iloc[k]), 5)}"
                for k, name in enumerate(content.data.measured)
            )
    commands = []
    if content.folder:
        commands.append((f"pmsr predict {content.folder} new.csv", "predictions for other inputs"))
        if content.n_candidates is not None:
            commands.append((f"pmsr resume {content.folder} --time 10m", "search ten minutes more"))
    elif content.n_candidates is not None:
        commands.append(("model.predict_interval(X_new)", "predictions for other inputs"))
        commands.append(("model.set_params(warm_start=True).fit(X, y)", "search on"))
    else:
        commands.append(("result.predict_table(X_new)", "predictions for other inputs"))
    return {
        "place": place,
        "commands": commands,
        "untried": " ".join(content.untried),
        "time": "" if content.seconds is None else write_duration(content.seconds),
    }


def find_families(content: ReportContent) -> list[list[str]]:
    """Return all equations of the table in families; what is in none is one of its own."""
    families = [list(family) for family in content.families]
    known = {name for family in families for name in family}
    return families + [[str(name)] for name in content.table.index if name not in known]


def share_of(content: ReportContent, family: Sequence[str]) -> float:
    """Return the probability of a family; NaN without evidence."""
    return float(content.table.loc[list(family), "probability"].astype(float).sum(skipna=False))


def family_rows(content: ReportContent, formulas: Formulas) -> list[dict[str, Any]]:
    """Key of the face, formula, number of laws and probability of the leading families."""
    rows = []
    families = [(family, share_of(content, family)) for family in find_families(content)]
    for family, share in sorted(families, key=lambda one: -np.nan_to_num(one[1])):
        if share > 0.0:
            rows.append(
                {
                    "key": key_of(content, family[0]),
                    "math": formulas.lines(content.equations[family[0]]),
                    "n_like": len(family) - 1,
                    "probability": percent(share),
                    "width": f"{100.0 * share:.2f}",
                }
            )
    return rows[:N_FAMILIES]


def key_of(content: ReportContent, name: str) -> str:
    """Return by what the page's script knows a law: its rank."""
    return str(list(content.table.index).index(name) + 1)


def _describe_family(content: ReportContent, name: str) -> dict[str, Any]:
    """Return how many laws are like this one, and the probability of all of them."""
    family = next(one for one in find_families(content) if name in one)
    return {"n_like": len(family) - 1, "family_probability": percent(share_of(content, family))}


def _own_name(name: str, equation: Equation) -> str:
    """Return the name of an equation, or nothing if it is just the equation."""
    return "" if without_quotes(name) in (without_quotes(equation.text), str(equation)) else name


def find_doubts(content: ReportContent, parameters: pd.DataFrame | None) -> list[str]:
    """Return all reasons to doubt the result, in words."""
    if content.winner is None:
        return ["No equation could be weighed. The table says why.", *content.warnings]
    doubts = list(content.warnings)
    if not has_evidence(content.table):
        doubts.append(
            "The winner has no evidence: it was chosen by its error alone, with no penalty."
        )
    if parameters is not None:
        doubts += doubt_sampling(parameters)
    return doubts + doubt_failures(content.n_failed, content.n_candidates)


def equation_rows(content: ReportContent, formulas: Formulas) -> list[dict[str, Any]]:
    """Return the faces of the families as text, each with the other members beneath."""
    texts = {row["key"]: row for row in _text_rows(content, formulas)}
    rows = []
    for face, *others in find_families(content):
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
                    formulas.phrase(one) for one in content.coincidences.get(str(name), ())
                ],
                "rank": place,
                **_describe_family(content, str(name)),
                "name": _own_name(str(name), equation),
                "math": formulas.lines(equation),
                "is_winner": name == content.winner,
                "failure": failure if isinstance(failure, str) else None,
                "log_q": write_log_q(row["log_q"], row["log_q_se"]),
                "score": write_log_q(row["score"]),
                "probability": percent(row["probability"]),
                "bayes_factor": short(row["bayes_factor"], 3),
                "parameters": row["parameters"],
                "complexity": row["complexity"],
                "rmse": short(row["rmse"]),
                "prior_sensitivity": short(row["prior_sensitivity"], 2, size=1e6),
            }
        )
    return rows


def inclusion_rows(content: ReportContent) -> list[tuple[str, str, str]] | None:
    """Name, kind and probability of what may be part of the law."""
    if content.inclusion is None:
        return None
    table = content.inclusion
    rows = zip(table.index, table["kind"], table["probability"], strict=True)
    return [(str(name), str(kind), percent(float(share))) for name, kind, share in rows]


def noise_rows(
    content: ReportContent, formulas: Formulas
) -> list[tuple[str, Markup, str, str, str]] | None:
    """Noise in words, its best law, log q, score and nats behind the best; None if not chosen."""
    table = content.noise_table
    if table is None or table.empty:
        return None
    best = float(table["score"].astype(float).max())
    return [
        (
            find_noise(str(row["noise"])).words,
            formulas.law(str(row["equation"])),
            write_log_q(float(row["log_q"])),
            write_log_q(float(row["score"])),
            write_log_q(float(row["score"]) - best),
        )
        for row in table.to_dict("records")
    ]


def describe_credible(content: ReportContent) -> str:
    """Say how many laws hold the level of the probability, or that those weighed do not."""
    if content.n_credible is None:
        return ""
    n, level = content.n_credible, f"{100 * content.level:g} %"
    held = float(_shares(content).nlargest(n).sum())
    if held >= content.level - ROUNDING_OF_SHARES:
        return f"{n} {'law holds' if n == 1 else 'laws hold'} {level} of the probability"
    some = "The law that was weighed holds" if n == 1 else f"The {n} laws that were weighed hold"
    return f"{some} {percent(held)} of the probability, less than {level}"


def describe_unweighed(content: ReportContent) -> str:
    """Return the probability of the laws that were only screened; nothing if there are none."""
    left = 1.0 - float(_shares(content).sum())
    return percent(left) if left >= LEAST_SHOWN else ""


def _shares(content: ReportContent) -> pd.Series:
    return content.table["probability"].astype(float).fillna(0.0)


def robustness_rows(
    content: ReportContent, formulas: Formulas
) -> list[tuple[str, Markup, str, str]] | None:
    """Prior, winner, its probability, and that of what was reported, with its family."""
    if content.robustness is None:
        return None
    return [
        (
            str(prior),
            formulas.law(str(row["winner"])),
            percent(float(row["probability"])),
            percent(float(row["of_family"])),
        )
        for prior, row in content.robustness.iterrows()
    ]


def suggestion_rows(content: ReportContent) -> list[list[str]] | None:
    """Where to measure, and what it is expected to tell."""
    if content.suggestions is None:
        return None
    X = content.data.select(content.data.measured).X
    sizes = [*np.max(np.abs(X), axis=0), 1.0, *2 * [float(np.ptp(content.data.y))]]
    return [
        [
            short(float(value), 4 if place < len(row) - 3 else 2, size=float(sizes[place]))
            for place, value in enumerate(row)
        ]
        for row in content.suggestions.itertuples(index=False, name=None)
    ]


def diagnostic_rows(
    content: ReportContent, parameters: pd.DataFrame | None, p_normal: float | None
) -> list[tuple[str, str, str]]:
    """Name, value and meaning of the numbers that tell how far to trust the result."""
    rows = []
    if content.winner is not None and has_evidence(content.table):
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
    if parameters is not None and len(parameters):
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
