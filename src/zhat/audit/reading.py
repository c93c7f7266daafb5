"""Embeddings from files: a matrix whose rows are read when they are needed, never all at once.

`.npy` and `.safetensors` are memory-mapped; `.npz`, `.csv`, `.parquet`, `.arrow` and `.feather` are streamed once into
an unnamed temporary file and mapped from there; a folder of shards is its files in the order of their names. Nothing is
unpickled.
"""

from __future__ import annotations

import csv
import json
import math
import mmap
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from zhat.errors import BadInput, MissingExtra, UnknownName

BLOCK = 2**13
"""Rows held at a time."""

KNOWN = (".npy", ".npz", ".safetensors", ".csv", ".parquet", ".arrow", ".feather")
_TENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "bfloat16"}

Rows = np.ndarray[Any, Any]


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
        return _named(_from_array(_as_numpy(source, name or "an array"), name or "an array"), ids)
    path = Path(source)
    inside = ids if isinstance(ids, str) and not Path(ids).exists() else None
    if path.is_dir():
        found = _folder(path, key, inside)
    elif not path.exists():
        raise BadInput(f"there is no file {path}. Give embeddings as {', '.join(KNOWN)} or a folder of such files.")
    else:
        found = _file(path, key, inside)
    found = replace(found, name=name or path.name)
    return found if inside is not None else _named(found, ids)


def joined(*sources: Embeddings) -> tuple[Embeddings, ...]:
    """All of them with the same rows in the same order: by their ids where all have them, else as they come."""
    first, *others = sources
    if any(one.ids is None for one in sources):
        for other in others:
            if first.rows != other.rows:
                raise BadInput(
                    f"{first.name} has {first.rows} rows and {other.name} has {other.rows}; they are paired row by "
                    "row. Give --ids to join rows of different order or number."
                )
        return sources
    ids = [np.asarray(one.ids) for one in sources]
    for one, own in zip(sources, ids, strict=True):
        if len(np.unique(own)) < one.rows:
            raise BadInput(f"the ids of {one.name} must be unique, but some occur twice. Give one id for each row.")
    if len({own.dtype.kind for own in ids}) > 1:
        ids = [own.astype(str) for own in ids]
    common = ids[0]
    for other, own in zip(others, ids[1:], strict=True):
        common = common[np.isin(common, own)]  # in the order of the first file, which is read from start to end
        if len(common) == 0:
            raise BadInput(f"no id of {first.name} occurs in {other.name}. Are these ids of the same rows?")
    return tuple(_picked(one, _places(own, common)) for one, own in zip(sources, ids, strict=True))


def _places(ids: Rows, wanted: Rows) -> Rows:
    """Where the wanted ids stand, each of which occurs once."""
    order = np.argsort(ids)
    places: Rows = order[np.searchsorted(ids, wanted, sorter=order)]
    return places


def _picked(source: Embeddings, rows: Rows) -> Embeddings:
    if len(rows) == source.rows and np.array_equal(rows, np.arange(len(rows))):
        return source
    ids = None if source.ids is None else np.asarray(source.ids)[rows]
    return replace(source, rows=len(rows), take=lambda which: source.take(rows[which]), ids=ids)


def _named(source: Embeddings, ids: Any) -> Embeddings:
    if ids is None:
        return source
    if isinstance(ids, str | Path):
        path = Path(ids)
        if not path.exists():
            raise BadInput(f"the ids of {source.name} must be a file, a key or a column, but {ids} is none of them.")
        found = _npy(path) if path.suffix == ".npy" else np.array(path.read_text(encoding="utf-8").split())
    else:
        found = np.asarray(ids)
    found = np.ravel(found)
    if len(found) != source.rows or found.dtype.kind not in "iuUS":
        raise BadInput(
            f"{source.name} needs one id for each of its {source.rows} rows, whole numbers or text, but "
            f"{len(found)} of type {found.dtype} came."
        )
    return replace(source, ids=found)


def _as_numpy(values: Any, name: str) -> Rows:
    if hasattr(values, "detach"):
        tensor = values.detach().cpu()
        values = (tensor.float() if tensor.is_floating_point() and tensor.element_size() == 2 else tensor).numpy()
    return np.asarray(values)


