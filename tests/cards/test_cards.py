"""Model cards: written, read back to the last argument, refused when anything is odd,
and held against new fits."""

import contextlib
import copy
import json
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings, strategies as st

import taciturn as tc
from specifications import SPECIFICATIONS
from taciturn import cli
from taciturn.cards import table_hash
from taciturn.cards.check import _large_errors, check_numbers, compare_numbers, fit_in_numbers
from taciturn.cards.reading import card_content
from taciturn.cards.toml import toml_text
from taciturn.errors import EstimationError, FileFormatError, ParameterError
from taciturn.estimators import ESTIMATORS, estimator_from_spec
from toys import Scripted

ROOT = Path(__file__).parents[2]
MODELS = sorted((ROOT / "models").glob("*.toml"))
DRAWN = {"table": "area_by_religion", "fraction": 0.1, "random_seed": 1}
TEXTS = {
    "citation": "Census of 2001",
    "calibration": "A plug-in estimator has no prior.",
    "command": "by hand",
}


@pytest.fixture(scope="module")
def fits(religion_sample) -> dict[str, xr.DataTree]:
    """A fit of a cheap estimator and a longer one."""
    return {
        "fit": tc.LogLinear().fit(religion_sample, population_size=2449, draws=200, random_seed=1),
        "reference": (
            tc.LogLinear().fit(religion_sample, population_size=2449, draws=1000, random_seed=2)
        ),
    }


@pytest.fixture(scope="module")
def card(fits, tmp_path_factory) -> tc.cards.Card:
    path = tmp_path_factory.mktemp("cards") / "card.toml"
    return tc.cards.write_card(path, fits["fit"], reference=fits["reference"], **DRAWN, **TEXTS)


def rewritten(card: tc.cards.Card, path: Path, **changes: Any) -> Path:
    """The file of a card with some attributes replaced."""
    path.write_text(toml_text(card_content(replace(card, **changes))), encoding="utf-8")
    return path


# ---- what a card says


def test_a_card_is_read_back_whole(card):
    again = tc.cards.load_card(card.path)
    assert again == card
    assert again.estimator == tc.LogLinear()
    assert again.spec == {"estimator": "LogLinear", "formula": None}
    assert again.fit.settings == {
        "draws": 200,
        "tune": 1000,
        "chains": 4,
        "random_seed": 1,
        "method": "fast",
    }
    assert again.table.population_size == 2449
    assert again.table.sample_size == 245
    assert list(again.reference.summary) == ["R1", "R2", "tau1", "tau2"]
    assert [p.name for p in card.path.parent.iterdir()] == ["card.toml"]


def test_its_numbers_are_those_of_the_summary(card, fits):
    for run, fit in ((card.fit, fits["fit"]), (card.reference, fits["reference"])):
        expected = tc.summary(fit).table.loc[["R1", "R2", "tau1", "tau2"]]
        np.testing.assert_allclose(run.table.values, expected.values, rtol=1e-5)
    assert card.fit.checks == {}


def test_monte_carlo_errors_of_few_draws_are_those_of_the_summary(religion_sample):
    """The effective number of many proposals is more than the draws that are kept."""
    fit = tc.DirichletLogLinear().fit(
        religion_sample, population_size=2449, draws=25, random_seed=1
    )
    row = fit_in_numbers(tc.assess(fit))[0]["R2"]
    assert row["mcse"] == pytest.approx(row["sd"] / 10, rel=1e-4)
    assert row["mcse"] == pytest.approx(tc.summary(fit).table.loc["R2", "mcse"], rel=1e-4)


def test_its_text_says_what_it_holds(card):
    text = str(card)
    for part in (
        "LogLinear()",
        "area_by_religion",
        "n = 245 of N = 2449, fraction 0.1, seed 1",
        "Census of 2001",
        "R2",
    ):
        assert part in text
    assert f"{card.reference.summary['R2']['mean']:.4f}" in text


def test_its_estimator_fits_another_table(card):
    sample = xr.DataArray([[3, 0], [2, 4]], dims=("a", "b"))
    fit = card.estimator.fit(sample, population_size=50, draws=10, random_seed=1)
    expected = tc.LogLinear().fit(sample, population_size=50, draws=10, random_seed=1)
    assert (
        fit["posterior_predictive"]
        .to_dataset()
        .identical(expected["posterior_predictive"].to_dataset())
    )


def test_parameters_and_diagnostics_of_a_pool_have_the_names_of_its_members(
    religion_sample, tmp_path
):
    common = {"population_size": 2449, "progressbar": False}
    fit = tc.LinearPool().fit(religion_sample, draws=250, random_seed=1, **common)
    reference = tc.LinearPool().fit(religion_sample, draws=500, random_seed=2, **common)
    card = tc.cards.write_card(tmp_path / "pool.toml", fit, reference=reference, **DRAWN, **TEXTS)
    assert list(card.fit.summary)[4:] == [
        "dirichlet_kappa",
        "restaurant_theta",
        "restaurant_discount",
    ]
    assert set(card.fit.checks) == {
        f"{m}_{c}" for m in ("dirichlet", "restaurant") for c in ("k_hat", "ess")
    }
    theta = fit["posterior"]["restaurant_theta"].values
    row = card.fit.summary["restaurant_theta"]
    assert row["mean"] == pytest.approx(theta.mean(), rel=1e-5)
    assert row["97.5%"] == pytest.approx(np.quantile(theta, 0.975), rel=1e-5)
    assert row["mcse"] == pytest.approx(
        theta.std(ddof=1) / tc.summary(fit).diagnostics.ess ** 0.5, rel=1e-4
    )
    assert tc.cards.validate_card(tmp_path / "pool.toml").passed


def test_diagnostics_of_nuts(fit_as_chain):
    checks = check_numbers(tc.summary(fit_as_chain).diagnostics)
    assert set(checks) == {"r_hat", "ess_bulk", "ess_tail", "divergences"}


