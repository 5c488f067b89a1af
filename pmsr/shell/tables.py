"""A result in a terminal, and as JSON for machines."""

import json
import math
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pmsr.equation.notation import percent, plus_minus
from pmsr.result.result import Result

N_SHOWN = 10  # equations in the table
EQUATION_WIDTH = 24  # signs of an equation for which numbers make room
UNSETTLED = "prob. (not settled)"


def program() -> str:
    """Return how this command can be called again: by its path where its name is not enough."""
    called = sys.argv[0]
    is_known = Path(called).name != "pmsr" or shutil.which("pmsr") is not None
    return "pmsr" if is_known else shlex.quote(called)


def describe(result: Result, path: Path | None, report: Path | None) -> dict[str, Any]:
    """Return a result for machines."""
    best = result.best
    estimates = {}
    if best.evidence.failure is None:
        with suppress(ValueError):  # weighed, but not sampled; a doubt says so
            table = best.estimates()
            rows = zip(table.index, table.to_dict("records"), strict=True)
            estimates = {_name(name): row for name, row in rows}
    return {
        "target": result.data.target,
        "variables": result.data.names,
        "observations": len(result.data.y),
        "equation": str(best.equation),
        "latex": best.latex(),
        "units": result.units.by_name if result.units and result.units.are_known else None,
        "estimates": estimates,
        "probability": float(result.probabilities[result.chosen]),
        "equations": result.table.to_dict("records"),
        "families": [
            {
                "face": str(family.face.equation),
                "probability": family.probability,
                "members": list(family.places),
            }
            for family in result.families
        ],
        "unweighed_share": result.unweighed_share,
        "coverage": asdict(result.coverage),
        "coincidences": best.coincidences,
        "chosen": result.chosen,
        "warnings": result.warnings,
        "noise": result.problem.noise.name,
        "noise_table": _noise_rows(result),
        "stopped": result.stopped,
        "candidates": result.n_candidates,
        "failed": result.n_failed,
        "seed": result.random_seed,
        "out": None if path is None else str(path),
        "report": None if report is None else str(report),
    }


def to_json(value: object) -> str:
    """Write JSON that every machine reads: what is no number becomes null."""
    return json.dumps(_without_nan(value), indent=1, ensure_ascii=False, allow_nan=False)


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_result(console: Console, result: Result, path: Path | None, report: Path | None) -> None:
    """Show the ranked table, the winner with its parameters, doubts, and what to do next."""
    best = result.best
    n = len(result.data.y)
    title = f"{n} observations of {result.data.target}"
    if result.search is not None:
        title += f", {result.n_candidates} equations met"
    console.print(_to_rich(result, title, console.width))
    notes = []
    if np.isfinite(result.table["log_q"]).any():
        notes.append(
            "score = log q + log prior. Laws that the data cannot tell apart are one family, with "
            "one probability; its best law is shown."
        )
    n_hidden = len(result) - len(_shown_places(result))
    if n_hidden:
        verb = "is" if n_hidden == 1 else "are"
        notes.append(f"{n_hidden} more {verb} in the report and in equations.csv.")
    notes += result.search_notes
    console.print(" ".join(notes), style="italic", highlight=False)
    noises = _noise_rows(result)
    if noises:
        console.print()
        console.print(_to_noises(noises))
    if best.evidence.failure is not None:
        console.print(f"\nNo equation could be weighed: {escape(best.evidence.failure)}.")
        return
    console.print(f"\n[bold]{escape(f'{best.target} = {best.equation}')}[/bold]", soft_wrap=True)
    if np.isfinite(best.evidence.log_q):
        console.print(f"    {_probability_in_words(result)}", soft_wrap=True, highlight=False)
    try:
        table = best.estimates()
        units = best.parameter_units
        what = "relative noise" if best.problem.noise.is_relative else "noise"
        for name, mean, sd in zip(table.index, table["mean"], table["sd"], strict=True):
            parameter = name[1] if isinstance(name, tuple) else name
            unit = units.get(parameter, "")
            text = f"{_name(name)} = {plus_minus(mean, sd)} {unit}".rstrip()
            meaning = f"  ({what} in {best.target})" if parameter == "sigma" else ""
            console.print(escape(f"    {text}{meaning}"), soft_wrap=True)
    except ValueError:  # weighed, but not sampled; a doubt says so
        pass
    for phrase in best.coincidences:
        lines = wrap(f"It {phrase}.", console.width - 4, break_on_hyphens=False)
        console.print("    " + "\n    ".join(map(escape, lines)), soft_wrap=True, highlight=False)
    doubts = result.warnings
    if doubts:
        console.print("\nBefore you trust it:")
        for doubt in doubts:
            lines = wrap(doubt, console.width - 4, break_on_hyphens=False)
            console.print("  - " + "\n    ".join(map(escape, lines)), soft_wrap=True)
    if path is not None:
        console.print()
        if report is not None:
            console.print(f"Report:  {escape(str(report))}", soft_wrap=True)
        folder = shlex.quote(str(path))
        console.print(f"Predict: {program()} predict {escape(folder)} new.csv", soft_wrap=True)
        if result.data.groups is None:
            console.print(f"Measure: {program()} suggest {escape(folder)}", soft_wrap=True)
        if result.search is not None:
            console.print(f"Go on:   {program()} resume {escape(folder)}", soft_wrap=True)


def _name(name: object) -> str:
    """Return the name of an estimate, which in one of several groups is that of c0[group]."""
    return f"{name[1]}[{name[0]}]" if isinstance(name, tuple) else str(name)


