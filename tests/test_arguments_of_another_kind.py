"""Arguments of another kind than the one that is meant are clear errors, before
anything is worked out with them."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError, TableError

TABLE = xr.DataArray([[0, 5], [5, 10]], dims=("area", "age"), name="count")
TOTAL = xr.DataArray([6, 14], dims="area")
RECODED = TABLE.assign_coords(area=["n", "s"])
JOINT = xr.DataArray(np.eye(2), dims=("x", "y"))
LINE = xr.DataArray([2, 2], dims="x")
RECORDS = pd.DataFrame({"a": ["u", "v"], "v": [1.0, 2.0]})
NOISE = tc.attack.GeometricNoise(epsilon=1.0)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: tc.Rounding(TABLE, 5, totals=TOTAL, exact_totals=True), "[total]"),
        (lambda: tc.Rounding(TABLE, 5, totals=0), "got 0"),
        (lambda: tc.Rounding(TABLE, 5, totals="all"), "'all'"),
        (lambda: tc.Rounding(TABLE, 5, totals=[TOTAL], exact_totals="no"), "'no'"),
        (lambda: tc.Rounding(TABLE, 5, method=np.array(["random", "x"])), "method"),
        (lambda: tc.attack.Perturbed(TABLE, NOISE, totals=TOTAL), "[total]"),
        (
            lambda: tc.attack.Perturbed(TABLE, NOISE, totals=[TOTAL], exact_totals=[1]),
            "exact_totals",
        ),
        (lambda: tc.GlobalRecoding(RECODED, {"area": ["n", "s"]}), "merge['area']"),
        (lambda: tc.GlobalRecoding(RECODED, ["area"]), "merge must be a mapping"),
        (lambda: tc.LinkedTables(TABLE, ["area"], suppressed=TOTAL > 6), "suppressed"),
        (lambda: tc.suppress(TABLE, None), "got None"),
        (lambda: tc.suppress(TABLE, {}), "got {}"),
        (lambda: tc.information.f_divergence(LINE, LINE, divergence=None), "got None"),
        (lambda: tc.random_round(LINE, totals=[]), "got []"),
        (lambda: tc.random_round(LINE, totals=1.5), "got 1.5"),
        (lambda: tc.ReleaseLog(3), "got 3"),
    ],
)
def test_parameters(call, names):
    with pytest.raises(ParameterError, match=re.escape(names)):
        call()


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: tc.margin(TABLE.astype(str), "area"), "must be numbers"),
        (lambda: tc.disclosure_risk(LINE.astype("timedelta64[ns]")), "timedelta64"),
        (
            lambda: tc.information.conditional_entropy_from_joint(JOINT.astype(str), given="y"),
            "must hold numbers",
        ),
        (
            lambda: tc.information.conditional_entropy_from_transition(
                LINE, xr.DataArray(np.eye(3), dims=("x", "y"))
            ),
            "3 categories of 'x'",
        ),
    ],
)
def test_tables(call, names):
    with pytest.raises(TableError, match=re.escape(names)):
        call()


def test_release_logs(tmp_path):
    with pytest.raises(ParameterError, match="levels must give"):
        tc.ReleaseLog(tmp_path / "log.db", variables={"area": ["n", "s"]}, levels=3)
    assert not (tmp_path / "log.db").exists()
    log = tc.ReleaseLog(tmp_path / "log.db", variables={"area": ["n", "s"]})
    table = xr.DataArray([20, 30], dims="area", coords={"area": ["n", "s"]}, name="count")
    with pytest.raises(ParameterError, match="after must be a Verdict"):
        log.add(table, after="yes")
    assert log.add(table) == 1


def test_one_name_twice_is_one_variable():
    assert float(tc.information.conditional_entropy_from_joint(JOINT, given=["y", "y"])) == 0


def test_totals_of_what_is_suppressed_are_missing():
    shown = TABLE.where(TABLE != 10)
    np.testing.assert_array_equal(tc.margin(shown, "area"), [5, np.nan])
    assert int(tc.margin(TABLE, "area").sum()) == 20
