import pytest
from shelf import DATA, LAWS, SEARCH, SHELF

from pmsr.result.comparison import weigh_equations
from pmsr.search.evolution import run_evolution
from pmsr.settings import Settings


@pytest.fixture(scope="module")
def result():
    return weigh_equations(LAWS, *SHELF, settings=Settings(), random_seed=1)


@pytest.fixture(scope="module")
def found():
    return run_evolution(DATA, search=SEARCH, random_seed=1)
