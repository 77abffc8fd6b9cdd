"""Record swapping: which pairs form and how often, what stays as it was, and what is
left when the pairs are known."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from hypothesis import given, strategies as st

import taciturn as tc
from exact import assert_same_distribution
from swaps import partners_by_enumeration
from taciturn.errors import ParameterError, TableError

DRAWS = 20_000


PEOPLE = pd.DataFrame(
    {
        "area": list("AAABBC"),
        "household": [1, 1, 2, 1, 1, 2],
        "religion": list("xyxxxz"),
    }  # y and z are unique
)


@pytest.mark.parametrize(
    ("rate", "match", "at_risk", "pairs"),
    [
        pytest.param(1 / 3, [], [], 1, marks=pytest.mark.slow),
        pytest.param(2 / 3, ["household"], [], 2, marks=pytest.mark.slow),
        (1 / 3, ["household"], ["religion"], 1),
        pytest.param(1, [], ["religion"], 3, marks=pytest.mark.slow),
    ],
)
def test_distribution_of_the_pairs(rate, match, at_risk, pairs):
    groups = PEOPLE.household if match else [0] * 6
    risky = PEOPLE.religion.isin(["y", "z"]) if at_risk else [False] * 6
    expected = partners_by_enumeration(list(PEOPLE.area), list(groups), list(risky), pairs)
    swaps = tc.swap_records(
        PEOPLE,
        geography="area",
        rate=rate,
        match=match,
        at_risk=at_risk,
        replicates=DRAWS,
        random_seed=12,
    )
    assert_same_distribution(swaps.partner.values, expected)


def test_records_at_risk_come_first_and_the_minimum_widens_them():
    swaps = tc.swap_records(
        PEOPLE, geography="area", rate=1 / 3, at_risk=["religion"], replicates=50, random_seed=1
    )
    moved = swaps.partner.values != np.arange(6)
    assert (moved.sum(axis=1) == 2).all()
    assert moved[:, [1, 5]].any(axis=1).all()  # each pair has one of the two uniques
    wide = tc.swap_records(
        PEOPLE,
        geography="area",
        rate=1 / 3,
        at_risk=["religion"],
        minimum=5,
        replicates=50,
        random_seed=1,
    )
    assert not (wide.partner.values != np.arange(6))[:, [1, 5]].any(axis=1).all()


def test_who_finds_nobody_stays_and_is_counted():
    people = pd.DataFrame(
        {"area": list("AABA"), "household": [1, 1, 1, 9], "religion": list("xxxy")}
    )
    swaps = tc.swap_records(
        people,
        geography="area",
        rate=1,
        match="household",
        at_risk="religion",
        replicates=20,
        random_seed=3,
    )
    assert swaps.pairs.values.tolist() == [1] * 20  # two were asked for
    assert (
        swaps.without_partner.values.tolist() == [2] * 20
    )  # the ninth household, and who is left of the first
    assert (swaps.partner.values[:, 3] == 3).all()


def test_rate_zero_moves_nobody():
    swaps = tc.swap_records(PEOPLE, geography="area", rate=0, random_seed=1)
    assert swaps.partner.values.tolist() == [list(range(6))]
    released = tc.perturbation.swapped_table(PEOPLE, swaps, ["area", "religion"])
    assert released.isel(replicate=0, drop=True).equals(tc.tabulate(PEOPLE, ["area", "religion"]))
    assert (
        float(tc.perturbation.swapping_conditional_entropy(PEOPLE, swaps, ["area", "religion"])[0])
        == 0
    )


@st.composite
def microdata(draw):
    n = draw(st.integers(2, 25))
    columns = {
        "area": draw(
            st.lists(st.sampled_from("ABC"), min_size=n, max_size=n).filter(
                lambda x: len(set(x)) > 1
            )
        ),
        "household": draw(st.lists(st.integers(1, 2), min_size=n, max_size=n)),
        "religion": draw(st.lists(st.sampled_from("xyz"), min_size=n, max_size=n)),
    }
    return pd.DataFrame(columns)


@given(microdata(), st.floats(0, 1), st.booleans(), st.integers(2, 4), st.integers(0, 2**32))
def test_what_swapping_keeps(people, rate, matched, minimum, seed):
    match = ["household"] if matched else []
    arguments = {
        "rate": rate,
        "match": match,
        "at_risk": ["area", "religion"],
        "minimum": minimum,
    }
    eligible = any(len(set(rest.area)) > 1 for _, rest in people.groupby(match or (lambda _: 0)))
    if not eligible:
        with pytest.raises(ParameterError, match="no record has an eligible partner"):
            tc.swap_records(people, geography="area", **arguments)
        return
    swaps = tc.swap_records(people, geography="area", **arguments, replicates=2, random_seed=seed)
    dims = ["household", "area", "religion"]
    before, after = tc.tabulate(people, dims), tc.perturbation.swapped_table(people, swaps, dims)
    assert after.dtype == np.int64
    assert bool((after >= 0).all())
    assert bool(
        (
            tc.margin(after, ["household", "religion"])
            == tc.margin(before, ["household", "religion"])
        ).all()
    )
    assert bool((tc.margin(after, "area") == tc.margin(before, "area")).all())
    if matched:
        assert bool(
            (
                tc.margin(after, ["household", "area"]) == tc.margin(before, ["household", "area"])
            ).all()
        )
    for b, partner in enumerate(swaps.partner.values):
        assert (partner[partner] == np.arange(len(people))).all()  # pairs
        moved = np.flatnonzero(partner != np.arange(len(people)))
        assert len(moved) == 2 * swaps.pairs.values[b] <= 2 * round(rate * len(people) / 2)
        area, household = people.area.to_numpy(), people.household.to_numpy()
        assert (area[partner[moved]] != area[moved]).all()
        assert not matched or (household[partner[moved]] == household[moved]).all()
        released = people.assign(area=area[partner])
        categories = {dim: before[dim].values.tolist() for dim in dims}
        assert after.sel(replicate=b, drop=True).equals(
            tc.tabulate(released, dims, categories=categories)
        )


# ---------------------------------------------------------------- who moved from where
# to where


@pytest.fixture(scope="module")
def swapped():
    rng = np.random.default_rng(8)
    n = 60
    people = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "area": rng.choice(list("ABCD"), n),
            "religion": rng.choice(list("xyz"), n),
        }
    )
    swaps = tc.swap_records(
        people, geography="area", rate=0.5, match="sex", replicates=4, random_seed=9
    )
    return people, swaps


DIMS = ["sex", "area", "religion"]


def dense(people, swaps, replicate):
    """The K x K counts, record by record."""
    table = tc.tabulate(people, DIMS)
    cell = {
        key: i
        for i, key in enumerate(pd.MultiIndex.from_product([table[dim].values for dim in DIMS]))
    }
    released = people.assign(area=people.area.to_numpy()[swaps.partner.values[replicate]])
    joint = np.zeros((len(cell), len(cell)), dtype=int)
    for before, after in zip(
        people[DIMS].itertuples(index=False), released[DIMS].itertuples(index=False), strict=True
    ):
        joint[cell[tuple(before)], cell[tuple(after)]] += 1
    return joint


def test_joint_holds_every_record_once(swapped):
    people, swaps = swapped
    joint = tc.perturbation.swapping_joint(people, swaps, DIMS)
    assert list(joint.columns) == ["replicate", *DIMS, "area_released", "count"]
    assert joint.groupby("replicate")["count"].sum().tolist() == [60] * 4
    before, after = tc.tabulate(people, DIMS), tc.perturbation.swapped_table(people, swaps, DIMS)
    for (_, sex, area, religion), total in (
        joint.groupby(["replicate", *DIMS])["count"].sum().items()
    ):
        assert total == before.sel(sex=sex, area=area, religion=religion)
    released = joint.groupby(["replicate", "sex", "area_released", "religion"])["count"].sum()
    for (replicate, sex, area, religion), total in released.items():
        assert total == after.sel(replicate=replicate, sex=sex, area=area, religion=religion)


def test_conditional_entropy_is_that_of_the_dense_joint(swapped):
    people, swaps = swapped
    ours = tc.perturbation.swapping_conditional_entropy(people, swaps, DIMS)
    assert ours.dims == ("replicate",)
    joints = [dense(people, swaps, b) for b in range(4)]
    for value, joint in zip(ours.values, joints, strict=True):
        labelled = xr.DataArray(joint, dims=("before", "after"))
        assert value == pytest.approx(
            float(tc.information.conditional_entropy_from_joint(labelled, given="after")), abs=1e-12
        )
    averaged = tc.perturbation.swapping_conditional_entropy(people, swaps, DIMS, averaged=True)
    mean = xr.DataArray(sum(joints), dims=("before", "after"))
    assert averaged.dims == ()
    assert float(averaged) == pytest.approx(
        float(tc.information.conditional_entropy_from_joint(mean, given="after")), abs=1e-12
    )
    assert float(averaged) >= float(ours.mean())  # entropy is concave
    bits = tc.perturbation.swapping_conditional_entropy(people, swaps, DIMS, base=2)
    np.testing.assert_allclose(bits * np.log(2), ours, rtol=1e-12)


def test_conditional_entropy_is_that_of_the_transition(swapped):
    people, swaps = swapped
    joint = tc.perturbation.swapping_joint(people, swaps, DIMS)
    counts = (
        joint[joint.replicate == 0]
        .set_index([*DIMS, "area_released"])["count"]
        .to_xarray()
        .fillna(0)
    )
    table = tc.tabulate(people, DIMS, categories={dim: counts[dim].values.tolist() for dim in DIMS})
    # The cell after: the geography after with the other variables, which stay.
    both = (
        counts.values[..., None, None]
        * np.eye(2)[:, None, None, None, :, None]
        * np.eye(3)[None, None, :, None, None]
    )
    after = ("area_released", "sex_released", "religion_released")
    moved = xr.DataArray(both, dims=(*DIMS, *after), coords={dim: table[dim] for dim in DIMS})
    transition = moved / table.where(table > 0, 1)
    expected = tc.information.conditional_entropy_from_transition(table, transition)
    ours = tc.perturbation.swapping_conditional_entropy(people, swaps, DIMS)[0]
    assert float(ours) == pytest.approx(float(expected), abs=1e-12)


def test_r2_with_the_known_transition(swapped):
    people, swaps = swapped
    before, after = tc.tabulate(people, DIMS), tc.perturbation.swapped_table(people, swaps, DIMS)
    left = tc.perturbation.swapping_conditional_entropy(people, swaps, DIMS)
    risk = tc.disclosure_risk(before, after, conditional_entropy=left)
    unknown = tc.disclosure_risk(before, after)
    expected = (1 - tc.information.entropy(before) / np.log(before.size)) * (
        1 - left / tc.information.entropy(before)
    )
    np.testing.assert_allclose(risk.entropy_term, expected, rtol=1e-12)
    np.testing.assert_allclose(
        risk.R2 - unknown.R2, 0.8 * (risk.entropy_term - unknown.entropy_term), atol=1e-12
    )
    assert bool((risk.R2 <= risk.R1).all())
    # The same conditional entropy gives the same R2.
    same = tc.disclosure_risk(
        before, after, conditional_entropy=tc.information.conditional_entropy(before, after)
    )
    xr.testing.assert_allclose(same, unknown)


def test_bad_conditional_entropy_of_r2(swapped):
    people, swaps = swapped
    before, after = tc.tabulate(people, DIMS), tc.perturbation.swapped_table(people, swaps, DIMS)
    left = tc.perturbation.swapping_conditional_entropy(people, swaps, DIMS)
    with pytest.raises(ParameterError, match="give released, too"):
        tc.disclosure_risk(before, conditional_entropy=left)
    with pytest.raises(
        ParameterError, match=r"from 0 to H\(X\), in nats: replicate=1 holds -1, H\(X\) is"
    ):
        tc.disclosure_risk(before, after, conditional_entropy=left.where(left.replicate != 1, -1.0))
    with pytest.raises(ParameterError, match="from 0 to"):
        tc.disclosure_risk(before, after, conditional_entropy=left + 10)
    with pytest.raises(ParameterError, match="labels of 'replicate' differ"):
        tc.disclosure_risk(before, after, conditional_entropy=left[:2])
    with pytest.raises(ParameterError, match=r"dimensions among \('replicate',\), got \('draw',\)"):
        tc.disclosure_risk(before, after, conditional_entropy=left.rename(replicate="draw"))
    with pytest.raises(ParameterError, match="got float"):
        tc.disclosure_risk(before, after, conditional_entropy=0.5)


def test_a_large_table_is_never_squared():
    rng = np.random.default_rng(2)
    people = pd.DataFrame({"area": rng.integers(0, 500, 3000), "age": rng.integers(0, 90, 3000)})
    swaps = tc.swap_records(
        people, geography="area", rate=0.2, at_risk=["area", "age"], random_seed=1
    )
    left = tc.perturbation.swapping_conditional_entropy(
        people, swaps, ["area", "age"]
    )  # 45,000 cells: 16 GB if squared
    assert 0 < float(left[0]) < float(tc.information.entropy(tc.tabulate(people, ["area", "age"])))
    assert int(swaps.pairs[0]) == 300


# ---------------------------------------------------------------- how records come, and
# bad input


def test_forms_of_microdata_and_the_seed(tmp_path):
    people = PEOPLE.astype(str)
    ask = {
        "geography": "area",
        "rate": 0.6,
        "match": ["household"],
        "at_risk": ["religion"],
        "replicates": 3,
    }
    expected = tc.swap_records(people, **ask, random_seed=1)
    people.to_csv(tmp_path / "people.csv", index=False)
    for form in (pl.from_pandas(people), tmp_path / "people.csv"):
        assert tc.swap_records(form, **ask, random_seed=1).equals(expected)
        assert tc.perturbation.swapped_table(form, expected, ["area", "religion"]).equals(
            tc.perturbation.swapped_table(people, expected, ["area", "religion"])
        )
    assert not tc.swap_records(people, **ask, random_seed=2).equals(expected)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rate": 1.5}, ParameterError, "rate must be a number from 0 to 1, got 1.5"),
        ({"rate": -0.1}, ParameterError, "got -0.1"),
        ({"minimum": 1}, ParameterError, "minimum must be a whole number of at least 2, got 1"),
        (
            {"replicates": 0},
            ParameterError,
            "replicates must be a whole number of at least 1, got 0",
        ),
        ({"match": ["area"]}, ParameterError, "'area' cannot be in match"),
        ({"geography": "ward"}, TableError, r"no variable \['ward'\] in the data frame"),
        ({"at_risk": ["age"]}, TableError, r"no variable \['age'\]"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        tc.swap_records(PEOPLE, **({"geography": "area", "rate": 0.5} | arguments))


def test_no_eligible_partner_names_a_record():
    people = pd.DataFrame({"area": list("AAB"), "household": [1, 1, 2]})
    with pytest.raises(
        ParameterError,
        match=r"row 1, area=A, household=1, .* agrees on \['household'\] in another area",
    ):
        tc.swap_records(people, geography="area", rate=0.5, match=["household"])
    with pytest.raises(
        ParameterError, match="row 1, area=A, like every other, has none in another area"
    ):
        tc.swap_records(people[:2], geography="area", rate=0.5)


def test_swaps_of_other_records():
    swaps = tc.swap_records(PEOPLE, geography="area", rate=0.5, random_seed=1)
    with pytest.raises(TableError, match="swaps are of 6 records, the data frame has 3"):
        tc.perturbation.swapped_table(PEOPLE[:3], swaps, ["area"])
    with pytest.raises(
        ParameterError, match=r"must include the geography 'area', .* got \['religion'\]"
    ):
        tc.perturbation.swapped_table(PEOPLE, swaps, ["religion"])
    with pytest.raises(TableError, match="swaps must be a result of swap_records, got DataArray"):
        tc.perturbation.swapped_table(PEOPLE, swaps.partner, ["area"])
    renamed = PEOPLE.rename(columns={"religion": "area_released"})
    with pytest.raises(ParameterError, match="rename the variable"):
        tc.perturbation.swapping_joint(renamed, swaps, ["area", "area_released"])


@pytest.mark.parametrize(
    "change",
    [
        {"match": None},
        {"at_risk": None},
        {"geography": ["area"]},
        {"match": [["sex"]]},
        {"at_risk": 3},
    ],
)
def test_names_that_are_none(change) -> None:
    people = pd.DataFrame({"area": [1, 1, 2, 2], "sex": ["f", "m", "f", "m"]})
    arguments = {"geography": "area", "rate": 1, "random_seed": 1, **change}
    with pytest.raises(ParameterError, match=next(iter(change))):
        tc.swap_records(people, **arguments)
    swaps = tc.swap_records(people, geography="area", rate=1, random_seed=1)
    with pytest.raises(ParameterError, match="variables must be names of variables, got None"):
        tc.perturbation.swapped_table(people, swaps, None)
    with pytest.raises(TableError, match="swaps must be over replicate and record"):
        tc.perturbation.swapped_table(people, swaps.isel(replicate=0), ["area", "sex"])


def test_what_a_seed_has_drawn_is_not_for_release():
    swaps = tc.swap_records(PEOPLE, geography="area", rate=0.5)
    assert "not_for_release" not in swaps.attrs
    assert table_after(swaps).attrs == {}
    swaps = tc.swap_records(PEOPLE, geography="area", rate=0.5, random_seed=1)
    assert table_after(swaps).attrs == {"not_for_release": swaps.attrs["not_for_release"]}


def table_after(swaps):
    variables = ["area", *(name for name in PEOPLE.columns if name != "area")]
    return tc.perturbation.swapped_table(PEOPLE, swaps, variables)
