"""What the ``pmsr`` command does, once its arguments are understood."""

import argparse
import math
import os
import re
import shlex
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pmsr import experiments
from pmsr.csv_text import to_csv
from pmsr.data import Data, leave_out_constant, load_galileo
from pmsr.equation.expression import Equation, written
from pmsr.equation.grammar import without_quotes
from pmsr.equation.operator_sets import read_operators, usual_operators
from pmsr.equation.operators import PARAMETER, VARIABLE, operator_code
from pmsr.equation.program import Program
from pmsr.estimator import BayesianSymbolicRegressor, check_guesses
from pmsr.evidence.evidence import weigh
from pmsr.evidence.noise import GAUSSIAN
from pmsr.evidence.problem import Problem
from pmsr.files import naming, write_file
from pmsr.laws.units import read_unit_words, read_units, units_of
from pmsr.limits import time_limit
from pmsr.report.page import write_report
from pmsr.result.comparison import weigh_equations
from pmsr.result.doubts import ResultWarning
from pmsr.result.result import Result
from pmsr.result.suggestion import leading_families
from pmsr.search.engines import ENGINES
from pmsr.search.evolution import Generation, guess_without_constant
from pmsr.search.finalists import FINAL_SHARE
from pmsr.search.genome import Primitives, equation_genome
from pmsr.search.pilot import AUTO
from pmsr.search.warm_up import warm_up
from pmsr.settings import FINALIST, QUICK, Search
from pmsr.shell.data_files import (
    EXCEL,
    NOTES,
    PARQUET,
    TEXT,
    choose_columns,
    choose_labels,
    read_table,
)
from pmsr.shell.measurements import (
    Columns,
    Measurements,
    read_measurements,
    without_missing,
)
from pmsr.shell.run_folder import (
    CHECKPOINT,
    REPORT,
    SETTINGS,
    Run,
    chosen_parameters,
    describe_run,
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
from pmsr.shell.tables import describe, print_result, program, short, to_json
from pmsr.shell.wording import counted_as_in_file, in_words_of_a_shell

T = TypeVar("T")
WRITING_SHARE = 0.1  # of the time, for the files; predictions that take longer are left out
DEMO = {
    "operators": ("+", "-", "*", "/", "sqrt"),
    "population_size": 60,
    "generations": 40,
    "max_time": 60.0,  # on a busy machine; on an idle one the generations end it sooner
    "max_complexity": 24,
    "noise": "gaussian",
    "extra_noise": False,
    "shared_sigma": False,
    "positive": False,
}
"""Options of `pmsr demo`: enough to find Galileo's law in seconds."""


def fit(arguments: argparse.Namespace) -> int:
    """Search for the law in a file."""
    measured = _read_measurements(arguments)
    max_time = arguments.time
    if max_time is None and arguments.generations is None:
        max_time = arguments.default_time
    chosen = {
        "operators": _choose_operators(arguments.operators, measured),
        "population_size": arguments.population,
        "generations": arguments.generations or 1000,
        "max_time": None if max_time == math.inf else max_time,
        "max_complexity": arguments.max_complexity,
        "max_parameters": arguments.max_parameters,
        "fitness": arguments.fitness,
        "guesses": tuple(arguments.guess or ()),
        "law_prior": arguments.law_prior,
        "interval": tuple(arguments.interval),
        "units": _read_units(arguments.units, measured),
        "noise": arguments.noise,
        "extra_noise": arguments.extra_noise,
        "shared_sigma": arguments.shared_sigma,
        "positive": arguments.positive,
        "evidence": arguments.evidence,
        "n_islands": arguments.islands,
    }
    path = arguments.out or Path(f"{arguments.data.stem}-run")
    return _start(path, arguments, chosen, measured, arguments.data.name)


def demo(arguments: argparse.Namespace) -> int:
    """Search for Galileo's law."""
    X, y = load_galileo("shelf")
    # A demonstration may be repeated.
    arguments.force = True
    columns = Columns(target=str(y.name), features=tuple(X.columns))
    measured = Measurements(columns, X, y, X[[]])
    return _start(arguments.out, arguments, DEMO, measured, "Galileo's notes of 1608")


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


# Any: the estimator's parameters.
def _start(
    path: Path,
    arguments: argparse.Namespace,
    chosen: Mapping[str, Any],
    measured: Measurements,
    source: str,
) -> int:
    """Check what can be checked, make the folder, and search."""
    data = _check(chosen, measured)
    regressor = make_regressor(
        chosen, random_state=arguments.seed, n_jobs=arguments.jobs, verbose=False
    )
    run = Run(
        source=source,
        columns=measured.columns,
        constants=measured.constants,
        command=arguments.command_line,
        created=time.strftime("%Y-%m-%d %H:%M"),
        notes=measured.notes,
        parameters=chosen_parameters(regressor),
    )
    is_new = not path.exists()
    prepare_folder(path, force=arguments.force)
    _announce(chosen, arguments)
    try:
        start_run(path, run, measured)
        return _search(path, run, regressor, data, arguments)
    except KeyboardInterrupt:
        raise _interrupted(path) from None
    except (ValueError, OSError) as error:
        if is_new and not (path / CHECKPOINT).exists():
            # What could not begin leaves nothing behind.
            for file in path.iterdir():
                file.unlink()
            path.rmdir()
        raise _with_way_out(error, path) from error


def _interrupted(path: Path) -> KeyboardInterrupt:
    """Return what ends a search that had no time to write what it has found."""
    write_log(path, "interrupted")
    return KeyboardInterrupt(f"interrupted. Go on with: {_resume(path)}")


def _resume(path: Path) -> str:
    return f"{program()} resume {shlex.quote(str(path))}"


def _with_way_out(error: Exception, path: Path) -> Exception:
    """Return an error of the system that says how to go on once its cause is gone."""
    if not isinstance(error, OSError) or not (path / CHECKPOINT).exists():
        return error
    text = f"{error.strerror} Then go on with: {_resume(path)}"
    return OSError(error.errno, text, error.filename)


def _check(chosen: Mapping[str, Any], measured: Measurements) -> Data:
    """Return the measurements; refuse what the search would refuse, before anything is written."""
    data = measured.data
    varying = leave_out_constant(data)
    options = {name: chosen[name] for name in chosen if hasattr(Search, name)}
    search = Search(**options)
    units = units_of(search, data)
    noise = GAUSSIAN.name if chosen["noise"] == AUTO else chosen["noise"]
    measured.check_noise(noise, extra_noise=chosen["extra_noise"])
    primitives = Primitives(search.operators, varying.names, search.max_complexity)
    guesses = [_read_equation(guess, data) for guess in chosen.get("guesses", ())]
    for guess in guesses:
        law = guess_without_constant(guess, varying)
        equation_genome(law, primitives, rng=np.random.default_rng(0))  # has what it needs
    check_guesses(guesses, data, units)
    return data


def _read_measurements(arguments: argparse.Namespace) -> Measurements:
    """Read the measurements that the arguments of a command name."""
    columns = Columns(
        target=arguments.target,
        features=None if arguments.features is None else tuple(arguments.features),
        error=arguments.error_column,
        x_errors=_once(arguments.x_error_columns, "--x-error-columns"),
        weight=arguments.weight_column,
        group=arguments.group_column,
    )
    table = _read_file(arguments)
    if arguments.command == "compare" and columns.features is None:
        columns = replace(columns, features=_choose_features(table, columns, arguments.equations))
    found = read_measurements(
        table,
        columns,
        str(arguments.data),
        drop_missing=arguments.drop_missing,
        constants=_once(arguments.constant, "--constant"),
    )
    for note in found.notes[len(table.attrs.get(NOTES, ())) :]:
        _say(note, arguments)
    return found


def _choose_features(
    table: pd.DataFrame, columns: Columns, equations: Sequence[str]
) -> tuple[str, ...] | None:
    """Return the columns for a comparison: those that no equation names need not be numbers.

    Returns
    -------
    tuple of str or None
        None for all, or if none is left.
    """
    chosen = []
    for name in map(str, table.columns):
        if name == columns.target or name in columns.others:
            continue
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        if not name.strip():
            continue
        if not any(map(word.search, equations)):
            try:
                choose_columns(table, [name], "")
            except ValueError:
                continue
        chosen.append(name)
    return tuple(chosen) or None


def _once(pairs: Iterable[tuple[str, T]], option: str) -> dict[str, T]:
    """Return values by name, of which none may be given twice."""
    found: dict[str, T] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{option} gives {name!r} twice. Leave one of them out.")
        found[name] = value
    return found


# Any: a table of pandas, whatever is in it.
def _read_file(arguments: argparse.Namespace) -> Any:
    """Read the table that the arguments of a command name, and say what was done to it."""
    table = read_table(
        arguments.data,
        sheet=arguments.sheet,
        header=not arguments.no_header,
        decimal=arguments.decimal,
    )
    for note in table.attrs.get(NOTES, ()):
        _say(note, arguments)
    return table


def _read_units(words: list[str] | None, measured: Measurements) -> dict[str, str] | None:
    """Return units by name; those in names are written down, so that a run keeps them."""
    names = [*map(str, measured.X.columns), *measured.constants, measured.columns.target]
    return None if words is None else read_unit_words(words, names)


def _is_file(name: str) -> bool:
    return name not in ("", "/") and Path(name).exists()


def _choose_operators(words: list[str] | None, measured: Measurements) -> tuple[str, ...]:
    """Return the operators that a user names, or those that suit the data."""
    if words is None:
        return usual_operators(measured.data)
    try:
        return read_operators(words)
    except ValueError as error:
        hint = " Put * in quotes: '*'." if any(map(_is_file, words)) else ""
        raise ValueError(f"{error}{hint}") from None


def _announce(chosen: Mapping[str, Any], arguments: argparse.Namespace) -> None:
    """Say how long a search takes, unless the user has said it."""
    if arguments.command != "fit" or arguments.time is not None:
        return
    if arguments.generations is None:
        text = (
            f"searching for {chosen['max_time'] / 60:g} minutes (--time 10m for longer; the first "
            "run on a machine compiles for a minute besides)"
        )
    else:
        n = arguments.generations
        what = "1 generation" if n == 1 else f"{n} generations"
        text = f"searching for {what}, whatever time that takes"
    _say(f"{text}. Ctrl-C ends it and keeps what was found.", arguments)


def _say(text: str, arguments: argparse.Namespace) -> None:
    """Tell a person something on standard error."""
    if not (arguments.quiet or arguments.json):
        print(f"pmsr: {text}", file=sys.stderr)


def resume(arguments: argparse.Namespace) -> int:
    """Go on with a run."""
    path = arguments.run_folder
    run = read_run(path)
    if run.parameters is None:
        raise ValueError(f"{path} is a comparison: there is no search to go on with.")
    measured = read_run_data(path, run)
    seconds = None if arguments.time is None else float(arguments.time)
    parameters = extend_budget(path, run, seconds, arguments.generations)
    if parameters["max_time"] == math.inf:
        parameters["max_time"] = None
    run = replace(run, parameters=parameters, finished=False)
    options = {**parameters, "operators": tuple(parameters["operators"])}
    options["interval"] = tuple(options["interval"])
    seed = options.pop("random_state")
    data = _check(options, measured)
    regressor = make_regressor(options, random_state=seed, n_jobs=arguments.jobs, verbose=False)
    remove_remains(path)
    try:
        write_settings(path, run)
        write_log(path, f"resumed: {arguments.command_line}")
        return _search(path, run, regressor, data, arguments)
    except KeyboardInterrupt:
        raise _interrupted(path) from None
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
        compiling = warm_up()
        _warm_up(data, arguments.jobs)
        left = (regressor.max_time or math.inf) - read_used(path)[1]
        # To load and to prepare takes a second or two of the time; but where it takes most, because
        # the first run on a machine compiles, half of the time is still for the search.
        limit = max(arguments.started + compiling + left, time.monotonic() + 0.5 * left)
        to_write = 0.0 if arguments.no_report or left == math.inf else WRITING_SHARE * left

        if regressor.noise == AUTO:
            run = _settle_noise(path, run, regressor, data, show)
            # So it is where a choice takes long: on first use it compiles, too.
            limit = max(limit, time.monotonic() + 0.5 * (regressor.max_time or math.inf))

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
            regressor.fit_data(data)
        # They belong to this process, not to the result.
        regressor.callbacks, regressor.checkpoint, regressor.verbose = (), None, False
        if run.noise_table:  # of the search before the first checkpoint
            table = pd.DataFrame([dict(row) for row in run.noise_table])
            regressor.result_ = replace(regressor.result_, noise_table=table)
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
    print(f"pmsr: interrupted. Go on with: {_resume(path)}", file=sys.stderr)
    return 130


def _settle_noise(
    path: Path, run: Run, regressor: BayesianSymbolicRegressor, data: Data, show: Any
) -> Run:
    """Choose the noise before the search that leaves checkpoints, and write it down."""
    regressor.verbose = lambda text: show(text or "choosing the noise")
    with _silent_threads():
        regressor.set_params(**regressor.settle_noise(data))
    table = tuple(
        {str(name): value for name, value in row.items()}
        for row in regressor.noise_table_.to_dict("records")
    )
    run = replace(run, parameters=chosen_parameters(regressor), noise_table=table)
    write_settings(path, run)
    for row in table:
        write_log(path, f"noise {row['noise']}: score {row['score']:.2f}, {row['equation']}")
    return run


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


def compare(arguments: argparse.Namespace) -> int:
    """Weigh equations that the user wrote."""
    kinds = (*TEXT, *PARQUET, *EXCEL)
    swapped = [text for text in arguments.equations if Path(text).suffix in kinds]
    if swapped and arguments.data.suffix not in kinds:
        raise ValueError(
            f"The file comes first: pmsr compare {shlex.quote(swapped[0])} EQUATION --target COLUMN"
        )
    measured = _read_measurements(arguments)
    path = arguments.out
    data = measured.data
    laws = [_read_equation(text, data, arguments.parameters) for text in arguments.equations]
    units = _read_units(arguments.units, measured)
    # Or an error.
    read_units(
        units,
        list(data.names),
        data.target,
        interval=arguments.interval,
        constants=data.constants,
    )
    measured.check_noise(arguments.noise, extra_noise=arguments.extra_noise)
    if path is not None:
        prepare_folder(path, force=arguments.force)
    with _CountProgress("weighing", len(laws), arguments.quiet) as show:
        result = weigh_equations(
            laws,
            measured.X,
            measured.y,
            **measured.measured,
            constants=measured.constants,
            settings=replace(
                FINALIST,
                noise=arguments.noise,
                extra_noise=arguments.extra_noise,
                shared_sigma=arguments.shared_sigma,
                positive=arguments.positive,
            ),
            units=units,
            interval=arguments.interval,
            random_seed=arguments.seed,
            callback=show,
        )
    if path is not None:
        run = Run(
            source=arguments.data.name,
            columns=measured.columns,
            constants=measured.constants,
            command=arguments.command_line,
            created=time.strftime("%Y-%m-%d %H:%M"),
            notes=measured.notes,
        )
        start_run(path, run, measured)
        write_result(path, run, result, report=not arguments.no_report)
    _tell(result, path, arguments)
    return 0 if result.best.evidence.failure is None else 1


def _read_equation(text: str, data: Data, parameters: Sequence[str] | None = None) -> Equation:
    """Read an equation; an unknown name may be a parameter, or a second file.

    Parameters
    ----------
    text, data
        The equation, and the data whose variables it has.
    parameters
        Names of parameters; None where there is no option for them.
    """
    try:
        return Equation(text, data.names, parameters or ())
    except ValueError:
        if Path(text).suffix in (*TEXT, *PARQUET, *EXCEL):
            raise ValueError(
                f"{text} is no equation. One file at a time: join the tables in one, with a column "
                "that names the experiment of each row, and say --group-column."
            ) from None
        unknown, hint = _find_unknown(text, data, parameters or ())
        if not unknown:
            raise
        columns = ", ".join(map(written, data.names))
        what = (
            f"{unknown[0]} is no column"
            if len(unknown) == 1
            else (f"{', '.join(unknown[:-1])} and {unknown[-1]} are no columns")
        )
        # Within double quotes a shell runs what stands in backquotes.
        quoting = "The equation then stands in single quotes. " * ("`" in hint)
        named = f", or named: --parameters {' '.join([*(parameters or ()), *unknown])}"
        raise ValueError(
            f"{what}: these are {columns}. {hint}{quoting}Parameters are written c0, c1, ..."
            + named * (parameters is not None)
        ) from None


def _find_unknown(text: str, data: Data, parameters: Sequence[str]) -> tuple[list[str], str]:
    """Return the names in an equation that nobody knows, and which columns may be meant."""
    unknown: list[str] = []
    hints = ""
    while True:
        try:
            Equation(text, data.names, [*parameters, *unknown])
        except ValueError as error:
            found = re.match(r"Unknown name '(\w+)'\. (Did you mean (.+?)\? )?", str(error))
            if found is None or found[1] in unknown:
                return unknown, hints
            unknown.append(found[1])
            if found[3] is not None and found[3].strip("'") in map(written, data.names):
                hints += str(found[2])
        else:
            return unknown, hints


def show(arguments: argparse.Namespace) -> int:
    """Print what a run has found again."""
    path = arguments.run_folder
    result = read_result(path)
    arguments.no_report = not (path / REPORT).is_file()
    _tell(result, path, arguments)
    return 0 if result.best.evidence.failure is None else 1


def report(arguments: argparse.Namespace) -> int:
    """Make the page of a run again."""
    path = arguments.run_folder
    result = read_result(path)
    content = describe_run(path, read_run(path), result, level=arguments.level)
    written = write_report(arguments.out or path / REPORT, content)
    if not arguments.quiet:
        print(written)
    return 0


def predict(arguments: argparse.Namespace) -> int:
    """Predict with what a run has found."""
    result = read_result(arguments.run_folder)
    names = list(result.data.measured)
    group = _group_of(arguments.run_folder)
    read = _read_file(arguments)
    notes: tuple[str, ...] = ()
    if arguments.drop_missing:
        read, notes = without_missing(read, [*names, *group])
    for note in notes:
        _say(note, arguments)
    table = choose_columns(read, names, str(arguments.data))
    labels = [choose_labels(read, name, str(arguments.data)) for name in group]
    with warnings.catch_warnings(record=True, category=ResultWarning) as caught:
        warnings.simplefilter("always", ResultWarning)
        found = result.predict_table(
            table,
            level=arguments.level,
            average=arguments.average,
            groups=labels[0] if labels else None,
        )
    said = [
        in_words_of_a_shell(counted_as_in_file(str(warning.message), read.index.to_list()))
        for warning in caught
        if isinstance(warning.message, ResultWarning)
    ]
    for text in () if arguments.quiet else said:
        print(f"pmsr: warning: {text}", file=sys.stderr)
    known = [*group, *names]
    header = known + [_distinct(str(name), known) for name in found.columns]
    rows = np.hstack([table.to_numpy(), found.to_numpy()]).tolist()
    rows = [[*own, *row] for *own, row in zip(*labels, rows, strict=True)]
    if arguments.json:
        about = {
            "target": result.data.target,
            "level": arguments.level,
            "average": arguments.average,
            "equation": None if arguments.average else str(result.best.equation),
            "predictions": [dict(zip(header, row, strict=True)) for row in rows],
            "warnings": said,
        }
        text = to_json(about) + "\n"
    else:
        text = to_csv(header, rows).decode()
    if arguments.out is None:
        sys.stdout.write(text)
    else:
        _write_out(arguments.out, text.encode())
    return 0


def _group_of(path: Path) -> tuple[str, ...]:
    """Return the name of the column with the experiment of each row, if there is one."""
    return read_run(path).columns.texts if (path / SETTINGS).is_file() else ()


def suggest(arguments: argparse.Namespace) -> int:
    """Say where to measure next."""
    result = read_result(arguments.run_folder)
    bounds = _once(((name, (low, high)) for name, low, high in arguments.bounds), "--bounds")
    table = result.suggest(arguments.n, bounds)
    if arguments.json:
        print(to_json({"target": result.data.target, "suggestions": table.to_dict("records")}))
    elif not arguments.quiet:
        shown = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 0, 0, 1), pad_edge=False)
        for name in table.columns:
            shown.add_column(escape(str(name)), justify="right")
        for row in table.itertuples(index=False, name=None):
            shown.add_row(*map(short, row))
        console = Console()
        console.print(shown)
        about = (
            "which law is right, after those above"
            if len(leading_families(result.families)) > 1
            else "the curve of the one law that is left, by itself"
        )
        console.print(
            f"information: nats that a measurement there is expected to tell about {about}. "
            "disagreement of the laws, and scatter of a measurement, in the unit of "
            f"{escape(result.data.target)}.",
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
        print(to_json(describe(result, path, report)))
    elif not arguments.quiet:
        print_result(Console(), result, path, report)
