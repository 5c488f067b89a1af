import re

from hypothesis import given
from hypothesis import strategies as st

from pmsr.csv_text import guarded, unguarded


@given(st.text("'=-@,;\t\r\nx\uff1d"))
def test_the_guard_of_a_text_can_be_taken_away(text):
    assert unguarded(guarded(text)) == text
    parts = re.split("[,;\t\r\n]", guarded(text))
    assert not any(part[:1] and part[0] in "=-@\uff1d" for part in parts)
