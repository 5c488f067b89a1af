import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, shapiro

from pmsr.data import load_galileo, make_data
from pmsr.evidence.evidence import compute_evidence
from pmsr.evidence.noise import NOISES
from pmsr.result.doubts import (
    doubt_beyond,
    doubt_chance,
    doubt_columns,
    doubt_evidence,
    doubt_face,
    doubt_failures,
    doubt_interpolation,
    doubt_noise,
    doubt_number_of_points,
    doubt_prior,
    doubt_range,
    doubt_sampling,
    doubt_settled,
    doubt_unweighed,
    doubt_winner,
)

NORMAL = norm.ppf((np.arange(40) + 0.5) / 40)
GOOD = compute_evidence("c0*sqrt(H)", *load_galileo("shelf"), random_seed=1)


@pytest.mark.parametrize(
    ("n_points", "n_parameters", "doubted"),
    [(4, 1, False), (3, 1, True), (6, 2, False), (2, 0, True), (3, 0, True), (4, 0, False)],
)
def test_two_observations_for_each_unknown_are_enough(n_points, n_parameters, doubted):
    assert bool(doubt_number_of_points(n_points, n_parameters)) == doubted


def test_too_few_points_are_counted():
    [doubt] = doubt_number_of_points(7, 3)
    assert doubt.startswith("There are 7 observations for 3 parameters and the noise level")


def test_a_law_that_interpolates_is_doubted_only_if_it_must():
    y = np.array([1.0, 2.0, 4.0])
    rounding = 1e-15 * y
    for n_parameters in (3, 4):
        [doubt] = doubt_interpolation(rounding, y, n_parameters)
        assert "as there are observations (3) or more, and passes through all of them" in doubt
    # Fewer parameters that pass through all points have been tested; residuals test the others.
    assert doubt_interpolation(rounding, y, 2) == doubt_interpolation(0.1 * y, y, 3) == []


def test_a_lead_that_the_best_of_many_has_by_chance_is_doubted():
    assert doubt_chance("sin(x)", np.log(5506) + 1e-9, 5506) == []
    [doubt] = doubt_chance("sin(x)", 8.3, 5506)
    assert "lead a constant by about ln(5,506) = 8.6 nats; 'sin(x)' leads by 8.3" in doubt
    assert doubt_chance("sin(x)", np.nan, 5506) == []


@pytest.mark.parametrize("n_tried", [0, 1, 100])
def test_a_constant_that_is_ahead_is_named(n_tried):
    [doubt] = doubt_chance("c0*x", -2.04, n_tried)
    assert doubt.startswith("A constant is ahead of 'c0*x' by 2.0 nats")
    assert bool(doubt_chance("c0*x", 1.0, n_tried)) == (n_tried == 100)


def test_columns_that_do_not_vary_are_named():
    assert doubt_columns({}, ["x"]) == []
    used, left_out = doubt_columns({"T": 293.0, "p": 1e5, "z": 0.0}, ["x", "p"])
    assert used.startswith("The equation depends on 'p', which is 100000 in all rows")
    assert "because they are the same in all rows: 'T' (293), 'z' (0). The" in left_out
    [doubt] = doubt_columns({f"x{k}": 1.0 for k in range(9)}, [])
    assert "'x4' (1) and 4 more" in doubt and "x5" not in doubt


def test_a_winner_must_be_three_times_as_probable_as_the_next():
    assert doubt_winner("b", (0.61, 1), {"a": (0.3, 1), "c": (0.09, 1)})
    assert not doubt_winner("b", (0.61, 1), {"a": (0.2, 1), "c": (0.19, 1)})
    [doubt] = doubt_winner("c", (0.1, 2), {"a": (0.2, 1), "b": (0.29, 7)})
    assert doubt.startswith("The data do not decide: ")
    [doubt] = doubt_winner("c", (0.1, 2), {"a": (0.3, 1), "b": (0.6, 7)})
    assert doubt.startswith("The data speak for another law: ")
    assert "'c' (with 1 law like it) has probability 10.0%, 'b' (with 6 laws like it) has" in doubt


