"""What the ``pmsr`` command does, once its arguments are understood."""

import argparse
import json
import math
import os
import shlex
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pmsr import experiments
from pmsr.csv_text import to_csv
from pmsr.data import Data, leave_out_constant, load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.equation.grammar import without_quotes
from pmsr.equation.notation import percent, plus_minus
from pmsr.equation.operators import PARAMETER, VARIABLE, operator_code
from pmsr.equation.program import Program
from pmsr.estimator import BayesianSymbolicRegressor, check_guesses
from pmsr.evidence.evidence import weigh
from pmsr.evidence.problem import Problem
from pmsr.files import naming, write_file
from pmsr.laws.units import read_unit_words, read_units, units_of
from pmsr.limits import time_limit
from pmsr.result.comparison import weigh_equations
from pmsr.result.doubts import ResultWarning
from pmsr.result.result import Result
from pmsr.search.engines import ENGINES
from pmsr.search.evolution import Generation, guess_without_constant
from pmsr.search.finalists import FINAL_SHARE
from pmsr.search.genome import Primitives
from pmsr.settings import QUICK, Search
from pmsr.shell.data_files import choose_columns, read_table, split_table
from pmsr.shell.run_folder import (
    CHECKPOINT,
    REPORT,
    Run,
    chosen_parameters,
    extend_budget,
    log_generation,
    make_regressor,
    prepare_folder,
    read_result,
    read_run,
    read_run_data,
    read_used,
    remove_remains,
    start_run,
    write_log,
    write_result,
    write_settings,
)

N_SHOWN = 10  # equations in the table
WRITING_SHARE = 0.1  # of the time, for the files; predictions that take longer are left out
DEMO = {
    "operators": ("+", "-", "*", "/", "sqrt"),
    "population_size": 60,
    "generations": 40,
    "max_time": 60.0,  # on a busy machine; on an idle one the generations end it sooner
    "max_complexity": 24,
}
"""Options of `pmsr demo`: enough to find Galileo's law in seconds."""


def fit(arguments: argparse.Namespace) -> int:
    """Search for the law in a file."""
    X, y = split_table(
        read_table(arguments.data), arguments.target, arguments.features, str(arguments.data)
    )
    max_time = arguments.time
    if max_time is None and arguments.generations is None:
        max_time = arguments.default_time
    chosen = {
        "operators": _split_operators(arguments.operators),
        "population_size": arguments.population,
        "generations": arguments.generations or 1000,
        "max_time": None if max_time == math.inf else max_time,
        "max_complexity": arguments.max_complexity,
        "max_parameters": arguments.max_parameters,
        "fitness": arguments.fitness,
        "guesses": tuple(arguments.guess or ()),
        "law_prior": arguments.law_prior,
        "interval": tuple(arguments.interval),
        "units": _read_units(arguments.units, X, y),
        "evidence": arguments.evidence,
        "n_islands": arguments.islands,
    }
    path = arguments.out or Path(f"{arguments.data.stem}-run")
    return _start(path, arguments, chosen, X, y, arguments.data.name)


def demo(arguments: argparse.Namespace) -> int:
    """Search for Galileo's law."""
    X, y = load_galileo("shelf")
    # A demonstration may be repeated.
    arguments.force = True
    return _start(arguments.out, arguments, DEMO, X, y, "Galileo's notes of 1608")


