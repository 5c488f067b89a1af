import base64
import hashlib
import json
import re
import time
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import pmsr
from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.equation.notation import percent, plus_minus
from pmsr.evidence.evidence import Evidence
from pmsr.evidence.posterior import sample_posterior
from pmsr.evidence.prediction import predict
from pmsr.limits import time_limit
from pmsr.report.content import ReportContent, gather_content
from pmsr.report.digits import digits_for, short
from pmsr.report.page import PAPER, SOFTWARE, render_report, write_report
from pmsr.result.comparison import weigh_equations
from pmsr.result.result import library_versions
from pmsr.result.table import make_table

SHELF = load_galileo("shelf")
EVIL = "<script>alert(1)</script>"
SECTIONS = ["winner", "fit", "equations", "matters", "parameters", "search", "diagnostics"]
SECTIONS += ["settings", "cite"]
VOID = {"meta", "link", "img", "br", "wbr"}


class Page(HTMLParser):
    """What a browser would make of a page: its elements, its text, and what is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text, self.faults = [], [], "", []
        self.feed(text)
        self.faults += [f"not closed: {tag}" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        self.text += " " if tag == "td" else ""
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"closed: {tag}")

    def handle_data(self, data):
        if "style" not in self.open and "script" not in self.open:
            self.text += data

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    def ids(self):
        return [attrs["id"] for _, attrs in self.elements if "id" in attrs]

    @property
    def words(self):
        return " ".join(self.text.split())


def make_evidence(log_q, rmse=10.0, failure=None, log_q_se=0.1):
    return Evidence(
        log_q=log_q,
        log_q_se=log_q_se,
        log_z_gamma=0.0,
        log_z=log_q,
        gamma=0.4,
        sigma_bounds=(1e-3, 100.0),
        n_parameters=1,
        rank=1,
        theta=np.array([1.0]),
        rmse=rmse,
        prior_sensitivity=0.2,
        failure=failure,
    )


def tabulate(equations, evidences):
    table = make_table(list(equations.values()), list(evidences.values()))
    table.index = pd.Index(list(equations), name="name")
    return table


def make_content(data, texts, log_qs, winner=0, **more):
    """Make a report's content of equations with given evidence, and of the winner's posterior."""
    equations = {text: Equation(text, data.names) for text in texts}
    evidences = {
        text: make_evidence(log_q, failure="never finite" if log_q == -np.inf else None)
        for text, log_q in zip(texts, log_qs, strict=True)
    }
    X = pd.DataFrame(data.X, columns=list(data.names))
    y = pd.Series(data.y, name=data.target)
    equation = equations[texts[winner]]
    posterior = sample_posterior(equation, X, y, draws=200, chains=2, random_seed=1)
    grid = grid_prediction = None
    if len(data.names) == 1:
        grid = np.linspace(0.5 * data.X.min(), 1.2 * data.X.max(), 30)
        grid_prediction = predict(posterior, grid)
    return ReportContent(
        data=data,
        equations=equations,
        table=tabulate(equations, evidences),
        winner=texts[winner],
        posterior=posterior,
        prediction=predict(posterior, X),
        variable=None if grid is None else data.names[0],
        grid=grid,
        grid_prediction=grid_prediction,
        **more,
    )


HISTORY = pd.DataFrame({"generation": [0, 1, 2], "score_best": [-20.0, -14.0, -13.0]})


@pytest.fixture(scope="module")
def galileo():
    return make_content(
        make_data(*SHELF),
        ["c0*sqrt(H)", "c0 + c1*H", "log(-c0*H**2)"],
        [-13.1, -16.3, -np.inf],
        history=HISTORY,
        n_candidates=1234,
        n_failed=56,
        settings={"gamma": 0.447, "operators": "+ * sqrt"},
        warnings=["The search ended after 3 s."],
        title="Galileo's shelf",
        source="shelf.csv",
        created="2 May 1608",
        command="pmsr fit shelf.csv",
    )


@pytest.fixture(scope="module")
def page(galileo):
    return Page(render_report(galileo))


def pictures(page):
    return {attrs["alt"]: attrs["src"] for attrs in page.all("img")}


def test_the_page_is_well_formed_and_has_its_sections(page):
    assert page.faults == []
    assert [name for name in page.ids() if name in SECTIONS] == SECTIONS
    assert [name for name, count in Counter(page.ids()).items() if count > 1] == []
    targets = [a["href"][1:] for a in page.all("a") if a["href"].startswith("#")]
    assert set(targets) <= set(page.ids())
    assert "viewport" in [attrs.get("name") for attrs in page.all("meta")]
    assert page.all("html") == [{"lang": "en"}]


def test_nothing_is_loaded_from_elsewhere(galileo):
    text = render_report(galileo)
    page = Page(text)
    assert page.all("script") == []
    for _, attrs in page.elements:
        assert attrs.get("src", "data:").startswith("data:")
        assert not any(name.startswith("on") for name in attrs)
    links = [attrs["href"] for attrs in page.all("link") + page.all("a")]
    outside = [link for link in links if not link.startswith(("#", "data:"))]
    assert outside == [f"https://doi.org/{PAPER['doi']}"]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    policy = next(attrs for attrs in page.all("meta") if "http-equiv" in attrs)
    assert "default-src 'none'" in policy["content"]


def test_every_picture_is_a_drawing_with_a_description(page):
    found = pictures(page)
    assert len(found) == 8
    for alt, source in found.items():
        assert alt
        svg = base64.b64decode(source.removeprefix("data:image/svg+xml;base64,"))
        root = ElementTree.fromstring(svg)
        assert root.tag.endswith("svg")
        # An image inside an image would need a second file, unless it is part of it.
        addresses = [e.get("{http://www.w3.org/1999/xlink}href", "#") for e in root.iter()]
        assert all(address.startswith(("#", "data:")) for address in addresses)
    assert plt.get_fignums() == []


def test_the_numbers_of_the_winner_are_on_the_page(galileo, page):
    draws = np.asarray(galileo.posterior.posterior["c0"])
    assert plus_minus(draws.mean(), draws.std()) in page.words
    assert "−13.10 ± 0.10" in page.words
    assert f"{galileo.table.at['c0*sqrt(H)', 'probability']:.1%}" in page.words
    assert "c_{0} \\sqrt{H}" in page.text
    assert "5 observations of D from shelf.csv · 2 May 1608" in page.words
    assert "pmsr fit shelf.csv" in page.words


def test_equations_are_typeset_in_order_and_failures_say_why(galileo):
    text = render_report(galileo)
    rows = re.findall(
        r"<tr[^>]*>\s*<td class=\"number rank\">(\d+)</td>(.*?)</tr>", text, re.DOTALL
    )
    assert [rank for rank, _ in rows] == ["1", "2", "3"]
    assert "<msqrt><mi>H</mi></msqrt>" in rows[0][1]
    assert "winner" in rows[0][1]
    assert "failed: never finite" in rows[2][1]


def test_doubts_and_diagnostics_are_in_words(page):
    assert "The search ended after 3 s." in page.words
    assert "Effective sample size" in page.words
    assert "56 (5%)" in page.words
    assert "Prior sensitivity 0.2 nats" in page.words
    assert re.search(r"Shapiro-Wilk p 0\.\d+", page.words)


def test_a_result_without_doubts_says_so(galileo):
    quiet = replace(galileo, warnings=(), posterior=None, prediction=None)
    page = Page(render_report(quiet))
    assert "No warnings" in page.words
    assert "The posterior was not sampled." in page.words


def test_settings_versions_and_how_to_cite(page):
    assert "gamma 0.447" in page.words
    assert f"pymc {library_versions()['pymc']}" in page.words
    assert SOFTWARE["title"] in page.words
    citation = (Path(__file__).parents[2] / "CITATION.cff").read_text()
    assert SOFTWARE["title"] in citation
    for name in ("title", "journal", "volume", "number", "year", "doi"):
        assert PAPER[name] in citation
        assert PAPER[name] in page.text
    for author in ("Bomarito", "Leser", "Strauss", "Garbrecht", "Hochhalter"):
        assert author in PAPER["authors"]
        assert author in citation


@pytest.fixture(scope="module")
def evil():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(1, 2, (12, 2)), columns=[EVIL, '"&$x_1$'])
    y = pd.Series(2 * X[EVIL] + rng.normal(0, 0.1, 12), name=f"</title>{EVIL}")
    return make_content(
        make_data(X, y),
        [f"c0*`{EVIL}`", f"c0 + c1*`{EVIL}`*`{X.columns[1]}`", "c0"],
        [-5.0, -6.5, -20.0],
        title=EVIL,
        source=EVIL,
        created=EVIL,
        command=EVIL,
        warnings=[EVIL],
        settings={EVIL: EVIL},
        versions={EVIL: EVIL},
    )


def test_what_users_write_is_text_and_never_markup(evil):
    text = render_report(evil)
    page = Page(text)
    assert page.faults == []
    assert page.all("script") == []
    assert EVIL not in text
    # Title, heading, source, date, command, doubt, settings, versions, column, equations.
    assert page.text.count(EVIL) > 12


def test_several_variables_are_drawn_as_predictions_against_observations(evil):
    alts = list(pictures(Page(render_report(evil))))
    assert alts[0].startswith("Predicted against observed")


def test_two_parameters_have_their_pairs_drawn():
    content = make_content(make_data(*SHELF), ["c0 + c1*sqrt(H)"], [-13.0])
    assert "Posterior draws of every two parameters" in pictures(Page(render_report(content)))


def test_an_equation_without_parameters_has_a_report():
    data = make_data(*SHELF)
    page = Page(render_report(make_content(data, ["47*sqrt(H)"], [-12.0])))
    assert page.faults == []
    assert "Posterior draws of every two parameters" not in pictures(page)
    assert "noise" in page.words


def test_a_conventional_search_is_told_by_its_errors(galileo):
    table = galileo.table.copy()
    nothing = ["log_q", "log_q_se", "difference", "probability", "bayes_factor"]
    table[[*nothing, "prior_sensitivity"]] = np.nan
    page = Page(render_report(replace(galileo, table=table)))
    assert page.faults == []
    assert "Ranked by the error of the best fit" in page.words
    assert "Bayes factor" not in page.words
    assert "Error of the equations against their complexity" in pictures(page)
    assert "chosen by its error alone" in page.words
    assert "nan" not in page.words.lower().split()


def test_where_everything_failed_the_page_says_so(galileo):
    failed = galileo.table.loc[["log(-c0*H**2)"]]
    content = ReportContent(
        data=galileo.data, equations=galileo.equations, table=failed, winner=None
    )
    page = Page(render_report(content))
    assert page.faults == []
    assert "No equation could be weighed" in page.words
    assert "failed: never finite" in page.words
    assert pictures(page) == {}
    assert [name for name in page.ids() if name in SECTIONS] == SECTIONS


def test_more_equations_than_fit_are_folded_away(galileo):
    names = [f"law {k}" for k in range(40)]
    equations = {name: Equation(f"c0*H + {k + 1}", ["H"]) for k, name in enumerate(names)}
    table = tabulate(equations, {name: make_evidence(-13.0 - k) for k, name in enumerate(names)})
    content = replace(galileo, equations=equations, table=table, winner="law 0", posterior=None)
    page = Page(render_report(content))
    assert page.faults == []
    assert "15 more" in page.words
    assert "law 39" in page.words


def test_the_same_content_gives_the_same_page(galileo, tmp_path):
    path = write_report(str(tmp_path / "report.html"), galileo)
    assert path == tmp_path / "report.html"
    assert path.read_text(encoding="utf-8") == render_report(galileo)


def test_the_template_is_part_of_the_package():
    assert (Path(pmsr.__file__).parent / "report" / "templates" / "report.html").is_file()
    settings = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '"report/templates/*.html", "report/templates/*.js"' in settings


def test_laws_like_the_winner_are_folded_beneath_it_and_add_up_everywhere(galileo):
    alike = replace(galileo, families=[["c0*sqrt(H)", "c0 + c1*H"]])
    page = Page(render_report(alike))
    assert page.faults == []
    assert page.words.count("1 law like it") == 2  # on the card and in the table
    first, second = galileo.table["probability"].iloc[:2]
    text = page.words.replace(" ", "")
    assert f"ofthislawalone{percent(first)}".replace(" ", "") in text
    assert f"{percent(first + second)}istheprobabilityofthislawwith1lawlikeit" in text
    # In the table the family has its sum, and its other member its own share.
    assert percent(second) in page.words
    apart = Page(render_report(galileo)).words
    assert "like it" not in apart


def test_without_a_search_that_settled_no_probability_stands_alone(galileo):
    content = replace(
        galileo,
        is_settled=False,
        families=[["c0*sqrt(H)", "c0 + c1*H"]],
        search_notes=["All 9,915 laws of up to 8 nodes were screened."],
    )
    words = Page(render_report(content)).words
    # On the card twice, and, shorter, in the head of the table.
    assert words.count("(the search had not settled)") == 2
    assert words.count("probability (not settled)") == 1
    assert "All 9,915 laws of up to 8 nodes were screened." in words
    assert "not settled" not in Page(render_report(galileo)).words


def test_every_law_says_what_its_coincidence_is(galileo):
    phrases = {"c0*sqrt(H)": ["takes <b>H</b> for granted"], "c0 + c1*H": ["adds one"]}
    page = Page(render_report(replace(galileo, coincidences=phrases)))
    assert page.faults == []
    # The winner's on the card too.
    assert page.words.count("takes <b>H</b> for granted") == 2
    assert page.words.count("adds one") == 1


NASTY = [EVIL, "speed of the flow [m/s]", "</script><b>"]


@pytest.fixture(scope="module")
def whole():
    """The page of a comparison of laws in columns of awkward names."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(1.0, 2.0, (12, 3)), columns=NASTY)
    y = pd.Series(2.0 * X[EVIL] * X[NASTY[1]] + rng.normal(0.0, 0.1, 12), name="lift [N]")
    laws = [f"c0*`{EVIL}`*`{NASTY[1]}`", f"c0 + c1*`{NASTY[1]}` + c2*`{NASTY[2]}`", "c0"]
    found = weigh_equations(laws, X, y, random_seed=1)
    return gather_content(found, folder="a-run", warnings=[f"Mind {laws[0]!r}, it's a 'T'."])


