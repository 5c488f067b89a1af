"""What the tests of several modules need."""

import errno
import os
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def full_disk(monkeypatch):
    """Let the disk be full as soon as a file whose name begins so has been written."""

    @contextmanager
    def fill(start):
        def move(part, path):
            if part.name.startswith(start):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return original(part, path)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", move)
            yield

    original = Path.replace
    return fill


@pytest.fixture
def with_softplus():
    """Add a row to the table of operators for the test."""
    import sympy

    from pmsr.equation import operators

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
