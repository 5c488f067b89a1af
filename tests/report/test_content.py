import dataclasses
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from pmsr.data import load_galileo, make_data
from pmsr.estimator import BayesianSymbolicRegressor
from pmsr.limits import time_limit
from pmsr.report.content import gather_content
from pmsr.report.page import render_report
from pmsr.result.comparison import weigh_equations
from pmsr.result.result import library_versions
from pmsr.result.searched import from_evolution
from pmsr.search.evolution import run_evolution
from pmsr.settings import QUICK, Search, Settings

SHELF = load_galileo("shelf")
LAWS = {"root": "c0*sqrt(H)", "line": "c0 + c1*H", "failed": "c0*log(-H)"}


@pytest.fixture(scope="module")
def result():
    return weigh_equations(LAWS, *SHELF, settings=Settings(), random_seed=1)


def search(fitness):
    data = make_data(*SHELF)
    options = Search(
        operators=("*", "sqrt"), population_size=8, generations=2, fitness=fitness, n_finalists=3
    )
    found = run_evolution(data, search=options, random_seed=1)
    return from_evolution(found, data, search=options, settings=QUICK, random_seed=1)


def test_a_comparison_becomes_content(result):
    content = gather_content(result, level=0.8, source="shelf.csv", warnings=["A note."])
    assert list(content.table.index) == ["root", "line", "failed"]
    assert content.winner == "root" and content.source == "shelf.csv"
    X = pd.DataFrame(result.data.X, columns=["H"])
    pd.testing.assert_frame_equal(content.prediction, result.predict_table(X, 0.8))
    assert content.grid[0] < SHELF[0]["H"].min() and content.grid[-1] > SHELF[0]["H"].max()
    assert content.warnings == ["A note.", *result.warnings]
    assert content.history is None and content.n_candidates is None
    assert "seed" in content.settings and "operators" not in content.settings
    assert "failed: never finite" in render_report(content)


@pytest.mark.parametrize("fitness", ["evidence", "rmse"])
def test_a_search_becomes_content(fitness):
    found = search(fitness)
    content = gather_content(found)
    assert content.winner == str(found.best.equation)
    assert content.n_candidates == found.n_candidates and content.n_failed == found.n_failed
    assert content.history["generation"].to_list() == [0, 1, 2]
    assert content.settings["operators"] == "* sqrt"
    assert content.settings["generations"] == "2 of at most 2"
    assert "<math" in render_report(content)


def test_several_variables_have_no_curve():
    X = SHELF[0].assign(other=[3.0, 1.0, 4.0, 1.0, 5.0])
    content = gather_content(
        weigh_equations(["c0*H + other"], X, SHELF[1], settings=Settings(), random_seed=1)
    )
    assert content.grid is None and len(content.prediction) == 5


def test_a_law_of_one_among_several_variables_has_a_curve():
    X = SHELF[0].assign(other=[3.0, 1.0, 4.0, 1.0, 5.0])[["other", "H"]]
    found = weigh_equations(["c0*sqrt(H)"], X, SHELF[1], settings=Settings(), random_seed=1)
    content = gather_content(found)
    assert content.variable == "H" and content.grid.min() < 300.0
    alone = gather_content(
        weigh_equations(["c0*sqrt(H)"], *SHELF, settings=Settings(), random_seed=1)
    )
    np.testing.assert_array_equal(content.grid_prediction, alone.grid_prediction)
    assert "D against H: data, best fit and intervals" in render_report(content)


def test_where_nothing_could_be_weighed_there_is_no_winner():
    failed = weigh_equations(["c0*log(-H)"], *SHELF, settings=Settings(), random_seed=1)
    content = gather_content(failed)
    assert content.winner is None and content.posterior is None and content.warnings == []
    assert "No equation could be weighed" in render_report(content)


def test_what_was_weighed_but_not_sampled_is_shown_without_its_posterior(result, monkeypatch):
    def refuse(*arguments, **options):
        raise ValueError("cannot be sampled")

    monkeypatch.setattr("pmsr.result.fitted.draw_posterior", refuse)
    fresh = weigh_equations({"root": "c0*sqrt(H)"}, *SHELF, settings=Settings(), random_seed=1)
    content = gather_content(fresh)
    assert content.winner == "root" and content.posterior is None and content.prediction is None
    assert "cannot be sampled" in render_report(content)


