"""Secondary suppression against enumeration of all patterns and tables, and its
audit."""

import itertools

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from patterns import by_cost, cheapest, margin, seeds, tables_with_totals
from taciturn.attack.releases import linked, suppression
from taciturn.errors import AttackError, ParameterError, TableError
from taciturn.suppression import (
    arguments,
    attacks,
    cheapest as cuts,
    deviations,
    open_programs,
    search as searches,
    secondary,
    witnesses,
)
from taciturn.suppression.reach import Reach
from taciturn.tables.steps import in_steps

PAIRS = [("a", "s"), ("a", "r"), ("s", "r")]


def protected(table, primary, **options):
    return tc.suppress(table, primary, **{"random_seed": 0, "progressbar": False, **options})


def drawn_table(generator, shapes, most):
    shape = shapes[generator.integers(len(shapes))]
    cells = int(np.prod(shape))
    counts = generator.multinomial(
        generator.integers(3, most), generator.dirichlet(np.full(cells, 0.7))
    )
    return xr.DataArray(counts.reshape(shape), dims=tuple("abc"[: len(shape)]))


def check_against_enumeration(table, margins, costs, primary, risk, options, named):
    width = {1.0: 1, 0.6: 3}[risk]  # 2 values; 2**(1 / 0.6) = 3.2, so 4 values
    best, patterns = cheapest(table, margins, costs, primary, width)
    if best == np.inf:
        with pytest.raises(AttackError, match="no pattern protects"):
            protected(table, named, protection=risk, **options)
        return
    pattern = protected(table, named, protection=risk, **options)
    assert pattern.cost == pytest.approx(best, abs=1e-9)
    assert pattern.gap == 0
    assert pattern.complete
    assert pattern.compared == min(patterns, 50)
    for bounds in pattern.audit.values():
        assert np.nanmin(bounds["upper"] - bounds["lower"]) >= width


@pytest.mark.parametrize("seed", seeds(20, 40))
def test_a_table_with_totals_is_suppressed_at_the_least_cost_of_all_patterns(seed):
    generator = np.random.default_rng(seed)
    table = drawn_table(generator, [(3, 3), (2, 3), (2, 2, 2), (2, 4)], 7)
    margins = [table.dims, *itertools.combinations(table.dims, table.ndim - 1)]
    inner = table.size
    primary = np.zeros(sum(margin(table, m).size for m in margins), dtype=bool)
    primary[generator.choice(inner, generator.integers(1, 3), replace=False)] = True
    costs = np.full(len(primary), np.inf)
    costs[:inner] = generator.integers(1, 5, inner)
    options = {"costs": table.copy(data=costs[:inner].reshape(table.shape))}
    named = table.copy(data=primary[:inner].reshape(table.shape))
    check_against_enumeration(table, margins, costs, primary, [1.0, 0.6][seed % 2], options, named)


@pytest.mark.parametrize("seed", seeds(12, 40))
def test_linked_tables_are_suppressed_at_the_least_cost_of_all_patterns(seed):
    generator = np.random.default_rng(1000 + seed)
    table = drawn_table(generator, [(2, 2, 2), (3, 2)], 7)
    pool = [m for k in range(1, table.ndim + 1) for m in itertools.combinations(table.dims, k)]
    chosen = [m for m in pool if generator.random() < 0.5] or [table.dims]
    while sum(margin(table, m).size for m in chosen) > 15:
        chosen.pop()
    margins = [*chosen, ()]
    sizes = [margin(table, m).size for m in margins]
    primary = np.zeros(sum(sizes), dtype=bool)
    primary[generator.choice(sum(sizes) - 1, generator.integers(1, 3), replace=False)] = True
    costs = np.append(generator.integers(1, 5, sum(sizes) - 1).astype(float), np.inf)
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    shapes = {m: margin(table, m) for m in margins}
    named = {
        m: shapes[m].copy(data=primary[part].reshape(shapes[m].shape))
        for m, part in zip(margins, parts, strict=True)
    }
    prices = {
        m: xr.zeros_like(shapes[m]) + costs[part].reshape(shapes[m].shape)
        for m, part in zip(margins, parts, strict=True)
    }
    options = {"linked": margins, "costs": prices}
    check_against_enumeration(table, margins, costs, primary, [1.0, 0.6][seed % 2], options, named)


