import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import equation_texts

from pmsr.equation.expression import Equation
from pmsr.equation.mathml import name_to_mathml, to_mathml


def flat(text, variables=("x", "H", "height", "t")):
    """What a reader sees: MathML with its structure written in brackets."""
    markup = to_mathml(Equation(text, list(variables)))
    markup = markup.replace("&#x2062;", "").replace("&#x2061;", "")
    markup = re.sub(r"</?(math|mrow|mi|mn|mo|mtext)>", "", markup)
    return markup.replace("&#x2212;", "-").replace("&#x22C5;", "·")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("c0 + c1*x", "<msub>c0</msub>+<msub>c1</msub>x"),
        ("c0*height", "<msub>c0</msub>·height"),
        ("2*3.5*x", "2·3.5x"),
        ("-x**2", "-<msup>x2</msup>"),
        ("(-x)**2", "<msup>(-x)2</msup>"),
        ("x**-2", "<msup>x-2</msup>"),
        ("x^t^2", "<msup>x<msup>t2</msup></msup>"),
        ("(x**t)**2", "<msup>(<msup>xt</msup>)2</msup>"),
        ("x/(1 + t)", "<mfrac>x1+t</mfrac>"),
        ("x/t/H", "<mfrac>xtH</mfrac>"),
        ("x/t*H", "<mfrac>xHt</mfrac>"),
        ("1/2*x", "<mfrac>x2</mfrac>"),
        ("x*(1 + t)", "x(1+t)"),
        ("x*-t", "x(-t)"),
        ("x + -t", "x+(-t)"),
        ("sqrt(x + 1)", "<msqrt>x+1</msqrt>"),
        ("abs(x)**2", "<msup>|x|2</msup>"),
        ("exp(-c0*x)", "<msup>e-<msub>c0</msub>x</msup>"),
        ("exp(x)**2", "<msup>(<msup>ex</msup>)2</msup>"),
        ("sin(x)*t", "sin(x)t"),
        ("t*sin(x)", "t·sin(x)"),
        ("pow(x, t)", "<msup>xt</msup>"),
        ("1.5e-7*x", "1.5×<msup>10-7</msup>x".replace("-7", "\N{MINUS SIGN}7")),
        ("pi*x", "πx"),
    ],
)
def test_an_equation_looks_as_it_was_written(text, shown):
    assert flat(text) == shown


def test_brackets_that_matter_stay():
    assert flat("x - (t - H)") == "x-(t-H)"
    assert flat("x + (t - H)") == "x+t-H"
    assert flat("x*(t*H)") == "xtH"
    assert flat("x/(t/H)") == "<mfrac>x<mfrac>tH</mfrac></mfrac>"
    assert flat("-(x + t)") == "-(x+t)"
    assert flat("`a b`**2", ["a b"]) == "<msup>(a b)2</msup>"
    assert flat("2**(x + t)") == "<msup>2x+t</msup>"


def test_the_target_stands_on_the_left():
    markup = to_mathml(Equation("c0*x", ["x"]), "D", display=True)
    assert markup.startswith('<math display="block"><mi>D</mi><mo>=</mo>')


@pytest.mark.parametrize(
    ("name", "markup"),
    [
        ("x", "<mi>x</mi>"),
        ("sigma", "<mi>σ</mi>"),
        ("c12", "<msub><mi>c</mi><mn>12</mn></msub>"),
        ("v_max", "<msub><mi>v</mi><mtext>max</mtext></msub>"),
        ("a b", "<mtext>a b</mtext>"),
        ("<b>", "<mtext>&lt;b&gt;</mtext>"),
    ],
)
def test_names(name, markup):
    assert name_to_mathml(name) == markup


@given(st.text(min_size=1))
def test_a_name_never_becomes_markup(name):
    class Tags(HTMLParser):
        seen = frozenset()

        def handle_starttag(self, tag, attrs):
            self.seen |= {tag}

    try:
        equation = Equation("c0*`" + name.replace("`", "``") + "`", [name])
    except ValueError:
        return
    parser = Tags()
    parser.feed(to_mathml(equation, name))
    assert parser.seen <= {"math", "mrow", "mi", "mn", "mo", "mtext", "msub"}


@settings(max_examples=100, deadline=None)
@given(equation_texts())
def test_every_equation_gives_well_formed_markup_with_all_its_names(text):
    equation = Equation(text, ["x", "y"])
    root = ElementTree.fromstring(to_mathml(equation))
    for tag, count in (("mfrac", 2), ("msup", 2), ("msub", 2)):
        assert all(len(element) == count for element in root.iter(tag))
    letters = {element.text for element in root.iter("mi")}
    assert {name for name in ("x", "y") if name in text.replace("exp", "")} <= letters


def test_a_sum_of_thousands_of_terms_is_typeset():
    markup = to_mathml(Equation("+".join(["x"] * 3000), ["x"]))
    assert markup.count("<mi>x</mi>") == 3000
