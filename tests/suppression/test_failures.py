"""Whatever ends a search, what was found is kept, and nothing unsafe is called safe."""

import itertools
import warnings

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import taciturn as tc
from failing import FAILURES, fail
from patterns import all_tables, published_values
from taciturn.attack import solver
from taciturn.attack.bounds import branching, component
from taciturn.cli import cli
from taciturn.errors import AttackError, ParameterError, UnprovedWarning
from taciturn.suppression import (
    attacks,
    audit,
    cheapest,
    deviations,
    search,
    secondary,
    witnesses,
)

MODULES = (
    solver,
    branching,
    component,
    attacks,
    audit,
    cheapest,
    deviations,
    search,
    secondary,
    witnesses,
)
SMALL = xr.DataArray([[1, 2, 0], [0, 1, 3]], dims=("a", "b"))
EVERY = all_tables(7, 6).reshape(-1, 2, 3)
LINKED = [("a", "b"), ("a",), ("b",), ()]
CUBE = xr.DataArray(
    np.random.default_rng(8).integers(1, 30, (4, 4, 3)), dims=("a", "b", "c"), name="count"
)


def outcome(table=SMALL, primary=SMALL == 1, **options):
    """A pattern, of a search that may have ended early or in an error."""
    given = {"random_seed": 0, "progressbar": False, "time_limit": 60, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedWarning)
        try:
            return tc.suppress(table, primary, **given), None
        except (AttackError, KeyboardInterrupt) as error:
            return error.pattern, error


def linked(**options):
    return outcome(primary={("a", "b"): SMALL == 1}, linked=LINKED, **options)


def check_by_enumeration(pattern):
    """Each primary cell has two values in all tables with what is published, unless it
    is said that this is not proved; bounds are no wider than what is possible."""
    hidden = np.concatenate(
        [(status != "safe").values.ravel() for status in pattern.status.values()]
    )
    margins = list(pattern.status) if len(pattern.status) > 1 else LINKED
    hidden = np.append(hidden, np.zeros(12 - len(hidden), dtype=bool))
    values = published_values(EVERY, SMALL.dims, margins)
    true = published_values(SMALL.values[None], SMALL.dims, margins)[0]
    fits = values[(values[:, ~hidden] == true[~hidden]).all(axis=1)][:, :6]
    primary = (pattern.status["a", "b"] == "primary").values.ravel()
    proved = primary.copy()
    if pattern.unproved:
        proved &= ~pattern.unproved["a", "b"].values.ravel()
        assert not pattern.complete
        assert "NOT FOR RELEASE" in str(pattern)
    assert (np.ptp(fits[:, proved], axis=0) >= 1).all()
    bounds = pattern.audit["a", "b"]
    assert (bounds["lower"].values.ravel()[primary] >= fits[:, primary].min(axis=0)).all()
    if not hidden[-1]:  # the grand total, without which nothing is limited above
        assert (bounds["upper"].values.ravel()[primary] <= fits[:, primary].max(axis=0)).all()


@pytest.mark.parametrize("failure", FAILURES, ids=str)
@pytest.mark.parametrize(
    "every", [2, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 3))]
)
@pytest.mark.parametrize("of", [outcome, linked])
def test_nothing_unsafe_is_called_safe_when_the_solver_fails(failure, every, of, monkeypatch):
    runs = itertools.count()
    fail(monkeypatch, failure, lambda: next(runs) % every == 0)
    pattern, _ = of(time_limit=1)
    check_by_enumeration(pattern)


@pytest.mark.parametrize("of", [outcome, linked])
@pytest.mark.parametrize("calls", [1, 2, 3, 4, 6, 9, 14, 20, 30, 45, 70, 100, 150, 250, 400])
def test_the_time_may_be_up_at_any_moment(of, calls, monkeypatch):
    asked = itertools.count()
    for module in MODULES:
        monkeypatch.setattr(module, "monotonic", lambda: 1e9 if next(asked) >= calls else 0.0)
    pattern, _ = of()
    check_by_enumeration(pattern)


@pytest.mark.parametrize("of", [outcome, linked])
@pytest.mark.parametrize("calls", [0, 1, 2, 3, 5, 8, 13, 21, 34])
def test_an_interrupt_has_the_pattern(of, calls, monkeypatch):
    solve, solved = solver.Program.solve, itertools.count()

    def interrupted(self, *arguments, **options):
        if next(solved) == calls:
            raise KeyboardInterrupt
        return solve(self, *arguments, **options)

    monkeypatch.setattr(solver.Program, "solve", interrupted)
    pattern, error = of()
    assert error is None or isinstance(error, KeyboardInterrupt)
    check_by_enumeration(pattern)


