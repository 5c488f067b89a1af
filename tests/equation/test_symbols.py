import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsr.equation.symbols import short_symbols


def test_short_names_stay_and_units_in_brackets_go():
    names = ["H", "T [K]", "v_max", "k (1/s)", "x0", "θ", "speed [m/s]"]
    wanted = ["H", "T", "v_max", "k", "x0", "θ", "speed"]
    assert list(short_symbols(names).values()) == wanted


def test_long_names_become_letters():
    found = short_symbols(["drop height (cm)", "temperature", "2nd run", "%"])
    assert list(found.values()) == ["d", "t", "n", "x"]


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["T [K]", "T [C]"], ["T", "T_2"]),
        (["T", "T [K]"], ["T", "T_2"]),
        (["drop height", "drop time"], ["d", "d_t"]),
        (["energy", "entropy of the gas"], ["energy", "e_otg"]),
        (["sensor number 1", "sensor number 2"], ["s", "s_2"]),
    ],
)
def test_no_two_names_have_the_same_symbol(names, wanted):
    assert list(short_symbols(names).values()) == wanted


def test_a_parameter_is_not_taken_for_a_column():
    assert short_symbols(["k1 [1/s]"], taken=["k1"]) == {"k1 [1/s]": "k_1"}


@given(st.lists(st.text(min_size=1, max_size=20), unique=True, max_size=12))
def test_any_names_have_symbols_of_their_own(names):
    symbols = short_symbols(names)
    assert list(symbols) == names
    assert len(set(symbols.values())) == len(names)
    assert all("<" not in one and len(one) <= 21 for one in symbols.values())
