import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from pmsr.equation import operators

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted((DOCS / "howto").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Budgets of the pages, at the size of a test.
SMALL = ((r"\bmax_time=\d+", "max_time=3"), (r'"generations": \d+', '"generations": 2'))


@pytest.fixture
def _tidy(monkeypatch, tmp_path):
    """Run in an empty folder, and leave neither figures nor operators behind."""
    monkeypatch.chdir(tmp_path)
    known = dict(operators.OPERATORS)
    yield
    plt.close("all")
    for name in operators.OPERATORS:
        if name not in known:
            del operators.OPERATORS[name]


@pytest.mark.slow
@pytest.mark.usefixtures("_tidy")
@pytest.mark.filterwarnings("ignore::pmsr.ResultWarning")  # a small budget is worth doubting
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_code_of_a_page_runs(path):
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    assert blocks
    code = "\n".join(blocks)
    for budget, small in SMALL:
        code = re.sub(budget, small, code)
    exec(compile(code, str(path), "exec"), {"__name__": "page"})


def test_every_page_is_reachable():
    linked = set()
    for path in (DOCS / "index.md", DOCS / "tutorial.md"):
        for table in re.findall(r"```\{toctree\}\n(.*?)```", path.read_text(), re.DOTALL):
            linked |= {line for line in table.splitlines() if line and line[0] not in ":"}
    pages = {path.stem for path in (*DOCS.glob("*.md"), *DOCS.glob("*.rst"))}
    pages |= {f"howto/{path.stem}" for path in PAGES}
    pages |= {f"notebooks/{path.stem}" for path in (DOCS.parent / "notebooks").glob("*.ipynb")}
    assert linked == pages - {"index", "search"}  # shown by how_the_search_works
