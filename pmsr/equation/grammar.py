"""Equations as text: a parser from text to SymPy that executes nothing, and the writer back.

The grammar is Python's arithmetic: ``+ - * /``, powers as ``**`` or ``^`` (right-associative,
tighter than a sign), functions by the rows of the operator table, numbers, names, and names in
backquotes (a backquote in a name is doubled).
"""

import difflib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import sympy
from sympy import Add, Integer, Mul

from pmsr.equation.algebra import (
    TooLarge,
    apply_operator,
    check_size,
    function_names,
    function_rows,
    power,
    read_number,
)
from pmsr.equation.operators import OPERATORS

# Any: SymPy's constructors are untyped; every Any below is a SymPy expression.

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[^\W\d]\w*)"
    r"|`(?P<quoted>(?:[^`]|``)+)`|(?P<symbol>\*\*|[-+*/^(),])|(?P<end>\Z))"
)

# SymPy moves a sign into or out of these by the alphabet, which must not show in a key.
ODD: tuple[Any, ...] = (sympy.sin, sympy.tan, sympy.asin, sympy.atan, sympy.erf)
ODD += (sympy.sinh, sympy.tanh, sympy.asinh, sympy.atanh)
EVEN: tuple[Any, ...] = (sympy.cos, sympy.cosh, sympy.Abs)

Resolve = Callable[[str, bool], Any]


def parse(text: str, resolve: Resolve, *, max_depth: int = 200) -> Any:
    """Return the SymPy expression that a text denotes.

    Parameters
    ----------
    text
        The right-hand side of an equation.
    resolve
        From a name, and whether it was in backquotes, to what it stands for; a ``ValueError`` that
        it raises is shown at the place of the name.
    max_depth
        How deep brackets, calls and exponents may be nested; the parser and SymPy recurse.

    Examples
    --------
    >>> parse("2*H^2 + sqrt(H)/4", lambda name, is_quoted: sympy.Symbol(name, real=True))
    sqrt(H)/4 + 2*H**2
    """
    try:
        return _Parser(text, resolve, max_depth).read()
    except RecursionError:
        raise ValueError(f"The equation is nested too deeply: {text[:40]}...") from None