def test_a_calibration_is_kept(fits, religion, religion_sample, tmp_path):
    model = tc.ChineseRestaurant()
    common = {"population_size": 2449, "progressbar": False}
    fit, reference = (
        model.fit(religion_sample, draws=d, random_seed=d, **common) for d in (250, 500)
    )
    result = tc.calibrate(
        model,
        religion,
        sample_size=245,
        population_size=2449,
        simulations=5,
        draws=20,
        random_seed=1,
        workers=1,
        progressbar=False,
    )
    settings = json.loads(result.attrs["settings"])
    smaller = result.assign_attrs(settings=json.dumps({**settings, "population_size": 500}))
    texts = TEXTS | {"calibration": smaller}
    with pytest.raises(ParameterError, match="is with population_size=500, the fit is with 2449"):
        tc.cards.write_card(tmp_path / "card.toml", fit, reference=reference, **DRAWN, **texts)
    closed = result.assign_attrs(settings=json.dumps({**settings, "structural_zeros": [3]}))
    texts = TEXTS | {"calibration": closed}
    with pytest.raises(ParameterError, match="with 1 structural zeros, the fit of one of"):
        tc.cards.write_card(tmp_path / "card.toml", fit, reference=reference, **DRAWN, **texts)
    texts = TEXTS | {"calibration": result}
    card = tc.cards.write_card(tmp_path / "card.toml", fit, reference=reference, **DRAWN, **texts)
    kept = tc.cards.load_card(card.path).calibration
    assert list(kept.p_values) == result["quantity"].values.tolist()
    assert kept.p_values["R2"]["kolmogorov_smirnov"] == pytest.approx(
        float(result["p_value_ks"].sel(quantity="R2")), rel=1e-5
    )
    assert kept.settings["simulations"] == 5
    assert "5 simulations with n = 245, N = 2449" in str(card)
    with pytest.raises(ParameterError, match="calibration is of another estimator"):
        tc.cards.write_card(
            tmp_path / "x.toml", fits["fit"], reference=fits["reference"], **DRAWN, **texts
        )


# ---- every argument survives


@pytest.mark.parametrize("model", SPECIFICATIONS, ids=str)
def test_every_constructor_argument_survives_a_card_and_a_saved_fit(model, card, fits, tmp_path):
    path = rewritten(card, tmp_path / "card.toml", estimator=model)
    assert tc.cards.load_card(path).estimator == model
    assert tc.cards.load_card(path).spec == json.loads(json.dumps(model.spec()))
    fit = fits["fit"].isel(draw=slice(0, 2)).drop_nodes("cell_log_likelihood")
    fit.attrs = fit.attrs | {"estimator": json.dumps(model.spec())}
    if isinstance(model, tc.LinearPool):  # whose fits say which member made each draw
        shape = [fit["posterior_predictive"].sizes[dim] for dim in ("chain", "draw")]
        turns = xr.Dataset(coords={"member": (("chain", "draw"), np.zeros(shape, dtype=int))})
        fit["posterior"] = xr.DataTree(turns)
        fit.attrs["shares"] = json.dumps(dict.fromkeys(model.members, 1 / len(model.members)))
    tc.save_fit(fit, tmp_path / "fit.nc")
    assert estimator_from_spec(tc.read_fit(tmp_path / "fit.nc").attrs["estimator"]) == model


def test_every_estimator_is_among_them_and_none_has_an_argument_named_as_the_list_of_what_is_none():
    assert {type(model) for model in SPECIFICATIONS} == set(ESTIMATORS.values())
    assert not any("not_given" in model.spec() for model in SPECIFICATIONS)


@dataclass(frozen=True)
class Holds(Scripted):
    """Has an argument that may not be plain data."""

    thing: Any = None


@pytest.mark.parametrize(
    "thing",
    [{1, 2}, (1, 2), {1: "a"}, float("nan"), np.int64(3), object()],
    ids=["set", "tuple", "key that is no text", "NaN", "NumPy number", "object"],
)
def test_an_argument_that_would_not_survive_saving_is_refused_before_any_work(
    thing, religion_sample
):
    with pytest.raises(ParameterError, match=r"Holds: the argument .* would not survive saving"):
        Holds(cells=[0], thing=thing).fit(religion_sample, population_size=2449)


def test_an_estimator_from_elsewhere_has_no_card(fits, religion_sample, tmp_path):
    fit = Holds(cells=[0]).fit(religion_sample, population_size=2449, draws=10, random_seed=1)
    with pytest.raises(FileFormatError, match="no estimator 'Holds'"):
        tc.cards.write_card(tmp_path / "x.toml", fit, reference=fit, **DRAWN, **TEXTS)
    bare = fits["fit"].copy()
    bare.attrs = {}
    with pytest.raises(ParameterError, match="the reference does not record its estimator"):
        tc.cards.write_card(tmp_path / "x.toml", fits["fit"], reference=bare, **DRAWN, **TEXTS)
    assert list(tmp_path.iterdir()) == []


# ---- tables and samples


def test_a_hash_depends_on_labels_their_types_their_order_and_counts_and_on_nothing_else(religion):
    small = xr.DataArray([[1, 2], [3, 4]], dims=("a", "b"), coords={"a": ["x", "y"], "b": [1, 2]})
    others = [
        small + 1,
        small.assign_coords(b=["1", "2"]),
        small.rename(a="c"),
        small[::-1],
        small.T,
        small.assign_coords(a=["xy", ""]),
    ]
    hashes = [table_hash(table) for table in (small, *others)]
    assert len(set(hashes)) == len(hashes)
    assert table_hash(small.astype(np.int32).rename("other")) == table_hash(
        small.copy(data=np.asfortranarray(small))
    )
    assert (
        table_hash(religion)
        == "sha256:2648245535a1f48721b5648f12ce993ed79e3cec1f29ec02c8a8dc48d986a910"
    )


def test_another_table_or_sample_than_the_one_fitted_is_refused(card, tmp_path):
    zero = "sha256:" + "0" * 64
    path = rewritten(card, tmp_path / "a.toml", table=replace(card.table, hash=zero))
    with pytest.raises(
        FileFormatError,
        match=r"a\.toml: table\.hash is sha256:000.*, but area_by_religion gives another",
    ):
        tc.cards.validate_card(path)
    path = rewritten(card, tmp_path / "b.toml", table=replace(card.table, sample_hash=zero))
    with pytest.raises(
        FileFormatError, match=r"b\.toml: sample\.hash is sha256:000.* not what was fitted"
    ):
        tc.cards.validate_card(path)
    path = rewritten(card, tmp_path / "c.toml", table=replace(card.table, random_seed=2))
    with pytest.raises(FileFormatError, match=r"sample\.hash"):
        tc.cards.validate_card(path)


