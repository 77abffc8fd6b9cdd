"""Sensitivity rules on cells whose contributions are written out."""

from itertools import product
from math import log2

import numpy as np
import pandas as pd
import pytest

import taciturn as tc
from taciturn.errors import ParameterError, TableError
from taciturn.magnitude import rule_from_text

LEAST = 1e-9


def table_of(
    *cells: list[int],
    asked: list[list[int]] | None = None,
    decimals: int = 0,
    largest: int = 5,
    **options,
):
    """A table of cells named 0, 1, … with these contributions."""
    rows = [(i, x) for i, cell in enumerate(cells) for x in cell]
    frame = pd.DataFrame(rows, columns=["cell", "x"])
    if asked is not None:
        frame["asked"] = [y for cell in asked for y in cell]
        options["request"] = "asked"
    return tc.tabulate_magnitude(
        frame,
        "cell",
        "x",
        categories={"cell": range(len(cells))},
        decimals=decimals,
        largest=largest,
        **options,
    )


def sensitive(rule, *cells, **options) -> list[bool]:
    return tc.sensitive_cells(table_of(*cells, **options), rule)["sensitive"].values.tolist()


def test_dominance_by_one():
    # 76 > 0.75 * 100; 75 is exactly on the boundary and passes.
    assert sensitive(tc.Dominance(1, 0.75), [76, 24], [75, 25], [74, 26]) == [True, False, False]


def test_dominance_by_several():
    # 50 + 40 > 0.85 * 100; 45 + 40 = 85; with one contributor fewer than n all are
    # taken: 1 > 0.85.
    assert sensitive(tc.Dominance(2, 0.85), [50, 40, 10], [45, 40, 15], [3]) == [True, False, True]


def test_the_handbooks_example_of_dominance():
    # X = 330 of 300, 20, 10: 300 / 330 > 0.85, and the bound must reach 300 / 0.85 =
    # 352.94.
    table = table_of([300, 20, 10], decimals=2)
    assert tc.sensitive_cells(table, tc.Dominance(1, 0.85))["sensitive"].item()
    assert (
        tc.magnitude.protection_levels(table, tc.Dominance(1, 0.85)).item() == 22.95
    )  # 352.9412 - 330 = 22.9412, rounded up


def test_the_handbooks_example_where_dominance_by_one_says_nothing():
    # X = 100,000 of 50,000 and 49,000: the second estimates the first as 51,000, 2 %
    # off.
    cell = [50_000, 49_000, 1_000]
    assert sensitive(tc.Dominance(1, 0.9), cell) == [False]
    assert sensitive(tc.PPercent(10), cell) == [True]
    assert sensitive(tc.PPercent(2), cell) == [False]  # exactly 2 % off
    assert sensitive(tc.PPercent(2.01), cell) == [True]


def test_the_handbooks_example_where_dominance_by_two_says_too_much():
    # X = 110,000 of 52,000 and 50,000: 60,000 for 52,000 is 15.4 % off, but 102,000 >
    # 110,000 * 100 / 110.
    cell = [52_000, 50_000, 8_000]
    assert sensitive(tc.PPercent(10), cell) == [False]
    assert sensitive(tc.Dominance(2, 0.909), cell) == [True]


def test_p_percent():
    # The rest of 9, 10, 11 beside 100 and 30, p = 10: 9 < 10 only.
    assert sensitive(tc.PPercent(10), [100, 30, 9], [100, 30, 10], [100, 30, 6, 5]) == [
        True,
        False,
        False,
    ]
    assert sensitive(tc.PPercent(10), [100], [50, 50], [0, 0]) == [True, True, False]


def test_the_manuals_example_of_a_holding():
    # Units: 60 + 40 + 10 = 110 >= 70 = 10 % of 700. Groups: 40 + 10 = 50 < 90 = 10 % of
    # 900.
    assert sensitive(tc.PPercent(10), [700, 200, 60, 40, 10], [900, 60, 40, 10]) == [False, True]


def test_pq():
    # q = 50, p = 10: half of the rest below a tenth of the largest, so the rest below
    # 20.
    assert sensitive(tc.magnitude.PQ(10, 50), [100, 30, 19], [100, 30, 20]) == [True, False]
    assert sensitive(tc.PPercent(20), [100, 30, 19], [100, 30, 20]) == [True, False]


