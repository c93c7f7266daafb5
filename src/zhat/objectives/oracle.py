"""Objectives that see the latents: the upper bound any unsupervised one is measured against."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from zhat.dgp.batch import Batch
from zhat.errors import BadInput


@dataclass(frozen=True)
class Supervised:
    r"""Mean squared error to the true latents, on the first view.

    $$L = \frac{1}{nd} \sum_i \lVert h_i - z_i \rVert^2$$

    Reference: zimmermann2021, column "Supervised" of Tables 1 and 2.
    """

    def __call__(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of representations `(views, n, d)`; a scalar."""
        if batch.z is None:
            raise BadInput("Supervised needs the true latents, but this process hands over none.")
        if h.shape[-1] != batch.z.shape[-1]:
            raise BadInput(
                f"Supervised regresses the latents themselves: the encoder must end in {batch.z.shape[-1]} dimensions, "
                f"but it ends in {h.shape[-1]}."
            )
        return (h[0] - batch.z[0]).square().mean()
