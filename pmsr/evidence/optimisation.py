"""One local optimisation of the squared error: MINPACK from one start, BFGS for few points."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import leastsq, minimize

from pmsr.data import Data
from pmsr.equation.kernels import affine_normal
from pmsr.equation.program import Program, evaluate, evaluate_jacobian
from pmsr.limits import check_time

Floats = NDArray[np.float64]

MAX_EVALUATIONS = 60  # of one local optimisation, which has two tries


def levenberg_marquardt(
    program: Program, data: Data, start: Floats, *, retry: bool
) -> tuple[Floats, bool]:
    """Minimise with SciPy's MINPACK; tell whether it converged."""
    unit = 1.0 / data.spread

    def residuals(theta: Floats) -> Floats:
        check_time()
        return np.asarray((evaluate(program, theta[None, :], data.X)[0] - data.y) * unit)

    def jacobian(theta: Floats) -> Floats:
        return np.asarray(evaluate_jacobian(program, theta[None, :], data.X)[1][0] * unit)

    theta, converged = _leastsq(residuals, jacobian, start)
    if retry and not converged:
        theta, converged = _leastsq(residuals, jacobian, _variable_projection(program, data, theta))
    return theta, converged


def _variable_projection(program: Program, data: Data, start: Floats) -> Floats:
    """Minimise over the curved parameters alone, the affine ones following (Kaufman 1975).

    Valleys such as that of ``c0*x**c1`` are straight in these coordinates; in all parameters
    together Levenberg-Marquardt may need hundreds of steps. It still has the last word.

    References
    ----------
    Kaufman (1975), doi:10.1007/BF01932995.
    """
    affine = list(program.affine)
    curved = [k for k in range(program.n_parameters) if k not in affine]
    if not affine or not curved:
        return start
    unit = 1.0 / data.spread
    theta = start.copy()
    silent = np.zeros((1, len(affine)))

    def residuals(eta: Floats) -> Floats:
        check_time()
        theta[curved], theta[affine] = eta, 0.0
        values, jacobian = evaluate_jacobian(program, theta[None, :], data.X)
        design = np.ascontiguousarray(jacobian[:, affine])
        theta[affine] = affine_normal(design, data.y - values, silent)[0][0]
        return np.asarray((values[0] + theta[affine] @ design[0] - data.y) * unit)

    def jacobian(eta: Floats) -> Floats:
        if not np.array_equal(theta[curved], eta):
            residuals(eta)
        derivatives = evaluate_jacobian(program, theta[None, :], data.X)[1][0] * unit
        # Minus what the affine parameters would make up for.
        designs = np.repeat(derivatives[None, affine], len(curved), axis=0)
        made_up = affine_normal(designs, derivatives[curved], np.zeros(designs.shape[:2]))[0]
        return np.asarray(derivatives[curved] - made_up @ derivatives[affine])

    eta, _ = _leastsq(residuals, jacobian, start[curved], 1e-6)
    residuals(eta)
    return theta if np.isfinite(theta).all() else start


def _leastsq(
    residuals: Any, jacobian: Any, start: Floats, tolerance: float = 1e-10
) -> tuple[Floats, bool]:
    theta, _, _, _, flag = leastsq(
        residuals,
        start,
        Dfun=jacobian,
        col_deriv=True,
        full_output=True,  # also keeps SciPy from warning about every failed start
        ftol=tolerance,
        xtol=tolerance,
        maxfev=MAX_EVALUATIONS,
    )
    return theta, flag in (1, 2, 3, 4)


def bfgs(program: Program, data: Data, start: Floats, scales: Floats) -> tuple[Floats, bool]:
    """For fewer points than parameters, where Levenberg-Marquardt is not defined."""
    unit = 1.0 / data.spread

    def loss(scaled: Floats) -> tuple[float, Floats]:
        check_time()
        values, jacobian = evaluate_jacobian(program, (scaled * scales)[None, :], data.X)
        residuals = (values[0] - data.y) * unit
        value = float(residuals @ residuals)
        if not np.isfinite(value):
            return 1e300, np.zeros_like(scaled)
        gradient = 2.0 * (jacobian[0] @ residuals) * unit * scales
        if not np.isfinite(gradient).all():  # a product on the way was out of range
            gradient = 2.0 * ((jacobian[0] * scales[:, None] * unit) @ residuals)
        return value, gradient

    found = minimize(
        loss, start / scales, jac=True, method="BFGS", options={"maxiter": MAX_EVALUATIONS}
    )
    return np.asarray(found.x * scales), True
