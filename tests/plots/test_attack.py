"""Maps of an attack show what the bounds say, and nothing else."""

import numpy as np
import pytest
import xarray as xr
from matplotlib import pyplot as plt

import taciturn as tc

TABLE = xr.DataArray(
    [[5, 1, 9], [2, 4, 9], [1, 8, 8]],
    dims=("area", "size"),
    coords={"area": ["North", "South", "$x$"], "size": ["s", "m", "l"]},
)
HIDDEN = TABLE.isin([5, 1, 2, 4])


def bounds_of(table, hidden, **arguments):
    return tc.attacker_bounds(tc.Suppression(table, hidden), progressbar=False, **arguments)


def drawn(axes):
    """Values of each layer that is drawn, NaN where it has none."""
    return [np.ma.filled(layer.get_array().astype(float), np.nan) for layer in axes.collections]


def test_map_of_an_attack():
    hidden = HIDDEN.copy()
    hidden[2, 1] = True
    asked = TABLE != 2
    bounds = bounds_of(TABLE, hidden, cells=asked)
    axes = tc.plot_attack(bounds)
    risk, published, *others = drawn(axes)
    missing = bounds["risk"].isnull().values
    np.testing.assert_array_equal(risk[~missing], bounds["risk"].values[~missing])
    assert np.isnan(risk[missing]).all()
    assert axes.collections[0].get_clim() == (0, 1)
    assert not np.isnan(risk).all()
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["published", "not asked for"]
    assert len(others) == 1
    assert (published == 1).sum() == int(
        bounds["published"].sum()
    )  # pcolor leaves out what is masked
    assert [label.get_text() for label in axes.get_yticklabels()] == ["North", "South", r"\$x\$"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["s", "m", "l"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("size", "area")
    assert axes.yaxis_inverted()
    assert "1/bits" in axes.figure.axes[1].get_ylabel()
    axes.figure.canvas.draw()


def test_disclosed_cells_are_marked():
    bounds = bounds_of(TABLE, TABLE == 4)
    assert int((bounds["disclosed"] & ~bounds["published"]).sum()) == 1
    axes = tc.plot_attack(bounds)
    assert np.isnan(drawn(axes)[0]).all()
    assert [layer.get_hatch() for layer in axes.collections][1:] == [None, "////"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["published", "disclosed"]


def test_maps_of_one_and_three_variables():
    axes = tc.plot_attack(bounds_of(TABLE, HIDDEN).isel(area=0))
    assert axes.get_xlabel() == "size"
    assert len(axes.get_yticks()) == 0
    cube = xr.concat(
        [TABLE, TABLE + 1, TABLE], dim=xr.Variable("year", [2001, 2002, 2003])
    ).transpose(..., "year")
    bounds = bounds_of(cube, cube < 6)
    several = tc.plot_attack(bounds)
    assert [axes.get_title() for axes in several] == ["year = 2001", "year = 2002", "year = 2003"]
    for number, axes in enumerate(several):
        found = np.ma.filled(axes.collections[0].get_array(), np.nan)
        np.testing.assert_array_equal(found, bounds["risk"].isel(year=number).values)
    several[0].figure.canvas.draw()
    _, given = plt.subplots()
    assert tc.plot_attack(bounds.isel(year=0), ax=given) is given


def test_a_long_axis_has_fewer_labels():
    table = xr.DataArray(np.arange(200).reshape(2, 100), dims=("a", "b"))
    axes = tc.plot_attack(bounds_of(table, table < 0))
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        str(label) for label in range(0, 100, 3)
    ]


@pytest.mark.parametrize(
    ("bounds", "options", "message"),
    [
        (TABLE, {}, "must be what attacker_bounds returns, got DataArray"),
        (TABLE.to_dataset(name="risk"), {}, "must be what attacker_bounds returns, got Dataset"),
        ("total", {}, r"one to three variables, got \[\]"),
        ("four", {}, "one to three variables, got .*; take a part with sel"),
        ("three", {"ax": True}, "ax is for a single map"),
    ],
)
def test_plot_attack_refuses(bounds, options, message):
    if isinstance(bounds, str):
        found = bounds_of(TABLE, HIDDEN)
        bounds = {
            "total": found.isel(area=0, size=0),
            "three": found.expand_dims("c"),
            "four": found.expand_dims(["c", "d"]),
        }[bounds]
    with pytest.raises(tc.TaciturnError, match=message):
        tc.plot_attack(bounds, **options)
