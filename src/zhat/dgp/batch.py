"""One draw of a process: latents, observations, labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """One draw from a process.

    A row of x may have any shape: m numbers, an image `(channels, height, width)`, the numbers of some words. Images
    may be bytes (`uint8`) or bits (`bool`), which take a quarter of the memory of floats. `encoder_input` turns them
    into floats; training and scoring call it right before the encoder.

    Attributes:
        x: observations, `(views, n, …)`.
        z: latents of the same rows, `(views, n, d)`; None for recorded data without known factors.
        label: one label for each row, `(n,)`; None where rows carry none.
        noise: standard normal numbers, `(views, n, q)`, for an objective that draws; `train` adds them where the
            objective has a member `noise` with their number q. None from a process.
    """

    x: Tensor
    z: Tensor | None = None
    label: Tensor | None = None
    noise: Tensor | None = None


def encoder_input(x: Tensor) -> Tensor:
    """Observations as an encoder takes them: bytes become floats from 0 to 1, bits become 0 and 1, all else stays.

    Args:
        x: observations of any shape.

    Example:
        >>> encoder_input(torch.tensor([0, 51, 255], dtype=torch.uint8))
        tensor([0.0000, 0.2000, 1.0000])
    """
    if x.dtype == torch.uint8:
        return x.float() / 255
    return x.float() if x.dtype == torch.bool else x
