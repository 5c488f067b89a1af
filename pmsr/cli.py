"""The ``pmsr`` command."""

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pmsr import __version__

if TYPE_CHECKING:
    import pandas as pd

GALILEO = (
    "c0*sqrt(H)",
    "c0 + c1*H",
    "c0*H",
    "c0*H**c1",
    "c0*sqrt(H)/(1 + c1*H)",
    "c0 + c1*H + c2*H**2",
)
"""What `pmsr demo` weighs on Galileo's shelf data (Section 3.2)."""


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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Where the encoding has no ±, a question mark is better than no table.
            stream.reconfigure(errors="replace")
    parser = _make_parser()
    arguments = parser.parse_args(argv)
    if arguments.run is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        with warnings.catch_warnings():
            # ArviZ 0.23 announces ArviZ 1.0 on import; both work here.
            warnings.filterwarnings(
                "ignore", message=r"\s*ArviZ is undergoing", category=FutureWarning
            )
            return int(arguments.run(arguments))
    except KeyboardInterrupt:
        print("pmsr: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"pmsr: {place}{error.strerror or error}", file=sys.stderr)
        return 1


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pmsr",
        description="Weigh equations by their Bayesian evidence: how well the data support them, "
        "their parameters with uncertainty, and what they predict.",
    )
    parser.add_argument("--version", action="version", version=f"pmsr {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="weigh six equations on Galileo's measurements and draw the winner",
        description="Weigh six equations on Galileo's measurements of a ball that rolls down a "
        "ramp of height H, over a shelf and off the table: it lands at the distance D. Prints the "
        "ranked table and saves a figure of the winner, galileo_shelf.png.",
    )
    demo.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="folder for the figure, made if need be (default: the current one)",
    )
    demo.add_argument(
        "--seed",
        type=_seed,
        default=0,
        metavar="N",
        help="seed of the random numbers (default: %(default)s)",
    )
    demo.set_defaults(run=_demo)
    return parser


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or larger, got {text!r}")
    return int(text)


def _demo(arguments: argparse.Namespace) -> int:
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "galileo_shelf.png"
    console, bar_console = Console(), Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=bar_console,
        disable=not bar_console.is_terminal,
        transient=True,
    ) as progress:
        task = progress.add_task("Loading PyMC", total=len(GALILEO) + 3)
        # PyMC takes seconds to import: --help and wrong arguments must not wait for it.
        import numpy as np

        from pmsr.data import load_galileo
        from pmsr.expression import Equation
        from pmsr.plots import plot_fit
        from pmsr.posterior import sample_posterior
        from pmsr.prediction import predict
        from pmsr.ranking import compare, parsimonious

        def advance(description: str) -> None:
            progress.update(task, advance=1, description=description)

        advance("Weighing equations (the first run on a machine compiles)")
        X, y = load_galileo("shelf")
        table = compare(
            GALILEO,
            X,
            y,
            random_seed=arguments.seed,
            callback=lambda name: advance(f"Weighed {escape(name)}"),
            verbose=False,
        )
        winner = str(table.at[parsimonious(table), "equation"])
        # Any: ArviZ's data have no types for their groups, and a figure may be part of another.
        posterior: Any = sample_posterior(winner, X, y, random_seed=arguments.seed)
        advance("Drawing")
        grid = np.linspace(0.0, 1.1 * float(X["H"].max()), 221)
        ax = plot_fit(grid, predict(posterior, grid, level=0.95), X, y, level=0.95)
        ax.set(
            title=f"$D = {Equation(winner, list(X.columns)).latex}$",
            xlabel="H, height of the ramp (punti)",
            ylabel="D, distance of the fall (punti)",
        )
        figure: Any = ax.figure
        figure.savefig(path, dpi=200)
        advance("Done")

    draws = posterior.posterior
    console.print(_to_rich(table, "Galileo's shelf data, 5 observations of D against H"))
    console.print(
        "\nWinner, the simplest equation within one nat of the best: "
        f"[bold]D = {escape(winner)}[/bold]"
    )
    for name in draws.data_vars:
        values = draws[name]
        console.print(f"    {name} = {_plus_minus(float(values.mean()), float(values.std()))}")
    console.print("    (posterior mean ± standard deviation; sigma is the noise in D)")
    console.print(f"Figure: {escape(str(path.resolve()))}", soft_wrap=True)
    return 0


def _to_rich(table: "pd.DataFrame", title: str) -> Table:
    """Arrange a ranked table for the terminal; 80 columns hold it."""
    shown = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        caption="Bayes factor: how many times better the data support the best equation.",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 0, 0, 1),
        pad_edge=False,
    )
    shown.add_column("equation", overflow="fold")
    for header in ("log q", "probability", "Bayes factor", "params", "RMSE"):
        shown.add_column(header, justify="right", no_wrap=True)
    for row in table.to_dict("records"):
        if row["failure"] is None:
            shown.add_row(
                escape(row["equation"]),
                f"{row['log_q']:.3f} ± {row['log_q_se']:.3f}",
                f"{row['probability']:.3f}",
                _short(row["bayes_factor"]),
                str(row["parameters"]),
                _short(row["rmse"]),
            )
        else:
            shown.add_row(escape(row["equation"]), "failed")
    return shown


def _short(number: float) -> str:
    """Write a number with four digits.

    Examples
    --------
    >>> _short(13.0006), _short(1234.5), _short(1.0)
    ('13.00', '1234', '1.000')
    """
    return f"{number:#.4g}".rstrip(".")


def _plus_minus(mean: float, deviation: float) -> str:
    """Write a number with the digits that its uncertainty leaves.

    Examples
    --------
    >>> _plus_minus(47.0889, 0.4968), _plus_minus(1234.5, 320.0), _plus_minus(1.5e-19, 2e-21)
    ('47.09 ± 0.50', '1234 ± 320', '1.5e-19 ± 2e-21')
    """
    if not 1e-6 < deviation < 1e6:
        return f"{mean:.4g} ± {deviation:.2g}"
    digits = max(0, 1 - math.floor(math.log10(deviation)))
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"
