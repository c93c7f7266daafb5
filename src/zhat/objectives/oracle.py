"""Objectives that are given the latents: an upper bound for every unsupervised objective."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zhat.dgp.batch import Batch
from zhat.errors import BadInput


@dataclass(frozen=True)
class Supervised:
    r"""Mean squared error to the true latents, on the first view.

    $$L = \frac{1}{nd} \sum_i \lVert h_i - z_i / u \rVert^2$$

    Args:
        units: u, one for each latent, where latents come in units of very different size; empty takes them as they are.

    Reference: zimmermann2021, column "Supervised" of Tables 1 and 2.
    """

    units: tuple[float, ...] = ()

    def __repr__(self) -> str:
        return f"Supervised(units={self.units})" if self.units else "Supervised()"  # as it was before there were units

    def __call__(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of representations `(views, n, d)`; a scalar."""
        if batch.z is None:
            raise BadInput("Supervised needs the true latents, but this process has none.")
        if h.shape[-1] != batch.z.shape[-1]:
            raise BadInput(
                f"Supervised regresses the latents themselves: the encoder must end in {batch.z.shape[-1]} dimensions, "
                f"but it ends in {h.shape[-1]}."
            )
        if not self.units:
            return (h[0] - batch.z[0]).square().mean()
        if len(self.units) != h.shape[-1]:
            raise BadInput(f"`units` must have one number for each of {h.shape[-1]} latents, but {self.units} came.")
        z = torch.stack([latent / unit for latent, unit in zip(batch.z[0].unbind(-1), self.units, strict=True)], -1)
        return (h[0] - z).square().mean()
