"""Measurements, checked once where they enter, and the paper's own datasets."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pmsr.inputs import (
    check_magnitude,
    check_names,
    check_order,
    is_constant,
    read_counts,
    read_errors,
    read_groups,
    read_input_errors,
    split_columns,
    stack_columns,
    to_floats,
)
from pmsr.names import suggest


class Constant(NamedTuple):
    """A number that a user knows: the same in all rows, under a name of its own.

    Parameters
    ----------
    value
        The number; the middle of what it may be, where it is uncertain.
    prior
        None if it is exact; or how uncertain it is, a :class:`pmsr.evidence.priors.Prior`.
    """

    value: float
    # Any: this module knows nothing of distributions.
    prior: Any = None


@dataclass(frozen=True, eq=False)
class Data:
    """Validated measurements of one target and the variables that may explain it.

    Parameters
    ----------
    X
        Values of the variables, shape (N, d), C-contiguous, all finite.
    y
        Values of the target, shape (N,), all finite, not all equal.
    names
        Names of the d variables.
    target
        Name of the target.
    y_err
        Known errors of the target, shape (N,), all positive; None if they are not known.
    counts
        How often each row was seen, shape (N,), all positive; None for once.
    X_err
        Known errors of the variables, shape (N, d), none negative; None if all are exact.
    groups
        The experiment to which each row belongs; None if there is only one.
    constants
        Those of the variables that are known constants, by name.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    names: tuple[str, ...]
    target: str
    y_err: NDArray[np.float64] | None = None
    counts: NDArray[np.float64] | None = None
    X_err: NDArray[np.float64] | None = None
    groups: tuple[str, ...] | None = None
    constants: Mapping[str, Constant] = field(default_factory=dict)

    def select(self, names: Sequence[str]) -> "Data":
        """Return the data with only the variables ``names``, in that order.

        Examples
        --------
        >>> make_data([[1, 2], [3, 4]], [5, 6], names=["a", "b"]).select(["b"]).X
        array([[2.],
               [4.]])
        """
        for name in names:
            if name not in self.names:
                raise ValueError(f"There is no variable {name!r}.{suggest(name, self.names)}")
        columns = [self.names.index(name) for name in names]
        X_err = None if self.X_err is None else np.ascontiguousarray(self.X_err[:, columns])
        X = np.ascontiguousarray(self.X[:, columns])
        constants = {name: one for name, one in self.constants.items() if name in names}
        return replace(self, X=X, X_err=X_err, names=tuple(names), constants=constants)

    def take(self, rows: NDArray[Any]) -> "Data":
        """Return the data of only these rows, in this order.

        Examples
        --------
        >>> make_data([1, 2, 3], [4, 5, 6], y_err=[0.1, 0.2, 0.3]).take(np.array([2, 0])).y_err
        array([0.3, 0.1])
        """
        y_err, counts, X_err = (
            None if values is None else np.ascontiguousarray(values[rows])
            for values in (self.y_err, self.counts, self.X_err)
        )
        groups = None if self.groups is None else tuple(np.array(self.groups, object)[rows])
        X, y = np.ascontiguousarray(self.X[rows]), np.ascontiguousarray(self.y[rows])
        return replace(self, X=X, y=y, y_err=y_err, counts=counts, X_err=X_err, groups=groups)

    def merge_equal(self) -> "Data":
        """Return the same observations as rows that differ, in an order that is theirs.

        Rows that are equal become one with a count, and rows are sorted: 2 is the same as the row
        twice, to the last bit. Data without counts, none of whose rows occurs twice, stay as they
        are.

        Examples
        --------
        >>> merged = make_data([3, 1, 3], [2.0, 4.0, 2.0]).merge_equal()
        >>> merged.X.ravel(), merged.counts
        (array([1., 3.]), array([1., 2.]))
        """
        first, which = self._find_equal()
        if self.counts is None and len(first) == len(self.y):
            return self
        counts = np.bincount(which, weights=self.counts).astype(np.float64)
        return replace(self.take(first), counts=counts)

    @property
    def distinct(self) -> NDArray[np.int64]:
        """Places of the rows that differ, the first of each, in order.

        Examples
        --------
        >>> make_data([3, 1, 3], [2.0, 4.0, 2.0]).distinct
        array([0, 1])
        """
        return np.sort(self._find_equal()[0])

    def _find_equal(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first of each of the rows that differ, sorted, and which of them a row is."""
        known = [one for one in (self.X_err, self.y_err) if one is not None]
        labels = sorted(set(self.groups or ()))
        groups = [labels.index(label) for label in self.groups or ()]
        table = np.column_stack([self.X, self.y, *known, *([groups] if groups else [])])
        _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
        return first, which.ravel()

    @property
    def spread(self) -> float:
        """Standard deviation of the target; of a group whose target is constant its size."""
        deviation = float(np.std(self.y))
        if deviation > 0.0 or not len(self.y):
            return deviation
        return float(np.max(np.abs(self.y))) or 1.0

    @property
    def has_constant_target(self) -> bool:
        """Whether the target is the same in all rows, within rounding."""
        return is_constant(self.y)

    @property
    def measured(self) -> tuple[str, ...]:
        """The variables that are no known constants: what X has columns for."""
        return tuple(name for name in self.names if name not in self.constants)

    @property
    def constant(self) -> dict[str, float]:
        """The variables that are the same in all rows, within rounding, with their values.

        Without those that are known constants, which are meant to be.

        Examples
        --------
        >>> make_data([[1, 293], [2, 293]], [5, 6], names=["x", "T"]).constant
        {'T': 293.0}
        """
        pairs = zip(self.names, self.X.T, strict=True)
        return {
            name: float(values[0])
            for name, values in pairs
            if name not in self.constants and is_constant(values)
        }


def leave_out_constant(data: Data) -> Data:
    """Return the data with the variables that vary: what a search may use.

    A column that is the same in all rows can only stand for a number. It would enter equations as
    a parameter that is free of charge, and predictions elsewhere would depend on it.

    Raises
    ------
    ValueError
        If none varies.

    Examples
    --------
    >>> leave_out_constant(make_data([[1, 293], [2, 293]], [5, 6], names=["x", "T"])).names
    ('x',)
    """
    constant = data.constant
    varying = [name for name in data.names if name not in constant]
    if all(name in data.constants for name in varying):
        raise ValueError(
            f"Every column of X is the same in all rows, {', '.join(map(repr, constant))}: nothing "
            f"can explain {data.target!r}. Give a variable that varies; if one does, subtract its "
            "mean first."
        )
    return data if not constant else data.select(varying)


# X and y are Any in this module: what users hand over is recognised by what it can do.
def make_data(
    X: Any,
    y: Any,
    *,
    names: Sequence[str] | None = None,
    y_err: Any = None,
    sample_weight: Any = None,
    X_err: Any = None,
    groups: Any = None,
    constants: Mapping[str, Constant | float] | None = None,
) -> Data:
    """Return the measurements as arrays of floats, with their names.

    Parameters
    ----------
    X
        Values of the variables: an array or nested list with one row per observation (or
        one-dimensional, for one variable), a pandas or polars table or series. Integers and
        booleans become floats. Copied, never changed.
    y
        Values of the target, one per observation: an array, list or series.
    names
        Names of the variables. By default the column names of a table; ``x0, x1, ...`` for an
        array.
    y_err
        Standard errors of the target, one for each row or a number for all; None if they are not
        known.
    sample_weight
        How often each row was seen: 2 is the same as the row twice, and rows of weight 0 are left
        out. Precisions are no counts: they belong in ``y_err``.
    X_err
        Standard errors of the variables: an array of the shape of X, a number for all, or a table
        of those columns that have errors. 0 is exact.
    groups
        Label of the experiment to which each row belongs, of two rows or more.
    constants
        Known constants by name, which become the last of the variables.

    Returns
    -------
    Data
        The target is named after its series, ``"y"`` without a name.

    Examples
    --------
    >>> data = make_data([1, 2, 3], [1.0, 4.1, 8.9])
    >>> data.names, data.target, data.X.shape
    (('x0',), 'y', (3, 1))
    """
    columns, found_names = split_columns(X)
    if names is None:
        names = found_names or [f"x{index}" for index in range(len(columns))]
    checked_names = check_names(names, len(columns))
    inputs = stack_columns(columns, checked_names)

    targets, target_names = split_columns(y, role="y")
    if len(targets) != 1:
        raise ValueError(
            f"y must have one column, got {len(targets)}. Explain one target at a time."
        )
    target = _name_target(target_names, checked_names)
    outputs = to_floats(targets[0], f"Target {target!r}")

    if len(inputs) != len(outputs):
        raise ValueError(
            f"X and y must have the same number of rows, got {len(inputs)} and {len(outputs)}."
        )
    for values, name in zip(inputs.T, checked_names, strict=True):
        check_magnitude(values, f"Column {name!r}")
    check_order(X, y)
    data = Data(
        inputs,
        outputs,
        checked_names,
        target,
        y_err=None if y_err is None else read_errors(y_err, y, len(outputs)),
        counts=None if sample_weight is None else read_counts(sample_weight, y, len(outputs)),
        X_err=None if X_err is None else read_input_errors(X_err, y, checked_names, len(outputs)),
        groups=None if groups is None else read_groups(groups, y, len(outputs)),
    )
    data = _add_constants(_keep_seen(data), constants or {})
    _check_spread(data.y, target)
    return data


def make_data_for(variables: Sequence[str], X: Any, y: Any, **measured: Any) -> Data:
    """Return the measurements of an equation's variables, in the equation's order.

    The columns of a table are found by name and may be more than are needed; those of an array
    stand for the variables in order. Errors, weights and groups are those of :func:`make_data`.

    Examples
    --------
    >>> table = pd.DataFrame({"b": [2.0, 3.0], "a": [1.0, 0.0]})
    >>> make_data_for(["a"], table, [5, 6]).X.ravel()
    array([1., 0.])
    >>> make_data_for(["a"], [7.0, 8.0], [5, 6]).names
    ('a',)
    """
    columns, found_names = split_columns(X)
    known = measured.get("constants") or {}
    named = [name for name in variables if name not in known]
    if found_names is None and len(columns) == len(named):
        return make_data(X, y, names=named, **measured).select(variables)
    return make_data(X, y, **measured).select(variables)


def _add_constants(data: Data, constants: Mapping[str, Constant | float]) -> Data:
    """Append known constants to the variables, after checking their names and values."""
    if not isinstance(constants, Mapping):
        raise ValueError(
            f"constants must be a dictionary of names and values, got {constants!r}. "
            'Use constants={"g": 9.81}.'
        )
    if not constants:
        return data
    found: dict[str, Constant] = {}
    for name, constant in constants.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(
                f"The name of a constant must be an identifier, got {name!r}. Use a word such as g."
            )
        if name in data.names or name == data.target:
            what = "the target" if name == data.target else "a column"
            raise ValueError(
                f"The constant {name!r} has the name of {what}. Rename the constant, or leave the "
                "column out."
            )
        one = constant if isinstance(constant, Constant) else Constant(constant)
        value: Any = one.value  # whatever a user gave
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError(f"The constant {name!r} must be a finite number, got {value!r}.")
        check_magnitude(np.array([value], dtype=np.float64), f"The constant {name!r}")
        found[name] = one._replace(value=float(value))
    shape = (len(data.y), len(found))
    more = np.broadcast_to([one.value for one in found.values()], shape)
    X = np.ascontiguousarray(np.hstack([data.X, more]))
    X_err = None if data.X_err is None else np.hstack([data.X_err, np.zeros(shape)])
    return replace(data, X=X, X_err=X_err, names=(*data.names, *found), constants=found)


def check_X(
    X: Any,
    names: Sequence[str],
    *,
    others: bool = False,
    constants: Mapping[str, Constant] | None = None,
) -> NDArray[np.float64]:
    """Return new values of the variables, in the order of ``names``.

    Parameters
    ----------
    X
        As in :func:`make_data`, one row or more. The columns of a table are matched by name,
        those of an array by position.
    names
        Names of the variables, as in :attr:`Data.names`.
    others
        Whether a table may have columns that are not among the variables.
    constants
        Those of the variables that are known constants: X has no columns for them.

    Returns
    -------
    ndarray
        Shape (n_rows, d), C-contiguous, all finite.

    Examples
    --------
    >>> check_X(pd.DataFrame({"b": [2.0], "a": [1.0]}), ["a", "b"])
    array([[1., 2.]])
    """
    if constants:
        measured = [name for name in names if name not in constants]
        values = check_X(X, measured, others=others) if measured else np.empty((len(X), 0))
        found = dict(zip(measured, values.T, strict=True))
        n = len(values)
        columns = [
            found[name] if name in found else np.full(n, constants[name].value) for name in names
        ]
        return np.ascontiguousarray(np.stack(columns, axis=1))
    if np.ndim(X) == 1 and len(names) > 1:
        raise ValueError(
            f"X must have {len(names)} columns ({', '.join(names)}), got one dimension. "
            "For one row use X.reshape(1, -1), or iloc[[row]] on a table."
        )
    columns, found_names = split_columns(X)
    if found_names is not None:
        column_of = dict(zip(check_names(found_names, len(columns)), columns, strict=True))
        _match_columns(list(column_of), names, others)
        columns = [column_of[name] for name in names]
    elif len(columns) != len(names):
        raise ValueError(
            f"X must have {len(names)} columns ({', '.join(names)}), got {len(columns)}."
        )
    return stack_columns(columns, names)


def load_galileo(experiment: Literal["shelf", "no_shelf"]) -> tuple[pd.DataFrame, pd.Series]:
    """Return Galileo's measurements of a ball that rolls down a ramp and falls (Section 3.2).

    Parameters
    ----------
    experiment
        ``"shelf"``: the ball leaves the table horizontally, and the distance D is explained by
        the height H of the ramp (5 observations). ``"no_shelf"``: it leaves the ramp downwards,
        and H is explained by D (7 observations).

    Returns
    -------
    X : DataFrame
        One column, H or D, in punti.
    y : Series
        D or H, in punti.

    Examples
    --------
    >>> X, y = load_galileo("shelf")
    >>> X["H"].to_list(), y.to_list()
    ([1000.0, 828.0, 800.0, 600.0, 300.0], [1500.0, 1340.0, 1328.0, 1172.0, 800.0])
    """
    if experiment not in ("shelf", "no_shelf"):
        raise ValueError(f"Unknown experiment {experiment!r}. Available: shelf, no_shelf.")
    with (files("pmsr") / "datasets" / f"galileo_{experiment}.csv").open() as file:
        table = pd.read_csv(file, dtype=np.float64)
    return table.iloc[:, :1], table.iloc[:, 1]


def load_chronometers() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Return 32 rates of the universe's expansion, measured by cosmic chronometers.

    How fast galaxies age with redshift gives the Hubble rate at that redshift, with an error of its
    own for each: from 5 to 60 %. The table is the one that is distributed with the code of
    Exhaustive Symbolic Regression.

    Returns
    -------
    X : DataFrame
        One column, the redshift z.
    y : Series
        The Hubble rate H, in km/s/Mpc.
    y_err : Series
        Its standard error sigma_H.

    References
    ----------
    D. J. Bartlett, H. Desmond, P. G. Ferreira, "Exhaustive Symbolic Regression", IEEE Transactions
    on Evolutionary Computation 28 (2024), doi:10.1109/TEVC.2023.3280250

    Examples
    --------
    >>> X, y, y_err = load_chronometers()
    >>> len(X), X.columns.to_list(), y.name, float(y_err.max())
    (32, ['z'], 'H', 62.0)
    """
    with (files("pmsr") / "datasets" / "chronometers.csv").open() as file:
        table = pd.read_csv(file, dtype=np.float64)
    return table[["z"]], table["H"], table["sigma_H"]


def make_sine(
    n_points: int = 20,
    sigma: float = 0.3,
    random_seed: int | np.random.Generator | None = None,
) -> tuple[pd.DataFrame, pd.Series]:
    r"""Return noisy points on a sine curve, the numerical example of Section 3.1.

    Parameters
    ----------
    n_points
        Number of observations N.
    sigma
        Standard deviation of the noise :math:`\epsilon`.
    random_seed
        Seed or generator.

    Returns
    -------
    X : DataFrame
        One column ``x0``, uniform on :math:`(0, 3\pi/2)`.
    y : Series
        :math:`y = 2 \sin(x_0) + 3 + \epsilon`.

    Examples
    --------
    >>> X, y = make_sine(n_points=4, sigma=0.0, random_seed=1)
    >>> bool(np.allclose(y, 2 * np.sin(X["x0"]) + 3))
    True
    """
    if n_points < 1:
        raise ValueError(f"n_points must be at least 1, got {n_points!r}. The paper uses 20.")
    if not 0 <= sigma < math.inf:
        raise ValueError(f"sigma must be zero or positive, got {sigma!r}. The paper uses 0.3.")
    rng = np.random.default_rng(random_seed)
    x0 = rng.uniform(0.0, 1.5 * np.pi, size=n_points)
    noise = sigma * rng.standard_normal(n_points)
    return pd.DataFrame({"x0": x0}), pd.Series(2.0 * np.sin(x0) + 3.0 + noise, name="y")


def _name_target(found_names: list[Any] | None, names: tuple[str, ...]) -> str:
    if found_names is None:
        target = "y"
        while target in names:
            target += "_"
        return target
    target = str(found_names[0])
    if target in names:
        raise ValueError(
            f"The target {target!r} is also a variable. Drop it from X, or rename the target."
        )
    return target


def _match_columns(found: Sequence[str], names: Sequence[str], others: bool) -> None:
    missing = [name for name in names if name not in found]
    unknown = [name for name in found if name not in names]
    if missing:
        raise ValueError(f"X lacks the column {missing[0]!r}.{suggest(missing[0], found)}")
    if unknown and not others:
        raise ValueError(f"X has the unknown column {unknown[0]!r}. Use X[{list(names)!r}].")


def _keep_seen(data: Data) -> Data:
    """Leave out rows of weight zero, and weights that say nothing; check what is left."""
    if data.counts is not None:
        if not data.counts.all():
            data = data.take(np.flatnonzero(data.counts))
        if data.counts is not None and np.all(data.counts == 1.0):
            data = replace(data, counts=None)
    if len(data.y) < 2:
        raise ValueError(
            f"At least two rows are needed, got {len(data.y)}. "
            "One observation cannot tell equations apart."
        )
    sizes: dict[str, float] = dict.fromkeys(data.groups or (), 0.0)
    counts = np.ones(len(data.y)) if data.counts is None else data.counts
    for label, count in zip(data.groups or (), counts, strict=data.groups is not None):
        sizes[label] += float(count)
    for label, size in sizes.items():
        if size == 1:
            raise ValueError(
                f"Every group must have two rows or more, got one of {label!r}. Its own constants "
                "would explain it whatever the law: leave the row out, or measure again."
            )
    return data


def _check_spread(y: NDArray[np.float64], target: str) -> None:
    if is_constant(y):
        raise ValueError(
            f"The target {target!r} is constant within rounding, {y[0]:g}. "
            "There is nothing to explain; if it does vary, subtract its mean first."
        )
    check_magnitude(y, f"The target {target!r}")
