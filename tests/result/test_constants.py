"""Known constants, from the door to the saved result."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pmsr
from pmsr.data import Constant, check_X, leave_out_constant, make_data
from pmsr.equation.expression import Equation
from pmsr.laws.coincidences import count_coincidences
from pmsr.laws.units import read_units

G = 9.81


def _fall(n=14, noise=0.02):
    rng = np.random.default_rng(5)
    h = np.linspace(1.0, 40.0, n)
    t = np.sqrt(2.0 * h / G) + noise * rng.standard_normal(n)
    return pd.DataFrame({"h": h}), pd.Series(t, name="t")


def _speed():
    rng = np.random.default_rng(6)
    t = np.linspace(0.2, 2.0, 14)
    return pd.DataFrame({"t": t}), pd.Series(G * t + 0.1 * rng.standard_normal(14), name="v")


def test_an_exact_constant_is_the_number_in_its_place():
    X, y = _fall()
    table = pmsr.compare(
        {"name": "sqrt(2*h/g)", "number": "sqrt(2*h/9.81)", "fitted": "c0*sqrt(h/g)"},
        X,
        y,
        constants={"g": G},
        random_seed=1,
        verbose=False,
    )
    assert table.loc["name", "log_q"] == pytest.approx(table.loc["number", "log_q"], abs=1e-9)
    assert table.loc["name", "log_q"] > table.loc["fitted", "log_q"]


def test_predictions_need_no_column_of_a_constant():
    X, y = _fall()
    result = pmsr.weigh_equations(["c0 + sqrt(2*h/g)"], X, y, constants={"g": G}, random_seed=1)
    new = pd.DataFrame({"h": [10.0, 20.0]})
    assert result.predict(new) == pytest.approx(np.sqrt(2.0 * new["h"] / G), abs=0.05)
    assert result.best.predict([10.0, 20.0]) == pytest.approx(result.predict(new))
    assert list(result.predict_table(new)["map"]) == pytest.approx(
        np.sqrt(2.0 * new["h"] / G), abs=0.05
    )
    idata = pmsr.sample_posterior("c0 + sqrt(2*h/g)", X, y, constants={"g": G}, random_seed=1)
    assert pmsr.predict(idata, new)["mean"].to_numpy() == pytest.approx(
        result.predict(new), abs=0.02
    )


def test_an_uncertain_constant_is_weighed_between_exact_and_free():
    X, y = _fall()
    logs = {}
    for name, value in (("exact", G), ("sure", (G, 1e-6)), ("vague", (G, 0.5))):
        result = pmsr.weigh_equations(
            ["sqrt(2*h/g)", "c0*sqrt(h)"], X, y, constants={"g": value}, random_seed=1
        )
        logs[name] = result["sqrt(2*h/g)"].evidence.log_q
        free = result["c0*sqrt(h)"].evidence.log_q
    assert logs["sure"] == pytest.approx(logs["exact"], abs=0.02)
    assert free < logs["vague"] < logs["exact"]


def test_a_factor_that_is_uncertain_is_no_other_law_than_the_parameter_beside_it():
    X, y = _speed()
    result = pmsr.weigh_equations(
        ["c0*t", "c0*k*t", "c0*t/k"], X, y, constants={"k": (2.0, 0.1)}, random_seed=1
    )
    first, *others = (one.evidence for one in result)
    for other in others:
        error = np.hypot(first.log_q_se, other.log_q_se)
        assert other.log_q == pytest.approx(first.log_q, abs=4.0 * error + 1e-3)


@pytest.mark.parametrize(
    "constant",
    [G, (G, 0.02), pytest.param("gamma", id="distribution")],
)
def test_a_search_uses_a_constant_that_is_given(constant, tmp_path):
    X, y = _speed()
    constant = pm.Gamma.dist(mu=G, sigma=0.02) if constant == "gamma" else constant
    regressor = pmsr.BayesianSymbolicRegressor(
        ("+", "*", "/"),
        constants={"g": constant},
        population_size=20,
        generations=5,
        max_complexity=8,
        random_state=0,
        verbose=False,
    )
    regressor.fit(X, y)
    assert regressor.n_features_in_ == 1
    assert str(regressor.best_.equation) == "g*t"
    new = pd.DataFrame({"t": [1.0]})
    assert regressor.predict(new) == pytest.approx([G], abs=0.1)
    estimates = regressor.best_.estimates()
    if constant != G:
        assert estimates.loc["g", "sd"] == pytest.approx(0.02, rel=0.25)
    else:
        assert "g" not in estimates.index
    regressor.save(tmp_path / "run")
    loaded = pmsr.load(tmp_path / "run")
    assert np.array_equal(loaded.predict(new), regressor.predict(new))
    assert str(loaded.best_.equation) == "g*t"
    if constant == G:
        assert loaded.constants == {"g": G}


def test_a_constant_is_not_left_out_though_it_is_the_same_in_all_rows():
    data = make_data([[1, 293], [2, 293]], [5, 6], names=["x", "T"], constants={"g": G})
    assert leave_out_constant(data).names == ("x", "g")
    assert data.constant == {"T": 293.0}
    assert data.select(["g"]).constants == {"g": Constant(G)}
    assert data.take(np.array([1])).X.tolist() == [[2.0, 293.0, G]]
    with pytest.raises(ValueError, match="same in all rows"):
        leave_out_constant(make_data([1, 1], [5, 6], constants={"g": G}))


def test_new_rows_get_their_constants():
    constants = {"g": Constant(G)}
    assert check_X([1.0, 2.0], ["x", "g"], constants=constants).tolist() == [[1.0, G], [2.0, G]]
    assert check_X([[1.0]], ["g"], constants=constants).tolist() == [[G]]


@pytest.mark.parametrize(
    ("constants", "match"),
    [
        ({"h": 1.0}, "name of a column"),
        ({"t": 1.0}, "name of the target"),
        ({"g": np.inf}, "finite"),
        ({"g": "9.81"}, "no distribution"),
        ({"g": True}, "finite number"),
        ({"g": (9.81, 0.0)}, "must be positive"),
        ({"g": (9.81, -0.1)}, "must be positive"),
        ({"two words": 1.0}, "identifier"),
        ({"sigma": (1.0, 0.1)}, "must not be called"),
        ([("g", 1.0)], "dictionary"),
    ],
)
def test_a_constant_that_is_none_is_refused_before_anything_runs(constants, match):
    X, y = _fall()
    with pytest.raises(ValueError, match=match):
        pmsr.compare(["c0*sqrt(h)"], X, y, constants=constants)
    with pytest.raises(ValueError, match=match):
        pmsr.BayesianSymbolicRegressor(constants=constants, verbose=False).fit(X, y)


def test_a_constant_with_a_prior_of_its_own_is_refused():
    X, y = _fall()
    law = Equation("c0*sqrt(h/g)", ["h"], ["g"])
    with pytest.raises(ValueError, match="is a constant and has a prior"):
        pmsr.compute_evidence(law, X, y, constants={"g": (9.8, 0.1)}, priors={"g": (9.8, 0.1)})


def test_uncertain_constants_of_several_groups_are_refused():
    X, y = _fall()
    groups = ["a", "b"] * 7
    with pytest.raises(ValueError, match="several groups"):
        pmsr.compare(["c0*sqrt(h/g)"], X, y, groups=groups, constants={"g": (9.8, 0.1)})


def test_a_constant_without_a_unit_has_the_one_that_fits():
    law = Equation("sqrt(2*h/g)", ["h", "g"]).program
    columns = read_units(None, ["h", "g"], "t").generators
    assert count_coincidences(law, 2, generators=columns).total == 1
    known = read_units(None, ["h", "g"], "t", constants=["g"]).generators
    assert count_coincidences(law, 2, generators=known).total == 0
    # With units it must be the right one.
    units = {"h": "m", "g": "m/s**2", "t": "s"}
    given = read_units(units, ["h", "g"], "t", constants=["g"]).generators
    assert count_coincidences(law, 2, generators=given).broken == 0
    wrong = read_units({**units, "g": "m/s"}, ["h", "g"], "t", constants=["g"]).generators
    assert count_coincidences(law, 2, generators=wrong).broken > 0
    # One constant makes up for one change of units, and not for two.
    odd = Equation("h + g", ["h", "g"]).program
    assert count_coincidences(odd, 2, generators=known).total == 1


def test_pi_and_e_are_numbers_unless_columns_have_these_names():
    assert str(Equation("2*pi*sqrt(l)*e", ["l"])) == "2*e*pi*sqrt(l)"
    assert Equation("e*x", ["x"]).key == Equation("exp(1)*x", ["x"]).key
    assert str(Equation("exp(1)*e", ["e"])) == "exp(1)*e"
    assert (
        Equation("e*x", ["e", "x"]).expression.free_symbols
        != Equation("e*x", ["x"]).expression.free_symbols
    )


def test_prior_predictive_draws_where_all_priors_are_proper():
    X, y = _speed()
    model = pmsr.build_model("g*t + c0", X, y, constants={"g": (9.8, 0.1)}, priors={"c0": (0, 1)})
    assert [variable.name for variable in model.free_RVs] == ["c0", "g", "sigma"]
    assert not model.potentials
    with model:
        prior = pm.sample_prior_predictive(200, random_seed=1)
    draws = np.asarray(prior.prior["g"]).ravel()
    assert draws.mean() == pytest.approx(9.8, abs=4.0 * 0.1 / np.sqrt(200))
    # With a flat one, the volume is that of its parameter given the other.
    half = pmsr.build_model("g*t + c0", X, y, constants={"g": (9.8, 0.1)})
    assert [potential.name for potential in half.potentials] == ["volume"]
