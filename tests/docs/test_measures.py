"""The index of measures names functions that exist, and notebooks that use them."""

import json
import re
from operator import attrgetter
from pathlib import Path

import taciturn as tc

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "measures.md").read_text(encoding="utf-8")
CELL = re.compile(r"(?<!\\)\|")
ROWS = [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in PAGE.splitlines()[5:]]


def code_of(notebook: str) -> str:
    cells = json.loads((ROOT / "notebooks" / notebook).read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def test_functions_exist_and_their_notebooks_use_them():
    assert {len(row) for row in ROWS[2:]} == {5}
    named = set()
    for _, functions, _, notebooks, _ in ROWS[2:]:
        names = re.findall(r"`~taciturn\.([\w.]+)`", functions)
        assert names
        for name in names:
            assert callable(attrgetter(name)(tc)), name
        for notebook in re.findall(r"/(\w+\.ipynb)", notebooks):
            named.add(notebook)
            code = code_of(notebook)
            assert any(f"{name.rpartition('.')[2]}(" in code for name in names), (names, notebook)
    assert named == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
