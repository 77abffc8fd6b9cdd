"""Suppression against attackers who know beforehand what range a cell is in: against
enumeration of all patterns and tables."""

import itertools

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from patterns import (
    all_tables,
    cheapest,
    margin,
    published_values,
    seeds,
    tables_with_totals,
)
from taciturn.errors import AttackError, ParameterError, TableError
from taciturn.suppression import search


def protected(table, primary, **options):
    return tc.suppress(table, primary, **{"random_seed": 0, "progressbar": False, **options})


def drawn(generator, shape, most):
    """A table of few individuals; not so few that no cell is small."""
    cells = int(np.prod(shape))
    counts = generator.multinomial(generator.integers(4, most), np.full(cells, 1 / cells))
    return xr.DataArray(counts.reshape(shape), dims=tuple("abc"[: len(shape)]))


def ranges_of(table, primary, least, most):
    """What an attacker knows who can tell primary cells from others."""
    return xr.Dataset(
        {
            "lower": xr.where(primary, least, 0),
            "upper": xr.where(primary, float(most), np.inf),
        }
    )


@pytest.mark.parametrize("seed", seeds(16, 30))
def test_the_cheapest_of_all_patterns_against_who_knows_the_rule(seed):
    generator = np.random.default_rng(seed)
    table = drawn(generator, [(3, 3), (2, 4), (2, 2, 2), (2, 3)][seed % 4], 9)
    margins = [table.dims, *itertools.combinations(table.dims, table.ndim - 1)]
    minimum = [3, 4][seed // 4 % 2]
    primary = (table > 0) & (table < minimum)
    risk = [1.0, 0.6][seed // 8 % 2]
    # 2 values, or 2**(1 / 0.6) = 3.2, so 4, of which the rule leaves minimum - 1.
    width = min({1.0: 1, 0.6: 3}[risk], minimum - 2)
    published = published_values(table.values[None], table.dims, margins)[0]
    inner = np.arange(len(published)) < table.size
    flags = np.concatenate([primary.values.ravel(), np.zeros((~inner).sum(), dtype=bool)])
    costs = np.where(inner, 1.0 + published, np.inf)
    lower, upper = np.where(flags, 1, 0), np.where(flags, minimum - 1, np.inf)
    best, patterns = cheapest(table, margins, costs, flags, width, lower, upper)
    options = {"knowledge": (1, minimum - 1), "protection": risk}
    if best == np.inf:
        with pytest.raises(AttackError, match=r"no pattern protects a=.* with this knowledge"):
            protected(table, primary, **options)
        return
    pattern = protected(table, primary, **options)
    assert pattern.cost == pytest.approx(best, abs=1e-9)
    assert (pattern.gap, pattern.complete) == (0, True)
    assert pattern.compared == min(patterns, 50)
    check_audit(pattern, table, margins, lower, upper)


def check_audit(pattern, table, margins, lower, upper):
    """The audit is what enumeration of all tables finds."""
    every = all_tables(int(table.sum()), table.size).reshape(-1, *table.shape)
    values = published_values(every, table.dims, margins)
    values = values[((values >= lower) & (values <= upper)).all(axis=1)]
    true = published_values(table.values[None], table.dims, margins)[0]
    start = 0
    hidden = np.zeros(len(true), dtype=bool)
    for names in margins:
        size = margin(table, names).size
        if names in pattern.status:
            hidden[start : start + size] = (pattern.status[names] != "safe").values.ravel()
        start += size
    fits = values[(values[:, ~hidden] == true[~hidden]).all(axis=1)]
    start = 0
    for names in margins:
        size = margin(table, names).size
        if names in pattern.audit:
            asked = (pattern.status[names] == "primary").values.ravel()
            found = pattern.audit[names]
            part = fits[:, start : start + size][:, asked]
            assert found["lower"].values.ravel()[asked].tolist() == part.min(axis=0).tolist()
            assert found["upper"].values.ravel()[asked].tolist() == part.max(axis=0).tolist()
        start += size


@pytest.mark.parametrize("seed", seeds(8, 30))
def test_linked_tables_and_their_totals_against_who_knows_ranges(seed):
    """Ranges of cells and of totals, the table itself released or not."""
    generator = np.random.default_rng(seed)
    table = drawn(generator, [(2, 2, 2), (3, 2)][seed % 2], 7)
    pool = [m for k in range(1, table.ndim + 1) for m in itertools.combinations(table.dims, k)]
    chosen = [m for m in pool if generator.random() < 0.5] or [table.dims]
    while sum(margin(table, m).size for m in chosen) > 13:
        chosen.pop()
    margins = [*chosen, ()]
    true = published_values(table.values[None], table.dims, margins)[0]
    primary = np.zeros(len(true), dtype=bool)
    primary[generator.choice(len(true) - 1, generator.integers(1, 3), replace=False)] = True
    costs = np.append(generator.integers(1, 5, len(true) - 1).astype(float), np.inf)
    lower = np.maximum(true - generator.integers(0, 3, len(true)), 0)
    upper = np.where(generator.random(len(true)) < 0.5, np.inf, true + 1)
    parts = np.split(np.arange(len(true)), np.cumsum([margin(table, m).size for m in margins]))

    def named(values):
        return {
            names: xr.zeros_like(margin(table, names), dtype=values.dtype)
            + values[part].reshape(margin(table, names).shape)
            for names, part in zip(margins, parts, strict=False)
        }

    low, high = named(lower), named(upper)
    options = {
        "linked": margins,
        "costs": named(costs),
        "knowledge": {m: xr.Dataset({"lower": low[m], "upper": high[m]}) for m in margins},
    }
    flags = {names: flag > 0 for names, flag in named(primary.astype(int)).items()}
    if (lower == upper)[primary].any():
        with pytest.raises(AttackError, match="the knowledge alone leaves a single value"):
            protected(table, flags, **options)
        return
    best, _ = cheapest(table, margins, costs, primary, 1, lower, upper)
    if best == np.inf:
        with pytest.raises(AttackError, match="no pattern protects"):
            protected(table, flags, **options)
        return
    pattern = protected(table, flags, **options)
    assert pattern.cost == pytest.approx(best, abs=1e-9)
    check_audit(pattern, table, margins, lower, upper)


def test_what_others_may_be_no_less_than_is_known_of_them_too():
    """Where empty cells are published, as `protect_table` publishes them, a suppressed
    cell holds at least 1, primary or not."""
    table = xr.DataArray([[1, 5, 0], [4, 1, 6], [0, 7, 8]], dims=("a", "b"))
    primary = table == 1
    pattern = protected(table, primary, knowledge=(1, 2))
    assert pattern.knowledge["a", "b"]["lower"].values.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    costs = (1.0 + table).where(table > 0, np.inf)
    pattern = protected(table, primary, knowledge=(1, 2), costs=costs)
    assert pattern.knowledge["a", "b"]["lower"].values.tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    assert not pattern.audit["a", "b"]["disclosed"].any()


def test_where_less_may_be_suppressed_nothing_is_known_of_the_others():
    """Not the least value of the table either, which no rule tells anybody."""
    table = xr.DataArray([[1, 3], [3, 2]], dims=("a", "b"))
    two = table == 2
    pattern = protected(table, two, knowledge=(2, 9))
    assert pattern.knowledge["a", "b"]["lower"].values.tolist() == [[0, 0], [0, 2]]
    of_all = {"lower": xr.where(two, 2, 0), "upper": xr.where(two, 9, np.inf)}
    asked = xr.Dataset({"lower": table * 0 + 2, "upper": table + 3}).where(two, table)
    for knowledge in ((2, 9), xr.Dataset(of_all)):
        pattern = protected(table, two, knowledge=knowledge, protection=asked)
        assert float(pattern.audit["a", "b"]["upper"][1, 1]) == 5
    signed = xr.DataArray([[-4, 2], [3, 1]], dims=("a", "b"))
    pattern = protected(signed, signed == 1, knowledge=(0, 2), protection=0.7)
    assert pattern.knowledge["a", "b"]["lower"].values.tolist() == [[-np.inf] * 2, [-np.inf, 0]]


def with_patterns(most, knowledge_of):
    """Small tables with the pattern for those of which there is one, and the tables
    that agree with what is published."""
    for seed in range(20):
        table = drawn(np.random.default_rng(seed), (3, 3), most)
        primary = (table > 0) & (table < 3)
        try:
            pattern = protected(table, primary, knowledge=knowledge_of(table, primary))
        except AttackError:
            continue
        totals = (tuple(table.values.sum(axis=axis).tolist()) for axis in (1, 0))
        every = np.array(tables_with_totals(*totals))
        hidden = (pattern.status["a", "b"] != "safe").values
        fits = every[(every[:, ~hidden] == table.values[~hidden]).all(axis=1)]
        yield primary.values, pattern, hidden, fits


def test_who_sees_only_what_is_suppressed_knows_no_more():
    """An attacker who cannot tell primary cells from others, but knows that of the
    cells that belong together one is primary, leaves at least the audit's interval."""
    checked = 0
    for primary, pattern, hidden, fits in with_patterns(15, lambda *_: (1, 2)):
        for part in parts_of(hidden):
            fits = fits[(part & (fits > 0) & (fits < 3)).any(axis=(1, 2))]
        audit = pattern.audit["a", "b"]
        for at in np.argwhere(primary):
            values = fits[:, at[0], at[1]]
            assert values.min() <= audit["lower"].values[*at] < audit["upper"].values[*at]
            assert audit["upper"].values[*at] <= values.max()
            checked += 1
    assert checked > 10


def parts_of(hidden):
    """Sets of suppressed cells that share no row or column with another set."""
    left = {tuple(map(int, at)) for at in np.argwhere(hidden)}
    while left:
        part = {left.pop()}
        while near := {c for c in left if any(c[0] == d[0] or c[1] == d[1] for d in part)}:
            part |= near
            left -= near
        yield np.array([[(i, j) in part for j in range(3)] for i in range(3)])


def strictest(table, primary):
    """What is known to those who can tell primary cells: no other cell is from 1 to 2.
    That is no interval, and ranges that end at what an empty cell holds are on the safe
    side."""
    return xr.Dataset(
        {
            "lower": xr.where(primary, 1, xr.where(table > 0, 3, 0)),
            "upper": xr.where(primary, 2.0, xr.where(table > 0, np.inf, 0)),
        }
    )


def test_who_can_tell_and_knows_that_no_other_cell_is_small():
    checked = 0
    for primary, _, hidden, fits in with_patterns(26, strictest):
        small = (fits > 0) & (fits < 3)
        fits = fits[(small[:, hidden] == primary[hidden]).all(axis=1)]
        assert (np.ptp(fits[:, primary], axis=0) >= 1).all()
        checked += int(primary.sum())
    assert checked > 5


def small_tables(seed, shape=(9, 8)):
    generator = np.random.default_rng(seed)
    table = xr.DataArray(generator.poisson(generator.gamma(0.5, 6, shape)), dims=("a", "b"))
    return table, (table > 0) & (table < 3)


def worked_out(pattern, primary, **options):
    """Primary cells that an attacker knows exactly."""
    found = tc.attacker_bounds(pattern.release, cells=primary, progressbar=False, **options)
    return int(found["disclosed"].sum())


def test_what_the_rule_gives_away_without_and_with_protection_against_it():
    table, primary = small_tables(3)
    knowledge = ranges_of(table, primary, 1, 2)
    plain = protected(table, primary)
    assert worked_out(plain, primary) == 0
    assert worked_out(plain, primary, knowledge=knowledge) == 14
    pattern = protected(table, primary, knowledge=(1, 2))
    assert worked_out(pattern, primary, knowledge=knowledge) == 0
    assert worked_out(pattern, primary, knowledge=pattern.knowledge) == 0
    assert pattern.cost > plain.cost
    same = protected(table, primary, knowledge=knowledge)
    assert (same.cost, same.gap) == (pattern.cost, 0)


def test_a_table_too_large_for_the_cheapest_pattern(monkeypatch):
    monkeypatch.setattr(search, "_SMALL", 0)
    table, primary = small_tables(4)
    pattern = protected(table, primary, knowledge=(1, 2))
    assert 0 < pattern.bound <= pattern.cost
    assert worked_out(pattern, primary, knowledge=ranges_of(table, primary, 1, 2)) == 0


def test_single_contributors_who_know_the_rule():
    table, primary = small_tables(5)
    singletons = table == 1
    pattern = protected(table, primary, singletons=singletons, knowledge=(1, 2))
    knowledge = ranges_of(table, primary, 1, 2)
    hidden = pattern.release.suppressed
    for at in np.argwhere(singletons.values):
        known, others = hidden.copy(), primary.copy()
        known[tuple(at)], others[tuple(at)] = False, False
        found = tc.attacker_bounds(
            tc.Suppression(table, known), cells=others, knowledge=knowledge, progressbar=False
        )
        assert not found["disclosed"].any()


def test_contributions_as_attacker_bounds_takes_them():
    """A respondent of 400, not the largest, knows that the cell holds 801 at least."""
    table = xr.DataArray([[900, 30, 70], [40, 820, 90], [60, 55, 65]], dims=("a", "b"))
    asked = xr.Dataset({"lower": table - 30, "upper": table + 30})
    primary = table == 30
    plain = protected(table, primary, protection=asked)
    assert plain.status["a", "b"][1, 1] == "secondary" or plain.cost < 200
    pattern = protected(table, primary, protection=asked, knowledge={(0, 0): 400, (1, 1): 400})
    assert pattern.knowledge["a", "b"]["lower"].values.max() == 801
    found = tc.attacker_bounds(
        pattern.release, knowledge={(0, 0): 400, (1, 1): 400}, progressbar=False
    ).isel(a=0, b=1)
    audit = pattern.audit["a", "b"].isel(a=0, b=1)
    assert (found["lower"], found["upper"]) == (audit["lower"], audit["upper"])
    assert (audit["lower"], audit["upper"] >= 60) == (0, True)


def test_contributions_to_a_table_that_is_not_released():
    table = xr.DataArray([[[9, 1], [2, 8]], [[3, 4], [6, 5]]], dims=("a", "b", "c"))
    linked = [("a", "b"), ("a", "c"), ("b", "c")]
    primary = {("a", "b"): table.sum("c") == 7}
    pattern = protected(table, primary, linked=linked, knowledge={(1, 0, 1): 1})
    found = tc.attacker_bounds(
        pattern.release,
        margin=("a", "b"),
        cells=primary["a", "b"],
        knowledge=pattern.knowledge,
        progressbar=False,
    )
    assert found.identical(pattern.audit["a", "b"])
    assert float(found["lower"].min()) >= 3


def test_protection_is_what_knowledge_leaves_at_most():
    table, primary = small_tables(6, (7, 6))
    pattern = protected(table, primary, protection=0.2, knowledge=(1, 2))
    assert float(pattern.audit["a", "b"]["n_values"].min()) == 2  # of the 32 asked for
    asked = xr.Dataset({"lower": table - 1, "upper": table + 5}).clip(min=0)
    pattern = protected(table, primary, protection=asked, knowledge=(1, 2))
    audit = pattern.audit["a", "b"]
    assert (audit["lower"].where(primary, 1) == 1).all()
    assert (audit["upper"].where(primary, 2) == 2).all()


def test_magnitudes_in_steps():
    table = xr.DataArray([[2.05, 5.0, 1.5], [0.8, 1.9, 2.2], [1.7, 3.2, 1.2]], dims=("a", "b"))
    pattern = protected(table, table < 1, decimals=2, protection=0.1, knowledge=(0, 0.99))
    assert pattern.audit["a", "b"]["upper"].values[1, 0] == 0.99
    assert pattern.audit["a", "b"]["lower"].values[1, 0] == 0


TABLE = xr.DataArray([[20, 50, 7], [8, 19, 30]], dims=("a", "b"))
RANGES = xr.Dataset({"lower": TABLE - 1, "upper": TABLE + 1})


@pytest.mark.parametrize(
    ("knowledge", "error", "message"),
    [
        ((1, 7), ParameterError, r"must hold for the true value: not so at a=1, b=0$"),
        ((8, 8), AttackError, r"a=1, b=0: the knowledge alone leaves a single value"),
        ((1, 2, 3), ParameterError, r"the least and the most .* got \(1, 2, 3\)"),
        (("1", 2), ParameterError, r"the least and the most .* got \('1', 2\)"),
        ((9, 8), ParameterError, r"upper from lower on or infinite: not so at a=1, b=0"),
        (3, ParameterError, r"knowledge must be a Dataset .* got 3"),
        ({"a": RANGES.sum("b")}, ParameterError, r"whose cells may be suppressed.*got \('a',\)"),
        (RANGES[["lower"]], TableError, r"'lower' and 'upper'"),
        (RANGES.isel(b=[0, 1]), TableError, r"knowledge\['lower'\] must have the sizes"),
        (RANGES * np.nan, TableError, r"must not be missing: a=0, b=0"),
        (RANGES + 2, ParameterError, r"must hold for the true value: not so at a=0, b=0$"),
        ({(1, 9): 3}, ParameterError, r"'b' has no category 9"),
        ({(1, 0): 4}, ParameterError, r"must hold for the true value: not so at a=1, b=0$"),
    ],
)
def test_bad_knowledge(knowledge, error, message):
    with pytest.raises(error, match=message):
        protected(TABLE, TABLE == 8, knowledge=knowledge)
