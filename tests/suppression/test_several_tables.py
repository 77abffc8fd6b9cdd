"""Several tables that share cells, attacked by a program of the tests' own and as the
projections of a table over all variables."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.optimize import LinearConstraint, milp

import taciturn as tc
from patterns import seeds
from several import CHAIN, CYCLE, SIZES, Attacker, margins_of, projections
from taciturn.errors import AttackError, ParameterError, TableError
from taciturn.suppression.arguments import checked_cells

OPTIONS = {"random_seed": 1, "progressbar": False, "time_limit": 60}


def cube(seed, variables, most=12):
    generator = np.random.default_rng(seed)
    shape = [SIZES[name] for name in variables]
    values = generator.integers(0, most, shape) * (generator.random(shape) < 0.5)
    coords = {name: range(SIZES[name]) for name in variables}
    return xr.DataArray(values, dims=list(variables), coords=coords)


def few(tables):
    """More than some of the tables' cells hold."""
    held = np.sort(np.concatenate([table.values.ravel() for table in tables.values()]))
    return int(held[held > 0][4]) + 1


def protected(tables, below, **options):
    primary = {
        name: {
            names: (margin > 0) & (margin < below) for names, margin in margins_of(table).items()
        }
        for name, table in tables.items()
    }
    return tc.suppression.suppress_tables(tables, primary, **{**OPTIONS, **options})


@pytest.mark.parametrize("seed", seeds(4, 40))
@pytest.mark.parametrize("margins", [CHAIN, CYCLE], ids=["chain", "cycle"])
def test_the_audit_is_what_an_attacker_finds_in_all_tables(margins, seed):
    tables = projections(cube(seed, "abcd" if margins == CHAIN else "abc"), margins)
    found = protected(tables, few(tables), protection=0.4)
    assert sum(pattern.n_primary for pattern in found.values()) > 0
    most = 10 * int(tables["ab"].sum())
    variables = dict(zip(tables, margins, strict=True))
    attacker = Attacker({n: p.tables for n, p in found.items()}, variables, most)
    for pattern in found.values():
        for names, audit in pattern.audit.items():
            for at in np.argwhere(pattern.status[names].values == "primary").tolist():
                bounds = audit.isel(dict(zip(names, at, strict=True)))
                low, high = attacker.ends(attacker.cell(names, at))
                assert low == bounds["lower"]
                if bounds["upper"] == np.inf:
                    assert high > most / 2
                else:
                    assert high == bounds["upper"]
                assert high - low + 1 >= 2 ** (1 / 0.4)


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_margins_with_the_same_cells_are_one(seed):
    """Of a variable with one category, or a level with a group for each category: who
    sees one table alone works out no more than the audit says, and no primary cell.
    """
    generator = np.random.default_rng(seed)
    sizes = {"a": 1 if seed % 2 else 3, "b": 3, "c": 2, "d": 1}
    values = generator.integers(0, 9, list(sizes.values()))
    whole = xr.DataArray(
        values, dims=list(sizes), coords={name: range(size) for name, size in sizes.items()}
    )
    tables = {"abd": whole.sum("c"), "cad": whole.sum("b").transpose("c", "a", "d")}
    linked = None
    if seed % 3 == 0:
        tables["abd"] = tables["abd"].assign_coords(named=("b", ["x", "y", "z"]))
        linked = {"abd": [("a", "b", "d"), ("named", "a"), ("b",), ("named", "d"), ()]}
    primary = {name: (table > 0) & (table < 4) for name, table in tables.items()}
    try:
        found = tc.suppression.suppress_tables(tables, primary, linked=linked, **OPTIONS)
    except AttackError:
        return  # no pattern protects so few cells
    for pattern in found.values():
        assert pattern.n_unproved == 0
        own = tc.attacker_bounds(pattern.release, progressbar=False)
        inner = tuple(own["lower"].dims)
        hidden = pattern.status[inner] == "primary"
        assert (own["lower"] < own["upper"]).where(hidden, True).all()
        if hidden.any():
            audit = pattern.audit[inner]
            assert (audit["lower"] >= own["lower"]).where(hidden, True).all()
            assert (audit["upper"] <= own["upper"]).where(hidden, True).all()
        for names, table in pattern.tables.items():
            one = tuple(name for name in names if name != "d")
            if one != names and one in pattern.tables:
                same = pattern.tables[one]["value"]
                np.testing.assert_array_equal(table["value"].isel(d=0), same)


