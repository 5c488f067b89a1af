import pickle
import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import sympy
from scipy.stats import halfnorm, norm

from pmsr.data import load_galileo, make_sine
from pmsr.equation.program import evaluate
from pmsr.evidence.diagnostics import normality
from pmsr.evidence.evidence import make_target
from pmsr.evidence.posterior import sample_posterior
from pmsr.evidence.prediction import predict
from pmsr.laws.units import read_units
from pmsr.result.comparison import weigh_equations
from pmsr.result.doubts import ResultWarning
from pmsr.result.family import noise_level
from pmsr.result.fitted import FittedEquation
from pmsr.settings import QUICK, Settings

SHELF = load_galileo("shelf")
IN_MM = {"H": "mm", "D": "mm"}
GRID = pd.DataFrame({"H": [350.0, 450.0, 900.0]}, index=["a", "b", "c"])
SETTINGS = Settings(gamma=0.45)


def fit(text, X=SHELF[0], y=SHELF[1]) -> FittedEquation:
    return weigh_equations([text], X, y, settings=SETTINGS, random_seed=1).best


@pytest.fixture(scope="module")
def line():
    return fit("c0 + c1*H")


@pytest.fixture(scope="module")
def reference():
    return sample_posterior("c0 + c1*H", *SHELF, settings=SETTINGS, random_seed=1)


def groups(posterior):
    names = ("posterior", "posterior_predictive", "log_likelihood", "sample_stats")
    return [posterior[name] for name in (*names, "observed_data", "constant_data")]


def test_the_posterior_is_that_of_sample_posterior(line, reference):
    for own, other in zip(groups(line.posterior), groups(reference), strict=True):
        assert list(own.data_vars) == list(other.data_vars)
    for name in ("c0", "c1", "sigma"):
        one, two = (np.asarray(each.posterior[name]) for each in (line.posterior, reference))
        error = np.hypot(*(np.std(x) / np.sqrt(float(az.ess(x))) for x in (one, two)))
        assert abs(one.mean() - two.mean()) < 4 * error
    assert line.posterior.posterior.attrs["target"] == "D"


def test_the_posterior_is_made_of_the_particles_that_gave_log_q():
    line = weigh_equations(["c0 + c1*H"], *SHELF, random_seed=1).best
    chains = line.weighed.chains
    assert len(chains) == 4
    for k, chain in enumerate(chains):
        np.testing.assert_array_equal(line.draws.theta[k], chain.theta)
    stats = line.posterior.sample_stats
    # One for each of the four runs.
    assert np.ptp(np.asarray(stats["log_q"])) < 0.2
    assert float(np.mean(stats["log_q"])) == pytest.approx(line.evidence.log_q, abs=0.05)


def test_where_particles_are_too_few_chains_are_sampled_over_the_same_region(line, monkeypatch):
    few = replace(line, weighed=replace(line.weighed, chains=()))
    monkeypatch.setattr("pmsr.evidence.posterior.make_target", None)  # no other fit
    assert few.draws.theta.shape == (4, 1000, 2)
    np.testing.assert_array_equal(few.draws.theta_map, line.draws.theta_map)
    region, again = line._target().region, few._target().region
    np.testing.assert_array_equal(region.whitens[0], again.whitens[0])


def test_what_travels_between_processes_does_not_grow_with_the_rows():
    x = np.linspace(0.1, 5.0, 3000)
    law = fit("c0*x0/(c1 + x0)", x, x / (1.0 + x) + 0.01 * np.sin(99 * x))
    assert len(pickle.dumps(law.weighed)) < 150_000
    target = law.weighed.target(law.problem)
    fresh = make_target(law.equation.program, law.problem, 8, rng=np.random.default_rng(0))
    np.testing.assert_allclose(target.region.centres[0], fresh.region.centres[0], rtol=1e-6)


def test_predictions_are_those_of_predict(line):
    table = predict(line.posterior, GRID, level=0.9)
    mean, std = line.predict(GRID, return_std=True)
    np.testing.assert_array_equal(mean, table["mean"])
    np.testing.assert_array_equal(std, table["std"])
    np.testing.assert_array_equal(line.predict(GRID.to_numpy()), mean)
    for kind in ("prediction", "credible"):
        ends = table[[f"{kind}_low", f"{kind}_high"]]
        np.testing.assert_array_equal(line.predict_interval(GRID, level=0.9, kind=kind), ends)
    wide, narrow = line.predict_interval(GRID), line.predict_interval(GRID, kind="credible")
    assert wide.shape == (3, 2)
    assert np.all(wide[:, 0] < narrow[:, 0]) and np.all(wide[:, 1] > narrow[:, 1])


