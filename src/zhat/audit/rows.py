"""One pass over two paired files: moments of disjoint folds, a sample of rows, and what is odd about the rows.

Rows are cut into contiguous pieces, every other piece for fitting, the rest for reading. Neighbouring rows that are
alike (frames of a film, copies of one document) then stay in one piece, as long as pieces are longer than the likeness
lasts. Rows that occur several times are put into folds by their content instead, so that no row is read that was
fitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from zhat import randomness
from zhat.audit.reading import BLOCK, Embeddings, Rows
from zhat.metrics import Moments

READ_FOLDS = 32
LASTING = 1.5  # up to here rows are taken as independent
SAMPLE = 4096
_MOMENTS_BYTES = 3e8


@dataclass(frozen=True, eq=False)
class Seen:
    """What a pass has kept. `b` plays the latents and `a` the representation: the map goes from `a` to `b`.

    Attributes:
        fit: moments of the rows to fit on.
        read: moments of each fold to read on.
        index: which rows are in the sample, `(m,)`.
        held_out: which of them were kept from the fit, `(m,)`.
        a: the sampled rows, `(m, k)`.
        b: the sampled rows, `(m, d)`.
        rows: all rows.
        distinct: rows that differ from every other one.
        lasting: how many neighbouring rows count as one, by their autocorrelation; 1 for independent rows.
        same: whether both matrices hold the same numbers.
    """

    fit: Moments
    read: tuple[Moments, ...]
    index: Tensor
    held_out: Tensor
    a: Tensor
    b: Tensor
    rows: int
    distinct: int
    lasting: float
    same: bool

    def apart(self) -> Tensor:
        """Places in the sample of rows that are no copies and lie further apart than likeness lasts."""
        fresh = torch.ones(len(self.index), dtype=torch.bool)
        for rows in (self.a, self.b):
            keys = _keys(rows.numpy())
            first = torch.zeros(len(keys), dtype=torch.bool)
            first[torch.from_numpy(np.unique(keys, return_index=True)[1])] = True
            fresh &= first
        places, last = [], -math.inf
        for place in torch.nonzero(fresh).flatten().tolist():
            if self.lasting <= LASTING or float(self.index[place]) - last >= 2 * self.lasting:
                places.append(place)
                last = float(self.index[place])
        return torch.tensor(places)

    @property
    def effective(self) -> int:
        """Rows that count: distinct ones, neighbours that are alike counted once."""
        return int(min(self.distinct, self.rows / self.lasting))


def look(a: Embeddings, b: Embeddings, *, seed: int) -> Seen:
    """Read both files once; a second time where rows occur repeatedly, and then by content.

    Args:
        a: rows to map from.
        b: the same rows to map to.
        seed: of the sample.
    """
    n = a.rows
    lasting = max(likeness_lasts(one.block(slice(0, min(SAMPLE, n)))) for one in (a, b))
    size = 8 * (a.dim**2 + a.dim * b.dim + b.dim**2)
    folds = int(min(READ_FOLDS, n // 2, max(4, n / (20 * lasting)), max(8, _MOMENTS_BYTES / size)))
    chosen = torch.randperm(n, generator=randomness.generator(seed, "sample"))[:SAMPLE].sort().values
    pieces = max(2, 2 * folds)
    seen = _pass(a, b, chosen, np.arange(n) * pieces // n, folds, lasting)
    if seen[0].distinct < 0.999 * n:
        keys = seen[1]
        by_content = ((keys * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)).astype(np.int64) % pieces
        if len(np.unique(by_content % 2)) == 2:
            return _pass(a, b, chosen, by_content, folds, lasting)[0]
    return seen[0]


def _pass(a: Embeddings, b: Embeddings, chosen: Tensor, piece: Rows, folds: int, lasting: float) -> tuple[Seen, Rows]:
    fit: Moments | None = None
    read: list[Moments | None] = [None] * max(1, folds)
    keys_a, keys_b, kept_a, kept_b = [], [], [], []
    same = a.dim == b.dim
    picked = chosen.numpy()
    for start, some_a, some_b in _together(a, b):
        here = piece[start : start + len(some_a)]
        same = same and bool(np.array_equal(some_a, some_b))
        keys_a.append(_keys(some_a))
        keys_b.append(_keys(some_b))
        inside = picked[(picked >= start) & (picked < start + len(some_a))] - start
        kept_a.append(some_a[inside].astype(np.float64))
        kept_b.append(some_b[inside].astype(np.float64))
        h, z = torch.from_numpy(some_a), torch.from_numpy(some_b)
        for i in np.unique(np.where(here % 2 == 0, -1, here // 2)):
            rows = torch.from_numpy(np.flatnonzero(here % 2 == 0 if i < 0 else here == 2 * i + 1))
            some = Moments.of(z[rows], h[rows])
            if i < 0:
                fit = some if fit is None else fit + some
            else:
                before = read[i]
                read[i] = some if before is None else before + some
    found = tuple(m for m in read if m is not None)
    assert fit is not None, "there are rows to fit on"
    assert found, "there are rows to read on"
    by_row = [np.concatenate(k) for k in (keys_a, keys_b)]
    counts = [len(np.unique(k)) for k in by_row]
    seen = Seen(
        fit,
        found,
        chosen,
        torch.from_numpy(piece[picked] % 2 == 1),
        torch.from_numpy(np.concatenate(kept_a)),
        torch.from_numpy(np.concatenate(kept_b)),
        a.rows,
        min(counts),
        lasting,
        same,
    )
    return seen, by_row[int(np.argmin(counts))]


def _together(a: Embeddings, b: Embeddings) -> Iterator[tuple[int, Rows, Rows]]:
    start = 0
    for some_a, some_b in zip(a.blocks(BLOCK), b.blocks(BLOCK), strict=True):
        yield start, some_a, some_b
        start += len(some_a)


def _keys(rows: Rows) -> Rows:
    """A number for each row; equal rows have equal ones, others hardly ever."""
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint32 if rows.dtype == np.float32 else np.uint64)
    drawn: Rows = np.asarray(np.random.default_rng(0).integers(0, 2**63, bits.shape[1], dtype=np.uint64))
    odd = 2 * drawn + 1
    key = np.zeros(len(rows), np.uint64)
    for column in range(bits.shape[1]):
        key = (key ^ (bits[:, column] * odd[column])) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key


def likeness_lasts(rows: Rows) -> float:
    r"""How many neighbouring rows count as one: the integrated autocorrelation time, at least 1.

    $$\tau = 1 + 2 \sum_{l \ge 1} \rho_l, \qquad
      \rho_l = \frac{\sum_i \langle x_i - \bar x, x_{i+l} - \bar x \rangle}{\sum_i \lVert x_i - \bar x \rVert^2}$$

    summed until the first lag at which the autocorrelation is within four standard errors of 0.

    Args:
        rows: neighbouring rows, `(n, d)`.

    Example:
        >>> likeness_lasts(np.random.default_rng(0).normal(size=(1000, 3)))
        1.0
    """
    x = np.asarray(rows, dtype=np.float64)
    x = x - x.mean(0)
    n = len(x)
    total = float((x**2).sum())
    if n < 16 or total <= 0:
        return 1.0
    covariance = x.T @ x if x.shape[1] <= n else x @ x.T
    directions = total**2 / float((covariance**2).sum())  # the participation ratio: independent looks at each lag
    least = 4 / np.sqrt(n * directions) + 1 / n
    tau = 1.0
    for lag in range(1, n // 4):
        rho = float((x[lag:] * x[:-lag]).sum()) / total
        if rho <= least:
            break
        tau += 2 * rho
    return tau
