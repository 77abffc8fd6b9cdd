"""Saved fits: files that name others, run in circles or declare too much; numbers that
contradict each other; attributes of any kind; changed bytes.
"""

import json
import zlib
from collections.abc import Callable
from functools import cache
from itertools import product
from math import gcd
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import xarray as xr

import taciturn as tc
from hostile.kinds import SECRET, Kind, mutated

__all__ = ["KINDS"]

POPULATION = "posterior_predictive/population"
SIZE = 2449


@cache
def plug_in() -> bytes:
    """A saved fit without parameters, assessed."""
    return saved(tc.LogLinear())


@cache
def pool() -> bytes:
    """A saved pool, which records more of how it was made."""
    return saved(tc.LinearPool())


def saved(estimator: Any) -> bytes:
    """An assessed fit as a file."""
    sample = tc.draw_sample(tc.load_dataset("area_by_sex"), size=245, random_seed=1)
    fit = estimator.fit(sample, population_size=SIZE, draws=60, chains=2, random_seed=1)
    path = Path(__file__).with_name(f"{estimator!r}.nc")
    try:
        tc.save_fit(tc.assess(fit, by="sex"), path)
        return path.read_bytes()
    finally:
        path.unlink(missing_ok=True)


def read(path: Path) -> xr.DataTree:
    """Read a fit, and all that a summary reads of it."""
    fit = tc.read_fit(path)
    str(tc.summary(fit))
    return fit


def wrong_fit(path: Path, fit: xr.DataTree) -> str | None:
    """What a fit holds that it must not, or that contradicts the rest of it."""
    population = fit["posterior_predictive"]["population"]
    sample = fit["observed_data"]["count"]
    if SECRET[:7] in population.values.tobytes():
        return "the content of another file"
    if (population < sample).any() or (
        population.sum(sample.dims) != fit["constant_data"]["population_size"]
    ).any():
        return "a population that contradicts the sample"
    risk = tc.disclosure_risk(population, sample, weights=fit["risk"].attrs["weights"])
    off = abs(fit["risk"]["R2"].transpose("chain", "draw") - risk["R2"]).max()
    return None if float(off) < 1e-9 else "an R2 that contradicts the population"


# ---- structure


def replace(file: h5py.File, name: str = POPULATION, **options: Any) -> h5py.Dataset:
    """Another array in the place of one, by default with its values."""
    values = file[name][()]
    del file[name]
    options = {"shape": values.shape, "dtype": values.dtype, **options}
    return file.create_dataset(name, **options)


def external(file: h5py.File, folder: Path) -> None:
    (folder / "secret").write_bytes(SECRET * 10)
    replace(file, external=[(str(folder / "secret"), 0, h5py.h5f.UNLIMITED)])


def external_constant(file: h5py.File, folder: Path) -> None:
    (folder / "secret").write_bytes(SECRET)
    file.create_dataset(
        "constant_data/more", (8,), "i8", external=[(str(folder / "secret"), 0, 64)]
    )