def reproduce(arguments: argparse.Namespace) -> int:
    """Repeat an experiment of the paper."""
    try:
        pages = experiments.reproduce(
            arguments.name,
            arguments.out or Path(f"{arguments.name}-reproduced"),
            quick=arguments.quick,
            n_seeds=arguments.seeds,
            n_jobs=arguments.jobs,
            random_seed=arguments.seed,
            peer=arguments.peer,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the same command goes on from here") from None
    for page in pages:
        print(page)
    return 0


# Any: the estimator's parameters, and tables that pandas made.
def _start(
    path: Path,
    arguments: argparse.Namespace,
    chosen: Mapping[str, Any],
    X: Any,
    y: Any,
    source: str,
) -> int:
    """Check what can be checked, make the folder, and search."""
    data = _check(chosen, X, y)
    regressor = make_regressor(
        chosen, random_state=arguments.seed, n_jobs=arguments.jobs, verbose=False
    )
    run = Run(
        source=source,
        target=str(y.name),
        features=tuple(X.columns),
        command=arguments.command_line,
        created=time.strftime("%Y-%m-%d %H:%M"),
        parameters=chosen_parameters(regressor),
    )
    is_new = not path.exists()
    prepare_folder(path, force=arguments.force)
    try:
        start_run(path, run, X, y)
        return _search(path, run, regressor, data, arguments)
    except (ValueError, OSError) as error:
        if is_new and not (path / CHECKPOINT).exists():
            # What could not begin leaves nothing behind.
            for file in path.iterdir():
                file.unlink()
            path.rmdir()
        raise _with_way_out(error, path) from error


def _with_way_out(error: Exception, path: Path) -> Exception:
    """Return an error of the system that says how to go on once its cause is gone."""
    if not isinstance(error, OSError) or not (path / CHECKPOINT).exists():
        return error
    text = f"{error.strerror} Then go on with: {_program()} resume {shlex.quote(str(path))}"
    return OSError(error.errno, text, error.filename)


def _check(chosen: Mapping[str, Any], X: Any, y: Any) -> Data:
    """Return the measurements; refuse what the search would refuse, before anything is written."""
    data = make_data(X, y)
    varying = leave_out_constant(data)
    options = {name: value for name, value in chosen.items() if name != "guesses"}
    search = Search(**options)
    units = units_of(search, data)
    try:
        Primitives(search.operators, varying.names, search.max_complexity)
    except ValueError as error:
        hint = " Put * in quotes: '*'." if any(map(_is_file, search.operators)) else ""
        raise ValueError(f"{error}{hint}") from None
    guesses = [Equation(guess, data.names) for guess in chosen.get("guesses", ())]
    for guess in guesses:
        guess_without_constant(guess, varying)
    check_guesses(guesses, data, units)
    return data


def _read_units(words: list[str] | None, X: Any, y: Any) -> dict[str, str] | None:
    """Return units by name; those in names are written down, so that a run keeps them."""
    return None if words is None else read_unit_words(words, [*map(str, X.columns), str(y.name)])


def _is_file(name: str) -> bool:
    return name != "/" and Path(name).exists()


def _split_operators(words: list[str] | None) -> tuple[str, ...]:
    """Take operators as words of their own or as one text."""
    if words is None:
        return ("+", "-", "*", "/")
    return tuple(name for word in words for name in word.replace(",", " ").split())


def resume(arguments: argparse.Namespace) -> int:
    """Go on with a run."""
    path = arguments.run_folder
    run = read_run(path)
    if run.parameters is None:
        raise ValueError(f"{path} is a comparison: there is no search to go on with.")
    X, y = read_run_data(path, run)
    seconds = None if arguments.time is None else float(arguments.time)
    parameters = extend_budget(path, run, seconds, arguments.generations)
    if parameters["max_time"] == math.inf:
        parameters["max_time"] = None
    run = replace(run, parameters=parameters, finished=False)
    options = {**parameters, "operators": tuple(parameters["operators"])}
    options["interval"] = tuple(options["interval"])
    seed = options.pop("random_state")
    data = _check(options, X, y)
    regressor = make_regressor(options, random_state=seed, n_jobs=arguments.jobs, verbose=False)
    remove_remains(path)
    try:
        write_settings(path, run)
        write_log(path, f"resumed: {arguments.command_line}")
        return _search(path, run, regressor, data, arguments)
    except OSError as error:
        raise _with_way_out(error, path) from error


def _search(
    path: Path,
    run: Run,
    regressor: BayesianSymbolicRegressor,
    data: Data,
    arguments: argparse.Namespace,
) -> int:
    """Search, and write and show what was found; also after Ctrl-C."""
    with _SearchProgress(regressor, arguments.quiet) as show:
        _warm_up(data, arguments.jobs)
        left = (regressor.max_time or math.inf) - read_used(path)[1]
        # To load and to prepare takes a second or two of the time; but where it takes most, because
        # the first run on a machine compiles, half of the time is still for the search.
        limit = max(arguments.started + left, time.monotonic() + 0.5 * left)
        to_write = 0.0 if arguments.no_report or left == math.inf else WRITING_SHARE * left

        def tell(generation: Generation) -> None:
            log_generation(path, generation)
            show(generation)

        regressor.checkpoint, regressor.callbacks, regressor.verbose = (
            path / CHECKPOINT,
            (tell,),
            show,
        )
        with (
            warnings.catch_warnings(action="ignore", category=ResultWarning),
            _silent_threads(),
            time_limit(limit - to_write),
        ):
            try:
                regressor.fit_data(data)
            except KeyboardInterrupt:
                write_log(path, "interrupted before anything was found")
                raise
        # They belong to this process, not to the result.
        regressor.callbacks, regressor.checkpoint, regressor.verbose = (), None, False
        result: Result = regressor.result_
        show("writing the results")
        with time_limit(limit):
            write_result(path, run, result, regressor, report=not arguments.no_report)
    if result.stopped != "interrupted":
        write_settings(path, replace(run, finished=True))
    with time_limit(limit):
        _tell(result, path, arguments)
    if result.stopped != "interrupted":
        return 0
    again = f"{_program()} resume {shlex.quote(str(path))}"
    print(f"pmsr: interrupted. Go on with: {again}", file=sys.stderr)
    return 130


@contextmanager
def _silent_threads() -> Iterator[None]:
    """Keep joblib's threads from complaining when Ctrl-C takes their work away."""
    before = threading.excepthook
    if not os.environ.get("PMSR_DEBUG"):
        threading.excepthook = lambda _: None
    try:
        yield
    finally:
        threading.excepthook = before


def _warm_up(data: Data, n_jobs: int | None) -> None:
    """Load and compile everything, in every process: that is not time for searching.

    The first run on a machine compiles for half a minute; processes import for seconds.
    """
    # c0/(c1 + x), in whatever is called x: what is linear would leave half of the loops uncompiled.
    nodes = [(PARAMETER, 0, 0), (PARAMETER, 1, 0), (VARIABLE, 0, 0)]
    nodes += [(operator_code("+"), 1, 2), (operator_code("/"), 0, 3)]
    law = Program.of(nodes, [], 2)
    arguments = (law, Problem.of(data, QUICK), QUICK, np.random.SeedSequence(0))
    weigh(*arguments)
    n_workers = effective_n_jobs(n_jobs)
    if n_workers > 1:
        Parallel(n_jobs=n_jobs, batch_size=1)(
            delayed(weigh)(*arguments) for _ in range(2 * n_workers)
        )


def _program() -> str:
    """Return how this command can be called again: by its path where its name is not enough."""
    called = sys.argv[0]
    is_known = Path(called).name != "pmsr" or shutil.which("pmsr") is not None
    return "pmsr" if is_known else shlex.quote(called)


def compare(arguments: argparse.Namespace) -> int:
    """Weigh equations that the user wrote."""
    X, y = split_table(
        read_table(arguments.data), arguments.target, arguments.features, str(arguments.data)
    )
    path = arguments.out
    for equation in arguments.equations:
        Equation(equation, list(X.columns))
    units = _read_units(arguments.units, X, y)
    read_units(units, list(X.columns), str(y.name), interval=arguments.interval)  # or an error
    if path is not None:
        prepare_folder(path, force=arguments.force)
    with _CountProgress("weighing", len(arguments.equations), arguments.quiet) as show:
        result = weigh_equations(
            arguments.equations,
            X,
            y,
            units=units,
            interval=arguments.interval,
            random_seed=arguments.seed,
            callback=show,
        )
    if path is not None:
        run = Run(
            source=arguments.data.name,
            target=str(y.name),
            features=tuple(X.columns),
            command=arguments.command_line,
            created=time.strftime("%Y-%m-%d %H:%M"),
        )
        start_run(path, run, X, y)
        write_result(path, run, result, report=not arguments.no_report)
    _tell(result, path, arguments)
    return 0 if result.best.evidence.failure is None else 1


def predict(arguments: argparse.Namespace) -> int:
    """Predict with what a run has found."""
    result = read_result(arguments.run_folder)
    names = list(result.data.measured)
    table = choose_columns(read_table(arguments.data), names, str(arguments.data))
    with warnings.catch_warnings(record=True, category=ResultWarning) as caught:
        warnings.simplefilter("always", ResultWarning)
        found = result.predict_table(table, level=arguments.level, average=arguments.average)
    for warning in caught:
        if isinstance(warning.message, ResultWarning) and not arguments.quiet:
            print(f"pmsr: warning: {warning.message}", file=sys.stderr)
    header = names + [_distinct(str(name), names) for name in found.columns]
    rows = np.hstack([table.to_numpy(), found.to_numpy()]).tolist()
    if arguments.json:
        about = {
            "target": result.data.target,
            "level": arguments.level,
            "average": arguments.average,
            "equation": None if arguments.average else str(result.best.equation),
            "predictions": [dict(zip(header, row, strict=True)) for row in rows],
            "warnings": [str(warning.message) for warning in caught],
        }
        text = _to_json(about) + "\n"
    else:
        text = to_csv(header, rows).decode()
    if arguments.out is None:
        sys.stdout.write(text)
    else:
        _write_out(arguments.out, text.encode())
    return 0


def suggest(arguments: argparse.Namespace) -> int:
    """Say where to measure next."""
    result = read_result(arguments.run_folder)
    bounds = {name: (low, high) for name, low, high in arguments.bounds}
    table = result.suggest(arguments.n, bounds)
    if arguments.json:
        about = {"target": result.data.target, "suggestions": table.to_dict("records")}
        print(_to_json(about))
    elif not arguments.quiet:
        shown = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 0, 0, 1), pad_edge=False)
        for name in table.columns:
            shown.add_column(escape(str(name)), justify="right")
        for row in table.itertuples(index=False, name=None):
            shown.add_row(*map(_short, row))
        console = Console()
        console.print(shown)
        console.print(
            "information: nats that a measurement there is expected to tell about which law is "
            "right, after those above. disagreement of the laws, and scatter of a measurement, in "
            f"the unit of {escape(result.data.target)}.",
            style="italic",
            highlight=False,
        )
        if not result.coverage.is_settled:
            console.print("The search had not settled: other laws may still be found.")
    return 0


