"""The operators of Section 2.1: one row each, and how a row follows from a form in SymPy."""

import inspect
import keyword
import math
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    MutableMapping,
    Sequence,
    ValuesView,
)
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pytensor.tensor as pt
import sympy
from sympy.printing.lambdarepr import LambdaPrinter

from pmsr.threads import ONE_AT_A_TIME

# Any: SymPy and PyTensor forms take and return expressions of libraries without common types.


@dataclass(frozen=True)
class Operator:
    """One row of the table: an operator in every language that pmsr speaks.

    Parameters
    ----------
    name
        How the operator is written in an equation: ``"+"``, ``"sin"``.
    arity
        1 or 2.
    sympy
        From SymPy arguments to a SymPy expression; for a function, the SymPy class itself.
    pytensor
        From PyTensor arguments to a PyTensor expression.
    value
        Scalar function of one or two floats that Numba can compile; NaN outside its domain.
    derivative
        Scalar function of the same floats and the value: the derivative by the argument, or for
        arity 2 the pair of derivatives.
    form
        The SymPy expression, in a and b, from which all of this was derived; None if it was not.

    Examples
    --------
    >>> float(OPERATORS["sqrt"].value(4.0))
    2.0
    """

    name: str
    arity: int
    sympy: Callable[..., Any]
    pytensor: Callable[..., Any]
    value: Callable[..., float]
    derivative: Callable[..., Any]
    form: Any = None


def _row(*columns: Any) -> Operator:
    return Operator(*columns)


class Table(MutableMapping[str, Operator]):
    """Rows by name, in order; a row may be added while other threads read and compute.

    Attributes
    ----------
    fingerprint
        Digest of the rows' names and scalar functions.
    """

    def __init__(self, rows: Iterable[Operator]) -> None:
        # Never changed, only replaced: a dictionary must not grow while somebody walks along it.
        self._rows = {row.name: row for row in rows}
        self.fingerprint = digest_rows(self._rows.values())

    def __setitem__(self, name: str, row: Operator) -> None:
        with ONE_AT_A_TIME:
            self._replace({**self._rows, name: row})

    def __delitem__(self, name: str) -> None:
        with ONE_AT_A_TIME:
            self._replace({key: row for key, row in self._rows.items() if key != name})

    def _replace(self, rows: dict[str, Operator]) -> None:
        # First the fingerprint: once a row can be used, loops without it must not pass for new.
        self.fingerprint = digest_rows(rows.values())
        self._rows = rows

    def __getitem__(self, name: str) -> Operator:
        return self._rows[name]

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def keys(self) -> KeysView[str]:
        """Return the names of now."""
        return self._rows.keys()

    def values(self) -> ValuesView[Operator]:
        """Return the rows of now."""
        return self._rows.values()

    def items(self) -> ItemsView[str, Operator]:
        """Return the names and rows of now."""
        return self._rows.items()


def digest_rows(rows: Iterable[Operator]) -> int:
    """Return a digest of names and scalar functions."""
    digest = blake2b(digest_size=7)
    for row in rows:
        digest.update(f"{row.name}/{row.arity}".encode())
        for function in (row.value, row.derivative):
            code = function.__code__
            digest.update(code.co_code)
            digest.update(repr((code.co_consts, code.co_names)).encode())
    return int.from_bytes(digest.digest(), "big")


