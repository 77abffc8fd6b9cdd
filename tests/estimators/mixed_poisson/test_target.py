"""Slopes and curvatures of the posterior, against differences of its values, and the
probabilities of counts against other ways to compute them.
"""

from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
import xarray as xr

from taciturn import parallel
from taciturn.estimators.mixed_poisson import target as target_module
from taciturn.estimators.mixed_poisson.density import LEAST
from taciturn.estimators.mixed_poisson.kernels import solve_factored
from taciturn.estimators.mixed_poisson.mixing import MIXING, mixing_with
from taciturn.estimators.mixed_poisson.modes import roots_of, usual_exponents
from taciturn.estimators.mixed_poisson.points import Bends
from taciturn.estimators.mixed_poisson.target import Target
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import make_problem

KINDS = {"gamma": (0.0, 0.0), "inverse Gaussian": (1.0, 0.0), "mixture": (0.35, 0.0)}
"""Shares of inverse Gaussian factors, and of cells where nobody can be."""
KINDS |= {f"{name} with zeros": (share, 0.3) for name, (share, _) in KINDS.items()}
each = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
COUNTS = np.array([0, 0, 1, 2, 7, 39, 40, 41, 60, 300.0])


def table(values) -> xr.DataArray:
    values = np.asarray(values)
    labels = {f"v{axis}": list("abcdef"[:size]) for axis, size in enumerate(values.shape)}
    return xr.DataArray(values, coords=labels, dims=list(labels))


def stratified():
    sample = table([[3, 0, 1, 0], [0, 12, 4, 0], [1, 1, 0, 0]])
    known = xr.DataArray([40, 300, 9], coords={"v0": list("abc")}, dims="v0")
    zeros = sample.astype(bool) & False
    zeros[0, 3] = True
    return make_problem(sample, 349, zeros, known)


def three_variables():
    return make_problem(table(np.arange(12).reshape(2, 3, 2) % 5), 200, None, None)


MAIN = [(f"v{axis}",) for axis in range(3)]
PROBLEMS = {
    "one stratum": (
        lambda: make_problem(table([[5, 0, 1], [0, 45, 2]]), 500, None, None),
        MAIN[:2],
    ),
    "strata and a structural zero": (stratified, MAIN[:2]),
    "three variables": (three_variables, MAIN),
    "an interaction in strata": (stratified, [*MAIN[:2], ("v0", "v1")]),
    "interactions": (three_variables, [*MAIN, ("v1", "v2"), ("v0", "v1", "v2")]),
}


def target_of(problem, terms):
    first, *others = problem.variables
    priors = {f"margin_{dim}": Prior("Dirichlet", a=0.7) for dim in others}
    priors[f"concentration_{first}"] = Prior("Pareto", alpha=0.5, m=0.5)
    priors |= {f"scale_{'_'.join(term)}": Prior("HalfNormal", sigma=1.0) for term in terms}
    priors |= {
        "nu": Prior("LogNormal", mu=0.3, sigma=1.0),
        "power": Prior("Uniform", lower=0, upper=1),
    }
    return Target(problem, tuple(terms), priors, pure=0.0)


def points_of(target, rng, kind, rows=3):
    named = dict(zip(("share", "inflation"), np.tile(kind, (rows, 1)).T, strict=True))
    log_a = np.tile(target.effects.log_a, (rows, 1))
    named |= {"log_nu": rng.normal(0, 1, rows), "power": rng.random(rows)}
    points = target.start(named, log_a)
    moved = points.logs + rng.normal(0, 0.4, points.logs.shape)
    sums = points.sums * rng.uniform(0.5, 2, rows)[:, None]
    log_a = points.log_a + rng.uniform(-0.5, 1, points.log_a.shape)
    return replace(points, logs=moved, sums=sums, log_a=log_a)


def differences(target, points, step=2e-3):
    """Slopes and second derivatives, the sign of these changed, by differences."""
    size = points.logs.shape[1]
    moves = step * np.eye(size)

    def at(move):
        moved = replace(points, logs=points.logs + move)
        return target.log_density(moved)

    slopes = np.array([(at(move) - at(-move)) / (2 * step) for move in moves]).T
    bends = np.empty((len(points.power), size, size))
    for i, one in enumerate(moves):
        for j, other in enumerate(moves):
            mixed = at(one + other) + at(-one - other) - at(one - other) - at(other - one)
            bends[:, i, j] = -mixed / (4 * step**2)
    return slopes, bends


