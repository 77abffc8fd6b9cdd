"""What holds for every table and every protection method."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given, settings, strategies as st

import taciturn as tc
from perturbed import controlled_pmf, controlled_roundings
from strategies import pairs, shapes, tables
from taciturn.errors import ParameterError, PerturbationError, TableError

BASES = st.integers(2, 11)
SEEDS = st.integers(0, 2**32)
RANDOM = {
    "random": tc.random_round,
    "controlled": tc.controlled_round,
    "adjusted": tc.perturbation.adjust_small_cells,
    "small counts": tc.perturbation.round_small_counts,
    "geometric": partial(tc.add_noise, epsilon=0.5),
    "cell key": partial(tc.cell_key, perturbation=tc.perturbation.perturbation_table(3, 1)),
}
FEWER = settings(max_examples=8)  # of each method
CERTAIN = {
    "conventional": tc.perturbation.conventional_round,
    "suppressed": partial(tc.perturbation.suppress_small_cells, minimum=3),
}
METHODS = {**RANDOM, **CERTAIN}


def some_tables(**options):
    return tables(shape=shapes(max_dims=2, max_side=4), populated=False, **options)


@pytest.mark.parametrize("method", METHODS)
@given(table=some_tables(max_count=30))
@FEWER
def test_whole_tables_with_the_labels_along_replicate(method, table):
    released = METHODS[method](table)
    assert released.dims == ("replicate", *table.dims)
    assert released.dtype == np.int64
    assert released.sizes["replicate"] == 1
    tc.tables.check_table(released, draws=True)
    marked = {"suppressed"} if method == "suppressed" else set()
    assert set(released.coords) == {"replicate", *table.dims} | marked
    assert released.isel(replicate=0, drop=True).drop_vars(marked).coords.equals(table.coords)
    assert tc.information_loss(table, released).sizes == {"replicate": 1}


@pytest.mark.parametrize("method", RANDOM)
@given(table=some_tables(), seed=SEEDS, replicates=st.integers(1, 4))
@FEWER
def test_the_seed_decides(method, table, seed, replicates):
    first, again = (
        RANDOM[method](table, replicates=replicates, random_seed=seed) for _ in range(2)
    )
    assert first.equals(again)
    assert first.replicate.values.tolist() == list(range(replicates))


@pytest.mark.parametrize("method", METHODS)
@given(table=some_tables())
@FEWER
def test_a_release_has_no_attributes(method, table):
    """Neither a seed nor what the table itself has."""
    table = table.assign_attrs(true=table.values.tolist())
    table[table.dims[0]].attrs["totals"] = table.sum(table.dims[1:]).values.tolist()
    released = METHODS[method](table)
    assert released.attrs == {}
    assert all(coordinate.attrs == {} for coordinate in released.coords.values())


@pytest.mark.parametrize("method", RANDOM)
@given(table=some_tables(), seed=SEEDS)
@FEWER
def test_what_a_seed_has_drawn_is_not_for_release(method, table, seed):
    for given_seed in (seed, np.random.default_rng(seed)):
        released = RANDOM[method](table, random_seed=given_seed)
        assert released.attrs == {
            "not_for_release": "drawn with random_seed: whoever tries seeds can undo the protection"
        }


@pytest.mark.parametrize("method", METHODS)
@given(table=some_tables(), seed=SEEDS)
@FEWER
def test_what_follows_a_seed_is_not_for_release_either(method, table, seed):
    """Counts that a second method leaves as they are are those of the seed."""
    first = tc.add_noise(table, epsilon=1, random_seed=seed)[0]
    assert METHODS[method](first).attrs == first.attrs
    assert "not_for_release" in first.attrs


def test_no_release_of_what_a_seed_has_drawn_is_written(tmp_path):
    table = xr.DataArray([[4, 1], [8, 6]], dims=("a", "b"), coords={"a": [0, 1], "b": [0, 1]})
    drawn = tc.random_round(table, random_seed=1)[0]
    assert tc.draw_sample(drawn, fraction=0.5, replicates=2).attrs == drawn.attrs
    hidden = table < 2
    for release in (
        tc.Rounding(drawn, 3, method="random"),
        tc.Suppression(drawn, hidden),
        tc.GlobalRecoding(drawn, {"a": {"all": [0, 1]}}),
        tc.suppress(drawn, hidden, progressbar=False),
    ):
        with pytest.raises(ParameterError, match="must not be released: its table is drawn with"):
            tc.write_release(release, tmp_path / "t.csv")
        assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize("method", ["random", "controlled", "conventional"])
@given(table=some_tables(max_count=50), base=BASES)
def test_neighbouring_multiples(method, table, base):
    rounded = METHODS[method](table, rounding_base=base)
    assert bool((rounded % base == 0).all())
    assert bool((abs(rounded - table) < base).all())


@given(some_tables(max_count=20), BASES, SEEDS)
def test_all_totals_of_one_and_two_variables_are_controlled(table, base, seed):
    rounded = tc.controlled_round(table, rounding_base=base, replicates=3, random_seed=seed)
    for size in range(table.ndim):
        for names in combinations(table.dims, size):
            assert bool(
                (abs(tc.margin(rounded, list(names)) - tc.margin(table, list(names))) < base).all()
            )


@given(tables(shape=shapes(max_dims=2, max_side=2), populated=False), st.integers(2, 4))
def test_controlled_rounding_is_unbiased_and_reaches_nothing_else(table, base):
    counts = table.values.reshape(-1, table.shape[-1])
    pmf = controlled_pmf(counts.tolist(), base)
    means = [sum(p * outcome[cell] for outcome, p in pmf.items()) for cell in range(table.size)]
    assert means == table.values.ravel().tolist()
    rounded = tc.controlled_round(table, rounding_base=base, replicates=20, random_seed=1)
    assert {tuple(row) for row in rounded.values.reshape(20, -1).tolist()} <= set(pmf)


@given(
    tables(shape=shapes(max_dims=3, max_side=2).filter(lambda s: len(s) == 3), populated=False),
    SEEDS,
    st.data(),
)
def test_the_integer_program_finds_a_rounding_where_there_is_one(table, seed, data):
    base = data.draw(st.integers(2, 4))
    subsets = [names for size in (1, 2) for names in combinations(table.dims, size)]
    margins = data.draw(st.none() | st.lists(st.sampled_from(subsets), unique=True))
    kept = [(), *((dim,) for dim in table.dims)] if margins is None else [(), *margins]
    possible = {
        tuple(rounded.ravel().tolist()) for rounded in controlled_roundings(table, base, kept)
    }
    if not possible:
        with pytest.raises(PerturbationError, match="no controlled rounding"):
            tc.controlled_round(table, rounding_base=base, margins=margins, random_seed=seed)
        return
    rounded = tc.controlled_round(table, rounding_base=base, margins=margins, random_seed=seed)
    assert tuple(rounded.values.ravel().tolist()) in possible


@given(some_tables(max_count=20), BASES)
def test_small_cells_and_the_others(table, threshold):
    small = tc.perturbation.small_cells(table, minimum=threshold)
    adjusted = tc.perturbation.adjust_small_cells(table, minimum=threshold, random_seed=1).isel(
        replicate=0
    )
    suppressed = tc.perturbation.suppress_small_cells(table, minimum=threshold).isel(replicate=0)
    assert bool(((adjusted == table) & (suppressed == table)).where(~small, True).all())
    assert bool((adjusted.isin([0, threshold]) & (suppressed == 1)).where(small, True).all())


@given(some_tables(max_count=20), st.integers(2, 4), SEEDS)
def test_totals_are_within_the_base_of_the_true_ones(table, base, seed):
    rounded = tc.random_round(table, rounding_base=base, totals="Total", random_seed=seed).isel(
        replicate=0, drop=True
    )
    for size in range(table.ndim + 1):
        for names in combinations(table.dims, size):
            totals = rounded.sel({dim: "Total" for dim in table.dims if dim not in names})
            totals = totals.drop_sel(dict.fromkeys(names, "Total"))
            assert bool((abs(totals.values - tc.margin(table, list(names)).values) < base).all())


@pytest.mark.parametrize("method", METHODS)
@given(table=some_tables(), data=st.data())
@FEWER
def test_what_is_no_table(method, table, data):
    cell = data.draw(st.integers(0, table.size - 1))
    for wrong, rule in (
        (-1.0, "not be negative"),
        (0.5, "be whole numbers"),
        (np.nan, "not be missing"),
    ):
        values = table.values.astype(float)
        values.flat[cell] = wrong
        with pytest.raises(TableError, match=rule):
            METHODS[method](table.copy(data=values))
    with pytest.raises(TableError, match="must be one table"):
        METHODS[method](table.expand_dims("draw"))


@given(pairs(table_dims=("draw",), release_dims=("replicate",), empty_release=True))
def test_information_loss_is_the_formulas(pair):
    F, G = pair
    loss = tc.information_loss(F, G)
    cells = [dim for dim in F.dims if dim != "draw"]
    assume(loss.sizes)
    empty = (F == 0).sum(cells)
    assert bool((loss.kept_zeros + loss.lost_zeros == empty).all())
    assert bool((loss.kept_zeros + loss.new_zeros == (G == 0).sum(cells)).all())
    xr.testing.assert_allclose(
        loss.hellinger, tc.information.hellinger_distance(F, G).rename("hellinger")
    )
    xr.testing.assert_allclose(
        loss.mean_absolute_error, abs(G - F).mean(cells).transpose(*loss.hellinger.dims)
    )
    relative = (abs(G - F) / F.clip(min=1)).mean(cells).transpose(*loss.hellinger.dims)
    xr.testing.assert_allclose(loss.mean_relative_error, relative)
    if len(cells) == 2:
        assert bool((abs(loss.cramers_v_change) <= 1 + 1e-12).all())
