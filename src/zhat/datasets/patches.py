"""Two patches of one image as two views: the world of CPC."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.dgp.batch import Batch
from zhat.errors import BadInput


class Images(Protocol):
    """Recorded images, split in two."""

    @property
    def split(self) -> str:
        """Which part: "train" or "test"."""
        ...

    def on(self, device: torch.device | str) -> Tensor:
        """All of them on a device, `(n, height, width, colours)` bytes."""
        ...


@dataclass(frozen=True)
class Patches:
    r"""A random patch of the upper half of an image and one of its lower half.

    Images come in random order, each once before any comes again. All of them lie on the device that draws; nothing
    waits for the host. Values go from -1 to 1, and the latents of a photograph are not known.

    Args:
        images: where they come from, `CIFAR10()` for instance.
        size: side of a patch, at most half of the image's height.
        seed: without effect, because the images are recorded; every process has one.

    Reference: roeder2020, section 5.2. The size of a patch is not known to us; 16 is ours.
    """

    images: Images
    size: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        _checks.count(self.size, "size")
        randomness.stream_seed(self.seed, "data")  # refuses what is not a seed

    @property
    def views(self) -> int:
        """Two: upper and lower."""
        return 2

    @property
    def held_out(self) -> Patches:
        """The same of all test images, which training never sees."""
        return replace(self, images=replace(self.images, split="test", images=None))  # type: ignore[type-var]

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` images as two patches each, `(2, n, size · size · 3)`, on the generator's device."""
        images, device = self.images.on(generator.device), generator.device
        many, height, width, _ = images.shape
        if self.size > height // 2:
            raise BadInput(f"half an image is {height // 2} high, but patches of {self.size} were asked for.")
        rounds = -(-_checks.count(n, "n") // many)
        order = torch.rand(rounds, many, generator=generator, device=device).argsort(1).flatten()[:n]
        within = torch.arange(self.size, device=device)
        views = []
        for top in (0, height // 2):
            down = torch.randint(height // 2 - self.size + 1, (n, 1), generator=generator, device=device) + top + within
            across = torch.randint(width - self.size + 1, (n, 1), generator=generator, device=device) + within
            patch = images[order[:, None, None], down[:, :, None], across[:, None, :]]
            views.append(patch.flatten(1).float() / 127.5 - 1)
        return Batch(x=torch.stack(views))