def _probability_in_words(result: Result) -> str:
    """Return the probability of the best and of its family."""
    text = f"probability {percent(float(result.probabilities[result.chosen]))}"
    family = result.family
    if family is not None and len(family) > 1:
        others = "1 law" if len(family) == 2 else f"{len(family) - 1} laws"
        text += f"; with {others} like it {percent(family.probability)}"
    return text if result.coverage.is_settled else f"{text} (the search had not settled)"


def _shown_places(result: Result) -> list[int]:
    """Return the places of the laws in the table: the faces of families, and the best.

    Of equations that a user wrote, all: none speaks for another.
    """
    if result.search is None:
        return list(range(len(result)))
    places = [family.places[0] for family in result.families]
    seen = {place for family in result.families for place in family.places}
    places += [place for place in range(len(result)) if place not in seen]
    places = places[:N_SHOWN]
    if result.chosen not in places:
        places[-1] = result.chosen
    return places


def _to_rich(result: Result, title: str, width: int) -> Table:
    """Arrange a ranked table for a terminal of some width."""
    shown = Table(
        title=escape(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 0, 0, 1),
        pad_edge=False,
    )
    places = _shown_places(result)
    rows = [result.table.iloc[place].to_dict() for place in places]
    longest = max(len(row["equation"]) for row in rows)
    # The mark of the best stands before the equation, and two blanks before every column.
    columns = _fitting(_columns(result, places), width - 3 - min(longest, EQUATION_WIDTH))
    shown.add_column("", no_wrap=True)
    shown.add_column("equation", overflow="fold")
    for header in columns:
        shown.add_column(header, justify="right", no_wrap=True)
    for number, (place, row) in enumerate(zip(places, rows, strict=True)):
        is_chosen = place == result.chosen
        cells = [column[number] for column in columns.values()]
        shown.add_row(
            ">" if is_chosen else "",
            escape(row["equation"]),
            *(cells if row["failure"] is None else ["failed"]),
            style="bold" if is_chosen and row["failure"] is None else None,
        )
    return shown


def _columns(result: Result, places: Sequence[int]) -> dict[str, list[str]]:
    """Return what stands beside the equations, by its header."""
    rows = [result.table.iloc[place].to_dict() for place in places]
    rmse = [short(row["rmse"]) for row in rows]
    if not result.table["log_q"].map(math.isfinite).any():
        return {"params": [str(row["parameters"]) for row in rows], "RMSE": rmse}
    sizes = {place: len(family) for family in result.families for place in family.places}
    of = [f"({sizes[place]})" if place in sizes else "" for place in places]
    return {
        "log q": [f"{_nats(row['log_q'])} ± {row['log_q_se']:.2f}" for row in rows],
        "score": [_nats(row["score"]) for row in rows],
        "prob." if result.coverage.is_settled else UNSETTLED: [
            percent(row["probability"]) for row in rows
        ],
        "family": [
            f"{percent(row['family_probability'])} {n}" for row, n in zip(rows, of, strict=True)
        ],
        "RMSE": rmse,
    }


def _fitting(columns: Mapping[str, list[str]], width: int) -> dict[str, list[str]]:
    """Return columns that leave room for equations; the others are in equations.csv.

    Examples
    --------
    >>> columns = {"log q": ["-13.12 ± 0.02"], "score": ["-19.12"], "RMSE": ["13.76"]}
    >>> [list(_fitting(columns, width)) for width in (30, 29, 5)]
    [['log q', 'score', 'RMSE'], ['log q', 'score'], ['score']]
    """
    kept = dict(columns)
    for spared in (None, UNSETTLED, "RMSE", "log q", "family"):
        if spared == UNSETTLED and spared in kept:  # in two lines
            kept = {name.replace(" (not ", "\n(not "): kept[name] for name in kept}
        elif spared is not None and len(kept) > 1:
            kept.pop(spared, None)
        cells = [[*name.splitlines(), *column] for name, column in kept.items()]
        if sum(2 + max(map(len, column)) for column in cells) <= width:
            break
    return kept


def _noise_rows(result: Result) -> list[dict[str, Any]]:
    """Return how the noise was chosen, the best first; nothing if it was given."""
    table = result.noise_table
    rows = [] if table is None else table.to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _to_noises(noises: Sequence[Mapping[str, Any]]) -> Table:
    """Arrange how the noise was chosen."""
    shown = Table(
        title="Noise, by the best law under each",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 0, 0, 1),
        pad_edge=False,
    )
    for name in ("", "noise", "equation"):
        shown.add_column(name, overflow="fold")
    for name in ("log q", "score"):
        shown.add_column(name, justify="right", no_wrap=True)
    for place, row in enumerate(noises):
        cells = [row["noise"], row["equation"]]
        shown.add_row(
            "" if place else ">",
            *map(escape, cells),
            _nats(row["log_q"]),
            _nats(row["score"]),
            style=None if place else "bold",
        )
    return shown


def _nats(value: float) -> str:
    """Write a logarithm to a hundredth; one that is hopeless in a few signs.

    Examples
    --------
    >>> _nats(-13.1249), _nats(-2194783840.66)
    ('-13.12', '-2.2e+09')
    """
    return f"{value:.2f}" if abs(value) < 1e5 else f"{value:.2g}"


def short(number: float) -> str:
    """Write a number with four digits.

    Examples
    --------
    >>> short(13.0006), short(1234.5), short(1.0)
    ('13.00', '1234', '1.000')
    """
    return f"{number:#.4g}".rstrip(".")
