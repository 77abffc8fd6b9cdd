"""One database engine for all tests of a folder: opening one takes longer than most of
them."""

from collections.abc import Iterator

import pytest

from taciturn.magnitude.engine import engine


@pytest.fixture(autouse=True, scope="package")
def shared_engine() -> Iterator[None]:
    with engine():
        yield
