"""Known factors of rows: named columns from a file, each typed real, circular or categorical by a stated rule.

The rule, unless a type is given: text is categorical; a column whose name says an angle and whose values fill most of
one turn of 360 or 2π is circular; whole numbers with at most 20 different values are categorical; other numbers are
real.
"""

from __future__ import annotations

import csv
import math
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from zhat import _checks
from zhat.audit.reading import Rows
from zhat.errors import BadInput, MissingExtra, UnknownName
from zhat.metrics.decoding import Factor

KINDS = ("real", "circular", "categorical")
FEW = 20  # whole numbers with at most so many different values are names
READABLE = (".csv", ".npy", ".npz", ".parquet")
_ANGLE = re.compile(
    r"(?:^|[^a-z])(?:angle|azimuth|orientation|phase|hue|heading|bearing|yaw|theta|rotation|direction|elevation|longitude"
    r"|deg|degrees|rad|radians)(?:$|[^a-z])"
)
_TURNS = (360.0, 2 * math.pi)


@dataclass(frozen=True, eq=False)
class Columns:
    """Named columns of a file, as many values in each.

    Attributes:
        name: of the file, for messages.
        columns: by name, each `(rows,)`: numbers or text.
        ids: one identifier for each row, where rows have them.
    """

    name: str
    columns: Mapping[str, Rows]
    ids: Rows | None = None

    @property
    def rows(self) -> int:
        """How many values a column has."""
        return len(next(iter(self.columns.values())))

    def take(self, rows: Rows) -> Columns:
        """Some rows, in that order."""
        ids = None if self.ids is None else self.ids[rows]
        return replace(self, columns={name: c[rows] for name, c in self.columns.items()}, ids=ids)


