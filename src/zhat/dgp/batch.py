"""What a process hands over: latents, observations, labels."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """One draw from a process.

    Attributes:
        x: observations, `(views, n, m)`.
        z: latents of the same rows, `(views, n, d)`; None for recorded data without known factors.
        label: one label for each row, `(n,)`; None where rows carry none.
    """

    x: Tensor
    z: Tensor | None = None
    label: Tensor | None = None
