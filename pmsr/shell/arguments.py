"""The arguments of the ``pmsr`` command: its commands, their options, their help."""

import argparse
import difflib
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pmsr import __version__, experiments

DEFAULT_TIME = 120.0  # seconds of a search, unless told otherwise
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}
SHELLS = ("bash", "zsh", "tcsh")  # that can be taught to complete

NOISES = ("gaussian", "student", "proportional", "lognormal", "poisson")

_ENDINGS = """\
Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted with Ctrl-C."""

_EXAMPLES = f"""\
examples:
  pmsr demo                             Galileo's law, from data to report
  pmsr fit data.csv --target D          search two minutes, then look at
                                        data-run/report.html
  pmsr show data-run                    the table again
  pmsr resume data-run --time 10m       search ten minutes more
  pmsr predict data-run new.csv         predictions with intervals, as CSV
  pmsr suggest data-run                 where to measure next
  pmsr compare data.csv "c0*sqrt(H)" "c0 + c1*H" --target D

`pmsr COMMAND --help` tells more about each.
{_ENDINGS}"""

_FIT = f"""\
examples:
  pmsr fit data.csv --target D
  pmsr fit data.csv --target D --features H "fall time [s]" --time 10m
  pmsr fit data.csv --target D --error-column "sigma D"
  pmsr fit data.csv --target D --noise auto
  pmsr fit data.csv --target D --group-column run
  pmsr fit data.csv --target D --constant g=9.81 --constant "k=2.5±0.1"
  pmsr fit data.csv --target D --operators common sin
  pmsr fit data.csv --target D --guess "c0*sqrt(H)" --out run
  pmsr fit data.csv --target D --units H=mm D=mm
  pmsr fit book.xlsx --sheet "Run 3" --target D --drop-missing

sets of operators:
  arithmetic   + - * /
  common       + - * / sqrt exp log
  trig         + - * / sin cos tan
  powers       + - * / sqrt pow
  all          every one
Without --operators it is common, but sqrt only if the target or a column is
nowhere negative, and log only if a column is positive. Integer powers come by
themselves. '*' stands in quotes, or the shell replaces it by names of files.

files:
  DIR/report.html      for people: the law, how sure it is, what speaks against
  DIR/equations.csv    every equation with its evidence
  DIR/posterior.nc     the posterior of the best one, for ArviZ
  DIR/settings.json, data.csv, checkpoint.npz, result.json, arrays-*.npz
                       what resume, show, report, predict and suggest need
  DIR/pmsr.log         what happened when

Ctrl-C ends the search early and keeps what was found; `pmsr resume` goes on.
{_ENDINGS}"""

_RESUME = f"""\
examples:
  pmsr resume data-run              the rest of its time; or, if it came to its
                                    end, the same again
  pmsr resume data-run --time 10m   ten minutes more

Data, options and seed are those of the run: a search that was interrupted
finds what it would have found. Ctrl-C keeps what was found.
{_ENDINGS}"""

_COMPARE = f"""\
examples:
  pmsr compare data.csv "c0*sqrt(H)" "c0 + c1*H" --target D
  pmsr compare data.csv 'c0*`drop height`**2' c0 --target D --out laws
  pmsr compare data.csv "a*H + b" --target D --parameters a b
  pmsr compare data.csv "c0*H" "c0*H**2" --target D --error-column "sigma D"

c0, c1, ... are parameters to be fitted; others are named after --parameters.
Names with spaces or signs go in backquotes, and the equation then in single
quotes. One that begins with a minus goes in brackets: '(-c0*H)'. With
--out DIR the folder holds what that of `pmsr fit` does, but for a search.
{_ENDINGS}"""

_PREDICT = f"""\
examples:
  pmsr predict data-run new.csv > predictions.csv
  pmsr predict data-run new.csv --level 0.9 --average --out predictions.csv

Columns: the variables; mean and std of a new observation; map, the best fit;
the credible interval of the law; the prediction interval of an observation.
{_ENDINGS}"""

_SUGGEST = f"""\
examples:
  pmsr suggest data-run
  pmsr suggest data-run -n 5 --bounds H 100 2000 --bounds t 0 10
{_ENDINGS}"""

_SHOW = f"""\
examples:
  pmsr show data-run
  pmsr show data-run --json | jq .equation
{_ENDINGS}"""

