import json
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import pmsr
from pmsr.data import load_galileo, make_data, make_sine
from pmsr.estimator import (
    BayesianSymbolicRegressor,
    load,
)
from pmsr.laws.prior import LawPrior
from pmsr.result.comparison import weigh_equations
from pmsr.result.doubts import ResultWarning
from pmsr.result.result import Result
from pmsr.result.storage import HEADER
from pmsr.search.checkpoint import read_progress
from pmsr.search.evolution import run_evolution
from pmsr.settings import QUICK, Search, Settings

SHELF = load_galileo("shelf")
GRID = pd.DataFrame({"H": [350.0, 450.0, 900.0]})
FEW = Search(n_finalists=3, n_enumerated=100, n_islands=2, refresh=2)
TINY = {
    "population_size": 12,
    "generations": 2,
    "max_complexity": 12,
    "search": FEW,
    "random_state": 0,
    "verbose": False,
}
OPTIONS = {"operators": ("+", "*", "sqrt"), "guesses": ("c0*sqrt(H)", "c0 + c1*H")}
quiet = pytest.mark.filterwarnings("ignore::pmsr.result.doubts.ResultWarning")


def make(**options):
    return BayesianSymbolicRegressor(**{**TINY, **options})


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResultWarning)
        return make(**OPTIONS).fit(*SHELF)


@quiet
def test_scikit_learn_finds_nothing_to_complain_about():
    silent = {"on_fail": None, "on_skip": None}
    results = check_estimator(make(generations=1, search=replace(FEW, n_finalists=2)), **silent)
    assert len(results) > 40
    wrong = [(r["check_name"], r["exception"]) for r in results if r["status"] != "passed"]
    # The array API is checked only if SCIPY_ARRAY_API is set.
    assert [name for name, _ in wrong if name != "check_array_api_input"] == [], wrong


ARRAY_API = """
import pmsr
from sklearn.utils.estimator_checks import check_estimator
few = pmsr.Search(n_finalists=2, n_enumerated=100, n_islands=2, refresh=2)
results = check_estimator(pmsr.BayesianSymbolicRegressor(
    population_size=12, generations=1, max_complexity=12, random_state=0, verbose=False, search=few
), on_fail=None, on_skip=None)
print([r["check_name"] for r in results if r["status"] != "passed"])
"""


@pytest.mark.slow
def test_the_array_api_is_checked_where_its_package_is_installed():
    pytest.importorskip("array_api_strict")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ARRAY_API],
        env=dict(os.environ, SCIPY_ARRAY_API="1"),  # before SciPy is imported
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_parameters_are_plain_values_with_defaults():
    regressor = BayesianSymbolicRegressor()
    # What else there is belongs to Search and Settings: more would be a constructor nobody reads.
    assert len(regressor.get_params()) <= 31
    assert regressor.max_time == 120.0
    assert regressor.get_params()["operators"] == ("+", "-", "*", "/")
    assert regressor._settings().parameter_prior == "invariant"
    assert make(parameter_prior="flat")._settings().parameter_prior == "flat"
    as_in_the_paper = replace(QUICK, parameter_prior="flat")
    assert make(settings=as_in_the_paper)._settings().parameter_prior == "flat"
    with pytest.raises(ValueError, match="parameter_prior is 'flat' in settings and 'invariant'"):
        make(settings=as_in_the_paper, parameter_prior="invariant")._settings()
    with pytest.raises(ValueError, match="Unknown parameter_prior 'even'"):
        make(parameter_prior="even")._settings()
    changed = clone(make(gamma=0.3, guesses=["c0*H"]))
    assert changed.get_params()["gamma"] == 0.3 and changed.guesses == ["c0*H"]
    assert regressor.set_params(generations=7).generations == 7


@quiet
def test_a_fit_is_the_search_with_the_same_options(fitted):
    search = Search(
        operators=("+", "*", "sqrt"),
        population_size=12,
        generations=2,
        max_complexity=12,
        n_finalists=3,
    )
    seeds = [pmsr.Equation(guess, ["H"]) for guess in OPTIONS["guesses"]]
    found = run_evolution(make_data(*SHELF), search=search, seeds=seeds, random_seed=0)
    log_q = {str(equation): evidence.log_q for equation, evidence in found.finalists}
    table = fitted.equations_
    assert dict(zip(table["equation"], table["log_q"], strict=True)) == log_q
    assert str(fitted.best_.equation) == str(found.winner)
    history = fitted.history_
    assert history["generation"].to_list() == [0, 1, 2]
    assert fitted.n_features_in_ == 1 and list(fitted.feature_names_in_) == ["H"]
    assert fitted.result_.stopped == "generations"


def test_the_table_has_what_was_promised(fitted):
    promised = ["equation", "log_q", "log_q_se", "probability", "complexity", "parameters"]
    promised += ["rmse", "latex"]
    assert set(promised) <= set(fitted.equations_.columns)
    rest = fitted.result_.unweighed_share
    assert fitted.equations_["probability"].sum() + rest == pytest.approx(1)
    assert set(fitted.pareto_front_.index) <= set(fitted.equations_.index)
    assert fitted.best_.posterior.posterior.sizes["chain"] == 4


