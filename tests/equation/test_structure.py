import numpy as np
import pytest

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.equation.kernels import find_active
from pmsr.equation.program import evaluate, parameter_free_values
from pmsr.equation.structure import (
    BELOW,
    TANGENT,
    WAVE,
    find_affine,
    find_dependent,
    find_scales,
    find_size,
    find_watched,
    obeys,
)
from pmsr.evidence.natural_scales import natural_scales
from pmsr.evidence.surface import Surface
from pmsr.search.genome import Primitives, random_genome

OPERATORS = ("+", "-", "*", "/", "sqrt", "exp", "sin", "tan", "abs")


def random_programs(n, seed=0):
    rng = np.random.default_rng(seed)
    primitives = Primitives(OPERATORS, ("x", "z"), size=14)
    programs = []
    while len(programs) < n:
        try:
            program = random_genome(primitives, rng=rng).equation(("x", "z")).program
        except (ValueError, TypeError):
            continue
        if program.n_parameters:
            programs.append(program)
    return programs


@pytest.fixture(scope="module")
def programs():
    return random_programs(120)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.uniform(0.2, 3.0, (12, 2))
    return make_data(X, X[:, 0] - 40.0 * X[:, 1] + rng.standard_normal(12))


def affine(program):
    n, p = len(program.nodes), program.n_parameters
    found = np.zeros(p, dtype=np.bool_)
    scratch = [np.zeros(size, dtype=np.int64) for size in (n, n, p)]
    find_affine(program.nodes, p, *scratch, found)
    return tuple(np.flatnonzero(found).tolist())


def test_affine_parameters_are_those_of_the_program(programs):
    assert [affine(one) for one in programs] == [one.affine for one in programs]


@pytest.mark.parametrize(
    "text",
    ["c0*(c1 + c2*x)", "c0*c1", "c0/(c1 + x)", "c0*exp(c1*x) + c2", "c0*x**c1", "c0**2 + c1"],
)
def test_affine_parameters_of_known_laws(text):
    program = Equation(text, ["x"]).program
    assert affine(program) == program.affine


def test_nodes_that_depend_on_any_parameter_are_the_active_ones(programs):
    for program in programs:
        found = np.zeros(len(program.nodes), dtype=np.bool_)
        find_dependent(program.nodes, np.ones(program.n_parameters, dtype=np.bool_), found)
        assert np.array_equal(found, find_active(program.nodes))


def test_scales_are_the_natural_ones(programs, data):
    for program in programs:
        n = len(program.nodes)
        table = np.zeros((n, len(data.y)))
        for node, row in parameter_free_values(program, data.X).items():
            table[node] = row
        scales = np.ones(program.n_parameters)
        find_scales(
            program.nodes,
            find_active(program.nodes),
            table,
            len(data.y),
            find_size(data.y),
            np.zeros(n),
            np.zeros(n),
            scales,
        )
        with np.errstate(all="ignore"):
            expected = natural_scales(program, data)
        np.testing.assert_allclose(scales, expected, rtol=1e-12)


def test_sizes_are_root_mean_squares_of_any_magnitude():
    assert find_size(np.array([3e200, -4e200, np.inf])) == pytest.approx(np.sqrt(12.5) * 1e200)
    assert find_size(np.zeros(3)) == 1.0


def rule_of(program, theta, data):
    watched = np.zeros(len(program.nodes), dtype=np.int64)
    find_watched(program.nodes, find_active(program.nodes), watched)
    table = np.empty((len(program.nodes), len(data.y)))
    for node in range(len(table)):
        part = type(program)(program.nodes[: node + 1], program.literals, program.n_parameters)
        table[node] = evaluate(part, theta[None, :], data.X)[0]
    return obeys(watched, table, len(data.y))


def test_rules_are_those_of_the_surface(programs, data):
    rng = np.random.default_rng(3)
    seen = []
    for program in programs:
        surface = Surface.of(program, data)
        for theta in rng.normal(0.0, 2.0, (4, program.n_parameters)):
            with np.errstate(all="ignore"):
                finite = np.isfinite(np.sum(evaluate(program, theta[None, :], data.X) ** 2))
                expected = bool(surface.obeys(theta[None, :])[0])
            if finite:
                seen.append((rule_of(program, theta, data), expected))
    assert len(seen) > 100 and {expected for _, expected in seen} == {True, False}
    assert all(ours == expected for ours, expected in seen)


def test_a_denominator_is_watched_in_its_factors():
    program = Equation("c0/((c1 + x)**2*(c2 - x))", ["x"]).program
    watched = np.zeros(len(program.nodes), dtype=np.int64)
    assert find_watched(program.nodes, find_active(program.nodes), watched)
    assert sorted(watched.tolist())[-3:] == [0, BELOW, BELOW]


def test_a_node_is_watched_for_all_that_is_done_with_it():
    program = Equation("cos(c0 + x)/(c0 + x) + tan(c1*x)", ["x"]).program
    watched = np.zeros(len(program.nodes), dtype=np.int64)
    find_watched(program.nodes, find_active(program.nodes), watched)
    assert sorted(watched.tolist())[-2:] == [BELOW | WAVE, WAVE | TANGENT]


def test_nothing_is_watched_where_no_parameter_matters():
    program = Equation("c0*sin(x)/(1 + x)", ["x"]).program
    watched = np.zeros(len(program.nodes), dtype=np.int64)
    assert not find_watched(program.nodes, find_active(program.nodes), watched)
