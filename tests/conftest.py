"""What the tests of several modules need."""

import numpy as np
import pytest


@pytest.fixture
def with_softplus():
    """Add a row to the table of operators for the test."""
    import sympy

    from pmsr import operators

    class softplus(sympy.Function):
        pass

    operators.add_operator(
        operators.Operator(
            "softplus",
            1,
            softplus,
            None,
            lambda a: np.log1p(np.exp(a)),
            lambda a, v: 1.0 - np.exp(-v),
        )
    )
    yield
    del operators.OPERATORS["softplus"]