def test_a_table_may_have_more_columns(line):
    more = GRID.assign(other=1.0)[["other", "H"]]
    np.testing.assert_array_equal(line.predict(more), line.predict(GRID))
    with pytest.raises(ValueError, match="X lacks the column 'H'"):
        line.predict(more[["other"]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "confidence"}, r"Unknown kind 'confidence'\. Available: prediction, credible"),
        ({"level": 95}, r"level must be in \(0, 1\), got 95"),
    ],
)
def test_intervals_must_be_of_a_known_kind_and_level(line, options, message):
    with pytest.raises(ValueError, match=message):
        line.predict_interval(GRID, **options)


def test_predictions_outside_the_data_are_doubted(line):
    for predictor in (line.predict, line.predict_interval):
        with pytest.warns(
            ResultWarning, match="1 of 2 rows lie outside the data.*H = 5000"
        ) as seen:
            predictor([400.0, 5000.0])
        assert seen[0].filename == __file__


def test_predictions_that_are_not_finite_are_nan_with_a_warning():
    root = fit("sqrt(c0*H + c1)")
    with pytest.warns(ResultWarning) as seen:
        values = root.predict([400.0, -50_000.0])
    assert np.isfinite(values[0]) and np.isnan(values[1])
    assert any("not finite for some posterior draws" in str(one.message) for one in seen)


def test_estimates_summarise_the_draws(line):
    table = line.estimates(level=0.8)
    assert list(table.index) == ["c0", "c1", "sigma"]
    draws = np.asarray(line.posterior.posterior["c1"]).ravel()
    low, high = np.quantile(draws, [0.1, 0.9])
    expected = [line.theta[1], draws.mean(), draws.std(), low, high]
    np.testing.assert_allclose(table.loc["c1"], expected, rtol=1e-12)
    np.testing.assert_allclose(table.loc["sigma", "best_fit"], line.evidence.rmse, rtol=1e-12)
    assert table.attrs["level"] == 0.8


def test_the_best_fit_is_the_least_squares_line(line):
    slope, intercept = np.polyfit(SHELF[0]["H"], SHELF[1], 1)
    np.testing.assert_allclose(line.theta, [intercept, slope], rtol=1e-8)
    np.testing.assert_allclose(
        line.residuals, SHELF[1] - intercept - slope * SHELF[0]["H"], atol=1e-6
    )
    np.testing.assert_allclose(np.sqrt(np.mean(line.residuals**2)), line.evidence.rmse)
    np.testing.assert_array_equal(line.draws.theta_map, line.theta)


def test_a_function_and_its_source_compute_the_best_fit():
    X = pd.DataFrame({"height (cm)": [1.0, 2.0, 3.0, 4.5], "σ": [2.0, 1.0, 5.0, 3.0]})
    y = pd.Series([2.1, 3.9, 6.2, 8.8], name="fall time [s]")
    fitted = fit("c0*`height (cm)` + 0.1*c1/σ", X, y)
    expected = evaluate(fitted.equation.program, fitted.theta[None, :], X.to_numpy())[0]
    function = fitted.to_callable()
    np.testing.assert_array_equal(function(X["height (cm)"], X["σ"]), expected)
    assert function(2.0, 1.0).shape == ()
    assert function(np.ones((2, 1)), np.ones(3)).shape == (2, 3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(function))(*X.to_numpy().T), expected)
    with pytest.raises(TypeError, match=r"function of 2 variables \(height \(cm\), σ\), got 1"):
        function(1.0)
    namespace: dict = {}
    exec(fitted.to_python(), namespace)
    values = namespace["fall_time_s"](height_cm=X["height (cm)"], σ=X["σ"])
    np.testing.assert_allclose(values, expected, rtol=1e-14)


