import numpy as np
import pytest

from benchmarks.laws_of_science import LAWS, NOISE, ROWS, make
from pmsr.laws.coincidences import count_coincidences


def test_the_list_is_long_enough_and_half_of_it_is_for_training():
    assert len(LAWS) >= 60
    assert len({law.name for law in LAWS}) == len(LAWS)
    assert abs(2 * sum(law.is_for_training for law in LAWS) - len(LAWS)) <= 1
    assert {len(law.columns) for law in LAWS} == {1, 2, 3, 4}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_data_of_a_law_are_finite_and_the_same_for_a_seed(law):
    assert len(law.constants) == len(law.equation.parameters)
    assert law.target[0] not in law.columns
    for seed in range(5):
        data, drawn = make(law, seed)
        assert np.all(np.isfinite(data.y)) and np.std(data.y) > 0.0
        assert data.X.shape == (drawn["n"], len(law.columns))
        assert ROWS[0] <= drawn["n"] <= ROWS[1] and NOISE[0] <= drawn["noise"] <= NOISE[1]
        np.testing.assert_array_equal(make(law, seed)[0].y, data.y)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_law_whose_columns_have_units_of_their_own_has_no_coincidence(law):
    units = list(law.units.values())
    numbers = {"1", "rad"}
    if len(set(units)) == len(units) and numbers.isdisjoint(units) and law.constants:
        assert count_coincidences(law.equation.program, len(law.columns)).total == 0