def test_predictions_are_those_of_the_result(fitted):
    mean, std = fitted.predict(GRID, return_std=True)
    expected, expected_std = fitted.best_.predict(GRID, return_std=True)
    np.testing.assert_array_equal(mean, expected)
    np.testing.assert_array_equal(std, expected_std)
    for kind in ("prediction", "credible"):
        np.testing.assert_array_equal(
            fitted.predict_interval(GRID, level=0.8, kind=kind),
            fitted.best_.predict_interval(GRID, level=0.8, kind=kind),
        )
    average = fitted.predict(GRID, average=True)
    np.testing.assert_array_equal(average, fitted.result_.predict(GRID, average=True))
    assert fitted.predict_interval(GRID, average=True).shape == (3, 2)
    assert fitted.score(*SHELF) > 0.9


@quiet
def test_another_equation_can_be_selected(fitted):
    other = pickle.loads(pickle.dumps(fitted))
    last = len(other.equations_) - 1
    assert other.select(last) is other
    assert other.best_.equation.text == other.equations_["equation"].iloc[last]
    np.testing.assert_array_equal(other.predict(GRID), other.best_.predict(GRID))
    assert other.select(fitted.best_.equation.text).best_.equation == fitted.best_.equation
    with pytest.raises(ValueError, match=r"There are \d+ equations, from 0 on, got 99"):
        other.select(99)


def test_any_equation_predicts_by_its_row(fitted):
    result = fitted.result_
    for index in (1, result[1].equation.text):
        np.testing.assert_array_equal(fitted.predict(GRID, index=index), result[1].predict(GRID))
    np.testing.assert_array_equal(
        fitted.predict_interval(GRID, index=1), result[1].predict_interval(GRID)
    )
    assert fitted.result_.chosen == 0
    assert result[:2] == result.equations[:2] and list(result) == list(result.equations)
    assert fitted.equations_[1:3]["equation"].to_list() == [
        one.equation.text for one in result[1:3]
    ]
    with pytest.raises(ValueError, match="There are 3 equations, from 0 on, got 7"):
        fitted.predict(GRID, index=7)
    with pytest.raises(ValueError, match="Either average=True or index=1"):
        fitted.predict(GRID, average=True, index=1)


@quiet
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_columns_keep_their_names(kind):
    names = ["height (cm)", "σ", "fall time [s]"]
    values = np.random.default_rng(0).uniform(1.0, 2.0, size=(12, 3))
    y = 3.0 * values[:, 0] * values[:, 1] + 0.01 * values[:, 2]
    table = pd.DataFrame(values, columns=names)
    target = pd.Series(y, name="v [m/s]")
    if kind == "polars":
        table, target = pl.DataFrame(values, schema=names), pl.Series("v [m/s]", y)
    guess = "c0*`height (cm)`*σ + c1*`fall time [s]`"
    regressor = make(guesses=[guess], operators=("+", "*"), generations=1).fit(table, target)
    assert list(regressor.feature_names_in_) == names
    best = regressor.select(guess).best_
    assert best.equation.key == pmsr.Equation(guess, names).key
    for name in (
        r"\mathrm{v\ [m/s]} =",
        r"\mathrm{fall\ time\ [s]}",
        r"\mathrm{height\ (cm)} \sigma",
    ):
        assert name in best.latex()
    plain = regressor.predict(table)
    np.testing.assert_allclose(plain, y, rtol=0.01)
    assert "height (cm)" in regressor._repr_html_()
    with pytest.raises(ValueError, match="feature names"):
        regressor.predict(table[[names[1], names[0], names[2]]])


@quiet
def test_arrays_have_numbered_variables():
    X, y = make_sine(12, random_seed=0)
    regressor = make().fit(X.to_numpy(), y.to_numpy())
    assert not hasattr(regressor, "feature_names_in_")
    assert regressor.result_.data.names == ("x0",) and regressor.best_.target == "y"


@quiet
def test_pipelines_cross_validation_and_searches_for_parameters_work():
    X, y = make_sine(20, random_seed=0)
    pipeline = make_pipeline(StandardScaler(), make(generations=1))
    scores = cross_val_score(pipeline, X, y, cv=2)
    assert scores.shape == (2,) and np.isfinite(scores).all()
    choice = GridSearchCV(make(generations=1), {"max_complexity": [5, 8]}, cv=2).fit(X, y)
    assert choice.best_params_["max_complexity"] in (5, 8)


def test_the_folds_of_a_cross_validation_do_not_warn():
    # Warnings are errors in these tests.
    x = np.linspace(1.0, 2.0, 30)
    data = x[:, None], x + 3.0 * (np.arange(30) % 12 == 7)
    pipeline = make_pipeline(StandardScaler(), make(operators=("+", "*"), generations=1))
    assert np.isfinite(cross_val_score(pipeline, *data, cv=2)).all()
    with pytest.warns(ResultWarning, match="do not look normal"):
        pipeline.fit(*data)