def test_the_pymc_model_has_the_posterior_where_the_draws_are(line):
    model = line.to_pymc()
    assert [variable.name for variable in model.free_RVs] == ["c0", "c1", "sigma"]
    density = model.compile_logp(jacobian=False)
    low, high = line.evidence.sigma_bounds
    theta, sigma = line.draws.flat_theta, line.draws.flat_sigma
    for place in range(0, 4000, 1000):
        point = {
            "c0": theta[place, 0],
            "c1": theta[place, 1],
            "sigma_interval__": np.log(sigma[place] - low) - np.log(high - sigma[place]),
        }
        z = (SHELF[1] - theta[place, 0] - theta[place, 1] * SHELF[0]["H"]) / sigma[place]
        expected = -0.5 * z @ z - 5 * np.log(sigma[place] * np.sqrt(2 * np.pi))
        assert density(point) == pytest.approx(expected - np.log(high - low))
    far = {"c0": 1e9, "c1": 0.0, "sigma_interval__": 0.0}
    assert density(far) == -np.inf


def test_a_fixed_form_has_everything_but_parameters():
    fitted = fit("47*sqrt(H)")
    assert [variable.name for variable in fitted.to_pymc().free_RVs] == ["sigma"]
    assert list(fitted.estimates().index) == ["sigma"]
    assert fitted.predict([[400.0]]).tolist() == [940.0]
    assert "return 47*numpy.sqrt(H)" in fitted.to_python()


def test_latex_has_the_target_and_on_request_numbers(line):
    assert line.latex() == "D = c_{0} + c_{1} H"
    assert line.latex(fitted=True) == "D = 0.9878 H + 531.0"
    assert line.sympy().free_symbols == {sympy.Symbol(name) for name in ("c0", "c1", "H")}
    slope = line.sympy(fitted=True).diff("H")
    assert float(slope) == line.theta[1]


class Text(HTMLParser):
    def __init__(self, markup):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_notebooks_show_the_equation_with_estimates_and_uncertainty(line):
    shown = Text(line._repr_html_())
    assert "math" in shown.tags and "D" in shown.texts
    table = line.estimates()
    latex = line._repr_latex_()
    assert "D &= c_{0} + c_{1} H" in latex
    for name in ("c0", "c1", "sigma"):
        # Mean and deviation to the digits that are shown.
        mean, sd = table.loc[name, ["mean", "sd"]]
        text = shown.texts[shown.texts.index(name) + 1]
        low, high = (float(part) for part in text.split(" ± "))
        assert low == pytest.approx(mean, abs=sd / 10) and high == pytest.approx(sd, rel=0.1)
        assert text.replace("±", r"\pm") in latex
        assert f"{name} = {text}" in str(line)
    assert repr(line) == f"FittedEquation('c0 + c1*H', log_q={line.evidence.log_q:.2f})"


def test_what_cannot_be_fitted_is_still_shown():
    failed = weigh_equations(["c0*log(-H)"], *SHELF, settings=SETTINGS, random_seed=1).best
    assert "never finite" in failed._repr_html_()
    assert failed._repr_latex_().startswith("$")
    assert str(failed) == "D = c0*log(-H)"
    assert len(failed.warnings) == 1 and "could not be weighed" in failed.warnings[0]


def test_a_hostile_column_name_is_only_text():
    name = "<img src=x onerror=alert(1)>"
    fitted = fit(f"c0*`{name}`", pd.DataFrame({name: [1.0, 2.0, 3.0]}), [1.0, 2.1, 2.9])
    assert "img" not in Text(fitted._repr_html_()).tags


def test_a_pickled_equation_predicts_the_same(line):
    line.predict(GRID)
    _ = line.posterior
    copy = pickle.loads(pickle.dumps(line))
    assert "posterior" not in vars(copy) and "draws" in vars(copy)
    np.testing.assert_array_equal(copy.predict_interval(GRID), line.predict_interval(GRID))
    for own, other in zip(groups(copy.posterior), groups(line.posterior), strict=True):
        for name in own.data_vars:
            np.testing.assert_array_equal(own[name], other[name])


def test_doubts_of_every_kind_are_listed():
    x = np.linspace(1.0, 2.0, 40)
    noise = np.zeros(40)
    noise[7] = 3.0
    [doubt] = fit("c0*x0", x[:, None], x + noise + 0.001 * np.sin(9 * x)).warnings
    assert "do not look normal" in doubt
    assert fit("c0*x0", x[:, None], x + np.random.default_rng(1).normal(0, 0.1, 40)).warnings == []
    few = fit("c0 + c1*H + c2*H**2").warnings
    assert any("5 observations for 3 parameters" in doubt for doubt in few)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twins = fit("c0*exp(c1)*H").warnings
    assert any("cannot be told apart" in doubt for doubt in twins)