@pytest.mark.parametrize(
    ("own", "rivals"), [(np.nan, {"b": (np.nan, 1)}), (1.0, {"b": (0.0, 1)}), (1.0, {})]
)
def test_without_a_rival_there_is_nothing_to_decide(own, rivals):
    assert doubt_winner("a", (own, 1), rivals) == []


def test_a_law_is_doubted_if_one_like_it_is_more_probable():
    assert doubt_face("a", 0.3, "a", 0.3) == doubt_face("a", np.nan, "b", np.nan) == []
    assert doubt_face("a", 0.11, "b", 0.3) == []
    [doubt] = doubt_face("a", 0.09, "b", 0.3)
    assert doubt.startswith("The data cannot tell 'a' from 'b', which is more probable (30.0%")


def test_a_lead_smaller_than_the_prior_sensitivity_is_doubted():
    leads = {"a": 5.0, "b": 2.0, "better": -1.0, "failed": np.inf, "unknown": np.nan}
    assert doubt_prior("c", 1.9, leads) == []
    for sensitivity in (2.1, -2.1):
        [doubt] = doubt_prior("c", sensitivity, leads)
        assert "the log q of 'c' by 2.1 nats, more than it is ahead of 'b' (2)" in doubt
    assert doubt_prior("c", 9.0, {"better": -1.0}) == doubt_prior("c", 9.0, {}) == []


SAMPLED = pd.DataFrame({"ess": [2000.0, np.nan], "r_hat": [1.0, np.nan]}, index=["c0", "c1"])


def test_a_posterior_that_was_sampled_too_little_is_doubted():
    assert doubt_sampling(SAMPLED) == []
    [doubt] = doubt_sampling(SAMPLED.assign(ess=50.0))
    assert "draws of c0, c1 (effective sample size 50, wanted 400)" in doubt
    [doubt] = doubt_sampling(SAMPLED.assign(r_hat=[1.2, 1.0]))
    assert "chains disagree about c0 (R-hat 1.20)" in doubt


def test_a_search_that_mostly_fails_is_doubted():
    [doubt] = doubt_failures(80, 100)
    assert doubt.startswith("80% of the equations")
    assert doubt_failures(None, 100) == doubt_failures(50, 100) == doubt_failures(3, None) == []


def test_normal_residuals_pass_and_outliers_do_not():
    assert doubt_noise(NORMAL, NORMAL) == []
    outlier = np.append(NORMAL, 9.0)
    [doubt] = doubt_noise(outlier, outlier)
    assert f"p = {shapiro(outlier).pvalue:.2g}" in doubt


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_unit_of_the_residuals_does_not_matter(scale):
    assert doubt_noise(NORMAL * scale, NORMAL * scale) == []
    assert doubt_noise(np.exp(NORMAL) * scale, NORMAL * scale)


def test_what_the_residuals_are_not_is_the_noise_that_was_assumed():
    outlier = np.append(NORMAL, 12.0)
    assert "The residuals do not look normal" in doubt_noise(outlier, outlier)[0]
    [doubt] = doubt_noise(outlier, outlier, NOISES["poisson"])
    assert doubt.startswith("In units of Poisson's counts, which the intervals assume, the resid")


@pytest.mark.parametrize("mean", [0.5, 3.0, 30.0])
def test_few_counts_are_no_reason_to_doubt_that_they_are_counts(mean):
    rng = np.random.default_rng(1)
    noise, n_datasets = NOISES["poisson"], 100
    doubted = 0
    for counts in rng.poisson(mean, (n_datasets, 50)).astype(float):
        residuals = noise.residuals(counts, np.full((1, 50), mean), 1.0, {})[0]
        doubted += len(doubt_noise(residuals, counts))
    # One in twenty by chance; five standard deviations of a binomial distribution more.
    assert doubted <= 5 + 5 * np.sqrt(100 * 0.05 * 0.95)


def test_rounding_errors_and_two_points_are_not_tested():
    assert doubt_noise(1e-16 * np.exp(NORMAL), NORMAL) == []
    assert doubt_noise(np.array([1.0, 2.0]), np.array([1.0, 2.0])) == []
    assert doubt_noise(np.full(9, np.nan), np.ones(9)) == []


