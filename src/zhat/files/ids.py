"""Identifiers of rows: from a file or a list, one for each row; rows of several sources joined by them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zhat.errors import BadInput
from zhat.files.arrays import Rows, read_npy
from zhat.files.reading import read_text


def read_ids(path: Path) -> Rows:
    """The ids in a `.npy` file, or the words of a text file."""
    if path.suffix == ".npy":
        return np.array(read_npy(path, "one array"))
    return np.array(read_text(path, "hold ids as text in UTF-8").split())


def row_ids(ids: Any, rows: int, name: str) -> Rows:
    """Ids from a list, an array or a file as an array `(rows,)`, if there is one for each row of what has that name."""
    if isinstance(ids, str | Path):
        if not Path(ids).exists():
            raise BadInput(f"the ids of {name} must be a file, a key or a column, but {ids} is none of them.")
        ids = read_ids(Path(ids))
    found = np.ravel(np.asarray(ids))
    if len(found) != rows or found.dtype.kind not in "iuUS":
        raise BadInput(
            f"{name} needs one id for each of its {rows} rows, whole numbers or text, but {len(found)} of type "
            f"{found.dtype} came."
        )
    return found


def in_common(ids: Sequence[Rows], names: Sequence[str]) -> list[Rows]:
    """Where the ids that all sources have stand in each of them, in the order of the first source."""
    for own, name in zip(ids, names, strict=True):
        if len(np.unique(own)) < len(own):
            raise BadInput(f"the ids of {name} must be unique, but some occur twice. Give one id for each row.")
    if len({own.dtype.kind for own in ids}) > 1:
        ids = [own.astype(str) for own in ids]
    if not all(np.isin(ids[0], own).any() for own in ids[1:]):
        ids = [_without_fraction(own) for own in ids]
    common = ids[0]
    for own, name in zip(ids[1:], names[1:], strict=True):
        common = common[np.isin(common, own)]
        if len(common) == 0:
            raise BadInput(f"no id of {names[0]} occurs in {name}. Are these ids of the same rows?")
    orders = [np.argsort(own) for own in ids]
    return [order[np.searchsorted(own, common, sorter=order)] for own, order in zip(ids, orders, strict=True)]


def _without_fraction(ids: Rows) -> Rows:
    """Ids as text, "7" for "7.0": tables write whole numbers either way."""
    return np.array([re.sub(r"^(-?\d+)\.0$", r"\1", str(each)) for each in ids])
