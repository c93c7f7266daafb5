"""Arrays from .h5, .mat and .zarr containers: copied some rows at a time into a temporary file, and mapped from there.

`.h5` needs the extra `hdf5`, and so does a `.mat` file of MATLAB 7.3 or later, which is one. Those of MATLAB 5 to 7.2
are read here, because SciPy's reader can end the whole program over a damaged one. `.zarr` needs the extra `zarr`. What
a container only links to is not followed, and a Zarr array is read only if every codec it names is known to unpack
bytes: one of them, pickle, would run code.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from zhat.errors import BadInput, MissingExtra
from zhat.files.arrays import OnDisk, Rows, Spool
from zhat.files.reading import readable

CONTAINERS = (".h5", ".hdf5", ".mat", ".zarr")
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_CODECS = {
    *("blosc", "zlib", "gzip", "zstd", "lz4", "lzma", "bz2", "shuffle", "delta", "fixedscaleoffset", "quantize"),
    *("bitround", "packbits", "astype", "crc32", "crc32c", "adler32", "fletcher32"),
    *("bytes", "endian", "transpose", "sharding_indexed"),
}
_PIECE = 2**24  # bytes copied at a time


def container_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The names of the arrays of numbers in a container, with their shapes."""
    with _opened(path) as arrays:
        return {name: tuple(int(s) for s in array.shape) for name, array in arrays.items()}


def map_container(path: Path, names: Iterable[str], spool: Spool) -> list[OnDisk]:
    """Some arrays of a container, in that order, each copied into the spool a piece at a time."""
    with _opened(path) as arrays:
        return [spool.keep(_pieces(arrays[n]), np.dtype(arrays[n].dtype), tuple(arrays[n].shape)) for n in names]


def _pieces(array: Any) -> Iterator[bytes]:
    row = max(1, int(np.prod(array.shape[1:])) * array.dtype.itemsize)
    step = max(1, _PIECE // row)
    for start in range(0, array.shape[0] if array.shape else 0, step):
        yield np.ascontiguousarray(array[start : start + step]).tobytes()


class _Turned:
    """A matrix of MATLAB 7.3, which lies in its file with rows and columns exchanged."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.dtype = array, tuple(reversed(array.shape)), array.dtype

    def __getitem__(self, rows: slice) -> Rows:
        return np.asarray(self.array[..., rows]).T


@contextmanager
def _opened(path: Path) -> Iterator[Mapping[str, Any]]:
    """The arrays of numbers in a container, by name."""
    kind = path.suffix.lower()
    if kind == ".zarr":
        with readable(path, "be a Zarr store", folder=True):
            yield _zarr(path)
        return
    what = "be a MATLAB file" if kind == ".mat" else "be an HDF5 file"
    with readable(path, what):
        with path.open("rb") as file:
            start = file.read(520)
        if kind == ".mat" and _SIGNATURE not in (start[:8], start[512:]):
            yield dict(_matlab(path.read_bytes()))
            return
        try:
            import h5py
        except ImportError:
            raise MissingExtra("h5py", "hdf5", f"reading {path.name}") from None
        with h5py.File(path, "r") as file:
            inside = dict(_datasets(file, h5py))
            yield {name: _Turned(array) for name, array in inside.items()} if kind == ".mat" else inside


_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_COMPLEX = 0x800


def _matlab(data: bytes) -> Iterator[tuple[str, Rows]]:
    """The dense arrays of real numbers in a file of MATLAB 5 to 7.2, by name; anything else in it is passed over.

    Such a file is a header of 128 bytes and elements one after the other: a type, a length, and as many bytes. A matrix
    is an element made of others: flags, dimensions, a name, and the numbers column by column, stored as they fit.
    """
    ends = {b"IM": "<", b"MI": ">"}.get(data[126:128])
    if ends is None:
        raise ValueError("its header is not that of MATLAB 5 or later")
    for kind, content in _elements(data[128:], ends, padded=False):
        if kind == _COMPRESSED:
            ((kind, content), *_) = _elements(zlib.decompress(content), ends)
        if kind != _MATRIX or not content:
            continue
        (_, flags), (_, dims), (_, name), *parts = _elements(content, ends)
        about, shape = struct.unpack(f"{ends}I", flags[:4])[0], np.frombuffer(dims, f"{ends}i4")
        if about & 0xFF not in _CLASSES or about & _COMPLEX or len(shape) < 2 or shape.min() < 0:
            continue
        stored, numbers = parts[0]
        values = np.frombuffer(numbers, ends + _STORED[stored]).astype(_CLASSES[about & 0xFF])
        yield name.decode("ascii"), values.reshape(shape.tolist(), order="F")


def _elements(data: bytes, ends: str, *, padded: bool = True) -> Iterator[tuple[int, bytes]]:
    """Types and contents of elements; a short one lies within its own head."""
    place = 0
    while place < len(data):
        kind, size = struct.unpack_from(f"{ends}II", data, place)
        start = place + 8
        if kind >> 16:
            kind, size, start = kind & 0xFFFF, kind >> 16, place + 4
        if start + size > len(data):
            raise ValueError("it ends within an array")
        yield kind, data[start : start + size]
        place = start + size if start == place + 8 else place + 8
        place += -place % 8 if padded or kind != _COMPRESSED else 0


def _numeric(array: Any) -> bool:
    return bool(array.dtype.kind in "fiub" and array.dtype.names is None and array.ndim > 0)


def _datasets(group: Any, h5py: Any, within: str = "") -> Iterator[tuple[str, Any]]:
    """Arrays of numbers that lie in the file itself, with their paths."""
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            continue
        found = group[name]
        if isinstance(found, h5py.Group):
            if within.count("/") < 16:  # a damaged file may hold a group in itself
                yield from _datasets(found, h5py, f"{within}{name}/")
        elif isinstance(found, h5py.Dataset) and _numeric(found) and not found.is_virtual and not found.external:
            yield f"{within}{name}", found


def _zarr(path: Path) -> dict[str, Any]:
    try:
        import zarr
    except ImportError:
        raise MissingExtra("zarr", "zarr", f"reading {path.name}") from None
    for file in sorted(path.rglob("*")):
        if not file.is_dir() and not file.is_file():
            raise ValueError(f"{file.name} in it is no file")
        if file.name in (".zarray", ".zmetadata", "zarr.json"):
            _refuse_codecs(json.loads(file.read_text(encoding="utf-8")), path)
    found = zarr.open(str(path), mode="r")
    if hasattr(found, "shape"):
        return {path.stem: found} if _numeric(found) else {}
    # The file system decides the order in which arrays are listed; names decide it here.
    return {name: array for name, array in sorted(found.arrays(), key=lambda pair: pair[0]) if _numeric(array)}


def _refuse_codecs(about: Any, path: Path) -> None:
    """Refuse what names a codec that we do not know, at any level."""
    if isinstance(about, list):
        for each in about:
            _refuse_codecs(each, path)
    if not isinstance(about, dict):
        return
    listed = [about.get("compressor"), *(about.get("filters") or []), *(about.get("codecs") or [])]
    for codec in (each for each in listed if each is not None):
        name = codec.get("id") or codec.get("name") if isinstance(codec, dict) else codec
        if str(name).removeprefix("numcodecs.") not in _CODECS:
            raise BadInput(f"{path.name} is packed with the codec {name!r}, which zhat does not run. Save it without.")
    for each in about.values():
        _refuse_codecs(each, path)
