"""Imports: what is public is said once, in stubs and ``__all__``, and nothing heavy is
loaded before it is used."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import cloudpickle
import pytest

import taciturn

HEAVY = {
    "arviz",
    "arviz_base",
    "arviz_plots",
    "arviz_stats",
    "dask",
    "duckdb",
    "formulaic",
    "highspy",
    "matplotlib",
    "narwhals",
    "numba",
    "numpy",
    "nutpie",
    "pandas",
    "pymc",
    "pytensor",
    "scipy",
    "xarray",
}
COMPILERS = {
    "arviz",
    "arviz_base",
    "arviz_plots",
    "arviz_stats",
    "matplotlib",
    "nutpie",
    "pymc",
    "pytensor",
}
MODULES_OF_IMPORT = 200
MODULES_OF_HELP = 300
STUB = ast.parse(Path(taciturn.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
NAMES = [
    (node.module, alias.name)
    for node in STUB.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
]
FOLDERS = sorted(name for module, name in NAMES if module is None)


@pytest.mark.parametrize("folder", ["", *(f".{name}" for name in FOLDERS)])
def test_modules_can_be_sent_to_workers(folder: str) -> None:
    """As globals of functions that are written in a notebook. So no public name may be
    that of the file it is in: lazy_loader guards such a module by a class that cannot
    be pickled.
    """
    module = importlib.import_module(f"taciturn{folder}")
    assert cloudpickle.loads(cloudpickle.dumps(module)) is module
    assert type(module) is ModuleType


def loaded_after(statements: str) -> set[str]:
    """Modules that a fresh interpreter has loaded, top-level packages among them."""
    code = f"import sys\n{statements}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_import_alone_loads_nothing_heavy():
    loaded = loaded_after("import taciturn")
    assert not loaded & HEAVY
    assert len(loaded) < MODULES_OF_IMPORT


@pytest.mark.parametrize("words", [["--help"], ["assess", "--help"], ["--version"]], ids=" ".join)
def test_help_of_the_command_line_loads_nothing_heavy(words):
    loaded = loaded_after(f"from taciturn.cli import cli\ncli({words}, standalone_mode=False)")
    assert "click" in loaded
    assert not loaded & HEAVY
    assert len(loaded) < MODULES_OF_HELP


def test_risk_of_a_table_needs_no_sampler():
    work = (
        "import taciturn as tc; tc.random_round(tc.load_dataset('area_by_sex'));"
        " tc.disclosure_risk; tc.risk.unique_risk"
    )
    loaded = loaded_after(work)
    assert "xarray" in loaded
    assert not loaded & COMPILERS


def test_the_stub_is_the_list_of_names():
    assert sorted(taciturn.__all__) == sorted(name for _, name in NAMES)
    assert len(set(taciturn.__all__)) == len(taciturn.__all__)
    with pytest.raises(AttributeError, match="attribute disclosure"):
        _ = taciturn.disclosure


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda value: str(value))
def test_every_name_at_the_top_exists_and_is_public_where_it_lives(module, name):
    found = getattr(taciturn, name)
    if module is None:
        assert found is importlib.import_module(f"taciturn.{name}")
    else:
        home = importlib.import_module(f"taciturn.{module}")
        assert found is getattr(home, name)
        assert name in home.__all__


def every_module() -> list[str]:
    return [found.name for found in pkgutil.walk_packages(taciturn.__path__, "taciturn.")]


def test_no_module_has_a_private_name():
    names = every_module()
    assert "taciturn.tables.reading" in names
    private = [name for name in names if name.rpartition(".")[2].startswith("_")]
    assert private == ["taciturn.__main__"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_exposes_what_its_list_says(folder):
    module = importlib.import_module(f"taciturn.{folder}")
    listed = {name: getattr(module, name) for name in module.__all__}
    assert len(listed) == len(module.__all__)
    exposed = {
        name
        for name in {*dir(module), *vars(module)}
        if not name.startswith("_")
        and not isinstance(getattr(module, name), ModuleType)
        # What only the folder itself uses comes from elsewhere.
        and getattr(getattr(module, name), "__module__", module.__name__).startswith(
            module.__name__
        )
        and (inspect.isroutine(getattr(module, name)) or inspect.isclass(getattr(module, name)))
    }
    assert exposed <= set(listed), f"not listed: {sorted(exposed - set(listed))}"


@pytest.mark.parametrize("name", every_module())
def test_a_module_lists_names_that_it_has_each_once(name):
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", [])
    assert len(set(listed)) == len(listed)
    assert [each for each in listed if not hasattr(module, each)] == []


def test_no_module_hides_a_name_of_its_folder():
    """A module that is imported becomes an attribute of its folder, before what the
    folder has under this name."""
    checks = [
        f"hidden = [n for n in {every_module()!r} if importlib.import_module(n) is None]",
        f"for folder in {FOLDERS!r}:",
        "    module = importlib.import_module('taciturn.' + folder)",
        "    hidden += [n for n in module.__all__ if inspect.ismodule(getattr(module, n))]",
        "print('hidden', *hidden)",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(["import importlib, inspect", *checks])],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["hidden"]


def subclasses(base: type) -> set[type]:
    return {found for child in base.__subclasses__() for found in {child, *subclasses(child)}}


@pytest.mark.parametrize(
    ("folder", "base"),
    [("estimators", "Estimator"), ("attack", "Release"), ("errors", "TaciturnError")],
)
def test_every_class_that_users_meet_is_listed(folder, base):
    for each in every_module():
        importlib.import_module(each)
    home = importlib.import_module(f"taciturn.{folder}")
    found = {
        cls.__name__
        for cls in subclasses(getattr(home, base))
        if cls.__module__.startswith(home.__name__) and not inspect.isabstract(cls)
    }
    assert found
    assert found <= set(home.__all__)
