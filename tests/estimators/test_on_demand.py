"""Tables that are drawn as they are read: the same numbers however they are read, and
every function takes them."""

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ConvergenceWarning, FileFormatError
from taciturn.estimators import settings
from taciturn.schema import split_draws
from taciturn.tables import on_demand as streaming

QUIET = {"progressbar": False, "random_seed": 2}
SETTINGS = '{"draws": 7, "tune": 1, "chains": 2, "random_seed": 1, "method": "fast"}'
MODELS = {
    "dirichlet": tc.DirichletLogLinear(),
    "restaurant": tc.ChineseRestaurant(),
    "pool": tc.LinearPool(),
    "classes": tc.LatentClass(),
    "log-linear": tc.LogLinear(),
    "urn": tc.PolyaUrn(),
}


SIZES = {"draws": 100, "tune": 100, "chains": 2}


@pytest.fixture(scope="module")
def small_blocks():
    """Everything is streamed, in blocks of 7 draws of a table of 90 cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "STORED_LIMIT", 0)
        patch.setattr("taciturn.fits.stacking.STORED_LIMIT", 0)
        patch.setattr("taciturn.schema._BLOCK", 7 * 90)
        yield


@pytest.fixture(scope="module")
def fits(small_blocks, religion_sample) -> dict[str, xr.DataTree]:
    return {
        name: model.fit(religion_sample, population_size=2449, **SIZES, **QUIET)
        for name, model in MODELS.items()
        if name != "classes"
    }


def in_memory(fit: xr.DataTree) -> xr.DataTree:
    """The same fit with its tables stored."""
    stored = fit.copy()
    stored["posterior_predictive"] = xr.DataTree(fit["posterior_predictive"].to_dataset().compute())
    return stored


def test_the_same_numbers_however_they_are_read(fits, religion_sample) -> None:
    for fit in fits.values():
        for what in ("population", "count"):
            lazy = fit["posterior_predictive"].to_dataset()[what]
            assert not lazy.variable._in_memory
            whole = lazy.values
            assert whole.shape == (2, 100, *religion_sample.shape)
            np.testing.assert_array_equal(
                lazy.isel(chain=1, draw=slice(5, 30)).values, whole[1, 5:30]
            )
            np.testing.assert_array_equal(
                lazy.isel(draw=[9, 3, 99], area=2).values, whole[:, [9, 3, 99], 2]
            )
            np.testing.assert_array_equal(
                lazy[0, -1, ::2, [1, 0]].values, whole[0, -1, ::2][:, [1, 0]]
            )
            np.testing.assert_array_equal(
                lazy.transpose("religion", ...).values, np.moveaxis(whole, 3, 0)
            )
            assert lazy[0:0].values.shape == (0, *whole.shape[1:])
            assert lazy[:, 0:0, 1].values.shape == (2, 0, 9)
            assert len(np.unique(whole.reshape(200, -1), axis=0)) > 190  # no block comes twice


def test_streamed_tables_have_the_distribution_of_stored_ones(
    fits, religion_sample, monkeypatch
) -> None:
    """Means of R2 of independent draws of the same parameters; 5 standard errors."""
    fit = MODELS["log-linear"].fit(
        religion_sample, population_size=2449, draws=100, chains=2, **QUIET
    )
    monkeypatch.setattr(settings, "STORED_LIMIT", 10**9)
    stored = MODELS["log-linear"].fit(
        religion_sample, population_size=2449, draws=100, chains=2, **QUIET
    )
    assert stored["posterior_predictive"].to_dataset()["population"].variable._in_memory
    assert "streamed" not in stored.attrs
    assert fit.attrs["streamed"] == 1
    one, other = (tc.assess(each)["risk"]["R2"] for each in (fit, stored))
    assert abs(float(one.mean() - other.mean())) < 5 * float(other.std()) * (2 / 200) ** 0.5


@pytest.mark.slow
def test_risk_checks_and_sensitivity_are_those_of_stored_draws(fits) -> None:
    for name, fit in fits.items():
        stored = in_memory(fit)
        streamed_risk, risk = (tc.assess(each)["risk"].to_dataset() for each in (fit, stored))
        xr.testing.assert_allclose(streamed_risk, risk, rtol=1e-12)
        assert streamed_risk.attrs == risk.attrs
        xr.testing.assert_allclose(
            tc.fits.predictive_checks(fit), tc.fits.predictive_checks(stored)
        )
        if name in ("dirichlet", "restaurant", "pool"):
            rows = tc.prior_sensitivity(fit)[["prior", "likelihood"]]
            np.testing.assert_allclose(
                rows, tc.prior_sensitivity(stored)[["prior", "likelihood"]], rtol=1e-6
            )
        tc.fits.check_population(
            fit["posterior_predictive"]["population"],
            fit["observed_data"]["count"],
            population_size=2449,
        )
        assert tc.summary(fit).text == tc.summary(stored).text


def test_leave_one_out_terms_are_those_of_all_draws_at_once(
    fits, religion_sample, monkeypatch
) -> None:
    monkeypatch.setattr("taciturn.schema._BLOCK", 2**22)
    for name in ("dirichlet", "restaurant", "pool"):
        again = MODELS[name].fit(religion_sample, population_size=2449, **SIZES, **QUIET)
        xr.testing.assert_allclose(
            again["cell_log_likelihood"].to_dataset(),
            fits[name]["cell_log_likelihood"].to_dataset(),
            rtol=1e-9,
        )


@pytest.mark.parametrize("name", ["pool", pytest.param("urn", marks=pytest.mark.slow)])
def test_saved_without_tables_and_read_with_them(name, fits, tmp_path) -> None:
    fit, path = fits[name], tmp_path / f"{name}.nc"
    assessed = tc.assess(fit)
    tc.save_fit(assessed, path)
    with xr.open_datatree(path, engine="h5netcdf") as raw:
        assert "posterior_predictive" not in raw.children
    read = tc.read_fit(path)
    assert not read["posterior_predictive"].to_dataset()["population"].variable._in_memory
    xr.testing.assert_equal(
        read["posterior_predictive"].to_dataset().compute(),
        fit["posterior_predictive"].to_dataset().compute(),
    )
    assert tc.summary(read).text == tc.summary(assessed).text
    tc.save_fit(read, path, overwrite=True)


@pytest.mark.parametrize(
    "part",
    [
        {"draw": slice(50, None)},
        pytest.param({"chain": [1]}, marks=pytest.mark.slow),
        pytest.param({"draw": slice(0, 60)}, marks=pytest.mark.slow),
    ],
)
def test_some_of_the_draws_are_written_in_full(part, fits, tmp_path) -> None:
    """The seed belongs to all of them: drawn again, these would be others."""
    for name in ("pool", "log-linear"):
        some = fits[name].isel(part)
        tc.save_fit(some, tmp_path / f"{name}.nc")
        read = tc.read_fit(tmp_path / f"{name}.nc")
        assert "streamed" not in read.attrs
        xr.testing.assert_equal(
            read["posterior_predictive"].to_dataset(),
            some["posterior_predictive"].to_dataset().compute(),
        )
        assert "streamed" in some.attrs


def test_a_stack_is_written_in_full(fits, tmp_path) -> None:
    stacked = tc.fits.stack(
        {name: fits[name] for name in ("dirichlet", "restaurant")}, random_seed=1
    )
    tc.save_fit(stacked, tmp_path / "stack.nc")
    xr.testing.assert_equal(
        tc.read_fit(tmp_path / "stack.nc")["posterior_predictive"].to_dataset(),
        stacked["posterior_predictive"].to_dataset().compute(),
    )


def test_an_estimator_of_ones_own_is_written_in_full(fits, tmp_path) -> None:
    fit = fits["dirichlet"].copy()
    fit.attrs["estimator"] = '{"estimator": "Mine"}'
    tc.save_fit(fit, tmp_path / "fit.nc")
    read = tc.read_fit(tmp_path / "fit.nc")
    xr.testing.assert_equal(
        read["posterior_predictive"].to_dataset(),
        fit["posterior_predictive"].to_dataset().compute(),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"estimator": '{"estimator": "Mine"}'},
            "holds no tables, and they cannot be drawn again: no estimator 'Mine'",
        ),
        (
            {"settings": "{}"},
            "holds no tables, and they cannot be drawn again: the fit does not record",
        ),
        ({"settings": SETTINGS}, "and not the 2 x 7 draws to draw them again from"),
    ],
)
def test_a_file_that_was_changed(change, message, fits, tmp_path) -> None:
    path = tmp_path / "fit.nc"
    tc.save_fit(fits["dirichlet"], path)
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        raw = tree.load()
    raw.attrs.update(change)
    raw.to_netcdf(tmp_path / "changed.nc", engine="h5netcdf")
    with pytest.raises(FileFormatError, match=message):
        tc.read_fit(tmp_path / "changed.nc")


def test_latent_classes_are_streamed_too(small_blocks, religion_sample, tmp_path) -> None:
    with pytest.warns(ConvergenceWarning):  # few draws: only how they are stored matters
        fit = MODELS["classes"].fit(
            religion_sample, population_size=2449, draws=30, tune=30, chains=2, **QUIET
        )
    xr.testing.assert_allclose(
        tc.assess(fit)["risk"].to_dataset(), tc.assess(in_memory(fit))["risk"].to_dataset()
    )
    tc.save_fit(fit, tmp_path / "fit.nc")
    read = tc.read_fit(tmp_path / "fit.nc")
    xr.testing.assert_equal(
        read["posterior_predictive"]["population"].compute(),
        fit["posterior_predictive"]["population"].compute(),
    )


def test_known_margins_are_kept(small_blocks, religion_sample, religion, tmp_path) -> None:
    areas = religion.sum("religion")
    fit = tc.DirichletLogLinear().fit(
        religion_sample, population_size=2449, known_margins=areas, draws=50, **QUIET
    )
    assert (fit["posterior_predictive"]["population"].sum("religion") == areas).all()
    tc.save_fit(fit, tmp_path / "fit.nc")
    assert (
        tc.read_fit(tmp_path / "fit.nc")["posterior_predictive"]["population"].sum("religion")
        == areas
    ).all()


def test_stacks_of_streamed_fits(fits) -> None:
    both = {name: fits[name] for name in ("dirichlet", "restaurant")}
    stacked = tc.fits.stack(both, random_seed=1)
    stored = tc.fits.stack({name: in_memory(fit) for name, fit in both.items()}, random_seed=1)
    xr.testing.assert_equal(
        stacked["posterior_predictive"].to_dataset().compute(),
        stored["posterior_predictive"].to_dataset(),
    )
    assert not stacked["posterior_predictive"].to_dataset()["population"].variable._in_memory


def test_blocks_are_all_draws_once() -> None:
    draws = xr.DataArray(np.arange(2 * 5 * 3).reshape(2, 5, 3), dims=("chain", "draw", "a"))
    assert [part.sizes["draw"] for part in split_draws(draws)] == [5]


def test_limits_are_documented_values() -> None:
    assert streaming.STORED_LIMIT == 50_000_000
