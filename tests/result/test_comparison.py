import dataclasses
import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

import pmsr.result.comparison
from pmsr.data import load_galileo, make_sine
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import compute_evidence
from pmsr.laws.prior import LawPrior
from pmsr.result.comparison import compare, weigh_equations
from pmsr.result.loading import load_result
from pmsr.result.storage import HEADER
from pmsr.settings import FINALIST, Settings

X, y = SHELF = load_galileo("shelf")
QUICK = Settings()
COLUMNS = [
    "equation",
    "log_q",
    "log_q_se",
    "log_prior",
    "score",
    "difference",
    "probability",
    "family",
    "family_probability",
    "bayes_factor",
    "parameters",
    "complexity",
    "rmse",
    "estimates",
    "prior_sensitivity",
    "failure",
    "latex",
]


@pytest.fixture(scope="module")
def table():
    equations = {"line": "c0 + c1*H", "root": "c0*sqrt(H)", "proportional": "c0*H"}
    return compare(equations, *SHELF, random_seed=1)


def test_the_best_equation_comes_first(table):
    assert list(table.columns) == COLUMNS
    assert list(table.index) == ["root", "line", "proportional"]
    assert table["log_q"].is_monotonic_decreasing
    assert table["equation"].to_list() == ["c0*sqrt(H)", "c0 + c1*H", "c0*H"]
    assert table["parameters"].to_list() == [1, 2, 1]
    assert table["complexity"].to_list() == [4, 5, 3]
    assert table["failure"].to_list() == [None, None, None]


def test_evidence_is_that_of_the_equation_alone_with_finalist_settings(table):
    for row in table.itertuples():
        alone = compute_evidence(row.equation, *SHELF, settings=FINALIST, random_seed=1)
        assert (row.log_q, row.log_q_se) == (alone.log_q, alone.log_q_se)
        assert (row.rmse, row.prior_sensitivity) == (alone.rmse, alone.prior_sensitivity)
    assert table.attrs["gamma"] == 1 / np.sqrt(5)
    assert table.attrs["sigma_bounds"] == FINALIST.sigma_bounds(SHELF[1].to_numpy())


def test_probabilities_and_bayes_factors_follow_from_log_q(table):
    log_q = table["log_q"].to_numpy()
    np.testing.assert_allclose(table["difference"], log_q - log_q[0])
    np.testing.assert_allclose(table["probability"], softmax(log_q))
    np.testing.assert_allclose(table["bayes_factor"], np.exp(log_q[0] - log_q))


def test_a_list_is_named_by_its_equations_and_takes_objects():
    equations = [Equation("k*sqrt(H)", ["H"], ["k"]), "c0*H"]
    table = compare(equations, *SHELF, settings=QUICK, random_seed=1)
    assert list(table.index) == ["k*sqrt(H)", "c0*H"]


def test_the_table_does_not_depend_on_the_order_of_the_equations():
    equations = ["c0*H", "c0*sqrt(H)", "c0 + c1*H"]
    first = compare(equations, *SHELF, settings=QUICK, random_seed=5)
    pd.testing.assert_frame_equal(
        first, compare(equations[::-1], *SHELF, settings=QUICK, random_seed=5)
    )


@pytest.mark.parametrize("make_seed", [lambda: np.random.default_rng(3), lambda: np.int64(3)])
def test_seeds_of_every_kind_repeat_the_table(make_seed):
    tables = [compare(["c0*H"], *SHELF, settings=QUICK, random_seed=make_seed()) for _ in range(2)]
    pd.testing.assert_frame_equal(*tables)


def test_an_integer_of_numpy_is_a_seed_like_any_other():
    tables = [
        compare(["c0*H"], *SHELF, settings=QUICK, random_seed=seed) for seed in (3, np.int64(3))
    ]
    pd.testing.assert_frame_equal(*tables)


def test_without_a_seed_every_table_is_different():
    tables = [compare(["c0*H"], *SHELF, settings=QUICK) for _ in range(2)]
    assert tables[0]["log_q"].iloc[0] != tables[1]["log_q"].iloc[0]