def test_content_that_does_not_fit_together_is_refused(result):
    content = gather_content(result)
    with pytest.raises(ValueError, match="every equation of the table, got none for 'line'"):
        dataclasses.replace(content, equations={"root": content.equations["root"]})
    with pytest.raises(ValueError, match="winner must be a name of the table, got 'c9'"):
        dataclasses.replace(content, winner="c9")


def test_an_estimator_writes_its_report(tmp_path):
    regressor = BayesianSymbolicRegressor(
        ("*", "sqrt"), population_size=8, generations=1, random_state=0, verbose=False
    )
    with pytest.raises(ValueError, match="not fitted"):
        regressor.report(tmp_path / "report.html")
    regressor.result_ = search("evidence")
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 95"):
        regressor.report(tmp_path / "report.html", level=95)
    path = regressor.report(tmp_path / "report.html", level=0.5, title="A <b>title</b>")
    text = path.read_text(encoding="utf-8")
    assert "A &lt;b&gt;title&lt;/b&gt;" in text and "50 % credible interval" in text
    assert np.isfinite(regressor.result_.best.evidence.log_q)


def test_the_versions_are_those_that_made_the_result():
    law = weigh_equations(["c0*sqrt(H)"], *load_galileo("shelf"), settings=QUICK, random_seed=1)
    made = {"pmsr": "0.0.9", "Python": "3.11.0"}
    assert gather_content(law).versions == library_versions()
    assert gather_content(dataclasses.replace(law, versions=made)).versions == made


def test_what_matters_and_where_to_measure_next_are_on_the_page(result):
    content = gather_content(result)
    assert content.n_credible == len(result.credible_set(0.95))
    pd.testing.assert_frame_equal(content.suggestions, result.suggest(3))
    assert list(content.rivals.columns) == ["c0*sqrt(H)", "c0 + c1*H"]
    page = render_report(content)
    for words in ("What matters", "part of the law", "Where to measure next", "result is robust"):
        assert words in page
    assert 'id="figure-suggest"' in page


def test_several_variables_have_their_suggestions_drawn_too():
    X = SHELF[0].assign(other=[3.0, 1.0, 4.0, 1.0, 5.0])
    laws = ["c0*H + other", "c0*sqrt(H)"]
    found = weigh_equations(laws, X, SHELF[1], settings=Settings(), random_seed=1)
    content = gather_content(found)
    assert list(content.rivals.index) == [1.0, 2.0, 3.0]
    assert 'id="figure-suggest"' in render_report(content)


def test_without_evidence_nothing_is_said_of_what_matters():
    content = gather_content(search("rmse"))
    assert content.inclusion is content.robustness is content.suggestions is None
    assert "Without evidence nothing can be said" in render_report(content)


def test_units_of_columns_and_parameters_are_shown():
    laws = ["c0*sqrt(H)", "c0 + H"]
    units = {"H": "mm", "D": "s"}
    found = weigh_equations(laws, *SHELF, settings=Settings(), units=units, random_seed=1)
    content = gather_content(found)
    assert content.units == units
    assert content.parameter_units == {"c0": "s/mm**(1/2)", "sigma": "s"}
    page = render_report(content)
    # On the card, in the table, and where the law is chosen.
    assert page.count("s/mm<sup>1/2</sup>") == 3
    assert r"\,\mathrm{s}/\mathrm{mm}^{1/2}" in page
    assert "<td>H</td><td>variable</td><td>mm</td>" in page
    assert "all equations were equally probable beforehand" in page


def test_without_units_the_report_has_no_room_for_them(result):
    content = gather_content(result)
    assert content.units == content.parameter_units == {}
    assert ">unit<" not in render_report(content)


def test_the_units_of_a_search_are_among_its_settings():
    data = make_data(*SHELF)
    options = Search(
        operators=("*", "sqrt"),
        population_size=8,
        generations=2,
        n_islands=1,
        n_enumerated=50,
        units={"H": "mm", "D": "mm"},
    )
    found = run_evolution(data, search=options, random_seed=1)
    result = from_evolution(found, data, search=options, settings=QUICK, random_seed=1)
    assert gather_content(result).settings["units"] == "H: mm, D: mm"