def test_a_file_of_ones_own_with_structural_zeros_as_the_sample_itself(tmp_path):
    (tmp_path / "tables").mkdir()
    file = tmp_path / "tables" / "own.csv"
    file.write_text("area,sex,count\nA,f,3\nA,m,0\nB,f,2\nB,m,4\n", encoding="utf-8")
    sample = tc.read_table(file)
    zeros = sample.copy(data=[[False, True], [False, False]])
    fit, reference = (
        tc.PolyaUrn(theta=2.0).fit(
            sample, population_size=40, structural_zeros=zeros, draws=d, random_seed=d
        )
        for d in (500, 2000)
    )
    card = tc.cards.write_card(tmp_path / "own.toml", fit, reference=reference, table=file, **TEXTS)
    assert card.table.file == "tables/own.csv"
    assert card.table.structural_zeros == (("A", "m"),)
    check = tc.cards.validate_card(tmp_path / "own.toml")
    assert check.passed, check
    xr.testing.assert_equal(card.fit_arguments()["structural_zeros"], zeros)
    assert "1 structural zeros" in str(card)
    (tmp_path / "above.csv").write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(ParameterError, match=r"above\.csv: must lie in the folder of the card"):
        tc.cards.write_card(
            tmp_path / "tables" / "x.toml",
            fit,
            reference=reference,
            table=tmp_path / "above.csv",
            **TEXTS,
        )
    odd = rewritten(
        card, tmp_path / "odd.toml", table=replace(card.table, structural_zeros=(("A", "x"),))
    )
    with pytest.raises(FileFormatError, match=r"odd\.toml: table: no cell \['A', 'x'\]"):
        tc.cards.validate_card(odd)
    file.write_text(file.read_text(encoding="utf-8").replace("A,f,3", "A,f,4"), encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"sample\.size is 9, tables/own\.csv gives another"):
        tc.cards.validate_card(tmp_path / "own.toml")
    file.unlink()
    assert tc.cards.load_card(tmp_path / "own.toml").estimator == tc.PolyaUrn(theta=2.0)
    with pytest.raises(FileFormatError, match="no such file"):
        tc.cards.validate_card(tmp_path / "own.toml")


@pytest.mark.parametrize("public", [False, True])
def test_only_the_card_of_a_public_table_has_hashes(public, tmp_path):
    """Who has the hash of a small table has the table."""
    file = tmp_path / "own.csv"
    file.write_text("area,sex,count\nA,f,3\nA,m,0\nB,f,2\nB,m,4\n", encoding="utf-8")
    sample = tc.read_table(file)
    fit, reference = (
        tc.PolyaUrn(theta=2.0).fit(sample, population_size=40, draws=d, random_seed=d)
        for d in (500, 2000)
    )
    card = tc.cards.write_card(
        tmp_path / "own.toml", fit, reference=reference, table=file, public=public, **TEXTS
    )
    assert ("sha256" in card.path.read_text(encoding="utf-8")) == public
    assert tc.cards.load_card(card.path) == card
    assert tc.cards.validate_card(card.path).passed
    file.write_text("area,sex,count\nA,f,2\nA,m,1\nB,f,2\nB,m,4\n", encoding="utf-8")
    if public:
        with pytest.raises(FileFormatError, match=r"table\.hash is .*, but own\.csv gives another"):
            tc.cards.validate_card(card.path)
        half = rewritten(card, tmp_path / "a.toml", table=replace(card.table, sample_hash=None))
        with pytest.raises(FileFormatError, match=r"the field sample\.hash is missing"):
            tc.cards.load_card(half)


def test_the_card_of_a_packaged_table_must_have_its_hash(card, tmp_path):
    bare = rewritten(card, tmp_path / "a.toml", table=replace(card.table, hash=None))
    with pytest.raises(FileFormatError, match=r"the field table\.hash is missing"):
        tc.cards.load_card(bare)


def test_known_margins_are_kept(religion, religion_sample, tmp_path):
    margins = tc.margin(religion, "area")
    fit, reference = (
        tc.LogLinear().fit(
            religion_sample, population_size=2449, known_margins=margins, draws=d, random_seed=d
        )
        for d in (250, 500)
    )
    card = tc.cards.write_card(tmp_path / "card.toml", fit, reference=reference, **DRAWN, **TEXTS)
    assert card.table.known_margins == ("area",)
    assert tc.cards.validate_card(card.path).passed
    odd = rewritten(card, tmp_path / "odd.toml", table=replace(card.table, known_margins=("sex",)))
    with pytest.raises(FileFormatError, match=r"odd\.toml: table: no variable \['sex'\]"):
        tc.cards.validate_card(odd)
    whole = {"table": "area_by_religion", "fraction": None, "random_seed": None}
    with pytest.raises(
        ParameterError, match="the sample of the fit is not that of area_by_religion"
    ):
        tc.cards.write_card(tmp_path / "x.toml", fit, reference=reference, **whole, **TEXTS)
    other = margins + xr.DataArray([1, -1] + [0] * 8, dims="area")
    fits = [
        tc.LogLinear().fit(
            religion_sample, population_size=2449, known_margins=other, draws=d, random_seed=d
        )
        for d in (250, 500)
    ]
    with pytest.raises(
        ParameterError, match="the known margins of the fit are not those of area_by_religion"
    ):
        tc.cards.write_card(tmp_path / "x.toml", fits[0], reference=fits[1], **DRAWN, **TEXTS)