def columns(source: Any, *, ids: Any = None, name: str = "factors") -> Columns:
    """Named columns from a file, a mapping, a table or an array.

    Args:
        source: the path of a `.csv` (its first line names the columns), `.npy`, `.npz` or `.parquet` file; a mapping
            from names to columns; a data frame; or an array `(rows, factors)`.
        ids: identifiers of the rows: the name of a column, a file of them, or a list.
        name: for messages, where `source` is no file.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        name = path.name
        if not path.is_file():
            raise BadInput(f"there is no file {path}. Give factors as {', '.join(READABLE)}.")
        if path.suffix not in READABLE:
            raise BadInput(f"factors must be one of {', '.join(READABLE)}, but {path.name} came.")
        readers: dict[str, Callable[[Path], dict[str, Any]]] = {".csv": _csv, ".npy": _npy, ".npz": _npz}
        found = readers.get(path.suffix, _parquet)(path)
    elif isinstance(source, Mapping):
        found = dict(source)
    elif hasattr(source, "columns") and hasattr(source, "__getitem__"):
        found = {str(c): source[c] for c in source.columns}
    else:
        found = _unfolded(name, source)
    named: Any = ids
    if isinstance(ids, str) and ids in found:
        named = found.pop(ids)
    elif isinstance(ids, str | Path):
        if not Path(ids).is_file():
            raise UnknownName(f"column in {name}", str(ids), found)
        named = _ids_file(Path(ids))
    if not found:
        raise BadInput(f"{name} must hold at least one factor, but it holds none.")
    arrays = {str(key): _column(str(key), value, name) for key, value in found.items()}
    lengths = {key: len(value) for key, value in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{key} {length}" for key, length in list(lengths.items())[:4])
        raise BadInput(f"every factor of {name} must have as many rows, but they have: {shown}.")
    listed = None if named is None else np.ravel(np.asarray(named))
    if listed is not None and len(listed) != next(iter(lengths.values())):
        raise BadInput(
            f"{name} needs one id for each of its {next(iter(lengths.values()))} rows, but {len(listed)} came."
        )
    return Columns(name, arrays, listed)


def typed(name: str, values: Rows, kind: str | None = None, period: float | None = None) -> tuple[Factor, str]:
    """A column as a factor, and how its type was settled.

    Args:
        name: of the factor.
        values: its column, `(rows,)`.
        kind: "real", "circular" or "categorical"; None follows the rule of this module.
        period: of a circular factor; None takes 360 or 2π, whichever the values fill. Given alone, it means circular.

    Example:
        >>> typed("azimuth", np.arange(0, 360, 5))[1]
        'circular, period 360: its name says an angle and its values fill most of one turn'
    """
    if kind is not None and kind not in KINDS:
        raise UnknownName("type of factor", kind, KINDS)
    if period is not None and kind not in (None, "circular"):
        raise BadInput(f"a period belongs to a circular factor, but {name!r} is to be {kind}. Give one of the two.")
    text = values.dtype.kind not in "fiub"
    if kind == "categorical" or (text and kind is None and period is None):
        return Factor.categorical(name, values), "categorical: " + ("given" if kind else "its values are text")
    if text:
        raise BadInput(f"{name!r} is to be {kind or 'circular'}, but its values are text. Its type is categorical.")
    numbers = np.asarray(values, dtype=np.float64)
    if kind == "real":
        return Factor.real(name, numbers), "real: given"
    if kind == "circular" or period is not None:
        turn = _checks.positive(period, f"period of {name}") if period is not None else _turn(numbers, filled=0.0)
        if turn is None:
            raise BadInput(
                f"{name!r} is to be circular, but its values from {numbers.min():g} to {numbers.max():g} fit neither "
                f"360 nor 2π. Give its period, for instance --period '{name}=24'."
            )
        return Factor.circular(name, numbers, turn), f"circular, period {_said(turn)}: given"
    turn = _turn(numbers, filled=0.75)
    if _ANGLE.search(re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()) and turn is not None:
        because = "its name says an angle and its values fill most of one turn"
        return Factor.circular(name, numbers, turn), f"circular, period {_said(turn)}: {because}"
    different = np.unique(numbers)
    if len(different) <= FEW and bool((different == np.round(different)).all()):
        because = f"whole numbers with {len(different)} different values"
        return Factor.categorical(name, numbers.astype(np.int64)), f"categorical: {because}"
    return Factor.real(name, numbers), "real: numbers"


def _said(turn: float) -> str:
    return "2π" if math.isclose(turn, 2 * math.pi) else f"{turn:g}"


def _turn(values: Rows, *, filled: float) -> float | None:
    """The period that the values fit in, if they fill that share of it; a grid may lack its last point."""
    low, high = float(values.min()), float(values.max())
    gap = (high - low) / max(1, len(np.unique(values)) - 1)
    for turn in sorted(_TURNS):
        if high - low <= turn * (1 + 1e-6) and max(abs(low), abs(high)) <= turn * (1 + 1e-6):
            return turn if high - low + gap >= filled * turn else None
    return None


def _column(name: str, values: Any, source: str) -> Rows:
    column = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    if column.ndim != 1 or len(column) == 0:
        raise BadInput(
            f"the factor {name!r} of {source} must be one column of values, but its shape is {column.shape}."
        )
    if column.dtype.kind == "O":
        if not all(isinstance(v, str) for v in column):
            raise BadInput(f"the factor {name!r} of {source} must hold numbers or text without gaps.")
        column = column.astype(str)
    if column.dtype.kind not in "fiubUS":
        raise BadInput(f"the factor {name!r} of {source} must hold numbers or text, but its type is {column.dtype}.")
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        row = int(np.flatnonzero(~np.isfinite(column))[0])
        raise BadInput(f"the factor {name!r} of {source} must be finite, but row {row} is not. Remove such rows.")
    return column


def _csv(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file)
            names = next(lines, [])
            if len(set(names)) < len(names) or not all(name.strip() for name in names) or not names:
                raise BadInput(f"the first line of {path.name} must name every column, each differently.")
            if all(_number(name) is not None for name in names):
                raise BadInput(f"the first line of {path.name} must name the factors, but it holds numbers. Add names.")
            cells: list[list[str]] = [[] for _ in names]
            for number, line in enumerate(lines, start=2):
                if len(line) != len(names):
                    raise BadInput(f"{path.name} must have {len(names)} columns, but line {number} has {len(line)}.")
                for column, cell in zip(cells, line, strict=True):
                    column.append(cell)
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadInput(f"{path.name} must be a table, but it cannot be read ({error}).") from None
    if not cells[0]:
        raise BadInput(f"{path.name} must hold rows below its first line, but there are none.")
    return {name.strip(): _cells(name.strip(), column, path) for name, column in zip(names, cells, strict=True)}


def _cells(name: str, cells: list[str], path: Path) -> Rows:
    """A column as numbers where all of it is, else as text."""
    for number, cell in enumerate(cells, start=2):
        if not cell.strip():
            raise BadInput(f"{path.name} has no value for {name!r} in line {number}. Fill it, or remove the row.")
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return np.array([cell.strip() for cell in cells])


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _unfolded(name: str, values: Any) -> dict[str, Any]:
    """The columns of a matrix, numbered from 1; the fields of a structured array by their names."""
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    if array.dtype.names:
        return {field: array[field] for field in array.dtype.names}
    if array.ndim == 1:
        return {name: array}
    if array.ndim != 2 or 0 in array.shape:
        raise BadInput(f"{name} must be a matrix (rows, factors) that is not empty, but its shape is {array.shape}.")
    return {f"{name} {i + 1}": array[:, i] for i in range(array.shape[1])}


def _npy(path: Path) -> dict[str, Any]:
    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, SyntaxError, TypeError) as error:
        raise BadInput(
            f"{path.name} must hold one array as numpy.save writes it, but cannot be read ({error})."
        ) from None
    if not isinstance(found, np.ndarray):
        found.close()
        raise BadInput(f"{path.name} must hold one array, but it is an archive of several. Name it .npz.")
    return _unfolded("factor", found)


def _npz(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not hasattr(archive, "files"):
                raise ValueError("it is no archive")
            return {k: v for key in archive.files for k, v in _unfolded(key, archive[key]).items()}
    except (zipfile.BadZipFile, ValueError, EOFError, SyntaxError, TypeError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"{path.name} must be an archive as numpy.savez writes it, but cannot be read ({error})."
        ) from None


def _parquet(path: Path) -> dict[str, Any]:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "reading Parquet files") from None
    try:
        table = parquet.read_table(path)
    except (arrow.ArrowException, ValueError, OSError) as error:
        raise BadInput(f"{path.name} must be a Parquet file, but it cannot be read ({error}).") from None
    return {name: np.asarray(_whole(name, table[name].to_pylist(), path)) for name in table.column_names}


def _whole(name: str, values: list[Any], path: Path) -> list[Any]:
    if any(value is None for value in values):
        row = next(i for i, value in enumerate(values) if value is None)
        raise BadInput(f"{path.name} has no value for {name!r} in row {row}. Fill it, or remove the row.")
    return values


def _ids_file(path: Path) -> Iterable[Any]:
    return np.load(path, allow_pickle=False) if path.suffix == ".npy" else path.read_text(encoding="utf-8").split()