def test_only_variables_in_the_equation_count():
    X = SHELF[0].assign(other=[3.0, 1.0, 4.0, 1.0, 5.0])
    fitted = fit("c0*sqrt(H)", X)
    assert fitted.used == ("H",) and fitted.equation.variables == ("H", "other")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict([[400.0, 99.0]])


def test_many_observations_have_no_pointwise_groups(monkeypatch):
    X, y = make_sine(30, random_seed=0)
    fitted = fit("c0 + c1*x0", X, y)
    monkeypatch.setattr("pmsr.result.fitted.MAX_POINTWISE", 100_000)
    assert not hasattr(fitted.posterior, "log_likelihood")
    assert dict(fitted.posterior.posterior.sizes) == {"chain": 4, "draw": 1000}


def test_an_equation_that_can_be_weighed_but_not_sampled_is_doubted(monkeypatch):
    fitted = fit("c0*sqrt(H)")

    def refuse(*arguments, **options):
        raise ValueError("has no posterior on these data: too bad.")

    monkeypatch.setattr("pmsr.result.fitted.draw_posterior", refuse)
    assert fitted.warnings == ["has no posterior on these data: too bad."]
    assert str(fitted) == "D = c0*sqrt(H)"


def test_a_model_for_pymc_holds_what_the_evidence_holds():
    X = np.linspace(1.0, 3.0, 8)[:, None]
    fitted = fit("c0*c1*x0", X, 2.0 * X[:, 0] + 0.01 * np.sin(9 * X[:, 0]))
    model = fitted.to_pymc()
    [held] = fitted.draws.held
    [free] = {"c0", "c1"} - {held}
    assert [variable.name for variable in model.free_RVs] == [free, "sigma"]
    point = model.initial_point()
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")(point))
    value = float(model[held].eval())
    assert value * float(point[free]) == pytest.approx(2.0, rel=0.01)


def test_a_model_for_pymc_takes_priors_in_place_of_flat_ones():
    X = np.linspace(0.2, 3.0, 9)[:, None]
    rng = np.random.default_rng(5)
    y = 2.0 * np.exp(-0.7 * X[:, 0]) + 0.05 * rng.standard_normal(9)
    fitted = fit("c0*exp(-c1*x0)", X, y)
    both = {"c0": pm.Normal.dist(2.0, 0.5), "c1": pm.HalfNormal.dist(1.0)}
    model = fitted.to_pymc(priors=both)
    assert (
        pm.sample_prior_predictive(7, model=model, random_seed=1).prior_predictive["y"].size == 63
    )
    low, high = fitted.evidence.sigma_bounds

    def expected(c0, c1, sigma):
        log_prior = norm.logpdf(c0, 2.0, 0.5) + halfnorm.logpdf(c1, scale=1.0) - np.log(high - low)
        return log_prior + norm.logpdf(y, c0 * np.exp(-c1 * X[:, 0]), sigma).sum()

    density = model.compile_logp(jacobian=False, mode="FAST_COMPILE")
    for c0, c1, sigma in ((1.8, 0.6, 0.1), (2.3, 0.9, 0.2)):
        at = {
            "c0": c0,
            "c1_log__": np.log(c1),
            "sigma_interval__": np.log(sigma - low) - np.log(high - sigma),
        }
        assert density(at) == pytest.approx(expected(c0, c1, sigma))
    # The other stays flat on predictions, given c1: the volume is then the length of df/dc0.
    one = fitted.to_pymc(priors={"c1": pm.HalfNormal.dist(1.0)})
    density = one.compile_logp(jacobian=False, mode="FAST_COMPILE")
    sigma = 0.5 * (low + high)
    values = [
        density({"c0": 2.0, "c1_log__": np.log(c1), "sigma_interval__": 0.0}) for c1 in (0.5, 1)
    ]
    ends = [
        norm.logpdf(y, 2.0 * np.exp(-c1 * X[:, 0]), sigma).sum()
        + halfnorm.logpdf(c1)
        + 0.5 * np.log(np.sum(np.exp(-2.0 * c1 * X[:, 0])))
        for c1 in (0.5, 1.0)
    ]
    assert values[1] - values[0] == pytest.approx(ends[1] - ends[0])
    with pytest.raises(ValueError, match="There is no parameter 'c2' to have a prior"):
        fitted.to_pymc(priors={"c2": pm.HalfNormal.dist(1.0)})


