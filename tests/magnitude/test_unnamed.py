"""Totals under another label than that which was named are no cells."""

import numpy as np
import pandas as pd
import pytest

import taciturn as tc
from taciturn.errors import ParameterError, TableError
from taciturn.magnitude import read_margins, tabulate_margins

COLUMNS = ["area", "x", "n", "first"]
CELLS = [("A", 500, 9, 90), ("B", 30, 2, 20), ("C", 80, 7, 20)]


def of_area(rows, **options):
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return read_margins(frame, "area", "x", contributors="n", largest=["first"], **options)


@pytest.mark.parametrize(
    "label", ["total", "TOTAL", "Total ", " Total", "To\u200dtal", "All", "Gesamt", "(all)", "_T"]
)
def test_a_category_that_names_a_total_is_refused(label):
    """Whatever its value: hidden, B would be what is left of it."""
    for value in (610, 640):
        rows = [*CELLS, (label, value, 18, 90)]
        with pytest.raises(TableError, match=r"'area' in row 4 of .*, which names a total, and no"):
            of_area(rows)
    tables = of_area([*CELLS, (label, 610, 18, 90)], total=label)
    assert set(tables) == {("area",), ()}
    rule = tc.magnitude.MinimumFrequency(3)
    done = tc.suppression.protect_margins(tables, rule, random_seed=0, progressbar=False)
    status = done.tables["area",]["status"]
    assert int((status == "suppressed").sum()) == 2
    assert status.sel(area="B") == "suppressed"


@pytest.mark.parametrize("label", ["total", "TOTAL", "Total  "])
def test_nor_is_it_one_beside_rows_of_totals(label):
    rows = [*CELLS, (label, 5, 3, 4), ("Total", 615, 20, 90)]
    if label.strip() == "Total":
        message = r"look alike"
    else:
        message = rf"'area' in row 4 of .* is '{label}', and totals are 'Total': write one as"
    with pytest.raises(TableError, match=message):
        of_area(rows)
    # Another word for a total is then a category, as the sums show.
    rows[3] = ("All", 5, 3, 4)
    assert of_area(rows)["area",].sizes["area"] == 4


NAMES = ["area", "sort"]


def records(seed, shape):
    generator = np.random.default_rng(seed)
    labels = [[f"{name}{i}" for i in range(size)] for name, size in zip("as", shape, strict=True)]
    number = 6 * shape[0] * shape[1]
    return pd.DataFrame(
        {
            "area": generator.choice(labels[0], number),
            "sort": generator.choice(labels[1], number),
            "firm": generator.integers(0, number // 2, number),
            "x": np.round(generator.lognormal(4, 1.5, number)).astype(int) + 1,
        }
    )


def of_both(seed, shape):
    """A row for each cell and total."""
    frame = records(seed, shape)
    rows = []
    for names, table in tabulate_margins(frame, ["area", "sort"], "x", contributor="firm").items():
        for at in np.ndindex(table["total"].shape):
            cell = table.isel(dict(zip(names, at, strict=True)))
            labels = [str(cell[name].item()) if name in names else "Total" for name in NAMES]
            if cell["contributors"]:
                numbers = [int(cell[name]) for name in ("total", "contributors")]
                rows.append((*labels, *numbers, int(cell["largest"][0])))
    return pd.DataFrame(rows, columns=[*NAMES, *COLUMNS[1:]])


def read(frame, **options):
    return read_margins(frame, NAMES, "x", contributors="n", largest=["first"], **options)


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (4, 5)])
@pytest.mark.parametrize("seed", range(6))
def test_totals_by_any_other_word_are_refused_and_need_not_be_given(seed, shape):
    frame = of_both(seed, shape)
    assert len(read(frame)) == 4
    for others in (["area"], ["sort"], NAMES):
        wrong = frame.assign(**{name: frame[name].replace("Total", "Europe") for name in others})
        shuffled = wrong.sample(frac=1, random_state=seed)
        with pytest.raises(
            TableError, match=rf"'{others[0]}' in row .* is 'Europe', which is the sum of all"
        ):
            read(shuffled)
        # Without them, the table is read as it is.
        left = frame[(frame[others] != "Total").all(axis=1)]
        found = read(left)
        assert set(found) == {
            names for names in read(frame) if not set(NAMES) - set(names) & set(others)
        }
    assert len(read(wrong, total="Europe")) == 4


