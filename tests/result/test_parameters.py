import json
from inspect import signature

from pmsr.estimator import BayesianSymbolicRegressor
from pmsr.result.parameters import (
    SEARCH_OPTIONS,
    SETTINGS_OPTIONS,
    parameters_from_json,
    parameters_to_json,
)
from pmsr.settings import Search, Settings


def test_options_of_the_estimator_are_those_of_its_objects():
    known = signature(BayesianSymbolicRegressor).parameters
    assert {*SEARCH_OPTIONS, *SETTINGS_OPTIONS} <= known.keys()
    assert set(SEARCH_OPTIONS) <= signature(Search).parameters.keys()
    assert set(SETTINGS_OPTIONS) <= signature(Settings).parameters.keys()


def test_saved_parameters_have_constants_as_they_were_given():
    given = {"g": 9.81, "k": (2.0, 0.1)}
    parameters = BayesianSymbolicRegressor(constants=given).get_params(deep=False)
    saved = json.loads(json.dumps(parameters_to_json(parameters)))
    assert parameters_from_json(saved)["constants"] == given
