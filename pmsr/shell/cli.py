"""The ``pmsr`` command: its arguments, its exit codes, its errors of one line."""

import argparse
import math
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

import shtab

from pmsr import __version__, experiments

DEFAULT_TIME = 120.0  # seconds of a search, unless told otherwise
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}

_EXAMPLES = """\
examples:
  pmsr demo                             Galileo's law, from data to report
  pmsr fit data.csv --target D          search two minutes, then look at
                                        data-run/report.html
  pmsr resume data-run --time 10m       search ten minutes more
  pmsr predict data-run new.csv         predictions with intervals, as CSV
  pmsr suggest data-run                 where to measure next
  pmsr compare data.csv --target D "c0*sqrt(H)" "c0 + c1*H"

`pmsr COMMAND --help` tells more about each.
Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted with Ctrl-C."""

_FIT_EXAMPLES = """\
examples:
  pmsr fit data.csv --target D
  pmsr fit data.csv --target D --features H "fall time [s]" --time 10m
  pmsr fit data.csv --target D --operators + - '*' / sqrt exp
  pmsr fit data.csv --target D --guess "c0*sqrt(H)" --out run
  pmsr fit data.csv --target D --units H=mm D=mm
  pmsr fit data.csv --target "D [mm]" --units auto

Ctrl-C ends the search early and keeps what was found. The folder holds
report.html for people, equations.csv and posterior.nc (ArviZ) for programs,
and all that `pmsr resume` and `pmsr predict` need."""

_COMPARE_EXAMPLES = """\
examples:
  pmsr compare data.csv --target D "c0*sqrt(H)" "c0 + c1*H"
  pmsr compare data.csv --target D "c0*`drop height`**2" "c0" --out laws

c0, c1, ... are parameters to be fitted. Names with spaces or signs go in
backquotes, and the equation then in single quotes."""

_PREDICT_EXAMPLES = """\
examples:
  pmsr predict data-run new.csv > predictions.csv
  pmsr predict data-run new.csv --level 0.9 --average --out predictions.csv

Columns: the variables; mean and std of a new observation; map, the best fit;
the credible interval of the law; the prediction interval of an observation."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Parameters
    ----------
    argv
        Arguments after the program's name; by default those of the process.

    Returns
    -------
    int
        0; 1 after an error; 2 if there is nothing to do; 130 after Ctrl-C. Arguments that cannot
        be understood end the process with 2, argparse's way.
    """
    started = time.monotonic()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Where the encoding has no ±, a question mark is better than no table.
            stream.reconfigure(errors="replace")
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = make_parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return 2
    arguments.started = started
    arguments.command_line = shlex.join(["pmsr", *argv])
    try:
        with warnings.catch_warnings():
            # What libraries say to programmers; our own doubts are printed.
            warnings.simplefilter("ignore")
            if arguments.command == "completion":
                print(shtab.complete(parser, arguments.shell))
                return 0
            # PyMC takes seconds to import: --help and wrong arguments do not wait for it.
            with _loading():
                commands = import_module("pmsr.shell.commands")
            code = int(getattr(commands, arguments.command)(arguments))
            sys.stdout.flush()
            return code
    except KeyboardInterrupt as stop:
        return _fail(str(stop) or "interrupted", 130)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}")
    except ValueError as error:
        return _fail(str(error))
    except Exception as error:
        if os.environ.get("PMSR_DEBUG"):
            raise
        return _fail(f"{type(error).__name__}: {error} (PMSR_DEBUG=1 shows where)")