def test_minimum_frequency():
    assert sensitive(tc.magnitude.MinimumFrequency(3), [5, 5], [5, 5, 0], []) == [
        True,
        False,
        False,
    ]


def test_entropy_rule():
    # H(3/4, 1/4) / log2 2 = 0.8113; equal contributions have a ratio of 1, a single one
    # 0.
    ratio = -(3 / 4) * log2(3 / 4) - (1 / 4) * log2(1 / 4)
    cells = ([3, 1], [5, 5, 5], [9], [0, 0])
    assert sensitive(tc.magnitude.EntropyRule(ratio + 2 * LEAST), *cells) == [
        True,
        False,
        True,
        True,
    ]
    assert sensitive(tc.magnitude.EntropyRule(ratio), *cells) == [False, False, True, True]
    assert sensitive(tc.magnitude.EntropyRule(1), *cells) == [True, False, True, True]
    assert sensitive(tc.magnitude.EntropyRule(0), *cells) == [False] * 4


def test_entropies_near_the_threshold_are_on_it():
    table = table_of(*([7] * number for number in range(2, 40)))
    assert not tc.sensitive_cells(table, tc.magnitude.EntropyRule(1))["sensitive"].any()
    half = table_of([3, 1])["entropy"].item()  # of at most log2 2 = 1 bit
    assert sensitive(tc.magnitude.EntropyRule(half + LEAST / 2), [3, 1]) == [False]


def test_zeros_count_in_the_entropy_rule():
    # H(1/2, 1/2) = 1 in both, log2 of 2 and of 4 contributors.
    assert sensitive(tc.magnitude.EntropyRule(0.6), [5, 5], [5, 5, 0, 0]) == [False, True]


def test_reasons_tell_a_share_from_the_bound_that_it_is_near():
    near = table_of([100_000, 50_000, 9_999], [75_001, 24_999], [200, 100, 10])
    found = tc.sensitive_cells(near, tc.PPercent(10) | tc.Dominance(1, 0.75))["reason"].values
    assert "to within 9.999 % (PPercent(10))" in found[0]
    assert "holds 75.001 % of 100,000 (Dominance(1, 0.75))" in found[1]
    assert "to within 5.0 % (PPercent(10))" in found[2]


def test_whole_numbers_of_any_kind_are_taken():
    assert sensitive(tc.Dominance(1.0, 0.5), [9, 1]) == sensitive(tc.Dominance(1, 0.5), [9, 1])
    assert str(tc.magnitude.MinimumFrequency(np.int64(3))) == "MinimumFrequency(3)"
    with pytest.raises(TableError, match=r"PPercent\(10\) needs the 2 largest contributions"):
        tc.sensitive_cells(table_of([3, 2], largest=1), tc.PPercent(10))


def test_request():
    # 80 of 100 asked; 80 did not ask, 20 did; 60 asked, not above 0.7; both of 50 tie
    # and one asked, below 0.7.
    cells = ([80, 20], [80, 20], [60, 40], [50, 50])
    asked = [[1, 0], [0, 1], [1, 0], [0, 1]]
    assert sensitive(tc.magnitude.Request(0.7), *cells, asked=asked) == [True, False, False, False]
    assert sensitive(tc.magnitude.Request(0.45), *cells, asked=asked) == [True, False, True, True]
    # With the frequency any request in a cell of fewer than three is enough.
    assert sensitive(tc.magnitude.Request(0.7, frequency=3), *cells, asked=asked) == [True] * 4
    assert sensitive(
        tc.magnitude.Request(0.7, frequency=2), [9, 1], [5], [5], asked=[[0, 1], [0], [1]]
    ) == [False, False, True]


def test_empty_cells_are_never_sensitive():
    rules = [
        tc.Dominance(1, 0.1),
        tc.PPercent(99),
        tc.magnitude.MinimumFrequency(9),
        tc.magnitude.EntropyRule(1),
    ]
    found = tc.sensitive_cells(table_of([5], []), rules)
    assert found["sensitive"].values.tolist() == [True, False]
    assert found["reason"].values[1] == ""
    assert found["unsafe_share"].item() == 1.0