@each
@pytest.mark.parametrize(("problem", "terms"), PROBLEMS.values(), ids=list(PROBLEMS))
def test_the_density_bends_as_its_differences_do(problem, terms, kind):
    target = target_of(problem(), terms)
    points = points_of(target, np.random.default_rng(1), kind)
    bends, strata = target.bends(points), len(target.strata.kept)
    slopes, seconds = differences(target, points)
    scale = np.abs(seconds).max()
    np.testing.assert_allclose(bends.slopes, slopes, atol=1e-4 * scale)
    np.testing.assert_allclose(bends.effects, seconds[:, strata:, strata:], atol=1e-4 * scale)
    np.testing.assert_allclose(bends.between, seconds[:, :strata, strata:], atol=1e-4 * scale)
    of_intensities = seconds[:, :strata, :strata]
    diagonal = np.diagonal(of_intensities, axis1=1, axis2=2)
    np.testing.assert_allclose(bends.intensities, diagonal, atol=1e-4 * scale)
    apart = of_intensities - diagonal[:, :, None] * np.eye(strata)
    np.testing.assert_allclose(apart, 0, atol=1e-4 * scale)


@each
@pytest.mark.parametrize(("problem", "terms"), PROBLEMS.values(), ids=list(PROBLEMS))
def test_the_likelihood_is_the_product_of_those_of_all_cells(problem, terms, kind):
    target = target_of(problem(), terms)
    points = points_of(target, np.random.default_rng(2), kind)
    _, *cells = target._cells(points)
    by_cell = mixing_with(points.share, points.inflation).log_pmf(target._counts, *cells)
    np.testing.assert_allclose(target._log_likelihood(points), by_cell.sum(axis=1), rtol=1e-12)


@each
@pytest.mark.parametrize(("problem", "terms"), PROBLEMS.values(), ids=list(PROBLEMS))
def test_modes_are_where_slopes_are_the_exponents(problem, terms, kind, monkeypatch):
    """Found one by one as in blocks and threads, with what is needed of the point just
    before.
    """
    monkeypatch.setattr(target_module, "_BLOCK", 1)
    monkeypatch.setattr(parallel, "_THREADED_FROM", 1)
    target = target_of(problem(), terms)
    points = points_of(target, np.random.default_rng(3), kind)
    exponents = 0.5 * usual_exponents(target, points)
    modes, bends, roots = target.modes(points, exponents, 1e-6)
    slopes = target.bends(modes).slopes
    np.testing.assert_allclose(slopes, exponents, atol=1e-6 * np.abs(bends.effects).max())
    for number in range(len(points.power)):
        only = slice(number, number + 1)
        alone, _, root = target.modes(points.at(only), exponents[only], 1e-6)
        np.testing.assert_array_equal(alone.logs[0], modes.logs[number])
        np.testing.assert_array_equal(root[0], roots[number])
    carried = bends.between / bends.intensities[:, :, None]
    left = bends.effects - np.einsum("rsj,rsk->rjk", carried, bends.between)
    np.testing.assert_allclose(roots @ roots.transpose(0, 2, 1), left, atol=1e-9 * abs(left).max())


def test_points_of_any_kind_stand_beside_each_other():
    """Shares at and between their ends, and means and shapes of any size."""
    target = target_of(stratified(), MAIN[:2])
    points = points_of(target, np.random.default_rng(4), (0.0, 0.0), rows=12)
    logs = points.logs.copy()
    logs[::4, 0], logs[1::4, 1], logs[2::4, -1] = 600.0, -600.0, 500.0
    several = {"share": np.tile([0.0, 0.3, 1.0], 4), "inflation": np.repeat([0.0, 0.4], 6)}
    points = replace(points, logs=logs, **several)
    points.log_nu[::5], points.log_nu[1::5] = -300.0, 60.0
    _, *cells = target._cells(points)
    found, bends = target._log_likelihood(points), target.bends(points)
    for row, share in enumerate(points.share):
        own = slice(row, row + 1)
        one = mixing_with(points.share[own], points.inflation[own])
        by_cell = one.log_pmf(target._counts, *(each[own] for each in cells))
        np.testing.assert_allclose(found[row], by_cell.sum(), rtol=1e-12, err_msg=f"{share}")
        alone = target.bends(points.at(own))
        for of_all, of_one in zip(vars(bends).values(), vars(alone).values(), strict=True):
            np.testing.assert_array_equal(of_all[row], of_one[0])


