"""Arrays from .npy, .npz and .safetensors files: mapped only while rows are read, and never unpickled."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from zhat.errors import BadInput, UnknownName
from zhat.files.reading import readable

Rows = np.ndarray[Any, Any]
Order = Literal["C", "F"]
_TENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "V2"}  # bfloat16 is two bytes without a type
_PIECE = 2**24  # bytes copied at a time


@dataclass(frozen=True, eq=False)
class OnDisk:
    """An array in a file, mapped only while some of it is read: between two looks it holds no descriptor and no memory.

    Attributes:
        file: where it lies.
        dtype: of a number.
        shape: of the array.
        offset: bytes before its first number.
        order: "F" where columns lie one after the other.
    """

    file: Path | Spool
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int = 0
    order: Order = "C"

    def mapped(self) -> Rows:
        """The whole array; a page is read when it is looked at."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        if isinstance(self.file, Spool):
            return np.memmap(self.file.file, self.dtype, "r", self.offset, self.shape, self.order)
        with readable(self.file, "stay as it was"):
            return np.memmap(self.file, self.dtype, "r", self.offset, self.shape, self.order)

    def __getitem__(self, which: Any) -> Rows:
        """Some rows, copied."""
        return np.array(self.mapped()[which])

    def part(self, start: int, stop: int) -> Rows | OnDisk:
        """Some neighbouring rows, in a form that another process can read: where they lie, or the rows themselves."""
        if isinstance(self.file, Spool) or self.order == "F":
            return self[start:stop]
        before = start * math.prod(self.shape[1:]) * self.dtype.itemsize
        shape = (stop - start, *self.shape[1:])
        return replace(self, file=self.file.absolute(), shape=shape, offset=self.offset + before)


class Spool:
    """A temporary file without a name that arrays are unpacked into; it goes when the last of them does.

    Example:
        >>> Spool().keep([np.arange(3.0).tobytes()], np.dtype(float), (3,))[1:].tolist()
        [1.0, 2.0]
    """

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 (it stays open as long as arrays lie in it)
        self._end = 0

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()

    def write(self, piece: bytes) -> int:
        """Add some bytes; where they begin."""
        start = self._end
        self.file.write(piece)
        self._end += len(piece)
        return start

    def at(self, start: int, dtype: np.dtype[Any], shape: tuple[int, ...], order: Order = "C") -> OnDisk:
        """The array whose bytes begin there."""
        self.file.flush()
        return OnDisk(self, dtype, shape, start, order)

    def keep(self, pieces: Iterable[bytes], dtype: np.dtype[Any], shape: tuple[int, ...], order: Order = "C") -> OnDisk:
        """An array from pieces of its bytes, refused before anything is written beyond what its shape promises."""
        size, start, written = math.prod(shape) * dtype.itemsize, self._end, 0
        if size > (free := shutil.disk_usage(tempfile.gettempdir()).free):
            raise ValueError(f"{size:,} bytes are promised, and {tempfile.gettempdir()} has {free:,} left")
        for piece in pieces:
            written += len(piece)
            if written > size:
                break
            self.write(piece)
        if written != size:
            raise ValueError(f"{size} bytes were promised and {'more' if written > size else written} came")
        return self.at(start, dtype, shape, order)


def map_npy(path: Path, what: str = "one array of numbers") -> OnDisk:
    """The array in a `.npy` file; where it cannot be read, the sentence says what it must hold."""
    with readable(path, f"hold {what} as numpy.save writes it"), path.open("rb") as file:
        if file.read(2) == b"PK":
            advice = "Save one with numpy.save." if path.suffix == ".npz" else "Name it .npz."
            raise BadInput(f"{path.name} must hold one array, but it is an archive of several. {advice}")
        file.seek(0)
        dtype, shape, order = _header(file)
        size, there = math.prod(shape) * dtype.itemsize, path.stat().st_size - file.tell()
        if size != there:
            raise ValueError(f"{size} bytes were promised and {there} are there")
        return OnDisk(path, dtype, shape, file.tell(), order)


