"""Arrays from .npy, .npz and .safetensors files: mapped, so that rows are read when they are used; never unpickled."""

from __future__ import annotations

import json
import math
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from zhat.errors import BadInput, UnknownName
from zhat.files.reading import readable

Rows = np.ndarray[Any, Any]
_TENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "V2"}  # bfloat16 is two bytes without a type


def read_npy(path: Path, what: str = "one array of numbers") -> Rows:
    """The array in a `.npy` file; where it cannot be read, the sentence says what it must hold."""
    with readable(path, f"hold {what} as numpy.save writes it"):
        with path.open("rb") as file:
            if file.read(2) == b"PK":
                advice = "Save one with numpy.save." if path.suffix == ".npz" else "Name it .npz."
                raise BadInput(f"{path.name} must hold one array, but it is an archive of several. {advice}")
        return np.lib.format.open_memmap(path, mode="r")


def npz_names(path: Path) -> list[str]:
    """The names of the arrays in a `.npz` file."""
    with readable(path, "be an archive as numpy.savez writes it"), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def read_npz(path: Path, names: Iterable[str]) -> list[Rows]:
    """Some arrays of a `.npz` file, in that order, each copied into a temporary file a piece at a time."""
    with readable(path, "be an archive as numpy.savez writes it"), zipfile.ZipFile(path) as archive:
        return [_member(archive, name) for name in names]


def _member(archive: zipfile.ZipFile, name: str) -> Rows:
    with archive.open(f"{name}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(stream)
        if dtype.hasobject:
            raise ValueError("it holds Python objects, which zhat never loads")
        if version == (3, 0) and dtype.names:  # the same header, but in UTF-8
            dtype.names = tuple(field.encode("latin1").decode("utf-8") for field in dtype.names)
        pieces = iter(lambda: stream.read(2**24), b"")
        return spooled(pieces, dtype, shape, order="F" if by_columns else "C")


def spooled(pieces: Iterable[bytes], dtype: Any, shape: tuple[int, ...], order: Any = "C") -> Rows:
    """A mapped array from pieces of its bytes; the file has no name and goes when the array does."""
    size, written = math.prod(shape) * np.dtype(dtype).itemsize, 0
    with tempfile.TemporaryFile() as spool:
        for piece in pieces:
            written += len(piece)
            if written > size:
                break
            spool.write(piece)
        if written != size:
            raise ValueError(f"{size} bytes were promised and {'more' if written > size else written} came")
        spool.flush()
        return np.memmap(spool, dtype, "r", shape=shape, order=order) if size else np.empty(shape, dtype)


def read_safetensors(path: Path, key: str | None) -> Rows:
    """The tensor of that name, or the only matrix, of a `.safetensors` file; bfloat16 as two bytes without a type."""
    with readable(path, "be a safetensors file"):
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= 10**8:
                raise ValueError("its header has no sensible length")
            header = json.loads(file.read(length))
        tensors = {k: v for k, v in header.items() if k != "__metadata__"}
        name = chosen(key, [k for k, v in tensors.items() if key is not None or len(v["shape"]) == 2], path)
        about = tensors[name]
        if about["dtype"] not in _TENSORS:
            raise ValueError(f"{name} is of type {about['dtype']}, not a float")
        dtype, shape = np.dtype(_TENSORS[about["dtype"]]), tuple(int(s) for s in about["shape"])
        start, end = about["data_offsets"]
        if end - start != math.prod(shape) * dtype.itemsize or 8 + length + end > path.stat().st_size:
            raise ValueError("its data are shorter than its header says")
        if end == start:
            raise BadInput(f"{path.name} must hold a matrix that is not empty, but {name} has the shape {shape}.")
        return np.memmap(path, dtype, "r", offset=8 + length + start, shape=shape)


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
