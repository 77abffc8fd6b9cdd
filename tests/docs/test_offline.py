"""Pages show without a network: formulas are MathML, and nothing is loaded from the
web."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def beside_conf(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LOADED = [
    '<script defer="defer" src="https://x.org/a.js"></script>',
    "<SCRIPT SRC='//x.org/a.js'></SCRIPT>",
    '<link href="http://x.org/a.css" rel="alternate stylesheet" />',
    '<link rel="preload" href="https://x.org/a.woff2" as="font">',
    '<img alt="" srcset="a.png, https://x.org/a.png 2x">',
    '<div style="background: url(https://x.org/a.png)"></div>',
    '<style>@import "https://x.org/a.css";</style>',
    "<style>@font-face { src: url('//x.org/a.woff2') }</style>",
]


@pytest.mark.parametrize("page", LOADED)
def test_a_page_that_loads_from_the_web_is_found(page, tmp_path):
    offline = beside_conf("offline")
    (tmp_path / "page.html").write_text(f"<html>{page}</html>", encoding="utf-8")
    with pytest.raises(ValueError, match=r"page\.html: .*x\.org/a"):
        offline.check_pages(tmp_path)


def test_links_and_own_files_are_no_loads(tmp_path):
    offline = beside_conf("offline")
    (tmp_path / "page.html").write_text(
        '<a href="https://x.org/">x</a> <link rel="canonical" href="https://x.org/">'
        '<script src="_static/a.js"></script><img src="data:image/png;base64,//8=">'
        "<math xmlns='http://www.w3.org/1998/Math/MathML'></math><p>url(https://x.org/)</p>",
        encoding="utf-8",
    )
    (tmp_path / "own.css").write_text("a { src: url(fonts/a.woff2) }", encoding="utf-8")
    offline.check_pages(tmp_path)
    (tmp_path / "other.css").write_text("@import url(//x.org/a.css)", encoding="utf-8")
    with pytest.raises(ValueError, match=r"other\.css: //x\.org"):
        offline.check_pages(tmp_path)


def test_formulas_of_several_rows_and_their_mistakes():
    pytest.importorskip("math_core", reason="of the group docs")
    pytest.importorskip("sphinx", reason="of the group docs")
    mathml = beside_conf("mathml").mathml
    rows = mathml(r"R_1 &= \frac12 \\ R_2 &= 0", block=True)
    assert (rows.count("<mtr>"), rows.count("<mfrac>")) == (2, 1)
    assert mathml(r"\begin{aligned}a &= b \\ c &= d\end{aligned}", block=True).count("<mtr>") == 2
    assert 'display="block"' not in mathml("x", block=False)
    with pytest.raises(Exception, match=r"no MathML of '\\\\nosuch x'"):
        mathml(r"\nosuch x", block=False)
