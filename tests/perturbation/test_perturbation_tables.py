"""Perturbation tables: those that ptable documents, a general optimiser as a slow twin,
and what is refused."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import example, given, settings, strategies as st
from scipy import optimize

import taciturn as tc
from taciturn.errors import ParameterError

# ---------------------------------------------------------------- published tables

D5V3JS2 = """\
0.73446954 0 0 0.136720190 0.07279631 0.03742956 0.018584399
0.40880704 0 0 0.406643537 0.14762401 0.03231882 0.004266868 0.0003397188
0.20398618 0 0 0.393662525 0.24749239 0.11056847 0.035102043 0.0079189055 0.001269491
0.08485487 0 0 0.277921233 0.27792123 0.18939369 0.105125448 0.0454553570 0.015310774 0.004017391
0.02014749 0 0 0.173347467 0.22063302 0.22131828 0.174967643 0.1090164652 0.053532830 0.020717693 \
0.006319113
0 0 0 0.072029825 0.13671708 0.19735138 0.216652933 0.1808822561 0.114850887 0.055459983 \
0.020367237 0.005688418
0 0 0 0.018439196 0.05548389 0.12162104 0.194208159 0.2259140226 0.191441399 0.118180404 \
0.053146176 0.017410672 0.004155049
0 0 0 0.003791861 0.01659093 0.05229263 0.118730368 0.1941934608 0.228801496 0.194193460 \
0.118730371 0.052292634 0.016590928 0.00379186"""

PUBLISHED = {
    # Enderle, Giessing & Tent (2020), as the tutorial of the cell-key method prints it;
    # 0.2394 stands where 0.2393498 is computed.
    "D=3, V=1": (
        {"max_noise": 3, "variance": 1},
        [
            [0.3699, 0.3699, 0.1711, 0.0687, 0.0205],
            [0.0603, 0.2472, 0.3915, 0.2394, 0.0565, 0.0051],
            [0.0045, 0.0543, 0.2420, 0.3982, 0.2420, 0.0543, 0.0045],
        ],
        0.51e-4,
    ),
    # The vignette, "The Transition Matrix": the variance of row 1 is 0.93188.
    "D=2, V=1": (
        {"max_noise": 2, "variance": 1},
        [
            [0.36648551, 0.3664855, 0.1675725, 0.09945652],
            [0.06382714, 0.2446915, 0.3829628, 0.24469145, 0.06382714],
        ],
        0.51e-7,
    ),
    # The vignette, "Output Checking and Troubleshooting".
    "D=2, V=0.9": (
        {"max_noise": 2, "variance": 0.9},
        [
            [0.3625, 0.3625, 0.1875, 0.0875],
            [0.05154609, 0.2438156, 0.4092765, 0.2438156, 0.05154609],
        ],
        0.51e-7,
    ),
    # The vignette, "Do not allow for positive cell values ..."; the optimiser of ptable
    # stops some 1e-7 before the largest entropy.
    "D=5, V=3, js=2": (
        {"max_noise": 5, "variance": 3, "js": 2},
        [[float(p) for p in row.split()] for row in D5V3JS2.splitlines()],
        1e-7,
    ),
    # The vignette, "Plotting the Perturbation Panel", which says row 1.
    "D=2, V=1.08, js=1": (
        {"max_noise": 2, "variance": 1.08, "js": 1, "monotone": [True, True, False, True]},
        [[0.5133, 0, 0.46, 0.0267]],
        0.51e-4,
    ),
    # Langsrud, experimentalRpackage, Pmatrix: to two digits, cumulated there as 0.37,
    # 0.73, 0.9, 1 and 0.2, 0.4, 0.6, 0.8, 1; V is 3, more than either row needs.
    "D=2, V=3": (
        {"max_noise": 2, "variance": 3},
        [[0.37, 0.36, 0.17, 0.1], [0.2, 0.2, 0.2, 0.2, 0.2]],
        1.01e-2,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_tables(name):
    arguments, rows, precision = PUBLISHED[name]
    perturbation = tc.perturbation.perturbation_table(**arguments)
    for original, row in enumerate(rows, start=1):
        ours = perturbation.sel(original=original).values
        np.testing.assert_allclose(ours[: len(row)], row, rtol=0, atol=precision)
        assert not ours[len(row) :].any()


@pytest.mark.parametrize(
    ("arguments", "stays", "variances"),
    [
        # The vignette, "Output Checking and Troubleshooting".
        ({"max_noise": 2, "variance": 1}, [0.36649, 0.38296], [0.93188, 1]),
        ({"max_noise": 2, "variance": 0.9}, [0.3625, 0.40928], [0.9, 0.9]),
        # "Setting the probability of an original frequency to remain unperturbed"
        ({"max_noise": 4, "variance": 1, "pstay": 0.5}, [0.5] * 4, [1] * 4),
        # "Advanced Parameter Setting"
        (
            {"max_noise": 4, "variance": 1, "pstay": [0.5, 0.5, 0.7, 0.8]},
            [0.5, 0.5, 0.7, 0.8],
            [1] * 4,
        ),
    ],
)
def test_published_variances_and_probabilities_to_stay(arguments, stays, variances):
    perturbation = tc.perturbation.perturbation_table(**arguments)
    diagonal = np.diag(perturbation.values)[1:]
    np.testing.assert_allclose(diagonal, stays, rtol=0, atol=0.51e-5)
    mean, spread = moments(perturbation)
    np.testing.assert_allclose(mean, 0, rtol=0, atol=1e-9)
    np.testing.assert_allclose(spread[1:], variances, rtol=0, atol=0.51e-5)


def test_a_probability_to_stay_comes_before_the_variance():
    """Where the vignette's "Violation of the fixed variance condition" has ptable lower
    pstay until the variance is V, the given one is kept here: four of each sign share a
    tenth, and the mean of their squares is 7.5."""
    pstay = [0.8, 0.9, 0.9, 0.9]
    perturbation = tc.perturbation.perturbation_table(4, 1.5, pstay=pstay)
    np.testing.assert_allclose(np.diag(perturbation.values)[1:], pstay, rtol=0, atol=1e-9)
    assert moments(perturbation)[1][4] == pytest.approx(0.1 * 7.5)


# ---------------------------------------------------------------- conditions


def moments(perturbation):
    noise = perturbation.perturbed - perturbation.original
    mean = (noise * perturbation).sum("perturbed")
    return mean, (noise**2 * perturbation).sum("perturbed") - mean**2


FEASIBLE = [
    (3, 1, 0, True, None),
    (1, 0.5, 0, True, None),
    (1, 1, 0, False, None),  # more than the largest entropy needs, 2/3
    (4, 0.01, 0, True, None),
    (3, 1, 1, True, None),  # the end of the range: the row of 1 has two points
    (5, 3, 1, True, None),
    (5, 2, 2, True, None),
    (8, 3, 2, False, 0.4),
    (10, 3.5, 0, True, 0.5),
    (3, 0.5, 0, True, 0.5),  # the end of the range: -1, 0 and 1 only
    (3, 1, 0, True, 1),
    pytest.param(100, 30, 0, True, None, marks=pytest.mark.slow),  # as large as they may be
]


@pytest.mark.parametrize(("max_noise", "variance", "js", "monotone", "pstay"), FEASIBLE)
def test_rows_meet_every_condition(max_noise, variance, js, monotone, pstay):
    perturbation = tc.perturbation.perturbation_table(
        max_noise, variance, js=js, monotone=monotone, pstay=pstay
    )
    mean, spread = moments(perturbation)
    assert perturbation.dims == ("original", "perturbed")
    assert perturbation.sizes["original"] == 1 + max_noise + (js + 1 if js else 0)
    assert float(perturbation.min()) >= 0
    np.testing.assert_allclose(perturbation.sum("perturbed"), 1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(mean, 0, rtol=0, atol=1e-9)
    assert float(spread.max()) <= variance + 1e-9
    assert perturbation.sel(original=0, perturbed=0) == 1
    assert not perturbation.sel(perturbed=slice(1, js)).values.any()
    if pstay is not None:
        kept = np.diag(perturbation.values)[js + 1 :]
        np.testing.assert_allclose(kept, pstay, rtol=0, atol=1e-9)
    far = abs(perturbation.perturbed - perturbation.original) > max_noise
    assert not perturbation.where(far, 0).values.any()
    last = perturbation.isel(original=-1).values[-2 * max_noise - 1 :]
    np.testing.assert_allclose(last, last[::-1], rtol=0, atol=1e-9)
    tc.cell_key(
        xr.DataArray([0, 3, 10**6], dims="x"), perturbation=perturbation, random_seed=1
    )  # accepts it


@settings(max_examples=15)
@example(5, 4.0, 2, None, True)  # steps between two ways of pooling would not end
@given(
    st.integers(1, 6),
    st.floats(0.3, 4),
    st.integers(0, 2),
    st.none() | st.floats(0.2, 0.95),
    st.booleans(),
)
def test_of_any_parameters_a_table_or_the_row_at_fault(max_noise, variance, js, pstay, monotone):
    variance = min(variance, max_noise**2)
    given_ = {"js": js, "pstay": pstay, "monotone": monotone}
    try:
        perturbation = tc.perturbation.perturbation_table(max_noise, variance, **given_)
    except ParameterError as error:
        message = str(error)
    else:
        mean, spread = moments(perturbation)
        assert abs(mean).max() < 1e-8
        assert spread.max() <= variance + 1e-8
        return
    assert "the original count" in message
    assert "accepted there" in message or "has no noise with mean 0" in message


@pytest.mark.parametrize(("max_noise", "variance", "js"), [(3, 1.2, 0), (5, 3, 1), (4, 2.5, 2)])
def test_monotone_rows_fall_away_from_the_original_count(max_noise, variance, js):
    perturbation = tc.perturbation.perturbation_table(max_noise, variance, js=js)
    published = perturbation.sel(perturbed=[0, *range(js + 1, perturbation.sizes["perturbed"])])
    for original, row in zip(
        published.original.values[1:], published.transpose("original", ...)[1:], strict=True
    ):
        noise = row.perturbed.values - original
        assert (np.diff(row.values[noise >= 0]) <= 1e-12).all()
        assert (np.diff(row.values[noise <= 0]) >= -1e-12).all()


@pytest.mark.parametrize(
    ("max_noise", "variance", "js", "monotone", "pstay"),
    [
        (3, 1, 0, True, None),
        (3, 1, 0, False, None),
        (2, 1, 0, True, None),  # V is not reached by 1
        (4, 2.5, 2, True, None),
        (2, 1.3, 1, False, None),
        (3, 1, 0, True, 0.5),
        (4, 3, 0, False, 0.1),  # nor by 1, 2 and 3
        (3, 1.2, 0, True, 0.35),  # pooled with its neighbours
    ],
)
def test_rows_have_the_largest_entropy_by_a_general_optimiser(
    max_noise, variance, js, monotone, pstay
):
    perturbation = tc.perturbation.perturbation_table(
        max_noise, variance, js=js, monotone=monotone, pstay=pstay
    )
    for original in perturbation.original.values[1:]:
        possible = [
            j
            for j in (0, *range(js + 1, original + max_noise + 1))
            if abs(j - original) <= max_noise
        ]
        noise = np.array(possible) - original
        sides = [np.flatnonzero(noise <= 0)[::-1], np.flatnonzero(noise >= 0)]
        conditions = [
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "eq", "fun": lambda p, k=noise: p @ k},
            {"type": "ineq", "fun": lambda p, k=noise: variance - p @ k**2},
        ]
        if pstay is not None:
            at = possible.index(original)
            conditions.append({"type": "eq", "fun": lambda p, at=at: p[at] - pstay})
        if monotone:
            conditions += [
                {"type": "ineq", "fun": lambda p, s=side: -np.diff(p[s])}
                for side in sides
                if len(side) > 1
            ]
        found = optimize.minimize(
            lambda p: np.sum(p * np.log(p)),
            np.full(len(noise), 1 / len(noise)),
            method="SLSQP",
            bounds=[(1e-12, 1)] * len(noise),
            constraints=conditions,
            options={"ftol": 1e-13, "maxiter": 1000},
        )
        assert found.success
        ours = perturbation.sel(original=original, perturbed=possible).values
        np.testing.assert_allclose(ours, found.x, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"max_noise": 5, "variance": 1, "js": 2},
            r"original count 1 .* variance of at most 1; accepted there: a variance of at least 2",
        ),
        (
            {"max_noise": 2, "variance": 1, "js": 3},
            r"original count 1 has no noise with mean 0 among \[-1\]",
        ),
        (  # -1, 0 and 1 are at most as likely as 0
            {"max_noise": 3, "variance": 1, "pstay": 0.05},
            r"original count 1 .* with probability 0.05; accepted there: pstay from 0.333333 to 1",
        ),
        (
            {"max_noise": 3, "variance": 0.5, "pstay": [None, 0.6, 0.2]},
            r"original count 3 .* with probability 0.2; accepted there: pstay from 0.5 to 1",
        ),
    ],
)
def test_infeasible_rows_are_named_with_what_they_accept(arguments, message):
    with pytest.raises(ParameterError, match=message):
        tc.perturbation.perturbation_table(**arguments)


def test_what_is_accepted_is_accepted():
    tc.perturbation.perturbation_table(5, 2, js=2)
    tc.perturbation.perturbation_table(3, 0.5, pstay=[None, float("nan"), 0.5])
    with pytest.raises(ParameterError, match=r"original count 1 .* pstay from 0.333333 to 1"):
        tc.perturbation.perturbation_table(3, 1, pstay=[0.333, None, None])
    tc.perturbation.perturbation_table(3, 1, pstay=[0.333334, None, None])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_noise": 0}, "max_noise must be a whole number from 1 to 100, got 0"),
        ({"max_noise": 2.5}, "max_noise must be .* got 2.5"),
        ({"variance": 0}, "variance must be a number above 0 and at most 9, got 0"),
        ({"variance": -1}, "variance must be a number above 0 and at most 9, got -1"),
        ({"variance": float("nan")}, "variance must be .* got nan"),
        ({"js": -1}, "js must be a whole number from 0 to 100, got -1"),
        (
            {"pstay": 0},
            "pstay of the original count 1 must be a number above 0 and at most 1, got 0",
        ),
        ({"pstay": [0.5, None, 2]}, "pstay of the original count 3 must be .* got 2"),
        ({"pstay": "0.5"}, "pstay must be one value or 3, .* got '0.5'"),
        ({"pstay": [0.5, 0.5]}, "pstay must be one value or 3, .* got 2 values"),
        (
            {"js": 1, "pstay": [0.5] * 5},
            "pstay of the original count 1 must be None, as with js=1 it is never published",
        ),
        ({"monotone": 1}, "monotone must be True or False, got 1"),
        ({"monotone": [True]}, "monotone must be one value or 3, .* got 1 values"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ParameterError, match=message):
        tc.perturbation.perturbation_table(**{"max_noise": 3, "variance": 1} | arguments)


# ---------------------------------------------------------------- tables of others


def table_of(rows, original=None, perturbed=None):
    rows = np.asarray(rows, dtype=float)
    labels = {
        "original": np.arange(len(rows)) if original is None else original,
        "perturbed": np.arange(rows.shape[1]) if perturbed is None else perturbed,
    }
    return xr.DataArray(rows, dims=("original", "perturbed"), coords=labels)


@pytest.mark.parametrize(
    ("perturbation", "message"),
    [
        (
            [[1, 0], [0, 1]],
            r"must be a DataArray with the dims \('original', 'perturbed'\), got list",
        ),
        (xr.DataArray([[1.0]], dims=("x", "y")), r"got \('x', 'y'\)"),
        (table_of([[1, 0], [0.5, 0.4]]), "each row must sum to 1: original=1 sums to 0.9"),
        (
            table_of([[1, 0], [-0.5, 1.5]]),
            "probabilities must be from 0 to 1: original=1, perturbed=0 holds -0.5",
        ),
        (
            table_of([[1, 0], [0, 1.5]]),
            "probabilities must be from 0 to 1: original=1, perturbed=1 holds 1.5",
        ),
        (table_of([[1, 0], [np.nan, 1]]), "original=1, perturbed=0 holds nan"),
        (
            table_of([[0, 1, 0], [0.5, 0, 0.5]], perturbed=[-1, 0, 2]),
            "cannot become negative: original=1, perturbed=-1",
        ),
        (
            table_of([[0.9, 0.1], [0, 1]]),
            "zero must stay zero, .* original=0, perturbed=1 holds 0.1",
        ),
        (
            table_of([[1, 0], [0, 1]], original=[0, 2]),
            r"labels of 'original' must be 0, 1, ... without a gap, got \[0, 2\]",
        ),
        (table_of([[1, 0]]), "without a gap"),
        (
            table_of([[1, 0], [0, 1]], perturbed=[1, 0]),
            r"labels of 'perturbed' must be numbers that rise, got \[1, 0\]",
        ),
        (
            table_of([[1, 0], [0, 1]], perturbed=[0.0, 0.5]),
            "labels of 'perturbed' must be whole numbers",
        ),
    ],
)
def test_bad_perturbation_tables(perturbation, message):
    with pytest.raises(ParameterError, match=message):
        tc.cell_key(xr.DataArray([1, 2], dims="x"), perturbation=perturbation)
