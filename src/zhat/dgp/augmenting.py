"""Augmentations of pictures as batched tensors: every row is cropped, coloured and blurred in its own way."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from zhat import _checks
from zhat.errors import BadInput

LUMA = (0.299, 0.587, 0.114)
# From red, green and blue to luma and two chromas (YIQ); a turn of the chromas is a turn of the hue.
YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


@dataclass(frozen=True)
class CropAndColour:
    r"""A random crop, brought back to the full size; a flip; other colours, or none; a blur.

    The steps are those of chen2020, in this order: crop, flip, brightness, contrast, saturation, hue, grey, blur.
    The original draws the order of the four colour steps anew for each picture, and turns the hue in HSV; here the
    order is fixed and the hue is turned in YIQ, which is linear.

    Args:
        area: the least and the largest share of the picture that a crop holds; its sides have a ratio of 3/4 to 4/3.
        flip: probability of a picture that is turned left to right.
        strength: s of the colour steps: brightness, contrast and saturation change by factors from 1 - 0.8 s to
            1 + 0.8 s, the hue by at most 0.2 s turns.
        coloured: probability of the colour steps.
        grey: probability of a picture without colour.
        blurred: probability of a blur.
        blur: the least and the largest standard deviation of the blur, in points.

    Reference: chen2020, appendix A (strength 1, blur with a kernel of a tenth of the side).
    """

    area: tuple[float, float] = (0.08, 1.0)
    flip: float = 0.5
    strength: float = 1.0
    coloured: float = 0.8
    grey: float = 0.2
    blurred: float = 0.5
    blur: tuple[float, float] = (0.1, 2.0)

    def __post_init__(self) -> None:
        for name in ("flip", "coloured", "grey", "blurred"):
            if not 0 <= _checks.finite(getattr(self, name), name) <= 1:
                raise BadInput(f"`{name}` is a probability, but {getattr(self, name)} came.")
        if not 0 < self.area[0] <= self.area[1] <= 1:
            raise BadInput(f"`area` must be two shares of the picture in order, but {self.area} came.")
        if not 0 < self.blur[0] <= self.blur[1]:
            raise BadInput(f"`blur` must be two positive deviations in order, but {self.blur} came.")
        if not 0 <= _checks.finite(self.strength, "strength") <= 1.25:
            raise BadInput(f"`strength` must lie between 0 and 1.25, but {self.strength} came.")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Augmented pictures.

        Args:
            x: pictures with values from 0 to 1, `(n, 3, height, width)`.
            generator: of all draws, on the device of the pictures.

        Returns:
            Pictures of the same shape, values from 0 to 1.
        """
        if x.ndim != 4 or x.shape[1] != 3:
            raise BadInput(
                f"pictures of three channels are coloured, (n, 3, height, width), but {tuple(x.shape)} came."
            )
        x = self._cropped(x, generator)
        changed = _happens(self.coloured, x, generator)
        x = torch.where(changed, self._coloured(x, generator), x)
        x = torch.where(_happens(self.grey, x, generator), _luma(x).expand_as(x), x)
        return torch.where(_happens(self.blurred, x, generator), self._blurred(x, generator), x).clamp(0, 1)

    def _cropped(self, x: Tensor, generator: torch.Generator) -> Tensor:
        n = len(x)
        share = _between(*self.area, n, generator)
        ratio = _between(math.log(3 / 4), math.log(4 / 3), n, generator).exp()
        sides = torch.stack([(share * ratio).sqrt(), (share / ratio).sqrt()]).clamp(max=1)  # width, height
        middle = (2 * torch.rand(2, n, generator=generator, device=x.device) - 1) * (1 - sides)
        mirror = torch.where(_happens(self.flip, x, generator).flatten(), -1.0, 1.0)
        zero = torch.zeros_like(share)
        place = torch.stack([sides[0] * mirror, zero, middle[0], zero, sides[1], middle[1]], 1).reshape(n, 2, 3)
        grid = F.affine_grid(place, list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)

    def _coloured(self, x: Tensor, generator: torch.Generator) -> Tensor:
        n, reach = len(x), 0.8 * self.strength
        brighter, contrast, colour = (_between(1 - reach, 1 + reach, n, generator)[:, None, None, None] for _ in "bcs")
        x = (brighter * x).clamp(0, 1)
        x = (contrast * x + (1 - contrast) * _luma(x).mean((2, 3), keepdim=True)).clamp(0, 1)
        x = (colour * x + (1 - colour) * _luma(x)).clamp(0, 1)
        turn = 2 * math.pi * _between(-0.2 * self.strength, 0.2 * self.strength, n, generator)
        into = x.new_tensor(YIQ)
        turned = torch.eye(3, device=x.device).repeat(n, 1, 1)
        turned[:, 1, 1] = turned[:, 2, 2] = turn.cos()
        turned[:, 1, 2], turned[:, 2, 1] = -turn.sin(), turn.sin()
        whole = torch.linalg.inv(into) @ turned @ into
        return torch.einsum("ncd,ndhw->nchw", whole, x).clamp(0, 1)

    def _blurred(self, x: Tensor, generator: torch.Generator) -> Tensor:
        n, reach = len(x), max(1, round(0.05 * x.shape[-1]))
        deviation = _between(*self.blur, n, generator)
        step = torch.arange(-reach, reach + 1, device=x.device)
        weight = (-0.5 * (step / deviation[:, None]).square()).softmax(1)[:, :, None, None, None]
        for axis in (2, 3):
            pad = (reach, reach, 0, 0) if axis == 3 else (0, 0, reach, reach)
            wide, size = F.pad(x, pad, mode="replicate"), x.shape[axis]
            x = sum((weight[:, i] * wide.narrow(axis, i, size) for i in range(len(step))), torch.zeros_like(x))
        return x


def _happens(probability: float, x: Tensor, generator: torch.Generator) -> Tensor:
    """For each picture, whether it happens, `(n, 1, 1, 1)`."""
    return torch.rand(len(x), 1, 1, 1, generator=generator, device=x.device) < probability


def _between(low: float, high: float, n: int, generator: torch.Generator) -> Tensor:
    return low + (high - low) * torch.rand(n, generator=generator, device=generator.device)


def _luma(x: Tensor) -> Tensor:
    """`(n, 3, h, w) -> (n, 1, h, w)`."""
    return (x * x.new_tensor(LUMA)[:, None, None]).sum(1, keepdim=True)
