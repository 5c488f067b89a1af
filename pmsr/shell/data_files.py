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
from pmsr.files import reason, shortened
from pmsr.names import suggest
from pmsr.shell.numerals import (
    Doubtful,
    both_readings,
    choose_decimals,
    find_decimal,
    is_like_a_number,
    read_number,
)
from pmsr.shell.text_files import (
    ERROR_VALUE,
    MISSING,
    N_LOOKED_AT,
    are_all_numbers,
    decode,
    read_rows,
)

TEXT = (".csv", ".tsv", ".txt", ".dat")
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xlsm")
# A small file can claim to be a large table, and would fill the memory.
MAX_RATIO = 100  # what an Excel file may unfold to, times its size; also Apache POI's limit
MAX_ROWS = 1_048_576  # of a sheet, Excel's own limit
MAX_VALUES = 100_000_000  # of a Parquet file, which as floats take 800 MB
MAX_SHOWN = 60  # characters of a cell in an error
MAX_LISTED = 5  # rows
MOSTLY_EMPTY, MANY_CELLS = 10, 1_000_000  # times as many cells as are filled; harmless below
FIRST_ROW = 2  # of the data, where row 1 holds names
# A number and what stands behind it: a unit, or its error.
_WITH_MORE = re.compile(
    r"(?P<number>[+-]?[\d., ]*\d(?:[eE][+-]?\d+)?)(?P<more>\s*(?:[^\W\d_]|[%‰°±]|\+/?-).*)"
)
NOTES = "notes"  # where a table keeps what was done to it


def read_table(
    path: str | Path,
    *,
    own_names: Sequence[str] | None = None,
    own_texts: Sequence[str] = (),
    sheet: str | None = None,
    header: bool = True,
    decimal: str | None = None,
) -> pd.DataFrame:
    """Read a file with names in its first row; values stay as they are.

    Parameters
    ----------
    path
        Text (.csv, .tsv, .txt, .dat), .parquet, or a sheet of .xlsx. Text may be separated by
        commas, tabs, semicolons or blanks, and its numbers written in any country's way.
    own_names, own_texts
        Names of the columns of a file that `to_csv` wrote, and which must be as it was written;
        and those of them that hold text.
    sheet
        Name or number of a sheet, from 1; None for the first.
    header
        Whether the first row holds names; otherwise columns are called x1, x2, ...
    decimal
        The decimal sign, where the file does not tell.

    Returns
    -------
    DataFrame
        Columns under their names in the file; names may be repeated or blank, which
        `choose_columns` refuses where it matters. Its index has the numbers of the rows in the
        file, of which the first is 1; its ``attrs["notes"]``, what was done to it, in sentences.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it cannot be read as a table, or a library for it is missing.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if str(path) == "-" or path.is_fifo():
        raise ValueError(f"{path}: a pipe is no file. Save the table as .csv first.")
    if path.exists() or kind in TEXT + PARQUET + EXCEL:
        with path.open("rb"):  # what is not there, or a folder, is no table that is broken
            pass
    if kind not in TEXT + PARQUET + EXCEL:
        available = ", ".join(TEXT + PARQUET[:1] + EXCEL[:1])
        what = f"unknown kind of file {kind!r}" if kind else "its name has no ending"
        raise ValueError(f"{path}: {what}. Available: {available}.")
    if sheet is not None and kind not in EXCEL:
        raise ValueError(f"{path}: only .xlsx files have sheets. Leave --sheet out.")
    try:
        if own_names is not None:
            table = _read_own_text(path, own_names, own_texts)
        elif kind in TEXT:
            table = _read_text(path, "\t" if kind == ".tsv" else None, header, decimal)
        elif kind in PARQUET:
            table = _read_parquet(path)
            table.index = pd.RangeIndex(FIRST_ROW, FIRST_ROW + len(table))
        else:
            table = _read_excel(path, sheet, header, decimal)
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


def _read_text(
    path: Path, separator: str | None, header: bool, decimal: str | None
) -> pd.DataFrame:
    text, said = decode(path.read_bytes())
    rows = read_rows(text, separator=separator, header=header)
    longest = len(rows.names)
    _check_filled(len(rows.cells) + 1, longest, longest + sum(map(len, rows.cells)))
    if not rows.cells:
        return pd.DataFrame()
    cells = list(zip(*(row + [""] * (longest - len(row)) for row in rows.cells), strict=True))
    # A semicolon is chosen where a comma is not free.
    default = "," if rows.separator == ";" else None
    columns, notes = _to_columns(cells, rows.names, decimal, default)
    # Not by pandas, which would rename columns that share a name, and may lose the last digit.
    table = pd.DataFrame(dict(enumerate(columns)))
    table = table.reindex(columns=range(longest))
    return _label(table, rows.names, rows.numbers, (*said, *rows.notes, *notes))


def _label(
    table: pd.DataFrame, names: Sequence[str], numbers: Sequence[int], notes: Sequence[str]
) -> pd.DataFrame:
    table.columns = pd.Index(names)
    table.index = pd.Index(numbers[: len(table)], dtype=int)
    # A separator at the end of every row makes a column of nothing.
    filled = [bool(str(name).strip()) for name in names] | table.notna().any().to_numpy()
    if not filled.all():
        table = table.loc[:, filled]
    table.attrs[NOTES] = tuple(notes)
    return table


def _read_own_text(path: Path, names: Sequence[str], texts: Sequence[str]) -> pd.DataFrame:
    """Read a file of pmsr's: its names are known, and may be anything."""
    lines = io.StringIO(path.read_bytes().decode("utf-8"), newline="")
    found, *rows = [row for row in csv.reader(lines) if row] or [[]]
    if found != [guarded(name) for name in names]:
        raise ValueError("its columns are not those that pmsr wrote")
    if any(len(row) != len(found) for row in rows):
        raise ValueError("a row has more or fewer values than there are columns")
    columns, _ = _to_columns(list(zip(*rows, strict=True)), found, ".", None)
    for place, name in enumerate(names):
        if name in texts:
            columns[place] = pd.Series([unguarded(row[place]) for row in rows], dtype=object)
    return _label(pd.DataFrame(dict(enumerate(columns))), names, range(2, len(rows) + 2), ())


