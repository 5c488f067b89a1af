"""Tables as text, as programs and people write them: separators, comments, encodings."""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pmsr.csv_text import unguarded

# How programs write that nothing is there.
MISSING = ("", "na", "n/a", "nan", "null", "none", "#n/a")
N_LOOKED_AT = 20  # rows that say how a text is separated
SEPARATORS = "\t;,"  # where two would do, the one that is rarer in names
BLANKS = " "  # one or more
_SEP = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # how a text tells Excel
# What Excel writes where a formula has no value.
ERROR_VALUE = re.compile(r"#(N/A|NA|DIV/0!|REF!|VALUE!|NUM!|NAME\?|NULL!)", re.IGNORECASE)


@dataclass(frozen=True)
class Rows:
    """The cells of a text.

    Parameters
    ----------
    names
        The first row, or what stands for it.
    cells
        The other rows, without blank ones.
    numbers
        Where they stand in the file: the first row of a file is 1, as in Excel.
    separator
        What was between cells.
    notes
        What was done to the text, in sentences.
    """

    names: list[str]
    cells: list[list[str]]
    numbers: list[int]
    separator: str
    notes: tuple[str, ...] = ()


def decode(contents: bytes) -> tuple[str, tuple[str, ...]]:
    r"""Return a text, and a note if it is not in UTF-8.

    Examples
    --------
    >>> decode("H\u00f6he".encode("utf-16"))
    ('Höhe', ())
    >>> decode("H\u00f6he".encode("latin-1"))
    ('Höhe', ('The file is not in UTF-8 and was read as Windows-1252.',))
    """
    if contents.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return contents.decode("utf-16"), ()
    try:
        return contents.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        if b"\0" in contents:
            raise
        return contents.decode("cp1252"), (
            "The file is not in UTF-8 and was read as Windows-1252.",
        )


def read_rows(text: str, *, separator: str | None = None, header: bool = True) -> Rows:
    r"""Return the cells of a text.

    Parameters
    ----------
    text
        The text of the whole file.
    separator
        What is between cells, if it is known.
    header
        Whether the first row holds names; otherwise columns are called x1, x2, ...

    Raises
    ------
    ValueError
        If it is no table.

    Examples
    --------
    >>> rows = read_rows("# a ramp\nH (m, rms); D\n1,5; 2\n\n2; 3\n")
    >>> rows.names, rows.cells, rows.numbers
    (['H (m, rms)', 'D'], [['1,5', ' 2'], ['2', ' 3']], [3, 5])
    >>> read_rows("# H  D\n1.5  2\n").names
    ['H', 'D']
    """
    if not text.strip():
        raise ValueError("the file is empty")
    skipped, said, comment = 0, None, ""
    lines = text.splitlines(keepends=True)
    for line in lines:
        first = _SEP.fullmatch(line.strip()) if skipped == 0 else None
        if first is not None:
            said = first[1]
        elif line.lstrip().startswith("#") and ERROR_VALUE.match(line.lstrip()) is None:
            comment = line
        elif line.strip():
            break
        skipped += 1
    rest = "".join(lines[skipped:])
    if not rest:
        raise ValueError("it holds comments only")
    separator = separator or said or find_separator(rest)
    read = list(_split(rest, separator))
    numbers = [skipped + place for place, row in enumerate(read, start=1) if any(row)]
    rows = [row for row in read if any(row)]
    notes: tuple[str, ...] = ()
    if not header:
        names = [f"x{place + 1}" for place in range(max(map(len, rows)))]
    else:
        names, from_comment = _find_names(rows, comment, separator)
        if from_comment:
            notes = ("The names of the columns were taken from the comment above them.",)
        else:
            rows, numbers = rows[1:], numbers[1:]
    kept = [not (_is_comment(row) and len(row) < len(names)) for row in rows]
    for number, row, keep in zip(numbers, rows, kept, strict=True):
        if keep and len(row) > len(names):
            hint = " Decimal commas need another separator, such as a semicolon."
            raise ValueError(
                f"{len(names)} name{'s' * (len(names) != 1)} of columns, but a row with {len(row)} "
                f"values, row {number}. "
                "Lines above the names begin with #, or are removed." + hint * (separator == ",")
            )
    if not all(kept):
        n = kept.count(False)
        which = "1 line that begins with # was" if n == 1 else f"{n} lines that begin with # were"
        notes += (f"{which} left out.",)
    return Rows(
        [unguarded(name.strip()) for name in names],
        [row for row, keep in zip(rows, kept, strict=True) if keep],
        [number for number, keep in zip(numbers, kept, strict=True) if keep],
        separator,
        notes,
    )


def find_separator(text: str) -> str:
    r"""Return what is between the cells of a text: what gives all rows as many as the first.

    Examples
    --------
    >>> [find_separator(text) for text in ("H,D\n1,2", "H;D\n1,5;2", "H D\n1.5 2", "mass\n1")]
    [',', ';', ' ', ',']
    """
    lines = [line for line in text.splitlines()[: 10 * N_LOOKED_AT] if line.strip()][:N_LOOKED_AT]
    plain = [re.sub(r'"[^"]*"', '""', line) for line in lines]
    counts = {sign: [line.count(sign) for line in plain] for sign in SEPARATORS}
    found = [sign for sign in SEPARATORS if counts[sign][0]]
    even = [sign for sign in found if len(set(counts[sign])) == 1]
    if even or found:
        return max(even or found, key=lambda sign: counts[sign][0])
    words = [len(line.split()) for line in lines]
    is_shown = len(lines) > 1 or are_all_numbers(lines[0].split())
    if is_shown and words[0] > 1 and len(set(words)) == 1:
        return BLANKS
    return ","


def _split(text: str, separator: str) -> Iterator[list[str]]:
    """Yield the cells of each row; none for a blank one."""
    if separator == BLANKS:
        text = "\n".join(line.strip() for line in text.splitlines())
        found = csv.reader(io.StringIO(text), delimiter=BLANKS, skipinitialspace=True)
    else:
        found = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    for row in found:
        yield row if any(cell.strip() for cell in row) else []


def _find_names(rows: Sequence[list[str]], comment: str, separator: str) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether they stood in the comment above the rows."""
    first = rows[0]
    if not _are_numbers(first):
        return first, False
    if comment:
        text = comment.strip().lstrip("#").strip()
        for sign in (separator, *SEPARATORS, BLANKS):
            names = next(_split(text, sign), [])
            if len(names) == len(first) and not _are_numbers(names):
                return names, True
    raise ValueError(
        f"its first row holds numbers, {first[0].strip()!r} and so on, where the names of the "
        "columns are expected. Put a row of names above it, or say --no-header; if these are "
        "names, add a letter to one."
    )


def _are_numbers(cells: Sequence[str]) -> bool:
    return are_all_numbers([part for cell in cells for part in re.split("[,;\t]", cell)])


def are_all_numbers(names: Sequence[str]) -> bool:
    """Tell whether names are all numbers, and so probably none.

    Examples
    --------
    >>> are_all_numbers(["1.5", "", "2"]), are_all_numbers(["inf", "2"])
    (True, False)
    """
    told = [name.strip(' "') for name in names]
    told = [name for name in told if name.lower() not in MISSING]
    return bool(told) and all(map(_is_like_a_number, told))


def _is_like_a_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return "_" not in name and any(map(str.isdigit, name))  # inf is a name


def _is_comment(row: Sequence[str]) -> bool:
    cell = row[0].lstrip()
    return cell.startswith("#") and ERROR_VALUE.match(cell) is None
