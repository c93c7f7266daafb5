"""Embeddings from files: a matrix whose rows are read when they are needed, never all at once.

`.npy` and `.safetensors` are memory-mapped; `.npz`, `.csv`, `.parquet`, `.arrow` and `.feather` are streamed once into
an unnamed temporary file and mapped from there; a folder of shards is its files in the order of their names. Nothing is
unpickled.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from zhat.errors import BadInput
from zhat.files.arrays import Rows, chosen, npz_names, read_npy, read_npz, read_safetensors
from zhat.files.ids import in_common, row_ids
from zhat.files.tables import BLOCK, TABLES, read_rows

KNOWN = (".npy", ".npz", ".safetensors", *TABLES)


@dataclass(frozen=True, eq=False)
class Embeddings:
    """A matrix of embeddings on disk or in memory.

    Attributes:
        name: for messages and pages.
        rows: how many.
        dim: columns.
        precision: as stored: float16, bfloat16, float32 or float64.
        take: the rows of a slice or of an index array, as float32 or float64, `(rows, dim)`.
        ids: one identifier for each row, where rows have them.

    Example:
        >>> embeddings(np.eye(3), name="corners").rows
        3
    """

    name: str
    rows: int
    dim: int
    precision: str
    take: Callable[[Any], Rows]
    ids: Rows | None = None

    def block(self, which: Any) -> Rows:
        """Some rows, all of them finite."""
        found = self.take(which)
        if not np.isfinite(found.sum(dtype=np.float64)):
            bad = ~np.isfinite(found)
            if bad.any():
                row, column = (int(i[0]) for i in np.nonzero(bad))
                row = row + (which.start or 0) if isinstance(which, slice) else int(which[row])
                raise BadInput(
                    f"{self.name} must be finite, but row {row}, column {column} is NaN or infinite. "
                    "Remove such rows or repair them."
                )
        return found

    def blocks(self, size: int = BLOCK) -> Iterator[Rows]:
        """All rows, some at a time."""
        for start in range(0, self.rows, size):
            yield self.block(slice(start, min(start + size, self.rows)))


def embeddings(source: Any, *, key: str | None = None, ids: Any = None, name: str = "") -> Embeddings:
    """Embeddings from an array, a file or a folder of shards.

    Args:
        source: an array or tensor `(rows, dim)`, or the path of a `.npy`, `.npz`, `.safetensors`, `.csv`, `.parquet`,
            `.arrow` or `.feather` file, or of a folder that holds such files.
        key: which array of a `.npz` or `.safetensors` file; not needed where there is one matrix.
        ids: identifiers of the rows: a list, a `.npy` or text file, or the name of a key or column in `source`.
        name: for messages; a file's own name if empty.
    """
    if isinstance(source, Embeddings):
        return source
    if not isinstance(source, str | Path):
        found = _from_array(_as_numpy(source), name or "an array")
        return found if ids is None else replace(found, ids=row_ids(ids, found.rows, found.name))
    path = Path(source)
    inside = ids if isinstance(ids, str) and not Path(ids).exists() else None
    if not path.exists():
        raise BadInput(f"there is no file {path}. Give embeddings as {', '.join(KNOWN)} or a folder of such files.")
    found = replace((_folder if path.is_dir() else _file)(path, key, inside), name=name or path.name)
    return found if ids is None or inside else replace(found, ids=row_ids(ids, found.rows, found.name))


def joined(*sources: Embeddings) -> tuple[Embeddings, ...]:
    """All of them with the same rows in the same order: by their ids where all have them, else as they come."""
    ids = [one.ids for one in sources if one.ids is not None]
    if len(ids) == len(sources):  # in the order of the first file, which is read from start to end
        return tuple(map(_picked, sources, in_common(ids, [one.name for one in sources])))
    first = sources[0]
    for other in sources[1:]:
        if first.rows != other.rows:
            raise BadInput(
                f"{first.name} has {first.rows} rows and {other.name} has {other.rows}; they are paired row by "
                "row. Give --ids to join rows of different order or number."
            )
    return sources


def _picked(source: Embeddings, rows: Rows) -> Embeddings:
    if len(rows) == source.rows and np.array_equal(rows, np.arange(len(rows))):
        return source
    ids = None if source.ids is None else source.ids[rows]
    return replace(source, rows=len(rows), take=lambda which: source.take(rows[which]), ids=ids)


def _as_numpy(values: Any) -> Rows:
    if hasattr(values, "detach"):
        tensor = values.detach().cpu()
        values = (tensor.float() if tensor.is_floating_point() and tensor.element_size() == 2 else tensor).numpy()
    return np.asarray(values)


def _from_array(values: Rows, name: str) -> Embeddings:
    """Embeddings from an array, mapped or not; two bytes without a type are bfloat16."""
    halved = values.dtype.kind == "V" and values.dtype.itemsize == 2 and values.dtype.names is None
    if halved:
        values = values.view("<u2")
    elif values.dtype.kind not in "fiub":
        raise BadInput(f"{name} must hold real numbers, but its type is {values.dtype}. Save it as float32.")
    if values.ndim != 2 or 0 in values.shape:
        raise BadInput(f"{name} must be a matrix (rows, dim) that is not empty, but its shape is {values.shape}.")
    wide = np.float32 if values.dtype.itemsize <= 4 and values.dtype.kind == "f" else float

    def take(which: Any) -> Rows:
        if halved:
            some = np.asarray((values[which].astype(np.uint32) << 16).view(np.float32))
        else:
            some = np.array(values[which], dtype=wide, order="C", subok=False)  # a copy: mapped rows are read-only
        _let_go(values)
        return some

    precision = "bfloat16" if halved else values.dtype.name if values.dtype.kind == "f" else "float64"
    return Embeddings(name, values.shape[0], values.shape[1], precision, take)


def _let_go(values: Rows) -> None:
    """Give pages that were read back to the system, which would otherwise count the whole file as our memory."""
    mapped = getattr(values, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _file(path: Path, key: str | None, ids: str | None) -> Embeddings:
    if path.suffix not in KNOWN:
        raise BadInput(f"{path.name} must be one of {', '.join(KNOWN)}, but it ends in {path.suffix or 'nothing'!r}.")
    if ids is not None and path.suffix in (".npy", ".safetensors"):
        raise BadInput(f"{path.name} holds no ids named {ids!r}, and there is no such file. Give a file of ids.")
    if path.suffix == ".npy":
        return _from_array(read_npy(path), path.name)
    if path.suffix == ".safetensors":
        return _from_array(read_safetensors(path, key), path.name)
    if path.suffix == ".npz":
        names = npz_names(path)
        wanted = [chosen(key, [n for n in names if n != ids], path)]
        values, *named = read_npz(path, wanted if ids is None else [*wanted, chosen(ids, names, path)])
        found = _from_array(values, path.name)
        return replace(found, ids=row_ids(named[0], found.rows, path.name)) if named else found
    return _table(path, ids)


def _folder(path: Path, key: str | None, ids: str | None) -> Embeddings:
    """The shards of a folder, one below the other in the order of their names."""
    files = [p for p in sorted(path.iterdir()) if p.suffix in KNOWN]
    if not files:
        raise BadInput(f"the folder {path} holds no embeddings. Put {', '.join(KNOWN)} files there.")
    shards = [_file(p, key, ids) for p in files]
    if len({s.dim for s in shards}) > 1:
        sizes = ", ".join(f"{s.name} {s.dim}" for s in shards[:4])
        raise BadInput(f"the shards of {path} must have as many columns each, but they have: {sizes}.")
    ends = np.cumsum([s.rows for s in shards])

    def take(which: Any) -> Rows:
        rows = np.arange(int(ends[-1]))[which]
        shard = np.searchsorted(ends, rows, side="right")
        out = np.empty((len(rows), shards[0].dim), np.result_type(*(s.take(slice(0, 1)).dtype for s in shards)))
        for i in np.unique(shard):
            here = shard == i
            out[here] = shards[i].take(rows[here] - (ends[i] - shards[i].rows))
        return out

    named = [s.ids for s in shards if s.ids is not None]
    together = np.concatenate(named) if len(named) == len(shards) else None
    coarsest = max((s.precision for s in shards), key=("float64", "float32", "float16", "bfloat16").index)
    return Embeddings(path.name, int(ends[-1]), shards[0].dim, coarsest, take, together)


def _table(path: Path, ids: str | None) -> Embeddings:
    """A table of columns, written once into a temporary file in its own precision; ids are kept apart."""
    names: list[str] = []
    rows = 0
    with tempfile.TemporaryFile() as spool:
        for some, some_ids in read_rows(path, ids):
            names.extend(some_ids)
            rows, width, dtype = rows + len(some), some.shape[1], some.dtype
            spool.write(np.ascontiguousarray(some).tobytes())
        if rows == 0:
            raise BadInput(f"{path.name} must hold rows of numbers, but it is empty.")
        if width == 0:
            raise BadInput(f"{path.name} must hold columns of numbers, but there are none besides the ids.")
        spool.flush()
        mapped = np.memmap(spool, dtype=dtype, mode="r", shape=(rows, width))
    found = _from_array(mapped, path.name)
    return found if ids is None else replace(found, ids=np.array(names))