def test_the_cheapest_rectangle():
    table = xr.DataArray([[20, 50, 10], [8, 19, 22], [17, 32, 12]], dims=("a", "b"))
    pattern = protected(table, table == 8)
    # With row 2 and column 2: (1 + 22) + (1 + 17) + (1 + 12); the others cost 71 and
    # more, or 55.
    assert pattern.cost == 23 + 18 + 13
    assert pattern.status["a", "b"].values.tolist() == [
        ["safe", "safe", "safe"],
        ["primary", "safe", "secondary"],
        ["secondary", "safe", "secondary"],
    ]
    assert pattern.rank_decrease == 1  # one cell of the four gives the others
    assert isinstance(pattern.release, tc.Suppression)
    assert str(pattern).splitlines()[0] == "a x b: 1 primary, 3 secondary, 5 safe"
    assert "the cheapest" in str(pattern)


def test_an_interval_is_kept():
    table = xr.DataArray([[20, 50, 10], [8, 19, 22], [17, 32, 12]], dims=("a", "b"))
    asked = xr.Dataset({"lower": table - 10, "upper": table + 11})
    pattern = protected(table, table == 22, protection=asked)
    bounds = pattern.audit["a", "b"].isel(a=1, b=2)
    assert bounds["lower"] <= 12
    assert bounds["upper"] >= 33


@pytest.mark.parametrize("risk", [1.0, 0.5, 0.25, 0.2])
def test_a_risk_is_kept(risk):
    table = xr.DataArray([[20, 50, 10], [8, 19, 22], [17, 32, 12]], dims=("a", "b"))
    bounds = protected(table, table < 12, protection=risk).audit["a", "b"].where(table < 12)
    assert float(bounds["risk"].max()) <= risk
    assert float(bounds["n_values"].min()) >= 2 ** (1 / risk)


def test_magnitudes_are_protected_in_steps():
    table = xr.DataArray([[2.05, 5.0, 1.5], [0.8, 1.9, 2.2], [1.7, 3.2, 1.2]], dims=("a", "b"))
    asked = xr.Dataset({"lower": table - 0.3, "upper": table + 0.45})
    pattern = protected(table, table == 1.9, protection=asked, decimals=2)
    bounds = pattern.audit["a", "b"].isel(a=1, b=1)
    assert bounds["lower"] <= 1.6
    assert bounds["upper"] >= 2.35
    assert pattern.release.decimals == 2


@pytest.mark.slow
def test_projections_of_an_unreleased_table_share_rows_and_columns():
    """OD03's propositions: of the cheapest patterns one whose cells are in the same
    categories is taken."""
    table = xr.DataArray(np.random.default_rng(0).integers(2, 9, (3, 4, 3)), dims=("a", "s", "r"))
    first = {}
    for pair in PAIRS:
        mask = xr.zeros_like(margin(table, pair), dtype=bool)
        mask[0, 0] = True
        first[pair] = mask
    prices = {pair: xr.ones_like(margin(table, pair)) for pair in PAIRS}
    prices |= {(v,): xr.full_like(margin(table, (v,)), np.inf, dtype=float) for v in table.dims}
    pattern = protected(table, first, linked=[*PAIRS, ("a",), ("s",), ("r",)], costs=prices)
    assert pattern.cost == 9  # three rectangles of four cells, one of each primary
    assert pattern.gap == 0
    hidden = {pair: pattern.status[pair] != "safe" for pair in PAIRS}
    assert tc.attack.rank_decrease(tc.LinkedTables(table, PAIRS), hidden) == 7  # of 4 to 7
    assert (
        pattern.rank_decrease == 3
    )  # with the totals of each variable in the system, as for all of these patterns


