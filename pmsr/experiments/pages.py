"""An experiment's page: the paper's claims and our results side by side, figures, numbers."""

import base64
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd
from jinja2 import Environment, PackageLoader

from pmsr import __version__
from pmsr.csv_text import to_csv, unguarded
from pmsr.equation.expression import Equation
from pmsr.equation.mathml import to_mathml
from pmsr.files import write_file

Verdict: TypeAlias = Literal["reproduced", "better", "not reproduced"]

CLAIMS = "claims.csv"  # of an experiment, in its folder
INDEX_TITLE = "The paper's claims, and what pmsr finds"


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we find, and the rule that compares the two.

    Parameters
    ----------
    place
        Where the paper says it.
    paper
        The claim.
    ours
        Our result, in words with its numbers.
    rule
        How the verdict follows from the numbers.
    verdict
        What follows.
    why
        Why it is so, where that is not obvious.
    """

    place: str
    paper: str
    ours: str
    rule: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True)
class Experiment:
    """An experiment in the index: its title, its page without suffix, and its claims."""

    title: str
    address: str
    claims: Sequence[Claim]


@dataclass(frozen=True)
class Formula:
    """An equation to be typeset, with what to say about it."""

    caption: str
    equation: Equation
    target: str


@dataclass(frozen=True)
class Page:
    """All that an experiment leaves in its folder.

    Parameters
    ----------
    title, summary
        What was done, in a line and in a paragraph.
    claims
        Side by side with our results.
    figures
        File name and caption of every figure, in the folder already.
    formulas
        Equations to be typeset.
    tables
        Small tables to be shown, by caption.
    numbers
        Every number, by the name of its table; together they make numbers.csv.
    notes
        What a reader should know: sizes, and where we differ from the paper.
    """

    title: str
    summary: str
    claims: Sequence[Claim]
    figures: Sequence[tuple[str, str]] = ()
    formulas: Sequence[Formula] = ()
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    numbers: dict[str, pd.DataFrame] = field(default_factory=dict)
    notes: Sequence[str] = ()


def write_page(out: str | Path, page: Page) -> Path:
    """Write page.md, page.html, numbers.csv and claims.csv; return the path of page.html.

    The figures are inside page.html, which so can be sent as one file.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    _write_csv(folder / "numbers.csv", to_numbers(page.numbers))
    claims = pd.DataFrame([asdict(claim) for claim in page.claims])
    claims.insert(0, "experiment", page.title)
    _write_csv(folder / CLAIMS, claims)
    write_file(folder / "page.md", to_markdown(page).encode())
    path = folder / "page.html"
    write_file(path, to_html(page, folder).encode())
    return path


def _write_csv(path: Path, table: pd.DataFrame) -> None:
    write_file(path, to_csv(list(table.columns), table.itertuples(index=False, name=None)))


def write_index(out: str | Path, pages: Sequence[Path]) -> Path:
    """Write index.md and index.html, all claims of several experiments; return index.html.

    Parameters
    ----------
    out
        Folder in which the experiments have theirs.
    pages
        Their page.html, each beside its claims.csv.
    """
    experiments = [_read_claims(Path(out), page) for page in pages]
    verdicts = Counter(claim.verdict for one in experiments for claim in one.claims)
    summary = (
        f"{verdicts.total()} claims in {len(experiments)} experiments: "
        f"{verdicts['reproduced']} reproduced, {verdicts['better']} better, "
        f"{verdicts['not reproduced']} not reproduced. Better is what does at least as well as "
        "the paper, or shows that what the paper found is not so; every page gives its rules."
    )
    lines = [f"# {INDEX_TITLE}", "", summary]
    for one in experiments:
        lines += ["", f"## [{one.title}]({one.address}.md)", "", *_claims_table(one.claims)]
    path = Path(out) / "index.html"
    write_file(path.with_suffix(".md"), "\n".join([*lines, ""]).encode())
    template = _environment().get_template("experiments.html")
    whole = template.render(
        title=INDEX_TITLE, summary=summary, experiments=experiments, version=__version__
    )
    write_file(path, whole.encode())
    return path


