"""How formulas are typeset on the page: by short symbols, also within sentences."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from markupsafe import Markup, escape

from pmsr.equation.expression import Equation
from pmsr.equation.grammar import quoted, without_quotes
from pmsr.equation.mathml import name_to_mathml, to_mathml_lines
from pmsr.equation.symbols import short_symbols
from pmsr.report.content import ReportContent

_QUOTED = re.compile(r"('[^'\n]+')")  # an equation within a sentence
_WORD = re.compile(r"(?:`(?:[^`]|``)+`|[^\s`])+")  # where names in backquotes are one
_BACKQUOTES = re.compile(r"`.*`")
_FORMULA = re.compile(r"`.*`|[-+*/(]")


@dataclass(frozen=True)
class Formulas:
    """How formulas are typeset on the page: by short symbols of the columns' names."""

    names: tuple[str, ...]
    symbols: Mapping[str, str]
    texts: Mapping[str, Equation]

    @classmethod
    def of(cls, content: ReportContent) -> "Formulas":
        """Choose symbols that mean nothing else in any law of the page."""
        names = [*content.data.names, content.data.target]
        equations = content.equations.values()
        taken = {name for equation in equations for name in equation.parameters}
        unique = list(dict.fromkeys(names))
        texts = {equation.text: equation for equation in equations}
        return cls(content.data.names, short_symbols(unique, sorted(taken)), texts)

    def lines(self, equation: Equation, target: str | None = None) -> Markup:
        """Return an equation, between whose terms a line may be broken."""
        parts = to_mathml_lines(equation, target, symbols=self.symbols)
        return Markup("<wbr>".join(parts))

    def symbol(self, name: str) -> Markup:
        """Return a column's symbol."""
        return Markup(f"<math>{name_to_mathml(self.symbols.get(name, name))}</math>")

    def law(self, text: str) -> Markup:
        """Return an equation's text as a formula, or as it is where it is only a name."""
        equation = self._read(text)
        return escape(without_quotes(text)) if equation is None else self.lines(equation)

    def plain(self, text: str) -> str:
        """Return the text of an equation by symbols, for places where no formula may stand."""
        for name in self.names:
            text = text.replace(quoted(name), self.symbols[name])
        return without_quotes(text)

    def typeset(self, text: str) -> Markup:
        """Return a sentence, in which quoted equations are formulas."""
        pieces = _QUOTED.split(text)
        shown = [escape(piece) for piece in pieces]
        for place, piece in enumerate(pieces):
            equation = self._read(piece[1:-1]) if place % 2 else None
            if equation is not None:
                shown[place] = self.lines(equation)
            elif "`" in piece:
                shown[place] = self._find(piece, _BACKQUOTES)
        return Markup("").join(shown)

    def phrase(self, text: str) -> Markup:
        """Return what is said of a law, in which every formula is one."""
        return self._find(text, _FORMULA)

    def _find(self, text: str, mark: re.Pattern[str]) -> Markup:
        """Typeset what holds a mark of formulas: as much as can be read as one."""
        words = [found for found in _WORD.finditer(text)]
        shown, place, done = Markup(""), 0, 0
        while place < len(words):
            start, best = words[place].start(), None
            for last in range(min(len(words), place + 16) - 1, place - 1, -1):
                piece = text[start : words[last].end()].rstrip(",.;:")
                if not mark.search(piece) or piece.count("(") != piece.count(")"):
                    continue
                with suppress(ValueError):
                    best = last, piece, Equation(piece, self.columns)
                    break
            if best is not None:
                last, piece, equation = best
                shown += escape(text[done:start]) + self.lines(equation)
                done, place = start + len(piece), last
            place += 1
        return shown + escape(text[done:])

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, that of the target among them."""
        return tuple(self.symbols)

    def _read(self, text: str) -> Equation | None:
        if text in self.texts:
            return self.texts[text]
        if text in self.names or not re.search(r"[-+*/^(`]|^[^\W\d_]+\d+$", text):
            return None
        try:
            return Equation(text, self.names)
        except ValueError:
            return None
