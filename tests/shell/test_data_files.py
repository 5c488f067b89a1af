import csv
import io
import sys
import time
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import pmsr.shell.data_files
from pmsr.csv_text import to_csv
from pmsr.shell.data_files import NOTES, choose_columns, read_table, split_table

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
    # The first row of the data is the second of the file.
    pd.testing.assert_frame_equal(found, TABLE.set_axis([2, 3, 4]), check_index_type=False)


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


def test_a_file_of_our_own_has_the_names_that_it_was_given(tmp_path):
    # Numbers, formulas, spaces, line ends, repeated names: whatever a table can have.
    names = ["1", "2.5", "=cmd|' /C calc'!A0", " a ", "a;b;c", 'x "y"', "\t=1", "b\r\nc", "", ""]
    rows = np.random.default_rng(0).normal(size=(3, len(names)))
    path = tmp_path / "own.csv"
    path.write_bytes(to_csv(names, rows.tolist()))
    table = read_table(path, own_names=names)
    assert list(table.columns) == names and table.to_numpy().tobytes() == rows.tobytes()
    with pytest.raises(ValueError, match="its columns are not those that pmsr wrote"):
        read_table(path, own_names=names[::-1])


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r", "'=", "''-"])
def test_no_text_that_is_written_is_a_formula_elsewhere(tmp_path, sign):
    names = [f"{sign}cmd|' /C calc'!A0", f"a;{sign}1", "b"]
    text = to_csv(names, [[1.0, -2.0, f"{sign}1+1"]])
    # Whatever a spreadsheet takes for the separator: no cell is executed, but for the number.
    for separator in ",;\t":
        lines = io.StringIO(text.decode(), newline="")
        cells = [cell for row in csv.reader(lines, delimiter=separator) for cell in row]
        wild = [cell for cell in cells if cell[:1] and cell[0] in "=+-@\t\r"]
        assert wild in ([], ["-2.0"])
    # The names are ours again, but for space at their ends, which is nobody's.
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    assert list(read_table(path).columns) == names


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.xlsx"])
@pytest.mark.parametrize("rows", [[[1.5, 2], [2.0, 3]], [[-1e-3, None], [2.0, 3]]])
def test_a_file_without_names_does_not_lose_its_first_row(tmp_path, name, rows):
    path, table = tmp_path / name, pd.DataFrame(rows)
    if name.endswith("xlsx"):
        table.to_excel(path, header=False, index=False)
    else:
        separator = "\t" if name.endswith("tsv") else ";"
        table.to_csv(path, header=False, index=False, sep=separator, decimal=",")
    with pytest.raises(ValueError, match=r"its first row holds numbers, .*Put a row of names"):
        read_table(path)


@pytest.mark.parametrize("header", ["wavelength;400;410", ";400;a", "inf;nan;x", "1_a;2;3"])
def test_some_names_may_be_numbers(tmp_path, header):
    path = write(tmp_path / "t.csv", f"{header}\n1;2;3\n")
    assert list(read_table(path).columns) == header.split(";")


def test_names_of_parquet_are_names_even_if_they_are_numbers(tmp_path):
    table = pd.DataFrame({"1": [1.5, 2.0], "2": [2.0, 3.0]})
    table.to_parquet(tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(found.reset_index(drop=True), table)


def test_a_number_with_an_underscore_is_text(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "H,D\n1_000,2\n"))
    assert table["H"].to_list() == ["1_000"]


def test_what_excel_leaves_blank_is_missing(tmp_path):
    sheet = [[None, None], ["H", "D"], [1, 2.5], ["#N/A", 3], [True, None], [None, None]]
    pd.DataFrame(sheet).to_excel(tmp_path / "t.xlsx", header=False, index=False)
    table = read_table(tmp_path / "t.xlsx")
    assert list(table.columns) == ["H", "D"] and table["H"].isna().to_list() == [False, True, False]
    assert table["D"].to_list()[:2] == [2.5, 3.0] and np.isnan(table["D"].iloc[2])


def sheet(path, body):
    """An Excel file with rows as XML."""
    pd.DataFrame({"a": [1]}).to_excel(path, index=False)
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    text = members["xl/worksheets/sheet1.xml"].decode()
    start, end = text.index("<sheetData>") + len("<sheetData>"), text.index("</sheetData>")
    members["xl/worksheets/sheet1.xml"] = (text[:start] + body + text[end:]).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, contents in members.items():
            new.writestr(name, contents)
    return path


