"""The cell-key method for magnitudes: a slow twin, exact moments, consistency."""

from collections import defaultdict
from fractions import Fraction
from math import floor

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st
from scipy.stats import chisquare

import taciturn as tc
from taciturn.errors import ParameterError, TableError
from taciturn.perturbation.magnitude_noise import check_magnitude_perturbation, drawn_noise
from taciturn.perturbation.summed_keys import further_keys

cell_key_magnitudes = tc.perturbation.cell_key_magnitudes
magnitude_perturbation_table = tc.perturbation.magnitude_perturbation_table
FlexShare = tc.perturbation.FlexShare
NOISE = magnitude_perturbation_table(2, 1)
FLEX = FlexShare(small=0.3, large=0.03, turn=1000)

# ---------------------------------------------------------------- perturbation tables


@pytest.mark.parametrize(("max_noise", "variance", "pstay"), [(2, 1, None), (4, 1.5, 0.4)])
def test_steps_of_one_are_the_noise_of_counts(max_noise, variance, pstay):
    counts = tc.perturbation.perturbation_table(max_noise, variance, pstay=pstay)
    noise = magnitude_perturbation_table(max_noise, variance, grid=1, pstay=pstay)
    for ratio in range(max_noise + 1):
        shifted = np.zeros(2 * max_noise + 1)
        shifted[max_noise - ratio :] = counts.values[ratio, : max_noise + ratio + 1]
        np.testing.assert_array_equal(noise.values[ratio], shifted)


@pytest.mark.parametrize(
    ("max_noise", "variance", "grid", "pstay"),
    [(2, 1, 2, None), (5, 2, 4, None), (3, 2, 2, 0.5), (2, 4, 10, [None, 0.2])],
)
def test_rows_meet_every_condition(max_noise, variance, grid, pstay):
    table = magnitude_perturbation_table(max_noise, variance, grid=grid, pstay=pstay)
    assert table.dims == ("ratio", "noise")
    assert table.noise.values.tolist() == [
        step / grid for step in range(-max_noise * grid, max_noise * grid + 1)
    ]
    np.testing.assert_allclose(table.sum("noise"), 1, rtol=0, atol=1e-12)
    np.testing.assert_allclose((table * table.noise).sum("noise"), 0, rtol=0, atol=1e-9)
    assert float((table * table.noise**2).sum("noise").max()) <= variance + 1e-9
    assert not table.where(table.noise < -table.ratio, 0).values.any()
    assert table.sel(ratio=0, noise=0) == 1


def test_interpolated_noise_has_mean_0_and_takes_no_more_than_there_is():
    """Exactly, by the probability of each pair of outcomes: between two cumulated
    probabilities of either row the noise does not change."""
    table = magnitude_perturbation_table(3, 2, grid=2)
    cumulated, noise = check_magnitude_perturbation(table)
    for ratio in (0, 0.2, 1, 1.5, 2.9, 3, 7):
        cuts = np.unique(np.clip(cumulated, 0, 1))
        cuts = np.concatenate([[0], cuts, [1]])
        middles, chances = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)
        drawn = drawn_noise(np.full(len(middles), ratio), middles, cumulated, noise)
        assert chances @ drawn == pytest.approx(0, abs=1e-9)
        assert chances @ drawn**2 <= 2 + 1e-9
        assert drawn[chances > 0].min() >= -min(ratio, 3) - 1e-12
        if ratio >= 3:
            assert chances @ drawn**2 == pytest.approx(2)


def test_the_share_is_the_published_function():
    """Giessing & Tent (2019): m₂ (1 + (m₁ x - m₂ z) / (m₂ z) (2 z / (z + x))^q)."""
    for x in (1000, 1500, 10_000, 10**7):
        expected = 0.03 * (1 + (0.3 * x - 30) / 30 * (2000 / (1000 + x)) ** 3)
        assert FLEX.at(x) == pytest.approx(expected)
    assert FLEX.at([0, 1, 1000]).tolist() == pytest.approx([0.3] * 3)
    assert FLEX.at(10**9) == pytest.approx(0.03)


