import re
from pathlib import Path

import numpy as np
import pytest

import pmsr
from pmsr.data import load_galileo, make_data
from pmsr.evidence.problem import Problem, as_problem, read_problem
from pmsr.settings import Settings

SHELF = load_galileo("shelf")
EVIDENCE = Path(pmsr.__file__).parent / "evidence"


def test_a_problem_is_what_the_options_say():
    settings = Settings(gamma="ohagan", sigma_prior="log-flat", parameter_prior="invariant")
    data = make_data(*SHELF)
    problem = Problem.of(data, settings, 2)
    assert problem.gamma == settings.resolve_gamma(5, 2) == 3 / 5
    assert problem.sigma_bounds == settings.sigma_bounds(data.y)
    assert (problem.sigma_power, problem.parameter_prior) == (1, "invariant")


def test_an_unknown_noise_is_refused():
    with pytest.raises(ValueError, match=r"Unknown noise 'cauchy'\. Available: gaussian, student"):
        Problem.of(make_data(*SHELF), Settings(noise="cauchy"))


def test_a_fraction_that_depends_on_the_largest_equation_needs_it():
    with pytest.raises(ValueError, match=r'gamma="ohagan" depends on .*Set max_parameters'):
        Problem.of(make_data(*SHELF), Settings(gamma="ohagan"))


def test_a_problem_that_is_made_is_not_made_again():
    problem = Problem.of(make_data(*SHELF), Settings(gamma=0.3))
    assert as_problem(problem, Settings(gamma=0.5), None) is problem
    assert as_problem(problem.data, Settings(gamma=0.5), None).gamma == 0.5


def test_other_columns_leave_fraction_and_priors_alone():
    data = make_data(np.arange(12.0).reshape(6, 2), np.arange(6.0) ** 2, names=["a", "b"])
    problem = Problem.of(data, Settings())
    assert problem.select(["a", "b"]) is problem
    other = problem.select(["b"])
    assert other.data.names == ("b",)
    assert (other.gamma, other.sigma_bounds) == (problem.gamma, problem.sigma_bounds)


def test_half_of_the_largest_noise_level_is_left_only_where_it_is_above_the_least():
    data = make_data(*SHELF)
    problem = Problem.of(data, Settings())
    assert problem.halved.sigma_bounds == (problem.sigma_bounds[0], 0.5 * problem.sigma_bounds[1])
    narrow = Problem.of(data, Settings(sigma_min=1.5, sigma_max=2.0))
    assert narrow.halved is narrow


def test_measurements_are_checked_once_for_the_text_of_an_equation(monkeypatch):
    checked = []

    def make(*arguments, **options):
        checked.append(arguments)
        return make_data(*arguments, **options)

    monkeypatch.setattr("pmsr.evidence.problem.make_data", make)
    equation, problem, _ = read_problem("c0*sqrt(H)", *SHELF)
    assert len(checked) == 1 and problem.data.names == equation.variables == ("H",)


@pytest.mark.parametrize("path", sorted(EVIDENCE.glob("*.py")), ids=lambda path: path.stem)
def test_only_the_problem_asks_the_options_for_statistics(path):
    asked = re.findall(
        r"settings\.(?:resolve_gamma|gamma|sigma_\w+|parameter_prior|noise)", path.read_text()
    )
    assert not asked or path.stem == "problem"
