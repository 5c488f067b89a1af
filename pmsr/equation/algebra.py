"""SymPy for real quantities: the operators' forms, numbers of bounded size, settled results."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy
from sympy import Float, Integer, Mul, Pow, Rational, Symbol

from pmsr.equation.operators import OPERATORS

# Any: SymPy's constructors are untyped; every Any below is a SymPy expression.

LARGEST_INTEGER = 2**63 - 1  # PyTensor's integers end here; a longer one becomes a float
LARGEST_DENOMINATOR = 64  # 0.5 is exactly 1/2, so that x**0.5 is sqrt(x)
# SymPy computes 8**n exactly for log(1 - (x + 3/8)**n): milliseconds here, for ever at 10**10.
LARGEST_EXPONENT = 10_000
LARGEST_EFFORT = 3_000  # for a power of what contains powers, see `effort`
# Levels of a number such as 2**(-sqrt(3)); SymPy compares higher towers with ever more digits.
HIGHEST_NUMBER = 8


class TooLarge(ValueError):
    """An equation is larger than algebra can handle in reasonable time."""


def real_symbol(name: str) -> Any:
    """Return the symbol of a variable or parameter."""
    return Symbol(name, real=True)


def function_names() -> list[str]:
    """Names of the operators that are written as functions."""
    return [name for name in OPERATORS if name.isidentifier()]


def function_rows() -> dict[Any, str]:
    """Names of those operators by their SymPy class."""
    return {
        row.sympy: name
        for name, row in OPERATORS.items()
        if name.isidentifier() and isinstance(row.sympy, type)
    }


def apply_operator(name: str, *arguments: Any) -> Any:
    """Return the SymPy form of an operator applied to SymPy expressions of real quantities.

    Examples
    --------
    >>> x = Symbol("x", real=True)
    >>> apply_operator("abs", sympy.exp(sympy.sqrt(x)))   # SymPy's own allows for negative x
    exp(sqrt(x))
    """
    if name == "pow":
        return power(*arguments)
    if name == "sqrt":
        return power(arguments[0], sympy.S.Half)
    if name == "abs":
        return _absolute(arguments[0])
    if name == "exp":
        _check_powers_of_e(arguments[0])
    if name == "/" and arguments[1].is_Number and arguments[1].is_zero:
        raise ValueError(describe_failure(sympy.zoo))  # SymPy raises something else for floats
    value = OPERATORS[name].sympy(*arguments)
    if name == "tanh":
        _decide_tanh(value)
    return without_cot(value) if name == "tan" else value


def _decide_tanh(value: Any) -> None:
    """Keep SymPy from splitting the argument of tanh into a real and an imaginary part.

    It does so to tell whether tanh is real and finite, which takes minutes for a tower of
    functions: with a real argument it is, and for any other, such as sqrt(...), SymPy does not find
    out. No other operator asks in this way.
    """
    if isinstance(value, sympy.tanh):
        if value._assumptions is value.default_assumptions:
            value._assumptions = value.default_assumptions.copy()
        if value.args[0].is_real:
            value._assumptions.deduce_all_facts((("real", True),))  # which includes finite
        else:
            for fact in ("real", "finite"):
                value._assumptions.setdefault(fact, None)


def _absolute(argument: Any) -> Any:
    """Return abs(argument), without an excursion to where the argument is complex."""
    real: list[Any] = []
    outside: list[Any] = []
    for factor in Mul.make_args(argument):
        base, exponent = (factor.base, factor.exp) if factor.is_Pow else (factor, sympy.S.One)
        if _is_nonnegative(factor):
            outside.append(factor)
        elif exponent.is_Integer and base.is_extended_real:
            real.append(factor)
        elif exponent.is_Integer:
            outside.append(Pow(sympy.Abs(base, evaluate=False), exponent))
        else:
            outside.append(sympy.Abs(factor, evaluate=False))
    return Mul(*outside, sympy.Abs(Mul(*real)))


def _is_nonnegative(factor: Any) -> bool:
    """Tell whether a factor is zero or positive wherever it is real: exp(x), x**2, sqrt(x)."""
    if not factor.is_Pow:
        return isinstance(factor, sympy.exp | sympy.Abs)
    is_odd = factor.exp.is_Integer and factor.exp.p % 2
    return (factor.exp.is_number and not is_odd) or _is_nonnegative(factor.base)


def without_cot(expression: Any) -> Any:
    """Undo that SymPy writes tan(x + pi/2) with a function that has no row."""
    if not expression.has(sympy.cot):
        return expression
    return expression.replace(sympy.cot, lambda argument: 1 / sympy.tan(argument))


def power(base: Any, exponent: Any) -> Any:
    """Return base**exponent, in floats where exact numbers would grow long.

    SymPy writes (1/2)**x as 2**(-x) in a product, and we do so everywhere.

    Raises
    ------
    TooLarge
        If a number in the exponent, or in what (x**a)**b becomes, is beyond `LARGEST_EXPONENT`, or
        if powers are nested so deeply that SymPy would not come back; see `effort`.
    """
    check_exponent(exponent)
    if exponent.is_number:
        times = constant_value(exponent)
        for factor in Mul.make_args(base):
            if factor.is_Pow:
                check_exponent(factor.exp, times)
    if exponent.is_Integer and abs(exponent) > 64:
        coefficient, rest = base.as_coeff_Mul()
        if coefficient not in (1, -1):
            base = Mul(Float(coefficient), rest)
    if base.is_Mul and not exponent.is_Integer:
        base = _with_one_float(base)
    _check_effort(base, exponent)
    if base.is_Rational and base.p == 1 and base.q != 1 and not exponent.is_number:
        return Pow(Integer(base.q), -exponent)
    return Pow(base, exponent)


def _check_effort(base: Any, exponent: Any) -> None:
    """Refuse a power about which SymPy would think for ever.

    It factors an exponent that is not just a symbol, and where a power such as 1/(x + y) is raised
    to what is no integer (may the exponents be multiplied?) it asks for the real and the imaginary
    part of x + y. Elsewhere it asks nothing: sqrt(1 + sqrt(1 + ...)) may be as deep as any other.
    """
    # Numbers are kept low by `HIGHEST_NUMBER`.
    steps = 0 if exponent.is_number else effort(exponent)
    if not exponent.is_Integer:
        inner = (factor.base for factor in Mul.make_args(base) if factor.is_Pow)
        steps += sum(effort(b) for b in inner if not b.is_extended_real)
    if steps > LARGEST_EFFORT:
        raise TooLarge(
            f"Powers of powers are nested too deeply: algebra may take {LARGEST_EFFORT:,} steps, "
            f"and would take about {steps:.2g} here. Nest fewer roots, quotients and exponents in "
            "one another."
        )


def effort(expression: Any) -> int:
    """Estimate the nodes of the real and the imaginary part of an expression, as SymPy finds them.

    (a + b*i)**n has n + 1 terms; a root has both parts of its base in a modulus and in an angle,
    and so twice in each of its own; a function has them in both of its own, sums in a product are
    multiplied out, and what is known to be real stays as it is. A variable exponent is factored
    with all that is in it. SymPy's time follows this number: some tenths of a second at
    `LARGEST_EFFORT`, and a level more can be minutes.

    Examples
    --------
    >>> x = real_symbol("x")
    >>> effort(x + 1), effort((x + 1) ** 2), effort(sympy.sqrt(x + 1))
    (3, 5, 20)
    """
    known: dict[Any, int] = {}

    def look(e: Any) -> int:
        found = known.get(e)
        if found is None:
            found = 1 + sum(map(look, e.args))
            if e.is_Pow and e.exp.is_Integer:
                found *= 1 if e.base.is_extended_real else abs(e.exp.p) + 1
            elif e.is_Pow:
                found *= 4 if e.exp.is_number else 2
            elif e.is_Function and not e.is_extended_real:
                found *= 2
            elif e.is_Mul and not e.is_extended_real:
                found *= math.prod(len(factor.args) for factor in e.args if factor.is_Add)
            known[e] = found
        return found

    return look(expression)


def _with_one_float(product: Any) -> Any:
    """Multiply a float and roots such as 2**(1/4), whose root SymPy would seek for ever."""
    numbers = [factor for factor in product.args if factor.is_number]
    if len(numbers) < 2 or not any(number.is_Float for number in numbers):
        return product
    value = math.prod(map(constant_value, numbers))
    if not math.isfinite(value):
        raise ValueError(describe_failure(Mul(*numbers)))
    return Mul(Float(value), *(factor for factor in product.args if not factor.is_number))


def check_exponent(exponent: Any, times: float = 1.0) -> None:
    """Refuse an exponent that contains a number as a term, if it is too large for algebra.

    Parameters
    ----------
    exponent
        A SymPy expression. Its coefficients may be large: 2**(1e9*x) stays as it is.
    times
        A number that SymPy would multiply it by.

    Examples
    --------
    >>> check_exponent(Integer(10) ** 9 + Symbol("x"))
    Traceback (most recent call last):
        ...
    pmsr.equation.algebra.TooLarge: A number in an exponent may be at most 10,000, got 1e+09. ...
    """
    for term in sympy.Add.make_args(exponent):
        if term.is_number:
            value = constant_value(term) * times
            if abs(value) > LARGEST_EXPONENT:
                raise TooLarge(
                    f"A number in an exponent may be at most {LARGEST_EXPONENT:,}, got "
                    f"{value:.6g}. Write a smaller one, or a parameter."
                )


def check_size(value: Any) -> Any:
    """Return an expression that was just built, unless a number or an exponent in it is too large.

    A number that is a tower of functions and powers is returned as a float.

    To be asked after every step: otherwise 9**9**9**9 would keep SymPy busy for ever.

    Examples
    --------
    >>> check_size(Integer(10) ** 400 * Symbol("x"))
    Traceback (most recent call last):
        ...
    ValueError: This is beyond the range of floats, about 1e-308 to 1e308.
    """
    number = value if value.is_number else value.as_coeff_Mul()[0]
    if number is not sympy.S.One and not (number.is_Integer and abs(number) < 2**1000):
        size = constant_value(number)
        if not math.isfinite(size) or (size == 0.0 and number.is_zero is False):
            raise ValueError(describe_failure(number))
        if number is value and extent(number)[1] > HIGHEST_NUMBER:
            return tidy_number(Float(size))
    for factor in Mul.make_args(value):
        if factor.is_Pow:
            check_exponent(factor.exp)  # x**1000*x**1000
    return value


def _check_powers_of_e(argument: Any) -> None:
    """Refuse exp(10**9*log(x)), which SymPy turns into x**(10**9)."""
    for term in sympy.Add.make_args(argument):
        factors = Mul.make_args(term)
        if any(isinstance(factor, sympy.log) for factor in factors):
            check_exponent(Mul(*(f for f in factors if not isinstance(f, sympy.log))))


_OWN_FORM = {f: f.__name__.lower() for f in (sympy.tan, sympy.tanh, sympy.Abs, sympy.exp, Pow)}


def rebuild(expression: Any, arguments: Sequence[Any]) -> Any:
    """Return the expression with other arguments."""
    name = _OWN_FORM.get(expression.func)
    return apply_operator(name, *arguments) if name else expression.func(*arguments)


def settle(expression: Any, changes: Mapping[Any, Any] | None = None) -> Any:
    """Return the expression as SymPy builds it from its own parts, some of them changed.

    SymPy's first result need not be its last: sqrt(abs(x**3)) is abs(x)*sqrt(abs(x)) at first, and
    abs(x)**(3/2) when that product is built again.
    """
    settled = _built_again(expression, dict(changes or {}))
    for _ in range(9):
        if settled == expression:
            break
        expression, settled = settled, _built_again(settled, {})
    return settled


def _built_again(e: Any, memo: dict[Any, Any]) -> Any:
    known = memo.get(e)
    if known is None:
        known = e
        if e.args:
            known = rebuild(e, [_built_again(argument, memo) for argument in e.args])
        memo[e] = known
    return known


def extent(expression: Any) -> tuple[int, int]:
    """Count the nodes of an expression, where each counts wherever it occurs, and its levels.

    Examples
    --------
    >>> x = real_symbol("x")
    >>> extent(sympy.sin(x + 1) * (x + 1))
    (8, 4)
    """
    known: dict[Any, tuple[int, int]] = {}

    def look(e: Any) -> tuple[int, int]:
        found = known.get(e)
        if found is None:
            below = [look(argument) for argument in e.args]
            found = 1 + sum(n for n, _ in below), 1 + max((m for _, m in below), default=0)
            known[e] = found
        return found

    return look(expression)


def tidy(expression: Any) -> Any:
    """Return the settled expression with its numbers as `tidy_number` gives them, checked.

    Examples
    --------
    >>> x = real_symbol("x")
    >>> tidy(x ** Float(0.5) + 2**64)
    sqrt(x) + 1.84467440737096e+19
    """
    expression = settle(expression)
    rows = function_rows()
    changed = {}
    stack, seen = [expression], set()
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        stack.extend(e.args)
        if e.is_number or e.is_Mul:
            numbers = [e] if e.is_number else [f for f in e.args if f.is_number]
            size = math.prod(map(constant_value, numbers))
            if not math.isfinite(size) or (size == 0.0 and Mul(*numbers).is_zero is False):
                raise ValueError(
                    f"An equation must be real and finite, got {expression}. "
                    + describe_failure(Mul(*numbers))
                )
            if (e.is_Rational or e.is_Float) and (number := tidy_number(e)) is not e:
                changed[e] = number
            elif e.is_number and extent(e)[1] > HIGHEST_NUMBER:
                changed[e] = tidy_number(Float(size))  # as `check_size` will when it is read
        elif e.is_Pow:
            check_exponent(e.exp)
            if e.base is sympy.S.Zero:
                raise ValueError(f"An equation must be finite, got {expression} with a zero base.")
        elif not (e.is_Symbol or e.is_Add or e.func in rows):
            raise ValueError(
                f"No operator for SymPy's {e.func.__name__}. Available: {', '.join(OPERATORS)}."
            )
    return tidy(settle(expression, changed)) if changed else expression


def read_number(token: str) -> Any:
    """Return a number: exact if it is a short integer or fraction, otherwise the nearest float.

    Examples
    --------
    >>> read_number("0.5"), read_number("0.1"), read_number("123456789012345678901")
    (1/2, 0.100000000000000, 1.23456789012346e+20)
    """
    if token.isdigit() and len(token) < 20 and int(token) <= LARGEST_INTEGER:
        return Integer(int(token))
    value = float(token)
    is_zero = not token.lower().split("e")[0].strip("0.")
    if math.isinf(value) or (value == 0.0 and not is_zero):
        raise ValueError(describe_failure(Float(value)))
    return tidy_number(Float(value))


def tidy_number(number: Any) -> Any:
    """Return the number as `read_number` would have read it."""
    if number.is_Float:
        nearest = Float(float(number))  # SymPy's exponents have no bounds
        numerator, denominator = float(number).as_integer_ratio()
        if denominator <= LARGEST_DENOMINATOR and abs(numerator) <= LARGEST_INTEGER:
            return Rational(numerator, denominator)
        return number if nearest == number else nearest
    if max(abs(number.p), number.q) > LARGEST_INTEGER:
        return Float(number.p / number.q)
    return number


def describe_failure(number: Any) -> str:
    """Say why an expression without symbols is no finite real number."""
    if number.has(sympy.zoo):
        return "This is infinite, like 1/0 or log(0)."
    if number.has(sympy.nan):
        return "This is undefined, like 0/0."
    if not number.is_Number and math.isnan(constant_value(number)):
        return "This is not real, like sqrt(-1) or log(-1)."
    return "This is beyond the range of floats, about 1e-308 to 1e308."


def constant_value(expression: Any) -> float:
    """Value of an expression without symbols, as floats give it; NaN if it is not real.

    Not by SymPy's ``evalf``, which raises its precision without bound for sin(exp(700)).

    Examples
    --------
    >>> round(constant_value(sympy.sqrt(2) * sympy.pi), 3)
    4.443
    """
    if expression.is_Integer and abs(expression) >= 2**1024:
        return math.inf  # where float() would raise
    if expression.is_Rational or expression.is_Float or expression.is_NumberSymbol:
        return float(expression)
    arguments = [constant_value(argument) for argument in expression.args]
    with np.errstate(all="ignore"):
        if expression.is_Add:
            return math.fsum(arguments) if all(map(math.isfinite, arguments)) else math.nan
        if expression.is_Mul:
            return math.prod(arguments)
        if expression.is_Pow:
            return float(np.power(arguments[0], arguments[1]))
        name = function_rows().get(expression.func)
        if name is not None and len(arguments) == OPERATORS[name].arity:
            return float(OPERATORS[name].value(*arguments))
    return math.nan
