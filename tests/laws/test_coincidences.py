import time

import numpy as np
import pytest

from pmsr.equation.expression import Equation
from pmsr.equation.program import Tables, evaluate, evaluate_slopes
from pmsr.laws.coincidences import (
    Coincidences,
    Generators,
    column_signs,
    count_all_coincidences,
    count_coincidences,
    describe_coincidences,
    interval_columns,
)

# law, columns, how many columns (or y) share a unit with others, how many must be pure numbers
LAWS = [
    ("c0*sqrt(x)", "x", 0, 0),
    ("x**2/(c0 + c1*x)", "x", 0, 0),
    ("c0*x**c1", "x", 0, 0),
    ("c0 + c1*log(x)", "x", 0, 0),
    ("c0*sin(c1*x) + c2", "x", 0, 0),
    ("c0 + x", "x", 1, 0),
    ("-x**2/(c0 + x)", "x", 1, 0),
    ("c0*sin(x) + c1", "x", 0, 1),
    ("2*sin(x) + c0", "x", 0, 2),
    ("u*f/(u - f)", "uf", 2, 0),
    # parts of the domain only
    ("sqrt(c0 - x)", "x", 1, 0),
    ("c0*sqrt(1 - x**2)", "x", 0, 1),
    ("c0*log(log(x))", "x", 0, 1),
    ("log(c0 - x)", "x", 0, 2),
    ("c0*sqrt(x - 5)", "x", 0, 1),
    ("exp(sqrt(c0*log(x)))", "x", 0, 2),
    # no parameters
    ("x", "x", 1, 0),
    ("x**x", "x", 0, 2),
    ("x1*x2/x3**2", ("x1", "x2", "x3"), 1, 0),
    ("x1 + x2*x3", ("x1", "x2", "x3"), 2, 0),
    ("3", "x", 0, 1),
    # no variables
    ("c0", "x", 0, 0),
    # many parameters, ill-conditioned
    ("c0 + c1*x + c2*x**2 + c3*x**3 + c4*x**4 + c5*x**5", "x", 0, 0),
    ("c0*exp(c1*x) + c2*exp(c3*x)", "x", 0, 0),
    ("c0/(exp(c1/x) - 1)/x**5", "x", 0, 0),
    ("c0 + c1*x + c2*y + c3*z + c4*w", "xyzw", 0, 0),
    ("c0*tanh(c1*x + c2) + c3", "x", 0, 0),
    ("exp(exp(x))", "x", 0, 2),
    # columns that share a unit
    ("c0*(x**4 - y**4)", "xy", 1, 0),
    ("c0 + c1*log(x/y)", "xy", 0, 0),
    ("c0*log(x/y)", "xy", 1, 0),
    ("c0*log(1 + x/y)", "xy", 1, 0),
    ("f*(1 + v/c0)", "fv", 1, 0),
    ("c0*sin(x - y)", "xy", 0, 2),
    ("c0*x*(1 - x)", "x", 0, 1),
    # redundant parameters
    ("c0*c1*x + c2 - c3", "x", 0, 0),
    ("c0 + c1 + x", "x", 1, 0),
    # derivatives of which only rounding errors are left
    ("(x + x/y)/x", "xy", 0, 2),
    ("x/(c0*(x/c0 - x))", "x", 0, 0),
    ("(c0*x - x)/(2*c0*x - x)", "x", 0, 0),
    # powers so small that floats lose digits
    ("c0*(c1 - c1*x)**(-c1**2*x)", "x", 0, 1),
    ("(c0**c0 - c0)/(x + c0**c0 - c0)", "x", 0, 1),
]


def counted(text, columns, **more):
    return count_coincidences(Equation(text, list(columns)).program, len(columns), **more)


@pytest.mark.parametrize(("text", "columns", "shared", "pure"), LAWS)
def test_coincidences_of_laws_that_a_physicist_can_count(text, columns, shared, pure):
    assert counted(text, columns) == Coincidences(shared, pure)