def _write_out(path: Path, contents: bytes) -> None:
    """Write where a user wants it, which may be a link, or a device such as /dev/stdout."""
    if path.exists() and not path.is_file():
        with naming(path), path.open("wb") as device:
            device.write(contents)
    else:
        write_file(path.resolve(), contents)


def _distinct(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name


class _SearchProgress:
    """A line on standard error that tells how a search goes, where somebody can see it."""

    def __init__(self, regressor: BayesianSymbolicRegressor, quiet: bool) -> None:
        console = Console(stderr=True)
        self.max_time, self.generations = regressor.max_time, regressor.generations
        self.engine = ENGINES[regressor.fitness]
        self.width = max(10, console.width - 62)
        self.bar = Progress(
            BarColumn(bar_width=16),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
            transient=True,
        )

    def __enter__(self) -> Any:
        self.bar.start()
        self.task = self.bar.add_task("preparing (the first run on a machine compiles)", total=1.0)
        return self.show

    def show(self, news: Generation | str) -> None:
        """Bring the line up to date."""
        if isinstance(news, str):
            if news:
                self.bar.update(self.task, description=news)
            return
        share = news.number / max(1, self.generations)
        if self.max_time is not None:
            deadline = (1.0 - FINAL_SHARE) * self.max_time
            share = max(share, float(news.record["elapsed"]) / deadline)
        text = f"generation {news.number}, {news.record['n_candidates']} equations"
        if news.best is not None:
            best = without_quotes(news.best.key)
            best = best if len(best) <= self.width else best[: self.width - 1] + "…"
            text += f", {self.engine.show(news.best)}: {escape(best)}"
        self.bar.update(self.task, completed=min(1.0, share), description=text)

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


class _CountProgress:
    """The same for a known number of steps."""

    def __init__(self, what: str, total: int, quiet: bool) -> None:
        console = Console(stderr=True)
        self.bar = Progress(
            BarColumn(bar_width=16),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
            transient=True,
        )
        self.what, self.total = what, total

    def __enter__(self) -> Any:
        self.bar.start()
        self.task = self.bar.add_task(self.what, total=self.total)
        return lambda name: self.bar.update(
            self.task, advance=1, description=f"weighed {escape(name)}"
        )

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


def _tell(result: Result, path: Path | None, arguments: argparse.Namespace) -> None:
    """Show a result on standard output: as JSON, as a table, or not at all."""
    report = None if path is None or arguments.no_report else path / REPORT
    if arguments.json:
        print(_to_json(_describe(result, path, report)))
    elif not arguments.quiet:
        _print_result(Console(), result, path, report)


def _describe(result: Result, path: Path | None, report: Path | None) -> dict[str, Any]:
    """Return a result for machines."""
    best = result.best
    estimates = {}
    if best.evidence.failure is None:
        with suppress(ValueError):  # weighed, but not sampled; a doubt says so
            table = best.estimates()
            estimates = {str(name): dict(row) for name, row in table.to_dict("index").items()}
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
        "stopped": result.stopped,
        "candidates": result.n_candidates,
        "failed": result.n_failed,
        "seed": result.random_seed,
        "out": None if path is None else str(path),
        "report": None if report is None else str(report),
    }


