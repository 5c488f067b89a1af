import json
import math
import pickle
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from pmsr.equation.expression import Equation
from pmsr.equation.program import Tables
from pmsr.laws.coincidences import Coincidences, Generators, count_coincidences
from pmsr.laws.prior import (
    LawCounts,
    LawPrior,
    count_laws,
    find_log_priors,
    fraction_cost,
    log_priors,
    number_cost,
    read_law_prior,
    uniform,
)
from pmsr.laws.units import read_units
from pmsr.search.enumeration import enumerate_laws


def log_p(text, columns="x", **costs):
    return LawPrior(**costs).log_p(Equation(text, list(columns)).program)


# law, nodes of its tree, cost of its numbers
DESCRIPTIONS = [
    ("c0", 1, 0.0),
    ("c0*x", 3, 0.0),
    ("c0*sqrt(x)", 4, 0.0),
    ("x**2", 3, math.log(3)),  # one operator and one integer
    ("c0*x**3", 5, math.log(6)),
    ("x**2/(c0 + c1*x)", 9, math.log(3)),
    ("c0*x**c1", 5, 0.0),
    ("x/2", 3, math.log(3)),
    ("c0 + 3*x/2", 5, math.log(6 * 3)),
    ("x**(3/2)", 3, math.log(6 * 3)),
    ("1/x", 3, 0.0),
    ("c0 - x", 3, 0.0),
    ("2*pi*sqrt(x)", 6, math.log(3)),  # 2, pi and both products
    ("sqrt(2)*x", 4, math.log(3)),
    ("sin(x)*sin(x)", 4, math.log(3)),
    ("sin(x) + 1/sin(x)", 7, 0.0),  # written twice in the tree, once in the graph
]


@pytest.mark.parametrize(("text", "n_nodes", "numbers"), DESCRIPTIONS)
def test_a_law_costs_its_nodes_and_its_numbers(text, n_nodes, numbers):
    assert log_p(text, per_node=1.0) == pytest.approx(-n_nodes - numbers)
    assert log_p(text, per_node=0.0) == pytest.approx(-numbers)
    assert log_p(text, per_node=1.5) == pytest.approx(-1.5 * n_nodes - numbers)


def test_operators_may_have_costs_of_their_own():
    assert log_p("c0*sin(x)", per_node=1.0, operators={"sin": 3.0}) == pytest.approx(-6.0)
    # An integer power is an operator too.
    assert log_p("c0*x**2", per_node=1.0, operators={"pow": 0.0}) == pytest.approx(-4 - math.log(3))
    assert log_p("c0*x**c1", per_node=1.0, operators={"pow": 2.5}) == pytest.approx(-6.5)


def test_coincidences_cost_by_their_kind():
    program = Equation("c0*x", ["x"]).program
    found = Coincidences(shared=1, pure=2, zeros=3)
    assert LawPrior(per_node=0.0, per_coincidence=2.0).log_p(program, found) == pytest.approx(-12.0)
    prior = LawPrior(per_node=0.0, per_coincidence=1.0, per_pure_number=4.0)
    assert prior.log_p(program, found) == pytest.approx(-12.0)


def test_a_prior_is_called_with_an_equation():
    prior = LawPrior(per_node=1.0, per_coincidence=2.0)
    assert prior(Equation("c0 + x", ["x"])) == pytest.approx(-3.0 - 2.0)
    assert prior(Equation("c0*x", ["x"])) == pytest.approx(-3.0)
    law = Equation("c0 + abs(x) + c1*x", ["x"])
    assert prior(law, signs=(1,)) - prior(law, signs=(0,)) == pytest.approx(2.0)


def test_a_batch_gives_what_single_programs_give():
    programs = [Equation(text, ["x"]).program for text, _, _ in DESCRIPTIONS]
    prior = LawPrior(per_node=1.3, operators={"sin": 3.0})
    alone = [prior.log_p(program) for program in programs]
    np.testing.assert_array_equal(prior.log_ps(programs), alone)
    assert prior.log_ps([]).shape == (0,)


OPERATORS_OF = {1: ("+", "-", "*", "/", "sqrt", "log", "exp"), 2: ("+", "-", "*", "/", "sin")}


def enumerated(n_columns):
    """Tables of some thousand laws, and the laws as equations."""
    laws = [
        level.laws for level in enumerate_laws(OPERATORS_OF[n_columns], n_columns, max_laws=2500)
    ]
    programs = [some.program(k) for some in laws for k in range(len(some))]
    assert len(programs) > 1000
    return Tables.of(programs), programs


