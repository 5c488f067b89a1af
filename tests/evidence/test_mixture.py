import numpy as np
from scipy import stats

from pmsr.evidence.mixture import NORMAL, STUDENT, mixture_quantile, poisson_quantile


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
