"""The canonical form of an equation: redundant parameters absorbed, names and order forgotten.

Equations that differ only in the names of their parameters, in the order of their terms, or in
parameters that another one makes redundant, have one key. The evidence of Section 2.2 is the same
for all of them, and evolution meets thousands of such spellings.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import sympy
from sympy import Add, Mul

from pmsr.equation.algebra import constant_value, real_symbol, rebuild, settle
from pmsr.equation.grammar import has_repeats, parse, quoted, write

# Any: SymPy's constructors are untyped; every Any below is a SymPy expression.

# By what a subexpression can be multiplied, if only its single parameters are rescaled: nothing,
# positive numbers, all numbers, or (where it is linear in them) other parameters too.
NOTHING, POSITIVE, NUMBERS, ALL = range(4)


class Census:
    """Facts about an expression and its parts.

    Parameters
    ----------
    expression
        A SymPy expression.
    parameters
        Its parameters; all other symbols are variables.
    """

    def __init__(self, expression: Any, parameters: Collection[Any]) -> None:
        self.parameters = parameters
        self._facts: dict[Any, tuple[dict[Any, int], bool]] = {}
        self._scales: dict[Any, int] = {}
        self.total = self.occurrences(expression)
        self.single = {c for c, n in self.total.items() if n == 1}

    def occurrences(self, e: Any) -> dict[Any, int]:
        """How often each parameter occurs in e."""
        return self._look(e)[0]

    def varies(self, e: Any) -> bool:
        """Whether e contains a variable."""
        return self._look(e)[1]

    def _look(self, e: Any) -> tuple[dict[Any, int], bool]:
        known = self._facts.get(e)
        if known is None:
            counts: dict[Any, int] = {}
            varies = False
            if e.is_Symbol:
                varies = e not in self.parameters
                counts = {} if varies else {e: 1}
            for argument in e.args:
                more, also = self._look(argument)
                varies |= also
                for parameter, n in more.items():
                    counts[parameter] = counts.get(parameter, 0) + n
            known = self._facts[e] = counts, varies
        return known

    def parts(self) -> Collection[Any]:
        """Every subexpression that was looked at, once."""
        return list(self._facts)

    def survey(self, expression: Any) -> tuple[int, bool]:
        """Count the sums inside, and tell whether there are constants such as sqrt(2)."""
        sums = [e for e in self._facts if e.is_Add and e is not expression]
        constants = (e.is_number and not e.is_Rational and not e.is_Float for e in self._facts)
        return len(sums), any(constants)

    def scale(self, e: Any) -> int:
        """By what e can be multiplied: one of the four constants above."""
        if not self.occurrences(e):
            return NOTHING
        known = self._scales.get(e)
        if known is None:
            if e.is_Symbol:
                known = ALL if e in self.single else NOTHING
            elif e.is_Mul:
                known = max(self.scale(factor) for factor in e.args)
            elif e.is_Add:
                known = min(self.scale(term) for term in e.args)
            elif e.is_Pow and e.exp.is_number:
                is_odd = e.exp.is_Integer and e.exp.p % 2
                known = min(self.scale(e.base), NUMBERS if is_odd else POSITIVE)
            elif isinstance(e, sympy.Abs):
                known = min(self.scale(e.args[0]), POSITIVE)
            else:
                known = NOTHING
            self._scales[e] = known
        return known


def absorb(expression: Any, parameters: Collection[Any]) -> Any:
    r"""Return the expression without the parameters and numbers that a free parameter makes idle.

    Parameters
    ----------
    expression
        A SymPy expression.
    parameters
        The symbols that are free real parameters.

    Notes
    -----
    Only a parameter that occurs once absorbs, so that what remains takes the same values and has,
    up to a constant factor, the same flat prior:

    * as the whole coefficient of something, or alone in a sum, it absorbs the other coefficients of
      the same (:math:`c_0 x + c_1 x + x \to c_0 x`), also those in a sum that is multiplied by
      parameters only (:math:`c_0 + c_1 (c_2 + x) \to c_0 + c_1 x`): a shift;
    * alone in a product, it absorbs the numbers, and the factors without variables whose parameters
      occur nowhere else: a rescaling. So does a sum of such products
      (:math:`c_0 (c_1 + c_2 x) \to c_1 + c_2 x`);
    * in a power or an absolute value, it absorbs numbers, and another parameter in the same power
      (:math:`2 (c_0 c_1)^2 x \to c_0^2 x`);
    * in an exponent, it absorbs a numeric base (:math:`2^{c_0 x} \to e^{c_0 x}`).

    Parameters that occur several times, but only together, are one: :math:`c_0 + c_1` in
    :math:`x (c_0 + c_1 + x) (c_0 + c_1)`, or the product of two.

    A factor that occurs elsewhere too stays: absorbed, it would leave itself in the prior. So does
    c0 in c0/(c1 + c2*x): there are several ways to do without, and they differ in their priors.

    Examples
    --------
    >>> c0, c1, x = sympy.symbols("c0 c1 x", real=True)
    >>> absorb(2 * c0 * x - c1 + 3, {c0, c1})
    c0*x + c1
    >>> absorb(c0 * c1 * x + c1, {c0, c1})
    c0*c1*x + c1
    """
    while True:
        census = Census(expression, parameters)
        reduced = _Absorption(census).reduce(expression)
        if reduced is expression or reduced == expression:
            idle = _companions(census)
            reduced = settle(expression, idle) if idle else expression
            # Without c0, sqrt(c0*c1 - 1) may have become sqrt(-1).
            if not idle or reduced.has(sympy.I, sympy.zoo, sympy.nan):
                return expression
        expression = settle(reduced)


def _companions(census: Census) -> dict[Any, Any]:
    """Find parameters that occur only as terms, or only as factors, of the same nodes as another.

    Returns what replaces them: 0 for a term, 1 for a factor.
    """
    shared = [c for c in census.total if c not in census.single]
    if len(shared) < 2:
        return {}
    terms: dict[Any, dict[Any, Any]] = {c: {} for c in shared}
    factors: dict[Any, dict[Any, Any]] = {c: {} for c in shared}
    other: set[Any] = set()  # what occurs as neither
    for node in census.parts():
        for argument in node.args:
            number, c = argument.as_coeff_Mul() if argument.is_Mul else (None, argument)
            if c not in terms:
                continue
            if node.is_Add:
                terms[c][node] = number or sympy.S.One
            elif not node.is_Mul or number is not None:
                other.add(c)
            elif node.as_coeff_Mul()[1] is not c:  # or else it counts where it is an argument
                factors[c][node] = sympy.S.One
    idle: dict[Any, Any] = {}
    for uses, unused, nothing in (
        (terms, factors, sympy.S.Zero),
        (factors, terms, sympy.S.One),
    ):
        leaders: list[dict[Any, Any]] = []
        for c in shared:
            if not uses[c] or unused[c] or c in other:
                continue
            scale = next(iter(uses[c].values()))
            profile = {node: number / scale for node, number in uses[c].items()}
            if profile in leaders:
                idle[c] = nothing
            else:
                leaders.append(profile)
    return idle


class _Absorption:
    """One pass from the leaves to the root, all of it by the census taken before.

    What happens at one place does not depend on what happened at another, and hence not on the
    order in which SymPy, by the names, holds the arguments.
    """

    def __init__(self, census: Census) -> None:
        self.census = census
        self.memo: dict[Any, Any] = {}

    def reduce(self, e: Any) -> Any:
        if not e.args or not self.census.occurrences(e):
            return e
        known = self.memo.get(e)
        if known is None:
            before: Sequence[Any] = e.args
            arguments: Sequence[Any] = [self.reduce(argument) for argument in before]
            if e.is_Add:
                arguments = self.sum(arguments)
            elif e.is_Mul:
                arguments = self.product(arguments)
            if self.is_free_power(e):
                known = sympy.exp(arguments[1])
            elif len(arguments) == len(before) and all(
                a is b for a, b in zip(arguments, before, strict=True)
            ):
                known = e
            else:
                known = rebuild(e, arguments)
            self.memo[e] = known
        return known

    def is_free_power(self, e: Any) -> bool:
        return bool(
            e.is_Pow
            and e.base.is_number
            and self.census.scale(e.exp) >= NUMBERS
            and constant_value(e.base) > 0.0
        )

    def sum(self, terms: Sequence[Any]) -> Sequence[Any]:
        absorbers = {self.shape(term): term for term in terms if self.has_free_coefficient(term)}
        if not absorbers:
            return terms
        return [
            self.shifted(term, absorbers)
            for term in terms
            if absorbers.get(self.shape(term), term) is term
        ]

    def shape(self, term: Any) -> frozenset[Any]:
        """Return the factors with variables: those of 2*c0*x*y are x and y, those of c0 none."""
        return frozenset(filter(self.census.varies, Mul.make_args(term)))

    def has_free_coefficient(self, term: Any) -> bool:
        constant = [f for f in Mul.make_args(term) if not self.census.varies(f)]
        return len(constant) == 1 and constant[0] in self.census.single

    def shifted(self, term: Any, absorbers: Collection[frozenset[Any]]) -> Any:
        """Return c1*y for c1*(c2 + x + y) if c1*c2 and c1*x are absorbed."""
        varying = [factor for factor in Mul.make_args(term) if self.census.varies(factor)]
        if len(varying) != 1 or not varying[0].is_Add:
            return term
        old = varying[0].args
        new = [self.shifted(part, absorbers) for part in old if self.shape(part) not in absorbers]
        if len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True)):
            return term
        return Mul(*(f for f in Mul.make_args(term) if not self.census.varies(f)), Add(*new))

    def product(self, factors: Sequence[Any]) -> Sequence[Any]:
        scale = max(map(self.census.scale, factors))
        if scale == NOTHING:
            return factors
        pieces = [piece for factor in factors for piece in self.pieces(factor, scale)]
        numbers = [piece for piece in pieces if piece.is_number]
        others = [piece for piece in pieces if not piece.is_number]
        fixed = [factor for factor in others if not self.census.varies(factor)]
        if scale < ALL:
            idle = self.repeated(fixed)
        elif any(self.census.scale(f) == ALL for f in others if self.census.varies(f)):
            idle = self.idle(fixed)
        else:
            absorber = next(factor for factor in fixed if self.census.scale(factor) == ALL)
            idle = self.idle([factor for factor in fixed if factor is not absorber])
        is_negative = scale == POSITIVE and math.prod(map(constant_value, numbers)) < 0.0
        sign = [sympy.S.NegativeOne] if is_negative else []
        if not idle and numbers == sign:
            return factors
        return sign + [factor for factor in others if not any(factor is other for other in idle)]

    def pieces(self, factor: Any, scale: int) -> Sequence[Any]:
        """Return exp(c0) and exp(x) for exp(c0 + x); SymPy joins what is not absorbed."""
        if not (isinstance(factor, sympy.exp) and factor.args[0].is_Add):
            return [factor]
        can_move = self.census.varies if scale == ALL else (lambda term: not term.is_number)
        terms = factor.args[0].args
        parts = [t for t in terms if not can_move(t)], [t for t in terms if can_move(t)]
        return [sympy.exp(Add(*part)) for part in parts if part]

    def repeated(self, factors: Sequence[Any]) -> Sequence[Any]:
        """Return the second and later ones of equal powers of single parameters."""
        forms = [
            (f.func, f.args[1:])
            if self.census.scale(f) and f.args and f.args[0] in self.census.single
            else (f, ())
            for f in factors
        ]
        return [f for place, f in enumerate(factors) if forms.index(forms[place]) < place]

    def idle(self, factors: Sequence[Any]) -> Sequence[Any]:
        """Return those of the factors whose parameters occur in no other place."""
        while True:
            inside: dict[Any, int] = {}
            for factor in factors:
                for parameter, n in self.census.occurrences(factor).items():
                    inside[parameter] = inside.get(parameter, 0) + n
            fewer = [
                factor
                for factor in factors
                if all(inside[c] == self.census.total[c] for c in self.census.occurrences(factor))
            ]
            if len(fewer) == len(factors):
                return factors
            factors = fewer


def canonical_key(expression: Any, variables: Sequence[str], parameters: Sequence[str]) -> str:
    """Return one text for all equations with the same canonical form.

    It is an equation itself: the variables stand in backquotes, the parameters are those of
    `parameter_names`.

    Examples
    --------
    >>> a, b, x = sympy.symbols("a b x", real=True)
    >>> canonical_key(2 * a * x - b, ["x"], ["a", "b"])
    'c0 + c1*`x`'
    """
    free = {real_symbol(name) for name in parameters}
    names = {real_symbol(name): quoted(name) for name in variables}
    if "pi" in variables:
        names[sympy.pi] = repr(math.pi)
    word = parameter_names(1, variables)[0][:-1]
    for _ in range(4):
        key, again = _key_and_doubt(absorb(expression, free), free, names, word)
        if again is None or again == expression:
            break
        expression = again
    return key


def parameter_names(n: int, variables: Sequence[str]) -> list[str]:
    """Return c0, c1, ..., or cc0, cc1, ... where variables are called c or c0, and so on.

    Examples
    --------
    >>> parameter_names(2, ["x"]), parameter_names(2, ["c0", "x"])
    (['c0', 'c1'], ['cc0', 'cc1'])
    """
    words = [variable.rstrip("0123456789").removesuffix("_") for variable in variables]
    word = "c"
    while word in words:
        word += "c"
    return [f"{word}{i}" for i in range(n)]


def _key_and_doubt(
    expression: Any, parameters: Collection[Any], names: dict[Any, str], word: str
) -> tuple[str, Any]:
    """Return the key, and the expression to be tried again if SymPy may see more in the key.

    In (x - y)/(y - x) it is the key that shows that two factors are alike up to their signs.
    """
    census = Census(expression, parameters)
    spelling = _Spelling(expression, census, dict(names))
    colours = _least_text(spelling, [0] * len(spelling.occurring))[1]
    key = spelling.text([f"{word}{colour}" for colour in colours])
    names = spelling.names
    n_sums, has_constants = census.survey(expression)
    if (n_sums and has_constants) or (
        n_sums > 1 and has_repeats(expression, names, signless=census.single)
    ):
        symbols = {name: symbol for symbol, name in names.items()}
        return key, settle(parse(key, lambda name, is_quoted: _symbol(symbols, name, is_quoted)))
    return key, None


def _symbol(symbols: Mapping[str, Any], name: str, is_quoted: bool) -> Any:
    return symbols.get(quoted(name) if is_quoted else name, sympy.pi)


class _Spelling:
    """The texts of one expression with other and other names for its parameters."""

    def __init__(self, expression: Any, census: Census, names: dict[Any, str]) -> None:
        self.expression = expression
        self.census = census
        self.names = names
        self.occurring = list(census.total)
        self.shared = [census.total[c] > 1 for c in self.occurring]
        self._known: dict[Any, Any] = {}

    def text(self, labels: Sequence[str]) -> str:
        """Write the expression with these labels for the parameters."""
        self.names.update(zip(self.occurring, labels, strict=True))
        return self._write(self.expression)

    def reading_order(self, colours: Sequence[int]) -> list[int]:
        """Give numbers to the parameters by colour, and to those of one colour as one reads them.

        For single parameters only: parts that are written alike differ in nothing else.
        """
        self.text([f"c{colour}" for colour in colours])
        places: dict[Any, int] = {}
        stack = [self.expression]
        while stack:
            e = stack.pop()
            if e.is_Symbol:
                places.setdefault(e, len(places))
            elif self.census.occurrences(e):
                is_ordered = not (e.is_Add or e.is_Mul)
                stack += reversed(e.args if is_ordered else sorted(e.args, key=self._signless))
        marks = [(colour, places[c]) for colour, c in zip(colours, self.occurring, strict=True)]
        ranks = {mark: rank for rank, mark in enumerate(sorted(marks))}
        return [ranks[mark] for mark in marks]

    def _write(self, e: Any) -> str:
        leading, signless = self.census.total, self.census.single
        return write(e, self.names, leading=leading, signless=signless, memo=self)

    def _signless(self, e: Any) -> str:
        return self._write(e).removeprefix("-")

    # A memo for the writer: what a part looks like depends on the names in this part alone.

    def get(self, part: tuple[Any, bool]) -> Any:
        return self._known.get(self._with_names(part))

    def __setitem__(self, part: tuple[Any, bool], written: Any) -> None:
        # What contains most of the parameters changes with nearly every name.
        if 2 * len(self.census.occurrences(part[0])) <= len(self.occurring):
            self._known[self._with_names(part)] = written

    def _with_names(self, part: tuple[Any, bool]) -> tuple[Any, ...]:
        return *part, *(self.names[c] for c in self.census.occurrences(part[0]))


def _least_text(
    spelling: _Spelling, colours: Sequence[int], quick: bool = False
) -> tuple[str, Sequence[int]]:
    """Name the parameters by their places in the text alone; return the text and their numbers.

    Colours are refined until parameters of one colour look alike. Among parameters that occur
    once, the choice does not matter (what they sit in is a tree). Among shared ones it may: each is
    singled out, except those that lead to the same text; if quick, only the first.
    """
    colours = _refine(spelling.text, colours)
    tied = sorted(
        (not spelling.shared[i], colour, i)
        for i, colour in enumerate(colours)
        if colours.count(colour) > 1
    )
    if not tied or tied[0][0]:
        colours = spelling.reading_order(colours) if tied else colours
        return spelling.text([f"c{colour}" for colour in colours]), colours
    alike = [i for _, colour, i in tied if colour == tied[0][1]]
    if quick:
        return _least_text(spelling, _singled_out(colours, alike[0]), quick)
    different: list[int] = []
    for i in alike:
        if not any(_are_exchangeable(spelling, i, j) for j in different):
            different.append(i)
    if len(different) > 1:
        texts = [_least_text(spelling, _singled_out(colours, i), True)[0] for i in different]
        different = [i for place, i in enumerate(different) if texts.index(texts[place]) == place]
    return min(_least_text(spelling, _singled_out(colours, i)) for i in different)


def _are_exchangeable(spelling: _Spelling, i: int, j: int) -> bool:
    """Tell whether two parameters can change places while all others stay, and nobody sees it."""
    labels = [f"c{k}" for k in range(len(spelling.occurring))]
    before = spelling.text(labels)
    labels[i], labels[j] = labels[j], labels[i]
    return spelling.text(labels) == before


def _singled_out(colours: Sequence[int], chosen: int) -> list[int]:
    return [
        2 * colour + (colour == colours[chosen] and i != chosen) for i, colour in enumerate(colours)
    ]


def _refine(text: Callable[[Sequence[str]], str], colours: Sequence[int]) -> list[int]:
    """Split colours by what the whole text looks like with one parameter marked."""
    while True:
        marked = []
        for i, colour in enumerate(colours):
            labels = [f"c{other}" for other in colours]
            labels[i] = "!0"  # sorts first and is as long as c0: numbers follow the reading order
            marked.append((colour, text(labels) if colours.count(colour) > 1 else ""))
        ranks = {mark: rank for rank, mark in enumerate(sorted(set(marked)))}
        colours, before = [ranks[mark] for mark in marked], colours
        if len(ranks) in (len(set(before)), len(colours)):
            return colours
