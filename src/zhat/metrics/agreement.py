r"""How well latents and aligned representation agree.

An agreement is a formula in five sums over rows for each latent: of $z$, $\hat z$, $z^2$, $z\hat z$ and $\hat z^2$. The
sums come from moments for the score itself and from weighted rows for its interval, so one formula serves both. They
are taken around the mean of $z$; those of $\hat z$ around its own mean where the measure is blind to an offset, because
an offset of 1e8 standard deviations leaves no digit of a variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from zhat._checks import constant
from zhat.equivalence import COMPONENTWISE, IDENTITY, SCALED_PERMUTATION, Equivalence
from zhat.metrics.spectrum import centred

Formula = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, repr=False)
class Agreement:
    r"""A measure of agreement between latents and aligned representation.

    Attributes:
        name: for instance "R2".
        formula: what the number of rows and the sums of $z, \hat z, z^2, z\hat z, \hat z^2$ give, one value for each
            latent. All arrays have the shape `(…, d)`.
        blind_to: what may be done to single coordinates without moving the measure: nothing (`IDENTITY`), rescaling
            and shifting (`SCALED_PERMUTATION`), or monotone bending (`COMPONENTWISE`).
    """

    name: str
    formula: Formula
    blind_to: Equivalence = IDENTITY

    @property
    def forgives_shift(self) -> bool:
        """Whether a constant offset of a coordinate does not move it."""
        return self.blind_to is not IDENTITY

    @property
    def ranked(self) -> bool:
        """Whether the sums are those of ranks."""
        return self.blind_to is COMPONENTWISE

    def __repr__(self) -> str:
        return self.name.lower()

    def __call__(self, z: Tensor, z_hat: Tensor) -> Tensor:
        """One value for each latent, `(n, d), (n, d) -> (d,)`."""
        if self.ranked:
            z, z_hat = ranks(z), ranks(z_hat)
        sums = self.contributions(z, z_hat).sum(0)
        return self.formula(torch.full_like(sums[: z.shape[1]], len(z)), *sums.chunk(5))

    def contributions(self, z: Tensor, z_hat: Tensor) -> Tensor:
        """What each row adds to the five sums, `(n, d), (n, d) -> (n, 5 d)`, in float64."""
        centre = z.mean(0, dtype=torch.float64)
        h = z_hat - centre
        if self.forgives_shift:
            h = torch.where(constant(z_hat), 0.0, z_hat - z_hat.mean(0, dtype=torch.float64))
        z = z - centre
        return torch.cat([z, h, z.square(), z * h, h.square()], -1)


def ranks(values: Tensor) -> Tensor:
    """Ranks of each column, ties averaged, `(n, d) -> (n, d)`, in float64."""
    out = torch.empty_like(values, dtype=torch.float64)
    for c, column in enumerate(values.T):
        ordered, order = column.sort()
        _, group, counts = torch.unique_consecutive(ordered, return_inverse=True, return_counts=True)
        middle = counts.cumsum(0) - 0.5 * (counts - 1)
        out[order, c] = middle.double()[group]
    return out


def _r2(n: Tensor, z: Tensor, h: Tensor, zz: Tensor, zh: Tensor, hh: Tensor) -> Tensor:
    spread = centred(zz, z, n)
    share = (zz - 2 * zh + hh).clamp_min(0) / spread
    return torch.where(spread > 0, 1 - share, math.nan)  # a constant latent has no variance to explain


def _correlation(n: Tensor, z: Tensor, h: Tensor, zz: Tensor, zh: Tensor, hh: Tensor) -> Tensor:
    latent, spread = centred(zz, z, n).sqrt(), centred(hh, h, n).sqrt()
    value = torch.where(
        spread > 0, (zh - z * h / n) / latent / spread, 0.0
    )  # a constant prediction agrees with nothing
    return torch.where(latent > 0, value.clamp(-1, 1), math.nan)


r2 = Agreement("R2", _r2)
"""Share of each latent's variance that is explained; the mean over latents is scikit-learn's `r2_score`."""

pearson = Agreement("Pearson", _correlation, blind_to=SCALED_PERMUTATION)
"""Pearson correlation of each latent with its aligned coordinate. The alignment has settled the sign on other rows,
so noise scores around 0 here, not around its absolute value."""

spearman = Agreement("Spearman", _correlation, blind_to=COMPONENTWISE)
"""Rank correlation of each latent with its aligned coordinate; blind to monotone bending."""
