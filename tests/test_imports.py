"""``import taciturn`` is quick: nothing heavy is loaded before it is used."""

import subprocess
import sys

import pytest

HEAVY = (
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
    "nutpie",
    "pandas",
    "pymc",
    "pytensor",
    "scipy",
    "xarray",
)
COMPILERS = (
    "arviz",
    "arviz_base",
    "arviz_plots",
    "arviz_stats",
    "matplotlib",
    "nutpie",
    "pymc",
    "pytensor",
)


def loaded_after(statements: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded."""
    code = f"import sys\n{statements}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_alone_loads_nothing_heavy():
    assert not loaded_after("import taciturn") & set(HEAVY)


def test_risk_of_a_table_needs_no_sampler():
    work = (
        "import taciturn as tc; tc.random_round(tc.load_dataset('area_by_sex'));"
        " tc.disclosure_risk; tc.risk.unique_risk"
    )
    loaded = loaded_after(work)
    assert "xarray" in loaded
    assert not loaded & set(COMPILERS)


def test_every_exported_name_exists():
    import taciturn

    assert all(hasattr(taciturn, name) for name in dir(taciturn))
    with pytest.raises(AttributeError, match="attribute disclosure"):
        taciturn.disclosure


def test_help_of_the_command_line_needs_no_sampler():
    loaded = loaded_after(
        "import sys\nfrom taciturn.cli import cli\ncli(['assess', '--help'], standalone_mode=False)"
    )
    assert "click" in loaded
    assert not loaded & {*COMPILERS, "numba", "pandas"}