def _from_array(values: Rows, name: str, *, precision: str | None = None) -> Embeddings:
    """Embeddings from an array, mapped or not; two bytes without a type are bfloat16."""
    if values.dtype.kind == "V" and values.dtype.itemsize == 2 and values.dtype.names is None:
        values, precision = values.view("<u2"), "bfloat16"
    if precision != "bfloat16" and values.dtype.kind not in "fiub":
        raise BadInput(f"{name} must hold real numbers, but its type is {values.dtype}. Save it as float32.")
    if values.ndim != 2 or 0 in values.shape:
        raise BadInput(f"{name} must be a matrix (rows, dim) that is not empty, but its shape is {values.shape}.")
    wide = np.float32 if precision == "bfloat16" or (values.dtype.itemsize <= 4 and values.dtype.kind == "f") else float
    precision = precision or (values.dtype.name if values.dtype.kind == "f" else "float64")

    def take(which: Any) -> Rows:
        if precision == "bfloat16":
            some = np.asarray((values[which].astype(np.uint32) << 16).view(np.float32))
        else:
            some = np.array(values[which], dtype=wide, order="C", subok=False)  # a copy: mapped rows are read-only
        _let_go(values)
        return some

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
        return _from_array(_npy(path), path.name)
    if path.suffix == ".npz":
        return _npz(path, key, ids)
    if path.suffix == ".safetensors":
        return _safetensors(path, key)
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


def _npy(path: Path) -> Rows:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, SyntaxError, TypeError) as error:
        raise BadInput(
            f"{path.name} must hold one array of numbers as numpy.save writes it, but it cannot be read ({error})."
        ) from None
    if not isinstance(found, np.ndarray):
        found.close()
        raise BadInput(f"{path.name} must hold one array, but it is an archive of several. Name it .npz.")
    return found


def _npz(path: Path, key: str | None, ids: str | None) -> Embeddings:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n.removesuffix(".npy") for n in archive.namelist()]
            found = _from_array(_member(archive, _chosen(key, [n for n in names if n != ids], path)), path.name)
            if ids is not None:
                found = _named(found, _member(archive, _chosen(ids, names, path)))
            return found
    except (zipfile.BadZipFile, ValueError, EOFError, SyntaxError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"{path.name} must be an archive as numpy.savez writes it, but it cannot be read ({error})."
        ) from None


def _member(archive: zipfile.ZipFile, name: str) -> Rows:
    """One array of an archive, copied into a temporary file a piece at a time."""
    with archive.open(f"{name}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(stream)
        if dtype.hasobject:
            raise ValueError("it holds Python objects, which zhat never loads")
        size = math.prod(shape) * dtype.itemsize
        pieces = iter(lambda: stream.read(2**24), b"")
        return _spooled(pieces, dtype, shape, size, order="F" if by_columns else "C")


def _spooled(pieces: Iterable[bytes], dtype: Any, shape: tuple[int, ...], size: int, order: Any = "C") -> Rows:
    """A mapped array from pieces of its bytes; the file has no name and goes when the array does."""
    with tempfile.TemporaryFile() as spool:
        written = sum(spool.write(piece) for piece in pieces)
        if written != size:
            raise ValueError(f"{size} bytes were promised and {written} came")
        if size == 0:
            return np.empty(shape, dtype)
        spool.flush()
        return np.memmap(spool, dtype=dtype, mode="r", shape=shape, order=order)


def _safetensors(path: Path, key: str | None) -> Embeddings:
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= 10**8:
                raise ValueError("its header has no sensible length")
            header = json.loads(file.read(length))
        tensors = {k: v for k, v in header.items() if k != "__metadata__"}
        chosen = _chosen(key, [k for k, v in tensors.items() if key is not None or len(v["shape"]) == 2], path)
        about = tensors[chosen]
        if about["dtype"] not in _TENSORS:
            raise ValueError(f"{chosen} is of type {about['dtype']}, not a float")
        stored = _TENSORS[about["dtype"]]
        dtype, shape = np.dtype("<u2" if stored == "bfloat16" else stored), tuple(int(s) for s in about["shape"])
        start, end = about["data_offsets"]
        if end - start != math.prod(shape) * dtype.itemsize or 8 + length + end > path.stat().st_size:
            raise ValueError("its data are shorter than its header says")
        mapped = np.memmap(path, dtype=dtype, mode="r", offset=8 + length + start, shape=shape) if end > start else None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path.name} must be a safetensors file, but it cannot be read ({error}).") from None
    if mapped is None:
        raise BadInput(f"{path.name} must hold a matrix that is not empty, but {chosen} has the shape {shape}.")
    return _from_array(mapped, path.name, precision="bfloat16" if stored == "bfloat16" else None)


