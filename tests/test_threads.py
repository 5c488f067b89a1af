"""Threads of one process must not notice each other: their numbers are those of a serial run."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import mpmath
import numpy as np
import pymc as pm
import pytest
from rich.errors import LiveError
from rich.progress import Progress
from sympy.core.cache import clear_cache

import pmsr
from pmsr import threads
from pmsr.equation import operators
from pmsr.equation.expression import Equation
from pmsr.equation.operators import OPERATORS, Operator, Table
from pmsr.estimator import BayesianSymbolicRegressor
from pmsr.evidence import model, smc
from pmsr.evidence.evidence import compute_evidence
from pmsr.evidence.posterior import draw_posterior
from pmsr.evidence.problem import Problem
from pmsr.result.doubts import ResultWarning, quietly, warn
from pmsr.search.bench import Bench
from pmsr.search.evolution import _Run, run_evolution
from pmsr.search.progress import Display
from pmsr.settings import QUICK, Search
from pmsr.threads import ONE_AT_A_TIME, SCREEN, one_blas_thread

N_THREADS = 4
# Neighbours have equally many parameters, and so one density.
EQUATIONS = (
    "c0*x0",
    "sin(c0*x0)",
    "c0 + c1*x0",
    "c0*exp(c1*x0)",
    "c0 + c1*x0 + c2*x1",
    "c0*x0 + c1*sin(c2*x1)",
    "c0 + c1*x0 + c2*x1 + c3*x0*x1",
    "c0 + c1*exp(c2*x0) + c3*x1",
)


def make_points(n):
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 3.0, (n, 2))
    return X, 2.0 * X[:, 0] + np.sin(X[:, 1]) + 0.3 * rng.standard_normal(n)


@pytest.fixture
def restless():
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def uncompiled(monkeypatch):
    """Forget the densities that were compiled before."""
    monkeypatch.setattr(model, "_templates", {})
    monkeypatch.setattr(smc, "_prototypes", {})


def bits(record):
    """All numbers of a record, to the last bit."""
    return repr(vars(record)), [v.tobytes() for v in vars(record).values() if hasattr(v, "tobytes")]


def in_threads(call, tasks):
    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(call, tasks))


@pytest.mark.usefixtures("restless", "uncompiled")
def test_evidence_in_threads_is_that_of_a_serial_run_bit_for_bit():
    X, y = make_points(2000)
    tasks = [(text, seed) for text in EQUATIONS for seed in range(2)]

    def weigh(task):
        return bits(compute_evidence(task[0], X, y, settings=QUICK, random_seed=task[1]))

    together = in_threads(weigh, tasks)  # first: they compile together, too
    assert together == list(map(weigh, tasks))


@pytest.mark.usefixtures("restless")
def test_posteriors_in_threads_are_those_of_a_serial_run_bit_for_bit():
    data = pmsr.data.make_data(*make_points(2000))
    equations = [Equation(text, data.names) for text in EQUATIONS[2:6]]
    problem = Problem.of(data, QUICK)

    def sample(equation):
        seed = np.random.SeedSequence(1)
        return bits(draw_posterior(equation, problem, QUICK, seed, draws=200, chains=2))

    assert in_threads(sample, equations) == list(map(sample, equations))


def regressor(seed, **options):
    return BayesianSymbolicRegressor(
        ("+", "*", "sin"),
        population_size=16,
        generations=2,
        max_complexity=12,
        search=Search(n_finalists=3, n_enumerated=100, n_islands=2, refresh=1),
        random_state=seed,
        **options,
    )


def outcome(fitted):
    """What a fit has found, to the last bit."""
    found = [
        (one.equation.text, bits(one.evidence), bits(one.draws)) for one in fitted.result_.equations
    ]
    clocks = ["elapsed", "equations_per_second"]
    return found, fitted.history_.drop(columns=clocks).to_csv(), fitted.warnings_


quiet = pytest.mark.filterwarnings("ignore::pmsr.result.doubts.ResultWarning")


@quiet
@pytest.mark.usefixtures("restless")
def test_a_search_whose_workers_are_threads_is_that_of_one_worker():
    X, y = make_points(2000)
    alone = regressor(1, n_jobs=1, verbose=False).fit(X, y)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        together = regressor(1, verbose=False).fit(X, y)
    assert outcome(together) == outcome(alone)


@quiet
@pytest.mark.usefixtures("restless")
def test_searches_in_two_threads_are_those_one_after_the_other():
    X, y = make_points(2000)

    def fit(seed):
        # Both would like to show their progress.
        return outcome(regressor(seed, verbose=True).fit(X, y))

    assert in_threads(fit, [1, 2]) == list(map(fit, [1, 2]))
    assert not SCREEN.locked()


# What Dask itself says while it starts is not ours.
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_whose_workers_are_threads_gives_the_same_result(monkeypatch):
    distributed = pytest.importorskip("distributed")
    # It would ask the network for the machine's own address.
    monkeypatch.setattr("distributed.comm.inproc.get_ip", lambda: "127.0.0.1")
    data = pmsr.data.make_data(*make_points(2000))
    search = Search(
        operators=("+", "*"),
        population_size=12,
        generations=2,
        n_finalists=2,
        n_islands=2,
        n_enumerated=100,
        refresh=1,
    )
    alone = run_evolution(data, search=search, random_seed=1)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        together = run_evolution(data, search=search, random_seed=1)
    assert together.population == alone.population
    finalists = [[(str(e), bits(q)) for e, q in found.finalists] for found in (together, alone)]
    assert finalists[0] == finalists[1]


@pytest.mark.usefixtures("uncompiled")
def test_a_density_that_was_interrupted_is_not_used_again():
    template = model.make_template(1)
    line = Equation("c0*x", ["x"]).program
    data = pmsr.data.make_data([[1.0], [2.0]], [1.0, 2.0], names=["x"])
    problem = Problem.of(data, QUICK)
    theta, sigma = np.ones((3, 1)), np.ones(3)
    template.log_likelihood(line, problem, theta, sigma)
    assert len(template._idle) == 1
    with pytest.raises(ValueError, match=r"shape|dimension"):
        template.log_likelihood(line, problem, theta, np.ones(2))
    assert not template._idle
    assert np.isfinite(template.log_likelihood(line, problem, theta, sigma)).all()


@pytest.mark.usefixtures("uncompiled")
def test_evidence_leaves_a_users_model_alone_in_whose_context_it_is_computed():
    with pm.Model() as mine:
        compute_evidence("c0*x0", *make_points(20), settings=QUICK, random_seed=1)
    assert not mine.basic_RVs
    assert not mine.named_vars


@pytest.fixture
def two_blas_threads():
    """Give BLAS two threads, as on a machine without OMP_NUM_THREADS; return what it has."""
    libraries = threads._blas()[0].lib_controllers
    before = [library.get_num_threads() for library in libraries]
    threads._set_threads(threads._blas()[0], [2] * len(libraries), before)
    yield lambda: {library.get_num_threads() for library in libraries}
    threads._set_threads(threads._blas()[0], before, [2] * len(libraries))


@pytest.mark.parametrize("last", ["first in", "last in"])
def test_blas_has_one_thread_while_anybody_is_inside_and_as_many_as_before_afterwards(
    two_blas_threads, last
):
    assert two_blas_threads() == {2}
    has_entered, may_leave, has_left = (threading.Event() for _ in range(3))

    def visit():
        with one_blas_thread():
            has_entered.set()
            may_leave.wait(10)
        has_left.set()

    visitor = threading.Thread(target=visit)
    with one_blas_thread():
        visitor.start()
        assert has_entered.wait(10)
        assert two_blas_threads() == {1}
        if last == "first in":
            may_leave.set()
            visitor.join(10)
            assert two_blas_threads() == {1}
    if last == "last in":
        assert two_blas_threads() == {1}
        may_leave.set()
        visitor.join(10)
    assert two_blas_threads() == {2}


@pytest.mark.usefixtures("restless")
def test_algebra_in_threads_keeps_the_precision_of_numbers():
    """SymPy computes tan and tanh of numbers with mpmath, whose precision is one for all."""
    plain = [f"c0*x + tan({1.1 + k / 1000})" for k in range(100)]
    signs = [f"abs(tan({k}) + sqrt(3))*x + abs(tanh({k}) - sqrt(2))" for k in range(2, 60)]

    def read(texts):
        clear_cache()
        return [Equation(text, ["x"]).key for text in texts]

    before = mpmath.mp.prec
    assert in_threads(read, [plain, signs] * 4) == [read(plain), read(signs)] * 4
    assert mpmath.mp.prec == before


@pytest.mark.parametrize(
    "work",
    [
        lambda law: Equation("c0*tan(x)", ["x"]),
        lambda law: Equation.from_sympy(law.expression, ["x"]),
        lambda law: law.key,
        lambda law: law.program,
        lambda law: law.latex(),
        lambda law: str(law),
        lambda law: pmsr.build_model(law, [[1.0], [2.0]], [1.0, 2.0]),
        lambda law: model.make_template(1),
        lambda law: OPERATORS.update(sin=OPERATORS["sin"]),
    ],
)
@pytest.mark.usefixtures("uncompiled")
def test_algebra_and_compilation_are_done_by_one_thread_at_a_time(work):
    law = Equation("c0*x", ["x"])
    worker = threading.Thread(target=work, args=[law])
    with ONE_AT_A_TIME:
        worker.start()
        worker.join(0.1)
        assert worker.is_alive()
    worker.join(10)
    assert not worker.is_alive()


def double(name):
    return Operator(name, 1, None, None, lambda a: 2.0 * a, lambda a, v: 2.0)


def test_an_operator_may_be_added_while_others_walk_along_the_table():
    table = Table([double("a"), double("b")])
    for name in table:
        table[name * 2] = double(name * 2)
    for row in table.values():
        table[row.name * 3] = double(row.name * 3)
    assert len(table) == 8


def test_loops_without_a_row_never_pass_for_up_to_date():
    class Watched(Table):
        """Notes which fingerprint goes with a row that has just become visible."""

        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "_rows":
                seen.append((len(value), getattr(self, "fingerprint", None)))

    seen = []
    table = Watched([double("a")])
    table["b"] = double("b")
    assert seen[-1] == (2, Table([double("a"), double("b")]).fingerprint)


def test_two_threads_cannot_add_the_same_operator(monkeypatch):
    together = threading.Barrier(2)
    monkeypatch.setattr(operators, "_check_derivative", lambda row: together.wait(10))

    def add(row):
        try:
            pmsr.add_operator(row)
        except ValueError as error:
            return str(error)

    try:
        found = in_threads(add, [double("twice"), double("twice")])
    finally:
        del OPERATORS["twice"]
    assert found.count(None) == 1
    assert "Operator 'twice' exists already. Choose another name." in found


@pytest.mark.slow
@pytest.mark.usefixtures("restless")
def test_a_new_operator_is_compiled_once_when_threads_meet_it(with_softplus, monkeypatch):
    times = []
    compile_added = pmsr.equation.linking._compile_added
    monkeypatch.setattr(
        pmsr.equation.linking,
        "_compile_added",
        lambda rows: times.append(1) or compile_added(rows),
    )
    law = Equation("c0*softplus(c1*x)", ["x"]).program
    X = np.linspace(0.0, 2.0, 50)[:, None]

    def derive(k):
        return pmsr.equation.program.evaluate_jacobian(law, np.array([[1.0, 1.0 + k]]), X)

    found = in_threads(derive, range(8))
    assert len(times) == 1
    for k, (values, jacobian) in enumerate(found):
        slope = 1.0 + k
        np.testing.assert_allclose(values[0], np.log1p(np.exp(slope * X[:, 0])), rtol=1e-12)
        share = 1.0 / (1.0 + np.exp(-slope * X[:, 0]))
        np.testing.assert_allclose(jacobian[0, 1], X[:, 0] * share, rtol=1e-12)


def test_silence_in_one_thread_is_not_silence_in_another():
    def be_quiet():
        with quietly():
            warn(["not heard"])
            entered.set()
            heard.wait(10)

    entered, heard = threading.Event(), threading.Event()
    thread = threading.Thread(target=be_quiet)
    thread.start()
    entered.wait(10)
    with pytest.warns(ResultWarning, match="heard") as caught:
        warn(["heard"])
    heard.set()
    thread.join(10)
    assert len(caught) == 1


def test_what_threads_may_call_leaves_the_filters_of_warnings_alone():
    # Filters belong to the process: what a shell, a drawing or an experiment does is done alone.
    package = Path(pmsr.__file__).parent
    alone = {"cli.py", "commands.py", "posteriors.py", "fits.py"}
    found = {
        path.name for path in package.rglob("*.py") if "catch_warnings(" in path.read_text("utf-8")
    }
    assert found <= alone


@pytest.fixture
def small_run():
    data = pmsr.data.make_data(*make_points(20))
    return _Run(Bench(Problem.of(data, QUICK, None), Search(operators=("+",)), QUICK, 0), (), 1)


def test_a_second_display_stays_silent(small_run, capsys):
    with Display(small_run) as outer:
        with Display(small_run) as inner:
            inner("inner")
        outer("outer")
        assert SCREEN.locked()
    assert not SCREEN.locked()
    shown = capsys.readouterr().out
    assert "outer" in shown
    assert "inner" not in shown


def test_a_display_gives_way_to_one_of_the_users(small_run, monkeypatch):
    def refuse(_):
        raise LiveError("Only one live display may be active at once")

    monkeypatch.setattr(Progress, "start", refuse)  # what rich before 14.1 does
    with Display(small_run) as show:
        show("generation")
        assert not SCREEN.locked()