@pytest.mark.parametrize("n_columns", [1, 2])
def test_all_laws_of_an_enumeration_have_the_prior_that_each_has_alone(n_columns):
    tables, programs = enumerated(n_columns)
    signs = (1, 0)[:n_columns]
    generators = Generators.of_columns(n_columns, interval=[0])
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, size=(20, n_columns))
    theta = rng.normal(size=(len(programs), int(tables.n_parameters.max())))
    theta[::7] = np.nan  # could not be fitted
    counted = LawPrior(counts=LawCounts((2, 1, 6, 18, 80)), operators={"/": 1.7})
    for prior in (LawPrior(per_node=1.3, per_coincidence=1.9, per_pure_number=3.1), counted):
        found = log_priors(
            prior, tables, n_columns, signs=signs, generators=generators, X=X, theta=theta
        )
        for k, program in enumerate(programs):
            own = theta[k, : program.n_parameters]
            rows = (X, own) if np.all(np.isfinite(own)) else None
            alone = count_coincidences(
                program, n_columns, signs=signs, generators=generators, rows=rows
            )
            assert found[k] == prior.log_p(program, alone)


def test_a_prior_without_costs_of_coincidences_does_not_count_them():
    tables, programs = enumerated(1)
    free = LawPrior(per_coincidence=0.0)
    np.testing.assert_array_equal(log_priors(free, tables, 1), free.log_ps(programs))
    pure_only = LawPrior(per_coincidence=0.0, per_pure_number=1.0)
    assert np.any(log_priors(pure_only, tables, 1) < free.log_ps(programs))


def test_padding_means_nothing():
    programs = [Equation(text, ["x"]).program for text, _, _ in DESCRIPTIONS]
    tables = Tables.of(programs)
    wide = Tables(
        np.full((len(programs), 40, 3), 77, dtype=np.int32),
        tables.n_nodes.astype(np.int32),
        np.full((len(programs), 40), 1e300),
        tables.n_literals.astype(np.int32),
        tables.n_parameters.astype(np.int32),
    )
    for k, program in enumerate(programs):
        wide.nodes[k, : len(program.nodes)] = program.nodes
        wide.literals[k, : len(program.literals)] = program.literals
    prior, rows = LawPrior(), {"X": np.ones((5, 1)), "theta": np.ones((len(programs), 3))}
    np.testing.assert_array_equal(
        log_priors(prior, wide, 1, **rows), log_priors(prior, tables, 1, **rows)
    )


def test_no_laws_have_no_priors():
    assert log_priors(LawPrior(), Tables.of([]), 1).shape == (0,)
    assert find_log_priors("uniform", Tables.of([]), ["x"]).shape == (0,)


def test_the_rows_serve_where_generic_points_do_not():
    # Defined between 1e3 and 1e3 + 1 only, and with a number that sets a scale.
    law = Equation("c0*log(x - 1000000)", ["x"])
    X = np.linspace(1e6 + 1.0, 1e6 + 9.0, 30)[:, None]
    theta, tables = np.array([[2.0]]), Tables.of([law.program])
    prior = LawPrior(per_node=0.0, per_coincidence=2.0)
    with_rows = log_priors(prior, tables, 1, X=X, theta=theta)
    assert with_rows[0] == prior(law, rows=(X, theta[0]))
    assert with_rows[0] < log_priors(prior, tables, 1)[0]


@pytest.mark.parametrize("law_prior", ["description", "uniform", lambda law: -1.0 * law.complexity])
def test_every_prior_a_user_asks_for_is_found_for_all_laws_at_once(law_prior):
    laws = [Equation(text, ["x", "y"]) for text in ("c0*x", "x + y", "c0*x**2/(c1 + y)", "2*x")]
    found = find_log_priors(law_prior, Tables.of([law.program for law in laws]), ["x", "y"])
    assert found.tolist() == [read_law_prior(law_prior)(law) for law in laws]


