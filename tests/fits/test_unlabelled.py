"""Ends of intervals of counts, against their definition in fractions."""

from fractions import Fraction

import numpy as np
import pytest

from taciturn.fits.unlabelled import attained_quantiles, interval


@pytest.mark.parametrize("share", ["0.5", "0.8", "0.9", "0.95", "0.98", "0.99"])
def test_ends_are_the_smallest_counts_that_enough_draws_are_at_most(share):
    tails = [(1 - float(share)) / 2, (1 + float(share)) / 2]
    exact = [(1 - Fraction(share)) / 2, (1 + Fraction(share)) / 2]
    generator = np.random.default_rng(1)
    for number in [*range(1, 120), 200, 1000, 2000, 4000]:
        draws = generator.poisson(30, number).astype(float)
        for found, tail in zip(attained_quantiles(draws, tails, axis=0), exact, strict=True):
            enough = [x for x in np.unique(draws) if int((draws <= x).sum()) >= tail * number]
            assert found == enough[0]


def test_a_count_that_just_enough_draws_have_is_inside():
    assert interval(np.r_[np.zeros(25), np.full(975, 5.0)], "tau1") == (0.0, 5.0)
    assert interval(np.r_[np.zeros(24), np.full(976, 5.0)], "tau1") == (5.0, 5.0)
