"""What the rules look at in an equation: its denominators, and the arguments of its waves."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import sympy

from pmsr.equation.algebra import function_rows
from pmsr.equation.operators import Operator, added_operators, find_gaps

# Any: SymPy's expressions have no types that a checker would know.

PERIODIC = ("sin", "cos", "tan")


def denominators(expression: Any, parameters: Sequence[Any]) -> Iterator[Any]:
    """Yield the subexpressions with parameters whose zeros are poles.

    Examples
    --------
    >>> x, c0, c1 = sympy.symbols("x c0 c1", real=True)
    >>> list(denominators(c0 * x / (x * (c1 + x) ** 2), [c0, c1]))
    [c1 + x]
    """
    for part in sympy.preorder_traversal(expression):
        if part.is_Pow and part.exp.is_number and part.exp.is_negative:
            for factor in sympy.Mul.make_args(part.base):
                base = factor.base if factor.is_Pow and factor.exp.is_number else factor
                if base.free_symbols & set(parameters):
                    yield base
        for base in _applied(part).below:
            if base.free_symbols & set(parameters):
                yield base


def arguments(expression: Any, parameters: Sequence[Any]) -> Iterator[tuple[str, Any, bool]]:
    """Yield the arguments with parameters of periodic functions.

    With the function's name, and whether a parameter shifts the argument in all rows alike.

    Examples
    --------
    >>> x, c0, c1 = sympy.symbols("x c0 c1", real=True)
    >>> list(arguments(sympy.sin(c0 * x - c1) + sympy.cos(c0 * x), [c0, c1]))
    [('cos', c0*x, False), ('sin', c0*x - c1, True)]
    """
    for part in sympy.preorder_traversal(expression):
        name = type(part).__name__
        found = [(name, part.args[0])] if name in PERIODIC else _applied(part).waves
        for name, argument in found:
            if argument.free_symbols & set(parameters):
                yield name, argument, any(abs(argument.diff(c)) == 1 for c in parameters)


class Inside(NamedTuple):
    """What the rules look at inside an operator that was derived from a form.

    Parameters
    ----------
    below
        Denominators.
    waves
        Names of periodic functions, with their arguments.
    """

    below: tuple[Any, ...] = ()
    waves: tuple[tuple[str, Any], ...] = ()


@lru_cache
def look_into(row: Operator) -> Inside:
    """Return what the rules look at in the form of an operator, in its arguments a and b.

    A denominator whose zero is a gap of the form, which has a limit there, is no pole. What holds
    functions that are no operators is left out.

    Examples
    --------
    >>> from pmsr.equation.operators import derive_operator
    >>> look_into(derive_operator("sinc", lambda x: sympy.sin(x) / x))
    Inside(below=(), waves=(('sin', a),))
    >>> look_into(derive_operator("share", lambda x, y: x / (x + y)))
    Inside(below=(a + b,), waves=())
    """
    if row.form is None:
        return Inside()
    symbols = sympy.symbols("a b", real=True)[: row.arity]
    places = [gap.place for gap in find_gaps(row.form, symbols[0])] if row.arity == 1 else []
    known = function_rows()
    below = (
        base
        for base in denominators(row.form, symbols)
        if _is_known(base, known)
        and not any(base.subs(symbols[0], place).is_zero for place in places)
    )
    waves = (
        (name, argument)
        for name, argument, _ in arguments(row.form, symbols)
        if _is_known(argument, known)
    )
    return Inside(tuple(dict.fromkeys(below)), tuple(dict.fromkeys(waves)))


def _is_known(part: Any, rows: Mapping[Any, str]) -> bool:
    """Tell whether a part of a form is made of operators alone: only then it can be computed."""
    return all(function.func in rows for function in part.atoms(sympy.Function))


def _applied(part: Any) -> Inside:
    """Return what the rules look at in an operator that stands in an equation."""
    row = next((row for row in added_operators() if part.func == row.sympy), None)
    if row is None:
        return Inside()
    inside = look_into(row)
    given = dict(zip(sympy.symbols("a b", real=True), part.args, strict=False))
    return Inside(
        tuple(base.xreplace(given) for base in inside.below),
        tuple((name, argument.xreplace(given)) for name, argument in inside.waves),
    )
