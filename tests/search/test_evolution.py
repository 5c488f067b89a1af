import os
import random  # noqa: TID251
import signal
import subprocess
import sys
import time
from dataclasses import replace

import joblib
import numpy as np
import pytest

import pmsr.search.evolution
from pmsr.data import load_galileo, make_data, make_sine
from pmsr.equation.expression import Equation
from pmsr.equation.operators import OPERATORS
from pmsr.laws.prior import LawPrior
from pmsr.limits import check_time, time_limit
from pmsr.search.checkpoint import read_progress
from pmsr.search.engines import ENGINES
from pmsr.search.evolution import _Run, run_evolution
from pmsr.search.finalists import weigh_finalists
from pmsr.search.funnel import Funnel
from pmsr.search.sampler import Sampler
from pmsr.search.workers import Workers
from pmsr.settings import Search

SHELF = make_data(*load_galileo("shelf"))
SMALL = Search(
    operators=("+", "*", "sqrt"),
    population_size=16,
    generations=6,
    n_finalists=4,
    n_islands=2,
    n_enumerated=100,
    refresh=2,
)


def summary(found):
    """All that must be the same: equations, log q to the last bit, population."""
    finalists = [(str(equation), evidence.log_q.hex()) for equation, evidence in found.finalists]
    clocks = ("elapsed", "equations_per_second")
    records = [{k: v for k, v in r.items() if k not in clocks} for r in found.history]
    counts = (found.n_folded, found.n_screened, found.n_sampled, found.log_rest)
    return finalists, found.population, repr(found.front), repr(records), counts


def test_galileos_law_is_found():
    longer = Search(**{**vars(SMALL), "population_size": 30, "generations": 30})
    found = run_evolution(SHELF, search=longer, random_seed=0)
    assert str(found.winner) == "c0*sqrt(H)"
    assert found.stopped == "generations"


def test_the_same_seed_gives_the_same_search_and_another_another():
    first, second, third = (run_evolution(SHELF, search=SMALL, random_seed=s) for s in (1, 1, 2))
    assert summary(first) == summary(second)
    assert summary(first) != summary(third)


def test_a_column_that_does_not_vary_takes_no_part():
    names = ["T", "H"]
    wide = make_data(np.column_stack([np.full(5, 293.0), SHELF.X]), SHELF.y, names=names)
    options = {"search": SMALL, "random_seed": 1}
    found = run_evolution(wide, seeds=[Equation("c0*H", names)], **options)
    alone = run_evolution(SHELF, seeds=[Equation("c0*H", ["H"])], **options)
    assert summary(found) == summary(alone)
    with pytest.raises(ValueError, match=r"The guess 'c0\*T' depends on 'T', which is the same"):
        run_evolution(wide, seeds=[Equation("c0*T", names)], **options)


@pytest.mark.slow
def test_the_number_of_workers_does_not_matter():
    one = run_evolution(SHELF, search=SMALL, random_seed=1, n_jobs=1)
    two = run_evolution(SHELF, search=SMALL, random_seed=1, n_jobs=2)
    assert summary(one) == summary(two)


@pytest.mark.slow
def test_workers_know_the_operators_that_a_user_added():
    # In a process of its own: the table of operators is for the whole process.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SEARCH_WITH_A_NEW_ROW],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "c0*cube(x)", done.stdout + done.stderr


SEARCH_WITH_A_NEW_ROW = """
import numpy as np, sympy, pmsr
from pmsr.data import make_data
from pmsr.search.evolution import run_evolution
from pmsr.settings import Search
pmsr.add_operator(pmsr.Operator(
    "cube", 1, sympy.Function("cube", real=True), lambda a: a**3, lambda a: a * a * a,
    lambda a, v: 3.0 * a * a,
))
x = np.linspace(1.0, 2.0, 9)
data = make_data(x, 2 * x**3 + 0.01 * np.cos(50 * x), names=["x"])
search = Search(operators=("*", "cube"), population_size=4, generations=1, n_finalists=2)
guess = pmsr.Equation("c0*cube(x)", ["x"])
print(run_evolution(data, search=search, seeds=[guess], random_seed=0, n_jobs=2).winner)
"""


