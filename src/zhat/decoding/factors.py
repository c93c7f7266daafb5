"""Known factors of rows: named columns from a file, each typed real, circular or categorical by a stated rule.

The rule, unless a type is given: text is categorical; a column whose name stands for an angle and whose values fill
most of one turn of 360 or 2π is circular; whole numbers with at most 20 different values are categorical; other numbers
are real.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from zhat import _checks
from zhat.errors import BadInput, UnknownName
from zhat.files.arrays import Rows, Spool, npz_names, read_npy, read_npz
from zhat.files.containers import CONTAINERS, container_shapes, map_container
from zhat.files.embeddings import GAPS
from zhat.files.ids import row_ids
from zhat.files.tables import TABLES, ending, read_columns
from zhat.metrics.decoding import Factor

KINDS = ("real", "circular", "categorical")
FEW = 20  # whole numbers with at most so many different values are names
READABLE = (".npy", ".npz", *TABLES, *CONTAINERS)
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
        kept: the numbers that these rows have in their file, where others were left out; None where none was.
        left_out: how many rows were left out, because they have an empty cell.
    """

    name: str
    columns: Mapping[str, Rows]
    ids: Rows | None = None
    kept: Rows | None = None
    left_out: int = 0

    @property
    def rows(self) -> int:
        """How many values a column has."""
        return len(next(iter(self.columns.values())))

    def take(self, rows: Rows) -> Columns:
        """Some rows, in that order."""
        ids = None if self.ids is None else self.ids[rows]
        kept = rows if self.kept is None else self.kept[rows]
        return replace(self, columns={name: c[rows] for name, c in self.columns.items()}, ids=ids, kept=kept)


def columns(source: Any, *, ids: Any = None, name: str = "factors", gaps: str = "refuse") -> Columns:
    """Named columns from a file, a mapping, a table or an array.

    Args:
        source: the path of a `.csv` or `.tsv` (its first line names the columns), `.parquet`, `.arrow`, `.feather`,
            `.npy`, `.npz`, `.h5`, `.mat` or `.zarr` file; a mapping from names to columns; a data frame; or an array
            `(rows, factors)`.
        ids: identifiers of the rows: the name of a column, a file of them, or a list.
        name: for messages, where `source` is no file.
        gaps: what to do about rows of a file of which some column has an empty cell: "refuse" or "drop".
    """
    if gaps not in GAPS:
        raise UnknownName("way to treat empty cells", gaps, GAPS)
    empty: dict[str, Rows] = {}
    if isinstance(source, str | Path):
        path = Path(source)
        name = path.name
        if not path.exists():
            raise BadInput(f"there is no file {path}. Give factors as {', '.join(READABLE)}.")
        found, empty = _from_file(path, ids if isinstance(ids, str) else None)
    elif isinstance(source, Mapping):
        found = dict(source)
    elif hasattr(source, "columns") and hasattr(source, "__getitem__"):
        found = {str(c): source[c] for c in getattr(source, "column_names", source.columns)}  # Arrow's tables first
    else:
        found = _unfolded(name, source)
    if isinstance(ids, str) and ids in found:
        ids = np.asarray(found.pop(ids))
        ids = ids.astype(str) if ids.dtype.kind in "Of" else ids
    elif isinstance(ids, str | Path) and not Path(ids).exists():
        raise UnknownName(f"column in {name}", str(ids), found)
    if not found:
        raise BadInput(f"{name} must hold at least one factor, but it holds none.")
    arrays = {str(key): _column(str(key), value, name, empty.get(key)) for key, value in found.items()}
    lengths = {key: len(value) for key, value in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{key} {length}" for key, length in list(lengths.items())[:4])
        raise BadInput(f"every factor of {name} must have as many rows, but they have: {shown}.")
    rows = next(iter(lengths.values()))
    known = Columns(name, arrays, None if ids is None else row_ids(ids, rows, name))
    return _without_gaps(known, empty, gaps)


def _without_gaps(known: Columns, empty: Mapping[str, Rows], gaps: str) -> Columns:
    """The rows in which every column has a value; those that lack one are refused, or left out and counted."""
    lacking = {column: own for column, own in empty.items() if own.any()}
    if not lacking:
        return known
    some = np.logical_or.reduce([*lacking.values()])
    if gaps == "refuse":
        column, own = next(iter(lacking.items()))
        raise BadInput(
            f"{known.name} has no value for {column!r} in row {int(np.flatnonzero(own)[0])} (row 0 is the first), and "
            f"{int(some.sum())} of its {len(some)} rows have an empty cell. Fill them, or leave such rows out with "
            "--gaps drop."
        )
    if some.all():
        raise BadInput(f"every row of {known.name} has an empty cell.")
    kept = np.flatnonzero(~some)
    return replace(known.take(kept), kept=kept, left_out=int(some.sum()))


def typed(name: str, values: Rows, kind: str | None = None, period: float | None = None) -> tuple[Factor, str]:
    """A column as a factor, and how its type was settled.

    Args:
        name: of the factor.
        values: its column, `(rows,)`.
        kind: "real", "circular" or "categorical"; None follows the rule of this module.
        period: of a circular factor; None takes 360 or 2π, whichever the values fill. Given alone, it means circular.

    Example:
        >>> typed("azimuth", np.arange(0, 360, 5))[1]
        'circular, period 360: its name stands for an angle and its values fill most of one turn'
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
        because = "its name stands for an angle and its values fill most of one turn"
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


def _column(name: str, values: Any, source: str, empty: Rows | None = None) -> Rows:
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
    odd = ~np.isfinite(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)
    if empty is not None:
        odd &= ~empty  # a gap is NaN; what to do about it is decided for whole rows
    if odd.any():
        row = int(np.flatnonzero(odd)[0])
        raise BadInput(f"the factor {name!r} of {source} must be finite, but row {row} is not. Remove such rows.")
    return column


def _from_file(path: Path, ids: str | None) -> tuple[dict[str, Any], dict[str, Rows]]:
    """Columns by name, and the gaps of each where the format knows gaps."""
    kind = ending(path)
    if kind not in READABLE:
        raise BadInput(f"factors must be one of {', '.join(READABLE)}, but {path.name} came.")
    if kind in TABLES:
        return read_columns(path, ids)
    if kind == ".npy":
        return _unfolded("factor", read_npy(path, "one array")), {}
    if kind == ".npz":
        names = npz_names(path)
        arrays = read_npz(path, names)
    else:
        names = list(container_shapes(path))
        arrays = [found.mapped() for found in map_container(path, names, Spool())]
    pairs = zip(names, arrays, strict=True)
    return {column: values for name, array in pairs for column, values in _unfolded(name, array).items()}, {}


def _unfolded(name: str, values: Any) -> dict[str, Any]:
    """The columns of a matrix, numbered from 1; the fields of a structured array by their names."""
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    if array.dtype.names:
        return {field: array[field] for field in array.dtype.names}
    if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1):
        return {name: array.reshape(-1)}
    if array.ndim != 2 or 0 in array.shape:
        raise BadInput(f"{name} must be a matrix (rows, factors) that is not empty, but its shape is {array.shape}.")
    return {f"{name} {i + 1}": array[:, i] for i in range(array.shape[1])}
