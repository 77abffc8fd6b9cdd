"""R1 and R2: the published tables, the five properties, every edge, every argument."""

import csv
from itertools import pairwise
from math import log, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
import twins
from taciturn.errors import ParameterError, TableError
from taciturn.risk.table_risk import DEFAULT_WEIGHTS

LARGEST = 2**53
ROUNDINGS = 1000  # of the paper and of ours
STANDARD_ERRORS = 4.5
PRINTED = 0.00005
DATA = Path(__file__).parents[1] / "data" / "published_population_tables.csv"
RELIGION = tc.load_dataset("area_by_religion")


def cells(*counts: int) -> xr.DataArray:
    return xr.DataArray(list(counts), dims="x")


def size_term(individuals: int) -> float:
    return (1 + log(sqrt(individuals))) / sqrt(individuals)


class TestByHand:
    def test_before(self):
        risk = tc.disclosure_risk(cells(0, 2, 2, 0), weights=(0.2, 0.5, 0.3))
        assert float(risk.zero_term) == 2 / 4
        assert float(risk.entropy_term) == pytest.approx(1 - log(2) / log(4))
        assert float(risk.size_term) == pytest.approx(size_term(4))
        assert float(risk.R1) == pytest.approx(
            0.2 * 2 / 4 + 0.5 * (1 - log(2) / log(4)) + 0.3 * size_term(4)
        )
        assert "R2" not in risk

    @pytest.mark.parametrize("variant", ["2015", "2014"])
    def test_after(self, variant):
        # D = cells 3 and 4, E = cells 1 and 4: three cells in either, one in both. Cell
        # 1 loses everyone, half to cell 2 and half to cell 3: Y = 3 says X = 1, Y = 2
        # leaves a third for X = 1.
        risk = tc.disclosure_risk(
            cells(2, 2, 0, 0), cells(0, 3, 1, 0), weights=(0.2, 0.5, 0.3), variant=variant
        )
        left = 3 / 4 * -(1 / 3 * log(1 / 3) + 2 / 3 * log(2 / 3)) / log(2)
        factor = {"2015": 1 - left, "2014": left}[variant]
        assert float(risk.zero_term) == pytest.approx((2 / 4) ** (3 / 1))
        assert float(risk.entropy_term) == pytest.approx((1 - log(2) / log(4)) * factor)
        assert float(risk.R2) == pytest.approx(
            0.2 * (2 / 4) ** 3 + 0.5 * (1 - log(2) / log(4)) * factor + 0.3 * size_term(4)
        )

    def test_arguments_are_recorded(self):
        risk = tc.disclosure_risk(cells(1, 2), weights=[0.5, 0.25, 0.25], variant="2014")
        assert risk.attrs == {"weights": [0.5, 0.25, 0.25], "variant": "2014"}
        assert tc.disclosure_risk(cells(1, 2)).attrs == {
            "weights": list(DEFAULT_WEIGHTS),
            "variant": "2015",
        }


class TestFiveProperties:
    """ASE14, Section 1."""

    def test_1a_one_populated_cell_is_high_risk(self):
        assert float(tc.disclosure_risk(cells(0, 0, 0, 50, 0, 0)).R1) > 0.9

    def test_1b_uniform_frequencies_are_low_risk(self):
        assert float(tc.disclosure_risk(cells(50, 50, 50, 50)).R1) == pytest.approx(
            0.1 * size_term(200)
        )

    def test_2_small_counts_raise_the_risk(self):
        risks = [
            float(tc.disclosure_risk(cells(*counts)).R1)
            for counts in ([1, 2, 0], [10, 20, 0], [100, 200, 0])
        ]
        assert all(small > large for small, large in pairwise(risks))

    def test_3_more_cells_around_one_populated_cell_are_riskier(self):
        risks = [float(tc.disclosure_risk(cells(7, *[0] * empty)).R1) for empty in (1, 2, 5, 20)]
        assert all(fewer < more for fewer, more in pairwise(risks))

    @pytest.mark.parametrize(
        "table", [cells(1, 0), cells(1, 1), cells(LARGEST, LARGEST), cells(1, *[0] * 1000)]
    )
    def test_4_bounded(self, table):
        assert 0 <= float(tc.disclosure_risk(table).R1) <= 1