@pytest.mark.parametrize("dims", ["sex", ["sex", "area"]], ids=str)
def test_known_margins_of_a_sample_that_is_a_file(dims, tmp_path):
    file = tmp_path / "own.csv"
    file.write_text("area,sex,count\nA,f,3\nA,m,0\nB,f,2\nB,m,4\nC,f,1\nC,m,0\n", encoding="utf-8")
    sample = tc.read_table(file)
    margins = tc.margin(sample, dims) * 3 + 1
    size = int(margins.sum())
    fit, reference = (
        tc.LogLinear().fit(
            sample, population_size=size, known_margins=margins, draws=d, random_seed=d
        )
        for d in (500, 2000)
    )
    card = tc.cards.write_card(tmp_path / "own.toml", fit, reference=reference, table=file, **TEXTS)
    assert tc.cards.load_card(card.path) == card
    xr.testing.assert_equal(card.fit_arguments()["known_margins"], margins)
    assert tc.cards.validate_card(card.path).passed
    counts = (
        *card.table.known_counts[1:-1],
        0,
        0,
        sum(card.table.known_counts[:1] + card.table.known_counts[-1:]),
    )
    odd = rewritten(card, tmp_path / "odd.toml", table=replace(card.table, known_counts=counts))
    with pytest.raises(
        FileFormatError, match=rf"odd\.toml: table: known_counts must be {margins.size} counts, got"
    ):
        tc.cards.validate_card(odd)


def test_the_known_margins_of_a_calibration_are_those_of_the_fit(
    religion, religion_sample, tmp_path
):
    model = tc.DirichletLogLinear()
    common = {
        "population_size": 2449,
        "known_margins": tc.margin(religion, "area"),
        "progressbar": False,
    }
    fit, reference = (
        model.fit(religion_sample, draws=d, random_seed=d, **common) for d in (250, 500)
    )
    told, untold = (
        tc.calibrate(
            model,
            religion,
            sample_size=245,
            population_size=2449,
            known_margins=dims,
            simulations=3,
            draws=10,
            random_seed=1,
            workers=1,
            progressbar=False,
        )
        for dims in ("area", ())
    )
    path = tmp_path / "card.toml"
    card = tc.cards.write_card(
        path, fit, reference=reference, **DRAWN, **TEXTS | {"calibration": told}
    )
    assert tc.cards.load_card(path).calibration == card.calibration
    assert card.calibration.settings["known_margins"] == ["area"]
    assert "3 simulations with n = 245, N = 2449 and known margins of area, 0 refused" in str(card)
    with pytest.raises(
        ParameterError, match=r"with known margins of \[\], the fit with those of \['area'\]"
    ):
        tc.cards.write_card(
            tmp_path / "x.toml",
            fit,
            reference=reference,
            **DRAWN,
            **TEXTS | {"calibration": untold},
        )
    bad = rewritten(
        card,
        tmp_path / "bad.toml",
        calibration=replace(
            card.calibration, settings={**card.calibration.settings, "known_margins": "area"}
        ),
    )
    with pytest.raises(
        FileFormatError, match=r"bad\.toml: calibration\.known_margins must be a list"
    ):
        tc.cards.load_card(bad)


# ---- what cannot be written


def test_fits_that_do_not_belong_together(fits, religion_sample, tmp_path):
    def refused(message: str, error: type[Exception] = ParameterError, **changes: Any) -> None:
        arguments = {**fits, **DRAWN, **TEXTS, **changes}
        with pytest.raises(error, match=message):
            tc.cards.write_card(tmp_path / "x.toml", arguments.pop("fit"), **arguments)
        assert list(tmp_path.iterdir()) == []

    common = {"draws": 200, "random_seed": 2}
    alike = "must be of the same estimator, sample"
    refused(
        alike, reference=tc.LogLinear("~ area").fit(religion_sample, population_size=2449, **common)
    )
    refused(alike, reference=tc.LogLinear().fit(religion_sample, population_size=2450, **common))
    refused(
        alike, reference=tc.LogLinear().fit(religion_sample + 1, population_size=2449, **common)
    )
    refused("the reference must have another seed than the fit", reference=fits["fit"])
    larger = [
        tc.LogLinear().fit(religion_sample, population_size=9999, draws=200, random_seed=seed)
        for seed in (1, 2)
    ]
    refused(
        r"is drawn from area_by_religion of 2,449 people, and the fit is with population_size=9999",
        fit=larger[0],
        reference=larger[1],
    )
    refused("the sample of the fit is not that of area_by_sex", table="area_by_sex")
    refused("the sample of the fit is not that of area_by_religion", random_seed=2)
    refused("give both fraction and random_seed", random_seed=None)
    refused("no such file", FileFormatError, table=tmp_path / "no.csv")
    apart = fits["reference"].copy(deep=True)  # the upper half of its draws, in random order
    draws = apart["posterior_predictive"]["population"]
    upper = np.argsort(tc.assess(apart)["risk"]["R1"].values.ravel())[2000:]
    chosen = np.random.default_rng(1).permutation(np.tile(upper, 2))
    draws[:] = draws.values.reshape(4000, 10, 9)[chosen].reshape(4, 1000, 10, 9)
    refused("does not agree with its reference: R1: the mean is", EstimationError, reference=apart)


