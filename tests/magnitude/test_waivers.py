"""Contributors who waived protection, and categories that need none."""

from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import taciturn as tc
from taciturn.cli import cli
from taciturn.errors import ParameterError, TableError
from taciturn.magnitude import PQ, EntropyRule, MinimumFrequency, Request, UnsafeZeros
from taciturn.magnitude.contradictions import refuse_other_waivers

RULES = [tc.PPercent(10), PQ(10, 50), tc.Dominance(1, 0.6), tc.Dominance(2, 0.8)]


def waived_table(*cells: list[tuple[int, bool]], **options):
    """Cells named 0, 1, … of contributions and whether each is waived."""
    rows = [(i, x, waived) for i, cell in enumerate(cells) for x, waived in cell]
    frame = pd.DataFrame(rows, columns=["cell", "x", "waived"])
    return tc.tabulate_magnitude(frame, "cell", "x", waiver="waived", **options)


def level(rule, cell: list[tuple[int, bool]]) -> Fraction:
    """The largest excess over all attackers and all whom they must not recognise; above
    0 where the cell is sensitive.
    """
    total = sum(x for x, _ in cell)
    if isinstance(rule, tc.Dominance):
        size = min(rule.n, len(cell))
        groups = [group for group in combinations(cell, size) if not all(w for _, w in group)]
        tops = [Fraction(sum(x for x, _ in group)) for group in groups]
        return max((top / Fraction(str(rule.k)) - total for top in tops), default=Fraction(0))
    ratio = Fraction(rule.p) / (100 if isinstance(rule, tc.PPercent) else rule.q)
    pairs = [*permutations(cell, 2)] if len(cell) > 1 else [(cell[0], (0, True))]
    excess = [ratio * x - (total - x - own) for (x, waived), (own, _) in pairs if not waived]
    return max(excess, default=Fraction(0))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rules_are_those_of_all_attackers_and_all_who_waived_nothing(rule):
    generator = np.random.default_rng(3)
    cells = [
        [(int(x), bool(w)) for x, w in zip(generator.integers(0, 60, size), waived, strict=True)]
        for size in (1, 2, 3, 4, 5)
        for waived in generator.integers(0, 2, (25, size))
    ]
    table = waived_table(*cells, largest=3)
    expected = [level(rule, cell) for cell in cells]
    found = tc.sensitive_cells(table, rule)
    assert found["sensitive"].values.tolist() == [excess > 0 for excess in expected]
    levels = tc.magnitude.protection_levels(table, rule).values.tolist()
    assert levels == [max(0, -(-excess // 1)) for excess in expected]
    both = {all(w for _, w in cell) for cell in cells}
    assert both == {True, False}
    assert 0 < found["sensitive"].sum() < len(cells)


def test_the_handbooks_rule():
    # The largest, 90, has waived: s = 6 and r = 90, and what is left is 4 >= 10 % of 6.
    table = waived_table([(90, True), (6, False), (4, False)], [(90, False), (6, True), (4, True)])
    found = tc.sensitive_cells(table, tc.PPercent(10))
    assert found["sensitive"].values.tolist() == [False, True]
    assert found["reason"].values.tolist()[1] == (
        "another of 3 estimates the largest contribution without a waiver, 90, to within 4.4 %"
        " (PPercent(10))"
    )
    # With 96 of the cell theirs, the largest and the next who did not waive dominate.
    dominance = tc.sensitive_cells(table, tc.Dominance(2, 0.9))
    assert dominance["sensitive"].values.tolist() == [True, True]
    assert tc.sensitive_cells(table, tc.Dominance(1, 0.5))["sensitive"].values.tolist() == [
        False,
        True,
    ]


@pytest.mark.parametrize("rule", [MinimumFrequency(3), UnsafeZeros(5), EntropyRule(1.0)], ids=str)
def test_other_rules_hold_unless_all_have_waived(rule):
    table = waived_table([(0, True), (0, True)], [(0, False), (0, True)], [(9, True)])
    found = tc.sensitive_cells(table, rule)
    assert found["sensitive"].values.tolist() == [False, True, False]
    assert float(found["unsafe_share"]) == 1 / 3
    assert tc.magnitude.protection_levels(table, rule).values.tolist()[::2] == [0, 0]


@pytest.mark.parametrize("rule", [*RULES[:2], MinimumFrequency(3), UnsafeZeros(1)], ids=str)
def test_where_no_cell_is_judged_no_contributions_are_needed(rule):
    cells = pd.DataFrame([("A", 60, 1, 1, 0), ("B", 40, 2, 2, 0)], columns=COLUMNS[:5])
    waived, plain = (
        of_cells(cells, largest=[], waiver=waiver)["cell",] for waiver in (WAIVER, None)
    )
    for table, safe in ((waived, None), (plain, {"cell": ["A", "B"]})):
        found = tc.sensitive_cells(table, rule, safe=safe)
        assert found["sensitive"].values.tolist() == [False, False]
        assert found["reason"].values.tolist() == ["", ""]
    assert tc.magnitude.protection_levels(waived, rule).values.tolist() == [0, 0]


def test_a_table_of_nothing_but_waivers_has_no_sensitive_cell():
    table = waived_table([(9, True)], [(5, True), (1, True)])
    rules = [*RULES, MinimumFrequency(3), UnsafeZeros(1), EntropyRule(1.0)]
    assert not tc.sensitive_cells(table, rules)["sensitive"].any()
    assert not tc.magnitude.protection_levels(table, rules).any()


FIRMS = pd.DataFrame(
    {
        "area": list("AAAABB"),
        "firm": list("ffghfg"),
        "group": [None, None, "G", "G", None, "G"],
        "x": [5, 6, 7, 8, 9, 10],
        "agreed": [1, 0, 1, 1, 1, 1],
        "asked": [0, 0, 0, 1, 0, 0],
    }
)


@pytest.mark.parametrize(
    ("options", "waivers", "unwaived"),
    [
        # f has two rows in A, one without; all of its rows in B are waived.
        ({"contributor": "firm"}, {"A": 2, "B": 2, "": 2}, {"A": 11, "B": 0, "": 20}),
        (
            {"contributor": "firm", "holding": "group"},
            {"A": 1, "B": 2, "": 1},
            {"A": 11, "B": 0, "": 20},
        ),
        # h asked, and so has not waived.
        (
            {"contributor": "firm", "request": "asked"},
            {"A": 1, "B": 2, "": 1},
            {"A": 11, "B": 0, "": 20},
        ),
        ({"request": "asked"}, {"A": 2, "B": 2, "": 4}, {"A": 8, "B": 0, "": 8}),
    ],
)
def test_waivers_are_counted_from_the_records_of_each_total(options, waivers, unwaived):
    tables = tc.magnitude.tabulate_margins(FIRMS, "area", "x", waiver="agreed", **options)
    for name, expected in (("waivers", waivers), ("unwaived", unwaived)):
        found = tables["area",][name].to_series().to_dict() | {"": tables[()][name].item()}
        assert found == expected


def aggregated(tables):
    """A row for each cell of a table of one variable and its total."""
    rows = []
    for names, table in tables.items():
        for label in table["cell"].values if names else ["Total"]:
            cell = table.sel(cell=label) if names else table
            first, second = cell["largest"].values[:2]
            numbers = [cell[name].item() for name in ("total", "contributors", *WAIVER)]
            rows.append((str(label), *numbers, first, second))
    columns = ["cell", "x", "n", *WAIVER, "first", "second"]
    return pd.DataFrame(rows, columns=columns)


WAIVER = ("waivers", "unwaived")


def of_cells(frame, **options):
    given = {"contributors": "n", "largest": ["first", "second"], "waiver": WAIVER}
    return tc.magnitude.read_margins(frame, "cell", "x", **{**given, **options})


def test_aggregated_tables_have_waivers_as_records_do():
    generator = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "cell": generator.integers(0, 40, 130),
            "x": generator.integers(1, 60, 130),
            "waived": generator.integers(0, 2, 130),
        }
    )
    tables = tc.magnitude.tabulate_margins(frame, "cell", "x", waiver="waived")
    found = of_cells(aggregated(tables))
    checked = 0
    for rule in (*RULES, MinimumFrequency(3), UnsafeZeros(5)):
        for names, table in tables.items():
            expected = tc.sensitive_cells(table, rule)["sensitive"].values
            assert tc.sensitive_cells(found[names], rule)["sensitive"].values.tolist() == (
                expected.tolist()
            )
            levels = tc.magnitude.protection_levels
            assert levels(found[names], rule).values.tolist() == (
                levels(table, rule).values.tolist()
            )
            checked += int(expected.sum())
    assert checked > 10


@pytest.mark.parametrize(
    ("column", "given", "message"),
    [
        ("waivers", 4, "row 1 of .* has more waivers in 'waivers' than contribute"),
        ("waivers", 3, "row 1 of .* has a contribution in 'unwaived', and all have waived"),
        ("unwaived", 35, "row 1 of .* has a contribution in 'unwaived' that is none of the"),
        ("unwaived", 10, "row 1 of .* has no contribution in 'unwaived' as large as the waivers"),
        ("unwaived", "", "row 1 of .* has nothing in 'unwaived', and not all have waived"),
    ],
)
def test_waivers_that_cannot_be(column, given, message):
    cells = [(label, 60, 3, 1, 15, 40, 15) for label in ("A", "Total")]
    frame = pd.DataFrame(cells, columns=["cell", "x", "n", *WAIVER, "first", "second"])
    assert of_cells(frame)[()]["waivers"].item() == 1
    frame = frame.astype(object)
    frame.loc[0, column] = given
    with pytest.raises(TableError, match=message):
        of_cells(frame)


def is_accepted(total, number, ranks, waivers, unwaived):
    amounts = [np.array([value]) for value in (total, *ranks)]
    waived = [np.array([waivers]), np.array([unwaived])]
    try:
        refuse_other_waivers(
            np.array([number]), amounts, waived, np.array([False]), WAIVER, "cells"
        )
    except TableError:
        return False
    return True


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_waivers_are_accepted_where_some_contributions_have_them(kept):
    """All cells of one to four contributors of 0 to 4: with a largest contribution
    exactly those are accepted that can be.
    """
    possible = {}
    for number in (1, 2, 3, 4):
        for sizes in combinations_with_replacement(range(4, -1, -1), number):
            ranks = (*sizes, *[0] * kept)[:kept]
            for waived in product([False, True], repeat=number):
                others = [x for x, own in zip(sizes, waived, strict=True) if not own]
                key = (sum(sizes), number, ranks, sum(waived))
                possible.setdefault(key, set()).add(max(others, default=0))
    for key, unwaived in possible.items():
        accepted = {x for x in range(key[0] + 2) if is_accepted(*key, x)}
        assert accepted == unwaived if kept else accepted >= unwaived


def test_waivers_are_two_columns():
    with pytest.raises(ParameterError, match=r"waiver must name two columns, .* got \['n'\]"):
        of_cells(pd.DataFrame(), waiver="n")


def test_a_request_stands_above_a_waiver():
    frame = FIRMS.assign(asked=1)
    table = tc.tabulate_magnitude(frame, "area", "x", waiver="agreed", request="asked")
    assert tc.sensitive_cells(table, Request(0.5))["sensitive"].values.tolist() == [False, True]


def test_the_largest_who_waived_nothing_is_protected_if_it_asked():
    """All cells of one to three contributors, each of whom waived, asked or neither."""
    states = list(product((50, 45, 5), ((1, 0), (0, 0), (0, 1), (1, 1))))
    cells = [cell for number in (1, 2, 3) for cell in combinations_with_replacement(states, number)]
    rows = [(i, x, *said) for i, cell in enumerate(cells) for x, said in cell]
    frame = pd.DataFrame(rows, columns=["cell", "x", "agreed", "asked"])
    table = tc.tabulate_magnitude(frame, "cell", "x", waiver="agreed", request="asked")
    expected = []
    for cell in cells:
        total = sum(x for x, _ in cell)
        # Who asks has waived nothing.
        left = [(x, asked) for x, (waived, asked) in cell if asked or not waived]
        first = max((x for x, _ in left), default=0)
        asked = any(own and x == first for x, own in left)
        expected.append(Fraction(first * 10, 3) - total if asked else Fraction(0))
    rule = Request(0.3)
    found = tc.sensitive_cells(table, rule)
    assert found["sensitive"].values.tolist() == [excess > 0 for excess in expected]
    assert ((50, (1, 0)), (45, (0, 1)), (5, (0, 0))) in cells
    levels = tc.magnitude.protection_levels(table, rule).values.tolist()
    assert levels == [max(0, -(-excess // 1)) for excess in expected]
    at = cells.index(((50, (1, 0)), (45, (0, 1)), (5, (0, 0))))
    assert found["reason"].values[at] == (
        "largest 1 of 3 contributors, at least one without a waiver, holds 45.0 % of 100 and asked"
        " for protection (Request(0.3))"
    )


def test_refusals():
    with pytest.raises(ParameterError, match=r"sampling_weights cannot be given with waiver"):
        tc.tabulate_magnitude(FIRMS, "area", "x", waiver="agreed", sampling_weights="firm")
    with pytest.raises(ParameterError, match="'x' is given in two roles"):
        tc.tabulate_magnitude(FIRMS, "area", "x", waiver="x")
    with pytest.raises(TableError, match=r"'agreed' must be 0 or 1, or .*: row 2 .* holds 'maybe'"):
        tc.tabulate_magnitude(
            FIRMS.assign(agreed=["1", "maybe", *"1111"]), "area", "x", waiver="agreed"
        )


SAFE = pd.DataFrame(
    [(a, b, x) for a in "abc" for b in "xyz?" for x in (9, 8, 7)] + [("a", "?", 500)],
    columns=["area", "trade", "sales"],
)
SECTORS = pd.DataFrame({"trade": list("xyz?"), "sector": ["1", "1", "2", "?"]})


def test_no_cell_of_a_safe_category_is_sensitive():
    table = tc.tabulate_magnitude(SAFE, ["area", "trade"], "sales")
    assert int(tc.sensitive_cells(table, tc.PPercent(10))["sensitive"].sum()) == 1
    for safe in ({"trade": "?"}, {"area": ["a", "b"]}, {"area": "c", "trade": ("?",)}):
        assert not tc.sensitive_cells(table, tc.PPercent(10), safe=safe)["sensitive"].any()
    elsewhere = tc.sensitive_cells(table, tc.PPercent(10), safe={"trade": "x", "area": "b"})
    assert elsewhere["sensitive"].sel(trade="?").values.tolist() == [True, False, False]


def test_what_is_safe_is_so_on_the_levels_above_it():
    done = tc.protect_table(
        SAFE.query("area != 'c'"),
        ["area", "trade"],
        "sales",
        tc.PPercent(10) | tc.Dominance(1, 0.5),
        safe={"trade": "?"},
        hierarchies={"trade": SECTORS},
        random_seed=0,
        progressbar=False,
    )
    assert {names: int(cells["sensitive"].sum()) for names, cells in done.sensitive.items()} == {
        ("area", "trade"): 0,
        ("area", "sector"): 0,
        ("area",): 1,  # all trades together are no safe category
        ("trade",): 0,
        ("sector",): 0,
        (): 1,
    }


@pytest.mark.parametrize(
    ("safe", "message"),
    [
        ({"size": "?"}, r"safe must name variables of \['area', 'trade'\], got 'size'"),
        ({"trade": ["?", "w"]}, r"safe must name categories of 'trade', \['\?', 'x'.*got 'w'"),
        ("?", "safe must give categories by variable"),
    ],
)
def test_refused_safe_categories(safe, message):
    table = tc.tabulate_magnitude(SAFE, ["area", "trade"], "sales")
    with pytest.raises(ParameterError, match=message):
        tc.sensitive_cells(table, tc.PPercent(10), safe=safe)


def test_at_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SAFE.assign(agreed=[0] * 36 + [1]).to_csv("firms.csv", index=False)
    words = ["firms.csv", "--variables", "area,trade", "--value", "sales", "--rule", "nk:1,0.9"]

    def rules(*more):
        return CliRunner().invoke(cli, ["rules", *words, *more])

    assert "area x trade: 1 sensitive" in rules().output
    assert "area x trade: 0 sensitive" in rules("--waiver", "agreed").output
    assert "area x trade: 0 sensitive" in rules("--safe", "trade=?").output
    written = rules("--safe", "trade=?", "--safe", "area=b", "--output", "out.csv")
    assert written.exit_code == 0, written.output
    assert "suppressed" not in (tmp_path / "out.csv").read_text()
    refused = rules("--safe", "size=x")
    assert refused.exit_code == 1
    assert "--safe must be a variable of ['area', 'trade'] and a label" in str(refused.exception)


COLUMNS = ["cell", "x", "n", *WAIVER, "first"]
LARGE, SMALL = ("A", 100, 2, 0, 90, 90), ("B", 5, 4, 4, 0, 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [LARGE, ("B", 50, 4, 0, 20, 20), ("Total", 150, 6, 6, 0, 90)],
            "of the whole table from 6 to 6 must have no waiver in 'waivers', .*: 0 have none",
        ),
        (
            [LARGE, SMALL, ("Total", 105, 6, 5, 5, 90)],
            "of the whole table from 2 to 2 must have no waiver in 'waivers', .*: 1 have none",
        ),
        (
            [LARGE, ("B", 5, 4, 2, 2, 2), ("Total", 105, 4, 0, 90, 90)],
            None,  # who waived in B contributes to A, too
        ),
        (
            [LARGE, ("B", 5, 4, 2, 2, 2), ("Total", 105, 6, 2, 5, 90)],
            "'unwaived' of the whole table must be at least that of its parts, 90: it is 5",
        ),
    ],
)
def test_waivers_of_a_total_are_held_against_those_of_its_parts(rows, message):
    frame = pd.DataFrame(rows, columns=COLUMNS)
    if message is None:
        assert of_cells(frame, largest=["first"])[()]["unwaived"].item() == 90
        return
    with pytest.raises(TableError, match=message):
        of_cells(frame, largest=["first"])


def test_as_many_waive_in_a_total_as_can():
    """All ways in which one to four contributors of nothing waive in one or two parts:
    what is possible is accepted, and not that all waive where they cannot, which would
    make a cell safe.
    """
    states = [
        state
        for state in product((None, False, True), repeat=2)
        if any(waived is not None for waived in state)
    ]
    possible = {}
    for number in (1, 2, 3, 4):
        for held in combinations_with_replacement(states, number):
            parts = [
                [waived for waived in part if waived is not None]
                for part in zip(*held, strict=True)
            ]
            counts = tuple((len(part), sum(part)) for part in parts)
            everywhere = sum(False not in state for state in held)
            possible.setdefault((*counts, number), set()).add(everywhere)
    for (*parts, number), waivers in possible.items():
        accepted = set()
        for waived in range(number + 1):
            numbers = zip("AB", parts, strict=True)
            rows = [(label, 0, n, w, 0) for label, (n, w) in numbers]
            frame = pd.DataFrame([*rows, ("Total", 0, number, waived, 0)], columns=COLUMNS[:5])
            try:
                of_cells(frame, largest=[])
            except TableError:
                continue
            accepted.add(waived)
        assert accepted >= waivers
        assert max(accepted) == max(waivers)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("asked", [False, True])
def test_tables_of_records_with_waivers_come_back(seed, asked):
    generator, number = np.random.default_rng(seed), 4 * (seed + 1)
    frame = pd.DataFrame(
        {
            "cell": generator.choice(list("ABC"), number),
            "size": generator.choice(list("xy"), number),
            "firm": generator.integers(0, number // 2 + 1, number),
            "x": generator.integers(0, 9, number),
            "agreed": generator.random(number) < 0.7,
            "asked": generator.random(number) < 0.1,
        }
    )
    roles = {"contributor": "firm", "waiver": "agreed"} | ({"request": "asked"} if asked else {})
    dims = ["cell", "size"]
    tables = tc.magnitude.tabulate_margins(frame, dims, "x", largest=2, **roles)
    rows = []
    for names, table in tables.items():
        for at in np.ndindex(table["total"].shape):
            cell = table.isel(dict(zip(names, at, strict=True)))
            labels = [str(cell[dim].item()) if dim in names else "Total" for dim in dims]
            numbers = [cell[name].item() for name in ("total", "contributors", *WAIVER)]
            rows.append((*labels, *numbers, *cell["largest"].values))
    cells = pd.DataFrame(rows, columns=[*dims, "x", "n", *WAIVER, "first", "second"])
    given = {"contributors": "n", "largest": ["first", "second"], "waiver": WAIVER}
    found = tc.magnitude.read_margins(cells, dims, "x", **given)
    for names, table in tables.items():
        for name in WAIVER:
            assert np.array_equal(found[names][name].values, table[name].values)
