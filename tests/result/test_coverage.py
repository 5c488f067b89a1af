from pmsr.result.coverage import USUAL, Coverage, describe_coverage, untried_operators


def test_a_search_that_counted_nothing_says_nothing():
    assert describe_coverage(Coverage(), 0.0) == []


def test_what_was_seen_is_said_in_words():
    seen = Coverage(
        n_folded=90_000, n_screened=41_000, n_sampled=812, n_enumerated=9915, level=8, log_rest=-3.0
    )
    folded, enumerated, share = describe_coverage(seen, 0.0004)
    assert folded == (
        "90,000 graphs were folded to laws, 41,000 laws screened, 812 of them weighed by sampling."
    )
    assert enumerated == "All 9,915 laws of up to 8 nodes were screened."
    assert share == "Laws that were only screened hold < 0.1% of the probability."
    assert describe_coverage(Coverage(n_screened=20, n_sampled=3), 0.0) == [
        "20 laws were screened, 3 of them weighed by sampling."
    ]


def test_usual_operators_that_were_not_tried_are_named():
    assert untried_operators(USUAL) == []
    assert untried_operators(("tanh", "+", "-", "*", "/")) == [
        "sqrt",
        "exp",
        "log",
        "sin",
        "cos",
        "pow",
    ]
