import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from pmsr.evidence.mixture import (
    NARROW,
    NORMAL,
    STUDENT,
    STUDENT_NU,
    log_probability,
    mixture_quantile,
    poisson_quantile,
)


def test_quantiles_of_student_and_poisson_are_those_of_scipy():
    mu, sigma = np.array([[1.0, -2.0]]), np.array([0.7])
    for p in (0.025, 0.5, 0.9):
        found = mixture_quantile(p, mu, sigma, None, STUDENT)
        np.testing.assert_allclose(found, stats.t.ppf(p, 4, mu[0], 0.7), rtol=1e-8)
        np.testing.assert_array_equal(
            poisson_quantile(p, np.array([[0.3, 7.0, 4000.0]])),
            stats.poisson.ppf(p, [0.3, 7.0, 4000.0]),
        )


def test_a_standard_distribution_is_scipys():
    z = np.linspace(-6.0, 6.0, 25)
    for standard, exact in ((NORMAL, stats.norm()), (STUDENT, stats.t(4))):
        np.testing.assert_allclose(standard.cdf(z), exact.cdf(z), rtol=1e-10)
        np.testing.assert_allclose(standard.pdf(z), exact.pdf(z), rtol=1e-10)
        np.testing.assert_allclose(standard.quantile(exact.cdf(z)), z, atol=1e-6)


def test_sizes_may_differ_from_point_to_point():
    mu = np.array([[1.0, 10.0], [1.1, 11.0]])
    found = mixture_quantile(0.9, mu, 0.1 * mu)
    assert abs(found[1] / found[0] - 10.0) < 1e-9


@pytest.mark.parametrize(
    ("standard", "exact"), [(NORMAL, stats.norm), (STUDENT, stats.t(STUDENT_NU))]
)
def test_probabilities_between_two_values_are_those_of_scipy(standard, exact):
    low = np.array([-3.0, -0.2, 0.0, 1.5, -8.0, 6.0])
    for width in (2e-3, 0.1, 3.0):
        expected = np.log(
            [quad(exact.pdf, one, one + width, epsabs=0.0, epsrel=1e-12)[0] for one in low]
        )
        np.testing.assert_allclose(log_probability(low, low + width, standard), expected, atol=1e-9)


@pytest.mark.parametrize("standard", [NORMAL, STUDENT])
def test_narrow_and_wide_intervals_meet(standard):
    # The relative second derivative of either density, times width**2/24.
    for z in (-20.0, -1.0, 0.0, 3.0):
        below, above = (
            log_probability(np.array(z), np.array(z + NARROW * share), standard) - np.log(share)
            for share in (1.0 - 1e-9, 1.0 + 1e-9)
        )
        assert abs(below - above) < 1.25 * (1.0 + z * z) * NARROW**2 / 24 + 1e-8


def test_the_log_of_students_tail_is_exact_far_out():
    z = np.array([-1e6, -1e3, -10.0, -1.0, 0.0, 2.0])
    np.testing.assert_allclose(STUDENT.log_cdf(z), stats.t(STUDENT_NU).logcdf(z), rtol=1e-9)
