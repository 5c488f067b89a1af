import numpy as np
import pytest

from pmsr.equation.operators import POWER
from pmsr.search.enumeration import enumerate_laws
from pmsr.search.folding import Rules, fold_genomes
from pmsr.search.genome import Primitives, random_genome

OPERATORS_OF_FIELDS = ("+", "-", "*", "/", "sqrt")


def levels(operators=OPERATORS_OF_FIELDS, n_variables=1, max_laws=3000, **options):
    return list(enumerate_laws(operators, n_variables, max_laws=max_laws, **options))


def test_no_law_is_there_twice_and_each_has_the_size_of_its_level():
    found = levels()
    keys = np.concatenate([level.laws.key for level in found])
    assert len(np.unique(keys)) == len(keys)
    for level in found:
        assert np.all(level.laws.size == level.size)


def test_levels_are_complete_and_their_number_follows_from_the_count_of_laws():
    few, many = levels(max_laws=300), levels(max_laws=3000)
    total = sum(len(level.laws) for level in few)
    assert total <= 300 < total + len(many[len(few)].laws)
    for one, other in zip(few, many, strict=False):
        assert np.array_equal(one.laws.key, other.laws.key)


def test_without_parameters_there_are_none():
    assert all(np.all(level.laws.n_parameters == 0) for level in levels(parameters=False))


@pytest.mark.parametrize(
    ("operators", "variables"),
    [(("+", "-", "*"), ("x",)), (("+", "*", "/"), ("x", "y", "z")), (OPERATORS_OF_FIELDS, ("x",))],
)
def test_what_random_graphs_fold_to_is_among_the_laws(operators, variables):
    found = levels(operators, len(variables), max_laws=30_000)
    keys = np.concatenate([level.laws.key for level in found])
    primitives = Primitives(operators, variables, size=12)
    rng = np.random.default_rng(0)
    genomes = [random_genome(primitives, rng=rng) for _ in range(3000)]
    folded = fold_genomes(genomes, Rules(operators=operators))
    small = (folded.refusal == 0) & (folded.size <= found[-1].size)
    numbers = [1.0, 2.0] + [0.5] * ("/" in operators)
    numbers += [-number for number in numbers] if "-" in operators else []
    kept = np.array([has_small_numbers(folded.program(k), numbers) for k in range(len(folded))])
    wanted = folded.take(small & kept)
    assert len(wanted) > 500
    assert np.all(np.isin(wanted.key, keys))


def has_small_numbers(program, numbers):
    powers = np.abs(program.nodes[program.nodes[:, 0] == POWER, 2])
    return np.all(np.isin(program.literals, numbers)) and np.all(powers <= 4)
