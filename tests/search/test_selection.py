from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsr.search.selection import (
    group_alike,
    model_probabilities,
    pair_by_distance,
    pareto_front,
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


def test_probabilities_are_the_normalised_evidence():
    probabilities = model_probabilities([-700.0, -701.0, -np.inf, np.nan], list("abcd"))
    np.testing.assert_allclose(probabilities, [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1)), 0, 0])


def test_without_evidence_probabilities_are_zero_and_without_weighing_unknown():
    assert model_probabilities([-np.inf, -np.inf], ["a", "b"]).tolist() == [0.0, 0.0]
    assert np.isnan(model_probabilities([np.nan, np.nan], ["a", "b"])).all()


def test_the_first_of_those_alike_speaks_for_them():
    curves = np.array([[1.0, np.nan], [5.0, np.nan], [1.0001, np.nan], [5.0, 2.0]])
    assert group_alike(curves, [2, 0, 1, 3], 0.001) == {2: [2, 0], 1: [1], 3: [3]}
    assert group_alike(curves, [0, 1, 2, 3], 1e-5) == {0: [0], 1: [1], 2: [2], 3: [3]}


scores = st.one_of(st.floats(-100, 100), st.sampled_from([-np.inf, np.nan]))


@given(st.lists(st.tuples(scores, st.integers(1, 9)), max_size=12))
def test_nothing_beats_the_front_and_the_front_beats_everything_else(pairs):
    front = pareto_front([score for score, _ in pairs], [size for _, size in pairs])
    chosen = [pairs[place] for place in front]
    assert chosen == sorted(chosen, key=lambda pair: pair[1])
    assert all(a < b for (a, _), (b, _) in pairwise(chosen))
    for score, size in pairs:
        if np.isfinite(score):
            assert any(best >= score and least <= size for best, least in chosen)
