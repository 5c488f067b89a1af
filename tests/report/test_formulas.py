import pytest

from pmsr.report.formulas import Formulas

LAW = "c0*sqrt(`drop height [m]`)"


@pytest.fixture(scope="module")
def formulas(tower):
    return Formulas.of(tower)


def test_symbols_are_short_and_none_stands_for_two_names(formulas, tower):
    names = ["drop height [m]", "m", "fall time [s]"]
    symbols = [formulas.symbols[name] for name in names]
    assert len(set(symbols)) == 3 and formulas.symbols["m"] == "m"
    assert all(len(symbol) <= 3 for symbol in symbols)
    parameters = {one for law in tower.equations.values() for one in law.parameters}
    assert not parameters & set(symbols)


def test_a_law_is_typeset_by_symbols(formulas, tower):
    drawn = formulas.law(LAW)
    assert "<math>" in drawn and "drop" not in drawn
    assert f"<mi>{formulas.symbols['drop height [m]']}</mi>" in drawn
    assert formulas.plain(LAW) == f"c0*sqrt({formulas.symbols['drop height [m]']})"


def test_sentences_keep_their_words_and_lose_their_backquotes(formulas):
    said = formulas.typeset(f"Of {LAW!r} <b> it's said, and of `drop height [m]`**2, too.")
    assert said.count("<math>") == 2 and "`" not in said
    assert said.startswith("Of <math>") and said.endswith(", too.")
    assert "&lt;b&gt; it&#39;s said" in said


def test_formulas_in_what_is_said_of_a_law_are_typeset(formulas):
    shown = formulas.phrase("takes the exponential of c0 - c1*2 in its own unit")
    assert shown.startswith("takes the exponential of <math>")
    assert shown.endswith("</math> in its own unit")
    plain = "adds y, in its unit, to the number 1 with coefficient exactly 1"
    assert formulas.phrase(plain) == plain


def test_what_is_no_formula_stays_text(formulas):
    assert formulas.law("my own <law>") == "my own &lt;law&gt;"
    assert formulas.typeset("no 'such thing' here") == "no &#39;such thing&#39; here"