def test_totals_are_suppressed_where_they_may_be():
    table = xr.DataArray([[3, 0], [0, 9]], dims=("a", "b"))
    asked = xr.Dataset({"lower": table, "upper": table + 4})
    with pytest.raises(AttackError, match=r"a=0, b=0, .*naming them in linked"):
        protected(table, table == 3, protection=asked)
    pattern = protected(
        table,
        {("a", "b"): table == 3},
        linked=[("a", "b"), "a", "b", ()],
        protection={("a", "b"): asked},
    )
    assert "secondary" in pattern.status["a",].values
    assert "secondary" in pattern.status["b",].values
    assert pattern.audit["a", "b"]["upper"][0, 0] >= 7


def test_a_total_can_be_primary():
    table = xr.DataArray([[3, 4], [5, 9], [2, 8]], dims=("a", "b"))
    linked = [("a", "b"), "a", "b", ()]
    pattern = protected(table, {"a": margin(table, ("a",)) == 7}, linked=linked)
    assert not pattern.audit["a",]["disclosed"].any()
    assert int((pattern.status["a",] == "primary").sum()) == 1


@pytest.mark.slow
def test_a_table_too_large_for_the_cheapest_pattern_is_protected():
    generator = np.random.default_rng(1)
    table = xr.DataArray(generator.poisson(generator.gamma(0.5, 20, (60, 40))), dims=("a", "b"))
    primary = (table > 0) & (table < 3)
    pattern = protected(table, primary, time_limit=600)
    bounds = tc.attacker_bounds(pattern.release, cells=primary, progressbar=False)
    assert int(primary.sum()) > 300
    assert not bounds["disclosed"].any()
    assert pattern.bound == 0


def test_the_same_seed_gives_the_same_pattern_of_a_large_table(monkeypatch):
    monkeypatch.setattr(searches, "_SMALL", 0)  # as of a table with more than 2,000 cells
    generator = np.random.default_rng(1)
    table = xr.DataArray(generator.poisson(generator.gamma(0.5, 20, (20, 20))), dims=("a", "b"))
    patterns = [protected(table, (table > 0) & (table < 3), time_limit=600) for _ in range(2)]
    assert 0 < patterns[0].bound <= patterns[0].cost
    assert patterns[0].status["a", "b"].identical(patterns[1].status["a", "b"])


@pytest.mark.slow
def test_no_primary_of_a_five_way_table_can_be_recovered():
    """All margins are released with the table, and may be suppressed but for the grand
    total."""
    generator = np.random.default_rng(2)
    table = xr.DataArray(
        generator.poisson(generator.gamma(0.5, 20, (3, 3, 2, 2, 3))), dims=tuple("abcde")
    )
    primary = (table > 0) & (table < 3)
    every = [m for k in range(5) for m in itertools.combinations(table.dims, k)]
    options = {"linked": [*every, table.dims], "costs": {(): xr.DataArray(np.inf)}}
    pattern = protected(table, primary, protection=0.5, gap=0.9, time_limit=120, **options)
    bounds = tc.attacker_bounds(pattern.release, cells=primary, progressbar=False)
    assert int(primary.sum()) > 10
    assert float(bounds["n_values"].min()) >= 4
    assert (
        ((bounds["lower"] <= table) & (table <= bounds["upper"])).where(primary, other=True).all()
    )


def worked_out_by_singletons(pattern, table, primary, singletons):
    """Cells that the single contributor of a suppressed one works out, by publishing
    that one."""
    hidden = pattern.release.suppressed
    found = []
    for at in np.argwhere((hidden & singletons).values):
        known = hidden.copy()
        known[tuple(at)] = False
        release = tc.Suppression(table, known)
        others = primary.copy()
        others[tuple(at)] = False
        disclosed = (
            tc.attacker_bounds(release, cells=others, progressbar=False)["disclosed"] & others
        )
        found += np.argwhere(disclosed.values).tolist()
    return found


def test_single_contributors_cannot_subtract_their_own():
    table = xr.DataArray([[5, 7, 20, 60], [9, 8, 30, 50], [12, 11, 40, 70]], dims=("a", "b"))
    primary = table < 8
    singletons = table == 5
    plain = protected(table, primary)
    assert worked_out_by_singletons(plain, table, primary, singletons) == [
        [0, 1]
    ]  # 12 less their own 5
    pattern = protected(table, primary, singletons=singletons)
    assert worked_out_by_singletons(pattern, table, primary, singletons) == []
    assert pattern.cost > plain.cost
    assert pattern.gap == 0


