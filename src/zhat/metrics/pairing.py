"""Rows of two representations paired anew, or split in two, a block at a time: no copy of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from zhat import randomness
from zhat.metrics.moments import Moments, blocks


@dataclass(frozen=True)
class Lengths:
    r"""Sums over rows of $|z|^4$, $|z|^2|h|^2$ and $|h|^4$, around the means: of fourth order, so not among moments."""

    zz: float
    zh: float
    hh: float

    @classmethod
    def of(cls, z: Any, h: Any, moments: Moments) -> Lengths:
        """Of all rows, around the means of `moments`."""
        sums = torch.zeros(3, dtype=torch.float64)
        for some_z, some_h in blocks(z, h):
            a, b = (some_z - moments.mean_z).square().sum(1), (some_h - moments.mean_h).square().sum(1)
            sums += torch.stack([a @ a, a @ b, b @ b]).cpu()
        return cls(*sums.tolist())


def shuffled(
    z: Any, h: Any, moments: Moments, lengths: Lengths | None, *, shuffles: int, seed: int
) -> Iterator[tuple[Moments, Lengths | None]]:
    """Moments, and lengths if given, of `z` with the rows of `h` in another order, again and again.

    Only sums of products depend on the pairing. The rows of `h` are rolled by a random number of places, at least one,
    and shuffled within each block, so a memory-mapped array is read in order.
    """
    generator = randomness.generator(seed, "shuffle")
    n = moments.n
    for _ in range(shuffles):
        by = int(torch.randint(1, max(n, 2), (1,), generator=generator))
        zh, far = torch.zeros_like(moments.zh), 0.0
        for first, last, start in ((0, n - by, by), (n - by, n, 0)):
            for some_z, some_h in blocks(z[first:last], h[start : start + last - first]):
                order = torch.randperm(len(some_h), generator=generator).to(some_h.device)
                dz, dh = some_z - moments.mean_z, some_h[order] - moments.mean_h
                zh.addmm_(dz.T, dh)
                if lengths is not None:
                    far += float(dz.square().sum(1) @ dh.square().sum(1))
        yield replace(moments, zh=zh), None if lengths is None else replace(lengths, zh=far)


def halves(z: Any, h: Any, *, seed: int, names: tuple[str, str] = ("z", "h")) -> tuple[Moments, Moments]:
    """Moments of two random halves of the rows, in one pass; complaints call the two by their names."""
    generator = randomness.generator(seed, "split")
    found: list[list[Moments]] = [[], []]
    for some_z, some_h in blocks(z, h, names):
        order = torch.randperm(len(some_z), generator=generator).to(some_z.device)
        parts: list[Tensor] = [order[::2], order[1::2]]
        for half, rows in zip(found, parts, strict=True):
            if len(rows):
                part = Moments.of(some_z[rows], some_h[rows])
                half[:] = [half[0] + part] if half else [part]
    (fit,), (read,) = found
    return fit, read
