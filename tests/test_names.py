from pmsr.names import suggest


def test_an_error_lists_no_more_names_than_one_can_read():
    names = [f"column {k}" for k in range(10_000)]
    assert suggest("q", ["a", "b"]) == " Available: a, b."
    assert len(suggest("q", names)) < 400 and suggest("q", names).endswith(" ….")
