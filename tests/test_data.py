from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pmsr.data import (
    check_X,
    leave_out_constant,
    load_chronometers,
    load_galileo,
    make_data,
    make_data_for,
    make_sine,
)

X = [1.0, 2.0, 3.0]
Y = [1.0, 2.0, 4.0]


class TableWithoutPandas:
    """What a polars table offers: ``columns``, and columns that are arrays by ``__array__``."""

    def __init__(self, columns):
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        self.columns = list(columns)

    def __getitem__(self, name):
        return self._columns[name]


@pytest.mark.parametrize(
    "values",
    [
        X,
        tuple(X),
        [[1], [2], [3]],
        np.array(X, dtype=np.float32),
        np.array([[1], [2], [3]], dtype=np.uint8),
        np.asfortranarray([[1.0], [2.0], [3.0]]),
        np.ma.array(X),
        pd.Series(X),
    ],
)
def test_values_without_names_become_one_column_of_floats(values):
    data = make_data(values, Y)
    np.testing.assert_array_equal(data.X, [[1.0], [2.0], [3.0]])
    np.testing.assert_array_equal(data.y, Y)
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert (data.names, data.target) == (("x0",), "y")


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"H": [1, 2, 3], "drop height": [True, False, True]}),
        pd.DataFrame(
            {
                "H": pd.array([1, 2, 3], dtype="Int64"),
                "drop height": pd.array([True, False, True], dtype="boolean"),
            }
        ),
        TableWithoutPandas({"H": [1, 2, 3], "drop height": [1.0, 0.0, 1.0]}),
    ],
)
def test_tables_keep_their_names(table):
    data = make_data(table, pd.Series(Y, name="D"))
    assert (data.names, data.target) == (("H", "drop height"), "D")
    np.testing.assert_array_equal(data.X, [[1, 1], [2, 0], [3, 1]])


def test_series_keep_their_names():
    data = make_data(pd.Series(X, name="H"), pd.DataFrame({"D": Y}))
    assert (data.names, data.target) == (("H",), "D")


def test_names_can_be_given():
    assert make_data([[1, 2], [3, 4], [5, 6]], Y, names=["a", "b"]).names == ("a", "b")


def test_a_target_without_a_name_does_not_take_the_name_of_a_variable():
    assert make_data(pd.DataFrame({"y": X}), Y).target == "y_"