class TestEdges:
    def test_one_cell(self):
        with pytest.raises(TableError, match="at least 2 cells: the table has 1"):
            tc.disclosure_risk(cells(5))
        with pytest.raises(TableError, match="at least 2 cells: x=0 has 1"):
            tc.disclosure_risk(xr.DataArray([[5], [3]], dims=("x", "y")), dim="y")

    def test_nobody(self):
        with pytest.raises(TableError, match="at least 1 individuals: the table has 0"):
            tc.disclosure_risk(cells(0, 0))
        draws = cells(0, 0).expand_dims(draw=3)
        with pytest.raises(TableError, match="at least 1 individuals: draw=0 has 0"):
            tc.disclosure_risk(draws)

    @pytest.mark.parametrize("chunks", [None, {"area": 1}])
    @pytest.mark.parametrize("released", [[[1, 1], [0, 0]], [[1, 1], [2, 0]], [[0, 0], [3, 4]]])
    def test_a_category_without_people_has_no_risk(self, released, chunks):
        """Whatever is released of it, as a perturbed table may show people there."""
        table = xr.DataArray([[1, 2], [0, 0]], coords={"area": [1, 2]}, dims=("area", "x"))
        released = table.copy(data=released)
        if chunks is not None:
            table, released = table.chunk(chunks), released.chunk(chunks)
        for variant in ("2015", "2014"):
            risk = tc.disclosure_risk(table, released, dim="x", variant=variant).compute()
            alone = tc.disclosure_risk(table[0], released[0], variant=variant)
            for name, values in risk.data_vars.items():
                assert values.values.tolist() == [float(alone[name]), 0.0]
        before = tc.disclosure_risk(table, dim="x")
        assert float(before["R1"][1]) == 0.0
        assert float(before["R1"][0]) == float(tc.disclosure_risk(table[0])["R1"])

    def test_a_category_without_people_has_no_entropy(self):
        table = xr.DataArray([[1, 2], [0, 0]], coords={"area": [1, 2]}, dims=("area", "x"))
        with pytest.raises(TableError, match="at least 1 individuals: area=2 has 0"):
            tc.information.entropy(table, dim="x")

    @pytest.mark.parametrize(("variant", "factor"), [("2015", 1.0), ("2014", 0.0)])
    def test_one_populated_cell_counts_as_no_conditional_entropy(self, variant, factor):
        risk = tc.disclosure_risk(cells(0, 4, 0), cells(1, 2, 0), variant=variant)
        assert float(risk.entropy_term) == factor

    def test_no_cell_empty_in_both(self):
        assert float(tc.disclosure_risk(cells(0, 4, 1), cells(1, 2, 0)).zero_term) == 0
        assert float(tc.disclosure_risk(cells(3, 4, 1), cells(1, 2, 0)).zero_term) == 0

    @pytest.mark.parametrize("variant", ["2015", "2014"])
    def test_nothing_released(self, variant):
        risk = tc.disclosure_risk(cells(3, 4, 0), cells(0, 0, 0), variant=variant)
        assert float(risk.entropy_term) == 0
        assert float(risk.zero_term) == pytest.approx((1 / 3) ** (3 / 1))
        assert float(risk.R2) == pytest.approx(0.1 * (1 / 3) ** 3 + 0.1 * size_term(7))

    @pytest.mark.parametrize("factor", [1, 2, 9])
    def test_a_proportional_release_keeps_the_risk(self, factor):
        risk = tc.disclosure_risk(RELIGION, factor * RELIGION)
        assert float(risk.R2) == float(risk.R1)

    def test_one_individual(self):
        assert float(tc.disclosure_risk(cells(1, 0)).size_term) == 1

    def test_national_tables(self):
        F, G = [LARGEST // 3, LARGEST // 5, 0, 1], [LARGEST // 4, LARGEST // 7, 0, 2]
        risk = tc.disclosure_risk(cells(*F), cells(*G))
        assert float(risk.R1) == pytest.approx(
            twins.weighted(twins.terms_before(F), DEFAULT_WEIGHTS), rel=1e-9
        )
        assert float(risk.R2) == pytest.approx(
            twins.weighted(twins.terms_after(F, G, "2015"), DEFAULT_WEIGHTS), rel=1e-9
        )


class TestStructuralZeros:
    FILLABLE = xr.DataArray([[True, False, True], [True, True, True]], dims=("a", "b"))

    def test_count_neither_as_cells_nor_as_zeros(self):
        F = xr.DataArray([[3, 0, 0], [1, 0, 2]], dims=("a", "b"))
        G = xr.DataArray([[2, 0, 0], [2, 1, 2]], dims=("a", "b"))
        masked = tc.disclosure_risk(F, G, where=self.FILLABLE)
        without = tc.disclosure_risk(cells(3, 0, 1, 0, 2), cells(2, 0, 2, 1, 2))
        xr.testing.assert_allclose(masked, without)
        assert float(masked.zero_term) == pytest.approx((2 / 5) ** (2 / 1))

    def test_rows_have_their_own_number_of_cells(self):
        F = xr.DataArray([[3, 0, 0], [1, 0, 2]], dims=("a", "b"))
        assert tc.disclosure_risk(F, dim="b", where=self.FILLABLE).zero_term.values.tolist() == [
            1 / 2,
            1 / 3,
        ]

    def test_draws_share_one_mask(self):
        draws = xr.DataArray(
            [[[3, 0, 0], [1, 0, 2]], [[1, 0, 1], [1, 1, 1]]], dims=("draw", "a", "b")
        )
        both = tc.disclosure_risk(draws, where=self.FILLABLE.transpose("b", "a"))
        for i in range(2):
            xr.testing.assert_allclose(
                both.isel(draw=i), tc.disclosure_risk(draws[i], where=self.FILLABLE)
            )

    @pytest.mark.parametrize(
        ("where", "message"),
        [
            ([[True]], "where must be a DataArray of bool"),
            (FILLABLE.astype(int), "where must be a DataArray of bool"),
            (FILLABLE.rename(b="c"), "where has the dimensions"),
            (FILLABLE.isel(b=[0, 1]), "where has 2 categories of 'b', the table has 3"),
            (
                FILLABLE.assign_coords(b=["p", "q", "r"]),
                "categories of 'b' differ between where and the table",
            ),
            (~FILLABLE, "where leaves out a cell with a positive count: a=0, b=0"),
            (FILLABLE & False, "where leaves out a cell with a positive count: a=0, b=0"),
        ],
    )
    def test_bad_masks(self, where, message):
        F = xr.DataArray([[3, 0, 0], [1, 0, 2]], dims=("a", "b"))
        with pytest.raises(TableError, match=message):
            tc.disclosure_risk(F, where=where)

    def test_a_release_outside_the_mask(self):
        F = xr.DataArray([[3, 0, 0], [1, 0, 2]], dims=("a", "b"))
        with pytest.raises(TableError, match="positive count: a=0, b=1"):
            tc.disclosure_risk(F, F + 1, where=self.FILLABLE)
        lazy = tc.disclosure_risk(
            F, (F + 1).expand_dims(replicate=2).chunk(replicate=1), where=self.FILLABLE
        )
        with pytest.raises(TableError, match="leaves out a cell with a positive count"):
            lazy.compute(scheduler="synchronous")

    def test_too_few_cells_are_left(self):
        one = xr.DataArray([True, False, False], dims="x")
        with pytest.raises(TableError, match="at least 2 cells: the table has 1"):
            tc.disclosure_risk(cells(3, 0, 0), where=one)


class TestArguments:
    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ((0.5, 0.6, -0.1), r"non-negative and sum to 1, got \(0\.5, 0\.6, -0\.1\)"),
            ((0.1, 0.8, 0.2), r"sum to 1, got \(0\.1, 0\.8, 0\.2\)"),
            ((0.5, 0.5), "three numbers, got 2"),
            ((float("nan"), 0.5, 0.5), "non-negative and sum to 1"),
            ((float("inf"), 0, 0), "non-negative and sum to 1"),
            (0.5, "three numbers, got 0.5"),
            ("abc", "three numbers, got 'abc'"),
            ("010", "a list of three numbers, got '010'"),
            (b"\0\1\0", "a list of three numbers, got b"),
            ({0.1, 0.2, 0.7}, "a list of three numbers, got {"),
            (frozenset({0.1, 0.2, 0.7}), "a list of three numbers, got frozenset"),
            ({0.1: "zeros", 0.7: "entropy", 0.2: "size"}, "a list of three numbers"),
            ({0.1: 0, 0.2: 0, 0.7: 0}.keys(), "a list of three numbers, got dict_keys"),
            (("0.1", "0.8", "0.1"), r"a list of three numbers, got \('0\.1', "),
            ((b"1", 0, 0), "a list of three numbers, got"),
            (np.array(["0.1", "0.8", "0.1"]), "a list of three numbers, got ndarray"),
            ((True, 0, 0), r"a list of three numbers, got \(True, 0, 0\)"),
            ((10**400, 0, 0), "a list of three numbers, got"),
        ],
    )
    def test_bad_weights(self, weights, message):
        with pytest.raises(ParameterError, match=message):
            tc.disclosure_risk(cells(1, 2), weights=weights)

    @pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, iter])
    def test_weights_in_any_sequence(self, form):
        found = tc.disclosure_risk(cells(1, 2), weights=form([0.5, 0.2, 0.3]))
        assert found.attrs["weights"] == [0.5, 0.2, 0.3]

    def test_bad_variant(self):
        with pytest.raises(
            ParameterError, match=r"variant must be one of '2015', '2014', got '2016'"
        ):
            tc.disclosure_risk(cells(1, 2), cells(1, 2), variant="2016")

    @pytest.mark.parametrize("dims", ["age", [], ["x", "x"]])
    def test_bad_dims(self, dims):
        with pytest.raises(ParameterError, match="dims must name variables"):
            tc.disclosure_risk(cells(1, 2), dim=dims)

    @pytest.mark.parametrize(
        ("population", "released", "message"),
        [
            ([1, 2], None, "population must be an xarray.DataArray, got list"),
            (cells(1, -2), None, "x=1 holds -2"),
            (cells(1, 2), cells(1, -2), "released: counts must not be negative: x=1 holds -2"),
            (
                cells(1, 2),
                xr.DataArray([1.0, np.nan], dims="x"),
                "released: counts must not be missing: x=1",
            ),
            (cells(1, 2), cells(1, 2, 3), "categories of 'x' differ"),
            (cells(1, 2), cells(1, LARGEST + 1), r"at most 2\*\*53: x=1 holds 9007199254740993"),
        ],
    )
    def test_bad_tables(self, population, released, message):
        with pytest.raises(TableError, match=message):
            tc.disclosure_risk(population, released)

    def test_lazy_input_stays_lazy(self):
        draws = tc.draw_sample(RELIGION, fraction=0.5, replicates=6, random_seed=1).rename(
            replicate="draw"
        )
        releases = tc.random_round(RELIGION, replicates=4, random_seed=2)
        lazy = tc.disclosure_risk(draws.chunk(draw=2, area=3), releases.chunk(replicate=3))
        assert all(value.chunks is not None for value in lazy.values())
        xr.testing.assert_allclose(
            lazy.compute(scheduler="synchronous"), tc.disclosure_risk(draws, releases)
        )

    @pytest.mark.parametrize("row", [[0, 0], [1, -1], [1, np.nan]])
    def test_lazy_errors_come_when_computed(self, row):
        lazy = tc.disclosure_risk(xr.DataArray([[1, 2], row], dims=("draw", "x")).chunk(draw=1))
        with pytest.raises(TableError):
            lazy.compute(scheduler="synchronous")

    def test_many_draws_agree_with_one_at_a_time(self):
        draws = tc.draw_sample(RELIGION, fraction=0.2, replicates=300, random_seed=1).rename(
            replicate="draw"
        )
        sample = tc.draw_sample(RELIGION, fraction=0.05, random_seed=2)
        many = tc.disclosure_risk(draws, sample)
        for i in (0, 123, 299):
            xr.testing.assert_allclose(
                many.isel(draw=i), tc.disclosure_risk(draws[i], sample), rtol=1e-12
            )