def _to_json(value: object) -> str:
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


def _print_result(console: Console, result: Result, path: Path | None, report: Path | None) -> None:
    """Show the ranked table, the winner with its parameters, doubts, and what to do next."""
    best = result.best
    n = len(result.data.y)
    title = f"{n} observations of {result.data.target}"
    if result.search is not None:
        title += f", {result.n_candidates} equations met"
    console.print(_to_rich(result, title))
    notes = []
    if np.isfinite(result.table["log_q"]).any():
        notes.append(
            "score = log q + log prior. Laws that the data cannot tell apart are one family, with "
            "one probability; its best law is shown."
        )
    n_hidden = len(result) - len(_shown_places(result))
    if n_hidden:
        notes.append(f"{n_hidden} more are in the report and in equations.csv.")
    notes += result.search_notes
    console.print(" ".join(notes), style="italic", highlight=False)
    if best.evidence.failure is not None:
        console.print(f"\nNo equation could be weighed: {escape(best.evidence.failure)}.")
        return
    console.print(f"\n[bold]{escape(f'{best.target} = {best.equation}')}[/bold]", soft_wrap=True)
    if np.isfinite(best.evidence.log_q):
        console.print(f"    {_probability_in_words(result)}", soft_wrap=True, highlight=False)
    try:
        table = best.estimates()
        units = best.parameter_units
        for name, mean, sd in zip(table.index, table["mean"], table["sd"], strict=True):
            text = f"{name} = {plus_minus(mean, sd)} {units.get(str(name), '')}".rstrip()
            meaning = f"  (noise in {best.target})" if name == "sigma" else ""
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
        console.print(f"Predict: {_program()} predict {escape(folder)} new.csv", soft_wrap=True)
        console.print(f"Measure: {_program()} suggest {escape(folder)}", soft_wrap=True)
        if result.search is not None:
            console.print(f"Go on:   {_program()} resume {escape(folder)}", soft_wrap=True)


