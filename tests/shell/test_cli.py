import os
import subprocess
import sys

import pytest

import pmsr
import pmsr.shell.commands
from pmsr import experiments
from pmsr.settings import LAW_PRIORS
from pmsr.shell.cli import main


def test_without_a_command_the_help_is_shown(capsys):
    assert main([]) == 2
    assert "demo" in capsys.readouterr().err


def test_the_experiments_are_those_of_the_package(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["reproduce", "--help"])
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*experiments.NAMES, "all"))


def test_an_experiment_is_repeated(monkeypatch, tmp_path, capsys):
    seen = {}

    def reproduce(name, out, **options):
        seen.update(name=name, out=out, **options)
        return [tmp_path / "page.html"]

    monkeypatch.setattr(experiments, "reproduce", reproduce)
    arguments = ["reproduce", "polynomials", "--quick", "--seeds", "2", "--jobs", "2"]
    assert main([*arguments, "--out", str(tmp_path), "--seed", "5"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "page.html")
    assert (seen["name"], seen["out"], seen["quick"]) == ("polynomials", tmp_path, True)
    assert (seen["n_seeds"], seen["n_jobs"], seen["random_seed"]) == (2, 2, 5)


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"pmsr {pmsr.__version__}\n"


@pytest.mark.parametrize("command", ["", "fit", "resume", "predict", "compare", "demo"])
def test_help_has_examples_and_fits_a_terminal(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"] if command else ["--help"])
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert command in ("resume", "demo") or "examples:" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--seed", "-1"], "must be a whole number, 0 or larger, got '-1'"),
        (["demo", "--seed", "one"], "must be a whole number, 0 or larger, got 'one'"),
        (["demon"], "invalid choice: 'demon'"),
        (["fit", "t.csv"], "the following arguments are required: --target"),
        (["fit", "t.csv", "--target", "D", "--time", "soon"], "must be a time such as 90s"),
        (["fit", "t.csv", "--target", "D", "--time", "0"], "must be a time such as 90s"),
        (["fit", "t.csv", "--target", "D", "--generations", "0"], "1 or larger, got '0'"),
        (["fit", "t.csv", "--target", "D", "--fitness", "beauty"], "invalid choice: 'beauty'"),
        (["compare", "t.csv", "--target", "D"], "required: EQUATION"),
        (["predict", "run", "t.csv", "--level", "95"], "must be between 0 and 1, got '95'"),
        (["completion", "cmd"], "invalid choice: 'cmd'"),
    ],
)
def test_wrong_arguments_end_with_two(arguments, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    printed = capsys.readouterr()
    assert message in printed.err and printed.out == ""


def test_a_folder_that_cannot_be_made_is_an_error_of_one_line(tmp_path, capsys):
    occupied = tmp_path / "file"
    occupied.write_text("")
    assert main(["demo", "--out", str(occupied)]) == 1
    assert capsys.readouterr().err.startswith(f"pmsr: {occupied} is a file.")
    assert main(["demo", "--out", str(occupied / "below")]) == 1
    assert capsys.readouterr().err == f"pmsr: {occupied / 'below'}: Not a directory\n"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "pmsr: interrupted\n"),
        (ValueError("first\nsecond"), 1, "pmsr: first second\n"),
        (PermissionError(13, "Permission denied", "x"), 1, "pmsr: x: Permission denied\n"),
        (KeyError("a"), 1, "pmsr: KeyError: 'a' (PMSR_DEBUG=1 shows where)\n"),
    ],
)
def test_every_error_ends_in_one_line_and_a_code(error, code, message, capsys, monkeypatch):
    def fail(arguments):
        raise error

    monkeypatch.setattr(pmsr.shell.commands, "demo", fail)
    monkeypatch.delenv("PMSR_DEBUG", raising=False)
    assert main(["demo"]) == code
    assert capsys.readouterr().err == message


def test_an_error_does_not_command_the_terminal(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\x1b]0;owned\x07\x1b[2J,b\n1,2\n")
    assert main(["fit", str(path), "--target", "D"]) == 1
    error = capsys.readouterr().err
    assert error.endswith("\n") and error[:-1].isprintable() and r"\x1b[2J" in error


def test_errors_of_the_program_can_be_looked_at(monkeypatch):
    def fail(arguments):
        raise KeyError("a")

    monkeypatch.setattr(pmsr.shell.commands, "demo", fail)
    monkeypatch.setenv("PMSR_DEBUG", "1")
    with pytest.raises(KeyError):
        main(["demo"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_shells_can_complete(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "max-complexity" in script and "resume" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_a_reader_that_leaves_early_is_no_error():
    code = "import sys; from pmsr.shell.cli import main; sys.exit(main(['completion', 'bash']))"
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{code}" | head -1; exit ${{PIPESTATUS[0]}}'],
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert done.stderr == "" and done.returncode in (0, 1)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_error(closed):
    code = "import sys; from pmsr.shell.cli import main; sys.exit(main(['show', 'nowhere']))"
    line = f'"{sys.executable}" -c "{code}" {closed}'
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 1 and done.stdout == ""
    shown = "" if "2>" in closed else "pmsr: nowhere is not a saved result: it has no result.json."
    assert done.stderr.startswith(shown) and done.stderr.count("\n") == bool(shown)


def test_help_does_not_wait_for_pymc():
    code = (
        "import sys\n"
        "from pmsr.shell.cli import main\n"
        "try:\n"
        "    main(['fit', '--help'])\n"
        "except SystemExit:\n"
        "    print('pymc' in sys.modules, 'numpy' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True
    )
    assert done.stderr == "False False\n"
    assert "usage: pmsr" in done.stdout


def test_the_priors_over_laws_are_those_of_the_search(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    assert f"--law-prior {{{','.join(LAW_PRIORS)}}}" in capsys.readouterr().out
