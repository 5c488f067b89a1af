import dataclasses
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

import pmsr
from pmsr.settings import FINALIST, QUICK, Search, Settings, check_settings


def test_defaults_are_the_papers_choice_with_a_bounded_sigma():
    settings = Settings()
    assert settings.gamma == "paper"
    assert settings.sigma_prior == "flat"
    assert (settings.sigma_min, settings.sigma_max) == (1e-6, 2.0)
    assert (settings.n_draws, settings.n_particles) == (2000, 400)


def test_finalist_settings_differ_only_in_effort():
    effort = {"n_draws": 16_000, "n_particles": 1000, "n_replicates": 4}
    assert dataclasses.replace(Settings(), **effort) == FINALIST


def test_settings_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().n_draws = 5


@pytest.mark.parametrize("gamma", [0, 1, -0.1, 2.0, math.nan, math.inf, True, None, [0.5], 1j])
def test_gamma_outside_the_unit_interval_is_refused(gamma):
    with pytest.raises(ValueError, match=r"gamma must be in \(0, 1\), got .*\"paper\""):
        Settings(gamma=gamma)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("gamma", "bic", "Unknown gamma 'bic'. Available: paper, ohagan"),
        ("sigma_prior", "jeffreys", "Unknown sigma_prior 'jeffreys'. Available: flat, log-flat"),
        ("noise", 3, "noise must be a name, got 3. Use "),
        ("sigma_max", 0.0, "sigma_max must be a positive number, got 0.0"),
        ("sigma_max", math.inf, "sigma_max must be a positive number, got inf"),
        ("sigma_min", math.nan, "sigma_min must be a positive number, got nan"),
        ("sigma_min", "tiny", "sigma_min must be a positive number, got 'tiny'"),
        ("sigma_min", 2.0, "sigma_min must be below sigma_max, got 2.0 and 2.0"),
        ("n_draws", 99, "n_draws must be an integer of at least 100, got 99"),
        ("n_particles", 400.0, "n_particles must be an integer of at least 100, got 400.0"),
        ("n_particles", 4001, "n_particles must be at most n_draws, got 4001 and 2000"),
        ("n_multistarts", 0, "n_multistarts must be an integer of at least 1, got 0"),
        ("n_replicates", True, "n_replicates must be an integer of at least 1, got True"),
        ("n_draws", 10**12, "of at least 100 and at most 10,000,000, got 1000000000000. The def"),
        ("n_replicates", 10**12, "at least 1 and at most 10,000, got"),
        ("n_multistarts", 10**5000, "at most 10,000, got an integer of 16610 bits"),
        ("sigma_max", 1e31, r"a positive number of at most 1e\+30, got 1e\+31"),
        ("sigma_max", 10**400, "a positive number, got an integer of 1329 bits"),
        ("gamma", 10**5000, r"gamma must be in \(0, 1\), got an integer of 16610 bits"),
    ],
    # Python itself refuses to write integers of thousands of digits.
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_wrong_value_is_refused_with_the_rule(field, value, message):
    with pytest.raises(ValueError, match=message):
        Settings(**{field: value})


def test_numpy_scalars_become_python_numbers():
    settings = Settings(gamma=np.float64(0.5), n_draws=np.int64(500), sigma_max=np.float32(3))
    assert settings == Settings(gamma=0.5, n_draws=500, sigma_max=3.0)
    assert [type(value) for value in (settings.gamma, settings.n_draws)] == [float, int]


def test_gamma_of_the_paper_is_one_over_root_n():
    assert Settings().resolve_gamma(n_points=16, n_parameters=3) == 0.25


def test_gamma_as_a_number_is_left_alone():
    assert Settings(gamma=0.3).resolve_gamma(n_points=5, n_parameters=9) == 0.3


def test_gamma_of_ohagan_is_the_minimal_training_sample_or_root_n():
    robust = Settings(gamma="ohagan")
    assert robust.resolve_gamma(n_points=10, n_parameters=3) == 5 / 10
    assert robust.resolve_gamma(n_points=100, n_parameters=3) == 10 / 100


@pytest.mark.parametrize(("prior", "n_training"), [("flat", 5), ("log-flat", 4)])
def test_minimal_training_sample_is_the_least_that_can_be_normalised(prior, n_training):
    # Three parameters and SSE = 2, integrated over u = log(sigma) from 0: beyond u = 20 there is
    # less than exp(-20) left if the integral exists, and one more unit per unit of u if not.
    settings = Settings(gamma="ohagan", sigma_prior=prior)
    assert settings.resolve_gamma(n_points=6, n_parameters=3) == n_training / 6

    def mass_up_to(m, upper):
        power = 3 - m - settings.sigma_power
        return quad(lambda u: math.exp((power + 1) * u - math.exp(-2 * u)), 0, upper)[0]

    assert mass_up_to(n_training, 40) == pytest.approx(mass_up_to(n_training, 20), rel=1e-6)
    assert mass_up_to(n_training - 1, 40) > mass_up_to(n_training - 1, 20) + 19


def test_gamma_of_ohagan_needs_more_points_than_the_training_sample():
    with pytest.raises(ValueError, match="minimal training sample, 5 for 3 parameters, got 5"):
        Settings(gamma="ohagan").resolve_gamma(n_points=5, n_parameters=3)