def cheapest_from_singletons(table, costs, primary, singletons):
    """Least cost of the patterns that protect from everybody, by trying all of them on
    all tables with these totals."""
    every = np.array(tables_with_totals(table.sum(axis=1).tolist(), tuple(table.sum(axis=0))))
    # In which cells tables differ from the true one, each cell a bit.
    bits = 1 << np.arange(table.size)
    differ = np.unique((every != table).reshape(len(every), -1) @ bits)
    for cost, pattern in by_cost(costs, primary):
        views = [(pattern, primary)]
        for own in np.flatnonzero(pattern & singletons):
            alone = np.arange(table.size) == own
            views.append((pattern & ~alone, primary & ~alone))
        if all(
            not asked @ bits & ~np.bitwise_or.reduce(differ[differ & (~seen @ bits) == 0])
            for seen, asked in views
        ):
            return cost
    return np.inf


@pytest.mark.parametrize("seed", seeds(8, 40))
def test_the_cheapest_pattern_that_singletons_cannot_undo(seed):
    generator = np.random.default_rng(seed)
    table = generator.integers(1, 5, (3, 4))
    flags = generator.random(table.shape) < 0.2
    flags[0, 0] = True
    alone = (generator.random(table.shape) < 0.3) | (flags & (generator.random(table.shape) < 0.5))
    least = cheapest_from_singletons(table, 1.0 + table.ravel(), flags.ravel(), alone.ravel())
    given = [xr.DataArray(each, dims=("a", "b")) for each in (table, flags, alone)]
    if least == np.inf:
        with pytest.raises(AttackError, match="no pattern protects"):
            protected(given[0], given[1], singletons=given[2])
        return
    pattern = protected(given[0], given[1], singletons=given[2])
    assert pattern.bound <= least + 1e-6
    assert pattern.cost >= least
    assert pattern.gap > 0 or pattern.cost == least


@pytest.mark.parametrize("seed", seeds(6, 12))
def test_no_single_contributor_works_out_another_cell(seed):
    generator = np.random.default_rng(seed)
    table = xr.DataArray(generator.integers(1, 30, (4, 5)), dims=("a", "b"))
    primary, singletons = (
        table.copy(data=generator.random((4, 5)) < share) for share in (0.25, 0.3)
    )
    pattern = protected(table, primary, singletons=singletons)
    assert worked_out_by_singletons(pattern, table, primary, singletons) == []


def test_a_single_contributor_who_knows_all_the_rest():
    table = xr.DataArray([[5, 7], [3, 2]], dims=("a", "b"))
    with pytest.raises(
        AttackError, match=r"for the single contributor of a=0, b=0 no pattern protects a=0, b=1"
    ):
        protected(table, table > 4, singletons=table == 5)


def test_totals_may_rise_by_more_than_the_grand_total():
    """All 10 move from the first cell to the primary; each of `b`, `c`, `d` then needs
    another cell with 10."""
    table = xr.DataArray(np.zeros((2, 2, 2, 2), dtype=int), dims=tuple("abcd"))
    table[0, 0, 0, 0] = 10
    primary, price = xr.zeros_like(table, dtype=bool), xr.full_like(table, np.inf, dtype=float)
    primary[0, 1, 1, 1] = True
    for cell in [(0, 0, 0, 0), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0)]:
        price[cell] = 1
    costs = {dim: xr.DataArray([np.inf, 1], dims=dim) for dim in table.dims} | {
        (): xr.DataArray(1),
        table.dims: price,
    }
    asked = xr.Dataset({"lower": table, "upper": table + 10 * primary})
    options = {
        "linked": [*table.dims, (), table.dims],
        "costs": costs,
        "protection": {table.dims: asked},
    }
    pattern = protected(table, {table.dims: primary}, **options)
    assert pattern.cost == 4 + 4 + 1  # four cells, a total of each variable, the grand total
    assert pattern.gap == 0
    everything = tc.attacker_bounds(pattern.release, margin=(), progressbar=False)
    assert everything["upper"] == 10 + 30


