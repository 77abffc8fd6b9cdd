"""Files that are read and written: checked before any work, written as a whole or not
at all.
"""

import csv
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from importlib.util import find_spec
from io import BytesIO, StringIO
from os import PathLike
from pathlib import Path
from secrets import token_hex
from typing import IO, TYPE_CHECKING, Final, Literal

from taciturn.errors import FileFormatError, MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd

if sys.platform != "win32":
    import fcntl

__all__ = [
    "ADDRESS",
    "APRIORI_ENDINGS",
    "ARGUS_ENDINGS",
    "HIERARCHY_ENDINGS",
    "INTERVAL_ENDINGS",
    "METADATA_ENDING",
    "READABLE_RELEASES",
    "RELEASE_ENDINGS",
    "TABLE_ENDINGS",
    "StandardInput",
    "TableFile",
    "as_csv",
    "check_ending",
    "check_folder",
    "check_output",
    "check_readable",
    "expanded",
    "whole_file",
]

TABLE_ENDINGS: Final = (".csv", ".parquet")
"""Files in long form that are read."""

HIERARCHY_ENDINGS: Final = (*TABLE_ENDINGS, ".hrc")
"""Files of levels above a variable: in columns, or those of τ-ARGUS."""

APRIORI_ENDINGS: Final = (*TABLE_ENDINGS, ".hst")
"""Files of instructions for single cells: in columns, or those of τ-ARGUS."""

ARGUS_ENDINGS: Final = (".tab", ".txt", ".csv")
"""Tables of τ-ARGUS, a line for each cell and no header."""

METADATA_ENDING: Final = ".rda"
"""What τ-ARGUS calls the file that says what the columns of a table are."""

RELEASE_ENDINGS: Final = (".csv", ".parquet", ".json", ".xlsx")
"""Files that a release is written to."""

INTERVAL_ENDINGS: Final = (".csv", ".parquet", ".xlsx")
"""Files of releases that have room for an interval beside each value."""

READABLE_RELEASES: Final = RELEASE_ENDINGS[:-1]
"""Files that a release is read from: all but those of Excel."""

ADDRESS: Final = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
"""What begins like an address, not like the name of a file, and its first word."""

_LIBRARIES: Final = {
    ".parquet": ("pyarrow", "parquet"),
    ".xlsx": ("xlsxwriter", "excel"),
    ".html": ("jinja2", "report"),
}
"""What writes a file of this ending, and the extra that installs it."""

_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


_LARGEST: Final = 2**30  # bytes of standard input that are held


class StandardInput:
    """Standard input in the place of a CSV file. It is read when it is first opened,
    and held, so that it can be opened again.
    """

    def __init__(self) -> None:
        self._held: bytes | None = None

    def __str__(self) -> str:
        return "standard input"

    def open(self, mode: Literal["rb"] = "rb") -> IO[bytes]:
        """What was read, from its beginning."""
        if self._held is None:
            if sys.stdin is None:
                raise FileFormatError(f"{self}: is closed")
            held = sys.stdin.buffer.read(_LARGEST + 1)
            if len(held) > _LARGEST:
                raise FileFormatError(
                    f"{self}: holds more than {_LARGEST:,} bytes; give the name of a file"
                )
            self._held = held
        return BytesIO(self._held)


type TableFile = Path | StandardInput
"""Where a table is read from."""


def check_readable(path: Path, endings: tuple[str, ...] = ()) -> None:
    """Raise `FileFormatError` unless a file of one of these endings, or of any, is
    there.
    """
    ending = path.suffix.lower()
    if endings and ending not in endings:
        accepted = " and ".join(map(repr, endings))
        raise FileFormatError(f"{path}: cannot read the ending {ending!r}; accepted are {accepted}")
    try:
        found = path.is_file()
    except OSError as error:  # a name that is too long
        raise FileFormatError(f"{path}: cannot be read: {error}") from error
    if not found:
        raise FileFormatError(f"{path}: no such file")


def check_ending(path: Path, endings: tuple[str, ...]) -> None:
    """Raise unless a file of this ending can be written: it is one of these, and what
    writes it is installed.
    """
    ending = path.suffix.lower()
    if ending not in endings:
        raise FileFormatError(
            f"{path}: cannot be written with the ending {ending!r}; give the file a name that ends"
            f" in {', '.join(endings)}"
        )
    library, extra = _LIBRARIES.get(ending, (None, None))
    if library is not None and find_spec(library) is None:
        raise MissingDependencyError(
            f"{path}: writing {ending} needs {library}: install the extra {extra!r}"
        )


def expanded(named: str | PathLike[str]) -> Path:
    """A path in which ``~`` is the home directory."""
    try:
        return Path(named).expanduser()
    except RuntimeError:  # nobody of that name
        return Path(named)