def _read_claims(out: Path, page: Path) -> Experiment:
    table = pd.read_csv(page.parent / CLAIMS, keep_default_na=False, dtype=str).map(unguarded)
    rows = table.drop(columns="experiment").to_dict("records")
    return Experiment(
        title=str(table["experiment"].iloc[0]),
        address=page.relative_to(out).with_suffix("").as_posix(),
        claims=tuple(Claim(**{str(name): value for name, value in row.items()}) for row in rows),
    )


def to_numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    r"""Put tables below one another; the column ``table`` says where a row is from.

    Examples
    --------
    >>> to_numbers({"a": pd.DataFrame({"x": [1]}), "b": pd.DataFrame({"y": [2.5]})}).to_csv()
    ',table,x,y\n0,a,1.0,\n1,b,,2.5\n'
    """
    parts = [table.assign(table=name) for name, table in tables.items() if not table.empty]
    if not parts:
        return pd.DataFrame({"table": []})
    whole = pd.concat(parts, ignore_index=True)
    return whole[["table", *(column for column in whole if column != "table")]]


def to_markdown(page: Page) -> str:
    """Return the page as Markdown, with formulas in LaTeX."""
    lines = [f"# {page.title}", "", page.summary, "", *_claims_table(page.claims)]
    lines += ["", "## How the verdicts are reached", ""]
    for k, claim in enumerate(page.claims, 1):
        why = f" {claim.why}" if claim.why else ""
        rule = claim.rule[0].upper() + claim.rule[1:]
        lines.append(f"{k}. {rule} Here: **{claim.verdict}**.{why}")
    lines += ["", "## Figures"] if page.figures else []
    for name, caption in page.figures:
        lines += ["", f"![{caption}]({name})", "", f"*{caption}*"]
    lines += ["", "## Equations"] if page.formulas else []
    for formula in page.formulas:
        left = Equation(formula.target, [formula.target]).latex()
        lines += ["", f"{formula.caption}:", "", f"$${left} = {formula.equation.latex()}$$"]
    lines += ["", "## Tables"] if page.tables else []
    for caption, table in page.tables.items():
        lines += ["", f"{caption}:", "", "| " + " | ".join(map(str, table)) + " |"]
        lines.append("|" + "---|" * len(table.columns))
        for row in table.itertuples(index=False):
            lines.append("| " + " | ".join(_cell(write_cell(value)) for value in row) + " |")
    if page.notes:
        lines += ["", "## Notes", ""]
        lines += [f"* {note}" for note in page.notes]
    lines += ["", f"All numbers: `numbers.csv`. Made by pmsr {__version__}.", ""]
    return "\n".join(lines)


def _claims_table(claims: Sequence[Claim]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = ["| the paper | pmsr | verdict |", "|---|---|---|"]
    for claim in claims:
        paper = _cell(f"{claim.paper} ({claim.place})")
        lines.append(f"| {paper} | {_cell(claim.ours)} | **{claim.verdict}** |")
    return lines


def to_html(page: Page, folder: Path) -> str:
    """Return the page as HTML that needs no other file."""
    figures = [(_embed(folder / name), caption) for name, caption in page.figures]
    formulas = [(f.caption, to_mathml(f.equation, f.target, display=True)) for f in page.formulas]
    return (
        _environment()
        .get_template("experiment.html")
        .render(page=page, figures=figures, formulas=formulas, version=__version__)
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pmsr.report"), autoescape=True, trim_blocks=True
    )
    environment.filters["cell"] = write_cell
    return environment


def write_cell(value: Any) -> str:
    """Write a cell of a table: numbers with four digits.

    Examples
    --------
    >>> write_cell(0.123456), write_cell(7), write_cell("x"), write_cell(float("nan"))
    ('0.1235', '7', 'x', '')
    """
    if isinstance(value, float):
        return "" if value != value else f"{value:.4g}"
    return str(value)


def _cell(text: str) -> str:
    """Return text that does not end a cell of a Markdown table."""
    return text.replace("|", r"\|").replace("*", r"\*")


def _embed(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