@pytest.mark.parametrize("unit", [1e-9, 1e15])
def test_costs_may_be_in_any_unit(unit):
    table = xr.DataArray([[20, 50, 10], [8, 19, 22], [17, 32, 12]], dims=("a", "b"))
    pattern = protected(table, table == 8, costs=table * unit)
    assert pattern.cost == pytest.approx((22 + 17 + 12) * unit)
    assert pattern.gap == 0


@pytest.mark.parametrize("size", [10**6, 10**12])
@pytest.mark.parametrize("linked", [None, [("a", "b"), "a", "b", ()]])
def test_counts_may_be_large(size, linked):
    table = size * xr.DataArray([[20, 50, 10], [8, 19, 22], [17, 32, 12]], dims=("a", "b"))
    asked = xr.Dataset({"lower": table * 9 // 10, "upper": table * 11 // 10})
    pattern = protected(table, table == 8 * size, protection=asked, linked=linked)
    assert pattern.cost == (22 + 17 + 12) * size + 3
    assert pattern.gap == 0


def test_one_variable_and_its_levels():
    table = xr.DataArray([3, 4, 9, 1], dims="a", coords={"region": ("a", ["n", "n", "s", "s"])})
    assert protected(table, table == 3).cost == 1 + 4  # the other one of its region
    assert protected(table.drop_vars("region"), table == 3).cost == 1 + 1
    # Where the region's total may be suppressed, that and one of the other region still
    # are dearer.
    pattern = protected(table, {"a": table == 3}, linked=["a", "region", ()])
    assert (pattern.cost, pattern.gap) == (5, 0)


def test_a_variable_with_one_category_protects_nothing():
    table = xr.DataArray([[3, 4, 9]], dims=("a", "b"))
    with pytest.raises(AttackError, match="no pattern protects a=0, b=0,"):
        protected(table, table == 3)
    linked = [("a", "b"), "b", "a"]
    pattern = protected(table, {("b", "a"): (table == 3).T}, linked=linked)
    assert pattern.cost == (1 + 3) + 2 * (
        1 + 4
    )  # the total that is the cell, and another cell with its own
    assert pattern.gap == 0


def test_all_cells_are_primary():
    table = xr.DataArray([[1, 2], [3, 4]], dims=("a", "b"))
    pattern = protected(table, table > 0, costs=xr.full_like(table, np.inf, dtype=float))
    assert (pattern.cost, pattern.gap) == (0, 0)
    with pytest.raises(AttackError, match="no pattern protects"):
        protected(table * 0, table > 0)


def test_nothing_to_protect():
    table = xr.DataArray([[1, 2], [3, 4]], dims=("a", "b"))
    pattern = protected(table, table > 9)
    assert pattern.cost == 0
    assert (pattern.status["a", "b"] == "safe").all()


def lying(required):
    """Witnesses that are not compatible with what is published."""
    reach = Reach(required)
    far = np.full(len(required.cells), 9)
    everywhere = np.ones(9, dtype=bool)
    reach.add(np.array([0, 0, 0, 9, 0, 0, 0, 0, 0]), far, everywhere)
    reach.add(np.array([0, 0, 0, -8, 0, 0, 0, 0, 0]), -far, everywhere)
    return reach


def test_the_audit_refuses_a_pattern_that_does_not_protect(monkeypatch):
    table = xr.DataArray([[20, 50, 10], [8, 19, 22], [17, 32, 12]], dims=("a", "b"))
    for method in ("among", "next_pattern"):
        monkeypatch.setattr(searches.PatternProgram, method, lambda *task, **options: None)
    monkeypatch.setattr(
        searches.DeviationSearch,
        "complete",
        lambda self, pattern, order, **options: deviations.Completed(
            self._task.primaries, lying(self._required), True
        ),
    )
    with pytest.raises(AttackError, match=r"does not protect a=1, b=0$") as caught:
        protected(table, table == 8)
    assert "NOT FOR RELEASE: 1 of 1 primary cells are not proved" in str(caught.value.pattern)


def test_the_table_is_checked_once_at_the_door_and_once_for_the_release(monkeypatch):
    checked = []

    def counted(table, *rest, **options):
        checked.append(table)
        return in_steps(table, *rest, **options)

    for module in (arguments, suppression, linked):
        monkeypatch.setattr(module, "in_steps", counted)
    table = xr.DataArray([[20, 50, 10], [8, 19, 22], [17, 32, 12]], dims=("a", "b"))
    protected(table, table == 8, singletons=table == 12)
    assert len(checked) == 2
    protected(table, {"a": table.sum("b") == 49}, linked=["a", "b", ("a", "b")])
    assert len(checked) == 4


def test_the_time_limit_is_honoured_and_said(monkeypatch):
    generator = np.random.default_rng(1)
    table = xr.DataArray(
        generator.poisson(generator.gamma(0.5, 20, (5, 5, 4))), dims=("a", "b", "c")
    )
    primary = (table > 0) & (table < 3)
    with pytest.raises(AttackError, match="within time_limit"):
        protected(table, primary, time_limit=1e-9)
    # A clock that stands still until the cheapest pattern is looked for, and has passed
    # the limit then: on any machine there is a first pattern, and no time for more.
    clock = {"now": 0.0}
    for module in (secondary, searches, deviations, attacks, open_programs, witnesses, cuts):
        monkeypatch.setattr(module, "monotonic", lambda: clock["now"])

    def search_for_long(self, *, deadline):
        clock["now"] = 9.0

    monkeypatch.setattr(cuts.PatternProgram, "next_pattern", search_for_long)
    pattern = protected(table, primary, time_limit=8)
    assert not pattern.complete
    assert 0 < pattern.gap < 1
    assert f"at most {100 * (pattern.cost / pattern.bound - 1):.3g} % above the cheapest" in str(
        pattern
    )


def test_a_gap_that_is_good_enough_ends_the_search():
    table = xr.DataArray([[20, 50, 10], [8, 19, 22], [17, 32, 12]], dims=("a", "b"))
    pattern = protected(table, table == 8, gap=0.9)
    assert pattern.complete
    assert pattern.gap <= 0.9


TABLE = xr.DataArray([[20, 50], [8, 19]], dims=("a", "b"))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"protection": 0}, ParameterError, r"risk above 0 and up to 1, .* got 0"),
        ({"protection": 1.5}, ParameterError, r"risk above 0 and up to 1, .* got 1.5"),
        ({"protection": "high"}, ParameterError, r"got 'high'"),
        ({"protection": xr.Dataset({"lower": TABLE})}, TableError, r"'lower' and 'upper'"),
        (
            {"protection": xr.Dataset({"lower": TABLE + 1, "upper": TABLE})},
            ParameterError,
            r"not so at a=1, b=0",
        ),
        (
            {"protection": xr.Dataset({"lower": TABLE - 9, "upper": TABLE})},
            ParameterError,
            r"not so at a=1, b=0",
        ),
        ({"costs": TABLE - 20}, ParameterError, r"costs must be above 0.*a=0, b=0"),
        ({"costs": TABLE * np.nan}, TableError, r"costs must not be missing: a=0, b=0"),
        ({"costs": {"a": TABLE.sum("b")}}, ParameterError, r"costs must be of margins .*got 'a'"),
        ({"linked": ["a"]}, ParameterError, r"primary must be of margins .*got \('a', 'b'\)"),
        ({"linked": ["c"]}, ParameterError, r"must name variables of the table"),
        ({"time_limit": 0}, ParameterError, r"time_limit must be a finite number above 0, got 0"),
        ({"gap": 1}, ParameterError, r"gap must be from 0 to below 1, got 1"),
        ({"gap": "small"}, ParameterError, r"gap must be a number from 0 to 1, got 'small'"),
        ({"random_seed": -1}, ParameterError, r"random_seed must be .* got -1"),
        ({"linked": []}, ParameterError, r"linked must name at least one margin"),
        (
            {"costs": {("a", "b"): TABLE, ("b", "a"): TABLE.T}},
            ParameterError,
            r"costs must have each margin once",
        ),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        protected(TABLE, TABLE == 8, **options)