@pytest.mark.parametrize("seed", range(6))
def test_sums_that_were_rounded_are_sums(seed):
    generator = np.random.default_rng(seed)
    exact = generator.uniform(20, 900, 7)
    rounded = [round(float(x)) for x in (*exact, exact.sum())]
    rows = [(label, x, 9, x) for label, x in zip("ABCDEFG", rounded, strict=False)]
    with pytest.raises(TableError, match="'Europe', which is the sum of all"):
        of_area([*rows, ("Europe", rounded[-1], 63, rounded[-1])])
    far = rounded[-1] + 9  # each of eight is off by half a step at most
    assert of_area([*rows, ("Europe", far, 63, far)])["area",].sizes["area"] == 8


SUM = [("N", "f", 60, 9), ("N", "w", 30, 8), ("N", "b", 90, 9)]


@pytest.mark.parametrize(
    ("rows", "refused"),
    [
        # Two categories are equal by chance, or once and again as both are small.
        ([("N", "f", 90, 9), ("N", "w", 90, 9)], False),
        ([("N", "f", 90, 9), ("N", "w", 90, 9), ("S", "f", 7, 5), ("S", "w", 7, 5)], False),
        ([(a, s, 1, 1) for a in "NSWE" for s in "fw"], False),
        # Not three times, with other values.
        ([(a, s, x, 9) for a, x in (("N", 90), ("S", 71), ("W", 12)) for s in "fw"], True),
        (
            [(a, s, x, 9 - (s == "w")) for a, x in (("N", 90), ("S", 71), ("W", 12)) for s in "fw"],
            False,
        ),
        # One that says so is a total at once.
        ([("N", "f", 90, 9), ("N", "w, total", 90, 9)], True),
        ([("N", "f", 900, 9), ("N", "w, total", 901, 9)], True),
        ([("N", "f", 900, 9), ("N", "w, total", 902, 9)], False),
        ([("N", "f", 0, 9), ("N", "w, total", 0, 9)], False),
        # A sum of others, with as many who contribute as can.
        (SUM, True),
        ([*SUM[:2], ("N", "b", 90, 18)], True),
        ([*SUM[:2], ("N", "b", 90, 8)], False),
        ([*SUM[:2], ("N", "b", 90, 19)], False),
        # What is small is off by more than rounding by chance.
        ([*SUM[:2], ("N", "b", 91, 9)], False),
        # One that stands in one place of two, or is no sum in the other.
        ([*SUM, ("S", "f", 8, 8)], False),
        ([*SUM, ("S", "f", 8, 8), ("S", "b", 0, 0)], False),
        ([*SUM, ("S", "f", 8, 8), ("S", "b", 8, 8)], True),
    ],
)
def test_what_may_be_by_chance_is_read(rows, refused):
    frame = pd.DataFrame(rows, columns=["area", "sort", "x", "n"])
    if not refused:
        (table,) = read_margins(frame, NAMES, "x", contributors="n").values()
        assert int(table["total"].sum()) == frame["x"].sum()
        return
    with pytest.raises(TableError, match=r"'sort' in row .*, which is the sum of all other"):
        read_margins(frame, NAMES, "x", contributors="n")
    # As it says, the rows of the totals tell it from one.
    totals = frame.groupby("area", as_index=False).agg(x=("x", "sum"), n=("n", "sum"))
    both = pd.concat([frame, totals.assign(sort="Total")])
    assert set(read_margins(both, NAMES, "x", contributors="n")) == {("area", "sort"), ("area",)}


def test_the_label_of_totals_is_text():
    with pytest.raises(ParameterError, match="total must be a name, got 0"):
        of_area([*CELLS, ("0", 610, 18, 90)], total=0)