@quiet
def test_operators_may_be_a_set():
    for given in ("common", ["arithmetic", "sqrt", "exp", "log"]):
        search = make(operators=given)._search()
        assert search.operators == ("+", "-", "*", "/", "sqrt", "exp", "log")
    assert make(operators="common").get_params()["operators"] == "common"
    assert make(operators="powers", generations=1).fit(*SHELF).result_.search.operators[-1] == "pow"


def test_a_warm_start_after_a_cold_one_says_that_it_begins_anew():
    regressor = make(generations=1)
    said = []
    for warm in (False, True, True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            regressor.set_params(warm_start=warm).fit(*SHELF)
        said.append(any("began anew: warm_start" in str(one.message) for one in caught))
    assert said == [False, True, False]


def test_noise_is_not_chosen_where_errors_are_known():
    X, y = SHELF
    with pytest.raises(ValueError, match=r'noise="auto" asks how large errors.*y_err says it'):
        make(noise="auto").fit(X, y, y_err=np.full(len(y), 9.0))


@quiet
def test_a_warm_start_goes_on_for_another_budget():
    regressor = make(warm_start=True, random_state=None, **OPTIONS).fit(*SHELF)
    seed = regressor.result_.random_seed
    regressor.fit(*SHELF)
    whole = make(generations=4, random_state=seed, **OPTIONS).fit(*SHELF)
    assert regressor.history_["generation"].to_list() == [0, 1, 2, 3, 4]
    assert regressor.result_.search.generations == 4 and regressor.generations == 2
    pd.testing.assert_frame_equal(regressor.equations_, whole.equations_)
    again = pickle.loads(pickle.dumps(regressor)).fit(*SHELF)
    assert again.history_["generation"].iloc[-1] == 6
    with pytest.raises(ValueError, match=r"other data, options or seed.*warm_start=False"):
        regressor.fit(SHELF[0] * 2.0, SHELF[1])


@quiet
def test_seeds_repeat_a_fit():
    def table(state):
        return make(random_state=state, generations=1).fit(*SHELF).equations_

    pd.testing.assert_frame_equal(table(3), table(np.int64(3)))
    pd.testing.assert_frame_equal(table(np.random.RandomState(3)), table(np.random.RandomState(3)))
    pd.testing.assert_frame_equal(table(np.random.default_rng(3)), table(np.random.default_rng(3)))
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert not table(None).equals(table(None))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@quiet
def test_the_conventional_search_is_ranked_by_error():
    regressor = make(fitness="rmse").fit(*SHELF)
    assert regressor.equations_["rmse"].is_monotonic_increasing
    assert regressor.best_.equation.text == regressor.equations_["equation"].iloc[0]
    assert regressor.predict(GRID).shape == (3,)


@quiet
def test_the_best_has_the_highest_score_under_the_prior_that_is_asked_for():
    for law_prior in ("uniform", LawPrior(per_node=2.0)):
        regressor = make(law_prior=law_prior, **OPTIONS).fit(*SHELF)
        table = regressor.equations_
        best = table.iloc[regressor.result_.chosen]
        assert best["score"] == table["score"].max()
        assert (table["log_prior"] == 0.0).all() == (law_prior == "uniform")
        assert regressor.result_.law_prior is law_prior


@quiet
def test_columns_on_an_interval_scale_are_named_and_checked():
    with pytest.raises(ValueError, match=r"interval names 't', which is not a column. Columns: H"):
        make(interval=["t"], **OPTIONS).fit(*SHELF)
    plain, shifted = (make(interval=i, **OPTIONS).fit(*SHELF) for i in ((), ["H"]))
    costs = [one.equations_.set_index("equation")["log_prior"] for one in (plain, shifted)]
    # A law that depends on where H is zero.
    shift = LawPrior().per_coincidence
    assert costs[1]["c0*sqrt(H)"] == pytest.approx(costs[0]["c0*sqrt(H)"] - shift)


def test_gamma_of_ohagan_is_one_number_for_all():
    regressor = make(gamma="ohagan", max_parameters=2).fit(*SHELF)
    assert {one.evidence.gamma for one in regressor.result_.equations} == {4 / 5}
    with pytest.raises(ValueError, match=r'gamma="ohagan" depends on .*Set max_parameters'):
        make(gamma="ohagan").fit(*SHELF)


@quiet
def test_options_of_the_evidence_are_passed_on():
    regressor = make(settings=replace(QUICK, sigma_prior="log-flat")).fit(*SHELF)
    assert regressor.result_.settings.sigma_prior == "log-flat"
    best = regressor.best_
    assert best.posterior.posterior.attrs["sigma_prior"] == "log-flat"


@quiet
def test_callbacks_may_end_the_search():
    seen = []

    def stop(generation):
        seen.append(generation.number)
        return generation.number == 2

    regressor = make(callbacks=[stop], generations=50).fit(*SHELF)
    # After every unit: the first population, then every refresh.
    assert seen == [0, 2] and regressor.result_.stopped == "callback"


@quiet
def test_ctrl_c_keeps_what_was_found():
    def interrupt(generation):
        raise KeyboardInterrupt

    regressor = make(callbacks=[interrupt], generations=50).fit(*SHELF)
    assert regressor.result_.stopped == "interrupted" and len(regressor.equations_) > 0


@quiet
def test_time_is_kept():
    started = time.monotonic()
    regressor = make(generations=10**6, max_time=1.0, max_complexity=20).fit(*SHELF)
    assert regressor.result_.stopped == "max_time"
    assert time.monotonic() - started < 3.0


def test_many_rows_do_not_lengthen_the_time():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 4.0, (20_000, 2))
    y = X[:, 0] * np.exp(-X[:, 1]) + 0.1 * rng.standard_normal(len(X))
    regressor = make(operators=("+", "*", "exp"), population_size=120, max_time=2.0)
    started = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        regressor.fit(X, y)
    assert time.monotonic() - started < 2.0 + 5.0
    assert np.isfinite(regressor.equations_["log_q"]).all()
    # Error bars that are not there are announced, and come when they are asked for.
    no_time = any("no time left" in str(warning.message) for warning in caught)
    assert no_time != ("draws" in vars(regressor.best_))


