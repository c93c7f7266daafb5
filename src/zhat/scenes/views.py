r"""Where points are seen: cameras and lights as 4 x 4 matrices.

A view turns a point $p$ of the world into $(a, b, w, t) = M (p, 1)$. It is seen at the place $(a / w, b / w)$, counted
in samples from the upper left corner of a square map, and its nearness is $t / w$: 0 for the farthest point of
interest, 1 for the nearest. Straight lines stay straight, and on a triangle the nearness is linear in the place, so
that a depth buffer needs no division for each sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zhat.scenes.vectors import constant


@dataclass(frozen=True, eq=False)
class Frame:
    """Where an eye is and how it is turned; all fields `(…, 3)`, the last three orthonormal."""

    eye: Tensor
    right: Tensor
    up: Tensor
    forward: Tensor

    def rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Linear forms `(…, 4)` of a point (p, 1): how far it lies to the right, above and ahead of the eye."""
        eye, *axes = torch.broadcast_tensors(self.eye, self.right, self.up, self.forward)
        right, up, ahead = (torch.cat([axis, -(axis * eye).sum(-1, keepdim=True)], -1) for axis in axes)
        return right, up, ahead


def towards(eye: Tensor, target: Tensor) -> Frame:
    """An eye that looks at a target; the direction must not be that of the x axis. All `(…, 3)`."""
    forward = torch.nn.functional.normalize(target - eye, dim=-1)
    aside = constant((1.0, 0.0, 0.0), eye).expand_as(forward)
    up = torch.nn.functional.normalize(aside - (aside * forward).sum(-1, keepdim=True) * forward, dim=-1)
    return Frame(eye, torch.linalg.cross(forward, up), up, forward)


def perspective(frame: Frame, centre: Tensor, half: Tensor, near: Tensor, far: Tensor, samples: int) -> Tensor:
    r"""The view of an eye at a finite distance.

    The map shows directions whose tangents, to the right and downwards, are within `half` of `centre`. With $w$ the
    distance ahead of the eye, nearness is $(1/w - 1/\text{far}) / (1/\text{near} - 1/\text{far})$.

    Args:
        frame: of the eye, `(…, 3)`.
        centre: tangents at the middle of the map, `(…, 2)`.
        half: tangent from the middle of the map to its edge, `(…)`.
        near: the smallest distance ahead that matters, `(…)`; above 0.
        far: the largest, `(…)`.
        samples: side of the map.

    Returns:
        `(…, 4, 4)`.
    """
    right, up, ahead = frame.rows()
    a = _place(right, ahead, centre[..., 0], half, samples)
    b = _place(-up, ahead, centre[..., 1], half, samples)
    scale = 1 / (1 / near - 1 / far)
    one = constant((0.0, 0.0, 0.0, 1.0), ahead)
    t = scale[..., None] * (one - ahead / far[..., None])
    return torch.stack(torch.broadcast_tensors(a, b, ahead, t), -2)


def parallel(frame: Frame, half: Tensor, samples: int) -> Tensor:
    r"""The view from far away: parallel rays along `frame.forward`.

    The map shows points within `half` of the ray through `frame.eye`. Nearness falls from 1 to 0 on the way from `half`
    before the eye to `half` behind it.

    Args:
        frame: its eye is a point in the middle of what is seen, `(…, 3)`.
        half: half the side of the map, `(…)`.
        samples: side of the map.

    Returns:
        `(…, 4, 4)`.
    """
    right, up, ahead = frame.rows()
    one = constant((0.0, 0.0, 0.0, 1.0), ahead).expand_as(right)
    a = _place(right, one, torch.zeros_like(half), half, samples)
    b = _place(-up, one, torch.zeros_like(half), half, samples)
    return torch.stack([a, b, one, 0.5 * (one - ahead / half[..., None])], -2)


def _place(across: Tensor, ahead: Tensor, centre: Tensor, half: Tensor, samples: int) -> Tensor:
    """The linear form whose ratio to `ahead` runs from 0 to `samples` over the map."""
    return 0.5 * samples * ((across - centre[..., None] * ahead) / half[..., None] + ahead)


def posed(view: Tensor, rotation: Tensor, location: Tensor) -> Tensor:
    """The view of an object's own points, once it is turned and moved: `(…, 4, 4), (…, 3, 3), (…, 3) -> (…, 4, 4)`."""
    turned = view[..., :3] @ rotation
    moved = (view[..., :3] @ location[..., None]) + view[..., 3:]
    return torch.cat([turned, moved], -1)
