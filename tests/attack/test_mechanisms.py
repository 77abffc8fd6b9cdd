"""Mechanisms: probabilities are those of the methods that release, sum to one, and are
positive on the support."""

from math import exp, inf

import numpy as np
import pytest
import xarray as xr
from hypothesis import example, given, settings, strategies as st

import taciturn as tc
from taciturn.attack import (
    CellKeys,
    ConventionalRounding,
    GeometricNoise,
    RandomRounding,
    SmallCellAdjustment,
)
from taciturn.errors import ParameterError

SETTINGS = settings(deadline=None, max_examples=40)


def probabilities(mechanism, true, most):
    """P(y | x) for all y up to the most."""
    x = np.array([true])
    return np.array(
        [float(np.exp(mechanism.log_probability(y, x))[0]) for y in range(int(most) + 1)]
    )


class Fixed(np.random.Generator):
    """A generator that gives one value for each replicate: uniform ones from `uniform`,
    geometric ones from `geometric`."""

    def __new__(cls, *_):
        return super().__new__(cls)

    def __init__(self, uniform, geometric=None):
        super().__init__(np.random.PCG64(0))
        self._uniform, self._geometric = uniform, geometric

    def random(self, size=None):
        return np.broadcast_to(np.reshape(self._uniform, (-1, 1)), size).copy()

    def geometric(self, _, size=None):
        return np.broadcast_to(np.reshape(self._geometric, (-1, 1)), size).copy()


def released(method, counts, uniform, **arguments):
    """What a method releases of each count at each of the uniform numbers, shape
    (numbers, counts)."""
    table = xr.DataArray(np.array(counts), dims="x")
    return method(
        table, replicates=len(uniform), random_seed=Fixed(np.array(uniform)), **arguments
    ).values


def assert_steps_are(method, mechanism, counts, outcomes, **arguments):
    """As a uniform number rises from 0 to 1 the method gives each of the outcomes over
    a length of its probability.

    A step is looked for 1e-12 to either side of where it must be.
    """
    for column, count in enumerate(counts):
        shares = np.array(
            [
                float(np.exp(mechanism.log_probability(y, np.array([count])))[0])
                for y in outcomes[column]
            ]
        )
        assert shares.sum() == pytest.approx(1, abs=1e-12)
        ends = np.cumsum(shares)
        for place, outcome in enumerate(outcomes[column]):
            if shares[place] < 1e-9:
                continue
            within = [max(ends[place] - shares[place], 0) + 1e-12, ends[place] - 1e-12]
            assert (released(method, [count], within, **arguments) == outcome).all()


@pytest.mark.parametrize("base", [2, 3, 5, 10])
def test_random_rounding_is_that_of_the_house(base):
    counts = list(range(3 * base))
    # A small uniform number rounds up.
    outcomes = [
        [count] if count % base == 0 else [count - count % base + base, count - count % base]
        for count in counts
    ]
    assert_steps_are(tc.random_round, RandomRounding(base), counts, outcomes, rounding_base=base)


@pytest.mark.parametrize("minimum", [2, 3, 7])
def test_small_cell_adjustment_is_that_of_the_house(minimum):
    counts = list(range(2 * minimum))
    outcomes = [[minimum, 0] if 0 < count < minimum else [count] for count in counts]
    assert_steps_are(
        tc.perturbation.adjust_small_cells,
        SmallCellAdjustment(minimum),
        counts,
        outcomes,
        minimum=minimum,
    )


@pytest.mark.parametrize("base", [2, 3, 5, 10])
def test_conventional_rounding_is_that_of_the_house(base):
    counts = np.arange(4 * base)
    rounded = tc.perturbation.conventional_round(
        xr.DataArray(counts, dims="x"), rounding_base=base
    )[0]
    mechanism = ConventionalRounding(base)
    for count, given_ in zip(counts.tolist(), rounded.values.tolist(), strict=True):
        shares = probabilities(mechanism, count, 6 * base)
        assert shares[given_] == 1
        assert shares.sum() == 1


P_TABLES = {
    "small": {"max_noise": 2, "variance": 1},
    "wide": {"max_noise": 5, "variance": 3},
    "none below 3": {"max_noise": 4, "variance": 3, "js": 2},
    "stays": {"max_noise": 3, "variance": 1.5, "pstay": 0.5},
}