def test_a_mask_of_another_shape():
    with pytest.raises(TableError, match="primary must have the sizes"):
        protected(TABLE, (TABLE == 8).isel(a=[0]))
    with pytest.raises(TableError, match="primary must be a DataArray of bool"):
        protected(TABLE, TABLE)


@pytest.mark.parametrize("name", ["upper", "risk"])
def test_a_variable_called_like_a_result_is_refused(name):
    table = xr.DataArray([[20, 50], [8, 19]], dims=(name, "b"))
    with pytest.raises(tc.errors.TableError, match=f"'{name}' cannot name a variable or level"):
        protected(table, table == 8)


def test_without_primary_cells_nothing_is_suppressed():
    table = xr.DataArray([[20, 50], [8, 19]], dims=("a", "b"))
    pattern = protected(table, table < 5)
    assert (pattern.cost, pattern.gap, pattern.complete) == (0, 0, True)
    assert pattern.n_primary == pattern.n_unproved == 0


def test_who_is_alone_in_cells_tied_by_totals_knows_them_all_in_any_order():
    """The same contributor is alone in a cell, in its row and in its column."""
    table = xr.DataArray([[2, 0], [0, 3]], dims=("a", "b"))
    contributors = xr.DataArray([[1, 0], [0, 1]], dims=("a", "b"))
    primary = {"b": xr.DataArray([True, True], dims="b"), ("a", "b"): table == 3}
    for order in itertools.permutations([("b",), ("a", "b"), ("a",)]):
        singletons = {names: margin(contributors, names) == 1 for names in order}
        try:
            pattern = protected(table, primary, linked=list(order), singletons=singletons)
        except AttackError:
            continue  # no pattern protects from that contributor
        known = {
            names: pattern.status[names].copy(data=singletons[names].values)
            for names in pattern.status
        }
        own = {names: flags & (margin(table, names) == 3) for names, flags in known.items()}
        shown = {names: (pattern.status[names] != "safe") & ~own[names] for names in pattern.status}
        release = tc.LinkedTables(table, list(order), suppressed=shown)
        bounds = tc.attacker_bounds(release, margin="b", progressbar=False)
        assert not bounds["disclosed"].values[0]