@pytest.mark.slow
# What Dask itself says while it starts, and when a worker is killed, is not ours.
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_result_even_if_it_loses_a_worker():
    distributed = pytest.importorskip("distributed")
    alone = run_evolution(SHELF, search=SMALL, random_seed=1)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        victims = []

        def kill_one(generation):
            if generation.number == 2:
                pid = min(client.run(os.getpid).values())
                os.kill(pid, signal.SIGKILL)
                victims.append(pid)

        together = run_evolution(SHELF, search=SMALL, random_seed=1, callbacks=[kill_one])
        assert victims
    assert summary(together) == summary(alone)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what Python says of a process that was killed
def test_a_worker_that_dies_is_replaced_and_changes_nothing():
    psutil = pytest.importorskip("psutil")
    alone = run_evolution(SHELF, search=SMALL, random_seed=1)
    victims = []

    def kill_one(generation):
        if generation.number == 2:
            children = psutil.Process().children(recursive=True)
            workers = [one for one in children if "LokyProcess" in " ".join(one.cmdline())]
            workers[0].kill()
            victims.append(workers[0].pid)

    together = run_evolution(SHELF, search=SMALL, random_seed=1, n_jobs=2, callbacks=[kill_one])
    assert victims and summary(together) == summary(alone)


def test_a_resumed_search_ends_like_an_uninterrupted_one(tmp_path):
    whole = run_evolution(SHELF, search=SMALL, random_seed=3)
    path = tmp_path / "run.npz"
    # In the middle of a unit, too.
    for generations in (0, 3, 4):
        some = Search(**{**vars(SMALL), "generations": generations})
        run_evolution(SHELF, search=some, random_seed=3, checkpoint=path)
    resumed = run_evolution(SHELF, search=SMALL, random_seed=3, checkpoint=path)
    assert summary(resumed) == summary(whole)


RUN_UNTIL_KILLED = """
import sys
from pmsr.data import load_galileo, make_data
from pmsr.search.evolution import run_evolution
from pmsr.settings import Search
search = Search(
    operators=("+", "*", "sqrt"), population_size=16, generations=100_000, n_islands=2,
    n_enumerated=100, refresh=2,
)
import pmsr.search.evolution
pmsr.search.evolution.SAVE_SECONDS = 0.0
data = make_data(*load_galileo("shelf"))
run_evolution(data, search=search, random_seed=3, checkpoint=sys.argv[1])
"""


@pytest.mark.slow
def test_a_killed_search_resumes(tmp_path):
    path = tmp_path / "run.npz"
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", RUN_UNTIL_KILLED, str(path)])
    for _ in range(1200):
        time.sleep(0.1)
        if path.exists() and read_progress(path)[0] >= 1:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    reached = read_progress(path)[0]
    longer = Search(**{**vars(SMALL), "generations": reached + 3})
    resumed = run_evolution(SHELF, search=longer, random_seed=3, checkpoint=path)
    whole = run_evolution(SHELF, search=longer, random_seed=3)
    assert summary(resumed) == summary(whole)


def test_budgets_end_the_search():
    found = run_evolution(
        SHELF, search=Search(**{**vars(SMALL), "max_evaluations": 120}), random_seed=0
    )
    assert found.stopped == "max_evaluations"
    patient = Search(**{**vars(SMALL), "generations": 500, "patience": 3})
    assert run_evolution(SHELF, search=patient, random_seed=0).stopped == "patience"
    started = time.monotonic()
    timed = Search(**{**vars(SMALL), "generations": 10**6, "max_time": 4.0})
    found = run_evolution(SHELF, search=timed, random_seed=0)
    assert found.stopped == "max_time"
    assert time.monotonic() - started < 4.0 * 1.05 + 0.3


