"""What holds for every magnitude table: a slow twin in exact fractions, and
symmetries."""

from fractions import Fraction
from itertools import combinations
from math import log2

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import taciturn as tc

DIMS = ["a", "b"]
RULES = [
    tc.Dominance(1, 0.75),
    tc.Dominance(2, 0.85),
    tc.PPercent(10),
    tc.magnitude.PQ(10, 50),
    tc.magnitude.MinimumFrequency(3),
]
TWIN = settings(deadline=None, max_examples=25)
SETTINGS = settings(deadline=None, max_examples=12)


@st.composite
def records(draw, *, weighted=False, negative=True) -> pd.DataFrame:
    """Few firms with few amounts, so that ties, zeros and single contributors are
    common."""
    rows = draw(st.integers(1, 12))
    firms = draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
    holding = draw(st.lists(st.sampled_from([None, "G", "H"]), min_size=5, max_size=5))
    weight = [
        1 + Fraction(k, 4) for k in draw(st.lists(st.integers(0, 12), min_size=5, max_size=5))
    ]
    amounts = st.one_of(
        st.just(0), st.integers(-3 if negative else 0, 3), st.integers(-200 if negative else 0, 200)
    )
    return pd.DataFrame(
        {
            "a": draw(st.lists(st.sampled_from("pqr"), min_size=rows, max_size=rows)),
            "b": draw(st.lists(st.sampled_from("st"), min_size=rows, max_size=rows)),
            "x": [x / 10 for x in draw(st.lists(amounts, min_size=rows, max_size=rows))],
            "firm": firms,
            "holding": [holding[firm] for firm in firms],
            "weight": [float(weight[firm]) if weighted else 1.0 for firm in firms],
            "asked": draw(st.lists(st.booleans(), min_size=rows, max_size=rows)),
        }
    )


def twin(
    frame: pd.DataFrame, dims: tuple[str, ...], unit: str, *, weighted: bool, ranks: int
) -> dict:
    """Statistics of each cell that has a record, contribution after contribution."""
    cells: dict = {}
    for number, row in enumerate(frame.to_dict("records")):
        who = {"row": number, "firm": row["firm"]}.get(unit)
        if unit == "holding":
            who = row["holding"] if row["holding"] in ("G", "H") else row["firm"]
        cell = cells.setdefault(tuple(row[dim] for dim in dims), {})
        x, w, asked = cell.get(who, (Fraction(0), Fraction(1), False))
        w = Fraction(row["weight"]) if weighted else w
        cell[who] = (x + Fraction(round(10 * row["x"]), 10), w, asked or row["asked"])
    return {key: statistics(list(cell.values()), ranks) for key, cell in cells.items()}


def statistics(contributions: list[tuple[Fraction, Fraction, bool]], ranks: int) -> dict:
    line = sorted(((abs(x), w) for x, w, _ in contributions), reverse=True)
    total = sum(x * w for x, w in line)
    asked = [(abs(x), w) for x, w, yes in contributions if yes]
    shares = [(float(x / total), float(w)) for x, w in line if x] if total else []
    return {
        "total": sum(x * w for x, w, _ in contributions),
        "absolute_total": total,
        "contributors": sum(w for _, w in line),
        "largest": [upto(line, rank + 1) - upto(line, rank) for rank in range(ranks)],
        "entropy": -sum(w * p * log2(p) for p, w in shares),
        "requests": sum(w for _, w in asked),
        "requested": max((x for x, _ in asked), default=Fraction(0)),
    }


def upto(line: list[tuple[Fraction, Fraction]], length: int) -> Fraction:
    """What the first `length` of a line of contributions, each as long as its weight,
    come to."""
    held, room = Fraction(0), Fraction(length)
    for x, w in line:
        held, room = held + x * min(w, room), room - min(w, room)
    return held


