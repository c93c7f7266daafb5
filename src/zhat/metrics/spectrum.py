r"""The spectrum of a scatter matrix: which columns vary, which directions are empty, how to whiten the others.

**One tolerance.** A result is trusted as far as it exceeds `ROUNDINGS` = 4 roundings of what it was computed from, with
$\epsilon$ = 2.2e-16 of float64, in which all sums are kept:

- a *column* is constant if its standard deviation is at most $4 \epsilon |\text{mean}|$: the mean is known no better;
- a *difference* $\sum x^2 - (\sum x)^2 / n$ is nothing below $4 \epsilon \sqrt n \sum x^2$;
- a *direction* of d columns brought to unit variance is empty if its share of the largest variance is at most
  $4 \epsilon (d + \sqrt n)$, because sums of n products carry rounding of that size, or if its variance is at most
  $(4 \epsilon_c)^2 + \epsilon_s^2 (1 + m^2) / 3$. Here $\epsilon_s$ is the precision in which the numbers were stored
  (1.2e-7 for float32), $\epsilon_c$ the one in which they were computed, float32 or better, and m is the largest |mean|
  of a column in its standard deviations. The second term is four times the variance of rounding such numbers.

Moments hold squares, so directions can be distinguished up to a condition number (of the unit columns) of about
$1 / \sqrt{4 \epsilon (d + \sqrt n)}$: 5e6 for 2,000 rows of float64, 2e6 for float32 around 0. A canonical correlation
in a direction of condition number c has an error of about $\epsilon c^2$: 2e-8 at 1e4, 2e-4 at 1e6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from zhat._checks import EPS, ROUNDINGS

TINY = torch.finfo(torch.float64).tiny
SINGLE = torch.finfo(torch.float32).eps


def varies(squares: Tensor, mean: Tensor, n: int) -> Tensor:
    """Which columns of n rows vary, by their means and the sums of squares around them, `(d,), (d,) -> (d,)`."""
    return squares > n * (ROUNDINGS * EPS * mean).square()


def centred(squares: Tensor, total: Tensor, n: Tensor) -> Tensor:
    r"""$\sum x^2 - (\sum x)^2 / n$, and 0 where that is rounding, from the sums over n rows."""
    left = squares - total.square() / n
    return torch.where(left > ROUNDINGS * EPS * n.sqrt() * squares, left, 0.0)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Directions of a scatter matrix that are not empty, largest variance first.

    Attributes:
        unit: what each column is multiplied by, 0 for a constant one, `(d,)`.
        values: variances of the directions, `(rank,)`.
        vectors: the directions, orthonormal, in columns multiplied by `unit`, `(d, rank)`.
        floor: the variance at and below which a direction counts as empty.
    """

    unit: Tensor
    values: Tensor
    vectors: Tensor
    floor: float

    @classmethod
    def of(cls, scatter: Tensor, mean: Tensor, n: int, *, eps: float = EPS, unit: bool = True) -> Spectrum:
        """Of a scatter matrix around the mean.

        Args:
            scatter: sum of (x - mean)(x - mean)^T, `(d, d)`.
            mean: `(d,)`.
            n: rows.
            eps: precision in which the rows were stored.
            unit: bring columns to unit variance first, so that their units do not matter.
        """
        vary = varies(scatter.diagonal(), mean, n)
        size = torch.where(vary, scatter.diagonal(), 1.0)
        # Without `unit` one factor for all columns: nothing changes but that no product overflows.
        common = 1 / size.max().sqrt() if bool(vary.any()) else size.new_ones(())
        scale = torch.where(vary, size.rsqrt() if unit else common, 0.0)
        scaled = scale[:, None] * scatter * scale
        if bool(vary.any()) and not bool(vary.all()):  # constant columns are part of no direction and only take time
            values, some = torch.linalg.eigh(scaled[vary][:, vary])
            vectors = scaled.new_zeros(len(scaled), len(values))
            vectors[vary] = some
        else:
            values, vectors = torch.linalg.eigh(scaled)
        values, vectors = values.flip(0), vectors.flip(1)
        computed, rounded = (ROUNDINGS * min(eps, SINGLE)) ** 2 * size, eps**2 / 3 * (size + n * mean.square())
        stored = (computed + rounded) * scale.square()
        sums = ROUNDINGS * EPS * (len(scatter) + math.sqrt(n)) * values[0]
        floor = float(torch.maximum(sums, stored.max()))
        kept = values > floor
        return cls(scale, values[kept], vectors[:, kept], floor)

    @property
    def white(self) -> Tensor:
        """W with W^T scatter W = 1, `(d, rank)`."""
        return self.unit[:, None] * self.vectors * self.values.rsqrt()

    @property
    def rank(self) -> int:
        """Directions that are not empty."""
        return len(self.values)
