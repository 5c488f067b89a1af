"""Equations typeset for a web page: MathML, which browsers draw without any script.

SymPy's own MathML is not used: it puts names into the page as they are, so that a column called
``<script>`` would run, and it writes factors in the order of the alphabet.
"""

import re
from collections.abc import Mapping
from html import escape
from typing import NamedTuple

from pmsr.equation.expression import Equation

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[^\W\d]\w*)"
    r"|`(?P<quoted>(?:[^`]|``)+)`|(?P<symbol>\*\*|[-+*/^(),])|(?P<end>\s*\Z))"
)
_GREEK = dict(
    zip(
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
        "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi "
        "Omega".split(),
        "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ",
        strict=True,
    )
)

SUM, PRODUCT, POWER, ATOM = range(4)  # how tightly a part binds


class _Part(NamedTuple):
    """A piece of MathML, how tightly it binds, and the kind of sign it begins and ends with."""

    markup: str
    binding: int
    starts: str = "other"
    ends: str = "other"


def to_mathml(
    equation: Equation,
    target: str | None = None,
    *,
    display: bool = False,
    symbols: Mapping[str, str] | None = None,
) -> str:
    """Return an equation as a ``math`` element, in the order in which it was written.

    Parameters
    ----------
    equation
        The right-hand side.
    target
        Name of the left-hand side; None for the right-hand side alone.
    display
        Whether it stands on a line of its own, with large fractions.
    symbols
        What names are typeset as, see :func:`pmsr.equation.symbols.short_symbols`; by default as
        they are.

    Returns
    -------
    str
        Markup that is safe to put into a page: every name is escaped.

    Examples
    --------
    >>> to_mathml(Equation("c0*sqrt(H)", ["H"]), "D")  # doctest: +NORMALIZE_WHITESPACE
    '<math><mi>D</mi><mo>=</mo><mrow><msub><mi>c</mi><mn>0</mn></msub><mo>&#x2062;</mo><msqrt><mi>H</mi></msqrt></mrow></math>'
    """
    symbols = symbols or {}
    kind = ' display="block"' if display else ""
    right = _Reader(equation.text, symbols).read()
    return f"<math{kind}>{_left(target, symbols)}{right}</math>"


def to_mathml_lines(
    equation: Equation, target: str | None = None, *, symbols: Mapping[str, str] | None = None
) -> list[str]:
    """Return an equation as several ``math`` elements, between which a line may be broken.

    Browsers do not break the lines of one element. A sum is taken apart before its signs.

    Examples
    --------
    >>> len(to_mathml_lines(Equation("c0 + c1*x - c2*x**2", ["x"]), "y"))
    3
    """
    symbols = symbols or {}
    terms = _Reader(equation.text, symbols).terms()
    # A sign that begins an element would be taken for that of a number.
    terms = [terms[0], *(term.replace("<mo>", '<mo form="infix">', 1) for term in terms[1:])]
    terms[0] = _left(target, symbols) + terms[0]
    return [f'<math><mstyle displaystyle="true">{term}</mstyle></math>' for term in terms]


def _left(target: str | None, symbols: Mapping[str, str]) -> str:
    if target is None:
        return ""
    return f"{name_to_mathml(symbols.get(target, target))}<mo>=</mo>"


def name_to_mathml(name: str) -> str:
    """Return a name: Greek letters by name, digits and what follows _ as a subscript.

    Examples
    --------
    >>> name_to_mathml("theta_2"), name_to_mathml("speed [m/s]")
    ('<msub><mi>θ</mi><mn>2</mn></msub>', '<mtext>speed [m/s]</mtext>')
    """
    match = re.fullmatch(r"([^\W\d_]+)_?(\w*)", name)
    if match is None:
        return f"<mtext>{escape(name)}</mtext>"
    word = f"<mi>{_GREEK.get(match[1], match[1])}</mi>"
    if not match[2]:
        return word
    tag = "mn" if match[2].isdecimal() else "mi" if len(match[2]) == 1 else "mtext"
    return f"<msub>{word}<{tag}>{escape(match[2])}</{tag}></msub>"


