import numpy as np
import pytest

from pmsr.report.digits import digits_for, short, write_duration, write_log_q


@pytest.mark.parametrize(
    ("number", "text"),
    [(np.inf, "∞"), (-np.inf, "−∞"), (1e-12, "1 × 10⁻¹²"), (123456.0, "1.235 × 10⁵"), (0.0, "0")],
)
def test_numbers_are_short(number, text):
    assert short(number) == text


def test_what_is_rounding_is_zero():
    assert short(-1.4e-13, size=3.0) == "0"
    assert short(-1.4e-13) == "−1.4 × 10⁻¹³"
    assert short(1e-3, size=3.0) == "0.001"


@pytest.mark.parametrize(("low", "high"), [(899.2, 900.3), (-1e-8, 3e-8), (1e9, 1e9 + 40.0)])
def test_two_digits_of_an_intervals_width_are_shown(low, high):
    written = [float(f"{end:.{digits_for(low, high)}g}") for end in (low, high)]
    assert written[1] - written[0] == pytest.approx(high - low, rel=0.01)


def test_where_nothing_is_known_of_a_width_there_are_four_digits():
    assert [digits_for(2.0, 2.0), digits_for(np.nan, 1.0), digits_for(-np.inf, 1.0)] == [4, 4, 4]


def test_log_q_has_hundredths_and_its_error_at_least_one():
    assert write_log_q(-13.1274, 0.0003) == "−13.13 ± 0.01"
    assert write_log_q(2.5) == "2.50" and write_log_q(-np.inf, 0.1) == "−∞"


def test_times_are_in_the_unit_that_people_would_choose():
    assert [write_duration(s) for s in (0.5, 99.4, 600.0, 7300.0)] == [
        "0.5 s",
        "99 s",
        "10 min",
        "2.0 h",
    ]
