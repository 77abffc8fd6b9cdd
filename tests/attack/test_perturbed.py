"""Attackers who know the mechanism: every table of tiny cases with its exact weight,
repeated queries, bad input."""

from itertools import product
from math import exp, inf, log2

import numpy as np
import pytest
import xarray as xr
from scipy.stats import poisson

import taciturn as tc
from taciturn.attack import (
    CellKeys,
    ConventionalRounding,
    GeometricNoise,
    Mechanism,
    Perturbed,
    RandomRounding,
    Release,
    SmallCellAdjustment,
)
from taciturn.attack.posterior import parts as _parts, weights as _weights
from taciturn.errors import AttackError, ParameterError, TableError

P_TABLE = tc.perturbation.perturbation_table(2, 1)
EPSILON = 2.0
MOST = 24
"""Largest count that is tried. Noise may come from any, but with less than exp(-40)
from larger ones here."""


def posterior_of(release, **arguments):
    return tc.attacker_posterior(
        release, **{"random_seed": 1, "progressbar": False, "draws": 4, **arguments}
    )


def bits(shares):
    return -sum(p * log2(p) for p in shares if p > 0)


# ------------------------------------------------- probabilities, written out once more


def rounded_at_random(y, x):
    return max(0, 1 - abs(x - y) / 3) if y % 3 == 0 else 0


