"""What matters: the probability that a variable or an operator is part of the law."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import sympy
from numpy.typing import NDArray

from pmsr.equation.algebra import function_rows
from pmsr.equation.expression import Equation
from pmsr.result.fitted import FittedEquation

Floats = NDArray[np.float64]


def operators_of(equation: Equation) -> set[str]:
    """Return the names of the operators in an equation, however it is spelled.

    A difference counts as ``"+"``: which of the two is written depends on the sign of a parameter.

    Examples
    --------
    >>> sorted(operators_of(Equation("c0*sqrt(x)/(c1 - exp(x)) + x**3", ["x"])))
    ['*', '+', '/', 'exp', 'pow', 'sqrt']
    """
    found: set[str] = set()
    _collect(equation.expression, function_rows(), found)
    return found


# Any: SymPy is untyped.
def _collect(e: Any, functions: Any, found: set[str]) -> None:
    if e.is_Add:
        found.add("+")
    elif e.is_Mul:
        below = [a for a in e.args if a.is_Pow and a.exp.could_extract_minus_sign()]
        above = [a for a in e.args if a not in below and a != -1]
        if len(above) > 1:
            found.add("*")
    elif e.is_Pow:
        if e.exp.could_extract_minus_sign():
            found.add("/")
        if abs(e.exp) == sympy.S.Half:
            found.add("sqrt")
        elif e.exp != -1:
            found.add("pow")
    elif e.func in functions:
        found.add(functions[e.func])
    for argument in e.args:
        _collect(argument, functions, found)


def tabulate_inclusion(
    equations: Sequence[FittedEquation], probabilities: Floats, variables: Sequence[str]
) -> pd.DataFrame:
    """Return the probability that each variable and operator is part of the law.

    Parameters
    ----------
    equations, probabilities
        The laws that were weighed.
    variables
        Names of all variables.

    Returns
    -------
    DataFrame
        Under their names, with the columns ``kind`` (variable or operator) and ``probability``,
        among the laws that were weighed: the share of those that were only screened is left out.
    """
    total = float(np.sum(probabilities))
    sums = {("variable", name): 0.0 for name in variables}
    for one, share in zip(equations, probabilities, strict=True):
        parts = [
            ("variable", name) for name in variables if name in (*one.used, *one.used_constants)
        ]
        parts += [("operator", name) for name in sorted(operators_of(one.equation))]
        for part in parts:
            sums[part] = sums.get(part, 0.0) + float(share)
    with np.errstate(all="ignore"):
        shares = [float(np.divide(value, total)) for value in sums.values()]
    table = pd.DataFrame(
        {"kind": [kind for kind, _ in sums], "probability": shares},
        index=pd.Index([name for _, name in sums], name="part"),
    )
    # Variables first; the rest, and ties, as they came.
    order = np.lexsort((-table["probability"].to_numpy(), table["kind"] == "operator"))
    return table.iloc[order]
