"""The house: sizes of files and functions, and no two files that import each other.

Which way imports run between folders stands in ``pyproject.toml`` and is checked by
``lint-imports``.
"""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import taciturn

PACKAGE = Path(taciturn.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 50


def name_of(path: Path) -> str:
    """``taciturn.tables.checks``"""
    parts = ("taciturn", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def module_level_imports(tree: ast.Module) -> set[str]:
    """Modules of the package that are imported when this one is."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module in MODULES:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & set(MODULES)
            found |= submodules or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & set(MODULES)
    return found


def lines_of_code(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        assert first.end_lineno is not None
        lines -= first.end_lineno - first.lineno + 1
    return lines


def test_no_module_name_starts_with_an_underscore() -> None:
    private = [name for name in MODULES if any(part[0] == "_" for part in name.split("."))]
    assert private == ["taciturn.__main__"]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES_OF_A_FILE
    functions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    long = {
        f.name: lines_of_code(f) for f in functions if lines_of_code(f) > MOST_LINES_OF_A_FUNCTION
    }
    assert long == {}


def test_no_files_import_each_other() -> None:
    graph = {name: module_level_imports(tree) - {name} for name, tree in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_nothing_is_imported_late_to_hide_a_circle() -> None:
    """Imports inside functions are for heavy libraries; within the package they run one
    way, too."""
    graph: dict[str, set[str]] = {}
    for name, tree in MODULES.items():
        graph[name] = {
            target
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for target in module_level_imports(ast.Module([node], []))
        } - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
