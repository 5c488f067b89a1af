"""Groups that share sigma, against closed forms and quadrature that share no code with it."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from pmsr.evidence.evidence import compute_evidence, fit_equation
from pmsr.evidence.model import build_model
from pmsr.evidence.posterior import sample_posterior
from pmsr.evidence.prediction import predict
from pmsr.settings import QUICK, Settings
from tests.exact import linear_log_q

SHARED = Settings(shared_sigma=True)
LABELS = ["run 1", "run 2", "run 3"]
SIZES = (8, 5, 2)
groups = np.repeat(LABELS, SIZES)
x = np.concatenate([np.linspace(0.5, 4.0, n) for n in SIZES])


def measure(curves, sigma, seed):
    """Return y for a curve of each group."""
    rng = np.random.default_rng(seed)
    f = np.concatenate([c(x[groups == label]) for c, label in zip(curves, LABELS, strict=True)])
    return f + sigma * rng.standard_normal(len(f))


def bounds_of(y):
    """Least and largest sigma: multiples of the spread within groups."""
    within = np.concatenate([y[groups == one] - y[groups == one].mean() for one in LABELS])
    return 1e-6 * np.std(within), 2.0 * np.std(within)


LINES = [lambda x: 1 + 2 * x, lambda x: 3 - x, lambda x: 0.5 * x]


def test_own_sigmas_of_a_linear_law_add_up_the_closed_forms_of_its_groups():
    y = measure(LINES, 0.3, 1)
    found = compute_evidence("c0 + c1*x0", x, y, groups=groups, random_seed=1)
    exact = 0.0
    for label in LABELS:
        own = groups == label
        design = np.column_stack([np.ones(own.sum()), x[own]])
        if own.sum() == 2:  # nothing is left: the closed form of tests.exact needs an error
            part = compute_evidence("c0 + c1*x0", x[own], y[own], random_seed=2)
            exact += part.log_q_linear
        else:
            exact += linear_log_q(design, y[own], Settings())
    assert found.log_q_linear == pytest.approx(exact, abs=1e-5)
    assert abs(found.log_q - exact) < 3 * found.log_q_se + 1e-5
    assert found.theta.shape == (3, 2) and found.rank == 6


def test_a_shared_sigma_of_a_linear_law_is_the_law_of_indicator_columns():
    y = measure(LINES, 0.3, 2)
    low, high = bounds_of(y)
    found = compute_evidence("c0 + c1*x0", x, y, groups=groups, settings=SHARED, random_seed=1)
    assert found.sigma_bounds == pytest.approx((low, high))
    assert found.gamma == pytest.approx(1 / np.sqrt(len(y) / len(LABELS)))
    columns = {f"e{k}": (groups == label).astype(float) for k, label in enumerate(LABELS)}
    table = np.column_stack([*columns.values(), x])
    text = " + ".join(f"c{2 * k}*x{k} + c{2 * k + 1}*x{k}*x3" for k in range(3))
    std = np.std(y)
    same = Settings(sigma_min=low / std, sigma_max=high / std, gamma=found.gamma)
    whole = compute_evidence(text, table, y, settings=same, random_seed=1)
    # An ordinary equation's is that of a histogram of a thousand cells, ours is by Simpson's rule.
    assert found.log_q_linear == pytest.approx(whole.log_q_linear, abs=1e-4)
    error = np.hypot(found.log_q_se, whole.log_q_se)
    assert abs(found.log_q - whole.log_q) < 3 * error
    assert found.log_z - found.log_z_gamma == pytest.approx(found.log_q)
    # What is integrated over a slice of a sixth of a standard deviation is known to far better.
    assert abs(found.log_q - found.log_q_linear) < 3 * found.log_q_se


def exact_shared_log_q(rank, square, n, gamma, high):
    """Log q of a linear law with flat priors, by the trapezoid rule in log sigma."""
    u = np.linspace(np.log(1e-6 * high), np.log(high), 20001)
    log_z = []
    for phi in (1.0, gamma):
        log_l = -phi * (n * u + 0.5 * square * np.exp(-2 * u) + 0.5 * n * np.log(2 * np.pi))
        log_density = log_l + (1 + rank) * u + 0.5 * rank * np.log(2 * np.pi / phi)
        top = log_density.max()
        log_z.append(top + np.log(trapezoid(np.exp(log_density - top), u)))
    return log_z[0] - log_z[1]


@pytest.mark.parametrize(("f_ratio", "pays"), [(2.0, False), (2.65, False), (2.75, True)])
def test_a_second_constant_for_each_of_five_groups_pays_at_an_f_ratio_of_2_7(f_ratio, pays):
    """With p = 0.04 of an F-test; 2.70 is where these closed forms are equal."""
    rng = np.random.default_rng(3)
    rows = np.linspace(0.5, 4.0, 8)
    line = np.column_stack([rows, np.ones(8)])
    basis = np.linalg.qr(line)[0]
    noise = rng.standard_normal((5, 8))
    noise -= noise @ basis @ basis.T
    noise *= np.sqrt(30 / np.sum(noise**2))  # mean squared error 1
    shift = basis[:, 1] * np.sqrt(f_ratio)
    y = (10 * rows + shift + noise).ravel()
    labels = np.repeat(list("abcde"), 8)
    log_q = []
    for text in ("c0*x0", "c0*x0 + c1"):
        found = compute_evidence(
            text, np.tile(rows, 5), y, groups=labels, settings=SHARED, random_seed=1
        )
        log_q.append(found.log_q_linear)
        square = 30 + (5 * f_ratio if text == "c0*x0" else 0)
        high = 2 * np.std((10 * rows + shift + noise) - np.mean(y.reshape(5, 8), axis=1)[:, None])
        exact = exact_shared_log_q(found.rank, square, 40, 1 / np.sqrt(8), high)
        assert found.log_q_linear == pytest.approx(exact, abs=1e-4)
    assert (log_q[1] > log_q[0]) == pays


def by_quadrature(density, curve, slope, y, places):
    """Log q of one parameter a group, by the trapezoid rule in theta and in log sigma."""
    low, high = bounds_of(y)
    gamma = 1 / np.sqrt(len(y) / len(LABELS))
    radius = high * 5.0 / np.sqrt(gamma)
    u = np.linspace(np.log(low), np.log(high), 501)
    log_z = []
    for phi in (1.0, gamma):
        total = u.copy()  # d sigma
        for label in LABELS:
            own = groups == label
            f = curve(places[:, None], x[own])
            volume = np.sqrt(np.sum(slope(places[:, None], x[own]) ** 2, axis=1))
            square = np.sum((f - y[own]) ** 2, axis=1)
            inside = np.sum((f - f[np.argmin(square)]) ** 2, axis=1) <= radius**2
            for k, one in enumerate(u):
                log_l = phi * np.sum(density(y[own], f, np.exp(one)), axis=1)
                top = log_l.max()
                integral = trapezoid(np.where(inside, volume * np.exp(log_l - top), 0.0), places)
                total[k] += top + np.log(integral)
        top = total.max()
        log_z.append(top + np.log(trapezoid(np.exp(total - top), u)))
    return log_z[0] - log_z[1]


def gaussian(y, f, sigma):
    return -0.5 * ((y - f) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)


def student(y, f, sigma):
    """Of four degrees of freedom, whose constant is 3/8."""
    return np.log(0.375 / sigma) - 2.5 * np.log1p(((y - f) / sigma) ** 2 / 4)


CASES = {
    "decay": (
        "exp(-c0*x0)",
        "gaussian",
        gaussian,
        lambda c, x: np.exp(-c * x),
        lambda c, x: x * np.exp(-c * x),
        np.concatenate([np.linspace(-1.5, 3.0, 601), np.geomspace(3.01, 60.0, 300)]),
    ),
    "line": (
        "c0*x0",
        "student",
        student,
        lambda c, x: c * x,
        lambda c, x: x + 0.0 * c,
        np.linspace(-3.0, 5.0, 1001),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_shared_sigma_agrees_with_quadrature(case):
    text, noise, density, curve, slope, places = CASES[case]
    constants = (0.3, 0.7, 1.1)
    y = measure([lambda x, c=c: curve(c, x) for c in constants], 0.05, 3)
    exact = by_quadrature(density, curve, slope, y, places)
    settings = dataclasses.replace(SHARED, noise=noise)
    found = [
        compute_evidence(text, x, y, groups=groups, settings=settings, random_seed=seed)
        for seed in range(4)
    ]
    errors = np.array([one.log_q_se for one in found])
    assert np.all(errors < 0.2)
    # The mean of four is known to the errors that they claim; 0.01 is left to the quadrature.
    off = np.mean([one.log_q for one in found]) - exact
    assert abs(off) < 3 * np.sqrt(np.mean(errors**2) / len(found)) + 0.01


def test_the_order_of_rows_does_not_matter():
    y = measure(LINES, 0.3, 4)
    order = np.random.default_rng(0).permutation(len(y))
    for settings in (QUICK, dataclasses.replace(QUICK, shared_sigma=True)):
        one, other = (
            compute_evidence(
                "c0*exp(c1*x0)", x[k], y[k], groups=groups[k], settings=settings, random_seed=1
            )
            for k in (np.arange(len(y)), order)
        )
        assert one.log_q_linear == pytest.approx(other.log_q_linear, abs=1e-6)
        assert abs(one.log_q - other.log_q) < 4 * np.hypot(one.log_q_se, other.log_q_se)


def test_a_law_without_constants_on_groups_is_the_same_law_on_all_rows():
    y = measure([LINES[0]] * 3, 0.3, 5)
    low, high = (bound / np.std(y) for bound in bounds_of(y))
    found = compute_evidence("1 + 2*x0", x, y, groups=groups, settings=SHARED)
    same = Settings(sigma_min=low, sigma_max=high, gamma=found.gamma)
    assert found.log_q == pytest.approx(compute_evidence("1 + 2*x0", x, y, settings=same).log_q)


def test_draws_that_share_sigma_are_those_of_the_law_of_indicator_columns():
    y = measure(LINES, 0.3, 6)
    joint = sample_posterior(
        "c0 + c1*x0", x, y, groups=groups, settings=SHARED, random_seed=1
    ).posterior
    assert joint["c0"].dims == ("chain", "draw", "group")
    assert joint["sigma"].dims == ("chain", "draw")
    assert joint["group"].values.tolist() == LABELS
    design = np.zeros((len(y), 6))
    for k, label in enumerate(LABELS):
        own = groups == label
        design[own, 2 * k], design[own, 2 * k + 1] = 1.0, x[own]
    best, square, *_ = np.linalg.lstsq(design, y, rcond=None)
    # With flat sigma, theta has Student's distribution of n - p - 1 degrees of freedom.
    nu = len(y) - 6 - 1
    scale = np.sqrt(square[0] / nu * np.diag(np.linalg.inv(design.T @ design)))
    deviation = scale * np.sqrt(nu / (nu - 2))
    for k in range(6):
        values = joint[f"c{k % 2}"].sel(group=LABELS[k // 2]).values.ravel()
        # Resampled draws repeat: so many count.
        _, repeats = np.unique(values, return_counts=True)
        count = len(values) ** 2 / np.sum(repeats**2)
        assert count > 500
        assert abs(values.mean() - best[k]) < 4 * deviation[k] / np.sqrt(count)
        tails = stats.t.cdf((values - best[k]) / scale[k], nu)
        distance = stats.kstest(tails, "uniform").statistic
        assert stats.kstwobign.sf(distance * np.sqrt(count)) > 1e-4


def test_noise_without_a_size_cannot_share_one():
    with pytest.raises(ValueError, match="no sigma to share"):
        compute_evidence(
            "c0*x0",
            x,
            np.arange(len(x)),
            groups=groups,
            settings=dataclasses.replace(SHARED, noise="poisson"),
        )


def test_a_constant_group_needs_a_sigma_that_is_shared():
    y = measure(LINES, 0.3, 7)
    y[groups == "run 2"] = 1.0
    with pytest.raises(ValueError, match=r"constant in the group 'run 2'.*shared_sigma=True"):
        compute_evidence("c0*x0", x, y, groups=groups)
    found = compute_evidence("c0*x0", x, y, groups=groups, settings=SHARED, random_seed=1)
    assert found.failure is None and np.isfinite(found.log_q)


def test_what_is_of_one_group_is_refused_for_several():
    y = measure(LINES, 0.3, 8)
    for call in (build_model, fit_equation):
        with pytest.raises(ValueError, match=r"one group at a time, got 3: run 1, run 2, run 3"):
            call("c0*x0", x, y, groups=groups)
    posterior = sample_posterior("c0*x0", x, y, groups=groups, settings=QUICK, random_seed=1)
    assert posterior.posterior["sigma"].dims == ("chain", "draw", "group")
    with pytest.raises(ValueError, match="posterior is of several groups"):
        predict(posterior, [1.0])
