import pickle
import tracemalloc

import numpy as np
import pytest

from pmsr.data import make_data
from pmsr.equation.descent import FITTED
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate_jacobian
from pmsr.evidence.problem import Problem
from pmsr.search.curves import KnownLaws
from pmsr.search.genome import Primitives, random_genome
from pmsr.search.halving import FIRST, Stages, screen_many
from pmsr.search.screening import Batch, linear_log_qs, screen
from pmsr.settings import Settings

FIELDS = ("sse", "rank", "theta", "log_q", "curves", "outcome", "n_rows", "log_q_error", "n_points")


def of(*texts):
    return Batch.of([Equation(text, ["x0"]).program for text in texts])


def many_rows(n, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 3.0, n)
    y = np.sin(2.0 * x) * x + 0.1 * rng.standard_normal(n)
    return Problem.of(make_data(x[:, None], y), Settings())


@pytest.fixture(scope="module")
def laws():
    rng, found = np.random.default_rng(2), {}
    primitives = Primitives(("+", "-", "*", "/", "sqrt", "exp", "sin"), ("x0",), size=14)
    while len(found) < 300:
        try:
            equation = random_genome(primitives, rng=rng).equation(("x0",))
            found.setdefault(equation.key, equation.to_canonical().program)
        except (ValueError, TypeError):
            continue
    return Batch.of(list(found.values()))


def same_bits(first, second, which=slice(None)):
    return all(
        getattr(first, name).tobytes()
        == np.ascontiguousarray(getattr(second, name)[which]).tobytes()
        for name in FIELDS
    )


@pytest.mark.parametrize("n", [20, FIRST])
def test_on_few_rows_it_is_plain_screening(laws, n):
    problem = many_rows(n)
    plain = screen(laws, problem, 3)
    found = screen_many(laws, problem, 3, Stages.of(problem.data, 3))
    for name in vars(plain):
        assert getattr(found, name).tobytes() == getattr(plain, name).tobytes()
    assert np.all(found.n_rows == n) and not found.log_q_error.any() and found.reference is None


def test_stages_are_nested_and_depend_on_the_seed_alone():
    data = many_rows(3000).data
    stages = Stages.of(data, 7)
    assert stages.sizes == (128, 512, 2048, 3000) and stages.n_kept == 128
    np.testing.assert_array_equal(stages.data.y, Stages.of(data, 7).data.y)
    assert not np.array_equal(stages.data.y, Stages.of(data, 8).data.y)
    rows = np.column_stack([data.X, data.y])
    mixed = np.column_stack([stages.data.X, stages.data.y])
    np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(mixed, axis=0))


def test_a_term_of_a_tenth_of_sigma_is_found_in_100000_rows():
    rng = np.random.default_rng(0)
    n, sigma = 100_000, 0.5
    x = rng.uniform(-1.0, 1.0, n)
    bend = (x**2 - 1.0 / 3.0) / np.sqrt(4.0 / 45.0)  # of deviation 1, and not explained by a line
    y = 2.0 + 3.0 * x + 0.1 * sigma * bend + sigma * rng.standard_normal(n)
    problem = Problem.of(make_data(x[:, None], y), Settings())
    texts = ("c0 + c1*x0 + c2*x0**2", "c0 + c1*x0", "c0*x0", "c0", "c0*exp(c1*x0)", "c0*x0**2 + c1")
    with_term, without = 0, 1

    def direct(degree):
        A = np.vander(x, degree + 1)
        square = np.sum((y - A @ np.linalg.lstsq(A, y)[0]) ** 2) / np.var(y)
        return linear_log_qs(np.array([degree + 1]), np.array([square]), problem)[0]

    gain = direct(2) - direct(1)
    assert gain > 400.0
    for seed in range(8):
        found = screen_many(of(*texts), problem, 0, Stages.of(problem.data, seed))
        assert found.n_rows[with_term] == n
        assert found.reference.log_q == found.log_q[with_term] == found.log_q.max()
        np.testing.assert_allclose(found.log_q[with_term], direct(2), atol=1e-6)
        seen = found.log_q[with_term] - found.log_q[without]
        assert abs(seen - gain) <= 3.0 * found.log_q_error[without] + 1e-6

    few = Problem.of(make_data(x[:500, None], y[:500]), Settings())
    alone = screen(of(*texts), few, 0).log_q
    assert abs(alone[with_term] - alone[without]) < 5.0


