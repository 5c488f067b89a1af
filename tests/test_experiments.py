import importlib
import inspect
import json
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from exact import linear_log_q

import pmsr
from pmsr.evidence.evidence import fit_equation
from pmsr.experiments import (
    NAMES,
    evidence_accuracy,
    galileo,
    galileo_no_shelf,
    galileo_shelf,
    galileo_synthetic,
    poles,
    polynomials,
    reproduce,
    sine,
)
from pmsr.experiments.datasets import galileo as galileo_source
from pmsr.experiments.datasets import no_shelf_least_squares, read_source, synthetic
from pmsr.experiments.datasets import sine as sine_source
from pmsr.experiments.exact import exact_linear_log_q, polynomial, polynomial_design
from pmsr.experiments.fits import fit_one, fit_task, to_posterior, to_prediction, weigh_one
from pmsr.experiments.laws import extends_law, is_law
from pmsr.experiments.pages import Claim, Formula, Page, write_page
from pmsr.experiments.searches import search_one, search_task
from pmsr.experiments.verdicts import judge, judge_peak, judge_share
from pmsr.experiments.work import run_units
from pmsr.search.workers import Workers
from pmsr.settings import FINALIST, Settings


def test_closed_form_agrees_with_adaptive_quadrature():
    X, y = pmsr.make_sine(20, 0.3, random_seed=1)
    for order in (0, 3, 6):
        for settings in (Settings(), Settings(sigma_prior="log-flat", gamma=0.4)):
            design = polynomial_design(X["x0"].to_numpy(), order)
            expected = linear_log_q(design, y.to_numpy(), settings)
            # Simpson's rule with 4000 intervals, and the polynomial of order 6 has a condition
            # number of 1e5.
            assert exact_linear_log_q(design, y.to_numpy(), settings) == pytest.approx(
                expected, abs=1e-6
            )


def test_polynomials_are_written_for_every_order():
    assert polynomial(0) == "c0"
    assert pmsr.Equation(polynomial(4), ["x0"]).parameters == ("c0", "c1", "c2", "c3", "c4")


def test_synthetic_data_follow_the_least_squares_law():
    k1, k2, sigma = no_shelf_least_squares()
    assert (round(k1, 6), round(k2, 6)) == (0.001099, -0.001121)
    X, y = read_source(synthetic(3))
    D = X["D"].to_numpy()
    assert np.abs(y - k1 * D**2 / (1 + k2 * D)).max() < 4 * sigma
    assert read_source(synthetic(3))[1].equals(y)


def test_an_unknown_source_is_refused():
    with pytest.raises(ValueError, match="Unknown kind 'moon'"):
        read_source({"kind": "moon"})


def count_calls(task):
    path = task["counter"]
    with open(path, "a") as file:
        file.write("x")
    return {"value": np.float64(task["x"]), "array": np.arange(2)}


def test_work_that_is_done_is_not_done_again(tmp_path):
    counter = tmp_path / "calls"
    tasks = [{"name": f"task-{x}", "x": x, "counter": str(counter)} for x in range(3)]
    first = run_units(count_calls, tasks[:2], tmp_path)
    second = run_units(count_calls, tasks, tmp_path)
    assert counter.read_text() == "xxx"
    assert second[:2] == first == [{"value": x, "array": [0, 1]} for x in (0.0, 1.0)]
    assert not list((tmp_path / "units").glob("*.tmp"))


def test_another_task_of_the_same_name_is_done(tmp_path):
    counter = tmp_path / "calls"
    for x in (1, 2):
        run_units(count_calls, [{"name": "task", "x": x, "counter": str(counter)}], tmp_path)
    assert counter.read_text() == "xx"


def test_an_interrupted_task_leaves_no_file_and_the_others_stay(tmp_path):
    def fail(task):
        if task["x"]:
            raise RuntimeError("no power")
        return task

    tasks = [{"name": "good", "x": 0}, {"name": "bad", "x": 1}]
    with pytest.raises(RuntimeError, match="no power"):
        run_units(fail, tasks, tmp_path)
    (path,) = (tmp_path / "units").iterdir()
    assert json.loads(path.read_text())["record"] == tasks[0]


