"""The axis that `torch.func.vmap` adds, folded into the stack axis that every kernel has in front."""

from __future__ import annotations

from torch import Tensor


def stack(x: Tensor, dim: int | None, size: int) -> Tensor:
    """Move the vmapped axis `dim` to the front and merge it with the stack axis."""
    x = x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
    return x.reshape(-1, *x.shape[2:])


def unstack(x: Tensor, size: int) -> Tensor:
    """Split the stack axis again; the vmapped axis comes first."""
    return x.reshape(size, -1, *x.shape[1:])
