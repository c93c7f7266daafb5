"""What a light does not reach: shadows on the ground and on the object, from the light's own map of the object."""

from __future__ import annotations

import torch
from torch import Tensor

from zhat.scenes.rasterise import steps
from zhat.scenes.vectors import seen

BIAS = 2e-3  # how much nearer to the light something must be to shade a surface, in the range of the light's map


def blurred(maps: Tensor, deviation: Tensor) -> Tensor:
    """Maps `(…, s, s)` after a Gaussian blur of that deviation in cells, `(…)`: a matrix product from each side.

    Every blur has at least half a cell, which smooths the steps of the map.
    """
    cells = torch.arange(maps.shape[-1], device=maps.device, dtype=maps.dtype)
    squared = (cells[:, None] - cells) ** 2
    kernel = torch.exp(squared * (-0.5 / (deviation * deviation + 0.25))[..., None, None])
    kernel = kernel / kernel.sum(-1).amax(-1)[..., None, None]  # as in the middle: what leaves the map is lost
    return kernel @ maps @ kernel


def on_ground(maps: Tensor, view: Tensor, points: Tensor) -> Tensor:
    """The share of a light that reaches points of the ground.

    Args:
        maps: blurred maps of the object as the light sees it, 1 where it is, `(n, s, s)`.
        view: the light's view, `(n, 4, 4)`.
        points: of the ground, `(3, h, w)`.

    Returns:
        `(n, h, w)`; 1 outside the map and behind the light.
    """
    a, b, w = (view[:, i, :3] @ points.flatten(1) + view[:, i, 3:] for i in range(3))
    there = torch.stack([a, b], -1) / w[..., None] * (2 / maps.shape[-1]) - 1
    there = torch.where((w > 0)[..., None], there, -2.0).view(len(maps), *points.shape[1:], 2)
    return 1 - torch.nn.functional.grid_sample(maps[:, None], there, align_corners=False)[:, 0]


def on_object(keys: Tensor, view: Tensor, picture: Tensor, point: Tensor, bits: int) -> Tensor:
    """The share of a light that reaches points of the object: the four nearest cells of its map vote.

    Args:
        keys: of what the light sees, `(n, s, s)`.
        view: the light's view, `(n, 4, 4)`.
        picture: to which of the n pictures each point belongs, `(k,)`.
        point: `(3, k)`.
        bits: of a key, which name the triangle.
    """
    s = keys.shape[-1]
    a, b, w, t = seen(view.permute(1, 2, 0).index_select(2, picture), point)
    x, y = a / w - 0.5, b / w - 0.5
    level = (t / w + BIAS) * steps(bits)
    left, top = x.floor(), y.floor()
    right_share, lower_share = x - left, y - top
    first = picture * (s * s)
    lit = torch.zeros_like(x)
    for dx, across in ((0, 1 - right_share), (1, right_share)):
        for dy, down in ((0, 1 - lower_share), (1, lower_share)):
            column, row = left + dx, top + dy
            outside = (column < 0) | (column >= s) | (row < 0) | (row >= s) | (w <= 0)
            cell = first + (row.clamp(0, s - 1) * s + column.clamp(0, s - 1)).long()
            nearest = keys.view(-1).index_select(0, cell) >> bits
            lit += across * down * (outside | (nearest <= level))
    return lit
