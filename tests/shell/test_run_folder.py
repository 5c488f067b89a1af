import json
from dataclasses import replace

import arviz as az
import numpy as np
import pandas as pd
import pytest

from pmsr.data import load_galileo, make_data
from pmsr.estimator import BayesianSymbolicRegressor
from pmsr.result.comparison import weigh_equations
from pmsr.result.storage import HEADER
from pmsr.search.archive import Candidate
from pmsr.search.evolution import Generation
from pmsr.settings import Settings
from pmsr.shell import run_folder
from pmsr.shell.measurements import Columns, Measurements
from pmsr.shell.run_folder import (
    CHECKPOINT,
    DATA,
    EQUATIONS,
    LOG,
    POSTERIOR,
    REPORT,
    SETTINGS,
    Run,
    chosen_parameters,
    extend_budget,
    log_generation,
    prepare_folder,
    read_result,
    read_run,
    read_run_data,
    remove_remains,
    start_run,
    write_log,
    write_result,
    write_settings,
)

SHELF = load_galileo("shelf")
REGRESSOR = BayesianSymbolicRegressor(("*", "sqrt"), generations=50, max_time=10.0, random_state=3)
RUN = Run(
    source="my shelf.csv",
    columns=Columns(target="D", features=("H",)),
    command="pmsr fit 'my shelf.csv' --target D",
    created="1608-05-02",
    parameters=chosen_parameters(REGRESSOR),
)


def measured(X, y, **others):
    columns = Columns(target=str(y.name), features=tuple(X.columns), **others)
    return Measurements(columns, X, y, X[[]])


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "run"
    prepare_folder(path)
    start_run(path, RUN, measured(*SHELF))
    return path


@pytest.fixture(scope="module")
def result():
    return weigh_equations(["c0*sqrt(H)", "c0*H"], *SHELF, settings=Settings(), random_seed=1)


def test_what_a_run_was_asked_for_is_read_again(folder):
    run = read_run(folder)
    assert run == RUN
    data = read_run_data(folder, run).data
    np.testing.assert_array_equal(data.X, make_data(*SHELF).X)
    assert data.target == "D" and data.y.tolist() == SHELF[1].to_list()


def test_awkward_names_and_all_digits_survive(tmp_path):
    names = ["a;b;c", 'x "y"', "τ, [s]", "<b>&"]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 4)), columns=names)
    y = pd.Series(X["<b>&"] / 3, name="fall\ttime")
    run = replace(RUN, columns=Columns(target="fall\ttime", features=tuple(names)))
    prepare_folder(tmp_path)
    start_run(tmp_path, run, measured(X, y))
    assert read_run(tmp_path) == run
    found = read_run_data(tmp_path, run)
    np.testing.assert_array_equal(found.X, X)
    assert list(found.X.columns) == names
    assert found.y.name == y.name and found.y.to_list() == y.to_list()


def test_a_folder_is_only_taken_if_it_is_new_or_ours(folder, tmp_path):
    with pytest.raises(ValueError, match=r"holds a run already.*pmsr resume.*--force"):
        prepare_folder(folder)
    (folder / "notes.txt").write_text("mine")
    prepare_folder(folder, force=True)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    with pytest.raises(ValueError, match="holds other files"):
        prepare_folder(folder, force=True)
    with pytest.raises(ValueError, match=r"is a file\. A run needs a folder"):
        prepare_folder(folder / "notes.txt")
    (folder / SETTINGS).write_text('{"editor": "dark"}')
    with pytest.raises(ValueError, match="is not a result of pmsr"):
        prepare_folder(folder, force=True)
    assert (folder / SETTINGS).exists()


def leaves(value, path=()):
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from leaves(item, (*path, key))


def test_no_change_of_the_settings_does_harm(folder):
    whole = json.loads((folder / SETTINGS).read_text())
    refused = 0
    for path in leaves(whole):
        for value in (None, -1, 1.5, "x", [], {}, [[]], True, 10**400, "__import__('os')"):
            broken = json.loads(json.dumps(whole))
            place = broken
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            (folder / SETTINGS).write_text(json.dumps(broken))
            try:
                read_run(folder)
            except ValueError as error:
                assert str(folder) in str(error) and "\n" not in str(error)
                refused += 1
    assert refused > 60


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, "\xff\xfe", '{"kind": 1}'])
def test_broken_settings_are_refused(folder, text):
    (folder / SETTINGS).write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match="is damaged, or is not a result of pmsr"):
        read_run(folder)
    with pytest.raises(ValueError, match=r"is not a run: it has no settings\.json"):
        read_run(folder / "nowhere")


def progress(monkeypatch, folder, done, elapsed):
    (folder / CHECKPOINT).write_bytes(b"")
    monkeypatch.setattr(run_folder, "read_progress", lambda path: (done, elapsed))


