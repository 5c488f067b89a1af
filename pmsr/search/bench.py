"""What all laws of a search are judged by: the problem, the options and the seed of the run."""

from dataclasses import dataclass, replace
from functools import cached_property

from pmsr.equation.expression import Equation
from pmsr.equation.program import Program, Tables
from pmsr.equation.structure import MAX_PARAMETERS
from pmsr.evidence.evidence import Evidence
from pmsr.evidence.problem import Problem, Tuning
from pmsr.laws.coincidences import Signs, column_signs
from pmsr.laws.prior import find_log_priors
from pmsr.laws.units import Units, read_units
from pmsr.search.engines import Engine, engine_of
from pmsr.search.folding import Rules
from pmsr.search.genome import Primitives
from pmsr.search.halving import Stages
from pmsr.search.memory import Floats
from pmsr.search.restrictions import Restrictions
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
    tuning
        Weights of residuals with which laws are screened, where they depend on a fit; of several
        groups those of each.
    left_out
        Names of columns that laws must not depend on at this stage.
    """

    problem: Problem
    search: Search
    settings: Settings
    seed: int
    tuning: Tuning | tuple[Tuning, ...] | None = None
    left_out: tuple[str, ...] = ()

    @cached_property
    def screening(self) -> Problem:
        """What laws are screened on: the problem, with weights that suit a typical fit."""
        if self.tuning is None or isinstance(self.tuning, Tuning):
            return replace(self.problem, tuning=self.tuning)
        return self.problem.with_tunings(self.tuning)

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
            search.operators,
            self.names,
            search.max_complexity,
            shared=search.share_parameters,
            excluded=() if self.restrictions is None else self.restrictions.exclude,
        )

    @cached_property
    def restrictions(self) -> Restrictions | None:
        """What the user rules out, and what the search has left out."""
        return Restrictions.of(self.search, self.names, self.left_out)

    @cached_property
    def rules(self) -> Rules:
        """What is refused before it is screened."""
        rules = Rules.of(self.search)
        most = MAX_PARAMETERS if rules.max_parameters is None else rules.max_parameters
        return replace(
            rules, max_parameters=min(most, MAX_PARAMETERS), restrictions=self.restrictions
        )

    @cached_property
    def stages(self) -> Stages:
        """The rows, in the order in which laws meet them."""
        # The closed form of noise that is not normal needs the predictions at all rows, and groups
        # have few rows each.
        whole = not self.screening.noise.is_exact or bool(self.problem.parts)
        return Stages.of(self.screening.white, self.seed, whole=whole)

    @property
    def is_screened(self) -> bool:
        """Whether the closed form leads: not where each candidate is to be weighed."""
        search, problem = self.search, self.problem
        return (
            search.evidence == "screened"
            and search.fitness == "evidence"
            # The closed form is that of the invariant prior.
            and problem.parameter_prior == "invariant"
        )

    @cached_property
    def units(self) -> Units:
        """Units of the columns that vary and of the target."""
        data, search = self.problem.data, self.search
        names = (*data.names, data.target)
        units = search.units
        if units is not None:
            units = {name: unit for name, unit in units.items() if name in names}
        interval = [name for name in search.interval if name in data.names]
        return read_units(
            units, data.names, data.target, interval=interval, constants=data.constants
        )

    @cached_property
    def signs(self) -> Signs:
        """Of every column, whether it is positive, negative, or both."""
        return column_signs(self.problem.data.X)

    def log_priors(self, laws: Tables, theta: Floats | None = None) -> Floats:
        """Log prior probabilities of laws as they are spelled, of shape (n,)."""
        # What is screened on several groups comes with the parameters of the first.
        X = (self.problem.parts or (self.problem,))[0].data.X
        return find_log_priors(
            self.search.law_prior,
            laws,
            self.names,
            signs=self.signs,
            generators=self.units.generators,
            X=None if theta is None else X,
            theta=theta,
        )

    def log_prior(self, program: Program) -> float:
        """Log prior probability of one law."""
        if self.search.fitness != "evidence":
            return 0.0
        return float(self.log_priors(Tables.of([program]))[0])

    def final_score(self, equation: Equation, evidence: Evidence) -> float:
        """Return what the result is ranked by."""
        return self.engine.score(evidence) + self.log_prior(equation.program)
