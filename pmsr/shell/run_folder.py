"""A run on disk: the folder that a search leaves, and from which it goes on and predicts."""

import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any

import pandas as pd

from pmsr.csv_text import to_csv
from pmsr.estimator import BayesianSymbolicRegressor
from pmsr.files import (
    BROKEN,
    as_list,
    as_number,
    as_text,
    naming,
    remove_parts,
    write_file,
    writing,
)
from pmsr.report.content import ReportContent, gather_content
from pmsr.report.page import write_report
from pmsr.result.loading import load_result
from pmsr.result.parameters import parameters_from_json, parameters_to_json
from pmsr.result.result import Result, library_versions
from pmsr.result.storage import ARRAYS, HEADER, damaged
from pmsr.search.checkpoint import read_progress
from pmsr.search.evolution import Generation
from pmsr.search.pilot import AUTO
from pmsr.settings import ADDED_TO_SEARCH, Search, Settings
from pmsr.shell.data_files import read_table
from pmsr.shell.measurements import Columns, Known, Measurements, read_measurements

FORMAT = 1  # one more where an earlier version could not read what is written
KIND = "pmsr run"
SETTINGS = "settings.json"
DATA = "data.csv"
CHECKPOINT = "checkpoint.npz"
LOG = "pmsr.log"
REPORT = "report.html"
EQUATIONS = "equations.csv"
POSTERIOR = "posterior.nc"

# Every file of a run's folder.
_OURS = re.compile(
    "|".join(
        re.escape(name)
        for name in (SETTINGS, DATA, CHECKPOINT, LOG, REPORT, EQUATIONS, POSTERIOR, HEADER)
    )
    + f"|{ARRAYS.pattern}"
)

# The estimator's parameters that a run may set; the others belong to the process.
_CHOSEN = (
    "operators",
    "population_size",
    "generations",
    "max_time",
    "max_complexity",
    "max_parameters",
    "fitness",
    "guesses",
    "random_state",
    "law_prior",
    "interval",
    "units",
    "noise",
    "extra_noise",
    "shared_sigma",
    "positive",
)
# Those that are younger than runs that people have, with what was done before.
_ADDED: dict[str, object] = {
    "noise": "gaussian",
    "extra_noise": False,
    "shared_sigma": False,
    "positive": False,
}
# Those of its Search.
_OF_SEARCH = ("evidence", "n_islands")


# Any: values of JSON.
@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run was asked to do; the file ``settings.json`` of its folder.

    Parameters
    ----------
    source
        Name of the file with the data.
    columns
        What the columns of the data are, in the file and in the folder's own copy.
    command, created
        How and when it was started.
    parameters
        Those of the estimator that were chosen, as JSON knows them; None for a comparison.
    finished
        Whether a search has used its budget up and its results are written.
    notes
        What was done to the file before it was used, in sentences.
    constants
        Numbers that are known, by name; some with a standard error.
    noise_table
        How the noise was chosen: a row for each model, the best first; none if it was given.
    """

    source: str
    columns: Columns
    command: str
    created: str
    parameters: Mapping[str, Any] | None = None
    finished: bool = False
    notes: tuple[str, ...] = ()
    constants: Mapping[str, Known] = field(default_factory=dict)
    noise_table: tuple[Mapping[str, Any], ...] = ()


def prepare_folder(path: Path, *, force: bool = False) -> None:
    """Make the folder of a new run.

    Parameters
    ----------
    path
        The folder, made if need be.
    force
        Whether an older run in it is removed.

    Raises
    ------
    ValueError
        If there is something else, or an older run that is not to be removed.
    """
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file. A run needs a folder: choose another --out.")
    if path.is_dir() and any(path.iterdir()):
        if not (path / SETTINGS).is_file():
            raise ValueError(
                f"{path} holds other files. Choose a new or an empty folder with --out."
            )
        if not force:
            raise ValueError(
                f"{path} holds a run already. Go on with it, pmsr resume {quote(str(path))}, or "
                "start over with --force."
            )
        read_run(path)  # a settings.json of somebody else is not ours to remove
        remove_remains(path)
        for file in list(path.iterdir()):
            if _OURS.fullmatch(file.name):
                file.unlink()
    path.mkdir(parents=True, exist_ok=True)


def remove_remains(path: Path) -> None:
    """Remove what a killed run left of files that it was writing."""
    remove_parts(path, _OURS)


def start_run(path: Path, run: Run, measured: Measurements) -> None:
    """Write down what a run needs in order to go on if it is killed at any moment."""
    write_file(path / DATA, to_csv(measured.names, measured.rows))
    write_settings(path, run)
    versions = ", ".join(f"{name} {found}" for name, found in library_versions().items())
    write_log(path, f"started: {run.command}")
    n, target = len(measured.y), run.columns.target
    write_log(path, f"{n} observations of {target} from {run.source}; {versions}")
    for note in run.notes:
        write_log(path, note)


def write_settings(path: Path, run: Run) -> None:
    """Write ``settings.json``."""
    whole = {"kind": KIND, "format": FORMAT, **asdict(run), "versions": library_versions()}
    write_file(path / SETTINGS, json.dumps(whole, indent=1, ensure_ascii=False).encode())


def write_log(path: Path, text: str) -> None:
    """Add a line to the log; a link in its place is not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    with (
        naming(path / LOG),
        open(os.open(path / LOG, flags, 0o644), "a", encoding="utf-8") as file,
    ):
        file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {' '.join(text.split())}\n")