def half_proved(monkeypatch):
    """A pattern of which half is found when the time is up."""
    clock = {"now": 0.0}
    for module in MODULES:
        monkeypatch.setattr(module, "monotonic", lambda: clock["now"])
    protecting = deviations.DeviationSearch._protecting

    def slow(self, *arguments, **options):
        found = protecting(self, *arguments, **options)
        clock["now"] += 22
        return found

    monkeypatch.setattr(deviations.DeviationSearch, "_protecting", slow)
    primary = CUBE < 9
    with pytest.warns(UnprovedWarning, match=r"\d+ of \d+ primary cells are not proved"):
        return tc.suppress(CUBE, primary, random_seed=0, progressbar=False), primary


def test_what_is_proved_when_the_time_is_up_is_safe(monkeypatch):
    with monkeypatch.context() as patch:
        pattern, primary = half_proved(patch)
    (unproved,) = pattern.unproved.values()
    assert 0 < pattern.n_unproved < pattern.n_primary == int(primary.sum())
    assert not (unproved & ~primary).any()
    bounds = tc.attacker_bounds(pattern.release, cells=primary & ~unproved, progressbar=False)
    assert not bounds["disclosed"].any()


def test_an_unproved_pattern_is_not_written_for_release(monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        pattern, _ = half_proved(patch)
    path = tmp_path / "out.csv"
    with pytest.raises(ParameterError, match="primary cells are not proved to be protected"):
        tc.write_release(pattern, path)
    assert not path.exists()
    tc.write_release(pattern, path, internal=True)
    assert "status_not_for_release" in path.read_text()


def test_of_several_tables_none_is_for_release_as_long_as_one_is_not(monkeypatch, tmp_path):
    """Cells of one are suppressed, or published, for those of the other."""
    rng = np.random.default_rng(0)
    by_a = xr.DataArray(rng.integers(1, 60, (8, 6)), dims=("a", "b"))
    rows = [rng.multinomial(total, [1 / 7] * 7) for total in by_a.sum("a").values]
    tables = {"by a": by_a, "by c": xr.DataArray(rows, dims=("b", "c"))}
    short = audit._short
    monkeypatch.setattr(audit, "_short", lambda *given: short(*given) | (np.arange(7) == 1))
    with pytest.warns(UnprovedWarning):
        found = tc.suppression.suppress_tables(
            tables, {"by a": by_a < 3}, random_seed=1, progressbar=False
        )
    assert found["by a"].n_unproved == found["by c"].unproved_in_all > 0
    assert found["by c"].n_unproved == 0
    for name, pattern in found.items():
        assert "NOT FOR RELEASE" in str(pattern)
        with pytest.raises(ParameterError, match="not proved to be protected"):
            pattern.intervals(progressbar=False)
        with pytest.raises(ParameterError, match="not proved to be protected"):
            tc.write_release(pattern, tmp_path / f"{name}.csv")
    assert not list(tmp_path.iterdir())


def test_the_command_shows_what_is_not_proved_and_writes_nothing(monkeypatch, tmp_path):
    CUBE.to_series().to_csv(tmp_path / "table.csv")
    with monkeypatch.context() as patch:
        pattern, _ = half_proved(patch)
    monkeypatch.setattr(tc, "suppress", lambda *arguments, **options: pattern)
    words = ["suppress", str(tmp_path / "table.csv"), "--threshold", "5"]
    result = CliRunner().invoke(cli, [*words, "--output", str(tmp_path / "out.csv")])
    assert result.exit_code == 1
    assert "NOT FOR RELEASE" in result.stderr
    assert not (tmp_path / "out.csv").exists()


def test_values_of_billions_keep_their_pattern():
    """HiGHS ends here in "optimal", with a solution that is not feasible."""
    generator = np.random.default_rng(5)
    shape, dims = (8, 6, 5), ("a", "b", "c")
    table = xr.DataArray(np.round(generator.lognormal(0, 1.5, shape) * 1e7, 2), dims=dims)
    primary = table.copy(data=np.random.default_rng(105).random(shape) < 0.15)
    asked = xr.Dataset({"lower": (table * 0.85).round(2), "upper": (table * 1.15).round(2)})
    margins = [m for k in (3, 2, 1, 0) for m in itertools.combinations(dims, k)]
    options = {"linked": margins, "protection": {dims: asked}, "decimals": 2, "time_limit": 4}
    pattern, error = outcome(table, {dims: primary}, **options)
    assert error is None
    assert not pattern.unproved