def check_output(
    path: Path,
    *,
    inputs: Iterable[Path] = (),
    outputs: Iterable[Path] = (),
    overwrite: bool = False,
) -> None:
    """Raise `FileFormatError` unless a file may be written at `path`; asked before any
    work, so that none is lost.

    An output is a regular file or none yet, in a folder that can be written to. It is
    none of the files that the same call reads, under whatever name, and none of its
    other outputs. One that exists is replaced only on request.

    Parameters
    ----------
    path : Path
        Where the output goes.
    inputs, outputs : iterable of Path
        What else the same call reads and writes.
    overwrite : bool
        Whether a file that exists may be replaced, or continued.
    """
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        raise FileFormatError(f"{path}: is {kind}; give the name of a file")
    if not path.parent.is_dir():
        raise FileFormatError(f"{path}: the folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise FileFormatError(f"{path}: the folder {path.parent} cannot be written to")
    if any(_same_file(path, other) for other in inputs):
        raise FileFormatError(
            f"{path}: is the file that is read; give the output a name of its own"
        )
    if any(_same_file(path, other) for other in outputs):
        raise FileFormatError(f"{path}: is another output, too; give each a name of its own")
    if mode is not None and not overwrite:
        raise FileFormatError(
            f"{path}: exists already; give another name, or replace it with --force on the command"
            " line, overwrite=True in Python"
        )


def check_folder(path: Path) -> None:
    """Raise `FileFormatError` unless `path` can be a folder that is written, or
    continued.
    """
    mode = _mode(path)
    if mode is not None and not path.is_dir():
        raise FileFormatError(f"{path}: exists and is no folder; give another name")
    if not path.parent.is_dir():
        raise FileFormatError(f"{path}: the folder {path.parent} does not exist")
    if not os.access(path if mode is not None else path.parent, os.W_OK | os.X_OK):
        raise FileFormatError(f"{path}: cannot be written to")


def as_csv(rows: "pd.DataFrame") -> str:
    """Rows without their index as CSV. A header that has another separator than the
    comma is in quotes, so that whoever reads it sees which one separates.
    """
    unclear = any(set(";|") & set(str(name)) for name in rows.columns)
    header = StringIO()
    csv.writer(
        header, lineterminator="\n", quoting=csv.QUOTE_ALL if unclear else csv.QUOTE_MINIMAL
    ).writerow(rows.columns)
    return header.getvalue() + rows.to_csv(index=False, header=False, lineterminator="\n")


@contextmanager
def whole_file(path: Path, *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its place at `path` when all of it is on disk,
    and is gone if anything fails.

    Until then it stands beside `path`, and only its owner can read it. A file that is
    replaced hands on its permissions. What a process that was killed has left there is
    removed.
    """
    check_output(path, overwrite=overwrite)
    _sweep(path)
    temporary = path.with_name(f"{_prefix(path)}{token_hex(8)}.part")
    try:
        with open(temporary, "xb", opener=_for_the_owner) as file:
            _lock(file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
        check_output(path, overwrite=overwrite)  # what has come there since
        with suppress(PermissionError):  # a file system without permissions
            temporary.chmod(_permissions(path))
        temporary.replace(path)
        _sync_folder(path.parent)
    except FileFormatError:
        raise
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # it has taken its place
            temporary.unlink()


def _mode(path: Path) -> int | None:
    """Kind and permissions of what is there, a link itself and not its target; None
    where there is nothing.
    """
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # a name that is too long, or has a null
        raise FileFormatError(f"{path}: cannot be written: {error}") from error


def _same_file(one: Path, other: Path) -> bool:
    """Whether two names are of one file; links are followed."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # one of them is not there yet
        return os.path.realpath(one) == os.path.realpath(other)


def _for_the_owner(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _permissions(path: Path) -> int:
    """Those of the file that is there, or what the umask leaves to a new one."""
    mode = _mode(path)
    if mode is not None:
        return stat.S_IMODE(mode)
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def _prefix(path: Path) -> str:
    """How the names of unfinished files begin, short enough for every file system."""
    return f".{path.name[:40]}."


def _sweep(path: Path) -> None:
    """Remove unfinished files whose process is gone, and with it its lock."""
    if sys.platform == "win32":  # which has no such locks
        return
    for left in path.parent.glob(f"{escape(_prefix(path))}*.part"):
        if not re.fullmatch(r"[0-9a-f]{16}\.part", left.name.removeprefix(_prefix(path))):
            continue
        with (
            suppress(OSError),  # in use, or another's
            open(left, "r+b", opener=_without_following) as file,
        ):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def _without_following(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _lock(descriptor: int) -> None:
    """Mark a file as in use, as long as this process lives."""
    if sys.platform != "win32":
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_folder(folder: Path) -> None:
    """Have the new name on disk, too, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