def test_callbacks_are_told_of_every_unit_and_may_stop():
    seen = []

    def stop_at_four(generation):
        seen.append((generation.number, generation.best.key))
        return generation.number == 4

    found = run_evolution(SHELF, search=SMALL, random_seed=0, callbacks=[stop_at_four])
    assert [number for number, _ in seen] == [0, 2, 4]
    assert found.stopped == "callback"


def test_ctrl_c_returns_what_was_found():
    def interrupt(generation):
        if generation.number == 2:
            raise KeyboardInterrupt

    found = run_evolution(SHELF, search=SMALL, random_seed=0, callbacks=[interrupt])
    assert found.stopped == "interrupted" and found.finalists


def test_what_was_enumerated_and_how_much_was_done_is_said():
    found = run_evolution(SHELF, search=SMALL, random_seed=0)
    assert (found.n_enumerated, found.level) == (86, 5)
    assert (found.n_shapes, found.shape_level) == (242, 8)
    assert found.n_folded > found.n_screened > found.n_enumerated
    # Contenders only: at most 3 % of what is screened, and one for each of the judges.
    assert 0 < found.n_sampled <= 0.03 * found.n_screened + 3
    assert np.isfinite(found.log_rest)
    every = run_evolution(SHELF, search=replace(SMALL, evidence="smc"), random_seed=0)
    assert (every.n_enumerated, every.level, every.n_screened) == (0, 0, 0)
    assert every.n_sampled > 0.5 * every.n_candidates


@pytest.mark.parametrize("max_time", [0.05, 1.5])
def test_repeating_the_units_of_a_timed_search_gives_its_result(max_time):
    timed = replace(SMALL, generations=10**6, max_time=max_time)
    first = run_evolution(SHELF, search=timed, random_seed=5)
    units = {"max_units": max(1, first.n_units), "max_time": None}
    again = run_evolution(SHELF, search=replace(timed, **units), random_seed=5)
    if first.n_units:
        # But for the finalists, of which there was no time for some.
        assert summary(again)[1:4] == summary(first)[1:4] and again.n_units == first.n_units


def test_the_conventional_engine_minimises_the_error():
    X, y = make_sine(n_points=20, sigma=0.3, random_seed=0)
    search = Search(
        operators=("+", "-", "*"), population_size=20, generations=10, fitness="rmse", n_finalists=3
    )
    found = run_evolution(make_data(X, y), search=search, random_seed=0)
    errors = [record["rmse_best"] for record in found.history]
    assert np.all(np.diff(errors) <= 0.0) and errors[-1] < errors[0]
    assert [e.rmse for _, e in found.finalists] == sorted(e.rmse for _, e in found.finalists)
    assert found.winner is found.finalists[0][0]
    assert all(np.isnan(evidence.log_q) for _, evidence in found.finalists)


def test_finalists_are_distinct_and_ranked():
    found = run_evolution(SHELF, search=SMALL, random_seed=4)
    keys = [equation.key for equation, _ in found.finalists]
    assert len(set(keys)) == len(keys)
    prior = LawPrior()
    scores = [evidence.log_q + prior(equation) for equation, evidence in found.finalists]
    assert scores == sorted(scores, reverse=True)
    sizes = [candidate.complexity for candidate in found.front]
    scores = [candidate.score for candidate in found.front]
    assert sizes == sorted(sizes) and scores == sorted(scores)


@pytest.mark.parametrize("evidence", ["screened", "smc"])
def test_a_guess_takes_part(evidence):
    text = "c0*sqrt(H) + c1*H"
    some = {"generations": 0, "evidence": evidence, "n_enumerated": 0, "population_size": 4}
    search = Search(**{**vars(SMALL), **some, "law_prior": "uniform"})
    without = run_evolution(SHELF, search=search, random_seed=0)
    guess = Equation(text, ["H"])
    found = run_evolution(SHELF, search=search, seeds=[guess], random_seed=0)
    assert guess.key in {equation.key for equation, _ in found.finalists}
    assert guess.key not in {equation.key for equation, _ in without.finalists}