def test_the_page_has_two_scripts_and_runs_only_its_own(whole):
    text = render_report(whole)
    page = Page(text)
    assert page.faults == []
    assert page.all("script") == [{"type": "application/json", "id": "numbers"}, {}]
    own = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(own) == 1
    digest = base64.b64encode(hashlib.sha256(own[0].encode()).digest()).decode()
    policy = next(attrs for attrs in page.all("meta") if "http-equiv" in attrs)
    assert policy["content"].endswith(f"script-src 'sha256-{digest}'")
    assert EVIL not in text and "<b>" not in text


def test_the_script_has_every_law_and_what_it_needs(whole):
    text = render_report(whole)
    numbers = json.loads(re.search(r'id="numbers">(.*?)</script>', text, re.DOTALL)[1])
    assert list(numbers["laws"]) == list(numbers["about"]) == ["1", "2", "3"]
    assert numbers["winner"] == "1" and numbers["laws"]["1"]["parts"][0]["n"] == 4000
    assert [column["name"] for column in numbers["columns"]] == NASTY
    assert [one["size"] for one in numbers["front"]] == whole.table["complexity"].to_list()
    page = Page(text)
    rows = [attrs["data-row"] for _, attrs in page.elements if "data-row" in attrs]
    assert sorted(rows) == ["1", "2", "3"]


