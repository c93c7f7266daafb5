"""Two encoders in one: side by side as a pair to be compared, or one for each view."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from zhat.errors import BadInput


class Towers(nn.Module):
    r"""An encoder of its own for each view: $h_v = f_v(x_v)$.

    CPC and other models in canonical form $\exp f(x) \cdot g(y)$ look at x and y with different networks.

    Args:
        make: makes the encoder of one view, with weights of its own each time.
        views: how many.

    Reference: roeder2020, section 5.2: f sees the upper patch of an image, g the lower one.
    """

    sees_views: ClassVar[bool] = True

    def __init__(self, make: Callable[[], nn.Module], views: int = 2) -> None:
        super().__init__()
        self.towers = nn.ModuleList([make() for _ in range(views)])

    def forward(self, x: Tensor) -> Tensor:
        """`(views, n, m) -> (views, n, k)`."""
        if len(x) != len(self.towers):
            raise BadInput(f"this encoder has {len(self.towers)} towers, but rows of {len(x)} views came.")
        return torch.stack([tower(rows) for tower, rows in zip(self.towers, x, strict=True)])


class Pair(nn.Module):
    """Two encoders of one kind, trained side by side on different rows of each batch, to be compared afterwards.

    One takes the even rows and the other the odd rows, so they share the world, but neither weights nor draws.
    `zhat.objectives.Each` gives each of them a loss, and a head, of its own; Adam moves every parameter by itself, so
    both train as they would alone.

    Args:
        make: makes one encoder, with weights of its own each time.

    Reference: roeder2020, section 5: two models of the same family, trained independently on the same data.
    """

    sees_views: ClassVar[bool] = True

    def __init__(self, make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList([make(), make()])

    def forward(self, x: Tensor) -> Tensor:
        """`(views, n, m) -> (views, n, k)`: the rows of either member in the places they came from."""
        if x.shape[1] % 2:
            raise BadInput(
                f"each model of a pair takes every other row, but {x.shape[1]} rows came. Use an even batch."
            )
        found = [by_view(member, x[:, i::2]) for i, member in enumerate(self.members)]
        return torch.stack(found, 2).flatten(1, 2)

    def of_view(self, view: int) -> tuple[nn.Module, nn.Module]:
        """What either member applies to rows of one view."""
        one, two = (m.towers[view] if isinstance(m, Towers) else m for m in self.members)
        return one, two


def by_view(encoder: nn.Module, x: Tensor) -> Tensor:
    """Rows of every view through an encoder, `(views, n, m) -> (views, n, k)`: as they are, or as one batch of rows."""
    if getattr(encoder, "sees_views", False):
        return encoder(x)  # type: ignore[no-any-return]
    h = encoder(x.flatten(0, 1))
    return h.reshape(*x.shape[:2], *h.shape[1:])  # type: ignore[no-any-return]
