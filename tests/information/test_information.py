"""Entropy, conditional entropy and divergences against closed forms, by hand and at the
edges."""

from math import inf, log, sqrt

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from scipy.spatial.distance import jensenshannon
from scipy.special import entr

import taciturn as tc
import twins
from taciturn.errors import ParameterError, TableError
from taciturn.information import DIVERGENCES, Divergence

LARGEST = 2**53
RELIGION = tc.load_dataset("area_by_religion")
MEASURES = {
    "conditional_entropy": tc.information.conditional_entropy,
    "relative_entropy": tc.information.relative_entropy,
    "hellinger_distance": tc.information.hellinger_distance,
    "f_divergence": lambda F, G, **options: tc.information.f_divergence(
        F, G, divergence="jensen-shannon", **options
    ),
}


def cells(*counts: int) -> xr.DataArray:
    return xr.DataArray(list(counts), dims="x")


class TestEntropy:
    def test_uniform_is_the_logarithm_of_the_cells(self):
        assert float(tc.information.entropy(cells(5, 5, 5, 5, 5))) == pytest.approx(log(5))

    def test_one_populated_cell_is_zero_exactly(self):
        assert float(tc.information.entropy(cells(0, 7, 0))) == 0

    def test_by_hand(self):
        assert float(tc.information.entropy(cells(1, 3))) == pytest.approx(
            -(1 / 4 * log(1 / 4) + 3 / 4 * log(3 / 4))
        )

    @pytest.mark.parametrize(
        ("base", "value"), [(2, 1.0), (4, 1 / 2), (None, log(2)), (10, log(2) / log(10))]
    )
    def test_base(self, base, value):
        assert float(tc.information.entropy(cells(3, 3), base=base)) == pytest.approx(value)

    @pytest.mark.parametrize("base", [0, 1, -2, 0.5, inf, float("nan")])
    def test_bad_base(self, base):
        with pytest.raises(ParameterError, match=f"base must be above 1 and finite .*, got {base}"):
            tc.information.entropy(cells(1, 2), base=base)

    def test_rows_and_columns_as_tables_of_their_own(self):
        table = xr.DataArray([[1, 1], [2, 0]], dims=("area", "sex"))
        assert tc.information.entropy(table, dim="sex").values.tolist() == pytest.approx(
            [log(2), 0]
        )
        by_area = [-(1 / 3 * log(1 / 3) + 2 / 3 * log(2 / 3)), 0]
        assert tc.information.entropy(table, dim=["area"]).values.tolist() == pytest.approx(by_area)

    @pytest.mark.parametrize("dims", ["age", [], ["area", "age"], ["area", "area"]])
    def test_bad_dims(self, dims):
        with pytest.raises(
            ParameterError, match=r"dims must name variables of the table, \('area', 'religion'\)"
        ):
            tc.information.entropy(RELIGION, dim=dims)

    def test_draws_are_kept(self):
        draws = xr.DataArray([[[1, 1], [2, 0]]], dims=("chain", "draw", "x"))
        assert tc.information.entropy(draws).dims == ("chain", "draw")
        assert tc.information.entropy(draws).values.tolist() == [[pytest.approx(log(2)), 0]]

    def test_an_empty_table_says_where(self):
        with pytest.raises(TableError, match="at least 1 individuals: the table has 0"):
            tc.information.entropy(cells(0, 0))
        draws = xr.DataArray([[1, 1], [0, 0]], dims=("draw", "x"), coords={"draw": [0, 5]})
        with pytest.raises(TableError, match="draw=5 has 0"):
            tc.information.entropy(draws)


