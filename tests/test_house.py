import ast
import importlib.metadata
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pmsr

ROOT = Path(__file__).parent.parent
LAYERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][
    0
]


def test_no_public_name_is_the_name_of_a_module():
    # With a lazy table of contents the name would change its meaning after the first import.
    modules = {module.name for module in pkgutil.iter_modules(pmsr.__path__)}
    modules |= {name for layer in LAYERS["layers"] for name in re.findall(r"\w+", layer)}
    assert modules.isdisjoint(pmsr.__all__)


@pytest.mark.parametrize("name", pmsr.__all__)
def test_every_public_name_can_be_loaded(name):
    assert getattr(pmsr, name) is not None
    assert name in dir(pmsr)


def test_table_of_contents_for_tools_is_the_table_of_contents():
    tree = ast.parse(Path(pmsr.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert pmsr._MODULE_OF == {name: seen[name] for name in pmsr.__all__ if name != "__version__"}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'pmsr' has no attribute 'nothing'"):
        _ = pmsr.nothing


def test_experiments_and_plots_are_reached_from_the_package():
    code = "import pmsr; print(pmsr.plots.plot_fit.__name__, pmsr.experiments.sine.run.__name__)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True)
    assert done.stdout.split() == [b"plot_fit", b"run"]
    with pytest.raises(AttributeError, match="has no attribute 'cosine'"):
        _ = pmsr.experiments.cosine


def test_import_loads_none_of_the_heavy_libraries():
    code = "import sys, pmsr; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"arviz", "matplotlib", "numba", "numpy", "pandas", "pymc", "pytensor", "sklearn"}
    assert (heavy | {"sympy", "deap"}).isdisjoint(loaded)


FOLDERS = ("equation", "evidence", "laws", "report", "result", "search", "shell")


@pytest.mark.parametrize("folder", ["", *FOLDERS])
def test_every_module_has_its_tests(folder):
    found = pkgutil.iter_modules([str(ROOT / "pmsr" / folder)])
    modules = {module.name for module in found if module.name not in FOLDERS}
    tests = (ROOT / "tests" / folder).glob("test_*.py")
    assert modules <= {path.stem.removeprefix("test_") for path in tests}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_says_what_it_is_for_and_what_it_may_import(folder):
    tree = ast.parse((ROOT / "pmsr" / folder / "__init__.py").read_text())
    purpose, imports = ast.get_docstring(tree).split("\n\n")
    assert len(tree.body) == 1 and purpose.endswith(".") and imports.startswith("May import: ")


@pytest.mark.parametrize("lane", ["py311", "py312", "docs"])
def test_locks_are_plain_names_and_versions(lane):
    lines = (ROOT / "requirements" / f"{lane}.txt").read_text().splitlines()
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


@pytest.mark.parametrize("lane", ["py311", "py312"])
def test_locks_name_everything_the_project_asks_for(lane):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    locked = (ROOT / "requirements" / f"{lane}.txt").read_text().splitlines()

    def plain(requirement):
        return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()

    assert {plain(line) for line in wanted} <= {plain(line) for line in locked}


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {pmsr.__version__}\n" in citation
    assert f"## {pmsr.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert importlib.metadata.version("pmsr") == pmsr.__version__