def test_a_fit_that_did_not_converge_has_no_card(fit_as_chain, tmp_path):
    stuck = fit_as_chain.copy(deep=True)
    stuck["posterior"]["theta"][0] += 1e6
    settings = json.loads(fit_as_chain.attrs["settings"])
    other = fit_as_chain.copy()
    other.attrs["settings"] = json.dumps({**settings, "random_seed": 99})
    arguments = {"reference": other, **DRAWN, **TEXTS}
    with pytest.raises(EstimationError, match="the fit did not converge: r-hat is"):
        tc.cards.write_card(tmp_path / "x.toml", stuck, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(fits, tmp_path):
    with pytest.raises(FileFormatError, match="does not exist"):
        tc.cards.write_card(
            tmp_path / "no" / "x.toml", fits["fit"], reference=fits["reference"], **DRAWN, **TEXTS
        )


# ---- foreign files


def changed(content: dict[str, Any], *path: str, to: Any) -> dict[str, Any]:
    """A copy with the value at a path replaced, added, or removed where `to` is
    None."""
    content = copy.deepcopy(content)
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    if to is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = to
    return content


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        (["format_version"], 2, "format_version must be a whole number from 1 to 1, got 2"),
        (["format_version"], None, "the field format_version is missing"),
        (["format_version"], "1", "format_version must be"),
        (["surprise"], 1, "no field surprise: the fields here are format_version, command"),
        (
            ["estimator", "estimator"],
            "os.system",
            "estimator cannot be used: no estimator 'os.system'",
        ),
        (["estimator", "estimator"], ["LogLinear"], "estimator cannot be used"),
        (["estimator", "estimator"], None, "estimator cannot be used"),
        (["estimator", "theta"], 1.0, r"LogLinear has no field \['theta'\]"),
        (["estimator", "not_given"], None, "the argument 'formula' of LogLinear is missing"),
        (
            ["estimator", "not_given"],
            ["formula", "theta"],
            "not_given must list arguments of LogLinear",
        ),
        (["estimator", "not_given"], "formula", "not_given must list"),
        (["estimator", "not_given"], [["formula"]], "not_given must list"),
        (
            ["estimator", "formula"],
            "~ area",
            "not_given must list arguments .* that are given nowhere else",
        ),
        (["estimator"], {"estimator": "LogLinear", "formula": 3}, "formula must be text, got 3"),
        (["estimator"], "LogLinear", "estimator must be a table, got 'LogLinear'"),
        (["estimator"], None, "the field estimator is missing"),
        (
            ["table", "dataset"],
            "../etc/passwd",
            "table.dataset must be 'area_by_country_of_birth' or",
        ),
        (["table", "dataset"], None, "the field table.file is missing"),
        (["table", "file"], "a.csv", "no field table.file"),
        (["table", "hash"], "sha256:12", "table.hash must be 'sha256:' and 64"),
        (["table", "hash"], "SHA256:" + "0" * 64, "table.hash must be"),
        (["table", "population_size"], 244, "sample.size is 245, more than the population's 244"),
        (["table", "population_size"], 2449.0, "table.population_size must be a whole number"),
        (["table", "population_size"], True, "table.population_size must be a whole number"),
        (
            ["table", "population_size"],
            2**60,
            "population_size must be a whole number from 1 to 9007199254740992",
        ),
        (["table", "structural_zeros"], [1], "table.structural_zeros must list cells"),
        (["table", "structural_zeros"], [[["a"]]], "table.structural_zeros must list cells"),
        (["table", "known_margins"], [1], "table.known_margins must list names"),
        (["table", "citation"], 1, "table.citation must be text"),
        (["sample", "fraction"], 1.5, "sample.fraction must be a number from 0 to 1, got 1.5"),
        (["sample", "fraction"], None, "the field sample.fraction is missing"),
        (["sample", "random_seed"], -1, "sample.random_seed must be a whole number from 0"),
        (["sample", "size"], 0, "sample.size must be a whole number from 1"),
        (["weights"], [0.5, 0.5, 0.5], "weights cannot be used"),
        (["weights"], ["a"], "weights cannot be used"),
        (["weights"], 1.0, "weights must be a list"),
        (["fit", "draws"], 0, "fit.draws must be a whole number from 1 to 1000000, got 0"),
        (["fit", "draws"], 10**6, "fit.draws times chains must be at most 1000000"),
        (["fit", "draws"], 10**9, "fit.draws must be"),
        (["fit", "chains"], "4", "fit.chains must be"),
        (["fit", "method"], "magic", "fit.method must be 'fast' or 'nuts', got 'magic'"),
        (["fit", "sampler"], None, "the field fit.sampler is missing"),
        (["fit", "summary", "R2"], None, "the field fit.summary.R2 is missing"),
        (["fit", "summary", "R2", "mean"], "0.2", "fit.summary.R2.mean must be a number"),
        (["fit", "summary", "R2", "mean"], True, "fit.summary.R2.mean must be a number"),
        (["fit", "summary", "R2", "mcse"], -1.0, "fit.summary.R2.mcse must be a number from 0"),
        (["fit", "summary", "R2", "sd"], None, "the field fit.summary.R2.sd is missing"),
        (["fit", "summary", "R2", "50%"], 0.9, "fit.summary.R2.50% must lie between"),
        (
            ["fit", "summary", "R2", "q"],
            0.9,
            "no field fit.summary.R2.q: the fields here are mean, sd",
        ),
        (["fit", "summary", "extra"], 1.0, "fit.summary.extra must be a table"),
        (["reference", "summary", "R1"], None, "the field reference.summary.R1 is missing"),
        (["reference", "checks", "speed"], 1.0, "reference.checks.speed is not a diagnostic"),
        (["reference", "checks", "k_hat"], "low", "reference.checks.k_hat must be a number"),
        (["reference", "checks", "divergences"], 0.5, "divergences must be a whole number from 0"),
        (["calibration"], {}, "the field calibration.sample_size is missing"),
        (["calibration", "p_values"], {}, "no field calibration.p_values"),
        (["calibration", "reason"], 1, "calibration.reason must be text"),
        (["versions", "taciturn"], 1, "versions.taciturn must be text"),
        (["command"], None, "the field command is missing"),
    ],
)
def test_a_field_that_is_wrong_is_named_with_what_is_accepted(card, tmp_path, path, to, message):
    bad = tmp_path / "bad.toml"
    bad.write_text(toml_text(changed(card_content(card), *path, to=to)), encoding="utf-8")
    with pytest.raises(FileFormatError, match=rf"bad\.toml: .*{message}"):
        tc.cards.load_card(bad)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("/etc/passwd", "/etc/passwd"),
        ("../a.csv", "a.csv"),
        ("a/../../b.csv", "b.csv"),
        ("C:\\a.csv", "a.csv"),
        ("https://example.org/a.csv", "example"),
    ],
)
def test_a_card_reads_no_file_outside_its_folder(card, tmp_path, file, message):
    bad = rewritten(card, tmp_path / "bad.toml", table=replace(card.table, dataset=None, file=file))
    with pytest.raises(
        FileFormatError, match=f"table.file must lie in the folder of the card .*{message}"
    ):
        tc.cards.load_card(bad)