def _probability_in_words(result: Result) -> str:
    """Return the probability of the best and of its family."""
    text = f"probability {percent(float(result.probabilities[result.chosen]))}"
    family = result.family
    if family is not None and len(family) > 1:
        others = "1 law" if len(family) == 2 else f"{len(family) - 1} laws"
        text += f"; with {others} like it {percent(family.probability)}"
    return text if result.coverage.is_settled else f"{text} (the search had not settled)"


def _shown_places(result: Result) -> list[int]:
    """Return the places of the laws in the table: the faces of families, and the best."""
    places = [family.places[0] for family in result.families]
    seen = {place for family in result.families for place in family.places}
    places += [place for place in range(len(result)) if place not in seen]
    places = places[:N_SHOWN]
    if result.chosen not in places:
        places[-1] = result.chosen
    return places


def _to_rich(result: Result, title: str) -> Table:
    """Arrange a ranked table for the terminal; 80 columns hold it."""
    has_evidence = bool(result.table["log_q"].map(math.isfinite).any())
    shown = Table(
        title=escape(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 0, 0, 1),
        pad_edge=False,
    )
    shown.add_column("", no_wrap=True)
    shown.add_column("equation", overflow="fold")
    chance = "prob." if result.coverage.is_settled else "prob. (not settled)"
    numbers = ("log q", "score", chance, "family", "RMSE")
    for header in numbers if has_evidence else ("params", "RMSE"):
        shown.add_column(header, justify="right", no_wrap=True)
    rows = result.table.to_dict("records")
    sizes = {place: len(family) for family in result.families for place in family.places}
    for place in _shown_places(result):
        row = rows[place]
        mark = ">" if place == result.chosen else ""
        name = row["equation"]
        if row["failure"] is not None:
            shown.add_row(mark, escape(name), "failed")
            continue
        cells = [
            f"{_nats(row['log_q'])} ± {row['log_q_se']:.2f}",
            _nats(row["score"]),
            percent(row["probability"]),
            f"{percent(row['family_probability'])} ({sizes[place]})",
        ]
        shown.add_row(
            mark,
            escape(name),
            *(cells if has_evidence else [str(row["parameters"])]),
            _short(row["rmse"]),
            style="bold" if mark else None,
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


def _short(number: float) -> str:
    """Write a number with four digits.

    Examples
    --------
    >>> _short(13.0006), _short(1234.5), _short(1.0)
    ('13.00', '1234', '1.000')
    """
    return f"{number:#.4g}".rstrip(".")