_REPORT = f"""\
examples:
  pmsr report data-run                            data-run/report.html
  pmsr report data-run --level 0.9 --out law.html
{_ENDINGS}"""

_DEMO = f"""\
examples:
  pmsr demo
  pmsr demo --out galileo && pmsr predict galileo new.csv
{_ENDINGS}"""

_REPRODUCE = f"""\
examples:
  pmsr reproduce polynomials --quick
  pmsr reproduce all --quick --jobs -1
{_ENDINGS}"""

_COMPLETION = """\
examples:
  eval "$(pmsr completion bash)"
  pmsr completion zsh > ~/.zfunc/_pmsr"""

# What other programs, or people, call an option.
_KNOWN_AS = {
    "--y": "--target",
    "--x": "--features",
    "--columns": "--features",
    "--variables": "--features",
    "--timeout": "--time",
    "--max-time": "--time",
    "--niterations": "--generations",
    "--iterations": "--generations",
    "--output": "--out",
    "--ops": "--operators",
    "--workers": "--jobs",
    "--cores": "--jobs",
    "--threads": "--jobs",
    "--random-seed": "--seed",
    "--y-err": "--error-column",
    "--errors": "--error-column",
    "--weights": "--weight-column",
    "--groups": "--group-column",
    "--dropna": "--drop-missing",
    "--initial": "--guess",
}
# The same for values.
_VALUES_KNOWN_AS = {
    "normal": "gaussian",
    "robust": "student",
    "outliers": "student",
    "t": "student",
    "relative": "proportional",
    "multiplicative": "lognormal",
    "counts": "poisson",
}


_MINUS = (
    "An equation that begins with a minus stands in brackets, '({0})'; a name is joined to its "
    "option, --target='{0}'"
)


class Parser(argparse.ArgumentParser):
    """A parser that says what a word was probably meant to be."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Until Python 3.14 -1e6 is an option.
        self._negative_number_matcher = re.compile(r"-(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$", re.I)

    # Any: what argparse hands over.
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Remember the words: an error may be about one that was not understood."""
        self._words = [] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """End with 2, with a hint where there is one."""
        super().error(message + self._hint(message))

    def _hint(self, message: str) -> str:
        minus = [word for word in self._words if self._begins_with_minus(word)]
        if minus and ("EQUATION" in message or "expected" in message):
            return f". {_MINUS.format(minus[0])}"
        if "are required:" in message:
            if "EQUATION" in message:
                return ". Write them after the file: pmsr compare FILE EQUATION --target COLUMN"
            strange = [word for word in self._words if self._is_unknown(word)]
            return self.describe_unknown(strange[0]) if strange else ""
        return ""

    def _is_unknown(self, word: str) -> bool:
        name = word.split("=")[0]
        known = self._option_string_actions
        return name.startswith("--") and not any(option.startswith(name) for option in known)

    def _begins_with_minus(self, word: str) -> bool:
        """Tell whether a word looks like an option, and must be a value."""
        return word[:1] == "-" and word[1:2] != "-" and word[:2] not in self._option_string_actions

    def describe_unknown(self, word: str) -> str:
        """Return the end of an error about an option that there is not."""
        if self._begins_with_minus(word):
            return f". {_MINUS.format(word)}"
        name = word.split("=")[0]
        known = [option for option in self._option_string_actions if option.startswith("--")]
        meant = [_KNOWN_AS[name]] if _KNOWN_AS.get(name) in known else []
        close = meant or difflib.get_close_matches(name, known, n=1)
        return f". There is no {name}: did you mean {close[0]}?" if close else ""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = list(map(str, action.choices))
        meant = [_VALUES_KNOWN_AS[value]] if _VALUES_KNOWN_AS.get(value) in names else []
        close = meant or difflib.get_close_matches(str(value), names, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"Available: {', '.join(names)}"
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}. {hint}")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return what a command line says; one that cannot be understood ends the process with 2."""
    parser = make_parser()
    arguments, rest = parser.parse_known_args(argv)
    own: Parser = arguments.parser if arguments.command else parser
    if not rest:
        if getattr(arguments, "shared_sigma", False) and arguments.group_column is None:
            own.error("--shared-sigma goes with --group-column: there is one experiment")
        return arguments
    strange = next((word for word in rest if word.startswith("-")), rest[0])
    if strange.startswith("-"):
        own.error(f"unknown option {strange}{own.describe_unknown(strange)}")
    if "=" in strange and getattr(arguments, "constant", None):
        own.error(f"unexpected argument {strange!r}. Say --constant once for each")
    if arguments.command == "fit":
        own.error(
            f"one file at a time, got {arguments.data} and {strange}. Join the tables in one file, "
            "with a column that names the experiment of each row, and say --group-column"
        )
    own.error(f"unexpected argument {strange!r}")


