"""A file appears whole or not at all, on a full disk, whichever byte fails, interrupted
or killed; and nobody reads it before."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

import taciturn as tc
from taciturn.cli.files import write_csv
from taciturn.errors import FileFormatError
from taciturn.files import whole_file
from writers import FILES_WRITTEN, WRITERS, save_fit

OLD = b"old\n"


@pytest.fixture
def old(tmp_path) -> Path:
    """A file to be replaced, alone in its folder."""
    path = tmp_path / "old.csv"
    path.write_bytes(OLD)
    return path


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def room_for(most: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes: the system refuses the
    next."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        # A report is made anew for every byte.
        pytest.param(*each, marks=[pytest.mark.slow] if each[0] == "report" else [])
        for each in FILES_WRITTEN
    ],
)
def test_whichever_byte_fails_the_old_file_stays(name, ending, tmp_path):
    write = WRITERS[name][0]
    whole, path = tmp_path / f"whole{ending}", tmp_path / f"old{ending}"
    write(whole)
    size = whole.stat().st_size
    path.write_bytes(OLD)
    for most in range(0, size, size // 8 + 1):
        with room_for(most), pytest.raises(FileFormatError, match=r"old\.\w+: cannot be written"):
            write(path, overwrite=True)
        assert path.read_bytes() == OLD
    assert names_in(tmp_path) == sorted([whole.name, path.name])
    with room_for(size):
        write(path, overwrite=True)
    assert path.stat().st_size == size


def test_a_command_that_fails_to_write_rows_leaves_the_old_ones(old):
    rows = pd.DataFrame({"x": range(20_000)})
    with room_for(50_000), pytest.raises(FileFormatError, match=r"old\.csv: cannot be written"):
        write_csv(rows, old, overwrite=True)
    assert old.read_bytes() == OLD
    assert names_in(old.parent) == ["old.csv"]


def test_a_study_without_room_continues_when_there_is_some(tmp_path):
    population, store = tc.load_dataset("area_by_sex"), tmp_path / "store"
    common = {"fractions": [0.1], "draws": 5, "random_seed": 1, "progressbar": False, "workers": 1}
    estimators = {"x": tc.LogLinear()}
    whole = tc.study(population, estimators, samples=4, **common)
    tc.study(population, estimators, samples=2, store=store, **common)
    size = store.stat().st_size
    for most in (size + 1, size + 20):
        with room_for(most), pytest.raises(FileFormatError, match="the same study continues"):
            tc.study(population, estimators, samples=4, store=store, **common)
        assert store.stat().st_size <= most
    with room_for(10), pytest.raises(FileFormatError, match="new: cannot be written"):
        tc.study(population, estimators, samples=4, store=tmp_path / "new", **common)
    for path in (store, tmp_path / "new"):
        assert tc.study(population, estimators, samples=4, store=path, **common).identical(whole)


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory) -> Iterator[Path]:
    """A file system of eight kilobytes, where the runner may mount one."""
    folder = tmp_path_factory.mktemp("full")
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "taciturn", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if done.returncode:
        pytest.skip("mounting takes privileges")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("name", ["save_fit", "write_card"])
def test_a_full_disk_is_an_error_that_says_so(name, full_disk):
    write, endings = WRITERS[name]
    path = full_disk / f"old{endings[0]}"
    path.write_bytes(OLD)
    filling = full_disk / "filling"
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)), filling.open("wb") as file:
        file.write(bytes(100_000))
    with pytest.raises(FileFormatError, match=os.strerror(errno.ENOSPC)):
        write(path, overwrite=True)
    assert path.read_bytes() == OLD
    assert names_in(full_disk) == ["filling", path.name]
    filling.unlink()
    path.unlink()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is always full")
def test_a_summary_that_goes_to_a_full_disk():
    code = "import sys; from taciturn.cli import main; sys.argv = ['taciturn', '--help']; main()"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    message = f"taciturn: error: {os.strerror(errno.ENOSPC)}\n"
    assert (done.returncode, done.stderr) == (1, message)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ZeroDivisionError])
def test_what_interrupts_a_write_undoes_it(error, old):
    def interrupted() -> None:
        with whole_file(old, overwrite=True) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        interrupted()
    assert old.read_bytes() == OLD
    assert names_in(old.parent) == ["old.csv"]


def test_what_appears_in_the_meantime_is_not_replaced(tmp_path):
    path = tmp_path / "new.csv"
    with pytest.raises(FileFormatError, match="exists already"), whole_file(path):
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    other = tmp_path / "other.csv"
    with pytest.raises(FileFormatError, match="symbolic link"), whole_file(other, overwrite=True):
        other.symlink_to("new.csv")
    assert path.read_bytes() == b"theirs"
    assert names_in(tmp_path) == ["new.csv", "other.csv"]


@pytest.mark.parametrize("name", [f"{200 * 'x'}.csv", f"{60 * 'é'}.csv", "*[a].csv", "-"])
def test_names_of_every_kind(name, tmp_path):
    for _ in range(2):
        with whole_file(tmp_path / name, overwrite=True) as file:
            file.write(b"new")
    assert names_in(tmp_path) == [name]


@pytest.mark.parametrize("name", [f"{300 * 'x'}.csv", "a\0b"])
def test_names_that_no_file_can_have(name, tmp_path):
    with pytest.raises(FileFormatError, match="cannot be written"):
        save_fit(tmp_path / name)


# ---- who may read it, and when it is there


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_only_its_owner_reads_a_file_that_is_not_finished(mask, old):
    new = old.with_name("new.csv")
    before = os.umask(mask)
    try:
        for path, mode in ((new, 0o666 & ~mask), (old, 0o640)):
            old.chmod(0o640)
            with whole_file(path, overwrite=True) as file:
                file.write(b"new")
                state = os.fstat(file.fileno())
                assert stat.S_IMODE(state.st_mode) == 0o600
            assert stat.S_IMODE(path.stat().st_mode) == mode
            assert path.stat().st_ino == state.st_ino
    finally:
        assert os.umask(before) == mask


def test_a_file_is_on_disk_before_its_name_is_and_the_name_after(old, monkeypatch):
    happened = []
    sync, replace = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        happened.append("folder" if folder else f"{os.fstat(descriptor).st_size} bytes")
        sync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        happened.append(f"to {target.name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", renamed)
    with whole_file(old, overwrite=True) as file:
        file.write(b"new")
    assert happened == ["3 bytes", "to old.csv", "folder"]


def test_a_disk_that_fails_when_the_file_is_synced(old, monkeypatch):
    def fails(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fails)
    with (
        pytest.raises(FileFormatError, match=os.strerror(errno.EIO)),
        whole_file(old, overwrite=True) as file,
    ):
        file.write(b"new")
    assert old.read_bytes() == OLD
    assert names_in(old.parent) == ["old.csv"]


# ---- what a process that was killed leaves

KILLED = """
import os, signal, sys
from pathlib import Path
from taciturn.files import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_write_removes_what_a_killed_one_left(tmp_path):
    path = tmp_path / "new.csv"
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert done.returncode == -signal.SIGKILL
    [left] = names_in(tmp_path)
    assert left.startswith(".new.csv.")
    others = [".new.csv.part", ".new.csv.0123.part", f".other{left[8:]}", left.removesuffix("part")]
    for name in others:
        (tmp_path / name).touch()
    link = f".new.csv.{16 * '0'}.part"
    (tmp_path / link).symlink_to(others[0])
    with whole_file(path) as outer:
        assert left not in names_in(tmp_path)
        with whole_file(path) as inner:  # the outer one is in use
            inner.write(b"inner")
        outer.write(b"outer")
        path.unlink()
    assert path.read_bytes() == b"outer"
    assert names_in(tmp_path) == sorted([*others, link, path.name])