def test_known_margins_of_a_sample_that_is_not_drawn_need_their_counts(card, tmp_path):
    def refused(message: str, *counts: Any) -> None:
        table = replace(
            card.table,
            fraction=None,
            random_seed=None,
            known_margins=("area",),
            known_counts=counts,
            hash=card.table.sample_hash,
            file="own.csv",
            dataset=None,
        )
        with pytest.raises(FileFormatError, match=rf"bad\.toml: {message}"):
            tc.cards.load_card(rewritten(card, tmp_path / "bad.toml", table=table))

    refused(r"the field table\.known_counts is missing")
    refused(r"table\.known_counts sum to 2450, not to 2449, the population", 2450)
    for wrong in (-1, 2449.0, True, "2449", 2**54):
        refused(r"table\.known_counts must list whole numbers from 0 to \d+, got", wrong)
    drawn = replace(card.table, known_margins=("area",), known_counts=(2449,))
    with pytest.raises(FileFormatError, match=r"no field table\.known_counts"):
        tc.cards.load_card(rewritten(card, tmp_path / "bad.toml", table=drawn))


SPELLINGS: list[tuple[str, Callable[[str], bytes], str]] = [
    ("empty", lambda _: b"", "the field format_version is missing"),
    (
        "nan",
        lambda t: t.replace("fraction = 0.1", "fraction = nan").encode(),
        "sample.fraction must be .* got nan",
    ),
    ("inf", lambda t: t.replace("mean = ", "mean = inf #", 1).encode(), "not a TOML file"),
    (
        "infinite",
        lambda t: t.replace("fraction = 0.1", "fraction = -inf").encode(),
        "sample.fraction must be",
    ),
    (
        "date",
        lambda t: t.replace("fraction = 0.1", "fraction = 1979-05-27").encode(),
        "sample.fraction must be",
    ),
    ("twice", lambda t: (t + "\n[estimator]\n").encode(), "not a TOML file"),
    (
        "Latin-1",
        lambda t: t.replace("Census", "Zensüs").encode("latin-1"),
        "not a text file in UTF-8",
    ),
    ("UTF-16", lambda t: t.encode("utf-16"), "not a text file in UTF-8"),
    ("cut", lambda t: t[: len(t) // 2].encode(), "bad.toml: "),
    ("NUL", lambda t: (t + "\0").encode(), "not a TOML file"),
    (
        "escape",
        lambda t: t.replace("Census", r"\u001b[31mCensus").encode(),
        r"no control characters, got '\\x1b",
    ),
    ("escaped name", lambda t: (t + 'a."\\u009b" = 1').encode(), "no control characters"),
    ("lines", lambda t: t.replace("Census", r"one\ntwo").encode(), "no control characters"),
    ("huge", lambda t: (t + "# " + "\n" * 2**16).encode(), "larger than the 64 KiB"),
    (
        "long line",
        lambda t: (t + "# " + "x" * 9000).encode(),
        "a line has more than 8192 characters",
    ),
    (
        "digits",
        lambda t: t.replace("size = 2449", "size = " + "9" * 5000).encode(),
        "not a TOML file",
    ),
    (
        "more digits",
        lambda t: t.replace("size = 2449", "size = " + "9" * 4000).encode(),
        "population_size must be",
    ),
    (
        "float of digits",
        lambda t: t.replace("fraction = 0.1", "fraction = " + "9" * 4000).encode(),
        "fraction must be",
    ),
    ("deep list", lambda _: b"x = " + b"[" * 3000 + b"]" * 3000, "nested"),
    ("deep tables", lambda _: b"[" + b".".join([b"a"] * 3000) + b"]", "nested more than 16 deep"),
    ("dotted", lambda _: b".".join([b"a"] * 4000) + b" = 1", "nested more than 16 deep"),
]


@pytest.mark.parametrize(
    ("spelling", "message"), [case[1:] for case in SPELLINGS], ids=[case[0] for case in SPELLINGS]
)
def test_a_file_that_is_no_card(card, tmp_path, spelling, message):
    bad = tmp_path / "bad.toml"
    bad.write_bytes(spelling(card.path.read_text(encoding="utf-8")))
    with pytest.raises(FileFormatError, match=message) as found:
        tc.cards.load_card(bad)
    assert "bad.toml" in str(found.value)
    assert len(str(found.value)) < 500


def test_a_mark_of_byte_order_is_no_harm(card, tmp_path):
    path = tmp_path / "card.toml"
    path.write_bytes(b"\xef\xbb\xbf" + card.path.read_bytes())
    assert tc.cards.load_card(path) == card


def test_no_file(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        tc.cards.load_card(tmp_path / "no.toml")
    with pytest.raises(FileFormatError, match="no such file"):
        tc.cards.load_card(tmp_path)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["LogLinear", "LinearPool", "eval", "~ a", [], {}]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(content: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every path to a field."""
    inner = (
        [place for key, value in content.items() for place in places(value, (*path, key))]
        if isinstance(content, dict)
        else []
    )
    return [path, *inner] if path else inner


POOLS = [
    model for model in SPECIFICATIONS if isinstance(model, tc.LinearPool | tc.ChineseRestaurant)
]


@given(model=st.sampled_from(POOLS), data=st.data(), value=VALUES)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_stands_in_a_field_is_read_or_refused_by_name(card, tmp_path, model, data, value):
    """Nothing but FileFormatError leaves the parser, and what is read would be written
    the same."""
    content = card_content(replace(card, estimator=model))
    place = data.draw(st.sampled_from(places(content)))
    path = tmp_path / "odd.toml"
    try:
        path.write_text(toml_text(changed(content, *place, to=value)), encoding="utf-8")
    except FileFormatError:
        return  # None within, NaN, lone surrogates: not for TOML
    read = None
    with contextlib.suppress(FileFormatError):
        read = tc.cards.load_card(path)
    if read is None:
        with pytest.raises(FileFormatError, match=rf"^{path}: "):
            tc.cards.load_card(path)
        return
    path.write_text(toml_text(card_content(read)), encoding="utf-8")
    assert tc.cards.load_card(path) == read


@given(
    st.binary(max_size=200) | st.text(alphabet='[]{}"=.,#\n\\ab1-', max_size=200).map(str.encode)
)
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_bytes_are_never_a_card(tmp_path, content):
    path = tmp_path / "odd.toml"
    path.write_bytes(content)
    with pytest.raises(FileFormatError):
        tc.cards.load_card(path)


PLAIN = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=4),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=4), PLAIN, max_size=4
    )
)
def test_what_is_written_as_toml_is_read_as_the_same(content):
    again = tomllib.loads(toml_text(content))
    assert again == content
    assert repr(again) == repr(content) or sorted(map(repr, again)) == sorted(map(repr, content))


@pytest.mark.parametrize(
    "value", [None, float("nan"), float("inf"), {1: 2}, object(), "\ud800", np.arange(2), b"x"]
)
def test_what_toml_cannot_hold_is_not_written(value):
    with pytest.raises(FileFormatError):
        toml_text({"x": [value]})


# ---- validation


def test_a_mean_that_is_off_fails_by_name(card, tmp_path):
    rows = {name: dict(row) for name, row in card.reference.summary.items()}
    rows["tau2"]["mean"] += 10 * rows["tau2"]["mcse"] + 10 * card.fit.summary["tau2"]["mcse"]
    path = rewritten(card, tmp_path / "off.toml", reference=replace(card.reference, summary=rows))
    check = tc.cards.validate_card(path)
    assert not check.passed
    assert len(check.problems) == 1
    assert "tau2: the mean is" in str(check)
    assert check.table.loc["tau2", "errors"] > 4
    assert (check.table.drop("tau2")["errors"] <= 4).all()


def test_means_are_compared_in_combined_errors():
    row = {"sd": 1.0, "2.5%": 0.0, "50%": 1.0, "97.5%": 2.0}
    reference = {"x": {"mean": 1.0, "mcse": 0.3, **row}, "c": {"mean": 2.0, "mcse": 0.0, **row}}
    refit = {"x": {"mean": 3.0, "mcse": 0.4, **row}, "c": {"mean": 2.0, "mcse": 0.0, **row}}
    table, problems = compare_numbers(reference, refit)
    assert table.loc["x"].tolist() == pytest.approx(
        [1.0, 3.0, 2.0, (0.3**2 + 0.4**2) ** 0.5, 2 / 0.5]
    )
    assert table.loc["c", "errors"] == 0
    assert problems == []
    refit["x"]["mean"], refit["c"]["mean"] = 3.01, 2.001
    assert [problem.split(":")[0] for problem in compare_numbers(reference, refit)[1]] == ["x", "c"]
    del refit["c"]
    assert "the fit has no c" in compare_numbers(reference, refit)[1]


@pytest.mark.parametrize(
    ("run", "changes", "message"),
    [
        ("fit", {"mean": 0.01}, r"\[fit\.summary\] R2: the mean is"),
        ("reference", {"mean": 0.01, "mcse": 1.0}, r"R2: the Monte Carlo error must be at most"),
        ("reference", {"mean": 0.9, "sd": 0.3, "mcse": 0.3}, r"R2: mean is .*; R2: sd is"),
        ("fit", {"sd": 0.5}, r"\[fit\.summary\] R2: sd is .*, the reference 0\.5"),
        ("reference", {"2.5%": 0.01, "50%": 0.011, "97.5%": 0.012}, r"R2: 50% is .*, the refere"),
    ],
)
def test_a_card_that_was_changed_by_hand(card, tmp_path, run, changes, message):
    own = getattr(card, run)
    summary = {**own.summary, "R2": {**own.summary["R2"], **changes}}
    path = rewritten(card, tmp_path / "off.toml", **{run: replace(own, summary=summary)})
    check = tc.cards.validate_card(path)
    assert not check.passed
    assert re.search(message, str(check))


BAYESIAN = ROOT / "models" / "area_by_religion-ChineseRestaurant.toml"
POOL = ROOT / "models" / "area_by_religion-LinearPool.toml"


def test_a_monte_carlo_error_is_that_of_the_effective_draws_of_a_card(tmp_path):
    card = tc.cards.load_card(BAYESIAN)  # 10,689 of them
    own = card.reference.summary["R2"]
    changed = {**own, "mean": own["mean"] + own["sd"], "mcse": own["sd"] / 2}
    summary = {**card.reference.summary, "R2": changed}
    reference = replace(card.reference, summary=summary)
    path = rewritten(card, tmp_path / "off.toml", reference=reference)
    assert "R2: the Monte Carlo error must be at most" in str(tc.cards.validate_card(path))


def test_proposals_are_no_more_effective_draws_than_there_are_draws():
    own = tc.cards.load_card(BAYESIAN).fit
    checks = {"k_hat": 0.1, "ess": 5000.0}
    row = {**own.summary["R2"], "mcse": own.summary["R2"]["sd"] / 20}
    run = replace(own, draws=100, chains=4, checks=checks, summary={"R2": row})
    assert not list(_large_errors(run))
    assert list(_large_errors(replace(run, draws=1000)))


KINDS = "must be r_hat, ess_bulk, ess_tail, divergences or k_hat, ess, got"


@pytest.mark.parametrize(
    ("run", "check", "value", "problem"),
    [
        ("reference", "r_hat", 3.5, "r-hat is 3.500, at most 1.01 is accepted"),
        ("reference", "ess_tail", 399.0, "the effective sample size is 399, at least 400"),
        ("reference", "divergences", 700, "700 transitions diverged, none is accepted"),
        ("fit", "k_hat", 2.5, "k-hat is 2.50, at most 0.7 is accepted"),
        ("fit", "ess", 12.0, "the effective sample size is 12, at least 400 is needed"),
        ("fit", "ess", None, f"{KINDS} k_hat"),
        ("fit", "r_hat", 1.0, f"{KINDS} k_hat, ess, r_hat"),
    ],
)
def test_recorded_checks_of_a_fit_that_did_not_converge(tmp_path, run, check, value, problem):
    of = tc.cards.load_card(BAYESIAN)
    own = getattr(of, run)
    checks = {
        name: kept for name, kept in (own.checks | {check: value}).items() if kept is not None
    }
    path = rewritten(of, tmp_path / "a.toml", **{run: replace(own, checks=checks)})
    (found,) = tc.cards.validate_card(path).problems
    assert found.startswith(f"[{run}.checks] {problem}")


def test_recorded_checks_of_the_members_of_a_pool(tmp_path):
    of = tc.cards.load_card(POOL)
    fit = {**of.fit.checks, "restaurant_k_hat": 0.9, "other_k_hat": 0.1, "other_ess": 1e4}
    reference = {
        name: value
        for name, value in of.reference.checks.items()
        if not name.startswith("dirichlet")
    }
    path = rewritten(
        of,
        tmp_path / "a.toml",
        fit=replace(of.fit, checks=fit),
        reference=replace(of.reference, checks=reference),
    )
    assert tc.cards.validate_card(path).problems == (
        f"[reference.checks] dirichlet: {KINDS} none",
        "[fit.checks] restaurant: k-hat is 0.90, at most 0.7 is accepted",
        "[fit.checks] other: must be none, got k_hat, ess",
    )


def test_a_plug_in_estimator_has_no_checks(card, tmp_path):
    run = replace(card.reference, checks={"k_hat": 0.1, "ess": 4000.0})
    path = rewritten(card, tmp_path / "a.toml", reference=run)
    assert tc.cards.validate_card(path).problems == (
        "[reference.checks] must be none, got k_hat, ess",
    )


def test_another_population_than_the_table_from_which_the_sample_is_drawn(card, tmp_path):
    path = rewritten(card, tmp_path / "a.toml", table=replace(card.table, population_size=2400))
    with pytest.raises(
        FileFormatError, match=r"a\.toml: table\.population_size is 2400, area_by_religion gives"
    ):
        tc.cards.validate_card(path)


def test_a_new_fit_that_does_not_converge_fails(card, monkeypatch):
    from taciturn.diagnostics import Diagnostics

    monkeypatch.setattr(
        "taciturn.cards.check.diagnose", lambda *_: Diagnostics(1.2, 3000.0, 2000.0, 0)
    )
    assert "the new fit did not converge: r-hat is 1.200" in str(tc.cards.validate_card(card.path))


# ---- the command line


@pytest.fixture
def taciturn(capsys, monkeypatch):
    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["taciturn", *map(str, arguments)])
        status = 0
        try:
            cli.main()
        except SystemExit as done:
            status = int(done.code or 0)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return status, out, err

    return run


def test_validate_prints_a_table_and_tells_by_its_exit_status(taciturn, card, tmp_path):
    good = rewritten(card, tmp_path / "a.toml")
    status, out, err = taciturn("validate", good)
    assert (status, err) == (0, f"1/1 {good}\n")
    assert "1 of 1 cards agree" in out
    assert "R2" in out
    rows = {
        name: {**row, "mean": row["mean"] + 1, "97.5%": 1e3}
        for name, row in card.reference.summary.items()
    }
    rewritten(card, tmp_path / "b.toml", reference=replace(card.reference, summary=rows))
    (tmp_path / "c.toml").write_text("x = 1", encoding="utf-8")
    status, out, err = taciturn("validate", tmp_path)
    assert status == 1
    assert "1 of 3 cards agree" in out
    assert "FAILED: R1" in out
    assert "c.toml: the field format_version is missing" in err
    status, out, err = taciturn("validate", tmp_path / "no.toml", good)
    assert (status, "no such file" in err, "1 of 2 cards agree" in out) == (1, True, True)


def test_a_folder_without_cards_is_an_error(taciturn, tmp_path):
    status, out, err = taciturn("validate", tmp_path)
    assert (status, out) == (1, "")
    assert "no model card" in err


def test_assess_takes_the_estimator_of_a_card(taciturn, card, tmp_path):
    path = rewritten(card, tmp_path / "card.toml", estimator=tc.LogLinear("~ area"))
    sample = ROOT / "examples" / "area_by_religion_sample.csv"
    arguments = ["assess", sample, "-N", 2449, "--draws", 50, "--seed", 1, "--model"]
    status, out, _ = taciturn(*arguments, path)
    fit = tc.LogLinear("~ area").fit(
        tc.read_table(sample), population_size=2449, draws=50, random_seed=1
    )
    assert (status, out) == (0, f"{tc.summary(fit)}\n")
    plain = path.rename(tmp_path / "card")
    assert taciturn(*arguments, plain)[:2] == (0, out)
    status, _, err = taciturn(*arguments, tmp_path / "no.toml")
    assert (status, "no such file" in err) == (1, True)
    status, _, err = taciturn(*arguments, plain, "--formula", "~ area")
    assert (status, "does not apply to a model card" in err) == (2, True)
    status, _, err = taciturn(*arguments, tmp_path)
    assert (status, "neither a model card nor one of linear-pool" in err) == (2, True)


# ---- the cards of this repository


def test_there_are_cards():
    assert {tc.cards.load_card(path).spec["estimator"] for path in MODELS} >= {
        "LinearPool",
        "DirichletLogLinear",
    }


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_the_cards_of_the_repository_are_of_their_tables_and_have_a_reference_by_nuts(path):
    card = tc.cards.load_card(path)
    assert int(card.load_sample().sum()) == card.table.sample_size
    assert path.stem == f"{card.table.dataset}-{card.spec['estimator']}"
    assert (card.fit.method, card.reference.method) == ("fast", "nuts")
    assert card.reference.draws * card.reference.chains >= 10_000
    assert any(name.endswith("r_hat") for name in card.reference.checks)
    assert compare_numbers(card.reference.summary, card.fit.summary)[1] == []
    if isinstance(card.estimator, tc.LinearPool):
        assert str(card.calibration).startswith("Not applicable")
    else:
        assert card.calibration.settings["simulations"] >= 100
        assert card.calibration.settings["sample_size"] == card.table.sample_size
        assert card.calibration.settings["population_size"] == card.table.population_size


ALL = [
    pytest.param(p, marks=() if "religion" in p.stem else pytest.mark.statistical, id=p.stem)
    for p in MODELS
]


@pytest.mark.parametrize("path", ALL)
def test_new_fits_agree_with_the_cards(path):
    check = tc.cards.validate_card(path)
    assert check.passed, check
