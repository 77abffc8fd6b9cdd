"""The cell-key method: exact distributions, and keys that agree across tables."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from hypothesis import given, strategies as st

import taciturn as tc
from exact import assert_same_distribution
from strategies import tables
from taciturn.errors import ParameterError, TableError

DRAWS = 20_000

# ---------------------------------------------------------------- one table


def expected_tables(counts, perturbation):
    """Distribution of the perturbed table: cells have no record in common, so they are
    independent."""
    last = perturbation.sizes["original"] - 1
    cells = []
    for count in counts:
        row = perturbation.sel(original=min(count, last))
        shift = count - min(count, last)
        cells.append(
            [(int(j) + shift, float(p)) for j, p in zip(row.perturbed, row, strict=True) if p > 0]
        )
    return {
        tuple(j for j, _ in cell): float(np.prod([p for _, p in cell])) for cell in product(*cells)
    }


COUNTS = (0, 1, 2, 7)
NOISE = {"max_noise": 2, "variance": 0.7}


def test_distribution_of_one_table():
    perturbation = tc.perturbation.perturbation_table(**NOISE)
    table = xr.DataArray(np.reshape(COUNTS, (2, 2)), dims=("x", "y"))
    drawn = tc.cell_key(table, perturbation=perturbation, replicates=DRAWS, random_seed=3)
    assert drawn.dims == ("replicate", "x", "y")
    assert drawn.dtype == np.int64
    assert_same_distribution(drawn.values.reshape(DRAWS, -1), expected_tables(COUNTS, perturbation))


def test_record_keys_give_the_same_distribution():
    people = pd.DataFrame({"x": np.repeat(["b", "c", "d"], COUNTS[1:])})
    perturbation = tc.perturbation.perturbation_table(**NOISE)
    drawn = tc.perturbation.cell_key_records(
        people,
        ["x"],
        perturbation=perturbation,
        categories={"x": list("abcd")},
        replicates=DRAWS,
        random_seed=4,
    )
    assert_same_distribution(drawn.values, expected_tables(COUNTS, perturbation))


def test_the_key_chooses_from_the_cumulated_row():
    rows = [[1, 0, 0, 0], [0.25, 0.5, 0, 0.25]]
    perturbation = xr.DataArray(
        rows, dims=("original", "perturbed"), coords={"original": [0, 1], "perturbed": [0, 1, 2, 3]}
    )
    people = pd.DataFrame({"x": list("abcdef"), "key": [0, 0.2499, 0.25, 0.7499, 0.75, 1 - 2**-53]})
    released = tc.perturbation.cell_key_records(
        people, ["x"], perturbation=perturbation, keys="key"
    )
    assert released.values.tolist() == [[0, 0, 1, 1, 3, 3]]


def test_rounding_of_the_last_sum_leaves_no_key_without_an_outcome():
    row = [0.1] * 10
    assert np.cumsum(row)[-1] < 1  # 0.9999999999999999
    perturbation = xr.DataArray(
        [[1] + [0] * 11, [*row, 0, 0]],
        dims=("original", "perturbed"),
        coords={"original": [0, 1], "perturbed": range(12)},
    )
    one = pd.DataFrame({"x": ["a"]})
    released = tc.perturbation.cell_key_records(
        one, ["x"], perturbation=perturbation, keys=[1 - 2**-53]
    )
    assert released.values.tolist() == [[9]]


def test_the_seed_decides():
    table, noise = tc.load_dataset("area_by_religion"), tc.perturbation.perturbation_table(3, 1)
    first, again, other = (tc.cell_key(table, perturbation=noise, random_seed=s) for s in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert first.isel(replicate=0, drop=True).coords.equals(table.coords)


@given(
    tables(), st.sampled_from([(1, 0.5, 0), (3, 1, 0), (5, 3, 1), (5, 2, 2)]), st.integers(0, 2**32)
)
def test_released_counts_are_publishable(table, parameters, seed):
    max_noise, variance, js = parameters
    perturbation = tc.perturbation.perturbation_table(max_noise, variance, js=js)
    released = tc.cell_key(table, perturbation=perturbation, replicates=3, random_seed=seed)
    assert released.dtype == np.int64
    assert bool((released >= 0).all())
    assert bool((abs(released - table) <= max_noise).all())
    assert not bool(((released > 0) & (released <= js)).any())
    assert not bool(released.where(table == 0, 0).any())


# ---------------------------------------------------------------- records


@pytest.fixture(scope="module")
def people():
    """Sixty people; all of area C are of one sex, so the cell and its margin hold the
    same records."""
    rng = np.random.default_rng(5)
    area = rng.choice(["A", "B", "C"], size=60, p=[0.5, 0.4, 0.1])
    sex = np.where(area == "C", "f", rng.choice(["f", "m"], size=60))
    return pd.DataFrame({"area": area, "sex": sex, "key": np.random.default_rng(6).random(60)})


def test_the_same_records_get_the_same_noise(people):
    noise = tc.perturbation.perturbation_table(3, 1)
    differed = False
    for seed in range(50):
        keys = np.random.default_rng(seed).random(len(people))
        one = tc.perturbation.cell_key_records(people, ["area"], keys=keys, perturbation=noise)
        two = tc.perturbation.cell_key_records(
            people, ["sex", "area"], keys=keys, perturbation=noise
        )
        assert one.sel(area="C", drop=True).equals(two.sel(area="C", sex="f", drop=True))
        differed |= bool((one.sel(area="C") != (people.area == "C").sum()).any())
    assert differed


def test_neither_the_order_of_the_records_nor_how_they_come_matters(people, tmp_path):
    noise = tc.perturbation.perturbation_table(3, 1)
    ask = {
        "variables": ["area", "sex"],
        "perturbation": noise,
        "keys": "key",
        "categories": {"area": list("ABC"), "sex": list("fm")},
    }
    expected = tc.perturbation.cell_key_records(people, **ask)
    people.to_csv(tmp_path / "people.csv", index=False)
    shuffled = people.sample(frac=1, random_state=1)
    for form in (shuffled, pl.from_pandas(people), tmp_path / "people.csv"):
        assert tc.perturbation.cell_key_records(form, **ask).equals(expected)
    given_keys = ask | {"keys": people.key.tolist()}
    assert tc.perturbation.cell_key_records(people, **given_keys).equals(expected)


def test_the_sum_of_keys_is_exact_in_any_order():
    keys = np.random.default_rng(1).random(10_000)
    exact = sum(int(key * 2**53) for key in keys) % 2**53 / 2**53
    grid = np.arange(2, 1002)  # a thousand outcomes tell nearby sums apart
    rows = np.zeros((2, 1002))
    rows[0, 0] = 1
    rows[1, grid] = 1 / 1000
    perturbation = xr.DataArray(
        rows, dims=("original", "perturbed"), coords={"original": [0, 1], "perturbed": range(1002)}
    )
    one = pd.DataFrame({"x": ["a"] * len(keys)})
    released = tc.perturbation.cell_key_records(one, ["x"], perturbation=perturbation, keys=keys)
    backwards = tc.perturbation.cell_key_records(
        one, ["x"], perturbation=perturbation, keys=keys[::-1]
    )
    assert released.item() == backwards.item() == len(keys) - 1 + grid[int(exact * 1000)]


def test_new_keys_in_every_replicate(people):
    noise = tc.perturbation.perturbation_table(3, 1)
    drawn = tc.perturbation.cell_key_records(
        people, ["area"], perturbation=noise, replicates=20, random_seed=7
    )
    keys = np.random.default_rng(7).random(len(people))
    assert drawn[:1].equals(
        tc.perturbation.cell_key_records(people, ["area"], perturbation=noise, keys=keys)
    )
    assert len(np.unique(drawn.values, axis=0)) > 1


def test_only_a_seed_is_marked(people):
    ask = {"variables": ["area"], "perturbation": tc.perturbation.perturbation_table(3, 1)}
    for keys in (None, "key"):
        assert tc.perturbation.cell_key_records(people, keys=keys, **ask).attrs == {}
    seeded = tc.perturbation.cell_key_records(people, random_seed=1, **ask)
    assert list(seeded.attrs) == ["not_for_release"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([0.5, np.nan, 0.1], r"numbers in \[0, 1\): row 2 is missing"),
        ([0.5, None, 0.1], "row 2 is missing"),
        ([0.5, 0.1, 1.0], "row 3 holds 1"),
        ([-0.1, 0.1, 0.2], "row 1 holds -0.1"),
        ([0.1, 0.2], r"one record key for each of 3 records, got shape \(2,\)"),
        ([["a"], ["b"], ["c"]], r"numbers in \[0, 1\)"),
        (["low", "0.1", "0.2"], r"numbers in \[0, 1\).*low"),
    ],
)
def test_bad_keys(keys, message):
    frame = pd.DataFrame({"x": list("abc")})
    with pytest.raises(ParameterError, match=message):
        tc.perturbation.cell_key_records(
            frame, ["x"], perturbation=tc.perturbation.perturbation_table(3, 1), keys=keys
        )


def test_other_bad_input(people):
    noise = tc.perturbation.perturbation_table(3, 1)
    with pytest.raises(TableError, match="no column 'keys' of record keys in the data frame"):
        tc.perturbation.cell_key_records(people, ["area"], perturbation=noise, keys="keys")
    with pytest.raises(TableError, match=r"no variable \['religion'\]"):
        tc.perturbation.cell_key_records(people, ["religion"], perturbation=noise)
    with pytest.raises(
        ParameterError, match="replicates must be 1 if record keys are given, got 2"
    ):
        tc.perturbation.cell_key_records(
            people, ["area"], perturbation=noise, keys="key", replicates=2
        )
    with pytest.raises(ParameterError, match="random_seed must be None if record keys are given"):
        tc.perturbation.cell_key_records(
            people, ["area"], perturbation=noise, keys="key", random_seed=1
        )
    with pytest.raises(TableError, match="must be one table"):
        tc.cell_key(xr.DataArray([[1, 2]], dims=("draw", "x")), perturbation=noise)
