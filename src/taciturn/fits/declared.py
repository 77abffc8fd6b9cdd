"""What an HDF5 file declares, checked before any of it is read.

A file from somebody else may name other files, which HDF5 then reads, run in circles,
or declare more than memory holds. The structure is walked, one object at a time, and
what a fit has no use for is refused; compressed data are unpacked within a limit.
"""

import zlib
from collections.abc import Iterator
from math import prod
from typing import IO, Any, Final

import h5py
import numpy as np

from taciturn.errors import FileFormatError

__all__ = ["check_declared"]

_MOST_OBJECTS: Final = 5_000
"""Groups, arrays and attributes together; a stack of many fits has some hundreds."""

_MOST_DIMENSIONS: Final = 32
"""Of an array of HDF5."""

_REFERENCE_BYTES: Final = 16
"""What stands for a text in an array: its length and where it is."""

_FILTERS: Final = (h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_FLETCHER32)

_REFERENCES: Final = {"DIMENSION_LIST": _MOST_DIMENSIONS, "REFERENCE_LIST": _MOST_OBJECTS}
"""Attributes by which netCDF ties arrays to their dimensions: how long they may be."""


def check_declared(content: IO[bytes], *, most_bytes: int) -> None:
    """Raise `FileFormatError` unless an HDF5 file is a tree of arrays of its own that
    take at most `most_bytes` in memory.

    Parameters
    ----------
    content : binary file
        The file, which may be in memory.
    most_bytes : int
        What all arrays and attributes may take together.

    Raises
    ------
    FileFormatError
        A link, external storage, a virtual array, an object in two places, a filter
        other than gzip, shuffle and fletcher32, data that unpack to more than they
        declare, a type that is neither numbers nor text, or too much of anything.
    """
    limits = _Limits(content.seek(0, 2), most_bytes)
    with h5py.File(content, "r") as file:
        for found in _objects(file):
            limits.count(found.name)
            if isinstance(found, h5py.Dataset):
                _check_storage(found)
                limits.take_array(found)
                _check_chunks(found, most_bytes)
            for name in found.attrs:
                limits.count(found.name)
                limits.take_attribute(found, name)


def _objects(file: h5py.File) -> Iterator[Any]:
    """Groups and arrays of a tree, each of which is in one place."""
    seen = {_address(file)}
    waiting = [file["/"]]
    while waiting:
        group = waiting.pop()
        yield group
        for name in group:
            place = f"{group.name.rstrip('/')}/{name}"
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise FileFormatError(f"{place} is a link; each array must be in the file itself")
            found = group[name]
            if _address(found) in seen:
                raise FileFormatError(f"{place} is another name of what the file holds elsewhere")
            seen.add(_address(found))
            if isinstance(found, h5py.Group):
                waiting.append(found)
            elif isinstance(found, h5py.Dataset):
                yield found
            else:
                raise FileFormatError(f"{place} is neither a group nor an array")


def _address(found: Any) -> Any:
    return h5py.h5o.get_info(found.id).addr


def _check_storage(array: h5py.Dataset) -> None:
    """Raise unless the values are in the file, as they are or packed in a known way."""
    if array.external:
        raise FileFormatError(
            f"{array.name} has its values in another file, {array.external[0][0]!r:.80}"
        )
    if array.is_virtual:
        raise FileFormatError(f"{array.name} has its values in other arrays")
    layout = array.id.get_create_plist()
    used = [layout.get_filter(number)[0] for number in range(layout.get_nfilters())]
    if used != [known for known in _FILTERS if known in used]:
        raise FileFormatError(
            f"{array.name} is packed by the filters {used}; accepted are shuffle, gzip and"
            " fletcher32, in this order"
        )


def _check_chunks(array: h5py.Dataset, most_bytes: int) -> None:
    """Raise where a part of an array unpacks to more than its size."""
    if array.chunks is None:
        return
    size = _REFERENCE_BYTES if array.dtype.hasobject else array.dtype.itemsize
    for edge in array.chunks:
        size *= edge
    if size > most_bytes:
        raise FileFormatError(f"{array.name} comes in parts of {size:,} bytes")
    if array.compression is None:
        return
    parts: list[Any] = []
    array.id.chunk_iter(parts.append)  # append returns None, which asks for the next
    for place in parts:
        if place.size > size + 2**16:  # packing lengthens what cannot be packed a little
            raise FileFormatError(f"{array.name} has a part that is longer packed than unpacked")
        packed = array.id.read_direct_chunk(place.chunk_offset)[1]
        if len(zlib.decompressobj().decompress(packed, size + 1)) > size:
            raise FileFormatError(f"{array.name} unpacks to more than the {size:,} bytes of a part")


class _Limits:
    """What is left of the limits."""

    def __init__(self, file_size: int, most_bytes: int) -> None:
        self.file_size = file_size  # which no text exceeds
        self.most_bytes, self.left = most_bytes, most_bytes
        self.objects = 0

    def count(self, place: str) -> None:
        """Count a group, an array or an attribute."""
        self.objects += 1
        if self.objects > _MOST_OBJECTS:
            raise FileFormatError(
                f"{place}: the file has more than {_MOST_OBJECTS:,} groups, arrays and attributes"
            )

    def take_array(self, array: h5py.Dataset) -> None:
        """Count the bytes of an array, and of its texts, which stand elsewhere."""
        _check_type(array.name, array.dtype)
        self._take(array.name, array.size * array.dtype.itemsize)
        if not array.dtype.hasobject:
            return
        if array.ndim == 0:
            raise FileFormatError(f"{array.name} holds text without a dimension")
        for texts in _texts(array, max(1, self.left // self.file_size)):
            self._take(array.name, sum(map(len, texts)))

    def take_attribute(self, owner: Any, name: str) -> None:
        """Count the bytes of an attribute."""
        place = f"{owner.name}@{name}"
        attribute = h5py.h5a.open(owner.id, name.encode())
        values = int(attribute.get_space().get_simple_extent_npoints())
        if name in _REFERENCES:
            if values > _REFERENCES[name]:
                raise FileFormatError(f"{place} has {values:,} references")
            return
        _check_type(place, attribute.dtype)
        self._take(place, values * attribute.dtype.itemsize)
        if attribute.dtype.hasobject:
            self._take(place, values * self.file_size, kept=False)
            self._take(place, sum(map(len, np.ravel(owner.attrs[name]))))

    def _take(self, place: str, number: int, *, kept: bool = True) -> None:
        if number > self.left:
            raise FileFormatError(
                f"{place} declares {number:,} bytes, of {self.left:,} that are left of most_bytes ="
                f" {self.most_bytes:,}"
            )
        self.left -= number if kept else 0


def _texts(array: h5py.Dataset, most: int, place: tuple[int, ...] = ()) -> Iterator[Any]:
    """The texts of an array, or of a part of it, so many at once at most."""
    length, *rest = array.shape[len(place) :]
    size = prod(rest)
    if size > most:
        for at in range(length):
            yield from _texts(array, most, (*place, at))
    elif size:
        step = most // size
        for start in range(0, length, step):
            yield array[(*place, slice(start, start + step))].ravel()


def _check_type(place: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biufS" and h5py.check_string_dtype(dtype) is None:
        raise FileFormatError(f"{place} holds neither numbers nor text: {dtype!s:.80}")
