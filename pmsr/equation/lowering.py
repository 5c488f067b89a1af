"""From a SymPy expression to the program that evaluates it."""

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import sympy

from pmsr.equation.algebra import constant_value, function_rows, real_symbol
from pmsr.equation.operators import LITERAL, OPERATORS, PARAMETER, POWER, VARIABLE, operator_code
from pmsr.equation.program import Program

# Any: SymPy's constructors are untyped; every Any below is a SymPy expression.


def lower(expression: Any, variables: Sequence[str], parameters: Sequence[str]) -> Program:
    """Return the program of an expression: few nodes, each of which is written once.

    Parameters
    ----------
    expression
        A SymPy expression.
    variables, parameters
        Names of its real symbols, in the order of X's columns and of theta.

    Notes
    -----
    Negative terms are subtracted and negative powers divided by; the numbers of a product become
    one literal. A quotient by exp(x) stays a product with exp(-x): it cannot overflow.

    Examples
    --------
    >>> x0, x1 = sympy.symbols("x0 x1", real=True)
    >>> lower(x0 + x0 * x1, ["x0", "x1"], []).nodes     # figure 1 of the paper, complexity 4
    array([[0, 0, 0],
           [0, 1, 0],
           [6, 0, 1],
           [4, 0, 2]], dtype=int32)
    """
    return _Lowering(variables, parameters).program(expression)


class _Lowering:
    """A walk down one expression that writes its table; equal parts become one node."""

    def __init__(self, variables: Sequence[str], parameters: Sequence[str]) -> None:
        leaves = ((VARIABLE, variables), (PARAMETER, parameters))
        self.leaves = {
            real_symbol(n): (code, i, 0) for code, ns in leaves for i, n in enumerate(ns)
        }
        self.n_parameters = len(parameters)
        self.codes = {name: operator_code(name) for name in OPERATORS}
        self.functions = function_rows()
        self.nodes: dict[tuple[int, int, int], int] = {}
        self.literals: dict[float, int] = {}
        self.memo: dict[Any, int] = {}

    def program(self, expression: Any) -> Program:
        self.node(expression)
        return Program.of(list(self.nodes), list(self.literals), self.n_parameters)

    def add(self, code: int, a: int, b: int) -> int:
        return self.nodes.setdefault((code, a, b), len(self.nodes))

    def literal(self, value: float) -> int:
        return self.add(LITERAL, self.literals.setdefault(value, len(self.literals)), 0)

    def apply(self, name: str, a: int, b: int) -> int:
        if name in ("+", "*"):
            a, b = min(a, b), max(a, b)
        return self.add(self.codes[name], a, b)

    def node(self, e: Any) -> int:
        """Return the node of e, after those that it needs."""
        known = self.memo.get(e)
        if known is None:
            if e.is_Symbol:
                known = self.add(*self.leaves[e])
            elif e.is_number:
                known = self.literal(constant_value(e))
            elif e.is_Add:
                known = self.sum(e.args)
            elif e.is_Mul or _is_inverse(e):
                known = self.product(*_coefficient(e))
            elif e.is_Pow:
                known = self.power(e.base, e.exp)
            else:
                known = self.function(e)
            self.memo[e] = known
        return known

    def sum(self, terms: Sequence[Any]) -> int:
        """Add the positive terms and subtract the negative ones."""
        # A stable sort; without a positive term the number, or else any term, keeps its sign.
        signed = sorted(
            map(_coefficient, terms), key=lambda term: (term[0] < 0, term[0] < 0 and len(term[1]))
        )
        total = self.product(*signed[0])
        for coefficient, factors in signed[1:]:
            part = self.product(abs(coefficient), factors)
            total = self.apply("+" if coefficient > 0 else "-", total, part)
        return total

    def product(self, coefficient: float, factors: Sequence[Any]) -> int:
        above, below = [], []
        for factor in factors:
            if _is_inverse(factor):
                below.append(self.power(factor.base, -factor.exp))
            else:
                above.append(self.node(factor))
        if coefficient != 1.0 or not above:
            above.insert(0, self.literal(coefficient))
        result = reduce(lambda a, b: self.apply("*", a, b), above)
        if below:
            result = self.apply("/", result, reduce(lambda a, b: self.apply("*", a, b), below))
        return result

    def power(self, base: Any, exponent: Any) -> int:
        if exponent == 1:
            return self.node(base)
        inner = self.node(base)
        if exponent == sympy.S.Half:
            return self.apply("sqrt", inner, inner)
        if exponent.is_Integer:  # `algebra.LARGEST_EXPONENT` fits into the table
            return self.add(POWER, inner, int(exponent))
        return self.apply("pow", inner, self.node(exponent))

    def function(self, e: Any) -> int:
        name = self.functions[e.func]
        arguments = [self.node(argument) for argument in e.args]
        if len(arguments) == 1:
            return self.apply(name, arguments[0], arguments[0])
        return reduce(lambda a, b: self.apply(name, a, b), arguments)


def _is_inverse(e: Any) -> bool:
    return bool(e.is_Pow and e.exp.is_number and constant_value(e.exp) < 0.0)


def _coefficient(term: Any) -> tuple[float, list[Any]]:
    """Split a term into a number and the factors with symbols."""
    factors = sympy.Mul.make_args(term)
    numbers = [constant_value(factor) for factor in factors if factor.is_number]
    return math.prod(numbers, start=1.0), [factor for factor in factors if not factor.is_number]