@quiet
@pytest.mark.parametrize("seed", [5, None])
def test_a_fit_goes_on_from_its_checkpoint(tmp_path, seed):
    path = tmp_path / "run.npz"
    make(checkpoint=path, random_state=seed, generations=2).fit(*SHELF)
    assert path.exists()
    resumed = make(checkpoint=str(path), random_state=seed, generations=4).fit(*SHELF)
    whole = make(random_state=0 if seed is None else seed, generations=4).fit(*SHELF)
    assert resumed.history_["generation"].to_list() == [0, 1, 2, 3, 4]
    pd.testing.assert_frame_equal(resumed.equations_, whole.equations_)


RUN_UNTIL_KILLED = """
import sys
import pmsr, pmsr.search.evolution
pmsr.search.evolution.SAVE_SECONDS = 0.0
pmsr.BayesianSymbolicRegressor(
    population_size=12, generations=100_000, max_complexity=12, random_state=3, verbose=False,
    checkpoint=sys.argv[1],
    search=pmsr.Search(n_finalists=3, n_enumerated=100, n_islands=2, refresh=2),
).fit(*pmsr.load_galileo("shelf"))
"""


@quiet
@pytest.mark.slow
def test_a_killed_fit_goes_on(tmp_path):
    path = tmp_path / "run.npz"
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", RUN_UNTIL_KILLED, str(path)])
    for _ in range(1200):
        time.sleep(0.1)
        if path.exists() and read_progress(path)[0] >= 1:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    first = make(random_state=3, generations=0, checkpoint=path).fit(*SHELF)
    reached = int(first.history_["generation"].iloc[-1])
    assert reached >= 1


@quiet
def test_a_loaded_estimator_is_the_one_that_was_saved(fitted, tmp_path):
    original = pickle.loads(pickle.dumps(fitted)).select(1)
    original.save(tmp_path / "saved")
    loaded = pmsr.load(tmp_path / "saved")
    assert isinstance(loaded, BayesianSymbolicRegressor)
    for average in (False, True):
        np.testing.assert_array_equal(
            loaded.predict(GRID, average=average), original.predict(GRID, average=average)
        )
        np.testing.assert_array_equal(
            loaded.predict_interval(GRID, average=average),
            original.predict_interval(GRID, average=average),
        )
    pd.testing.assert_frame_equal(loaded.equations_, original.equations_, check_exact=True)
    pd.testing.assert_frame_equal(loaded.history_, original.history_, check_exact=True)
    assert loaded.get_params() == original.get_params()
    assert list(loaded.feature_names_in_) == ["H"] and loaded.n_features_in_ == 1
    assert str(loaded.best_.equation) == str(original.best_.equation)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again" / HEADER).read_text() == (tmp_path / "saved" / HEADER).read_text()


@quiet
def test_every_parameter_can_be_saved(tmp_path):
    regressor = make(
        operators=["+", "*"],
        generations=np.int64(1),
        random_state=np.random.RandomState(0),
        settings=QUICK,
        guesses=[pmsr.Equation("c0*x0", ["x0"])],
        callbacks=[lambda generation: None],
        n_jobs=1,
    ).fit(SHELF[0].to_numpy(), SHELF[1])
    regressor.save(tmp_path / "saved")
    loaded = load(tmp_path / "saved")
    assert not hasattr(loaded, "feature_names_in_")
    assert loaded.random_state is None and loaded.callbacks == ()
    assert loaded.guesses == ("c0*x0",) and loaded.settings == QUICK and loaded.search == FEW
    np.testing.assert_array_equal(
        loaded.predict(GRID.to_numpy()), regressor.predict(GRID.to_numpy())
    )
    loaded.fit(SHELF[0].to_numpy(), SHELF[1])