def test_no_pattern_of_an_error_is_for_release_before_single_contributors_were_seen_to():
    table = xr.DataArray([[1, 1], [2, 7]], dims=("a", "b"))
    with pytest.raises(AttackError, match="for the single contributor") as caught:
        protected(table, table == 7, singletons=table == 1)
    assert caught.value.pattern.n_unproved == caught.value.pattern.n_primary == 1
    with pytest.raises(ParameterError, match="not proved"):
        tc.publication.release_rows(caught.value.pattern)


def test_a_witness_of_large_numbers_suppresses_every_cell_that_it_moves():
    large = 10**8
    values = [
        [5 * large, large - 5, 5, 7 * large],
        [6 * large] * 4,
        [3 * large, 8 * large, 2 * large, 3 * large],
    ]
    table = xr.DataArray(values, dims=("a", "b"))
    primary = (table == 5 * large) & xr.DataArray([True, False, False], dims="a")
    interval = xr.Dataset({"lower": table, "upper": table + large}).astype(float)
    costs = xr.ones_like(table, dtype=float)
    costs[0, 3] = np.inf
    pattern = protected(table, primary, protection=interval, costs=costs)
    assert pattern.n_unproved == 0
    assert pattern.audit["a", "b"]["upper"].values[0, 0] >= 6 * large


@pytest.mark.parametrize("name", ["status", "value"])
def test_names_of_what_a_protected_table_has(name):
    table = xr.DataArray(
        [[3, 1, 9], [2, 4, 9]], dims=("a", "b"), coords={"a": ["N", "S"], "b": list("xyz")}
    )
    for own in (table.rename(a=name), table.assign_coords({name: ("b", list("xyz"))})):
        with pytest.raises(TableError, match="cannot name a variable or level: a protected table"):
            tc.suppress(own, own == 1)
