"""The result of a search: what it has found, ranked and ready to be asked."""

from dataclasses import fields, replace

import numpy as np

from pmsr.data import Data
from pmsr.equation.expression import Equation
from pmsr.evidence.evidence import Weighed, seed_for, weigh
from pmsr.evidence.problem import Problem, as_problem
from pmsr.files import without_numpy
from pmsr.laws.identity import Trace, group_laws
from pmsr.laws.order import rank
from pmsr.laws.units import units_of
from pmsr.result.coverage import Coverage
from pmsr.result.grouped import fitted_equation
from pmsr.result.result import Result, library_versions
from pmsr.result.scoring import find_log_prior
from pmsr.result.table import choose_winner, rank_by
from pmsr.search.evolution import Evolution
from pmsr.search.genome import constant_equation
from pmsr.settings import Search, Settings


def from_evolution(
    found: Evolution,
    data: Data | Problem,
    *,
    search: Search,
    settings: Settings,
    random_seed: int,
) -> Result:
    """Make a result of what a search has found.

    Parameters
    ----------
    found
        The search's result.
    data, search, settings, random_seed
        What it was called with.

    Returns
    -------
    Result
        Ranked by ``score``, or by ``rmse`` after a conventional search.
    """
    problem = as_problem(data, settings, search.max_parameters)
    thorough = settings.for_finalists()
    pairs, weighed = list(found.finalists), dict(found.weighed)
    if not any(np.isfinite(evidence.rmse) for _, evidence in pairs):
        # A constant can always be weighed.
        constant = constant_equation(problem.data.names)
        seed = seed_for(constant.key, random_seed)
        weighed[constant.key] = weigh(constant.program, problem, thorough, seed, keep=True)
        pairs.insert(0, (constant, weighed[constant.key].evidence))
    pairs = [pairs[place] for place in group_laws([Trace(equation.key) for equation, _ in pairs])]
    # The search leaves out what does not vary; one copy of the rest is enough for all.
    selected = {names: problem.select(names) for names in {e.variables for e, _ in pairs}}
    units = units_of(search, problem.data)
    own_units = {names: units.select(names) for names in selected}
    fitted = []
    for equation, evidence in pairs:
        own = replace(weighed.get(equation.key, Weighed(evidence)), evidence=evidence)
        log_prior = find_log_prior(
            equation,
            selected[equation.variables].data,
            search.law_prior,
            units=own_units[equation.variables],
            evidence=evidence,
            is_spelled=found.n_screened > 0,
        )
        units_here, problem_here = own_units[equation.variables], selected[equation.variables]
        equation = _readable(equation)
        if problem.priors:
            equation, problem_here = problem.suit(equation)
            own = _with_constants(own, equation, problem_here)
            units_here = units.select(equation.variables)
        fitted.append(
            fitted_equation(
                equation, own, problem_here, thorough, random_seed, log_prior, units_here
            )
        )
    sizes = [one.equation.complexity for one in fitted]
    ranked = [fitted[place] for place in rank(rank_by(fitted, search), sizes)]
    return Result(
        equations=tuple(ranked),
        names=None,
        problem=problem,
        settings=thorough,
        search=search,
        random_seed=random_seed,
        chosen=choose_winner(ranked, search),
        history=tuple({k: without_numpy(value) for k, value in r.items()} for r in found.history),
        n_candidates=found.n_candidates,
        n_failed=found.n_failed,
        stopped=found.stopped,
        versions=library_versions(),
        law_prior=search.law_prior,
        coverage=Coverage(**{one.name: getattr(found, one.name) for one in fields(Coverage)}),
        units=units,
    )


def _with_constants(weighed: Weighed, equation: Equation, problem: Problem) -> Weighed:
    """Return evidence with a best value for uncertain constants, if it took them for exact."""
    evidence, given = weighed.evidence, problem.given
    missing = len(equation.parameters) - len(evidence.theta)
    if missing <= 0:
        return weighed
    middle = given.from_z(np.zeros((1, len(given))))[0] if len(given) else np.empty(0)
    theta = np.concatenate([evidence.theta, middle[len(given) - missing :]])
    return replace(weighed, evidence=replace(evidence, theta=theta, n_parameters=len(theta)))


def _readable(equation: Equation) -> Equation:
    """Return an equation whose text is without needless backquotes."""
    readable = Equation(str(equation), equation.variables, equation.parameters)
    same = readable.expression == equation.expression
    if not same or readable.parameters != equation.parameters:
        return equation
    readable.__dict__["key"] = equation.key  # that of the same expression
    return readable