# law, total, a column and the best fit on it, with which a naive rank goes wrong
FOOLED = [
    ("c0 + c1*sin(x)", 1, np.linspace(0.1, 6.0, 20), [2.0, 0.0]),
    ("c0*sin(c1*x) + c2", 0, np.linspace(0.1, 6.0, 20), [0.0, 0.0, 1.0]),
    ("c0 + c1*x + c2*x**2", 0, np.linspace(2459900.0, 2460100.0, 12), [1.0, 1e-3, 1e-9]),
    ("c0*sin(x) + c1", 1, np.linspace(2459900.0, 2460100.0, 12), [1.0, 0.0]),
    ("c0*sin(c1*x + c2)", 0, np.linspace(2459900.0, 2460100.0, 12), [1.0, 0.1, 0.2]),
    ("c0 + sin(x)", 2, np.linspace(0.1, 6.0, 20), [1e6]),
    ("c0*sin(x)", 1, np.linspace(1e-4, 9e-3, 20), [1.0]),
    ("c0 + sin(x)", 2, np.linspace(1e-4, 9e-3, 20), [1.0]),
    ("c0 + x", 1, np.array([1.0, 2.0]), [0.0]),
    # numbers that set a scale: generic points do not see them
    ("c0*sqrt(x - 2459900)", 1, np.linspace(2459901.0, 2460100.0, 12), [1.0]),
    ("c0*sqrt(x - 2459900)", 1, np.array([2459901.0, 2460000.0]), [1.0]),
    ("c0 + sin(x/10000000)", 2, np.linspace(1e6, 5e7, 12), [1.0]),
    ("c0 + c1*sin(c2*(x - 2459900))", 1, np.linspace(2459901.0, 2460100.0, 12), [0.0, 0.0, 0.1]),
    ("c0*exp(c1*(x - 2459900))", 0, np.linspace(2459901.0, 2460100.0, 12), [1.0, 0.01]),
]


@pytest.mark.parametrize(("text", "total", "x", "theta"), FOOLED)
def test_data_that_fool_a_naive_rank_do_not_matter(text, total, x, theta):
    X = x[:, None]
    found = counted(text, "x", signs=column_signs(X), rows=(X, np.array(theta)))
    assert found.total == total


def test_scaling_a_column_changes_a_law_within_its_family_where_nothing_is_counted():
    # What a coincidence means, without any derivative: x in other units, parameters refitted.
    x = np.linspace(0.5, 3.0, 12)[:, None]
    law = Equation("x**2/(c0 + c1*x)", ["x"]).program
    theta, factor = np.array([[2.0, 0.7]]), 1.7
    np.testing.assert_allclose(
        evaluate(law, theta, factor * x), evaluate(law, theta / [[factor**2, factor]], x)
    )


def test_where_a_column_is_positive_its_absolute_value_is_the_column():
    text = "c0 + abs(x) + c1*x"
    assert counted(text, "x", signs=(1,)).total == 0
    assert counted(text, "x", signs=(0,)).total == 1


def test_a_law_that_is_defined_nowhere_has_no_coincidence():
    assert counted("sqrt(-1 - x**2)", "x") == Coincidences()


def test_a_zero_that_is_arbitrary_is_counted_on_request():
    shifts = Generators.of_columns(1, interval=interval_columns(["t"], ["t"]))
    for text, zeros, pure in (
        ("c0 + c1*t", 0, 0),
        ("c0*exp(c1*t)", 0, 0),
        ("c0*sqrt(t)", 1, 0),
        ("c0*sqrt(t - c1)", 0, 0),
        ("c0*exp(-t)", 0, 1),
        ("c0*sin(t)", 1, 1),
    ):
        assert counted(text, "t") == Coincidences(0, pure)
        assert counted(text, "t", generators=shifts) == Coincidences(0, pure, zeros), text


def test_interval_must_name_columns():
    with pytest.raises(ValueError, match="interval names 'time', which is not a column"):
        interval_columns(["t"], ["time"])
    with pytest.raises(ValueError, match=r"Use \['t'\]"):
        interval_columns(["t"], "t")