OPERATORS = Table(
    (
        _row("+", 2, sympy.Add, pt.add, lambda a, b: a + b, lambda a, b, v: (1.0, 1.0)),
        _row("-", 2, lambda a, b: a - b, pt.sub, lambda a, b: a - b, lambda a, b, v: (1.0, -1.0)),
        _row("*", 2, sympy.Mul, pt.mul, lambda a, b: a * b, lambda a, b, v: (b, a)),
        _row(
            "/",
            2,
            lambda a, b: a / b,
            pt.true_div,
            lambda a, b: a / b,
            lambda a, b, v: (1.0 / b, -v / b),
        ),
        _row(
            "pow",
            2,
            sympy.Pow,
            pt.pow,
            lambda a, b: a**b,
            lambda a, b, v: (b * a ** (b - 1.0), v * np.log(a)),
        ),
        _row("sqrt", 1, sympy.sqrt, pt.sqrt, lambda a: np.sqrt(a), lambda a, v: 0.5 / v),
        _row("exp", 1, sympy.exp, pt.exp, lambda a: np.exp(a), lambda a, v: v),
        _row("log", 1, sympy.log, pt.log, lambda a: np.log(a), lambda a, v: 1.0 / a),
        _row("sin", 1, sympy.sin, pt.sin, lambda a: np.sin(a), lambda a, v: np.cos(a)),
        _row("cos", 1, sympy.cos, pt.cos, lambda a: np.cos(a), lambda a, v: -np.sin(a)),
        _row("tan", 1, sympy.tan, pt.tan, lambda a: np.tan(a), lambda a, v: 1.0 + v * v),
        _row("tanh", 1, sympy.tanh, pt.tanh, lambda a: np.tanh(a), lambda a, v: 1.0 - v * v),
        _row("abs", 1, sympy.Abs, pt.abs, lambda a: abs(a), lambda a, v: np.sign(a)),
    )
)

# Node codes of a program below the first operator: leaves, and the integer power, whose second
# entry is the exponent itself and not a node (so that negative bases stay differentiable).
VARIABLE, PARAMETER, LITERAL, POWER = range(4)
FIRST_OPERATOR = 4


def operator_code(name: str) -> int:
    """Return the node code of an operator: its place in the table.

    Examples
    --------
    >>> operator_code("+")
    4
    """
    return FIRST_OPERATOR + list(OPERATORS).index(name)


def add_operator(operator: Operator | str, form: Callable[..., Any] | None = None) -> None:
    """Add a row to the table; equations may use it from now on.

    Its value and derivative are compiled at the next evaluation; all else stays compiled.

    Parameters
    ----------
    operator
        A row whose name is an identifier that is not taken; or the name alone.
    form
        With a name: a function from one or two SymPy arguments to a SymPy expression, such as
        ``lambda x: sympy.sin(x)/x``. Value, derivative and PyTensor form are derived from it. Where
        a form of one argument is 0/0 but has a limit, as here at 0, it is that; elsewhere what is
        not defined is not a number.

    Examples
    --------
    >>> add_operator(OPERATORS["sin"])
    Traceback (most recent call last):
        ...
    ValueError: Operator 'sin' exists already. Choose another name.
    """
    if isinstance(operator, str) and callable(form):
        _check_name(operator)
        operator = derive_operator(operator, form)
    if not isinstance(operator, Operator):
        raise ValueError(
            f"A row must be an Operator, got {operator!r}. Or give a name and its form: "
            'add_operator("sinc", lambda x: sympy.sin(x)/x).'
        )
    _check_name(operator.name)
    for function in (operator.value, operator.derivative):
        if not hasattr(function, "__code__"):
            raise ValueError(
                f"value and derivative must be Python functions, got {function!r}. Wrap it: "
                "lambda a: math.sinh(a)."
            )
    if operator.arity not in (1, 2):
        raise ValueError(f"arity must be 1 or 2, got {operator.arity!r}.")
    _check_derivative(operator)
    with ONE_AT_A_TIME:
        _check_name(operator.name)  # another thread may have been faster
        OPERATORS[operator.name] = operator