def test_data_do_not_share_memory_with_what_was_passed():
    values, target = np.array([[1.0], [2.0]]), np.array([1.0, 2.0])
    data = make_data(values, target)
    assert not np.shares_memory(data.X, values)
    assert not np.shares_memory(data.y, target)


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_any_physical_unit_will_do(unit):
    data = make_data(np.array(X) * unit, np.array(Y) * unit)
    np.testing.assert_array_equal(data.y, np.array(Y) * unit)


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(1, 4)), elements=st.floats())
)
def test_only_finite_variables_pass(values):
    y = np.arange(len(values))
    magnitudes = np.abs(values).max(axis=0)
    extreme = (magnitudes > 1e100) | ((magnitudes < 1e-100) & (magnitudes > 0))
    if np.isfinite(values).all() and extreme.any():
        with pytest.raises(ValueError, match=r"must have a magnitude between 1e-100 and 1e\+100"):
            make_data(values, y)
    elif np.isfinite(values).all():
        np.testing.assert_array_equal(make_data(values, y).X, values)
    else:
        with pytest.raises(ValueError, match=r"Column 'x\d' of X: (missing|infinite) value"):
            make_data(values, y)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, np.nan, 3], r"Column 'x0' of X: missing value \(NaN\) in row 1 \(counted from 0\)\."),
        ([1, None, 3], r"Column 'x0' of X: missing value \(NaN\) in row 1"),
        ([np.nan, 1, np.nan], r"missing value \(NaN\) in row 0 \(counted from 0\), and in 1 more"),
        ([[1, 1], [2, -np.inf], [3, 3]], "Column 'x1' of X: infinite value in row 1"),
        (np.ma.array(X, mask=[0, 0, 1]), r"Column 'x0' of X: missing value \(NaN\) in row 2"),
        (
            pd.DataFrame({"H": pd.array([1, 2, None], dtype="Int64")}),
            r"Column 'H' of X: missing value \(NaN\) in row 2",
        ),
        (["1", "2", "3"], r"Column 'x0' of X: values must be numbers, got <U1, for example '1'"),
        (pd.DataFrame({"H": [1, "high", 3]}), "Column 'H' .* got object, for example 'high'"),
        (pd.DataFrame({"H": ["a", "b", "c"]}), "Column 'H' .* got .*, for example 'a'"),
        (pd.DataFrame({"H": pd.Categorical(X)}), "Column 'H' .* got category"),
        (pd.DataFrame({"t": pd.to_datetime(["2020"] * 3)}), "Column 't' .* got datetime64"),
        ([Decimal(1), Decimal(2), Decimal(3)], "got object, for example Decimal"),
        ([2**70, 1, 2], "got object"),
        ([1j, 2, 3], "Column 'x0' of X: complex data not supported"),
        ([[1, 2], [3], [4, 5]], "X must have rows of equal length"),
        (np.zeros((3, 1, 1)), "X must have one or two dimensions, got 3"),
        (5.0, "X must have one or two dimensions, got 0"),
        ([], "X has no rows"),
        (pd.DataFrame({"H": []}), "X has no rows"),
        (np.zeros((3, 0)), "X has no columns"),
        (pd.DataFrame(index=range(3)), "X has no columns"),
        ([1.0, 2.0], "X and y must have the same number of rows, got 2 and 3"),
        (pd.DataFrame(np.eye(3)), "Names of variables must be strings, got 0"),
        (pd.DataFrame(np.eye(3), columns=["a", "b", "a"]), "must differ, got 'a' twice"),
        (pd.DataFrame(np.eye(3), columns=["a", " ", "b"]), "must not be blank, got ' '"),
        (np.array(X, np.longdouble) * np.longdouble("1e4000"), "infinite value in row 0"),
    ],
)
def test_unusable_variables_are_refused_with_the_place(values, message):
    with pytest.raises(ValueError, match=message):
        make_data(values, Y)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([1, np.nan, 3], r"Target 'y': missing value \(NaN\) in row 1"),
        ([1, np.inf, 3], "Target 'y': infinite value in row 1"),
        (pd.Series(["a", "b", "c"], name="D"), "Target 'D': values must be numbers"),
        ([1, 2j, 3], "Target 'y': complex data not supported"),
        (np.ones((3, 2)), "y must have one column, got 2"),
        (np.ones((3, 1, 1)), "y must have one or two dimensions, got 3"),
        ([2.0, 2.0, 2.0], "The target 'y' is constant within rounding, 2"),
        ([0.0, 0.0, 0.0], "The target 'y' is constant within rounding, 0"),
        ([1.0, 1.0 + 1e-13, 1.0], "The target 'y' is constant within rounding, 1"),
        ([1e-120, 2e-120, 3e-120], "magnitude between 1e-100 and 1e[+]100, got 3e-120"),
        ([1e120, 2e120, 3e120], "magnitude between 1e-100 and 1e[+]100, got 3e[+]120"),
        (pd.Series(Y, name="H"), "The target 'H' is also a variable. Drop it from X"),
        (pd.Series(Y, index=[2, 1, 0]), "the same index in a different order"),
    ],
)
def test_an_unusable_target_is_refused(target, message):
    with pytest.raises(ValueError, match=message):
        make_data(pd.DataFrame({"H": X}), target)


def test_rows_with_unrelated_indices_are_paired_by_position():
    data = make_data(pd.DataFrame({"H": X}), pd.Series(Y, index=[7, 8, 9]))
    np.testing.assert_array_equal(data.y, Y)


def test_one_row_is_refused():
    with pytest.raises(ValueError, match="At least two rows are needed, got 1"):
        make_data([[1.0]], [1.0])


def test_given_names_must_fit():
    with pytest.raises(ValueError, match="X has 1 columns, got 2 names: a, b"):
        make_data(X, Y, names=["a", "b"])
    with pytest.raises(TypeError, match=r"a sequence of strings, got 'H'. Use \['H'\]"):
        make_data(X, Y, names="H")


def test_select_keeps_the_variables_that_are_asked_for_in_their_order():
    data = make_data([[1, 2, 3], [4, 5, 6]], [7, 8], names=["a", "b", "c"])
    chosen = data.select(["c", "a"])
    np.testing.assert_array_equal(chosen.X, [[3, 1], [6, 4]])
    assert chosen.X.flags.c_contiguous
    assert (chosen.names, chosen.target) == (("c", "a"), "y")
    assert data.select([]).X.shape == (2, 0)


def test_select_suggests_a_variable_for_a_misspelt_one():
    data = make_data(pd.DataFrame({"height": X}), Y)
    with pytest.raises(ValueError, match=r"no variable 'hight'\. Did you mean 'height'"):
        data.select(["hight"])


