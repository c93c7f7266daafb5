"""Three components first: vectors as `(3, …)`, so that each component is one block of memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor


def constant(values: tuple[Any, ...], like: Tensor) -> Tensor:
    """Fixed numbers, in the dtype and on the device of a tensor; copied there once, because a GPU waits for a copy."""
    return _kept(values, like.dtype, like.device)


@lru_cache(maxsize=64)
def _kept(values: tuple[Any, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=dtype, device=device)


def dot(a: Tensor, b: Tensor) -> Tensor:
    """The scalar product over the first axis."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def unit(a: Tensor) -> Tensor:
    """The vector of length 1 in the same direction."""
    return a * torch.rsqrt(dot(a, a))


def cross(a: Tensor, b: Tensor) -> Tensor:
    """The vector product over the first axis."""
    return torch.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def turned(rotation: Tensor, v: Tensor) -> Tensor:
    """R v, `(3, 3, …), (3, …) -> (3, …)`."""
    return torch.stack([dot(rotation[i], v) for i in range(3)])


def turned_back(rotation: Tensor, v: Tensor) -> Tensor:
    """R^T v, `(3, 3, …), (3, …) -> (3, …)`."""
    return torch.stack([dot(rotation[:, i], v) for i in range(3)])


def seen(view: Tensor, point: Tensor) -> tuple[Tensor, ...]:
    """The four components of M (p, 1), `(4, 4, …), (3, …) -> 4 times (…)`."""
    return tuple(dot(view[i], point) + view[i, 3] for i in range(4))


def euler(angles: Tensor) -> Tensor:
    r"""$R_z(\gamma) R_y(\beta) R_x(\alpha)$: turned about x first, then y, then z; angles `(n, 3) -> (n, 3, 3)`."""
    (ca, cb, cc), (sa, sb, sc) = angles.cos().unbind(1), angles.sin().unbind(1)
    rows = (
        (cb * cc, sa * sb * cc - ca * sc, ca * sb * cc + sa * sc),
        (cb * sc, sa * sb * sc + ca * cc, ca * sb * sc - sa * cc),
        (-sb, sa * cb, ca * cb),
    )
    return torch.stack([torch.stack(row, -1) for row in rows], -2)
