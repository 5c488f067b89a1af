import json
import pickle
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from pmsr.report.content import gather_content
from pmsr.report.page import write_report
from pmsr.result.comparison import compare, weigh_equations
from pmsr.result.grouped import GroupedEquation
from pmsr.result.loading import load_result
from pmsr.settings import QUICK

N = 6
x = np.tile(np.linspace(0.5, 3.0, N), 3)
labels = np.repeat([1, 2, 10], N)
SLOPES = {"1": 2.0, "2": -1.0, "10": 0.5}


def measure(seed=1, sigma=0.1):
    rng = np.random.default_rng(seed)
    slope = np.array([SLOPES[str(label)] for label in labels])
    return slope * x + sigma * rng.standard_normal(len(x))


y = measure()
SHARED = replace(QUICK, shared_sigma=True)
LAWS = ["c0*x0", "c0 + c1*x0", "c0*exp(c1*x0)"]


@pytest.fixture(scope="module", params=[QUICK, SHARED], ids=["own", "shared"])
def result(request):
    return weigh_equations(
        LAWS, x, y, groups=labels, settings=request.param, law_prior="description", random_seed=1
    )


def test_groups_come_in_the_order_of_their_numbers(result):
    assert list(result.best.parts) == ["1", "2", "10"]
    assert result.best.equation.text == "c0*x0"


def test_estimates_are_a_table_by_group(result):
    table = result.best.estimates()
    assert table.index.names == ["group", "parameter"]
    for label, slope in SLOPES.items():
        mean, sd = table.loc[(label, "c0"), ["mean", "sd"]]
        assert abs(mean - slope) < 5 * sd
    sigmas = table.xs("sigma", level="parameter")["mean"]
    assert (sigmas.nunique() == 1) == result.problem.shared_sigma
    whole = result.estimates()
    assert whole.index.names == ["equation", "group", "parameter"]


def test_predictions_take_the_group_of_each_row(result):
    at = np.array([1.0, 1.0, 2.0])
    found = result.predict(at, groups=[10, 1, 2])
    for value, label, place in zip(found, ("10", "1", "2"), at, strict=True):
        part = result.best.parts[label]
        assert value == part.predict([place])[0]
        assert abs(value - SLOPES[label] * place) < 0.5
    assert np.array_equal(result.best.predict(at, groups=[10, 1, 2]), found)
    one = result.predict(at, groups="1")
    assert one[0] == found[1]
    low, high = result.predict_interval(at, groups=[10, 1, 2], average=True).T
    assert np.all(low < found) and np.all(found < high)
    table = result.predict_table(at, groups=[10, 1, 2])
    assert np.all((table["map"] > low) & (table["map"] < high))


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (None, "groups are missing"),
        (["7", "1"], "no group '7'.*no constants"),
        (["1"], "one label for each of the 2 rows"),
    ],
)
def test_groups_that_cannot_be_are_refused(result, groups, words):
    with pytest.raises(ValueError, match=words):
        result.predict([1.0, 2.0], groups=groups)
    with pytest.raises(ValueError, match=words):
        result.best.predict([1.0, 2.0], groups=groups)


def test_groups_without_groups_are_refused():
    plain = weigh_equations(["c0*x0"], x, y, settings=QUICK, random_seed=1)
    with pytest.raises(ValueError, match="fitted without"):
        plain.predict([1.0], groups="1")
    with pytest.raises(ValueError, match="fitted without"):
        plain.best.predict([1.0], groups="1")


def test_what_belongs_to_one_group_says_so_and_each_part_has_it(result):
    best = result.best
    assert isinstance(best, GroupedEquation)
    for call in (best.to_pymc, best.to_callable, best.to_python, lambda: best.sympy(fitted=True)):
        with pytest.raises(ValueError, match=r'belongs to one group: use parts\["1"\]'):
            call()
    with pytest.raises(ValueError, match="several groups"):
        result.suggest()
    part = best.parts["2"]
    assert part.to_callable()([2.0])[0] == pytest.approx(-2.0, abs=0.3)
    assert "c0" in part.to_pymc().named_vars
    assert best.latex() == "y = c_{0} x_{0}"


def test_labels_of_every_kind_are_the_same_groups():
    kinds = [labels, labels.astype(str), [f"{label}" for label in labels]]
    found = [
        weigh_equations(["c0*x0"], x, y, groups=kind, settings=QUICK, random_seed=1).best
        for kind in kinds
    ]
    assert len({one.evidence.log_q for one in found}) == 1
    few = labels != 10
    by_bool = weigh_equations(
        ["c0*x0"], x[few], y[few], groups=labels[few] == 1, settings=QUICK, random_seed=1
    ).best
    assert list(by_bool.parts) == ["False", "True"]
    assert by_bool.predict([1.0], groups=True)[0] == pytest.approx(2.0, abs=0.3)