def test_a_law_says_in_words_what_is_true_in_one_unit_only():
    laws = ["c0*sqrt(H)", "c0 + H", "log(-H)"]
    result = weigh_equations(laws, *load_galileo("shelf"), settings=QUICK, random_seed=1)
    assert result["c0*sqrt(H)"].coincidences == []
    [phrase] = result["c0 + H"].coincidences
    assert phrase == "adds H, in its unit, to D, in its unit, with coefficient exactly 1"
    shifted = replace(result["c0*sqrt(H)"], units=read_units(None, ["H"], "D", interval=["H"]))
    assert shifted.coincidences == ["depends on where H is zero"]


def test_of_units_that_are_known_a_law_has_nothing_to_say():
    result = weigh_equations(
        ["c0 + H", "c0 + sin(H)"], *SHELF, settings=QUICK, units=IN_MM, random_seed=1
    )
    assert result["c0 + H"].coincidences == [] and result["c0 + H"].is_possible
    unknown = replace(result["c0 + H"], units=read_units({"H": "?", "D": "mm"}, ["H"], "D"))
    assert len(unknown.coincidences) == 1


def test_parameters_have_units_where_those_of_the_columns_are_known():
    laws = ["c0*sqrt(H)", "c0*H**c1", "c0*H/(c1 + H)"]
    result = weigh_equations(laws, *SHELF, settings=QUICK, units=IN_MM, random_seed=1)
    root = result["c0*sqrt(H)"]
    table = root.estimates()
    assert table["unit"].to_dict() == {"c0": "mm**(1/2)", "sigma": "mm"}
    assert result["c0*H/(c1 + H)"].estimates()["unit"].to_list() == ["mm", "mm", "mm"]
    # The unit of c0 depends on the value of c1; c1 is a pure number.
    assert result["c0*H**c1"].estimates()["unit"].to_list() == ["", "", "mm"]
    assert re.search(r"c0 = 47\.\d+ ± 0\.\d+ mm\*\*\(1/2\)\n  sigma = .* mm$", str(root))
    assert r"\,\mathrm{mm}^{1/2} \\ \sigma" in root._repr_latex_()
    assert "mm**(1/2)</td>" in root._repr_html_()
    whole = result.estimates()
    assert whole.loc[("c0*sqrt(H)", "c0"), "unit"] == "mm**(1/2)"


@pytest.mark.parametrize(
    ("noise", "relative"),
    [("gaussian", False), ("student", False), ("proportional", True), ("lognormal", True)],
)
def test_sigma_is_a_pure_number_where_noise_is_relative(noise, relative):
    settings = replace(QUICK, noise=noise)
    table = weigh_equations(
        ["c0*sqrt(H)"], *SHELF, settings=settings, units=IN_MM, sample_weight=[1, 2, 1, 1, 2]
    ).best.estimates()
    sigma = table.loc["sigma"]
    assert sigma["unit"] == ("" if relative else "mm")
    # What is most likely is within what is probable, in the same unit.
    assert sigma["low"] < sigma["best_fit"] * 1.5 and sigma["best_fit"] < sigma["high"]
    assert (sigma["best_fit"] < 0.1) == relative


def test_without_units_nothing_is_said_of_them(line):
    assert "unit" not in line.estimates() and line.parameter_units == {}
    assert line.is_possible
    partly = replace(line, units=read_units({"H": "mm", "D": "?"}, ["H"], "D"))
    assert partly.estimates()["unit"].to_list() == ["[D]", "[D]/mm", "[D]"]


def test_a_law_that_units_forbid_has_no_units_and_is_doubted():
    in_seconds = {"H": "mm", "D": "s"}
    law = weigh_equations(["c0 + H"], *SHELF, settings=QUICK, units=in_seconds, random_seed=1).best
    assert not law.is_possible and law.score == -np.inf
    assert law.estimates()["unit"].to_list() == ["", "s"]
    assert "'c0 + H' does not survive a change of units (H in mm, D in s)" in law.warnings[0]


