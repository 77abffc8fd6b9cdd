"""The attacker's posterior: closed forms, enumeration of all compatible tables,
published example, bad input."""

from itertools import combinations, product
from math import comb, inf, isnan, log2

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy.stats import chisquare, hypergeom, nchypergeom_fisher, poisson

import taciturn as tc
from taciturn.attack.posterior import parts as _parts
from taciturn.attack.posterior.diagnostics import convergence
from taciturn.errors import ConvergenceWarning, ParameterError, TableError

TURNOVER = xr.DataArray(
    [
        [80, 253, 54, 0, 0],
        [641, 3694, 2062, 746, 0],
        [592, 150, 329, 1387, 1440],
        [57, 256, 946, 995, 2027],
        [78, 0, 890, 1719, 1743],
    ],
    dims=("activity", "size"),
    coords={"activity": ["2,3", "4", "5", "6", "7"], "size": [4, 5, 6, 7, 8]},
)
"""Table 1 of Oganian & Domingo-Ferrer (2003) with one of the possible values in each of
its suppressed cells."""
SUPPRESSED = TURNOVER.isin([150, 1387, 256, 995])
PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]


def posterior_of(release, **arguments):
    return tc.attacker_posterior(release, **{"random_seed": 1, "progressbar": False, **arguments})


@pytest.fixture(params=["listed", "walked"])
def manner(request, monkeypatch):
    """Both ways to the posterior of a small part."""
    if request.param == "walked":
        monkeypatch.setattr(_parts, "_most_listed", lambda cells: 0)
    return request.param


def bits(shares):
    return -sum(p * log2(p) for p in shares if p > 0)


def assert_entropy(found, expected, manner):
    """Exact when listed; within 6 standard errors of a walk."""
    error = found["entropy_mcse"]
    assert bool((found["exact"] == (manner == "listed")).all())
    if manner == "listed":
        assert (error == 0).all()
    assert (abs(found["entropy"] - expected) <= 1e-9 + 6 * error).all()


@pytest.mark.parametrize(
    "manner", ["listed", pytest.param("walked", marks=pytest.mark.slow)], indirect=True
)
def test_published_suppression_is_uniform_over_407_tables(manner):
    found = posterior_of(tc.Suppression(TURNOVER, SUPPRESSED))
    hidden = found.drop_vars("table").where(SUPPRESSED, drop=True)
    np.testing.assert_allclose(hidden["entropy"], log2(407), rtol=1e-12)
    np.testing.assert_allclose(hidden["risk"], 1 / log2(407), rtol=1e-12)
    np.testing.assert_allclose(hidden["risk"], hidden["risk_uniform"], rtol=1e-12)
    assert str(float(hidden["risk"][0, 0])).startswith("0.1153")
    assert hidden["lower"].values.ravel().tolist() == [0, 1131, 0, 845]
    np.testing.assert_allclose(
        hidden["mean"].values.ravel(), [203, 1131 + 203, 203, 845 + 203], rtol=1e-12
    )
    assert found["table"].dtype == np.int64
    assert (found["table"].sum("size") == TURNOVER.sum("size")).all()
    assert (found["table"].sum("activity") == TURNOVER.sum("activity")).all()
    published = found.where(~SUPPRESSED)
    assert (published["mean"] == TURNOVER).where(~SUPPRESSED, other=True).all()
    assert published["risk"].isnull().all()
    assert (found["disclosed"] == ~SUPPRESSED).all()
    assert (found["published"] == ~SUPPRESSED).all()


def test_published_suppression_under_expected_values_is_fishers_noncentral_hypergeometric(manner):
    expected = TURNOVER.copy(data=np.linspace(1, 5, 25).reshape(5, 5))
    (a, b), (c, d) = expected.values[2:4][:, [1, 3]]
    law = nchypergeom_fisher(406 + 2382, 406, 1537, a * d / (b * c))
    values = np.arange(407)
    found = posterior_of(tc.Suppression(TURNOVER, SUPPRESSED), prior=expected)
    hidden = found.drop_vars("table").where(SUPPRESSED, drop=True)
    np.testing.assert_allclose(hidden["entropy"], bits(law.pmf(values)), rtol=1e-8)
    np.testing.assert_allclose(hidden["mean"][0, 0], law.pmf(values) @ values, rtol=1e-8)


