from dataclasses import replace

import numpy as np
import pytest

from pmsr.data import load_galileo, make_data
from pmsr.equation.expression import Equation
from pmsr.equation.program import Program
from pmsr.evidence.evidence import linear_log_q, make_target, weigh
from pmsr.evidence.multistart import FitError, fit
from pmsr.evidence.problem import Problem
from pmsr.evidence.surface import Surface
from pmsr.search.screening import Batch, linear_log_qs, probe_points, screen
from pmsr.settings import Settings


def of(*texts):
    return Batch.of([Equation(text, ["x0"]).program for text in texts])


def same_bits(first, second):
    return all(
        getattr(first, name).tobytes() == getattr(second, name).tobytes()
        for name in ("sse", "rank", "log_q", "curves", "outcome")
    )


def test_results_do_not_depend_on_order_or_split(programs, data):
    batch, settings = Batch.of(programs), Settings()
    whole = screen(batch, Problem.of(data, settings), 5)
    order = np.random.default_rng(0).permutation(len(programs))
    mixed = screen(batch.take(order), Problem.of(data, settings), 5)
    for name in ("sse", "rank", "theta", "log_q", "curves", "outcome", "n_evaluations"):
        assert getattr(mixed, name).tobytes() == getattr(whole, name)[order].tobytes()
    for k in (0, 7, 31):
        alone = screen(Batch.of([programs[k]]), Problem.of(data, settings), 5)
        assert alone.sse[0] == whole.sse[k] and alone.log_q[0] == whole.log_q[k]
        assert alone.curves[0].tobytes() == whole.curves[k].tobytes()


def test_another_seed_has_other_starts_and_mostly_the_same_minima(programs, data):
    first, second = (
        screen(Batch.of(programs), Problem.of(data, Settings()), seed) for seed in (0, 1)
    )
    assert not same_bits(first, second)
    close = np.isclose(first.sse, second.sse, rtol=1e-6) | (first.sse == second.sse)
    assert close.mean() > 0.9


def test_keys_of_the_caller_decide_the_starts(data):
    batch = of("c0*sin(c1*x0 + c2)", "c0*sin(c1*x0 + c2)")
    keys = np.array([3, 3], dtype=np.uint64)
    found = screen(batch, Problem.of(data, Settings()), 0, keys=keys)
    assert found.theta[0].tobytes() == found.theta[1].tobytes()


def test_screening_reaches_the_least_error_of_scipy(programs, data):
    found = screen(Batch.of(programs), Problem.of(data, Settings()), 0)
    floor = 1e-24 * np.sum(data.y**2)
    reached = []
    for k, program in enumerate(programs):
        if program.n_parameters == 0:
            continue
        try:
            best = fit(
                program,
                Problem.of(data, Settings()),
                32,
                rng=np.random.default_rng(1),
                generic=True,
                rule=lambda one: Surface.of(one, data).obeys,
            )
        except FitError:
            continue
        reached.append(found.sse[k] <= best.minima[0].sse * (1.0 + 1e-6) + floor)
    assert len(reached) >= 30
    assert np.mean(reached) >= 0.9  # 95 % of the 300 laws of benchmarks/screening.py


@pytest.mark.parametrize("settings", [Settings(), Settings(sigma_prior="log-flat", gamma=0.4)])
def test_log_q_is_that_of_a_linear_law(settings, data):
    texts = ("c0 + c1*x0", "c0*exp(c1*x0)", "c0*exp(c1*x0) + c2")
    found = screen(of(*texts), Problem.of(data, settings), 0)
    for text, log_q in zip(texts, found.log_q, strict=True):
        program = Equation(text, ["x0"]).program
        problem = Problem.of(data, settings)
        target = make_target(program, problem, 8, rng=np.random.default_rng(0))
        assert log_q == pytest.approx(linear_log_q(target), abs=1e-4)


def test_log_q_is_exact_for_errors_of_any_size(data):
    constant = screen(of("c0"), Problem.of(data, Settings()), 0)
    exact = Problem.of(data, Settings()).constant_log_q
    assert constant.log_q[0] == pytest.approx(exact, abs=1e-6)
    squares = np.array([0.0, 1e-30, 1e-8, 1e4, 1e12, np.inf])
    one = np.ones(6, dtype=np.int64)
    log_q = linear_log_qs(one, squares, Problem.of(data, Settings()))
    assert np.all(np.diff(log_q) <= 0.0) and np.isfinite(log_q[:5]).all() and log_q[5] == -np.inf


def test_log_q_follows_the_units_of_the_target():
    X, y = load_galileo("shelf")
    batch = Batch.of([Equation("c0*sqrt(H)", ["H"]).program])
    here, there = (
        screen(batch, Problem.of(make_data(X, factor * y), Settings()), 0).log_q[0]
        for factor in (1.0, 1e3)
    )
    n, gamma = len(y), len(y) ** -0.5
    assert here - there == pytest.approx((1.0 - gamma) * n * np.log(1e3), abs=1e-9)


