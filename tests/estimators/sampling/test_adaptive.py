"""Importance sampling that learns: distributions in closed form, from first proposals
that miss most of them."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import gamma

from taciturn.estimators.sampling.adaptive import adapted


def first_proposals(middle, size, rng, number=4_000):
    """Normal ones around a place, with variance 1, and logarithms of their density."""
    points = middle + rng.standard_normal((number, size))
    return points, -0.5 * ((points - middle) ** 2).sum(axis=1)


@pytest.mark.parametrize("off", [0.0, 4.0, 12.0])
def test_a_normal_distribution_far_from_the_first_proposals(off):
    """Means and covariances, to four standard errors of at least 1,000 draws."""
    rng = np.random.default_rng(1)
    root = np.array([[3.0, 0.0, 0.0], [-2.0, 0.5, 0.0], [0.1, 0.2, 0.05]])
    inverse = np.linalg.inv(root @ root.T)

    def log_density(points):
        away = points - off
        return -0.5 * np.einsum("ij,jk,ik->i", away, inverse, away)

    points, log_first = first_proposals(0.0, 3, rng)
    log_weights = log_density(points) - log_first
    found, diagnostics = adapted(log_density, points, log_weights, 4_000, rng)
    assert diagnostics.converged
    assert diagnostics.ess > 1_000
    away = (found - off) @ np.linalg.inv(root).T  # independent, with variance 1
    assert abs(away.mean(axis=0)).max() < 0.13
    np.testing.assert_allclose(np.cov(away.T), np.eye(3), atol=0.25)


def test_two_separate_parts():
    """Shares of two normal distributions, one of which the first proposals hardly
    reach."""
    rng = np.random.default_rng(2)

    def log_density(points):
        far = -0.5 * ((points - 5) ** 2).sum(axis=1) + np.log(0.3)
        return logsumexp([far, -0.5 * (points**2).sum(axis=1) + np.log(0.7)], axis=0)

    points, log_first = first_proposals(0.0, 2, rng)
    found, diagnostics = adapted(log_density, points, log_density(points) - log_first, 8_000, rng)
    assert diagnostics.converged
    assert (found.mean(axis=1) > 2.5).mean() == pytest.approx(0.3, abs=0.06)


def test_where_the_density_ends():
    """No number outside: exponential and gamma coordinates."""
    rng = np.random.default_rng(3)

    def log_density(points):
        return np.where(points[:, 0] > 0, -points[:, 0], np.nan) + gamma(3).logpdf(points[:, 1])

    points, log_first = first_proposals(1.0, 2, rng)
    with np.errstate(invalid="ignore"):
        log_weights = np.nan_to_num(log_density(points) - log_first, nan=-np.inf)
    found, diagnostics = adapted(log_density, points, log_weights, 8_000, rng)
    assert diagnostics.converged
    np.testing.assert_allclose(found.mean(axis=0), [1, 3], rtol=0.1)
    assert found.min() >= 0


def test_a_part_of_space_that_only_one_proposal_reaches():
    rng = np.random.default_rng(4)

    def log_density(points):
        return np.where((abs(points) < 1e-3).all(axis=1), 0.0, -np.inf)

    points, log_first = first_proposals(0.0, 3, rng)
    points[0] = 0.0
    found, diagnostics = adapted(log_density, points, log_density(points) - log_first, 8_000, rng)
    assert diagnostics.converged
    np.testing.assert_allclose(found.std(axis=0), 1e-3 / 3**0.5, rtol=0.1)


@pytest.mark.parametrize("reached", [0, 1])
def test_what_no_proposal_reaches_is_not_learned(reached):
    rng = np.random.default_rng(5)
    points, log_first = first_proposals(0.0, 3, rng)
    log_weights = np.where(np.arange(len(points)) < reached, -log_first, -np.inf)
    assert adapted(lambda x: np.full(len(x), np.nan), points, log_weights, 100, rng) is None