def test_further_keys_are_those_of_splitmix64():
    """Its first three outputs from the state 0, as all implementations publish them."""
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    for number, output in enumerate(published, start=1):
        assert further_keys(np.zeros(1), number)[0] == (output >> 11) / 2**53


def test_further_keys_are_uniform_and_unrelated():
    keys = np.random.default_rng(1).random(20_000)
    columns = [keys, *(further_keys(keys, number) for number in (1, 2, 3))]
    for place, one in enumerate(columns):
        for other in columns[:place]:
            pairs, *_ = np.histogram2d(one, other, bins=10, range=[[0, 1]] * 2)
            assert chisquare(pairs.ravel()).pvalue > 1e-6


# ---------------------------------------------------------------- totals


@pytest.fixture(scope="module")
def firms():
    """Sixty rows of forty firms; all of area C are of one trade."""
    rng = np.random.default_rng(5)
    area = rng.choice(["A", "B", "C"], size=60, p=[0.5, 0.4, 0.1])
    trade = np.where(area == "C", "f", rng.choice(["f", "m"], size=60))
    turnover = np.round(rng.lognormal(5, 1.5, 60), 1) * rng.choice([0, 1], 60, p=[0.1, 0.9])
    key = np.random.default_rng(6).random(60)
    firm = rng.integers(0, 40, 60)
    return pd.DataFrame(
        {"area": area, "trade": trade, "firm": firm, "turnover": turnover, "key": key}
    )


def twin(frame, variables, *, share, weights, separation, contributor, table):
    """The method row by row, with fractions."""
    rows = defaultdict(list)
    for _, row in frame.iterrows():
        x = Fraction(str(row.turnover))
        if x > 0:
            rows[tuple(row[list(variables)])].append((x, row.firm, int(row.key * 2**53)))
    out = {}
    for cell, held in rows.items():
        total = sum(x for x, _, _ in held)
        key = sum(key for _, _, key in held) % 2**53 / 2**53
        sizes = defaultdict(Fraction)
        for number, (x, firm, _) in enumerate(held):
            sizes[firm if contributor else number] += x
        largest = sorted(sizes.values(), reverse=True)[: len(weights)]
        m = float(share.at(float(total)))
        parts = [(m * e * float(x), float(x)) for e, x in zip(weights, largest, strict=False)]
        if total <= separation:
            parts = [(share.small * separation, float(total))]
        added = 0.0
        for number, (unit, size) in enumerate(parts, start=1):
            u = float(further_keys(np.array([key]), number)[0])
            ratio = min(size / unit, table.sizes["ratio"] - 1) if unit else 0
            low = floor(ratio)
            found = []
            for row in (low, min(low + 1, table.sizes["ratio"] - 1)):
                cumulated = np.cumsum(table.values[row])
                found.append(float(table.noise[int((cumulated <= u).sum())]))
            added += unit * (found[0] + (ratio - low) * (found[1] - found[0]))
        out[cell] = float(total) + round(added, 1)
    return out


@pytest.mark.parametrize("contributor", [None, "firm"])
@pytest.mark.parametrize(
    ("share", "weights", "separation"),
    [
        (FLEX, (1,), 0),
        (FLEX, (1, 0.5, 0.2), 0),
        (FlexShare(small=0.9, large=0.4, turn=300), (1, 0.4), 500),
    ],
)
def test_a_slow_twin(firms, contributor, share, weights, separation):
    for variables in (["area"], ["trade", "area"]):
        found = cell_key_magnitudes(
            firms,
            variables,
            "turnover",
            perturbation=NOISE,
            share=share,
            rank_weights=weights,
            separation=separation,
            contributor=contributor,
            decimals=1,
            keys="key",
        )
        expected = twin(
            firms,
            variables,
            share=share,
            weights=weights,
            separation=separation,
            contributor=contributor,
            table=NOISE,
        )
        assert found.dims == ("replicate", *variables)
        series = found.isel(replicate=0, drop=True).stack(cell=variables).to_series()
        for cell, released in series.items():
            cell = cell if isinstance(cell, tuple) else (cell,)
            assert released == pytest.approx(expected.get(cell, 0), abs=1e-9)