def test_rules_combine():
    few, large = tc.magnitude.MinimumFrequency(3), tc.Dominance(1, 0.75)
    cells = ([9, 1], [9, 1, 0], [5, 5], [4, 3, 3])
    found = tc.sensitive_cells(table_of(*cells), few | large)
    assert found["sensitive"].values.tolist() == [True, True, True, False]
    assert found["by_rule"].sel(rule="MinimumFrequency(3)").values.tolist() == [
        True,
        False,
        True,
        False,
    ]
    assert found["by_rule"].sel(rule="Dominance(1, 0.75)").values.tolist() == [
        True,
        True,
        False,
        False,
    ]
    assert found["unsafe_share"].item() == 3 / 4
    assert sensitive(few & large, *cells) == [True, False, False, False]
    assert sensitive([few, large], *cells) == [True, True, True, False]
    assert sensitive((few & large) | tc.PPercent(50), *cells) == [True, True, True, False]
    assert (
        str((few & large) | tc.PPercent(50))
        == "(MinimumFrequency(3) & Dominance(1, 0.75)) | PPercent(50)"
    )
    assert found.attrs["rules"] == "MinimumFrequency(3) | Dominance(1, 0.75)"
    repeated = tc.sensitive_cells(table_of(*cells), (few | large) & few)
    assert repeated["rule"].values.tolist() == ["MinimumFrequency(3)", "Dominance(1, 0.75)"]


def test_reasons_in_words():
    table = table_of([1007, 233], [100, 30, 9], [5], asked=[[1, 0], [0, 0, 0], [0]])
    rules = (
        tc.Dominance(1, 0.75)
        | tc.PPercent(10)
        | tc.magnitude.MinimumFrequency(2)
        | tc.magnitude.EntropyRule(0.5)
        | tc.magnitude.Request(0.8)
    )
    first, second, third = tc.sensitive_cells(table, rules)["reason"].values
    assert (
        first
        == "largest 1 of 2 contributors holds 81.2 % of 1,240 (Dominance(1, 0.75)); the second"
        " largest of 2 estimates the largest contribution, 1,007, to within 0.0 %"
        " (PPercent(10)); largest 1 of 2 contributors holds 81.2 % of 1,240 and asked for"
        " protection (Request(0.8))"
    )
    assert (
        second == "the second largest of 3 estimates the largest contribution, 100, to within 9.0 %"
        " (PPercent(10))"
    )
    assert (
        third == "largest 1 of 1 contributor holds 100.0 % of 5 (Dominance(1, 0.75)); "
        "any reader estimates the largest contribution, 5, to within 0.0 % (PPercent(10)); "
        "1 contributor (MinimumFrequency(2)); 1 contributor has no entropy (EntropyRule(0.5))"
    )
    uneven = tc.sensitive_cells(
        table_of([99, 1]), tc.magnitude.EntropyRule(0.5) | tc.Dominance(3, 0.9)
    )
    assert (
        uneven["reason"].item()
        == "entropy is 0.081 of that of 2 equal contributions (EntropyRule(0.5)); "
        "largest 2 of 2 contributors hold 100.0 % of 100 (Dominance(3, 0.9))"
    )
    asked = tc.sensitive_cells(
        table_of([6, 4], asked=[[0, 1]]), tc.magnitude.Request(0.8, frequency=3)
    )
    assert (
        asked["reason"].item()
        == "1 of 2 contributors asked for protection (Request(0.8, frequency=3))"
    )
    nothing = tc.sensitive_cells(
        table_of([0, 0], [9, 1], asked=[[1, 0], [1, 0]]), tc.magnitude.Request(0.8, frequency=3)
    )
    assert nothing["reason"].values.tolist() == [
        "1 of 2 contributors asked for protection (Request(0.8, frequency=3))",
        "largest 1 of 2 contributors holds 90.0 % of 10 and asked for protection"
        " (Request(0.8, frequency=3))",
    ]


def test_no_rounding_moves_a_cell_across_the_boundary():
    # In doubles 0.1 + 0.2 > 0.3 and 0.7 * 100 < 70; in steps and decimals neither is.
    assert sensitive(tc.Dominance(2, 0.3), [0.2, 0.1, *[0.1] * 7], decimals=1) == [False]
    assert sensitive(tc.Dominance(2, 0.3), [0.3, 0.1, *[0.1] * 6], decimals=1) == [True]
    assert sensitive(tc.Dominance(1, 0.7), [70, 30]) == [False]
    assert sensitive(tc.PPercent(0.1), [1000, 10, 1], [1000, 10]) == [False, True]
    large = [700_000_000_000_000, 300_000_000_000_000]
    assert sensitive(tc.Dominance(1, 0.7), large, [large[0], large[1] - 1]) == [False, True]
    hundredths = range(50, 100)
    table = table_of(*([k, 100 - k] for k in hundredths))
    for i, k in enumerate(hundredths):
        cell = table.isel(cell=[i])
        assert not tc.sensitive_cells(cell, tc.Dominance(1, k / 100))["sensitive"].item()
        assert tc.sensitive_cells(cell, tc.Dominance(1, k / 100 - 0.001))["sensitive"].item()