def test_magnitudes_are_in_their_unit():
    found = posterior_of(tc.Suppression(TURNOVER / 10, SUPPRESSED, decimals=1))
    cell = found.sel(activity="5", size=7)
    assert (float(cell["lower"]), float(cell["upper"]), float(cell["n_values"])) == (
        113.1,
        153.7,
        407,
    )
    np.testing.assert_allclose(cell["mean"], 133.4, rtol=1e-12)
    np.testing.assert_allclose(
        found["table"].sum("size").max(["chain", "draw"]), (TURNOVER / 10).sum("size")
    )
    assert cell["table"].min() >= 113.1
    assert cell["table"].max() <= 153.7


@pytest.mark.parametrize(
    ("total", "manner"),
    [(5, "listed"), (5, "walked"), (60, "listed"), (60, "walked"), (3 * 10**6, "walked")],
    indirect=["manner"],
)
def test_three_cells_of_one_total_are_triangular(total, manner):
    # All (total + 2 choose 2) tables equally likely: one cell holds k in total - k + 1
    # of them.
    release = tc.GlobalRecoding(xr.DataArray([total, 0, 0], dims="x"), {"x": {"all": [0, 1, 2]}})
    found = posterior_of(release)
    shares = np.arange(total + 1, 0, -1) / comb(total + 2, 2)
    assert_entropy(found, float(-(shares * np.log2(shares)).sum()), manner)
    np.testing.assert_allclose(found["mean"], total / 3, rtol=0.1 if manner == "walked" else 1e-12)
    np.testing.assert_allclose(found["risk_uniform"], 1 / log2(total + 1), rtol=1e-12)


def test_one_total_under_expected_values_is_binomial(manner):
    release = tc.GlobalRecoding(xr.DataArray([40, 0, 0, 0], dims="x"), {"x": {"all": [0, 1, 2, 3]}})
    expected = xr.DataArray([1.0, 2.0, 3.0, 14.0], dims="x")
    found = posterior_of(release, prior=expected)
    for cell, share in enumerate([0.05, 0.1, 0.15, 0.7]):
        law = [comb(40, k) * share**k * (1 - share) ** (40 - k) for k in range(41)]
        assert_entropy(found.isel(x=cell), bits(law), manner)
    np.testing.assert_allclose(
        found["mean"], 40 * expected / 20, rtol=0.05 if manner == "walked" else 1e-9
    )
    assert (posterior_of(release, prior=expected * 7)["table"] == found["table"]).all()


@pytest.mark.slow
def test_margins_under_independence_are_hypergeometric():
    # 45 connected cells: with all odds ratios 1 a cell given its row and
    # column total is hypergeometric.
    table = tc.load_dataset("area_by_religion")[::2]
    size = int(table.sum())
    rows, columns = table.sum("religion"), table.sum("area")
    expected = (rows * columns / table.sum()).transpose(*table.dims)
    found = posterior_of(
        tc.LinkedTables(table, ["area", "religion"]), prior=expected, draws=250, tune=50
    )
    assert not found["exact"].any()
    entropy = np.empty(table.shape)
    for cell in np.ndindex(table.shape):
        row, column = int(rows[cell[0]]), int(columns[cell[1]])
        entropy[cell] = bits(hypergeom(size, row, column).pmf(np.arange(min(row, column) + 1)))
    assert_entropy(found, entropy, "walked")
    np.testing.assert_allclose(found["mean"], expected, rtol=0.2)
    assert found["entropy_mcse"].max() < 0.05


def fibre(shape, margins, wanted, most):
    """All tables of a shape with values up to `most` and the wanted margins."""
    cells = int(np.prod(shape))
    every = np.indices((most + 1,) * cells, dtype=np.int8).reshape(cells, -1).T
    every = every.reshape(-1, *shape)
    kept = np.ones(len(every), dtype=bool)
    for margin, total in zip(margins, wanted, strict=True):
        over = tuple(axis + 1 for axis in range(len(shape)) if axis not in margin)
        kept &= (every.sum(axis=over) == total).reshape(len(every), -1).all(axis=1)
    return list(every[kept].astype(int))


