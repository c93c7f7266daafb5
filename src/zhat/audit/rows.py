"""One pass over paired files, two or more: moments of disjoint folds, a sample of rows, and what is odd about the rows.

Rows are cut into contiguous pieces, every other piece for fitting, the rest for reading. Neighbouring rows that are
alike (frames of a film, copies of one document) then stay in one piece, as long as pieces are longer than the likeness
lasts. Rows that occur several times are put into folds by their content instead, so that no row is read that was
fitted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import combinations, count, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zhat import randomness
from zhat.audit.copies import Keys, keys_of
from zhat.audit.stretches import ByContent, ByPlace, Kept, passed
from zhat.files import Embeddings, Rows
from zhat.metrics import Moments

READ_FOLDS = 32
LASTING = 1.5  # up to here rows are taken as independent
SAMPLE = 4096
_LISTED = 2**22  # rows up to which the sample is the beginning of all rows in a random order
_MOMENTS_BYTES = 3e8
_MOST_BYTES = 1.2e9  # of the moments of several files; beyond, they are read pair by pair


@dataclass(frozen=True, eq=False)
class Seen:
    """What a pass has kept. Maps go from the source to the target: in moments the target is z and the source is h.

    Attributes:
        fit: moments of the rows to fit on.
        read: moments of each fold to read on.
        index: which rows are in the sample, `(m,)`.
        held_out: which of them were kept from the fit, `(m,)`.
        source: the sampled rows, `(m, k)`.
        target: the sampled rows, `(m, d)`.
        rows: all rows.
        distinct: rows that differ from every other one.
        lasting: how many neighbouring rows count as one, by their autocorrelation; 1 for independent rows.
        same: whether both matrices hold the same numbers.
    """

    fit: Moments
    read: tuple[Moments, ...]
    index: Tensor
    held_out: Tensor
    source: Tensor
    target: Tensor
    rows: int
    distinct: int
    lasting: float
    same: bool

    def fresh(self) -> Tensor:
        """Places in the sample of rows that are no copies of earlier ones."""
        fresh = torch.ones(len(self.index), dtype=torch.bool)
        for rows in (self.source, self.target):
            keys = keys_of(rows)
            first = torch.zeros(len(keys), dtype=torch.bool)
            first[torch.from_numpy(np.unique(keys, return_index=True)[1])] = True
            fresh &= first
        return torch.nonzero(fresh).flatten()

    def apart(self) -> Tensor:
        """Places in the sample of rows that are no copies and lie further apart than likeness lasts."""
        places, last = [], -math.inf
        for place in self.fresh().tolist():
            if self.lasting <= LASTING or float(self.index[place]) - last >= 2 * self.lasting:
                places.append(place)
                last = float(self.index[place])
        return torch.tensor(places)

    @property
    def effective(self) -> int:
        """Rows that count: distinct ones, neighbours that are alike counted once."""
        return int(min(self.distinct, self.rows / self.lasting))

    def swapped(self) -> Seen:
        """The same rows with source and target exchanged: no further look at them is needed."""
        read = tuple(m.swapped() for m in self.read)
        return replace(self, fit=self.fit.swapped(), read=read, source=self.target, target=self.source)


def look(
    source: Embeddings, target: Embeddings, *, seed: int, executor: Executor | None = None, device: str = "cpu"
) -> Seen:
    """Read both files once; a second time where rows occur repeatedly, and then by content.

    Args:
        source: rows to map from.
        target: the same rows to map to.
        seed: of the sample.
        executor: where the pass runs, a task for each stretch of rows: anything with `submit`, as in
            `concurrent.futures`; None runs it here.
        device: where its sums are taken, such as "cuda".
    """
    return look_around((source, target), seed=seed, executor=executor, device=device)[0, 1]


def look_around(
    files: Sequence[Embeddings], *, seed: int, executor: Executor | None = None, device: str = "cpu"
) -> dict[tuple[int, int], Seen]:
    """Every pair (i, j), i < j, of several files with the same rows, from one pass over each.

    A file is read once more where rows occur repeatedly, because copies decide how the rows of a pair are split; again
    where files repeat different rows. Where the moments of all pairs together would take too much memory, files are
    read pair by pair.

    Args:
        files: with the same rows.
        seed: of the sample.
        executor: where the pass runs.
        device: where its sums are taken.
    """
    where: Any = {"executor": executor, "device": device}
    n = files[0].rows
    first, rest = files[0].dim, sum(s.dim for s in files[1:])
    size = 8 * (first**2 + first * rest + rest**2)
    pairs = list(combinations(range(len(files)), 2))
    if len(files) > 2 and 9 * size > _MOST_BYTES:
        return {(i, j): look(files[i], files[j], seed=seed, **where) for i, j in pairs}
    lasting = [likeness_lasts(one.block(slice(0, min(SAMPLE, n)))) for one in files]
    folds = int(min(READ_FOLDS, n // 2, max(4, n / (20 * max(lasting))), max(8, _MOMENTS_BYTES / size)))
    chosen = _sample(n, seed)
    pieces = max(2, 2 * folds)
    kept = passed(files, chosen, ByPlace(n, pieces), **where)
    counts = [keys.distinct() for keys in kept.keys]
    found = {}
    split: dict[int, list[tuple[int, int]]] = {}  # by which file's content the rows of a pair are split
    for i, j in pairs:
        found[i, j] = _pair(kept, files, i, j, chosen, min(counts[i], counts[j]), max(lasting[i], lasting[j]))
        if found[i, j].distinct < 0.999 * n:
            by = min(i, j, key=lambda one: counts[one])
            by = next(one for one in range(by + 1) if _same_copies(kept.keys[one], kept.keys[by], counts[by]))
            split.setdefault(by, []).append((i, j))
    for by, concerned in split.items():
        if counts[by] < 2:
            continue
        places = sorted({place for pair in concerned for place in pair})
        some = [files[place] for place in places]
        again = passed(some, chosen, _by_content(kept.keys[by], places.index(by), pieces), **where)
        for i, j in concerned:
            seen = found[i, j]
            found[i, j] = _pair(again, some, places.index(i), places.index(j), chosen, seen.distinct, seen.lasting)
    return found


def _by_content(keys: Keys, file: int, pieces: int) -> ByContent:
    """A cut by content that leaves rows to fit on and rows to read on, even where few are different."""
    for salt in count():
        cut = ByContent(file, pieces, salt)
        if len({int(side) for some in keys.blocks() for side in np.unique(cut.of(some) % 2)}) == 2:
            return cut
    raise AssertionError("two different rows come apart sooner or later")


def _same_copies(one: Keys, other: Keys, distinct: int) -> bool:
    """Whether rows are copies in one file exactly where they are in the other, which has so many distinct ones."""
    return one is other or one.distinct() == distinct == one.distinct_with(other)


def _pair(
    kept: Kept, files: Sequence[Embeddings], i: int, j: int, chosen: Tensor, distinct: int, lasting: float
) -> Seen:
    ends = np.cumsum([0, *(s.dim for s in files[1:])])
    spans = [slice(0, 0), *(slice(int(start), int(end)) for start, end in pairwise(ends))]
    return Seen(
        _part(kept.fit, spans, i, j),
        tuple(_part(m, spans, i, j) for m in kept.read),
        chosen,
        kept.held_out,
        kept.samples[i],
        kept.samples[j],
        files[0].rows,
        distinct,
        lasting,
        (i, j) in kept.same,
    )


def _part(joint: Moments, spans: Sequence[slice], source: int, target: int) -> Moments:
    """Moments of a pair as views of the joint ones, in which file 0 is z and the others beside it are h."""

    def mean(one: int) -> tuple[Tensor, Tensor]:
        span = spans[one]
        return (joint.mean_z, joint.rest_z) if one == 0 else (joint.mean_h[span], joint.rest_h[span])

    def cross(one: int, other: int) -> Tensor:
        if one == 0:
            return joint.zz if other == 0 else joint.zh[:, spans[other]]
        return joint.zh[:, spans[one]].T if other == 0 else joint.hh[spans[one], spans[other]]

    (mean_z, rest_z), (mean_h, rest_h) = mean(target), mean(source)
    zz, zh, hh = cross(target, target), cross(target, source), cross(source, source)
    return Moments(joint.n, mean_z, mean_h, zz, zh, hh, rest_z, rest_h)


def _sample(n: int, seed: int) -> Tensor:
    """Which rows are sampled, in ascending order; without a list of all rows where they are many."""
    generator = randomness.generator(seed, "sample")
    if n <= _LISTED:
        return torch.randperm(n, generator=generator)[:SAMPLE].sort().values
    drawn = torch.randint(n, (2 * SAMPLE,), generator=generator).numpy()
    return torch.from_numpy(np.sort(drawn[np.sort(np.unique(drawn, return_index=True)[1])][:SAMPLE]))


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
    size = float(np.abs(x).max()) if n >= 16 else 0.0
    if size == 0 or not math.isfinite(size):
        return 1.0
    x = x / size  # so that no square leaves the range of float64
    total = float((x**2).sum())
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
