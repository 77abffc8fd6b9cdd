"""Stores of studies: what is on disk is whole or refused, one writer at a time, and
nothing but this study's own records is read."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import FileFormatError
from taciturn.store import Store, _line
from toys import Refuses, Scripted

POPULATION = xr.DataArray([5, 3, 1, 1], dims="cell", coords={"cell": list("abcd")})
ESTIMATORS = {"a": Scripted(cells=(0, 1)), "é": Refuses()}
HEADER = {"draws": 3, "name": "ü"}
RECORDS = [{"sample": number, "truth": [number / 3, 1e-300]} for number in range(4)]
LINES = [_line({"format": "taciturn study", **HEADER}), *map(_line, RECORDS)]
WHOLE = b"".join(LINES)


def study(store, population=POPULATION, **changes):
    settings = {"fractions": [0.2], "samples": 6, "draws": 4, "random_seed": 1}
    settings |= {"workers": 1, "progressbar": False, "store": store} | changes
    return tc.study(population, ESTIMATORS, **settings)


@pytest.fixture
def no_fsync(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda number: None)


@pytest.mark.usefixtures("no_fsync")
def test_a_store_cut_at_any_byte_continues_to_the_same_file(tmp_path):
    path = tmp_path / "study.jsonl"
    for cut in range(len(WHOLE) + 1):
        path.write_bytes(WHOLE[:cut])
        with Store(path, HEADER) as store:
            done = max(WHOLE[:cut].count(b"\n") - 1, 0)
            assert store.records == RECORDS[:done]
            for record in RECORDS[done:]:
                store.add(record)
        assert path.read_bytes() == WHOLE


@pytest.mark.usefixtures("no_fsync")
@pytest.mark.parametrize("change", [lambda byte: byte ^ 1, lambda byte: byte ^ 0x80, lambda _: 10])
def test_a_changed_byte_anywhere_is_an_error_or_a_line_to_do_again(change, tmp_path):
    path = tmp_path / "study.jsonl"
    for position in range(len(WHOLE)):
        damaged = bytearray(WHOLE)
        damaged[position] = change(damaged[position])
        if damaged == WHOLE:
            continue
        path.write_bytes(damaged)
        if position == len(WHOLE) - 1:  # the last line has no end
            with Store(path, HEADER) as store:
                assert store.records == RECORDS[:-1]
            continue
        with pytest.raises(FileFormatError, match=r"study\.jsonl.*give another name"):
            Store(path, HEADER)
        assert path.read_bytes() == damaged


@pytest.mark.parametrize("room", [0, 1, 30, len(LINES[1]) - 1, len(LINES[1]) + 5])
def test_a_full_disk_is_an_error_and_the_store_continues(room, tmp_path):
    path = tmp_path / "study.jsonl"
    with Store(path, HEADER) as store:
        store._file = FullDisk(store._file, room)
        with pytest.raises(FileFormatError, match=r"study\.jsonl: cannot be written: .*No space"):
            list(map(store.add, RECORDS))
    assert path.read_bytes() == WHOLE[: len(LINES[0]) + room]
    with Store(path, HEADER) as store:
        for record in RECORDS[len(store.records) :]:
            store.add(record)
    assert path.read_bytes() == WHOLE


class FullDisk:
    """A file on a disk with room for so many bytes; it takes a few at a time."""

    def __init__(self, file, room):
        self._file, self._room = file, room

    def write(self, line):
        if self._room == 0:
            raise OSError(28, "No space left on device")
        written = self._file.write(line[: min(self._room, 7)])
        self._room -= written
        return written

    def fileno(self):
        return self._file.fileno()

    def close(self):
        self._file.close()


def test_every_record_is_on_the_disk_before_the_next(tmp_path, monkeypatch):
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda number: sizes.append(os.fstat(number).st_size))
    with Store(tmp_path / "study.jsonl", HEADER) as store:
        for record in RECORDS:
            store.add(record)
    assert sizes == np.cumsum([len(line) for line in LINES]).tolist()


def test_a_second_writer_is_told_so_at_once(tmp_path):
    """Two processes; the lock ends with the first, however it ends."""
    path = tmp_path / "study.jsonl"
    code = f"""
import sys
from taciturn.store import Store
with Store({str(path)!r}, {HEADER!r}) as store:
    print("open", flush=True)
    sys.stdin.read()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as first:
        assert first.stdout.readline() == b"open\n"
        held = path.read_bytes()
        with pytest.raises(FileFormatError, match=r"study\.jsonl: another study is writing to"):
            Store(path, HEADER)
        assert path.read_bytes() == held
        first.kill()
    with Store(path, HEADER) as store, pytest.raises(FileFormatError, match="is writing to this"):
        Store(path, HEADER)
    assert store.records == []


