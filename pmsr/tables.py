"""A user's file as a table of numbers: CSV, TSV, Parquet or Excel, with errors that say where."""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pmsr.data import suggest

TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xlsm")
MISSING = (
    "",
    "na",
    "n/a",
    "nan",
    "null",
    "none",
    "#n/a",
)  # how programs write that nothing is there


def read_table(path: str | Path, *, separator: str | None = None) -> pd.DataFrame:
    """Read a file with names in its first row; values stay as they are.

    Parameters
    ----------
    path
        Text in UTF-8 (.csv, .tsv, .txt), .parquet, or the first sheet of .xlsx. Text may be
        separated by commas, tabs or semicolons; with semicolons, decimal commas are understood.
    separator
        Of text; None finds it in the first line.

    Returns
    -------
    DataFrame
        Columns under their names in the file, spaces and all; names may be repeated or blank,
        which `choose_columns` refuses where it matters.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it cannot be read as a table, or a library for it is missing.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in TEXT + PARQUET + EXCEL:
        available = ", ".join(TEXT + PARQUET[:1] + EXCEL[:1])
        raise ValueError(f"{path}: unknown kind of file {kind!r}. Available: {available}.")
    with path.open("rb"):  # a file that is not there is no table that is broken
        pass
    try:
        if kind in TEXT:
            table = _read_text(path, "\t" if kind == ".tsv" else separator)
        elif kind in PARQUET:
            table = pd.read_parquet(path)
        else:
            table = _with_header(pd.read_excel(path, header=None))
    except ImportError:
        raise ValueError(
            f'{path}: a library for {kind} files is missing. Install it with pip install "pmsr'
            '[files]", or save the table as .csv.'
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: the text is not UTF-8. Save it as CSV in UTF-8.") from None
    # Readers of broken files raise what they like: zip, XML and Arrow errors among them.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path}: not a table that can be read: {reason}") from None
    if table.shape[0] == 0 or table.shape[1] == 0:
        raise ValueError(f"{path}: no rows below the names of the columns.")
    return table


def _read_text(path: Path, separator: str | None) -> pd.DataFrame:
    text = path.read_text(encoding="utf-8-sig")
    if not text.strip():
        raise ValueError("the file is empty")
    first = text.lstrip("\r\n").splitlines()[0]
    separator = separator or max(",;\t", key=first.count)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if row]
    longest = max(map(len, rows))
    if longest > len(rows[0]):
        raise ValueError(f"{len(rows[0])} names of columns, but a row with {longest} values")
    comma = separator == ";" and re.search(r"(^|;)\s*[+-]?\d+,\d", text, re.MULTILINE) is not None
    cells = zip(*(row + [""] * (longest - len(row)) for row in rows[1:]), strict=True)
    # Not by pandas, which would rename columns that share a name, and may lose the last digit.
    table = pd.DataFrame({place: _to_column(column, comma) for place, column in enumerate(cells)})
    table = table.reindex(columns=range(longest))
    table.columns = pd.Index([name.strip() for name in rows[0]])
    return table


def _to_column(cells: Sequence[str], comma: bool) -> "pd.Series[Any]":
    """Turn text into numbers, if all of it are numbers; what is missing is None."""
    stripped = [None if cell.strip().lower() in MISSING else cell.strip() for cell in cells]
    try:
        numbers = [
            None if cell is None else float(cell.replace(",", ".") if comma else cell)
            for cell in stripped
        ]
    except ValueError:
        return pd.Series(stripped, dtype=object)
    return pd.Series(numbers, dtype=np.float64)


def _with_header(table: pd.DataFrame) -> pd.DataFrame:
    """Take the names from the first row, which pandas would rename where they are repeated."""
    names = ["" if pd.isna(name) else str(name).strip() for name in table.iloc[0]]
    table = table.iloc[1:].reset_index(drop=True).infer_objects()
    table.columns = pd.Index(names)
    return table


def choose_columns(table: pd.DataFrame, names: Sequence[str], source: str) -> pd.DataFrame:
    """Return columns of numbers by their names.

    Parameters
    ----------
    table
        From `read_table`.
    names
        Which columns, in this order.
    source
        What the table is called in errors.

    Raises
    ------
    ValueError
        If a column is not there, is there twice, or holds anything but finite numbers.

    Examples
    --------
    >>> table = pd.DataFrame({"H": [1, 2], "place": ["Pisa", "Padua"]})
    >>> choose_columns(table, ["H"], "ramp.csv")["H"].to_list()
    [1.0, 2.0]
    >>> choose_columns(table, ["place"], "ramp.csv")
    Traceback (most recent call last):
        ...
    ValueError: ramp.csv: column 'place' holds text, 'Pisa' in row 1. Leave it out with --features.
    """
    columns = list(map(str, table.columns))
    chosen = {}
    for name in names:
        if columns.count(name) > 1:
            raise ValueError(
                f"{source}: {columns.count(name)} columns are called {name!r}. Rename them."
            )
        if name not in columns:
            raise ValueError(f"{source}: no column {name!r}.{suggest(name, columns)}")
        if name in chosen:
            raise ValueError(f"The column {name!r} is asked for twice. Name it once.")
        chosen[name] = _to_numbers(table.iloc[:, columns.index(name)], name, source)
    return pd.DataFrame(chosen)


def split_table(
    table: pd.DataFrame, target: str, features: Sequence[str] | None, source: str
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the variables and the target of a table.

    Parameters
    ----------
    table, source
        As in `choose_columns`.
    target
        Name of the column to be explained.
    features
        Names of the columns that may explain it; None for all others.
    """
    columns = list(map(str, table.columns))
    if target not in columns:
        choose_columns(table, [target], source)
    if features is None:
        features = [name for name in columns if name != target]
        blank = [place for place, name in enumerate(columns, start=1) if not name.strip()]
        if blank:
            raise ValueError(
                f"{source}: column {blank[0]} has no name. Name it, or choose columns with "
                "--features."
            )
        if not features:
            raise ValueError(f"{source}: there is no column besides {target!r} to explain it.")
    if target in features:
        raise ValueError(f"The target {target!r} is also among --features. Leave it out there.")
    chosen = choose_columns(table, [*features, target], source)
    return chosen[list(features)], chosen[target]


# Any: pandas does not know what is in its cells.
def _to_numbers(column: Any, name: str, source: str) -> Any:
    place = f"{source}: column {name!r}"
    missing = np.flatnonzero(pd.isna(column))
    if len(missing):
        more = f" and in {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValueError(
            f"{place} has no value in row {missing[0] + 1}{more}. Complete or remove such rows."
        )
    try:
        if column.dtype.kind in "mM":
            raise ValueError
        numbers = column.astype(np.float64)
    except (ValueError, TypeError):
        strange = next((row, v) for row, v in enumerate(column, start=1) if not _is_number(v))
        raise ValueError(
            f"{place} holds text, {str(strange[1])!r} in row {strange[0]}. Leave it out with "
            "--features."
        ) from None
    infinite = np.flatnonzero(~np.isfinite(numbers))
    if len(infinite):
        raise ValueError(f"{place} is infinite in row {infinite[0] + 1}. Correct or remove it.")
    return numbers


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return False
    return True
