import tracemalloc

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, norm

from pmsr.evidence.scale import ExtraScale, FreeScale, KnownScale

ERRORS = np.array([0.1, 0.3, 0.2, 0.5, 0.4])
RESIDUALS = np.array([0.2, -0.5, 0.1, 0.9, -0.3])
EXTRA = ExtraScale((1e-3, 2.0), 0, ERRORS, RESIDUALS, np.ones(5), 0.3)


def density(sigma, phi):
    log_l = norm.logpdf(RESIDUALS, 0.0, np.hypot(ERRORS, sigma)).sum()
    return np.exp(phi * (log_l + 2.5 * np.log(2.0 * np.pi)))


@pytest.mark.parametrize("phi", [0.4, 1.0])
def test_the_integral_over_extra_noise_is_that_of_the_likelihood(phi):
    expected = np.log(quad(density, 1e-3, 2.0, args=(phi,))[0])
    assert EXTRA.log_integral(0, 5, 0.0, phi) == pytest.approx(expected, abs=1e-6)


def test_extra_noise_is_drawn_from_its_posterior():
    strata = (np.arange(2000) + 0.5) / 2000
    total = quad(density, 1e-3, 2.0, args=(1.0,))[0]
    cdf = np.vectorize(lambda s: quad(density, 1e-3, s, args=(1.0,))[0] / total)
    assert kstest(EXTRA.draw(5, 0.0, strata)[::10], cdf).pvalue > 0.5


def test_extra_noise_of_many_rows_is_integrated_where_it_is_in_little_memory():
    rng = np.random.default_rng(1)
    n = 20_000
    errors = rng.uniform(0.1, 0.4, n)
    residuals = np.hypot(errors, 0.2) * rng.standard_normal(n)
    scale = ExtraScale((1e-6, 2.0), 0, errors, residuals, np.ones(n), 0.2)

    def log_density(u):
        variance = errors**2 + np.exp(2.0 * u)
        return -0.5 * np.sum(np.log(variance) + residuals**2 / variance) + u  # of log sigma

    places = np.linspace(np.log(0.15), np.log(0.25), 2001)  # some forty standard deviations
    values = np.array([log_density(u) for u in places])
    expected = values.max() + np.log(np.trapezoid(np.exp(values - values.max()), places))
    tracemalloc.start()
    assert scale.log_integral(0, n, 0.0, 1.0) == pytest.approx(expected, abs=1e-6)
    # An even grid over all of the range would be 20,001 times as large as the data: 3 GB.
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def test_the_integral_of_a_law_that_is_infinitely_far_is_no_number():
    far = ExtraScale((1e-3, 2.0), 0, ERRORS, np.full(5, np.inf), np.ones(5), 0.3)
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(far.log_integral(0, 5, 0.0, 1.0))


def test_a_proposal_for_extra_noise_is_normalised():
    law = EXTRA.law(1, 5, 0.0, 1.0)
    u = np.linspace(law.edges[0], law.edges[-1], 100_001)
    assert np.trapezoid(np.exp(law.log_pdf(u)), u) == pytest.approx(1.0, abs=1e-3)


def test_the_size_of_residuals_is_sigma_or_one():
    u = np.log([0.5, 2.0])
    np.testing.assert_array_equal(FreeScale((0.1, 3.0), 0).log_size(u), u)
    np.testing.assert_array_equal(KnownScale().log_size(np.zeros(2)), np.zeros(2))
    assert EXTRA.log_size(np.log([0.3]))[0] == pytest.approx(0.0)
