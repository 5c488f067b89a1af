import sys

import numpy as np
import pandas as pd
import pytest

from pmsr.tables import choose_columns, read_table, split_table

TABLE = pd.DataFrame({"drop height [m]": [1.5, 2.0, -3e-7], "τ": [4.0, 5.0, 6.25]})


def write(path, text, encoding="utf-8"):
    path.write_text(text, encoding=encoding)
    return path


@pytest.mark.parametrize("name", ["a b.csv", "δ.tsv", "t.txt", "t.CSV", "t.parquet", "t.xlsx"])
def test_every_kind_of_file_is_read(tmp_path, name):
    path = tmp_path / name
    if name.endswith("parquet"):
        TABLE.to_parquet(path)
    elif name.endswith("xlsx"):
        TABLE.to_excel(path, index=False)
    else:
        TABLE.to_csv(path, index=False, sep="\t" if name.endswith(("tsv", "txt")) else ",")
    found = choose_columns(read_table(path), list(TABLE.columns), name)
    pd.testing.assert_frame_equal(found, TABLE)


def test_no_digit_is_lost(tmp_path):
    values = np.random.default_rng(1).normal(size=200) * 10.0 ** np.arange(-100, 100)
    pd.DataFrame({"x": values}).to_csv(tmp_path / "x.csv", index=False)
    assert read_table(tmp_path / "x.csv")["x"].to_numpy().tobytes() == values.tobytes()


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffH;D\r\n1,5;2\r\n2,25;3\r\n",
        "H;D\n1.5;2\n2.25;3\n",
        "H, D\n1.5, 2\n\n2.25, 3\n",
        '"H",D\n"1.5",2\n2.25,3',
        "\nH,D\n1.5,2\n2.25,3\n",
    ],
)
def test_the_csv_of_other_programs_is_read(tmp_path, text):
    X, y = split_table(read_table(write(tmp_path / "t.csv", text)), "D", None, "t.csv")
    assert X["H"].to_list() == [1.5, 2.25] and y.to_list() == [2.0, 3.0]


def test_the_separator_can_be_given(tmp_path):
    path = write(tmp_path / "t.csv", '"a;b;c",D\n1,2\n')
    assert list(read_table(path, separator=",").columns) == ["a;b;c", "D"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("t.json", "{}", r"unknown kind of file '\.json'. Available: \.csv, \.tsv"),
        ("t.csv", "", "the file is empty"),
        ("t.csv", "H,D\n", "no rows below the names of the columns"),
        ("t.csv", "H,D\n1,2,3\n", "2 names of columns, but a row with 3 values"),
        ("t.parquet", "nonsense", "not a table that can be read"),
        ("t.xlsx", "nonsense", "not a table that can be read"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, name, text, words):
    with pytest.raises(ValueError, match=words) as caught:
        read_table(write(tmp_path / name, text))
    assert str(caught.value).startswith(str(tmp_path / name)) and "\n" not in str(caught.value)


def test_text_must_be_utf8(tmp_path):
    path = write(tmp_path / "t.csv", "Höhe,D\n1,2\n", "latin-1")
    with pytest.raises(ValueError, match="is not UTF-8"):
        read_table(path)


def test_a_missing_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv")


@pytest.mark.parametrize(("name", "library"), [("t.parquet", "pyarrow"), ("t.xlsx", "openpyxl")])
def test_a_missing_library_is_named_by_its_extra(tmp_path, monkeypatch, name, library):
    path = tmp_path / name
    TABLE.to_parquet(path) if name.endswith("parquet") else TABLE.to_excel(path)
    for module in [module for module in sys.modules if module.split(".")[0] == library]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ValueError, match=r'pip install "pmsr\[files\]"'):
        read_table(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("H,D\n1,2\n,3\n,4\n", "column 'H' has no value in row 2 and in 1 more"),
        ("H,D\n1,2\n2,NA\n", "column 'D' has no value in row 2"),
        ("H,D\n1,2\nPisa,3\n", "column 'H' holds text, 'Pisa' in row 2"),
        ("H,D\n1,2\ninf,3\n", "column 'H' is infinite in row 2"),
        ("H,H,D\n1,2,3\n2,3,4\n", "2 columns are called 'H'"),
        (",H,D\n1,2,3\n", "column 1 has no name"),
        ("D\n1\n2\n", "no column besides 'D'"),
        ("H,d\n1,2\n", "no column 'D'. Did you mean 'd'?"),
    ],
)
def test_columns_that_cannot_be_used_are_named(tmp_path, text, words):
    table = read_table(write(tmp_path / "t.csv", text))
    with pytest.raises(ValueError, match=words):
        split_table(table, "D", None, "t.csv")


def test_only_columns_that_are_asked_for_are_checked():
    table = pd.DataFrame({"": [0, 1], "H": [1, 2], "place": ["a", "b"], "D": [True, False]})
    X, y = split_table(table, "D", ["H"], "t.csv")
    assert list(X.columns) == ["H"] and y.to_list() == [1.0, 0.0] and y.name == "D"
    with pytest.raises(ValueError, match="'D' is also among --features"):
        split_table(table, "D", ["H", "D"], "t.csv")
    with pytest.raises(ValueError, match="'H' is asked for twice"):
        split_table(table, "D", ["H", "H"], "t.csv")


def test_dates_are_no_numbers():
    table = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    with pytest.raises(ValueError, match="column 'when' holds text, '2020-01-01"):
        choose_columns(table, ["when"], "t.csv")
