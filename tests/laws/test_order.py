from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsr.evidence.trust import UNKNOWN_SE
from pmsr.laws.order import (
    find_winner,
    model_probabilities,
    pareto_front,
    rank,
)

values = st.one_of(st.floats(-100, 100), st.sampled_from([-np.inf, np.nan]))


@given(st.lists(st.tuples(values, st.integers(1, 9)), max_size=12))
def test_the_better_comes_first_and_of_equals_the_simpler_and_what_is_unknown_last(pairs):
    places = rank([value for value, _ in pairs], [size for _, size in pairs])
    assert sorted(places) == list(range(len(pairs)))
    for first, second in pairwise(pairs[place] for place in places):
        assert np.isnan(second[0]) or first[0] >= second[0]
        assert first[0] != second[0] or first[1] <= second[1]


def test_of_equals_the_first_comes_first_where_complexity_does_not_count():
    assert rank([-1.0, -np.inf, -1.0, -np.inf]) == [0, 2, 1, 3]


@pytest.mark.parametrize(
    ("rows", "winner"),
    [
        ([(-10.0, 0.0, 9), (-10.1, 0.0, 3)], 0),
        # However uncertain: the score is what it is.
        ([(-10.0, 0.6, 9), (-10.1, 0.8, 3)], 0),
        ([(-10.0, 0.0, 9), (-10.0, 0.0, 3)], 1),
        ([(-np.inf, 0.0, 1), (-10.0, 0.0, 9)], 1),
        # What was not sampled at all is not known.
        ([(-1.0, UNKNOWN_SE, 3), (-10.0, 0.1, 9)], 1),
        ([(-11.0, UNKNOWN_SE, 3), (-10.0, UNKNOWN_SE, 9)], 1),
        ([(-np.inf, 0.0, 4), (-np.inf, 0.0, 3)], 1),
    ],
)
def test_the_winner_has_the_highest_score_and_of_equals_is_the_simplest(rows, winner):
    assert find_winner(*zip(*rows, strict=True)) == winner


def test_probabilities_are_normalised_over_all_that_was_screened():
    probabilities = model_probabilities([-700.0, -701.0], ["a", "b"], log_rest=-699.0)
    expected = np.exp([0.0, -1.0]) / np.sum(np.exp([0.0, -1.0, 1.0]))
    np.testing.assert_allclose(probabilities, expected)


def test_probabilities_are_the_normalised_evidence():
    probabilities = model_probabilities([-700.0, -701.0, -np.inf, np.nan], list("abcd"))
    np.testing.assert_allclose(probabilities, [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1)), 0, 0])


def test_without_evidence_probabilities_are_zero_and_without_weighing_unknown():
    assert model_probabilities([-np.inf, -np.inf], ["a", "b"]).tolist() == [0.0, 0.0]
    assert np.isnan(model_probabilities([np.nan, np.nan], ["a", "b"])).all()


@given(st.lists(st.tuples(values, st.integers(1, 9)), max_size=12))
def test_nothing_beats_the_front_and_the_front_beats_everything_else(pairs):
    front = pareto_front([score for score, _ in pairs], [size for _, size in pairs])
    chosen = [pairs[place] for place in front]
    assert chosen == sorted(chosen, key=lambda pair: pair[1])
    assert all(a < b for (a, _), (b, _) in pairwise(chosen))
    for score, size in pairs:
        if np.isfinite(score):
            assert any(best >= score and least <= size for best, least in chosen)