def test_a_fitted_equation_with_units_is_pickled():
    law = weigh_equations(["c0*H"], *SHELF, settings=QUICK, units=IN_MM, random_seed=1).best
    assert pickle.loads(pickle.dumps(law)).parameter_units == law.parameter_units


def test_a_law_that_ends_where_the_data_end_is_doubted():
    x = np.linspace(1.1, 9.1, 12)
    y = np.exp(np.sqrt(2.0 * np.log(x))) + 0.05 * np.sin(40.0 * x)
    laws = ["exp(sqrt(c0*log(x0)))", "c0*x0**c1"]
    result = weigh_equations(laws, x, y, settings=QUICK, random_seed=1)
    doubts = " ".join(result["exp(sqrt(c0*log(x0)))"].warnings)
    assert "is not defined at x0 = 0.94, just beyond the data (1.1 to 9.1)" in doubts
    assert not any("not defined" in one for one in result["c0*x0**c1"].warnings)


def test_a_count_is_that_many_rows_in_whatever_is_said_of_a_law():
    # Errors that differ, and rows that were seen more often where they are large.
    x = np.linspace(0.5, 5.0, 8)
    counts = np.array([1, 1, 1, 2, 1, 3, 4, 9])
    y = 2.0 * x + np.array([0.2, -0.1, 0.3, -0.3, 0.1, 0.2, -0.4, 0.1])
    errors, group = np.linspace(0.05, 0.8, 8), np.tile(["a", "b"], 4)

    def weigh(rows, **options):
        known = {name: values[rows] for name, values in options.items()}
        laws = ["c0*x0", "2*x0"]
        return weigh_equations(laws, x[rows], y[rows], settings=QUICK, random_seed=1, **known)

    every, repeated = np.arange(8), np.repeat(np.arange(8), counts)
    for known in ({"y_err": errors}, {}):
        few, many = weigh(every, sample_weight=counts, **known), weigh(repeated, **known)
        for one, other in zip(few, many, strict=True):
            width = [np.ptp(law.predict_interval([2.0])) for law in (one, other)]
            assert width[0] == pytest.approx(width[1], rel=0.02)
            assert noise_level(one) == pytest.approx(noise_level(other), rel=1e-9)
        line = few["c0*x0"]
        table = predict(line.posterior, pd.DataFrame({"x0": [2.0]}))
        found = table[["prediction_low", "prediction_high"]].to_numpy()
        np.testing.assert_allclose(found, line.predict_interval([2.0]), rtol=1e-9)
        assert few.problem.constant_log_q == pytest.approx(many.problem.constant_log_q)
    one = weigh(every, sample_weight=counts, groups=group)["2*x0"]
    other = weigh(repeated, groups=group)["2*x0"]
    largest = [np.max(np.abs(law.normal_residuals)) for law in (one, other)]
    assert largest[0] == pytest.approx(largest[1], rel=1e-9)


def test_the_number_of_observations_is_that_of_the_counts():
    x, y = [1.0, 2.0, 3.0], [1.1, 1.9, 3.2]
    few = weigh_equations(["c0*x0"], x, y, settings=QUICK, random_seed=1).best
    many = weigh_equations(
        ["c0*x0"], x, y, sample_weight=[4, 4, 4], settings=QUICK, random_seed=1
    ).best
    assert any(doubt.startswith("There are 3 observations") for doubt in few.warnings)
    assert not any("observations" in doubt for doubt in many.warnings)


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_that_stand_there_often_raise_no_doubt_that_their_counts_do_not(grouped):
    # Ten rows at normal quantiles, fifty times each: no test takes so many equal values for normal.
    x = np.array([1.0, 2.0] * 5)
    y = 3.0 * x + 0.1 * norm.ppf((np.arange(10) + 0.5) / 10)
    rows = np.repeat(np.arange(10), 50)
    labels = {"groups": ["a", "b"] * 250} if grouped else {}  # every measurement in both
    one = weigh_equations(["c0*x0"], x[rows], y[rows], random_seed=1, **labels).best
    assert normality(one.normal_residuals) < 1e-3
    assert not any("do not look normal" in doubt for doubt in one.warnings)