CELLS = '<row r="1"><c r="A1" t="inlineStr"><is><t>H</t></is></c></row>'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        # Two cells, in two corners of the sheet.
        (CELLS + '<row r="1000000"><c r="XFD1000000"><v>1</v></c></row>', "1,000,000 rows"),
        (CELLS + '<row r="1000000000000"><c r="A1000000000000"><v>1</v></c></row>', "more than"),
        (CELLS + '<row r="2">' + " " * 10_000_000 + "</row>", "unfolds to"),
    ],
)
def test_an_excel_file_that_would_fill_the_memory_is_refused(tmp_path, body, words):
    with pytest.raises(ValueError, match=words):
        read_table(sheet(tmp_path / "t.xlsx", body))


def test_text_that_would_fill_the_memory_is_refused(tmp_path):
    path = write(tmp_path / "t.csv", ",".join(map(str, range(50_000))) + "a\n" + "1\n" * 50_000)
    with pytest.raises(ValueError, match="50,001 rows and 50,000 columns with only 100,000 values"):
        read_table(path)


def test_a_parquet_file_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pmsr.shell.data_files, "MAX_VALUES", 1000)
    pd.DataFrame({"a": np.zeros(1001)}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"1,001 rows of 1 columns are more than 1,000 values"):
        read_table(tmp_path / "t.parquet")


def test_repeated_text_in_a_parquet_file_is_in_memory_once(tmp_path):
    long = pa.DictionaryArray.from_arrays(np.zeros(300, dtype=np.int32), ["x" * 1_000_000])
    path = tmp_path / "t.parquet"
    # Without Arrow's own schema a reader takes the column for plain text, of 300 MB.
    table = pa.table({"place": long, "H": np.arange(300.0)})
    pyarrow.parquet.write_table(table, path, store_schema=False)
    before = pa.default_memory_pool().max_memory()
    found = read_table(path)
    assert choose_columns(found, ["H"], "t.parquet")["H"].to_list() == list(range(300))
    with pytest.raises(ValueError, match=r"column 'place' holds text, 'x{59}…' in row 2\."):
        choose_columns(found, ["place"], "t.parquet")
    assert pa.default_memory_pool().max_memory() - before < 50_000_000


def test_lists_in_a_parquet_file_are_not_looked_into(tmp_path):
    table = {"H": [1.5, 2.0], "list": [[1.0], []], "raw": pa.array([b"ab", b"cd"], pa.binary(2))}
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pa.table({**table, "place": ["Pisa", "Padua"]}), path)
    found = read_table(path)
    assert list(found.columns) == ["H", "list", "raw", "place"]
    assert choose_columns(found, ["H"], "t.parquet")["H"].to_list() == [1.5, 2.0]
    for name, shown in (("list", "list<"), ("raw", "fixed_size_binary"), ("place", "Pisa")):
        with pytest.raises(ValueError, match=f"column '{name}' holds text, '{shown}.* in row 2"):
            choose_columns(found, [name], "t.parquet")


def test_blank_lines_take_no_time(tmp_path):
    path = write(tmp_path / "t.csv", "H;D\n" + "\n" * 300_000 + "1;2\n")
    clock = time.process_time()
    assert read_table(path)["D"].to_list() == [2.0]
    assert time.process_time() - clock < 2.0


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("t.json", "{}", r"unknown kind of file '\.json'. Available: \.csv, \.tsv"),
        ("t.csv", "", "the file is empty"),
        ("t.csv", "H,D\n", "no rows below the names of the columns"),
        ("t.csv", "H,D\n1,2,3\n", "2 names of columns, but a row with 3 values, row 2"),
        ("t.csv", "# nothing\n", "it holds comments only"),
        ("t.parquet", "nonsense", "not a table that can be read"),
        ("t.xlsx", "nonsense", "not a table that can be read"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, name, text, words):
    with pytest.raises(ValueError, match=words) as caught:
        read_table(write(tmp_path / name, text))
    assert str(caught.value).startswith(str(tmp_path / name)) and "\n" not in str(caught.value)