def test_spellings_of_one_equation_are_weighed_once_and_share_its_probability(monkeypatch):
    weighed = []

    def weigh(program, *arguments, **options):
        weighed.append(program)
        return original(program, *arguments, **options)

    original = pmsr.result.comparison.weigh
    monkeypatch.setattr(pmsr.result.comparison, "weigh", weigh)
    equations = ["c0*sqrt(H)", "2*k5*sqrt(H)", "c0*H"]
    table = compare(equations, *SHELF, settings=QUICK, random_seed=1)
    assert len(weighed) == 2
    assert table["log_q"].iloc[0] == table["log_q"].iloc[1]
    alone = compare(["c0*sqrt(H)", "c0*H"], *SHELF, settings=QUICK, random_seed=1)
    np.testing.assert_allclose(table["probability"].iloc[:2], alone["probability"].iloc[0] / 2)
    assert table["probability"].sum() == pytest.approx(1)


def test_gamma_of_ohagan_is_that_of_the_largest_equation():
    settings = dataclasses.replace(QUICK, gamma="ohagan")
    X, y = make_sine(n_points=20, random_seed=1)
    equations = ["c0", "c0 + c1*x0 + c2*x0**2 + c3*x0**3"]
    table = compare(equations, X, y, settings=settings, random_seed=1)
    assert table.attrs["gamma"] == settings.resolve_gamma(20, 4) == 6 / 20
    fixed = compare(["c0"], X, y, settings=Settings(gamma=6 / 20), random_seed=1)
    assert table.loc["c0", "log_q"] == fixed.loc["c0", "log_q"]


def test_equations_may_use_some_of_the_variables():
    X = SHELF[0].assign(other=[3.0, 1.0, 4.0, 1.0, 5.0])
    table = compare(
        [Equation("c0*sqrt(H)", ["H"]), "c0*other"], X, SHELF[1], settings=QUICK, random_seed=1
    )
    assert table.index[0] == "c0*sqrt(H)"


def test_failures_come_last_with_their_reason():
    table = compare(["c0*log(H - 2000)", "c0*H"], *SHELF, settings=QUICK, random_seed=1)
    failed = table.loc["c0*log(H - 2000)"]
    assert list(table.index) == ["c0*H", "c0*log(H - 2000)"]
    assert failed["failure"].startswith("never finite")
    assert (failed["log_q"], failed["difference"]) == (-np.inf, -np.inf)
    assert (failed["probability"], failed["bayes_factor"]) == (0.0, np.inf)
    assert table["probability"].to_list() == [1.0, 0.0]


def test_a_table_of_failures_is_a_table():
    table = compare(["c0*log(H - 2000)", "log(H - 2000)"], *SHELF, settings=QUICK, random_seed=1)
    assert table["probability"].to_list() == [0.0, 0.0]


def test_a_callback_hears_of_every_equation():
    names = []
    equations = {"a": "c0*H", "b": "c5*H", "c": "c0"}
    compare(equations, *SHELF, settings=QUICK, random_seed=1, callback=names.append)
    assert names == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("equations", "message"),
    [
        ([], "equations must not be empty"),
        ({}, "equations must not be empty"),
        ("c0*H", r"must be a list or a dictionary of equations, got str. Use \[...\] even for one"),
        (Equation("c0*H", ["H"]), "must be a list or a dictionary of equations, got Equation"),
        (None, "must be a list or a dictionary of equations, got NoneType"),
        ([3], "An equation is an Equation or its text, got 3"),
        ({"a": None}, "An equation is an Equation or its text, got None"),
        ({1: "c0*H"}, "Names of equations must be strings, got 1"),
        (["c0*H", "c0*H"], r"The equation 'c0\*H' is listed twice"),
        (["c0*Q"], "Unknown name 'Q'"),
    ],
)
def test_what_is_not_a_list_of_equations_is_refused(equations, message):
    with pytest.raises(ValueError, match=message):
        compare(equations, *SHELF)


def test_the_table_says_where_the_parameters_are(table):
    _, text, sigma = re.fullmatch(
        r"(c0 = (.*)), sigma = (.*)", table.at["root", "estimates"]
    ).groups()
    draws = weigh_equations(["c0*sqrt(H)"], *SHELF, random_seed=1).best.draws.theta.ravel()
    low, high = np.quantile(draws, [0.025, 0.975])
    assert text == f"{draws.mean():.4g} ({low:.4g} to {high:.4g})"
    assert sigma.endswith(")")
    assert table.at["root", "latex"] == r"c_{0} \sqrt{H}"


