"""Some of the numbers that `scripts/check_frozen` holds to the last bit, written down.

``python tests/test_frozen.py`` writes them anew: only where a number was wrong.
"""

import json
from pathlib import Path

import frozen
import pytest

WRITTEN = Path(__file__).parent / "data" / "frozen.json"
# Another processor, or another compiler, rounds otherwise; Monte Carlo does not enter.
TOLERANCE = 1e-9
EVERY = 6  # of the cases of frozen.py

CASES = list(frozen.cases())[::EVERY]


def label(case):
    name, text, settings = case
    return f"{name}: {text} ({settings.gamma}, {settings.sigma_prior}, {settings.n_draws})"


@pytest.mark.parametrize("case", CASES, ids=label)
def test_log_q_is_what_it_was(case):
    found, written = frozen.weigh(*case), json.loads(WRITTEN.read_text())[label(case)]
    assert found["failure"] == written["failure"]
    for name in ("log_q", "log_q_se", "rmse", "theta"):
        assert found[name] == pytest.approx(written[name], rel=TOLERANCE, abs=TOLERANCE), name


if __name__ == "__main__":
    numbers = {label(case): frozen.weigh(*case) for case in CASES}
    WRITTEN.write_text(json.dumps(numbers, indent=1) + "\n")
