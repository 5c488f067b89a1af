import numpy as np

from pmsr.data import make_data
from pmsr.equation.descent import FITTED
from pmsr.equation.expression import Equation
from pmsr.evidence.problem import Problem
from pmsr.search.curves import KnownLaws
from pmsr.search.screening import Batch, screen
from pmsr.settings import Settings


def of(*texts):
    return Batch.of([Equation(text, ["x0"]).program for text in texts])


def numbered(known, data, *texts):
    return known.add(screen(of(*texts), Problem.of(data, Settings()), 0)).tolist()


def test_spellings_of_a_law_are_one_law(data):
    known = KnownLaws(data)
    texts = ("c0*exp(c1*x0)", "exp(c0 + c1*x0)", "c0*c1**x0", "c0 + c1*x0", "x0/c0 + c1")
    assert numbered(known, data, *texts) == [0, 0, 0, 1, 1]
    assert numbered(known, data, "c0*x0/(c1 + x0)", "c0/exp(c1*x0)", "x0/(c0 + c1*x0)") == [2, 0, 2]
    assert known.n_laws == 3


def test_equal_curves_of_unequal_rank_are_two_laws(data):
    line = make_data(data.X, 2.0 * data.X[:, 0])
    assert numbered(KnownLaws(line), line, "c0*x0", "c0*x0 + c1", "2*x0") == [0, 1, 2]


def test_laws_that_agree_at_the_rows_only_are_two_laws():
    X = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    data = make_data(X[:, None], X + 0.1 * np.arange(6.0))
    assert numbered(KnownLaws(data), data, "c0*x0", "c0*x0**2", "c0*sqrt(x0)", "x0*c0") == [
        0,
        1,
        2,
        0,
    ]


def test_laws_with_as_many_parameters_as_rows_are_never_merged():
    data = make_data([[1.0], [2.0], [4.0]], [1.0, 3.0, 2.0])
    texts = ("c0 + c1*x0 + c2*x0**2", "c0*x0**2 + c1*x0 + c2", "c0 + c1*x0", "x0*c1 + c0")
    assert numbered(KnownLaws(data), data, *texts) == [0, 1, 2, 2]


def test_what_cannot_be_fitted_is_no_law(data):
    assert numbered(KnownLaws(data), data, "sqrt(-x0)", "c0") == [-1, 0]


def test_neighbouring_digests_are_compared(data):
    """Shifts below the tolerance are one law wherever a step of the digest ends."""
    found = screen(of("c0 + c1*x0"), Problem.of(data, Settings()), 0)
    shifts = np.linspace(0.0, 3.0, 40) * 1e-6 * np.std(data.y)
    for shift in shifts:
        known = KnownLaws(data)
        for extra, expected in ((0.0, 0), (0.9e-6, 0), (-0.9e-6, 0), (1.2e-6, 1)):
            curves = found.curves + shift + extra * np.std(data.y)
            moved = type(found)(**{**vars(found), "curves": curves})
            assert known.add(moved).tolist() == [expected]


def test_many_laws_are_found_again_after_the_memory_has_grown(programs, data):
    known, batch = KnownLaws(data), Batch.of(programs)
    found = screen(batch, Problem.of(data, Settings()), 0)
    first = known.add(found)
    n_laws = known.n_laws
    again = [
        known.add(screen(batch.take(slice(k, k + 7)), Problem.of(data, Settings()), 0))
        for k in (0, 7, 14)
    ]
    mergeable = (found.outcome == FITTED) & (found.rank < len(data.y))
    assert np.array_equal(np.concatenate(again)[mergeable[:21]], first[:21][mergeable[:21]])
    assert known.n_laws == n_laws
