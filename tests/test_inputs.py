import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from pmsr.data import make_data
from pmsr.inputs import read_labels, split_columns

X = [1.0, 2.0, 3.0]
Y = [1.0, 2.0, 4.0]


def test_columns_come_with_their_names_where_there_are_any():
    columns, names = split_columns(pd.DataFrame({"a": X, "b": Y}))
    assert names == ["a", "b"] and [list(one) for one in columns] == [X, Y]
    assert split_columns(pd.Series(X, name="a"))[1] == ["a"]
    columns, names = split_columns(np.column_stack([X, Y]))
    assert names is None and [list(one) for one in columns] == [X, Y]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (None, "groups are missing"),
        (["a", "b"], "one label for each of the 3 rows"),
        (["a", "b", "c"], "There is no group 'c'"),
    ],
)
def test_labels_of_new_rows_are_those_that_are_known(groups, message):
    assert read_labels(["b", "a", "a"], 3, ["a", "b"]) == ("b", "a", "a")
    with pytest.raises(ValueError, match=message):
        read_labels(groups, 3, ["a", "b"])


@pytest.mark.parametrize("values", [None, {"H": X}, scipy.sparse.csr_array(np.eye(3))])
def test_containers_that_are_no_table_are_refused(values):
    kind = type(values).__name__
    with pytest.raises(TypeError, match=f"X must be an array, a list or a table, got {kind}"):
        make_data(values, Y)


def test_one_number_is_the_error_of_all_rows():
    data = make_data(X, Y, y_err=0.1, X_err=0.2)
    assert data.y_err.tolist() == [0.1] * 3 and data.X_err.tolist() == [[0.2]] * 3


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ({"y_err": [0.1, 0.0, 0.2]}, r"y_err must be positive, got 0 in row 1 .*error of the"),
        ({"y_err": [0.1, 0.1, -2.0]}, "y_err must be positive, got -2 in row 2"),
        ({"y_err": [0.1, np.nan, 0.2]}, r"y_err: missing value \(NaN\) in row 1"),
        ({"y_err": [0.1, np.inf, 0.2]}, "y_err: infinite value in row 1"),
        ({"y_err": [0.1, 0.2]}, "y_err and y must have the same number of rows, got 2 and 3"),
        ({"y_err": [[0.1, 0.2]] * 3}, "y_err must have one column, got 2"),
        ({"y_err": ["a", "b", "c"]}, "y_err: values must be numbers"),
        ({"y_err": [1e-200, 1.0, 1.0]}, "y_err must have a magnitude between"),
        ({"sample_weight": [1, -1, 5]}, "sample_weight must not be negative, got -1 in row 1"),
        ({"sample_weight": [0, 0, 0]}, r"sample_weight is zero in all rows: nothing was seen\."),
        ({"sample_weight": [0, 1, 0]}, r"number of observations, from 2 to .*, got 1\. Weights"),
        ({"sample_weight": [1, 0.5, 1]}, "must be whole numbers, got 0.5 in row 1"),
        ({"sample_weight": [0.3, 0.3, 0.4]}, "precisions 1/s.*belong in y_err"),
        ({"sample_weight": [1, np.nan, 1]}, r"sample_weight: missing value \(NaN\) in row 1"),
        ({"sample_weight": [1, np.inf, 1]}, "sample_weight: infinite value in row 1"),
        ({"sample_weight": [1, 1]}, "sample_weight and y must have the same number of rows"),
        ({"sample_weight": [0, 0, 3]}, "At least two rows are needed, got 1"),
        ({"sample_weight": [[1, 2]] * 3}, "sample_weight must have one column, got 2"),
        ({"X_err": [0.1, -0.1, 0.0]}, "X_err must not be negative, got -0.1 for 'x0' in row 1"),
        ({"X_err": [[0.1, 0.1]] * 3}, r"X_err must have the 1 columns of X \(x0\), got 2"),
        ({"X_err": [0.1, 0.1]}, "X_err and y must have the same number of rows, got 2 and 3"),
        ({"X_err": pd.DataFrame({"x1": X})}, "X_err: there is no variable 'x1'"),
        ({"groups": ["a", "a", "b"]}, "Every group must have two rows or more, got one of 'b'"),
        ({"groups": ["a", None, "a"]}, "groups: missing label in row 1"),
        ({"groups": ["a", np.nan, np.nan]}, "groups: missing label in row 1 .*, and in 1 more"),
        ({"X_err": pd.DataFrame(index=range(3))}, "X_err must have the 1 columns of X .*, got 0"),
        ({"groups": ["a", "a"]}, "groups and y must have the same number of rows, got 2 and 3"),
    ],
)
def test_errors_weights_and_groups_that_cannot_be_are_refused(measured, message):
    with pytest.raises(ValueError, match=message):
        make_data(X, Y, **measured)


@pytest.mark.parametrize("role", ["y_err", "sample_weight", "X_err", "groups"])
def test_rows_of_errors_in_another_order_are_refused(role):
    y = pd.Series(Y, name="D")
    with pytest.raises(ValueError, match=rf"y and {role} have the same index.*{role}\.loc\[y\.ind"):
        make_data(X, y, **{role: pd.Series([3, 3, 3], index=[2, 1, 0], name="x0")})
