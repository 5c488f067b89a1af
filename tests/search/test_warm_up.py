import os
import subprocess
import sys

import pytest

from pmsr.search.warm_up import warm_up

TWICE = """
import time
from pmsr.search.warm_up import warm_up
started = time.monotonic()
first = warm_up()
elapsed = time.monotonic() - started
print(first, elapsed, warm_up())
"""


def test_what_is_warm_takes_no_time():
    warm_up()
    assert warm_up() == 0.0


@pytest.mark.slow
def test_compiling_is_counted_and_reading_compiled_code_is_not(tmp_path):
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    runs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", TWICE],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **environment},
        )
        runs.append([float(word) for word in done.stdout.split()])
    (cold, elapsed, again), (warm, *_) = runs
    assert 0.9 * elapsed <= cold <= elapsed and again == 0.0
    assert warm == 0.0