def derive_operator(name: str, form: Callable[..., Any]) -> Operator:
    """Return the row of an operator whose value and derivative follow from its SymPy form.

    Where a form in one argument is 0/0 but has a limit, value and derivative are those of its
    series.

    Examples
    --------
    >>> row = derive_operator("sinc", lambda x: sympy.sin(x) / x)
    >>> round(row.value(2.0), 4), round(row.derivative(2.0, row.value(2.0)), 4)
    (0.4546, -0.4354)
    >>> row.value(0.0), row.derivative(0.0, 1.0)
    (1.0, 0.0)
    """
    arity = _count_arguments(name, form)
    symbols = sympy.symbols("a b", real=True)[:arity]
    try:
        expression = sympy.sympify(form(*symbols)).doit()
    except (TypeError, AttributeError, ArithmeticError, ValueError, NameError) as error:
        raise ValueError(
            f"The form of {name!r} must be made of SymPy functions, such as sympy.sin: {error}."
        ) from None
    if not isinstance(expression, sympy.Expr) or not expression.free_symbols == set(symbols):
        raise ValueError(
            f"The form of {name!r} must be a SymPy expression in its arguments, got {expression}."
        )
    if expression.is_extended_real is False or expression.has(sympy.I):
        raise ValueError(f"The form of {name!r} is not real: {expression}.")
    # SymPy's own is in pieces, whose slope is all rounding near 0.
    expression = expression.replace(sympy.sinc, lambda x: sympy.sin(x) / x)
    if expression.has(*_PIECES):
        expression = sympy.piecewise_fold(expression.rewrite(_PIECES, sympy.Piecewise))
    gaps = find_gaps(expression, symbols[0]) if arity == 1 else []
    whole = _with_series(expression, symbols[0], gaps)
    slopes = [_source(name, whole.diff(symbol)) for symbol in symbols]
    arguments = ", ".join(map(str, symbols))
    value, derivative = (
        eval(f"lambda {names}: {body}", {"math": math})
        for names, body in (
            (arguments, _source(name, whole)),
            (f"{arguments}, v", slopes[0] if arity == 1 else f"({slopes[0]}, {slopes[1]})"),
        )
    )
    tensor = _tensor_form(expression, symbols, gaps)
    try:
        tensor(*(pt.dscalar() for _ in symbols))
    except (TypeError, NameError, AttributeError, ValueError) as error:
        raise ValueError(
            f"The form of {name!r} cannot be written for PyTensor ({error}). Give all columns: "
            "pmsr.Operator(name, arity, sympy, pytensor, value, derivative)."
        ) from None
    function = sympy.Function(name, real=True)
    return Operator(name, arity, function, tensor, value, derivative, expression)


# What SymPy differentiates to Dirac's delta, or cannot write for PyTensor one inside another.
_PIECES = (sympy.Max, sympy.Min, sympy.Heaviside, sympy.sign)


def _count_arguments(name: str, form: Callable[..., Any]) -> int:
    """Return the number of a form's arguments; what has a default is a constant of the form."""
    listed = inspect.signature(form).parameters.values()
    needed = [one for one in listed if one.default is one.empty]
    is_open = any(
        one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in needed
    )
    if is_open or len(needed) not in (1, 2):
        raise ValueError(
            f"The form of {name!r} must have 1 or 2 arguments, got {', '.join(map(str, listed))}. "
            "Write lambda x: ... or lambda x, y: ..."
        )
    return len(needed)


def write_out(expression: Any, *, near_gaps: bool = False) -> Any:
    """Return a SymPy expression in which operators that were derived are their forms.

    Parameters
    ----------
    expression
        In the operators of the table.
    near_gaps
        Whether a form has its series where it is 0/0, for who computes with it.

    Examples
    --------
    >>> x = sympy.Symbol("x", real=True)
    >>> write_out(OPERATORS["sin"].sympy(x))
    sin(x)
    """
    for row in added_operators():
        if row.form is None or not expression.has(row.sympy):
            continue
        symbols = sympy.symbols("a b", real=True)[: row.arity]
        form = row.form
        if near_gaps and row.arity == 1:
            form = _with_series(form, symbols[0], find_gaps(form, symbols[0]))
        # From within: an argument may hold the operator too.
        expression = expression.replace(
            row.sympy,
            lambda *given, form=form, own=symbols: form.xreplace(
                dict(zip(own, given, strict=True))
            ),
        )
    return expression