def assert_law(draws, tables, weights):
    """Every draw is one of the tables, and they come as often as they should: the test
    errs once in a million.

    Tables of which fewer than 20 are expected count as one.
    """
    keys = [tuple(table.ravel().tolist()) for table in tables]
    place = {key: number for number, key in enumerate(keys)}
    counts = np.zeros(len(keys))
    for draw in draws.reshape(-1, len(keys[0])).tolist():
        counts[place[tuple(draw)]] += 1
    expected = np.asarray(weights, dtype=float) / np.sum(weights) * counts.sum()
    often = expected >= 20
    assert (counts[often] > 0).all()
    pooled = [np.append(each[often], each[~often].sum()) for each in (counts, expected)]
    if pooled[1][-1] < 20:
        pooled = [np.append(each[:-2], each[-2:].sum()) for each in pooled]
    assert chisquare(*pooled).pvalue > 1e-6


def poisson_weight(table, means):
    return float(np.prod(poisson.pmf(table, means)))


CASES = {
    "two variables": ([[1, 2, 0], [2, 1, 1]], [(0,), (1,)]),
    "three variables": ([[[2, 1], [1, 2]], [[0, 2], [3, 1]]], [(0, 1), (0, 2), (1, 2)]),
    "two of three margins": ([[[1, 0], [1, 1]], [[0, 1], [1, 0]]], [(0, 1), (2,)]),
}


