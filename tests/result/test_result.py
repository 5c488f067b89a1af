import copy
import dataclasses
import json
import math
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import softmax
from scipy.stats import norm

import pmsr
from pmsr.data import load_galileo, make_data, make_sine
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import compute_evidence
from pmsr.laws.prior import LawCounts, LawPrior
from pmsr.result.comparison import weigh_equations
from pmsr.result.doubts import ResultWarning
from pmsr.result.result import from_evolution, load_result
from pmsr.result.storage import HEADER
from pmsr.search.bench import Bench
from pmsr.search.evolution import Evolution, run_evolution
from pmsr.settings import FINALIST, QUICK, Search, Settings

SHELF = load_galileo("shelf")
DATA = make_data(*SHELF)
LAWS = {"line": "c0 + c1*H", "root": "c0*sqrt(H)", "power": "c0*H**c1", "failed": "c0*log(-H)"}
GRID = pd.DataFrame({"H": [350.0, 450.0, 900.0]}, index=["a", "b", "c"])
TINY = {"n_islands": 2, "n_enumerated": 100, "refresh": 2}
SEARCH = Search(
    operators=("+", "*", "/", "sqrt"), population_size=16, generations=3, n_finalists=5, **TINY
)
SAVED = Path(__file__).parents[1] / "saved"


@pytest.fixture(scope="module")
def result():
    return weigh_equations(LAWS, *SHELF, settings=Settings(), random_seed=1)


@pytest.fixture(scope="module")
def found():
    return run_evolution(DATA, search=SEARCH, random_seed=1)


def wrap(found, search=SEARCH, **options):
    return from_evolution(found, DATA, search=search, settings=QUICK, random_seed=1, **options)


def test_probabilities_follow_from_log_q(result):
    log_q = result.table["log_q"].to_numpy()
    np.testing.assert_allclose(result.probabilities, softmax(log_q))
    assert list(result.names) == ["root", "power", "line", "failed"]


def test_equations_are_found_by_place_name_and_text(result):
    assert result[0] is result["root"] is result["c0*sqrt(H)"] is result["2*sqrt(H)*b1"]
    assert len(result) == 4
    other = result.select("line")
    assert other.best is result["line"] and result.best is result["root"]
    assert other.select(np.int64(1)).best is result["power"]
    for which in (4, -1):
        with pytest.raises(ValueError, match=f"There are 4 equations, from 0 on, got {which}"):
            result.select(which)
    with pytest.raises(ValueError, match="There is no equation True"):
        result.select(True)


def test_an_average_is_the_mixture_of_the_posteriors(result):
    level, H = 0.9, 900.0
    shares, draws = [], []
    for fitted, share in zip(result.equations, result.probabilities, strict=True):
        if share > 0:
            theta, sigma = fitted.draws.flat_theta, fitted.draws.flat_sigma
            values = {
                "c0 + c1*H": lambda t: t[:, 0] + t[:, 1] * H,
                "c0*sqrt(H)": lambda t: t[:, 0] * np.sqrt(H),
                "c0*H**c1": lambda t: t[:, 0] * H ** t[:, 1],
            }[fitted.equation.text](theta)
            shares.append(share)
            draws.append((values, sigma))
    assert len(shares) == 3 and min(shares) > 0.01

    def distribution(t):
        return sum(
            share * norm.cdf((t - mu) / sigma).mean()
            for share, (mu, sigma) in zip(shares, draws, strict=True)
        )

    mean, std = result.predict([[H]], return_std=True, average=True)
    expected = sum(share * mu.mean() for share, (mu, _) in zip(shares, draws, strict=True))
    second = sum(
        share * np.mean(mu**2 + sigma**2) for share, (mu, sigma) in zip(shares, draws, strict=True)
    )
    assert mean == pytest.approx(expected)
    assert std == pytest.approx(np.sqrt(second - expected**2))
    [[low, high]] = result.predict_interval([[H]], level=level, average=True)
    assert low == pytest.approx(brentq(lambda t: distribution(t) - 0.05, 0, 3000), rel=1e-9)
    assert high == pytest.approx(brentq(lambda t: distribution(t) - 0.95, 0, 3000), rel=1e-9)
    [[low, high]] = result.predict_interval([[H]], level=level, kind="credible", average=True)
    below = [
        sum(share * np.mean(mu <= end) for share, (mu, _) in zip(shares, draws, strict=True))
        for end in (low, high)
    ]
    assert below == pytest.approx([0.05, 0.95], abs=1 / 4000)


