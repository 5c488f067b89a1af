import numpy as np
import pytest

from pmsr.report.estimates import by_group, estimate_rows, parameter_rows, summarise_winner


def test_the_winners_parameters_are_those_of_its_posterior(tower):
    table = summarise_winner(tower)
    draws = np.asarray(tower.posterior["posterior"]["c0"]).ravel()
    assert table.loc["c0", "mean"] == pytest.approx(draws.mean(), rel=1e-9)
    rows = {row["name"]: row for row in parameter_rows(table, {"c0": "s/m**0.5"})}
    assert set(rows) == {"c0", "sigma"}
    ends = [float(rows["c0"][end].replace("−", "-")) for end in ("low", "high")]
    assert ends == pytest.approx(np.quantile(draws, [0.025, 0.975]), rel=1e-3)
    assert rows["c0"]["estimate"].startswith(f"{draws.mean():.2f}")
    assert parameter_rows(None, {}) is None


def test_without_groups_there_is_no_table_of_groups(tower):
    assert by_group(tower, summarise_winner(tower)) is None


def test_every_law_that_can_be_shown_has_its_parameters(tower):
    found = dict(estimate_rows(tower))
    assert list(found) == [str(k + 1) for k in range(len(tower.laws))]
    assert [row["name"] for row in found["1"]] == ["c0", "sigma"]
    assert all(row["span"] for row in found["1"])
