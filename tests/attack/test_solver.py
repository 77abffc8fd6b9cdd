"""Failures of the solver: bounds are right, or there is an error."""

import itertools

import numpy as np
import pytest
import xarray as xr
from scipy.sparse import csr_array

import taciturn as tc
from failing import FAILURES, fail
from taciturn.attack.solver import OutOfTimeError, Program
from taciturn.errors import AttackError, TableError

TABLE = xr.DataArray(
    np.random.default_rng(3).integers(0, 9, (3, 4, 3)), dims=("a", "b", "c"), name="count"
)
RELEASE = tc.Suppression(TABLE, TABLE < 6)
BOUNDS = tc.attacker_bounds(RELEASE, progressbar=False)


@pytest.mark.parametrize("failure", FAILURES, ids=str)
@pytest.mark.parametrize("every", [1, 2, 5])
def test_bounds_are_right_or_there_is_an_error(failure, every, monkeypatch):
    runs = itertools.count()
    fail(monkeypatch, failure, lambda: next(runs) % every == 0)
    try:
        bounds = tc.attacker_bounds(RELEASE, progressbar=False)
    except TableError:
        # Who hears from every run that there is no table has to believe it.
        assert every == 1
        assert "nfeasible" in str(failure)
        return
    except AttackError:
        # Otherwise another way of solving has the answer. A time-out is not a failure,
        # and a wrong solution of which nothing is said cannot be told from a right one.
        told = failure == "wrong" or "TimeLimit" in str(failure) or "nfeasible" in str(failure)
        assert told or every == 1
        return
    if failure == "wrong":
        assert (bounds["lower"] >= BOUNDS["lower"]).all()  # attained all the same
        assert (bounds["upper"] <= BOUNDS["upper"]).all()
    else:
        assert bounds.equals(BOUNDS)


def two_cells(total):
    """Cells of which the first is at most 3, and both have a sum."""
    return Program(
        csr_array([[1, 1]]),
        np.array([total]),
        np.array([total]),
        np.zeros(2),
        np.array([3.0, np.inf]),
    )


def test_a_solution_slightly_off_is_taken_where_numbers_are_large(monkeypatch):
    fail(monkeypatch, "off", lambda: True)
    with pytest.raises(AttackError, match=r"optimal, but its solution is off by 1.6e-07"):
        two_cells(10).solve(np.array([-1, 0]))
    assert two_cells(10**7).solve(np.array([-1, 0])).values[1] == pytest.approx(10**7 - 4 + 1 + 1)


def test_what_does_not_exist_is_believed_when_all_say_so():
    program = two_cells(10)
    assert program.solve(np.zeros(2), least=np.array([3]), most=np.array([2]), sure=True) is None


def test_there_is_no_time():
    with pytest.raises(OutOfTimeError, match="within the time it had"):
        two_cells(10).solve(np.zeros(2), seconds=-1)


def test_totals_of_billions_are_attacked():
    """HiGHS ends here in "unknown" if it solves each program once."""
    generator = np.random.default_rng(5)
    table = xr.DataArray(
        np.round(generator.lognormal(0, 1.5, (8, 6, 5)) * 1e7, 2), dims=("a", "b", "c")
    )
    hidden = table.copy(data=np.random.default_rng(105).random(table.shape) < 0.6)
    asked = hidden & (table < table.quantile(0.05))
    release = tc.Suppression(table, hidden, decimals=2)
    bounds = tc.attacker_bounds(release, cells=asked, progressbar=False)
    inside = (bounds["lower"] <= table) & (table <= bounds["upper"])
    assert inside.where(asked, other=True).all()
