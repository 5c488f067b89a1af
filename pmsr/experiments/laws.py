"""Whether an equation is a known law, in any algebraic form."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pmsr.data import Data, make_data
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.evidence.evidence import fit_rmse
from pmsr.evidence.problem import Problem
from pmsr.settings import Settings

Floats = NDArray[np.float64]

EXACT = 1e-6  # of the spread of a law's values: what counts as no error


def is_law(equation: Equation, law: Equation, truth: Sequence[float], X: Floats) -> bool:
    """Tell whether an equation is the law in other words.

    Parameters
    ----------
    equation, law
        In the same variables.
    truth
        Parameters of the law near which the two are compared.
    X
        Where they are compared.

    Returns
    -------
    bool
        Whether it has as many parameters, and fits noiseless data of the law for several values
        of the law's parameters, to six digits.

    Examples
    --------
    >>> law, X = Equation("k*sqrt(H)", ["H"], ["k"]), np.array([[1.0], [2.0], [4.0], [7.0]])
    >>> is_law(Equation("sqrt(c0*H)", ["H"]), law, [2.0], X)
    True
    >>> is_law(Equation("c0*H", ["H"]), law, [2.0], X)
    False
    """
    return len(equation.parameters) == len(law.parameters) and _covers(equation, law, truth, X)


def extends_law(equation: Equation, law: Equation, truth: Sequence[float], X: Floats) -> bool:
    """Tell whether an equation with more parameters has the law as a special case.

    These are the paper's "numerically approximate" equations (Section 3.2).

    Examples
    --------
    >>> law, X = Equation("k*sqrt(H)", ["H"], ["k"]), np.array([[1.0], [2.0], [4.0], [7.0]])
    >>> extends_law(Equation("c0*sqrt(H)/(1 + c1*H)", ["H"]), law, [2.0], X)
    True
    """
    return len(equation.parameters) > len(law.parameters) and _covers(equation, law, truth, X)


def is_special_case(equation: Equation, theta: Floats, law: Equation, X: Floats) -> bool:
    """Tell whether an equation with fewer parameters is the law at some of its parameters.

    Examples
    --------
    >>> law, X = Equation("k1*D**2/(1 + k2*D)", ["D"]), np.array([[1.0], [2.0], [3.0], [5.0]])
    >>> is_special_case(Equation("-D**2/(c0 + D)", ["D"]), np.array([-9.0]), law, X)
    True
    """
    if len(equation.parameters) >= len(law.parameters):
        return False
    y = evaluate(equation.program, theta[None, :], X)[0]
    return rmse_of(law, make_data(X, y, names=law.variables)) <= EXACT * float(np.std(y))


def _covers(equation: Equation, law: Equation, truth: Sequence[float], X: Floats) -> bool:
    rng = np.random.default_rng(0)
    for _ in range(3):
        theta = np.array(truth) * rng.uniform(0.7, 1.0, size=len(truth))
        y = evaluate(law.program, theta[None, :], X)[0]
        if rmse_of(equation, make_data(X, y, names=law.variables)) > EXACT * np.std(y):
            return False
    return True


def rmse_of(equation: Equation, data: Data) -> float:
    """Return the least error of an equation, always the same; infinite if it cannot be fitted.

    Examples
    --------
    >>> rmse_of(Equation("c0*x", ["x"]), make_data([1.0, 2.0], [2.0, 4.0], names=["x"])) < 1e-12
    True
    """
    problem = Problem.of(data, Settings())
    found = fit_rmse(equation.program, problem, Settings(), np.random.SeedSequence(0))
    return found.rmse if found.failure is None else np.inf
