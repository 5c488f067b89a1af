import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsr.shell.numerals import (
    DECIMALS,
    both_readings,
    choose_decimals,
    find_decimal,
    is_like_a_number,
    read_number,
)

SIGNS = {".": ",", ",": "."}


@given(
    st.decimals(min_value=-(10**9), max_value=10**9, places=2),
    st.sampled_from(DECIMALS),
    st.sampled_from(["", "other", " ", "\u00a0", "\u202f", "'"]),
)
def test_whatever_a_country_writes_is_read_there(number, decimal, thousands):
    text = f"{number:,.2f}"
    between = SIGNS[decimal] if thousands == "other" else thousands
    text = text.replace(",", "\0").replace(".", decimal).replace("\0", between)
    assert read_number(text, decimal) == float(number)
    assert is_like_a_number(text)
    assert find_decimal(text) == decimal


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_a_program_writes_is_what_it_was(number):
    assert read_number(repr(number)) == number
    assert read_number(repr(number).replace(".", ","), ",") == number


@pytest.mark.parametrize(
    "text", ["1.2.3", "1,2,3", "12 34", "1 2345", "1_000", "", "5 mm", "1,23,456", "a", "1..2", ","]
)
def test_what_is_no_number_is_none_anywhere(text):
    assert not is_like_a_number(text)
    for decimal in DECIMALS:
        with pytest.raises(ValueError):
            read_number(text, decimal)


@pytest.mark.parametrize("text", ["1,234", "-12.345", "999,000"])
def test_three_digits_behind_one_sign_may_be_thousands(text):
    assert find_decimal(text) == "?"
    low, high = sorted(map(abs, both_readings(text)))
    assert math.isclose(high, 1000.0 * low)


@pytest.mark.parametrize(
    ("columns", "default", "decimals"),
    [
        ([["1,234", "1,5"], ["2.5"]], None, [",", "."]),
        ([["1,234"], ["2.5"]], None, ["."]),
        ([["1,234"], ["2,5"]], None, [","]),
        ([["1,234"], ["2"]], None, [None]),
        ([["1,234"], ["2"]], ",", [","]),
        ([["1.234"], ["2"]], ",", ["."]),
        ([["1.234"], ["2,5"]], ",", [None]),
        ([["1.234"], ["2,5"], ["2.5"]], ",", ["."]),
        ([["1.5", "1,5"], ["2"]], None, [None]),
        ([["1.234", "1,234"], ["2"]], None, [None]),
    ],
)
def test_a_column_is_read_in_one_way_or_left_open(columns, default, decimals):
    found = choose_decimals(columns, default=default)
    assert found[: len(decimals)] == decimals
    assert choose_decimals(columns, given=",") == [","] * len(columns)
