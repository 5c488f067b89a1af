import math
from dataclasses import replace

import pandas as pd
import pytest

from pmsr.equation.notation import percent
from pmsr.report import rows
from pmsr.report.formulas import Formulas


@pytest.fixture(scope="module")
def formulas(tower):
    return Formulas.of(tower)


def test_columns_have_their_roles_units_and_ranges(tower):
    found = {name: rest for name, *rest in rows.data_rows(tower)}
    assert found["drop height [m]"] == ["variable", "m", "1", "20"]
    assert found["fall time [s]"][:2] == ["target", "s"]


def test_the_winner_has_its_family_and_its_distance_from_the_best(tower, formulas):
    winner = rows.describe_winner(tower, formulas)
    row = tower.table.loc[tower.winner]
    assert winner["is_best"] and winner["behind"] == "0"
    assert winner["text"] == "c0*sqrt(`drop height [m]`)" and winner["n_like"] == 0
    assert winner["log_q"].startswith(f"{row['log_q']:.2f}".replace("-", "−"))
    behind = replace(tower, winner=tower.table.index[1])
    gap = tower.table["score"].iloc[0] - tower.table["score"].iloc[1]
    assert rows.describe_winner(behind, formulas)["behind"] == rows.short(gap, 2)


def test_the_legend_names_what_symbols_stand_for(tower, formulas):
    legend = {name: str(unit) for _, name, unit in rows.legend_rows(tower, formulas)}
    assert set(legend) == {"drop height [m]", "fall time [s]"}


def test_the_outlook_is_what_was_predicted(tower, formulas):
    outlook = rows.outlook_rows(tower, formulas)
    assert len(outlook["rows"]) == len(tower.outlook)
    assert len(outlook["names"]) == len(tower.outlook.columns) - 3
    for shown, predicted in zip(outlook["rows"], tower.outlook.to_numpy(), strict=True):
        low, high = map(float, predicted[-2:])
        read = [float(end.replace("−", "-")) for end in shown[-1].split(" to ")]
        assert read == pytest.approx([low, high], abs=0.005 * (high - low))


def test_the_next_steps_of_a_comparison_have_no_search_to_go_on_with(tower):
    commands = [command for command, _ in rows.next_steps(tower)["commands"]]
    assert commands == ["pmsr predict tower-run new.csv"]
    searched = replace(tower, n_candidates=10, seconds=95.0)
    steps = rows.next_steps(searched)
    assert [command for command, _ in steps["commands"]] == [
        *commands,
        "pmsr resume tower-run --time 10m",
    ]
    assert steps["time"] == "95 s"


def test_a_family_shares_its_probability(tower, formulas):
    names = list(tower.table.index)
    joined = replace(tower, families=[names[:2]])
    total = float(tower.table["probability"].iloc[:2].sum())
    assert rows.share_of(joined, names[:2]) == pytest.approx(total)
    face = rows.family_rows(joined, formulas)[0]
    assert face["n_like"] == 1 and face["key"] == rows.key_of(joined, names[0]) == "1"
    shown = rows.equation_rows(joined, formulas)
    assert [len(row["members"]) for row in shown] == [1, 0]
    assert shown[1]["failure"] is not None


def test_reasons_to_doubt_say_what_failed(tower):
    nothing = replace(tower, winner=None)
    assert rows.find_doubts(nothing, None)[0].startswith("No equation could be weighed.")
    unweighed = tower.table.assign(log_q=-math.inf, probability=math.nan)
    without = rows.find_doubts(replace(tower, table=unweighed), None)
    assert any("no evidence" in doubt for doubt in without)


def test_noise_models_are_behind_the_best_by_their_scores(tower, formulas):
    table = pd.DataFrame(
        [("student", "c0", -12.0, -13.5), ("gaussian", "c0*m", -15.25, -15.5)],
        columns=["noise", "equation", "log_q", "score"],
    )
    found = rows.noise_rows(replace(tower, noise_table=table), formulas)
    assert [row[-1] for row in found] == ["0.00", "−2.00"]
    assert rows.noise_rows(tower, formulas) is None


def test_laws_that_were_only_screened_are_not_counted_among_those_that_hold_the_probability(tower):
    assert rows.describe_credible(tower) == "1 law holds 95 % of the probability"
    assert rows.describe_unweighed(tower) == ""
    table = tower.table.assign(probability=0.4 * tower.table["probability"])
    partly = replace(tower, table=table, n_credible=2)
    held = percent(float(table["probability"].nlargest(2).sum()))
    said = f"The 2 laws that were weighed hold {held} of the probability, less than 95 %"
    assert rows.describe_credible(partly) == said
    assert rows.describe_unweighed(partly) == percent(0.6)