def test_mean_and_variance():
    """Of 20,000 totals: the mean has a standard error of sd / 141, the variance one of
    at most 1.2 % for noise of bounded size."""
    frame = pd.DataFrame({"area": list("AAAAB"), "turnover": [6000, 3000, 800, 200, 50]})
    drawn = cell_key_magnitudes(
        frame,
        ["area"],
        "turnover",
        perturbation=NOISE,
        share=0.2,
        rank_weights=(1, 0.5),
        separation=100,
        replicates=20_000,
        random_seed=3,
    )
    # B is small: 20 units of 0.2 * 100, and 50 / 20 >= 2.
    variances = [(0.2 * 6000) ** 2 + (0.2 * 0.5 * 3000) ** 2, (0.2 * 100) ** 2]
    for cell, total, variance in zip("AB", (10_000, 50), variances, strict=True):
        values = drawn.sel(area=cell)
        assert float(values.mean()) == pytest.approx(total, abs=5 * variance**0.5 / 141)
        assert float(values.var()) == pytest.approx(variance, rel=0.06)


def test_the_same_records_get_the_same_noise(firms, tmp_path):
    ask = {
        "value": "turnover",
        "perturbation": NOISE,
        "share": FLEX,
        "rank_weights": (1, 0.5),
        "decimals": 1,
        "keys": "key",
    }
    areas = cell_key_magnitudes(firms, ["area"], **ask)
    both = cell_key_magnitudes(firms, ["trade", "area"], **ask)
    assert areas.sel(area="C", drop=True).equals(both.sel(area="C", trade="f", drop=True))
    assert bool((areas.sel(area="C") != firms.turnover[firms.area == "C"].sum()).all())
    firms.to_csv(tmp_path / "firms.csv", index=False)
    for form in (firms.sample(frac=1, random_state=1), tmp_path / "firms.csv"):
        assert cell_key_magnitudes(form, ["area"], **ask).equals(areas)
    # Records of 0 add nothing to the key.
    assert cell_key_magnitudes(firms[firms.turnover > 0], ["area"], **ask).equals(areas)


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 50), min_size=3, max_size=8),
    st.floats(0.05, 1),
    st.integers(0, 60),
    st.integers(0, 2**32),
)
def test_no_total_becomes_negative_and_zero_stays(values, share, separation, seed):
    frame = pd.DataFrame({"x": [*("ab" * 4)[: len(values)], "z"], "value": [*values, 0]})
    table = magnitude_perturbation_table(5, 6, grid=1)
    drawn = cell_key_magnitudes(
        frame,
        ["x"],
        "value",
        perturbation=table,
        share=share,
        rank_weights=(1, 1),
        separation=separation,
        replicates=20,
        random_seed=seed,
    )
    assert float(drawn.min()) >= 0
    assert not drawn.sel(x="z").values.any()
    totals = frame.groupby("x").value.sum()
    for cell in ("a", "b"):
        if totals[cell] == 0:
            assert not drawn.sel(x=cell).values.any()