@pytest.mark.parametrize("name", P_TABLES)
def test_cell_keys_are_those_of_the_house(name):
    perturbation = tc.perturbation.perturbation_table(**P_TABLES[name])
    counts = list(range(2 * perturbation.sizes["original"] + 3))
    assert_steps_are(
        tc.cell_key,
        CellKeys(perturbation),
        counts,
        [range(count + 10) for count in counts],
        perturbation=perturbation,
    )


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_noise_is_that_of_the_house(epsilon):
    # The sign is drawn by a uniform number, the size by a geometric one, whose
    # probabilities are (1 - a) a^(k - 1).
    a, counts, sizes = exp(-epsilon), [0, 1, 4], np.arange(1, 8)
    none = (1 - a) / (1 + a)
    table = xr.DataArray(counts, dims="x")
    mechanism = GeometricNoise(epsilon=epsilon)
    law = {}
    regions = [
        (none / 2, none),
        (none + (1 - none) / 4, (1 - none) / 2),
        (1 - 1e-9, (1 - none) / 2),
    ]
    for uniform, share in regions:
        for size in sizes.tolist():
            drawn = tc.add_noise(
                table, epsilon=epsilon, random_seed=Fixed(np.array([uniform]), np.array([size]))
            )[0]
            for count, y in zip(counts, drawn.values.tolist(), strict=True):
                law[count, y] = law.get((count, y), 0) + share * (1 - a) * a ** (size - 1)
    for count in counts:
        # All sizes beyond those tried go to 0 below, and are no outcome listed above.
        law[count, 0] += (1 - none) / 2 * a ** len(sizes)
        law[count, count] += none * a ** len(sizes)
        for y in range(count + len(sizes)):
            found = float(np.exp(mechanism.log_probability(y, np.array([count])))[0])
            assert found == pytest.approx(law[count, y], rel=1e-12)
        tail = none * a ** (len(sizes) + 1) / (1 - a)
        assert probabilities(mechanism, count, count + len(sizes)).sum() == pytest.approx(
            1 - tail, abs=1e-12
        )


def test_noise_at_the_largest_count():
    # All that would go beyond 2**53 stays there, as all below 0 does.
    noise = GeometricNoise(epsilon=0.5)
    x = np.array([2**53 - 3, 2**53])
    np.testing.assert_allclose(
        noise.log_probability(2**53, x), noise.log_probability(0, np.array([3, 0]))
    )


@st.composite
def mechanisms(draw):
    kind = draw(st.sampled_from(["random", "conventional", "small", "noise", "keys"]))
    number = draw(st.integers(2, 12))
    match kind:
        case "random":
            return RandomRounding(number)
        case "conventional":
            return ConventionalRounding(number)
        case "small":
            return SmallCellAdjustment(number)
        case "noise":
            return GeometricNoise(epsilon=draw(st.floats(0.5, 5)))
    noise = draw(st.integers(1, 4))
    variance = draw(st.floats(0.75, 1)) * noise
    return CellKeys(tc.perturbation.perturbation_table(noise, variance))


@SETTINGS
@given(mechanism=mechanisms(), true=st.integers(0, 40))
def test_probabilities_sum_to_one(mechanism, true):
    shares = probabilities(mechanism, true, true + 90)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1, abs=1e-12)


@SETTINGS
@given(mechanism=mechanisms(), released_count=st.integers(-2, 40))
@example(mechanism=RandomRounding(2), released_count=-2)
@example(mechanism=ConventionalRounding(2), released_count=-2)
def test_the_support_is_where_probabilities_are_positive(mechanism, released_count):
    x = np.arange(0, 80)
    positive = np.flatnonzero(np.isfinite(mechanism.log_probability(released_count, x)))
    support = mechanism.support(released_count)
    if support is None:
        assert not positive.size
    elif support[1] == inf:
        assert positive.tolist() == x.tolist()
        assert (
            mechanism.log_probability(
                released_count, np.array([released_count + int(np.ceil(mechanism.reach))])
            )
            <= mechanism.log_probability(released_count, np.array([released_count])) - 39.99
        )
    else:
        assert (positive[0], positive[-1]) == support


def test_the_support_of_a_table_with_holes():
    # Nothing but 2 more or 2 less: from 3 the counts 1 and 5 are released, never 3.
    perturbation = xr.DataArray(
        [[1, 0, 0, 0, 0], [0.5, 0, 0, 0.5, 0], [0.5, 0, 0, 0, 0.5]],
        dims=("original", "perturbed"),
        coords={"original": range(3), "perturbed": range(5)},
    )
    keys = CellKeys(perturbation)
    assert keys.support(3) == (1, 5)
    assert np.isfinite(keys.log_probability(3, np.arange(7))).tolist() == [
        False, True, False, False, False, True, False,
    ]  # fmt: skip
    assert keys.support(0) == (0, 2)


def test_later_changes_of_a_perturbation_table_have_no_effect():
    perturbation = tc.perturbation.perturbation_table(2, 1)
    keys = CellKeys(perturbation)
    before = keys.log_probability(2, np.arange(5))
    perturbation[:] = 0
    assert np.array_equal(keys.log_probability(2, np.arange(5)), before)
    assert repr(keys) == "CellKeys(a perturbation table of the counts 0 to 2)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomRounding(1), "base must be a whole number from 2 to 2\\*\\*53, got 1"),
        (lambda: RandomRounding("3"), "base must be .* got '3'"),
        (lambda: ConventionalRounding(2.5), "base must be .* got 2.5"),
        (lambda: SmallCellAdjustment(True), "minimum must be .* got True"),
        (lambda: GeometricNoise(epsilon=0), "epsilon must be a finite number above 0, got 0"),
        (lambda: GeometricNoise(epsilon=np.nan), "epsilon must be .* got nan"),
        (lambda: CellKeys(3), "perturbation must be a DataArray with the dims"),
        (
            lambda: CellKeys(tc.perturbation.perturbation_table(2, 1) * np.nan),
            "probabilities must be from 0 to 1: original=0, perturbed=0 holds nan",
        ),
        (
            lambda: CellKeys(tc.perturbation.perturbation_table(2, 1) / 2),
            "each row must sum to 1: original=0 sums to 0.5",
        ),
    ],
)
def test_bad_mechanisms(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
