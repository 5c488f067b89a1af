import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.estimator import BayesianSymbolicRegressor
from pmsr.result.parameters import parameters_from_json, parameters_to_json
from pmsr.result.storage import read_search, record_search
from pmsr.search.evolution import run_evolution
from pmsr.search.restrictions import Restrictions, check_restrictions
from pmsr.settings import Search, Settings

NAMES = ("x", "y", "T")


def rules(**options):
    found = Restrictions.of(Search(**options), NAMES)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("options", "text", "words"),
    [
        (dict(forbid={"exp": ["exp"]}), "exp(c0*exp(x))", "has 'exp' inside 'exp'"),
        (dict(forbid={"exp": ["exp", "sin"]}), "exp(c0 + x*sin(y))", "has 'sin' inside 'exp'"),
        (dict(forbid={"exp": ["sin"]}), "sin(exp(x)) + exp(x)", None),
        (dict(forbid={"exp": ["sin"]}), "exp(x)*sin(x)", None),
        (dict(forbid={"sqrt": ["pow"]}), "sqrt(c0 + x**2)", "has 'pow' inside 'sqrt'"),
        (dict(forbid={"pow": ["sin"]}), "c0*sin(x)**3", "has 'sin' inside 'pow'"),
        (dict(max_uses={"sin": 1}), "sin(x) + c0*sin(y)", "uses 'sin' 2 times"),
        (dict(max_uses={"sin": 1}), "(c0 + sin(x))*sin(x)", "uses 'sin' 2 times"),
        (dict(max_uses={"sin": 1}), "c0*sin(x) + y", None),
        (dict(max_uses={"sin": 0}), "c0*sin(x) + y", "uses 'sin' 1 times"),
        (dict(require=["T"]), "c0*x", "does not depend on 'T'"),
        (dict(require=["T", "x"]), "c0*x/T", None),
        (dict(exclude=["y"]), "c0*x + y", "depends on 'y'"),
        (dict(exclude=["y"]), "c0*x", None),
    ],
)
def test_a_rule_says_what_breaks_it(options, text, words):
    found = rules(**options).describe(Equation(text, NAMES).program)
    assert found is None if words is None else found is not None and words in found


