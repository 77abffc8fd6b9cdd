"""Arguments of the wrong kind: an error of the package that shows no count, whichever
argument a table is given for."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import TaciturnError

SECRET = 7_919  # a count that stands in every wrong argument, and nowhere else
TABLE = xr.DataArray([[2, 3, 1], [4, 2, 5]], dims=("x", "y"))
ROWS = pd.DataFrame({"area": list("AABB"), "x": list("uvuv")})
WRONG = {
    "table": xr.DataArray([[SECRET, 1], [SECRET, 1]], dims=("x", "z")),
    "row": xr.DataArray([SECRET, 1, 1], dims="y"),
    "count": xr.DataArray(SECRET),
    "array": np.array([[SECRET, 1], [1, SECRET]]),
    "array of one row": np.array([SECRET, 1]),
    "tables": [xr.DataArray([SECRET], dims="x")] * 2,
    "tables by name": {"a": xr.DataArray([SECRET], dims="x")},
    "nested": [[np.array([SECRET])]],
    "data frame": pd.DataFrame({"area": [SECRET], "x": [SECRET]}),
    "dataset": xr.Dataset({"count": ("x", [SECRET, 1])}),
}
PAIR = {"a": TABLE, "b": tc.perturbation.conventional_round(TABLE, rounding_base=3)}
DECIDED = {"table": TABLE, "progressbar": False}
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "choose_protection": (
        tc.choose_protection,
        {"released": PAIR, "loss": {"R2": 1}, "constraint": None, **DECIDED},
    ),
    "compare_protections": (tc.compare_protections, {"released": PAIR, **DECIDED}),
    "weight_sensitivity": (tc.weight_sensitivity, {"released": PAIR, "table": TABLE}),
    "compare_over_weights": (tc.compare_over_weights, {"released": PAIR, "table": TABLE}),
    "risk_utility": (tc.risk_utility, {"released": PAIR, "table": TABLE}),
    "information_loss": (tc.information_loss, {"table": TABLE, "released": TABLE}),
    "disclosure_risk": (tc.disclosure_risk, {"population": TABLE, "released": TABLE}),
    "small_cell_share": (tc.risk.small_cell_share, {"table": TABLE}),
    "disclosive_cell_share": (tc.risk.disclosive_cell_share, {"table": TABLE}),
    "Constraint": (tc.Constraint, {"measure": "R2", "at_most": 0.1}),
    "redraw_table": (
        tc.synthesis.redraw_table,
        {"table": TABLE, "keep": ["x", "y"], "progressbar": False},
    ),
    "grid": (
        tc.perturbation.grid,
        {
            "method": partial(tc.random_round, TABLE),
            "over": {"rounding_base": [3, 5]},
            "progressbar": False,
        },
    ),
    "swapping_method_conditional_entropy": (
        tc.perturbation.swapping_method_conditional_entropy,
        {"records": ROWS, "variables": ["area", "x"], "geography": "area", "rate": 0.5},
    ),
    "mechanism_conditional_entropy": (
        tc.attack.mechanism_conditional_entropy,
        {"table": TABLE, "mechanism": tc.attack.RandomRounding(3)},
    ),
    "cell_key_feasibility": (
        tc.risk.cell_key_feasibility,
        {"table": TABLE, "perturbation": tc.perturbation.perturbation_table(2, 1)},
    ),
    "averaged_conditional_entropy": (
        tc.information.averaged_conditional_entropy,
        {"table": TABLE, "released": tc.random_round(TABLE, replicates=2, random_seed=1)},
    ),
}


# Labels of records and an entropy may be shown; bars and keywords take anything.
NO_TABLES = {"records", "conditional_entropy", "progressbar", "data", "options", "_"}
CASES = [
    pytest.param(function, given, name, kind, id=f"{title}-{name}-{kind}")
    for title, (function, given) in CALLS.items()
    for name in inspect.signature(function).parameters
    if name not in NO_TABLES
    for kind in WRONG
]


def said_of(function: Callable[..., Any], given: dict[str, Any]) -> str:
    """The message of an error of the package, or nothing where there is none."""
    try:
        function(**given)
    except TaciturnError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("function", "given", "name", "kind"), CASES)
def test_a_table_in_its_place_is_not_shown(function, given, name, kind) -> None:
    said = said_of(function, {**given, name: WRONG[kind]})
    assert str(SECRET) not in said.replace(",", "").replace("_", "")
