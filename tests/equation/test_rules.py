import sympy

from pmsr.equation.operators import OPERATORS, Operator, add_operator, derive_operator
from pmsr.equation.rules import arguments, denominators, look_into

a = sympy.Symbol("a", real=True)
x, c0, c1 = sympy.symbols("x c0 c1", real=True)


def test_a_phase_is_seen():
    assert [is_phase for *_, is_phase in arguments(sympy.sin(c0 * x - c1), [c0, c1])] == [True]
    assert [is_phase for *_, is_phase in arguments(sympy.sin(c0 * x * c1), [c0, c1])] == [False]


def test_a_pole_that_has_a_limit_is_none():
    gap = derive_operator("own", lambda x: (sympy.exp(x) - 1) / x / (x - 2))
    assert look_into(gap).below == (a - 2,)


def test_what_holds_no_operators_is_not_looked_at():
    assert look_into(derive_operator("own", lambda x: 1 / (2 + sympy.erf(x)))).below == ()
    assert look_into(Operator("own", 1, None, None, None, None)) == ((), ())


def test_the_inside_of_an_operator_is_seen_wherever_it_stands():
    add_operator("own", lambda x: sympy.cos(2 * x) / (1 + x))
    try:
        law = OPERATORS["own"].sympy(OPERATORS["own"].sympy(c0 * x) + c1)
        inner = OPERATORS["own"].sympy(c0 * x)
        assert set(denominators(law, [c0, c1])) == {c0 * x + 1, inner + c1 + 1}
        found = {(name, argument) for name, argument, _ in arguments(law, [c0, c1])}
        assert found == {("cos", 2 * c0 * x), ("cos", 2 * inner + 2 * c1)}
        assert not list(denominators(OPERATORS["own"].sympy(x), [c0]))
    finally:
        del OPERATORS["own"]