def _check_filled(n_rows: int, n_columns: int, n_filled: int) -> None:
    """Refuse what is all but empty: a few cells far apart would fill the memory."""
    n_cells = n_rows * n_columns
    if n_cells > MANY_CELLS and n_cells > MOSTLY_EMPTY * n_filled:
        raise ValueError(f"{n_rows:,} rows and {n_columns:,} columns with only {n_filled:,} values")


# Any: a sheet has numbers, text and dates.
def _to_columns(
    columns: Sequence[Sequence[Any]],
    names: Sequence[str],
    decimal: str | None,
    default: str | None,
) -> tuple[list["pd.Series[Any]"], list[str]]:
    """Turn text into numbers where all of a column are numbers; what is missing is None.

    Returns the columns, and a sentence for each from which thousands separators were taken.
    """
    stripped = [[_strip(cell) for cell in column] for column in columns]
    texts = [[cell for cell in column if isinstance(cell, str)] for column in stripped]
    numeric = [all(map(is_like_a_number, text)) for text in texts]
    shown = [text if is_all else [] for text, is_all in zip(texts, numeric, strict=True)]
    found: list[pd.Series[Any]] = []
    notes: list[str] = []
    signs = choose_decimals(shown, given=decimal, default=default)
    for name, column, is_all, sign in zip(names, stripped, numeric, signs, strict=True):
        if not is_all:
            found.append(pd.Series(column, dtype=object))
            continue
        if sign is None:
            doubtful = [Doubtful(cell) if isinstance(cell, str) else cell for cell in column]
            found.append(pd.Series(doubtful, dtype=object))
            continue
        try:
            values = [read_number(cell, sign) if isinstance(cell, str) else cell for cell in column]
        except ValueError:  # numbers elsewhere, but not with the sign that the user says
            found.append(pd.Series(column, dtype=object))
            continue
        for cell, value in zip(column, values, strict=True):
            if isinstance(cell, str) and _has_thousands(cell, sign, value):
                notes.append(f"Column {name!r} has thousands separators: {cell} is {value!r}.")
                break
        found.append(pd.Series(values).infer_objects())
        if all(value is None for value in values):
            found[-1] = pd.Series(values, dtype=np.float64)
    return found, notes


def _has_thousands(cell: str, decimal: str, value: float) -> bool:
    try:
        return float(cell.replace("\u2212", "-").replace(decimal, ".")) != value
    except ValueError:
        return True


