"""Configuration of the documentation; `make docs` builds it."""

import logging
import os
import shutil
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml

import pmsr

HERE = Path(__file__).parent
# Threads inside a small computation only cost time.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Sphinx shows what libraries log on import, which is not for readers of its warnings.
for name in ("arviz", "pytensor", "traitlets"):
    logging.getLogger(name).setLevel(logging.WARNING)

project = "pmsr"
author = "The pmsr developers"
copyright = author
release = version = pmsr.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
# The name "search" is taken by Sphinx's own page: search.md is shown as how_the_search_works.
exclude_patterns = ["_build", "figures/*.py", "search.md"]

# The notebooks live beside the package; a page must lie in the folder of the documentation.
shutil.copytree(HERE.parent / "notebooks", HERE / "notebooks", dirs_exist_ok=True)
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / "notebooks")
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_merge_streams = True

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_preprocess_types = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
add_module_names = False
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"pmsr {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
html_math_renderer = "mathml"
# A prompt or an output is not copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def write_math(self, node):
    """Write a formula as MathML, which browsers draw without scripts or network."""
    block = node.tagname == "math_block"
    try:
        formula = tex2mathml(node.astext(), as_block=block)
    except MathError as error:
        raise ValueError(f"No MathML for {node.astext()!r}: {error}") from error
    self.body.append(f'<div class="math">{formula}</div>' if block else formula)
    raise SkipNode


def setup(app):
    """Register the writer of formulas."""
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
