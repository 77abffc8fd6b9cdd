"""Fixtures of the tests of release logs."""

from pathlib import Path

import pytest

import taciturn as tc

pytest.importorskip("duckdb")

VARIABLES = {
    "age": ["16-64", "65", "66+"],
    "sex": ["f", "m"],
    "area": ["N1", "N2", "S1", "S2"],
}
LEVELS = {"region": ("area", ["North", "North", "South", "South"])}


@pytest.fixture
def log(tmp_path: Path) -> tc.ReleaseLog:
    """An empty log."""
    return tc.ReleaseLog(tmp_path / "project.duckdb", variables=VARIABLES, levels=LEVELS)