def test_every_small_cell_by_the_definitions():
    cells = [sorted(cell, reverse=True) for cell in product(range(7), repeat=3)]
    rules = {
        tc.Dominance(1, 0.5): lambda first, second, third: 2 * first > first + second + third,
        tc.Dominance(2, 0.75): lambda first, second, third: (
            4 * (first + second) > 3 * (first + second + third)
        ),
        tc.PPercent(50): lambda first, second, third: 2 * third < first,
        tc.magnitude.PQ(20, 80): lambda first, second, third: 4 * third < first,
        tc.magnitude.MinimumFrequency(4): lambda *cell: True,
        tc.magnitude.MinimumFrequency(3): lambda *cell: False,
    }
    found = tc.sensitive_cells(table_of(*cells), list(rules))["by_rule"]
    assert found.values.tolist() == [[holds(*cell) for holds in rules.values()] for cell in cells]


@pytest.mark.parametrize(
    ("rule", "cell", "level"),
    [
        (tc.PPercent(10), [100, 30, 4], 6),  # 10 - 4
        (tc.PPercent(10), [100, 30, 10], 0),
        (tc.magnitude.PQ(10, 50), [100, 30, 4], 16),  # 100 * 10 / 50 - 4
        (tc.Dominance(1, 0.5), [60, 20, 10], 30),  # 60 / 0.5 - 90
        (tc.Dominance(2, 0.8), [60, 20, 10], 10),  # 80 / 0.8 - 90
        (tc.Dominance(1, 0.75), [8, 1, 1], 1),  # 8 / 0.75 - 10 = 0.67, rounded up to a step
        (tc.Dominance(1, 1), [8], 0),
        (tc.magnitude.MinimumFrequency(3), [5, 5], 1),
        (tc.magnitude.MinimumFrequency(2), [5, 5], 0),
        (tc.magnitude.EntropyRule(0.5), [99, 1], 1),
        (tc.PPercent(10) | tc.Dominance(1, 0.5), [60, 20, 10], 30),
        (tc.PPercent(50) & tc.Dominance(1, 0.5), [60, 20, 10], 20),  # the smaller of 30 - 10 and 30
        (tc.PPercent(10) & tc.Dominance(1, 0.5), [60, 20, 10], 0),
    ],
)
def test_protection_levels(rule, cell, level):
    assert tc.magnitude.protection_levels(table_of(cell), rule).item() == level


def test_protection_levels_of_requests():
    table = table_of([60, 20, 10], [60, 20, 10], [4, 6], asked=[[1, 0, 0], [0, 1, 0], [1, 0]])
    assert tc.magnitude.protection_levels(
        table, tc.magnitude.Request(0.5, frequency=3)
    ).values.tolist() == [60 / 0.5 - 90, 0, 1]


@pytest.mark.parametrize(
    "rule",
    [
        tc.PPercent(10),
        tc.PPercent(35),
        tc.magnitude.PQ(10, 40),
        tc.Dominance(1, 0.6),
        tc.Dominance(2, 0.85),
    ],
)
@pytest.mark.parametrize("cell", [[100, 30, 4], [90, 50, 1, 1], [70, 10, 10], [77], [40, 40]])
def test_the_level_is_the_least_that_makes_the_rule_safe(rule, cell):
    """What the attacker must think possible above the value is like a further
    contribution to the cell."""
    table = table_of(cell)
    level = int(tc.magnitude.protection_levels(table, rule).item())
    assert (level > 0) == sensitive(rule, cell)[0]

    def with_total(total: int) -> bool:
        totals = table["total"] * 0 + total
        widened = table.assign(absolute_total=totals, share=table["largest"] / totals)
        return bool(tc.sensitive_cells(widened, rule)["sensitive"].item())

    assert not with_total(sum(cell) + level)
    if level:
        assert with_total(sum(cell) + level - 1)