@pytest.mark.parametrize("law_prior", ["description", "uniform", lambda law: -1.0])
def test_a_law_that_known_units_forbid_is_impossible(law_prior):
    texts = ("c0*sqrt(x)", "x + z", "x + y", "sin(x)", "c0*sin(c1*x)", "c0*x*y")
    laws = [Equation(text, ["x", "y", "z"]) for text in texts]
    generators = read_units({"x": "m", "y": "s", "z": "m", "v": "m"}, "xyz", "v").generators
    tables = Tables.of([law.program for law in laws])
    found = find_log_priors(law_prior, tables, ["x", "y", "z"], generators=generators)
    assert np.isfinite(found).tolist() == [True, True, False, False, True, True]
    # The same for one law, and units that are known need no further charge.
    prior = read_law_prior(law_prior)
    assert found.tolist() == [prior(law, generators=generators) for law in laws]
    if law_prior == "description":
        assert found[1] == prior.log_p(laws[1].program)


def test_what_is_no_equation_is_impossible_for_a_function():
    from pmsr.equation.operators import VARIABLE, operator_code
    from pmsr.equation.program import Program

    rows = [(VARIABLE, 0, 0), (operator_code("-"), 0, 0), (operator_code("/"), 0, 1)]
    found = find_log_priors(lambda law: 0.0, Tables.of([Program.of(rows, [], 0)]), ["x"])
    assert found.tolist() == [-math.inf]


def test_an_error_in_a_function_is_not_taken_for_an_impossible_law():
    def complain(law):
        raise ValueError("No idea.")

    with pytest.raises(ValueError, match="No idea"):
        find_log_priors(complain, Tables.of([Equation("c0*x", ["x"]).program]), ["x"])


def test_the_prior_of_many_laws_takes_microseconds():
    tables, programs = enumerated(1)
    log_priors(LawPrior(), tables, 1)
    start = time.process_time()
    log_priors(LawPrior(), tables, 1)
    # About 10 microseconds each; a busy machine and a debugger get ten times as long.
    assert (time.process_time() - start) / len(programs) < 100e-6


@pytest.mark.parametrize("p", [1, 2, 3, 7, 10, 1000])
@pytest.mark.parametrize("q", [1, 3, 7, 64, 999])
def test_a_fraction_is_recognised_behind_its_float(p, q):
    common = math.gcd(p, q)
    a, b = p // common, q // common
    assert fraction_cost(p / q) == pytest.approx(math.log(a * (a + 1) / 2 * b * (b + 1) / 2))
    assert fraction_cost(-p / q) == fraction_cost(p / q)


def test_numbers_that_are_no_fractions_cost_their_digits():
    # p and q of about 1e8 each: sixteen digits, and twice that in this code.
    assert 50.0 < fraction_cost(math.e) < 80.0
    assert number_cost(math.e)[0] == 0.0
    assert number_cost(math.pi / 3) == (2.0, pytest.approx(math.log(6)))
    assert number_cost(math.sqrt(5.0)) == (1.0, pytest.approx(math.log(15)))


@pytest.mark.parametrize("number", [0.0, 1e300, 1e-300, 5e-324, 2.0**53 + 2])
def test_every_float_has_a_finite_cost(number):
    assert 0.0 <= number_cost(number)[1] < math.inf


def test_a_number_that_is_infinite_makes_a_law_impossible():
    assert fraction_cost(math.inf) == math.inf


def test_shared_parts_without_end_cost_without_overflow():
    from pmsr.equation.operators import VARIABLE, operator_code
    from pmsr.equation.program import Program

    plus = operator_code("+")
    program = Program.of([(VARIABLE, 0, 0), *((plus, k, k) for k in range(60))], [], 0)
    assert LawPrior(per_node=1.0).log_p(program) == pytest.approx(-(2.0**61 - 1.0))


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"per_node": -1.0}, "per_node must be a number of at least 0, got -1.0"),
        ({"per_node": math.nan}, "per_node must be"),
        ({"per_node": True}, "per_node must be"),
        ({"per_coincidence": "2"}, "per_coincidence must be"),
        ({"per_pure_number": math.inf}, "per_pure_number must be"),
        ({"operators": {"sine": 1.0}}, "Unknown operator 'sine' in operators. Available: "),
        ({"operators": {"sin": -1.0}}, "The cost of 'sin' must be"),
        ({"operators": ["sin"]}, "operators must map names to costs"),
        ({"counts": (1, 2)}, "counts must be a LawCounts"),
    ],
)
def test_costs_are_checked_when_they_are_made(costs, message):
    with pytest.raises(ValueError, match=message):
        LawPrior(**costs)


