"""One equation: what was written, its SymPy expression, its canonical key and its program."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from unicodedata import lookup

import sympy

from pmsr.equation.algebra import (
    TooLarge,
    apply_operator,
    check_size,
    extent,
    function_names,
    real_symbol,
    settle,
    tidy,
    tidy_number,
    without_cot,
)
from pmsr.equation.canonical import Census, canonical_key, parameter_names
from pmsr.equation.grammar import nesting, parse, quoted, write
from pmsr.equation.lowering import lower
from pmsr.equation.operators import (
    FIRST_OPERATOR,
    LITERAL,
    OPERATORS,
    PARAMETER,
    POWER,
    VARIABLE,
)
from pmsr.equation.program import Program
from pmsr.names import find_closest
from pmsr.threads import ONE_AT_A_TIME

# Any: SymPy's constructors are untyped; every Any below is a SymPy expression.

MAX_LENGTH = 10_000  # characters of an equation
MAX_PARAMETERS = 200  # of an equation
MAX_SHARED = 20  # parameters that occur more than once: the key tries them in turn
MAX_DEPTH = 100  # nested brackets, calls and exponents of an equation
_BUILT_IN = {"pi": sympy.pi, "e": sympy.E}  # unless a variable or a parameter has the name
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_PARAMETER = re.compile(r"(?=[^\W\d_])([^\W\d]+?)_?([0-9]+)")  # c0, theta_2: a word and digits
_GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split()
)


def _greek_letter(name: str) -> str:
    case = "SMALL" if name.islower() else "CAPITAL"
    return lookup(f"GREEK {case} LETTER {name.replace('mbd', 'md')}")  # Unicode has "lamda"


_GREEK_LETTERS = {_greek_letter(name): "\\" + name for name in sorted(_GREEK)} | {
    "\N{MICRO SIGN}": r"\mu",
    "\N{OHM SIGN}": r"\Omega",
}
_LATEX_ESCAPES = str.maketrans(
    {c: "\\" + c for c in "{}$&#_% "}
    | {"\\": r"\backslash ", "^": r"\wedge ", "~": r"\sim ", "`": r"\backprime "}
    | {"°": r"{}^{\circ}", "²": "{}^{2}", "³": "{}^{3}", "·": r"\cdot ", "×": r"\times ", "−": "-"}
    | {letter: command + " " for letter, command in _GREEK_LETTERS.items()}
)


@dataclass(frozen=True, init=False)
class Equation:
    """An equation in variables and free parameters.

    Two equations are equal if their SymPy expressions, variables and parameters are. Equations
    that differ only in notation or in redundant parameters have the same `key`.

    Parameters
    ----------
    text
        The right-hand side, in Python's notation: ``"c0*sqrt(H)"``. It is parsed, never executed.
    variables
        Names of the columns of X. In the text, a name that is not an identifier stands in
        backquotes: ``"c0*`drop height`"``. ``pi`` and ``e`` are numbers unless a variable or a
        parameter has the name.
    parameters
        Names of parameters. A letter or word plus digits (c0, k1, theta_2) is a parameter
        unasked, unless a variable has this name, or it looks like a misspelt variable: x0 next to
        a variable x, or x3 next to x0, x1, x2.

    Attributes
    ----------
    variables, parameters : tuple
        The variables, and the names of the parameters that occur: first those that were listed,
        then by word and number.
    expression
        The SymPy expression, with real symbols of these names.

    Examples
    --------
    >>> law = Equation("k1*D**2/(1 + k2*D)", variables=["D"])
    >>> law.parameters, law.complexity
    (('k1', 'k2'), 9)
    >>> law.key
    'c0*`D`**2/(1 + c1*`D`)'
    >>> Equation("c0 + 2*c1*x", ["x"]).key == Equation("b5*x + b4 - b3", ["x"]).key
    True
    """

    variables: tuple[str, ...]
    parameters: tuple[str, ...]
    expression: Any
    known: tuple[str, ...] = ()

    def __init__(self, text: str, variables: Sequence[str], parameters: Sequence[str] = ()) -> None:
        if not isinstance(text, str):
            raise ValueError(f"An equation is written as a string, got {text!r}.")
        if not text.strip():
            raise ValueError(f"An equation must not be empty, got {text!r}. Use c0 for a constant.")
        if len(text) > MAX_LENGTH:
            raise ValueError(
                f"An equation may have {MAX_LENGTH:,} characters, got {len(text):,}: {text[:40]}..."
            )
        variables, parameters = _checked_names(variables, parameters)
        resolve = _resolver(variables, parameters)
        with ONE_AT_A_TIME:
            expression = tidy(parse(text, resolve, max_depth=MAX_DEPTH))
        self._set(expression, variables, parameters)
        self.__dict__["text"] = text

    @classmethod
    def from_sympy(
        cls, expression: Any, variables: Sequence[str], parameters: Sequence[str] = ()
    ) -> "Equation":
        """Make an equation of a SymPy expression; its symbols count by their names.

        Examples
        --------
        >>> H, c = sympy.symbols("H c")
        >>> Equation.from_sympy(c * sympy.sqrt(H), ["H"], ["c"])
        Equation('c*sqrt(H)', variables=['H'], parameters=['c'])
        """
        if not isinstance(expression, sympy.Expr):
            raise ValueError(f"Expected a SymPy expression, got {expression!r}.")
        variables, parameters = _checked_names(variables, parameters)
        resolve = _resolver(variables, parameters)
        symbols = sorted(expression.free_symbols, key=lambda symbol: str(symbol.name))
        real = {symbol: resolve(symbol.name, symbol.name in variables) for symbol in symbols}
        with ONE_AT_A_TIME:
            return cls.from_real(settle(without_cot(expression), real), variables, parameters)

    @classmethod
    def from_real(
        cls, expression: Any, variables: Sequence[str], parameters: Sequence[str] = ()
    ) -> "Equation":
        """Make an equation of an expression that `algebra` built, whose names need no check.

        What the search calls for every new graph: `from_sympy` takes three times as long.
        """
        self = cls.__new__(cls)
        with ONE_AT_A_TIME:
            expression = tidy(expression)
        self._set(expression, variables, parameters)
        return self

    @classmethod
    def from_program(cls, program: Program, variables: Sequence[str]) -> "Equation":
        """Make the equation of an integer table, in parameters c0, c1, ...

        Raises
        ------
        ValueError
            If it is not a real, finite expression, such as x/(x - x).

        Examples
        --------
        >>> Equation.from_program(Equation("b*x", ["x"], ["b"]).program, ["x"])
        Equation('c0*x', variables=['x'])
        """
        names = parameter_names(program.n_parameters, variables)
        built: list[Any] = []
        operators = list(OPERATORS)
        with ONE_AT_A_TIME:
            for code, a, b in program.nodes.tolist():
                if code == VARIABLE:
                    built.append(real_symbol(variables[a]))
                elif code == PARAMETER:
                    built.append(real_symbol(names[a]))
                elif code == LITERAL:
                    built.append(tidy_number(sympy.Float(program.literals[a])))
                elif code == POWER:
                    built.append(check_size(apply_operator("pow", built[a], sympy.Integer(b))))
                else:
                    name = operators[code - FIRST_OPERATOR]
                    arguments = (built[a], built[b])[: OPERATORS[name].arity]
                    built.append(check_size(apply_operator(name, *arguments)))
            return cls.from_real(built[-1], variables, names)

    def to_canonical(self) -> "Equation":
        """Return the equation of the key, without redundant parameters.

        Examples
        --------
        >>> Equation("2*k1*k2*x", ["x"]).to_canonical()
        Equation('c0*x', variables=['x'])
        """
        other = Equation.__new__(Equation)
        other.__dict__["key"] = self.key  # a canonical form's key is its own
        other._set(self.canonical, self.variables, ())
        return other.with_known(self.known) if self.known else other

    def with_variables(self, names: Sequence[str]) -> "Equation":
        """Return the equation with these parameters, as far as it has them, as variables.

        Examples
        --------
        >>> Equation("c0*sqrt(h/g)", ["h"], ["g"]).with_variables(["g"]).variables
        ('h', 'g')
        """
        turned = [name for name in names if name in self.parameters]
        if not turned:
            return self
        rest = [name for name in self.parameters if name not in turned]
        other = Equation.from_real(self.expression, (*self.variables, *turned), rest)
        other.__dict__["text"] = self.text
        return other

    def with_known(self, names: Sequence[str]) -> "Equation":
        """Return the equation with these names as parameters of which something is known.

        Variables among them become parameters. In the key they keep their names: with a prior
        of its own, a parameter is not any number.

        Examples
        --------
        >>> fall = Equation("c0*sqrt(h/g)", ["h", "g"]).with_known(["g"])
        >>> fall.variables, fall.parameters, fall.key
        (('h',), ('c0', 'g'), 'c0*sqrt(`h`/`g`)')
        """
        occurring = {symbol.name for symbol in self.expression.free_symbols}
        known = tuple(name for name in names if name in occurring)
        if known == self.known and not set(self.variables) & set(names):
            return self
        variables = tuple(name for name in self.variables if name not in names)
        parameters = (*self.parameters, *(name for name in known if name not in self.parameters))
        other = Equation.__new__(Equation)
        other.__dict__.update(
            variables=variables, parameters=parameters, expression=self.expression, known=known
        )
        if "text" in self.__dict__:
            other.__dict__["text"] = self.text
        return other

    def _set(self, expression: Any, variables: Sequence[str], listed: Sequence[str]) -> None:
        names = {symbol.name for symbol in expression.free_symbols}
        rest = sorted(names.difference(variables, listed), key=_natural)
        parameters = [name for name in listed if name in names] + rest
        if len(parameters) > MAX_SHARED:
            _check_number(expression, parameters)
        # Not by assignment: the record is frozen.
        self.__dict__.update(
            variables=tuple(variables), parameters=tuple(parameters), expression=expression
        )
        self._check_readable()

    def _check_readable(self) -> None:
        """Refuse an equation whose text or key would itself be refused: it could not be loaded."""
        size, height = extent(self.expression)
        longest = 2 + 2 * max(map(len, self.variables), default=0)  # backquotes, all doubled
        # A node adds a name or a number of 24 characters, an operator or function, and brackets.
        if size * (max(24, longest) + 12) <= MAX_LENGTH and 2 * height < MAX_DEPTH:
            return
        for text in (str(self), self.key):
            if len(text) > MAX_LENGTH:
                raise TooLarge(
                    f"An equation may have {MAX_LENGTH:,} characters, got {len(text):,} when "
                    f"written out: {text[:40]}..."
                )
            if nesting(text) > MAX_DEPTH:
                raise TooLarge(
                    f"An equation may be nested {MAX_DEPTH} deep; this goes deeper when written "
                    f"out: {text[:40]}..."
                )

    @cached_property
    def text(self) -> str:
        """The equation as it was written."""
        return str(self)

    @cached_property
    def key(self) -> str:
        """Text that is the same for all equations with the same canonical form."""
        with ONE_AT_A_TIME:
            rest = [name for name in self.parameters if name not in self.known]
            return canonical_key(self.expression, (*self.variables, *self.known), rest)

    @cached_property
    def canonical(self) -> Any:
        """The SymPy expression of the key, in the parameters of `parameter_names`: c0, c1, ..."""
        key = self.key
        with ONE_AT_A_TIME:
            return tidy(parse(key, _resolver((*self.variables, *self.known), ())))

    @cached_property
    def program(self) -> Program:
        """The equation as an integer table; parameters and variables by their places."""
        with ONE_AT_A_TIME:
            return lower(self.expression, self.variables, self.parameters)

    @property
    def complexity(self) -> int:
        """Number of nodes of the acyclic graph (Section 2.1): 4 for x0 + x0*x1."""
        return len(self.program.nodes)

    def latex(self) -> str:
        """Return LaTeX without dollar signs."""
        # SymPy prints in the order of the alphabet, in which "!" comes first.
        leading = {real_symbol(name): real_symbol("!" + name) for name in self.parameters}
        names = {leading[real_symbol(name)]: latex_name(name) for name in self.parameters}
        names |= {real_symbol(name): latex_name(name) for name in self.variables}
        with ONE_AT_A_TIME:
            return str(sympy.latex(settle(self.expression, leading), symbol_names=names))

    def __str__(self) -> str:
        names: dict[Any, str] = {
            real_symbol(name): name if _IDENTIFIER.fullmatch(name) else quoted(name)
            for name in (*self.variables, *self.parameters)
        }
        if real_symbol("pi") in names:
            names[sympy.pi] = repr(math.pi)
        if real_symbol("e") not in names:
            names[sympy.E] = "e"
        leading = [real_symbol(name) for name in self.parameters]
        with ONE_AT_A_TIME:
            return write(self.expression, names, leading=leading)

    def __repr__(self) -> str:
        unasked = sorted(self.parameters, key=_natural) == list(self.parameters) and all(
            _PARAMETER.fullmatch(name) and not _looks_like_variable(name, self.variables)
            for name in self.parameters
        )
        more = "" if unasked else f", parameters={list(self.parameters)!r}"
        return f"Equation({self.text!r}, variables={list(self.variables)!r}{more})"

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"

    def __getstate__(self) -> dict[str, Any]:
        kept = ("text", "variables", "parameters", "expression", "known")
        return {name: self.__dict__[name] for name in kept if name in self.__dict__}


def _check_number(expression: Any, parameters: Sequence[str]) -> None:
    """Refuse more parameters than the key can name in reasonable time."""
    if len(parameters) > MAX_PARAMETERS:
        raise TooLarge(
            f"An equation may have {MAX_PARAMETERS} parameters, got {len(parameters)}. Leave some "
            "out."
        )
    census = Census(expression, {real_symbol(name) for name in parameters})
    n_shared = len(census.total) - len(census.single)
    if n_shared > MAX_SHARED:
        raise TooLarge(
            f"In an equation at most {MAX_SHARED} parameters may occur more than once, got "
            f"{n_shared}. Write parameters of their own, or fewer."
        )


def _natural(name: str) -> tuple[str, int, str]:
    match = _PARAMETER.fullmatch(name)
    return (match[1], int(match[2]), name) if match else (name, -1, name)


def _looks_like_variable(name: str, variables: Sequence[str]) -> bool:
    """Tell whether a word with digits is probably a misspelt variable: see `Equation`."""
    word = _natural(name)[0]
    alike = [v for v in variables if _PARAMETER.fullmatch(v) and _natural(v)[0] == word]
    return word in variables or len(alike) >= (1 if word == "x" else 2)


def _checked_names(
    variables: Sequence[str], parameters: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of variables and parameters as tuples of distinct strings."""
    for what, names in (("variables", variables), ("parameters", parameters)):
        if isinstance(names, str):
            raise ValueError(f"{what} must be a sequence of names, got {names!r}. Use [{names!r}].")
        for name in names:
            if not isinstance(name, str) or not name:
                raise ValueError(f"{what} must be non-empty strings, got {name!r}.")
        if len(set(names)) != len(names):
            raise ValueError(f"{what} must be distinct, got {list(names)!r}.")
    for name in parameters:
        if not _IDENTIFIER.fullmatch(name):
            raise ValueError(f"A parameter's name must be an identifier, got {name!r}.")
        if name in variables:
            raise ValueError(f"{name!r} is listed both in variables and in parameters. Rename one.")
    return tuple(map(str, variables)), tuple(map(str, parameters))