def test_without_averaging_the_best_predicts(result):
    np.testing.assert_array_equal(result.predict(GRID), result.best.predict(GRID))
    np.testing.assert_array_equal(
        result.predict_interval(GRID, 0.5, "credible"),
        result.best.predict_interval(GRID, 0.5, "credible"),
    )


def test_the_table_of_predictions_is_that_of_predict(result):
    expected = pmsr.predict(result.best.posterior, GRID, level=0.8)
    table = result.predict_table(GRID, level=0.8)
    pd.testing.assert_frame_equal(table, expected)
    average = result.predict_table(GRID, level=0.8, average=True)
    assert list(average.columns) == [name for name in expected.columns if name != "map"]
    assert average.attrs == {"level": 0.8} and list(average.index) == ["a", "b", "c"]


def test_equations_may_use_some_of_the_variables():
    X = SHELF[0].assign(other=[3.0, 1.0, 4.0, 1.0, 5.0])[["other", "H"]]
    mixed = weigh_equations(
        [Equation("c0*sqrt(H)", ["H"]), "c0*H"], X, SHELF[1], settings=Settings(), random_seed=1
    )
    values = mixed.predict(X, average=True)
    alone = weigh_equations(["c0*sqrt(H)", "c0*H"], *SHELF, settings=Settings(), random_seed=1)
    np.testing.assert_array_equal(values, alone.predict(SHELF[0], average=True))
    with pytest.warns(ResultWarning, match="H = 5000"):
        mixed.predict([[2.0, 5000.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixed.predict([[99.0, 500.0]], average=True)


def test_a_search_becomes_a_ranked_table(found):
    result = wrap(found)
    table = result.table
    assert set(table["equation"]) == {str(equation) for equation, _ in found.finalists}
    assert table["score"].is_monotonic_decreasing and list(table.index) == list(range(len(table)))
    assert result.best.score == table["score"].max() and result.law_prior == "description"
    assert "`" not in "".join(table["equation"])
    plain = wrap(found, dataclasses.replace(SEARCH, law_prior="uniform"))
    assert plain.table["log_q"].is_monotonic_decreasing and (plain.table["log_prior"] == 0.0).all()
    assert result.stopped == "generations" and result.n_candidates == found.n_candidates
    assert result.n_failed == found.n_failed
    assert [r["generation"] for r in result.history] == [0, 1, 2, 3]
    evidence = dict((equation.key, evidence) for equation, evidence in found.finalists)
    for fitted in result.equations:
        assert fitted.evidence is evidence[fitted.equation.key]
        # The same parameters, in the same order: the best fit is the best fit.
        rmse = np.sqrt(np.mean(fitted.residuals**2))
        assert rmse == pytest.approx(fitted.evidence.rmse, rel=1e-6)


def test_what_was_only_screened_has_its_share_of_the_probability(found):
    result = wrap(dataclasses.replace(found, log_rest=-np.inf))
    assert result.unweighed_share == 0.0 and result.probabilities.sum() == pytest.approx(1.0)
    assert wrap(found).probabilities.sum() + wrap(found).unweighed_share == pytest.approx(1.0)
    top = result.best.score
    seen = dataclasses.replace(found, log_rest=top, n_screened=900, n_sampled=70, is_settled=False)
    more = wrap(seen)
    weights = np.exp([one.score - top for one in result.equations])
    assert more.unweighed_share == pytest.approx(1.0 / (1.0 + weights.sum()))
    np.testing.assert_allclose(more.probabilities, weights / (1.0 + weights.sum()))
    np.testing.assert_array_equal(more.table["probability"], more.probabilities)
    assert more.table.attrs["unweighed_share"] == more.unweighed_share
    assert more.coverage.n_screened == 900 and not more.coverage.is_settled


def test_under_a_declared_prior_a_lead_is_not_charged_for_the_number_of_laws_again():
    law = "c0*sqrt(H)"
    result = weigh_equations([law], *SHELF, settings=QUICK, random_seed=1, law_prior="description")
    # A constant costs a node, this law four.
    plain = weigh_equations([law], *SHELF, settings=QUICK, random_seed=1)
    assert result._lead() == pytest.approx(plain._lead() - 3.0 * LawPrior().per_node)
    many = int(np.exp(plain._lead() + 1))
    assert dataclasses.replace(result, n_candidates=many).warnings == []
    assert dataclasses.replace(plain, n_candidates=many).warnings != []


@pytest.mark.parametrize(
    "law_prior",
    [
        "description",
        LawPrior(per_node=2.0, operators={"sin": 3.0}, counts=LawCounts((2, 1, 6))),
        lambda law: -0.5 * law.complexity,
    ],
)
def test_the_prior_over_laws_is_saved(found, tmp_path, law_prior):
    search = dataclasses.replace(SEARCH, law_prior=law_prior, interval=["H"])
    before = wrap(dataclasses.replace(found, log_rest=-12.5, level=8, n_enumerated=9915), search)
    before.save(tmp_path)
    after = load_result(tmp_path)
    assert [one.log_prior for one in after.equations] == [one.log_prior for one in before.equations]
    np.testing.assert_array_equal(after.probabilities, before.probabilities)
    assert after.coverage == before.coverage and after.search.interval == ("H",)
    assert all(one.units.interval_names == ("H",) for one in after.equations)
    if isinstance(law_prior, str | LawPrior):
        assert after.law_prior == after.search.law_prior == law_prior
    else:
        with pytest.raises(ValueError, match=r"'<lambda>', and functions are not saved. Hand it"):
            after.law_prior(before.best.equation)
        after.save(tmp_path)
        assert load_result(tmp_path).law_prior == after.law_prior
    # Doubts compare with a constant, which need not be among the equations.
    assert after._lead() == before._lead() and after.warnings == before.warnings
    assert after.select(1)._lead() == before.select(1)._lead()


def test_a_saved_result_of_an_earlier_version_had_a_uniform_prior_and_one_island(found, tmp_path):
    wrap(found).save(tmp_path)
    header = json.loads((tmp_path / HEADER).read_text())
    for name in ("law_prior", "coverage"):
        del header[name]
    for one in header["equations"]:
        del one["log_prior"]
    for name in ("law_prior", "interval", "evidence", "n_islands", "n_enumerated"):
        del header["search"][name]
    (tmp_path / HEADER).write_text(json.dumps(header))
    after = load_result(tmp_path)
    assert after.law_prior == after.search.law_prior == "uniform" and after.search.interval == ()
    done = after.search.evidence, after.search.n_islands, after.search.n_enumerated
    assert done == ("smc", 1, 0)
    assert after.unweighed_share == 0.0 and (after.table["log_prior"] == 0.0).all()


def is_beaten(row, table, better):
    return any(
        other.complexity <= row.complexity
        and better(other, row) >= 0
        and (other.complexity < row.complexity or better(other, row) > 0)
        for other in table.itertuples()
    )


def test_nothing_on_the_front_is_beaten(found):
    result = wrap(found)
    front = result.pareto_front
    for row in result.table.itertuples():
        beaten = is_beaten(row, result.table, lambda a, b: a.score - b.score)
        assert (row.Index in front.index) != beaten
    assert front["complexity"].is_monotonic_increasing


def test_a_conventional_search_is_ranked_by_its_error(found):
    search = dataclasses.replace(SEARCH, fitness="rmse")
    pairs = tuple(
        (equation, dataclasses.replace(evidence, log_q=np.nan, gamma=np.nan))
        for equation, evidence in found.finalists
    )
    result = wrap(dataclasses.replace(found, finalists=pairs), search)
    table = result.table
    assert table["rmse"].is_monotonic_increasing and result.chosen == 0
    assert table[["log_q", "probability", "difference"]].isna().all(axis=None)
    for row in table.itertuples():
        beaten = is_beaten(row, table, lambda a, b: b.rmse - a.rmse)
        assert (row.Index in result.pareto_front.index) != beaten
    assert result.best.predict(GRID).shape == (3,)
    assert np.isfinite(np.asarray(result.best.posterior.posterior["sigma"])).all()
    with pytest.raises(ValueError, match=r'no probabilities to average with.*fitness="evidence"'):
        result.predict(GRID, average=True)
    assert not any("do not decide" in doubt for doubt in result.warnings)


def test_a_search_that_ranks_by_error_but_weighs_keeps_its_order(found):
    result = wrap(found, dataclasses.replace(SEARCH, fitness="rmse"))
    assert result.table["rmse"].is_monotonic_increasing and result.chosen == 0
    assert result.probabilities.sum() + result.unweighed_share == pytest.approx(1)


@pytest.mark.parametrize("finalists", ["none", "failed"])
def test_if_all_else_fails_there_is_a_constant(found, finalists):
    pairs = ()
    if finalists == "failed":
        bad = dataclasses.replace(
            found.finalists[0][1], log_q=-np.inf, rmse=np.inf, failure="singular covariance"
        )
        pairs = ((Equation("c0*log(-H)", ["H"]), bad),)
    empty = Evolution(pairs, (), (), found.history, 7, "max_time")
    result = wrap(empty)
    assert str(result.best.equation) == "c0"
    assert result.predict(GRID) == pytest.approx(SHELF[1].mean(), rel=0.02)
    assert result.table["failure"].to_list() == [None, "singular covariance"][: len(result)]


def test_the_constant_has_another_name_than_a_variable(found):
    data = make_data(SHELF[0].rename(columns={"H": "c"}), SHELF[1])
    empty = Evolution((), (), (), found.history, 7, "max_time")
    result = from_evolution(empty, data, search=SEARCH, settings=QUICK, random_seed=1)
    assert str(result.best.equation) == "cc0"


def test_doubts_of_the_choice_come_first(result):
    # The root has 0.79, the power law 0.19.
    assert result.probabilities[0] > 3 * result.probabilities[1]
    assert result.warnings == []
    first, *rest = result.select("power").warnings
    # Within the data, nobody can tell the two apart.
    assert first.startswith("The data cannot tell 'c0*H**c1' from 'c0*sqrt(H)', which is more")
    assert rest == result["power"].warnings
    first, *rest = result.select("line").warnings
    share = result.probabilities[2]
    assert first.startswith("The data speak for another law: 'c0 + c1*H' has probability")
    assert (
        f"probability {share:.1%}, 'c0*sqrt(H)' (with 1 law like it) has {1 - share:.1%}" in first
    )
    assert rest == result["line"].warnings


def test_a_lead_over_the_constant_is_measured_by_how_many_equations_were_tried():
    result = weigh_equations(["c0*sqrt(H)"], *SHELF, settings=Settings(), random_seed=1)
    constant = compute_evidence("c0", *SHELF, settings=FINALIST, random_seed=1)
    # The closed form stands for the constant, which is not in the table.
    lead = result.best.evidence.log_q - constant.log_q
    assert result._lead() == pytest.approx(lead, abs=3 * constant.log_q_se)
    assert result.warnings == []
    [doubt] = dataclasses.replace(result, n_candidates=int(np.exp(lead + 1))).warnings
    assert f"leads by {result._lead():.1f}: it may be noise" in doubt
    assert dataclasses.replace(result, n_candidates=int(np.exp(lead - 1))).warnings == []


def test_a_better_constant_than_c0_counts_and_a_constant_leads_nothing():
    rng = np.random.default_rng(0)
    X, noise = rng.uniform(1, 2, 30), rng.standard_normal(30)
    y = 20.0 + 0.5 * (noise - noise.mean())
    laws = ["c0*x0", "20", "c0"]
    result = weigh_equations(laws, X, y, settings=Settings(), random_seed=1)
    # The number has no parameter to pay for.
    assert result.names[:2] == ("20", "c0") and np.isnan(result._lead())
    assert result.select("20").warnings == []
    behind = result["20"].evidence.log_q - result["c0*x0"].evidence.log_q
    doubt = result.select("c0*x0").warnings[0]
    assert doubt.startswith(f"A constant is ahead of 'c0*x0' by {behind:.1f} nats")


def test_a_lead_that_the_bounds_of_the_prior_decide_is_doubted_however_improbable_the_rival():
    x = np.linspace(0.0, 1.0, 30)
    y = 20.0 + 0.5 * np.random.default_rng(0).standard_normal(30)
    result = weigh_equations(["c0*x0", "c0*x0**2"], x, y, settings=Settings(), random_seed=1)
    assert result.probabilities.tolist() == [1.0, 0.0]
    sensitivity = result.table["prior_sensitivity"]
    assert np.isfinite(sensitivity).all() and sensitivity.iloc[0] < -1000.0
    [doubt] = [one for one in result.warnings if "Halving the bounds" in one]
    assert "of 'c0*x0' by" in doubt and "ahead of 'c0*x0**2'" in doubt
    good = weigh_equations(["c0*x0", "c0"], x, y, settings=Settings(), random_seed=1)
    assert good.best.equation.text == "c0"
    assert not any("Halving the bounds" in one for one in good.warnings)


def test_without_evidence_there_is_no_lead(found):
    search = dataclasses.replace(SEARCH, fitness="rmse")
    result = wrap(run_evolution(DATA, search=search, random_seed=1), search)
    assert np.isnan(result._lead())
    assert not any("chance" in doubt or "constant" in doubt for doubt in result.warnings)
    failed = weigh_equations(["log(-H)"], *SHELF, settings=Settings(), random_seed=1)
    assert np.isnan(failed._lead())


def test_what_a_search_finds_in_noise_is_doubted():
    rng = np.random.default_rng(0)
    data = make_data(rng.uniform(-1, 1, (30, 3)), rng.standard_normal(30))
    search = Search(operators=("+", "-", "*", "sin"), population_size=16, generations=6, **TINY)
    found = run_evolution(data, search=search, random_seed=1)
    result = from_evolution(found, data, search=search, settings=QUICK, random_seed=1)
    for place, fitted in enumerate(result.equations):
        if fitted.used and np.isfinite(fitted.evidence.log_q):
            first = result.select(place).warnings[0]
            assert "it may be noise" in first or "may be noise. Measure more" in first


def test_two_rows_are_too_few_for_any_law():
    data = make_data([1.0, 2.0], [2.0, 4.0])
    result = weigh_equations(["2*x0", "c0 + c1*x0", "c0"], data.X, data.y, random_seed=1)
    [doubt] = result.select("2*x0")["2*x0"].warnings
    assert doubt.startswith("There are 2 observations, too few to tell any law from a constant")
    doubt, *others = result["c0 + c1*x0"].warnings
    assert "as many parameters as there are observations (2)" in doubt
    assert not any("observations for" in other for other in others)


def test_a_column_that_does_not_vary_is_left_out_of_searches_and_named(tmp_path):
    X = SHELF[0].assign(T=293.0)[["T", "H"]]
    data = make_data(X, SHELF[1])
    found = run_evolution(data, search=SEARCH, random_seed=1)
    result = from_evolution(found, data, search=SEARCH, settings=QUICK, random_seed=1)
    assert not any("T" in fitted.used for fitted in result.equations)
    assert any("Left out, because it is the same in all rows: 'T'" in d for d in result.warnings)
    alone = wrap(run_evolution(DATA, search=SEARCH, random_seed=1))
    np.testing.assert_array_equal(result.predict(X), alone.predict(SHELF[0]))
    result.save(tmp_path)
    after = load_result(tmp_path)
    assert after.warnings == result.warnings and after.data.names == ("T", "H")
    np.testing.assert_array_equal(after.predict(X), result.predict(X))


def test_in_a_comparison_a_column_may_be_constant_but_is_named_if_it_is_used():
    X = SHELF[0].assign(T=293.0)
    laws = ["c0*sqrt(H)", "c0*sqrt(H)/T"]
    result = weigh_equations(laws, X, SHELF[1], settings=Settings(), random_seed=1)
    assert not any("in all rows" in doubt for doubt in result.select("c0*sqrt(H)").warnings)
    doubts = result.select("c0*sqrt(H)/T").warnings
    assert any("depends on 'T', which is 293 in all rows" in doubt for doubt in doubts)


def test_other_spellings_of_the_same_curve_are_no_rivals():
    # The keys differ, because the measure of their parameters does.
    laws = ["c0*sqrt(H)", "c0**2*sqrt(H)", "exp(c0)*sqrt(H)", "c0*H"]
    result = weigh_equations(laws, *SHELF, settings=Settings(), random_seed=1)
    assert len({one.equation.key for one in result.equations}) == 4
    assert result.probabilities.max() < 0.5
    assert result.select("c0*sqrt(H)").warnings == []


def test_notebooks_show_the_best_and_the_table(result):
    shown = result._repr_html_()
    assert shown.count("<math") == 1 + len(result)
    assert result.best._repr_html_() in shown and "root" in shown
    assert result._repr_latex_() == result.best._repr_latex_()
    assert result.latex(fitted=True) == result.best.latex(fitted=True)
    assert repr(result) == "Result(4 equations, best: 'c0*sqrt(H)')"


def predictions(result):
    arrays = [result.predict(GRID), result.predict_interval(GRID)]
    if np.isfinite(result.probabilities).all():
        arrays += [result.predict(GRID, average=True), result.predict_interval(GRID, average=True)]
    arrays += [one.predict(GRID) for one in result.equations if one.evidence.failure is None]
    return np.concatenate([array.ravel() for array in arrays])


@pytest.mark.parametrize("source", ["comparison", "search"])
def test_a_loaded_result_is_the_one_that_was_saved(result, found, source, tmp_path):
    before = result.select("line") if source == "comparison" else wrap(found)
    before.save(tmp_path / "saved")
    after = load_result(tmp_path / "saved")
    np.testing.assert_array_equal(predictions(after), predictions(before))
    pd.testing.assert_frame_equal(after.table, before.table, check_exact=True)
    assert after.table.attrs == before.table.attrs
    pd.testing.assert_frame_equal(after.estimates(), before.estimates(), check_exact=True)
    assert after.warnings == before.warnings and after.chosen == before.chosen
    for name in (
        "settings",
        "search",
        "random_seed",
        "stopped",
        "n_candidates",
        "n_failed",
        "versions",
    ):
        assert getattr(after, name) == getattr(before, name)
    assert repr(after.history) == repr(before.history)
    assert after.data.target == "D" and after.data.X.tobytes() == before.data.X.tobytes()
    for group in ("posterior", "posterior_predictive", "log_likelihood", "sample_stats"):
        own, other = after.best.posterior[group], before.best.posterior[group]
        for name in other.data_vars:
            np.testing.assert_array_equal(own[name], other[name])


def test_posteriors_of_negligible_equations_are_drawn_again_after_loading(tmp_path):
    laws = ["c0*sqrt(H)", "c0 + c1*H", "c0/H", "c0*H**2"]
    before = weigh_equations(laws, *SHELF, settings=Settings(), random_seed=1)
    before.select("c0*H**2").save(tmp_path)
    header = json.loads((tmp_path / HEADER).read_text())
    stored = {one["text"]: one["posterior"] is not None for one in header["equations"]}
    assert all(one["fit"]["minima"] for one in header["equations"])
    assert before.probabilities[2:].max() < 1e-3 < before.probabilities[1]
    assert stored == {"c0*sqrt(H)": True, "c0 + c1*H": True, "c0*H**2": True, "c0/H": False}
    # Not one that was never looked at.
    assert "draws" not in vars(before["c0/H"])
    after = load_result(tmp_path)
    for law in laws:
        np.testing.assert_array_equal(after[law].predict(GRID), before[law].predict(GRID))
    np.testing.assert_array_equal(after["c0/H"].draws.theta, before["c0/H"].draws.theta)


def test_strange_names_survive(tmp_path):
    names = ["height (cm)", "σ", "x`y", 'a"b\\c', "<b>"]
    X = pd.DataFrame(np.random.default_rng(0).uniform(1, 2, (9, 5)), columns=names)
    y = pd.Series(X["σ"] * 2 + X["height (cm)"], name="fall time [s]")
    text = 'c0*σ + `height (cm)` + 0*`x``y` + c1*`a"b\\c`*`<b>`'
    before = weigh_equations([text], X, y, settings=Settings(), random_seed=1)
    before.save(tmp_path)
    after = load_result(tmp_path)
    np.testing.assert_array_equal(after.predict(X), before.predict(X))
    assert after.data.names == tuple(names) and after.best.target == "fall time [s]"


def test_a_result_of_any_lane_gives_the_same_predictions():
    # Saved with PyMC 5: the newer lane must agree to 1e-10.
    saved = load_result(SAVED)
    expected = json.loads((SAVED / "predictions.json").read_text())
    np.testing.assert_allclose(predictions(saved), expected, rtol=1e-10, atol=0)


def leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list) and path[:1] != ("history",):
            yield from leaves(item, (*path, key))


def test_no_change_of_the_header_does_harm(tmp_path):
    weigh_equations(["c0*H", "log(-H)"], *SHELF, settings=Settings(), random_seed=1).save(tmp_path)
    header = json.loads((tmp_path / HEADER).read_text())
    junk = [None, -1, 10**400, 1.5, "x", [], {}, [[]], {"a": 1}, True, "__import__('os')", 1e308]
    refused = 0
    for path in leaves(header):
        for value in junk:
            broken = copy.deepcopy(header)
            place = broken
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            (tmp_path / HEADER).write_text(json.dumps(broken))
            try:
                load_result(tmp_path)
            except ValueError as error:
                assert str(tmp_path) in str(error)
                refused += 1
        broken = copy.deepcopy(header)
        place = broken
        for key in path[:-1]:
            place = place[key]
        if isinstance(place, dict):
            del place[path[-1]]
            (tmp_path / HEADER).write_text(json.dumps(broken))
            try:
                load_result(tmp_path)
            except ValueError:
                refused += 1
    assert refused > 500


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("log_q", math.nan),
        ("log_q", math.inf),
        ("log_q_se", -0.1),
        ("log_q_se", math.nan),
        ("rmse", -1.0),
        ("gamma", 0.0),
        ("gamma", 1.0),
        ("gamma", math.nan),
        ("sigma_bounds", [2.0, 1.0]),
        ("sigma_bounds", [-1.0, 1.0]),
        ("sigma_bounds", [1.0, math.inf]),
        ("rank", 10**12),
        ("n_parameters", 2),
        ("theta", [1.0, 2.0]),
        ("theta", [math.inf]),
    ],
)
def test_evidence_that_cannot_be_is_refused_in_one_line(result, tmp_path, place, value):
    result.save(tmp_path)
    header = json.loads((tmp_path / HEADER).read_text())
    header["equations"][0]["evidence"][place] = value
    (tmp_path / HEADER).write_text(json.dumps(header))
    with pytest.raises(ValueError, match=r"is damaged, or is not a result") as caught:
        pmsr.load(tmp_path)
    assert "\n" not in str(caught.value) and str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [("n_draws", 10**12), ("n_particles", -1), ("gamma", 0), ("sigma_min", 3.0), ("sigma_max", -1)],
)
def test_settings_that_cannot_be_are_refused_when_a_result_is_loaded(
    result, tmp_path, option, value
):
    result.save(tmp_path)
    header = json.loads((tmp_path / HEADER).read_text())
    header["settings"][option] = value
    (tmp_path / HEADER).write_text(json.dumps(header))
    with pytest.raises(ValueError, match=f"is damaged, or is not a result.*{option} must be"):
        pmsr.load(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "c0*H**(1000000000 + 1/3)",
        "c0*log(1 - (H + 3/8)**45761239297)",
        "c0*3**(10000000019/2)*H",
        "c0*" + "sqrt(1/(H + " * 12 + "H" + "))" * 12,
        "c0*" + "sqrt((H + " * 25 + "sqrt(H)" + ")**2)" * 25,
        "c0*" + "0.5**0.5**(-" * 30 + "H" + ")" * 30,
    ],
)
def test_a_text_that_would_keep_algebra_busy_is_refused_at_once_when_a_result_is_loaded(
    result, tmp_path, text
):
    result.save(tmp_path)
    contents = (tmp_path / HEADER).read_text()
    assert '"c0*sqrt(H)"' in contents
    (tmp_path / HEADER).write_text(contents.replace('"c0*sqrt(H)"', json.dumps(text)))
    start = time.process_time()
    with pytest.raises(ValueError, match="is damaged, or is not a result"):
        pmsr.load(tmp_path)
    assert time.process_time() - start < 2