def read_run(path: Path) -> Run:
    """Read what a run was asked to do.

    Raises
    ------
    ValueError
        If the folder is not a run, or is damaged. Nothing in it is executed.
    """
    if not (path / SETTINGS).is_file():
        raise ValueError(f"{path} is not a run: it has no {SETTINGS}. Give the folder of pmsr fit.")
    try:
        whole = json.loads((path / SETTINGS).read_bytes())
        if not isinstance(whole, dict) or whole.get("kind") != KIND:
            raise ValueError(f'{SETTINGS} does not say "kind": "{KIND}"')
        if whole.get("format") != FORMAT:
            raise ValueError(f"format {whole.get('format')!r}, this version of pmsr reads {FORMAT}")
        texts = {name: as_text(whole[name]) for name in ("source", "command", "created")}
        parameters = whole["parameters"]
        if parameters is not None:
            # An earlier version did not have all of them.
            parameters = {**ADDED_TO_SEARCH, **_ADDED, **parameters}
            parameters = {name: parameters[name] for name in (*_CHOSEN, *_OF_SEARCH)}
            chosen = parameters_from_json(parameters)
            Search(**{name: chosen[name] for name in chosen if hasattr(Search, name)})
            if chosen["noise"] != AUTO:
                names = ("noise", "extra_noise", "shared_sigma", "positive")
                Settings(**{name: chosen[name] for name in names})
        notes = tuple(map(as_text, as_list(whole.get("notes", []))))
        finished = whole.get("finished", False)
        if not isinstance(finished, bool):
            raise ValueError(f"a run is finished or not, got {finished!r}")
        return Run(
            **texts,
            columns=_read_columns(whole),
            parameters=parameters,
            finished=finished,
            notes=notes,
            constants={
                as_text(name): _read_known(value)
                for name, value in whole.get("constants", {}).items()
            },
            noise_table=tuple(map(_read_choice, as_list(whole.get("noise_table", [])))),
        )
    except BROKEN as error:
        raise damaged(path, error) from None


def _read_known(record: object) -> Known:
    """Return a number, or one with its standard error."""
    if not isinstance(record, list):
        return as_number(record)
    value, error = map(as_number, record)
    return value, error