def _resolver(variables: Sequence[str], parameters: Sequence[str]) -> Callable[[str, bool], Any]:
    """Return the function that tells what a name in an equation stands for."""

    def resolve(name: str, is_quoted: bool) -> Any:
        if name in variables or (name in parameters and not is_quoted):
            return real_symbol(name)
        if is_quoted:
            raise ValueError(f"Unknown variable {name!r}. {_suggestion(name, variables)}")
        if _PARAMETER.fullmatch(name) and name.isidentifier():
            if _looks_like_variable(name, variables):
                raise ValueError(
                    f"{name!r} is not a variable, but looks like one. "
                    f"{_suggestion(name, variables)} If it is a parameter, list it in parameters=."
                )
            return real_symbol(name)
        if name in _BUILT_IN:
            return _BUILT_IN[name]
        raise ValueError(_unknown(name, variables, parameters))

    return resolve


def _suggestion(name: str, variables: Sequence[str]) -> str:
    close = find_closest(name, variables, cutoff=0.5) if name else None
    return f"{_meant(close)}Variables: {', '.join(map(written, variables)) or 'none'}."


def _meant(name: str | None) -> str:
    if name is None:
        return ""
    return f"Did you mean {name!r}? " if written(name) == name else f"Did you mean {quoted(name)}? "


