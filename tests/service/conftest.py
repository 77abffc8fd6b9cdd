"""A service on a log, asked in this process; its workers are processes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.asking import asked_of, desk_of, emptied, new_log
from taciturn.service.bounds import Bounds
from taciturn.service.desk import Desk

BOUNDS = Bounds(workers=2)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, Path]]:
    """Workers, and the file of their log."""
    path = tmp_path_factory.mktemp("service") / "project.duckdb"
    new_log(path)
    with desk_of(path, BOUNDS) as desk:
        yield desk, path


@pytest.fixture
def ask(served: tuple[Desk, Path]) -> Iterator[Any]:
    """A client of a service with an empty log, which has the path of it."""
    desk, path = served
    emptied(path)
    with asked_of(desk, BOUNDS) as found:
        found.log = path
        yield found
