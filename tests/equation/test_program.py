import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from pytensor.gradient import verify_grad
from pytensor.graph.replace import vectorize_graph
from strategies import equation_texts

from pmsr.equation.expression import Equation
from pmsr.equation.operators import operator_code
from pmsr.equation.program import (
    BLOCK,
    EvaluateProgram,
    Program,
    ProgramJacobian,
    Tables,
    evaluate,
    evaluate_jacobian,
    evaluate_slopes,
    evaluate_slopes_of_many,
    parameter_free_values,
)

RNG_SEED = 20
CURVED = Equation("c0*exp(-c1*x) + c2*x**2/(1 + c1*y)", ["x", "y"])


def equations(variables, **options):
    return equation_texts(variables, **options).map(lambda text: Equation(text, variables))


def points(n=9, d=2):
    return np.random.default_rng(RNG_SEED).uniform(0.3, 2.0, size=(n, d))


def sympy_values(equation, theta, X):
    """The same by SymPy's own code, one parameter vector at a time."""
    names = [*equation.variables, *equation.parameters]
    symbols = [sympy.Symbol(name, real=True) for name in names]
    function = sympy.lambdify(symbols, equation.expression, "numpy")
    with np.errstate(all="ignore"):
        value = function(*X.T, *theta)
    return np.broadcast_to(np.asarray(value, dtype=float), len(X))


