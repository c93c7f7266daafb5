"""Tables from .csv, .tsv, .parquet, .arrow and .feather files: rows of numbers, some at a time, or named columns.

The first line of a CSV names its columns if no cell of it is a number or a word for a missing value (NA, null, an empty
cell and the like). It is the first row if every cell is a number. A line that is neither is refused, unless it holds
the name of the column of ids that was asked for. A byte order mark is skipped. A `.tsv` is the same with tabs, and
either may be compressed (`.csv.gz`, `.tsv.gz`).

A cell is a gap if it is empty, if an Arrow column has no value there, or if it holds a word for a missing value in a
column of numbers. In a column of text such a word is a value like any other. Gaps come out as NaN or as empty text;
who reads a table decides what to do with rows that have one.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from zhat.errors import BadInput, MissingExtra, UnknownName
from zhat.files.arrays import Rows
from zhat.files.reading import readable

LINES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
TABLES = (*LINES, ".parquet", ".arrow", ".feather")
BLOCK = 2**13
"""Rows held at a time."""

_MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nil", "missing", "-", "?", "."}


def ending(path: Path) -> str:
    """The ending that tells the format: `.csv.gz` as a whole, in small letters."""
    suffix = path.suffix.lower()
    return path.with_suffix("").suffix.lower() + suffix if suffix == ".gz" else suffix


def read_rows(path: Path, ids: str | None = None) -> Iterator[tuple[Rows, list[str]]]:
    """Rows of numbers, a block at a time, and their ids from the column of that name; Arrow columns may be lists.

    A gap is NaN.
    """
    if ending(path) in LINES:
        with readable(path, "be a table of numbers"):
            names, lines = _csv(path, ids)
            place = _place(ids, names, path)
            number = 2 if names else 1
            while some := list(islice(lines, BLOCK)):
                yield _floats(some, place, path, number)
                number += len(some)
                some.clear()  # before the next block is read
        return
    with readable(path, "hold columns of numbers"), _arrow(path) as (names, batches):
        place = _place(ids, names, path)
        for batch in batches:
            some_ids = [] if place is None else [str(i) for i in batch.column(place).to_pylist()]
            values = [_cells(batch.column(i), name) for i, name in enumerate(names) if i != place]
            yield np.concatenate(values, axis=1) if values else np.empty((len(batch), 0)), some_ids


def read_columns(path: Path, ids: str | None = None) -> tuple[dict[str, Rows], dict[str, Rows]]:
    """Named columns, and which cells of each are gaps, each `(rows,)`.

    A column is of numbers where every cell is a number or a gap, else of text; ids are kept as they are.
    """
    if ending(path) in LINES:
        with readable(path, "be a table"):
            names, lines = _csv(path, ids)
            if not names and next(lines, None) is not None:
                raise BadInput(f"the first line of {path.name} must name the factors, but it holds numbers. Add names.")
            cells = _gathered(names, ([[cell.strip()] for cell in line] for line in lines), path)
        if not next(iter(cells.values())):
            raise BadInput(f"{path.name} must hold rows below its first line, but there are none.")
        found = [_numbers_or_text(column, text=name == ids) for name, column in cells.items()]
    else:
        kind = "a Parquet" if path.suffix == ".parquet" else "an Arrow"
        with readable(path, f"be {kind} file"), _arrow(path) as (names, batches):
            cells = _gathered(names, ([column.to_pylist() for column in batch.columns] for batch in batches), path)
            found = [_filled(column) for column in cells.values()]
    columns = {name: column for name, (column, _) in zip(cells, found, strict=True)}
    return columns, {name: gaps for name, (_, gaps) in zip(cells, found, strict=True)}


def _gathered(names: list[str], blocks: Iterator[list[list[Any]]], path: Path) -> dict[str, list[Any]]:
    """The pieces of each column one after the other."""
    if not names or len(set(names)) < len(names):
        raise BadInput(f"the first line of {path.name} must name every column, each differently.")
    found: dict[str, list[Any]] = {name: [] for name in names}
    for block in blocks:
        for column, piece in zip(found.values(), block, strict=True):
            column += piece
    return found


def _csv(path: Path, ids: str | None) -> tuple[list[str], Iterator[list[str]]]:
    """The names of the columns, none where the first line is a row, and the lines of cells that follow."""
    lines = _lines(path)
    first = [cell.strip() for cell in next(lines, [])]
    if ids is not None and ids in first:
        return first, lines
    numbers = [cell for cell in first if _is_number(cell)]
    if first and len(numbers) == len(first):
        return [], chain([first], lines)
    gaps = [cell for cell in first if cell.lower() in _MISSING]
    if numbers or gaps:
        odd = next(cell for cell in first if not _is_number(cell))
        beside = f" beside {numbers[0]!r}" if numbers else ""
        raise BadInput(
            f"the first line of {path.name} must name every column or hold numbers alone, but {odd!r} stands there"
            f"{beside}. Repair that line, or add one of names above it."
        )
    return first, lines


def _lines(path: Path) -> Iterator[list[str]]:
    tabs = ending(path).startswith(".tsv")
    with _opened(path) as file:
        width = None
        for number, line in enumerate(csv.reader(file, delimiter="\t" if tabs else ","), start=1):
            width = len(line) if width is None else width
            if len(line) != width:
                raise BadInput(f"{path.name} must have {width} columns, but line {number} has {len(line)}.")
            yield line


def _opened(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _place(ids: str | None, names: list[str], path: Path) -> int | None:
    if ids is not None and ids not in names:
        raise UnknownName(f"column in {path.name}", ids, names)
    return None if ids is None else names.index(ids)


def _floats(lines: list[list[str]], place: int | None, path: Path, first: int) -> tuple[Rows, list[str]]:
    ids = [] if place is None else [line.pop(place).strip() for line in lines]
    try:
        return np.array(lines, dtype=np.float64), ids
    except ValueError:
        lines = [["nan" if cell.strip().lower() in _MISSING else cell for cell in line] for line in lines]
    try:
        return np.array(lines, dtype=np.float64), ids
    except ValueError as error:
        last = first + len(lines) - 1
        raise BadInput(f"{path.name} must hold numbers, but between lines {first} and {last} {error}.") from None


def _numbers_or_text(cells: Sequence[str], *, text: bool) -> tuple[Rows, Rows]:
    """A column with its gaps: of numbers, where every cell that is no gap is one and some are."""
    gaps = np.array([cell.lower() in _MISSING for cell in cells])
    if not text and not gaps.all():
        try:
            return np.array(["nan" if gap else cell for cell, gap in zip(cells, gaps, strict=True)], np.float64), gaps
        except ValueError:
            pass
    return np.array(cells), np.array([not cell for cell in cells])


def _filled(values: list[Any]) -> tuple[Rows, Rows]:
    """A column of Arrow with its gaps, numbers as they come and anything else as it is."""
    gaps = np.array([value is None for value in values], dtype=bool)
    known = [value for value in values if value is not None]
    if gaps.any():
        number = all(isinstance(value, int | float) for value in known)
        values = [(np.nan if number else "") if value is None else value for value in values]
    return np.asarray(values), gaps


@contextmanager
def _arrow(path: Path) -> Iterator[tuple[list[str], Iterator[Any]]]:
    """The names of the columns of a Parquet or Arrow file, and its batches of rows that are not empty."""
    try:
        import pyarrow.ipc as ipc
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "reading Parquet and Arrow files") from None
    with path.open("rb") as source:
        batches: Iterator[Any]
        if ending(path) == ".parquet":
            file = parquet.ParquetFile(source)
            names, batches = file.schema_arrow.names, file.iter_batches(batch_size=BLOCK)
        elif source.read(6) == b"ARROW1":
            file = ipc.open_file(source)
            names, batches = file.schema.names, (file.get_batch(i) for i in range(file.num_record_batches))
        else:
            source.seek(0)
            file = ipc.open_stream(source)
            names, batches = file.schema.names, iter(file)
        yield names, (_valid(batch) for batch in batches if len(batch))


def _valid(batch: Any) -> Any:
    """A batch whose pieces lie where they say; otherwise reading a damaged file could end the whole program."""
    batch.validate(full=True)
    return batch


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