def test_formulas_have_short_symbols_and_a_legend(whole):
    page = Page(render_report(whole))
    formula = re.search(r'aria-label="The equation">(.*?)</div>', render_report(whole), re.DOTALL)
    assert "speed of the flow" not in formula[1] and "<mi>s</mi>" in formula[1]
    assert "speed of the flow [m/s]" in page.words and "lift [N]" in page.words


def test_a_sum_may_be_broken_between_its_terms(whole):
    row = re.search(r'data-row="2">.*?</tr>', render_report(whole), re.DOTALL)[0]
    assert row.count("<math>") == 3


def test_equations_in_warnings_are_formulas(whole):
    box = re.search(r'id="doubts".*?</div>', render_report(whole), re.DOTALL)[0]
    assert "Mind <math>" in box and "`" not in box
    assert "it&#39;s a &#39;T&#39;" in box


def test_the_first_screen_answers_four_questions(whole):
    words = Page(render_report(whole)).words
    for heading in ("Which law", "How sure", "What it predicts", "What to do next"):
        assert heading in words
    assert "pmsr predict a-run new.csv" in words and "pmsr resume" not in words
    assert re.search(r"Measure at .*= ", words)
    assert len(whole.outlook) == 3
    first = whole.outlook.iloc[0]
    low, high = first["prediction_low"], first["prediction_high"]
    digits = digits_for(low, high)
    assert f"{short(low, digits)} to {short(high, digits)}" in words


