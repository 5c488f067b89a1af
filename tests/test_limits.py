import threading
import time

import pytest

from pmsr.limits import OutOfTime, check_time, time_left, time_limit


def test_without_a_limit_there_is_always_time():
    check_time()
    assert time_left() == float("inf")


def test_the_earlier_of_two_limits_holds_unless_all_are_lifted():
    now = time.monotonic()
    with time_limit(now - 1.0):
        with time_limit(now + 100.0), pytest.raises(OutOfTime, match="the time was up"):
            check_time()
        with time_limit(None):
            check_time()
    check_time()


def test_a_limit_is_that_of_its_thread():
    seen = []
    with time_limit(time.monotonic() - 1.0):
        thread = threading.Thread(target=lambda: seen.append(time_left()))
        thread.start()
        thread.join()
    assert seen == [float("inf")]
