"""Random equations for hypothesis: texts over given variables, of bounded depth."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from pmsr.equation.expression import Equation

# A tree is a leaf (a text) or a tuple of an operator and its arguments.
Tree = Any

BINARY = ("+", "-", "*", "/")
FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "abs")
NUMBERS = ("1", "2", "3", "0.5", "0.3", "2.5")
EXPONENTS = ("2", "3", "-1", "-2", "0.5", "1.5")


@st.composite
def equation_trees(
    draw: Callable[[Any], Any],
    variables: Sequence[str] = ("x", "y"),
    n_parameters: int = 3,
    *,
    max_depth: int = 4,
    functions: Sequence[str] = FUNCTIONS,
    powers: bool = True,
) -> Tree:
    """Trees whose leaves are variables, the parameters c0, c1, ... and numbers."""
    parameters = [f"c{i}" for i in range(n_parameters)]
    leaves = st.sampled_from([*parameters, *variables, *parameters, *variables, *NUMBERS])
    operators = [*BINARY, *BINARY, *functions, *(["**", "power"] if powers else [])]
    choices = st.sampled_from(["leaf", *operators])

    def tree(depth: int) -> Tree:
        choice = draw(choices) if depth else "leaf"
        if choice == "leaf":
            return draw(leaves)
        if choice == "power":
            return ("**", tree(depth - 1), draw(st.sampled_from(EXPONENTS)))
        return (choice, *(tree(depth - 1) for _ in range(1 if choice in functions else 2)))

    return tree(max_depth)


def write_tree(tree: Tree, names: dict[str, str] | None = None, swap: bool = False) -> str:
    """Write a tree as text, with other names for its leaves, or with swapped arguments."""
    if isinstance(tree, str):
        return (names or {}).get(tree, tree)
    operator, *arguments = tree
    texts = [write_tree(argument, names, swap) for argument in arguments]
    if len(texts) == 1:
        return f"{operator}({texts[0]})"
    if swap and operator in ("+", "*"):
        texts.reverse()
    return f"(({texts[0]}) {operator} ({texts[1]}))"


def is_equation(text: str, variables: Sequence[str]) -> bool:
    """Whether the text is real and finite for SymPy: not 1/0 or sqrt(-1)."""
    try:
        Equation(text, variables)
    except ValueError:
        return False
    return True


def equation_texts(variables: Sequence[str] = ("x", "y"), **options: Any) -> st.SearchStrategy[str]:
    """Valid equations over the variables; the options are those of `equation_trees`."""
    texts = equation_trees(variables, **options).map(write_tree)
    return texts.filter(lambda text: is_equation(text, variables))