def make_parser() -> Parser:
    """Return the parser of the command line."""
    parser = Parser(
        prog="pmsr",
        description="Find the law behind a table of measurements: equations in symbols, weighed\n"
        "by their Bayesian evidence, with the uncertainty of their parameters and\npredictions.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pmsr {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for name, (shape, purpose, epilog, fill) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            usage=f"pmsr {name} {shape}",
            help=purpose,
            description=purpose[0].upper() + purpose[1:] + ".",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(command=name, parser=command)
        fill(command)
    return parser


def make_completion(shell: str) -> str:
    """Return a script that completes commands in a shell."""
    import shtab  # only for this: it takes a third of the time of --help

    parser = make_parser()
    for command in parser._subparsers._group_actions[0].choices.values():  # type: ignore
        for action in command._actions:
            if hasattr(action, "complete"):
                action.complete = getattr(shtab, action.complete)
    return str(shtab.complete(parser, shell))


def _fill_fit(parser: Parser) -> None:
    _add_data(parser)
    _add_measurements(parser, noises=("auto", *NOISES))
    _add_groups(parser)
    laws = parser.add_argument_group("laws")
    laws.add_argument(
        "--operators",
        nargs="+",
        metavar="OP",
        help="what equations are made of, or sets of them, see below: + - '*' / pow sqrt exp log "
        "sin cos tan tanh abs",
    )
    laws.add_argument(
        "--guess", nargs="+", action="extend", metavar="EQ", help="equations to start from"
    )
    _add_knowledge(laws)
    _add_positive(laws)
    for option, default, meaning in (
        ("--max-complexity", 64, "largest number of nodes of an equation"),
        ("--max-parameters", None, "largest number of parameters"),
    ):
        shown = "no limit" if default is None else default
        laws.add_argument(
            option, type=_count, default=default, metavar="N", help=f"{meaning} (default: {shown})"
        )
    laws.add_argument(
        "--law-prior",
        choices=("description", "uniform"),
        default="description",
        help="how probable laws are beforehand: the shorter the more, or all alike as in the paper "
        "(default: description)",
    )
    search = parser.add_argument_group("search")
    _add_budget(
        search,
        "how long to search, such as 90s, 10m, 1h30m or none for no limit (default: 2m, or no "
        "limit with --generations)",
        "most generations (default: 1000)",
    )
    for option, default, meaning in (
        ("--population", 120, "equations that evolve on each island, an even number"),
        ("--islands", 4, "populations that evolve on their own, and exchange their best"),
    ):
        search.add_argument(
            option,
            type=_count,
            default=default,
            metavar="N",
            help=f"{meaning} (default: {default})",
        )
    search.add_argument(
        "--fitness",
        choices=("evidence", "rmse"),
        default="evidence",
        help="evidence penalises what the data do not ask for; rmse is the conventional search "
        "(default: evidence)",
    )
    search.add_argument(
        "--evidence",
        choices=("screened", "smc"),
        default="screened",
        help="screened weighs contenders only, smc every equation as in the paper "
        "(default: screened)",
    )
    _add_seed(search)
    _add_jobs(search)
    output = parser.add_argument_group("output")
    _add_out(output, "NAME-run, after the file")
    _add_force(output)
    _add_no_report(output)
    _add_printing(output)


def _fill_resume(parser: Parser) -> None:
    _add_folder(parser, "folder that `pmsr fit` made")
    _add_budget(parser, "how much longer to search, such as 90s, 10m or 1h30m", "how many more")
    _add_jobs(parser)
    _add_no_report(parser)
    _add_printing(parser)


def _fill_predict(parser: Parser) -> None:
    _add_folder(parser, "folder that `pmsr fit` or `pmsr compare` made")
    data = parser.add_argument("data", type=Path, metavar="FILE", help="with the same columns")
    _complete(data, "FILE")
    _add_reading(parser)
    _add_level(parser)
    parser.add_argument(
        "--average",
        action="store_true",
        help="average over all equations by their probability, not the chosen one alone",
    )
    out = parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write (default: standard output)"
    )
    _complete(out, "FILE")
    _add_printing(parser)