class _Parser:
    """A walk over the tokens of one text."""

    def __init__(self, text: str, resolve: Resolve, max_depth: int) -> None:
        self.text = text
        self.resolve = resolve
        self.max_depth = max_depth
        self.depth = 0
        self.next = 0  # where the token after the current one starts
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.next)
        if match is None:
            place = len(self.text) - len(self.text[self.next :].lstrip())
            hint = {"=": " Give the right-hand side only.", "`": " A backquote is not closed."}
            character = self.text[place]
            self.fail(f"Unexpected character {character!r}.{hint.get(character, '')}", place)
        self.kind = str(match.lastgroup)
        self.token = match[self.kind]
        self.place = match.end() - len(match[0].lstrip())
        self.next = match.end()

    def fail(self, message: str, place: int | None = None) -> NoReturn:
        """Raise the message with the text and a caret under the place."""
        raise ValueError(self.pointing(message, self.place if place is None else place))

    def pointing(self, message: str, place: int) -> str:
        start = max(0, place - 50)
        line = re.sub(r"\s", " ", self.text[start : place + 50])
        return f"{message}\n    {line}\n    {' ' * (place - start)}^"

    def expect(self, symbol: str) -> None:
        if self.kind != "symbol" or self.token != symbol:
            self.fail(f'Expected "{symbol}" or an operator.')
        self.advance()

    def fail_depth(self) -> NoReturn:
        self.fail(f"An equation may be nested {self.max_depth} deep; this goes deeper.")

    def at(self, *symbols: str) -> bool:
        return self.kind == "symbol" and self.token in symbols

    def read(self) -> Any:
        value = self.sum()
        if self.kind != "end":
            self.fail(
                'Unmatched ")".'
                if self.at(")")
                else 'Expected an operator, such as "*", or the end.'
            )
        return value

    # Sums and products are built in one piece: SymPy would otherwise multiply a number into the
    # first sum it meets, and 2*(x + 1)*y would depend on the order of writing.

    def sum(self) -> Any:
        place = self.place
        self.depth += 1
        if self.depth > self.max_depth:
            self.fail_depth()
        terms = [self.product()]
        while self.at("+", "-"):
            sign = Integer(-1 if self.token == "-" else 1)
            self.advance()
            terms.append(Mul(sign, self.product()))
        self.depth -= 1
        return terms[0] if len(terms) == 1 else self.checked(Add, terms, place)

    def product(self) -> Any:
        place = self.place
        factors = self.signed_power()
        while self.at("*", "/"):
            divide = self.token == "/"
            self.advance()
            right = self.place
            more = self.signed_power()
            factors += (
                [self.checked(power, [f, Integer(-1)], right) for f in more] if divide else more
            )
        return factors[0] if len(factors) == 1 else self.checked(Mul, factors, place)

    def signed_power(self) -> list[Any]:
        """Read signs, a base and perhaps exponents; return factors, of which -1 may be one."""
        chain = [(self.is_negative(), self.place, self.atom())]
        while self.at("**", "^"):
            self.advance()
            chain.append((self.is_negative(), self.place, self.atom()))
            if self.depth + len(chain) > self.max_depth + 2:
                self.fail_depth()
        negative, place, value = chain.pop()
        while chain:
            exponent = -value if negative else value
            negative, place, base = chain.pop()
            value = self.checked(power, [base, exponent], place)
        return [Integer(-1), value] if negative else [value]

    def is_negative(self) -> bool:
        negative = False
        while self.at("+", "-"):
            negative ^= self.token == "-"
            self.advance()
        return negative

    def atom(self) -> Any:
        kind, token, place = self.kind, self.token, self.place
        if kind == "number":
            self.advance()
            return self.checked(read_number, [token], place)
        if kind == "quoted":
            self.advance()
            return self.checked(self.resolve, [token.replace("``", "`"), True], place)
        if kind == "name":
            self.advance()
            if self.at("("):
                return self.call(token, place)
            return self.checked(self.resolve, [token, False], place)
        if self.at("("):
            self.advance()
            value = self.sum()
            self.expect(")")
            return value
        return self.fail('Expected a number, a name, a function or "(".')

    def call(self, name: str, place: int) -> Any:
        if name not in OPERATORS:
            functions = function_names()
            close = {"ln": ["log"]}.get(name) or difflib.get_close_matches(name, functions, n=1)
            hint = f"Did you mean {close[0]!r}? " if close else ""
            self.fail(
                f"Unknown function {name!r}. {hint}Available: {', '.join(functions)}. Write the "
                'product of a name and a bracket with "*".',
                place,
            )
        self.advance()
        arguments = [self.sum()]
        while self.at(","):
            self.advance()
            arguments.append(self.sum())
        self.expect(")")
        if len(arguments) != OPERATORS[name].arity:
            self.fail(
                f"{name} takes {OPERATORS[name].arity} argument(s), got {len(arguments)}.", place
            )
        return self.checked(apply_operator, [name, *arguments], place)

    def checked(self, function: Callable[..., Any], arguments: Sequence[Any], place: int) -> Any:
        """Call a function; an error, or a number beyond all floats, is shown at its place."""
        try:
            return check_size(function(*arguments))
        except TooLarge as error:
            raise TooLarge(self.pointing(str(error), place)) from None
        except ValueError as error:
            self.fail(str(error), place)


def quoted(name: str) -> str:
    """Return a name in backquotes.

    Examples
    --------
    >>> quoted("drop height [mm]")
    '`drop height [mm]`'
    """
    return "`" + name.replace("`", "``") + "`"


def nesting(text: str) -> int:
    """How deep `parse` finds a text nested that `write` has written.

    Examples
    --------
    >>> nesting("x + sin(2*(x + y))"), nesting("`height (mm)`")
    (3, 1)
    """
    depth = deepest = 1
    for bracket in re.findall(r"`[^`]*`|[()]", text):
        depth += {"(": 1, ")": -1}.get(bracket, 0)
        deepest = max(deepest, depth)
    return deepest


def without_quotes(text: str) -> str:
    """Return an equation for a reader: without backquotes around names that do not need them.

    Examples
    --------
    >>> without_quotes("c0*`H`/`drop height`")
    'c0*H/`drop height`'
    """
    return re.sub(r"`([^\W\d]\w*)`", r"\1", text)


