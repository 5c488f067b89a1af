"""Units of work, each kept in a small JSON file, so that nothing is done twice."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pmsr import __version__
from pmsr.files import write_file

# Any: what JSON can hold.
Task: TypeAlias = dict[str, Any]
Record: TypeAlias = dict[str, Any]

UNITS = "units"  # folder of the files, in that of the experiment


def run_units(
    function: Callable[[Task], Record],
    tasks: Sequence[Task],
    out: str | Path,
    *,
    n_jobs: int | None = None,
    title: str = "",
) -> list[Record]:
    """Do every task that has not been done before.

    Parameters
    ----------
    function
        What to do, a function of a module: task in, record out. All that decides its result must
        be in the task.
    tasks
        What JSON can hold; ``task["name"]`` begins the name of its file.
    out
        The experiment's folder. A file is written when its task is done, and complete or not at
        all; the same task of the same version of pmsr is read from it.
    n_jobs
        Tasks at a time, in the sense of joblib.
    title
        What the progress bar says.

    Returns
    -------
    list of dict
        One record a task, in the order of the tasks.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as out:
    ...     run_units(dict, [{"name": "first", "x": 1}], out)
    [{'name': 'first', 'x': 1}]
    """
    folder = Path(out) / UNITS
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / file_name(function, task) for task in tasks]
    records: list[Record | None] = [_read(path) for path in paths]
    missing = [k for k, record in enumerate(records) if record is None]
    with _progress(title, len(tasks)) as show:
        show(len(tasks) - len(missing))
        # Unordered: each is counted when it is done.
        done = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(
            delayed(_do)(function, tasks[k], paths[k], k) for k in missing
        )
        for place, record in done:
            records[place] = record
            show(1)
    return [record for record in records if record is not None]


def file_name(function: Callable[[Task], Record], task: Task) -> str:
    """Return the name of a task's file: the task's own, and a digest of all that decides it."""
    text = json.dumps([__version__, function.__name__, task], sort_keys=True)
    digest = blake2b(text.encode(), digest_size=5).hexdigest()
    return f"{task['name']}-{digest}.json"


def _do(
    function: Callable[[Task], Record], task: Task, path: Path, place: int
) -> tuple[int, Record]:
    record = function(task)
    text = json.dumps({"task": task, "record": record}, default=_plain)
    write_file(path, text.encode())
    # As it will be read next time.
    return place, json.loads(text)["record"]


def _read(path: Path) -> Record | None:
    if not path.exists():
        return None
    record: Record = json.loads(path.read_text(encoding="utf-8"))["record"]
    return record


def _plain(value: Any) -> Any:
    """Turn what NumPy made into what JSON can hold."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item()


@contextmanager
def _progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    console = Console(stderr=True)
    seen = console.is_terminal or console.is_jupyter
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not seen,
    ) as progress:
        task = progress.add_task(escape(title), total=total)
        yield lambda n: progress.update(task, advance=n)