def test_a_family_that_is_more_probable_than_the_winners_is_said_to_be(whole):
    table = whole.table.copy()
    names = list(table.index)
    table["probability"] = [0.4, *np.full(len(names) - 1, 0.6 / (len(names) - 1))]
    alone = replace(whole, table=table, winner=names[0], families=[names[:1], names[1:]])
    assert "More probable are laws like" in Page(render_report(alone)).words
    table["probability"] = [0.7, *np.full(len(names) - 1, 0.3 / (len(names) - 1))]
    assert "weighed. Next: " in Page(render_report(replace(alone, table=table))).words


def test_an_input_starts_at_zero_where_its_median_is_rounding():
    x = np.linspace(-3.0, 3.0, 13)
    x[6] = 2.2e-16
    line = weigh_equations(["c0*x0"], x, 2.0 * x + np.sin(9.0 * x), random_seed=1)
    page = render_report(gather_content(line))
    numbers = json.loads(re.search(r'id="numbers">(.*?)</script>', page).group(1))
    assert numbers["columns"][0]["middle"] == 0.0
    middle = gather_content(line).outlook.iloc[1]
    assert abs(middle["x0"]) < 1e-15 and "10⁻¹⁶" not in Page(page).words


def test_known_errors_have_no_noise_in_the_pictures_of_the_posterior():
    x = np.linspace(1.0, 3.0, 8)
    y = 2.0 * x + 0.1 * np.cos(9.0 * x)
    known = weigh_equations(["c0*x0"], x, y, y_err=np.full(8, 0.1), random_seed=1)
    assert "Posterior of each parameter." in Page(render_report(gather_content(known))).words