def test_probes_lie_in_the_range_of_the_data():
    X = np.random.default_rng(0).normal(size=(9, 3)) * [1.0, 1e150, 1e-150]
    probes = probe_points(X)
    assert probes.shape == (32, 3)
    assert np.all(probes >= X.min(axis=0)) and np.all(probes <= X.max(axis=0))
    assert all(len(np.unique(column)) == 32 for column in probes.T)


def test_an_empty_batch_is_no_error(data):
    assert len(screen(Batch.of([]), Problem.of(data, Settings()), 0).sse) == 0


def test_too_many_parameters_are_refused():
    nodes = np.zeros((1, 1, 3), dtype=np.int32)
    one = np.ones(1, dtype=np.int64)
    with pytest.raises(ValueError, match="at most 63 parameters can be screened, got 64"):
        Batch(nodes, one, np.zeros((1, 1)), 64 * one)


def test_frozen_arrays_are_welcome(data):
    X, y = data.X.copy(), data.y.copy()
    X.flags.writeable = y.flags.writeable = False
    program = Program.of([(1, 0, 0)], [], 1)
    frozen = type(data)(X, y, data.names, data.target)
    assert screen(Batch.of([program]), Problem.of(frozen, Settings()), 0).theta[
        0, 0
    ] == pytest.approx(y.mean())


@pytest.mark.parametrize("noise", ["lognormal", "proportional", "poisson"])
def test_laws_are_screened_under_every_noise_as_they_are_weighed(noise):
    rng = np.random.default_rng(2)
    x = np.linspace(0.5, 4.0, 20)
    f = 30.0 * np.exp(-0.4 * x)
    y = (
        rng.poisson(f).astype(float)
        if noise == "poisson"
        else f * np.exp(0.1 * rng.normal(size=20))
    )
    settings = Settings(noise=noise, n_replicates=4)
    problem = Problem.of(make_data(x, y, names=["x"]), settings)
    laws = [Equation(text, ["x"]) for text in ("c0*exp(c1*x)", "c0 + c1*x", "c0/x")]
    found = screen(Batch.of([law.program for law in laws]), problem, 0)
    for law, log_q, theta in zip(laws, found.log_q, found.theta, strict=True):
        exact = weigh(law.program, problem, settings, np.random.SeedSequence(1)).evidence
        assert log_q == pytest.approx(exact.log_q_linear, abs=0.02)
        assert abs(log_q - exact.log_q) < 1.0
        np.testing.assert_allclose(theta[: len(exact.theta)], exact.theta, rtol=1e-3)


def test_known_errors_are_screened_exactly_where_a_law_is_linear():
    rng = np.random.default_rng(4)
    x, errors = np.linspace(0.5, 4.0, 20), rng.uniform(0.1, 1.0, 20)
    y = 1.0 + 2.0 * x + errors * rng.standard_normal(20)
    data = replace(make_data(x, y, names=["x"]), y_err=errors)
    problem = Problem.of(data, Settings())
    found = screen(Batch.of([Equation("c0 + c1*x", ["x"]).program]), problem, 0)
    A = np.column_stack([np.ones(20), x]) / errors[:, None]
    theta, chi2 = np.linalg.lstsq(A, y / errors, rcond=None)[:2]
    log_l = -10 * np.log(2 * np.pi) - np.sum(np.log(errors)) - 0.5 * chi2[0]
    expected = (1 - problem.gamma) * log_l + np.log(problem.gamma)
    assert found.log_q[0] == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(found.theta[0], theta, rtol=1e-8)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("noise", ["gaussian", "student", "lognormal"])
def test_groups_are_screened_as_they_are_weighed(noise, shared):
    rng = np.random.default_rng(3)
    groups = np.repeat(["a", "b", "c"], (9, 7, 6))
    x = np.concatenate([np.linspace(0.5, 3.0, n) for n in (9, 7, 6)])
    slope = np.array([{"a": 2.0, "b": 1.0, "c": 3.0}[label] for label in groups])
    y = slope * x * np.exp(0.1 * rng.standard_normal(len(x)))
    settings = Settings(noise=noise, shared_sigma=shared)
    problem = Problem.of(make_data(x, y, groups=groups), settings)
    texts = ("c0*x0", "c0 + c1*x0", "c0*x0**c1")
    laws = [Equation(text, ["x0"]).program for text in texts]
    if problem.noise.needs_tuning:
        line = Equation("c0*x0", ["x0"]).program
        tunings = [
            part.tuned(line, np.array([constant])).tuning
            for constant, part in zip((2.0, 1.0, 3.0), problem.parts, strict=True)
        ]
        screened = screen(Batch.of(laws), problem.with_tunings(tunings), 0)
    else:
        screened = screen(Batch.of(laws), problem, 0)
    for k, law in enumerate(laws):
        evidence = weigh(law, problem, settings, np.random.SeedSequence(1)).evidence
        assert screened.rank[k] == evidence.rank
        # Weights of a typical fit stand for those of the law's own under Student noise.
        if noise != "student":
            assert abs(screened.log_q[k] - evidence.log_q_linear) < 0.02
        assert abs(screened.log_q[k] - evidence.log_q) < 1.0
