"""What a summary says besides its numbers: where cells may be impossible."""

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.fits.cautions import cautions_of

QUICK = {"draws": 20, "chains": 1, "random_seed": 1, "progressbar": False}
SAID = "cells nobody was sampled where 5 people and more would be"


def fit_of(counts, **given) -> xr.DataTree:
    counts = np.array(counts)
    coords = {d: [f"{d}{i}" for i in range(n)] for d, n in zip("ab", counts.shape, strict=False)}
    sample = xr.DataArray(counts, dims=tuple("ab"[: counts.ndim]), coords=coords)
    if "zero" in given:
        zeros = xr.zeros_like(sample, dtype=bool)
        zeros[given.pop("zero")] = True
        given["structural_zeros"] = zeros
    return tc.ChineseRestaurant().fit(sample, population_size=1_000, **QUICK, **given)


def test_an_empty_cell_where_five_would_be():
    """20 of 40 in the row, 10 in the column: 5 where there is nobody."""
    (said,) = cautions_of(fit_of([[20, 0], [10, 10]]))
    assert f"In 1 of the 4 {SAID} were variables independent: a=a0, b=b1, say." in said
    assert "structural zeros" in said


@pytest.mark.parametrize(
    "counts",
    [
        [[20, 1], [10, 10]],  # somebody is there
        [[19, 0], [10, 10]],  # fewer would be: 19 * 10 / 39
        [[0, 0], [20, 20]],  # a row of which nobody was sampled at all
    ],
)
def test_other_tables_have_no_caution(counts):
    assert cautions_of(fit_of(counts)) == ()


def test_not_of_cells_that_are_known_to_be_impossible():
    assert cautions_of(fit_of([[20, 0], [10, 10]], zero=(0, 1))) == ()


def test_categories_of_one_variable_that_are_empty():
    (said,) = cautions_of(fit_of([30, 20, 0, 0]))
    assert f"In 2 of the 4 {SAID} were categories alike: a=a2, say." in said
    assert cautions_of(fit_of([10, 9, 0, 0])) == ()


def test_a_summary_says_so_and_a_public_page_does_not(tmp_path):
    fit = tc.assess(fit_of([[20, 0], [10, 10]]))
    assert SAID in str(tc.summary(fit))
    for public in (False, True):
        path = tmp_path / f"{public}.html"
        tc.report(fit, path, public=public, progressbar=False)
        assert (SAID in path.read_text()) is not public
