"""Sphinx configuration. Builds without a network: ``python -m sphinx -W -b html docs
docs/_build/html``."""

import sys
from importlib import import_module
from importlib.metadata import version as installed_version
from inspect import ismodule
from pathlib import Path

import taciturn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for the two extensions beside this file

project = "taciturn"
author = "The taciturn developers"
copyright = author
version = release = installed_version("taciturn")

extensions = [
    "mathml",
    "myst_nb",
    "numpydoc",
    "offline",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]
html_math_renderer = "mathml"

# Notebooks live in notebooks/, where users look for them; their pages are copies made
# by each build, in which links to pages start from docs/tutorials.
for notebook in sorted((HERE.parent / "notebooks").glob("*.ipynb")):
    text = notebook.read_text(encoding="utf-8").replace("](../docs/", "](../")
    (HERE / "tutorials" / notebook.name).write_text(text, encoding="utf-8")

# A public name that has no place of its own on the reference page gets one at its end.
page = (HERE / "reference" / "index.md").read_text(encoding="utf-8")
fragment = ""
for folder in ("", *(name for name in taciturn.__all__ if ismodule(getattr(taciturn, name)))):
    module = import_module(f"taciturn.{folder}".rstrip("."))
    names = [name for name in module.__all__ if f"   {name}\n" not in page]
    names = [name for name in names if not ismodule(getattr(module, name)) and name[0] != "_"]
    if names:
        listing = "".join(f"   {name}\n" for name in names)
        options = "   :toctree: generated\n   :nosignatures:\n"
        directive = f".. currentmodule:: {module.__name__}\n.. autosummary::\n{options}\n{listing}"
        fragment += f"## More in {module.__name__}\n\n```{{eval-rst}}\n{directive}```\n\n"
(HERE / "reference" / "_others.md").write_text(fragment, encoding="utf-8")

exclude_patterns = [
    "_build",
    "jupyter_execute",
    "**/_*.md",  # fragments, which pages include
]

nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["amsmath", "dollarmath", "deflist"]
myst_heading_anchors = 3

autosummary_generate = ["reference/index.md", "reference/_others.md"]
autosummary_imported_members = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = f"taciturn {version}"
html_show_sourcelink = False
html_theme_options = {
    "navigation_depth": 2,
    "show_toc_level": 2,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc"],
}
html_static_path = ["_static"]
html_css_files = ["taciturn.css"]
templates_path = ["_templates"]
