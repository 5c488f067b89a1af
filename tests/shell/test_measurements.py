import numpy as np
import pandas as pd
import pytest

from pmsr.shell.measurements import Columns, read_measurements

TABLE = pd.DataFrame({"H": [1, 2, 3], "s": [0.1, 0.2, 0.3], "n": [1, 2, 2], "D": [2, 4, 7]})


def test_columns_that_have_another_meaning_are_no_variables():
    columns = Columns(target="D", error="s", weight="n")
    found = read_measurements(TABLE, columns, "t.csv")
    assert found.columns.features == ("H",) and found.names == ["H", "s", "n", "D"]
    np.testing.assert_array_equal(found.data.y_err, TABLE["s"])
    np.testing.assert_array_equal(found.data.counts, TABLE["n"])
    np.testing.assert_array_equal(np.array(found.rows, dtype=float), TABLE.to_numpy())
    plain = read_measurements(TABLE, Columns(target="D"), "t.csv")
    assert plain.columns.features == ("H", "s", "n") and plain.data.y_err is None


@pytest.mark.parametrize(
    ("meanings", "words"),
    [
        ({"error": "D"}, "'D' is both --target and --error-column"),
        ({"weight": "H", "features": ("H",)}, "'H' is both --features and --weight-column"),
        ({"error": "s", "weight": "s"}, "'s' is both --error-column and --weight-column"),
    ],
)
def test_a_column_has_one_meaning(meanings, words):
    with pytest.raises(ValueError, match=words):
        Columns(target="D", **meanings)


@pytest.mark.parametrize(
    ("meaning", "values", "words"),
    [
        ("error", [0.1, 0.0, 0.1], r"--error-column 'e' must be positive, got 0 in row 12\."),
        ("weight", [1, -1, 1], r"--weight-column 'e' must not be negative, got -1 in row 12\."),
        ("weight", [0.1, 0.1, 0.1], r"precisions 1/s\*\*2 belong in --error-column, as s"),
        ("error", [0.1, np.nan, 0.1], "column 'e' has no value in row"),
        ("error", ["a", "b", "c"], "column 'e' holds text, 'a' in row"),
    ],
)
def test_errors_speak_of_the_file(meaning, values, words):
    table = TABLE.assign(e=values).set_axis([11, 12, 13])
    columns = Columns(target="D", features=("H",), **{meaning: "e"})
    with pytest.raises(ValueError, match=words):
        _ = read_measurements(table, columns, "t.csv").data


@pytest.mark.parametrize(
    ("noise", "D", "words"),
    [
        ("proportional", [2, 0, 0, 7], r"'D' = 0 in row 13: its noise"),
        ("lognormal", [2, -1, -1, 7], r"'D' = -1 in row 13\. Leave .* --noise gaussian or proport"),
        ("poisson", [2, 0.5, 0.5, 7], r"'D' = 0\.5 in row 13\. If"),
    ],
)
def test_what_no_noise_allows_is_told_by_rows_of_the_file(noise, D, words):
    # Row 12 is left out: it was seen zero times.
    table = pd.DataFrame({"H": [1, 2, 3, 4], "n": [2, 0, 1, 1], "D": D}, index=[11, 12, 13, 14])
    found = read_measurements(table, Columns(target="D", weight="n"), "t.csv")
    with pytest.raises(ValueError, match=words):
        found.check_noise(noise, extra_noise=False)
