from dataclasses import replace

import numpy as np
import pytest

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.atlas import Atlas
from pmsr.evidence.evidence import compute_evidence, make_target
from pmsr.evidence.noise import ScaleLaw
from pmsr.evidence.problem import Problem
from pmsr.settings import FINALIST, Settings

INVARIANT = Settings(parameter_prior="invariant")
FINAL = replace(FINALIST, parameter_prior="invariant")
NO_SHELF = load_galileo("no_shelf")
X = np.linspace(0.2, 5.0, 20)
ENZYME = make_data(X, 3.0 * X / (1.0 + X) + 0.1 * np.random.default_rng(5).standard_normal(20))


def target(text, data=ENZYME, settings=INVARIANT):
    law = Equation(text, data.names)
    problem = Problem.of(data, settings)
    return make_target(law.program, problem, 8, rng=np.random.default_rng(0))


@pytest.mark.parametrize(("a", "log_b"), [(-3.5, 1.0), (-40.0, -6.0), (0.7, 0.0)])
def test_the_law_of_sigma_is_a_density_and_is_what_is_drawn(a, log_b):
    bounds = np.log([1e-3, 2.0])
    law = ScaleLaw(a, (-20.0, 5.0), bounds)
    u = np.linspace(*bounds, 200_001)
    density = np.exp(law.log_pdf(u, np.full(len(u), log_b)))
    assert np.trapezoid(density, u) == pytest.approx(1.0, abs=1e-3)
    exact = a * u - np.exp(log_b - 2.0 * u)
    exact = np.exp(exact - exact.max())
    exact /= np.trapezoid(exact, u)
    assert np.trapezoid(np.abs(density - exact), u) < 0.01
    drawn = law.draw(np.full(20_000, log_b), np.random.default_rng(1))
    sd = np.sqrt(np.trapezoid(density * u**2, u) - np.trapezoid(density * u, u) ** 2)
    mean = np.trapezoid(density * u, u)
    assert abs(drawn.mean() - mean) < 4.0 * sd / np.sqrt(len(drawn))


def test_the_density_of_an_atlas_is_that_of_its_draws():
    # Importance weights of one atlas by another have a mean of one.
    wide = Atlas.around(target("c0*x0/(c1 + x0)"), (0.3, 1.0))
    draws = wide.draw(20_000, rng=np.random.default_rng(0))
    other = wide.at(1.0)
    ratio = np.exp(other.log_pdf(draws.theta, draws.log_sigma, draws.look) - draws.log_density)
    se = ratio.std() / np.sqrt(len(ratio))
    assert se < 0.05 and abs(ratio.mean() - 1.0) < 4.0 * se


SPELLINGS = [
    ("k1*D**2/(1 + k2*D)", "D**2/(c0 + c1*D)", "D/(c0/D + c1)"),
    ("c0*D**c1", "exp(c0)*D**c1", "c0*exp(c1*log(D))"),
]


@pytest.mark.parametrize("spellings", SPELLINGS, ids=lambda texts: texts[0])
def test_log_q_belongs_to_the_law_and_not_to_its_spelling(spellings):
    found = [compute_evidence(s, *NO_SHELF, settings=FINAL, random_seed=1) for s in spellings]
    assert all(one.log_q_se < 0.05 for one in found)
    for one in found[1:]:
        se = np.hypot(one.log_q_se, found[0].log_q_se)
        assert abs(one.log_q - found[0].log_q) < 4.0 * se


def test_log_q_does_not_depend_on_the_unit_of_a_variable():
    found = [
        compute_evidence("c0*D**c1", NO_SHELF[0] * s, NO_SHELF[1], settings=FINAL, random_seed=1)
        for s in (1.0, 1e-6, 1e6)
    ]
    for one in found[1:]:
        se = np.hypot(one.log_q_se, found[0].log_q_se)
        assert abs(one.log_q - found[0].log_q) < 4.0 * se


def test_a_law_that_is_linear_has_the_flat_priors_log_q():
    for text in ("c0 + c1*D", "c0*sqrt(D)"):
        flat, invariant = (
            compute_evidence(text, *NO_SHELF, settings=s, random_seed=1)
            for s in (replace(FINAL, parameter_prior="flat"), FINAL)
        )
        assert flat.log_q == invariant.log_q