def published(measure: str) -> list[tuple[str, str, str, float]]:
    with DATA.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["measure"] == measure]
    return [(row["table"], row["margin"], row["level"], float(row["value"])) for row in rows]


@pytest.fixture(scope="module")
def rounded() -> dict[str, xr.DataArray]:
    tables = {name.removeprefix("area_by_"): tc.load_dataset(name) for name in tc.tables.DATASETS}
    return {
        name: tc.random_round(table, rounding_base=3, replicates=ROUNDINGS, random_seed=7)
        for name, table in tables.items()
    }


def level_of(values: xr.DataArray, margin: str, level: str) -> xr.DataArray:
    return values if margin == "table" else values.sel({margin: level})


def others(table: str, margin: str) -> list[str]:
    """Variables to sum over for the rows, the columns or the whole of a published
    table."""
    return [dim for dim in ("area", table) if dim != margin]


def mean_and_error(values: xr.DataArray) -> tuple[float, float]:
    """Mean over roundings, and the standard error of its difference from another mean
    of as many."""
    return float(values.mean()), float(values.std(ddof=1)) / sqrt(ROUNDINGS) * sqrt(2)


class TestPublished:
    """ASE14, Tables 1 to 4: rows, columns and whole tables."""

    def test_all_are_there(self):
        # Levels of both variables and the whole table.
        assert len(published("R1")) == (10 + 17 + 1) + (10 + 11 + 1) + (10 + 2 + 1) + (10 + 9 + 1)
        assert len(published("hellinger")) == len(published("R1"))

    @pytest.mark.parametrize(("table", "margin", "level", "value"), published("R1"))
    def test_r1_to_the_printed_digits(self, table, margin, level, value):
        risk = tc.disclosure_risk(tc.load_dataset(f"area_by_{table}"), dim=others(table, margin))
        assert abs(float(level_of(risk.R1, margin, level)) - value) <= PRINTED + 1e-9

    @pytest.mark.parametrize(("table", "margin", "level", "value"), published("hellinger"))
    def test_hellinger_within_monte_carlo_error(self, table, margin, level, value, rounded):
        counts = tc.load_dataset(f"area_by_{table}")
        distances = tc.information.hellinger_distance(
            counts, rounded[table], dim=others(table, margin)
        )
        mean, error = mean_and_error(level_of(distances, margin, level))
        assert abs(mean - value) <= STANDARD_ERRORS * error + PRINTED

    @pytest.mark.parametrize(
        ("table", "margin", "level", "value"), [x for x in published("R2_2014") if x[0] == "sex"]
    )
    def test_r2_of_the_table_without_zeros(self, table, margin, level, value, rounded):
        counts = tc.load_dataset("area_by_sex")
        risk = tc.disclosure_risk(counts, rounded[table], dim=others(table, margin), variant="2014")
        mean, error = mean_and_error(level_of(risk.R2, margin, level))
        assert abs(mean - value) <= STANDARD_ERRORS * error + PRINTED

    @pytest.mark.parametrize(
        ("table", "ours", "printed"),
        [("religion", 0.0305, 0.0327), ("country_of_birth", 0.0373, 0.0459)],
    )
    def test_r2_of_tables_with_zeros_is_not_the_printed_one(self, table, ours, printed, rounded):
        """The formula as printed does not give the printed value; the methods page says
        so with both."""
        assert (table, "table", "", printed) in published("R2_2014")
        risk = tc.disclosure_risk(
            tc.load_dataset(f"area_by_{table}"), rounded[table], variant="2014"
        )
        mean, error = mean_and_error(risk.R2)
        assert abs(mean - ours) <= STANDARD_ERRORS * error + PRINTED
        assert mean < printed - STANDARD_ERRORS * error


def test_a_known_entropy_that_is_off_by_rounding_gives_no_negative_risk() -> None:
    table = xr.DataArray([10**9, 1], dims="x")
    entropy = float(tc.information.entropy(table))  # 2e-8
    given = xr.DataArray(entropy + 9e-10)
    risk = tc.disclosure_risk(table, table, weights=(0, 1, 0), conditional_entropy=given)
    assert float(risk["R2"]) == 0
    with pytest.raises(ParameterError, match="must hold numbers"):
        tc.disclosure_risk(table, table, conditional_entropy=xr.DataArray("x"))
