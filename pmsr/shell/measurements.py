"""Measurements in a file, by what each column is: variables, target, errors, weights."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from pmsr.data import Data, make_data
from pmsr.shell.data_files import NOTES, choose_columns, in_rows, split_table
from pmsr.shell.wording import in_words_of_a_shell


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
    weight
        How often each row was seen.

    Examples
    --------
    >>> Columns(target="D", features=("H",), error="s").others
    ('s',)
    """

    target: str
    features: tuple[str, ...] | None = None
    error: str | None = None
    weight: str | None = None

    def __post_init__(self) -> None:
        taken = {self.target: "--target"} | dict.fromkeys(self.features or (), "--features")
        for option, name in (("--error-column", self.error), ("--weight-column", self.weight)):
            if name is None:
                continue
            if name in taken:
                raise ValueError(
                    f"The column {name!r} is both {taken[name]} and {option}. A column has one "
                    "meaning: leave one of them out."
                )
            taken[name] = option

    @property
    def others(self) -> tuple[str, ...]:
        """The columns that are neither the target nor variables."""
        return tuple(name for name in (self.error, self.weight) if name is not None)


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
    """

    columns: Columns
    X: pd.DataFrame
    y: "pd.Series[float]"
    others: pd.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def y_err(self) -> "pd.Series[float] | None":
        """Standard errors of the target."""
        return None if self.columns.error is None else self.others[self.columns.error]

    @property
    def sample_weight(self) -> "pd.Series[float] | None":
        """How often each row was seen."""
        return None if self.columns.weight is None else self.others[self.columns.weight]

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
            return make_data(self.X, self.y, y_err=self.y_err, sample_weight=self.sample_weight)


def read_measurements(
    table: pd.DataFrame, columns: Columns, source: str, *, drop_missing: bool = False
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
    """
    notes = table.attrs.get(NOTES, ())
    if drop_missing:
        used = columns.features and [*columns.features, *columns.others, columns.target]
        table, dropped = without_missing(table, used)
        notes = (*notes, *dropped)
    others = choose_columns(table, columns.others, source)
    X, y = split_table(table, columns.target, columns.features, source, others=columns.others)
    return Measurements(replace(columns, features=tuple(X.columns)), X, y, others, notes)


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
        text = re.sub(
            r"row (\d+) \(counted from 0\)", lambda found: f"row {rows[int(found[1])]}", str(error)
        )
        for argument, name in (("y_err", columns.error), ("sample_weight", columns.weight)):
            if name is not None:
                text = re.sub(rf"\b{argument}\b", rf"{argument} {name!r}", text, count=1)
        text = in_words_of_a_shell(text)
        raise ValueError(text) from None