def test_a_comparison_is_loaded_as_a_comparison(tmp_path):
    result = weigh_equations(
        {"line": "c0*H", "flat": "c0"}, *SHELF, settings=Settings(), random_seed=1
    )
    result.save(tmp_path)
    loaded = load(tmp_path)
    assert isinstance(loaded, Result) and loaded.names == result.names
    np.testing.assert_array_equal(loaded["line"].predict(GRID), result["line"].predict(GRID))


@pytest.mark.parametrize(
    "about",
    [{}, [], "x", 3, {"parameters": {"evil": 1}, "named": True}, {"parameters": None, "named": 1}],
)
def test_a_broken_estimator_is_refused(fitted, tmp_path, about):
    fitted.save(tmp_path)
    header = json.loads((tmp_path / HEADER).read_text())
    (tmp_path / HEADER).write_text(json.dumps({**header, "estimator": about}))
    if about in ({}, []):
        assert load(tmp_path).get_params() == BayesianSymbolicRegressor().get_params()
        return
    with pytest.raises(ValueError, match="is damaged, or is not a result of pmsr"):
        load(tmp_path)


def test_doubts_are_issued_as_warnings_of_our_kind():
    x = np.linspace(1.0, 2.0, 30)
    outlier = 3.0 * (np.arange(30) == 7)
    with pytest.warns(ResultWarning) as seen:
        regressor = make(operators=("+", "*")).fit(x[:, None], x + outlier)
    assert [str(one.message) for one in seen] == regressor.warnings_
    assert any("do not look normal" in doubt for doubt in regressor.warnings_)
    assert seen[0].filename == __file__


def test_predictions_outside_the_data_are_doubted(fitted):
    for method in (fitted.predict, fitted.predict_interval):
        with pytest.warns(ResultWarning, match="1 of 1 rows lie outside the data") as seen:
            method(pd.DataFrame({"H": [5000.0]}))
        assert seen[0].filename == __file__


def test_notebooks_show_the_equation(fitted):
    bundle = fitted._repr_mimebundle_()
    assert bundle["text/html"] == fitted.result_._repr_html_() == fitted._repr_html_()
    assert bundle["text/latex"] == fitted.best_._repr_latex_()
    assert str(fitted.best_) in bundle["text/plain"]
    assert "BayesianSymbolicRegressor" in make()._repr_html_()
    assert "BayesianSymbolicRegressor" in make()._repr_mimebundle_()["text/plain"]


@pytest.mark.parametrize("name", ["equations_", "best_", "pareto_front_", "history_", "warnings_"])
def test_nothing_is_known_before_a_fit(name):
    assert not hasattr(make(), name)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(make(), name)


@pytest.mark.parametrize("method", ["predict", "predict_interval"])
def test_nothing_is_predicted_before_a_fit(method):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(make(), method)(GRID)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        make().save("nowhere")


X, Y = SHELF
DATES = pd.date_range("2020", "2024", 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X.assign(H=np.nan), Y), r"Column 'H' of X: missing value \(NaN\) in row 0"),
        ((X.assign(H=np.inf), Y), "Column 'H' of X: infinite value in row 0"),
        ((X, Y.where(Y > 1000)), r"Target 'D': missing value \(NaN\) in row 4"),
        ((X, 0 * Y + 3), "The target 'D' is constant within rounding, 3"),
        ((X[:1], Y[:1]), "At least two rows are needed, got 1"),
        ((X.to_numpy()[:1], Y[:1]), r"Found array with 1 sample\(s\)"),
        ((X.assign(H=list("abcde")), Y), "Column 'H' of X: values must be numbers"),
        ((X.assign(H=pd.Categorical(list("abcde"))), Y), r"If they are classes.*get_dummies\(X\)"),
        (([["a"], ["b"]], [1, 2]), "Column 'x0' of X: values must be numbers"),
        ((X, list("abcde")), "Target 'y': values must be numbers"),
        ((X["H"].to_numpy(), Y), "Expected 2D array, got 1D array"),
        ((X, Y[:3]), "must have the same number of rows, got 5 and 3"),
        ((X, np.column_stack([Y, Y])), "y must have one column, got 2"),
        ((X, Y.iloc[::-1]), "the same index in a different order"),
        ((pd.concat([X, X], axis=1), Y), "Names of variables must differ, got 'H' twice"),
        ((X.assign(D=Y), Y), "The target 'D' is also a variable"),
        ((X * 1e150, Y), r"Column 'H' must have a magnitude between .*Change its unit"),
        ((X, Y * 1e150), r"The target 'D' must have a magnitude between .*Change its unit"),
        ((X.assign(H=DATES), Y), "values must be numbers, got datetime.*Give the time since"),
        ((X.assign(t=DATES), Y), "Column 't' of X: values must be numbers, got datetime"),
        ((X.assign(t=DATES - DATES[0]), Y), "Column 't' of X: values must be numbers, got timedel"),
        ((X.assign(t=DATES.tz_localize("UTC")), Y), "Column 't' of X: values must be numbers"),
        ((DATES.to_numpy()[:, None], Y), "Column 'x0' of X: values must be numbers, got datetime"),
        ((X, pd.Series(DATES)), "Target 'y': values must be numbers, got datetime"),
        ((X.assign(t=[object()] * 5), Y), "Column 't' of X: values must be numbers, got object"),
        ((np.ma.masked_greater(X.to_numpy(), 900.0), Y), r"Column 'x0' of X: missing .* in row 0"),
        ((X.to_numpy(), np.ma.masked_less(Y.to_numpy(), 900.0)), "Target 'y': missing .* in row 4"),
        ((pl.DataFrame({"a": [1.0, None, 3.0, 4.0, 5.0]}), Y), "Column 'a' of X: missing value"),
    ],
)
def test_bad_data_are_refused_with_the_place(arguments, message):
    with pytest.raises(ValueError, match=message):
        make().fit(*arguments)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"H": [1.0, 2.0]}, r"got dict\. Use pandas\.DataFrame\(X\)"),
        (pl.DataFrame({"H": [1.0, 2.0]}).lazy(), r"got LazyFrame\. Use X\.collect\(\)"),
        (iter([[1.0], [2.0]]), r"Use list\(X\)"),
        ("data.csv", "must be an array, a list or a table, got str"),
    ],
)
def test_what_is_no_table_is_refused_with_the_way_to_make_one(fitted, table, words):
    for call in (lambda: make().fit(table, [1.0, 2.0]), lambda: fitted.predict(table)):
        with pytest.raises(TypeError, match=words):
            call()