def _fill_suggest(parser: Parser) -> None:
    _add_folder(parser, "folder that `pmsr fit` or `pmsr compare` made")
    parser.add_argument(
        "-n", type=_count, default=3, metavar="N", help="how many places (default: 3)"
    )
    parser.add_argument(
        "--bounds",
        nargs=3,
        action="append",
        default=[],
        metavar=("COLUMN", "LOW", "HIGH"),
        help="where to look, once for each column (default: the range of the data)",
    )
    _add_printing(parser)


def _fill_compare(parser: Parser) -> None:
    _add_data(parser)
    parser.add_argument("equations", nargs="+", metavar="EQUATION", help="such as c0*sqrt(H)")
    _add_measurements(parser, noises=NOISES)
    _add_groups(parser)
    laws = parser.add_argument_group("laws")
    laws.add_argument(
        "--parameters",
        nargs="+",
        default=(),
        metavar="NAME",
        help="what is to be fitted besides c0, c1, ...",
    )
    _add_knowledge(laws)
    _add_positive(laws)
    _add_seed(laws)
    output = parser.add_argument_group("output")
    _add_out(output, "none, nothing is written")
    _add_force(output)
    _add_no_report(output)
    _add_printing(output)


def _fill_show(parser: Parser) -> None:
    _add_folder(parser, "folder that `pmsr fit` or `pmsr compare` made")
    _add_printing(parser)


def _fill_report(parser: Parser) -> None:
    _add_folder(parser, "folder that `pmsr fit` or `pmsr compare` made")
    _add_level(parser)
    out = parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write (default: RUN/report.html)"
    )
    _complete(out, "FILE")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def _fill_demo(parser: Parser) -> None:
    _add_out(parser, "pmsr-demo")
    parser.set_defaults(out=Path("pmsr-demo"))
    _add_seed(parser)
    _add_jobs(parser)
    _add_no_report(parser)
    _add_printing(parser)


def _fill_reproduce(parser: Parser) -> None:
    names = (*experiments.NAMES, "all")
    parser.add_argument(
        "name", choices=names, metavar="NAME", help=f"of the experiment: {', '.join(names)}"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few repetitions and short searches: minutes"
    )
    parser.add_argument("--seeds", type=_count, metavar="N", help="number of repetitions")
    parser.add_argument(
        "--peer",
        metavar="PYTHON",
        help="a Python with bingo-nasa and smcpy, which evidence_accuracy then compares with",
    )
    _add_out(parser, "NAME-reproduced")
    _add_seed(parser)
    _add_jobs(parser)


