import os
import subprocess
import sys

import pytest

import pmsr
import pmsr.ranking
from pmsr.cli import GALILEO, main


def test_the_demo_ranks_six_equations_and_draws_the_winner(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["demo", "--out", str(tmp_path / "new" / "folder")]) == 0
    figure = tmp_path / "new" / "folder" / "galileo_shelf.png"
    assert figure.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    ranked = [line.split("  ")[0] for line in lines if line.startswith("c0")]
    assert sorted(ranked) == sorted(GALILEO)
    assert ranked[0] == "c0*sqrt(H)"
    assert "best: D = c0*sqrt(H)\n" in printed.out
    [estimate] = [line for line in lines if line.startswith("    c0 = ")]
    # Least squares gives 47.09; the posterior's mean is within its error of 0.5 / sqrt(4000).
    assert estimate.startswith("    c0 = 47.")
    assert lines[-1] == f"Figure: {figure.resolve()}"
    assert printed.err == ""


def test_without_a_command_the_help_is_shown(capsys):
    assert main([]) == 2
    assert "demo" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"pmsr {pmsr.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--seed", "-1"], "must be a whole number, 0 or larger, got '-1'"),
        (["demo", "--seed", "one"], "must be a whole number, 0 or larger, got 'one'"),
        (["demon"], "invalid choice: 'demon'"),
    ],
)
def test_wrong_arguments_end_with_two(arguments, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_an_error_of_one_line(tmp_path, capsys):
    occupied = tmp_path / "file"
    occupied.write_text("")
    assert main(["demo", "--out", str(occupied)]) == 1
    assert capsys.readouterr().err == f"pmsr: {occupied}: File exists\n"


def test_an_interrupt_ends_with_130(tmp_path, capsys, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(pmsr.ranking, "compare", interrupt)
    assert main(["demo", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "pmsr: interrupted\n"


def test_help_does_not_wait_for_pymc():
    code = (
        "import sys\n"
        "from pmsr.cli import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit:\n"
        "    print('pymc' in sys.modules, 'sympy' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True
    )
    assert done.stderr == "False False\n"
    assert "usage: pmsr" in done.stdout