def test_a_guess_that_cannot_be_written_is_refused_before_anything_runs(monkeypatch):
    def evolve(*_):
        raise AssertionError("the search has begun")

    monkeypatch.setattr("pmsr.search.evolution._Run.evolve", evolve)
    with pytest.raises(ValueError, match="needs the operator 'sin', which is not among"):
        run_evolution(SHELF, search=SMALL, seeds=[Equation("c0*sin(H)", ["H"])], random_seed=0)


def test_without_time_for_a_first_population_guesses_are_what_is_known():
    guesses = [Equation(text, ["H"], ["a"]) for text in ("a*sqrt(H)", "a*H")]
    with time_limit(time.monotonic()):
        found = run_evolution(SHELF, search=SMALL, seeds=guesses, random_seed=0)
    assert [str(equation) for equation, _ in found.finalists] == ["c0*sqrt(H)", "c0*H"]
    assert not found.history


def test_a_search_that_ends_before_its_first_population_knows_its_guesses():
    guess = Equation("a*sqrt(H) + b*H", ["H"], ["a", "b"])  # no law of one node
    options = {"search": replace(SMALL, max_units=1), "random_seed": 0}
    found = run_evolution(SHELF, seeds=[guess], **options)
    assert not found.history and found.level == 1
    assert any(equation.key == guess.key for equation, _ in found.finalists)
    assert not any(one.key == guess.key for one, _ in run_evolution(SHELF, **options).finalists)


