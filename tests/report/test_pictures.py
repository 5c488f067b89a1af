import base64
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from pmsr.report.estimates import summarise_winner
from pmsr.report.formulas import Formulas
from pmsr.report.pictures import draw_pictures, residuals_of


@pytest.fixture(scope="module")
def drawn(tower):
    return draw_pictures(tower, summarise_winner(tower), Formulas.of(tower))


def test_every_picture_is_whole_in_the_page_and_says_what_it_shows(drawn):
    assert {"fit", "residuals", "quantiles", "posterior", "graph", "front"} <= set(drawn)
    for picture in drawn.values():
        kind, code = picture.address.split(",")
        assert kind == "data:image/svg+xml;base64"
        assert ElementTree.fromstring(base64.b64decode(code)).tag.endswith("svg")
        assert picture.alt and picture.caption.endswith(".") and picture.width > 100


def test_residuals_are_measurements_less_predictions_where_the_noise_has_one_size(tower):
    raw = tower.data.y - tower.prediction["map"].to_numpy()
    np.testing.assert_allclose(residuals_of(replace(tower, residuals=None)), raw)
    np.testing.assert_array_equal(residuals_of(replace(tower, residuals=2.0 * raw)), 2.0 * raw)
    assert residuals_of(replace(tower, residuals=None, prediction=None)) is None


def test_without_a_winner_there_is_no_fit(tower):
    pictures = draw_pictures(replace(tower, winner=None), None, Formulas.of(tower))
    assert "fit" not in pictures and "graph" not in pictures