def test_text_in_another_encoding_is_read_and_said_to_be(tmp_path):
    for encoding in ("latin-1", "cp1252", "utf-16"):
        table = read_table(write(tmp_path / "t.csv", "Höhe,D\n1,2\n", encoding))
        assert list(table.columns) == ["Höhe", "D"]
        assert len(table.attrs["notes"]) == (encoding != "utf-16")
    (tmp_path / "t.csv").write_bytes(b"\0\xff\xfa,D\n1,2\n")
    with pytest.raises(ValueError, match="is not UTF-8"):
        read_table(tmp_path / "t.csv")


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
        ("H,D\n1,2\n,3\n,4\n", "column 'H' has no value in rows 3 and 4. .* --drop-missing"),
        ("H,D\n\n1,2\n2,NA\n", "target 'D' has no value in row 4"),
        ("H,D\n1,2\nPisa,3\n", "column 'H' holds text, 'Pisa' in row 3"),
        ("H,D\n1,2\n3,Pisa\n", "target 'D' holds text, 'Pisa' in row 3. .* another --target"),
        ("H,D\nmm,s\n3,4\n4,5\n", "'mm' in row 2. If these are units, .*--units x=mm"),
        ("H,D\na,1\nb,2\na,3\n", "'a' in row 2. .* say --group-column"),
        ("H,D\n1,2\ninf,3\n", "column 'H' is infinite in row 3"),
        ('H,D\n"1,234",2\n"2,345",3\n', "holds '1,234' in row 2, which is 1234 or 1.234. Say"),
        ("H;D\n1.234;2,5\n2.345;3\n", "holds '1.234' in row 2, which is 1.234 or 1234. Say"),
        ('H;D\n"1,5";2\n2.5;3\n', "has points and commas as decimal signs, '1,5' in row 2"),
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


@pytest.mark.parametrize(
    ("text", "names", "values"),
    [
        # Thousands, as English and German spreadsheets write them.
        ('H,D\n"1,234.5",2\n"12,000",3\n', ["H", "D"], [1234.5, 12000.0]),
        ("H;D\n1.234,5;2\n12.000;3\n", ["H", "D"], [1234.5, 12000.0]),
        ("H;D\n1 234,5;2\n12\u00a0000;3\n", ["H", "D"], [1234.5, 12000.0]),
        ("H\tD\n1'234.5\t2\n12'000\t3\n", ["H", "D"], [1234.5, 12000.0]),
        ('H,D\n"1,234",2.5\n"12,000",3\n', ["H", "D"], [1234.0, 12000.0]),
        ("H;D\n1,234;2\n12,000;3\n", ["H", "D"], [1.234, 12.0]),
        # Comments, blanks, lines for Excel, names with separators.
        ("# a ramp\n# in Pisa\nH,D\n1,2\n# noon\n3,4\n,\n", ["H", "D"], [1.0, 3.0]),
        ("# H  D\n1.5   2\n  3  4\n", ["H", "D"], [1.5, 3.0]),
        ("H D\n1.5   2\n3  4\n", ["H", "D"], [1.5, 3.0]),
        ("sep=;\nH;D\n1,5;2\n3;4\n", ["H", "D"], [1.5, 3.0]),
        ("H (m, rms);D\n1,5;2\n3;4\n", ["H (m, rms)", "D"], [1.5, 3.0]),
        ('"H; in m",D\n1.5,2\n3,4\n', ["H; in m", "D"], [1.5, 3.0]),
        ("H,D\n\u22121.5,2\n3,4\n", ["H", "D"], [-1.5, 3.0]),
        # What looks like a comment, and is a value or a name.
        ("H,D\n#N/A,2\n3,4\n", ["H", "D"], [None, 3.0]),
        ("H,D\n1,2\n#N/A,4\n", ["H", "D"], [1.0, None]),
    ],
)
def test_files_that_people_have_are_read(tmp_path, text, names, values):
    table = read_table(write(tmp_path / "t.csv", text))
    assert list(table.columns) == names
    found = [None if np.isnan(value) else value for value in table.iloc[:, 0]]
    assert found == values


def test_what_a_file_does_not_tell_the_user_does(tmp_path):
    path = write(tmp_path / "t.csv", 'H,D\n"1,234",2\n"2,345",3\n')
    for decimal, values in ((".", [1234.0, 2345.0]), (",", [1.234, 2.345])):
        table = choose_columns(read_table(path, decimal=decimal), ["H"], "t.csv")
        assert table["H"].to_list() == values
    assert (
        "thousands separators: 1,234 is 1234.0" in read_table(path, decimal=".").attrs["notes"][0]
    )


def test_rows_are_counted_as_a_spreadsheet_counts_them(tmp_path):
    rows = "# ramp\nH,D\n1,2\n\n# noon\n3,4\n"
    assert list(read_table(write(tmp_path / "t.csv", rows)).index) == [3, 6]
    sheet = [["a ramp"], [None], ["H"], [1], [None], [2]]
    pd.DataFrame(sheet).to_excel(tmp_path / "t.xlsx", header=False, index=False)
    # Above the names of a sheet stand no other rows.
    assert list(read_table(tmp_path / "t.xlsx").index) == [3, 4, 6]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.xlsx"])