def test_no_global_random_state_is_used():
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = (random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002
    run_evolution(SHELF, search=Search(**{**vars(SMALL), "generations": 1}), random_seed=0)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


def test_equations_that_could_not_be_weighed_are_counted():
    search = Search(operators=("-", "log"), population_size=20, generations=2, evidence="smc")
    found = run_evolution(SHELF, search=search, random_seed=0)
    assert 0 < found.n_failed < found.n_candidates


def test_a_search_that_ran_out_of_time_can_go_on_from_its_last_generation(tmp_path):
    path = tmp_path / "state.npz"
    # Long enough for a first population, also where other work goes on.
    search = Search(**{**vars(SMALL), "generations": 10**6, "max_time": 3.0})
    found = run_evolution(SHELF, search=search, random_seed=0, checkpoint=path)
    assert found.stopped == "max_time"
    assert read_progress(path)[0] == found.history[-1]["generation"]


@pytest.mark.parametrize("call", [2, 3, 4, 6, 9])
@pytest.mark.parametrize("judge", [Funnel, Sampler])
def test_a_search_interrupted_within_a_unit_goes_on_as_if_it_had_not_been(
    tmp_path, monkeypatch, judge, call
):
    evidence = "screened" if judge is Funnel else "smc"
    search = Search(**{**vars(SMALL), "refresh": 1, "generations": 3, "evidence": evidence})
    whole = run_evolution(SHELF, search=search, random_seed=1)
    real, calls = judge.judge, []

    def interrupt(self, genomes, bench):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return real(self, genomes, bench)

    with monkeypatch.context() as patch:
        patch.setattr(judge, "judge", interrupt)
        if judge is Sampler and call == 2:
            # In the first population, before anything was found: nothing is lost.
            with pytest.raises(KeyboardInterrupt):
                run_evolution(SHELF, search=search, random_seed=1, checkpoint=tmp_path / "state")
        else:
            found = run_evolution(
                SHELF, search=search, random_seed=1, checkpoint=tmp_path / "state"
            )
            assert found.stopped == "interrupted"
    after = run_evolution(SHELF, search=search, random_seed=1, checkpoint=tmp_path / "state")
    assert summary(after) == summary(whole)


@pytest.mark.parametrize("name", [name for name, one in OPERATORS.items() if one.arity == 1])
def test_a_search_with_any_function_among_its_operators_resumes(tmp_path, name):
    search = Search(
        operators=("*", name),
        population_size=8,
        generations=4,
        max_complexity=16,
        n_finalists=1,
        n_enumerated=20,
        n_islands=2,
        refresh=2,
    )
    options = {"search": search, "random_seed": 0}
    whole = run_evolution(SHELF, **options)
    path = tmp_path / "state"
    run_evolution(SHELF, **options, checkpoint=path, callbacks=[lambda told: told.number == 2])
    assert summary(run_evolution(SHELF, **options, checkpoint=path)) == summary(whole)


@pytest.mark.parametrize("budget", [{}, {"max_evaluations": 120}, {"patience": 1}])
def test_a_search_killed_while_its_finalists_are_weighed_does_nothing_else_afterwards(
    tmp_path, monkeypatch, budget
):
    search = Search(**{**vars(SMALL), **budget})
    whole = run_evolution(SHELF, search=search, random_seed=1)
    options = {"search": search, "random_seed": 1, "checkpoint": tmp_path / "state"}

    def die(*_):
        raise SystemExit

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(_Run, "finish", die)
        run_evolution(SHELF, **options)
    with monkeypatch.context() as patch:
        patch.setattr(Workers, "evolve", die)
        found = run_evolution(SHELF, **options)
    assert summary(found) == summary(whole) and found.stopped == whole.stopped
    # With another budget it goes on.
    longer = Search(**{**vars(SMALL), "generations": SMALL.generations + 1})
    more = run_evolution(SHELF, **{**options, "search": longer})
    assert more.history[-1]["generation"] == longer.generations


def test_a_search_killed_after_its_time_was_up_does_not_search_again(tmp_path, monkeypatch):
    search = Search(**{**vars(SMALL), "generations": 10**6, "max_time": 1.0})
    options = {"search": search, "random_seed": 1, "checkpoint": tmp_path / "state"}
    first = run_evolution(SHELF, **options)
    monkeypatch.setattr(Workers, "evolve", None)
    again = run_evolution(SHELF, **options)
    assert again.stopped == "max_time" and again.population == first.population


def slow_down(monkeypatch, seconds):
    """Let every equation take so long, and look at the clock meanwhile, as real ones do."""
    engine = ENGINES["evidence"]

    def slow(*arguments, **options):
        for _ in range(20):
            time.sleep(seconds / 20)
            check_time()
        return engine.weigh(*arguments, **options)

    monkeypatch.setitem(ENGINES, "evidence", replace(engine, weigh=slow))


@pytest.mark.parametrize(("seconds", "max_time"), [(0.2, 2.0), (1.0, 0.1)])
def test_time_may_run_out_in_the_first_population(tmp_path, monkeypatch, seconds, max_time):
    slow_down(monkeypatch, seconds)
    some = {"population_size": 40, "max_time": max_time, "evidence": "smc"}
    search = Search(**{**vars(SMALL), **some})
    started = time.monotonic()
    options = {"search": search, "random_seed": 1, "checkpoint": tmp_path / "state"}
    found = run_evolution(SHELF, **options)
    # All forty would take ten times as long. The simplest and the best, or a constant, are weighed
    # in any case, once in the population and once more among the finalists.
    assert time.monotonic() - started < max_time + 20 * seconds
    assert found.stopped == "max_time" and found.finalists
    assert str(found.winner) == "c0" and np.isfinite(found.finalists[0][1].log_q)
    monkeypatch.undo()
    longer = Search(**{**vars(search), "max_time": None, "generations": 2})
    resumed = run_evolution(SHELF, **{**options, "search": longer})
    assert len(resumed.history) == 3


def test_what_failed_to_be_weighed_counts_by_the_closed_form(monkeypatch):
    def fail_one(keys, *arguments, **options):
        for equation, one in weigh_finalists(keys, *arguments, **options):
            if str(equation) == "c0*sqrt(H)":
                bad = replace(one.evidence, log_q=-np.inf, failure="unreliable")
                one = replace(one, evidence=bad)
            yield equation, one

    whole = run_evolution(SHELF, search=SMALL, random_seed=1)
    assert str(whole.winner) == "c0*sqrt(H)"
    monkeypatch.setattr(pmsr.search.evolution, "weigh_finalists", fail_one)
    found = run_evolution(SHELF, search=SMALL, random_seed=1)
    score = max(one.score for one in found.front)
    assert found.log_rest >= score > whole.log_rest
