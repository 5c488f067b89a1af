from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import equation_texts

from pmsr.equation.expression import Equation
from pmsr.equation.graph import _spread, lay_out


def test_figure_1_of_the_paper():
    x0, x1, product, total = lay_out(Equation("x0 + x0*x1", ["x0", "x1"]))
    assert (x0.label, x1.label, product.label, total.label) == (
        "$x_{0}$",
        "$x_{1}$",
        r"$\times$",
        "$+$",
    )
    assert (total.y, product.y, x0.y, x1.y) == (0, -1, -2, -2)
    assert total.arguments == (0, 2)
    # The line from the sum to x0 passes beside the product.
    (bend,), () = total.paths
    assert bend[1] == product.y
    assert abs(bend[0] - product.x) >= 1


def test_kinds_and_labels():
    nodes = lay_out(Equation("theta_1**H + 1.5*H**3 - sqrt(c0)", ["H"]))
    kinds = {node.label: node.kind for node in nodes}
    assert kinds[r"$\theta_{1}$"] == kinds["$c_{0}$"] == "parameter"
    assert kinds["$H$"] == "variable"
    assert kinds["1.5"] == "number"
    assert kinds["$a^{3}$"] == kinds["sqrt"] == "operator"
    assert {node.label for node in nodes if node.is_ordered} == {"$-$", r"$a^{\,b}$"}


@settings(max_examples=40, deadline=None)
@given(equation_texts())
def test_lines_point_down_and_nothing_shares_a_place(text):
    equation = Equation(text, ["x", "y"])
    nodes = lay_out(equation)
    assert len(nodes) == equation.complexity
    places = [(node.x, node.y) for node in nodes]
    for node in nodes:
        for argument, path in zip(node.arguments, node.paths, strict=True):
            heights = [node.y, *(y for _, y in path), nodes[argument].y]
            # A layer at a time: no line jumps over one, where it might cross a node.
            assert heights == [node.y - step for step in range(len(heights))]
            places += path
    for layer in {y for _, y in places}:
        row = sorted(x for x, y in places if y == layer)
        assert all(right - left >= 1 - 1e-9 for left, right in pairwise(row))
    assert min(x for x, _ in places) == 0


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8).map(sorted))
def test_places_move_no_farther_than_they_must(wanted):
    found = _spread(wanted)
    assert all(b - a >= 1 - 1e-9 for a, b in pairwise(found))
    assert sum(found) == pytest.approx(sum(wanted), abs=1e-6)
    if all(b - a >= 1 for a, b in pairwise(wanted)):
        assert found == pytest.approx(wanted)