class _Reader:
    """A walk over the tokens of a text that `Equation` has accepted."""

    def __init__(self, text: str, symbols: Mapping[str, str]) -> None:
        self.text = text
        self.symbols = symbols
        self.next = 0
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.next)
        if match is None:
            raise ValueError(f"Cannot typeset {self.text!r}.")
        self.kind = str(match.lastgroup)
        self.token = match[self.kind]
        self.next = match.end()

    def at(self, *symbols: str) -> bool:
        return self.kind == "symbol" and self.token in symbols

    def read(self) -> str:
        return self.sum().markup

    def terms(self) -> list[str]:
        """Return the terms of the outermost sum, each but the first with its sign."""
        return self._summands()[0]

    def sum(self) -> _Part:
        terms, first = self._summands()
        if len(terms) == 1:
            return first
        return _Part(f"<mrow>{''.join(terms)}</mrow>", SUM, first.starts)

    def _summands(self) -> tuple[list[str], _Part]:
        first = self.product()
        terms = [first.markup]
        while self.at("+", "-"):
            is_minus = self.token == "-"
            self.advance()
            term = self.product()
            # x - (t - H) needs its brackets, and so does x + (-t).
            keep = term.starts == "sign" or (is_minus and term.binding == SUM)
            shown = _bracketed(term.markup) if keep else term.markup
            terms.append(f"<mo>{'&#x2212;' if is_minus else '+'}</mo>{shown}")
        return terms, first

    def product(self) -> _Part:
        sign, first = self.signed_power()
        above: list[_Part] = [first]
        below: list[_Part] = []
        while self.at("*", "/"):
            place = below if self.token == "/" else above
            self.advance()
            minus, factor = self.signed_power()
            place.append(_Part(_negative(factor), SUM) if minus else factor)
        if len(above) > 1 and above[0].markup == "<mn>1</mn>":
            del above[0]
        part = _times(above)
        if below:
            bottom = below[0] if len(below) == 1 else _times(below)
            part = _Part(f"<mfrac>{part.markup}{bottom.markup}</mfrac>", PRODUCT)
        return _Part(_negative(part), PRODUCT, "sign", part.ends) if sign else part

    def signed_power(self) -> tuple[bool, _Part]:
        sign = False
        while self.at("+", "-"):
            sign ^= self.token == "-"
            self.advance()
        base = self.atom()
        if not self.at("**", "^"):
            return sign, base
        self.advance()
        minus, exponent = self.signed_power()
        return sign, _power(base, _negative(exponent) if minus else exponent.markup)

    def atom(self) -> _Part:
        kind, token = self.kind, self.token
        self.advance()
        if kind == "number":
            return _number(token)
        if kind == "quoted":
            return self.named(token.replace("``", "`"))
        if kind == "name":
            return self.call(token) if self.at("(") else self.named(token)
        part = self.sum()
        self.advance()  # the closing bracket
        return part

    def named(self, name: str) -> _Part:
        return _named(self.symbols.get(name, name))

    def call(self, name: str) -> _Part:
        self.advance()
        arguments = [self.sum()]
        while self.at(","):
            self.advance()
            arguments.append(self.sum())
        self.advance()  # the closing bracket
        inner = arguments[0].markup
        if name == "sqrt":
            return _Part(f"<msqrt>{inner}</msqrt>", ATOM)
        if name == "abs":
            return _Part(f"<mrow><mo>|</mo>{inner}<mo>|</mo></mrow>", ATOM)
        if name == "exp":
            return _Part(f"<msup><mi>e</mi>{inner}</msup>", POWER)
        if name == "pow":
            return _power(arguments[0], arguments[1].markup)
        inner = "<mo>,</mo>".join(argument.markup for argument in arguments)
        called = f"<mi>{escape(name)}</mi><mo>&#x2061;</mo>{_bracketed(inner)}"
        return _Part(f"<mrow>{called}</mrow>", ATOM, "word", "other")


def _number(token: str) -> _Part:
    mantissa, _, exponent = token.lower().partition("e")
    if not exponent:
        return _Part(f"<mn>{token}</mn>", ATOM, "digit", "digit")
    power = str(int(exponent)).replace("-", "\N{MINUS SIGN}")
    ten = f"<msup><mn>10</mn><mn>{power}</mn></msup>"
    markup = f"<mrow><mn>{mantissa}</mn><mo>\N{MULTIPLICATION SIGN}</mo>{ten}</mrow>"
    return _Part(markup, PRODUCT, "digit", "digit")


def _named(name: str) -> _Part:
    word = re.match(r"[^\W\d_]+", name)
    is_letter = name in _GREEK or (word is not None and (len(word[0]) == 1 or word[0] in _GREEK))
    kind = "letter" if is_letter else "word"
    return _Part(name_to_mathml(name), ATOM, kind, kind)


def _times(factors: list[_Part]) -> _Part:
    """Write a product; a dot stands where two factors would run into one."""
    if len(factors) == 1:
        return factors[0]
    markup = ""
    for place, factor in enumerate(factors):
        if place:
            near = (factors[place - 1].ends, "other" if factor.binding == SUM else factor.starts)
            is_dot = "word" in near or near[1] == "digit"
            markup += f"<mo>{'&#x22C5;' if is_dot else '&#x2062;'}</mo>"
        markup += _bracketed(factor.markup) if factor.binding == SUM else factor.markup
    return _Part(f"<mrow>{markup}</mrow>", PRODUCT, factors[0].starts, factors[-1].ends)


def _power(base: _Part, exponent: str) -> _Part:
    # An exponent behind a name of several words would seem to belong to the last of them.
    is_tight = base.binding == ATOM and not base.markup.startswith("<mtext>")
    shown = base.markup if is_tight else _bracketed(base.markup)
    return _Part(f"<msup>{shown}{exponent}</msup>", POWER, base.starts)


def _negative(part: _Part) -> str:
    shown = _bracketed(part.markup) if part.binding == SUM else part.markup
    return f"<mrow><mo>&#x2212;</mo>{shown}</mrow>"


def _bracketed(markup: str) -> str:
    return f"<mrow><mo>(</mo>{markup}<mo>)</mo></mrow>"