def _read_choice(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the table of noise models."""
    texts = {name: as_text(record[name]) for name in ("noise", "equation")}
    return texts | {name: as_number(record[name]) for name in ("log_q", "score")}


def _read_columns(whole: Mapping[str, Any]) -> Columns:
    """Return what the columns of a run are; an earlier version knew variables and target only."""
    record = dict(whole["columns"] if "columns" in whole else whole)
    features = tuple(map(as_text, as_list(record["features"])))
    others = {name: record.get(name) for name in ("error", "weight", "group")}
    for name in others.values():
        if name is not None:
            as_text(name)
    x_errors = {as_text(name): as_text(of) for name, of in record.get("x_errors", {}).items()}
    return Columns(target=as_text(record["target"]), features=features, x_errors=x_errors, **others)


def read_run_data(path: Path, run: Run) -> Measurements:
    """Read the folder's own copy of the data."""
    columns = run.columns
    names = [*(columns.features or ()), *columns.others, columns.target]
    table = read_table(path / DATA, own_names=names, own_texts=columns.texts)
    return read_measurements(table, columns, str(path / DATA), constants=run.constants)


def chosen_parameters(regressor: BayesianSymbolicRegressor) -> dict[str, Any]:
    """Return the parameters of an estimator that a run keeps."""
    whole = parameters_to_json(regressor.get_params(deep=False))
    search = regressor.search or Search()
    return {name: whole[name] for name in _CHOSEN} | {
        name: getattr(search, name) for name in _OF_SEARCH
    }


def make_regressor(chosen: Mapping[str, Any], **others: Any) -> BayesianSymbolicRegressor:
    """Return the estimator with the parameters that a run has chosen, and others."""
    own = {name: value for name, value in chosen.items() if name not in _OF_SEARCH}
    search = Search(**{name: chosen[name] for name in _OF_SEARCH if name in chosen})
    return BayesianSymbolicRegressor(**own, search=search, **others)


def read_used(path: Path) -> tuple[int, float]:
    """Return how many generations and seconds of its budget a run has used."""
    checkpoint = path / CHECKPOINT
    return read_progress(checkpoint) if checkpoint.exists() else (0, 0.0)


def extend_budget(
    path: Path, run: Run, seconds: float | None, generations: int | None
) -> dict[str, Any]:
    """Return a run's parameters with the budget with which it goes on.

    Parameters
    ----------
    path, run
        The run.
    seconds, generations
        How much longer it may search. If both are None, a run that did not come to its end has
        what is left of its budget, one that did has the same budget again.

    Notes
    -----
    A run that was killed while its finalists were weighed, or its files written, did not come to
    its end, although nothing may be left of its budget; then only that is done again.
    """
    parameters = dict(run.parameters or {})
    total, limit = parameters["max_time"], parameters["generations"]
    if seconds is None and generations is None:
        if not run.finished:
            return parameters
        seconds, generations = total, limit
    done, elapsed = read_used(path)
    # The search counts from its first start.
    parameters["max_time"] = None if seconds is None else elapsed + seconds
    parameters["generations"] = done + (limit if generations is None else generations)
    return parameters


def log_generation(path: Path, generation: Generation) -> None:
    """Add a generation to the log."""
    record, best = generation.record, generation.best
    found = "nothing yet" if best is None else f"score {best.score:.4f}: {best.key}"
    write_log(
        path,
        f"generation {generation.number}, {record['n_candidates']} equations, "
        f"{record['elapsed']:.1f} s, {found}",
    )


def write_result(
    path: Path,
    run: Run,
    result: Result,
    regressor: BayesianSymbolicRegressor | None = None,
    *,
    report: bool = True,
) -> None:
    """Write everything that a result has to show, each file in a single step.

    Parameters
    ----------
    path, run
        The run.
    result
        What it has found.
    regressor
        The estimator that holds the result, if there is one.
    report
        Whether to write the report too.
    """
    # First: time may run out, and posteriors of other equations than the best can wait.
    content = describe_run(path, run, result) if report else None
    if regressor is None:
        result.save(path, others=True)
    else:
        regressor.save(path, others=True)
    table = result.table.copy()
    if result.names is None:
        table.index = pd.RangeIndex(1, len(table) + 1, name="rank")
    names = [str(table.index.name), *map(str, table.columns)]
    write_file(path / EQUATIONS, to_csv(names, table.itertuples(name=None)))
    with suppress(ValueError):  # weighed, but not sampled
        # Any: InferenceData or DataTree, both of which know how to write themselves.
        posterior: Any = result.best.compact_posterior
        with writing(path / POSTERIOR) as part:
            posterior.to_netcdf(part, engine="h5netcdf")
    if content is not None:
        write_report(path / REPORT, content)
    for doubt in result.warnings:
        write_log(path, f"doubt: {doubt}")
    best = result.best
    write_log(path, f"ended ({result.stopped or 'weighed'}): {best.target} = {best.equation}")


def describe_run(path: Path, run: Run, result: Result, *, level: float = 0.95) -> ReportContent:
    """Return what the report of a run shows.

    Parameters
    ----------
    path, run, result
        The run, and what it has found.
    level
        Probability of the intervals.
    """
    notes = list(run.notes)
    if result.stopped == "interrupted":
        notes.append(
            "The search was interrupted before its budget ended. Go on with it: "
            f"pmsr resume {quote(str(path))}"
        )
    if run.noise_table and result.noise_table is None:
        # Of a search that the shell went on with under the noise that was chosen.
        result = replace(result, noise_table=pd.DataFrame(run.noise_table))
    return gather_content(
        result,
        level=level,
        source=run.source,
        created=run.created,
        command=run.command,
        folder=quote(str(path)),
        warnings=notes,
    )


def read_result(path: Path) -> Result:
    """Read the result of a run.

    Raises
    ------
    ValueError
        If there is none, or the folder is damaged or was tampered with.
    """
    if (path / SETTINGS).is_file() and not (path / HEADER).is_file():
        raise ValueError(f"{path} has no result yet. Go on with it: pmsr resume {quote(str(path))}")
    return load_result(path)
