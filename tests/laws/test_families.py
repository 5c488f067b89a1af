import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsr.equation.expression import Equation
from pmsr.laws.families import (
    APART,
    MAX_ROWS,
    N_PROBES,
    Band,
    group_families,
    probe_points,
    separation,
    trace_band,
)

X = np.linspace(1.0, 3.0, 12)[:, None]
ONES = np.ones(9)


def flat(height, spread=0.0, n=9):
    return Band(np.full(n, height), np.full(n, spread))


def apart(one, other, n=8, sigma=1.0):
    noise = np.full(len(one.values), sigma)
    return separation(one, other, sigma=sigma, noise=noise, n_measurements=n)


def test_curves_are_compared_at_the_rows_and_between_them():
    points, rows = probe_points(X)
    np.testing.assert_array_equal(points[: len(rows)], X[rows])
    assert len(points) == len(X) + N_PROBES
    assert X.min() <= points.min() and points.max() <= X.max()
    many = np.arange(10_000.0)[:, None]
    points, rows = probe_points(many)
    assert len(rows) == MAX_ROWS and rows[0] == 0 and rows[-1] == 9999
    np.testing.assert_array_equal(points, probe_points(many)[0])


@pytest.mark.parametrize("n", [2, 8, 200])
def test_a_nat_is_the_limit(n):
    # Half the sum of squared differences, in units of the noise, over n measurements.
    limit = np.sqrt(2.0 / n)
    assert apart(flat(0.0), flat(limit), n) == pytest.approx(APART)
    assert apart(flat(0.0), flat(0.99 * limit), n) < APART < apart(flat(0.0), flat(1.01 * limit), n)


def test_more_measurements_and_less_noise_tell_laws_apart():
    one, other = flat(0.0), flat(0.3)
    assert apart(one, other, n=10) < APART < apart(one, other, n=50)
    assert apart(one, other, n=10, sigma=1.0) < APART < apart(one, other, n=10, sigma=0.5)


def test_what_the_data_do_not_determine_closely_is_hard_to_tell_apart():
    sharp = apart(flat(0.0), flat(0.6))
    assert apart(flat(0.0, 1.0), flat(0.6, 1.0)) == pytest.approx(sharp / 2.0)
    assert apart(flat(0.0, 0.0), flat(0.6, 2.0)) == pytest.approx(sharp / 2.0)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_the_unit_of_the_target_does_not_matter(unit):
    assert apart(flat(0.0), flat(0.5 * unit), sigma=unit) == pytest.approx(1.0)


def test_a_law_that_is_not_defined_where_another_is_is_another_law():
    hole = flat(0.0)
    hole.values[3] = np.nan
    assert apart(flat(0.0), hole) == np.inf
    assert apart(hole, hole) == 0.0
    nowhere = flat(np.nan)
    assert apart(nowhere, nowhere) == 0.0


def test_families_do_not_chain():
    # Each is like its neighbour, and the last is far from the first.
    steps = {k: flat(0.4 * k) for k in range(6)}
    families = group_families(steps, lambda face: (1.0, ONES), 8)
    assert families == {0: [0, 1], 2: [2, 3], 4: [4, 5]}


def test_the_noise_of_a_family_is_that_of_its_face():
    bands = {0: flat(0.0), 7: flat(0.6)}
    assert group_families(bands, lambda face: (1.0, ONES), 8) == {0: [0], 7: [7]}
    wide = {0: 2.0, 7: 0.1}
    noise_of = lambda face: (wide[face], wide[face] * ONES)  # noqa: E731
    assert group_families(bands, noise_of, 8) == {0: [0, 7]}
    assert group_families(dict(reversed(bands.items())), noise_of, 8) == {7: [7], 0: [0]}


@given(st.lists(st.floats(-3.0, 3.0), max_size=12))
def test_every_law_is_in_one_family_and_near_its_face(heights):
    bands = {k: flat(height) for k, height in enumerate(heights)}
    families = group_families(bands, lambda face: (1.0, ONES), 8)
    assert sorted(k for members in families.values() for k in members) == list(range(len(heights)))
    faces = list(families)
    for number, face in enumerate(faces):
        assert families[face][0] == face
        assert all(apart(bands[face], bands[k]) < APART for k in families[face])
        assert all(apart(bands[earlier], bands[face]) >= APART for earlier in faces[:number])


def band(text, theta, points=X, weights=None):
    program = Equation(text, ["x"]).program
    return trace_band(program, np.array(theta), X, points, weights)


def test_the_spread_at_the_data_is_the_leverage():
    line = band("c0 + c1*x", [1.0, 2.0])
    A = np.column_stack([np.ones(len(X)), X[:, 0]])
    np.testing.assert_allclose(line.spread, np.diag(A @ np.linalg.inv(A.T @ A) @ A.T))
    np.testing.assert_allclose(line.values, 1.0 + 2.0 * X[:, 0])
    assert band("c0*exp(c1*x)", [1.0, 0.5]).spread.sum() == pytest.approx(2.0)


def test_redundant_parameters_and_their_units_do_not_widen_a_band():
    expected = band("c0*x", [6.0]).spread
    np.testing.assert_allclose(band("c0*c1*x", [2.0, 3.0]).spread, expected)
    np.testing.assert_allclose(band("c0*c1*x", [2e-150, 3e150]).spread, expected)
    assert band("2*x", []).spread.tolist() == [0.0] * len(X)


def test_weights_count_as_measurements_do():
    weights = np.full(len(X), 2.0)
    np.testing.assert_allclose(
        band("c0*x", [6.0], weights=weights).spread, band("c0*x", [6.0]).spread / 4.0
    )


def test_where_a_curve_is_not_defined_nothing_is_known_of_it():
    found = band("c0*log(x - 2)", [1.0], np.array([[1.5], [2.5]]))
    assert np.isnan(found.values).tolist() == [True, False] and np.isfinite(found.spread).all()


def test_a_row_that_was_seen_twice_is_probed_as_two_rows():
    X = np.array([[0.5], [1.0], [4.0]])
    counts = np.array([3.0, 1.0, 2.0])
    points, rows = probe_points(X, counts)
    often = np.repeat(X, counts.astype(int), axis=0)
    np.testing.assert_array_equal(points, probe_points(often)[0])
    assert rows.tolist() == [0, 0, 0, 1, 2, 2]
