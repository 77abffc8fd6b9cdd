"""Of two tables one may have no labels: then positions pair them, as xarray does.

The labels are whole numbers in another order than 0, 1, 2, which labels made up by
position would be mistaken for."""

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import TableError

LABELLED = xr.DataArray(
    [[50, 3, 1], [1, 9, 0]], dims=("sex", "age"), coords={"sex": [1, 0], "age": [2, 0, 1]}
)
BARE = xr.DataArray(LABELLED.values, dims=LABELLED.dims)
NAMED = LABELLED.assign_coords(sex=["f", "m"], age=["young", "old", "older"])
PAIRS = [(LABELLED, BARE), (BARE, LABELLED), (NAMED, BARE), (BARE, NAMED)]
QUIET = {"random_seed": 1, "progressbar": False}


@pytest.mark.parametrize(("table", "other"), PAIRS)
def test_measures_of_a_table_and_itself(table, other):
    """Nothing is lost, and a release that is the table leaves R2 at R1."""
    risk = tc.disclosure_risk(table, other)
    assert float(risk.R2) == pytest.approx(float(tc.disclosure_risk(BARE).R1), abs=1e-12)
    uniques = tc.risk.unique_risk(table, other)
    assert (float(uniques.tau1), float(uniques.tau2)) == (2.0, 2.0)
    assert float(tc.information_loss(table, other)["mean_absolute_error"]) == 0
    both = tc.risk_utility({"as it is": other}, table=table)
    assert both.to_dataframe()["R2"].iloc[0] == pytest.approx(float(risk.R2))
    exact = tc.attack.mechanism_conditional_entropy(
        table, tc.attack.RandomRounding(3), population=other
    )
    same = tc.attack.mechanism_conditional_entropy(BARE, tc.attack.RandomRounding(3))
    assert float(exact) == pytest.approx(float(same), abs=1e-12)


def test_what_is_known_of_a_table():
    """A given entropy, a transition, a mask and a prior without labels."""
    by_sex = LABELLED.sum("age")
    known = tc.information.entropy(LABELLED, dim="age")
    assert float(
        tc.disclosure_risk(LABELLED, LABELLED, dim="age", conditional_entropy=known * 0.5)["R2"][0]
    ) == pytest.approx(
        float(
            tc.disclosure_risk(
                LABELLED, LABELLED, dim="age", conditional_entropy=known.drop_vars("sex") * 0.5
            )["R2"][0]
        )
    )
    stays = xr.DataArray([[0.9, 0.1], [0.5, 0.5]], dims=("sex", "after"))
    given = tc.information.conditional_entropy_from_transition
    labelled = stays.assign_coords(sex=[1, 0])
    assert float(given(by_sex, stays)) == pytest.approx(float(given(by_sex, labelled)), abs=1e-12)


@pytest.mark.parametrize("name", ["known_margins", "strata", "structural_zeros"])
@pytest.mark.parametrize("labelled", [LABELLED, NAMED])
def test_what_a_fit_is_given(name, labelled):
    """The same populations with labels, without them, and the other way round."""
    margins = xr.DataArray([1200, 250], dims="sex")
    zeros = BARE == 0
    bare = zeros if name == "structural_zeros" else margins
    given = bare.assign_coords({dim: labelled[dim] for dim in bare.dims})
    populations = [
        tc.MixedPoisson(mixing="gamma")
        .fit(sample, population_size=1450, draws=20, chains=1, **{name: known}, **QUIET)[
            "posterior_predictive"
        ]["population"]
        .transpose("chain", "draw", "sex", "age")
        for sample, known in ((labelled, given), (labelled, bare), (BARE, given))
    ]
    for each in populations:
        assert np.array_equal(each.values, populations[0].values)
        assert each["sex"].values.tolist() == labelled["sex"].values.tolist()
    if name != "structural_zeros":
        assert (populations[0].sum("age") == margins.values).all()


def test_draws_in_another_order_are_refused():
    draws = xr.DataArray([[5, 1], [3, 3]], dims=("draw", "x"), coords={"draw": [0, 1]})
    with pytest.raises(TableError, match="'draw', which pairs them one to one, but with other"):
        tc.disclosure_risk(draws, draws.assign_coords(draw=[1, 0]))


def test_lazy_draws_of_small_numbers_are_added_up_as_whole_numbers():
    """2**24 + 1 is no float32."""
    table = xr.DataArray(np.array([[2**24, 1, 0]], dtype=np.float32), dims=("draw", "x"))
    lazy = tc.risk.disclosive_cell_share(table.chunk(draw=1), coalition=0)
    assert lazy.values.tolist() == [0.0]


def test_labels_that_differ_between_what_is_given_are_not_chosen_from():
    turned = LABELLED.isel(sex=[1, 0])
    said = r"table has no labels of 'sex'.*\[1, 0\] and \[0, 1\]; give it the labels"
    with pytest.raises(TableError, match=said):
        tc.risk_utility({"a": LABELLED, "b": turned}, table=BARE)
    margins = xr.DataArray([1200, 250], dims="sex", coords={"sex": [1, 0]})
    with pytest.raises(TableError, match="sample has no labels of 'sex'"):
        tc.MixedPoisson().fit(
            BARE, population_size=1450, known_margins=margins, structural_zeros=turned == 99
        )
    twice = LABELLED.assign_coords(sex=["f", "f"])
    with pytest.raises(TableError, match="released: category 'f' of 'sex' stands twice"):
        tc.disclosure_risk(BARE, twice)


def test_draws_with_other_coordinates_are_paired():
    """A fit's population has the number of its chain where one chain is chosen."""
    draws = xr.DataArray([[5, 1], [3, 3]], dims=("draw", "x"), coords={"draw": [0, 1]})
    marked = draws.assign_coords(chain=0, member=("draw", [0, 1]))
    risk = tc.disclosure_risk(marked, draws)
    assert risk["R2"].values.tolist() == tc.disclosure_risk(draws, draws)["R2"].values.tolist()


def test_a_transition_has_labels_and_its_table_none():
    stays = xr.DataArray([[0.9, 0.1], [0.5, 0.5]], dims=("sex", "after"), coords={"sex": [1, 0]})
    given = tc.information.conditional_entropy_from_transition
    by_sex = LABELLED.sum("age")
    assert float(given(by_sex.drop_vars("sex"), stays)) == float(given(by_sex, stays))