class TestConditionalEntropy:
    def test_by_hand(self):
        # p = (1/2, 1/2), q = (1/4, 3/4): half of the first cell moves into the second.
        # Y = 1 says X = 1; given Y = 2, a third came from the first cell.
        expected = 3 / 4 * -(1 / 3 * log(1 / 3) + 2 / 3 * log(2 / 3))
        assert float(tc.information.conditional_entropy(cells(2, 2), cells(1, 3))) == pytest.approx(
            expected
        )

    def test_nothing_is_left_when_the_release_is_proportional(self):
        assert float(tc.information.conditional_entropy(cells(1, 2, 0, 4), cells(3, 6, 0, 12))) == 0

    def test_everything_is_left_when_nothing_is_released(self):
        table = cells(1, 2, 0, 4)
        assert float(tc.information.conditional_entropy(table, cells(0, 0, 0, 0))) == float(
            tc.information.entropy(table)
        )

    def test_no_overlap_at_all(self):
        # Everyone moved at random: H(X|Y) = H(X).
        assert float(
            tc.information.conditional_entropy(cells(1, 3, 0), cells(0, 0, 5))
        ) == pytest.approx(float(tc.information.entropy(cells(1, 3, 0))))

    def test_base(self):
        pair = cells(2, 2), cells(1, 3)
        assert float(tc.information.conditional_entropy(*pair, base=2)) == pytest.approx(
            float(tc.information.conditional_entropy(*pair)) / log(2)
        )

    @pytest.mark.parametrize("replicates", [3, 200])  # the second takes the way by a table of terms
    def test_samples_of_a_census_table(self, replicates):
        samples = tc.draw_sample(RELIGION, fraction=0.05, replicates=replicates, random_seed=1)
        ours = tc.information.conditional_entropy(samples, RELIGION)
        for i in (0, replicates - 1):
            twin = twins.conditional_entropy(
                samples[i].values.ravel().tolist(), RELIGION.values.ravel().tolist()
            )
            assert float(ours[i]) == pytest.approx(twin, rel=1e-12)

    def test_many_draws_agree_with_one_at_a_time(self):
        draws = tc.draw_sample(
            RELIGION, fraction=0.1, replicates=12_000, random_seed=2
        )  # enough for threads
        assert draws.size > 2**20
        sample = tc.draw_sample(RELIGION, fraction=0.02, random_seed=3)
        many, entropies = (
            tc.information.conditional_entropy(draws, sample),
            tc.information.entropy(draws),
        )
        for i in range(0, 12_000, 997):
            assert float(many[i]) == pytest.approx(
                float(tc.information.conditional_entropy(draws[i], sample)), rel=1e-12
            )
            assert float(entropies[i]) == pytest.approx(
                float(tc.information.entropy(draws[i])), rel=1e-12
            )

    def test_totals_that_differ_among_draws(self):
        rng = np.random.default_rng(1)
        draws = xr.DataArray(
            rng.integers(0, 5, (300, 4)) + np.eye(1, 4, dtype=int), dims=("draw", "x")
        )
        release = cells(2, 0, 1, 4)
        many = tc.information.conditional_entropy(draws, release)
        for i in range(0, 300, 23):
            twin = twins.conditional_entropy(draws[i].values.tolist(), release.values.tolist())
            assert float(many[i]) == pytest.approx(twin, abs=1e-12)


