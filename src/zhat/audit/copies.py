"""Which rows are copies: one number for each row, the same for equal rows, and how many of them are different.

The numbers lie in an unnamed temporary file, 8 bytes a row, and are looked at a part at a time. So counting takes the
same memory for any number of rows, and no row is sampled or estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from zhat.files import Rows
from zhat.files.arrays import Spool

_AT_ONCE = 2**20  # keys looked at
_TOGETHER = 2**21  # different keys held
_ODD = np.uint64(0x9E3779B97F4A7C15)


def keys_of(rows: Tensor) -> Rows:
    """A number for each row, `(n,)`; equal rows have equal ones, others hardly ever.

    The upper bits of each number are mixed into its lower ones, because small whole numbers differ in upper bits alone.
    The result is multiplied by an odd number drawn for the column, its halves are mixed, and the columns are added.
    The device makes no difference.
    """
    odd = 2 * np.random.default_rng(0).integers(0, 2**63, rows.shape[1], dtype=np.uint64) + np.uint64(1)
    return _by_columns(rows.numpy(), odd) if rows.device.type == "cpu" else _at_once(rows, odd)


def _at_once(rows: Tensor, odd: Rows) -> Rows:
    """Few operations on large arrays, for a GPU."""
    rows = rows + 0.0  # one zero of two
    bits = rows.view(torch.int64) if rows.dtype == torch.float64 else rows.view(torch.int32).long() & 0xFFFFFFFF
    if rows.dtype == torch.float64:
        bits = bits ^ ((bits >> 32) & 0xFFFFFFFF)
    bits ^= (bits >> 16) & 0xFFFFFFFFFFFF
    bits *= torch.from_numpy(odd.view(np.int64)).to(rows.device)
    bits ^= (bits >> 32) & 0xFFFFFFFF
    found: Rows = bits.sum(1).cpu().numpy().view(np.uint64)
    return found


def _by_columns(rows: Rows, odd: Rows) -> Rows:
    """One column after the other, each of which stays in a core's cache."""
    columns = np.ascontiguousarray(rows.T + rows.dtype.type(0)).view(f"u{rows.dtype.itemsize}")
    key = np.zeros(len(rows), np.uint64)
    for column, factor in zip(columns, odd, strict=True):
        if rows.dtype == np.float64:
            column = column ^ (column >> np.uint64(32))
        mixed = (column ^ (column >> column.dtype.type(16))) * factor
        mixed ^= mixed >> np.uint64(32)
        key += mixed
    return key


def mixed(keys: Rows) -> Rows:
    """Whole numbers from 0 to 2^24 that keys are sorted by into groups of about the same size."""
    found: Rows = ((keys * _ODD) >> np.uint64(40)).astype(np.int64)
    return found


class Keys:
    """One number for each row of a file, kept on disk.

    Example:
        >>> keys = Keys()
        >>> keys.add(np.array([7, 8, 7], np.uint64))
        >>> len(keys), keys.distinct()
        (3, 2)
    """

    def __init__(self) -> None:
        self._spool = Spool()
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, keys: Rows) -> None:
        """Keep those of some further rows."""
        self._spool.write(keys.astype(np.uint64).tobytes())
        self._rows += len(keys)

    def blocks(self) -> Iterator[Rows]:
        """All of them, some at a time."""
        lie = self._spool.at(0, np.dtype(np.uint64), (self._rows,))
        for start in range(0, self._rows, _AT_ONCE):
            yield lie[start : start + _AT_ONCE]

    def distinct(self) -> int:
        """How many are different."""
        return _distinct(self.blocks, self._rows)

    def distinct_with(self, other: Keys) -> int:
        """How many pairs of these and those of another file are different."""

        def pairs() -> Iterator[Rows]:
            for one, two in zip(self.blocks(), other.blocks(), strict=True):
                yield (one * _ODD) ^ two

        return _distinct(pairs, self._rows)


def _distinct(blocks: Callable[[], Iterator[Rows]], n: int) -> int:
    """How many numbers are different: group by group, so that only the different ones of a group are held."""
    groups = -(-n // _TOGETHER)
    found = 0
    for group in range(groups):
        held: list[Rows] = []
        for some in blocks():
            held.append(some if groups == 1 else some[mixed(some) % groups == group])
            if sum(map(len, held)) > 2 * _TOGETHER:  # many copies: keep one of each
                held = [_once(held)]
        found += len(_once(held))
    return found


def _once(parts: list[Rows]) -> Rows:
    """The different numbers, by sorting: NumPy's `unique` takes a table, which is ten times slower for millions."""
    numbers = np.sort(np.concatenate(parts))
    return numbers[np.concatenate([[True], numbers[1:] != numbers[:-1]])] if len(numbers) else numbers