def written(name: str) -> str:
    """Return a variable's name as it is written in an equation.

    Examples
    --------
    >>> written("H"), written("drop height")
    ('H', '`drop height`')
    """
    return name if _IDENTIFIER.fullmatch(name) else quoted(name)


def _unknown(name: str, variables: Sequence[str], parameters: Sequence[str]) -> str:
    if name in function_names():
        return f"{name!r} is a function: write {name}(...)."
    if name == "E":
        return f"Unknown name {name!r}. Write e for Euler's number. {_suggestion('', variables)}"
    known = [*variables, *parameters, *function_names()]
    close = find_closest(name, known, cutoff=0.55)  # a is not tan
    return (
        f"Unknown name {name!r}. {_meant(close)}{_suggestion('', variables)} A parameter is a word "
        f"plus digits, such as c0, or listed: parameters=[{name!r}] of pmsr.Equation or of "
        f"pmsr.compare, in the shell --parameters {name}; functions: "
        f"{', '.join(function_names())}."
    )


def latex_name(name: str) -> str:
    r"""Return a name in LaTeX: Greek letters by name, digits and what follows _ as a subscript.

    Examples
    --------
    >>> print(latex_name("theta_2"), latex_name("σ"), latex_name("speed [m/s]"))
    \theta_{2} \sigma \mathrm{speed\ [m/s]}
    """
    match = re.fullmatch(r"([^\W\d_]+)_?(\w*)", name)
    if match is None:
        return latex_upright(name)
    word, subscript = match[1], match[2]
    if word in _GREEK:
        word = "\\" + word
    elif word in _GREEK_LETTERS:
        word = _GREEK_LETTERS[word]
    elif len(word) > 1:
        word = latex_upright(word)
    if not subscript.isdigit():
        escaped = subscript.translate(_LATEX_ESCAPES)
        subscript = rf"\mathrm{{{escaped}}}" if len(subscript) > 1 else escaped
    return f"{word}_{{{subscript}}}" if subscript else word


def latex_upright(text: str) -> str:
    r"""Return a text in upright letters of LaTeX, as units are written.

    Examples
    --------
    >>> print(latex_upright("µM"))
    \mathrm{\mu M}
    """
    return rf"\mathrm{{{text.translate(_LATEX_ESCAPES)}}}"
