"""What each latent does: pictures in which one latent moves and the others stand still."""

from __future__ import annotations

import torch
from torch import Tensor

from zhat import _checks
from zhat.scenes.objects import StillLife


def traversal(scene: StillLife, steps: int = 9, *, device: torch.device | str = "cpu") -> Tensor:
    """One line of pictures for each latent, which goes from -1 to 1; the others stay at `scene.still`.

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
    z = torch.tensor(scene.still, device=device).expand(scene.dim, steps, scene.dim).clone()
    each = torch.arange(scene.dim)
    z[each, :, each] = torch.linspace(-1, 1, steps, device=device)
    mixer = scene.build(scene.dim, torch.Generator())
    return mixer(z)