@dataclass(frozen=True)
class Gap:
    """A place where a form is 0/0, and the series that holds within a radius of it."""

    place: Any
    radius: float
    series: Any


def find_gaps(expression: Any, symbol: Any) -> list[Gap]:
    """Find the places at which a form is not defined, but has a limit and a series."""
    try:
        places = sympy.singularities(expression, symbol, sympy.S.Reals)
    except (NotImplementedError, ValueError, TypeError):
        places = sympy.S.EmptySet
    # What SymPy cannot list, or lists without end, is looked at where it matters most.
    listed = list(places) if isinstance(places, sympy.FiniteSet) else [sympy.S.Zero]
    gaps = []
    for place in listed:
        if expression.subs(symbol, place).is_finite:
            continue
        try:
            series = sympy.series(expression, symbol, place, _TERMS).removeO()
        except (NotImplementedError, ValueError, TypeError, sympy.PoleError):
            continue
        radius = _radius(expression, series, symbol, place)
        if radius is not None:
            gaps.append(Gap(place, radius, sympy.N(series, 17)))
    return gaps


def _radius(expression: Any, series: Any, symbol: Any, place: Any) -> float | None:
    """Return the distance up to which a series is as good as its function, or None."""
    if not series.is_polynomial(symbol):
        return None
    for radius in (0.03, 0.01, 1e-3, 1e-4, 1e-5):
        errors = []
        for sign in (1, -1):
            at = {symbol: place + sign * sympy.Float(radius, 50)}
            for one, other in (
                (expression, series),
                (expression.diff(symbol), series.diff(symbol)),
            ):
                exact = one.evalf(50, subs=at)
                error = abs(exact - other.evalf(50, subs=at)) / (1 + abs(exact))
                errors.append(float(error) if error.is_number and error.is_real else math.inf)
        if max(errors) < 1e-13:
            return radius
    return None


_TERMS = 10  # of a series


def _with_series(expression: Any, symbol: Any, gaps: Sequence[Gap]) -> Any:
    """Return a form with its series at the gaps."""
    if not gaps:
        return expression
    near = [(gap.series, sympy.Abs(symbol - gap.place) < gap.radius) for gap in gaps]
    return sympy.Piecewise(*near, (expression, True))


