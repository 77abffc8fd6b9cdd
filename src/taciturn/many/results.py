"""Where what is kept of each table goes: arrays in memory, or a folder from which an
interrupted call goes on.
"""

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import FileFormatError, MissingDependencyError
from taciturn.many.collection import Collection, Stack
from taciturn.many.tasks import Kept
from taciturn.schema import MAX_COUNT
from taciturn.store import Store
from taciturn.validate import is_whole

__all__ = ["Results", "label_array", "labelled"]

_LOG, _ARRAYS = "log.jsonl", "arrays.zarr"

Arrays = Mapping[str, npt.NDArray[Any]]


class Results:
    """Arrays with a row for each table, in memory or in a folder.

    The folder has the arrays in Zarr, of which each task writes a region, and a log, in
    which a line says that a region is there, and has its hash; so a region that was
    being written when the process was killed, or that the disk has lost, is written
    again.

    Raises
    ------
    FileFormatError
        The folder holds something else or other results, is in use, or cannot be
        written.
    """

    def __init__(
        self,
        path: str | PathLike[str] | None,
        header: Mapping[str, Any],
        number: int,
        step: int,
        shapes: Mapping[str, tuple[str, tuple[int, ...]]],
    ) -> None:
        self._shapes = {name: (kind, (number, *rest)) for name, (kind, rest) in shapes.items()}
        self._step = step
        self._path = None if path is None else Path(path)
        if self._path is None:
            self._arrays: Any = {
                name: np.zeros(shape, dtype=kind) for name, (kind, shape) in self._shapes.items()
            }
            self._log = Store(None, header)
            return
        try:
            import zarr  # noqa: F401 - must be there before anything is written
        except ImportError as error:
            raise MissingDependencyError(
                "a store of assess_many needs Zarr: install the extra 'many'"
            ) from error
        try:
            self._path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileFormatError(
                f"{self._path}: cannot be a folder: {error.strerror or error}"
            ) from error
        others = {entry.name for entry in self._path.iterdir()} - {_LOG, _ARRAYS}
        if others:
            raise FileFormatError(
                f"{self._path}: holds {min(others)!r}, which is no result of assess_many; give the"
                " name of a new folder"
            )
        self._log = Store(self._path / _LOG, header, "run of assess_many")
        try:
            self._arrays = self._opened()
        except BaseException:
            self._log.__exit__()
            raise

    def _opened(self) -> Any:
        """The Zarr group, made if it is not there."""
        import zarr

        assert self._path is not None
        place = self._path / _ARRAYS
        with self._readable():
            group = zarr.open_group(place, mode="a")
            for name, (kind, shape) in self._shapes.items():
                held: Any = group.get(name)
                if held is None or (held.shape, held.dtype) != (shape, kind):
                    chunks = (min(self._step, shape[0]), *shape[1:])
                    how: Any = {"shape": shape, "dtype": kind, "chunks": chunks}
                    group.create_array(name, overwrite=True, **how)
        return group

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Whatever Zarr finds wrong becomes a `FileFormatError`."""
        try:
            yield
        except Exception as error:
            raise FileFormatError(
                f"{self._path}: its arrays are damaged ({type(error).__name__}: {error!s:.120});"
                " remove the folder, or give the name of another"
            ) from error

    @cached_property
    def done(self) -> set[int]:
        """Where the regions that are there, and are what was written, start."""
        found = {r["start"]: r["sha256"] for r in self._log.records if "start" in r}
        done = set()
        for start, known in found.items():
            with suppress(FileFormatError):  # a damaged region is written again
                if self._hash(start) == known:
                    done.add(start)
        return done

    def _hash(self, start: int) -> str:
        rows = slice(start, start + self._step)
        with self._readable():
            return _hash({name: self._arrays[name][rows] for name in self._shapes})

    def add(self, start: int, arrays: Arrays) -> None:
        """Keep what is known of some tables."""
        try:
            for name, values in arrays.items():
                self._arrays[name][start : start + len(values)] = values
        except OSError as error:
            raise self._log.unwritable(error) from error
        if self._path is not None:
            self._log.add({"start": start, "sha256": self._hash(start)})

    def chains(self) -> dict[int, Arrays]:
        """The chains over what areas share that are there, and are what was written."""
        chains: dict[int, Arrays] = {}
        for record in self._log.records:
            if "chain" in record:
                own = {name: _of_chain(record["chain"], name) for name in record["arrays"]}
                with suppress(FileFormatError), self._readable():  # damaged: drawn again
                    found = {k: self._arrays[v][:] for k, v in own.items() if v in self._arrays}
                    if _hash(found) == record["sha256"]:
                        chains[record["chain"]] = found
        return chains

    def add_chain(self, number: int, arrays: Arrays) -> None:
        """Keep a chain over what areas share, where an interrupted call goes on."""
        if self._path is None:
            return
        try:
            for name, values in arrays.items():
                self._arrays.create_array(_of_chain(number, name), data=values, overwrite=True)
        except OSError as error:
            raise self._log.unwritable(error) from error
        self._log.add({"chain": number, "arrays": list(arrays), "sha256": _hash(arrays)})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._log.__exit__(*error)

    def dataset(self, tables: Collection, kept: Kept) -> xr.Dataset:
        """All of it, with labels."""
        arrays = {name: np.asarray(self._arrays[name][:]) for name in self._shapes}
        found = labelled(arrays, tables, kept)
        return found.assign(reason=found["reason"].astype(object))  # which may be missing, in where


def _of_chain(number: int, name: str) -> str:
    """Name of the array that holds a parameter of a chain."""
    return f"chain_{number}_{name}"


def _hash(arrays: Arrays) -> str:
    """Of names, shapes and values."""
    found = sha256()
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {values.dtype} {values.shape}".encode())
        found.update(values.tobytes())
    return found.hexdigest()


def labelled(arrays: Arrays, tables: Collection, kept: Kept) -> xr.Dataset:
    """What is kept of some tables, with labels."""
    known = [int(s) if is_whole(s) and 0 <= s <= MAX_COUNT else 0 for s in tables.sizes]
    reasons = [bytes(row).rstrip(b"\0").decode(errors="ignore") for row in arrays["reason"]]
    dims = {name: (tables.over, *rest) for name, (_, rest) in kept.arrays.items()}
    coords: dict[str, Any] = {
        tables.over: (tables.over, label_array(tables.labels)),
        "quantile": list(kept.quantiles),
    }
    if isinstance(tables.tables, Stack):
        coords |= {name: tables.tables.tables[name].values for name in kept.by}
    if kept.every_draw:
        coords["draw"] = np.arange(kept.draws)
    found = {name: (dims[name], values) for name, values in arrays.items()}
    found["reason"] = ((tables.over,), np.array(reasons, dtype=np.dtypes.StringDType()))
    found["population_size"] = ((tables.over,), np.array(known, dtype=np.int64))
    return xr.Dataset(found, coords=coords)


def label_array(labels: list[Hashable]) -> npt.NDArray[Any]:
    """Labels as an array, dates as dates; as they are where NumPy would make other ones
    of them: text of numbers beside text, or one float of several large whole numbers.
    """
    if all(hasattr(label, "to_datetime64") for label in labels):
        return np.array([label.to_datetime64() for label in labels])  # type: ignore[attr-defined]
    found = np.array(labels, dtype=object)
    alike = np.array(labels) if len({isinstance(label, str) for label in labels}) == 1 else found
    return alike if all(map(_same, alike.tolist(), labels)) else found


def _same(one: Hashable, other: Hashable) -> bool:
    """Whether they are equal, and of one kind: neither True nor 1.0 is 1."""
    kinds = ((bool, bool | np.bool_), (float, float | np.floating))
    return one == other and all(
        isinstance(one, ours) == isinstance(other, theirs) for ours, theirs in kinds
    )