@pytest.fixture(scope="module")
def grouped():
    rng = np.random.default_rng(1)
    t = np.tile(np.linspace(0.2, 5.0, 8), 2)
    groups = ["b"] * 8 + ["a"] * 8
    y = np.array([2.0] * 8 + [5.0] * 8) * np.exp(-0.4 * t) + rng.normal(0.0, 0.05, 16)
    X = pd.DataFrame({"t": t})
    laws = ["c0*exp(-c1*t)", "c0 + c1*t"]
    return weigh_equations(laws, X, pd.Series(y, name="A"), groups=groups, random_seed=1)


def test_every_group_has_its_curve_its_parameters_and_its_predictions(grouped):
    content = gather_content(grouped)
    assert content.labels == ["a", "b"] and list(content.posteriors) == ["a", "b"]
    assert [curve.label for curve in content.curves] == ["a", "b"]
    for curve, one in zip(content.curves, grouped.best.parts.values(), strict=True):
        np.testing.assert_array_equal(curve.data.y, one.data.y)
        points = pd.DataFrame({"t": curve.x[50:150]})
        mean = one.predict(points)
        np.testing.assert_allclose(curve.prediction["mean"][50:150], mean)
    assert content.outlook["group"].to_list() == ["a", "b"]
    law = content.laws["c0*exp(-c1*t)"]
    assert [part.draws.shape for part in law.parts] == [(4000, 2), (4000, 2)]
    # Each group has a sigma of its own: residuals are in its units.
    np.testing.assert_allclose(content.residuals, grouped.best.normal_residuals)


def test_the_page_has_a_table_of_parameters_by_group(grouped):
    page = render_report(gather_content(grouped))
    table = page[page.index('aria-label="Parameters of each group"') :].split("</table>")[0]
    rows = [row for row in table.split("<tr>") if "<td>" in row]
    assert ["<td>a</td>" in rows[0], "<td>b</td>" in rows[1]] == [True, True]
    assert "5.0" in rows[0] and len(rows) == 2
    assert "normal noise of one size in each group" in page
    assert "best fit and intervals of each group" in page


def test_a_grouped_law_is_drawn_in_one_call(grouped):
    ax = grouped.best.plot()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(labels) == ["95 % prediction intervals", "a", "b"]
    colors = {line.get_color() for line in ax.get_lines() if line.get_linestyle() == "-"}
    assert len(colors) == 2
    left, _ = grouped.best.plot_residuals()
    np.testing.assert_allclose(left.get_lines()[1].get_ydata(), grouped.best.normal_residuals)
    plt.close("all")


def test_where_time_is_up_the_report_is_written_without_what_takes_time(result):
    fresh = weigh_equations(LAWS, *SHELF, settings=Settings(), random_seed=1)
    with time_limit(time.monotonic() - 1.0):
        content = gather_content(fresh)
    assert content.outlook is None and content.prediction is None
    assert "Which law" in render_report(content)


def test_known_constants_are_named_and_no_inputs():
    h = np.linspace(0.2, 3.0, 12)
    rng = np.random.default_rng(1)
    v = pd.Series(np.sqrt(2.0 * 9.81 * h) + rng.normal(0.0, 0.05, 12), name="v")
    constants = {"g": 9.81, "k": (0.3, 0.02)}
    laws = ["c0*sqrt(g*h)", "k*g*h + c0"]
    found = weigh_equations(laws, pd.DataFrame({"h": h}), v, constants=constants, random_seed=1)
    content = gather_content(found)
    assert content.known == {"g": "9.81", "k": "0.3 ± 0.02"}
    assert list(content.outlook.columns[:-3]) == ["h"] and content.variable == "h"
    page = render_report(content)
    assert "9.81, known" in page and "0.3 ± 0.02, known" not in page  # of the winner
    assert '"name":"g","label":"g","low":9.81,"high":9.81,"isKnown":true' in page
    # The uncertain one is a parameter like others.
    assert content.laws["k*g*h + c0"].parts[0].draws.shape == (4000, 2)
