"""How far a search is: a line in a terminal or notebook, or words for a function."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np
from rich import get_console
from rich.errors import LiveError
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pmsr.equation.grammar import without_quotes
from pmsr.search.archive import Candidate
from pmsr.search.engines import engine_of
from pmsr.settings import Search
from pmsr.threads import SCREEN


class Running(Protocol):
    """What is shown of a search."""

    search: Search
    started: float

    @property
    def generation(self) -> int:
        """Generations done."""

    @property
    def best(self) -> Candidate | None:
        """The best candidate so far."""

    @property
    def n_weighed(self) -> int:
        """Number of distinct equations seen."""


def show_progress(
    run: Running, verbose: bool | Callable[[str], None]
) -> AbstractContextManager[Callable[..., None]]:
    """Show generation, best equation, its score, rate and time left; or tell a function."""
    if callable(verbose):
        return nullcontext(lambda text="": verbose(text))
    if not verbose:
        return nullcontext(lambda text="": None)
    return Line(run) if get_console().is_jupyter else Display(run)


class Display:
    """A rich progress bar, for terminal and notebook: how much of the budget is used."""

    def __init__(self, run: Running) -> None:
        self.run = run
        self.progress = Progress(
            TextColumn("generation {task.fields[generation]}"),
            BarColumn(bar_width=20),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )

    def __enter__(self) -> Callable[..., None]:
        # Where another search shows its progress, in another thread or around this one, or a user
        # has a display of rich's own, this one goes on in silence.
        self.is_shown = SCREEN.acquire(blocking=False)
        if self.is_shown:
            try:
                self.progress.start()
            except LiveError:
                self.is_shown = False
                SCREEN.release()
        self.task = self.progress.add_task("first population", total=1.0, generation=0)
        return self.show

    def show(self, text: str = "") -> None:
        """Bring the line up to date."""
        run, search = self.run, self.run.search
        elapsed = time.monotonic() - run.started
        used = max(
            run.generation / max(1, search.generations),
            elapsed / (search.max_time or np.inf),
            run.n_weighed / (search.max_evaluations or np.inf),
        )
        self.progress.update(
            self.task,
            completed=min(1.0, used),
            description=escape(text or describe(run)),
            generation=run.generation,
        )

    def __exit__(self, *_: object) -> None:
        if self.is_shown:
            self.progress.stop()
            SCREEN.release()


class Line:
    """One line of a notebook that is written over: rich needs widgets for that."""

    def __init__(self, run: Running) -> None:
        self.run = run

    def __enter__(self) -> Callable[..., None]:
        from IPython.display import display  # where this is called there is a notebook

        # Any: IPython's handle comes without types.
        self.handle: Any = display({"text/plain": ""}, raw=True, display_id=True)
        return self.show

    def show(self, text: str = "") -> None:
        """Write the line anew."""
        seconds = time.monotonic() - self.run.started
        line = f"generation {self.run.generation}, {seconds:.0f} s: {text or describe(self.run)}"
        self.handle.update({"text/plain": line}, raw=True)

    def __exit__(self, *_: object) -> None:
        self.show("done")


def describe(run: Running) -> str:
    """Return the best equation so far, its score, and the rate."""
    best = run.best
    if best is None:
        return ""
    rate = run.n_weighed / max(1e-9, time.monotonic() - run.started)
    value = engine_of(run.search).show(best)
    return f"{without_quotes(best.key)[:50]}  {value}  {rate:.0f} equations/s"