def test_margins_with_the_same_cells_follow_each_other():
    table = xr.DataArray(
        [[[1, 2, 3], [4, 5, 6]]],
        dims=["d", "a", "b"],
        coords={"d": [1], "a": [1, 2], "b": [1, 2, 3]},
    )
    margins = [("d", "a", "b"), ("a", "b"), ("a",), ("d", "a"), ("b",), ()]
    cells = checked_cells(table, margins, 0)
    sums = cells.equations.toarray()
    assert not (sums @ cells.values).any()
    # Six cells are free of all that are published.
    assert np.linalg.matrix_rank(sums) == len(cells.values) - table.size


@pytest.mark.parametrize("seed", seeds(3, 30))
def test_in_a_chain_nobody_knows_more_who_considers_the_table_over_all_variables(seed):
    table = cube(seed, "abcd")
    tables = projections(table, CHAIN)
    found = protected(tables, few(tables))
    assert_as_in_the_cube(table, found)


def assert_as_in_the_cube(table, found):
    assert sum(pattern.n_primary for pattern in found.values()) > 0
    for pattern in found.values():
        for names, audit in pattern.audit.items():
            primary = pattern.status[names] == "primary"
            bounds = attacked(table, found, names, primary)
            for side in ("lower", "upper"):
                assert np.array_equal(bounds[side], audit[side], equal_nan=True)


def attacked(table, found, names, cells):
    """The bounds that the projections of the table leave."""
    hidden = {}
    for pattern in found.values():
        for margin, published in pattern.tables.items():
            hidden[margin] = published["status"] == "suppressed"
    release = tc.LinkedTables(table, list(hidden), suppressed=hidden)
    return tc.attacker_bounds(release, margin=names, cells=cells, progressbar=False)


def test_in_a_cycle_who_considers_the_table_over_all_variables_may_know_more():
    """Each projection agrees with the others, but fewer tables have them all."""
    table = cube(9, "abc", most=3)
    found = protected(projections(table, CYCLE), 2)
    narrower = 0
    for pattern in found.values():
        for names, audit in pattern.audit.items():
            asked = pattern.status[names] == "primary"
            bounds = attacked(table, found, names, asked)
            low, high = (bounds[side].values[asked.values] for side in ("lower", "upper"))
            least, most = (audit[side].values[asked.values] for side in ("lower", "upper"))
            assert (least <= low).all()
            assert (high <= most).all()
            narrower += int((high - low < most - least).sum())
    assert narrower


def test_every_pattern_of_two_small_tables_that_protects_costs_at_least_as_much():
    """Enumeration: two tables of four cells, a total of each row in common."""
    values = {"b": [[1, 2], [3, 1]], "c": [[3, 0], [2, 2]]}
    tables = {
        name: xr.DataArray(rows, dims=["a", name], coords={"a": [0, 1], name: [0, 1]})
        for name, rows in values.items()
    }
    first = tables["b"]
    found = tc.suppression.suppress_tables(
        tables,
        {"b": first == 3},
        linked={name: [("a", name), ("a",)] for name in tables},
        **OPTIONS,
    )
    # The eight cells, the row totals, and which tables have the same of all published.
    every = np.array(list(product(range(5), repeat=4)))
    sums = every.reshape(-1, 2, 2).sum(axis=2)
    one, two = np.nonzero((sums[:, None] == sums[None]).all(axis=2))
    cells = np.column_stack([every[one], every[two], sums[one]])
    true = np.array([1, 2, 3, 1, 3, 0, 2, 2, 3, 4])
    costs = 1 + true
    least = np.inf
    for hidden in product([False, True], repeat=9):
        pattern = np.insert(np.array(hidden), 2, values=True)
        same = (cells[:, ~pattern] == true[~pattern]).all(axis=1)
        if len(set(cells[same, 2].tolist())) > 1:
            least = min(least, costs[pattern].sum() - costs[2])
    assert found["b"].cost == least
    assert found["b"].gap == 0


