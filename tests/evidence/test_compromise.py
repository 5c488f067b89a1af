"""Between data and priors: linear laws, whose integrals are known."""

import numpy as np
import pymc as pm
import pytest

import pmsr
from pmsr.settings import FINALIST

N_ERRORS = 4.0  # of 20 comparisons, one in a thousand is beyond


def _line(seed):
    rng = np.random.default_rng(seed)
    x, errors = np.linspace(1.0, 3.0, 12), rng.uniform(0.05, 0.2, 12)
    return x, 1.0 + 2.0 * x + errors * rng.standard_normal(12), errors


def _linear_log_z(flat, own, y, errors, mean, deviation):
    """Log Z(gamma) and log Z(1) of a linear law with a normal prior on its last parameter."""
    w, n = 1.0 / errors, len(y)
    basis = np.linalg.qr(flat * w[:, None])[0] if flat.shape[1] else np.zeros((n, 0))

    def rest(column):
        return column * w - basis @ (basis.T @ (column * w))

    r, b = rest(y) - mean * rest(own), rest(own)
    logs = []
    for phi in (1.0 / np.sqrt(n), 1.0):
        spread = 1.0 + phi * deviation**2 * (b @ b)
        square = r @ r - phi * deviation**2 * (b @ r) ** 2 / spread
        log_z = -phi * (0.5 * n * np.log(2.0 * np.pi) + np.log(errors).sum() + 0.5 * square)
        log_z += 0.5 * flat.shape[1] * np.log(2.0 * np.pi / phi) - 0.5 * np.log(spread)
        logs.append(log_z)
    return np.array(logs)


@pytest.mark.parametrize(
    ("mean", "deviation"),
    # As the data have it, broad, in conflict with the data, and as good as exact.
    [(2.0, 0.05), (2.0, 1.0), (2.5, 0.1), (2.6, 0.02), (0.0, 1e4), (2.0, 2e-7)],
)
def test_both_integrals_match_the_closed_form_of_a_linear_law_with_known_errors(mean, deviation):
    x, y, errors = _line(3)
    found = pmsr.compute_evidence(
        "c0 + c1*x0",
        x,
        y,
        y_err=errors,
        priors={"c1": (mean, deviation)},
        settings=FINALIST,
        random_seed=1,
    )
    exact = _linear_log_z(np.ones((12, 1)), x, y, errors, mean, deviation)
    assert found.log_q_se < 0.02
    assert found.log_q == pytest.approx(exact[1] - exact[0], abs=N_ERRORS * found.log_q_se + 1e-4)
    # The prior is normalised: so are the integrals themselves.
    assert found.log_z == pytest.approx(exact[1], abs=0.05)


def test_a_law_all_of_whose_parameters_have_priors_has_no_flat_direction():
    x, y, errors = _line(4)
    found = pmsr.compute_evidence(
        "c0*x0",
        x,
        y,
        y_err=errors,
        priors={"c0": pm.Normal.dist(2.5, 0.1)},
        settings=FINALIST,
        random_seed=1,
    )
    exact = _linear_log_z(np.zeros((12, 0)), x, y, errors, 2.5, 0.1)
    assert found.log_q == pytest.approx(exact[1] - exact[0], abs=N_ERRORS * found.log_q_se + 1e-4)


def test_a_factor_that_the_data_cannot_tell_from_a_flat_one_changes_nothing():
    x, y, errors = _line(5)
    law = pmsr.Equation("c0*k*x0 + c1", ["x0"], ["k"])
    one = pmsr.compute_evidence(
        law, x, y, y_err=errors, priors={"k": (2.0, 0.1)}, settings=FINALIST, random_seed=1
    )
    exact = _linear_log_z(np.ones((12, 1)), x, y, errors, 0.0, 1e9)  # broad: flat
    assert one.failure is None
    assert one.log_q == pytest.approx(exact[1] - exact[0], abs=N_ERRORS * one.log_q_se + 1e-4)


def test_a_prior_without_mass_where_the_law_exists_is_a_failure_in_words():
    x, y, _ = _line(1)
    found = pmsr.compute_evidence("c1*log(x0 + c0)", x, y, priors={"c0": (-50.0, 0.1)})
    assert found.log_q == -np.inf and found.failure