def test_a_sine_has_all_its_equations_averaged():
    X, y = make_sine(20, random_seed=0)
    waves = weigh_equations(
        ["c0 + c1*sin(x0)", "c0 + c1*x0", "c0"], X, y, settings=Settings(), random_seed=0
    )
    # The others have probabilities below one in a million.
    np.testing.assert_array_equal(waves.predict(X, average=True), waves.predict(X))


def test_a_result_of_the_first_version_says_what_its_prior_was():
    header = json.loads((SAVED / HEADER).read_text())
    assert "parameter_prior" not in header["settings"]
    assert load_result(SAVED).problem.parameter_prior == "flat"


def test_doubts_are_found_once_and_again_when_there_is_a_posterior(monkeypatch):
    found = []
    result = weigh_equations(["c0*sqrt(H)"], *SHELF, settings=QUICK, random_seed=1)

    def refuse(*arguments, **options):
        raise ValueError("no time")

    with monkeypatch.context() as patch:
        patch.setattr("pmsr.result.fitted.draw_posterior", refuse)
        assert "no time" in result.warnings
    assert "no time" not in result.warnings
    original = type(result)._find_doubts
    monkeypatch.setattr(type(result), "_find_doubts", lambda one: found.append(one))
    again = result.warnings
    again.append("mine")
    assert found == [] and "mine" not in result.warnings
    monkeypatch.setattr(type(result), "_find_doubts", original)
    assert result.select(0).warnings == result.warnings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("free", [5]),
        ("free", [0, 0]),
        ("free", []),
        ("theta", [1.0, 2.0, 3.0]),
        ("minima", []),
        ("minima", [{"theta": [np.inf], "sse": 1.0, "converged": True}]),
        ("minima", [{"theta": [47.0], "sse": -1.0, "converged": True}]),
        ("minima", [{"theta": [47.0], "sse": 1.0, "converged": "yes"}]),
    ],
)
def test_a_region_that_cannot_be_is_refused(name, value, tmp_path):
    weigh_equations(["c0*sqrt(H)"], *SHELF, settings=QUICK, random_seed=1).save(tmp_path)
    header = json.loads((tmp_path / HEADER).read_text())
    header["equations"][0]["fit"][name] = value
    (tmp_path / HEADER).write_text(json.dumps(header))
    with pytest.raises(ValueError, match="is damaged, or is not a result of pmsr"):
        load_result(tmp_path)