def test_the_second_largest_after_protection():
    # p = 10: the second of 100, 30, 4 sees 134 + 6 = 140 at most and estimates 140 - 30
    # = 110, 10 % off.
    cell, p = [100, 30, 4], 10
    level = tc.magnitude.protection_levels(table_of(cell), tc.PPercent(p)).item()
    assert sum(cell) + level - cell[1] == (100 + p) * cell[0] / 100


def test_levels_are_in_the_tables_units():
    assert (
        tc.magnitude.protection_levels(table_of([10.0, 0.25], decimals=2), tc.PPercent(10)).item()
        == 1.0
    )
    assert (
        tc.magnitude.protection_levels(
            table_of([10.0, 0.25], decimals=2), tc.magnitude.MinimumFrequency(3)
        ).item()
        == 0.01
    )


def test_rules_of_margins_and_of_tables_in_another_order():
    frame = pd.DataFrame(
        {"a": ["p", "p", "q", "q"], "b": ["r", "s", "r", "s"], "f": list("xyxy"), "v": [9, 1, 9, 1]}
    )
    tables = tc.magnitude.tabulate_margins(frame, ["a", "b"], "v", contributor="f")
    rule = tc.Dominance(1, 0.75)
    assert tc.sensitive_cells(tables[()], rule)["sensitive"].item()  # x holds 18 of 20
    assert tc.sensitive_cells(tables["b",], rule)["sensitive"].values.tolist() == [True, True]
    turned = tables["a", "b"].transpose("rank", "b", "a")
    found, straight = tc.sensitive_cells(turned, rule), tc.sensitive_cells(tables["a", "b"], rule)
    assert found["sensitive"].equals(straight["sensitive"].transpose(*found["sensitive"].dims))


def test_weights_in_rules():
    # 100, 100, 100, 100 and seven of 10: two largest hold 200 / 470 = 42.6 %, without
    # weights all.
    frame = pd.DataFrame({"cell": [0, 0], "x": [100, 10], "w": [4, 7]})
    table = tc.tabulate_magnitude(frame, "cell", "x", sampling_weights="w")
    assert not tc.sensitive_cells(table, tc.Dominance(2, 0.5) | tc.magnitude.MinimumFrequency(11))[
        "sensitive"
    ].item()
    assert tc.sensitive_cells(table, tc.Dominance(2, 0.42))["sensitive"].item()
    assert tc.sensitive_cells(table, tc.magnitude.MinimumFrequency(12))["sensitive"].item()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tc.Dominance(0, 0.5), "n must be a whole number of at least 1, got 0"),
        (lambda: tc.Dominance(1, 75), "k must be a number above 0 and at most 1, got 75"),
        (lambda: tc.Dominance(1, 0), "k must be a number above 0 and at most 1, got 0"),
        (lambda: tc.PPercent(0), "p must be a number above 0 and at most 100, got 0"),
        (lambda: tc.PPercent(101), "p must be a number above 0 and at most 100, got 101"),
        (lambda: tc.magnitude.PQ(50, 10), "p must be a number above 0 and at most 10, got 50"),
        (lambda: tc.magnitude.PQ(10, 101), "q must be a number above 0 and at most 100, got 101"),
        (lambda: tc.magnitude.PQ(float("nan"), 10), "p must be a number"),
        (lambda: tc.magnitude.MinimumFrequency(1), "k must be a whole number of at least 2, got 1"),
        (lambda: tc.magnitude.EntropyRule(1.5), "t must be a number from 0 to 1, got 1.5"),
        (lambda: tc.magnitude.Request(0), "k must be a number above 0 and at most 1"),
        (
            lambda: tc.magnitude.Request(0.5, frequency=1),
            "frequency must be a whole number of at least 2",
        ),
        (lambda: tc.sensitive_cells(table_of([1]), "p%:10"), "rules must be one rule or several"),
        (lambda: tc.sensitive_cells(table_of([1]), []), "rules must be one rule or several"),
    ],
)
def test_rules_that_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_only_rules_combine():
    with pytest.raises(TypeError, match="unsupported operand"):
        tc.PPercent(10) | 3
    with pytest.raises(TypeError, match="unsupported operand"):
        tc.PPercent(10) & "p%:10"