def test_many_residuals_are_thinned_out():
    assert doubt_noise(np.exp(np.random.default_rng(0).standard_normal(20_000)), np.ones(20_000))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"log_q": np.nan}, None),
        ({"log_q_se": 0.6}, "its standard error is 0.60 nats"),
        ({"pareto_k": 0.9}, "its Pareto k is 0.90, above 0.7"),
        ({"log_q_se": 0.6, "pareto_k": 0.9}, "nats and its Pareto k"),
        ({"failure": "singular covariance"}, "could not be weighed: singular covariance"),
    ],
)
def test_unreliable_evidence_is_named(change, words):
    doubts = doubt_evidence("c0*sqrt(H)", dataclasses.replace(GOOD, **change))
    assert doubts == [] if words is None else words in doubts[0]


def test_only_variables_that_count_have_a_range():
    data = make_data([[1.0, 10.0], [2.0, 20.0]], [3.0, 4.0], names=["a", "b"])
    points = np.array([[1.5, 99.0], [5.0, 15.0], [-7.0, 15.0]])
    [doubt] = doubt_range(data, points, ["a"])
    assert doubt.startswith("2 of 3 rows lie outside the data, for instance at a = -7 (the data go")
    assert doubt_range(data, points, ["a", "b"])[0].startswith("3 of 3 rows")
    assert doubt_range(data, points, []) == []


def test_a_grid_over_the_data_is_no_extrapolation():
    X = np.random.default_rng(0).uniform(0.1, 0.7, size=9)
    data = make_data(X, X**2)
    assert doubt_range(data, np.linspace(X.min(), X.max(), 7)[:, None], ["x0"]) == []


def test_a_search_that_was_still_rising_says_how_to_go_on():
    assert doubt_settled(True) == []
    [doubt] = doubt_settled(False)
    assert "had not settled" in doubt and "pmsr resume" in doubt and "max_time" in doubt


def test_what_was_only_screened_is_doubted_as_a_rival_is():
    assert doubt_unweighed(0.2, 0.61) == doubt_unweighed(0.0, 0.0) == []
    assert doubt_unweighed(0.2, 0.59) and doubt_unweighed(np.nan, np.nan) == []


def beyond(function, low, high):
    x = np.linspace(low, high, 9)
    data = make_data(x, x)
    return doubt_beyond("law", data, ["x0"], lambda X: function(X[:, 0]))


@pytest.mark.parametrize(
    ("function", "low", "high", "where"),
    [
        (lambda x: np.exp(np.sqrt(np.log(x))), 1.0, 50.0, "x0 = 0.51, just beyond the data (1 to"),
        (lambda x: np.sqrt(5.05 - x), 1.0, 5.0, "x0 = 5.08, just beyond the data (1 to 5)"),
        # 10 % of the range and no more.
        (lambda x: np.sqrt(5.41 - x), 1.0, 5.0, None),
        # A positive variable stays positive, a negative one negative.
        (np.sqrt, 0.1, 5.0, None),
        (np.log, 0.0, 5.0, None),
        (lambda x: np.sqrt(-x), -5.0, -0.1, None),
        (lambda x: np.sqrt(x + 5.1), -5.0, 5.0, "x0 = -5.2, just beyond"),
    ],
)
def test_a_law_is_doubted_if_it_is_not_defined_just_beyond_the_data(function, low, high, where):
    doubts = beyond(function, low, high)
    assert doubts == [] if where is None else where in doubts[0]


def test_each_variable_is_led_beyond_the_data_alone():
    X = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 15.0]])
    data = make_data(X, X[:, 0], names=["a", "b"])
    [doubt] = doubt_beyond("law", data, ["a", "b"], lambda X: np.sqrt(20.5 - X[:, 1]))
    assert "b = 20.6" in doubt
    assert doubt_beyond("law", data, ["a"], lambda X: np.sqrt(20.5 - X[:, 1])) == []