@pytest.mark.parametrize(
    ("text", "columns", "phrases"),
    [
        ("c0*x", "x", []),
        (
            "u*f/(u - f)",
            "uf",
            [
                "gives y, in its unit, as f*u/(u - f) with coefficient exactly 1",
                "subtracts f, in its unit, from u, in its unit, with coefficient exactly 1",
            ],
        ),
        (
            "2*sin(x) + c0",
            "x",
            [
                "adds sin(x), a pure number, to y, in its unit, with coefficient exactly 2",
                "takes the sine of x in its own unit",
            ],
        ),
        (
            "c0*(1 + 3*x)",
            "x",
            ["adds x, in its unit, to the number 1 with coefficient exactly 3"],
        ),
        ("c0*log(x)", "x", ["takes the logarithm of x in its own unit"]),
        (
            "x**x",
            "x",
            [
                "gives y, in its unit, as x**x with coefficient exactly 1",
                "depends on a unit in a way that no single coefficient mends",
            ],
        ),
    ],
)
def test_coincidences_are_said_in_words(text, columns, phrases):
    assert describe_coincidences(Equation(text, list(columns))) == phrases


def test_words_use_the_names_of_the_data():
    law = Equation("c0 + `drop height`", ["drop height"])
    assert describe_coincidences(law, "D") == [
        "adds `drop height`, in its unit, to D, in its unit, with coefficient exactly 1"
    ]
    law = Equation("c0*sqrt(t)", ["t"])
    assert describe_coincidences(law, interval=["t"]) == ["depends on where t is zero"]


@pytest.mark.parametrize(("text", "columns", "shared", "pure"), LAWS)
def test_there_is_a_phrase_for_every_coincidence_that_one_coefficient_mends(
    text, columns, shared, pure
):
    phrases = describe_coincidences(Equation(text, list(columns)))
    assert len(phrases) == shared + pure


def test_signs_of_columns():
    X = np.array([[0.0, 0.0, -1.0, 2.0], [0.0, 3.0, -2.0, -2.0]])
    assert column_signs(X) == (0, 1, -1, 0)


def test_derivatives_by_variables_are_those_of_differences():
    law = Equation("c0*sin(x*y)/sqrt(c1 + x**3) + x**-2*exp(y/3) + y**c1 + 2", ["x", "y"]).program
    rng = np.random.default_rng(1)
    X, theta = rng.uniform(0.5, 2.0, size=(7, 2)), rng.uniform(0.5, 2.0, size=(3, 2))
    values, _, slopes = evaluate_slopes(law, theta, X)
    np.testing.assert_array_equal(values, evaluate(law, theta, X))
    step = 1e-5
    for j in range(2):
        up, down = X.copy(), X.copy()
        up[:, j] += step
        down[:, j] -= step
        difference = (evaluate(law, theta, up) - evaluate(law, theta, down)) / (2.0 * step)
        # Differences are off by step**2/6 times third derivatives, of some hundreds here.
        np.testing.assert_allclose(slopes[0, :, j], difference, rtol=1e-6, atol=1e-6)


def test_counting_is_fast_enough_for_every_candidate():
    law = Equation("c0*sin(c1*x) + c2*y", ["x", "y"]).program
    count_coincidences(law, 2)
    start = time.process_time()
    for _ in range(200):
        count_coincidences(law, 2)
    # About 25 microseconds; a busy machine and a debugger get ten times as long.
    assert (time.process_time() - start) / 200 < 250e-6


@pytest.mark.slow
def test_an_added_operator_is_counted_like_the_others(with_softplus):
    assert counted("c0*softplus(x)", "x") == Coincidences(0, 1)
    assert counted("c0*softplus(c1*x)", "x") == Coincidences()


def test_a_law_that_is_undefined_at_its_rows_too_has_no_coincidence_and_warns_of_nothing():
    law = Equation("c0*log(-1000000 - x)", ["x"]).program
    found = count_coincidences(law, 1, rows=(np.linspace(1.0, 9.0, 20)[:, None], np.array([2.0])))
    assert found == Coincidences()


def test_many_laws_have_the_ranks_that_each_has_alone():
    laws = [Equation(text, ["x"]).program for text, columns, *_ in LAWS if columns == "x"]
    found = count_all_coincidences(Tables.of(laws), 1)
    assert found.tolist() == [list(count_coincidences(law, 1)) for law in laws]
    assert count_all_coincidences(Tables.of([]), 1).shape == (0, 4)