def test_nothing_is_predicted_for_what_is_masked(fitted):
    with pytest.raises(ValueError, match="missing value"):
        fitted.predict(np.ma.masked_greater(X.to_numpy(), 900.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verbose": "yes"}, "verbose must be True, False or a function .*, got 'yes'"),
        ({"warm_start": "yes"}, "warm_start must be True or False, got 'yes'"),
        ({"checkpoint": 5}, "checkpoint must be the name of a file, such as .*, got 5"),
        ({"operators": ("+", "cosh")}, r"Unknown operator 'cosh'\. Available: "),
        ({"operators": "+"}, "operators must be a sequence of names"),
        ({"population_size": 13}, "population_size must be even and at least 4, got 13"),
        ({"generations": -1}, "generations must be an integer of at least 0, got -1"),
        ({"max_time": 0}, "max_time must be positive, got 0"),
        ({"fitness": "mse"}, r"Unknown fitness 'mse'\. Available: evidence, rmse"),
        ({"gamma": 2}, r"gamma must be in \(0, 1\), got 2"),
        ({"noise": "cauchy"}, "Unknown noise 'cauchy'"),
        ({"law_prior": "aic"}, r'law_prior must be "description", "uniform".*got .aic'),
        ({"interval": "t"}, r"interval must be a list of names of columns, got 't'. Use \['t'\]"),
        ({"units": "mm"}, 'units must map names to units, .* or be "auto", got .mm'),
        ({"units": 3}, "units must map names to units"),
        ({"units": "auto"}, "No unit stands in the names H, D"),
        ({"units": {"H": "mm"}}, "No unit for 'D'"),
        ({"units": {"H": "mm", "D": "foo"}}, "'foo', the unit of 'D', is not a unit"),
        ({"units": {"H": "mm", "D": "mm", "Q": "s"}}, "units names 'Q', which is not in the data"),
        (
            {"units": {"H": "mm", "D": "s"}, "guesses": ["c0 + H"]},
            r"The guess 'c0 \+ H' does not survive a change of units \(H in mm, D in s\)",
        ),
        ({"search": Search(units={"H": "mm"})}, "units is .* in search and None in the estimator"),
        ({"guesses": "c0*H"}, "guesses must be a list of equations, got 'c0"),
        ({"guesses": ["c0*Q"]}, "Unknown name 'Q'"),
        ({"guesses": ["sqrt(H)"]}, "needs the operator 'sqrt', which is not among"),
        ({"settings": {"gamma": 0.5}}, "settings must be a Settings object, got dict"),
        ({"settings": Settings(gamma=0.5)}, r"gamma is 0\.5 in settings and 'paper' in the estim"),
        ({"search": {}}, "search must be a Search object, got dict"),
        ({"search": Search(generations=5)}, r"Set it in the estimator only: .*\(generations=5\)"),
        ({"callbacks": 3}, "callbacks must be a list of functions, got 3"),
        ({"random_state": -1}, "random_state must be an integer of at least 0"),
        ({"random_state": "x"}, "random_state must be an integer of at least 0"),
    ],
)
def test_bad_parameters_are_refused_with_a_way_out(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options).fit(*SHELF)