def _chosen(key: str | None, names: list[str], path: Path) -> str:
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


def _table(path: Path, ids: str | None) -> Embeddings:
    """A table of columns, written once into a temporary file in its own precision; ids are kept apart."""
    names: list[str] = []
    rows = 0
    with tempfile.TemporaryFile() as spool:
        for some, some_ids in _csv(path, ids) if path.suffix == ".csv" else _arrow(path, ids):
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


def _csv(path: Path, ids: str | None) -> Iterator[tuple[Rows, list[str]]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.reader(file)
            first = next(lines, [])
            place = None
            if ids is not None:
                if ids not in first:
                    raise UnknownName(f"column in {path.name}", ids, first)
                place = first.index(ids)
            width = len(first)
            waiting = [first] if first and ids is None and all(_is_number(cell) for cell in first) else []
            number = 1
            for number, line in enumerate(lines, start=2):
                if len(line) != width:
                    raise BadInput(f"{path.name} must have {width} columns, but line {number} has {len(line)}.")
                waiting.append(line)
                if len(waiting) == BLOCK:
                    yield _numbers(waiting, place, path, number)
                    waiting = []
            if waiting:
                yield _numbers(waiting, place, path, number)
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadInput(f"{path.name} must be a table of numbers, but it cannot be read ({error}).") from None


def _numbers(lines: list[list[str]], place: int | None, path: Path, last: int) -> tuple[Rows, list[str]]:
    ids = [] if place is None else [line[place] for line in lines]
    cells = lines if place is None else [line[:place] + line[place + 1 :] for line in lines]
    try:
        return np.array(cells, dtype=np.float64), ids
    except ValueError as error:
        raise BadInput(
            f"{path.name} must hold numbers, but between lines {last - len(lines) + 1} and {last} {error}."
        ) from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _arrow(path: Path, ids: str | None) -> Iterator[tuple[Rows, list[str]]]:
    """Numeric columns side by side, or columns of lists, from a Parquet or Arrow file."""
    try:
        import pyarrow as arrow
        import pyarrow.ipc as ipc
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "reading Parquet and Arrow files") from None
    try:
        with path.open("rb") as source:
            if path.suffix == ".parquet":
                file = parquet.ParquetFile(source)
                columns, batches = file.schema_arrow.names, file.iter_batches(batch_size=BLOCK)
            else:
                file = ipc.open_file(source) if source.read(6) == b"ARROW1" else ipc.open_stream(_rewound(source))
                columns, batches = file.schema.names, _record_batches(file)
            if ids is not None and ids not in columns:
                raise UnknownName(f"column in {path.name}", ids, columns)
            for batch in (b for b in batches if len(b)):
                some_ids = [] if ids is None else [str(i) for i in batch.column(columns.index(ids)).to_pylist()]
                values = [_cells(batch.column(i), c) for i, c in enumerate(columns) if c != ids]
                yield np.concatenate(values, axis=1) if values else np.empty((len(batch), 0)), some_ids
    except (arrow.ArrowException, ValueError, OSError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path.name} must hold columns of numbers, but it cannot be read ({error}).") from None


def _rewound(source: Any) -> Any:
    source.seek(0)
    return source


def _record_batches(file: Any) -> Iterator[Any]:
    if hasattr(file, "num_record_batches"):
        return (file.get_batch(i) for i in range(file.num_record_batches))
    return iter(file)


def _cells(column: Any, name: str) -> Rows:
    """A column of numbers, or of lists of as many numbers each, `(rows, width)`; a missing number is NaN."""
    width = 1
    if hasattr(column.type, "value_type") and hasattr(column, "flatten"):
        if column.null_count:
            raise ValueError(f"column {name} lacks {column.null_count} lists")
        lengths = {len(column.flatten()) // len(column)}
        if hasattr(column, "value_lengths"):
            lengths = set(column.value_lengths().to_pylist())
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError(f"the lists of column {name} must be of one length, not of {sorted(lengths)[:4]}")
        (width,), column = lengths, column.flatten()
    kind = str(column.type)
    if not kind.startswith(("int", "uint", "float", "double", "halffloat", "bool")):
        raise ValueError(f"column {name} is of type {kind}")
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype == object or values.dtype.kind != "f":
        values = values.astype(np.float64)
    found: Rows = values.reshape(-1, width)
    return found
