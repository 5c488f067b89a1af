import ast
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
# What a cell tagged "parameters" may set, at the size of a test.
SMALL = {
    "draws": 200,
    "generations": 4,
    "highest_order": 4,
    "population_size": 20,
    "tune": 200,
}


def shrink(notebook):
    """Give the parameters of a notebook, if it has any, their small values."""
    for cell in notebook.cells:
        if "parameters" in cell.metadata.get("tags", []):
            names = [line.targets[0].id for line in ast.parse(cell.source).body]
            cell.source = "\n".join(f"{name} = {SMALL[name]}" for name in names)
    return notebook


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    notebook = shrink(nbformat.read(path, as_version=4))
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_committed_without_outputs(path):
    cells = nbformat.read(path, as_version=4).cells
    assert not [cell for cell in cells if cell.cell_type == "code" and cell.outputs]
