"""Sphinx extension: formulas become MathML when the pages are built, so that they show
without a network and without JavaScript."""

import re

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.writers.html5 import HTML5Translator

CONVERTER = LatexToMathML()


def mathml(formula: str, *, block: bool) -> str:
    """MathML of a formula in TeX; one that cannot be converted ends the build."""
    formula = re.sub(r"(?<!\\)\\\n", r"\\ ", formula)  # a space at the end of a line
    rows = r"\\" in formula and not formula.lstrip().startswith(r"\begin")
    tex = rf"\begin{{aligned}}{formula}\end{{aligned}}" if rows else formula
    try:
        return CONVERTER.convert_with_local_state(tex, displaystyle=block)
    except LatexError as error:
        raise ExtensionError(f"no MathML of {formula!r}: {error}") from error


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(mathml(node.astext(), block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