@given(equations(("x", "y")), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_value_equals_that_of_sympy(equation, seed):
    theta = np.random.default_rng(seed).uniform(0.2, 2.0, size=(3, len(equation.parameters)))
    X = points()
    ours = evaluate(equation.program, theta, X)
    theirs = np.array([sympy_values(equation, row, X) for row in theta])
    # Where the value hangs on the last digits of theta, as in sin(c0**tan(c1)), so may both.
    moved = evaluate(equation.program, theta * (1.0 + 1e-13), X)
    finite = np.isfinite(theirs) & np.isfinite(ours) & np.isfinite(moved)
    ours, theirs, moved = ours[finite], theirs[finite], moved[finite]
    scale = np.abs(theirs).max(initial=1.0)
    allowed = 1e-12 * scale + 1e-9 * np.abs(theirs) + 10.0 * np.abs(moved - ours)
    assert np.all(np.abs(ours - theirs) <= allowed)


@given(equations(("x", "y"), functions=("exp", "sin", "tanh"), powers=False), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_jacobian_equals_central_differences(equation, seed):
    theta = np.random.default_rng(seed).uniform(0.2, 1.0, size=(1, len(equation.parameters)))
    X = points()
    values, jacobian = evaluate_jacobian(equation.program, theta, X)
    np.testing.assert_array_equal(values, evaluate(equation.program, theta, X))
    step = 1e-6
    for k in range(theta.shape[1]):
        shift = np.zeros_like(theta)
        shift[0, k] = step
        up, down = (evaluate(equation.program, theta + s, X)[0] for s in (shift, -shift))
        ok = np.isfinite(up) & np.isfinite(down) & (np.abs(up) < 1e6)
        # Truncation ~ step**2 f''' and rounding ~ eps |f| / step.
        scale = 1.0 + np.abs(up[ok]) + np.abs(jacobian[0, k][ok])
        error = np.abs(jacobian[0, k][ok] - (up[ok] - down[ok]) / (2 * step)) / scale**3
        assert np.all(error < 1e-5)


@pytest.mark.parametrize("n_points", [1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
@pytest.mark.parametrize("n_batch", [1, 2, 100])
def test_blocks_do_not_show(n_points, n_batch):
    X = points(n_points)
    theta = np.random.default_rng(RNG_SEED).uniform(0.5, 1.5, size=(n_batch, 3))
    values, jacobian = evaluate_jacobian(CURVED.program, theta, X)
    c0, c1, c2 = theta.T[:, :, None]
    x, y = X.T
    expected = c0 * np.exp(-c1 * x) + c2 * x**2 / (1 + c1 * y)
    by_c1 = -c0 * x * np.exp(-c1 * x) - c2 * x**2 * y / (1 + c1 * y) ** 2
    np.testing.assert_allclose(values, expected, rtol=1e-13)
    np.testing.assert_allclose(evaluate(CURVED.program, theta, X), expected, rtol=1e-13)
    np.testing.assert_allclose(jacobian[:, 1], by_c1, rtol=1e-12)


def test_an_empty_batch_has_an_empty_result():
    assert evaluate(CURVED.program, np.empty((0, 3)), points()).shape == (0, 9)


def test_outside_its_domain_a_value_is_not_a_number():
    X = np.array([[-1.0], [4.0]])
    for text in ("sqrt(x)", "log(x)", "x**0.3"):
        value = evaluate(Equation(text, ["x"]).program, np.empty((1, 0)), X)[0]
        assert np.isnan(value[0]) and np.isfinite(value[1]), text
    pole = evaluate(Equation("1/(x + 1)", ["x"]).program, np.empty((1, 0)), X)[0]
    assert np.isinf(pole[0])


def test_a_negative_base_has_integer_powers_and_derivatives():
    cube = Equation("(c0*x)**3", ["x"])
    values, jacobian = evaluate_jacobian(cube.program, np.array([[-2.0]]), np.array([[3.0]]))
    assert values[0, 0] == -216.0
    assert jacobian[0, 0, 0] == pytest.approx(3 * 4 * 27)


def test_an_unknown_code_gives_no_number():
    nonsense = Program.of([(0, 0, 0), (99, 0, 0)], [], 0)
    assert np.isnan(evaluate(nonsense, np.empty((1, 0)), points())).all()


@pytest.mark.parametrize(
    ("text", "affine"),
    [
        ("c0 + c1*x + c2*x**2", "c0 c1 c2"),
        ("c0*x**c1", "c0"),
        ("c0*exp(c1*x) + c2", "c0 c2"),
        ("c0*x**2/(1 + c1*x)", "c0"),
        ("c0 + c1*(c2 - x)", "c0 c1"),
        ("c0*(c1 + c2*x)", "c1 c2"),
        ("x/(c0 + x)", ""),
        ("c0**2 + c1", "c1"),
        ("c0*c0*x", ""),
        ("abs(c0)*x", ""),
    ],
)
def test_affine_parameters_are_found(text, affine):
    equation = Equation(text, ["x"])
    assert [equation.parameters[k] for k in equation.program.affine] == affine.split()


@given(equations(("x",), n_parameters=4), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_the_value_is_affine_in_the_affine_parameters(equation, seed):
    program = equation.program
    rng = np.random.default_rng(seed)
    theta = rng.uniform(0.2, 1.5, size=program.n_parameters)
    step = np.zeros_like(theta)
    step[list(program.affine)] = rng.normal(size=len(program.affine))
    line = np.array([theta - step, theta, theta + step])
    low, middle, high = evaluate(program, line, points(d=1))
    ok = np.isfinite(low) & np.isfinite(middle) & np.isfinite(high)
    scale = np.abs(low[ok]) + np.abs(high[ok]) + np.abs(middle[ok])
    bend = low[ok] - 2 * middle[ok] + high[ok]
    assert np.all(np.abs(bend) <= 1e-9 * scale)


def test_freezing_a_parameter_makes_it_a_number():
    frozen = CURVED.program.freeze({1: 0.7})
    theta = np.array([[1.0, 0.7, 2.0]])
    np.testing.assert_array_equal(
        evaluate(frozen, theta[:, [0, 2]], points()), evaluate(CURVED.program, theta, points())
    )
    assert frozen.n_parameters == 2


def test_nodes_without_parameters_are_known():
    equation = Equation("c0*sqrt(x)", ["x"])
    known = parameter_free_values(equation.program, points(d=1))
    assert any(np.allclose(row, np.sqrt(points(d=1)[:, 0])) for row in known.values())
    assert len(known) == 2


@pytest.mark.parametrize("shape", [(3,), (4, 3)])
def test_gradient_passes_pytensors_own_verifier(shape):
    rng = np.random.default_rng(RNG_SEED)
    program = CURVED.program

    def value(theta):
        return EvaluateProgram()(program.nodes, program.literals, theta, points())

    verify_grad(value, [rng.uniform(0.5, 1.5, size=shape)], rng=rng)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
def test_the_op_computes_the_same_under_every_linker(mode):
    program, theta = CURVED.program, np.array([1.0, 0.7, 2.0])
    symbol = pt.vector("theta", dtype="float64")
    inputs = (program.nodes, program.literals, symbol, points())
    outputs = [EvaluateProgram()(*inputs), ProgramJacobian()(*inputs)]
    value, jacobian = pytensor.function([symbol], outputs, mode=mode)(theta)
    expected, derivatives = evaluate_jacobian(program, theta[None, :], points())
    np.testing.assert_allclose(value, expected[0], rtol=1e-14)
    np.testing.assert_allclose(jacobian, derivatives[0], rtol=1e-14)


def test_pytensor_vectorizes_the_op_over_theta_only():
    program = CURVED.program
    theta, batch = pt.vector("theta", dtype="float64"), pt.matrix("batch", dtype="float64")
    X = pt.matrix("X", dtype="float64")
    mu = EvaluateProgram()(program.nodes, program.literals, theta, X)
    many = vectorize_graph(mu, {theta: batch})
    values = np.random.default_rng(RNG_SEED).uniform(0.5, 1.5, size=(5, 3))
    np.testing.assert_array_equal(
        many.eval({batch: values, X: points()}), evaluate(program, values, points())
    )
    with pytest.raises(NotImplementedError, match="Only theta can be batched"):
        vectorize_graph(mu, {X: pt.tensor3("X3", dtype="float64")})
    with pytest.raises(ValueError, match="theta must have 1 or 2 dimensions, got 0"):
        EvaluateProgram()(program.nodes, program.literals, 1.0, points())


def test_nuts_runs_on_a_users_own_model_with_the_op():
    rng = np.random.default_rng(RNG_SEED)
    x = np.linspace(0, 2, 40)
    y = 3.0 * np.exp(-1.5 * x) + 0.05 * rng.normal(size=40)
    program = Equation("c0*exp(-c1*x)", ["x"]).program
    with pm.Model():
        theta = pm.Normal("theta", 1.0, 2.0, shape=2)
        mu = EvaluateProgram()(program.nodes, program.literals, theta, x[:, None])
        pm.Normal("y", mu, 0.05, observed=y)
        trace = pm.sample(
            200,
            tune=300,
            chains=1,
            cores=1,
            progressbar=False,
            random_seed=1,
            compute_convergence_checks=False,
        )
    draws = trace.posterior["theta"].values[0]
    # Least-squares standard errors are near 0.02 and 0.02; 200 draws know the mean to a tenth.
    np.testing.assert_allclose(draws.mean(axis=0), [3.0, 1.5], atol=0.1)


def test_codes_in_the_docstring_are_those_of_the_table():
    assert operator_code("*") == 6


def test_tables_give_back_programs_and_their_derivatives():
    programs = [Equation(text, ["x"]).program for text in ("c0*x + 3", "x**c0", "sin(c0/x)")]
    tables = Tables.of(programs)
    theta, X = np.array([[1.5], [-0.5]]), np.array([[1.0], [2.0], [3.0]])
    values, chi, slopes = evaluate_slopes_of_many(tables, theta, X)
    for k, program in enumerate(programs):
        again = tables.take([2, k]).program(1)
        assert again.nodes.tolist() == program.nodes.tolist()
        assert again.literals.tolist() == program.literals.tolist()
        assert again.n_parameters == program.n_parameters
        alone = evaluate_slopes(program, theta, X)
        for found, wanted in zip((values[k], chi[k], slopes[k]), alone, strict=True):
            np.testing.assert_array_equal(found, wanted)