def test_a_loaded_equation_has_the_region_of_its_evidence(tmp_path):
    x = np.linspace(1.0, 3.0, 8)
    laws = ["c0*c1*x0", "c0*x0**c1", "x0/(c0 + x0/c1)"]
    y = 2.0 * x + 0.01 * np.sin(9 * x)
    before = weigh_equations(laws, x, y, settings=QUICK, random_seed=1)
    before.save(tmp_path)
    after = load_result(tmp_path)
    for law in laws:
        own, other = after[law]._target().region, before[law]._target().region
        assert own.held() == other.held() and own.radius == other.radius
        np.testing.assert_array_equal(own.centres, other.centres)
        np.testing.assert_array_equal(own.starts(), other.starts())


def test_a_search_says_what_it_has_seen_and_what_not(found):
    counts = {"n_folded": 1000, "n_screened": 900, "n_sampled": 70, "n_shapes": 0}
    seen = dataclasses.replace(found, **counts, n_enumerated=50, level=4, log_rest=-np.inf)
    notes = wrap(seen).search_notes
    assert notes[:2] == [
        "1,000 graphs were folded to laws, 900 laws screened, 70 of them weighed by sampling.",
        "All 50 laws of up to 4 nodes were screened.",
    ]
    assert notes[2] == "Usual operators that were not tried: - exp log sin cos pow."
    assert weigh_equations(["c0"], *SHELF, settings=QUICK, random_seed=1).search_notes == []


