import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsr.magnitude import column_lengths, length, mean_and_deviation, take_out_exponent

numbers = st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=8).map(
    lambda values: np.array(values) / 1e3
)
exponents = st.integers(-1000, 1000)


@given(numbers, st.sampled_from([1e-150, 1e150, 1e-250, 1e250]))
def test_a_length_grows_with_its_vector_whatever_its_size(values, factor):
    expected = float(np.linalg.norm(values)) * factor
    assert length(values * factor) == pytest.approx(expected, rel=1e-12, abs=1e-300)
    columns = column_lengths(np.column_stack([values * factor, values]))
    assert columns == pytest.approx(
        [expected, float(np.linalg.norm(values))], rel=1e-12, abs=1e-300
    )


@given(numbers, exponents)
def test_a_power_of_two_changes_no_digit(values, exponent):
    wide = np.ldexp(values, exponent)
    if np.array_equal(np.ldexp(wide, -exponent), values):  # nothing fell off the range
        for plain, scaled in zip(mean_and_deviation(values), mean_and_deviation(wide), strict=True):
            assert np.ldexp(plain, exponent) == scaled
        scaled, taken = take_out_exponent(wide)
        np.testing.assert_array_equal(np.ldexp(scaled, taken), wide)
        assert np.max(np.abs(scaled)) < 1.0 and (not wide.any() or np.max(np.abs(scaled)) >= 0.5)


@pytest.mark.parametrize("wild", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_makes_the_length_so_and_disturbs_no_other_column(wild):
    matrix = np.array([[wild, 3e200], [1.0, 4e200]])
    lengths = column_lengths(matrix)
    assert not np.isfinite(lengths[0]) and lengths[1] == pytest.approx(5e200)
    assert not np.isfinite(length(matrix[:, 0]))