def test_tables_that_are_refused():
    table = table_of([3, 2, 1], largest=2)
    assert tc.sensitive_cells(table_of([3, 2], largest=2), tc.Dominance(3, 0.5))[
        "sensitive"
    ].item()  # all are there
    with pytest.raises(TableError, match=r"Dominance\(3, 0.5\) needs the 3 largest.*largest=3"):
        tc.sensitive_cells(table, tc.Dominance(3, 0.5))
    with pytest.raises(TableError, match=r"PPercent\(10\) needs the 2 largest|PQ"):
        tc.sensitive_cells(table_of([3, 2], largest=1), tc.PPercent(10))
    with pytest.raises(TableError, match="make the table with request="):
        tc.sensitive_cells(table, tc.magnitude.Request(0.5))
    with pytest.raises(TableError, match="must be a Dataset of tabulate_magnitude, got DataArray"):
        tc.sensitive_cells(table["total"], tc.PPercent(10))
    with pytest.raises(TableError, match="it has no largest"):
        tc.sensitive_cells(table.drop_vars("largest"), tc.PPercent(10))
    with pytest.raises(TableError, match="the attribute decimals"):
        tc.magnitude.protection_levels(table.drop_attrs(), tc.PPercent(10))
    with pytest.raises(TableError, match="'largest' must be finite"):
        tc.sensitive_cells(table.assign(largest=table["largest"] * np.nan), tc.PPercent(10))
    with pytest.raises(TableError, match="no cell of the table has a contributor"):
        tc.sensitive_cells(table_of([1], []).isel(cell=[1]), tc.PPercent(10))


FIRMS = table_of([300, 20, 10], [5, 5])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (FIRMS / 1000, "'contributors' must be whole numbers: cell=0 holds 0.003"),
        (
            (FIRMS / 1000).assign(contributors=FIRMS["contributors"]),
            "'absolute_total' must have at most 0 decimals: cell=0 holds 0.33",
        ),
        (
            FIRMS.assign(largest=FIRMS["largest"] / 8),
            "'largest' must have at most 0 decimals: cell=0, rank=1 holds 37.5",
        ),
        (
            FIRMS.assign(absolute_total=FIRMS["absolute_total"] * 1e15),
            r"'absolute_total' must be at most 2\*\*53 steps: cell=0 holds 3.3e\+17",
        ),
        (
            FIRMS.isel(rank=slice(None, None, -1)),
            "'largest' must have the dimension 'rank', with the labels 1, 2",
        ),
        (
            FIRMS.isel(rank=[1, 2]),
            "'largest' must have the dimension 'rank', with the labels 1, 2",
        ),
        (
            FIRMS.assign(largest=(FIRMS["largest"].dims, FIRMS["largest"].values[:, ::-1])),
            "'largest' must descend along 'rank': cell=0, rank=3 holds 10.0",
        ),
        (
            FIRMS.assign(absolute_total=FIRMS["absolute_total"] / 10),
            "'absolute_total' must be at least the sum of 'largest': cell=0 holds 33.0",
        ),
        (
            FIRMS.assign(total=FIRMS["total"] * -2),
            "'total' must be at most 'absolute_total', of either sign: cell=0 holds -660.0",
        ),
        (
            FIRMS.assign(contributors=FIRMS["contributors"].astype(object)),
            "'contributors' must hold numbers, got the type object",
        ),
        *(
            (
                FIRMS.assign(contributors=("cell", [2, number])),
                f"'contributors' must {rule}: cell=1",
            )
            for number, rule in (
                (np.nan, "not be missing"),
                (np.inf, "be finite"),
                (-1, "not be negative"),
                (1.5, "be whole numbers"),
            )
        ),
        (
            FIRMS.assign(contributors=FIRMS["contributors"] * np.nan),
            "'contributors' must not be missing: cell=0 holds nan",
        ),
        (FIRMS.assign(contributors=0 * FIRMS["contributors"]), "no cell of the table has"),
        (
            FIRMS.assign(waivers=("cell", [0, np.nan]), unwaived=("cell", [300.0, 5.0])),
            "'waivers' must not be missing: cell=1 holds nan",
        ),
        (
            FIRMS.assign_attrs(decimals=3).assign(contributors=FIRMS["contributors"] / 4),
            "'contributors' must be 0 or at least 1: cell=0 holds 0.75",
        ),
        # One who contributes to several cells would count as several.
        (
            FIRMS.sum("cell"),
            r"'share' must be 'largest' / 'absolute_total', .*: rank=1 holds 1\.409",
        ),
        (
            table_of([300, 20, 10], [0, 0]).fillna(0),
            "'share' must be 'largest' / 'absolute_total', .*: cell=1, rank=1 holds 0.0",
        ),
    ],
)
def test_tables_that_were_changed_are_refused(changed, message):
    for judge in (tc.sensitive_cells, tc.magnitude.protection_levels):
        with pytest.raises(TableError, match=message):
            judge(changed, tc.PPercent(10))