@pytest.mark.parametrize(
    ("done", "elapsed", "finished", "options", "budget"),
    [
        (None, None, False, (None, None), (50, 10.0)),
        # Interrupted or killed, also while finalists were weighed: what is left, if anything is.
        (20, 2.0, False, (None, None), (50, 10.0)),
        (50, 4.0, False, (None, None), (50, 10.0)),
        (20, 8.0, False, (None, None), (50, 10.0)),
        # At its end, in time or in generations: the same again.
        (20, 8.0, True, (None, None), (70, 18.0)),
        (50, 4.0, True, (None, None), (100, 14.0)),
        # What was asked for, whether it had come to its end or not.
        (20, 8.0, True, (60.0, None), (70, 68.0)),
        (20, 8.0, True, (None, 5), (25, None)),
        (20, 8.0, True, (4.0, 5), (25, 12.0)),
        (20, 2.0, False, (5.0, None), (70, 7.0)),
    ],
)
def test_a_budget_is_extended(folder, monkeypatch, done, elapsed, finished, options, budget):
    if done is not None:
        progress(monkeypatch, folder, done, elapsed)
    found = extend_budget(folder, replace(RUN, finished=finished), *options)
    assert (found["generations"], found["max_time"]) == budget
    assert {**found, "generations": 50, "max_time": 10.0} == RUN.parameters


def test_whether_a_run_is_finished_survives_the_disk(folder):
    assert not read_run(folder).finished
    write_settings(folder, replace(RUN, finished=True))
    assert read_run(folder).finished
    whole = json.loads((folder / SETTINGS).read_text())
    (folder / SETTINGS).write_text(json.dumps({**whole, "finished": "yes"}))
    with pytest.raises(ValueError, match="a run is finished or not, got 'yes'"):
        read_run(folder)


def test_the_log_has_one_line_for_each_event(folder):
    best = Candidate("c0*`H`", -13.0, -12.9, 0.05, 1.0, 1, 3)
    record = {"n_candidates": 12, "elapsed": 0.5}
    log_generation(folder, Generation(4, best, record))
    log_generation(folder, Generation(5, None, record))
    write_log(folder, "two\nlines")
    lines = (folder / LOG).read_text(encoding="utf-8").splitlines()
    assert lines[0].endswith("started: pmsr fit 'my shelf.csv' --target D")
    assert lines[-3].endswith("generation 4, 12 equations, 0.5 s, score -13.0000: c0*`H`")
    assert lines[-2].endswith("nothing yet") and lines[-1].endswith(" two lines")


def test_a_link_in_place_of_the_log_is_not_followed(folder, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (folder / LOG).unlink()
    (folder / LOG).symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"):
        write_log(folder, "text")
    assert victim.read_text() == "mine"


def test_everything_that_a_result_has_to_show_is_written(folder, result):
    with pytest.raises(ValueError, match=r"has no result yet\. Go on with it: pmsr resume"):
        read_result(folder)
    write_result(folder, RUN, replace(result, stopped="interrupted"))
    table = pd.read_csv(folder / "equations.csv", index_col=0)
    assert list(table["equation"]) == ["c0*sqrt(H)", "c0*H"]
    assert list(table["log_q"]) == result.table["log_q"].to_list()
    loaded = az.from_netcdf(folder / "posterior.nc")
    np.testing.assert_array_equal(
        loaded.posterior["c0"], result.best.posterior.posterior["c0"].to_numpy()
    )
    # Nothing that has a number for each row and each draw.
    # A method of InferenceData, an attribute of DataTree.
    groups = loaded.groups() if callable(loaded.groups) else loaded.groups
    assert {name.strip("/") for name in groups} - {""} == {
        "posterior",
        "sample_stats",
        "observed_data",
        "constant_data",
    }
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "from my shelf.csv · 1608-05-02" in page and "The search was interrupted" in page
    again = read_result(folder)
    np.testing.assert_array_equal(again.predict(SHELF[0]), result.predict(SHELF[0]))
    assert not list(folder.glob("*.part"))


@pytest.mark.parametrize("name", [HEADER, EQUATIONS, POSTERIOR, REPORT])
def test_a_full_disk_is_an_error_that_names_the_file_and_leaves_no_part(
    folder, result, full_disk, name
):
    with full_disk(name), pytest.raises(OSError, match=r"No space left.*Make room") as caught:
        write_result(folder, RUN, result)
    assert caught.value.filename == str(folder / name)
    assert not list(folder.glob("*.part")) and not (folder / name).exists()


def test_what_a_killed_run_left_of_its_files_is_removed(folder):
    ours = (SETTINGS, DATA, CHECKPOINT, REPORT, EQUATIONS, POSTERIOR, HEADER)
    for name in (*ours, f"arrays-{'0' * 32}.npz", "notes.txt"):
        (folder / f"{name}.77.part").write_bytes(b"PK")
    remove_remains(folder)
    assert [file.name for file in folder.glob("*.part")] == ["notes.txt.77.part"]


def test_without_a_posterior_and_without_a_report_the_rest_is_written(folder):
    failed = weigh_equations(["log(-H)"], *SHELF, settings=Settings(), random_seed=1)
    write_result(folder, RUN, failed, report=False)
    assert not (folder / "report.html").exists() and not (folder / "posterior.nc").exists()
    assert len(read_result(folder)) == 1
