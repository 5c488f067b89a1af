import base64
import json

import numpy as np
import pandas as pd
import pytest

from pmsr.data import make_data
from pmsr.equation.expression import Equation
from pmsr.equation.program import evaluate
from pmsr.report import explorer
from pmsr.report.explorer import ShownLaw, ShownPart, encode_laws, to_json, whiten


def unpack(text, kind="<f4"):
    return np.frombuffer(base64.b64decode(text), dtype=kind).astype(float)


def decode(record):
    """Return draws as the page's script makes them."""
    (record,) = record["parts"]
    p = len(record["theta"])
    white = unpack(record["white"]).reshape(p, record["n"])
    return np.array(record["centre"]) + (np.array(record["factor"]) @ white).T


def make_law(text, draws, names=("x",)):
    equation = Equation(text, list(names))
    rng = np.random.default_rng(2)
    return ShownLaw(
        program=equation.program,
        variables=equation.variables,
        residuals=rng.normal(size=20),
        parts=[ShownPart(draws.mean(axis=0), draws, rng.uniform(1.0, 2.0, len(draws)))],
    )


def encode(laws, **more):
    data = make_data(np.linspace(1.0, 2.0, 20), np.linspace(3.0, 5.0, 20), names=["x"])
    return encode_laws(laws, data, order=list(laws), noise="gaussian", level=0.95, **more)


RNG = np.random.default_rng(1)
Z = RNG.standard_normal((4000, 2))
DRAWS = {
    "ordinary": 3.0 + Z,
    "nearly a line": 1e6 + np.column_stack([Z[:, 0], Z[:, 0] + 1e-7 * Z[:, 1]]),
    "one is held": np.column_stack([Z[:, 0], np.full(4000, 2.5)]),
    "of very different size": Z * [1e-30, 1e30],
    "long tails": Z / np.abs(RNG.standard_normal((4000, 1))) ** 2,
    "curved": np.column_stack([Z[:, 0], Z[:, 0] ** 2 + 1e-3 * Z[:, 1]]),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_what_the_page_predicts_is_what_all_digits_predict(kind):
    # Differences, the worst case: what is common to both parameters cancels.
    draws = DRAWS[kind]
    law = make_law("c0 - c1*x", draws)
    record = encode({"law": law})["laws"]["law"]
    X = np.array([[1.0], [1.0 + 1e-9], [1.7]])
    whole = evaluate(law.program, draws, X)
    page = evaluate(law.program, decode(record), X)
    spread = whole.std(axis=0)
    for statistic in (lambda v: v.mean(axis=0), lambda v: np.quantile(v, [0.025, 0.975], axis=0)):
        # A millionth of the width: of an interval, at most ten digits are shown.
        assert np.all(np.abs(statistic(page) - statistic(whole)) <= 1e-6 * spread + 1e-300)
    np.testing.assert_allclose(unpack(record["parts"][0]["sigma"]), law.parts[0].sigma, rtol=1e-7)


def test_draws_are_made_of_what_whiten_returns():
    for draws in DRAWS.values():
        centre, factor, white = whiten(draws)
        scale = np.abs(draws - centre).max(axis=0) + 1e-300
        np.testing.assert_allclose((centre + white @ factor.T - draws) / scale, 0.0, atol=1e-9)


def test_the_program_is_a_table_of_names_and_places():
    record = encode({"law": make_law("c0 - 2.5*x**2", DRAWS["ordinary"][:, :1])})["laws"]["law"]
    kinds = [node[0] for node in record["nodes"]]
    assert {"c", "x", "l", "^"} <= set(kinds) and set(kinds) & {"-", "+"}
    assert record["columns"] == [0] and 2.5 in np.abs(record["literals"])


def test_data_are_there_to_the_last_digit():
    found = encode({})
    np.testing.assert_array_equal(unpack(found["X"], "<f8"), np.linspace(1.0, 2.0, 20))
    np.testing.assert_array_equal(unpack(found["y"], "<f8"), np.linspace(3.0, 5.0, 20))
    assert found["ends"] == pytest.approx([-1.959964, 1.959964]) and found["yError"] is None


def test_where_there_is_no_room_laws_have_fewer_draws(monkeypatch):
    monkeypatch.setattr(explorer, "MAX_BYTES", 6 * 4000 * 3)
    law = make_law("c0 - c1*x", DRAWS["ordinary"])
    found = encode({"first": law, "second": law})["laws"]
    sizes = [found[name]["parts"][0]["n"] for name in ("first", "second")]
    assert sizes == [4000, explorer.N_THINNED]
    assert found["second"]["parts"][0]["of"] == 4000


def test_many_rows_are_thinned():
    n = 5 * explorer.MAX_ROWS
    data = make_data(np.arange(float(n)), np.arange(float(n)), names=["x"])
    found = encode_laws({}, data, order=[], noise="student", level=0.9)
    assert found["n"] == explorer.MAX_ROWS and found["of"] == n
    x = unpack(found["X"], "<f8")
    assert (x[0], x[-1]) == (0.0, n - 1.0)
    assert found["ends"] == pytest.approx([-2.131847, 2.131847])  # of Student's t, 4 degrees


def test_a_law_with_an_operator_of_a_users_own_is_left_out(monkeypatch):
    monkeypatch.setattr(explorer, "KNOWN", frozenset("+*/"))
    laws = {"known": make_law("c0*x", Z[:, :1]), "unknown": make_law("c0*sqrt(x)", Z[:, :1])}
    assert list(encode(laws)["laws"]) == ["known"]


def test_json_in_a_page_holds_no_tag():
    wild = {"name": "</script><!--<b>&amp;", "estimates": pd.Series([1.5]).tolist()}
    text = to_json(wild)
    assert not set("<>&") & set(text)
    assert json.loads(text) == wild
