import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import softmax
from scipy.stats import norm
from shelf import DATA, GRID, SEARCH, SHELF, TINY, wrap

import pmsr
from pmsr.data import make_data, make_sine
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import compute_evidence
from pmsr.laws.prior import LawPrior
from pmsr.result.comparison import weigh_equations
from pmsr.result.doubts import ResultWarning
from pmsr.result.loading import load_result
from pmsr.result.searched import from_evolution
from pmsr.search.evolution import run_evolution
from pmsr.settings import FINALIST, QUICK, Search, Settings


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


def test_a_sine_has_all_its_equations_averaged():
    X, y = make_sine(20, random_seed=0)
    waves = weigh_equations(
        ["c0 + c1*sin(x0)", "c0 + c1*x0", "c0"], X, y, settings=Settings(), random_seed=0
    )
    # The others have probabilities below one in a million.
    np.testing.assert_array_equal(waves.predict(X, average=True), waves.predict(X))


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