def test_new_tables_are_matched_by_name_and_arrays_by_position():
    names = ["a", "b"]
    np.testing.assert_array_equal(check_X(pd.DataFrame({"b": [2], "a": [1]}), names), [[1, 2]])
    np.testing.assert_array_equal(check_X([[1, 2]], names), [[1, 2]])
    np.testing.assert_array_equal(check_X(pd.Series([1, 2], name="a"), ["a"]), [[1], [2]])
    np.testing.assert_array_equal(check_X([1, 2], ["a"]), [[1], [2]])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pd.DataFrame({"hight": [1], "mass": [2]}), "lacks the column 'height'. Did you mean 'hig"),
        (pd.DataFrame({"q": [1], "mass": [2]}), "lacks the column 'height'. Available: q, mass"),
        (
            pd.DataFrame({"height": [1], "mass": [2], "D": [3]}),
            r"unknown column 'D'. Use X\[\['height', 'mass'\]\]",
        ),
        ([[1, 2, 3]], r"X must have 2 columns \(height, mass\), got 3"),
        ([1, 2], r"got one dimension. For one row use X.reshape\(1, -1\)"),
        (pd.DataFrame({"height": [1], "mass": [2]}).iloc[0], "got one dimension"),
        (pd.DataFrame({"height": [], "mass": []}), "X has no rows"),
        ([[1, np.nan]], r"Column 'mass' of X: missing value \(NaN\) in row 0"),
    ],
)
def test_new_values_that_do_not_fit_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        check_X(values, ["height", "mass"])


def test_galileos_tables_are_those_of_the_paper():
    X, y = load_galileo("shelf")
    assert (list(X), y.name) == (["H"], "D")
    # Best fit of D = k sqrt(H), Section 3.2.
    root = np.sqrt(X["H"])
    assert (root @ y) / (root @ root) == pytest.approx(47.09, abs=0.005)

    X, y = load_galileo("no_shelf")
    assert (list(X), y.name) == (["D"], "H")
    # Best fit of H = k1 D^2 / (1 + k2 D): its residuals are orthogonal to its gradient in k1.
    basis = X["D"] ** 2 / (1 - 1.121e-3 * X["D"])
    assert (basis @ y) / (basis @ basis) == pytest.approx(1.099e-3, abs=1e-6)


def test_galileos_tables_are_valid_data():
    assert make_data(*load_galileo("shelf")).X.shape == (5, 1)
    assert make_data(*load_galileo("no_shelf")).X.shape == (7, 1)


def test_an_unknown_experiment_is_refused():
    with pytest.raises(
        ValueError, match=r"Unknown experiment 'tower'\. Available: shelf, no_shelf"
    ):
        load_galileo("tower")


def test_sine_has_the_distribution_of_the_paper():
    X, y = make_sine(n_points=10_000, sigma=0.5, random_seed=3)
    x0 = X["x0"].to_numpy()
    assert x0.min() > 0
    assert x0.max() < 1.5 * np.pi
    noise = y.to_numpy() - 2 * np.sin(x0) - 3
    # Three standard errors of a mean and of a standard deviation.
    assert abs(noise.mean()) < 3 * 0.5 / 100
    assert abs(noise.std() - 0.5) < 3 * 0.5 / np.sqrt(2 * 10_000)
    assert abs(x0.mean() - 0.75 * np.pi) < 3 * 1.5 * np.pi / np.sqrt(12) / 100


def test_the_same_seed_gives_the_same_sine():
    pd.testing.assert_series_equal(make_sine(random_seed=1)[1], make_sine(random_seed=1)[1])
    again = make_sine(random_seed=np.random.default_rng(1))
    pd.testing.assert_series_equal(make_sine(random_seed=1)[1], again[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"n_points": 0}, "n_points must be at least 1"), ({"sigma": -1.0}, "sigma must be zero or")],
)
def test_impossible_sines_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_sine(**arguments)


def test_columns_that_are_the_same_in_all_rows_are_found_and_left_out():
    X = pd.DataFrame({"T": [293.0] * 3, "x": [1.0, 2.0, 3.0], "z": [0.0] * 3, "r": [0.3] * 3})
    X.loc[1, "r"] = 0.1 + 0.2  # rounding is no information
    data = make_data(X, [1.0, 2.0, 4.0])
    assert data.constant == {"T": 293.0, "z": 0.0, "r": 0.3}
    varying = leave_out_constant(data)
    assert varying.names == ("x",) and varying.X.ravel().tolist() == [1.0, 2.0, 3.0]
    assert leave_out_constant(varying) is varying
    with pytest.raises(ValueError, match=r"Every column of X is the same in all rows, 'T', 'z'"):
        leave_out_constant(data.select(["T", "z"]))