def _fill_completion(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


# How it is used, its purpose, what stands below its options, and what adds them.
_COMMANDS: dict[str, tuple[str, str, str, Callable[[Parser], None]]] = {
    "fit": (
        "FILE --target COLUMN [option ...]",
        "search a file of measurements for the law behind a column",
        _FIT,
        _fill_fit,
    ),
    "resume": (
        "RUN [option ...]",
        "go on with a search that was interrupted, killed or came to its end",
        _RESUME,
        _fill_resume,
    ),
    "show": ("RUN [--json]", "print again what a run has found", _SHOW, _fill_show),
    "report": (
        "RUN [--level P] [--out FILE]",
        "make the page about what a run has found again",
        _REPORT,
        _fill_report,
    ),
    "predict": (
        "RUN FILE [option ...]",
        "predict new observations with what was found",
        _PREDICT,
        _fill_predict,
    ),
    "suggest": (
        "RUN [-n N] [--bounds COLUMN LOW HIGH ...]",
        "say where to measure next, to tell the leading laws apart",
        _SUGGEST,
        _fill_suggest,
    ),
    "compare": (
        "FILE EQUATION [EQUATION ...] --target COLUMN [option ...]",
        "weigh equations that you write, on your data",
        _COMPARE,
        _fill_compare,
    ),
    "demo": (
        "[option ...]",
        "find Galileo's law in his own measurements, from data to report",
        _DEMO,
        _fill_demo,
    ),
    "reproduce": (
        "NAME [option ...]",
        "repeat an experiment of the paper, or all of them",
        _REPRODUCE,
        _fill_reproduce,
    ),
    "completion": (
        "SHELL",
        "print a script that completes commands in a shell",
        _COMPLETION,
        _fill_completion,
    ),
}

_Options = argparse._ActionsContainer  # a parser, or a group of its options


def _add_data(parser: Parser) -> None:
    data = parser.add_argument(
        "data", type=Path, metavar="FILE", help=".csv, .tsv, .txt, .dat, .parquet or .xlsx"
    )
    _complete(data, "FILE")
    _add_reading(parser.add_argument_group("file"))
    columns = parser.add_argument_group("columns")
    columns.add_argument("--target", required=True, metavar="COLUMN", help="what to explain")
    columns.add_argument(
        "--features",
        nargs="+",
        metavar="COLUMN",
        help="what may explain it (default: all columns that have no other meaning)",
    )
    columns.add_argument(
        "--interval",
        nargs="+",
        default=(),
        metavar="COLUMN",
        help="columns whose zero is arbitrary, such as a date or degrees Celsius",
    )
    columns.add_argument(
        "--units",
        nargs="+",
        type=_unit,
        metavar="COLUMN=UNIT",
        help="units of all columns and of the target, such as H=mm t=s; n=1 is a pure number, w=? "
        "not known; auto takes them from names such as 'T [K]'",
    )


def _add_measurements(parser: Parser, noises: Sequence[str]) -> None:
    """Add what is known of how the measurements came about."""
    group = parser.add_argument_group("measurements")
    group.add_argument(
        "--error-column",
        metavar="COLUMN",
        help="standard errors of the target, which are then taken as they are",
    )
    group.add_argument(
        "--extra-noise",
        action="store_true",
        help="noise of unknown size comes on top of --error-column",
    )
    group.add_argument(
        "--x-error-columns",
        nargs="+",
        type=_x_error,
        default=(),
        metavar="COLUMN=ERRORS",
        help="variables with standard errors, and the columns that hold these",
    )
    group.add_argument(
        "--weight-column", metavar="COLUMN", help="how often each row was seen; not a precision"
    )
    group.add_argument(
        "--noise",
        choices=noises,
        default="gaussian",
        metavar="NAME",
        help=f"how measurements scatter: {', '.join(noises)} (default: gaussian)",
    )


def _add_groups(parser: Parser) -> None:
    """Add what is known of several experiments."""
    group = parser.add_argument_group("several experiments")
    group.add_argument(
        "--group-column",
        metavar="COLUMN",
        help="the experiment of each row: one law, with constants of its own for each",
    )
    group.add_argument(
        "--shared-sigma",
        action="store_true",
        help="all experiments have the same noise (default: each its own)",
    )


def _add_knowledge(group: _Options) -> None:
    """Add what is known of the laws."""
    group.add_argument(
        "--constant",
        action="append",
        type=_constant,
        default=[],
        metavar="NAME=VALUE",
        help="a known number that laws may use, such as g=9.81, or one with its standard error, "
        "k=1.38e-23±1e-25 or k=1.38e-23+-1e-25; once for each",
    )


def _add_positive(group: _Options) -> None:
    group.add_argument(
        "--positive",
        action="store_true",
        help="parameters keep the sign that they have at the best fit, as rates and masses do",
    )


def _add_budget(group: _Options, time: str, generations: str) -> None:
    group.add_argument("--time", type=_duration, metavar="T", help=time)
    group.add_argument("--generations", type=_count, metavar="N", help=generations)
    group.set_defaults(default_time=DEFAULT_TIME)


def _add_reading(group: _Options) -> None:
    """Add how a file is to be read."""
    group.add_argument(
        "--drop-missing", action="store_true", help="leave out rows in which a value is missing"
    )
    group.add_argument("--sheet", metavar="NAME", help="of an .xlsx file, or its number")
    group.add_argument(
        "--no-header",
        action="store_true",
        help="row 1 holds no names: columns are called x1, x2, ...",
    )
    group.add_argument(
        "--decimal",
        choices=(".", ","),
        metavar="SIGN",
        help="decimal sign, . or , where the file does not tell",
    )


def _add_level(parser: Parser) -> None:
    parser.add_argument(
        "--level",
        type=_level,
        default=0.95,
        metavar="P",
        help="probability of the intervals (default: 0.95)",
    )


def _add_seed(group: _Options) -> None:
    group.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="of the random numbers (default: 0)"
    )