def test_it_takes_at_most_three_times_the_first_stage(laws):
    problem = many_rows(100_000)
    stages = Stages.of(problem.data, 0)
    found = screen_many(laws, problem, 0, stages)
    few = make_data(stages.data.X[:FIRST], stages.data.y[:FIRST])
    first = screen(laws, Problem.of(few, Settings()), 0).n_evaluations.sum() * FIRST
    assert found.n_points.sum() <= 3.0 * first
    assert screen_many(laws, problem, 0, stages, found.reference).n_points.sum() <= 3.0 * first


def test_given_the_reference_nothing_depends_on_how_laws_are_shared_out(laws):
    problem = many_rows(5000)
    stages = Stages.of(problem.data, 4)
    first = screen_many(laws, problem, 4, stages)
    assert same_bits(screen_many(laws, problem, 4, stages), first)
    # What a worker is sent, or a checkpoint holds.
    reference = pickle.loads(pickle.dumps(first.reference))
    whole = screen_many(laws, problem, 4, stages, reference)
    assert same_bits(screen_many(laws, problem, 4, stages, reference), whole)
    order = np.random.default_rng(0).permutation(len(laws.nodes))
    for part in np.array_split(order, 7):
        some = screen_many(laws.take(part), problem, 4, stages, reference)
        p = some.theta.shape[1]
        assert some.theta.tobytes() == np.ascontiguousarray(whole.theta[part, :p]).tobytes()
        for name in FIELDS:
            if name != "theta":
                mine, all_of_them = getattr(some, name), getattr(whole, name)
                assert mine.tobytes() == np.ascontiguousarray(all_of_them[part]).tobytes()


def test_log_q_is_extrapolated_within_its_error(laws):
    problem = many_rows(4000)
    found = screen_many(laws, problem, 0, Stages.of(problem.data, 0))
    plain = screen(laws, problem, 0)
    both = (found.outcome == FITTED) & (plain.outcome == FITTED)
    assert np.mean(both == (found.outcome == FITTED)) > 0.98
    both &= plain.sse < len(problem.data.y) * np.var(problem.data.y)  # no worse than a constant
    early = both & (found.n_rows < 4000)
    assert early.sum() > 50 and np.all(found.log_q_error[early] > 0.0)
    z = (found.log_q[early] - plain.log_q[early]) / found.log_q_error[early]
    assert np.mean(np.abs(z) < 3.0) > 0.95
    late = both & (found.n_rows == 4000)
    assert late.sum() > 2 and not found.log_q_error[late].any()
    np.testing.assert_allclose(found.log_q[late], plain.log_q[late], rtol=1e-6)


def test_the_best_law_of_all_rows_comes_to_the_last_stage(laws):
    for seed in range(3):
        problem = many_rows(4000, seed)
        found = screen_many(laws, problem, 0, Stages.of(problem.data, seed))
        assert found.n_rows[np.argmax(screen(laws, problem, 0).log_q)] == 4000


def test_the_reference_is_replaced_by_a_better_law_only():
    problem = many_rows(2000)
    stages = Stages.of(problem.data, 0)
    poor = screen_many(of("c0*x0", "c0"), problem, 0, stages).reference
    better = screen_many(of("c0*x0*sin(c1*x0)", "c0"), problem, 0, stages, poor).reference
    assert better.log_q > poor.log_q + 100.0
    still = screen_many(of("c0*x0", "c0 + c1*x0"), problem, 0, stages, better).reference
    assert still.log_q == better.log_q and still.program.nodes.tolist() == (
        better.program.nodes.tolist()
    )