def test_only_a_seed_is_marked(firms):
    ask = {"variables": ["area"], "value": "turnover", "perturbation": NOISE, "share": 0.1}
    for keys in (None, "key"):
        assert cell_key_magnitudes(firms, keys=keys, decimals=1, **ask).attrs == {}
    seeded = cell_key_magnitudes(firms, random_seed=1, decimals=1, **ask)
    assert list(seeded.attrs) == ["not_for_release"]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"share": 0}, ParameterError, "share must be a number above 0 and at most 1, got 0"),
        ({"share": 1.5}, ParameterError, "share must be .* got 1.5"),
        ({"separation": -1}, ParameterError, "separation must be .* at least 0, got -1"),
        ({"rank_weights": ()}, ParameterError, r"rank_weights must be 1 to 100 numbers, .*\(\)"),
        ({"rank_weights": (0.5,)}, ParameterError, "rank_weights must be"),
        ({"rank_weights": (1, 0.2, 0.5)}, ParameterError, "rank_weights must be"),
        ({"rank_weights": (1, -0.1)}, ParameterError, "rank_weights must be"),
        ({"decimals": 0}, TableError, "'turnover' must be .* at most 0 decimals: row 1 .* 10.5"),
        ({"value": "profit"}, TableError, "no column 'profit' of values"),
        ({"value": "loss"}, TableError, "'loss' must be a number of at least 0 .* row 2 .* -1"),
        ({"keys": "key", "replicates": 2}, ParameterError, "replicates must be 1 if record keys"),
        ({"keys": "key", "random_seed": 2}, ParameterError, "random_seed must be None"),
        (
            {"perturbation": tc.perturbation.perturbation_table(2, 1)},
            ParameterError,
            r"perturbation must be a DataArray with the dims \('ratio', 'noise'\)",
        ),
        (
            {"perturbation": NOISE.assign_coords(noise=NOISE.noise - 1)},
            ParameterError,
            "totals cannot become negative: ratio=0, noise=-1 holds 1",
        ),
        (
            {"perturbation": NOISE.assign_coords(noise=NOISE.noise + 1)},
            ParameterError,
            "zero must stay zero: ratio=0, noise=1 holds 1",
        ),
    ],
)
def test_bad_arguments(changed, error, message):
    frame = pd.DataFrame(
        {"area": list("AB"), "turnover": [10.5, 2], "loss": [1, -1], "key": [0.3, 0.9]}
    )
    ask = {"value": "turnover", "perturbation": NOISE, "share": 0.1, "decimals": 1} | changed
    with pytest.raises(error, match=message):
        cell_key_magnitudes(frame, ["area"], **ask)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"small": 0}, "small must be a number above 0 and at most 1, got 0"),
        ({"large": 0}, "large must be a finite number above 0, got 0"),
        ({"large": 0.3}, "large must be below small, 0.3; got 0.3"),
        ({"turn": 0}, "turn must be a finite number above 0, got 0"),
        ({"power": 1}, "power must be a finite number above 1, got 1"),
    ],
)
def test_bad_shares(changed, message):
    with pytest.raises(ParameterError, match=message):
        FlexShare(**{"small": 0.3, "large": 0.03, "turn": 1000} | changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"grid": 0}, "grid must be a whole number from 1 to 50, got 0"),
        ({"grid": 51}, "grid must be a whole number from 1 to 50, got 51"),
        ({"variance": 5}, "variance must be a number above 0 and at most 4, got 5"),
        ({"pstay": [0.5]}, "pstay must be one value or 2"),
        ({"pstay": 0.01}, "the ratio 1 has no noise .* probability 0.01; accepted there: pstay"),
    ],
)
def test_bad_tables(changed, message):
    with pytest.raises(ParameterError, match=message):
        magnitude_perturbation_table(**{"max_noise": 2, "variance": 1} | changed)


def test_a_table_of_other_software_is_taken():
    rows = xr.DataArray(
        [[0, 1, 0], [0.5, 0, 0.5]],
        dims=("ratio", "noise"),
        coords={"ratio": [0, 1], "noise": [-1, 0, 1]},
    )
    frame = pd.DataFrame({"x": ["a"], "value": [100]})
    drawn = cell_key_magnitudes(
        frame, ["x"], "value", perturbation=rows, share=0.1, replicates=50, random_seed=1
    )
    assert set(drawn.values.ravel()) == {90, 110}
