"""Records whose label is missing: refused, left out, or safe in a category of their
own.
"""

import numpy as np
import pandas as pd
import pytest

import taciturn as tc
from taciturn.errors import ParameterError, TableError
from taciturn.magnitude import tabulate_margins

FIRMS = pd.DataFrame(
    [(a, b, x) for a in "abc" for b in "xyz" for x in (9, 8, 7)]
    + [(None, "x", 500), ("  ", "y", 3), ("a", None, 4)],
    columns=["area", "trade", "sales"],
)
VARIABLES = ["area", "trade"]
RULE = tc.Dominance(1, 0.9)


def test_a_missing_label_is_refused_left_out_or_a_category():
    with pytest.raises(TableError, match=r"'area' in row 28 of .*; with missing= tabulate and"):
        tc.tabulate_magnitude(FIRMS, VARIABLES, "sales")
    kept = FIRMS.iloc[:27]
    dropped = tabulate_margins(FIRMS, VARIABLES, "sales", missing="drop")
    for names, table in tabulate_margins(kept, VARIABLES, "sales").items():
        assert dropped[names].identical(table.assign_attrs(dropped=3))
    told = tabulate_margins(FIRMS, VARIABLES, "sales", missing="?")
    by_hand = FIRMS.assign(
        area=FIRMS["area"].fillna("?").replace("  ", "?"),
        trade=FIRMS["trade"].fillna("?"),
    )
    for names, table in tabulate_margins(by_hand, VARIABLES, "sales").items():
        same = told[names].sel({name: table[name].values for name in names})
        assert same.identical(table.assign_attrs(missing="?"))
    assert told["area",]["area"].values.tolist() == ["a", "b", "c", "?"]


@pytest.mark.parametrize("weights", [None, "w"])
def test_contributors_are_those_of_the_records_that_are_left(weights):
    frame = FIRMS.assign(firm=np.arange(30) % 4, w=2)
    options = {"contributor": "firm", "sampling_weights": weights}
    found = tc.tabulate_magnitude(frame, "area", "sales", missing="drop", **options)
    kept = frame.drop([27, 28])
    expected = tc.tabulate_magnitude(kept, "area", "sales", **options)
    assert found.identical(expected.assign_attrs(dropped=2))


def test_missing_is_safe():
    options = {"random_seed": 0, "progressbar": False, "missing": "?"}
    safe = {"area": "?", "trade": "?"}
    done = tc.protect_table(FIRMS, VARIABLES, "sales", RULE, **options, safe=safe)
    assert not done.sensitive["area", "trade"]["sensitive"].any()
    cell = done.tables["area", "trade"].sel(area="?", trade="x")
    assert (cell["status"].item(), cell["value"].item()) == ("published", 500)
    without = tc.protect_table(FIRMS, VARIABLES, "sales", RULE, **options)
    held = without.sensitive["area", "trade"]["sensitive"]
    assert {tuple(map(str, at)) for at in held.to_series()[held.to_series()].index} == {
        ("?", "x"),
        ("?", "y"),
        ("a", "?"),
    }
    # A month without a missing label needs no other call.
    month = tc.protect_table(FIRMS.iloc[:27], VARIABLES, "sales", RULE, **options, safe=safe)
    assert "?" not in month.tables["area",]["area"].values


@pytest.mark.parametrize("code", [9, "9", "NA"])
def test_codes_that_stand_for_missing_are_categories(code):
    frame = FIRMS.fillna({"area": "9"}).iloc[:28].assign(trade="x")
    frame["area"] = frame["area"].map({"a": 1, "b": 2, "c": 3, "9": code})
    done = tc.protect_table(
        frame, VARIABLES, "sales", RULE, safe={"area": code}, random_seed=0, progressbar=False
    )
    assert not done.sensitive["area",]["sensitive"].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": " "}, "missing must be 'refuse', 'drop', or the label"),
        ({"missing": None}, "missing must be 'refuse', 'drop', or the label"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        tc.tabulate_magnitude(FIRMS, VARIABLES, "sales", **options)


def test_a_label_that_is_safe_is_a_category_or_the_missing_one():
    table = tc.tabulate_magnitude(FIRMS, VARIABLES, "sales", missing="?")
    for label in ("!", "None", ""):
        with pytest.raises(ParameterError, match="safe must name categories of 'area'"):
            tc.sensitive_cells(table, RULE, safe={"area": label})
    kept = tc.tabulate_magnitude(FIRMS.iloc[:27], VARIABLES, "sales")
    with pytest.raises(ParameterError, match="safe must name categories of 'area'"):
        tc.sensitive_cells(kept, RULE, safe={"area": "None"})


def test_no_record_is_left():
    frame = FIRMS.assign(trade=None)
    with pytest.raises(TableError, match="each of the 30 records lacks a label"):
        tc.tabulate_magnitude(frame, VARIABLES, "sales", missing="drop")


@pytest.mark.parametrize("dtype", ["float64", "Int64"])
def test_a_number_for_missing_labels_is_one_category_and_can_be_safe(dtype):
    """Beside floats, which pandas makes of whole numbers where one is missing."""
    codes = pd.array([1] * 4 + [2] * 4 + [9, None], "Int64")
    frame = pd.DataFrame({"v": pd.Series(codes, dtype=dtype), "sales": range(10, 110, 10)})
    table = tc.tabulate_magnitude(frame, "v", "sales", missing=9)
    assert table["contributors"].values.tolist() == [4, 4, 2]
    assert table["largest"].values[2, :2].tolist() == [100, 90]
    rule = tc.Dominance(1, 0.5)
    assert tc.sensitive_cells(table, rule)["sensitive"].values.tolist() == [False, False, True]
    safe = tc.sensitive_cells(table, rule, safe={"v": 9})["sensitive"]
    assert safe.values.tolist() == [False, False, False]
