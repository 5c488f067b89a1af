import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsr.search.selection import (
    pair_by_distance,
    replacement_probability,
    replaces_if_better,
    replaces_probabilistically,
)

finite = st.floats(-1e6, 1e6)


@given(finite, finite)
def test_the_two_probabilities_of_a_pair_add_up_to_one(first, second):
    total = replacement_probability(first, second) + replacement_probability(second, first)
    assert total == pytest.approx(1.0)


@given(st.floats(-300, 300), st.floats(-300, 300))
def test_the_probability_is_that_of_algorithm_1(first, second):
    q1, q2 = np.exp(first), np.exp(second)
    assert replacement_probability(first, second) == pytest.approx(q1 / (q1 + q2))


@pytest.mark.parametrize(
    ("child", "parent", "expected"),
    [(-np.inf, -np.inf, 0.5), (-np.inf, 0.0, 0.0), (0.0, -np.inf, 1.0), (-1e8, -1e8 - 2, 0.881)],
)
def test_any_magnitude_and_failures_are_safe(child, parent, expected):
    assert replacement_probability(child, parent) == pytest.approx(expected, abs=1e-3)


def test_decisions_have_the_probability_they_should():
    rng = np.random.default_rng(0)
    share = np.mean([replaces_probabilistically(-10.0, -11.0, rng) for _ in range(20_000)])
    exact = replacement_probability(-10.0, -11.0)
    assert abs(share - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000)


def test_deterministic_crowding_keeps_the_better_and_lets_equals_drift():
    rng = np.random.default_rng(0)
    assert replaces_if_better(-0.1, -0.2, rng)
    assert replaces_if_better(-0.2, -0.2, rng)
    assert not replaces_if_better(-0.3, -0.2, rng)


@given(st.tuples(*[st.floats(0, 100)] * 4))
def test_pairs_have_the_smaller_total_distance(distances):
    (_, first), (_, second) = pair_by_distance(distances)
    assert {first, second} == {0, 1}
    total = distances[first] + distances[2 + second]
    assert total <= distances[1 - first] + distances[2 + 1 - second]
