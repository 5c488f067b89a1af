import re

import numpy as np
import pytest

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.evidence.noise import find_noise
from pmsr.result.loading import load_result
from pmsr.settings import Search
from pmsr.shell.wording import in_words_of_a_shell

X = np.arange(1.0, 5.0)
DATA = make_data(X, X**2)


@pytest.mark.parametrize(
    "cause",
    [
        lambda: find_noise("auto", DATA),
        lambda: find_noise("gaussian", DATA, extra_noise=True),
        lambda: find_noise("student", make_data(X, X**2, y_err=1.0)),
        lambda: find_noise("poisson", make_data(X, X**2 + 0.5)),
        lambda: find_noise("lognormal", make_data(X, X**2 - 3.0)),
        lambda: make_data(X, X**2, sample_weight=0.1),
        lambda: Search(population_size=7),
        lambda: Equation("a*x", ["x"]),
        lambda: Equation("x1*x", ["x"]),
        lambda: Equation("x", ["x"], ["a,b"]),
        lambda: make_data(X, X**2, constants={"a b": 1.0}),
        lambda: load_result("none"),
    ],
)
def test_no_argument_of_python_is_left_in_an_error(cause):
    with pytest.raises(ValueError) as caught:
        cause()
    text = in_words_of_a_shell(str(caught.value))
    python = r"\w=[\"'\w]|\w=\.|_err|_weight|pandas|pmsr\.|population_size|identifier|save\("
    assert not re.search(python, text), text