SUM, PRODUCT, POWER, ATOM = range(4)  # how tightly a text binds
# The sign in front (1, -1, or 0 if either would do), the text behind it, and its binding.
_Written = tuple[int, str, int]


class _Memo(Protocol):
    """What is known of parts, by the part and whether its sign may be moved: like a dictionary."""

    def get(self, part: Any, /) -> _Written | None: ...
    def __setitem__(self, part: Any, written: _Written, /) -> None: ...


def write(
    expression: Any,
    names: Mapping[Any, str],
    *,
    leading: Collection[Any] = (),
    signless: Collection[Any] | None = None,
    memo: _Memo | None = None,
) -> str:
    """Return text that `parse` reads as the same expression.

    Parameters
    ----------
    expression
        A SymPy expression.
    names
        What to write for each symbol (and for ``sympy.pi``, if not ``pi``, and for ``sympy.E``, if
        not ``exp(1)``).
    leading
        Symbols that come first in their sums and products.
    signless
        If given, signs are written in one of several equal ways, chosen by the text alone: for
        ``x*(y - z)`` and ``-x*(z - y)``, or ``sin(y - z)`` and ``-sin(z - y)``. The symbols in
        this collection count as equal to their negatives.
    memo
        Texts that are known already.

    Examples
    --------
    >>> x, c0 = sympy.symbols("x c0", real=True)
    >>> write(1 - c0 / (2 * sympy.sqrt(x)), {x: "x", c0: "c0"})
    '1 - c0/(2*sqrt(x))'
    """
    writer = _Writer(names, leading, signless, {} if memo is None else memo)
    sign, text, _ = writer.write(expression)
    return _negated(sign, text)


def has_repeats(expression: Any, names: Mapping[Any, str], *, signless: Collection[Any]) -> bool:
    """Tell whether terms or factors of the expression are alike up to their signs.

    Examples
    --------
    >>> x, y = sympy.symbols("x y", real=True)
    >>> has_repeats((x - y) / (y - x), {x: "x", y: "y"}, signless=[])
    True
    """
    return _Writer(names, (), signless, {}).has_repeats(expression)