def test_a_useless_parameter_gains_nothing_by_few_rows():
    # Fitted to 128 rows, each would be taken for 400 nats on 100,000.
    rng = np.random.default_rng(5)
    x = rng.uniform(-1.0, 1.0, 100_000)
    problem = Problem.of(make_data(x[:, None], x + rng.standard_normal(len(x))), Settings())
    texts = ["c0*x0", *(f"c0*x0 + c1*x0**{k}" for k in range(2, 12))]
    found = screen_many(of(*texts), problem, 0, Stages.of(problem.data, 0))
    assert np.all(found.log_q[1:] - found.log_q[0] < 3.0 * found.log_q_error[1:])
    assert np.argmax(np.where(found.n_rows == len(x), found.log_q, -np.inf)) == 0


def test_spellings_of_one_law_are_one_however_far_they_come():
    problem = many_rows(5000)
    stages = Stages.of(problem.data, 0)
    reference = screen_many(of("c0*x0*sin(c1*x0)", "c0"), problem, 0, stages).reference
    known = KnownLaws(problem.data, stages.n_kept)
    one = screen_many(of("c0*(c1 + x0)", "c0*x0"), problem, 0, stages)
    other = screen_many(of("c0*x0 + c1", "c0/x0"), problem, 0, stages, reference)
    assert one.n_rows[0] != other.n_rows[0]
    assert known.add(one).tolist() == [0, 1] and known.add(other).tolist() == [0, 2]


def test_a_law_that_fails_in_rows_to_come_is_no_contender():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.1, 3.0, 4000)
    problem = Problem.of(
        make_data(x[:, None], np.log(x) + 0.01 * rng.standard_normal(4000)), Settings()
    )
    stages = Stages.of(problem.data, 0)
    x[np.argmin(np.abs(problem.data.y - stages.data.y[3000]))] = -1.0  # a row of the last stage
    problem = Problem.of(make_data(x[:, None], problem.data.y), Settings())
    found = screen_many(
        of("c0*log(x0)", "c0*x0 + c1", "c0"), problem, 0, Stages.of(problem.data, 0)
    )
    assert found.n_rows[0] == 4000 and found.outcome[0] != FITTED and found.log_q[0] == -np.inf
    assert np.isfinite(found.reference.log_q)


def test_without_any_law_that_can_be_fitted_there_is_no_reference():
    problem = many_rows(1000)
    found = screen_many(of("log(-x0)*c0"), problem, 0, Stages.of(problem.data, 0))
    assert found.reference is None and found.log_q[0] == -np.inf


def test_a_law_as_far_off_as_floats_go_is_infinitely_far():
    problem = many_rows(1000)
    texts = ("c0", "x0*1e154", "c0*x0", "exp(exp(2*x0))", "x0*1e153")
    found = screen_many(of(*texts), problem, 0, Stages.of(problem.data, 0))
    assert np.all(found.n_rows[[1, 3, 4]] == FIRST)
    assert np.all(found.log_q[[1, 3, 4]] < found.log_q[0] - 1e3)


def test_a_thousand_laws_on_100000_rows_need_less_than_300_megabytes():
    problem = many_rows(100_000)
    stages = Stages.of(problem.data, 0)
    batch = of(*(f"c0*x0**{1 + k % 9} + c1*exp(x0/{k + 1}) + c2" for k in range(1000)))
    tracemalloc.start()
    found = screen_many(batch, problem, 0, stages)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300e6 and found.curves.shape == (1000, FIRST + 32)


def test_theta_of_the_last_stage_is_a_minimum_there(laws):
    problem = many_rows(3000)
    stages = Stages.of(problem.data, 0)
    found = screen_many(of("c0*x0*sin(c1*x0)", "c0 + c1*x0"), problem, 0, stages)
    program = Equation("c0*x0*sin(c1*x0)", ["x0"]).program
    values, jacobian = evaluate_jacobian(program, found.theta[:1, :2], problem.data.X)
    residual = problem.data.y - values[0]
    lengths = np.linalg.norm(jacobian[0], axis=1) * np.linalg.norm(residual)
    assert np.all(np.abs(jacobian[0] @ residual) < 1e-6 * lengths)
    np.testing.assert_allclose(found.sse[0], residual @ residual, rtol=1e-9)