def test_equations_that_were_weighed_have_posteriors_and_predictions():
    laws = {"fixed": "47*sqrt(H)", "root": "c0*sqrt(H)", "failed": "c0*log(-H)"}
    result = weigh_equations(laws, *SHELF, settings=QUICK, random_seed=1)
    assert result.names[2] == "failed" and result["failed"].evidence.failure
    assert list(result["fixed"].posterior.posterior.data_vars) == ["sigma"]
    assert list(result["root"].estimates().index) == ["c0", "sigma"]
    assert result["fixed"].predict([400.0]) == 940.0
    estimates = result.estimates(0.5)
    assert estimates.loc[("root", "c0"), "low"] > result["root"].estimates().loc["c0", "low"]
    assert "failed" not in estimates.index.get_level_values("equation")
    with pytest.raises(ValueError, match="has no posterior on these data: never finite"):
        _ = result["failed"].posterior
    with pytest.raises(ValueError, match=r"There is no equation 'line'\. Available: "):
        _ = result["line"]


def test_another_spelling_has_its_own_parameters():
    result = weigh_equations(["c0*sqrt(H)", "2*k5*sqrt(H)"], *SHELF, settings=QUICK, random_seed=1)
    single, double = result["c0*sqrt(H)"], result["2*k5*sqrt(H)"]
    np.testing.assert_allclose(double.evidence.theta, single.evidence.theta / 2, rtol=1e-6)
    np.testing.assert_array_equal(double.theta, double.evidence.theta)
    np.testing.assert_allclose(double.predict([400.0]), single.predict([400.0]), rtol=0.01)


def test_what_users_write_is_equally_probable_unless_they_say_otherwise():
    # Less than a nat apart: nothing but log q counts.
    laws = ["c0*H**c1 + 0.5", "c0*H**c1"]
    alike = weigh_equations(laws, *SHELF, settings=QUICK, random_seed=1)
    assert [one.log_prior for one in alike.equations] == [0.0, 0.0]
    assert alike.chosen == 0 and alike.law_prior == "uniform"
    priced = weigh_equations(laws, *SHELF, settings=QUICK, random_seed=1, law_prior="description")
    table = priced.table
    # c0*H**c1 has five nodes; a sum and a number are two more, and the number is one half.
    cost = LawPrior().per_node
    assert table["log_prior"].to_dict()["c0*H**c1"] == pytest.approx(-5.0 * cost)
    assert table["log_prior"].to_dict()["c0*H**c1 + 0.5"] <= -7.0 * cost - np.log(3.0)
    np.testing.assert_allclose(table["score"], table["log_q"] + table["log_prior"])
    np.testing.assert_allclose(table["probability"], softmax(table["score"]))
    np.testing.assert_allclose(table["difference"], table["score"] - table["score"].max())
    assert priced.best.equation.text == "c0*H**c1" and table["score"].is_monotonic_decreasing
    own = compare(
        laws,
        *SHELF,
        settings=QUICK,
        random_seed=1,
        law_prior=lambda law: -5.0 if law.text == "c0*H**c1" else 0.0,
    )
    assert own.index[0] == "c0*H**c1 + 0.5" and own["log_prior"].to_list() == [0.0, -5.0]


def test_settings_must_be_settings():
    with pytest.raises(ValueError, match=r"must be a Settings object, got dict. Use pmsr.Settings"):
        compare(["c0*H"], *SHELF, settings={"gamma": 0.5})


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("patience", "verbose"), [(0.0, True), (0.0, False), (60.0, True)])
def test_progress_is_shown_in_a_terminal_once_it_takes_long(monkeypatch, patience, verbose):
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(pmsr.result.comparison, "PATIENCE", patience)
    compare(["c0*H", "c0"], *SHELF, settings=QUICK, random_seed=1, verbose=verbose)
    assert ("4/4" in screen.getvalue()) == (patience == 0.0 and verbose)


