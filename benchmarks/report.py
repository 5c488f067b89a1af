"""What the benchmarks share: one process, a progress bar, a table on screen and one on disk."""

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pandas as pd
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

# The announcement of ArviZ 1.0; both generations work.
warnings.filterwarnings("ignore", message=r"\s*ArviZ is undergoing", category=FutureWarning)

RESULTS = Path(__file__).parent / "results"
console = Console(width=None if sys.stdout.isatty() else 140)


def run(main: Callable[[bool], bool], description: str) -> None:
    """Run a benchmark from the command line; the exit code is 1 if it missed what is asked."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small sample, in seconds")
    sys.exit(0 if main(parser.parse_args().quick) else 1)


def track(items: Iterable[Any], total: int, description: str) -> Iterator[Any]:
    """Go through the items with a progress bar, which is silent where nobody watches."""
    bar_console = Console(stderr=True)
    disable = not bar_console.is_terminal
    with Progress(console=bar_console, transient=True, disable=disable) as progress:
        yield from progress.track(items, total=total, description=description)


def show(title: str, frame: pd.DataFrame, formats: dict[str, str]) -> None:
    """Print a data frame; columns without a format are printed as they are."""
    table = Table(title=title, title_justify="left")
    for name in frame.columns:
        text = not pd.api.types.is_numeric_dtype(frame[name])
        table.add_column(name, justify="left" if text else "right", no_wrap=text)
    for row in frame.itertuples(index=False):
        table.add_row(
            *(_cell(value, formats.get(name, "")) for name, value in zip(frame, row, strict=True))
        )
    console.print(table)


def _cell(value: Any, format_spec: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return "[green]yes[/]" if value else "[red]no[/]"
    return "-" if pd.isna(value) else format(value, format_spec)


def save(name: str, frame: pd.DataFrame, quick: bool) -> None:
    """Write results/NAME.csv, or NAME_quick.csv, which is not kept."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}{'_quick' if quick else ''}.csv"
    frame.to_csv(path, index=False, float_format="%.6g")
    console.print(f"written: {os.path.relpath(path)}")


def judge(what: str, passed: Sequence[bool]) -> bool:
    """Say how many of the cases hold, and return whether all do."""
    n_passed, n = sum(map(bool, passed)), len(passed)
    verdict = "[green]pass[/]" if n_passed == n else "[red]FAIL[/]"
    console.print(f"{verdict}  {what}: {n_passed} of {n}")
    return n_passed == n
