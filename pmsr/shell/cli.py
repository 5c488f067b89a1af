"""The ``pmsr`` command: its exit codes, its errors of one line."""

import os
import shlex
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper

from pmsr.shell.arguments import make_completion, make_parser, parse
from pmsr.shell.wording import in_words_of_a_shell


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
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started us: what is printed goes nowhere
            setattr(sys, name, open(os.devnull, "w"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Where the encoding has no ±, a question mark is better than no table.
            stream.reconfigure(errors="replace")
    argv = sys.argv[1:] if argv is None else list(argv)
    arguments = parse(argv)
    if arguments.command is None:
        make_parser().print_help(sys.stderr)
        return 2
    arguments.started = started
    arguments.command_line = shlex.join(["pmsr", *argv])
    try:
        with warnings.catch_warnings():
            # What libraries say to programmers; our own doubts are printed.
            warnings.simplefilter("ignore")
            if arguments.command == "completion":
                print(make_completion(arguments.shell))
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
        return _fail(in_words_of_a_shell(str(error)))
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