def test_no_progress_is_written_to_a_file(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("sys.stderr", file)
    monkeypatch.setattr(pmsr.result.comparison, "PATIENCE", 0.0)
    compare(["c0*H", "c0"], *SHELF, settings=QUICK, random_seed=1)
    assert file.getvalue() == ""


def test_equations_that_units_forbid_are_impossible_and_come_last(tmp_path):
    laws = ["c0 + H", "c0*sqrt(H)", "c0*H"]
    given = {"H": "mm", "D": "s"}
    result = weigh_equations(laws, X, y, settings=QUICK, units=given, random_seed=1)
    table = result.table
    assert table.index[-1] == "c0 + H"
    assert table.loc["c0 + H", "score"] == table.loc["c0 + H", "log_prior"] == -np.inf
    assert table.loc["c0 + H", "probability"] == 0.0 and np.isfinite(table.log_q["c0 + H"])
    assert (table["log_prior"][:-1] == 0.0).all()
    assert not any("change of units" in doubt for doubt in result.warnings)
    result.save(tmp_path)
    pd.testing.assert_frame_equal(load_result(tmp_path).table, table)


def test_if_units_forbid_all_equations_the_result_says_so(tmp_path):
    given = {"H": "mm", "D": "s"}
    result = weigh_equations(["c0 + H"], X, y, settings=QUICK, units=given, random_seed=1)
    assert any("does not survive a change of units" in doubt for doubt in result.warnings)
    assert result.probabilities.tolist() == [0.0]


def test_units_and_arbitrary_zeros_of_a_comparison_are_saved(tmp_path):
    options = {"settings": QUICK, "law_prior": "description", "random_seed": 1}
    given = {"H": "mm", "D": "cm"}
    free = weigh_equations(["c0*H"], X, y, **options)
    before = weigh_equations(["c0*H"], X, y, units=given, interval=["H"], **options)
    assert before.best.log_prior < free.best.log_prior
    before.save(tmp_path / "a")
    after = load_result(tmp_path / "a")
    assert after.units.by_name == given and after.units.interval_names == ("H",)
    pd.testing.assert_frame_equal(after.best.estimates(), before.best.estimates())
    assert after.best.estimates()["unit"]["c0"] == "cm/mm"
    # A file of an earlier version knows of no units.
    header = json.loads((tmp_path / "a" / HEADER).read_text())
    del header["units"], header["interval"]
    (tmp_path / "a" / HEADER).write_text(json.dumps(header))
    old = load_result(tmp_path / "a")
    assert not old.units.are_known and "unit" not in old.best.estimates()
    header["units"] = {"H": "mm"}
    (tmp_path / "a" / HEADER).write_text(json.dumps(header))
    with pytest.raises(ValueError, match=r"is damaged.*No unit for 'D'"):
        load_result(tmp_path / "a")


def test_units_stand_in_the_table_of_a_comparison_and_may_be_those_of_the_names():
    in_names = X.rename(columns={"H": "H [mm]"}), y.rename("D (mm)")
    law = "c0*sqrt(`H [mm]`)"
    table = compare([law], *in_names, settings=QUICK, units="auto", random_seed=1, verbose=False)
    assert re.fullmatch(
        r"c0 = \S+ \(\S+ to \S+\) mm\*\*\(1/2\), sigma = \S+ \(\S+ to \S+\) mm",
        table["estimates"].iloc[0],
    )
    with pytest.raises(ValueError, match="No unit stands in the names H, D"):
        compare(["c0*H"], X, y, units="auto")
    with pytest.raises(ValueError, match="No unit for 'D'"):
        compare(["c0*H"], X, y, units={"H": "mm"})


def test_parameters_may_have_names_of_ones_own():
    X, y = load_galileo("shelf")
    table = compare(["a*sqrt(H)", "a*H + b"], X, y, parameters=["a", "b"], random_seed=1)
    plain = compare(["c0*sqrt(H)", "c0*H + c1"], X, y, random_seed=1)
    assert table["log_q"].to_list() == plain["log_q"].to_list()
    assert table["estimates"].iloc[0].startswith("a = ")
    with pytest.raises(ValueError, match=r"Unknown name 'b'.*listed: parameters=\['b'\] of"):
        compare(["a*H + b"], X, y, parameters=["a"])
