"""Weights: the corners of the triangle, moved weights, a fine grid as a slow twin, and
what must hold whatever the tables are."""

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st

import taciturn as tc
from strategies import probability_weights, tables
from taciturn.errors import ParameterError, TableError

mpl.use("agg")
from matplotlib import pyplot as plt

TERMS = ("zero_term", "entropy_term", "size_term")


@st.composite
def cases(draw):
    """Draws of a population, and three releases of a table over its cells."""
    shape = st.just(draw(st.sampled_from([(2, 2), (3, 2)])))
    population = draw(tables(shape=shape, draw_dims=("chain", "draw")))
    released = {name: draw(tables(shape=shape, draw_dims=("replicate",))) for name in "abc"}
    return {
        "table": population[0, 0].drop_vars(["chain", "draw"]),
        "population": population,
    }, released


def triangle(steps):
    """Centres of equal small triangles that fill the triangle of weights."""
    found = []
    for i in range(steps):
        for j in range(steps - i):
            found.append((i + 1 / 3, j + 1 / 3))
            if i + j < steps - 1:
                found.append((i + 2 / 3, j + 2 / 3))
    first, second = np.array(found).T / steps
    return np.array([first, second, 1 - first - second])


@pytest.fixture(scope="module")
def rounded(religion):
    given = {"replicates": 30, "random_seed": 1}
    return {
        "base 3": tc.random_round(religion, rounding_base=3, **given),
        "suppressed": tc.perturbation.suppress_small_cells(religion, minimum=3),
        "noise": tc.add_noise(religion, epsilon=1, **given),
        "same noise": tc.add_noise(religion, epsilon=1, **given),
    }


@given(case=cases(), weights=probability_weights())
def test_corners_and_moved_weights(case, weights) -> None:
    """Against the risk itself, computed with other weights."""
    given, released = case
    found = tc.weight_sensitivity(released, weights=weights, **given)
    population = given["population"]
    for name, release in released.items():
        own = found.sel(protection=name, statistic="mean")

        def means(changed, release=release):
            risk = tc.disclosure_risk(population, release, weights=changed)
            return np.array([float(risk.R1.mean()), float(risk.R2.mean())])

        at = means(weights)
        np.testing.assert_allclose([own["R1"], own["R2"]], at, atol=1e-12)
        for j, term in enumerate(TERMS):
            corner = means(np.eye(3)[j])
            np.testing.assert_allclose(
                [own[f"{R}_term"].sel(term=term) for R in ("R1", "R2")], corner, atol=1e-12
            )
            slopes = np.array([own[f"{R}_slope"].sel(term=term) for R in ("R1", "R2")])
            if weights[j] == 1:
                assert np.isnan(slopes).all()
                continue
            assert (np.abs(slopes) <= 1 + 1e-12).all()
            # Half of the others' weight goes to this one; no limit is needed.
            moved = 0.5 * np.array(weights) + 0.5 * np.eye(3)[j]
            change = means(moved) - at
            np.testing.assert_allclose(slopes * (moved[j] - weights[j]), change, atol=1e-9)


def test_intervals_are_over_draws_and_replicates(religion, rounded) -> None:
    risk = tc.disclosure_risk(religion, rounded["noise"])
    slope = (risk["zero_term"] - risk["R2"]) / 0.9
    found = tc.weight_sensitivity(rounded, table=religion, probability=0.8).sel(protection="noise")
    expected = [float(slope.mean()), *np.quantile(slope, [0.1, 0.9])]
    np.testing.assert_allclose(found["R2_slope"].sel(term="zero_term"), expected)
    assert np.ptp(found["R1_slope"].sel(term="zero_term").values) == 0


def expected_risks(given, released, grid):
    """Means over replicates of R2, (protections, draws, weights)."""
    risks = []
    for release in released.values():
        risk = tc.disclosure_risk(given["population"], release)
        terms = [risk[name].broadcast_like(risk.R2) for name in TERMS]
        means = [term.mean("replicate").stack(all=("chain", "draw")).values for term in terms]
        risks.append(np.stack(means, axis=-1) @ grid)
    return np.array(risks)


@settings(max_examples=40)
@given(case=cases())
def test_areas_by_a_fine_grid(case) -> None:
    given, released = case
    steps = 60
    grid = triangle(steps)
    assert grid.shape[1] == steps**2
    found = tc.compare_over_weights(released, **given)
    risks = expected_risks(given, released, grid)
    for a, ours in zip("abc", risks, strict=True):
        for b, theirs in zip("abc", risks, strict=True):
            pair = found.sel(protection=a, reference=b)
            less = (ours - theirs).mean(axis=0) < -1e-12
            # A line through the corner cuts at most 2 small triangles of each row.
            assert abs(float(pair["area"]) - less.mean()) <= 2 / steps
            areas = (ours - theirs < -1e-12).mean(axis=1)
            assert abs(float(pair["less_mean_area"]) - areas.mean()) <= 2 / steps
            if not np.isnan(pair["weight_ratio"]):
                difference = (ours - theirs).mean(axis=0)
                same = (grid[0] > float(pair["weight_ratio"]) * grid[1]) == (
                    float(pair["difference"].sel(term="zero_term", statistic="mean")) < 0
                )
                assert ((difference < 0) == same)[np.abs(difference) > 1e-9].all()


