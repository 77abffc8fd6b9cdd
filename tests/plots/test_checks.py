"""Plots of predictive checks show the replicates, and say what is missed."""

import numpy as np
import pytest

import taciturn as tc

NAMES = ["empty cells", "uniques", "pairs", "entropy (nats)"]


def missed(axes):
    """Rows of a panel beside which it says so, from the top."""
    ticks = len(axes.get_yticks())
    return [
        ticks - 1 - text.get_position()[1] for text in axes.texts if text.get_text() == "MISSED"
    ]


def test_a_panel_for_each_statistic_with_the_sample_and_the_interval(fit_loglinear):
    checks = tc.fits.predictive_checks(fit_loglinear, probability=0.8)
    axes = tc.plot_checks(fit_loglinear, probability=0.8)
    assert [ax.get_title().split(":")[0] for ax in axes] == NAMES
    for ax, statistic in zip(axes, checks["statistic"].values, strict=True):
        one = checks.sel(statistic=statistic)
        interval, middle, sample = ax.lines
        np.testing.assert_allclose(interval.get_xdata(), [one["lower"], one["upper"]])
        np.testing.assert_allclose(middle.get_xdata(), [one["mean"]])
        assert sample.get_xdata()[0] == one["observed"]
    uniques = int(checks["observed"].sel(statistic="uniques"))
    assert axes[1].get_title() == f"uniques: {uniques} in the sample"
    replicated = fit_loglinear["posterior_predictive"]["count"]
    seen = (replicated == 1).sum(("area", "religion")).values.ravel()
    values, numbers = np.unique(seen, return_counts=True)
    bars = {
        round(bar.get_x() + bar.get_width() / 2, 9): bar.get_height() for bar in axes[1].patches
    }
    assert bars == pytest.approx(dict(zip(values, 0.75 * numbers / numbers.max(), strict=True)))
    assert len(axes[3].patches) == 0  # an entropy has a density
    assert len(axes[3].collections) == 1
    assert "80 % interval" in axes[0].figure.legends[0].get_texts()[1].get_text()
    axes[0].figure.canvas.draw()


def test_a_pool_has_a_row_for_each_member(fit_pool):
    axes = tc.plot_checks(fit_pool)
    labels = [label.get_text() for label in axes[0].get_yticklabels()]
    assert labels[::-1] == ["all", "dirichlet", "restaurant"]
    assert [len(ax.lines) for ax in axes] == [7] * 4


def test_what_is_missed_is_said_beside_its_row(fit_pool):
    fit = fit_pool.copy(deep=True)
    own = fit["posterior"]["member"] == 1
    count = fit["posterior_predictive"]["count"]
    fit["posterior_predictive"]["count"] = count.where(~own, other=1)  # no empty cell, all alone
    checks = tc.fits.predictive_checks(fit)
    outside = (checks["observed"] < checks["lower"]) | (checks["observed"] > checks["upper"])
    assert outside.sel(member="restaurant").all()
    for ax, statistic in zip(tc.plot_checks(fit), checks["statistic"].values, strict=True):
        expected = np.flatnonzero(outside.sel(statistic=statistic).values)
        assert sorted(missed(ax)) == expected.tolist()
    assert all(missed(ax) == [] for ax in tc.plot_checks(fit_pool, probability=0.9999))


def test_plot_checks_refuses(fit_loglinear):
    bare = fit_loglinear.copy()
    bare["posterior_predictive"] = bare["posterior_predictive"].to_dataset()[["population"]]
    with pytest.raises(tc.TaciturnError, match="has no 'count' in the group"):
        tc.plot_checks(bare)
    with pytest.raises(tc.TaciturnError, match="probability"):
        tc.plot_checks(fit_loglinear, probability=1)
    with pytest.raises(tc.TaciturnError):
        tc.plot_checks(3)
