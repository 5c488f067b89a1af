import time
from types import SimpleNamespace

from pmsr.data import load_galileo, make_data
from pmsr.search.evolution import run_evolution
from pmsr.search.progress import show_progress
from pmsr.settings import Search

SHELF = make_data(*load_galileo("shelf"))
SMALL = Search(
    operators=("+", "*", "sqrt"),
    population_size=16,
    generations=2,
    n_finalists=4,
    n_islands=2,
    n_enumerated=100,
    refresh=2,
)


def test_progress_can_be_shown(capsys):
    run_evolution(SHELF, search=SMALL, random_seed=0, verbose=True)
    assert "generation" in capsys.readouterr().out


def test_nothing_is_shown_to_whom_nothing_is_to_be_shown(capsys):
    with show_progress(None, False) as show:
        show("first population")
        show()
    assert capsys.readouterr().out == ""


def test_a_function_is_told_what_is_being_done():
    told = []
    run_evolution(SHELF, search=SMALL, random_seed=1, verbose=told.append)
    assert told[:2] == ["getting ready", "screening the smallest laws"]
    assert any("finalists" in text for text in told)
    assert told[-1] == "sampling the posterior of the winner"


def test_a_notebook_shows_one_line_that_is_written_over(monkeypatch):
    shown = []

    class Handle:
        def update(self, data, raw):
            shown.append(data["text/plain"])

    monkeypatch.setattr("IPython.display.display", lambda *_, **__: Handle())
    monkeypatch.setattr(
        "pmsr.search.progress.get_console", lambda: SimpleNamespace(is_jupyter=True)
    )
    run = SimpleNamespace(generation=3, started=time.monotonic(), best=None)
    with show_progress(run, True) as show:
        show("weighing 3 finalists again")
    assert shown == ["generation 3, 0 s: weighing 3 finalists again", "generation 3, 0 s: done"]
