import json
from dataclasses import replace

import pandas as pd
import pytest
from rich.console import Console

from pmsr.data import load_galileo
from pmsr.result.comparison import weigh_equations
from pmsr.settings import Settings
from pmsr.shell.tables import describe, print_result, to_json

NOISES = (
    {"noise": "student", "equation": "c0*sqrt(`drop [m]`)", "log_q": -3.125, "score": -9.0},
    {"noise": "gaussian", "equation": "c0", "log_q": -13.0, "score": -14.0},
)


@pytest.fixture(scope="module")
def result():
    X, y = load_galileo("shelf")
    return weigh_equations(["c0*sqrt(H)", "c0*H"], X, y, settings=Settings(), random_seed=1)


def with_table(result):
    return replace(result, noise_table=pd.DataFrame(list(NOISES)))


def test_how_the_noise_was_chosen_is_told(result, capsys):
    print_result(Console(width=80), with_table(result), None, None)
    lines = capsys.readouterr().out.splitlines()
    place = next(k for k, line in enumerate(lines) if line.startswith("Noise, by the best law"))
    rows = [line.split() for line in lines[place + 1 : place + 6]]
    assert [">", "student", "c0*sqrt(`drop", "[m]`)", "-3.12", "-9.00"] in rows
    assert ["gaussian", "c0", "-13.00", "-14.00"] in rows
    print_result(Console(width=80), result, None, None)
    assert "Noise, by" not in capsys.readouterr().out


@pytest.mark.parametrize("width", [60, 80, 120])
def test_numbers_make_room_for_equations(width, capsys):
    X, y = load_galileo("shelf")
    X = X.set_axis(["drop height [mm]"], axis=1)
    laws = ["c0*sqrt(`drop height [mm]`)", "c0"]
    result = weigh_equations(laws, X, y, settings=Settings(), random_seed=1)
    coverage = replace(result.coverage, is_settled=False)
    print_result(Console(width=width), replace(result, coverage=coverage), None, None)
    shown = capsys.readouterr().out
    table = shown[: shown.index("score = log q")].splitlines()
    assert max(map(len, table)) <= width
    assert any(line.startswith(f">  {laws[0]}") for line in table)
    header = next(line for line in table if "equation" in line)
    # The longer the line, the more of the columns; score and probability always.
    counts = {60: ["score", "(not", "settled)"], 80: ["log", "q", "score", "(not", "settled)"]}
    counts[80].append("family")
    counts[120] = ["log", "q", "score", "prob.", "(not", "settled)", "family", "RMSE"]
    assert header.split()[1:] == counts[width]


def test_machines_are_told_the_noise_too(result):
    told = json.loads(to_json(describe(with_table(result), None, None)))
    assert told["noise"] == "gaussian" and told["noise_table"] == list(NOISES)
    assert json.loads(to_json(describe(result, None, None)))["noise_table"] == []