def test_numbers_of_numpy_are_costs_and_can_be_saved():
    prior = LawPrior(per_node=np.float32(1.5), per_pure_number=np.int64(2), operators={"sin": 3})
    assert prior == LawPrior(per_node=1.5, per_pure_number=2.0, operators={"sin": 3.0})
    assert json.loads(json.dumps(asdict(prior)))["per_node"] == 1.5


def test_a_prior_is_frozen_hashable_and_can_be_sent_to_workers():
    given = {"sin": 3.0}
    prior = LawPrior(operators=given)
    given["sin"] = 0.0
    assert prior.operators == {"sin": 3.0}
    assert pickle.loads(pickle.dumps(prior)) == prior
    assert hash(prior) == hash(LawPrior(operators={"sin": 3.0}))
    with pytest.raises(AttributeError):
        prior.per_node = 2.0


def test_the_default_costs_are_those_that_the_study_chooses(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import law_prior

    results = law_prior.read("law_prior_train.csv")
    results.pop(law_prior.UNIFORM)
    per_node, per_coincidence, per_pure_number = law_prior.choose(results)[0]
    assert per_coincidence == per_pure_number
    assert LawPrior() == LawPrior(per_node=per_node, per_coincidence=per_coincidence)


def test_the_option_is_a_word_a_prior_or_a_function():
    law = Equation("c0*x", ["x"])
    assert read_law_prior("description") == LawPrior()
    assert read_law_prior("uniform") is uniform and uniform(law) == 0.0
    own = LawPrior(per_node=3.0)
    assert read_law_prior(own) is own
    assert read_law_prior(lambda equation: -float(equation.complexity))(law, signs=(1,)) == -3.0
    assert read_law_prior(lambda equation: -math.inf)(law) == -math.inf
    for number in (-3, np.int64(-3), np.float32(-3.0)):
        assert read_law_prior(lambda equation, number=number: number)(law) == -3.0
    for bad in ("flat", 3.0, None):
        with pytest.raises(ValueError, match="law_prior must be"):
            read_law_prior(bad)
    for bad in (math.nan, math.inf, None, "0"):
        with pytest.raises(ValueError, match=r"law_prior returned .* for c0\*x"):
            read_law_prior(lambda equation, bad=bad: bad)(law)


def test_size_may_cost_the_number_of_laws_of_that_size():
    counts = LawCounts((2, 4, 8, 16))
    assert log_p("c0*x", counts=counts) == pytest.approx(-math.log(8))
    assert log_p("c0*x**2", counts=counts) == pytest.approx(-5 * math.log(2) - math.log(3))
    # An operator with a cost of its own is no node of that size.
    assert log_p("c0*sin(x)", counts=counts, operators={"sin": 3.0}) == pytest.approx(
        -math.log(8) - 3.0
    )


def test_sizes_that_do_not_occur_are_between_those_that_do():
    counts = LawCounts((2, 0, 8, 0, 32))
    assert counts.log_count(4) == pytest.approx(math.log(16))
    assert counts.log_count(7) == pytest.approx(math.log(128))
    for bad in ((1,), (2, 0), (2.0, 3), (2, -1)):
        with pytest.raises(ValueError, match="by_nodes must"):
            LawCounts(bad)


def test_laws_are_counted_once():
    # One operator: x and c; x + x and c + x; 3*x and c + 2*x; 4*x and c + 3*x.
    assert count_laws(("+",), 1, most=50).by_nodes[:7] == (2, 0, 2, 0, 2, 0, 2)
    # sqrt of x and c; twice, three times.
    assert count_laws(("sqrt", "+"), 1, most=10).by_nodes[1] == 2


def test_the_number_of_laws_grows_about_fourfold_with_each_node():
    counts = count_laws(("+", "-", "*", "/", "sqrt"), 1, most=1000)
    assert len(counts.by_nodes) >= 6
    assert math.log(3.0) < counts.growth < math.log(5.0)
    with pytest.raises(ValueError, match="Unknown operator 'plus'"):
        count_laws(("plus",), 1)


def test_describing_takes_microseconds():
    program = Equation("c0*sin(c1*x) + c2*x/3", ["x"]).program
    prior = LawPrior()
    many = [program] * 1000
    prior.log_ps(many)
    start = time.process_time()
    prior.log_ps(many)
    # About 0.7 microseconds each.
    assert (time.process_time() - start) / 1000 < 20e-6
