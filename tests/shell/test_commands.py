import argparse
import csv
import dataclasses
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import arviz as az
import numpy as np
import pandas as pd
import pytest

import pmsr
from pmsr.data import load_galileo
from pmsr.estimator import BayesianSymbolicRegressor
from pmsr.evidence import evidence
from pmsr.evidence.evidence import CHAINS
from pmsr.limits import time_left
from pmsr.result.result import STORED
from pmsr.result.searched import from_evolution
from pmsr.result.storage import HEADER
from pmsr.search.checkpoint import read_progress
from pmsr.search.evolution import _Run
from pmsr.search.finalists import NEAR
from pmsr.search.workers import Workers
from pmsr.shell import commands
from pmsr.shell.cli import main
from pmsr.shell.run_folder import CHECKPOINT, DATA, LOG, SETTINGS, read_result, read_run

ROOT = Path(__file__).parents[2]
SHELF = load_galileo("shelf")
FILES = {DATA, SETTINGS, LOG, CHECKPOINT, HEADER, "equations.csv", "posterior.nc", "report.html"}
TINY = ["--operators", "*", "/", "sqrt", "--population", "16", "--max-complexity", "12"]
TINY += ["--islands", "2"]


@pytest.fixture(autouse=True)
def narrow(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def write_shelf(path):
    SHELF[0].assign(D=SHELF[1]).to_csv(path, index=False)
    return str(path)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_shelf(tmp_path_factory.mktemp("data") / "ramp & shelf.csv")


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    options = ["--generations", "6", "--out", str(path), "--quiet"]
    assert main(["fit", data, "--target", "D", *TINY, *options]) == 0
    return path


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def refuse_constant(name):
    raise AssertionError(f"{name} is not JSON")


def read_json(text):
    return json.loads(text, parse_constant=refuse_constant)


def keys(path):
    return [fitted.equation.key for fitted in read_result(path).equations]


def test_measurements_are_checked_once_between_a_file_and_its_report(data, monkeypatch):
    checked = []

    def stack(columns, names):
        checked.append(names)
        return original(columns, names)

    original = pmsr.data.stack_columns
    monkeypatch.setattr(pmsr.data, "stack_columns", stack)
    assert main(["fit", data, "--target", "D", *TINY, "--generations", "2"]) == 0
    assert checked == [("H",)]


def test_nobody_fits_again_what_is_fitted(data, monkeypatch, tmp_path):
    """Each finalist has its replicates' fits; posterior, report, files and to_pymc() have none."""
    fits, runs = [], []

    def make_target(program, *arguments, **options):
        fits.append(program)
        return original(program, *arguments, **options)

    def run_kernel(target, **options):
        runs.append(options["to_posterior"])
        return original_run(target, **options)

    original, original_run = evidence.make_target, evidence.run_kernel
    monkeypatch.setattr(evidence, "make_target", make_target)
    monkeypatch.setattr("pmsr.evidence.posterior.make_target", make_target)
    monkeypatch.setattr("pmsr.result.fitted.make_target", make_target)
    monkeypatch.setattr(evidence, "run_kernel", run_kernel)
    monkeypatch.setattr("pmsr.evidence.posterior.run_kernel", run_kernel)
    during = []
    finish = BayesianSymbolicRegressor._fit

    def fit(regressor, data):
        with monkeypatch.context() as patch:
            patch.setattr(
                "pmsr.estimator.from_evolution",
                lambda *a, **o: during.append(len(fits)) or from_evolution(*a, **o),
            )
            return finish(regressor, data)

    monkeypatch.setattr(BayesianSymbolicRegressor, "_fit", fit)
    path = tmp_path / "run"
    options = ["--generations", "4", "--out", str(path), "--quiet", "--jobs", "1"]
    assert main(["fit", data, "--target", "D", *TINY, *options]) == 0
    assert during == [len(fits)]
    # Laws that are far behind the best were weighed once, and are sampled when they are saved.
    result = read_result(path)
    far = (result.probabilities > STORED) & (result.table["difference"] < -NEAR)
    assert sum(runs) <= CHAINS * np.count_nonzero(far)


def test_fit_leaves_a_folder_and_prints_a_table(data, tmp_path, capsys):
    assert main(["fit", data, "--target", "D", *TINY, "--generations", "6"]) == 0
    folder = tmp_path / "ramp & shelf-run"
    assert {path.name for path in folder.iterdir() if path.suffix != ".npz"} | {CHECKPOINT} == FILES
    printed = capsys.readouterr()
    assert (
        printed.err.startswith("pmsr: searching for 6 generations") and "\n" not in printed.err[:-1]
    )
    lines = printed.out.splitlines()
    assert lines[0].startswith("5 observations of D, ")
    assert [line for line in lines if line.startswith(">  c0*sqrt(H) ")]
    assert "D = c0*sqrt(H)" in lines
    [estimate] = [line for line in lines if line.startswith("    c0 = ")]
    # Least squares gives 47.09.
    assert estimate.startswith("    c0 = 47.")
    assert "Report:  ramp & shelf-run/report.html" in lines
    assert "Predict: pmsr predict 'ramp & shelf-run' new.csv" in lines
    assert max(map(len, lines)) <= 80
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "5 observations of D from ramp &amp; shelf.csv" in page
    assert "pmsr fit" in page and "<msqrt><mi>H</mi></msqrt>" in page
    result = read_result(folder)
    posterior = az.from_netcdf(folder / "posterior.nc").posterior
    np.testing.assert_array_equal(posterior["c0"], result.best.draws.theta[:, :, 0])
    assert pmsr.load(folder).operators == ("*", "/", "sqrt")


def test_names_of_any_kind_work_from_file_to_prediction(tmp_path, capsys):
    names = {"H": "drop height [m] & Ω", "D": "Weite τ"}
    SHELF[0].assign(D=SHELF[1], ort="Pisa").rename(columns=names).to_csv("δ a.csv", index=False)
    options = ["--target", names["D"], "--features", names["H"], "--generations", "4", *TINY]
    assert main(["fit", "δ a.csv", *options, "--out", "läufe/nr 1"]) == 0
    assert "Weite τ = c0*sqrt(`drop height [m] & Ω`)" in capsys.readouterr().out
    assert main(["predict", "läufe/nr 1", "δ a.csv", "--out", "p.csv"]) == 0
    assert list(pd.read_csv("p.csv").columns)[:2] == [names["H"], "mean"]
    law = f"c0*sqrt(`{names['H']}`)"
    assert main(["compare", "δ a.csv", law, *options[:4], "--out", "c"]) == 0
    assert "&lt;" not in (tmp_path / "c" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["c", "c0"])
def test_a_column_may_be_called_like_a_parameter(name, capsys):
    SHELF[0].rename(columns={"H": name}).assign(D=SHELF[1]).to_csv("c.csv", index=False)
    assert main(["fit", "c.csv", "--target", "D", "--generations", "2", *TINY]) == 0
    assert "D = " in capsys.readouterr().out


def test_fit_prints_json_and_nothing_else(data, capsys):
    options = ["--generations", "1", "--out", "new", "--json", "--no-report", "--max-parameters"]
    assert main(["fit", data, "--target", "D", *TINY, *options, "1"]) == 0
    printed = capsys.readouterr()
    found = read_json(printed.out)
    assert printed.err == ""
    assert found["target"] == "D" and found["variables"] == ["H"] and found["report"] is None
    assert found["equations"][found["chosen"]]["equation"] == found["equation"]
    assert all(row["parameters"] <= 1 for row in found["equations"])
    assert found["stopped"] == "generations" and found["out"] == "new"
    assert set(found["estimates"]) >= {"sigma"}


def test_a_conventional_search_shows_errors_and_valid_json(data, capsys):
    options = ["--generations", "1", "--out", "new", "--fitness", "rmse"]
    assert main(["fit", data, "--target", "D", *TINY, *options]) == 0
    printed = capsys.readouterr().out
    assert "log q" not in printed and "RMSE" in printed
    assert main(["resume", "new", "--generations", "1", "--json"]) == 0
    assert read_json(capsys.readouterr().out)["equations"][0]["log_q"] is None


def test_guesses_are_met(data, capsys):
    options = ["--generations", "1", "--out", "new", "--json", "--guess", "c0*sqrt(H)", "c0*H*H"]
    assert main(["fit", data, "--target", "D", *TINY, *options]) == 0
    found = read_json(capsys.readouterr().out)
    assert "c0*sqrt(H)" in [row["equation"] for row in found["equations"]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "d"], "no column 'd'. Did you mean 'D'?"),
        (["--target", "D", "--features", "h"], "no column 'h'. Did you mean 'H'?"),
        (
            ["--target", "D", "--operators", "+", "plus"],
            "Unknown operator 'plus': did you mean '+'?",
        ),
        (["--target", "D", "--operators", "expp"], "did you mean 'exp'?"),
        (["--target", "D", "--operators", "square"], "integer powers come by themselves"),
        (["--target", "D", "--operators", "common", "^"], "did you mean 'pow'?"),
        (["--target", "D", "--operators", "+", "other.csv"], "Put * in quotes: '*'."),
        (["--target", "D", "--guess", "c0*("], '(at the end of "c0*(")'),
        (["--target", "D", "--guess", "c0*sin(H)", "--generations", "1"], "needs the operator"),
        (["--target", "D", "--population", "7"], "--population must be even"),
        (["--target", "D", "--operators", "+-*/"], "put a space between operators"),
        (["--target", "D", "--operators", ""], "At least one operator is needed, got none. Avail"),
        (["--target", "D", "--features", "H,D"], "blanks between columns, not commas, got 'H,D'"),
        (
            ["--target", "D", "--guess", "a*H + b"],
            "a and b are no columns: these are H. Parameters",
        ),
        (["--target", "D", "--constant", "g=1", "--constant", "g=2"], "--constant gives 'g' twice"),
        (["--target", "D", "--x-error-columns", "H=a", "H=b"], "columns gives 'H' twice"),
    ],
)
def test_a_mistake_is_an_error_of_one_line_and_leaves_nothing(
    data, options, words, capsys, tmp_path
):
    (tmp_path / "other.csv").write_text("")
    assert main(["fit", data, *options]) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("pmsr: ") and words in printed.err
    assert printed.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["other.csv"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("H,D\n1,2\n2,\n", "target 'D' has no value in row 3"),
        ("H,D\n1,2\nx,3\n", "column 'H' holds text, 'x' in row 3"),
        ("H,H,D\n1,1,2\n2,2,3\n", "2 columns are called 'H'"),
        ("H,D\n1,2\n2,2\n", "The target 'D' is constant"),
        ("H,D\n1,2\n", "At least two rows are needed"),
        ("H,D\n1,2\n2,3\n3,5\nTotal,10\n", "Correct or remove such rows, or leave"),
        ("H,note,D\n1,,2\n2,good,3\n3,,5\n", "'note' holds text, 'good' in row 3. Leave it out"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_of_one_line(tmp_path, text, words, capsys):
    (tmp_path / "t.csv").write_text(text)
    assert main(["fit", "t.csv", "--target", "D"]) == 1
    printed = capsys.readouterr()
    assert words in printed.err and printed.err.count("\n") == 1
    assert not (tmp_path / "t-run").exists()


def test_a_missing_file_is_an_error_of_one_line(capsys):
    assert main(["fit", "none.csv", "--target", "D"]) == 1
    assert capsys.readouterr().err == "pmsr: none.csv: No such file or directory\n"
    assert main(["fit", "-", "--target", "D"]) == 1
    assert capsys.readouterr().err == "pmsr: -: a pipe is no file. Save the table as .csv first.\n"
    assert main(["fit", ".", "--target", "D"]) == 1
    assert capsys.readouterr().err == "pmsr: .: Is a directory\n"
    assert main(["fit", "data", "--target", "D"]) == 1
    assert "data: its name has no ending. Available: .csv" in capsys.readouterr().err


def test_nothing_is_overwritten_unless_forced(run, data, capsys, tmp_path):
    command = ["fit", data, "--target", "D", *TINY, "--generations", "1", "--quiet", "--out"]
    assert main([*command, str(run)]) == 1
    assert f"pmsr resume {run}" in capsys.readouterr().err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    for options in ([], ["--force"]):
        assert main([*command, str(tmp_path / "mine"), *options]) == 1
        assert "holds other files" in capsys.readouterr().err
    assert main([*command, str(run), "--force"]) == 0
    assert capsys.readouterr().out == ""
    assert read_result(run).history[-1]["generation"] == 1


def test_going_on_is_the_same_as_not_having_stopped(data, run, tmp_path):
    options = ["--generations", "10", "--out", "whole", "--quiet", "--no-report"]
    assert main(["fit", data, "--target", "D", *TINY, *options]) == 0
    assert main(["resume", str(run), "--generations", "4", "--quiet"]) == 0
    assert keys(run) == keys(tmp_path / "whole")
    assert read_result(run).history[-1]["generation"] == 10
    assert "resumed: pmsr resume" in (run / LOG).read_text()
    # A finished budget is granted once more.
    assert main(["resume", str(run), "--quiet"]) == 0
    assert read_result(run).history[-1]["generation"] == 20


@pytest.mark.parametrize("where", ["finish", "write_result"])
def test_a_run_killed_after_its_search_only_does_the_rest(
    data, finished, tmp_path, monkeypatch, where
):
    def die(*_, **__):
        raise SystemExit

    options = ["--generations", "6", "--out", "run", "--quiet"]
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(_Run if where == "finish" else commands, where, die)
        main(["fit", data, "--target", "D", *TINY, *options])
    with monkeypatch.context() as patch:
        patch.setattr(Workers, "evolve", die)
        assert main(["resume", "run", "--quiet"]) == 0
    for name in ("equations.csv", read_header("run")["arrays"]):
        assert Path("run", name).read_bytes() == (finished / name).read_bytes()
    # What has come to its end has its budget, or what is asked for, once more.
    assert main(["resume", "run", "--quiet", "--no-report", "--time", "1s"]) == 0
    assert read_progress(Path("run") / CHECKPOINT)[0] > 6


def read_header(path):
    return json.loads((Path(path) / HEADER).read_text())


def test_the_time_is_that_until_the_prompt_returns(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 4.0, (5000, 2))
    y = x[:, 0] * np.exp(-x[:, 1]) + 0.1 * rng.standard_normal(5000)
    pd.DataFrame({"c": x[:, 0], "c0": x[:, 1], "y": y}).to_csv("many.csv", index=False)
    started = time.monotonic()
    arguments = ["fit", "many.csv", "--target", "y", "--operators", "+ * exp", "--time", "4s"]
    assert main([*arguments, "--json"]) == 0
    assert time.monotonic() - started < 4.0 + 5.0
    found = json.loads(capsys.readouterr().out)
    assert found["stopped"] == "max_time"
    # Either the error bars are there, or it is said that they are not.
    assert found["estimates"] or any("no time left" in text for text in found["warnings"])
    # Two numbers for each row, and thousands of draws.
    assert Path("many-run", "report.html").exists()
    nc = Path("many-run", "posterior.nc")
    assert not nc.exists() or nc.stat().st_size < 2_000_000


def test_ctrl_c_keeps_what_was_found_and_resume_goes_on(data, tmp_path, capsys, monkeypatch):
    write = commands.log_generation

    def interrupt(path, generation):
        write(path, generation)
        # A unit is ten generations.
        if generation.number == 10:
            raise KeyboardInterrupt

    command = ["fit", data, "--target", "D", *TINY, "--generations", "14", "--out"]
    with monkeypatch.context() as patch:
        patch.setattr(commands, "log_generation", interrupt)
        assert main([*command, "run"]) == 130
    printed = capsys.readouterr()
    assert printed.err.splitlines()[1:] == ["pmsr: interrupted. Go on with: pmsr resume run"]
    assert "D = " in printed.out
    assert FILES <= {path.name for path in (tmp_path / "run").iterdir()}
    assert "The search was interrupted" in (tmp_path / "run" / "report.html").read_text()
    assert main(["resume", "run", "--quiet"]) == 0
    assert main([*command, "whole", "--quiet"]) == 0
    assert keys(tmp_path / "run") == keys(tmp_path / "whole")
    assert read_result(tmp_path / "run").stopped == "generations"


def test_ctrl_c_before_anything_was_found_says_so(data, tmp_path, capsys, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pmsr.estimator.run_evolution", interrupt)
        options = ["--generations", "2", "--out", "run"]
        assert main(["fit", data, "--target", "D", *TINY, *options]) == 130
    error = capsys.readouterr().err.splitlines()[-1]
    assert error == "pmsr: interrupted. Go on with: pmsr resume run"
    assert main(["predict", "run", data]) == 1
    assert "run has no result yet. Go on with it: pmsr resume run" in capsys.readouterr().err
    assert main(["resume", "run", "--quiet"]) == 0
    assert read_result(tmp_path / "run").history[-1]["generation"] == 2


SEARCH = """
import sys
import pmsr.search.evolution
from pmsr.search.checkpoint import read_progress
from pmsr.shell.cli import main
pmsr.search.evolution.SAVE_SECONDS = 0.0
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "jobs"), [(signal.SIGINT, "1"), (signal.SIGINT, "2"), (signal.SIGKILL, "1")]
)
def test_a_process_that_is_stopped_can_go_on(data, tmp_path, number, jobs, capsys):
    command = [sys.executable, "-c", SEARCH, "fit", data, "--target", "D", *TINY, "--out", "run"]
    process = subprocess.Popen(
        [*command, "--generations", "100000", "--jobs", jobs],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A terminal sends Ctrl-C to all processes of a group.
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "run" / CHECKPOINT).exists() and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.1)
        os.killpg(process.pid, number)
        error = process.communicate(timeout=120)[1]
    finally:
        process.kill()
        process.wait()
    if number == signal.SIGINT:
        assert process.returncode == 130
        # The last line: that a search without --time takes as long as it takes was said before it.
        assert error.splitlines()[-1] == "pmsr: interrupted. Go on with: pmsr resume run"
        assert read_result(tmp_path / "run").stopped == "interrupted"
    done, _ = read_progress(tmp_path / "run" / CHECKPOINT)
    assert main(["resume", "run", "--generations", "2", "--json"]) == 0
    assert read_json(capsys.readouterr().out)["stopped"] == "generations"
    assert read_result(tmp_path / "run").history[-1]["generation"] == done + 2


def test_predictions_are_those_of_the_result(run, tmp_path, capsys):
    grid = pd.DataFrame({"other": ["a", "b"], "H": [350.0, 900.0]})
    grid.to_csv("new.csv", index=False)
    assert main(["predict", str(run), "new.csv", "--level", "0.9"]) == 0
    printed = capsys.readouterr()
    (tmp_path / "out.csv").write_text(printed.out)
    found = pd.read_csv("out.csv", float_precision=None)
    expected = read_result(run).predict_table(grid[["H"]], level=0.9)
    assert list(found.columns) == ["H", *expected.columns]
    np.testing.assert_allclose(found.iloc[:, 1:], expected, rtol=1e-14)
    assert printed.err == ""
    assert main(["predict", str(run), "new.csv", "--average", "--out", "average.csv"]) == 0
    average = pd.read_csv("average.csv")
    expected = read_result(run).predict_table(grid[["H"]], average=True)
    np.testing.assert_allclose(average.iloc[:, 1:], expected, rtol=1e-14)
    assert capsys.readouterr().out == ""


def test_predictions_outside_the_data_are_warned_of(run, capsys):
    pd.DataFrame({"H": [5000.0]}).to_csv("new.csv", index=False)
    assert main(["predict", str(run), "new.csv", "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("pmsr: warning: 1 of 1 rows lie outside the data")
    found = read_json(printed.out)
    assert found["predictions"][0]["H"] == 5000.0 and len(found["warnings"]) == 1
    assert main(["predict", str(run), "new.csv", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_warnings_about_predictions_count_rows_as_the_file_does(tmp_path, capsys):
    X, y = load_galileo("shelf")
    X.assign(D=y).to_csv("t.csv", index=False)
    assert main(["compare", "t.csv", "c0*sqrt(H)", "--target", "D", "--out", "laws"]) == 0
    (tmp_path / "new.csv").write_text("H\n500\n\n-500\n")
    capsys.readouterr()
    assert main(["predict", "laws", "new.csv"]) == 0
    warning = capsys.readouterr().err.splitlines()[-1]
    assert "in 1 of 2 rows; row 4 is worst" in warning and "counted" not in warning


def test_a_name_that_is_a_formula_is_one_in_no_file_that_is_written(tmp_path, capsys):
    name = "=cmd|' /C calc'!A0"
    SHELF[0].rename(columns={"H": name}).assign(D=SHELF[1]).to_csv("t.csv", index=False)
    laws = [f"`{name}`*c0", f"-`{name}`*c0"]
    options = ["--target", "D", "--out", "c", "--quiet"]
    assert main(["compare", "t.csv", *options, "--", *laws]) == 0
    assert main(["predict", "c", "t.csv"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"'{name},mean,")
    files = [printed, *(path.read_text() for path in (tmp_path / "c").glob("*.csv"))]
    cells = [cell for text in files for row in csv.reader(text.splitlines()) for cell in row]
    assert len(files) == 3 and f"'-`{name}`*c0" in cells
    assert not [cell for cell in cells if cell[:1] in tuple("=+@") or cell.startswith("-`")]
    # What was written can be read: the name is the user's again.
    (tmp_path / "p.csv").write_text(printed)
    assert main(["predict", "c", "p.csv", "--quiet"]) == 0


def test_a_full_disk_is_an_error_of_one_line_after_which_resume_goes_on(
    data, tmp_path, capsys, full_disk
):
    options = ["--generations", "2", "--out", "new", "--quiet", "--no-report"]
    with full_disk("arrays-"):
        assert main(["fit", data, "--target", "D", *TINY, *options]) == 1
    error = capsys.readouterr().err
    assert error.startswith("pmsr: new/arrays-") and error.count("\n") == 1
    assert "No space left on device. Make room there" in error
    assert error.endswith("Then go on with: pmsr resume new\n")
    assert not list(Path("new").glob("*.part"))
    Path(f"new/{CHECKPOINT}.77.part").write_bytes(b"PK")
    assert main(["resume", "new", "--quiet", "--no-report"]) == 0
    assert not list(Path("new").glob("*.part")) and read_result(Path("new")).best


def test_a_variable_may_be_called_like_a_column_of_the_predictions(tmp_path, capsys):
    SHELF[0].rename(columns={"H": "mean"}).assign(D=SHELF[1]).to_csv("t.csv", index=False)
    assert main(["compare", "t.csv", "--target", "D", "c0*mean", "--out", "c", "--quiet"]) == 0
    assert main(["predict", "c", "t.csv"]) == 0
    assert capsys.readouterr().out.startswith("mean,mean_,std,map,")


@pytest.mark.parametrize(
    ("text", "words"),
    [("h\n1\n", "no column 'H'. Did you mean 'h'?"), ("H\nx\n", "column 'H' holds text")],
)
def test_new_data_that_do_not_fit_are_an_error_of_one_line(run, tmp_path, text, words, capsys):
    (tmp_path / "new.csv").write_text(text)
    assert main(["predict", str(run), "new.csv"]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("pmsr: new.csv: ") and words in printed.err
    assert printed.err.count("\n") == 1 and printed.out == ""


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('executed')",))


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("predict", HEADER),
        ("predict", "arrays"),
        ("resume", SETTINGS),
        ("resume", DATA),
        ("resume", CHECKPOINT),
    ],
)
@pytest.mark.parametrize(
    "contents",
    [b"", b"\xff\xfe", b"[" * 100_000, pickle.dumps(Bomb()), b'{"kind": "pmsr run", "format": 1}'],
    ids=["empty", "binary", "nested", "pickle", "bare"],
)
def test_a_broken_or_hostile_folder_is_refused_in_one_line(
    run, data, command, name, contents, capsys
):
    path = next(run.glob("arrays-*.npz")) if name == "arrays" else run / name
    path.write_bytes(contents)
    before = {file.name: file.read_bytes() for file in run.iterdir() if file.name != LOG}
    assert main([command, str(run), *([data] if command == "predict" else [])]) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert printed.err.startswith(f"pmsr: {run}")
    after = {file.name: file.read_bytes() for file in run.iterdir() if file.name != LOG}
    after.pop(SETTINGS), before.pop(SETTINGS)
    assert after == before


def test_a_checkpoint_of_another_run_is_refused(run, data, tmp_path, capsys):
    options = ["--generations", "1", "--seed", "5", "--out", "other", "--quiet"]
    assert main(["fit", data, "--target", "D", *TINY, *options]) == 0
    shutil.copy(tmp_path / "other" / CHECKPOINT, run / CHECKPOINT)
    assert main(["resume", str(run)]) == 1
    assert "belongs to other data, options or seed" in capsys.readouterr().err


def test_what_is_no_run_is_refused(tmp_path, data, capsys):
    for command in (["predict", ".", data], ["resume", "."], ["resume", "nowhere"]):
        assert main(command) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and "is not a" in error


LAWS = ["c0*sqrt(H)", "c0 + c1*H", "log(-H)"]


def test_equations_are_compared(data, tmp_path, capsys):
    assert main(["compare", data, "--target", "D", *LAWS, "--out", "laws"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert printed.err == "" and lines[0].strip() == "5 observations of D"
    assert [line for line in lines if line.startswith(">  c0*sqrt(H) ")]
    assert [line for line in lines if line.startswith("   log(-H) ") and "failed" in line]
    assert "Report:  laws/report.html" in lines and not any("resume" in line for line in lines)
    assert main(["predict", "laws", data]) == 0
    assert capsys.readouterr().out.count("\n") == 6
    assert main(["resume", "laws"]) == 1
    assert "is a comparison: there is no search" in capsys.readouterr().err


def test_a_comparison_prints_json(data, tmp_path, capsys):
    assert main(["compare", data, "--target", "D", *LAWS, "--json", "--seed", "1"]) == 0
    found = read_json(capsys.readouterr().out)
    expected = pmsr.weigh_equations(LAWS, *SHELF, random_seed=1)
    assert [row["equation"] for row in found["equations"]] == list(expected.table["equation"])
    assert found["equations"][0]["log_q"] == expected.table["log_q"].iloc[0]
    assert found["equations"][2]["log_q"] is None and found["out"] is None
    assert list(tmp_path.iterdir()) == []


def test_a_comparison_in_which_all_fail_is_an_error(data, capsys):
    for options in ([], ["--json"]):
        assert main(["compare", data, "--target", "D", "log(-H)", *options]) == 1
    assert "No equation could be weighed" in capsys.readouterr().out


def test_a_wrong_equation_is_pointed_at(data, capsys):
    assert main(["compare", data, "--target", "D", "c0*(H"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("pmsr: ") and error.endswith('(at the end of "c0*(H")\n')


@pytest.mark.slow
def test_the_demo_finds_galileos_law_and_may_be_repeated(tmp_path, capsys):
    for _ in range(2):
        assert main(["demo"]) == 0
        printed = capsys.readouterr()
        # Its probability stands between.
        _, numbers = printed.out.split("\nD = c0*sqrt(H)\n")
        assert "\n    c0 = 47." in numbers and printed.err == ""
    assert FILES <= {path.name for path in (tmp_path / "pmsr-demo").iterdir()}


@pytest.mark.parametrize(
    ("other", "words"),
    [("c0 + c1*H", "about which law is right"), ("c0", "of the one law that is")],
)
def test_the_information_of_a_measurement_is_about_laws_or_about_the_one_that_is_left(
    other, words, data, capsys
):
    assert main(["compare", data, "c0*sqrt(H)", other, "--target", "D", "--out", "laws"]) == 0
    capsys.readouterr()
    assert main(["suggest", "laws"]) == 0
    assert words in " ".join(capsys.readouterr().out.split())


def test_a_run_says_where_to_measure_next(run, capsys):
    assert main(["suggest", str(run)]) == 0
    printed = capsys.readouterr()
    assert "information  disagreement  scatter" in printed.out and printed.err == ""
    assert main(["suggest", str(run), "-n", "2", "--bounds", "H", "0", "2000", "--json"]) == 0
    told = read_json(capsys.readouterr().out)
    assert told["target"] == "D" and len(told["suggestions"]) == 2
    assert all(0.0 <= one["H"] <= 2000.0 for one in told["suggestions"])


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (["T", "0", "1"], "bounds name 'T', which is not a variable. Variables: H"),
        (["H", "9", "1"], "bounds of 'H' must be two rising numbers, got 9 and 1."),
    ],
)
def test_bounds_that_are_none_are_an_error_of_one_line(run, bounds, words, capsys):
    assert main(["suggest", str(run), "--bounds", *bounds]) == 1
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_priors_over_laws_are_chosen_and_kept_by_a_run(data, tmp_path, capsys):
    command = ["fit", data, "--target", "D", *TINY, "--generations", "2", "--out", "a"]
    assert main([*command, "--law-prior", "uniform", "--interval", "H", "--json"]) == 0
    told = read_json(capsys.readouterr().out)
    assert all(one["log_prior"] == 0.0 for one in told["equations"])
    settings = json.loads((tmp_path / "a" / SETTINGS).read_text())["parameters"]
    assert settings["law_prior"] == "uniform" and settings["interval"] == ["H"]
    assert main(["resume", "a", "--generations", "1", "--json"]) == 0
    assert read_json(capsys.readouterr().out)["coverage"]["is_settled"] is True
    # A run of an earlier version says nothing of it.
    whole = json.loads((tmp_path / "a" / SETTINGS).read_text())
    del whole["parameters"]["law_prior"], whole["parameters"]["interval"]
    (tmp_path / "a" / SETTINGS).write_text(json.dumps(whole))
    assert read_run(tmp_path / "a").parameters["law_prior"] == "uniform"
    assert main(["fit", data, "--target", "D", "--interval", "t", "--out", "b"]) == 1
    assert "--interval names 't', which is not a column" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()


def test_a_search_that_had_not_settled_says_so_beside_every_probability(run, capsys):
    result = read_result(run)
    unsettled = dataclasses.replace(
        result, coverage=dataclasses.replace(result.coverage, is_settled=False)
    )
    arguments = argparse.Namespace(json=False, quiet=False, no_report=True)
    commands._tell(unsettled, run, arguments)
    shown = capsys.readouterr().out
    assert "(the search had not settled)" in shown and "prob. (not settled)" in shown
    assert "Go on:   pmsr resume" in shown
    commands._tell(result, run, arguments)
    assert "settled" not in capsys.readouterr().out


def test_units_are_read_shown_and_kept(data, tmp_path, capsys):
    command = ["fit", data, "--target", "D", *TINY, "--generations", "2", "--out", "a"]
    assert main([*command, "--units", "H=mm", "D=mm", "--no-report"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"sigma = .* mm  \(noise in D\)", shown)
    units = {"H": "mm", "D": "mm"}
    assert json.loads((tmp_path / "a" / SETTINGS).read_text())["parameters"]["units"] == units
    assert main(["resume", "a", "--generations", "1", "--json", "--no-report"]) == 0
    told = read_json(capsys.readouterr().out)
    assert told["units"] == units and told["estimates"]["sigma"]["unit"] == "mm"
    # A run of an earlier version knows of none.
    whole = json.loads((tmp_path / "a" / SETTINGS).read_text())
    del whole["parameters"]["units"]
    (tmp_path / "a" / SETTINGS).write_text(json.dumps(whole))
    assert read_run(tmp_path / "a").parameters["units"] is None


def test_relative_noise_has_no_unit_and_groups_have_theirs(capsys):
    rows = "".join(
        f"{g},{x},{s * x + 0.01 * x * (-1) ** x}\n"
        for g, s in (("a", 2), ("b", 3))
        for x in range(1, 7)
    )
    Path("t.csv").write_text(f"run,x,y\n{rows}")
    command = ["compare", "t.csv", "c0*x", "--target", "y", "--units", "x=s", "y=mm"]
    assert (
        main([*command, "--group-column", "run", "--noise", "proportional", "--out", "laws"]) == 0
    )
    shown = capsys.readouterr().out
    assert re.search(r"c0\[a\] = [12]\.\d+ ± 0\.\d+ mm/s$", shown, re.M)
    assert re.search(r"sigma\[b\] = 0\.00\d+ ± 0\.00\d+  \(relative noise in y\)$", shown, re.M)
    # Where to measure next is not known for several groups.
    assert "Predict:" in shown and "Measure:" not in shown


def test_units_in_names_are_written_down(tmp_path, capsys):
    table = SHELF[0].assign(D=SHELF[1]).set_axis(["H [mm]", "D (cm)"], axis=1)
    table.to_csv("named.csv", index=False)
    command = ["fit", "named.csv", "--target", "D (cm)", *TINY, "--generations", "1"]
    assert main([*command, "--units", "auto", "--out", "a", "--json", "--no-report"]) == 0
    assert read_json(capsys.readouterr().out)["units"] == {"H [mm]": "mm", "D (cm)": "cm"}
    assert read_run(tmp_path / "a").parameters["units"] == {"H [mm]": "mm", "D (cm)": "cm"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["H=mm"], "No unit for 'D' in --units. Add 'D=1' for a pure number"),
        (["H=mm", "D=foo"], "'foo', the unit of 'D', is not a unit"),
        (["H=mm", "D=mm", "D=cm"], "'D' has two units"),
        (["H=mm", "D=mm", "Q=s"], "units names 'Q'"),
        (["auto"], "No unit stands in the names H, D"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_units_that_are_none_are_refused_before_anything_is_written(
    data, words, message, command, tmp_path, capsys
):
    arguments = [command, data, *(["c0*H"] if command == "compare" else []), "--target", "D"]
    assert main([*arguments, "--out", "b", "--units", *words]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "b").exists()


def test_a_guess_that_contradicts_units_is_refused(data, tmp_path, capsys):
    guess = ["--units", "H=mm", "D=s", "--guess", "c0 + H"]
    assert main(["fit", data, "--target", "D", "--out", "b", *guess]) == 1
    assert "The guess 'c0 + H' does not survive a change of units" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()


def test_a_comparison_knows_units_and_arbitrary_zeros(data, capsys):
    command = ["compare", data, "--target", "D", "c0*sqrt(H)", "c0 + H", "--json"]
    assert main([*command, "--units", "H=mm", "D=s", "--interval", "H"]) == 0
    told = read_json(capsys.readouterr().out)
    assert told["estimates"]["c0"]["unit"] == "s/mm**(1/2)"
    assert told["equations"][1]["probability"] == 0.0
    assert told["coincidences"] == ["depends on where H is zero"]


def write_noisy(path, n=12):
    rng = np.random.default_rng(4)
    x = np.linspace(1.0, 4.0, n)
    errors = 0.05 * x
    table = {"x": x, "s": errors, "n": 2.0, "y": 2.0 * x + errors * rng.standard_normal(n)}
    pd.DataFrame(table).to_csv(path, index=False)


def test_errors_and_weights_are_columns_that_a_run_keeps(tmp_path, capsys):
    write_noisy("t.csv")
    known = ["--error-column", "s", "--weight-column", "n"]
    command = ["fit", "t.csv", "--target", "y", *known, *TINY, "--generations", "1", "--out", "a"]
    assert main([*command, "--json", "--no-report"]) == 0
    told = read_json(capsys.readouterr().out)
    assert told["variables"] == ["x"] and "sigma" not in told["estimates"]
    run = read_run(tmp_path / "a")
    assert (run.columns.error, run.columns.weight) == ("s", "n")
    assert main(["resume", "a", "--generations", "1", "--quiet", "--no-report"]) == 0
    result = read_result(tmp_path / "a")
    table = pd.read_csv("t.csv")
    np.testing.assert_array_equal(result.data.y_err, table["s"])
    np.testing.assert_array_equal(result.data.counts, table["n"])
    assert main(["show", "a", "--json"]) == 0
    assert read_json(capsys.readouterr().out)["report"] is None
    assert main(["report", "a"]) == 0
    assert capsys.readouterr().out == "a/report.html\n" and Path("a/report.html").is_file()
    pd.DataFrame({"x": [2.0]}).to_csv("new.csv", index=False)
    assert main(["predict", "a", "new.csv"]) == 0


def test_a_choice_of_noise_that_takes_long_leaves_time_for_the_search(monkeypatch, capsys):
    left = []

    def choose(regressor, data):
        time.sleep(1.1)  # all there is; where code is compiled, it is
        regressor.noise_table_ = pd.DataFrame()
        return {"noise": "student", "guesses": (), "max_time": 60.0}

    def search(regressor, data):
        left.append(time_left())
        raise KeyboardInterrupt

    monkeypatch.setattr(BayesianSymbolicRegressor, "settle_noise", choose)
    monkeypatch.setattr(BayesianSymbolicRegressor, "fit_data", search)
    path = write_shelf("t.csv")
    assert main(["fit", path, "--target", "D", "--noise", "auto", "--time", "1s"]) == 130
    assert 25.0 < left[0] <= 30.0


def test_a_comparison_knows_errors_and_noise(capsys):
    write_noisy("t.csv")
    laws = ["c0*x", "a*x + b", "--parameters", "a", "b", "--target", "y", "--json"]
    assert main(["compare", "t.csv", *laws, "--error-column", "s", "--features", "x"]) == 0
    known = read_json(capsys.readouterr().out)
    assert list(known["estimates"]) == ["c0"] and known["noise"] == "known"
    assert main(["compare", "t.csv", *laws, "--noise", "student", "--features", "x"]) == 0
    assert read_json(capsys.readouterr().out)["noise"] == "student"
    assert main(["compare", "t.csv", *laws, "--extra-noise"]) == 1
    assert "--error-column" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("equations", "words"),
    [
        (["a*H + c0"], "a is no column: these are H. Parameters are written c0, c1, ..., or named"),
        (["a*H + b"], "--parameters a b\n"),
        (["Hh*c0"], "Hh is no column: these are H. Did you mean 'H'?"),
        (["h*c0"], "h is no column: these are H. Did you mean 'H'?"),
        (["c0", "c0"], "listed twice. Leave one out.\n"),
        (["other.csv", "c0*H"], "other.csv is no equation. One file at a time"),
    ],
)
def test_what_is_no_column_in_an_equation_has_a_way_out(data, equations, words, capsys):
    assert main(["compare", data, *equations, "--target", "D"]) == 1
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_a_file_behind_an_equation_is_put_in_front_of_it(data, capsys):
    assert main(["compare", "c0*H", data, "--target", "D"]) == 1
    assert "The file comes first: " in capsys.readouterr().err


def test_a_comparison_does_not_mind_columns_that_no_equation_names(tmp_path, capsys):
    """Of a file from a laboratory: an index, remarks, gaps, and one column that is there twice."""
    X, y = SHELF
    text = ",H,remark,t,twice,twice,D\n" + "".join(
        f"{k},{h},run {k},,{k},{k},{d}\n" for k, (h, d) in enumerate(zip(X["H"], y, strict=True))
    )
    (tmp_path / "t.csv").write_text(text)
    options = ["c0*sqrt(H)", "--target", "D", "--json", "--out", "laws"]
    assert main(["compare", "t.csv", *options, "--drop-missing"]) == 0
    found = read_json(capsys.readouterr().out)
    assert found["variables"] == ["H"] and found["observations"] == len(y)
    (tmp_path / "new.csv").write_text("H\n500\n")
    assert main(["predict", "laws", "new.csv"]) == 0
    capsys.readouterr()
    for law, words in (("c0*remark", "column 'remark' holds text"), ("c0*t", "no value in rows")):
        assert main(["compare", "t.csv", law, "--target", "D"]) == 1
        assert words in capsys.readouterr().err


def test_a_column_with_a_unit_in_its_name_is_told_as_an_equation_has_it(capsys):
    SHELF[0].rename(columns={"H": "H [mm]"}).assign(D=SHELF[1]).to_csv("t.csv", index=False)
    assert main(["compare", "t.csv", "c0*H", "--target", "D"]) == 1
    assert (
        "H is no column: these are `H [mm]`. Did you mean `H [mm]`? The equation then stands in "
        "single quotes. Parameters" in capsys.readouterr().err
    )


def test_the_default_operators_suit_the_data_and_the_time_is_announced(data, capsys, monkeypatch):
    seen = {}

    def search(path, run, regressor, data, arguments):
        seen.update(run.parameters)
        return 0

    monkeypatch.setattr(commands, "_search", search)
    assert main(["fit", data, "--target", "D"]) == 0
    assert seen["operators"] == ["+", "-", "*", "/", "sqrt", "exp", "log"]
    error = capsys.readouterr().err
    assert error.startswith("pmsr: searching for 2 minutes") and "Ctrl-C" in error
    assert main(["fit", data, "--target", "D", "--force", "--time", "9s"]) == 0
    assert main(["fit", data, "--target", "D", "--force", "--quiet"]) == 0
    assert main(["fit", data, "--target", "D", "--force", "--operators", "trig"]) == 0
    assert seen["operators"] == ["+", "-", "*", "/", "sin", "cos", "tan"]
    assert capsys.readouterr().err.count("searching") == 1
    assert main(["fit", data, "--target", "D", "--force", "--generations", "9"]) == 0
    assert "searching for 9 generations, whatever time that takes" in capsys.readouterr().err


def test_rows_without_a_value_are_left_out_and_counted(tmp_path, capsys):
    text = "# ramp\nH;D;note\n1.000;1500;a\n828;1340,0;b\n800;;c\n600;1172;d\n300,0;800;e\n"
    (tmp_path / "t.csv").write_text(text)
    command = ["compare", "t.csv", "c0*sqrt(H)", "--target", "D", "--features", "H"]
    assert main(command) == 1
    assert "target 'D' has no value in row 5" in capsys.readouterr().err
    assert main([*command, "--drop-missing", "--out", "c"]) == 0
    printed = capsys.readouterr()
    assert "1 of 5 rows was dropped, because a value is missing: row 5." in printed.err
    assert "1.000 is 1000.0" in printed.err and "4 observations of D" in printed.out
    run = read_run(tmp_path / "c")
    assert len(run.notes) == 2 and "was dropped" in (tmp_path / "c" / LOG).read_text()
    assert "was dropped" in (tmp_path / "c" / "report.html").read_text()
    (tmp_path / "new.csv").write_text("H\n900\nNA\n")
    assert main(["predict", "c", "new.csv"]) == 1
    assert main(["predict", "c", "new.csv", "--drop-missing", "--json"]) == 0
    captured = capsys.readouterr()
    assert len(read_json(captured.out)["predictions"]) == 1


def write_groups(path):
    x = np.tile([1.0, 2.0, 3.0, 4.0], 2)
    noise = 0.05 * np.array([1.0, -1.0, 0.5, -0.5, -1.0, 1.0, 0.5, -0.5])
    table = {"x": x, "run": np.repeat([1, 2], 4), "y": np.repeat([2.0, 3.0], 4) * x + noise}
    pd.DataFrame(table).to_csv(path, index=False)


def test_several_experiments_are_compared_kept_and_predicted(capsys):
    write_groups("t.csv")
    command = ["compare", "t.csv", "c0*x", "c0", "--target", "y", "--group-column", "run"]
    assert main([*command, "--out", "c"]) == 0
    printed = capsys.readouterr().out
    assert "    c0[1] = " in printed and "    c0[2] = " in printed
    assert main([*command, "--json"]) == 0
    told = read_json(capsys.readouterr().out)["estimates"]
    for label, rows in pd.read_csv("t.csv").groupby("run"):
        closed = np.dot(rows["x"], rows["y"]) / np.dot(rows["x"], rows["x"])
        assert told[f"c0[{label}]"]["best_fit"] == pytest.approx(closed, rel=1e-6)
    assert [line for line in printed.splitlines() if line.startswith("   c0 ")]
    (Path("new.csv")).write_text("x,run\n2,2\n2,1\n")
    assert main(["predict", "c", "new.csv", "--json"]) == 0
    rows = read_json(capsys.readouterr().out)["predictions"]
    assert [row["run"] for row in rows] == ["2", "1"]
    assert rows[0]["map"] == pytest.approx(6.0, abs=0.1)
    assert rows[1]["map"] == pytest.approx(4.0, abs=0.1)
    (Path("new.csv")).write_text("x,run\n2,3\n")
    assert main(["predict", "c", "new.csv"]) == 1
    assert "3" in capsys.readouterr().err


def test_constants_are_names_that_a_run_keeps(tmp_path, capsys):
    t = np.linspace(0.5, 2.0, 8)
    noise = 0.01 * np.array([1, -1, 0.5, -0.5, -1, 1, 0.5, -0.5])
    pd.DataFrame({"t": t, "s": 0.5 * 9.81 * t**2 + noise}).to_csv("t.csv", index=False)
    known = ["--constant", "g=9.81", "--constant", "k=2.0±0.1"]
    command = ["fit", "t.csv", "--target", "s", *known, "--guess", "c0*g*t**2", *TINY]
    assert main([*command, "--generations", "1", "--out", "a", "--quiet", "--no-report"]) == 0
    run = read_run(tmp_path / "a")
    assert run.constants == {"g": 9.81, "k": (2.0, 0.1)} and run.columns.features == ("t",)
    assert main(["resume", "a", "--generations", "1", "--quiet", "--no-report"]) == 0
    assert read_result(tmp_path / "a").data.measured == ("t",)
    (tmp_path / "new.csv").write_text("t\n1.5\n")
    assert main(["predict", "a", "new.csv", "--json"]) == 0
    [row] = read_json(capsys.readouterr().out)["predictions"]
    assert row["map"] == pytest.approx(0.5 * 9.81 * 1.5**2, abs=0.1)
    assert main([*command, "--constant", "t=3", "--out", "b"]) == 1
    assert "The constant 't' has the name of a column" in capsys.readouterr().err


def test_errors_of_variables_change_a_comparison(capsys):
    write_noisy("t.csv")
    command = ["compare", "t.csv", "c0*x", "--target", "y", "--json"]
    assert main([*command, "--features", "x"]) == 0
    exact = read_json(capsys.readouterr().out)["equations"][0]["log_q"]
    assert main([*command, "--x-error-columns", "x=s", "--features", "x"]) == 0
    assert read_json(capsys.readouterr().out)["equations"][0]["log_q"] != exact
    assert main([*command, "--x-error-columns", "z=s"]) == 1
    assert "--x-error-columns names 'z', which is not a variable" in capsys.readouterr().err