@pytest.mark.parametrize("gamma", ["paper", "ohagan", 0.5])
def test_one_observation_is_refused(gamma):
    with pytest.raises(ValueError, match="at least two observations, got 1"):
        Settings(gamma=gamma).resolve_gamma(n_points=1, n_parameters=0)


@given(n_points=st.integers(2, 10_000), n_parameters=st.integers(0, 50))
def test_gamma_always_lies_in_the_unit_interval(n_points, n_parameters):
    assert 0 < Settings().resolve_gamma(n_points, n_parameters) < 1
    if n_parameters + 2 < n_points:
        assert 0 < Settings(gamma="ohagan").resolve_gamma(n_points, n_parameters) < 1


def test_sigma_bounds_are_those_of_the_rows_as_often_as_they_were_observed():
    y, counts = np.array([1.0, 2.0, 5.0]), np.array([3.0, 1.0, 2.0])
    repeated = np.repeat(y, counts.astype(int))
    expected = Settings().sigma_bounds(repeated)
    assert Settings().sigma_bounds(y, counts) == pytest.approx(expected, rel=1e-12)


def test_sigma_bounds_are_multiples_of_the_standard_deviation():
    y = np.array([0.0, 1.0, 2.0, 5.0])
    lower, upper = Settings(sigma_min=1e-3, sigma_max=4.0).sigma_bounds(y)
    assert lower == pytest.approx(1e-3 * np.std(y), rel=1e-14)
    assert upper == pytest.approx(4.0 * np.std(y), rel=1e-14)


def test_least_sigma_is_not_below_rounding():
    assert Settings().sigma_bounds(np.array([1e9, 1e9 + 1]))[0] == pytest.approx(1e-3)


@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e30, 1e200])
def test_sigma_bounds_follow_the_unit_of_the_target(unit):
    y = np.array([1.0, 2.0, 4.0])
    expected = np.array(Settings().sigma_bounds(y)) * unit
    np.testing.assert_allclose(Settings().sigma_bounds(y * unit), expected, rtol=1e-14)


def test_sigma_bounds_that_cross_are_refused():
    with pytest.raises(ValueError, match="within the rounding errors of the target"):
        Settings(sigma_max=1e-3).sigma_bounds(np.array([1e9, 1e9 + 1]))


def test_sigma_power_is_the_exponent_of_the_prior():
    assert Settings().sigma_power == 0
    assert Settings(sigma_prior="log-flat").sigma_power == 1


@pytest.mark.parametrize(
    ("function", "equation"),
    [
        *((name, "c0*sqrt(H)") for name in ("compute_evidence", "fit_equation", "build_model")),
        ("sample_posterior", "c0*sqrt(H)"),
        *((name, ["c0*sqrt(H)"]) for name in ("compare", "weigh_equations")),
    ],
)
def test_single_options_are_arguments_and_misspelt_ones_get_the_name_that_was_meant(
    function, equation
):
    call, (X, y) = getattr(pmsr, function), pmsr.load_galileo("shelf")
    for wrong, meant in (
        ("weights", "Use sample_weight= for how often a row was observed, and y_err= for known"),
        ("yerr", "Did you mean y_err=?"),
        ("nois", "Did you mean noise=?"),
        ("callbck_", "Options: gamma"),
    ):
        with pytest.raises(TypeError, match=re.escape(f"no argument {wrong!r}. {meant}")):
            call(equation, X, y, **{wrong: 1})
    with pytest.raises(ValueError, match="Unknown noise 'white'"):
        call(equation, X, y, noise="white")


def test_an_option_changes_the_settings_that_are_given():
    X, y = pmsr.load_galileo("shelf")
    own = Settings(n_draws=500)
    both = pmsr.compute_evidence("c0*H", X, y, settings=own, noise="student", random_seed=1)
    alone = pmsr.compute_evidence(
        "c0*H", X, y, settings=dataclasses.replace(own, noise="student"), random_seed=1
    )
    assert both.log_q == alone.log_q
    normal = pmsr.compute_evidence("c0*H", X, y, settings=own, random_seed=1)
    assert abs(both.log_q - normal.log_q) > 3.0 * both.log_q_se


def test_a_dictionary_is_not_taken_for_settings():
    with pytest.raises(
        ValueError, match=r"got dict\. Use pmsr\.Settings\(gamma='paper', n_draws=9\)"
    ):
        check_settings({"gamma": "paper", "n_draws": 9}, Settings())
    assert check_settings(None, QUICK) is QUICK


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operators": "+"}, r"operators must be a sequence of names, got '\+'"),
        ({"operators": None}, "operators must be a sequence of names, got None"),
        ({"population_size": "many"}, "population_size must be even and at least 4, got 'many'"),
        ({"population_size": 2}, "population_size must be even and at least 4, got 2"),
        ({"generations": -1}, r"generations must be an integer .*, got -1. The default is 1000"),
        ({"generations": 1.5}, r"generations must be an integer .*, got 1.5"),
        ({"max_complexity": 2}, r"max_complexity must be an integer of at least 3, got 2"),
        ({"max_time": "1h"}, "max_time must be positive, got '1h'. It is in seconds"),
        ({"max_time": 0}, "max_time must be positive, got 0"),
        ({"p_mutation": "a"}, r"p_mutation must be in \[0, 1\], got 'a'"),
    ],
)
def test_options_of_a_search_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Search(**options)
