"""Embeddings from files: a matrix whose rows are read when they are needed, never all at once.

`.npy` and `.safetensors` are mapped while rows are read; archives, tables and containers are streamed once into an
unnamed temporary file and mapped from there; a folder of shards is its files in the order of their names. Nothing is
unpickled, and no file is held open between two looks.

A row of a table with an empty cell is refused, unless such rows are to be left out (`gaps="drop"`): then rows are left
out of all files that are compared, and the result says how many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from zhat.errors import BadInput, UnknownName
from zhat.files.arrays import OnDisk, Rows, Spool, chosen, map_npy, map_npz, map_safetensors, npz_names
from zhat.files.containers import CONTAINERS, container_shapes, map_container
from zhat.files.ids import in_common, row_ids
from zhat.files.tables import BLOCK, TABLES, ending, read_rows

KNOWN = (".npy", ".npz", ".safetensors", *TABLES, *CONTAINERS)
GAPS = ("refuse", "drop")
"""What may be done about rows of a table that have an empty cell."""


class Source(Protocol):
    """Where the rows of a matrix come from."""

    def __call__(self, which: Any) -> Rows:
        """The rows of a slice or of an index array, as float32 or float64."""

    def stored(self, which: Any) -> Rows:
        """The same rows as they are stored, where all are stored alike: two bytes without a type are bfloat16."""

    def part(self, start: int, stop: int) -> Source:
        """Some neighbouring rows, in a form that another process can read: where they lie, or the rows themselves."""

    @property
    def nbytes(self) -> int:
        """How many bytes of rows it holds in memory; none of those that lie in files."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """A matrix of embeddings on disk or in memory.

    Attributes:
        name: for messages and pages.
        rows: how many.
        dim: columns.
        precision: as stored: float16, bfloat16, float32 or float64.
        take: gives the rows of a slice or of an index array, as float32 or float64, `(rows, dim)`.
        ids: one identifier for each row, where rows have them.
        kept: the numbers that these rows have in their file, where others were left out; None where none was.
        left_out: how many rows were left out, because they have an empty cell.
        first: the number of the first row, for messages, where these are some rows of a larger matrix.

    Example:
        >>> embeddings(np.eye(3), name="corners").rows
        3
    """

    name: str
    rows: int
    dim: int
    precision: str
    take: Source
    ids: Rows | None = None
    kept: Rows | None = None
    left_out: int = 0
    first: int = 0

    def block(self, which: Any) -> Rows:
        """Some rows, all of them finite."""
        found = self.take(which)
        if not np.isfinite(found.sum(dtype=np.float64)):
            bad = ~np.isfinite(found)
            if bad.any():
                row, column = (int(i[0]) for i in np.nonzero(bad))
                row = row + (which.start or 0) if isinstance(which, slice) else int(which[row])
                raise BadInput(
                    f"{self.name} must be finite, but row {self.first + row}, column {column} is NaN or infinite. "
                    "Remove such rows or repair them."
                )
        return found

    def blocks(self, size: int = BLOCK) -> Iterator[Rows]:
        """All rows, some at a time."""
        for start in range(0, self.rows, size):
            yield self.block(slice(start, min(start + size, self.rows)))

    def part(self, start: int, stop: int) -> Embeddings:
        """Some neighbouring rows, which another process can read; their ids stay behind."""
        return replace(
            self, rows=stop - start, take=self.take.part(start, stop), ids=None, kept=None, first=self.first + start
        )


def embeddings(
    source: Any, *, key: str | None = None, ids: Any = None, name: str = "", gaps: str = "refuse"
) -> Embeddings:
    """Embeddings from an array, a file or a folder of shards.

    Args:
        source: an array, tensor or data frame `(rows, dim)`; or the path of a `.npy`, `.npz`, `.safetensors`, `.csv`,
            `.tsv`, `.csv.gz`, `.parquet`, `.arrow`, `.feather`, `.h5`, `.mat` or `.zarr` file, or of a folder of them.
        key: which array of a file that holds several; not needed where there is one matrix.
        ids: identifiers of the rows: a list, a `.npy` or text file, or the name of a key or column in `source`.
        name: for messages; a file's own name if empty.
        gaps: what to do about rows of a table with an empty cell: "refuse" or "drop".
    """
    if gaps not in GAPS:
        raise UnknownName("way to treat empty cells", gaps, GAPS)
    if isinstance(source, Embeddings):
        return source
    if not isinstance(source, str | Path):
        found = _from_array(_as_numpy(source), name or "an array")
        return found if ids is None else replace(found, ids=row_ids(ids, found.rows, found.name))
    path = Path(source)
    inside = ids if isinstance(ids, str) and not Path(ids).exists() else None
    if not path.exists():
        raise BadInput(f"there is no file {path}. Give embeddings as {', '.join(KNOWN)} or a folder of such files.")
    read = _folder if path.is_dir() and ending(path) not in CONTAINERS else _file
    found = replace(read(path, key, inside, gaps, Spool()), name=name or path.name)
    if ids is None or inside:
        return found
    given = row_ids(ids, found.rows + found.left_out, found.name)
    return replace(found, ids=given if found.kept is None else given[found.kept])


def joined(*sources: Embeddings) -> tuple[Embeddings, ...]:
    """All of them with the same rows in the same order: by their ids where all have them, else as they come."""
    ids = [one.ids for one in sources if one.ids is not None]
    if len(ids) == len(sources):  # in the order of the first file, which is read from start to end
        return tuple(map(_picked, sources, in_common(ids, [one.name for one in sources])))
    first = sources[0]
    for other in sources[1:]:
        if first.rows + first.left_out != other.rows + other.left_out:
            raise BadInput(
                f"{first.name} has {first.rows + first.left_out} rows and {other.name} has "
                f"{other.rows + other.left_out}; they are paired row by row. Give --ids to join rows of different "
                "order or number."
            )
    if any(one.left_out for one in sources):  # the rows that all of them have kept
        numbers = [np.arange(one.rows) if one.kept is None else one.kept for one in sources]
        return tuple(map(_picked, sources, in_common(numbers, [one.name for one in sources])))
    return sources


def _picked(source: Embeddings, rows: Rows) -> Embeddings:
    if len(rows) == source.rows and np.array_equal(rows, np.arange(len(rows))):
        return source
    ids = None if source.ids is None else source.ids[rows]
    kept = rows if source.kept is None else source.kept[rows]
    return replace(source, rows=len(rows), take=_Picked(source.take, rows), ids=ids, kept=kept)


@dataclass(frozen=True, eq=False)
class _Picked:
    """Some rows of another source."""

    source: Source
    rows: Rows

    def __call__(self, which: Any) -> Rows:
        return self.source(self.rows[which])

    def stored(self, which: Any) -> Rows:
        return self.source.stored(self.rows[which])

    def part(self, start: int, stop: int) -> Source:
        rows = self.rows[start:stop]
        least, most = int(rows.min()), int(rows.max()) + 1
        if most - least <= 2 * len(rows):  # they lie close together: a window of the source holds them
            return _Picked(self.source.part(least, most), rows - least)
        return _Array(self.stored(slice(start, stop)))

    @property
    def nbytes(self) -> int:
        return self.source.nbytes + self.rows.nbytes


def _as_numpy(values: Any) -> Rows:
    if hasattr(values, "detach"):
        tensor = values.detach().cpu()
        values = (tensor.float() if tensor.is_floating_point() and tensor.element_size() == 2 else tensor).numpy()
    return np.asarray(values)


def _from_array(values: Rows | OnDisk, name: str) -> Embeddings:
    """Embeddings from an array in memory or on disk; two bytes without a type are bfloat16."""
    dtype, shape = values.dtype, values.shape
    halved = dtype.kind == "V" and dtype.itemsize == 2 and dtype.names is None
    if not halved and dtype.kind not in "fiub":
        raise BadInput(f"{name} must hold real numbers, but its type is {dtype}. Save it as float32.")
    if len(shape) != 2 or 0 in shape:
        raise BadInput(f"{name} must be a matrix (rows, dim) that is not empty, but its shape is {shape}.")
    precision = "bfloat16" if halved else dtype.name if dtype.kind == "f" and dtype.itemsize <= 8 else "float64"
    return Embeddings(name, shape[0], shape[1], precision, _Array(values))


@dataclass(frozen=True, eq=False)
class _Array:
    """The rows of one array, in memory or on disk."""

    values: Rows | OnDisk

    def __call__(self, which: Any) -> Rows:
        some, dtype = self.values[which], self.values.dtype
        if dtype.kind == "V":
            return np.asarray((some.view("<u2").astype(np.uint32) << 16).view(np.float32))
        wide = np.float32 if dtype.itemsize <= 4 and dtype.kind == "f" else float
        return np.array(some, dtype=wide, order="C", subok=False)  # a copy, which nobody else changes

    def stored(self, which: Any) -> Rows:
        dtype = self.values.dtype
        if dtype.kind == "V" or (dtype.kind == "f" and dtype.itemsize <= 8 and dtype.isnative):
            some = self.values[which]
            return some if isinstance(self.values, OnDisk) else np.array(some, subok=False)  # a copy in either case
        return self(which)

    def part(self, start: int, stop: int) -> Source:
        return _Array(self.values.part(start, stop) if isinstance(self.values, OnDisk) else self.values[start:stop])

    @property
    def nbytes(self) -> int:
        return 0 if isinstance(self.values, OnDisk) else self.values.nbytes


def _file(path: Path, key: str | None, ids: str | None, gaps: str, spool: Spool) -> Embeddings:
    kind = ending(path)
    if kind not in KNOWN:
        raise BadInput(f"{path.name} must be one of {', '.join(KNOWN)}, but it ends in {path.suffix or 'nothing'!r}.")
    if ids is not None and kind in (".npy", ".safetensors"):
        raise BadInput(f"{path.name} holds no ids named {ids!r}, and there is no such file. Give a file of ids.")
    if kind == ".npy":
        return _from_array(map_npy(path), path.name)
    if kind == ".safetensors":
        return _from_array(map_safetensors(path, key), path.name)
    if kind in TABLES:
        return _table(path, ids, gaps, spool)
    if kind == ".npz":
        names = npz_names(path)
        wanted = [chosen(key, [n for n in names if n != ids], path)]
        values, *named = map_npz(path, wanted if ids is None else [*wanted, chosen(ids, names, path)], spool)
    else:
        shapes = container_shapes(path)
        matrices = [n for n, shape in shapes.items() if n != ids and (key is not None or len(shape) == 2)]
        wanted = [chosen(key, matrices, path)]
        values, *named = map_container(path, wanted if ids is None else [*wanted, chosen(ids, [*shapes], path)], spool)
    found = _from_array(values, path.name)
    return replace(found, ids=row_ids(named[0].mapped(), found.rows, path.name)) if named else found


def _folder(path: Path, key: str | None, ids: str | None, gaps: str, spool: Spool) -> Embeddings:
    """The shards of a folder, one below the other in the order of their names."""
    files = [p for p in sorted(path.iterdir()) if ending(p) in KNOWN]
    if not files:
        raise BadInput(f"the folder {path} holds no embeddings. Put {', '.join(KNOWN)} files there.")
    shards = [_file(p, key, ids, gaps, spool) for p in files]
    if len({s.dim for s in shards}) > 1:
        sizes = ", ".join(f"{s.name} {s.dim}" for s in shards[:4])
        raise BadInput(f"the shards of {path} must have as many columns each, but they have: {sizes}.")
    named = [s.ids for s in shards if s.ids is not None]
    together = np.concatenate(named) if len(named) == len(shards) else None
    coarsest = max((s.precision for s in shards), key=("float64", "float32", "float16", "bfloat16").index)
    found = Embeddings(path.name, sum(s.rows for s in shards), shards[0].dim, coarsest, _stacked(shards), together)
    if not any(s.left_out for s in shards):
        return found
    before = np.cumsum([0, *(s.rows + s.left_out for s in shards)])
    kept = [np.arange(s.rows) if s.kept is None else s.kept for s in shards]
    numbers = np.concatenate([own + start for own, start in zip(kept, before, strict=False)])
    return replace(found, kept=numbers, left_out=sum(s.left_out for s in shards))


@dataclass(frozen=True, eq=False)
class _Stacked:
    """The rows of several sources, one below the other.

    Attributes:
        sources: where they come from.
        ends: the number of rows down to the end of each.
        dim: columns.
        wide: the type that holds the rows of all.
        alike: whether all are stored in one type.
    """

    sources: tuple[Source, ...]
    ends: Rows
    dim: int
    wide: Any
    alike: bool

    def __call__(self, which: Any) -> Rows:
        if isinstance(which, slice):
            first, last, step = which.indices(int(self.ends[-1]))
            if step == 1:  # most looks are at neighbouring rows
                some = [source(rows) for source, rows in self._neighbours(first, last)]
                return np.concatenate([np.empty((0, self.dim), self.wide), *some], dtype=self.wide)
            which = np.arange(first, last, step)
        rows = np.asarray(which)
        shard = np.searchsorted(self.ends, rows, side="right")
        out = np.empty((len(rows), self.dim), self.wide)
        for i in np.unique(shard):
            here = shard == i
            out[here] = self.sources[i](rows[here] - (self.ends[i - 1] if i else 0))
        return out

    def stored(self, which: Any) -> Rows:
        if self.alike and isinstance(which, slice):
            first, last, step = which.indices(int(self.ends[-1]))
            some = [source.stored(rows) for source, rows in self._neighbours(first, last)] if step == 1 else []
            if some:
                return some[0] if len(some) == 1 else np.concatenate(some)
        return self(which)

    def part(self, start: int, stop: int) -> Source:
        cut = [(source.part(rows.start, rows.stop), rows) for source, rows in self._neighbours(start, stop)]
        ends = np.cumsum([rows.stop - rows.start for _, rows in cut])
        return replace(self, sources=tuple(source for source, _ in cut), ends=ends)

    @property
    def nbytes(self) -> int:
        return sum(source.nbytes for source in self.sources)

    def _neighbours(self, first: int, last: int) -> Iterator[tuple[Source, slice]]:
        """The sources that hold the rows from `first` to before `last`, and which rows of each."""
        start = 0
        for source, end in zip(self.sources, self.ends.tolist(), strict=True):
            if start < last and first < end:
                yield source, slice(max(first, start) - start, min(last, end) - start)
            start = end


def _stacked(shards: list[Embeddings]) -> _Stacked:
    """Shards one below the other."""
    wide = np.float32 if all(s.take(slice(0, 1)).dtype == np.float32 for s in shards) else np.float64
    alike = len({s.take.stored(slice(0, 1)).dtype for s in shards}) == 1
    return _Stacked(tuple(s.take for s in shards), np.cumsum([s.rows for s in shards]), shards[0].dim, wide, alike)


def _table(path: Path, ids: str | None, gaps: str, spool: Spool) -> Embeddings:
    """A table of columns, written once into the spool in its own precision; ids are kept apart."""
    names: list[str] = []
    rows, start, width, kept = 0, 0, 0, []
    dtype = np.dtype(float)
    for some, some_ids in read_rows(path, ids):
        if rows and (some.shape[1], some.dtype) != (width, dtype):
            raise BadInput(f"{path.name} must have columns of one type, but they change at row {rows}.")
        empty: Rows = np.asarray(np.isnan(some).any(1))
        if empty.any() and gaps == "refuse":
            row = int(np.flatnonzero(empty)[0])
            column = int(np.flatnonzero(np.isnan(some[row]))[0])
            raise BadInput(
                f"{path.name} has an empty cell (row {rows + row}, column {column}; row 0 is the first). Fill it, or "
                "leave such rows out of all files with --gaps drop."
            )
        place = spool.write(np.ascontiguousarray(some[~empty]).tobytes())
        start = start if rows else place
        names.extend(name for name, gap in zip(some_ids, empty, strict=False) if not gap)
        kept.append(rows + np.flatnonzero(~empty))
        rows, width, dtype = rows + len(some), some.shape[1], some.dtype
    numbers = np.concatenate(kept) if kept else np.empty(0, dtype=np.int64)
    if rows == 0:
        raise BadInput(f"{path.name} must hold rows of numbers, but it is empty.")
    if width == 0:
        raise BadInput(f"{path.name} must hold columns of numbers, but there are none besides the ids.")
    if len(numbers) == 0:
        raise BadInput(f"every row of {path.name} has an empty cell.")
    found = _from_array(spool.at(start, dtype, (len(numbers), width)), path.name)
    if len(numbers) < rows:
        found = replace(found, kept=numbers, left_out=rows - len(numbers))
    return found if ids is None else replace(found, ids=np.array(names))