class TestHugeCounts:
    @pytest.mark.parametrize("total", [67_000_000, LARGEST])
    def test_two_national_tables(self, total):
        F, G = [total // 3, total // 5, 0, 1], [total // 4, total // 7, 2, 0]
        assert float(tc.information.entropy(cells(*F))) == pytest.approx(
            twins.entropy(twins.shares(F)), rel=1e-12
        )
        assert float(tc.information.conditional_entropy(cells(*F), cells(*G))) == pytest.approx(
            twins.conditional_entropy(F, G), rel=1e-9
        )

    def test_a_sum_beyond_64_bits(self):
        many = xr.DataArray(np.full(2048, LARGEST), dims="x")
        assert float(tc.information.entropy(many)) == pytest.approx(log(2048), rel=1e-12)
        assert float(tc.information.conditional_entropy(many, many)) == 0
        for divergence in (tc.information.hellinger_distance, tc.information.relative_entropy):
            with pytest.raises(TableError, match=r"the grand total must be at most 2\*\*53"):
                divergence(many, many)


class TestKnownMoves:
    def test_joint_by_hand(self):
        # Y = 0: X is 0 or 1 with 1/3 and 2/3; Y = 1: X is surely 1.
        joint = xr.DataArray([[1, 0], [2, 3]], dims=("x", "y"))
        expected = 3 / 6 * -(1 / 3 * log(1 / 3) + 2 / 3 * log(2 / 3))
        assert float(
            tc.information.conditional_entropy_from_joint(joint, given="y")
        ) == pytest.approx(expected)
        assert float(
            tc.information.conditional_entropy_from_joint(joint / 6, given=["y"], base=2)
        ) == pytest.approx(expected / log(2))

    def test_independent_tables_tell_nothing(self):
        before, after = cells(1, 3), xr.DataArray([2, 5], dims="y")
        assert float(
            tc.information.conditional_entropy_from_joint(before * after, given="y")
        ) == pytest.approx(float(tc.information.entropy(before)))

    def test_the_joint_of_the_paper_gives_the_conditional_entropy(self):
        F, G = [3, 0, 2, 4], [1, 1, 5, 3]
        joint = xr.DataArray(np.array(twins.joint_of(F, G), dtype=float), dims=("x", "y"))
        assert float(
            tc.information.conditional_entropy_from_joint(joint, given="y")
        ) == pytest.approx(float(tc.information.conditional_entropy(cells(*F), cells(*G))))

    def test_several_variables_and_draws(self):
        joint = xr.DataArray(np.arange(1, 17).reshape(2, 2, 2, 2), dims=("draw", "x", "z", "y"))
        ours = tc.information.conditional_entropy_from_joint(joint, given="y")
        for i in range(2):
            mass = joint[i].values / joint[i].values.sum()
            assert float(ours[i]) == pytest.approx(
                entr(mass).sum() - entr(mass.sum(axis=(0, 1))).sum()
            )

    def test_transition_is_the_joint_divided_by_the_table(self):
        table, joint = cells(3, 5), xr.DataArray([[1, 2], [4, 1]], dims=("x", "y"))
        assert float(
            tc.information.conditional_entropy_from_transition(table, joint / table)
        ) == pytest.approx(float(tc.information.conditional_entropy_from_joint(joint, given="y")))

    def test_an_empty_cell_needs_no_transition(self):
        transition = xr.DataArray([[1.0, 0.0], [0.0, 0.0]], dims=("x", "y"))
        assert (
            float(tc.information.conditional_entropy_from_transition(cells(4, 0), transition)) == 0
        )

    @pytest.mark.parametrize(
        ("joint", "given_", "error", "message"),
        [
            ([[1, -1], [0, 2]], "y", TableError, "joint must hold finite, non-negative"),
            ([[1, np.nan], [0, 2]], "y", TableError, "joint must hold finite, non-negative"),
            ([[0, 0], [0, 0]], "y", TableError, "joint sums to 0"),
            ([[1, 0], [0, 2]], "z", ParameterError, "given must name some but not all .* got"),
            ([[1, 0], [0, 2]], ["x", "y"], ParameterError, "given must name some but not all"),
            ([[1, 0], [0, 2]], [], ParameterError, "given must name some but not all"),
        ],
    )
    def test_bad_joint(self, joint, given_, error, message):
        with pytest.raises(error, match=message):
            tc.information.conditional_entropy_from_joint(
                xr.DataArray(joint, dims=("x", "y")), given=given_
            )

    def test_no_joint(self):
        with pytest.raises(TableError, match=r"joint must be an xarray\.DataArray, got list"):
            tc.information.conditional_entropy_from_joint([[1]], given="y")

    @pytest.mark.parametrize(
        ("transition", "error", "message"),
        [
            (xr.DataArray([[0.5, 0.4], [0, 1]], dims=("x", "y")), TableError, "must sum to 1"),
            (xr.DataArray([[1.5, -0.5], [0, 1]], dims=("x", "y")), TableError, "non-negative"),
            (
                xr.DataArray([[1, 0], [0, 1]], dims=("z", "y")),
                ParameterError,
                "must have the table's variables",
            ),
            (xr.DataArray([1, 0], dims="x"), ParameterError, "and others after"),
            ([[1, 0], [0, 1]], TableError, "transition must be an xarray.DataArray, got list"),
        ],
    )
    def test_bad_transition(self, transition, error, message):
        with pytest.raises(error, match=message):
            tc.information.conditional_entropy_from_transition(cells(1, 2), transition)

    def test_a_transition_of_other_categories(self):
        table = cells(1, 2).assign_coords(x=["a", "c"])
        other = xr.DataArray([[1, 0], [0, 1]], dims=("x", "y"), coords={"x": ["a", "b"]})
        with pytest.raises(TableError, match="categories of 'x' differ"):
            tc.information.conditional_entropy_from_transition(table, other)


class TestAveragedJoint:
    def test_one_replicate_is_the_plain_conditional_entropy(self):
        release = xr.DataArray([[1, 3]], dims=("replicate", "x"))
        assert float(
            tc.information.averaged_conditional_entropy(cells(2, 2), release)
        ) == pytest.approx(float(tc.information.conditional_entropy(cells(2, 2), release[0])))

    def test_above_the_mean_of_the_entropies(self):
        # Each release alone tells where everybody is; the method, averaged, leaves
        # everything open.
        releases = xr.DataArray([[1, 1, 0, 0], [0, 0, 1, 1]], dims=("replicate", "x"))
        table = cells(1, 1, 0, 0)
        twin = twins.mean_joint([twins.joint_of([1, 1, 0, 0], g) for g in releases.values.tolist()])
        assert float(tc.information.averaged_conditional_entropy(table, releases)) == pytest.approx(
            twins.conditional_entropy_of(twin)
        )

    def test_blocks_of_columns_do_not_change_it(self, monkeypatch):
        releases = tc.random_round(RELIGION, replicates=20, random_seed=1)
        whole = float(tc.information.averaged_conditional_entropy(RELIGION, releases))
        monkeypatch.setattr("taciturn.information.entropies._BLOCK_BYTES", 8 * RELIGION.size * 7)
        assert float(
            tc.information.averaged_conditional_entropy(RELIGION, releases)
        ) == pytest.approx(whole, rel=1e-12)

    def test_an_empty_release_is_an_outcome_of_its_own(self):
        """Of two single people, rounded to base 3: nine releases that are as likely as
        each other, four of them empty, as the mechanism has them."""
        rows = [[0, 0]] * 4 + [[3, 0]] * 2 + [[0, 3]] * 2 + [[3, 3]]
        releases = xr.DataArray(rows, dims=("replicate", "x"))
        found = float(tc.information.averaged_conditional_entropy(cells(1, 1), releases))
        exact = tc.attack.mechanism_conditional_entropy(cells(1, 1), tc.attack.RandomRounding(3))
        assert found == pytest.approx(float(exact), abs=1e-9)
        assert found >= float(tc.information.conditional_entropy(cells(1, 1), releases).mean())
        nothing = releases[:4]
        left = float(tc.information.averaged_conditional_entropy(cells(1, 1), nothing))
        assert left == pytest.approx(np.log(2))
        with pytest.raises(TableError, match="table is empty"):
            tc.information.averaged_conditional_entropy(cells(0, 0), releases)

    @pytest.mark.parametrize(
        ("releases", "message"),
        [
            (cells(1, 2), "expected 'replicate' in released"),
            (xr.DataArray([[1, 2], [0, -1]], dims=("replicate", "x")).chunk(), "not be negative"),
        ],
    )
    def test_bad_releases(self, releases, message):
        with pytest.raises(TableError, match=message):
            tc.information.averaged_conditional_entropy(cells(1, 2), releases)


class TestDivergences:
    P, Q = cells(1, 4, 5), cells(2, 2, 6)  # shares (.1, .4, .5) and (.2, .2, .6)
    p, q = np.array([0.1, 0.4, 0.5]), np.array([0.2, 0.2, 0.6])

    @pytest.mark.parametrize(
        ("divergence", "value"),
        [
            (
                "relative-entropy",
                0.1 * log(0.1 / 0.2) + 0.4 * log(0.4 / 0.2) + 0.5 * log(0.5 / 0.6),
            ),
            ("squared-hellinger", 1 - (sqrt(0.1 * 0.2) + sqrt(0.4 * 0.2) + sqrt(0.5 * 0.6))),
            ("total-variation", (0.1 + 0.2 + 0.1) / 2),
            ("chi-square", 0.1**2 / 0.2 + 0.2**2 / 0.2 + 0.1**2 / 0.6),
            ("jensen-shannon", jensenshannon([0.1, 0.4, 0.5], [0.2, 0.2, 0.6]) ** 2),
        ],
    )
    def test_closed_forms(self, divergence, value):
        assert float(
            tc.information.f_divergence(self.P, self.Q, divergence=divergence)
        ) == pytest.approx(value)

    @pytest.mark.parametrize("name", DIVERGENCES)
    def test_all_names_have_a_closed_form_above(self, name):
        assert name in {
            "relative-entropy",
            "squared-hellinger",
            "total-variation",
            "chi-square",
            "jensen-shannon",
        }

    def test_relative_entropy_agrees_with_scipy(self):
        assert float(tc.information.relative_entropy(self.P, self.Q, base=2)) == pytest.approx(
            stats.entropy(self.p, self.q, base=2)
        )

    def test_relative_entropy_from_uniform(self):
        assert float(tc.information.relative_entropy(self.P, cells(7, 7, 7))) == pytest.approx(
            log(3) - float(tc.information.entropy(self.P))
        )

    @pytest.mark.parametrize(
        ("divergence", "lost", "gained"),  # p = (1/2, 1/2), q = (1, 0) and the other way round
        [
            ("relative-entropy", inf, log(2)),
            ("squared-hellinger", 1 - sqrt(1 / 2), 1 - sqrt(1 / 2)),
            ("total-variation", 1 / 2, 1 / 2),
            ("chi-square", inf, 1 / 2 * (2 - 1) ** 2 + 1 / 2 * (0 - 1) ** 2),
            (
                "jensen-shannon",
                jensenshannon([0.5, 0.5], [1, 0]) ** 2,
                jensenshannon([0.5, 0.5], [1, 0]) ** 2,
            ),
        ],
    )
    def test_cells_in_one_table_only(self, divergence, lost, gained):
        both, one = cells(3, 3), cells(5, 0)
        assert float(
            tc.information.f_divergence(both, one, divergence=divergence)
        ) == pytest.approx(lost)
        assert float(
            tc.information.f_divergence(one, both, divergence=divergence)
        ) == pytest.approx(gained)

    def test_one_of_your_own(self):
        backwards = Divergence(lambda x: -np.log(x), inf, 0.0)
        ours = tc.information.f_divergence(self.P, self.Q, divergence=backwards)
        assert float(ours) == pytest.approx(float(tc.information.relative_entropy(self.Q, self.P)))
        assert (
            float(tc.information.f_divergence(cells(5, 0), cells(3, 3), divergence=backwards))
            == inf
        )
        assert float(
            tc.information.f_divergence(cells(3, 3), cells(5, 0), divergence=backwards)
        ) == pytest.approx(log(2))

    def test_hellinger_on_counts_and_on_probabilities(self):
        F, G = cells(4, 9, 0), cells(1, 9, 4)
        assert float(tc.information.hellinger_distance(F, G)) == pytest.approx(
            sqrt(((2 - 1) ** 2 + 0 + (0 - 2) ** 2) / 2)
        )
        on_shares = sqrt(1 - (sqrt(4 / 13 * 1 / 14) + sqrt(9 / 13 * 9 / 14)))
        assert float(
            tc.information.hellinger_distance(F, G, scale="probabilities")
        ) == pytest.approx(on_shares)
        assert float(tc.information.hellinger_distance(F, cells(0, 0, 0))) == pytest.approx(
            sqrt((4 + 9) / 2)
        )

    def test_bad_names(self):
        with pytest.raises(
            ParameterError, match="no divergence 'kl': there are relative-entropy, "
        ):
            tc.information.f_divergence(self.P, self.Q, divergence="kl")
        with pytest.raises(
            ParameterError, match="scale must be one of 'counts', 'probabilities', got 'shares'"
        ):
            tc.information.hellinger_distance(self.P, self.Q, scale="shares")

    @pytest.mark.parametrize("measure", ["relative_entropy", "f_divergence"])
    def test_an_empty_release_has_no_distribution(self, measure):
        with pytest.raises(TableError, match="released is empty"):
            MEASURES[measure](self.P, cells(0, 0, 0))
        with pytest.raises(TableError, match="table is empty"):
            MEASURES[measure](cells(0, 0, 0), self.P)


class TestPairs:
    @pytest.mark.parametrize("name", MEASURES)
    def test_draws_and_replicates_give_all_pairs(self, name):
        rng = np.random.default_rng(1)
        draws = xr.DataArray(rng.integers(1, 9, (2, 3, 4, 2)), dims=("chain", "draw", "x", "z"))
        releases = xr.DataArray(rng.integers(1, 9, (2, 5, 4)), dims=("z", "replicate", "x"))
        values = MEASURES[name](draws, releases)
        assert set(values.dims) == {"chain", "draw", "replicate"}
        for chain, draw, replicate in np.ndindex(2, 3, 5):
            pair = draws.isel(chain=chain, draw=draw), releases.isel(replicate=replicate)
            one = values.isel(chain=chain, draw=draw, replicate=replicate)
            assert float(one) == pytest.approx(float(MEASURES[name](*pair)), rel=1e-12)

    @pytest.mark.parametrize("name", MEASURES)
    def test_the_order_of_dimensions_does_not_matter(self, name):
        released = tc.random_round(RELIGION + 3, random_seed=1)
        assert float(MEASURES[name](RELIGION, released.transpose())[0]) == pytest.approx(
            float(MEASURES[name](RELIGION, released)[0])
        )

    @pytest.mark.parametrize("name", MEASURES)
    def test_dim_gives_each_row(self, name):
        released = tc.random_round(RELIGION + 3, random_seed=1)[0]
        rows = MEASURES[name](RELIGION, released, dim="religion")
        assert rows.dims == ("area",)
        assert float(rows[4]) == pytest.approx(
            float(MEASURES[name](RELIGION[4], released[4])), rel=1e-12
        )

    @pytest.mark.parametrize("name", MEASURES)
    def test_lazy_input_stays_lazy(self, name):
        releases = tc.random_round(RELIGION + 3, replicates=4, random_seed=1)
        lazy = MEASURES[name](RELIGION, releases.chunk(replicate=2, area=5))
        assert lazy.chunks is not None
        xr.testing.assert_allclose(
            lazy.compute(scheduler="synchronous"), MEASURES[name](RELIGION, releases)
        )

    @pytest.mark.parametrize("name", MEASURES)
    @pytest.mark.parametrize("bad", [-1, np.nan, 0.5, np.inf])
    def test_lazy_errors_come_when_computed(self, name, bad):
        lazy = MEASURES[name](
            cells(1, 2),
            xr.DataArray([[1, 2], [1, bad]], dims=("replicate", "x")).chunk(replicate=1),
        )
        with pytest.raises(TableError, match="counts must"):
            lazy.compute(scheduler="synchronous")

    def test_a_lazy_table_with_nobody(self):
        lazy = tc.information.entropy(
            xr.DataArray([[1, 2], [0, 0]], dims=("draw", "x")).chunk(draw=1)
        )
        with pytest.raises(TableError, match="at least 1 individuals"):
            lazy.compute(scheduler="synchronous")

    @pytest.mark.parametrize("name", MEASURES)
    def test_tables_that_do_not_match(self, name):
        with pytest.raises(TableError, match="categories of 'x' differ between table and released"):
            MEASURES[name](cells(1, 2), cells(1, 2, 3))
        with pytest.raises(
            TableError, match=r"table has the variables \('x',\), released has \('y',\)"
        ):
            MEASURES[name](cells(1, 2), xr.DataArray([1, 2], dims="y"))
        with pytest.raises(TableError, match="released: counts must not be negative: x=1 holds -2"):
            MEASURES[name](cells(1, 2), cells(1, -2))


@pytest.mark.parametrize(
    ("value", "kind"), [(60_000, "float16"), (2**62, "int64"), (1 / 4, "float32"), (1, "bool")]
)
def test_a_joint_of_any_type_is_taken_in_doubles(value, kind) -> None:
    joint = xr.DataArray(np.full((2, 2), value, dtype=kind), dims=("x", "y"))
    found = float(tc.information.conditional_entropy_from_joint(joint, given="y"))
    assert found == pytest.approx(log(2), rel=1e-12)


def test_a_joint_beyond_doubles_is_refused() -> None:
    joint = xr.DataArray(np.full((2, 2), 1e308), dims=("x", "y"))
    with pytest.raises(TableError, match="more than a double holds"):
        tc.information.conditional_entropy_from_joint(joint, given="y")