def test_a_search_that_had_not_settled_and_what_it_left_unweighed_are_doubted(found):
    best = wrap(found).best.score
    result = wrap(dataclasses.replace(found, is_settled=False, log_rest=best))
    first, *others = result.warnings
    assert first.startswith("The search had not settled")
    assert any(one.startswith("Laws that were only screened, not weighed, hold") for one in others)
    assert "probability (not settled)" in result._repr_html_()
    assert "not settled" not in wrap(found)._repr_html_()


def test_the_credible_set_is_the_smallest_that_holds_enough(result, found):
    shares = result.probabilities
    assert shares[0] < 0.95 < shares[:2].sum()
    rows = result.credible_set(0.95)
    assert list(rows.index) == ["root", "power"]
    assert rows.attrs == {"level": 0.95, "probability": pytest.approx(shares[:2].sum())}
    assert list(result.credible_set(float(shares[0])).index) == ["root"]
    assert len(result.credible_set(1.0 - 1e-12)) == 3
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 95"):
        result.credible_set(95)
    # A search that left most unweighed has no such set: all that it has.
    best = wrap(found).best.score
    rest = wrap(dataclasses.replace(found, log_rest=best + 3.0))
    assert rest.credible_set(0.95).attrs["probability"] == pytest.approx(1 - rest.unweighed_share)


