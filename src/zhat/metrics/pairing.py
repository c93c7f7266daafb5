"""Rows in another order, split in two, or drawn again: all shuffling and resampling of the judge.

Chance levels come from `orders` of rows in memory, from `rolled` and `shuffled` moments of rows in memory or read a
block at a time, and from `unpaired` moments where there are no rows; intervals come from `draws` with replacement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from zhat import randomness
from zhat.metrics.moments import Moments, blocks


@dataclass(frozen=True)
class Lengths:
    r"""Sums over rows of $|z|^4$, $|z|^2|h|^2$ and $|h|^4$, around the means: of fourth order, so not among moments.

    In units of the traces of the scatters, so that no product overflows.
    """

    zz: float
    zh: float
    hh: float

    @classmethod
    def of(cls, z: Any, h: Any, moments: Moments) -> Lengths:
        """Of all rows, around the means of `moments`."""
        sums = torch.zeros(3, dtype=torch.float64)
        for some_z, some_h in blocks(z, h):
            a = (some_z - moments.mean_z).square().sum(1) / moments.zz.trace()
            b = (some_h - moments.mean_h).square().sum(1) / moments.hh.trace()
            sums += torch.stack([a @ a, a @ b, b @ b]).cpu()
        return cls(*sums.tolist())


def order(n: int, generator: torch.Generator, device: torch.device | str = "cpu") -> Tensor:
    """n rows in a random order, `(n,)`."""
    return torch.randperm(n, generator=generator).to(device)


def orders(n: int, block: int, generator: torch.Generator, times: int = 1) -> Tensor:
    """Orders of n rows, `(times, n)`: blocks of neighbouring rows change places, and each is rolled by itself.

    Rolled blocks keep how neighbouring rows are alike, and lose which row they stood beside. Rows left over after the
    last whole block form a shorter one that only rolls.
    """
    if block <= 1:
        return torch.rand(times, n, generator=generator).argsort(1)
    whole = n // block
    places = torch.rand(times, whole, generator=generator).argsort(1)
    roll = torch.randint(block, (times, whole, 1), generator=generator)
    rows = (places[:, :, None] * block + (torch.arange(block) + roll) % block).reshape(times, -1)
    rest = n - whole * block
    if rest:
        roll = torch.randint(rest, (times, 1), generator=generator)
        rows = torch.cat([rows, whole * block + (torch.arange(rest) + roll) % rest], 1)
    return rows


def draws(n: int, repeats: int, generator: torch.Generator) -> Iterator[Tensor]:
    """How often each of n rows is drawn, n times with replacement, `(up to 50, n)` until there are `repeats` rows."""
    one = torch.ones((), dtype=torch.float64)
    for start in range(0, repeats, 50):
        some = min(50, repeats - start)
        drawn = torch.randint(n, (some, n), generator=generator)
        yield torch.zeros(some, n, dtype=torch.float64).scatter_add_(1, drawn, one.expand(some, n))


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
                mixed = order(len(some_h), generator, some_h.device)
                dz, dh = some_z - moments.mean_z, some_h[mixed] - moments.mean_h
                zh.addmm_(dz.T, dh)
                if lengths is not None:
                    size_z, size_h = dz.square().sum(1) / moments.zz.trace(), dh.square().sum(1) / moments.hh.trace()
                    far += float(size_z @ size_h)
        yield replace(moments, zh=zh), None if lengths is None else replace(lengths, zh=far)


def rolled(moments: Moments, z: Tensor, h: Tensor, *, shuffles: int, seed: int) -> Iterator[Moments]:
    """The same of rows in memory, which are shuffled once and then rolled by random numbers of places."""
    generator = randomness.generator(seed, "shuffle")
    n = len(z)
    dz = z - moments.mean_z
    dh = (h - moments.mean_h)[order(n, generator)]
    for _ in range(shuffles):
        by = int(torch.randint(n, (1,), generator=generator))
        yield replace(moments, zh=dz[by:].T @ dh[: n - by] + dz[:by].T @ dh[n - by :])


def unpaired(sides: Sequence[Moments], *, shuffles: int, seed: int) -> Iterator[tuple[Moments, ...]]:
    r"""Moments of rows paired at random, those of several sets of rows at a time: the limit of shuffling for many rows.

    Shuffling the rows of h leaves everything but the cross moments, and those become Gaussian with covariance
    $zz \otimes hh / (n - 1)$: a draw of them costs two products and no further pass over the rows.
    """
    generator = randomness.generator(seed, "chance")
    roots = [(_root(m.zz), _root(m.hh) / math.sqrt(max(1, m.n - 1)), m) for m in sides]
    for _ in range(shuffles):
        noise = [torch.randn(m.zh.shape, generator=generator, dtype=torch.float64) for m in sides]
        yield tuple(replace(m, zh=z @ some @ h) for (z, h, m), some in zip(roots, noise, strict=True))


def _root(scatter: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(scatter)
    root: Tensor = (vectors * values.clamp_min(0).sqrt()) @ vectors.T
    return root


def halves(z: Any, h: Any, *, seed: int, names: tuple[str, str] = ("z", "h")) -> tuple[Moments, Moments]:
    """Moments of two random halves of the rows, in one pass; complaints call the two by their names."""
    generator = randomness.generator(seed, "split")
    found: list[list[Moments]] = [[], []]
    for some_z, some_h in blocks(z, h, names):
        mixed = order(len(some_z), generator, some_z.device)
        for half, rows in zip(found, (mixed[::2], mixed[1::2]), strict=True):
            if len(rows):
                part = Moments.of(some_z[rows], some_h[rows])
                half[:] = [half[0] + part] if half else [part]
    (fit,), (read,) = found
    return fit, read
