"""What all laws of a search are judged by: the problem, the options and the seed of the run."""

from dataclasses import dataclass, replace
from functools import cached_property

from pmsr.equation.expression import Equation
from pmsr.equation.program import Program
from pmsr.equation.structure import MAX_PARAMETERS
from pmsr.evidence.evidence import Evidence
from pmsr.evidence.problem import Problem
from pmsr.laws.coincidences import column_signs, count_coincidences
from pmsr.laws.prior import LawPrior
from pmsr.search.engines import Engine, engine_of
from pmsr.search.folding import Folded, Rules
from pmsr.search.genome import Primitives
from pmsr.search.memory import Floats
from pmsr.settings import Search, Settings


@dataclass(frozen=True, eq=False)
class Bench:
    """What is the same for all laws of a search.

    Parameters
    ----------
    problem, search, settings
        Of the search.
    seed
        Of the run.
    """

    problem: Problem
    search: Search
    settings: Settings
    seed: int

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return self.problem.data.names

    @property
    def engine(self) -> Engine:
        """The row that says how equations are weighed and compared."""
        return engine_of(self.search)

    @cached_property
    def primitives(self) -> Primitives:
        """What graphs are made of."""
        search = self.search
        return Primitives(
            search.operators, self.names, search.max_complexity, shared=search.share_parameters
        )

    @cached_property
    def rules(self) -> Rules:
        """What is refused before it is screened."""
        rules = Rules.of(self.search)
        most = MAX_PARAMETERS if rules.max_parameters is None else rules.max_parameters
        return replace(rules, max_parameters=min(most, MAX_PARAMETERS))

    @property
    def is_screened(self) -> bool:
        """Whether the closed form leads: not where each candidate is to be weighed."""
        search, problem = self.search, self.problem
        return (
            search.evidence == "screened"
            and search.fitness == "evidence"
            # The closed form is that of the invariant prior, for noise of one size.
            and problem.parameter_prior == "invariant"
            and problem.weights is None
        )

    def log_priors(self, laws: Folded) -> Floats:
        """Log prior probabilities of folded laws."""
        prior, signs = LawPrior(), column_signs(self.problem.data.X)
        programs = [laws.program(k) for k in range(len(laws))]
        d = len(self.names)
        found = [count_coincidences(one, d, signs=signs) for one in programs]
        return prior.log_ps(programs, found)

    def log_prior(self, program: Program) -> float:
        """Log prior probability of one law."""
        if not self.is_screened:
            return 0.0
        d, signs = len(self.names), column_signs(self.problem.data.X)
        return LawPrior().log_p(program, count_coincidences(program, d, signs=signs))

    def final_score(self, equation: Equation, evidence: Evidence) -> float:
        """Return what the result is ranked by."""
        return self.engine.score(evidence) + self.log_prior(equation.program)