def external_link(file: h5py.File, folder: Path) -> None:
    with h5py.File(folder / "other.h5", "w") as other:
        other["x"] = np.frombuffer(SECRET[: len(SECRET) // 8 * 8], "i8")
    file["constant_data/more"] = h5py.ExternalLink(str(folder / "other.h5"), "x")


def external_group(file: h5py.File, folder: Path) -> None:
    with h5py.File(folder / "other.h5", "w") as other:
        other["x"] = np.arange(8)
    file["more"] = h5py.ExternalLink(str(folder / "other.h5"), "/")


def virtual(file: h5py.File, folder: Path) -> None:
    with h5py.File(folder / "other.h5", "w") as other:
        other["x"] = np.frombuffer(SECRET[:320], "i8")
    layout = h5py.VirtualLayout((40,), "i8")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "x", (40,))
    file.create_virtual_dataset("constant_data/more", layout)


def soft_link(file: h5py.File, folder: Path) -> None:
    file["constant_data/more"] = h5py.SoftLink("/observed_data/count")


def soft_circle(file: h5py.File, folder: Path) -> None:
    file["more"] = h5py.SoftLink("/more")


def circle(file: h5py.File, folder: Path) -> None:
    file["loop"] = file["/"]


def far_circle(file: h5py.File, folder: Path) -> None:
    file["constant_data/a/b/loop"] = file["constant_data"]


def two_names(file: h5py.File, folder: Path) -> None:
    file["constant_data/more"] = file[POPULATION]


def deep(file: h5py.File, folder: Path) -> None:
    file.create_group("/".join(["more"] * 5_100))


def many_groups(file: h5py.File, folder: Path) -> None:
    for number in range(5_100):
        file.create_group(f"more/{number}")


def many_attributes(file: h5py.File, folder: Path) -> None:
    for number in range(5_100):
        file["constant_data"].attrs[f"a{number}"] = 1


def huge(file: h5py.File, folder: Path) -> None:
    file.create_dataset("constant_data/more", (600_000_000,), "f8")


def huge_chunked(file: h5py.File, folder: Path) -> None:
    file.create_dataset("constant_data/more", (600_000_000,), "f8", chunks=(1000,))


def huge_population(file: h5py.File, folder: Path) -> None:
    replace(file, shape=(2, 10**9, 10, 2), chunks=(1, 100, 10, 2))


def huge_total(file: h5py.File, folder: Path) -> None:
    for number in range(100):
        file.create_dataset(f"constant_data/more{number}", (20_000_000,), "f8")


def huge_product(file: h5py.File, folder: Path) -> None:
    file.create_dataset("constant_data/more", (2**31, 2**31), "f8", chunks=(10, 10))


def huge_text(file: h5py.File, folder: Path) -> None:
    file.create_dataset("constant_data/more", (3,), "S2000000000")


def bomb(file: h5py.File, folder: Path) -> None:
    """A part that unpacks to a thousand times what it says."""
    array = file.create_dataset(
        "constant_data/more", (1000,), "f8", chunks=(1000,), compression="gzip"
    )
    array.id.write_direct_chunk((0,), zlib.compress(bytes(2**25), 9))


def packed_twice(file: h5py.File, folder: Path) -> None:
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_chunk((100,))
    layout.set_deflate(9)
    layout.set_deflate(9)
    space = h5py.h5s.create_simple((100,))
    h5py.h5d.create(file["constant_data"].id, b"more", h5py.h5t.NATIVE_DOUBLE, space, layout)


def lzf(file: h5py.File, folder: Path) -> None:
    file.create_dataset(
        "constant_data/more", data=np.arange(1000), chunks=(100,), compression="lzf"
    )


def lists(file: h5py.File, folder: Path) -> None:
    file.create_dataset("constant_data/more", (3,), h5py.vlen_dtype(np.int32))


def records(file: h5py.File, folder: Path) -> None:
    file.create_dataset("constant_data/more", (3,), np.dtype([("a", "i4"), ("b", "f8")]))


def references(file: h5py.File, folder: Path) -> None:
    array = file.create_dataset("constant_data/more", (1,), h5py.ref_dtype)
    array[0] = file[POPULATION].ref


def opaque(file: h5py.File, folder: Path) -> None:
    file.create_dataset("constant_data/more", data=np.zeros(3, "V16"))


def named_type(file: h5py.File, folder: Path) -> None:
    file["constant_data/more"] = np.dtype("i8")


def text_population(file: h5py.File, folder: Path) -> None:
    values = file[POPULATION][()].astype(str).astype(object)
    replace(file, dtype=h5py.string_dtype(), data=values)


def complex_population(file: h5py.File, folder: Path) -> None:
    replace(file, dtype="c16")


def no_dimensions(file: h5py.File, folder: Path) -> None:
    replace(file)


def odd_dimensions(file: h5py.File, folder: Path) -> None:
    file[POPULATION].attrs["DIMENSION_LIST"] = np.arange(4)


def group_for_array(file: h5py.File, folder: Path) -> None:
    del file[POPULATION]
    file.create_group(POPULATION)


def array_for_group(file: h5py.File, folder: Path) -> None:
    del file["observed_data"]
    file["observed_data"] = np.arange(3)


def empty_space(file: h5py.File, folder: Path) -> None:
    del file["constant_data/population_size"]
    file["constant_data/population_size"] = h5py.Empty("i8")


STRUCTURES: tuple[Callable[[h5py.File, Path], None], ...] = (
    *(external, external_constant, external_link, external_group, virtual, soft_link, soft_circle),
    *(circle, far_circle, two_names, deep, many_groups, many_attributes, huge, huge_chunked),
    *(huge_population, huge_total, huge_product, huge_text, bomb, packed_twice, lzf),
    *(lists, records, references, opaque, named_type, text_population, complex_population),
    *(no_dimensions, odd_dimensions, group_for_array, array_for_group, empty_space),
)


def write_structure(folder: Path, random: Random, number: int) -> Path:
    path = folder / "fit.nc"
    path.write_bytes(plug_in())
    with h5py.File(path, "r+") as file:
        STRUCTURES[number](file, folder)
    return path


def read_anyway(path: Path, fit: xr.DataTree) -> str:
    """No structure of these is one of a fit."""
    return f"{wrong_fit(path, fit) or 'a file that is not as fits are'}"


# ---- contents


def at(group: str, name: str, change: Callable[[Any], Any]) -> Callable[[xr.DataTree], None]:
    """A change of the first value of a variable."""

    def apply(fit: xr.DataTree) -> None:
        found = fit[group].to_dataset()
        changed = change(found[name].values.flat[0])
        values = found[name].values.astype(np.result_type(found[name], changed))
        values.flat[0] = changed
        fit[group] = xr.DataTree(found.assign({name: (found[name].dims, values)}))

    return apply


def moved(fit: xr.DataTree) -> None:
    """A person of one draw in another cell, which may be legal but has another risk."""
    values = fit["posterior_predictive"]["population"].values
    free = values[0, 0] - fit["observed_data"]["count"].values
    first = np.unravel_index(free.argmax(), free.shape)
    last = np.unravel_index(free.argmin(), free.shape)
    values[0, 0][first] -= 1
    values[0, 0][last] += 1


def attribute(name: str, value: Any, group: str = "/") -> Callable[[xr.DataTree], None]:
    """Another attribute."""

    def apply(fit: xr.DataTree) -> None:
        fit[group].attrs[name] = value

    return apply


CONTENTS: tuple[Callable[[xr.DataTree], None], ...] = (
    moved,
    at("posterior_predictive", "population", lambda x: x + 1),
    at("posterior_predictive", "population", lambda x: -x),
    at("posterior_predictive", "population", lambda x: 2**62),
    at("observed_data", "count", lambda x: x + 10**6),
    at("observed_data", "count", lambda x: -1),
    at("constant_data", "population_size", lambda x: x + 1),
    at("constant_data", "population_size", lambda x: 0),
    *(
        at("risk", name, change)
        for name in ("R1", "R2", "zero_term", "entropy_term", "tau1", "tau2")
        for change in (lambda x: x * 1.01 + 1e-6, lambda x: np.nan, lambda x: -np.inf)
    ),
    at("risk_by_sex", "R2", lambda x: x * 1.01),
    at("risk_by_sex", "size_term", lambda x: 0.5),
    attribute("weights", np.array([0.8, 0.1, 0.1]), "risk"),
    attribute("weights", np.array([0.1, 0.1]), "risk"),
    attribute("weights", "many", "risk"),
    attribute("size_term", 0.9, "risk"),
    attribute("size_term", "large", "risk"),
    attribute("weights", np.array([0.8, 0.1, 0.1]), "risk_by_sex"),
)


def write_content(folder: Path, random: Random, number: int) -> Path:
    path, original = folder / "fit.nc", folder / "original.nc"
    original.write_bytes(plug_in())
    fit = raw(original)
    CONTENTS[number](fit)
    fit.to_netcdf(path, engine="h5netcdf")
    return path


def raw(path: Path) -> xr.DataTree:
    """A file as xarray reads it, all of it in memory."""
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        return tree.load()


def contradiction(path: Path, fit: xr.DataTree) -> str:
    """Each of these contradicts itself."""
    return wrong_fit(path, fit) or "numbers that contradict each other"


# ---- attributes

NAMES = (
    "estimator",
    "settings",
    "sampler",
    "importance",
    "versions",
    "schema_version",
    "streamed",
    "stack",
)
VALUES: tuple[Any, ...] = (
    *("", "{}", "[]", "null", "NaN", "1", '"x"', "{", "\x1b[31m", "<b>", "é" * 70_000),
    "[" * 100_000,
    *(1, -1, 2**62, 1.5, float("nan"), np.arange(3), np.zeros(0), ["a", "b"]),
    b"\xff\xfe",
    json.dumps({"estimator": "LinearPool"}),
    json.dumps({"estimator": ["LinearPool"]}),
    json.dumps({"estimator": "LinearPool", "members": 1}),
    json.dumps({"estimator": "DirichletLogLinear", "priors": {"kappa": {"name": "exec", "mu": 1}}}),
    json.dumps({"estimator": "LogLinear", "formula": "~ __import__('os')"}),
    json.dumps({"estimator": "LogLinear", "formula": "~ " + "(" * 5000}),
    json.dumps({"draws": 10**30, "tune": 1, "chains": 1, "random_seed": 1}),
    json.dumps({"draws": 60, "tune": 1, "chains": -2, "random_seed": 1, "method": "fast"}),
    json.dumps({"draws": 60, "tune": 1, "chains": 2, "random_seed": -1, "method": "quick"}),
    json.dumps({"dirichlet": 1, "restaurant": {"k_hat": "low", "ess": None}}),
    json.dumps({"dirichlet": {"k_hat": 0.1, "ess": 0}, "restaurant": {"k_hat": 0.1, "ess": -5}}),
    json.dumps({"k_hat": float("nan"), "ess": 1e400}),
    json.dumps({"weights": {"a": float("nan")}}),
    json.dumps({"weights": {"dirichlet": 5, "restaurant": -4}}),
)


ATTRIBUTES = tuple(product(NAMES, VALUES))
STRIDE = 37  # a few cases, too, are of many names and values; all of them, of all
assert gcd(STRIDE, len(ATTRIBUTES)) == 1


def write_attribute(folder: Path, random: Random, number: int) -> Path:
    path = folder / "fit.nc"
    path.write_bytes(pool())
    with h5py.File(path, "r+") as file:
        name, value = ATTRIBUTES[number * STRIDE % len(ATTRIBUTES)]
        file.attrs[name] = value
    return path


# ---- bytes


def write_bytes(folder: Path, random: Random, number: int) -> Path:
    path = folder / "fit.nc"
    content = (plug_in, pool)[number % 2]()
    if random.random() < 0.5:
        content = mutated(content, random, (b"\0", b"\xff" * 8, b"TREE", b"OHDR", b"GCOL"))
    else:
        changed = bytearray(content)
        for _ in range(random.choice((1, 2, 4, 8, 64))):
            changed[random.randrange(len(changed))] = random.randrange(256)
        content = bytes(changed)
    path.write_bytes(content)
    return path


KINDS = (
    Kind("fits, structure", write_structure, read, read_anyway, len(STRUCTURES)),
    Kind("fits, contradictions", write_content, read, contradiction, len(CONTENTS)),
    Kind("fits, attributes", write_attribute, read, wrong_fit),
    Kind("fits, bytes", write_bytes, read, wrong_fit),
)