def grouped():
    """Employees by branch and area, and by size and another grouping of branches."""
    generator = np.random.default_rng(3)
    values = generator.integers(2, 30, (6, 3, 2))
    by_branch = xr.DataArray(
        values.sum(axis=2),
        dims=["branch", "area"],
        coords={
            "branch": list("uvwxyz"),
            "area": list("NSW"),
            "section": ("branch", list("AAABBB")),
            "kind": ("branch", list("klmklm")),
        },
    )
    sums = [values[[i, i + 3]].sum(axis=(0, 1)) for i in range(3)]
    by_kind = xr.DataArray(
        sums, dims=["kind", "size"], coords={"kind": list("klm"), "size": ["small", "large"]}
    )
    return {"area": by_branch, "size": by_kind}


def test_tables_with_different_groupings_share_the_margins_that_both_have():
    tables = grouped()
    primary = {"size": tables["size"] == tables["size"].min()}
    found = tc.suppression.suppress_tables(tables, primary, **OPTIONS)
    for names in [("kind",), ()]:
        one, two = (found[name].tables[names]["status"] for name in tables)
        assert one.values.tolist() == two.values.tolist()
    # Where totals of a kind are hidden, so are some of their branches.
    one = found["area"].status["kind",] != "safe"
    if one.any():
        assert (found["area"].status["branch", "area"] != "safe").any()
    assert ("section",) in found["area"].status
    assert ("section",) not in found["size"].status


AREAS = {"area": ["1", "2", "3", "4", "5"]}
LEVELS = {
    "crossing": {"district": list("nnsss"), "kind": list("urruu")},
    "nested": {"district": list("ddeff"), "kind": list("rrrxx")},
}


def of_areas(levels, seed):
    """People by area, trade and size: a table with levels above the areas, and one that
    has these levels as variables.
    """
    generator = np.random.default_rng(seed)
    values = generator.integers(0, 9, (5, 2, 2)) * (generator.random((5, 2, 2)) < 0.7)
    people = xr.DataArray(values, dims=("area", "trade", "size"), coords=AREAS)
    above = {name: ("area", labels) for name, labels in LEVELS[levels].items()}
    people = people.assign_coords(above)
    by_level = people.sum("trade").groupby(["district", "kind"]).sum().fillna(0).astype(int)
    return people, {
        "area": people.sum("size"),
        "kind": by_level.transpose("district", "size", "kind"),
    }


def ends_for_who_considers_all(people, found, which):
    """Least and greatest value of a cell over all tables of area, trade and size that
    have what is published.
    """
    along = {name: np.arange(2) for name in ("trade", "size")}
    along |= {name: people[name].values for name in ("area", "district", "kind")}
    places = dict(zip(people.dims, np.indices(people.shape), strict=True))

    def those_in(which):
        """Which cells of the table over all variables are in one of a margin."""
        labels = {name: along[name][places.get(name, places["area"])] for name in which}
        return np.all([labels[name] == which[name] for name in which] or [True], axis=0).ravel()

    rows, values = [], []
    for table in [table for pattern in found.values() for table in pattern.tables.values()]:
        for at in np.ndindex(table["value"].shape):
            cell = table["value"][at]
            if not np.isnan(cell):
                in_it = those_in({name: cell[name].item() for name in table["value"].dims})
                rows.append(np.broadcast_to(in_it, people.size).astype(float))
                values.append(cell.item())
    target = those_in(which).astype(float)
    known = LinearConstraint(np.array(rows), values, values)
    ends = []
    for sign in (1, -1):
        solved = milp(sign * target, constraints=known, integrality=np.ones(people.size))
        # The people are a solution: there is no bound, where no total is told.
        ends.append(-sign * np.inf if solved.status in (3, 4) else sign * solved.fun)
    return ends


@pytest.mark.parametrize("seed", seeds(4, 30))
@pytest.mark.parametrize("levels", LEVELS)
def test_levels_of_one_table_that_are_variables_of_another_tie_them(levels, seed):
    """Each area is in one district and of one kind: their totals are those of areas."""
    people, tables = of_areas(levels, seed)
    found = protected(tables, few(tables), protection=0.5)
    checked = 0
    for pattern in found.values():
        for names, audit in pattern.audit.items():
            for at in np.argwhere(pattern.status[names].values == "primary").tolist():
                cell = audit.isel(dict(zip(names, at, strict=True)))
                which = {name: cell[name].item() for name in names}
                low, high = ends_for_who_considers_all(people, found, which)
                assert (low, high) == (cell["lower"], cell["upper"])
                checked += 1
    assert checked


