"""The pass over paired files as tasks: a stretch of neighbouring rows at a time, here or wherever an executor runs.

A stretch is so many rows whoever looks at it, and what was found is added up in the order of the rows. So the sums do
not depend on the workers, their number, or which of them was stopped and whose work was done again. A task holds where
its rows lie, not the rows, where another process can read them itself: in files that are mapped, alone or as shards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from zhat.audit.copies import Keys, keys_of, mixed
from zhat.files import BLOCK, Embeddings, Rows
from zhat.metrics import Moments

STRETCH = 2**17  # rows
_LONGER = 8  # times as many where every stretch holds rows of every fold
_HELD = 1e9  # bytes of tasks and of results that may wait for an earlier one
_READERS = 4  # threads that read ahead of a GPU
_AHEAD = 8  # blocks that they may be ahead
_FIELDS = ("mean_z", "mean_h", "zz", "zh", "hh", "rest_z", "rest_h")

A = TypeVar("A")
B = TypeVar("B")
Packed = tuple[int, tuple[Rows, ...], float, float]


@dataclass(frozen=True)
class ByPlace:
    """Rows are cut into contiguous pieces.

    Attributes:
        n: rows.
        pieces: every other one, from the first on, is for fitting; each of the others is a fold to read on.
    """

    n: int
    pieces: int

    def touched(self, start: int, stop: int) -> int:
        """Into how many sums these rows go, at most."""
        return ((stop - 1) * self.pieces // self.n - start * self.pieces // self.n + 1) // 2 + 2

    def __call__(self, start: int, keys: Sequence[Rows]) -> Rows:
        """The piece of each row."""
        found: Rows = np.arange(start, start + len(keys[0])) * self.pieces // self.n
        return found


@dataclass(frozen=True)
class ByContent:
    """Rows that are equal in one of the files are in one piece, wherever they lie.

    Attributes:
        file: which one.
        pieces: as above.
        salt: another number cuts otherwise.
    """

    file: int
    pieces: int
    salt: int = 0

    def touched(self, start: int, stop: int) -> int:
        """Into how many sums these rows go, at most."""
        return self.pieces // 2 + 1

    def __call__(self, start: int, keys: Sequence[Rows]) -> Rows:
        """The piece of each row."""
        return self.of(keys[self.file])

    def of(self, keys: Rows) -> Rows:
        """The piece of each row of the file, from the numbers of its rows."""
        found: Rows = mixed(keys + np.uint64(self.salt)) % self.pieces
        return found


Cut = ByPlace | ByContent


@dataclass(frozen=True, eq=False)
class Stretch:
    """Neighbouring rows of several files, and what to do with them.

    Attributes:
        files: these rows of each.
        start: the number of the first row.
        cut: says which piece a row belongs to.
        picked: rows that are in the sample, counted from the first of these.
        device: where sums are taken.
    """

    files: tuple[Embeddings, ...]
    start: int
    cut: Cut
    picked: Rows
    device: str

    def looked_at(self) -> Part:
        """What there is to keep."""
        files = self.files
        sums = _Sums(self.cut.touched(self.start, self.start + files[0].rows), _dims(files), self.device)
        keys: list[list[Rows]] = [[] for _ in files]
        samples: list[list[Rows]] = [[] for _ in files]
        held_out: list[Rows] = []
        same = {(i, j) for i, j in combinations(range(len(files)), 2) if files[i].dim == files[j].dim}
        for start, together in self._blocks():
            here = [keys_of(rows) for rows in together]
            piece = self.cut(self.start + start, here)
            same = {(i, j) for i, j in same if bool((together[i] == together[j]).all())}
            inside = self.picked[(self.picked >= start) & (self.picked < start + len(piece))] - start
            held_out.append(piece[inside] % 2 == 1)
            for i, rows in enumerate(together):
                keys[i].append(here[i])
                samples[i].append(rows[torch.from_numpy(inside).to(rows.device)].double().cpu().numpy())
            z, h = together[0], together[1] if len(files) == 2 else torch.cat(together[1:], 1)
            for i in np.unique(np.where(piece % 2 == 0, -1, piece // 2)).tolist():
                mine = piece % 2 == 0 if i < 0 else piece == 2 * i + 1
                places = torch.from_numpy(np.flatnonzero(mine)).to(z.device)
                part = Moments.of(z, h) if mine.all() else Moments.of(z[places], h[places])
                sums.add(i, part)
        return Part(
            {i: _packed(m) for i, m in sums.found.items()},
            [np.concatenate(k) for k in keys],
            [np.concatenate(s) for s in samples],
            np.concatenate(held_out),
            same,
        )

    def _blocks(self) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
        """Some rows of every file at a time; while a GPU counts, threads read the next ones."""
        starts = range(0, self.files[0].rows, BLOCK)
        if torch.device(self.device).type == "cpu":
            for start in starts:
                yield start, self._read(start)
            return
        with ThreadPoolExecutor(_READERS) as pool:
            yield from zip(starts, in_order(pool, self._read, iter(starts), _AHEAD), strict=True)

    def _read(self, start: int) -> tuple[Tensor, ...]:
        which = slice(start, min(start + BLOCK, self.files[0].rows))
        return tuple(_read(one, which, self.device) for one in self.files)


@dataclass(frozen=True, eq=False)
class Part:
    """What a stretch has kept, as NumPy arrays, which travel between processes by themselves.

    Attributes:
        folds: moments of the rows to fit on (-1) and of each fold to read on.
        keys: a number for each row, for each file.
        samples: the sampled rows of each file.
        held_out: which of them were kept from the fit.
        same: pairs of files that hold the same numbers here.
    """

    folds: dict[int, Packed]
    keys: list[Rows]
    samples: list[Rows]
    held_out: Rows
    same: set[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Kept:
    """What a pass over several files has kept.

    Attributes:
        fit: joint moments of the rows to fit on: the first file is z, the others beside each other are h.
        read: joint moments of each fold to read on.
        keys: one number for each row, for each file.
        samples: the sampled rows of each file.
        held_out: which of them were kept from the fit.
        same: pairs of files that hold the same numbers.
    """

    fit: Moments
    read: tuple[Moments, ...]
    keys: list[Keys]
    samples: list[Tensor]
    held_out: Tensor
    same: set[tuple[int, int]]


def passed(
    files: Sequence[Embeddings], chosen: Tensor, cut: Cut, *, executor: Executor | None = None, device: str = "cpu"
) -> Kept:
    """Look at all rows of several files once.

    Args:
        files: with the same rows.
        chosen: which rows are in the sample, in ascending order, `(m,)`.
        cut: says which piece a row belongs to.
        executor: where to run tasks; None runs them here, one after the other.
        device: where sums are taken.
    """
    picked = chosen.numpy()
    n, length = files[0].rows, STRETCH * (1 if isinstance(cut, ByPlace) else _LONGER)

    def stretches() -> Iterator[Stretch]:
        for start in range(0, n, length):
            end = min(n, start + length)
            rows = tuple(one.part(start, end) if executor is not None or n > length else one for one in files)
            yield Stretch(rows, start, cut, picked[(picked >= start) & (picked < end)] - start, device)

    dims = _dims(files)
    sums = _Sums(cut.pieces // 2 + 1, dims, "cpu") if n > length else None
    folds: dict[int, Moments] = {}
    keys = [Keys() for _ in files]
    samples: list[list[Rows]] = [[] for _ in files]
    held_out: list[Rows] = []
    same = set(combinations(range(len(files)), 2))
    a_part = cut.touched(0, min(n, length)) * 8 * (dims[0] ** 2 + dims[0] * dims[1] + dims[1] ** 2)
    if executor is not None:  # a task holds its rows where they lie in no file that another process can read
        a_part += sum(one.part(0, min(n, length)).take.nbytes for one in files)
    for part in in_order(executor, Stretch.looked_at, stretches(), max(2, int(_HELD / a_part))):
        for i, found in part.folds.items():
            if sums is None:
                folds[i] = _unpacked(found)
            else:
                sums.add(i, _unpacked(found))
                folds[i] = sums.found[i]
        for kept, more in zip(keys, part.keys, strict=True):
            kept.add(more)
        for some, rows in zip(samples, part.samples, strict=True):
            some.append(rows)
        held_out.append(part.held_out)
        same &= part.same
    read = tuple(folds[i] for i in sorted(folds) if i >= 0)
    assert -1 in folds, "there are rows to fit on"
    assert read, "there are rows to read on"
    return Kept(
        folds[-1],
        read,
        keys,
        [torch.from_numpy(np.concatenate(s)) for s in samples],
        torch.from_numpy(np.concatenate(held_out)),
        same,
    )


class _Sums:
    """Moments of several sets of rows, which lie in arrays of their own.

    Each addition makes matrices that are thrown away. If the sums lay among them, the memory between the sums could not
    be given back: a pass took twice the memory of its sums.
    """

    def __init__(self, most: int, dims: tuple[int, int], device: str) -> None:
        d, k = dims
        shapes = ((d,), (k,), (d, d), (d, k), (k, k), (d,), (k,))  # in the order of _FIELDS
        self._lie = [torch.empty(most, *shape, dtype=torch.float64, device=device) for shape in shapes]
        self.found: dict[int, Moments] = {}

    def add(self, i: int, part: Moments) -> None:
        """Add moments to those of set i."""
        place = list(self.found).index(i) if i in self.found else len(self.found)
        whole = self.found[i] + part if i in self.found else part
        mean_z, mean_h, zz, zh, hh, rest_z, rest_h = (
            lie[place].copy_(getattr(whole, name)) for lie, name in zip(self._lie, _FIELDS, strict=True)
        )
        self.found[i] = Moments(whole.n, mean_z, mean_h, zz, zh, hh, rest_z, rest_h, whole.eps_z, whole.eps_h)


def _dims(files: Sequence[Embeddings]) -> tuple[int, int]:
    """Columns of the first file, and of the others beside each other."""
    return files[0].dim, sum(one.dim for one in files[1:])


def in_order(executor: Executor | None, work: Callable[[A], B], each: Iterator[A], most: int) -> Iterator[B]:
    """What comes of each piece of work, in their order; at most so many are begun or wait for an earlier one."""
    if executor is None:
        yield from map(work, each)
        return
    waiting: deque[Future[B]] = deque()
    try:
        for one in each:
            waiting.append(executor.submit(work, one))
            while waiting and (len(waiting) >= most or waiting[0].done()):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _read(one: Embeddings, which: slice, device: str) -> Tensor:
    """Some rows as float32 or float64 on the device, all of them finite; they travel there as they are stored."""
    stored = one.take.stored(which)
    if stored.dtype.kind == "V":
        rows = torch.from_numpy(stored.view(np.int16)).view(torch.bfloat16)
    else:
        rows = torch.from_numpy(stored)
    rows = rows.to(device)
    rows = rows.float() if rows.element_size() == 2 else rows
    if not bool(torch.isfinite(rows.sum())):
        one.block(which)  # says which row is not finite, if one is
    return rows


def _packed(moments: Moments) -> Packed:
    arrays = tuple(getattr(moments, name).cpu().numpy() for name in _FIELDS)
    return moments.n, arrays, moments.eps_z, moments.eps_h


def _unpacked(packed: Packed) -> Moments:
    n, arrays, eps_z, eps_h = packed
    mean_z, mean_h, zz, zh, hh, rest_z, rest_h = (torch.from_numpy(a) for a in arrays)
    return Moments(n, mean_z, mean_h, zz, zh, hh, rest_z, rest_h, eps_z, eps_h)