def test_a_file_without_names_gets_some(tmp_path, name):
    table = pd.DataFrame([[1.5, 2], [2.5, 3]])
    if name.endswith("xlsx"):
        table.to_excel(tmp_path / name, header=False, index=False)
    else:
        separator = "\t" if name.endswith("tsv") else ","
        table.to_csv(tmp_path / name, header=False, index=False, sep=separator)
    found = read_table(tmp_path / name, header=False)
    assert list(found.columns) == ["x1", "x2"] and list(found.index) == [1, 2]
    assert found["x1"].to_list() == [1.5, 2.5]
    with pytest.raises(ValueError, match="--no-header"):
        read_table(tmp_path / name)


def test_a_sheet_is_chosen_by_name_or_number(tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        for place, name in enumerate(("notes", "Run 3")):
            pd.DataFrame({"H": [place, "1,5"]}).to_excel(book, sheet_name=name, index=False)
    for sheet, value in ((None, 0.0), ("1", 0.0), ("2", 1.0), ("Run 3", 1.0)):
        table = read_table(tmp_path / "t.xlsx", sheet=sheet)
        assert table["H"].to_list() == [value, 1.5]
        said = ("The first of 2 sheets was read, 'notes': see --sheet.",)
        assert table.attrs[NOTES] == (said if sheet is None else ())
    with pytest.raises(ValueError, match=r"no sheet 'run 3'. Did you mean 'Run 3'"):
        read_table(tmp_path / "t.xlsx", sheet="run 3")
    with pytest.raises(ValueError, match=r"only \.xlsx files have sheets"):
        read_table(write(tmp_path / "t.csv", "H\n1\n"), sheet="2")


@pytest.mark.parametrize("text", ["H,D,\n1,2,\n3,4,\n", "H;D;;\n1;2;;\n3;4;;\n;;;\n"])
def test_a_separator_at_the_end_of_every_row_is_no_column(tmp_path, text):
    X, y = split_table(read_table(write(tmp_path / "t.csv", text)), "D", None, "t.csv")
    assert list(X.columns) == ["H"] and y.to_list() == [2.0, 4.0]


def test_what_has_a_value_and_no_name_is_asked_about(tmp_path):
    table = read_table(write(tmp_path / "t.csv", ",H,D\n0,1,2\n1,3,4\n"))
    with pytest.raises(ValueError, match="column 1 has no name"):
        split_table(table, "D", None, "t.csv")


def test_a_formula_of_a_sheet_without_a_value_is_a_missing_value(tmp_path):
    table = pd.DataFrame({"H": [1, 2, 3], "D": [1.0, "#DIV/0!", 3.0]})
    table.to_excel(tmp_path / "t.xlsx", index=False)
    with pytest.raises(ValueError, match="'D' has no value in row 3"):
        choose_columns(read_table(tmp_path / "t.xlsx"), ["D"], "t.xlsx")


def test_lines_above_the_names_of_a_sheet_are_pointed_out(tmp_path):
    rows = [["a ramp", None], [None, None], ["H", "D"], [1, 2]]
    pd.DataFrame(rows).to_excel(tmp_path / "t.xlsx", header=False, index=False)
    with pytest.raises(ValueError, match=r"no column 'D'. It stands in row 3: remove the rows"):
        choose_columns(read_table(tmp_path / "t.xlsx"), ["D"], "t.xlsx")


@pytest.mark.parametrize(
    ("cells", "way_out"),
    [
        (("1 mm", "2 mm"), "Remove 'mm' from all rows: numbers stand alone; a unit stands in"),
        (("1,5%", "20%"), "Remove '%' from all rows: numbers stand alone."),
        (("1.5±0.1", "2 +- 0.1"), "Put the errors in a column of their own, and say --error-col"),
        (("<0.5", "2"), "A limit is no measurement"),
        # Neither dates nor classes are numbers with units.
        (("3 Jan 2024", "4 Feb 2024"), "A target is a number"),
        (("low", "high"), "A target is a number"),
    ],
)
def test_numbers_with_more_than_digits_have_a_way_out(tmp_path, cells, way_out):
    text = "H;D\n" + "".join(f"{k};{cell}\n" for k, cell in enumerate(cells))
    with pytest.raises(ValueError) as error:
        split_table(read_table(write(tmp_path / "t.csv", text)), "D", None, "t.csv")
    assert way_out in str(error.value)
