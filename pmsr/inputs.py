"""What users hand over as columns of numbers: arrays, lists, tables, each checked and named."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.names import suggest

# Sums of squares of values beyond these leave the range of floating-point numbers.
_LEAST_MAGNITUDE, _LARGEST_MAGNITUDE = 1e-100, 1e100
_MOST_ROWS = 2.0**53  # beyond, one more makes no difference


# Values are Any: what users hand over is recognised by what it can do.
def split_columns(values: Any, role: str = "X") -> tuple[list[Any], list[Any] | None]:
    """Return the columns and, where the container has them, their names."""
    check_container(values, role)
    if values is None or hasattr(values, "tocsr"):
        raise TypeError(
            f"{role} must be an array, a list or a table, got {type(values).__name__}. {_MAKE_ONE}"
        )
    if hasattr(values, "columns"):
        names = list(values.columns)
        if isinstance(values, pd.DataFrame):
            return [values.iloc[:, index] for index in range(len(names))], names
        return [values[name] for name in names], names
    if hasattr(values, "name") and hasattr(values, "to_numpy"):
        # polars calls a series without a name "".
        return [values], None if values.name in (None, "") else [values.name]
    try:
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{role} must have rows of equal length. NumPy says: {error}") from None
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{role} must have one or two dimensions, got {array.ndim}. "
            "Give one row per observation."
        )
    return list(array.T) if array.ndim == 2 else [array], None


def check_container(values: Any, role: str = "X") -> None:
    """Refuse what has columns or values, but cannot be read as a table.

    Examples
    --------
    >>> check_container({"x": [1.0, 2.0]})
    Traceback (most recent call last):
        ...
    TypeError: X must be an array, a list or a table, got dict. Use pandas.DataFrame(X).
    """
    if hasattr(values, "tocsr"):  # sparse: scikit-learn's own words are as good
        return
    if isinstance(values, Mapping):
        way = f"Use pandas.DataFrame({role})."
    elif hasattr(values, "collect_schema") and not hasattr(values, "__array__"):
        way = f"Use {role}.collect()."
    elif isinstance(values, Iterator):
        way = f"Use list({role})."
    elif isinstance(values, str | bytes):
        way = _MAKE_ONE
    else:
        return
    raise TypeError(
        f"{role} must be an array, a list or a table, got {type(values).__name__}. {way}"
    )


_MAKE_ONE = "Use numpy.asarray or pandas.DataFrame to make one."


def check_names(names: Sequence[Any], n_columns: int) -> tuple[str, ...]:
    """Return names of columns: distinct, and not blank."""
    if isinstance(names, str):
        raise TypeError(f"names must be a sequence of strings, got {names!r}. Use [{names!r}].")
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise ValueError(
                f"Names of variables must be strings, got {name!r}. Rename the columns, pass "
                "names=..., or pass an array, whose variables are x0, x1, ..."
            )
        if not name.strip():
            raise ValueError(
                f"Names of variables must not be blank, got {name!r}. Name the column."
            )
    repeated = [name for index, name in enumerate(names) if name in names[:index]]
    if repeated:
        raise ValueError(
            f"Names of variables must differ, got {repeated[0]!r} twice. Rename one of the columns."
        )
    if len(names) != n_columns:
        raise ValueError(f"X has {n_columns} columns, got {len(names)} names: {', '.join(names)}.")
    return names


def stack_columns(columns: list[Any], names: Sequence[str]) -> NDArray[np.float64]:
    """Return columns of X as an array of finite floats, of shape (N, d)."""
    if not columns:
        raise ValueError("X has no columns. Give at least one variable.")
    checked = [
        to_floats(column, f"Column {name!r} of X")
        for column, name in zip(columns, names, strict=True)
    ]
    if len(checked[0]) == 0:
        raise ValueError("X has no rows. Give at least one observation.")
    return np.ascontiguousarray(np.column_stack(checked))


def to_floats(column: Any, place: str) -> NDArray[np.float64]:
    """Return one column as a new array of finite floats; errors say ``place``."""
    missing = _find_missing(column)
    if missing.any():
        raise ValueError(
            f"{place}: missing value (NaN) in row {_describe_rows(missing)}. "
            "Drop or fill the rows that are incomplete."
        )
    values = np.asarray(column)
    dtype = getattr(column, "dtype", values.dtype)
    if values.dtype.kind == "c":
        raise ValueError(
            f"{place}: complex data not supported. Give real and imaginary parts as two columns."
        )
    if values.dtype.kind not in "biuf" or isinstance(dtype, pd.CategoricalDtype):
        if is_time(column):
            example = _quote_example(values.astype(str))
            raise ValueError(
                f"{place}: values must be numbers, got {dtype}{example}. Give the time since a "
                "moment, in a unit of your choice: "
                "(times - times.min())/numpy.timedelta64(1, 's')."
            )
        # Text may be classes; a target is none.
        is_text = values.dtype.kind in "OSUT" and place.startswith("Column")
        classes = (
            " If they are classes, there are two ways: take the column out of X and give it as "
            "groups=, for constants of their own in each class, or give each class a column of 0 "
            "and 1: pandas.get_dummies(X)."
        )
        raise ValueError(
            f"{place}: values must be numbers, got {dtype}{_quote_example(values)}. "
            f"Convert them with astype(float), or leave the column out.{classes * is_text}"
        )
    with np.errstate(over="ignore"):
        floats = np.array(values, dtype=np.float64)
    infinite = ~np.isfinite(floats)
    if infinite.any():
        raise ValueError(
            f"{place}: infinite value in row {_describe_rows(infinite)}. "
            "Drop the row or correct the value."
        )
    return floats


# Any: a column of whatever kind.
def is_time(column: Any) -> bool:
    """Tell whether a column has dates, times or differences of times.

    Examples
    --------
    >>> is_time(pd.Series(pd.date_range("2020", periods=3, tz="UTC"))), is_time(np.ones(3))
    (True, False)
    """
    dtype = getattr(column, "dtype", None)
    return isinstance(dtype, pd.DatetimeTZDtype) or np.asarray(column).dtype.kind in "mM"


def _find_missing(column: Any) -> NDArray[np.bool_]:
    masked = np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else False
    values = column if isinstance(column, pd.Series) else np.asarray(column)
    return np.asarray(pd.isna(values)) | masked


def _describe_rows(wrong: NDArray[np.bool_]) -> str:
    rows = np.flatnonzero(wrong)
    others = f", and in {len(rows) - 1} more" if len(rows) > 1 else ""
    return f"{rows[0]} (counted from 0){others}"


def _quote_example(values: NDArray[Any]) -> str:
    items = values.tolist()
    strange = [item for item in items if not isinstance(item, int | float)] or items
    return f", for example {strange[0]!r}" if strange else ""


def read_errors(y_err: Any, y: Any, n_rows: int) -> NDArray[np.float64]:
    """Return the known errors of the target, all positive."""
    errors = _read_column(y_err, "y_err", y, n_rows)
    wrong = errors <= 0.0
    if wrong.any():
        raise ValueError(
            f"y_err must be positive, got {errors[wrong][0]:g} in row {_describe_rows(wrong)}. "
            "Drop the rows whose error is not known, or give the error of the instrument."
        )
    for extreme in (errors.min(), errors.max()):
        check_magnitude(np.array([extreme]), "y_err")
    return errors


def read_counts(sample_weight: Any, y: Any, n_rows: int) -> NDArray[np.float64]:
    """Return how often each row was seen, in whole numbers."""
    counts = _read_column(sample_weight, "sample_weight", y, n_rows)
    wrong = counts < 0.0
    if wrong.any():
        raise ValueError(
            f"sample_weight must not be negative, got {counts[wrong][0]:g} in row "
            f"{_describe_rows(wrong)}. A weight is how often the row was seen; 0 leaves it out."
        )
    wrong = counts != np.round(counts)
    if wrong.any():
        raise ValueError(
            f"sample_weight must be whole numbers, got {counts[wrong][0]:g} in row "
            f"{_describe_rows(wrong)}. Weights are counts: 2 is the same as the row twice; "
            "precisions 1/s**2 belong in y_err, as s."
        )
    total = float(counts.sum())
    if total == 0.0:
        raise ValueError(
            "sample_weight is zero in all rows: nothing was seen. Weights are counts; leave them "
            "out if every row was seen once."
        )
    if not 2.0 <= total <= _MOST_ROWS:
        raise ValueError(
            f"sample_weight must sum to the number of observations, from 2 to {_MOST_ROWS:g}, got "
            f"{total:g}. Weights are counts; precisions 1/s**2 belong in y_err, as s."
        )
    return counts


def _read_column(values: Any, role: str, y: Any, n_rows: int) -> NDArray[np.float64]:
    """Return one number for each row; what is one number stands for all."""
    if _is_single(values):
        values = np.full(n_rows, values)
    columns, _ = split_columns(values, role=role)
    if len(columns) != 1:
        raise ValueError(
            f"{role} must have one column, got {len(columns)}. Give one number for each row."
        )
    _check_length(columns[0], role, n_rows)
    check_order(y, values, ("y", role))
    return to_floats(columns[0], role)


def _is_single(values: Any) -> bool:
    """Tell whether this is one value, whatever it is, and no container of them."""
    is_container = hasattr(values, "__len__") or hasattr(values, "__array__")
    return isinstance(values, str) or getattr(values, "ndim", None) == 0 or not is_container


def read_input_errors(
    X_err: Any, y: Any, names: tuple[str, ...], n_rows: int
) -> NDArray[np.float64] | None:
    """Return the known errors of the variables, of shape (N, d); None if all are exact."""
    if _is_single(X_err):
        X_err = np.full((n_rows, len(names)), X_err)
    columns, found = split_columns(X_err, role="X_err")
    if not columns or (found is None and len(columns) != len(names)):
        raise ValueError(
            f"X_err must have the {len(names)} columns of X ({', '.join(names)}), got "
            f"{len(columns)}. Give 0 for those that are exact, or a table with names."
        )
    errors = np.zeros((n_rows, len(names)))
    check_order(y, X_err, ("y", "X_err"))
    for name, column in zip(found or names, columns, strict=True):
        if name not in names:
            raise ValueError(f"X_err: there is no variable {name!r}.{suggest(str(name), names)}")
        _check_length(column, "X_err", n_rows)
        own = to_floats(column, f"Column {name!r} of X_err")
        wrong = own < 0.0
        if wrong.any():
            raise ValueError(
                f"X_err must not be negative, got {own[wrong][0]:g} for {name!r} in row "
                f"{_describe_rows(wrong)}. Give 0 where a value is exact."
            )
        check_magnitude(own, f"X_err of {name!r}")
        errors[:, names.index(name)] = own
    return errors if errors.any() else None


def read_groups(groups: Any, y: Any, n_rows: int) -> tuple[str, ...]:
    """Return the label of each row, as text."""
    columns, _ = split_columns(groups, role="groups")
    if len(columns) != 1:
        raise ValueError(f"groups must have one column, got {len(columns)}. Join the labels.")
    _check_length(columns[0], "groups", n_rows)
    check_order(y, groups, ("y", "groups"))
    missing = _find_missing(columns[0])
    if isinstance(groups, list | tuple):  # of text and NaN, NumPy makes the text "nan"
        missing |= _find_missing(np.array(groups, dtype=object).ravel())
    if missing.any():
        raise ValueError(
            f"groups: missing label in row {_describe_rows(missing)}. "
            "Name the experiment of every row, or drop the row."
        )
    return tuple(str(label) for label in np.asarray(columns[0]).tolist())


def read_labels(groups: Any, n_rows: int, known: Sequence[str]) -> tuple[str, ...]:
    """Return the group of each new row, which must be one of those that are known.

    Parameters
    ----------
    groups
        A label for all rows, or one for each.
    n_rows
        How many.
    known
        Labels of the groups that an equation was fitted to.

    Examples
    --------
    >>> read_labels("a", 2, ["a", "b"]), read_labels([2, 1], 2, ["1", "2"])
    (('a', 'a'), ('2', '1'))
    """
    if groups is None:
        raise ValueError(
            "groups are missing: the equation has constants of its own for each of "
            f"{', '.join(map(repr, known))}. Give the group of each row, groups=[...], or one for "
            "all."
        )
    if np.ndim(groups) == 0 and not hasattr(groups, "columns"):
        labels = (str(groups),) * n_rows
    else:
        columns, _ = split_columns(groups, role="groups")
        if len(columns) != 1 or len(columns[0]) != n_rows:
            raise ValueError(
                f"groups must have one label for each of the {n_rows} rows of X, or be one label "
                f"for all, got {len(columns)} columns of {len(columns[0])}."
            )
        labels = tuple(str(label) for label in np.asarray(columns[0]).tolist())
    for label in dict.fromkeys(labels):
        if label not in known:
            raise ValueError(
                f"There is no group {label!r}: it has no constants, and nothing can be predicted "
                "for it. Measure there, and fit it together with the others."
                f"{suggest(label, known)}"
            )
    return labels


def _check_length(column: Any, role: str, n_rows: int) -> None:
    if len(column) != n_rows:
        raise ValueError(
            f"{role} and y must have the same number of rows, got {len(column)} and {n_rows}."
        )


def check_order(X: Any, y: Any, roles: tuple[str, str] = ("X", "y")) -> None:
    """Refuse the same index in two orders: rows are paired by position, as in scikit-learn."""
    tables = pd.DataFrame | pd.Series
    if not (isinstance(X, tables) and isinstance(y, tables)) or X.index.equals(y.index):
        return
    first, second = roles
    if X.index.is_unique and set(X.index) == set(y.index):
        raise ValueError(
            f"{first} and {second} have the same index in a different order. Use "
            f"{second}.loc[{first}.index], or "
            "reset_index(drop=True) on both if the rows already belong together."
        )


def check_magnitude(values: NDArray[np.float64], what: str) -> None:
    """Refuse values whose squares would leave the range of floats."""
    magnitude = float(np.max(np.abs(values)))
    if magnitude > 0 and not _LEAST_MAGNITUDE <= magnitude <= _LARGEST_MAGNITUDE:
        raise ValueError(
            f"{what} must have a magnitude between {_LEAST_MAGNITUDE:g} and "
            f"{_LARGEST_MAGNITUDE:g}, got {magnitude:g}. Change its unit."
        )


def is_constant(values: NDArray[np.float64]) -> bool:
    """Tell whether values are all equal, but for rounding, which is as large as that."""
    magnitude = float(np.max(np.abs(values)))
    return magnitude == 0 or bool(np.std(values / magnitude) <= 1e-12)
