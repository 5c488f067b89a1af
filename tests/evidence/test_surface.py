import numpy as np
import pytest

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.evidence.multistart import fit
from pmsr.evidence.problem import Problem
from pmsr.evidence.surface import Surface
from pmsr.settings import Settings

X = np.linspace(0.5, 4.0, 12)
Y = 2.0 * X / (1.0 + X)
DATA = make_data(X, Y + 0.01 * np.sin(40.0 * X))


def surface(text):
    return Surface.of(Equation(text, ["x0"]).program, DATA)


def differences(program, theta, step=1e-6):
    """Derivatives of the predictions by the parameters, of shape (N, p), by differences."""
    columns = []
    for k in range(len(theta)):
        shift = step * max(1.0, abs(theta[k])) * np.eye(len(theta))[k]
        up, down = evaluate(program, np.array([theta + shift, theta - shift]), DATA.X)
        columns.append((up - down) / (2.0 * shift[k]))
    return np.column_stack(columns)


@pytest.mark.parametrize(
    ("text", "theta"),
    [
        ("c0*x0/(c1 + x0)", [2.0, 0.7]),
        ("c0*exp(-c1*x0) + c2", [1.5, 0.4, -0.3]),
        ("c0*sin(c1*x0 + c2) + c3*x0", [1.0, 1.3, 0.2, 2.0]),
    ],
)
def test_a_look_has_the_volume_the_error_and_the_conditional_mean(text, theta):
    found, theta = surface(text), np.array(theta)
    look = found.look(theta[None, :])
    chi = differences(found.program, theta)
    residual = DATA.y - evaluate(found.program, theta[None, :], DATA.X)[0]
    assert look.sse[0] == pytest.approx(residual @ residual, rel=1e-10)
    half = 0.5 * np.linalg.slogdet(chi.T @ chi)[1]
    assert look.log_volume[0] == pytest.approx(half, abs=1e-5)
    affine = chi[:, list(found.program.affine)]
    best = np.linalg.lstsq(affine, residual, rcond=None)[0]
    z = look.whitened[0, : found.n_affine]
    assert z @ z == pytest.approx(float(np.sum((affine @ best) ** 2)), rel=1e-5)


def test_distances_are_those_of_the_predictions():
    law = Equation("c0*x0/(c1 + x0)", ["x0"]).program
    found = fit(law, Problem.of(DATA, Settings()), 4, rng=np.random.default_rng(0))
    around = Surface.of(law, DATA).around(found.minima[:1])
    theta = found.theta + np.array([0.3, -0.1])
    values = evaluate(law, np.stack([theta, found.theta]), DATA.X)
    assert around.look(theta[None, :]).square[0] == pytest.approx(
        float(np.sum((values[0] - values[1]) ** 2)), rel=1e-9
    )


def test_a_pole_between_rows_is_not_allowed():
    theta = np.array([[2.0, 1.0], [2.0, -2.2], [2.0, -5.0], [2.0, -0.1]])
    assert surface("c0*x0/(c1 + x0)").obeys(theta).tolist() == [True, False, True, True]
    for text in ("c0/(c1 + x0)**2", "c0/(x0*(c1 + x0))", "c0/(x0/(c1 + x0)**-2)"):
        assert surface(text).obeys(theta).tolist() == [True, False, True, True]
    # What does not depend on a parameter is the user's own choice.
    assert surface("c0/(x0 - 2.2) + c1").obeys(theta).all()


def test_an_alias_is_not_allowed():
    span = np.ptp(X)
    most = np.pi * (len(X) - 1) / span
    theta = np.array([[1.0, 0.99 * most], [1.0, -0.99 * most], [1.0, 1.01 * most]])
    assert surface("c0*sin(c1*x0)").obeys(theta).tolist() == [True, True, False]
    turned = np.column_stack([theta[:, 0], 1.0 / theta[:, 1]])
    assert surface("c0*cos(x0/c1)").obeys(turned).tolist() == [True, True, False]


def test_a_tangent_may_not_pass_its_pole():
    theta = np.array([[1.0, 0.3], [1.0, 0.5]])  # 0.5*4 is beyond pi/2
    assert surface("c0*tan(c1*x0)").obeys(theta).tolist() == [True, False]


def test_a_phase_counts_within_one_period():
    law = surface("c0*sin(c1*x0 - c2)")
    assert len(law.watched[0].shifts) == 1
    wrapped = law.wrap(np.array([1.0, 1.3, 40.0]))
    assert -np.pi <= 1.3 * X[0] - wrapped[2] <= np.pi
    np.testing.assert_allclose(np.sin(1.3 * X - wrapped[2]), np.sin(1.3 * X - 40.0), atol=1e-9)
    found = fit(law.program, Problem.of(DATA, Settings()), 4, rng=np.random.default_rng(0))
    around = law.around(found.minima[:1])
    theta = np.repeat(found.theta[None, :], 3, axis=0)
    theta += np.outer([0.0, 1.0, 2.0], law.watched[0].shifts[0])
    assert around.obeys(theta).sum() == 2
    assert surface("c0*sin(c1*x0)").watched[0].shifts == ()


def test_what_parameters_do_not_stretch_has_no_alias_and_counts_within_one_period():
    # cos(exp(c0) + 40*x): c0 is nothing but a phase, whatever the argument spans.
    law = surface("cos(exp(c0) + 40*x0)")
    assert law.watched[0].is_phase and np.ptp(40.0 * X) > np.pi * (len(X) - 1)
    assert law.obeys(np.array([[0.3], [5.0]])).all()
    found = fit(law.program, Problem.of(DATA, Settings()), 4, rng=np.random.default_rng(0))
    around = law.around(found.minima[:1])
    first = np.exp(found.theta[0])
    theta = np.log(first + np.array([0.0, 0.9 * np.pi, 2.1 * np.pi, 40.0 * np.pi]))
    assert around.obeys(theta[:, None]).tolist() == [True, True, False, False]
    assert not surface("cos(c0*x0 + c1)").watched[0].is_phase
