import numpy as np
import pytest
from scipy.optimize import least_squares

from pmsr.equation.expression import Equation
from pmsr.equation.kernels import affine_normal, run_compiled
from pmsr.equation.program import Program, evaluate, evaluate_jacobian


def descended(text, starts, X, y, *, affine=(), n_steps=60):
    program = Equation(text, ["x"]).program
    starts = np.asarray(starts, dtype=float)
    theta, errors = np.empty_like(starts), np.empty(len(starts))
    run_compiled(
        "_descend",
        program.nodes,
        program.literals,
        starts,
        X,
        y,
        1.0,
        np.array(affine, dtype=np.int64),
        n_steps,
        1e-14,
        theta,
        errors,
    )
    return program, theta, errors


@pytest.mark.parametrize("affine", [(), (0,)])
def test_descents_end_where_scipys_do(affine):
    rng = np.random.default_rng(1)
    X = np.linspace(0.0, 2.0, 15)[:, None]
    y = 3.0 * np.exp(-0.8 * X[:, 0]) + 0.1 * rng.normal(size=15)
    program, theta, errors = descended(
        "c0*exp(c1*x)", [[1.0, -0.1], [2.0, -2.0]], X, y, affine=affine
    )
    theirs = least_squares(
        lambda t: evaluate(program, t[None, :], X)[0] - y, [1.0, -0.1], xtol=1e-14, ftol=1e-14
    )
    np.testing.assert_allclose(errors, 2.0 * theirs.cost, rtol=1e-10)
    # A minimum is known to the square root of the precision of its value.
    np.testing.assert_allclose(theta, [theirs.x, theirs.x], rtol=1e-5)


def test_a_step_never_makes_it_worse():
    rng = np.random.default_rng(2)
    X = np.linspace(0.1, 3.0, 12)[:, None]
    y = np.sin(2.0 * X[:, 0])
    starts = rng.normal(size=(20, 2)) * 3.0
    program = Equation("c0*sin(c1*x)", ["x"]).program
    before = np.sum((evaluate(program, starts, X) - y) ** 2, axis=1)
    for n_steps in (0, 1, 5):
        _, _, errors = descended("c0*sin(c1*x)", starts, X, y, n_steps=n_steps)
        assert np.all(errors <= before * (1.0 + 1e-14))
        before = errors


def test_starts_that_are_not_finite_have_infinite_error():
    X = np.linspace(1.0, 2.0, 5)[:, None]
    _, _, errors = descended("sqrt(c0*x)", [[-1.0], [1.0]], X, np.ones(5))
    assert np.isinf(errors[0]) and np.isfinite(errors[1])


def test_the_affine_solution_is_that_of_least_squares():
    rng = np.random.default_rng(0)
    design, residual = rng.normal(size=(5, 3, 10)), rng.normal(size=(5, 10))
    steps, squares, log_dets = affine_normal(design, residual, np.zeros((5, 3)))
    for A, r, step, square, log_det in zip(design, residual, steps, squares, log_dets, strict=True):
        expected = np.linalg.lstsq(A.T, r, rcond=None)[0]
        np.testing.assert_allclose(step, expected, rtol=1e-8)
        assert square == pytest.approx(np.sum((A.T @ expected) ** 2), rel=1e-8)
        assert log_det == pytest.approx(0.5 * np.linalg.slogdet(A @ A.T)[1], rel=1e-8)


def test_the_affine_noise_has_the_conditional_covariance():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(2, 10))
    n = 20_000
    steps, _, _ = affine_normal(
        np.repeat(A[None], n, axis=0), np.zeros((n, 10)), rng.standard_normal((n, 2))
    )
    expected = np.linalg.inv(A @ A.T)
    # A sample variance has relative standard error sqrt(2/n) = 0.01.
    np.testing.assert_allclose(np.cov(steps.T), expected, atol=4 * 0.01 * expected.max())


def test_zero_to_a_negative_power_is_infinite_and_ends_nothing():
    # x**-2*c0, as folding and the enumeration write it; the text would become 1/x**2.
    program = Program.of([(0, 0, 0), (3, 0, -2), (1, 0, 0), (6, 2, 1)], [], 1)
    X = np.array([[0.0], [0.5], [2.0]])
    values, jacobian = evaluate_jacobian(program, np.array([[3.0]]), X)
    np.testing.assert_array_equal(values, [[np.inf, 12.0, 0.75]])
    np.testing.assert_array_equal(jacobian, [[[np.inf, 4.0, 0.25]]])