@contextmanager
def _loading() -> Iterator[None]:
    """Say on a terminal why nothing is to be seen for a moment."""
    if not sys.stderr.isatty():
        yield
        return
    print("loading PyMC ...", end="\r", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print("\x1b[2K", end="\r", file=sys.stderr, flush=True)


def _fail(message: str, code: int = 1) -> int:
    print(f"pmsr: {_printable(one_line(message))}", file=sys.stderr)
    return code


def _printable(text: str) -> str:
    r"""Write out signs that a terminal would obey: names come from files of others.

    Examples
    --------
    >>> _printable("no column \x1b[2J, τ")
    'no column \\x1b[2J, τ'
    """
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


def one_line(message: str) -> str:
    r"""Return an error in one line, also one that points at a place in an equation.

    Examples
    --------
    >>> one_line('Expected ")".\n    c0*(H\n         ^')
    'Expected ")". (at the end of "c0*(H")'
    >>> one_line("Unexpected symbol.\n    c0**\n       ^")
    'Unexpected symbol. (at "*" in "c0**")'
    """
    lines = message.splitlines()
    if len(lines) == 3 and lines[2].strip() == "^":
        place = lines[2].index("^")
        rest = lines[1][place:].strip()
        where = f'at "{rest[:12]}" in' if rest else "at the end of"
        return f'{lines[0]} ({where} "{lines[1].strip()}")'
    return " ".join(message.split())


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="pmsr",
        description="Find the law behind a table of measurements: equations in symbols, weighed\n"
        "by their Bayesian evidence, with the uncertainty of their parameters and\npredictions.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pmsr {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def add(name: str, purpose: str, epilog: str = "") -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=purpose,
            description=purpose[0].upper() + purpose[1:] + ".",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(command=name)
        return command

    fit = add("fit", "search a file of measurements for the law behind a column", _FIT_EXAMPLES)
    _add_data(fit)
    _add_search(fit)
    _add_out(fit, "NAME-run, after the file")
    resume = add("resume", "go on with a search that was interrupted, killed or came to its end")
    _add_folder(resume, "folder that `pmsr fit` made")
    _add_budget(resume, "how much longer to search, such as 90s, 10m or 1h30m", "how many more")
    predict = add("predict", "predict new observations with what was found", _PREDICT_EXAMPLES)
    _add_predict(predict)
    suggest = add("suggest", "say where to measure next, to tell the leading laws apart")
    _add_folder(suggest, "folder that `pmsr fit` or `pmsr compare` made")
    suggest.add_argument(
        "-n", type=_count, default=3, metavar="N", help="how many places (default: 3)"
    )
    suggest.add_argument(
        "--bounds",
        nargs=3,
        action="append",
        default=[],
        metavar=("COLUMN", "LOW", "HIGH"),
        help="where to look, once for each column (default: the range of the data)",
    )
    compare = add("compare", "weigh equations that you write, on your data", _COMPARE_EXAMPLES)
    _add_data(compare)
    compare.add_argument("equations", nargs="+", metavar="EQUATION", help="such as c0*sqrt(H)")
    _add_out(compare, "none, nothing is written")
    demo = add("demo", "find Galileo's law in his own measurements, from data to report")
    _add_out(demo, "pmsr-demo")
    demo.set_defaults(out=Path("pmsr-demo"))
    reproduce = add("reproduce", "repeat an experiment of the paper, or all of them")
    reproduce.add_argument(
        "name", choices=(*experiments.NAMES, "all"), help="of the experiment, or all of them"
    )
    reproduce.add_argument(
        "--quick", action="store_true", help="few repetitions and short searches: minutes"
    )
    reproduce.add_argument("--seeds", type=_count, metavar="N", help="number of repetitions")
    reproduce.add_argument(
        "--peer",
        metavar="PYTHON",
        help="a Python with bingo-nasa and smcpy, which evidence_accuracy then compares with",
    )
    _add_out(reproduce, "NAME-reproduced")
    for command in (fit, compare, demo, reproduce):
        command.add_argument(
            "--seed", type=_seed, default=0, metavar="N", help="of the random numbers (default: 0)"
        )
    for command in (fit, resume, demo, reproduce):
        command.add_argument(
            "--jobs",
            type=int,
            metavar="N",
            help="processes that work at the same time, -1 for one per core (default: 1)",
        )
    for command in (fit, compare):
        command.add_argument(
            "--force", action="store_true", help="replace an older run in the folder"
        )
    for command in (fit, resume, compare, demo):
        command.add_argument("--no-report", action="store_true", help="write no report.html")
    for command in (fit, resume, predict, suggest, compare, demo):
        command.add_argument(
            "--json", action="store_true", help="print JSON for machines, and nothing else"
        )
        command.add_argument("--quiet", action="store_true", help="print nothing but errors")
    completion = add("completion", "print a script that completes commands in a shell")
    completion.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)
    return parser