def test_a_row_in_place_of_return_std_is_refused(fitted):
    with pytest.raises(ValueError, match=r"got 3\. Another equation predicts with predict\(X, ind"):
        fitted.predict(SHELF[0], 3)


def test_an_estimator_says_where_to_measure_next(fitted):
    table = fitted.suggest(2, {"H": (100.0, 1500.0)})
    pd.testing.assert_frame_equal(table, fitted.result_.suggest(2, {"H": (100.0, 1500.0)}))
    assert table["H"].between(100.0, 1500.0).all()
    with pytest.raises(ValueError, match="not fitted"):
        make().suggest()


def test_an_estimator_that_an_earlier_version_saved_had_a_uniform_prior(fitted, tmp_path):
    fitted.save(tmp_path)
    header = json.loads((tmp_path / HEADER).read_text())
    parameters = header["estimator"]["parameters"]
    del parameters["law_prior"], parameters["interval"]
    parameters["model_selection"] = "parsimonious"
    (tmp_path / HEADER).write_text(json.dumps(header))
    loaded = load(tmp_path)
    assert loaded.law_prior == "uniform" and loaded.interval == ()


@quiet
def test_units_forbid_laws_give_parameters_theirs_and_are_saved(tmp_path):
    given = {"H": "mm", "D": "s"}
    regressor = make(operators=("+", "*", "sqrt"), units=given).fit(*SHELF)
    result = regressor.result_
    assert all(one.is_possible for one in result.equations)
    assert np.isfinite(regressor.equations_["log_prior"]).all()
    assert "c0 + H" not in set(regressor.equations_["equation"])
    assert regressor.best_.estimates()["unit"]["sigma"] == "s"
    regressor.save(tmp_path)
    loaded = load(tmp_path)
    assert loaded.units == given and loaded.result_.search.units == given
    pd.testing.assert_frame_equal(loaded.best_.estimates(), regressor.best_.estimates())
    assert clone(loaded).units == given
    header = json.loads((tmp_path / HEADER).read_text())
    header["estimator"]["parameters"]["units"] = {"H": "mm"}
    (tmp_path / HEADER).write_text(json.dumps(header))
    with pytest.raises(ValueError, match=r"is damaged.*No unit for 'D'"):
        load(tmp_path)
    # A file of an earlier version knows of none.
    del header["estimator"]["parameters"]["units"], header["search"]["units"]
    (tmp_path / HEADER).write_text(json.dumps(header))
    assert load(tmp_path).units is None and not load(tmp_path).result_.units.are_known


@quiet
def test_units_are_those_in_the_names_of_columns_if_asked_for(tmp_path):
    X, y = SHELF[0].rename(columns={"H": "H [mm]"}), SHELF[1].rename("D (mm)")
    regressor = make(operators=("*", "sqrt"), units="auto").fit(X, y)
    assert regressor.units == "auto"
    assert regressor.result_.units.by_name == {"H [mm]": "mm", "D (mm)": "mm"}
    regressor.save(tmp_path)
    loaded = load(tmp_path)
    assert loaded.units == "auto" and loaded.result_.units.by_name == {
        "H [mm]": "mm",
        "D (mm)": "mm",
    }
    # A table without names has no units in them.
    with pytest.raises(ValueError, match="No unit stands in the names x0, y"):
        make(units="auto").fit(X.to_numpy(), y.to_numpy())


def test_known_errors_and_counts_enter_a_fit_and_are_saved_with_it(tmp_path):
    rng = np.random.default_rng(0)
    x, errors = np.linspace(0.5, 4.0, 20), rng.uniform(0.1, 0.5, 20)
    y = 2.0 * x + errors * rng.standard_normal(20)
    counts = np.ones(20)
    counts[3] = 2.0
    fitted = BayesianSymbolicRegressor(
        operators=("+", "*"), max_time=None, generations=1, population_size=20, random_state=1
    ).fit(x[:, None], y, y_err=errors, sample_weight=counts)
    best = fitted.best_
    w = counts / errors**2
    assert str(best.equation) == "c0*x0"
    expected = np.sum(w * x * y) / np.sum(w * x * x)
    np.testing.assert_allclose(best.evidence.theta, [expected], rtol=1e-6)
    assert list(best.estimates().index) == ["c0"]
    fitted.save(tmp_path / "saved")
    again = pmsr.load(tmp_path / "saved")
    np.testing.assert_array_equal(again.result_.data.y_err, errors)
    np.testing.assert_array_equal(again.result_.data.counts, counts)
    np.testing.assert_array_equal(again.predict(x[:, None]), fitted.predict(x[:, None]))


