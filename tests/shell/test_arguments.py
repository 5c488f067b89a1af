import os
import subprocess
import sys

import pytest

from pmsr.equation.operator_sets import ALL, SETS
from pmsr.equation.operators import OPERATORS
from pmsr.evidence.noise import NOISES
from pmsr.shell import arguments
from pmsr.shell.arguments import _COMMANDS, _KNOWN_AS, Parser, make_parser, parse
from pmsr.shell.cli import main


def own_options(command):
    choices = make_parser()._subparsers._group_actions[0].choices
    return set(choices[command]._option_string_actions)


@pytest.mark.parametrize("command", _COMMANDS)
def test_every_command_has_examples_and_fits_a_terminal(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert "examples:" in printed
    assert ("Exit codes:" in printed) is (command != "completion")


def test_what_the_help_tells_is_what_there_is(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["fit", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    for name, members in SETS.items():
        assert f"{name} {' '.join(members)}" in printed
    assert f"{ALL} every one" in printed
    assert " ".join(OPERATORS) in printed.replace("'*'", "*")
    assert tuple(NOISES) == arguments.NOISES


def test_options_that_others_call_otherwise_are_options():
    assert set(_KNOWN_AS.values()) - own_options("fit") <= {"--group-column", "--drop-missing"}
    assert not set(_KNOWN_AS) & own_options("fit")


FIT = ["fit", "t.csv", "--target", "D"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*FIT, "--fratures", "H"], "unknown option --fratures"),
        ([*FIT, "--fratures", "H"], "did you mean --features?"),
        ([*FIT, "--niterations=5"], "did you mean --generations?"),
        ([*FIT, "--qqq"], "unknown option --qqq\n"),
        (["fit", "t.csv", "--traget", "D"], "required: --target. There is no --traget: did you"),
        (["fti"], "invalid choice: 'fti'. Did you mean 'fit'?"),
        ([*FIT, "--noise", "gausian"], "Did you mean 'gaussian'?"),
        ([*FIT, "--noise", "qqq"], "Available: auto, gaussian, student"),
        (["fit", "a.csv", "b.csv", "--target", "D"], "one file at a time, got a.csv and b.csv"),
        (["fit", "a.csv", "--target", "D", "b.csv"], "say --group-column"),
        (["show", "run", "more"], "unexpected argument 'more'"),
        (["compare", "t.csv", "--target", "D"], "Write them after the file"),
        (["compare", "t.csv", "c0", "--target", "D", "--noise", "auto"], "invalid choice: 'auto'"),
        ([*FIT, "--noise", "normal"], "Did you mean 'gaussian'?"),
        ([*FIT, "--time", "1h30"], "must be a time such as 90s, 10m or 1h30m, got '1h30'"),
        ([*FIT, "--jobs", "0"], "must be a whole number, 1 or larger, or -1 for one per core"),
        ([*FIT, "--jobs", "two"], "got 'two'"),
        ([*FIT, "--constant", "g=1_000"], "must be NAME=VALUE"),
        ([*FIT, "--constant", "g=9.81", "k=2"], "Say --constant once for each"),
        ([*FIT, "--shared-sigma"], "--shared-sigma goes with --group-column"),
        ([*FIT, "--guess", "-c0*H"], "stands in brackets, '(-c0*H)'"),
        (["compare", "t.csv", "-c0*H", "--target", "D"], "stands in brackets, '(-c0*H)'"),
        (["compare", "t.csv", "c0", "-c0*H", "--target", "D"], "stands in brackets, '(-c0*H)'"),
        (["fit", "t.csv", "--target", "-D"], "joined to its option, --target='-D'"),
    ],
)
def test_what_is_misspelt_is_said_to_be(words, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        parse(words)
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 2


def test_options_may_be_shortened_and_values_may_be_long():
    found = parse([*FIT, "--feat", "drop height [m]", "t", "--time", "1h"])
    assert found.features == ["drop height [m]", "t"] and found.time == 3600.0
    assert isinstance(make_parser(), Parser)
    assert [parse([*FIT, "--time", text]).time for text in ("90", "1.5h", "1h1s")] == [
        90,
        5400,
        3601,
    ]
    assert parse([*FIT, "--target=-D", "--guess", "(-c0*H)"]).target == "-D"


def measure(code):
    """CPU seconds of a fresh Python, the least of five: others work on the machine too."""
    spent = []
    for _ in range(5):
        before = os.times()
        subprocess.run([sys.executable, *code], capture_output=True, check=True)
        after = os.times()
        spent.append(
            after.children_user
            - before.children_user
            + after.children_system
            - before.children_system
        )
    return min(spent)


def test_help_comes_in_less_than_a_third_of_a_second():
    assert measure(["-m", "pmsr", "--help"]) < 0.3


def test_importing_the_package_adds_nothing_to_importing_pymc():
    empty, own = measure(["-c", ""]), measure(["-c", "import pmsr"])
    assert own - empty < 0.3
