"""What each latent does: pictures in which one latent moves; and what a network recovered, drawn again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import torch
from torch import Tensor

from zhat import _checks
from zhat.dgp import Mixer
from zhat.errors import BadInput
from zhat.scenes.objects import Jug, Teapot
from zhat.scenes.room import Room
from zhat.scenes.sprites import Sprites


class Scene(Protocol):
    """A mixing that draws. Its latents go from -1 to 1; it may say `still`, where `traversal` leaves the others."""

    @property
    def dim(self) -> int:
        """How many latents there are."""

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""

    def build(self, dim: int, generator: torch.Generator) -> Mixer:
        """What draws the pictures."""


SCENES: Mapping[str, Callable[..., Scene]] = MappingProxyType(
    {"jug": Jug, "teapot": Teapot, "room": Room, "sprites": Sprites}
)
"""The scenes that `zhat show` draws, by name."""


def traversal(scene: Scene, steps: int = 9, *, device: torch.device | str = "cpu") -> Tensor:
    """One line of pictures for each latent, which goes from -1 to 1; the others stay at `scene.still`, or at 0.

    Args:
        scene: what is drawn.
        steps: pictures in a line.
        device: where they are drawn.

    Returns:
        Bytes, `(latents, steps, channels, height, width)`.

    Example:
        >>> from zhat.scenes import Jug
        >>> traversal(Jug(side=16), steps=3).shape
        torch.Size([10, 3, 3, 16, 16])
    """
    _checks.count(steps, "steps", least=2)
    still = getattr(scene, "still", (0.0,) * scene.dim)
    z = torch.tensor(still, device=device).expand(scene.dim, steps, scene.dim).clone()
    each = torch.arange(scene.dim)
    z[each, :, each] = torch.linspace(-1, 1, steps, device=device)
    return scene.build(scene.dim, torch.Generator())(z)


def drawn_again(scene: Scene, z: Sequence[Sequence[float]], z_hat: Sequence[Sequence[float]]) -> Tensor:
    """Two lines of pictures: of latents, and of what was recovered of them.

    Recovered latents may leave the range that the scene draws; they are brought back to the nearest end.

    Args:
        scene: what is drawn.
        z: latents, `(n, d)`.
        z_hat: what was recovered of the same rows, `(n, d)`.

    Returns:
        Bytes, `(2, n, channels, height, width)`.

    Example:
        >>> from zhat.scenes import Jug
        >>> drawn_again(Jug(side=16), [[0.0] * 10], [[0.1] * 10]).shape
        torch.Size([2, 1, 3, 16, 16])
    """
    both = torch.tensor([z, z_hat], dtype=torch.float32)
    if both.shape[-1] != scene.dim:
        raise BadInput(
            f"{type(scene).__name__} has {scene.dim} latents, but {both.shape[-1]} were recovered. "
            "Name the world that the run was trained on."
        )
    return scene.build(scene.dim, torch.Generator())(both.clamp(-1, 1))
