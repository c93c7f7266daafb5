"""Intervals by resampling rows, chance levels by shuffling them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from zhat import randomness
from zhat.errors import BadInput
from zhat.metrics.agreement import Agreement, contributions
from zhat.metrics.moments import Moments


def bootstrap(agree: Agreement, z: Tensor, z_hat: Tensor, *, repeats: int, seed: int) -> Tensor:
    """Mean agreement under resampled rows, `(repeats,)`.

    Rows are drawn with replacement. An agreement is a formula in sums over rows, so each repeat is one row of a matrix
    product with the counts.
    """
    generator = randomness.generator(seed, "bootstrap")
    rows = contributions(z, z_hat)
    n, d = z.shape
    values = []
    for start in range(0, repeats, 50):
        some = min(50, repeats - start)
        drawn = torch.randint(n, (some, n), generator=generator)
        counts = torch.zeros(some, n, dtype=torch.float64)
        counts.scatter_add_(1, drawn, torch.ones((), dtype=torch.float64).expand(some, n))
        sums = counts.to(rows.device) @ rows
        values.append(agree.formula(torch.full_like(sums[:, :d], n), *sums.chunk(5, -1)).mean(-1))
    found = torch.cat(values)
    found = found[torch.isfinite(found)]  # a resample may leave a latent constant, and then has no score
    if len(found) < 0.9 * repeats:
        raise BadInput(
            "a latent takes so few values that resampled rows often hold only one of them, so no interval can be "
            "given. Use more rows, or repeats=0."
        )
    return found


def interval(values: Tensor, level: float = 0.95) -> tuple[float, float]:
    """The central interval that holds a share `level` of the values."""
    ends = torch.quantile(
        values, torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=values.dtype).to(values.device)
    )
    return float(ends[0]), float(ends[1])


def shuffled(moments: Moments, z: Tensor, h: Tensor, *, shuffles: int, seed: int) -> Iterator[Moments]:
    """Moments of `z` with the rows of `h` in another order, again and again.

    Only the cross moments depend on the pairing. Rows are shuffled once and then rolled by random numbers of places.
    """
    generator = randomness.generator(seed, "shuffle")
    n = len(z)
    dz = z - moments.mean_z
    dh = (h - moments.mean_h)[torch.randperm(n, generator=generator)]
    for _ in range(shuffles):
        by = int(torch.randint(n, (1,), generator=generator))
        yield replace(moments, zh=dz[by:].T @ dh[: n - by] + dz[:by].T @ dh[n - by :])