class _TensorPrinter(LambdaPrinter):
    """Writes forms in functions of PyTensor, whose comparisons are no Python conditions."""

    def _print_Piecewise(self, expr: Any) -> str:
        text = "nan"
        for value, condition in reversed(expr.args):
            own = self._print(value)
            taken = condition == sympy.true
            text = own if taken else f"switch({self._print(condition)}, {own}, {text})"
        return text

    def _print_Relational(self, expr: Any) -> str:
        names = {"==": "eq", "!=": "neq", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
        return f"{names[expr.rel_op]}({self._print(expr.lhs)}, {self._print(expr.rhs)})"

    def _print_And(self, expr: Any) -> str:
        return self._joined("and_", expr.args)

    def _print_Or(self, expr: Any) -> str:
        return self._joined("or_", expr.args)

    def _print_Not(self, expr: Any) -> str:
        return f"invert({self._print(expr.args[0])})"

    def _joined(self, name: str, parts: Sequence[Any]) -> str:
        text = self._print(parts[0])
        for part in parts[1:]:
            text = f"{name}({text}, {self._print(part)})"
        return text


def _tensor_form(
    expression: Any, symbols: Sequence[Any], gaps: Sequence[Gap]
) -> Callable[..., Any]:
    """Return a form as a function of PyTensor variables."""

    def written(form: Any) -> Callable[..., Any]:
        # Names without their modules: `math` would be one of PyTensor's.
        printer = _TensorPrinter({"fully_qualified_modules": False})
        made: Callable[..., Any] = sympy.lambdify(
            symbols, form, modules=[_PYTENSOR_NAMES, vars(pt)], printer=printer
        )
        return made

    general = written(expression)
    if not gaps:
        return general
    series = [written(gap.series) for gap in gaps]
    limits = [(float(gap.place), gap.radius) for gap in gaps]

    def tensor(a: Any) -> Any:
        # The form is kept away from its gaps: a derivative that is not a number stays none when it
        # is multiplied by 0.
        near = [pt.lt(pt.abs(a - place), radius) for place, radius in limits]
        away = a
        for is_near, (place, radius) in zip(near, limits, strict=True):
            away = pt.switch(is_near, place + radius, away)
        value = general(away)
        for is_near, one in zip(near, series, strict=True):
            value = pt.switch(is_near, one(a), value)
        return value

    return tensor


# Where PyTensor's name is not SymPy's.
_PYTENSOR_NAMES = {
    "nan": np.nan,
    "pi": math.pi,
    "e": math.e,
    "asin": pt.arcsin,
    "acos": pt.arccos,
    "atan": pt.arctan,
    "asinh": pt.arcsinh,
    "acosh": pt.arccosh,
    "atanh": pt.arctanh,
    "atan2": pt.arctan2,
    "Abs": pt.abs,
    "sign": pt.sign,
}


def _source(name: str, expression: Any) -> str:
    """Return Python source of an expression, in functions of `math`, which Numba compiles."""
    try:
        return str(sympy.pycode(expression, strict=True))
    except (NotImplementedError, ValueError):  # the latter for a derivative that it does not know
        raise ValueError(
            f"{expression}, a part of the form of {name!r}, has no counterpart in Python's math. "
            "Give all columns: pmsr.Operator(name, arity, sympy, pytensor, value, derivative)."
        ) from None


def _check_name(name: str) -> None:
    """Refuse a name that is taken, or that would not be read as a function's."""
    if name in OPERATORS:
        raise ValueError(f"Operator {name!r} exists already. Choose another name.")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(
            f"An operator's name must be an identifier, got {name!r}. Write it as a function, such "
            "as 'sinc'."
        )
    if name in ("pi", "e") or name[-1].isdigit():
        raise ValueError(f"{name!r} reads as a number or a parameter. Choose another name.")


def _check_derivative(operator: Operator) -> None:
    """Compare a row's derivative with differences of its value, where both are finite."""
    step = 1e-6
    for place in ((0.3, 1.2), (1.7, 0.4), (2.9, 1.5)):
        arguments = place[: operator.arity]
        try:
            derivatives = np.atleast_1d(operator.derivative(*arguments, operator.value(*arguments)))
        except (ValueError, ArithmeticError):  # outside its domain, says `math`
            continue
        for k, derivative in enumerate(derivatives):
            shift = np.eye(operator.arity)[k] * step
            up, down = (operator.value(*(np.array(arguments) + s)) for s in (shift, -shift))
            difference = (up - down) / (2.0 * step)
            if abs(derivative - difference) > 1e-4 * (1.0 + abs(difference)):
                raise ValueError(
                    f"The derivative of {operator.name!r} at {arguments} is "
                    f"{float(derivative):.6g}, differences of its value give {difference:.6g}. "
                    "Correct the row."
                )


def table_fingerprint() -> int:
    """Digest of the table's names and scalar functions, which compiled loops carry with them.

    A compiled loop on disk knows nothing of later changes to the table; the fingerprint that it
    returns tells whether it was compiled for the rows of today.
    """
    return OPERATORS.fingerprint


BUILT_IN = table_fingerprint()  # of the rows above, before a user adds any
BUILT_IN_ROWS = tuple(OPERATORS.values())
_BUILT_IN_NAMES = tuple(OPERATORS)


def added_operators() -> tuple[Operator, ...]:
    """Rows that a user added, in order: what another process must be told."""
    return tuple(row for name, row in OPERATORS.items() if name not in _BUILT_IN_NAMES)


def take_over(added: tuple[Operator, ...]) -> None:
    """Add the rows of another process, checked there, unless they are here already."""
    with ONE_AT_A_TIME:
        for row in added:
            if row.name not in OPERATORS:
                OPERATORS[row.name] = row
