"""Shares of the triangle of weights, as the legend says them; regions are held by the
tests of `weight_sensitivity`."""

import pytest
import xarray as xr

import taciturn as tc


@pytest.mark.parametrize(
    ("level", "legend"),
    [
        (0.25, ["one: 25 %", "other: 75 %"]),
        (0.003, ["one: 0.3 %", "other: 99.7 %"]),
        (1e-16, ["other: 100 %"]),  # apart by rounding
        (0.0, ["other: 100 %"]),
    ],
)
def test_all_of_the_triangle_only_if_it_is(level, legend) -> None:
    """At a zero share s, and without weight on the size, "one" has R2 = s."""
    terms = [[[1.0], [0.0], [0.3]], [[level], [level], [0.3]]]
    result = xr.Dataset(
        {"R2_term": (("protection", "term", "statistic"), terms)},
        coords={"protection": ["one", "other"], "statistic": ["mean"]},
        attrs={"weights": (0.1, 0.8, 0.1)},
    )
    texts = tc.plot_weights(result).get_legend().get_texts()
    assert [text.get_text() for text in texts] == [f" {text}" for text in legend] + [
        " weights 0.1, 0.8, 0.1"
    ]
