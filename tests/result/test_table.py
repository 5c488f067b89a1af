from dataclasses import replace

import numpy as np

from pmsr.result.table import choose_winner, make_table, rank_by
from pmsr.settings import Search


def test_a_table_has_its_differences_from_the_best_score_and_its_bayes_factors_from_log_q(result):
    equations = [one.equation for one in result]
    evidences = [one.evidence for one in result]
    log_priors = [0.0, 3.0, -1.0, 0.0]
    table = make_table(equations, evidences, log_priors)
    np.testing.assert_array_equal(table["score"], table["log_q"] + log_priors)
    # The prior puts the power law, which has the second evidence, in front.
    assert table["difference"].tolist().index(0.0) == 1 and table["bayes_factor"][1] == 1.0
    lead = table["log_q"][1] - table["log_q"][0]
    assert table["bayes_factor"][0] == np.exp(lead) < 1.0 and table["bayes_factor"][3] == np.inf
    assert table["failure"][3] and table["probability"][3] == 0.0


def test_where_nothing_could_be_weighed_all_are_infinitely_far_off(result):
    failed = [result.equations[3]] * 2
    table = make_table([one.equation for one in failed], [one.evidence for one in failed])
    assert (table["difference"] == -np.inf).all()


def test_a_conventional_search_ranks_by_error_and_puts_the_least_forward(result):
    assert rank_by(result.equations, None) == [one.score for one in result]
    search = Search(fitness="rmse")
    weighed = result.equations[:3]
    errors = np.array([one.evidence.rmse for one in weighed])
    assert choose_winner(weighed, search) == int(np.argmin(errors))
    assert np.argsort(rank_by(weighed, search)).tolist() == np.argsort(-errors).tolist()
    heavier = (replace(weighed[0], log_prior=-50.0), *weighed[1:])
    assert choose_winner(weighed) == 0 and choose_winner(heavier) != 0