@pytest.mark.parametrize("content", [b"hello", b"hello\n", b'{"format": "other"}\n', b"[1]\n"])
def test_a_file_that_is_no_store_is_left_alone(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="not the store of a study"):
        study(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_store_that_cannot_be_a_file(tmp_path):
    with pytest.raises(FileFormatError, match="is a folder"):
        study(tmp_path)
    with pytest.raises(FileFormatError, match="nowhere does not exist"):
        study(tmp_path / "nowhere" / "study.jsonl")
    with pytest.raises(FileFormatError, match="cannot be written"):
        Store(tmp_path / "nowhere" / "study.jsonl", HEADER)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_start_leaves_the_store_open_to_others(tmp_path):
    path = tmp_path / "study.jsonl"
    study(path)
    with pytest.raises(FileFormatError, match="its draws is 4, here it is 5"):
        study(path, draws=5)
    study(path)


# ---- what a store holds


def rewrite(path, change):
    """The records with something changed by somebody who can compute checksums."""
    header, *records = [json.loads(line) for line in path.read_text().splitlines()]
    for value in (header, *records):
        del value["crc32"]
    change(records)
    path.write_bytes(b"".join(map(_line, [header, *records])))


def failed(records):
    return next(record for record in records if "failure" in record)


def put(field, value):
    return lambda records: records[0].update({field: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda records: records[0].pop("truth"), "line 2 has no 'truth'"),
        (lambda records: records[0].pop("sample"), "line 2 has no 'sample'"),
        (lambda records: records[0].pop("interval"), "line 2 has no 'interval'"),
        (lambda records: failed(records).pop("failure"), "has no 'converged'"),
        (put("hash", 1), "line 2 has 'hash', which no record has"),
        (put("truth", [0.1, float("nan"), 1.0]), "3 finite numbers of at least 0 as 'truth'"),
        (put("truth", [0.1, float("inf"), 1.0]), "finite numbers"),
        (put("mean", [0.1, -0.2, 1.0]), "of at least 0 as 'mean'"),
        (put("mean", [0.1, "0.2", 1.0]), "as 'mean'"),
        (put("mean", [0.1, 0.2]), "must have 3 finite numbers"),
        (put("mean", 0.1), "must have 3 finite numbers"),
        (put("interval", [[0, 1], [0, 1], [0]]), "3 pairs of numbers as 'interval'"),
        (put("interval", [[0, 1], [0, 1], [2, 1]]), "an interval that ends before it begins"),
        (put("interval", [[0, 1], [0, None], [0, 1]]), "as 'interval, upper end'"),
        (put("converged", 1), "true or false as 'converged'"),
        (lambda records: failed(records).update(failure=7), "text as 'failure'"),
        (put("estimator", "b"), "line 2 is of an estimator that is not in the study"),
        (put("estimator", ["a"]), "line 2 is of an estimator that is not in the study"),
        (put("size", 3), "of a sample size that is not in the study"),
        (put("size", True), "of a sample size that is not in the study"),
        (put("sample", -1), "a whole number of at least 0 as 'sample'"),
        (put("sample", 0.5), "a whole number of at least 0 as 'sample'"),
        (
            lambda records: records.append(records[0] | {"converged": False}),
            "line 14 has other numbers than an earlier line of the same sample and estimator",
        ),
        (put("sample", 9), "sample 9 of 2 has another risk"),
        (put("truth", [0.1, 0.2, 1.0]), "sample 0 of 2 has another risk"),
    ],
)
def test_records_that_this_study_has_not_written(change, message, tmp_path):
    path = tmp_path / "study.jsonl"
    study(path)
    rewrite(path, change)
    before = path.read_bytes()
    with pytest.raises(FileFormatError, match=message) as refused:
        study(path)
    assert "give another name" in str(refused.value)
    assert path.read_bytes() == before


def test_a_record_that_stands_twice_is_harmless(tmp_path):
    path = tmp_path / "study.jsonl"
    result = study(path)
    rewrite(path, lambda records: records.append(records[0]))
    assert study(path).identical(result)


@pytest.mark.parametrize(
    "population",
    [
        POPULATION.copy(data=[3, 5, 1, 1]),
        POPULATION.copy(data=[5, 3, 2, 0]),
        POPULATION.copy(data=[4, 4, 1, 1]),
    ],
)
def test_another_population_is_recognised(population, tmp_path):
    study(tmp_path / "study.jsonl")
    with pytest.raises(FileFormatError, match="holds another study, its counts differ from"):
        study(tmp_path / "study.jsonl", population)


def test_a_population_of_the_same_risks_is_another(tmp_path):
    cells = {"dims": ["a", "b"], "coords": {"a": [0, 1], "b": [0, 1]}, "name": "count"}
    path, settings = tmp_path / "study.jsonl", {"random_seed": 11, "weights": (1.0, 0.0, 0.0)}
    first, second = (xr.DataArray(x, **cells) for x in ([[9, 9], [2, 2]], [[9, 2], [2, 9]]))
    study(path, first, **settings)
    with pytest.raises(FileFormatError, match="holds another study, its counts differ from"):
        study(path, second, **settings)


def test_structural_zeros_belong_to_a_study(tmp_path):
    population = POPULATION.copy(data=[5, 4, 1, 0])
    path = tmp_path / "study.jsonl"
    study(path, population, structural_zeros=population == 0)
    with pytest.raises(FileFormatError, match=r"its structural zeros is \[3\], here it is null"):
        study(path, population)