@TWIN
@given(
    st.booleans().flatmap(
        lambda weighted: st.tuples(st.just(weighted), records(weighted=weighted))
    ),
    st.data(),
)
def test_tables_are_as_of_the_slow_twin(drawn, data):
    weighted, frame = drawn
    unit = data.draw(st.sampled_from(["row", "firm"] if weighted else ["row", "firm", "holding"]))
    ranks = data.draw(st.integers(1, 4))
    options = {
        "contributor": None if unit == "row" else "firm",
        "holding": "holding" if unit == "holding" else None,
        "sampling_weights": "weight" if weighted else None,
    }
    tables = tc.magnitude.tabulate_margins(
        frame, DIMS, "x", decimals=1, largest=ranks, request="asked", **options
    )
    assert list(tables) == [dims for size in (2, 1, 0) for dims in combinations(DIMS, size)]
    for dims, table in tables.items():
        expected = twin(frame, dims, unit, weighted=weighted, ranks=ranks)
        assert int((table["contributors"] > 0).sum()) == len(expected)
        for key, cell in expected.items():
            found = table.sel(dict(zip(dims, key, strict=True)))
            for name in ("total", "absolute_total", "contributors", "requests", "requested"):
                assert found[name].item() == float(cell[name])
            assert found["largest"].values.tolist() == [float(x) for x in cell["largest"]]
            assert found["entropy"].item() == pytest.approx(cell["entropy"], abs=1e-12)


UNITS = {
    "row": {},
    "firm": {"contributor": "firm"},
    "holding": {"contributor": "firm", "holding": "holding"},
    "weight": {"contributor": "firm", "sampling_weights": "weight"},
    "weighted row": {"sampling_weights": "weight"},
}


@TWIN
@given(records(weighted=True), st.sampled_from([*UNITS]), st.integers(1, 4))
def test_the_largest_of_a_total_are_at_most_those_of_its_parts_together(frame, unit, ranks):
    """With negative contributions and weights with decimals, too."""
    tables = tc.magnitude.tabulate_margins(
        frame, DIMS, "x", decimals=1, largest=ranks, **UNITS[unit]
    )
    for names, total in tables.items():
        for finer, parts in tables.items():
            if set(names) < set(finer):
                step = 10 ** total.attrs["decimals"]
                held, most = (np.rint(table["largest"] * step) for table in (total, parts))
                most = most.sum([name for name in finer if name not in names])
                assert (held.cumsum("rank") <= most.cumsum("rank")).all()


GROUPS = pd.DataFrame({"a": list("pqr"), "group": ["G", "G", "H"]})


@TWIN
@given(records(weighted=True, negative=False), st.sampled_from([*UNITS]), st.data())
def test_every_table_that_is_made_is_read(frame, unit, data):
    """With weights the numbers of contributors are rounded, and the largest not given:
    a fraction of a contributor has a rank of its own, and none in a whole number.
    """
    weighted, asked = "weight" in unit, data.draw(st.booleans())
    waived = not weighted and data.draw(st.booleans())
    whole = weighted and data.draw(st.booleans())
    if whole:
        frame["weight"] = np.floor(frame["weight"])
    agreed = data.draw(st.lists(st.booleans(), min_size=len(frame), max_size=len(frame)))
    tables = tc.magnitude.tabulate_margins(
        frame.assign(agreed=agreed),
        DIMS,
        "x",
        decimals=1,
        largest=4,
        hierarchies={"a": GROUPS},
        request="asked" if asked else None,
        waiver="agreed" if waived else None,
        **UNITS[unit],
    )
    ranks = 0 if weighted and not whole else data.draw(st.integers(0, 4))
    largest, waiver = [f"x{rank + 1}" for rank in range(ranks)], ["waivers", "unwaived"]
    columns = ["total", "contributors", *(waiver if waived else [])]
    rows = []
    for names, table in tables.items():
        for at in np.ndindex(table["total"].shape):
            cell = table.isel(dict(zip(names, at, strict=True)))
            labels = {"a" if name == "group" else name: str(cell[name].item()) for name in names}
            numbers = {name: cell[name].item() for name in columns}
            numbers["contributors"] = int(numbers["contributors"] + 0.5)
            sizes = dict(zip(largest, cell["largest"].values.tolist(), strict=False))
            rows.append({"a": "Total", "b": "Total"} | labels | numbers | sizes)
    found = tc.magnitude.read_margins(
        pd.DataFrame(rows),
        DIMS,
        "total",
        contributors="contributors",
        largest=largest,
        waiver=tuple(waiver) if waived else None,
        hierarchies={"a": GROUPS},
        decimals=tables[()].attrs["decimals"],
    )
    assert set(found) == set(tables)
    for names, table in tables.items():
        own = found[names].sel({name: table[name].values for name in names})
        assert np.array_equal(own["total"], table["total"])
        assert np.array_equal(own["largest"], table["largest"][..., :ranks])
        assert np.array_equal(own["contributors"], np.floor(table["contributors"] + 0.5))
        for name in columns[2:]:
            assert np.array_equal(own[name], table[name])


