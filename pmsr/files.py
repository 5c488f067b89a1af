"""How files are written, in a single step, and how those of pmsr are read without harm."""

import errno
import io
import math
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

MAX_COUNT = 2**53  # beyond, floats and JavaScript no longer count; nothing of ours is as many
MAX_REASON = 300  # characters of what was wrong with a file: it may be as long as the file
# What reading a file that somebody tampered with can raise.
BROKEN = (
    OSError,
    ValueError,  # JSON and Unicode errors are ValueErrors
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    BadZipFile,
    EOFError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    RuntimeError,
    zlib.error,
)
_PART = re.compile(r"(.+?)(\.\d+)?\.part")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Lend a path to write to; when that is done its file takes the place of ``path``.

    Whatever goes wrong, also Ctrl-C, leaves the old file and no part of the new one. Only a
    process that is killed leaves its part, see `remove_parts`.

    Raises
    ------
    OSError
        With the name of ``path`` and with what to do, if it cannot be written.
    """
    # Two processes may write the same file, each the whole of it.
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with naming(path):
            part.unlink(missing_ok=True)
            yield part
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make errors of the system name the file that is written, and say what to do."""
    try:
        yield
    except OSError as error:
        # Libraries raise OSError with a text alone: no file, no number.
        why = error.strerror or " ".join(str(error).split()) or type(error).__name__
        hint = "Choose another place."
        if error.errno in _FULL:
            hint = "Make room there, or choose another place, and do it again."
        elif error.errno in _FORBIDDEN:
            hint = "Allow it, or choose another place."
        text = f"cannot be written: {why}. {hint}"
        raise OSError(error.errno or errno.EIO, text, str(path)) from error


def write_file(path: Path, contents: bytes) -> None:
    """Write a file in a single step; a crash leaves the old one, and links are not followed.

    Raises
    ------
    OSError
        With the name of ``path`` and with what to do, if it cannot be written.
    """
    with writing(path) as part, part.open("xb") as file:
        file.write(contents)


def remove_parts(folder: Path, names: re.Pattern[str]) -> None:
    """Remove what killed processes left of files in a folder that they were writing.

    Parameters
    ----------
    folder
        Where to look, not below.
    names
        Which files' parts: the whole name, without what `writing` adds.
    """
    for file in folder.iterdir():
        match = _PART.fullmatch(file.name)
        if match is not None and names.fullmatch(match[1]):
            with suppress(OSError):  # not ours to remove, and in nobody's way
                file.unlink()


def read_arrays(contents: bytes, max_ratio: float) -> dict[str, NDArray[Any]]:
    """Read the arrays of an npz file. Unlike ``np.load`` it allocates what is there, at most.

    Parameters
    ----------
    contents
        Of the file.
    max_ratio
        How many times its size what is in it may have.

    Raises
    ------
    Exception
        One of `BROKEN` if this is no such file; nothing in it is executed.
    """
    arrays = {}
    with ZipFile(io.BytesIO(contents)) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > max_ratio * len(contents):
            raise ValueError("it unfolds to more than a file of pmsr does")
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in arrays:
                raise ValueError(f"it holds {name!r} twice")
            arrays[name] = _read_array(archive.read(member))
    return arrays


def _read_array(contents: bytes) -> NDArray[Any]:
    """Read one array of numbers in NumPy's format."""
    stream = io.BytesIO(contents)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("expected version 1.0 of NumPy's format")
    shape, in_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    rest = contents[stream.tell() :]
    size = dtype.itemsize * math.prod(shape)
    if dtype.kind not in "iuf" or in_columns or any(n < 0 for n in shape) or size != len(rest):
        raise ValueError(f"expected numbers, got {dtype} of shape {shape} in {len(rest)} bytes")
    return np.frombuffer(rest, dtype=dtype).reshape(shape).copy()


def reason(error: BaseException) -> str:
    """Return in one line, and not too long, what was wrong with a file."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, KeyError):
        text = f"{text} is missing"
    return shortened(text, MAX_REASON)


def shortened(text: str, length: int) -> str:
    """Return the beginning of a text that may be as long as a file.

    Examples
    --------
    >>> shortened("Pisa", 4), shortened("Padua", 4)
    ('Pisa', 'Pad…')
    """
    return text if len(text) <= length else text[: length - 1] + "…"


# Any: a number of NumPy, or whatever else there is.
def without_numpy(value: Any) -> Any:
    """Return a value as JSON knows it: a number of NumPy as one of Python.

    Examples
    --------
    >>> without_numpy(np.float64(0.5)), without_numpy("x")
    (0.5, 'x')
    """
    return value.item() if isinstance(value, np.generic) else value


def as_text(value: object) -> str:
    """Return what JSON has as text."""
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {value!r}")
    return value


def as_count(value: object) -> int:
    """Return what JSON has as a number of things.

    Examples
    --------
    >>> as_count(3)
    3
    >>> as_count(-1)
    Traceback (most recent call last):
        ...
    ValueError: expected a whole number, got -1
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MAX_COUNT:
        raise ValueError(f"expected a whole number, got {value!r}")
    return value


def as_seed(value: object) -> int:
    """Return what JSON has as a seed, a whole number of any size."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a seed, got {value!r}")
    return value


def as_number(value: object) -> float:
    """Return what JSON has as a number; NaN and infinities are some."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {value!r}")
    return float(value)


# Any: values of JSON.
def as_list(value: object) -> list[Any]:
    """Return what JSON has as a list; a text is none."""
    if not isinstance(value, list):
        raise ValueError(f"expected a list, got {value!r}")
    return value


def as_history(value: object) -> list[dict[str, Any]]:
    """Return the records of generations: the number of each, its best equation, and numbers."""
    records: list[dict[str, Any]] = as_list(value)
    for record in records:
        as_count(record["generation"])
        for name, entry in record.items():
            (as_text if name == "best" else as_number)(entry)
    return records