@pytest.mark.parametrize("law_prior", ["description", "uniform"])
def test_a_law_has_the_prior_of_the_search_also_where_units_are_known(law_prior):
    search = Search(
        operators=("+", "*", "sqrt"),
        population_size=8,
        generations=2,
        n_islands=1,
        n_enumerated=50,
        law_prior=law_prior,
        units={"H": "mm", "D": "?"},
        interval=["H"],
    )
    found = run_evolution(DATA, search=search, random_seed=1)
    result = wrap(found, search)
    bench = Bench(result.problem, search, QUICK, 1)
    assert len(result) > 3
    for (equation, _), one in zip(
        sorted(found.finalists, key=lambda pair: pair[0].key),
        sorted(result.equations, key=lambda one: one.equation.key),
        strict=True,
    ):
        assert one.log_prior == bench.log_prior(equation.program) > -np.inf, equation
    assert result.units.by_name == {"H": "mm", "D": "?"}


def test_units_of_a_search_are_saved_also_of_columns_that_do_not_vary(tmp_path):
    X = SHELF[0].assign(T=293.0)
    data = make_data(X, SHELF[1])
    units = {"H": "mm", "T": "K", "D": "mm"}
    search = dataclasses.replace(SEARCH, units=units, interval=["T"])
    found = run_evolution(data, search=search, random_seed=1)
    result = from_evolution(found, data, search=search, settings=QUICK, random_seed=1)
    assert result.best.units.by_name == {"H": "mm", "D": "mm"}
    result.save(tmp_path)
    after = load_result(tmp_path)
    assert after.units.by_name == units and after.units.interval_names == ("T",)
    assert after.best.parameter_units == result.best.parameter_units
    header = json.loads((tmp_path / HEADER).read_text())
    header["search"]["units"] = {"H": ["mm"], "T": "K", "D": "mm"}
    (tmp_path / HEADER).write_text(json.dumps(header))
    with pytest.raises(ValueError, match=r"is damaged.*The unit of 'H' must be a text"):
        load_result(tmp_path)