@pytest.mark.parametrize("informed", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_all_compatible_tables_come_as_often_as_they_should(case, informed, manner):
    values, margins = CASES[case]
    table = np.array(values)
    axes = [tuple(axis for axis in range(table.ndim) if axis not in margin) for margin in margins]
    tables = fibre(
        table.shape, margins, [table.sum(axis=axis) for axis in axes], 5 if table.size < 8 else 3
    )
    means = np.linspace(1, 2, table.size).reshape(table.shape) if informed else np.ones(table.shape)
    weights = [poisson_weight(each, means) if informed else 1.0 for each in tables]
    dims = tuple("abc"[: table.ndim])
    labelled = xr.DataArray(table, dims=dims)
    release = tc.LinkedTables(
        labelled, [tuple(dims[axis] for axis in margin) for margin in margins]
    )
    found = posterior_of(
        release, prior=xr.DataArray(means, dims=dims) if informed else "uniform", draws=2500
    )
    assert_law(found["table"].values, tables, weights)
    expected = np.empty(table.shape)
    for cell in np.ndindex(table.shape):
        shares = np.zeros(10)
        np.add.at(shares, [each[cell] for each in tables], np.array(weights) / sum(weights))
        expected[cell] = bits(shares)
    assert bool((found["exact"] | (manner == "walked")).all())
    assert (abs(found["entropy"] - expected) <= 1e-9 + 6 * found["entropy_mcse"]).all()
    bounds = tc.attacker_bounds(release, progressbar=False)
    for name in ("lower", "upper", "n_values", "disclosed", "published"):
        assert found[name].equals(bounds[name])
    assert found["risk_uniform"].equals(bounds["risk"].rename("risk_uniform"))


def swaps(table):
    """The tables that differ by one 2 x 2 x 2 swap."""
    found = []
    for pairs in product(*(combinations(range(size), 2) for size in table.shape)):
        move = np.zeros(table.shape, dtype=int)
        for corner in product(range(2), repeat=3):
            move[tuple(pair[bit] for pair, bit in zip(pairs, corner, strict=True))] = (-1) ** sum(
                corner
            )
        found += [table + sign * move for sign in (-1, 1) if (table + sign * move >= 0).all()]
    return found


@pytest.mark.parametrize("informed", [False, True])
def test_tables_that_no_swap_connects(informed, manner):
    # Six cells go up and six go down in a ring around 3 x 3 in two layers. With nobody
    # elsewhere two tables are left, and no swap of 2 x 2 x 2 cells leads from one to
    # the other.
    ring = np.eye(3, dtype=int) - np.roll(np.eye(3, dtype=int), 1, axis=1)
    move = np.stack([ring, -ring], axis=2)
    table, other = np.maximum(move, 0), np.maximum(-move, 0)
    assert not swaps(table)
    means = np.linspace(1, 2, 18).reshape(3, 3, 2)
    weights = [poisson_weight(each, means) if informed else 1 for each in (table, other)]
    release = tc.LinkedTables(xr.DataArray(table, dims=list("abc")), PAIRS)
    found = posterior_of(
        release, prior=xr.DataArray(means, dims=list("abc")) if informed else "uniform"
    )
    assert_law(found["table"].values, [table, other], weights)
    share = weights[0] / sum(weights)
    moved = found["entropy"].where(~found["disclosed"], drop=True)
    np.testing.assert_allclose(
        moved.values[~np.isnan(moved.values)], bits([share, 1 - share]), rtol=1e-9
    )
    assert int((~found["disclosed"]).sum()) == 12


@pytest.mark.slow
def test_latin_squares(manner):
    # All margins of two variables are 1: the tables are the 12 Latin squares of order
    # 3, and no swap leads from one.
    table = np.stack([np.roll(np.eye(3, dtype=int), shift, axis=1) for shift in range(3)])
    tables = layered_fibre(table)
    assert len(tables) == 12
    assert not any(swaps(each) for each in tables)
    found = posterior_of(tc.LinkedTables(xr.DataArray(table, dims=list("abc")), PAIRS), draws=4000)
    # Only sums of several moves lead on, so that about half of the draws of a walk
    # repeat the one before.
    assert_law(found["table"].values[:, ::20], tables, np.ones(12))
    np.testing.assert_allclose(
        found["entropy"], bits([1 / 3, 2 / 3]), atol=1e-9 if manner == "listed" else 0.03
    )


def test_zeros_and_ones_in_three_variables(manner):
    table = 1 - np.stack([np.roll(np.eye(3, dtype=int), shift, axis=1) for shift in range(3)])
    tables = layered_fibre(table)
    assert len(tables) > 12  # some hold a 2
    means = np.linspace(1, 2, 27).reshape(3, 3, 3)
    weights = [poisson_weight(each, means) for each in tables]
    release = tc.LinkedTables(xr.DataArray(table, dims=list("abc")), PAIRS)
    found = posterior_of(release, prior=xr.DataArray(means, dims=list("abc")), draws=4000)
    assert_law(found["table"].values, tables, weights)


def layered_fibre(table):
    """All tables with the margins of a 3 x 3 x 3 table, by its first two layers' upper
    left corners."""
    layers = []
    for number in range(2):
        rows, columns = table[number].sum(axis=1), table[number].sum(axis=0)
        full = []
        for corner in product(range(3), repeat=4):
            layer = np.zeros((3, 3), dtype=int)
            layer[:2, :2] = np.array(corner).reshape(2, 2)
            layer[:2, 2] = rows[:2] - layer[:2, :2].sum(axis=1)
            layer[2] = columns - layer[:2].sum(axis=0)
            if (layer >= 0).all():
                full.append(layer)
        layers.append(full)
    stacked = [np.stack([one, two, table.sum(axis=0) - one - two]) for one, two in product(*layers)]
    return [each for each in stacked if (each >= 0).all()]


def test_rounding_with_totals(manner):
    table = xr.DataArray([[3, 3, 0], [0, 3, 3]], dims=("a", "b"))
    totals = [xr.DataArray([6, 6], dims="a"), xr.DataArray([3, 6, 3], dims="b")]
    tables = [
        np.array(values).reshape(2, 3)
        for values in product(
            *(range(max(0, cell - 1), cell + 2) for cell in table.values.ravel().tolist())
        )
        if all(abs(np.array(values).reshape(2, 3).sum(axis=1) - [6, 6]) <= 1)
        and all(abs(np.array(values).reshape(2, 3).sum(axis=0) - [3, 6, 3]) <= 1)
    ]
    found = posterior_of(tc.Rounding(table, 3, totals=totals), draws=6000)
    assert_law(found["table"].values, tables, np.ones(len(tables)))


def test_a_cell_that_no_total_limits_is_poisson_where_it_has_an_expected_value():
    table = xr.DataArray([5, 1], dims="a")
    release = tc.Suppression(table, table == 1, totals=False)
    with pytest.raises(ParameterError, match="no total limits the cell a=1"):
        posterior_of(release)
    found = posterior_of(release, prior=xr.DataArray([1.0, 2.5], dims="a"))
    assert float(found["upper"][1]) == inf
    assert float(found["risk_uniform"][1]) == 0
    np.testing.assert_allclose(
        found["entropy"][1], bits(poisson(2.5).pmf(np.arange(60))), rtol=1e-10
    )
    np.testing.assert_allclose(found["mean"], [5, 2.5], rtol=1e-10)
    # Of one cell, millions of values are listed.
    found = posterior_of(release, prior=xr.DataArray([1.0, 5e4], dims="a"), draws=200, tune=0)
    assert found["exact"][1]
    np.testing.assert_allclose(
        found["entropy"][1], bits(poisson(5e4).pmf(np.arange(47_500, 52_250))), rtol=1e-9
    )
    np.testing.assert_allclose(found["mean"][1], 5e4, rtol=1e-9)
    with pytest.raises(ParameterError, match=r"at most 2\*\*30, but a=1 can hold"):
        posterior_of(release, prior=xr.DataArray([1.0, 1e300], dims="a"))


def test_values_that_no_table_has_lower_the_entropy(manner):
    # The only change of these cells that keeps all margins takes one of them from 0 to
    # 2. Bounds count the 1 between.
    move = np.array(
        [
            [[-1, 1, 0], [-1, 0, 1], [2, -1, -1]],
            [[0, -1, 1], [1, 0, -1], [-1, 1, 0]],
            [[1, 0, -1], [0, 0, 0], [-1, 0, 1]],
        ]
    )
    for axis in range(3):
        assert not move.sum(axis=axis).any()
    table = xr.DataArray(np.maximum(move, 0), dims=list("abc"))
    found = posterior_of(tc.Suppression(table, table.copy(data=move != 0)))
    np.testing.assert_allclose(found["entropy"].values[move != 0], 1, rtol=1e-12)
    assert found["n_values"].values[0, 2, 0] == 3
    np.testing.assert_allclose(found["risk_uniform"].values[0, 2, 0], 1 / log2(3))
    assert set(np.unique(found["table"].values[..., 0, 2, 0])) == {0, 2}


def test_one_likely_value_among_several_is_a_high_risk_and_no_disclosure():
    release = tc.GlobalRecoding(xr.DataArray([30, 0], dims="x"), {"x": {"all": [0, 1]}})
    found = posterior_of(release, prior=xr.DataArray([1.0, 1e-30], dims="x"))
    assert not found["disclosed"].any()
    assert (found["risk"] > 1e20).all()
    np.testing.assert_allclose(found["risk_uniform"], 1 / log2(31))


def test_nothing_hidden_and_everything_disclosed():
    table = xr.DataArray([[5, 1], [2, 4]], dims=("a", "b"))
    for mask in (table < 0, table == 1):
        found = posterior_of(tc.Suppression(table, mask))
        assert found["disclosed"].all()
        assert found["exact"].all()
        assert (found["table"] == table).all()
        assert (found["entropy"] == 0).all()
        assert (found["mean"] == table).all()
        assert found["risk"].isnull().all()


def test_dropped_tables_are_not_held_in_memory(monkeypatch):
    monkeypatch.setattr(_parts, "_most_listed", lambda cells: 0)
    dropped = []

    def walk(*arguments):
        *_, hist, out, _ = arguments
        if not hist.size:
            dropped.append(len(out))
        _parts_walk(*arguments)

    _parts_walk = _parts.walk
    monkeypatch.setattr(_parts, "walk", walk)
    release = tc.Suppression(TURNOVER, SUPPRESSED)
    found = posterior_of(release, draws=2000, tune=4500)
    assert dropped == [2000, 2000, 500] * 4
    assert posterior_of(release, draws=2000, tune=0)["table"].sizes == found["table"].sizes


def test_the_same_seed_gives_the_same_numbers(manner):
    release = tc.Suppression(TURNOVER, TURNOVER < 300)
    first, again = (posterior_of(release, random_seed=7, draws=600) for _ in range(2))
    assert first.identical(again)
    other = posterior_of(release, random_seed=np.random.default_rng(8), draws=600)
    assert not first["table"].equals(other["table"])


def test_diagnostics_are_those_of_arviz():
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(4, 500))
    for value in range(1, 500):
        noise[:, value] += 0.7 * noise[:, value - 1]
    for scale in (1, 10):
        draws = np.rint(scale * noise).astype(np.int64)
        data = xr.Dataset({"x": (("chain", "draw"), draws)})
        r_hat, ess = convergence(np.stack([draws, draws[:, ::-1], np.ones_like(draws)], axis=2))
        np.testing.assert_allclose(r_hat[0], az.rhat(data)["x"], rtol=1e-10)
        np.testing.assert_allclose(ess[0], az.ess(data, method="bulk")["x"], rtol=1e-10)
        assert r_hat[1] > 0
        assert isnan(r_hat[2])
        assert isnan(ess[2])
    each_stands_still = np.repeat([[[0]], [[1]]], 10, axis=1)
    assert convergence(each_stands_still)[0] == inf


