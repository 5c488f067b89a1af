"""What a search knows about itself: how much it has seen, and what it has left out."""

from dataclasses import dataclass, field

from pmsr.equation.notation import percent

USUAL = ("+", "-", "*", "/", "sqrt", "exp", "log", "sin", "cos", "pow")
"""Operators that occur in most laws of science."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How many equations a search has seen, and how closely it looked.

    Parameters
    ----------
    n_folded, n_screened, n_sampled
        Graphs folded, laws screened by the closed form, and laws weighed by sampling.
    n_enumerated, level
        All so many laws of up to so many nodes were screened; 0 if none was enumerated.
    n_shapes, shape_level
        For all so many functions g of the variables alone, of up to so many nodes, the laws g, c0*g
        and c0 + c1*g were screened.
    n_units
        How many units the search did: with ``Search(max_units=...)`` it can be repeated, bit for
        bit.
    log_rest
        Log of the sum of exp(log q + log P) over all laws that were only screened.
    is_settled
        Whether the best score had ceased to rise when time ended.
    left_out, brought_back
        Columns that the search did not begin with, and the generation after which laws could depend
        on them; 0 if they never could.
    elapsed
        Seconds that the search took, from its start to its ranked equations; NaN if unknown.
    """

    n_folded: int = 0
    n_screened: int = 0
    n_sampled: int = 0
    n_enumerated: int = 0
    level: int = 0
    n_shapes: int = 0
    shape_level: int = 0
    n_units: int = 0
    log_rest: float = float("-inf")
    is_settled: bool = True
    left_out: tuple[str, ...] = ()
    brought_back: int = 0
    elapsed: float = field(default=float("nan"), compare=False)


def describe_coverage(coverage: Coverage, unweighed_share: float) -> list[str]:
    """Say in words what was seen; nothing where nothing was counted.

    Examples
    --------
    >>> seen = Coverage(n_folded=90_000, n_screened=41_000, n_sampled=812, log_rest=-20.0)
    >>> for sentence in describe_coverage(seen, 0.03):
    ...     print(sentence)
    90,000 graphs were folded to laws, 41,000 laws screened, 812 of them weighed by sampling.
    Laws that were only screened hold 3.0% of the probability.
    >>> describe_coverage(Coverage(n_enumerated=9915, level=8), 0.0)
    ['All 9,915 laws of up to 8 nodes were screened.']
    """
    sentences = []
    if coverage.n_screened:
        folded = f"{coverage.n_folded:,} graphs were folded to laws, " if coverage.n_folded else ""
        sentences.append(
            f"{folded}{coverage.n_screened:,} laws {'' if folded else 'were '}screened, "
            f"{coverage.n_sampled:,} of them weighed by sampling."
        )
    if coverage.n_enumerated:
        of = " of the columns it began with" if coverage.left_out else ""
        sentences.append(
            f"All {coverage.n_enumerated:,} laws{of} of up to {coverage.level} nodes were screened."
        )
    if coverage.n_shapes:
        sentences.append(
            f"So were g, c0*g and c0 + c1*g for all {coverage.n_shapes:,} functions g of the "
            f"variables alone of up to {coverage.shape_level} nodes."
        )
    if coverage.log_rest > float("-inf"):
        sentences.append(
            f"Laws that were only screened hold {percent(unweighed_share)} of the probability."
        )
    if coverage.left_out:
        sentences.append(_describe_left_out(coverage))
    return sentences


def _describe_left_out(coverage: Coverage) -> str:
    """Say which columns were left out, and whether they came back.

    Examples
    --------
    >>> _describe_left_out(Coverage(left_out=("p", "T"), brought_back=30))
    'The search began without p, T, which seem not to matter; they came back after generation 30.'
    """
    names = list(coverage.left_out)
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    end = (
        f"they came back after generation {coverage.brought_back}."
        if coverage.brought_back
        else "there was no time to bring them back: no law can depend on them."
    )
    return f"The search began without {', '.join(names[:8])}{more}, which seem not to matter; {end}"


def untried_operators(operators: tuple[str, ...]) -> list[str]:
    """Return the usual operators that a search did not have.

    Examples
    --------
    >>> untried_operators(("+", "-", "*", "/", "sqrt"))
    ['exp', 'log', 'sin', 'cos', 'pow']
    """
    return [name for name in USUAL if name not in operators]