def test_information_that_is_none_is_made_the_least():
    """In its own directions, and for no other point."""
    plain, indefinite = [[3.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]
    beyond = [[1e18, 0.0], [0.0, -1e18]]
    effects = np.array([plain, indefinite, np.eye(2) * np.nan, beyond])
    bends = Bends(np.zeros((4, 3)), effects, np.zeros((4, 1, 2)), np.ones((4, 1)), np.ones((4, 1)))
    fine, mended, unknown, far = roots_of(bends)
    np.testing.assert_allclose(fine, np.linalg.cholesky(effects[0]))
    np.testing.assert_allclose(np.linalg.eigvalsh(mended @ mended.T), [LEAST, 3.0])
    assert np.isnan(unknown).all()
    np.testing.assert_allclose(far @ far.T, np.diag([1e18, LEAST]))


@each
def test_slopes_of_counts_are_those_of_their_probabilities(kind):
    rng, mixing = np.random.default_rng(2), mixing_with(*(np.full(6, part) for part in kind))
    means, shapes = rng.normal(0, 2, (2, 6, len(COUNTS)))
    power, step = rng.random(6), 1e-3

    def at(mean, share):
        return mixing.log_pmf(COUNTS, means + mean + share, shapes + power[:, None] * share)

    found = mixing.slopes(COUNTS, means, shapes, power)
    middle = at(0, 0)
    both = at(step, step) - at(step, -step) - at(-step, step) + at(-step, -step)
    by_hand = [
        (at(step, 0) - at(-step, 0)) / (2 * step),
        (at(0, step) - at(0, -step)) / (2 * step),
        (2 * middle - at(step, 0) - at(-step, 0)) / step**2,
        -both / (4 * step**2),
        (2 * middle - at(0, step) - at(0, -step)) / step**2,
    ]
    for own, other in zip(found, by_hand, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-4)


def exact(name, count, log_mean, log_shape):
    """f! p(f) to as many digits as the context has."""
    m, r = Decimal(log_mean).exp(), Decimal(log_shape).exp()
    total = Decimal(0)
    if name == "gamma":
        for k in range(count):
            total += ((r + k) * m / (r + m)).ln()
        return total - r * (1 + m / r).ln()
    s = (1 + 2 * m / r).sqrt()
    ratio = Decimal(1)
    for n in range(1, count):  # from order to order of the Bessel function
        ratio = 1 / ratio + (2 * n - 1) / (r * s)
        total += ratio.ln()
    return total + count * (m / s).ln() + r * (1 - s)


@pytest.mark.parametrize("name", MIXING)
@pytest.mark.parametrize("count", [0, 1, 2, 5, 40, 41, 300, 5_000])
@pytest.mark.parametrize(
    ("log_mean", "log_shape"),
    [
        (-3.0, -20.0),
        (1.5, -3.0),
        (0.3, 0.0),
        (2.0, 8.0),
        (1.0, 30.0),
        (3.7, 2.0),
        (8.5, 2.0),
        (8.5, 12.0),
    ],
)
def test_slopes_hold_for_shapes_of_any_size(name, count, log_mean, log_shape):
    """Against differences of seventy digits, with steps too small for sixteen."""
    step, power = Decimal("1e-12"), Decimal("0.4")

    def at(mean, share):
        x = Decimal(log_mean) + (mean + share) * step
        return exact(name, count, x, Decimal(log_shape) + power * share * step)

    with localcontext(prec=70):
        both = at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)
        by_hand = [
            (at(1, 0) - at(-1, 0)) / (2 * step),
            (at(0, 1) - at(0, -1)) / (2 * step),
            (2 * at(0, 0) - at(1, 0) - at(-1, 0)) / step**2,
            -both / (4 * step**2),
            (2 * at(0, 0) - at(0, 1) - at(0, -1)) / step**2,
        ]
    own = [np.array([[value]]) for value in (log_mean, log_shape)]
    found = MIXING[name].slopes(np.array([float(count)]), *own, np.array([0.4]))
    np.testing.assert_allclose(found[:, 0, 0], np.array(by_hand, float), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", MIXING)
def test_probabilities_hold_to_many_digits_for_shapes_of_any_size(name):
    with localcontext(prec=50):
        for log_shape in (-20.0, -3.0, 0.0, 3.0, 8.0, 15.0, 25.0, 34.0):
            for count in (0, 1, 5, 40, 41, 300):
                for log_mean in (-3.0, float(np.log(count + 1))):
                    cell = np.array([[log_mean]]), np.array([[log_shape]])
                    found = MIXING[name].log_pmf(np.array([float(count)]), *cell)
                    by_hand = float(exact(name, count, log_mean, log_shape))
                    np.testing.assert_allclose(found, by_hand, rtol=1e-7, atol=1e-9)


def test_equations_are_solved_from_cholesky_factors() -> None:
    rng = np.random.default_rng(1)
    matrices = rng.normal(size=(5, 7, 7))
    matrices = matrices @ matrices.transpose(0, 2, 1) + np.eye(7)
    right = rng.normal(size=(5, 7))
    found = np.empty_like(right)
    solve_factored(np.linalg.cholesky(matrices), right, found)
    expected = np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