def rounded(y, x):
    return float(y == 5 * ((x + 2) // 5))


def adjusted(y, x):
    return {0: 1 - x / 3, 3: x / 3}.get(y, 0) if x < 3 else float(y == x)


def noisy(y, x):
    a = exp(-EPSILON)
    return a**x / (1 + a) if y == 0 else (1 - a) / (1 + a) * a ** abs(y - x)


def keyed(y, x):
    row = min(x, 2)
    column = y - x + row
    return float(P_TABLE[row, column]) if 0 <= column < P_TABLE.shape[1] else 0


MECHANISMS = {
    "random rounding": (RandomRounding(3), rounded_at_random),
    "conventional rounding": (ConventionalRounding(5), rounded),
    "small cell adjustment": (SmallCellAdjustment(3), adjusted),
    "noise": (GeometricNoise(epsilon=EPSILON), noisy),
    "cell keys": (CellKeys(P_TABLE), keyed),
}
ANSWERS = {
    "random rounding": ([[3, 0], [3, 6]], [[0, 0], [3, 6]], [6, 6]),
    "conventional rounding": ([[5, 0], [0, 5]], [[5, 0], [0, 5]], [5, 5]),
    "small cell adjustment": ([[3, 0], [0, 4]], [[0, 0], [3, 4]], [3, 4]),
    "noise": ([[2, 0], [1, 4]], [[3, 1], [0, 4]], [3, 5]),
    "cell keys": ([[3, 0], [1, 2]], [[2, 0], [1, 3]], [4, 2]),
}
"""Two answers to the same query, and one of the totals of the columns."""


@pytest.fixture
def manner(request, monkeypatch):
    """Both ways to the posterior, whatever the number of tables."""
    listed = request.param == "listed"
    monkeypatch.setattr(_parts, "_most_listed", lambda cells: 10**6 if listed else 0)
    return request.param


def all_listed_and_walked(*walked):
    """Every mechanism listed, and these walked as well."""
    cases = [(name, "listed") for name in MECHANISMS] + [(name, "walked") for name in walked]
    return pytest.mark.parametrize(("name", "manner"), cases, indirect=["manner"])


def of_law(law, released, true):
    """P(y | x) for an array of true values."""
    return np.array([law(released, x) for x in range(int(true.max()) + 1)])[true]


def enumerated(law, released, totals=(), *, exact=False, means=None):
    """Every table that may be true, shape (tables, *shape), and its probability.

    `released` and `totals` hold one or several answers each, totals by the axes that
    they are over.
    """
    answers = [np.asarray(each) for each in released]
    shape = answers[0].shape
    x = np.arange(MOST + 1)
    own = [
        np.prod([of_law(law, y, x) for y in ys], axis=0)
        for ys in np.stack([each.ravel() for each in answers], axis=1).tolist()
    ]
    ranges = [np.flatnonzero(weights) for weights in own]
    if exact:
        cells = np.indices(shape).reshape(len(shape), -1).T
        for axes, (total,) in totals:
            most = [np.asarray(total)[tuple(cell[list(axes)])] for cell in cells]
            ranges = [each[each <= end] for each, end in zip(ranges, most, strict=True)]
    tables = np.stack([axis.ravel() for axis in np.meshgrid(*ranges, indexing="ij")], axis=1)
    weight = np.prod([own[cell][tables[:, cell]] for cell in range(len(own))], axis=0)
    if means is not None:
        weight = weight * np.prod(poisson.pmf(tables, np.ravel(means)), axis=1)
    tables = tables.reshape(-1, *shape)
    for axes, given_ in totals:
        over = tuple(axis + 1 for axis in range(len(shape)) if axis not in axes)
        sums = tables.sum(axis=over).reshape(len(tables), -1)
        for total in given_:
            for group, y in enumerate(np.ravel(total).tolist()):
                weight = weight * (sums[:, group] == y if exact else of_law(law, y, sums[:, group]))
    kept = weight > 0
    return tables[kept], weight[kept] / weight.sum()


def assert_posterior_is(found, tables, weights, manner):
    """Exact where listed. Of a walk entropies are within eight Monte Carlo standard
    errors, taken as at least 0.005 bits, and means within eight, of as many draws as
    the effective sample size: an error in a thousand million million."""
    assert (found["exact"] | found["disclosed"] | (manner == "walked")).all()
    for cell in np.ndindex(found["entropy"].shape):
        values = tables[(slice(None), *cell)]
        of_cell = found.isel(dict(zip(found["entropy"].dims, cell, strict=True)))
        mean = float(weights @ values)
        spread = float(np.sqrt(max(weights @ values**2 - mean**2, 0)))
        error = 8 * max(float(of_cell["entropy_mcse"]), 0.005)
        mean_error = 8 * spread / np.sqrt(float(of_cell["ess_bulk"]))
        if of_cell["exact"]:
            error = mean_error = 1e-12
        assert abs(float(of_cell["entropy"]) - bits(np.bincount(values, weights))) <= error
        assert abs(float(of_cell["mean"]) - mean) <= mean_error
    possible = {table.tobytes() for table in tables}
    drawn = found["table"].values.reshape(-1, *tables.shape[1:])
    assert {table.tobytes() for table in drawn} <= possible


def posterior_in(manner, release, **arguments):
    return posterior_of(release, draws=4 if manner == "listed" else 1000, **arguments)


# ------------------------------------------------- two by two


@pytest.mark.parametrize("informed", [False, True])
@pytest.mark.parametrize("totals", ["none", "exact", "perturbed"])
@all_listed_and_walked("cell keys", "noise")
def test_all_tables_of_two_by_two(name, totals, informed, manner):
    (mechanism, law), (released, _, perturbed) = MECHANISMS[name], ANSWERS[name]
    margins = {"none": [], "exact": [4, 5], "perturbed": perturbed}[totals]
    given_ = [((1,), [margins])] if totals != "none" else []
    means = np.linspace(1, 2, 4).reshape(2, 2) if informed else None
    release = Perturbed(
        xr.DataArray(released, dims=("a", "b")),
        mechanism,
        totals=[xr.DataArray(margins, dims="b")] if totals != "none" else [],
        exact_totals=totals == "exact",
        same_key=False if totals == "perturbed" else None,
    )
    prior = xr.DataArray(means, dims=("a", "b")) if informed else "uniform"
    found = posterior_in(manner, release, prior=prior)
    expected = enumerated(law, [released], given_, exact=totals == "exact", means=means)
    assert_posterior_is(found, *expected, manner)


@pytest.mark.parametrize("name", ["random rounding", "small cell adjustment", "cell keys"])
def test_bounds_are_those_of_the_enumeration(name):
    (mechanism, law), released = MECHANISMS[name], ANSWERS[name][0]
    totals = [xr.DataArray([4, 5], dims="b")]
    release = Perturbed(
        xr.DataArray(released, dims=("a", "b")), mechanism, totals=totals, exact_totals=True
    )
    bounds = tc.attacker_bounds(release, progressbar=False)
    tables, _ = enumerated(law, [released], [((1,), [[4, 5]])], exact=True)
    assert (bounds["lower"].values == tables.min(axis=0)).all()
    assert (bounds["upper"].values == tables.max(axis=0)).all()
    assert not bounds["published"].any()
    found = posterior_of(release)
    for each in ("lower", "upper", "n_values", "disclosed", "published"):
        assert found[each].equals(bounds[each])
    assert tc.attacker_bounds(release, margin="b", progressbar=False)["published"].all()


def test_noise_alone_limits_no_cell():
    release = Perturbed(xr.DataArray([2, 0], dims="a"), GeometricNoise(epsilon=1))
    bounds = tc.attacker_bounds(release, progressbar=False)
    assert bounds["lower"].values.tolist() == [0, 0]
    assert bounds["upper"].values.tolist() == [inf, inf]
    assert (posterior_of(release)["risk_uniform"] == 0).all()


def test_conventional_rounding_says_no_more_than_its_intervals():
    released = xr.DataArray([[5, 0], [10, 5]], dims=("a", "b"))
    totals = [xr.DataArray([15, 5], dims="b"), xr.DataArray([5, 15], dims="a")]
    by_likelihood = posterior_of(Perturbed(released, ConventionalRounding(5), totals=totals))
    by_interval = posterior_of(tc.Rounding(released, 5, totals=totals))
    for name in ("entropy", "mean", "lower", "upper"):
        np.testing.assert_allclose(by_likelihood[name], by_interval[name], rtol=1e-12)


# ------------------------------------------------- two by two by two, with totals

CUBE = xr.DataArray([[[0, 2], [1, 0]], [[1, 1], [0, 3]]], dims=("a", "b", "c"))
"""The true table."""
MARGINS = [("a", "b"), ("c",), ()]
RELEASED = {
    "random rounding": lambda x: 3 * ((x + 1) // 3),
    "conventional rounding": lambda x: 5 * ((x + 2) // 5),
    "small cell adjustment": lambda x: xr.where(x < 3, 3 * (x == 2), x),
    "noise": lambda x: x + x % 2,
    "cell keys": lambda x: x + (x == 1),
}
"""What each mechanism may make of it."""


@pytest.mark.parametrize(
    ("name", "exact", "manner"),
    [
        *((name, True, "listed") for name in RELEASED),
        # Noise leaves too many tables to try.
        *((name, False, "listed") for name in RELEASED if name != "noise"),
        ("random rounding", False, "walked"),
        ("cell keys", True, "walked"),
        ("cell keys", False, "walked"),
    ],
    indirect=["manner"],
)
def test_all_tables_of_two_by_two_by_two_with_totals(name, exact, manner):
    mechanism, law = MECHANISMS[name]
    true = [CUBE.sum([dim for dim in CUBE.dims if dim not in names]) for names in MARGINS]
    totals = true if exact else [RELEASED[name](total) for total in true]
    release = Perturbed(
        RELEASED[name](CUBE),
        mechanism,
        totals=totals,
        exact_totals=exact,
        same_key=None if exact else False,
    )
    means = np.linspace(1, 2, 8).reshape(2, 2, 2)
    found = posterior_in(manner, release, prior=xr.DataArray(means, dims=CUBE.dims))
    axes = [tuple(CUBE.dims.index(name) for name in names) for names in MARGINS]
    given_ = [(axis, [total.values]) for axis, total in zip(axes, totals, strict=True)]
    expected = enumerated(law, [RELEASED[name](CUBE).values], given_, exact=exact, means=means)
    assert_posterior_is(found, *expected, manner)


# ------------------------------------------------- repeated queries


def entropy_of_agreeing_noise(epsilon, times):
    """In bits, of a count far from 0 of which so many repetitions say the same: it is
    two-sided geometric with so many times the epsilon."""
    a = exp(-times * epsilon)
    return -log2((1 - a) / (1 + a)) - 2 * a / (1 - a**2) * log2(a)


@pytest.mark.parametrize("times", [1, 2, 3, 5, 10])
def test_agreeing_noise_is_as_noise_of_a_larger_epsilon(times):
    released = xr.DataArray(np.full((times, 1), 200), dims=("replicate", "a"))
    found = posterior_of(Perturbed(released, GeometricNoise(epsilon=0.4)))
    assert float(found["entropy"][0]) == pytest.approx(
        entropy_of_agreeing_noise(0.4, times), abs=1e-12
    )


@pytest.mark.parametrize("name", ["random rounding", "cell keys"])
def test_repeated_queries_help_by_the_information_that_they_hold(name):
    # Two cells with a total of 3, all four tables equally likely. The entropy left
    # after some answers, averaged over all answers there may be, is H(X | Y1, ...).
    mechanism, law = MECHANISMS[name]
    x = np.arange(4)
    answers = [
        (pair, likely)
        for pair in product(range(8), repeat=2)
        if (likely := of_law(law, pair[0], x) * of_law(law, pair[1], 3 - x)).any()
    ]
    assert sum(likely for _, likely in answers) == pytest.approx(1)
    total = [xr.DataArray(3)]
    left = [log2(4)]
    for times in (1, 2):
        joint = {
            tuple(pair for pair, _ in given_): np.prod([likely for _, likely in given_], axis=0) / 4
            for given_ in product(answers, repeat=times)
        }
        joint = {pairs: shares for pairs, shares in joint.items() if shares.any()}
        left.append(bits(np.ravel(list(joint.values()))) - bits(map(sum, joint.values())))
        averaged = 0.0
        for pairs, shares in joint.items():
            if list(pairs) != sorted(pairs):
                continue  # the order of the answers does not matter
            release = Perturbed(
                xr.DataArray([*pairs], dims=("replicate", "a")),
                mechanism,
                totals=total,
                exact_totals=True,
                same_key=False,
            )
            orders = 2 if len(set(pairs)) > 1 else 1
            averaged += orders * sum(shares) * float(posterior_of(release)["entropy"][0])
        assert averaged == pytest.approx(left[-1], abs=1e-12)
    assert left[0] > left[1] > left[2]


@all_listed_and_walked("cell keys")
def test_repetitions_multiply_likelihoods(name, manner):
    (mechanism, law), (one, other, total) = MECHANISMS[name], ANSWERS[name]
    answers = np.array([one, one, other])
    release = Perturbed(
        xr.DataArray(answers, dims=("replicate", "a", "b")),
        mechanism,
        totals=[xr.DataArray([total, total], dims=("replicate", "b"))],
        same_key=False,
    )
    expected = enumerated(law, answers, [((1,), [total, total])])
    assert_posterior_is(posterior_in(manner, release), *expected, manner)


def test_noise_of_the_same_keys_does_not_average_out():
    answer = xr.DataArray([[3, 0], [1, 2]], dims=("a", "b"))
    again = xr.concat([answer] * 20, dim="replicate")
    once = posterior_of(Perturbed(answer, CellKeys(P_TABLE)))
    same = posterior_of(Perturbed(again, CellKeys(P_TABLE)))
    assert same.identical(once)
    fresh = posterior_of(Perturbed(again, CellKeys(P_TABLE), same_key=False))
    assert (fresh["entropy"] < once["entropy"]).any()
    assert (fresh["entropy"] <= once["entropy"] + 1e-12).all()
    rounded_once = posterior_of(Perturbed(again * 3, RandomRounding(3), same_key=True))
    assert rounded_once.identical(posterior_of(Perturbed(answer * 3, RandomRounding(3))))


# ------------------------------------------------- walks and holes

HOLES = xr.DataArray(
    [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0.5, 0, 0, 0, 0.5]],
    dims=("original", "perturbed"),
    coords={"original": range(3), "perturbed": range(5)},
)
"""A count of two or more is released two below or two above, 1 as 2."""


@pytest.mark.parametrize("manner", ["listed", "walked"], indirect=True)
def test_values_between_the_bounds_that_the_mechanism_does_not_give(manner):
    # 4 is released for 2 and 6 only: with a total of 8 the cells hold 2 and 6.
    release = Perturbed(
        xr.DataArray([4, 4], dims="a"), CellKeys(HOLES), totals=[xr.DataArray(8)], exact_totals=True
    )
    found = posterior_in(manner, release)
    assert found["n_values"].values.tolist() == [5, 5]
    np.testing.assert_allclose(found["entropy"], 1, atol=1e-12)
    assert set(np.unique(found["table"])) == {2, 6}


@pytest.mark.parametrize("total", [5, 9])
def test_no_table_gives_what_is_released(total):
    release = Perturbed(
        xr.DataArray([4, 4], dims="a"),
        CellKeys(HOLES),
        totals=[xr.DataArray(total)],
        exact_totals=True,
    )
    with pytest.raises(TableError, match="from no compatible table the mechanism gives what is"):
        posterior_of(release)


def test_a_walk_to_no_possible_table(monkeypatch):
    monkeypatch.setattr(_parts, "_most_listed", lambda cells: 0)
    release = Perturbed(
        xr.DataArray([4, 4], dims="a"), CellKeys(HOLES), totals=[xr.DataArray(9)], exact_totals=True
    )
    with pytest.raises(AttackError, match="the walk came to no table"):
        posterior_of(release)


def test_a_settled_cell_that_the_mechanism_does_not_give():
    release = Perturbed(
        xr.DataArray([4], dims="a"), CellKeys(HOLES), totals=[xr.DataArray(4)], exact_totals=True
    )
    with pytest.raises(TableError, match="a=0 could hold 4 only, from which the mechanism"):
        posterior_of(release)


def test_too_many_values_to_weigh(monkeypatch):
    monkeypatch.setattr(_weights, "_MOST_WEIGHTS", 40)
    release = Perturbed(xr.DataArray([1, 2], dims="a"), GeometricNoise(epsilon=2))
    with pytest.raises(ParameterError, match="can hold 45 values in all, at most 40 are weighed"):
        posterior_of(release)


# ------------------------------------------------- what is given, and shown

TABLE = xr.DataArray([[3, 0], [3, 6]], dims=("a", "b"))
ROUNDING = RandomRounding(3)


def test_what_is_shown():
    release = Perturbed(TABLE, ROUNDING, totals=[TABLE.sum("a")], exact_totals=True)
    assert repr(release).splitlines()[:3] == [
        "Perturbation of a (2) x b (2), 0 decimals",
        "by RandomRounding(base=3); published totals: b, exact",
        "a x b: 4 published, 0 suppressed",
    ]
    repeated = Perturbed(xr.concat([TABLE, TABLE], "replicate"), ROUNDING)
    assert repr(repeated).count("a x b: 4 published") == 2
    assert len(release.published_tables()) == 2
    with pytest.raises(ParameterError, match="no repetitions to be written"):
        repeated.published_tables()


def test_it_is_written_and_read_back(tmp_path):
    tc.write_release(Perturbed(TABLE, ROUNDING, totals=[TABLE.sum("a")]), tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text().count("\n") > 4


def test_later_changes_have_no_effect():
    table, total = TABLE.copy(), TABLE.sum("a")
    release = Perturbed(table, ROUNDING, totals=[total])
    before = posterior_of(release)
    table[:], total[:] = 1, 1
    assert posterior_of(release).identical(before)


def test_a_mechanism_of_ones_own():
    class Shift(Mechanism):
        """One more, or as it is, with equal probabilities."""

        @property
        def gives(self):
            return "counts"

        def support(self, released):
            return max(released - 1, 0), released

        def log_probability(self, released, true):
            with np.errstate(divide="ignore"):
                return np.log(np.isin(released - true, [0, 1]) / 2)

    found = posterior_of(Perturbed(xr.DataArray([3, 0], dims="a"), Shift()))
    np.testing.assert_allclose(found["entropy"], [1, 0], atol=1e-12)
    assert found["disclosed"].values.tolist() == [False, True]
    assert not isinstance(Shift(), Release)


KEYS = CellKeys(P_TABLE)
NONE_BELOW_3 = tc.perturbation.perturbation_table(4, 3, js=2)
TWICE = xr.concat([TABLE, TABLE + 3], "replicate")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Perturbed(TABLE + 1, ROUNDING),
            TableError,
            "released must hold multiples of 3: a=0, b=1 holds 1",
        ),
        (
            lambda: Perturbed(TABLE, ROUNDING, totals=[TABLE.sum("a") + 1]),
            TableError,
            "totals must hold multiples of 3: b=0 holds 7",
        ),
        (
            lambda: Perturbed(TABLE, ROUNDING, totals=[xr.DataArray(4)]),
            TableError,
            "totals must hold multiples of 3: the grand total holds 4",
        ),
        (
            lambda: Perturbed(TABLE, SmallCellAdjustment(7)),
            TableError,
            "released must hold 0, or 7 and above: a=0, b=0 holds 3",
        ),
        (
            lambda: Perturbed(TABLE * 0 + 1, CellKeys(NONE_BELOW_3)),
            TableError,
            r"released must hold what CellKeys\(.*\) gives: a=0, b=0 holds 1",
        ),
        (
            lambda: Perturbed(xr.concat([TABLE, TABLE + 9], "replicate"), ROUNDING),
            TableError,
            "released: no count gives all repetitions, a=0, b=0 holds 3, 12",
        ),
        (
            lambda: Perturbed(TWICE, KEYS),
            TableError,
            "with the same keys a query has one answer, but a=0, b=0 holds 3 and 6; .* same_key",
        ),
        (
            lambda: Perturbed(TABLE, KEYS, totals=[TABLE.sum("a")]),
            ParameterError,
            "perturbed totals with the same keys as their cells have no noise of their own",
        ),
        (
            lambda: Perturbed(TABLE, ROUNDING, totals=[TABLE.sum("a")], same_key=True),
            ParameterError,
            "perturbed totals with the same keys",
        ),
        (
            lambda: Perturbed(TABLE, ROUNDING, totals=[TWICE.sum("a")], exact_totals=True),
            ParameterError,
            "exact totals have no repetitions",
        ),
        (lambda: Perturbed(TABLE, "rounding"), ParameterError, "must be a Mechanism .* 'rounding'"),
        (lambda: Perturbed(TABLE, RandomRounding), ParameterError, "must be a Mechanism such as"),
        (lambda: Perturbed(TABLE, ROUNDING, same_key=1), ParameterError, "same_key must be True"),
        (
            lambda: Perturbed(TABLE, ROUNDING, exact_totals=True),
            ParameterError,
            "exact_totals needs the true totals",
        ),
        (
            lambda: Perturbed(TABLE, ROUNDING, totals=TABLE.sum("a")),
            ParameterError,
            r"totals must be a sequence of DataArrays, such as \[total\], got DataArray",
        ),
        (lambda: Perturbed(TABLE, ROUNDING, totals=[6]), TableError, "totals must be .* got int"),
        (
            lambda: Perturbed(TABLE, ROUNDING, totals=[TABLE.sum("a").rename(b="c")]),
            ParameterError,
            "totals must name variables of the table",
        ),
        (
            lambda: Perturbed(TABLE, ROUNDING, totals=[TABLE.sum("a").isel(b=[0])]),
            TableError,
            "the categories of 'b' differ between totals and the table",
        ),
        (lambda: Perturbed(TABLE.values, ROUNDING), TableError, "released must be .* got ndarray"),
        (lambda: Perturbed(TABLE * np.nan, ROUNDING), TableError, "must not be missing: a=0, b=0"),
        (lambda: Perturbed(TABLE * np.inf, ROUNDING), TableError, "a=0, b=1 holds nan"),
        (lambda: Perturbed(-TABLE, ROUNDING), TableError, "must not be negative: a=0, b=0"),
        (lambda: Perturbed(TABLE / 2, ROUNDING), TableError, "must be whole numbers: a=0, b=0"),
        (lambda: Perturbed(TABLE.isel(a=[]), ROUNDING), TableError, "released is empty"),
        (
            lambda: Perturbed(TWICE.isel(replicate=[]), ROUNDING),
            TableError,
            "released has no repetition",
        ),
        (
            lambda: Perturbed(TWICE.rename(replicate="draw"), ROUNDING),
            TableError,
            "released must be one table, but has the dimensions",
        ),
    ],
)
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()