def read_npy(path: Path, what: str = "one array of numbers") -> Rows:
    """The array in a `.npy` file, mapped; where it cannot be read, the sentence says what it must hold."""
    return map_npy(path, what).mapped()


def npz_names(path: Path) -> list[str]:
    """The names of the arrays in a `.npz` file."""
    with readable(path, "be an archive as numpy.savez writes it"), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def map_npz(path: Path, names: Iterable[str], spool: Spool) -> list[OnDisk]:
    """Some arrays of a `.npz` file, in that order, each copied into the spool a piece at a time."""
    with readable(path, "be an archive as numpy.savez writes it"), zipfile.ZipFile(path) as archive:
        return [_member(archive, name, spool) for name in names]


def read_npz(path: Path, names: Iterable[str]) -> list[Rows]:
    """Some arrays of a `.npz` file, in that order, mapped from a temporary file."""
    return [found.mapped() for found in map_npz(path, names, Spool())]


def _member(archive: zipfile.ZipFile, name: str, spool: Spool) -> OnDisk:
    with archive.open(f"{name}.npy") as stream:
        dtype, shape, order = _header(stream)
        return spool.keep(iter(lambda: stream.read(_PIECE), b""), dtype, shape, order)


def _header(stream: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...], Order]:
    """Type, shape and order of an array as numpy.save writes it; the stream then stands at its first number."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which zhat never loads")
    if any(length < 0 for length in shape) or dtype.itemsize == 0:
        raise ValueError(f"it promises the shape {shape} of {dtype}")
    if version == (3, 0) and dtype.names:  # the same header, but in UTF-8
        dtype.names = tuple(field.encode("latin1").decode("utf-8") for field in dtype.names)
    return dtype, shape, "F" if by_columns else "C"


def map_safetensors(path: Path, key: str | None) -> OnDisk:
    """The tensor of that name, or the only matrix, of a `.safetensors` file; bfloat16 as two bytes without a type."""
    with readable(path, "be a safetensors file"):
        with path.open("rb") as file:
            length, size = int.from_bytes(file.read(8), "little"), path.stat().st_size
            if not 2 <= length <= min(10**8, size):
                raise ValueError("its header has no sensible length")
            header = json.loads(file.read(length))
        tensors = {k: v for k, v in header.items() if k != "__metadata__"}
        ends = [0, *(end for span in sorted(v["data_offsets"] for v in tensors.values()) for end in span)]
        if ends[::2] != [*ends[1::2], size - 8 - length]:  # one after the other, without gaps, to the end of the file
            raise ValueError("its data are shorter or longer than its header says")
        name = chosen(key, [k for k, v in tensors.items() if key is not None or len(v["shape"]) == 2], path)
        about = tensors[name]
        if about["dtype"] not in _TENSORS:
            raise ValueError(f"{name} is of type {about['dtype']}, not a float")
        dtype, shape = np.dtype(_TENSORS[about["dtype"]]), tuple(int(s) for s in about["shape"])
        start, end = about["data_offsets"]
        if end - start != math.prod(shape) * dtype.itemsize or any(s < 0 for s in shape):
            raise ValueError("its data are shorter or longer than its header says")
        if end == start:
            raise BadInput(f"{path.name} must hold a matrix that is not empty, but {name} has the shape {shape}.")
        return OnDisk(path, dtype, shape, 8 + length + start)


def chosen(key: str | None, names: list[str], path: Path) -> str:
    """The array that is meant: the one of that key, or the only one."""
    if key is None and len(names) == 1:
        return names[0]
    if key is None:
        raise BadInput(
            f"{path.name} holds {len(names)} arrays ({', '.join(names[:8])}). Name one with --key."
            if names
            else f"{path.name} holds no array."
        )
    if key not in names:
        raise UnknownName(f"array in {path.name}", key, names)
    return key
