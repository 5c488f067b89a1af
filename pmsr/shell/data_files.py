"""A user's file as a table of numbers: CSV, TSV, Parquet or Excel, with errors that say where."""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd

from pmsr.csv_text import guarded, unguarded
from pmsr.data import suggest
from pmsr.files import reason, shortened

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
# A small file can claim to be a large table, and would fill the memory.
MAX_RATIO = 100  # what an Excel file may unfold to, times its size; also Apache POI's limit
MAX_ROWS = 1_048_576  # of a sheet, Excel's own limit
MAX_VALUES = 100_000_000  # of a Parquet file, which as floats take 800 MB
MAX_SHOWN = 60  # characters of a cell in an error
MOSTLY_EMPTY, MANY_CELLS = 10, 1_000_000  # times as many cells as are filled; harmless below


def read_table(path: str | Path, *, own_names: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a file with names in its first row; values stay as they are.

    Parameters
    ----------
    path
        Text in UTF-8 (.csv, .tsv, .txt), .parquet, or the first sheet of .xlsx. Text may be
        separated by commas, tabs or semicolons; with semicolons, decimal commas are understood.
    own_names
        Names of the columns of a file that `to_csv` wrote, and which must be as it was written.

    Returns
    -------
    DataFrame
        Columns under their names in the file; names may be repeated or blank, which
        `choose_columns` refuses where it matters.

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
        if own_names is not None:
            table = _read_own_text(path, own_names)
        elif kind in TEXT:
            table = _read_text(path, "\t" if kind == ".tsv" else None)
        elif kind in PARQUET:
            table = _read_parquet(path)
        else:
            table = _read_excel(path)
    except ImportError:
        raise ValueError(
            f'{path}: a library for {kind} files is missing. Install it with pip install "pmsr'
            '[files]", or save the table as .csv.'
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: the text is not UTF-8. Save it as CSV in UTF-8.") from None
    # Readers of broken files raise what they like: zip, XML and Arrow errors among them.
    except Exception as error:
        raise ValueError(f"{path}: not a table that can be read: {reason(error)}") from None
    if table.shape[0] == 0 or table.shape[1] == 0:
        raise ValueError(f"{path}: no rows below the names of the columns.")
    return table


def _read_text(path: Path, separator: str | None) -> pd.DataFrame:
    text = path.read_bytes().decode("utf-8-sig")
    if not text.strip():
        raise ValueError("the file is empty")
    first = text.lstrip("\r\n").splitlines()[0]
    # By whatever they are separated: a decimal comma is no reason to lose a row.
    _check_header([cell.strip(' "') for cell in re.split(r"[,;\t]", first)])
    separator = separator or max(",;\t", key=first.count)
    comma = separator == ";" and re.search(r"(^|[;\r\n])[ \t]*[+-]?\d+,\d", text) is not None
    names, table = _parse_text(text, separator, comma)
    table.columns = pd.Index([unguarded(name.strip()) for name in names])
    return table


def _read_own_text(path: Path, names: Sequence[str]) -> pd.DataFrame:
    """Read a file of pmsr's: its names are known, and may be anything."""
    found, table = _parse_text(path.read_bytes().decode("utf-8"), ",", comma=False)
    if found != [guarded(name) for name in names]:
        raise ValueError("its columns are not those that pmsr wrote")
    table.columns = pd.Index(names)
    return table


def _parse_text(text: str, separator: str, comma: bool) -> tuple[list[str], pd.DataFrame]:
    """Return the first row of a text, and a table of the others without names."""
    lines = io.StringIO(text, newline="")
    rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    longest = max(map(len, rows), default=0)
    if not rows or longest > len(rows[0]):
        n_names = len(rows[0]) if rows else 0
        raise ValueError(f"{n_names} names of columns, but a row with {longest} values")
    _check_filled(len(rows), longest, sum(map(len, rows)))
    cells = zip(*(row + [""] * (longest - len(row)) for row in rows[1:]), strict=True)
    # Not by pandas, which would rename columns that share a name, and may lose the last digit.
    table = pd.DataFrame({place: _to_column(column, comma) for place, column in enumerate(cells)})
    return rows[0], table.reindex(columns=range(longest))


def _check_filled(n_rows: int, n_columns: int, n_filled: int) -> None:
    """Refuse what is all but empty: a few cells far apart would fill the memory."""
    n_cells = n_rows * n_columns
    if n_cells > MANY_CELLS and n_cells > MOSTLY_EMPTY * n_filled:
        raise ValueError(f"{n_rows:,} rows and {n_columns:,} columns with only {n_filled:,} values")


def _to_column(cells: Sequence[str], comma: bool) -> "pd.Series[Any]":
    """Turn text into numbers, if all of it are numbers; what is missing is None."""
    stripped = [None if cell.strip().lower() in MISSING else cell.strip() for cell in cells]
    try:
        numbers = [None if cell is None else _to_float(cell, comma) for cell in stripped]
    except ValueError:
        return pd.Series(stripped, dtype=object)
    return pd.Series(numbers, dtype=np.float64)


def _to_float(cell: str, comma: bool) -> float:
    if "_" in cell:  # 1_000 is a number for Python only
        raise ValueError
    return float(cell.replace(",", ".") if comma else cell)


def _check_header(names: Sequence[str]) -> None:
    """Refuse names that are all numbers: they are the first row of the data, which would be lost.

    Examples
    --------
    >>> _check_header(["wavelength", "400", "410"])
    >>> _check_header(["1.5", "2"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: its first row holds numbers, '1.5' and so on, where the names of the columns are...
    """
    told = [name for name in names if name.lower() not in MISSING]
    if told and all(map(_is_like_a_number, told)):
        raise ValueError(
            f"its first row holds numbers, {told[0]!r} and so on, where the names of the columns "
            "are expected. Put a row of names above it; if these are names, add a letter to one."
        )


def _is_like_a_number(name: str) -> bool:
    try:
        _to_float(name, comma=False)
    except ValueError:
        return False
    return any(map(str.isdigit, name))  # inf is a name


def _read_parquet(path: Path) -> pd.DataFrame:
    from pyarrow import types  # only where there is such a file
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        n_rows, n_columns = file.metadata.num_rows, file.metadata.num_columns
        fields = list(file.schema_arrow)
    if n_rows * n_columns > MAX_VALUES:
        raise ValueError(
            f"{n_rows:,} rows of {n_columns:,} columns are more than {MAX_VALUES:,} values; take "
            "fewer rows"
        )
    # A text that is repeated is in the file once: a long one would fill the memory, were it not
    # kept so. One row of lists can hold any number of values, and of what has a fixed size each can
    # be as large as that: such columns are never numbers, and are not looked into.
    sealed = {
        place: one
        for place, one in enumerate(fields)
        if types.is_nested(one.type) or types.is_fixed_size_binary(one.type)
    }
    opened = [one for place, one in enumerate(fields) if place not in sealed]
    texts = [one.name for one in opened if not types.is_primitive(one.type)]
    names = [one.name for one in opened] if sealed else None
    with ParquetFile(path, read_dictionary=texts) as file:
        table: pd.DataFrame = file.read(columns=names).to_pandas()
    for place, kind in enumerate(table.dtypes):
        if isinstance(kind, pd.CategoricalDtype):
            # As Python's texts, of which every row has the same one; Arrow would repeat them.
            codes = table.iloc[:, place].cat.codes
            words = np.array([*table.iloc[:, place].cat.categories, None], dtype=object)
            # Any: pandas' stubs know columns of one kind less than pandas.
            column: Any = pd.Series(words[codes], table.index, dtype=object)
            table.isetitem(place, column)
    for place, one in sealed.items():
        table.insert(min(place, table.shape[1]), one.name, str(one.type), allow_duplicates=True)
    return table


def _read_excel(path: Path) -> pd.DataFrame:
    """Read the first sheet, not by pandas, which makes room for every cell that could be there."""
    from openpyxl import load_workbook  # only where there is such a file

    with ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > MAX_RATIO * path.stat().st_size:
        raise ValueError(f"it unfolds to {size:,} bytes, more than a table does")
    book = load_workbook(path, read_only=True, data_only=True, keep_links=False)
    try:
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # what the file says of its size need not be true
        rows: list[list[object]] = []
        for row in sheet.iter_rows(values_only=True):
            rows.append(_without_trailing([_to_cell(value) for value in row]))
            if len(rows) > MAX_ROWS:
                raise ValueError(f"more than {MAX_ROWS:,} rows")
    finally:
        book.close()
    while rows and not rows[-1]:
        rows.pop()
    start = next((place for place, row in enumerate(rows) if row), 0)
    rows = rows[start:]
    if not rows:
        raise ValueError("the sheet is empty")
    longest = max(map(len, rows))
    _check_filled(len(rows), longest, sum(map(len, rows)))
    names, *rows = (row + [None] * (longest - len(row)) for row in rows)
    table = pd.DataFrame(rows, columns=range(longest), dtype=object).infer_objects()
    table.columns = pd.Index(["" if name is None else str(name).strip() for name in names])
    _check_header(list(table.columns))
    return table


def _to_cell(value: object) -> object:
    is_missing = isinstance(value, str) and value.strip().lower() in MISSING
    return None if is_missing else value


def _without_trailing(row: list[object]) -> list[object]:
    while row and row[-1] is None:
        row.pop()
    return row


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
    table: pd.DataFrame,
    target: str,
    features: Sequence[str] | None,
    source: str,
    *,
    others: Sequence[str] = (),
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the variables and the target of a table.

    Parameters
    ----------
    table, source
        As in `choose_columns`.
    target
        Name of the column to be explained.
    features
        Names of the columns that may explain it; None for all that are left.
    others
        Names of columns that have another meaning.
    """
    columns = list(map(str, table.columns))
    if target not in columns:
        choose_columns(table, [target], source)
    if features is None:
        features = [name for name in columns if name != target and name not in others]
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
            f"{place} holds text, {shortened(str(strange[1]), MAX_SHOWN)!r} in row {strange[0]}. "
            "Leave it out with --features."
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