@quiet
def test_a_count_is_the_same_as_the_row_so_often_in_any_order():
    rng = np.random.default_rng(3)
    X, counts = rng.uniform(0.5, 3.0, (12, 2)), rng.integers(0, 4, 12)
    y = X[:, 0] * 2.0 + 0.3 * rng.standard_normal(12)
    order = rng.permutation(12)
    weighted = make().fit(X[order], y[order], sample_weight=counts[order])
    repeated = make().fit(X.repeat(counts, axis=0), y.repeat(counts))
    first, second = weighted.equations_, repeated.equations_
    assert first["equation"].to_list() == second["equation"].to_list()
    np.testing.assert_allclose(first["log_q"], second["log_q"], rtol=1e-12)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)
    score = weighted.score(X, y, sample_weight=counts)
    assert score == pytest.approx(repeated.score(X.repeat(counts, axis=0), y.repeat(counts)))
    assert score != pytest.approx(weighted.score(X, y), abs=1e-6)


# Two planted outliers are more than Student's noise would make of 24 rows, and two generations few.
@quiet
def test_the_noise_may_be_chosen_by_the_data(tmp_path):
    rng = np.random.default_rng(1)
    x = np.linspace(0.5, 4.0, 24)
    y = 2.0 * x + 1.0 + 0.1 * rng.standard_normal(24)
    y[[4, 17]] += (1.0, -1.2)
    fitted = BayesianSymbolicRegressor(
        operators=("+", "*"),
        noise="auto",
        max_time=None,
        generations=2,
        population_size=20,
        random_state=1,
    ).fit(x[:, None], y)
    assert fitted.noise_table_["noise"].iloc[0] == "student" == fitted.result_.problem.noise.name
    fitted.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    for table in (fitted.result_.noise_table, again.noise_table_, again.result_.noise_table):
        pd.testing.assert_frame_equal(table, fitted.noise_table_)
    assert again.result_.problem.noise.name == "student"
    np.testing.assert_allclose(fitted.predict([[1.0], [3.0]]), [3.0, 7.0], atol=0.2)
    with pytest.raises(ValueError, match=r'noise="auto" is for a search'):
        pmsr.compute_evidence("c0*x0", x, y, settings=pmsr.Settings(noise="auto"))
    with pytest.raises(ValueError, match="does not go with checkpoint"):
        BayesianSymbolicRegressor(noise="auto", checkpoint=tmp_path / "c").fit(x[:, None], y)


def several_experiments():
    """Three decays of six points."""
    rng = np.random.default_rng(5)
    t = np.tile(np.linspace(0.2, 3.0, 6), 3)
    labels = np.repeat(["a", "b", "c"], 6)
    size = {"a": (2.0, 0.5), "b": (3.0, 1.0), "c": (1.0, 0.8)}
    curve = [size[k][0] * np.exp(-size[k][1] * place) for k, place in zip(labels, t, strict=True)]
    return t[:, None], np.array(curve) + 0.02 * rng.standard_normal(18), labels


@quiet
@pytest.mark.parametrize("shared_sigma", [False, True])
def test_one_law_is_found_for_several_experiments(shared_sigma, tmp_path):
    X, y, labels = several_experiments()
    options = {
        "operators": ("+", "*", "exp"),
        "shared_sigma": shared_sigma,
        "search": replace(FEW, n_enumerated=1000),
    }
    one = make(**options).fit(X, y, groups=labels)
    law = pmsr.Equation("c0*exp(c1*x0)", ["x0"])
    assert law.key in [fitted.equation.key for fitted in one.result_.equations[:2]]
    assert list(one.best_.parts) == ["a", "b", "c"]
    found = one.predict(X, groups=labels)
    assert one.score(X, y, groups=labels) > 0.95
    with pytest.raises(ValueError, match="groups are missing"):
        one.predict(X)
    with pytest.raises(ValueError, match="no group 'd'"):
        one.predict(X, groups="d")
    one.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert again.shared_sigma == shared_sigma
    assert np.array_equal(again.predict(X, groups=labels), found)
    # Of any number of workers, and in any order of the rows, the same.
    two = make(**options, n_jobs=2).fit(X, y, groups=labels)
    pd.testing.assert_frame_equal(one.equations_, two.equations_)
    assert np.array_equal(two.predict(X, groups=labels), found)


@quiet
def test_a_search_over_several_experiments_goes_on_from_its_checkpoint(tmp_path):
    X, y, labels = several_experiments()
    file = tmp_path / "state.npz"
    options = {"operators": ("+", "*", "exp"), "checkpoint": file}
    whole = make(operators=("+", "*", "exp"), generations=4).fit(X, y, groups=labels)
    make(**options).fit(X, y, groups=labels)
    on = make(**options, generations=4).fit(X, y, groups=labels)
    pd.testing.assert_frame_equal(on.equations_, whole.equations_)
    with pytest.raises(ValueError, match=r"state\.npz"):
        make(**options, generations=4).fit(X, y, groups=np.roll(labels, 1))


def test_a_group_of_one_row_is_refused():
    X, y, labels = several_experiments()
    labels = np.append(labels[:-1], "alone")
    with pytest.raises(ValueError, match="two rows or more, got one of 'alone'"):
        make().fit(X, y, groups=labels)