@pytest.mark.parametrize("decimals", [0, 1, 3, 9])
def test_sums_of_decimals_are_whole_steps(decimals):
    """As are weights with decimals; a step in twenty more is none."""
    generator = np.random.default_rng(decimals)
    steps = generator.integers(0, 10**6, (20, 8)) / 10**decimals
    frame = pd.DataFrame({"cell": np.repeat(range(20), 8), "x": steps.ravel()})
    frame["w"] = generator.integers(100, 300, 160) / 100
    for roles in ({}, {"sampling_weights": "w"}):
        table = tc.tabulate_magnitude(frame, "cell", "x", decimals=decimals, **roles)
        tc.sensitive_cells(table, tc.PPercent(10))
    table = tc.tabulate_magnitude(frame, "cell", "x", decimals=decimals, largest=8)
    summed = table.assign(absolute_total=table["largest"][:, ::-1].cumsum("rank")[:, -1])
    tc.sensitive_cells(summed, tc.PPercent(10))
    off = summed.assign(absolute_total=summed["absolute_total"] + 0.05 / 10**decimals)
    with pytest.raises(TableError, match=f"'absolute_total' must have at most {decimals} decimals"):
        tc.sensitive_cells(off, tc.PPercent(10))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int64, float, int])
def test_numbers_of_rules_are_what_is_printed(kind):
    share = kind(0.7) if kind(0.7) else kind(1)
    written = 0.7 if share != 1 else 1
    for make in (
        lambda k: tc.Dominance(1, k),
        tc.magnitude.Request,
        tc.PPercent,
        lambda p: tc.magnitude.PQ(p, p),
        tc.magnitude.UnsafeZeros,
        tc.magnitude.EntropyRule,
        lambda wide: tc.magnitude.MinimumFrequency(3, safety_range=wide),
    ):
        given, plain = make(share), make(written)
        assert (str(given), repr(given), given) == (str(plain), repr(plain), plain)
    assert sensitive(tc.Dominance(1, share), [7, 3], [8, 2]) == [False, written != 1]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("p%:10", tc.PPercent(10)),
        ("nk:1,0.75", tc.Dominance(1, 0.75)),
        (" NK : 2 , 0.85 ", tc.Dominance(2, 0.85)),
        ("pq:10,50", tc.magnitude.PQ(10, 50)),
        ("freq:3", tc.magnitude.MinimumFrequency(3)),
        ("entropy:0.5", tc.magnitude.EntropyRule(0.5)),
        ("request:0.7", tc.magnitude.Request(0.7)),
        ("request:0.7,3", tc.magnitude.Request(0.7, frequency=3)),
    ],
)
def test_short_forms(text, rule):
    assert rule_from_text(text) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rule ''.*accepted are nk:n,k"),
        ("dominance:1", "no rule 'dominance:1'"),
        ("p%", "'p%' holds something that is not a number: accepted is p%:p"),
        ("p%:", "holds something that is not a number"),
        ("p%:ten", "holds something that is not a number"),
        ("p%:10,20", "has 2 numbers: accepted is p%:p such as p%:10"),
        ("nk:1", "has 1 numbers: accepted is nk:n,k"),
        ("nk:1.5,0.75", "holds something that is not a number: accepted is nk:n,k"),
        ("nk:1,75", "'nk:1,75': k must be a number above 0 and at most 1, got 75"),
        ("p%:nan", "holds something that is not a number"),
        ("p%:1_0", "holds something that is not a number"),
        ("nk:٣,0.75", "holds something that is not a number"),
        ("p%:101", "p must be a number above 0 and at most 100, got 101"),
    ],
)
def test_short_forms_that_are_refused(text, message):
    with pytest.raises(ParameterError, match=message):
        rule_from_text(text)