def test_an_area_that_another_table_has_as_district_and_kind():
    _, tables = of_areas("crossing", 0)
    only = {"area": {("area",): tables["area"]["area"] == "1"}}  # alone in n, u
    found = tc.suppression.suppress_tables(tables, only, **OPTIONS)
    assert np.isnan(found["kind"].tables["district", "kind"]["value"].sel(district="n", kind="u"))
    wrong = tables["kind"].copy()
    wrong[:, 0, :] += [[1, -1], [-1, 1]]  # districts and kinds have what they had
    with pytest.raises(TableError, match=r"district=n, kind=. must hold the same in all"):
        tc.suppression.suppress_tables(tables | {"kind": wrong}, only, **OPTIONS)


def test_an_area_is_in_one_district_by_both_tables():
    """An area has nobody in another district, whose names are told apart: zeros there
    hide nothing, so that no other cell hides the 3.
    """
    values = [[3, 0], [5, 0], [0, 9], [0, 4]]
    district = {"district": ("area", list("ddee"))}
    by_name = xr.DataArray(values, dims=("area", "name"), coords={"area": [1, 2, 3, 4], **district})
    by_name = by_name.assign_coords(name=["D", "E"])
    by_district = xr.DataArray(
        values,
        dims=("area", "district"),
        coords={"area": [1, 2, 3, 4], "district": ["d", "e"], "name": ("district", ["D", "E"])},
    )
    tables = {"name": by_name, "district": by_district}
    linked = {name: [table.dims, *table.dims] for name, table in tables.items()}
    known = {
        name: {
            (dim,): xr.full_like(table.sum(set(table.dims) - {dim}), np.inf, dtype=float)
            for dim in table.dims
        }
        for name, table in tables.items()
    }
    with pytest.raises(AttackError, match="no pattern protects area=1, name=D of 'name'"):
        tc.suppression.suppress_tables(
            tables, {"name": by_name == 3}, linked=linked, costs=known, **OPTIONS
        )


def test_where_nobody_can_be_values_of_any_sign_are_zero():
    """No area of district e is of kind k, so that two cells of a total of 2 are one."""
    areas = xr.DataArray(
        [5, 7, -3],
        dims="area",
        coords={
            "area": list("abc"),
            "district": ("area", list("dde")),
            "kind": ("area", list("kll")),
        },
    )
    trades = xr.DataArray(
        [[[2, 3], [4, 3]], [[0, 0], [-5, 2]]],
        dims=("district", "kind", "trade"),
        coords={"district": ["d", "e"], "kind": ["k", "l"], "trade": ["s", "t"]},
    )
    primary = {"trades": (trades == 2) & (trades.kind == "k")}
    found = tc.suppression.suppress_tables({"areas": areas, "trades": trades}, primary, **OPTIONS)[
        "trades"
    ]
    total = found.tables["kind", "trade"]["value"].sel(kind="k", trade="s")
    assert np.isnan(total)  # otherwise it is the cell
    wrong = trades.copy()
    wrong[1, 0] = [1, -1]
    with pytest.raises(TableError, match=r"district=e, kind=k, trade=s of 'trades' must hold 0"):
        tc.suppression.suppress_tables({"areas": areas, "trades": wrong}, primary, **OPTIONS)


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        ([1, 2], [1.0, 2.0], "are equal, 1 and 1.0"),
        (["1", "2"], [1.0, 2.0], "'1' in 'b' may be '1.0' in 'c'"),
        (["01", "10"], [1, 10], "'01' in 'b' may be '1' in 'c'"),
        (["x", "y"], ["x", "Y"], "'y' in 'b' may be 'Y' in 'c'"),
        (["x", "y z"], ["x", "y  z"], "look alike"),
        (["01.1", "10.1"], [1.1, 10.1], "'01.1' in 'b' may be '1.1' in 'c'"),
        (["1.50", "2"], ["1.5", "2"], "'1.50' in 'b' may be '1.5' in 'c'"),
        (["0-4", "5+"], ["00\u201304", "5+"], "may be"),
        (["2020-01-01", "2020-01-02"], pd.date_range("2020-01-01", periods=2), "may be"),
        (["f", "m"], [1, 2], "is text in one only"),
    ],
)
def test_categories_that_are_written_in_two_ways(one, two, message):
    """They would be two cells, one of which is hidden and the other published."""
    by_b = xr.DataArray([[1, 9], [5, 5]], dims=["a", "b"], coords={"a": one})
    by_c = xr.DataArray([[4, 6], [3, 7]], dims=["a", "c"], coords={"a": two})
    with pytest.raises(TableError, match=message):
        tc.suppression.suppress_tables({"b": by_b, "c": by_c}, {"b": by_b == 1}, **OPTIONS)
    named = by_c.assign_coords(a=one).rename(a="A")
    with pytest.raises(TableError, match="variables and levels must be written alike in all"):
        tc.suppression.suppress_tables({"b": by_b, "c": named}, {"b": by_b == 1}, **OPTIONS)