def _add_jobs(group: _Options) -> None:
    group.add_argument(
        "--jobs",
        type=_jobs,
        metavar="N",
        help="processes that work at the same time, -1 for one per core (default: 1)",
    )


def _add_force(group: _Options) -> None:
    group.add_argument("--force", action="store_true", help="replace an older run in the folder")


def _add_no_report(group: _Options) -> None:
    group.add_argument("--no-report", action="store_true", help="write no report.html")


def _add_printing(group: _Options) -> None:
    group.add_argument(
        "--json", action="store_true", help="print JSON for machines, and nothing else"
    )
    group.add_argument("--quiet", action="store_true", help="print nothing but errors")


def _add_folder(parser: Parser, meaning: str) -> None:
    folder = parser.add_argument("run_folder", type=Path, metavar="RUN", help=meaning)
    _complete(folder, "DIRECTORY")


def _add_out(group: _Options, default: str) -> None:
    out = group.add_argument(
        "--out", type=Path, metavar="DIR", help=f"folder for the results (default: {default})"
    )
    _complete(out, "DIRECTORY")


def _complete(action: argparse.Action, how: str) -> None:
    """Say what completes an argument: the name of a constant of shtab."""
    action.complete = how  # type: ignore[attr-defined]


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or larger, got {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or larger, got {text!r}")
    return int(text)


def _jobs(text: str) -> int:
    if not re.fullmatch(r"-?\d+", text) or int(text) == 0:
        raise argparse.ArgumentTypeError(
            f"must be a whole number, 1 or larger, or -1 for one per core, got {text!r}"
        )
    return int(text)


def _unit(text: str) -> str:
    if text != "auto" and "=" not in text:
        raise argparse.ArgumentTypeError(
            f"must be COLUMN=UNIT, such as H=mm, or auto, got {text!r}"
        )
    return text


def _constant(text: str) -> tuple[str, float | tuple[float, float]]:
    """Return a name and a number, or a number and its error.

    Examples
    --------
    >>> _constant("g=9.81"), _constant("k=1.38e-23±1e-25"), _constant("m = 2 +- 0.5")
    (('g', 9.81), ('k', (1.38e-23, 1e-25)), ('m', (2.0, 0.5)))
    """
    name, _, value = text.partition("=")
    try:
        if "_" in value:  # 1_000 is a number for Python only
            raise ValueError
        numbers = [float(part) for part in re.split(r"±|\+-|\+/-", value)]
    except ValueError:
        numbers = []
    if not name.strip() or not numbers or len(numbers) > 2 or not all(map(math.isfinite, numbers)):
        raise argparse.ArgumentTypeError(
            f"must be NAME=VALUE or NAME=VALUE±ERROR, such as g=9.81, got {text!r}"
        )
    if len(numbers) == 1:
        return name.strip(), numbers[0]
    if not numbers[1] > 0.0:
        raise argparse.ArgumentTypeError(
            f"the error must be positive, got {text!r}: leave it out if the number is exact"
        )
    return name.strip(), (numbers[0], numbers[1])


def _x_error(text: str) -> tuple[str, str]:
    name, sign, column = text.partition("=")
    if not (name and sign and column):
        raise argparse.ArgumentTypeError(
            f"must be COLUMN=ERRORS, a variable and the column with its errors, got {text!r}"
        )
    return name, column


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
    number = r"(\d+(?:\.\d*)?|\.\d+)"
    # A number without a unit is one of seconds if it stands alone; 1h30 could mean two times.
    shapes = (number, "".join(f"(?:{number}{unit})?" for unit in _UNITS))
    found = [re.fullmatch(shape, text) for shape in shapes]
    if found[0] is not None:
        seconds = float(text)
    elif found[1] is not None:
        values = zip(_UNITS.values(), found[1].groups(default="0"), strict=True)
        seconds = sum(size * float(value) for size, value in values)
    else:
        seconds = 0.0
    if not 0.0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be a time such as 90s, 10m or 1h30m, got {text!r}")
    return seconds
