"""A score of few latents among many coordinates, as zimmermann2021 reads KITTI Masks."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from zhat import randomness
from zhat.equivalence import Equivalence
from zhat.metrics.recovery import Recovery
from zhat.results import Score


@dataclass(frozen=True)
class Padded:
    """A score of latents that are filled up with noise to as many columns as the representation has.

    Columns of N(0, 1) noise are put beside the d latents, so that there are k of each. All k are matched, and the mean
    is taken over the d true ones. The noise takes the coordinates that no latent needs, so the value is close to that
    of the measure alone.

    Args:
        measure: the score, a matching such as `Recovery(COMPONENTWISE, agree=spearman, holdout=0)`.
        seed: of the noise.

    Blind to: what the measure is blind to.
    Reference: zimmermann2021, Table 3 (the official code).
    """

    measure: Recovery
    seed: int = 0

    @property
    def up_to(self) -> Equivalence:
        """The measure's class."""
        return self.measure.up_to

    def __call__(self, z: Tensor, h: Tensor) -> Score:
        """The score of `h`, `(n, k)`, against `z`, `(n, d)`; interval and chance of the padded latents are left out."""
        d, missing = z.shape[1], max(0, h.shape[1] - z.shape[1])
        noise = torch.randn(len(z), missing, generator=randomness.generator(self.seed, "padding"))
        score = self.measure.plain(torch.cat([z, noise.to(z)], 1), h)
        each = score.per_latent[:d]
        return replace(score, value=statistics.fmean(each), per_latent=each)

    def held_out(self, z: Tensor, h: Tensor) -> Score:
        """The measure alone, matched on half of the rows and read on the others."""
        return self.measure.held_out(z, h)