def test_half_a_search_is_not_kept(tmp_path, monkeypatch):
    search = {"operators": ["*", "sqrt"], "population_size": 20, "generations": 50}
    task = search_task("search", galileo_source("shelf"), search, 0)
    units = iter(range(100))
    evolve = Workers.evolve

    def interrupted(workers, *arguments):
        if next(units) == 2:
            raise KeyboardInterrupt
        return evolve(workers, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Workers, "evolve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_units(search_one, [task], tmp_path)
    assert not list((tmp_path / "units").iterdir())
    (record,) = run_units(search_one, [task], tmp_path)
    assert record["stopped"] == "generations"


def test_laws_are_recognised_in_other_words():
    X = np.linspace(250.0, 570.0, 7)[:, None]
    law = pmsr.Equation("k1*D**2/(1 + k2*D)", ["D"])
    truth = (1.1e-3, -1.12e-3)
    assert is_law(pmsr.Equation("D/(c0/D + c1)", ["D"]), law, truth, X)
    assert not is_law(pmsr.Equation("-D**2/(c0 + D)", ["D"]), law, truth, X)
    assert not is_law(pmsr.Equation("c0*D**c1", ["D"]), law, truth, X)
    assert extends_law(pmsr.Equation("c2 + D**2/(c0 + c1*D)", ["D"]), law, truth, X)


def test_a_fit_can_be_drawn_from_its_record(tmp_path):
    task = fit_task("fit", "theta1*sqrt(H)", galileo_source("shelf"), (0.0, 1000.0), 0)
    (record,) = run_units(fit_one, [task], tmp_path)
    assert record["theta"] == pytest.approx([47.09], abs=0.01)
    axes = pmsr.plots.plot_posterior(to_posterior(record))
    assert len(axes) == 2
    assert list(to_prediction(record).attrs) == ["level"]
    plt.close("all")


def test_an_equation_is_weighed_by_repetitions():
    task = {
        "equation": "c0",
        "source": sine_source(0.3, 0),
        "seed": 0,
        "n_repeats": 3,
        "n_multistarts": 2,
    }
    record = weigh_one(task)
    y = read_source(task["source"])[1]
    exact = exact_linear_log_q(np.ones((20, 1)), y.to_numpy(), FINALIST)
    assert len(record["log_q_runs"]) == 3
    assert abs(record["log_q"] - exact) < 4 * record["log_q_se"] + 1e-3


def test_a_search_records_errors_and_looks_for_the_law():
    search = {"operators": ["*", "sqrt"], "population_size": 20, "generations": 5}
    task = search_task(
        "search", galileo_source("shelf"), search, 0, law="k1*sqrt(H)", truth=(47.0,)
    )
    record = search_one(task)
    assert record["law_won"]
    assert record["law_found"]
    # Flat priors on the parameters are not the same for both spellings.
    assert record["winner"]["equation"] in ("c0*sqrt(H)", "sqrt(c0*H)")
    assert [row["generation"] for row in record["history"]] == list(range(6))
    task = search_task("search", sine_source(0.3, 0), search, 0, test=sine_source(0.3, 10_000, 100))
    record = search_one(task)
    assert all(row["test_rmse"] > 0 for row in record["history"])
    assert record["winner"]["test_rmse"] > 0


@pytest.mark.parametrize(
    ("n", "of", "paper", "verdict"),
    [
        (11, 11, 5 / 11, "better"),
        (5, 11, 5 / 11, "reproduced"),
        (4, 11, 5 / 11, "reproduced"),
        (3, 11, 5 / 11, "not reproduced"),
    ],
)
def test_shares_are_compared_with_the_papers(n, of, paper, verdict):
    assert judge_share(n, of, paper) == verdict


def test_peaks_must_be_in_place_more_often_than_not():
    assert judge_peak([3, 4, 5], (3, 4)) == "reproduced"
    assert judge_peak([3, 5], (3, 4)) == "not reproduced"
    assert judge(is_reproduced=True, is_better=True) == "better"


def make_orders(log_q, rmse):
    rows = [
        {"dataset": 0, "order": k, "log_q": q, "log_q_se": 0.01, "exact": q, "rmse": e}
        for k, (q, e) in enumerate(zip(log_q, rmse, strict=True))
    ]
    return pd.DataFrame(rows)


def make_band(low, high):
    width = np.array([high, low, low, low, high])
    return {"prediction": {"credible_low": -width, "credible_high": width}}


def test_verdicts_on_polynomials_follow_the_numbers():
    rmse = [6, 5, 4, 3, 2, 1, 0.5]
    good = make_orders([-9, -8, -5, -1, -2, -3, -4], rmse)
    claims = polynomials.make_claims(good, [make_band(1, 2)] * 2, [0.0, 0.0])
    assert [claim.verdict for claim in claims] == ["reproduced"] * 5
    bad = make_orders([-9, -8, -7, -6, -5, -4, -3], rmse[::-1])
    bad["exact"] += 1.0
    claims = polynomials.make_claims(bad, [make_band(2, 1)] * 2, [0.0, 1.0])
    assert [claim.verdict for claim in claims] == ["not reproduced"] * 5


def make_searches(found, behind, population=(80, 10)):
    rows = [
        {
            "engine": engine,
            "law_found": found,
            "law_won": found and behind <= 1.5,
            "special_case_won": False,
            "law_behind": behind if found else np.nan,
            "law_in_population": population[0],
            "largest_other": population[1],
            "extensions_in_population": population[1],
            "population_size": 120,
        }
        for engine in galileo.ENGINES
        for _ in range(2)
    ]
    return pd.DataFrame(rows)


def test_verdicts_on_synthetic_data_follow_the_numbers():
    exact = pd.DataFrame([dict.fromkeys(galileo_synthetic.FORMS, -20.0)])
    claims = galileo_synthetic.make_claims(make_searches(True, 0.5), exact)
    assert [claim.verdict for claim in claims] == ["reproduced"] * 2
    searches = make_searches(True, 3.0, (5, 50))
    claims = galileo_synthetic.make_claims(searches, exact)
    assert [claim.verdict for claim in claims] == ["not reproduced"] * 2
    claims = galileo_synthetic.make_claims(searches.assign(special_case_won=True), exact)
    assert [claim.verdict for claim in claims] == ["reproduced", "not reproduced"]


def test_forms_of_the_law_are_weighed_by_quadrature():
    record = galileo_synthetic.weigh_exactly({"source": synthetic(0), "seed": 0})
    for name in galileo_synthetic.FORMS:
        gap = abs(record[f"{name}: estimate"] - record[name])
        assert gap < 4 * record[f"{name}: error"] < 0.1


def make_rivals(**log_q):
    return pd.DataFrame(
        [{"name": name, "log_q": value, "log_q_se": 0.1} for name, value in log_q.items()]
    )


def estimate(mean, sd=1.0):
    return {"mean": mean, "sd": sd, "low": mean - 2 * sd, "high": mean + 2 * sd}


def test_verdicts_on_the_shelf_follow_the_numbers():
    law = {"theta": [47.09], "estimates": {"theta1": estimate(47.0, 0.5)}}
    near = {"estimates": {"theta2": estimate(0.0)}}
    rivals = make_rivals(law=-13.0, approximate=-15.0)
    claims = galileo_shelf.make_claims(make_searches(True, 1.0), rivals, law, near)
    assert [claim.verdict for claim in claims] == ["reproduced"] * 4 + ["better"] * 2
    rivals = make_rivals(law=-13.0, approximate=-12.0)
    searches = make_searches(False, 0.0, (1, 0))
    law = {"theta": [48.0], "estimates": {"theta1": estimate(47.0, 0.5)}}
    claims = galileo_shelf.make_claims(searches, rivals, law, near)
    assert [claim.verdict for claim in claims] == ["not reproduced"] * 5 + ["reproduced"]


def test_verdicts_without_the_shelf_follow_the_numbers():
    pole = galileo_no_shelf.fit_second_pole()
    grid = [500.0, 560.0]
    law = {
        "rmse": 8.8,
        "grid": grid,
        "estimates": {
            "theta1": estimate(pole["k1"], 1e-4),
            "theta2": estimate(pole["k2"], 1e-4),
            "sigma": estimate(10.0),
        },
        "prediction": {"prediction_low": [700.0, 700.0], "prediction_high": [810.0, 810.0]},
    }
    overfit = {"rmse": 2.3, "estimates": {"sigma": estimate(3.0)}}
    rivals = {"law": -22.0, "overfit": -15.0, "law with one parameter": -18.0}
    rivals["exponential"] = -17.0
    searches = make_searches(True, 3.0).assign(best="c0*D")
    searches.loc[0, "law_found"] = False
    regions = pd.DataFrame([{"log_q": -15.0, "log_q_se": 0.1, "smc_log_q": -15.1, "share": 0.9}])
    claims = galileo_no_shelf.make_claims(
        searches, make_rivals(**rivals), law, overfit, pole, regions
    )
    verdicts = [claim.verdict for claim in claims]
    assert verdicts == ["reproduced", "better"] + ["reproduced"] * 7
    overfit["estimates"]["sigma"] = estimate(20.0)
    searches = make_searches(True, 0.5).assign(best="c0*D")
    for log_q, share in ((-25.0, 0.9), (-15.0, 1e-7)):
        rivals["overfit"], regions["share"] = log_q, share
        claims = galileo_no_shelf.make_claims(
            searches, make_rivals(**rivals), law, overfit, pole, regions
        )
        assert [claims[k].verdict for k in (4, 5, 7)] == ["better", "better", "not reproduced"]


def test_the_second_pole_is_the_papers():
    pole = galileo_no_shelf.fit_second_pole()
    assert round(pole["pole"], 1) == 535.5
    assert round(pole["law_shapiro_p"], 2) == 0.06
    assert round(pole["shapiro_p"], 2) == 0.18


def test_poles_are_drawn_from_the_density_that_is_claimed():
    rng = np.random.default_rng(0)
    S, P = poles._draw(400_000, rng)
    for centre, width in (((1400.0, 4.7e5), (200.0, 5e4)), ((1000.0, 4e5), (100.0, 4e4))):
        z = np.hypot((S - centre[0]) / width[0], (P - centre[1]) / width[1])
        density = np.exp(-0.5 * z**2) / (2 * np.pi * width[0] * width[1])
        weights = density / np.exp(poles._log_density(S, P))
        se = np.std(weights) / np.sqrt(len(S))
        assert abs(weights.mean() - 1) < 4 * se < 0.15


def test_evidence_of_two_poles_is_the_same_when_integrated_over_the_poles():
    task = {"seed": 0, "place": 535.5, "distance": 2.0, "n_draws": 400_000}
    record = poles.weigh_by_poles(task | {"source": galileo_source("no_shelf")})
    error = np.hypot(record["log_q_se"], record["smc_log_q_se"])
    assert abs(record["log_q"] - record["smc_log_q"]) < 4 * error < 1.5
    assert record["share"] < 1e-5
    target = fit_equation("c0*D**c1", *pmsr.load_galileo("no_shelf"), random_seed=0)
    with pytest.raises(ValueError, match="theta4 must be the parameter that is held"):
        poles.integrate_over_poles(target, 535.5, 2.0, n_draws=100, rng=np.random.default_rng(0))


def test_the_overfit_equation_is_factored_into_the_papers_form():
    first, second, third, fourth = 1.1e-3, -1.1e-3, -1.8e-3, -1.9e-3
    scale = 3.0
    values = (
        scale * first,
        scale * first * third,
        scale * second * fourth,
        scale * (second + fourth),
        scale,
        5.0,
    )
    names = [*(f"theta{k}" for k in range(1, 6)), "sigma"]
    draws = {name: [[value]] for name, value in zip(names, values, strict=True)}
    group = galileo_no_shelf.reparametrise({"draws": draws}).posterior
    assert float(group["theta1"][0, 0]) == pytest.approx(first)
    assert float(group["theta2"][0, 0]) == pytest.approx(second)


def make_sine_tables(bayesian, conventional):
    runs, history = [], []
    for engine, value in ((sine.BAYESIAN, bayesian), (sine.CONVENTIONAL, conventional)):
        for sigma in (0.0, 0.1, 0.5):
            label = {"engine": engine, "sigma": sigma, "seed": 0}
            size = value["size"] - 5 * sigma
            test = value["zero"] if sigma == 0 else value["test"] * sigma
            runs.append(label | {"test_rmse": test, "complexity": size, "equation": "c0"})
            for k in range(5):
                history.append(
                    label
                    | {
                        "generation": k,
                        "rmse_best": 1.0 - 0.1 * k,
                        "test_rmse": 1.0 + value["rise"] * k,
                        "complexity_mean": 5 + value["growth"] * k,
                    }
                )
    return pd.DataFrame(runs), pd.DataFrame(history)


def test_verdicts_on_the_sine_follow_the_numbers():
    good = {"size": 10, "zero": 0.1, "test": 1.1, "rise": 0.0, "growth": 0.0}
    poor = {"size": 30, "zero": 0.01, "test": 3.0, "rise": 0.1, "growth": 2.0}
    spreads = {
        "n_datasets": 3.0,
        "bayesian_inside": 0.1,
        "bayesian_beyond": 1.0,
        "conventional_inside": 0.5,
        "conventional_beyond": 9.0,
    }
    claims = sine.claims_of_searches(*make_sine_tables(good, poor), spreads)
    assert [claim.verdict for claim in claims] == ["reproduced"] * 8
    swapped = dict(zip(spreads, [3.0, 0.5, 9.0, 0.1, 1.0], strict=True))
    claims = sine.claims_of_searches(*make_sine_tables(poor, good), swapped)
    verdicts = [claim.verdict for claim in claims]
    assert verdicts.count("better") == 1
    assert verdicts.count("not reproduced") == 6


def test_the_winner_of_median_complexity_is_chosen():
    runs = pd.DataFrame(
        {"engine": "a", "sigma": 0.1, "complexity": [9, 3, 5], "equation": ["x", "y", "z"]}
    )
    assert sine.median_winner(runs, "a")["equation"] == "z"


def test_two_modes_are_told_from_one():
    rng = np.random.default_rng(0)
    theta3 = rng.normal(1.0, 0.1, size=400) * np.repeat([1.0, -1.0], 200)
    draws = {
        "theta1": rng.normal(size=400).tolist(),
        "theta2": (-0.5 - 3 * theta3).tolist(),
        "theta3": theta3.tolist(),
    }
    modes = sine.describe_modes({"draws": draws})
    assert modes["share"] == 0.5
    assert min(modes["gap_theta2"], modes["gap_theta3"]) > 2
    assert modes["correlation"] == pytest.approx(-1.0)
    alone = {name: np.abs(values).tolist() for name, values in draws.items()}
    assert sine.describe_modes({"draws": alone})["share"] == 0.0


def make_accuracy(ours, theirs):
    engines = {**dict.fromkeys(evidence_accuracy.ENGINES, (ours, 5.0)), **theirs}
    return pd.DataFrame(
        [
            {
                "engine": engine,
                "n_parameters": p,
                "exact": -10.0,
                "mean_error": error,
                "deviation": 0.1,
                "milliseconds": milliseconds,
            }
            for engine, (error, milliseconds) in engines.items()
            for p in (1, 2)
        ]
    )


def test_verdicts_on_accuracy_follow_the_numbers():
    def verdicts(*numbers):
        return [c.verdict for c in evidence_accuracy.make_claims(make_accuracy(*numbers))]

    assert verdicts(0.01, {}) == ["reproduced"]
    assert verdicts(0.5, {}) == ["not reproduced"]
    assert verdicts(0.01, {evidence_accuracy.PEER: (1.0, 99.0)}) == ["better", "better"]
    assert verdicts(0.01, {evidence_accuracy.PEER: (0.0, 1.0)}) == ["reproduced", "not reproduced"]


def test_a_page_has_claim_verdict_figure_formula_and_numbers(tmp_path):
    ax = plt.subplots()[1]
    ax.figure.savefig(tmp_path / "figure.png")
    plt.close("all")
    page = Page(
        title="A <test>",
        summary="Of pages.",
        claims=[Claim("Section 9", "Cats | dogs.", "Dogs.", "reproduced if dogs.", "better")],
        figures=[("figure.png", "A caption.")],
        formulas=[Formula("The law", pmsr.Equation("c0*sqrt(H)", ["H"]), "D")],
        tables={"A table": pd.DataFrame({"x": [0.123456]})},
        numbers={"one": pd.DataFrame({"x": [1.5]}), "two": pd.DataFrame({"y": ["z"]})},
        notes=["A note."],
    )
    path = write_page(tmp_path, page)
    html, markdown = path.read_text(), (tmp_path / "page.md").read_text()
    for text in ("Cats", "better", "Section 9", "A caption.", "0.1235", "A note."):
        assert text in html
        assert text in markdown
    assert "A &lt;test&gt;" in html
    assert "data:image/png;base64," in html
    assert "<math" in html
    assert r"$$D = c_{0} \sqrt{H}$$" in markdown
    assert r"Cats \| dogs." in markdown
    numbers = pd.read_csv(tmp_path / "numbers.csv")
    assert numbers["table"].to_list() == ["one", "two"]


def test_all_experiments_leave_an_index_of_their_claims(tmp_path, monkeypatch):
    def run(out, *, n_jobs, **_):
        assert n_jobs == 2
        claim = Claim("Section 9", f"{out.name} | <b>", "NA", "reproduced if dogs.", "better")
        return write_page(out, Page(title=f"Of {out.name}", summary="", claims=[claim] * 2))

    for name in NAMES:
        monkeypatch.setattr(importlib.import_module(f"pmsr.experiments.{name}"), "run", run)
    index, *pages = reproduce("all", tmp_path, n_jobs=2)
    assert index == tmp_path / "index.html"
    assert [page.parent.name for page in pages] == list(NAMES)
    html, markdown = index.read_text(), (tmp_path / "index.md").read_text()
    for text in ("12 claims in 6 experiments: 0 reproduced, 12 better, 0 not", "Of sine", "NA"):
        assert text in html
        assert text in markdown
    assert '<a href="sine/page.html">' in html
    assert "(sine/page.md)" in markdown
    assert "&lt;b&gt;" in html


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_has_the_same_options(name):
    options = inspect.signature(importlib.import_module(f"pmsr.experiments.{name}").run).parameters
    assert list(options)[:5] == ["out", "quick", "n_seeds", "n_jobs", "random_seed"]


def test_unknown_experiments_and_no_seeds_are_refused(tmp_path):
    with pytest.raises(ValueError, match="Unknown experiment 'cosine'"):
        reproduce("cosine", tmp_path)
    with pytest.raises(ValueError, match="n_seeds must be an integer of at least 1, got 0"):
        reproduce("sine", tmp_path, n_seeds=0)
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        reproduce("sine", tmp_path, n_jobs=0)
    with pytest.raises(ValueError, match="peer is for evidence_accuracy alone, not for sine"):
        reproduce("sine", tmp_path, peer="python")
    for peer, reason in (("/no/such/python", "cannot be run"), (sys.executable, "No module named")):
        with pytest.raises(ValueError, match=reason):
            reproduce("evidence_accuracy", tmp_path, peer=peer)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"out must be a folder, but .*file' is a file"):
        reproduce("sine", tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_polynomials_leave_their_page_and_are_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(polynomials, "ORDERS", range(3))
    monkeypatch.setattr(polynomials, "SHOWN", (0, 1))
    (path,) = reproduce("polynomials", tmp_path, quick=True, n_seeds=1)
    html = path.read_text()
    assert "falls after order 3" in html
    assert "reproduced" in html
    for name in ("fits.png", "orders.png", "numbers.csv", "page.md"):
        assert (tmp_path / name).stat().st_size > 0

    def never(*_, **__):
        raise AssertionError("done again")

    monkeypatch.setattr(polynomials, "compute_evidence", never)
    monkeypatch.setattr("pmsr.experiments.fits.compute_evidence", never)
    assert reproduce("polynomials", tmp_path, quick=True, n_seeds=1) == [path]
    assert path.read_text() == html


@pytest.mark.slow
@pytest.mark.parametrize("name", ["galileo_shelf", "galileo_no_shelf", "galileo_synthetic"])
def test_galileos_experiments_leave_their_pages(tmp_path, monkeypatch, name):
    monkeypatch.setattr(galileo, "QUICK_GENERATIONS", dict.fromkeys(galileo.ENGINES, 5))
    (path,) = reproduce(name, tmp_path, quick=True, n_seeds=1)
    assert "verdict" in path.read_text()
    assert "it ends after 5 generations" in path.read_text()


@pytest.mark.slow
def test_the_sine_leaves_its_page(tmp_path, monkeypatch):
    monkeypatch.setattr(sine, "QUICK_GENERATIONS", 6)
    monkeypatch.setattr(sine, "SIGMAS", (0.0, 0.1, 0.3))
    (path,) = reproduce("sine", tmp_path, quick=True, n_seeds=2)
    assert "bimodal" in path.read_text()
    assert len(list(tmp_path.glob("*.png"))) == 6


@pytest.mark.slow
def test_accuracy_leaves_its_page(tmp_path):
    (path,) = reproduce("evidence_accuracy", tmp_path, quick=True, n_seeds=3)
    assert "unbiased" in path.read_text()
