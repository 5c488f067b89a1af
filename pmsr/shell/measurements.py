"""Measurements in a file, by what each column is: variables, target, errors, weights."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from pmsr.data import Data, make_data
from pmsr.evidence.distributions import read_constants
from pmsr.evidence.noise import find_noise
from pmsr.names import suggest
from pmsr.shell.data_files import NOTES, choose_columns, choose_labels, in_rows, split_table
from pmsr.shell.wording import counted_as_in_file, in_words_of_a_shell

Known = float | tuple[float, float]  # a number, or one with its standard error


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns of a file are.

    Parameters
    ----------
    target
        What is to be explained.
    features
        What may explain it; None for all columns that have no other meaning.
    error
        Standard errors of the target.
    x_errors
        Columns with standard errors of features, by feature.
    weight
        How often each row was seen.
    group
        To which experiment each row belongs.

    Examples
    --------
    >>> Columns(target="D", features=("H",), error="s", group="run").others
    ('s', 'run')
    """

    target: str
    features: tuple[str, ...] | None = None
    error: str | None = None
    x_errors: Mapping[str, str] = field(default_factory=dict)
    weight: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        taken = {self.target: "--target"} | dict.fromkeys(self.features or (), "--features")
        meanings = [("--error-column", self.error)]
        # One column may hold the errors of several.
        meanings += [("--x-error-columns", name) for name in dict.fromkeys(self.x_errors.values())]
        meanings += [("--weight-column", self.weight), ("--group-column", self.group)]
        for option, name in meanings:
            if name is None:
                continue
            if name in taken:
                raise ValueError(
                    f"The column {name!r} is both {taken[name]} and {option}. A column has one "
                    "meaning: leave one of them out."
                )
            taken[name] = option
        for name in self.x_errors if self.features is not None else ():
            if name not in (self.features or ()):
                raise ValueError(
                    f"--x-error-columns names {name!r}, which is not a variable."
                    f"{suggest(name, self.features or ())}"
                )

    @property
    def others(self) -> tuple[str, ...]:
        """The columns that are neither the target nor variables."""
        names = (self.error, *self.x_errors.values(), self.weight, self.group)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that may hold text."""
        return () if self.group is None else (self.group,)


@dataclass(frozen=True, eq=False)
class Measurements:
    """Measurements of a file, as tables whose index has the numbers of the rows in the file.

    Parameters
    ----------
    columns
        What the columns are; all features are named.
    X, y
        Variables and target.
    others
        The other columns, by name.
    notes
        What was done to the file, in sentences.
    constants
        Numbers that are known, by name; some with a standard error.
    """

    columns: Columns
    X: pd.DataFrame
    y: "pd.Series[float]"
    others: pd.DataFrame
    notes: tuple[str, ...] = ()
    constants: Mapping[str, Known] = field(default_factory=dict)

    @property
    def y_err(self) -> "pd.Series[float] | None":
        """Standard errors of the target."""
        return None if self.columns.error is None else self.others[self.columns.error]

    @property
    def X_err(self) -> pd.DataFrame | None:
        """Standard errors of variables, under their names."""
        errors = self.columns.x_errors
        if not errors:
            return None
        return pd.DataFrame({name: self.others[error] for name, error in errors.items()})

    @property
    def groups(self) -> "pd.Series[str] | None":
        """The experiment of each row."""
        return None if self.columns.group is None else self.others[self.columns.group]

    @property
    def sample_weight(self) -> "pd.Series[float] | None":
        """How often each row was seen."""
        return None if self.columns.weight is None else self.others[self.columns.weight]

    # Any: series, tables and None, as `make_data` takes them.
    @property
    def measured(self) -> dict[str, Any]:
        """What is known of the measurements, by the names of arguments."""
        return {
            "y_err": self.y_err,
            "X_err": self.X_err,
            "sample_weight": self.sample_weight,
            "groups": self.groups,
        }

    @property
    def names(self) -> list[str]:
        """All columns, in the order of `rows`."""
        return [*self.X.columns, *self.others.columns, self.columns.target]

    @property
    def rows(self) -> list[list[object]]:
        """All values."""
        table = pd.concat([self.X, self.others, self.y], axis=1)
        return [list(row) for row in table.itertuples(index=False, name=None)]

    @cached_property
    def data(self) -> Data:
        """The measurements, checked.

        Raises
        ------
        ValueError
            In the words of somebody who has a file: rows as the file counts them.
        """
        with in_words_of_a_file(self.X.index.to_list(), self.columns):
            constants = read_constants(self.constants)
            return make_data(self.X, self.y, **self.measured, constants=constants)

    def check_noise(self, name: str, *, extra_noise: bool) -> None:
        """Refuse a noise model that cannot be that of the measurements."""
        weights = self.sample_weight
        seen = self.X.index if weights is None else self.X.index[weights != 0.0]
        with in_words_of_a_file(seen.to_list(), self.columns):
            find_noise(name, self.data, extra_noise=extra_noise)


def read_measurements(
    table: pd.DataFrame,
    columns: Columns,
    source: str,
    *,
    drop_missing: bool = False,
    constants: Mapping[str, Known] | None = None,
) -> Measurements:
    """Take the measurements out of a table.

    Parameters
    ----------
    table
        From `read_table`.
    columns
        What its columns are.
    source
        What the table is called in errors.
    drop_missing
        Whether to leave out rows in which one of these columns has no value.
    constants
        Numbers that are known.
    """
    notes = table.attrs.get(NOTES, ())
    if drop_missing:
        used = columns.features and [*columns.features, *columns.others, columns.target]
        table, dropped = without_missing(table, used)
        notes = (*notes, *dropped)
    numbers = [name for name in columns.others if name not in columns.texts]
    others = choose_columns(table, numbers, source)
    for name in columns.texts:
        others[name] = choose_labels(table, name, source)
    X, y = split_table(table, columns.target, columns.features, source, others=columns.others)
    return Measurements(
        replace(columns, features=tuple(X.columns)), X, y, others, notes, constants or {}
    )


def without_missing(
    table: pd.DataFrame, names: Sequence[str] | None = None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the rows in which columns have a value, and what is to be said of the others.

    Examples
    --------
    >>> table = pd.DataFrame({"H": [1.0, None, 3.0], "D": [1.0, 2.0, 3.0]}, index=[2, 3, 4])
    >>> rows, notes = without_missing(table, ["H", "D"])
    >>> list(rows.index), notes
    ([2, 4], ('1 of 3 rows was dropped, because a value is missing: row 3.',))
    """
    known = [names is None or name in names for name in map(str, table.columns)]
    missing = table.loc[:, known].isna().any(axis=1).to_numpy()
    if not missing.any():
        return table, ()
    n, verb = int(missing.sum()), "was" if missing.sum() == 1 else "were"
    rows = in_rows(table.index[missing].to_list())
    note = f"{n} of {len(table)} rows {verb} dropped, because a value is missing: {rows}."
    return table.loc[~missing], (note,)


@contextmanager
def in_words_of_a_file(rows: Sequence[int], columns: Columns) -> Iterator[None]:
    """Let errors about arrays speak of a file's rows and columns."""
    try:
        yield
    except ValueError as error:
        text = counted_as_in_file(str(error), rows)
        for argument, name in (
            ("y_err", columns.error),
            ("sample_weight", columns.weight),
            ("groups", columns.group),
        ):
            if name is not None:
                text = re.sub(rf"\b{argument}\b", rf"{argument} {name!r}", text, count=1)
        text = in_words_of_a_shell(text)
        raise ValueError(text) from None