def test_codes_that_differ_and_types_that_say_the_same_are_accepted():
    by_b = xr.DataArray([[1, 9], [5, 5]], dims=["a", "b"], coords={"a": ["1", "01"]})
    by_c = xr.DataArray([[4, 6]], dims=["a", "c"], coords={"a": [1]})
    found = tc.suppression.suppress_tables({"b": by_b, "c": by_c}, {"b": by_b == 1}, **OPTIONS)
    assert found["b"].status["a",].sel(a="1") == found["c"].status["a",].sel(a=1)


def test_a_total_that_no_table_releases_ties_them_all_the_same():
    """Whoever adds up the one table knows the sum of the other."""
    by_b = xr.DataArray([[1, 9], [5, 5]], dims=["a", "b"])
    by_c = xr.DataArray([[4, 6], [3, 7]], dims=["a", "c"])
    linked = {"b": [("a", "b")], "c": [("a", "c")]}
    found = tc.suppression.suppress_tables(
        {"b": by_b, "c": by_c}, {"b": by_b == 1}, linked=linked, **OPTIONS
    )
    # The row holds 10 by either table: in one of them something else must be hidden.
    hidden = [
        int((pattern.status["a", name][0] != "safe").sum()) for name, pattern in found.items()
    ]
    assert hidden == [1, 1]


def test_tables_that_do_not_agree_are_refused():
    by_b = xr.DataArray([[1, 9], [5, 5]], dims=["a", "b"])
    by_c = xr.DataArray([[4, 6], [3, 8]], dims=["a", "c"])
    with pytest.raises(TableError, match=r"a=1 must hold the same.*: 10 in 'b', 11 in 'c'"):
        tc.suppression.suppress_tables({"b": by_b, "c": by_c}, {}, **OPTIONS)