@settings(deadline=None)
@given(st.lists(st.sampled_from(["sin", "exp", "sqrt"]), min_size=1, max_size=6))
def test_what_stands_inside_is_what_brackets_say(functions):
    text = (
        "".join(f"{name}(c{k} + " for k, name in enumerate(functions)) + "x" + ")" * len(functions)
    )
    program = Equation(text, NAMES).program
    inside = (
        any(name == "sin" for name in functions[functions.index("exp") :])
        if ("exp" in functions)
        else False
    )
    assert (rules(forbid={"exp": ["sin"]}).describe(program) is not None) == inside
    most = functions.count("sin")
    assert rules(max_uses={"sin": most}).describe(program) is None
    if most:
        assert rules(max_uses={"sin": most - 1}).describe(program) is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(require="T"), "require must be a list of names of columns, got 'T'. Use ['T']"),
        (dict(forbid=["exp"]), "forbid must map the name of an operator"),
        (dict(forbid={"exp": "sin"}), "forbid['exp'] must be a list of names of operators"),
        (dict(max_uses={"sin": -1}), "max_uses['sin'] must be an integer of at least 0, got -1"),
        (dict(max_uses={"sin": True}), "must be an integer of at least 0, got True"),
        (dict(exclude=[1]), "exclude must hold names of columns, got (1,)"),
    ],
)
def test_options_that_are_no_rules_are_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Search(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(forbid={"expp": ["sin"]}), "Unknown operator 'expp' in forbid"),
        (dict(max_uses={"sine": 1}), "Unknown operator 'sine' in max_uses"),
        (dict(require=["t"]), "There is no variable 't', which require names"),
        (dict(require=["y"]), "is the same in all rows"),
        (dict(require=["x"], exclude=["x"]), "named by require and by exclude"),
        (dict(exclude=["x", "T"]), "nothing is left"),
        (dict(require=["x", "T"], operators=("exp", "sin")), "join no more than 1 in a law"),
        (dict(require=["x", "T"], operators=("+",), max_uses={"+": 0}), "join no more than 1"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        check_restrictions(Search(**options), NAMES, ("x", "T"))


def test_laws_too_small_for_what_is_required_are_refused():
    search = Search(require=["x", "y", "T"], max_complexity=4)
    with pytest.raises(ValueError, match="a law of them has 5 nodes or more: max_complexity is 4"):
        check_restrictions(search, NAMES, NAMES)


RNG = np.random.default_rng(20)
X = RNG.uniform(1.0, 3.0, size=(40, 3))
DATA = make_data(X, 2.0 * X[:, 1] * np.exp(0.4 * X[:, 2]) + RNG.normal(0, 0.05, 40), names=NAMES)
SMALL = dict(
    operators=("+", "*", "exp", "sin"),
    population_size=20,
    generations=6,
    refresh=3,
    n_islands=2,
    n_enumerated=400,
    n_finalists=8,
)
FEW_DRAWS = Settings(n_draws=500, n_multistarts=2, thorough=False)
RULES = dict(
    forbid={"exp": ["exp", "sin"], "sin": ["exp"]},
    max_uses={"exp": 1, "sin": 1},
    require=["x"],
    exclude=["y"],
)


@pytest.mark.parametrize("evidence", ["screened", "smc"])
def test_a_search_reports_only_laws_that_keep_the_rules(evidence):
    options = SMALL if evidence == "screened" else {**SMALL, "generations": 2, "n_islands": 1}
    search = Search(**options, **RULES, evidence=evidence)
    found = run_evolution(DATA, search=search, settings=FEW_DRAWS, random_seed=1)
    assert len(found.finalists) > 1
    kept = Restrictions.of(search, NAMES)
    for equation, _ in found.finalists:
        assert kept.describe(equation.program) is None, equation
        assert kept.describe(Equation(str(equation), NAMES).program) is None, equation


def test_without_the_rules_the_same_search_breaks_them():
    found = run_evolution(DATA, search=Search(**SMALL), settings=FEW_DRAWS, random_seed=1)
    kept = Restrictions.of(Search(**RULES), NAMES)
    assert any(kept.describe(equation.program) for equation, _ in found.finalists)


def test_a_guess_that_breaks_a_rule_is_refused_in_words():
    for text, words in (
        ("c0*x*exp(T)*exp(x*sin(T))", "has 'sin' inside 'exp'"),
        ("c0*T", "does not depend on 'x', which require asks for"),
        ("c0*x*y", "depends on 'y', which exclude rules out"),
    ):
        with pytest.raises(ValueError, match=f"The guess .* {words}"):
            run_evolution(
                DATA, search=Search(**SMALL, **RULES), seeds=[Equation(text, NAMES)], random_seed=1
            )


def test_rules_are_kept_in_files_and_older_files_have_none():
    search = Search(**SMALL, **RULES)
    record = json.loads(json.dumps(record_search(search)))
    assert read_search(record) == search
    for name in RULES:
        del record[name]
    older = read_search(record)
    assert (older.forbid, older.max_uses, older.require, older.exclude) == ({}, {}, (), ())


def test_the_estimator_hands_the_rules_on_and_keeps_them_in_files():
    regressor = BayesianSymbolicRegressor(("+", "*", "exp", "sin"), **RULES)
    searched = regressor._search()
    assert searched.forbid == {"exp": ("exp", "sin"), "sin": ("exp",)}
    record = json.loads(json.dumps(parameters_to_json(regressor.get_params(deep=False))))
    again = BayesianSymbolicRegressor(**parameters_from_json(record))
    assert again._search() == searched
    for name in RULES:
        del record[name]
    older = BayesianSymbolicRegressor(**parameters_from_json(record))._search()
    assert older == Search(operators=("+", "*", "exp", "sin"), max_time=120.0)
