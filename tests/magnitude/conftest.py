"""All tests of magnitude tables share a database engine."""

import pytest


@pytest.fixture(autouse=True)
def _engine(shared_engine: None) -> None:
    pass
