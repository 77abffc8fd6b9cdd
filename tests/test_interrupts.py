"""Ctrl-C within a query of DuckDB, which makes an error of it, is Ctrl-C."""

import duckdb
import pytest

import taciturn as tc
from taciturn.interrupts import interruptible_kernels, interruptible_queries
from taciturn.tables.sources import relations

INTERRUPTED = [RuntimeError("Query interrupted"), duckdb.InterruptException("Interrupted!")]


@pytest.mark.parametrize("error", INTERRUPTED, ids=lambda error: type(error).__name__)
def test_interrupted_queries(error):
    with pytest.raises(KeyboardInterrupt), interruptible_queries():
        raise error


@pytest.mark.parametrize("error", [RuntimeError("no memory"), duckdb.Error("x"), OSError("x")])
def test_other_errors_stay_what_they_are(error):
    with pytest.raises(type(error)) as raised, interruptible_queries():
        raise error
    assert raised.value is error


@pytest.mark.parametrize("error", INTERRUPTED, ids=lambda error: type(error).__name__)
def test_tabulating_a_relation_can_be_interrupted(error, monkeypatch):
    """It ended as a table that could not be read, or as an error without a message."""

    def interrupted(relation):
        raise error

    relation = duckdb.sql("SELECT 1 AS x, 2 AS y")
    monkeypatch.setattr(relations, "_read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tc.tabulate(relation, ["x", "y"])


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), ValueError()])
def test_ctrl_c_while_numba_makes_what_it_returns(cause):
    """Numba raises one SystemError from another."""
    expected = KeyboardInterrupt if isinstance(cause, KeyboardInterrupt) else SystemError
    first, second = SystemError(), SystemError()
    first.__cause__, second.__cause__ = cause, first
    with pytest.raises(expected), interruptible_kernels():
        raise second