def _strip(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    cell = cell.strip()
    return None if cell.lower() in MISSING or ERROR_VALUE.fullmatch(cell) else cell


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


def _read_excel(path: Path, sheet: str | None, header: bool, decimal: str | None) -> pd.DataFrame:
    """Read a sheet, not by pandas, which makes room for every cell that could be there."""
    from openpyxl import load_workbook  # only where there is such a file

    with ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > MAX_RATIO * path.stat().st_size:
        raise ValueError(f"it unfolds to {size:,} bytes, more than a table does")
    book = load_workbook(path, read_only=True, data_only=True, keep_links=False)
    try:
        found = _find_sheet(book.worksheets, sheet)
        n_sheets = len(book.worksheets)
        found.reset_dimensions()  # what the file says of its size need not be true
        rows: list[list[object]] = []
        for row in found.iter_rows(values_only=True):
            rows.append(_without_trailing([_strip(value) for value in row]))
            if len(rows) > MAX_ROWS:
                raise ValueError(f"more than {MAX_ROWS:,} rows")
    finally:
        book.close()
    longest = max(map(len, rows), default=0)
    _check_filled(len(rows), longest, sum(map(len, rows)))
    numbers = [number for number, row in enumerate(rows, start=1) if row]
    rows = [row for row in rows if row]
    if not rows:
        raise ValueError("the sheet is empty")
    rows = [row + [None] * (longest - len(row)) for row in rows]
    if header:
        names = ["" if name is None else str(name).strip() for name in rows[0]]
        if are_all_numbers(names):
            raise ValueError(
                f"its first row holds numbers, {names[0]!r} and so on, where the names of the "
                "columns are expected. Put a row of names above it, or say --no-header; if these "
                "are names, add a letter to one."
            )
        rows, numbers = rows[1:], numbers[1:]
        if not rows:
            return pd.DataFrame()
    else:
        names = [f"x{place + 1}" for place in range(longest)]
    columns, notes = _to_columns(list(zip(*rows, strict=True)), names, decimal, None)
    if sheet is None and n_sheets > 1:
        notes = [f"The first of {n_sheets} sheets was read, {found.title!r}: see --sheet.", *notes]
    table = pd.DataFrame(dict(enumerate(columns))).reindex(columns=range(longest))
    return _label(table, names, numbers, notes)


# Any: sheets of openpyxl, which has no types.
def _find_sheet(sheets: Sequence[Any], wanted: str | None) -> Any:
    names = [str(sheet.title) for sheet in sheets]
    if wanted is None:
        return sheets[0]
    if wanted in names:
        return sheets[names.index(wanted)]
    if wanted.isdecimal() and 1 <= int(wanted) <= len(sheets):
        return sheets[int(wanted) - 1]
    raise ValueError(f"no sheet {wanted!r}.{suggest(wanted, names)}")


def _without_trailing(row: list[object]) -> list[object]:
    while row and row[-1] is None:
        row.pop()
    return row


def choose_columns(
    table: pd.DataFrame, names: Sequence[str], source: str, *, target: str | None = None
) -> pd.DataFrame:
    """Return columns of numbers by their names.

    Parameters
    ----------
    table
        From `read_table`.
    names
        Which columns, in this order.
    source
        What the table is called in errors.
    target
        Which of them is to be explained, which errors say; the others may then be left out. Without
        one, all are needed.

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
    ValueError: ramp.csv: column 'place' holds text, 'Pisa' in row 0. Numbers are needed there.
    """
    chosen = {}
    for name in names:
        place = _find_column(table, name, source)
        if name in chosen:
            raise ValueError(f"The column {name!r} is asked for twice. Name it once.")
        role = "needed" if target is None else "target" if name == target else "feature"
        chosen[name] = _to_numbers(table.iloc[:, place], name, source, role)
    return pd.DataFrame(chosen, index=table.index)


def choose_labels(table: pd.DataFrame, name: str, source: str) -> "pd.Series[Any]":
    """Return a column of names, such as those of experiments, as text.

    Parameters
    ----------
    table, source
        As in `choose_columns`.
    name
        Which column.

    Examples
    --------
    >>> choose_labels(pd.DataFrame({"run": [1.0, 2.5, "b"]}), "run", "ramp.csv").to_list()
    ['1', '2.5', 'b']
    """
    place = _find_column(table, name, source)
    column: Any = table.iloc[:, place]
    missing = column.index[pd.isna(column)]
    if len(missing):
        raise ValueError(
            f"{source}: column {name!r} has no value in {in_rows(missing)}. Name the experiment of "
            "every row, or leave such rows out with --drop-missing."
        )
    labels = [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        for value in column.to_list()
    ]
    return pd.Series(labels, index=table.index, name=name, dtype=object)


def _find_column(table: pd.DataFrame, name: str, source: str) -> int:
    columns = list(map(str, table.columns))
    if columns.count(name) > 1:
        raise ValueError(
            f"{source}: {columns.count(name)} columns are called {name!r}. Rename them."
        )
    if name not in columns:
        raise ValueError(
            f"{source}: no column {name!r}.{_find_lower(table, name) or suggest(name, columns)}"
        )
    return columns.index(name)


def _find_lower(table: pd.DataFrame, name: str) -> str:
    """Say where a name stands that is not in the first row: people write lines above a table."""
    upper = table.head(N_LOOKED_AT)
    for row, cells in zip(upper.index, upper.itertuples(index=False, name=None), strict=True):
        if name in cells:
            return f" It stands in row {row}: remove the rows above."
    return ""


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
        choose_columns(table, [target], source)  # says which there are
    for name in features or ():
        parts = [part.strip() for part in name.split(",")]
        if name not in columns and len(parts) > 1 and set(parts) <= set(columns):
            raise ValueError(f"--features has blanks between columns, not commas, got {name!r}.")
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
    chosen = choose_columns(table, [*features, target], source, target=target)
    return chosen[list(features)], chosen[target]


# Any: pandas does not know what is in its cells.
def _to_numbers(column: Any, name: str, source: str, role: str) -> Any:
    place = f"{source}: {'target' if role == 'target' else 'column'} {name!r}"
    missing = column.index[pd.isna(column)]
    # A column of remarks, say, is no column to complete.
    is_text = role == "feature" and any(isinstance(value, str) for value in column)
    if len(missing) and not is_text:
        raise ValueError(
            f"{place} has no value in {in_rows(missing)}. Complete such rows, or leave them out "
            "with --drop-missing."
        )
    try:
        if column.dtype.kind in "mM":
            raise ValueError
        numbers = column.astype(np.float64)
    except (ValueError, TypeError):
        raise ValueError(f"{place} {_describe_text(column, role)}") from None
    infinite = column.index[~np.isfinite(numbers)]
    if len(infinite):
        raise ValueError(f"{place} is infinite in {in_rows(infinite)}. Correct or remove it.")
    return numbers


def _describe_text(column: Any, role: str) -> str:
    """Say what is no number in a column, and what can be done about it."""
    found = [(row, value) for row, value in column.items() if not pd.isna(value)]
    strange = [(row, value) for row, value in found if not _is_number(value)]
    row, value = strange[0]
    shown = shortened(str(value), MAX_SHOWN)
    if isinstance(value, Doubtful):
        low, high = both_readings(value.text)
        if np.isnan([low, high]).any() or any(
            _is_closed(other) for _, other in strange if isinstance(other, Doubtful)
        ):
            return f"has points and commas as decimal signs, {shown!r} in row {row}. Use one."
        return (
            f"holds {shown!r} in row {row}, which is {low:g} or {high:g}. Say which sign is "
            "decimal: --decimal . or --decimal ,"
        )
    text = f"holds text, {shown!r} in row {row}."
    more = _describe_more(list(map(str, dict(strange).values())), role)
    if more:
        return f"{text} {more}"
    if len(strange) == 1 and row == column.index[0] and len(column) > 2:
        if row < FIRST_ROW:
            return f"{text} If these are names of columns, leave --no-header out."
        units = " and say --units, such as --units x=mm" * (role != "needed")
        return f"{text} If these are units, remove the row{units}."
    if role == "target":
        return f"{text} A target is a number: correct the column, or choose another --target."
    if role == "needed":
        return f"{text} Numbers are needed there."
    if 2 * len(strange) < len(found):
        return f"{text} Correct or remove such rows, or leave the column out with --features."
    if len(strange) == len(column) and 1 < len({str(value) for _, value in strange}) < len(column):
        return (
            f"{text} Leave it out with --features, or say --group-column if it names experiments."
        )
    return f"{text} Leave it out with --features."


def _describe_more(cells: Sequence[str], role: str) -> str:
    """Say what to do about numbers with something before or behind them; nothing if none have.

    Examples
    --------
    >>> _describe_more(["1.5 %", "20%"], "feature")
    "Remove '%' from all rows: numbers stand alone."
    >>> _describe_more(["12 Jan 2024", "3 Feb 2024"], "feature")
    ''
    """
    if cells[0][:1] in "<>≤≥~" and is_like_a_number(cells[0][1:]):
        return "A limit is no measurement: remove such rows, or give what was measured."
    found = [_WITH_MORE.fullmatch(cell) for cell in cells]
    told = [one["more"].strip() for one in found if one and is_like_a_number(one["number"])]
    if len(told) < len(cells):
        return ""
    if all(more.startswith(("±", "+-", "+/-")) for more in told):
        option = "--x-error-columns" if role == "feature" else "--error-column"
        return f"Put the errors in a column of their own, and say {option}."
    if len(cells) < 2 or len(set(told)) > 1:
        return ""
    where = "" if told[0] == "%" else "; a unit stands in the name of the column, or after --units"
    return f"Remove {told[0]!r} from all rows: numbers stand alone{where}."


def _is_closed(value: Doubtful) -> bool:
    return find_decimal(value.text) != "?"


def in_rows(rows: Sequence[int]) -> str:
    """Name rows of a file.

    Examples
    --------
    >>> in_rows([2]), in_rows([2, 5, 6]), in_rows(range(2, 9))
    ('row 2', 'rows 2, 5 and 6', 'rows 2, 3, 4, 5 and 3 more')
    """
    told = [str(row) for row in rows]
    if len(told) == 1:
        return f"row {told[0]}"
    if len(told) > MAX_LISTED:
        told = [*told[: MAX_LISTED - 1], f"{len(told) - MAX_LISTED + 1} more"]
    return f"rows {', '.join(told[:-1])} and {told[-1]}"


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return False
    return True
