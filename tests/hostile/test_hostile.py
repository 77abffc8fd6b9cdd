"""Hostile files are read as they are or refused with an error of this package, and no
result holds what another file holds.

The ordinary tests take a share of each kind, in this process; the slow one runs the
command, which has processes of its own and so sees crashes and hangs, too.
"""

import os
import warnings
from io import BytesIO

import h5py
import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from hostile import fits, run
from taciturn.errors import FileFormatError, ParameterError
from taciturn.fits.declared import _texts, check_declared
from taciturn.fits.parts import fit_parts
from taciturn.fits.stored import check_stored

KINDS = run.kinds()
SHARE = {
    "counts, CSV": 60,
    "counts, Parquet": 25,
    "people, CSV": 40,
    "people, CSV with semicolons in Latin-1": 40,
    "magnitudes, CSV": 8,
    "hierarchies, .hrc": 40,
    "instructions, .hst": 60,
    "cells, CSV": 60,
    "cells of τ-ARGUS, .tab": 40,
    "metadata of τ-ARGUS, .rda": 40,
    "releases, CSV": 20,
    "releases with intervals, CSV": 20,
    "releases, JSON-stat": 20,
    "fits, structure": 17,
    "fits, attributes": 3,
    "fits, bytes": 8,
    "cards, texts": 40,
    "certificates": 40,
    "stores": 15,
    "mechanisms in logs": 40,
}
"""Cases of the kinds that have many or are long; all of the others."""


@pytest.mark.parametrize("name", [name for name in KINDS if name != "fits, contradictions"])
def test_a_file_is_read_as_it_is_or_refused(name, tmp_path):
    last = SHARE.get(name, KINDS[name].cases)
    step = KINDS[name].cases // last if KINDS[name].cases else 1
    taken = set()
    for number in range(0, last * step, step):
        folder = tmp_path / str(number)
        folder.mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries, about what is refused next
            outcome, said = run.try_case(name, number, 1, folder)
        assert outcome in ("read", "refused"), (number, outcome, said)
        taken.add(outcome)
    assert "refused" in taken


@pytest.fixture(scope="module")
def assessed(tmp_path_factory) -> xr.DataTree:
    path = tmp_path_factory.mktemp("fits") / "fit.nc"
    path.write_bytes(fits.plug_in())
    return tc.read_fit(path)


@pytest.mark.parametrize("change", fits.CONTENTS)
def test_numbers_that_contradict_each_other_are_refused(change, assessed):
    check_stored(assessed, fit_parts(assessed))
    changed = assessed.copy(deep=True)
    change(changed)
    with pytest.raises(tc.TaciturnError):
        check_stored(changed, fit_parts(changed))


@pytest.mark.parametrize("place", ["long name", "folder", "pipe", "nothing"])
@pytest.mark.parametrize(
    ("ending", "read"),
    [
        (".csv", tc.read_table),
        (".parquet", tc.read_table),
        (".csv", lambda path: tc.tabulate(path, "area")),
        (".csv", lambda path: tc.tabulate_magnitude(path, "area", "sales")),
        (".nc", tc.read_fit),
        (".toml", tc.cards.load_card),
        (".hrc", lambda path: tc.tables.read_hrc(path, "area")),
        (".hst", lambda path: tc.suppression.read_apriori(path, ["area"])),
    ],
    ids=["table", "Parquet", "people", "magnitudes", "fit", "card", "hierarchy", "instructions"],
)
def test_what_is_no_file_is_not_read(place, ending, read, tmp_path):
    path = tmp_path / (f"{5000 * 'x'}{ending}" if place == "long name" else f"file{ending}")
    if place == "folder":
        path.mkdir()
    elif place == "pipe":
        os.mkfifo(path)
    with pytest.raises(FileFormatError, match=r"no such file|cannot be read"):
        read(path)


def test_the_limit_is_the_callers(tmp_path):
    path = tmp_path / "fit.nc"
    path.write_bytes(fits.plug_in())
    with h5py.File(path, "r+") as file:
        file.create_dataset("constant_data/more", (10**6,), "f8", fillvalue=1.0)
        file["constant_data/more"].make_scale("more")
    needed = r"/constant_data/more declares 8,000,000 bytes, of [\d,]+ that are left of most_bytes"
    with pytest.raises(FileFormatError, match=needed):
        tc.read_fit(path, most_bytes=2_000_000)
    with pytest.raises(FileFormatError, match=r"bytes, more than most_bytes = 1,000"):
        tc.read_fit(path, most_bytes=1_000)
    with pytest.raises(ParameterError, match="most_bytes must be a whole number from 1"):
        tc.read_fit(path, most_bytes=0)
    read = tc.read_fit(path, most_bytes=10_000_000)
    np.testing.assert_array_equal(read["constant_data"]["more"], np.ones(10**6))


@pytest.mark.parametrize("shape", [(6, 4), (40, 3, 50), (6000, 4), (1, 1), (0, 3), (24,)])
def test_every_text_of_an_array_is_counted(shape):
    """However few are read at once: by rows, by parts of a row or several rows."""
    content = BytesIO()
    texts = np.arange(np.prod(shape)).astype(str).astype(object).reshape(shape)
    with h5py.File(content, "w") as file:
        file.create_dataset("a", data=texts, dtype=h5py.string_dtype())
    with h5py.File(content) as file:
        for most in (1, 3, 7, 1000, 10**6):
            parts = list(_texts(file["a"], most))
            assert all(len(part) <= most for part in parts)
            found = np.concatenate([np.empty(0, dtype=object), *parts]).tolist()
            assert found == [text.encode() for text in texts.ravel()]
    declared = texts.size * 8 + sum(map(len, texts.ravel()))
    check_declared(content, most_bytes=declared + 1)
    if declared:
        with pytest.raises(FileFormatError, match="declares"):
            check_declared(content, most_bytes=declared - 1)


def test_a_fit_that_says_that_its_tables_are_drawn_again_holds_none(assessed, tmp_path):
    fit = assessed.copy()
    fit.attrs["streamed"] = 1
    fit.to_netcdf(tmp_path / "fit.nc", engine="h5netcdf")
    with pytest.raises(FileFormatError, match="it holds tables, and says that they are to be"):
        tc.read_fit(tmp_path / "fit.nc")


@pytest.mark.slow
def test_the_command_finds_nothing(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["run.py", "--cases", "60", "--seed", "2"])
    status = run.main()
    assert status == 0, capsys.readouterr().out