def test_errors_weights_and_groups_are_carried():
    data = make_data(
        pd.DataFrame({"a": X, "b": Y, "c": [5, 6, 8]}),
        Y,
        y_err=pd.Series([1, 2, 3]),
        sample_weight=[1, 2, 3],
        X_err=pd.DataFrame({"c": [0.1, 0.0, 0.2]}),
        groups=[7, 7, 7],
    )
    assert data.y_err.tolist() == data.counts.tolist() == [1.0, 2.0, 3.0]
    assert data.y_err.dtype == data.counts.dtype == data.X_err.dtype == np.float64
    assert data.X_err.tolist() == [[0, 0, 0.1], [0, 0, 0], [0, 0, 0.2]]
    assert data.groups == ("7", "7", "7")
    selected = data.select(["c", "a"])
    assert selected.X_err.tolist() == [[0.1, 0], [0, 0], [0.2, 0]]
    taken = selected.take(np.array([2, 0]))
    assert taken.y_err.tolist() == taken.counts.tolist() == [3.0, 1.0]
    assert taken.X.tolist() == [[8, 3], [5, 1]] and taken.X_err.tolist() == [[0.2, 0], [0.1, 0]]
    assert taken.y.tolist() == [4.0, 1.0] and taken.groups == ("7", "7")


def test_rows_of_weight_zero_are_left_out_with_all_that_belongs_to_them():
    data = make_data(
        [*X, 9.0],
        [*Y, 9.0],
        y_err=[0.1, 0.2, 0.3, 9.0],
        sample_weight=[2, 1, 3, 0],
        groups=["a", "a", "a", "b"],
    )
    assert data.X.ravel().tolist() == X and data.y.tolist() == Y
    assert data.y_err.tolist() == [0.1, 0.2, 0.3] and data.counts.tolist() == [2, 1, 3]
    assert data.groups == ("a", "a", "a")


def test_weights_and_errors_that_say_nothing_are_none():
    data = make_data(X, Y, sample_weight=np.ones(3), X_err=np.zeros((3, 1)))
    assert data.counts is None and data.X_err is None
    assert make_data([*X, 5.0], [*Y, 5.0], sample_weight=[1, 1, 1, 0]).counts is None


def test_errors_of_an_equation_go_with_its_variables():
    table = pd.DataFrame({"b": X, "a": Y})
    data = make_data_for(["a"], table, X, y_err=0.5, X_err=[[1, 2]] * 3)
    assert data.names == ("a",) and data.X_err.tolist() == [[2]] * 3
    assert make_data_for(["a"], X, Y, y_err=0.5).y_err.tolist() == [0.5] * 3


def test_equal_rows_are_one_with_a_count_whatever_their_order():
    X = np.array([[3.0, 1.0], [1.0, 2.0], [3.0, 1.0], [3.0, 1.0], [1.0, 2.0]])
    y, errors = np.array([1.0, 2.0, 1.0, 1.0, 2.0]), np.array([0.1, 0.2, 0.1, 0.3, 0.2])
    first = make_data(X, y, y_err=errors).merge_equal()
    assert first.X.tolist() == [[1.0, 2.0], [3.0, 1.0], [3.0, 1.0]]
    assert first.y_err.tolist() == [0.2, 0.1, 0.3] and first.counts.tolist() == [2, 2, 1]
    rows = np.array([3, 0, 1])
    again = make_data(X[rows], y[rows], y_err=errors[rows], sample_weight=[1, 2, 2]).merge_equal()
    for name in ("X", "y", "y_err", "counts"):
        assert np.array_equal(getattr(again, name), getattr(first, name))


def test_rows_of_different_experiments_are_not_equal_and_data_without_equal_rows_stay():
    data = make_data([1, 1, 2, 2], [1.0, 1.0, 2.0, 2.0], groups=["b", "a", "a", "b"])
    assert data.merge_equal() is data
    assert make_data(X, Y).merge_equal().counts is None


def test_the_chronometers_are_those_of_the_published_table():
    X, y, y_err = load_chronometers()
    assert (len(X), list(X.columns), y.name) == (32, ["z"], "H")
    # First and last row of the source.
    assert (X["z"].iloc[0], y.iloc[0], y_err.iloc[0]) == (0.07, 69.0, 19.6)
    assert (X["z"].iloc[-1], y.iloc[-1], y_err.iloc[-1]) == (1.965, 186.5, 50.4)
    assert np.all(np.diff(X["z"]) > 0.0) and np.all(y_err > 0.0)
    # A straight line through the weighed rows is near today's rate at z = 0.
    slope, rate = np.polyfit(X["z"], y, 1, w=1.0 / y_err)
    assert 55.0 < rate < 75.0 and slope > 0.0
