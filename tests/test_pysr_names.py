import re
from dataclasses import fields

import pytest
from sklearn.exceptions import NotFittedError

from pmsr.data import load_galileo
from pmsr.estimator import BayesianSymbolicRegressor
from pmsr.pysr_names import ATTRIBUTES, FROM_PYSR
from pmsr.settings import Search

SHELF = load_galileo("shelf")


@pytest.mark.parametrize("name", FROM_PYSR)
def test_parameters_of_pysr_are_refused_with_our_name(name):
    with pytest.raises(TypeError, match=rf"no parameter '{name}'\. ") as raised:
        BayesianSymbolicRegressor(**{name: 1})
    # What it says to use is there.
    used = re.findall(r"(\w+)=", str(raised.value))
    known = {*BayesianSymbolicRegressor().get_params(), *(f.name for f in fields(Search))}
    assert set(used) <= known
    with pytest.raises(ValueError, match=re.escape(str(raised.value))):
        BayesianSymbolicRegressor().set_params(**{name: 1})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("weights", "no argument 'weights'. Use y_err= for known errors, sample_weight= for count"),
        ("variable_names", "Give X as a table"),
        ("X_units", "Use units= of the estimator"),
        ("sample_weights", "Did you mean sample_weight="),
        ("noise", "'noise': it is a parameter of the estimator itself"),
        ("foo", "Available: y_err, X_err, groups, sample_weight"),
    ],
)
def test_arguments_that_fit_does_not_have_are_refused_with_our_name(name, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        BayesianSymbolicRegressor().fit(*SHELF, **{name: None})


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_of_pysr_are_refused_with_our_name(name):
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'\. Use ") as raised:
        getattr(BayesianSymbolicRegressor(), name)
    # What it says to use is there.
    for one in re.findall(r"\b(best_|result_|equations_|pareto_front_)\b", str(raised.value)):
        with pytest.raises(NotFittedError):
            getattr(BayesianSymbolicRegressor(), "best_" if one == "result_" else one)


def test_other_attributes_are_missing_without_advice():
    assert not hasattr(BayesianSymbolicRegressor(), "result_")
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'\.$"):
        BayesianSymbolicRegressor().nothing  # noqa: B018
