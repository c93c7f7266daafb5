r"""Joint first and second moments of (z, h): one pass over the rows, memory $O((d+k)^2)$, mergeable.

Every second-order score (R2, Pearson correlation, canonical correlations, Procrustes, least squares) follows from them.
Sums are kept in float64 around the running mean, and two sets of rows are merged by the update of chan1983, so a large
offset costs no digits. Rows are looked at a block at a time: a memory-mapped array is never copied whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zhat import _checks
from zhat.errors import BadInput
from zhat.metrics.spectrum import TINY, Spectrum, varies

_BLOCK = 2**13  # rows
_VALUES = 2**22  # in a block, so that wide matrices take no more memory than narrow ones


def blocks(z: Any, h: Any, names: tuple[str, str] = ("z", "h")) -> Iterator[tuple[Tensor, Tensor]]:
    """Checked rows of `(n, d)` and `(n, k)`, a block at a time, in order; complaints call them by their names."""
    z, h = _checks.array(z), _checks.array(h)
    if not all(isinstance(one, np.ndarray | Tensor) and one.ndim == 2 for one in (z, h)) or len(z) != len(h):
        _checks.paired(z, h, names=names)  # says what is wrong
    size = min(_BLOCK, max(1, _VALUES // max(1, z.shape[1] + h.shape[1])))
    for start in range(0, len(z), size):
        yield _checks.paired(z[start : start + size], h[start : start + size], first=start, names=names)


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, means and centred scatter matrices of latents and representation.

    Attributes:
        n: number of rows.
        mean_z: `(d,)`.
        mean_h: `(k,)`.
        zz: sum of (z - mean)(z - mean)^T, `(d, d)`.
        zh: sum of (z - mean)(h - mean)^T, `(d, k)`.
        hh: sum of (h - mean)(h - mean)^T, `(k, k)`.
        rest_z: what rounding took from the mean, `(d,)`, so that a large offset costs no digits in a merge.
        rest_h: the same of h, `(k,)`.
        eps_z: precision in which z was stored.
        eps_h: precision in which h was stored.

    Example:
        >>> z, h = torch.randn(100, 2), torch.randn(100, 3)
        >>> parts = Moments.of(z[:40], h[:40]) + Moments.of(z[40:], h[40:])
        >>> torch.allclose(parts.zh, Moments.of(z, h).zh)
        True
    """

    n: int
    mean_z: Tensor
    mean_h: Tensor
    zz: Tensor
    zh: Tensor
    hh: Tensor
    rest_z: Tensor
    rest_h: Tensor
    eps_z: float = _checks.EPS
    eps_h: float = _checks.EPS

    @classmethod
    def of(cls, z: Any, h: Any) -> Moments:
        """Moments of some rows, `(n, d)` and `(n, k)`."""
        # Sums around a provisional centre, the mean of the first block: one pass, no copy of the whole.
        centre: list[Tensor] = []
        n = 0
        for some_z, some_h in blocks(z, h):
            if not centre:
                centre = [some.mean(0, dtype=torch.float64) for some in (some_z, some_h)]
                sum_z, sum_h = torch.zeros_like(centre[0]), torch.zeros_like(centre[1])
                zz, zh, hh = (a.new_zeros(len(a), len(b)) for a, b in ((sum_z, sum_z), (sum_z, sum_h), (sum_h, sum_h)))
            dz, dh = some_z - centre[0], some_h - centre[1]  # float64, because the centre is
            n += len(dz)
            sum_z += dz.sum(0)
            sum_h += dh.sum(0)
            zz.addmm_(dz.T, dz)
            zh.addmm_(dz.T, dh)
            hh.addmm_(dh.T, dh)
        if n == 0:
            raise BadInput("moments need at least one row, but none came.")
        (mean_z, rest_z), (mean_h, rest_h) = _sum(centre[0], sum_z / n), _sum(centre[1], sum_h / n)
        return cls(
            n,
            mean_z,
            mean_h,
            zz - torch.outer(sum_z, sum_z / n),
            zh - torch.outer(sum_z, sum_h / n),
            hh - torch.outer(sum_h, sum_h / n),
            rest_z,
            rest_h,
            torch.finfo(some_z.dtype).eps,
            torch.finfo(some_h.dtype).eps,
        )._held(some_z - centre[0], some_h - centre[1])

    def __add__(self, other: Moments) -> Moments:
        if (self.zh.shape) != (other.zh.shape):
            raise BadInput(
                f"moments of {tuple(self.zh.shape)} and {tuple(other.zh.shape)} columns do not belong to one matrix."
            )
        n = self.n + other.n
        step_z = (other.mean_z - self.mean_z) + (other.rest_z - self.rest_z)
        step_h = (other.mean_h - self.mean_h) + (other.rest_h - self.rest_h)
        mean_z, rest_z = _sum(self.mean_z, self.rest_z + step_z * (other.n / n))
        mean_h, rest_h = _sum(self.mean_h, self.rest_h + step_h * (other.n / n))
        weight = self.n * other.n / n
        return Moments(
            n,
            mean_z,
            mean_h,
            self.zz + other.zz + weight * torch.outer(step_z, step_z),
            self.zh + other.zh + weight * torch.outer(step_z, step_h),
            self.hh + other.hh + weight * torch.outer(step_h, step_h),
            rest_z,
            rest_h,
            max(self.eps_z, other.eps_z),
            max(self.eps_h, other.eps_h),
        )

    def _held(self, dz: Tensor, dh: Tensor) -> Moments:
        """These moments, if float64 holds the squares of deviations such as these rows have."""
        for scatter, mean, rows, name in ((self.zz, self.mean_z, dz, "z"), (self.hh, self.mean_h, dh, "h")):
            squares, far = scatter.diagonal(), rows.abs().amax(0)
            lost = (squares < TINY) & (far > 0) & (far > _checks.ROUNDINGS * _checks.EPS * mean.abs())
            if not bool(torch.isfinite(squares).all()) or bool(lost.any()):
                raise BadInput(
                    f"the squares of `{name}` leave the range of float64 (deviations of up to {float(far.max()):.3g} "
                    f"from the mean). Rescale its columns to sizes around 1."
                )
        return self

    def swapped(self) -> Moments:
        """Moments of (h, z)."""
        h, z = (self.mean_h, self.rest_h, self.eps_h), (self.mean_z, self.rest_z, self.eps_z)
        return Moments(self.n, h[0], z[0], self.hh, self.zh.T, self.zz, h[1], z[1], h[2], z[2])

    def varies(self) -> tuple[Tensor, Tensor]:
        """Which columns of z and of h vary, `(d,)` and `(k,)`."""
        return varies(self.zz.diagonal(), self.mean_z, self.n), varies(self.hh.diagonal(), self.mean_h, self.n)

    def spectrum(self) -> Spectrum:
        """Directions of h that are not empty, columns brought to unit variance; those of z: `swapped().spectrum()`."""
        return self._spectrum

    @cached_property
    def _spectrum(self) -> Spectrum:
        """Found once: every map of thousands of columns asks for it."""
        return Spectrum.of(self.hh, self.mean_h, self.n, eps=self.eps_h)

    def scatter(self, *, shift: bool) -> tuple[Tensor, Tensor, Tensor]:
        """zz, zh, hh: around the means if a shift is free, around the origin otherwise."""
        if shift:
            return self.zz, self.zh, self.hh
        z, h = self.mean_z, self.mean_h
        return (
            self.zz + self.n * torch.outer(z, z),
            self.zh + self.n * torch.outer(z, h),
            self.hh + self.n * torch.outer(h, h),
        )

    def correlation(self) -> Tensor:
        """Pearson correlations between latents and representation, `(d, k)`; 0 where a column is constant."""
        unit_z, unit_h = (
            torch.where(vary, scatter.diagonal().clamp_min(TINY).rsqrt(), 0.0)
            for vary, scatter in zip(self.varies(), (self.zz, self.hh), strict=True)
        )
        return (unit_z[:, None] * self.zh * unit_h).clamp(-1, 1)


def _sum(large: Tensor, small: Tensor) -> tuple[Tensor, Tensor]:
    """A sum and what rounding took from it."""
    total = large + small
    return total, small - (total - large)