def test_totals_of_different_categories_are_different_cells():
    """The second table has fewer branches, so that its grand total is another."""
    areas = xr.DataArray([[1, 9], [5, 5], [2, 7]], dims=["a", "b"], coords={"a": list("xyz")})
    sizes = xr.DataArray([[4, 6], [3, 7]], dims=["a", "c"], coords={"a": list("xy")})
    found = tc.suppression.suppress_tables(
        {"b": areas, "c": sizes}, {"b": areas == 1}, costs={"c": 1.0 + sizes}, **OPTIONS
    )
    assert found["b"].n_primary == 1
    with pytest.raises(TableError, match=r"a=y must hold the same in all tables: 10 in 'b', 9"):
        tc.suppression.suppress_tables(
            {"b": areas, "c": sizes - [[0, 0], [0, 1]]}, {"b": areas == 1}, **OPTIONS
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tables": {}}, "two tables or more"),
        ({"primary": {"d": None}}, "primary must be a mapping whose keys are names of tables"),
        ({"linked": {"b": ["a"]}}, "must have the table itself"),
        ({"gap": 1.0}, "gap must be from 0 to below 1"),
        ({"protection": {"d": None}}, "protection must be a mapping"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    by_b = xr.DataArray([[1, 9], [5, 5]], dims=["a", "b"])
    given = {"tables": {"b": by_b, "c": by_b.rename(b="c")}, "primary": {"b": by_b == 1}}
    with pytest.raises(ParameterError, match=message):
        tc.suppression.suppress_tables(**{**given, **OPTIONS, **change})


def test_what_is_said_of_a_shared_cell_in_one_table_holds_in_all():
    tables = grouped()
    total = pd.DataFrame([("k", None, "suppressed")], columns=["kind", "size", "status"])
    found = tc.suppression.suppress_tables(tables, {}, apriori={"size": total}, **OPTIONS)
    assert found["area"].status["kind",].values.tolist()[0] == "primary"
    other = pd.DataFrame([("Total", "published")], columns=["branch", "status"])
    fixed = pd.DataFrame([("Total", "suppressed")], columns=["size", "status"])
    with pytest.raises(TableError, match="is to be 'suppressed', and is 'published' in another"):
        tc.suppression.suppress_tables(
            tables, {}, apriori={"area": other, "size": fixed}, **OPTIONS
        )


def test_the_range_of_primary_cells_may_be_known_for_all_tables():
    tables = projections(cube(2, "abcd"), CHAIN)
    below = few(tables)
    found = protected(tables, below, knowledge=(1, below - 1))
    for pattern in found.values():
        for names, audit in pattern.audit.items():
            primary = (pattern.status[names] == "primary").values
            low, high = (audit[side].values[primary] for side in ("lower", "upper"))
            assert (low >= 1).all()
            assert (high < below).all()
            assert (low < high).all()


def test_an_error_has_what_was_found_of_each_table():
    tables = projections(cube(1, "abcd"), CHAIN)
    with pytest.raises(AttackError) as error:
        protected(tables, few(tables), time_limit=1e-6)
    assert set(error.value.pattern) == set(tables)
    assert sum(pattern.n_unproved for pattern in error.value.pattern.values()) > 0


def test_a_cell_that_cannot_be_protected_is_named_with_its_table():
    by_b = xr.DataArray([[1, 9], [5, 5]], dims=["a", "b"])
    by_c = xr.DataArray([[4, 6], [3, 7]], dims=["a", "c"])
    costs = {
        name: {names: xr.full_like(margin, np.inf, dtype=float) for names, margin in each.items()}
        for name, each in (("b", margins_of(by_b)), ("c", margins_of(by_c)))
    }
    with pytest.raises(AttackError, match="no pattern protects a=0, b=0 of 'b'"):
        tc.suppression.suppress_tables(
            {"b": by_b, "c": by_c}, {"b": by_b == 1}, costs=costs, **OPTIONS
        )


@pytest.mark.parametrize("released", [None, {"two": [("a", "c"), ("a",)]}])
def test_a_total_ties_tables_of_which_one_has_an_empty_category_more(released):
    """With 10 of a2 published and 18 in all, a1 would follow from the second table."""
    one = xr.DataArray(
        [[5, 3], [4, 6], [0, 0]], dims=("a", "b"), coords={"a": ["a1", "a2", "a3"], "b": [0, 1]}
    )
    two = xr.DataArray([[4, 4], [5, 5]], dims=("a", "c"), coords={"a": ["a1", "a2"], "c": [0, 1]})
    primary = {"one": {("a",): one.sum("b") == 8}}
    found = tc.suppression.suppress_tables(
        {"one": one, "two": two}, primary, linked=released, random_seed=1, progressbar=False
    )
    assert found["two"].status["a",].values.tolist() == ["primary", "secondary"]
    assert found["one"].cost == 33


def test_tables_that_a_third_one_joins_must_agree_too():
    first = xr.DataArray([[5], [7]], dims=("a", "d"), coords={"a": ["x", "y"], "d": ["d1"]})
    joint = xr.DataArray([[2, 3]], dims=("a", "b"), coords={"a": ["x"], "b": ["b1", "b2"]})
    third = xr.DataArray(
        [[[5], [0]], [[7], [4]]],
        dims=("a", "d", "e"),
        coords={"a": ["x", "y"], "d": ["d1", "d2"], "e": ["e1"]},
    )
    tables = {"A": first, "B": joint, "C": third}
    with pytest.raises(TableError, match=r"a=y must hold the same in 'A' and 'C', .*7 and 11"):
        tc.suppression.suppress_tables(tables, {"C": third == 4}, progressbar=False)
