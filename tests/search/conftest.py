import numpy as np
import pytest

from pmsr.data import make_data
from pmsr.search.genome import Primitives, random_genome


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.3, 4.0, (20, 1))
    return make_data(X, 3.0 * np.exp(-X[:, 0]) + 0.5 + 0.1 * rng.standard_normal(20))


@pytest.fixture(scope="module")
def programs():
    rng = np.random.default_rng(2)
    primitives = Primitives(("+", "-", "*", "/", "sqrt", "exp", "sin"), ("x0",), size=12)
    found = {}
    while len(found) < 60:
        try:
            equation = random_genome(primitives, rng=rng).equation(("x0",))
            found.setdefault(equation.key, equation.to_canonical().program)
        except (ValueError, TypeError):
            continue
    return list(found.values())
