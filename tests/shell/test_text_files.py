import pytest

from pmsr.shell.text_files import BLANKS, are_all_numbers, decode, find_separator, read_rows


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("H,D\n1,2\n", ","),
        ("H;D\n1,5;2\n1,5;3\n", ";"),
        ("H (m, rms);D\n1,5;2\n1,5;3\n", ";"),
        ("a;b,c\n1,2\n3,4\n", ","),
        ('"a;b;c",d\n1,2\n', ","),
        ("H\tD, in m\n1\t2\n", "\t"),
        ("H  D\n1 2\n", BLANKS),
        ("drop height\n1.5\n", ","),
        ("mass\n1 234\n", ","),
        ("H,D\n1,5,2,5\n", ","),
    ],
)
def test_the_separator_is_what_gives_all_rows_as_many_cells(text, separator):
    assert find_separator(text) == separator


def test_cells_stand_where_they_stood_in_the_file():
    rows = read_rows("\n# ramp\nH,D\n1,2\n\n ,\n# noon\n3\n")
    assert (rows.names, rows.cells, rows.numbers) == (["H", "D"], [["1", "2"], ["3"]], [4, 8])
    assert rows.notes == ("1 line that begins with # was left out.",)
    rows = read_rows('H,D\n"1\n2",3\n4,5\n')  # a line end in a cell is no row
    assert rows.numbers == [2, 3]


def test_a_comment_with_the_names_is_said_to_have_been_used():
    rows = read_rows("# ramp, 1608\n# H, D\n1,2\n3,4\n")
    assert rows.names == ["H", "D"] and "comment above" in rows.notes[0]
    with pytest.raises(ValueError, match="Put a row of names above it, or say --no-header"):
        read_rows("# a ramp of 1608\n1,2\n3,4\n")
    assert read_rows("# ramp\n1,2\n3,4\n", header=False).numbers == [2, 3]


def test_a_row_that_is_too_long_is_named():
    with pytest.raises(ValueError, match=r"row with 4 values, row 3.*such as a semicolon"):
        read_rows("H,D\n1,2\n1,5,2,5\n")
    with pytest.raises(ValueError, match=r"row with 2 values, row 2\. Lines above") as caught:
        read_rows("Ramp of 1608\nH;D\n1;2\n", separator=";")
    assert "semicolon" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(UnicodeDecodeError):
        decode(b"\x00\xff\x01")
    assert decode("\ufeffH".encode()) == ("H", ())


def test_names_may_look_like_numbers_if_one_does_not():
    assert are_all_numbers(["1", "2.5"]) and not are_all_numbers(["1", "a"])
    assert not are_all_numbers(["", "na"]) and not are_all_numbers(["1_0", "2"])
