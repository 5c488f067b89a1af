"""From PyMC's distributions to priors."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pmsr
from pmsr.evidence.distributions import read_prior, read_priors


@pytest.mark.parametrize(
    ("prior", "same"),
    [
        (lambda: pm.HalfNormal.dist(2.0), stats.halfnorm(0, 2)),
        (lambda: pm.Gamma.dist(0.3, 3.0), stats.gamma(0.3, scale=1 / 3)),
        (lambda: pm.Beta.dist(2.0, 5.0), stats.beta(2, 5)),
        (lambda: pm.Cauchy.dist(1.0, 2.0), stats.cauchy(1, 2)),
        (lambda: pm.TruncatedNormal.dist(0.0, 1.0, lower=0.5), stats.truncnorm(0.5, np.inf)),
    ],
    ids=["half-normal", "gamma", "beta", "cauchy", "truncated"],
)
def test_a_prior_is_a_standard_normal_in_its_own_coordinate(prior, same):
    found = read_prior("c", prior())
    z = np.linspace(-4.0, 4.0, 101)
    theta = found.from_z(z)
    exact = np.where(z < 0.0, stats.norm.ppf(same.cdf(theta)), -stats.norm.ppf(same.sf(theta)))
    assert np.allclose(exact, z, atol=3e-3)
    assert np.allclose(found.to_z(theta)[0], z, atol=1e-6)
    assert np.allclose(found.log_density(theta), same.logpdf(theta), atol=1e-6)


@pytest.mark.parametrize(
    ("prior", "match"),
    [
        (lambda: pm.Poisson.dist(3), "is discrete"),
        (lambda: pm.Flat.dist(), "no proper prior"),
        (lambda: pm.Normal.dist(0, 1, shape=2), "must be of one number"),
        (lambda: pm.Normal.dist(pm.Normal.dist(0, 1), 1), "itself random"),
        (lambda: pm.HalfNormal, r"pm\.HalfNormal\.dist"),
        (lambda: 3.0, "no distribution"),
        (lambda: (1.0, 0.0), "must be positive"),
        (lambda: (1.0, -1.0), "must be positive"),
        (lambda: (1.0, np.nan), "finite value"),
        (lambda: (1.0, 1e-20), "as exact"),
    ],
)
def test_what_is_no_proper_prior_of_one_number_is_refused_in_words(prior, match):
    with pytest.raises(ValueError, match=match):
        read_prior("c1", prior())


def test_priors_of_unknown_names_and_of_sigma_are_refused():
    x, y = [1.0, 2.0, 3.0, 4.0], [1.1, 1.9, 3.2, 3.9]
    with pytest.raises(ValueError, match="no parameter 'c7'"):
        pmsr.compute_evidence("c0*x0", x, y, priors={"c7": (1.0, 0.1)})
    with pytest.raises(ValueError, match="sigma_max"):
        read_priors({"sigma": (1.0, 0.1)})
    with pytest.raises(ValueError, match="dictionary"):
        read_priors([("c1", (1.0, 0.1))])