def test_a_grouped_result_can_be_pickled(result):
    again = pickle.loads(pickle.dumps(result))
    at = [1.0, 2.0]
    assert np.array_equal(again.predict(at, groups=1), result.predict(at, groups=1))


def test_a_comparison_shows_the_constants_of_every_group():
    table = compare(LAWS[:1], x, y, groups=labels, settings=QUICK, random_seed=1, verbose=False)
    text = table["estimates"].iloc[0]
    assert all(f"c0[{label}] = " in text for label in SLOPES)


def test_two_spellings_are_one_law_with_constants_for_each_group():
    spellings = ["c0*x0 + c1", "c1*x0 + c0"]
    found = weigh_equations(
        spellings, x, y, groups=labels, settings=SHARED, random_seed=1
    ).equations
    assert found[0].evidence.log_q == found[1].evidence.log_q
    one, other = (fitted.predict([1.0], groups=2)[0] for fitted in found)
    assert one == pytest.approx(other, abs=0.05)
    assert found[0].theta[:, 0] == pytest.approx(found[1].theta[:, 1], abs=1e-6)


def test_intervals_of_a_group_know_what_the_others_say_of_a_shared_sigma():
    own, shared = (
        weigh_equations(["c0*x0"], x, y, groups=labels, settings=one, random_seed=1).best
        for one in (QUICK, SHARED)
    )
    for label in SLOPES:
        spread = [one.parts[label].estimates().loc["sigma", "sd"] for one in (own, shared)]
        assert spread[1] < spread[0]


@pytest.mark.parametrize("noise", ["gaussian", "student", "proportional"])
def test_the_most_likely_sigma_is_shared_by_all_groups(noise):
    settings = replace(SHARED, noise=noise)
    law = weigh_equations(["c0*x0"], x, y, groups=labels, settings=settings, random_seed=1).best
    table = law.estimates()["best_fit"].unstack()
    assert table["sigma"].nunique() == 1
    curve = table["c0"].loc[list(map(str, labels))].to_numpy() * np.ravel(x)

    def log_density(sigma):
        noise = law.problem.noise
        return noise.log_density(np.asarray(y), curve, sigma, {}).sum()

    best = float(table["sigma"].iloc[0])
    assert log_density(best) > max(log_density(1.02 * best), log_density(best / 1.02))


def test_a_part_never_forgets_that_sigma_is_shared():
    whole = weigh_equations(["c0*x0"], x, y, groups=labels, settings=SHARED, random_seed=1).best
    # As after another spelling, or from a file: nothing was kept.
    bare = replace(whole, weighed=replace(whole.weighed, parts=()))
    sigmas = [part.draws.sigma for part in bare.parts.values()]
    assert all(np.array_equal(sigma, sigmas[0]) for sigma in sigmas)
    kept = whole.parts["1"].draws.sigma
    error = np.hypot(kept.std(), sigmas[0].std()) / np.sqrt(1000)
    assert abs(kept.mean() - sigmas[0].mean()) < 4 * error


def test_a_loaded_result_predicts_the_same(result, tmp_path):
    assert result.best.estimates().notna().all().all()
    result.save(tmp_path / "run")
    again = load_result(tmp_path / "run")
    at = np.linspace(0.5, 3.0, 5)
    for groups in SLOPES:
        assert np.array_equal(again.predict(at, groups=groups), result.predict(at, groups=groups))
    assert again.problem.shared_sigma == result.problem.shared_sigma
    assert again.table.drop(columns="latex").equals(result.table.drop(columns="latex"))
    assert again.best.estimates().equals(result.best.estimates())
    # What was not sampled is sampled from the same region; of a shared sigma, all groups at once.
    last = again.equations[-1]
    assert len({part.draws.sigma.tobytes() for part in last.parts.values()}) == (
        1 if result.problem.shared_sigma else 3
    )


def test_a_result_with_groups_that_were_tampered_with_is_refused(result, tmp_path):
    result.save(tmp_path / "run")
    path = tmp_path / "run" / "result.json"
    header = json.loads(path.read_text())
    header["equations"][0]["evidence"]["theta"] = [[1.0], [2.0]]
    path.write_text(json.dumps(header))
    with pytest.raises(ValueError, match="theta"):
        load_result(tmp_path / "run")


def test_a_report_is_gathered(result):
    content = gather_content(result)
    assert len(content.prediction) == len(y)
    assert content.suggestions is None


def test_every_group_is_drawn_with_a_mark_of_its_own(result):
    ax = result.best.plot()
    drawn = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    assert [line.get_label() for line in drawn] == list(SLOPES)
    assert len({line.get_marker() for line in drawn}) == 3
    assert len(ax.get_lines()) == 6 and len(ax.collections) == 3
    left, _ = result.best.plot_residuals()
    assert len(left.get_lines()[-1].get_ydata()) == len(y)
    for one in (ax, left):
        plt.close(one.figure)


def test_a_report_is_written(result, tmp_path):
    page = write_report(tmp_path / "report.html", gather_content(result)).read_text()
    assert "c0" in page
