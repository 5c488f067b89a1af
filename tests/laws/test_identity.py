import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.laws.identity import Trace, group_laws, is_among, is_same_law

NAN = float("nan")
X = np.array([[1.0], [2.0], [4.0]])


def trace(text, theta):
    """Return the values of a fitted equation at the data and halfway between them."""
    equation = Equation(text, ["x"])
    points = np.vstack([X, 0.5 * (X[1:] + X[:-1])])
    values = evaluate(equation.program, np.array(theta)[None, :], points)[0]
    return Trace(equation.key, tuple(np.where(np.isfinite(values), values, np.nan).tolist()))


def test_the_same_equation_is_the_same_law_whatever_its_fit():
    assert is_same_law(Trace("c0*x", (1.0,)), Trace("c0*x", (2.0,)))
    assert is_same_law(Trace("c0*x"), Trace("c0*x", (2.0,)))


def test_what_has_no_fit_is_like_no_other_equation():
    assert not is_same_law(Trace("c0*x"), Trace("c0"), absolute=np.inf)
    assert not is_same_law(Trace("c0*x"), Trace("c0", (1.0,)), absolute=np.inf)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ((1.0, 2.0), (1.0, 2.0), True),
        ((1.0, 2.0), (1.0, 2.01), True),
        ((1.0, 2.0), (1.0, 2.1), False),
        ((1.0, NAN), (1.0, NAN), True),
        ((1.0, NAN), (1.0, 2.0), False),
        ((1.0, np.inf), (1.0, np.inf), True),
        ((1.0, 2.0), (1.0, np.inf), False),
        ((1.0, np.inf), (1.0, 2.0), False),
    ],
)
@pytest.mark.parametrize("tolerance", [{"absolute": 0.02}, {"relative": 0.01}])
def test_values_agree_within_the_tolerance(first, second, same, tolerance):
    assert is_same_law(Trace("a", first), Trace("b", second), **tolerance) == same


def test_one_law_in_other_parameters_is_recognised_by_its_curve():
    power, root = trace("c0*x**2", [4.0]), trace("(c0*x)**2", [2.0])
    assert power.key != root.key and is_same_law(power, root, absolute=1e-9)
    assert not is_same_law(power, trace("c0*x**2 + c1*x", [4.0, 0.1]), absolute=1e-3)


def test_curves_that_meet_at_the_data_may_differ_between_them():
    line = trace("c0 + c1*x", [1.0, 0.0])
    wave = trace("c0 + c1*sin(pi*x)", [1.0, 1.0])
    assert np.allclose(line.values[:3], wave.values[:3])
    assert not is_same_law(line, wave, absolute=1e-3)


def test_where_a_curve_is_undefined_its_value_is_unknown():
    assert np.isnan(trace("log(c0 - x)", [3.0]).values).tolist() == [False] * 2 + [
        True,
        False,
        True,
    ]


def test_the_first_of_those_alike_speaks_for_them():
    values = ((1.0, NAN), (5.0, NAN), (1.0001, NAN), (5.0, 2.0))
    traces = [Trace(key, one) for key, one in zip("abcd", values, strict=True)]
    assert group_laws(traces, [2, 0, 1, 3], absolute=0.001) == {2: [2, 0], 1: [1], 3: [3]}
    assert group_laws(traces, absolute=1e-5) == {0: [0], 1: [1], 2: [2], 3: [3]}


@given(st.lists(st.floats(0.5, 2.0), max_size=12), st.floats(0.0, 1.0))
def test_every_equation_is_in_one_group_and_like_its_speaker(errors, relative):
    traces = [Trace(str(place), (error,)) for place, error in enumerate(errors)]
    groups = group_laws(traces, relative=relative)
    assert sorted(place for group in groups.values() for place in group) == list(range(len(errors)))
    for place, speaker in enumerate(groups):
        earlier = [traces[other] for other in list(groups)[:place]]
        assert not is_among(traces[speaker], earlier, relative=relative)
        for member in groups[speaker]:
            assert is_same_law(traces[member], traces[speaker], relative=relative)
