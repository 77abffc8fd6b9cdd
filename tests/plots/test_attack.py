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


def bounds_of(table, hidden, *, decimals=0, **arguments):
    release = tc.Suppression(table, hidden, decimals=decimals)
    return tc.attacker_bounds(release, progressbar=False, **arguments)


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
    assert axes.get_legend().get_title().get_text() == ""
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
        ("total", {}, "one variable or more, got the total of all"),
        ("many", {}, r"take 36 maps, .* at most 30 can be read: select, as by bounds.sel.*'d': 0"),
        ("three", {"ax": True}, "ax is for a single map"),
        ("two", {"show": "value"}, "show must be 'risk' or 'width', got 'value'"),
        ("two", {"pattern": HIDDEN}, "pattern must be what suppress returns, .*, got DataArray"),
    ],
)
def test_plot_attack_refuses(bounds, options, message):
    if isinstance(bounds, str):
        found = bounds_of(TABLE, HIDDEN)
        bounds = {
            "total": found.isel(area=0, size=0),
            "two": found,
            "three": found.expand_dims("c"),
            "many": found.expand_dims(c=6, d=range(6)).transpose("area", "size", "c", "d"),
        }[bounds]
    with pytest.raises(tc.TaciturnError, match=message):
        tc.plot_attack(bounds, **options)


def test_four_variables_are_a_grid_with_titles():
    table = xr.DataArray(
        np.arange(2 * 3 * 2 * 2).reshape(2, 3, 2, 2),
        dims=("a", "b", "c", "d"),
        coords={"c": ["x", "y"], "d": ["$u$", "v"]},
    )
    bounds = bounds_of(table, table % 5 < 3)
    axes = tc.plot_attack(bounds, show="risk")
    assert [ax.get_title() for ax in axes] == [
        r"c = x, d = \$u\$",
        "c = x, d = v",
        r"c = y, d = \$u\$",
        "c = y, d = v",
    ]
    for number, ax in enumerate(axes):
        open_ = bounds.isel(c=number // 2, d=number % 2)
        np.testing.assert_array_equal(drawn(ax)[0], open_["risk"].where(~open_["disclosed"]))
    assert [ax.get_ylabel() for ax in axes] == ["a", "", "a", ""]
    assert [ax.get_xlabel() for ax in axes] == ["", "", "b", "b"]
    axes[0].figure.canvas.draw()


@pytest.mark.parametrize(("unit", "decimals"), [(1000, 0), (0.1, 1)])
def test_magnitudes_show_the_width_of_the_intervals(unit, decimals):
    table = TABLE * unit
    bounds = bounds_of(table, HIDDEN, decimals=decimals)
    axes = tc.plot_attack(bounds)
    half = (bounds["upper"] - bounds["lower"]) / 2
    middle = (bounds["upper"] + bounds["lower"]) / 2
    expected = (half / middle).where(HIDDEN & ~bounds["disclosed"]).values
    np.testing.assert_allclose(drawn(axes)[0], expected)
    assert np.nanmax(expected) == 1
    bar = axes.figure.axes[1]
    assert "known to within" in bar.get_ylabel()
    bar.figure.canvas.draw()
    assert [label.get_text() for label in bar.get_yticklabels()] == [
        "1 %",
        "3 %",
        "10 %",
        "30 %",
        "100 %",
    ]
    risk = tc.plot_attack(bounds, show="risk")
    np.testing.assert_allclose(drawn(risk)[0], bounds["risk"])
    assert risk.collections[0].get_clim() == (0, 1)


def test_a_cell_that_nothing_limits_is_known_to_within_everything():
    bounds = bounds_of(TABLE, HIDDEN)
    bounds["upper"][0, 0] = np.inf
    bounds["lower"][0, 0] = 2
    assert drawn(tc.plot_attack(bounds, show="width"))[0][0, 0] == 1


OUTLINED = ("primary", "secondary")


def outlined(axes, status):
    """Rows and columns of the cells that are outlined as such."""
    found = [layer for layer in axes.collections if layer.get_label() == status]
    paths = [path.vertices[:-1].mean(axis=0) for layer in found for path in layer.get_paths()]
    return sorted((int(y), int(x)) for x, y in paths)


def test_primary_and_secondary_cells_are_told_apart():
    table = TABLE * 7
    pattern = tc.suppress(table, table < 8, random_seed=1, progressbar=False)
    bounds = tc.attacker_bounds(pattern.release, progressbar=False)
    axes = tc.plot_attack(bounds, pattern=pattern)
    status = pattern.status["area", "size"]
    for which in OUTLINED:
        places = [tuple(place) for place in np.argwhere((status == which).values).tolist()]
        assert outlined(axes, which) == places != []
    legend = axes.get_legend()
    assert legend.get_title().get_text() == "not for release"
    assert [text.get_text() for text in legend.get_texts()][-2:] == ["primary", "secondary"]
    lines = [layer.get_linestyle() for layer in axes.collections if layer.get_label() in OUTLINED]
    assert len(lines) == 2
    assert lines[0] != lines[1]  # without colours, too
    turned = tc.plot_attack(bounds.transpose(), pattern=pattern)
    assert outlined(turned, "primary") == sorted((y, x) for x, y in outlined(axes, "primary"))
    row = tc.plot_attack(bounds.sel(area=["South"]), pattern=pattern)
    of_row = status.sel(area="South").values
    assert outlined(row, "secondary") == [(0, x) for x in np.flatnonzero(of_row == "secondary")]
    one = tc.plot_attack(bounds.sel(area="South"), pattern=pattern)
    assert outlined(one, "secondary") == outlined(row, "secondary")
    assert outlined(tc.plot_attack(bounds), "primary") == []


def test_a_pattern_of_another_table_is_refused():
    table = TABLE * 7
    pattern = tc.suppress(table, table < 8, random_seed=1, progressbar=False)
    other = bounds_of(TABLE.rename(area="region"), HIDDEN.rename(area="region"))
    with pytest.raises(tc.TaciturnError, match=r"must have the margin of the bounds, \['region'"):
        tc.plot_attack(other, pattern=pattern)
    other = bounds_of(TABLE, HIDDEN).assign_coords(area=["North", "South", "West"])
    with pytest.raises(tc.TaciturnError, match="must have the cells of the bounds"):
        tc.plot_attack(other, pattern=pattern)


def test_a_plot_of_bounds_shows_no_true_value():
    """Releases that an attacker cannot tell apart have the same plot."""
    swapped = TABLE.copy(data=[[4, 2, 9], [3, 3, 9], [1, 8, 8]])
    plots = [tc.plot_attack(bounds_of(table * 1000, HIDDEN)) for table in (TABLE, swapped)]
    for first, second in zip(*map(drawn, plots), strict=True):
        np.testing.assert_array_equal(first, second)