@SETTINGS
@given(records(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_columns_does_not_matter(frame, random):
    rows, columns = list(range(len(frame))), list(frame.columns)
    random.shuffle(rows)
    random.shuffle(columns)
    categories = {"a": list("pqr"), "b": list("st")}
    options = {"contributor": "firm", "holding": "holding", "decimals": 1, "categories": categories}
    first = tc.tabulate_magnitude(frame, DIMS, "x", **options)
    second = tc.tabulate_magnitude(frame.iloc[rows][columns], DIMS, "x", **options)
    np.testing.assert_allclose(
        first["entropy"].values, second["entropy"].values, rtol=1e-12, atol=1e-12
    )
    assert first.drop_vars("entropy").identical(second.drop_vars("entropy"))
    found, again = (tc.sensitive_cells(table, RULES) for table in (first, second))
    assert found.identical(again)


@SETTINGS
@given(records(), st.integers(1, 100))
def test_p_percent_is_pq_with_q_of_100(frame, p):
    table = tc.tabulate_magnitude(frame, DIMS, "x", decimals=1)
    first, second = tc.PPercent(p), tc.magnitude.PQ(p, 100)
    assert tc.sensitive_cells(table, first)["sensitive"].equals(
        tc.sensitive_cells(table, second)["sensitive"]
    )
    assert tc.magnitude.protection_levels(table, first).equals(
        tc.magnitude.protection_levels(table, second)
    )


@SETTINGS
@given(records(), st.permutations(RULES))
def test_combined_rules_and_levels(frame, rules):
    table = tc.tabulate_magnitude(frame, DIMS, "x", decimals=1, largest=2)
    (first, second), masks = (
        rules[:2],
        {rule: tc.sensitive_cells(table, rule)["sensitive"] for rule in rules[:2]},
    )
    for combined, expected in (
        (first | second, masks[first] | masks[second]),
        (first & second, masks[first] & masks[second]),
    ):
        assert tc.sensitive_cells(table, combined)["sensitive"].equals(expected)
        assert ((tc.magnitude.protection_levels(table, combined) > 0) == expected).all()


@SETTINGS
@given(records(), st.sampled_from([*RULES[:4]]))
def test_the_level_is_the_least_that_makes_a_rule_safe(frame, rule):
    table = tc.tabulate_magnitude(frame, DIMS, "x", decimals=1)
    level = tc.magnitude.protection_levels(table, rule)
    for added, still in ((level, False), ((level - 0.1).clip(0), True)):
        total = table["absolute_total"] + added
        widened = table.assign(absolute_total=total, share=table["largest"] / total)
        found = tc.sensitive_cells(widened, rule)["sensitive"]
        assert ((found == still) | (level == 0)).all()


@SETTINGS
@given(records(negative=False))
def test_risk_is_bounded_and_totals_add_up(frame):
    tables = tc.magnitude.tabulate_margins(frame, DIMS, "x", decimals=1, contributor="firm")
    full = tables["a", "b"]
    for dims, table in tables.items():
        over = [dim for dim in DIMS if dim not in dims]
        np.testing.assert_allclose(table["total"], full["total"].sum(over), rtol=1e-12)
        assert ((table["entropy"] >= 0) | table["entropy"].isnull()).all()
    if float(full["total"].sum()) > 0:
        for variant in ("consistent", "handbook"):
            risk = tc.magnitude.magnitude_risk(full, variant=variant)
            assert all(-1e-12 <= risk[name].item() <= 1 + 1e-12 for name in risk)
