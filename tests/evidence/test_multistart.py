import numpy as np
import pytest

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.evidence.multistart import FitError, fit
from pmsr.evidence.problem import Problem
from pmsr.settings import Settings


def fitted(text, X, y, *, seed=0, variables=None, n_multistarts=8):
    data = make_data(X, y)
    program = Equation(text, variables or data.names).program
    return fit(
        program, Problem.of(data, Settings()), n_multistarts, rng=np.random.default_rng(seed)
    )


@pytest.mark.parametrize("seed", range(5))
def test_galileos_laws_have_the_papers_least_squares_values(seed):
    shelf = fitted("k0*sqrt(H)", *load_galileo("shelf"), seed=seed)
    np.testing.assert_allclose(shelf.theta, [47.09], atol=0.005)
    no_shelf = fitted("k1*D**2/(1 + k2*D)", *load_galileo("no_shelf"), seed=seed)
    np.testing.assert_allclose(no_shelf.theta, [1.099e-3, -1.121e-3], atol=5e-7)


@pytest.mark.parametrize("unit", [1e-19, 1e-8, 1.0, 1e8])
@pytest.mark.parametrize("text", ["c0*exp(c1*x0)", "c0*x0**2/(1 + c1*x0)", "c0*sin(c1*x0) + c2"])
def test_parameters_of_any_size_are_found(text, unit):
    # The same law with x in another unit: c1 scales by its inverse and must be found as well.
    rng = np.random.default_rng(3)
    x = rng.uniform(0.5, 4.0, size=(30, 1))
    truth = {"c0": 2.0, "c1": -0.6, "c2": 1.0}
    if "sin" in text:
        truth["c1"] = 1.3
    equation = Equation(text, ["x0"])
    theta = np.array([truth[name] for name in equation.parameters])
    y = evaluate(equation.program, theta[None, :], x)[0]
    y += 0.01 * np.std(y) * rng.normal(size=30)
    here, there = fitted(text, x, y), fitted(text, x * unit, y)
    assert there.minima[0].sse == pytest.approx(here.minima[0].sse, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("text", ["c0**2*x0", "c0*sin(c1*x0)", "abs(c0)*x0"])
def test_mirror_minima_are_both_found(text, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 4.0, size=(20, 1))
    y = (2 * np.sin(1.3 * x[:, 0]) if "sin" in text else 2 * x[:, 0]) + 0.1 * rng.normal(size=20)
    minima = fitted(text, x, y, seed=seed).minima
    best = [m for m in minima if m.sse < 1.001 * minima[0].sse]
    assert len(best) == 2
    np.testing.assert_allclose(best[0].theta, -best[1].theta, rtol=1e-4)


def test_the_papers_bimodal_equation_has_two_minima():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1.5 * np.pi, size=(20, 1))
    y = 2 * np.sin(x[:, 0]) + 3 + 0.3 * rng.normal(size=20)
    text = "t1 + (t2 + t3*x0)*(x0 + x0*(t2 + t3*x0))"
    minima = fitted(text, x, y).minima
    best = [m.theta for m in minima if m.sse < 1.001 * minima[0].sse]
    assert len(best) == 2
    # x g (1 + g) with g = t2 + t3 x is unchanged by g -> -1 - g.
    np.testing.assert_allclose(best[0] + best[1], [2 * best[0][0], -1.0, 0.0], atol=1e-3)


@pytest.mark.parametrize(
    ("text", "n_free"),
    [("c0*c1*x0", 1), ("c0 + c1*(c2 - x0)", 2), ("c0*(c1 + c2*x0)", 2), ("c0 + c1 + x0", 1)],
)
def test_directions_that_change_nothing_are_frozen(text, n_free):
    rng = np.random.default_rng(1)
    x = rng.uniform(1, 3, size=(12, 1))
    result = fitted(text, x, 1 + 2 * x[:, 0] + 0.1 * rng.normal(size=12))
    assert len(result.free) == n_free == result.program.n_parameters
    # What remains is affine: the frozen slice is not curved.
    assert len(result.program.affine) == n_free
    full = result.full_theta(np.array([m.theta for m in result.minima]))
    np.testing.assert_array_equal(full[0], result.theta)


def test_fewer_points_than_parameters_are_fitted_with_bfgs():
    rng = np.random.default_rng(0)
    x = np.linspace(1, 2, 3)[:, None]
    result = fitted("c0 + c1*x0 + c2*x0**2 + c3*sin(x0)", x, rng.normal(size=3))
    assert len(result.free) == 3
    assert result.minima[0].sse < 1e-8


def test_an_equation_that_is_never_finite_is_refused():
    with pytest.raises(FitError, match="never finite"):
        fitted("sqrt(-1 - (c0*x0)**2)", np.ones((4, 1)), [1.0, 2.0, 3.0, 5.0])


def test_an_equation_whose_parameters_do_nothing_is_refused():
    with pytest.raises(FitError, match="no identifiable direction"):
        fitted("x0 + c0*(x0 - abs(x0))", np.array([1.0, 2.0, 3.0]), [1.0, 2.0, 4.0])