def _add_data(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument(
        "data", type=Path, metavar="FILE", help=".csv, .tsv, .parquet or .xlsx, names in row 1"
    )
    _complete(data, shtab.FILE)
    parser.add_argument("--target", required=True, metavar="COLUMN", help="what to explain")
    parser.add_argument(
        "--features",
        nargs="+",
        metavar="COLUMN",
        help="what may explain it (default: all other columns)",
    )
    parser.add_argument(
        "--interval",
        nargs="+",
        default=(),
        metavar="COLUMN",
        help="columns whose zero is arbitrary, such as a date or degrees Celsius",
    )
    parser.add_argument(
        "--units",
        nargs="+",
        type=_unit,
        metavar="COLUMN=UNIT",
        help="units of all columns and of the target, such as H=mm t=s; n=1 is a pure number, w=? "
        "not known; auto takes them from names such as 'T [K]'",
    )


def _add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--operators",
        nargs="+",
        metavar="OP",
        help="what equations are made of: + - '*' / pow sqrt exp log sin cos tan tanh abs "
        "(default: + - '*' /)",
    )
    _add_budget(
        parser,
        "how long to search, such as 90s, 10m, 1h30m or none for no limit (default: 2m, or no "
        "limit with --generations)",
        "most generations (default: 1000)",
    )
    for option, default, meaning in (
        ("--population", 120, "equations that evolve on each island, an even number"),
        ("--islands", 4, "populations that evolve on their own, and exchange their best"),
        ("--max-complexity", 64, "largest number of nodes of an equation"),
        ("--max-parameters", None, "largest number of parameters"),
    ):
        shown = "no limit" if default is None else default
        parser.add_argument(
            option, type=_count, default=default, metavar="N", help=f"{meaning} (default: {shown})"
        )
    parser.add_argument(
        "--fitness",
        choices=("evidence", "rmse"),
        default="evidence",
        help="evidence penalises what the data do not ask for; rmse is the conventional search "
        "(default: evidence)",
    )
    parser.add_argument(
        "--evidence",
        choices=("screened", "smc"),
        default="screened",
        help="screened weighs contenders only, smc every equation as in the paper "
        "(default: screened)",
    )
    parser.add_argument(
        "--law-prior",
        choices=("description", "uniform"),
        default="description",
        help="how probable laws are beforehand: the shorter the more, or all alike as in the paper "
        "(default: description)",
    )
    parser.add_argument(
        "--guess", nargs="+", action="extend", metavar="EQ", help="equations to start from"
    )


def _add_budget(parser: argparse.ArgumentParser, time: str, generations: str) -> None:
    parser.add_argument("--time", type=_duration, metavar="T", help=time)
    parser.add_argument("--generations", type=_count, metavar="N", help=generations)
    parser.set_defaults(default_time=DEFAULT_TIME)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    _add_folder(parser, "folder that `pmsr fit` or `pmsr compare` made")
    data = parser.add_argument("data", type=Path, metavar="FILE", help="with the same columns")
    _complete(data, shtab.FILE)
    parser.add_argument(
        "--level",
        type=_level,
        default=0.95,
        metavar="P",
        help="probability of the intervals (default: 0.95)",
    )
    parser.add_argument(
        "--average",
        action="store_true",
        help="average over all equations by their probability, not the chosen one alone",
    )
    out = parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write (default: standard output)"
    )
    _complete(out, shtab.FILE)


def _add_folder(parser: argparse.ArgumentParser, meaning: str) -> None:
    folder = parser.add_argument("run_folder", type=Path, metavar="RUN", help=meaning)
    _complete(folder, shtab.DIRECTORY)


def _add_out(parser: argparse.ArgumentParser, default: str) -> None:
    out = parser.add_argument(
        "--out", type=Path, metavar="DIR", help=f"folder for the results (default: {default})"
    )
    _complete(out, shtab.DIRECTORY)


def _complete(action: argparse.Action, how: object) -> None:
    """Tell shtab what completes an argument."""
    action.complete = how  # type: ignore[attr-defined]


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or larger, got {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or larger, got {text!r}")
    return int(text)


def _unit(text: str) -> str:
    if text != "auto" and "=" not in text:
        raise argparse.ArgumentTypeError(
            f"must be COLUMN=UNIT, such as H=mm, or auto, got {text!r}"
        )
    return text


def _level(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = math.nan
    if not 0.0 < level < 1.0:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, got {text!r}")
    return level


def _duration(text: str) -> float:
    """Return seconds; infinity for "none".

    Examples
    --------
    >>> _duration("90"), _duration("1h30m"), _duration("2.5s"), _duration("none")
    (90.0, 5400.0, 2.5, inf)
    """
    if text == "none":
        return math.inf
    parts = re.findall(r"(\d+(?:\.\d*)?|\.\d+)([hms]?)", text)
    seconds = sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or not seconds > 0.0:
        raise argparse.ArgumentTypeError(f"must be a time such as 90s, 10m or 1h30m, got {text!r}")
    return seconds