@given(case=cases())
def test_orders_for_all_weights(case) -> None:
    given, released = case
    found = tc.compare_over_weights(released, **given)
    area = found["area"].values
    turned = area + area.T
    assert (np.isclose(turned, 1) | (turned == 0)).all()
    order = area == 1
    assert not (order & order.T).any()
    for a, b, c in np.ndindex(3, 3, 3):
        assert not (order[a, b] and order[b, c]) or order[a, c]
    risks = expected_risks(given, released, np.eye(3)[:, :2]).round(12)  # corners
    for a in range(3):
        for b in range(3):
            better = (risks[a] <= risks[b]).all(axis=1) & (risks[a] < risks[b]).any(axis=1)
            pair = found.isel(protection=a, reference=b)
            assert float(pair["less_for_all"]) == pytest.approx(better.mean())
            assert float(pair["less_for_all"]) <= float(pair["less_mean_area"]) + 1e-12
            np.testing.assert_allclose(
                pair["less_risk"].values[[-1, 0]], (risks[a] < risks[b]).mean(axis=0)
            )


def test_at_the_weights_of_a_comparison(religion, rounded) -> None:
    """Methods, at one zero share and any weight of the size."""
    found = tc.compare_over_weights(rounded, table=religion)
    for size in (0.0, 0.5):
        weights = ((1 - size) * 0.15, (1 - size) * 0.85, size)
        other = tc.compare_protections(rounded, table=religion, weights=weights)
        np.testing.assert_array_equal(
            found["less_risk"].sel(zero_share=0.15), other["less_risk"].sel(between="methods")
        )
    alike = found.sel(protection="noise", reference="same noise")
    assert [float(alike[name]) for name in ("area", "less_for_all", "less_mean_area")] == [0, 0, 0]
    assert np.isnan(alike["weight_ratio"])


def test_structural_zeros(religion, rounded) -> None:
    where = (religion > 0) | (xr.DataArray(np.arange(9) > 2, dims="religion"))
    released = {"base 3": rounded["base 3"]}
    found = tc.weight_sensitivity(released, table=religion, where=where)
    expected = tc.disclosure_risk(religion, rounded["base 3"], where=where)["zero_term"].mean()
    own = found["R2_term"].sel(protection="base 3", term="zero_term", statistic="mean")
    assert float(own) == pytest.approx(float(expected))
    compared = tc.compare_over_weights(
        {**released, "as it is": religion}, table=religion, where=where
    )
    other = tc.compare_over_weights({**released, "as it is": religion}, table=religion)
    assert not compared["difference"].identical(other["difference"])


@pytest.mark.parametrize("function", [tc.weight_sensitivity, tc.compare_over_weights])
def test_bad_input(function, religion, rounded) -> None:
    with pytest.raises(ParameterError, match="released must be a mapping"):
        function({}, table=religion)
    with pytest.raises(ParameterError, match="probability"):
        function(rounded, table=religion, probability=2)
    with pytest.raises(TableError, match="religion"):
        function({"other": tc.load_dataset("area_by_sex")}, table=religion)
    with pytest.raises(ParameterError, match="sum to 1"):
        tc.weight_sensitivity(rounded, table=religion, weights=(1, 1, 1))


@given(case=cases())
@settings(max_examples=25)
def test_the_plot_has_the_least_risk_everywhere(case) -> None:
    given, released = case
    found = tc.weight_sensitivity(released, **given)
    axes = tc.plot_weights(found)
    corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
    grid = triangle(9)
    risks = expected_risks(given, released, grid).mean(axis=1)
    shares = 0
    for patch in axes.patches:
        name, share = patch.get_label().strip(" %").split(": ")
        shares += float(share)
        inside = patch.get_path().contains_points((grid.T @ corners), radius=-1e-9)
        assert (risks["abc".index(name)][inside] <= risks.min(axis=0)[inside] + 1e-9).all()
    assert abs(shares - 100) <= len(axes.patches)
    plt.close("all")


def test_the_plot_of_names_and_weights(religion, rounded) -> None:
    _, given = plt.subplots()
    found = tc.weight_sensitivity(
        {"_mine $x^{$": rounded["noise"]}, table=religion, weights=(0.2, 0.3, 0.5)
    )
    assert tc.plot_weights(found, ax=given) is given
    given.figure.canvas.draw()
    texts = [text.get_text() for text in given.get_legend().get_texts()]
    assert texts[0].endswith(": 100 %")
    assert texts[1] == " weights 0.2, 0.3, 0.5"
    dot = given.lines[-1].get_xydata()[0]
    np.testing.assert_allclose(dot, [0.3 + 0.5 / 2, 0.5 * np.sqrt(3) / 2])
    for wrong in (None, tc.risk_utility(rounded, table=religion)):
        with pytest.raises(ParameterError, match="result must be what weight_sensitivity returns"):
            tc.plot_weights(wrong)
    plt.close("all")
