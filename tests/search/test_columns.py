import numpy as np
import pytest

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.result.coverage import Coverage, describe_coverage
from pmsr.result.searched import from_evolution
from pmsr.search import columns, pilot
from pmsr.search.columns import LATEST, UNCHANGED, find_left_out, find_relevant, find_return
from pmsr.search.evolution import run_evolution
from pmsr.settings import Search, Settings

N_COLUMNS = 20


def measured(law, seed, n=60, low=-2.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(low, 3.0 if low > 0 else -low, size=(n, N_COLUMNS))
    clean = law(X)
    return make_data(X, clean + 0.05 * np.std(clean) * rng.normal(size=n))


LAWS = [
    (lambda X: X[:, 3] * X[:, 11], -2.0, (3, 11)),  # no column of the two matters alone
    (lambda X: np.cos(2 * (X[:, 3] - X[:, 11])), -2.0, (3, 11)),
    (lambda X: 2 * X[:, 0] + X[:, 3] * X[:, 11], -2.0, (0, 3, 11)),
    (lambda X: X[:, 1] * X[:, 2] / X[:, 9] ** 2, 1.0, (1, 2, 9)),
    (lambda X: np.sin(4 * X[:, 5]), -2.0, (5,)),
]


@pytest.mark.parametrize(("law", "low", "truth"), LAWS)
def test_columns_of_a_law_are_found_also_where_they_matter_only_together(law, low, truth):
    for seed in range(5):
        found = find_relevant(measured(law, seed, low=low))
        assert {f"x{k}" for k in truth} <= set(found) and len(found) <= 10, (seed, found)


def test_where_nothing_matters_nothing_is_left_out():
    # In each the chance to take something for a law is a few thousandths.
    n_all = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data = make_data(rng.normal(size=(40, N_COLUMNS)), rng.normal(size=40))
        n_all += len(find_relevant(data)) == N_COLUMNS
    assert n_all >= 18


def test_of_two_columns_that_say_the_same_both_are_kept():
    data = measured(lambda X: 3 * X[:, 4], 0)
    X = data.X.copy()
    X[:, 8] = 10.0 * data.X[:, 4]
    assert {"x4", "x8"} <= set(find_relevant(make_data(X, data.y)))


def test_what_a_user_names_is_kept_and_few_columns_are_all_kept():
    data = measured(LAWS[0][0], 0)
    guess = Equation("c0*x6", data.names)
    out = find_left_out(data, Search(require=["x5"], exclude=["x0"]), [guess])
    assert not {"x0", "x3", "x5", "x6", "x11"} & set(out) and len(out) > 10
    assert find_left_out(data, Search(screen_columns=False)) == ()
    assert find_left_out(data.select(data.names[:5]), Search()) == ()


def test_known_constants_are_never_left_out():
    data = measured(LAWS[0][0], 0)
    known = make_data(data.X, data.y, constants={"g": 9.81})
    out = find_left_out(known, Search())
    assert out == find_left_out(data, Search()) and len(out) > 10


def test_a_shift_of_each_group_hides_no_column():
    data = measured(lambda X: X[:, 3], 0)
    group = np.arange(60) % 3
    y = data.y + 100.0 * group
    found = find_relevant(make_data(data.X, y, groups=[f"g{k}" for k in group]))
    assert "x3" in found and len(found) < N_COLUMNS


def test_columns_come_back_when_the_best_has_not_changed_or_at_the_latest():
    def history(scores):
        return [{"generation": k, "score_best": score} for k, score in enumerate(scores)]

    still = history([0.0] * 60)
    assert find_return(still, 10) == UNCHANGED
    assert find_return(still[:UNCHANGED], 10) is None
    assert find_return(still, 7) == 21  # only where islands exchange
    rising = history(range(200))
    assert find_return(rising, 10) == LATEST
    assert find_return(rising[:LATEST], 10) is None


SMALL = dict(
    operators=("+", "*"),
    population_size=20,
    refresh=2,
    n_islands=2,
    n_enumerated=300,
    n_finalists=6,
)
FEW_DRAWS = Settings(n_draws=500, n_multistarts=2, thorough=False)


def search_for(data, **options):
    search = Search(**SMALL, **options)
    found = run_evolution(data, search=search, settings=FEW_DRAWS, random_seed=3)
    return from_evolution(found, data, search=search, settings=FEW_DRAWS, random_seed=3)


def variables_of(result):
    names = [one.equation.expression.free_symbols for one in result.equations]
    return {symbol.name for symbols in names for symbol in symbols if symbol.name[0] == "x"}


def test_a_search_of_many_columns_begins_with_few_and_says_so():
    result = search_for(measured(LAWS[0][0], 1), generations=2)
    best = result.best.equation.expression.free_symbols
    assert {"x3", "x11"} == {symbol.name for symbol in best if symbol.name[0] == "x"}
    assert "x0" in result.left_out and not {"x3", "x11"} & set(result.left_out)
    assert not variables_of(result) & set(result.left_out)
    words = " ".join(result.search_notes)
    assert "The search began without x0, x1, x2" in words and "no time to bring them back" in words


def test_what_was_left_out_wrongly_comes_back_and_is_found(monkeypatch):
    monkeypatch.setattr(pilot, "find_left_out", lambda *_: ("x3", "x5"))
    monkeypatch.setattr(columns, "UNCHANGED", 2)
    result = search_for(
        measured(lambda X: 2 * X[:, 0] + X[:, 3], 0).select([f"x{k}" for k in range(6)]),
        generations=12,
    )
    assert {"x0", "x3"} <= variables_of(result)
    assert result.left_out == () and result.coverage.left_out == ("x3", "x5")
    assert f"came back after generation {result.coverage.brought_back}" in " ".join(
        result.search_notes
    )


def test_long_lists_of_columns_are_cut_short():
    names = tuple(f"x{k}" for k in range(12))
    assert "x6, x7 and 4 more" in describe_coverage(Coverage(left_out=names), 0.0)[0]
