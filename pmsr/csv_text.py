"""CSV that no spreadsheet executes, and that reads back as it was."""

import math
import re
from collections.abc import Iterable, Sequence

# What makes a spreadsheet take text for a formula, and execute it: OWASP's list, and the wide forms
# of these signs. Where another separator is usual, a part of our cell is a cell.
_FORMULA = "(?='*[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20])"
_UNGUARDED = re.compile("(^|[,;\\t\\r\\n])" + _FORMULA)
_GUARDED = re.compile("(^|[,;\\t\\r\\n])'" + _FORMULA)


def to_csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    r"""Write a table as CSV, with all digits; what is no number is left blank.

    Text that a spreadsheet would execute as a formula gets an apostrophe, by which spreadsheets
    know that it is text; `read_table` takes it away from names.

    Examples
    --------
    >>> to_csv(["=cmd|' /C calc'!A0", "a, b"], [[0.1, float("nan")], ["-x", None]])
    b'\'=cmd|\' /C calc\'!A0,"a, b"\n0.1,\n\'-x,\n'
    """
    lines = (",".join(map(_write_cell, row)) for row in (names, *rows))
    return "".join(line + "\n" for line in lines).encode()


def _write_cell(value: object) -> str:
    if hasattr(value, "item"):
        value = value.item()  # NumPy's numbers are written otherwise
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, int | float):
        return repr(value)
    text = guarded(str(value))
    quoted = re.search(r'[,;\t\r\n"]', text) is not None or text != text.strip()
    return '"' + text.replace('"', '""') + '"' if quoted else text


def guarded(text: str) -> str:
    """Return text that no spreadsheet takes for a formula.

    Examples
    --------
    >>> guarded("=1+1"), guarded("'=1+1"), guarded("x")
    ("'=1+1", "''=1+1", 'x')
    """
    return _UNGUARDED.sub(r"\1'", text)


def unguarded(text: str) -> str:
    """Return the text that `guarded` was given.

    Examples
    --------
    >>> unguarded("'=1+1"), unguarded("''=1+1"), unguarded("'x'")
    ('=1+1', "'=1+1", "'x'")
    """
    return _GUARDED.sub(r"\1", text)