class _Writer:
    """A walk down one expression."""

    def __init__(
        self,
        names: Mapping[Any, str],
        leading: Collection[Any],
        signless: Collection[Any] | None,
        memo: _Memo,
    ) -> None:
        self.names = names
        self.leading = leading
        self.first = {names[symbol] for symbol in leading}
        self.loose = signless is not None
        self.signless = signless or ()
        self.memo = memo
        self.functions = function_rows()

    def write(self, e: Any, flip: bool = False) -> _Written:
        """Write e; `flip` says that its sign may be moved out if signs are loose."""
        known = self.memo.get((e, flip))
        if known is not None:
            return known
        if e.is_Symbol:
            return 0 if e in self.signless else 1, self.names[e], ATOM
        if e.is_Add:
            written = self.sum(e, flip and self.loose)
        elif e.is_Mul:
            written = self.product(e.args)
        elif e.is_Pow:
            written = self.product((e,)) if _is_negative(e.exp) else self.power(e.base, e.exp)
        elif e.is_Function:
            written = self.function(e)
        else:
            written = self.number(e)
        self.memo[e, flip] = written
        return written

    def has_repeats(self, e: Any) -> bool:
        parts: list[Any] = []
        if e.is_Mul:
            parts = [f.base if f.is_Pow and f.exp.is_Integer else f for f in e.args]
        elif e.is_Add:
            parts = [Mul(*(f for f in Mul.make_args(t) if not f.is_number)) for t in e.args]
        texts = [self.write(part, flip=True)[1] for part in parts]
        return len(set(texts)) < len(texts) or any(map(self.has_repeats, e.args))

    def number(self, e: Any) -> _Written:
        if e.is_Rational:
            sign = -1 if e.p < 0 else 1
            if e.q == 1:
                return sign, str(abs(e.p)), ATOM
            return sign, f"{abs(e.p)}/{e.q}", PRODUCT
        if e is sympy.S.Exp1:
            return 1, self.names.get(e, "exp(1)"), ATOM
        if e is sympy.S.Pi:
            return 1, self.names.get(e, "pi"), ATOM
        value = float(e)
        return -1 if value < 0 else 1, repr(abs(value)), ATOM

    def sum(self, e: Any, flip: bool) -> _Written:
        parts = []
        for term in e.args:
            sign, text, _ = self.write(term)
            parts.append((sign, text, 0 if term.is_number else 1 if text in self.first else 2))
        text = _joined(parts)
        if not flip:
            return 1, text, SUM
        other = _joined([(-sign, part, rank) for sign, part, rank in parts])
        if other == text:
            return 0, text, SUM
        sign, _, text = min((1, text.count("-"), text), (-1, other.count("-"), other), key=_second)
        return sign, text, SUM

    def product(self, factors: Sequence[Any]) -> _Written:
        sign = 1
        above: list[tuple[int, int, str, int]] = []
        below: list[tuple[int, int, str, int]] = []
        p = q = 1
        for factor in factors:
            if factor.is_Rational:
                p, q = int(factor.p), int(factor.q)
                continue
            inverse = factor.is_Pow and _is_negative(factor.exp)
            own_sign, text, binding = (
                self.power(factor.base, -factor.exp) if inverse else self.write(factor, flip=True)
            )
            sign *= own_sign
            base = factor.base if factor.is_Pow else factor
            rank = 0 if factor.is_number else 1 if base in self.leading else 2
            (below if inverse else above).append((rank, len(text), text, binding))
        # Not c0/(2*(x + y)): the 2 would be multiplied into the sum on reading.
        lead = q != 1 and len(below) == 1 and below[0][3] == SUM
        if lead or abs(p) != 1:
            text = f"{abs(p)}/{q}" if lead else str(abs(p))
            above.append((0, 0, text, ATOM))
        if q != 1 and not lead:
            below.append((0, 0, str(q), ATOM))
        top = "*".join(_in_brackets(part, PRODUCT) for part in sorted(above)) or "1"
        if below:
            bottom = "*".join(_in_brackets(part, POWER) for part in sorted(below))
            top += f"/({bottom})" if len(below) > 1 else f"/{bottom}"
        binding = above[0][3] if len(above) == 1 and not below else PRODUCT
        return -sign if p < 0 else sign, top, binding

    def power(self, base: Any, exponent: Any) -> _Written:
        if exponent == 1:
            return self.write(base, flip=True)
        if exponent == sympy.S.Half:
            return 1, f"sqrt({self.argument(base)})", ATOM
        if exponent.is_Integer and self.loose:
            sign, text, binding = self.write(base, flip=True)
            text = text if binding == ATOM else f"({text})"
            return sign if exponent.p % 2 else 1, f"{text}**{exponent}", POWER
        return 1, f"{self.tight(base)}**{self.tight(exponent)}", POWER

    def tight(self, e: Any) -> str:
        sign, text, binding = self.write(e)
        return text if sign >= 0 and binding == ATOM else f"({_negated(sign, text)})"

    def argument(self, e: Any) -> str:
        sign, text, _ = self.write(e)
        return _negated(sign, text)

    def function(self, e: Any) -> _Written:
        name = self.functions.get(e.func, e.func.__name__)
        if self.loose and isinstance(e, ODD + EVEN):
            sign, text, _ = self.write(e.args[0], flip=True)
            return sign if isinstance(e, ODD) else 1, f"{name}({text})", ATOM
        return 1, f"{name}({', '.join(self.argument(a) for a in e.args)})", ATOM


def _is_negative(exponent: Any) -> bool:
    return bool(exponent.is_Number and exponent < 0)


def _negated(sign: int, text: str) -> str:
    return "-" + text if sign < 0 else text


def _second(choice: tuple[int, int, str]) -> tuple[int, str]:
    return choice[1:]


def _in_brackets(part: tuple[int, int, str, int], binding: int) -> str:
    return f"({part[2]})" if part[3] < binding else part[2]


def _joined(parts: Sequence[tuple[int, str, int]]) -> str:
    ordered = sorted((sign < 0, rank, len(text), text) for sign, text, rank in parts)
    joined = "".join(f"{' - ' if negative else ' + '}{text}" for negative, *_, text in ordered)
    return joined[3:] if joined.startswith(" + ") else "-" + joined[3:]