def test_a_short_walk_warns(monkeypatch):
    monkeypatch.setattr(_parts, "_most_listed", lambda cells: 0)
    with pytest.warns(
        ConvergenceWarning, match=r"did not converge in \d+ of 4 cells: .* effective sample size"
    ):
        posterior_of(tc.Suppression(TURNOVER, SUPPRESSED), draws=20)


def test_progress_is_shown_on_standard_error(capsys):
    tc.attacker_posterior(tc.Suppression(TURNOVER, SUPPRESSED), random_seed=1)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "chains" in shown.err
    assert "4/4" in shown.err


def test_contradiction():
    totals = [xr.DataArray([15, 10], dims="a"), xr.DataArray([5, 5], dims="b")]
    release = tc.Rounding(xr.DataArray([[5, 5], [5, 5]], dims=("a", "b")), 5, totals=totals)
    with pytest.raises(TableError, match="contradicts itself"):
        posterior_of(release)


RELEASE = tc.Suppression(TURNOVER, SUPPRESSED)
ONES = TURNOVER * 0 + 1.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"release": TURNOVER}, ParameterError, "release must be a Suppression, .* got DataArray"),
        ({"draws": 3}, ParameterError, "draws must be a whole number of at least 4, got 3"),
        ({"draws": 10.5}, ParameterError, "draws must be .* got 10.5"),
        ({"chains": 1}, ParameterError, "chains must be a whole number of at least 2, got 1"),
        ({"tune": -1}, ParameterError, "tune must be"),
        ({"random_seed": -1}, ParameterError, "random_seed must be"),
        ({"prior": "flat"}, ParameterError, "prior must be 'uniform' or a DataArray .* got 'flat'"),
        ({"prior": ONES.values}, ParameterError, "prior must be 'uniform' or a DataArray"),
        ({"prior": ONES.astype(str)}, TableError, "prior must hold numbers"),
        ({"prior": ONES[:2]}, TableError, "prior must have the sizes"),
        ({"prior": ONES.rename(size="width")}, TableError, "prior must have the sizes"),
        (
            {"prior": ONES.assign_coords(size=[1, 2, 3, 4, 5])},
            TableError,
            "categories of 'size' differ",
        ),
        ({"prior": -ONES}, TableError, "finite and not negative: activity=2,3, size=4 holds -1.0"),
        ({"prior": ONES * np.nan}, TableError, "finite and not negative: .* holds nan"),
        (
            {"prior": ONES.where(~SUPPRESSED, 0.0)},
            TableError,
            "above 0 where a cell is open: activity=5, size=5",
        ),
        (
            {"release": tc.Suppression(TURNOVER / 10, SUPPRESSED, decimals=1), "prior": ONES},
            ParameterError,
            "needs a release of counts, decimals=0, got decimals=1",
        ),
        (
            {"release": tc.Suppression(TURNOVER * 10**7, SUPPRESSED), "prior": ONES},
            ParameterError,
            r"at most 2\*\*30, but activity=5, size=5 can hold 4,060,000,000",
        ),
        (
            {"draws": 10**7},
            ParameterError,
            "draws must be a whole number of at most 1,000,000, got 10000000",
        ),
        (
            {
                "release": tc.Suppression(
                    TURNOVER.rename(size="risk"), SUPPRESSED.rename(size="risk")
                )
            },
            ParameterError,
            "named 'risk'",
        ),
    ],
)
def test_bad_arguments(arguments, error, message):
    release = arguments.get("release", RELEASE)
    with pytest.raises(error, match=message):
        posterior_of(
            release, **{key: value for key, value in arguments.items() if key != "release"}
        )


def test_distributions_too_wide_for_memory(monkeypatch):
    monkeypatch.setattr(_parts, "MOST_VALUES", 1000)
    monkeypatch.setattr(_parts, "_most_listed", lambda cells: 0)
    with pytest.raises(
        ParameterError, match="of 4 connected cells have 1,628 values, and 20 of each"
    ):
        posterior_of(RELEASE)


def test_a_line_of_tables_is_summed():
    """Two by two counts with all totals known: as many tables as the least total
    allows, equally likely."""
    table = xr.DataArray([[100_000, 200_000], [300_000, 70_000]], dims=("a", "b"))
    found = posterior_of(tc.Suppression(table, table > 0))
    assert found["exact"].all()
    np.testing.assert_allclose(found["entropy"], np.log2(270_001), rtol=1e-12)