@pytest.mark.parametrize(("noise", "errors"), [("gaussian", np.full(8, 0.1)), ("poisson", None)])
def test_a_law_and_a_noise_without_parameters_have_a_report(noise, errors):
    x = np.arange(1.0, 9.0)
    settings = pmsr.Settings(noise=noise)
    known = weigh_equations(["x0**2"], x, x**2, y_err=errors, settings=settings, random_seed=1)
    assert known.best.posterior.posterior.attrs["equation"] == "x0**2"
    page = Page(render_report(gather_content(known)))
    assert page.faults == []
    assert "There are none: neither the law nor its noise" in page.words
    assert "it tells most" not in page.words
    assert "Posterior densities of the parameters" not in pictures(page)
    with pytest.raises(ValueError, match="needs a parameter that is not held"):
        pmsr.plots.plot_posterior(known.best.posterior)


def test_without_a_posterior_the_first_screen_has_the_best_fit():
    x = np.linspace(1.0, 3.0, 8)
    y = 2.0 * x + 0.1 * np.cos(9.0 * x)
    line = weigh_equations(["c0*x0"], x, y, settings=pmsr.Settings(), random_seed=1)
    with time_limit(time.monotonic() - 1.0):
        content = gather_content(line)
    assert content.posterior is None
    words = Page(render_report(content)).words
    assert "Best fit, without error bars" in words.split("How sure")[0]
    assert short(float(line.best.theta[0])) in words.split("How sure")[0]


def test_a_law_that_depends_on_nothing_has_a_prediction_without_a_script():
    y = 5.0 + 0.1 * np.cos(9.0 * np.arange(8))
    content = gather_content(weigh_equations(["c0"], np.arange(8.0), y, random_seed=1))
    [row] = content.outlook.to_dict("records")
    assert row["prediction_low"] < row["mean"] < row["prediction_high"]
    assert short(row["mean"], digits_for(row["prediction_low"], row["prediction_high"])) in (
        Page(render_report(content)).words
    )


def test_where_the_noise_was_chosen_the_page_says_by_how_much(whole):
    rows = [("student", "c0", -12.0, -13.5), ("gaussian", "c0", -15.25, -15.5)]
    table = pd.DataFrame(rows, columns=["noise", "equation", "log_q", "score"])
    words = Page(render_report(replace(whole, noise_table=table))).words
    assert "How the noise was chosen" in words
    assert "Student noise with 4 degrees of freedom, for outliers" in words
    assert re.search(r"normal noise of one size .*−15\.25 .*−15\.50 .*−2\.00", words)
    assert "How the noise was chosen" not in Page(render_report(whole)).words
