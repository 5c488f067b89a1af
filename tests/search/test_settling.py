import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.estimator import BayesianSymbolicRegressor
from pmsr.evidence.problem import Problem
from pmsr.result.doubts import ResultWarning
from pmsr.search.bench import Bench
from pmsr.search.evolution import run_evolution
from pmsr.search.finalists import weigh_finalists
from pmsr.search.settling import first_part, have_graphs, settle_noise
from pmsr.settings import QUICK, Search

x = np.linspace(0.5, 4.0, 24)
SEARCH = Search(
    operators=("+", "*"),
    population_size=20,
    generations=20,
    n_enumerated=100,
    n_islands=2,
    n_finalists=3,
)


def measured(planted, seed=0):
    rng = np.random.default_rng(seed)
    y = 1.7 + 2.3 * x + 0.1 * rng.standard_normal(24)
    if planted:
        y[[3, 15]] += np.array([4.0, -4.0])
    return make_data(x, y, names=["x"])


def regressor(**options):
    return BayesianSymbolicRegressor(
        SEARCH.operators,
        **{
            "noise": "auto",
            "population_size": 20,
            "generations": 20,
            "max_time": None,
            "search": SEARCH,
            "random_state": 1,
            "verbose": False,
            **options,
        },
    )


def fitted(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResultWarning)
        return regressor(**options).fit(pd.DataFrame(data.X, columns=data.names), data.y)


def test_where_normal_noise_is_chosen_the_result_is_that_of_a_search_under_normal_noise():
    data = measured(planted=False)
    chosen, plain = fitted(data), fitted(data, noise="gaussian")
    assert chosen.noise_table_["noise"].iloc[0] == "gaussian"
    assert chosen.result_.problem.noise.name == "gaussian"
    pd.testing.assert_frame_equal(chosen.equations_, plain.equations_)
    assert chosen.result_.search == plain.result_.search
    times = ["elapsed", "equations_per_second"]
    pd.testing.assert_frame_equal(
        chosen.history_.drop(columns=times), plain.history_.drop(columns=times)
    )


def test_a_search_that_ends_in_its_first_part_is_that_under_normal_noise():
    data = measured(planted=False)
    search = replace(SEARCH, generations=60)
    options = {"generations": 60, "patience": 3, "search": search}
    chosen, plain = fitted(data, **options), fitted(data, noise="gaussian", **options)
    assert chosen.result_.stopped == "patience"
    pd.testing.assert_frame_equal(chosen.equations_, plain.equations_)


def test_finalists_are_weighed_once(monkeypatch):
    weighed = []

    def weigh(keys, *rest, **options):
        weighed.append(list(keys))
        return weigh_finalists(keys, *rest, **options)

    monkeypatch.setattr("pmsr.search.evolution.weigh_finalists", weigh)
    for planted in (False, True):
        fitted(measured(planted))
        assert len(weighed) == 1
        weighed.clear()


def test_laws_that_start_a_second_search_keep_to_the_rules():
    # The second search would refuse a guess that does not.
    found = fitted(measured(planted=True), forbid={"*": ("+",)})
    assert found.result_.problem.noise.name == "student"


def test_a_search_does_not_begin_with_a_root_of_a_root_that_became_a_power():
    search = replace(SEARCH, operators=("+", "*", "sqrt"))
    data = measured(planted=False)
    problem = Problem.of(data, QUICK, search.max_parameters)
    laws = [Equation(text, ["x"]) for text in ("c0 + c1*sqrt(sqrt(sqrt(x)))", "c0 + c1*x")]
    kept = have_graphs(laws, Bench(problem, search, QUICK, 1))
    assert [law.text for law in kept] == ["c0 + c1*x"]


def test_outliers_are_seen_and_the_rest_of_the_budget_is_for_a_robust_search():
    found = fitted(measured(planted=True))
    assert found.noise_table_["noise"].iloc[0] == "student" == found.result_.problem.noise.name
    assert str(found.best_.equation) == "c0 + c1*x"
    assert len(found.history_) == 11  # generations 0 to 10; 10 of 20 were under normal noise
    # The noise is in the table with its price.
    table = found.noise_table_.set_index("noise")
    assert list(table.columns) == ["equation", "log_q", "score"]


@pytest.mark.slow  # processes of its own
def test_the_choice_is_the_same_for_any_number_of_workers():
    one, two = (fitted(measured(planted=True), n_jobs=n) for n in (1, 2))
    pd.testing.assert_frame_equal(one.noise_table_, two.noise_table_)
    pd.testing.assert_frame_equal(one.equations_, two.equations_)


def test_a_user_who_ends_the_first_part_has_ended_the_search():
    found = fitted(measured(planted=True), callbacks=[lambda told: True])
    assert found.result_.stopped == "callback"
    assert found.noise_table_.empty and found.result_.problem.noise.name == "gaussian"


def test_ctrl_c_in_the_first_part_keeps_what_was_found():
    def interrupt(told):
        raise KeyboardInterrupt

    found = fitted(measured(planted=True), callbacks=[interrupt])
    assert found.result_.stopped == "interrupted"
    assert found.noise_table_.empty and len(found.equations_) >= 1


def test_a_warm_start_goes_on_under_the_noise_that_was_chosen():
    data = measured(planted=True)
    found = fitted(data, warm_start=True)
    table, n = found.noise_table_, len(found.history_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResultWarning)
        found.fit(pd.DataFrame(data.X, columns=data.names), data.y)
    assert found.result_.problem.noise.name == "student"
    assert len(found.history_) > n and found.noise_table_ is table


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"checkpoint": "state.npz"}, "does not go with checkpoint"),
        ({"fitness": "rmse"}, "is chosen by evidence, got fitness='rmse'"),
    ],
)
def test_a_choice_that_cannot_be_made_is_refused_before_anything_runs(options, words, tmp_path):
    if "checkpoint" in options:
        options = {"checkpoint": tmp_path / "state.npz"}
    with pytest.raises(ValueError, match=words):
        regressor(**options).fit(x[:, None], measured(planted=False).y)
    assert not list(tmp_path.iterdir())


def test_known_errors_need_no_first_part():
    data = replace(measured(planted=False), y_err=np.full(24, 0.1))
    settled = settle_noise(
        Problem.of(data, QUICK), search=SEARCH, settings=QUICK, random_seed=1, n_jobs=1
    )
    assert settled.table == () and settled.is_normal


@pytest.mark.parametrize(("refresh", "expected"), [(10, 40), (7, 42), (None, 40)])
def test_the_first_part_ends_with_an_exchange(refresh, expected):
    search = replace(SEARCH, generations=100, refresh=refresh, max_time=50.0, max_units=9)
    part = first_part(replace(search, n_finalists=9))
    assert part.n_finalists == 9  # it may turn out to be all
    assert (part.generations, part.max_time, part.max_units) == (expected, 20.0, 4)


def test_few_generations_are_all_in_the_first_part():
    search = replace(SEARCH, generations=4)
    assert first_part(search).generations == 4
    problem = Problem.of(measured(planted=True), QUICK)
    settled = settle_noise(problem, search=search, settings=QUICK, random_seed=1, n_jobs=1)
    assert settled.search.generations == 0
    # A search of no generations has still what was enumerated, and a first population.
    found = run_evolution(
        settled.problem,
        search=settled.search,
        settings=settled.settings,
        seeds=settled.laws,
        random_seed=1,
        n_jobs=1,
    )
    assert str(found.winner) == "c0 + c1*x"
