"""Images whose factors are known, as a process: the category is the label, all factors are the latents."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.dgp.batch import Batch
from zhat.errors import BadInput, TooFewRows

SIDE = 64
PARTS = ("train", "validation", "test", "all")
LEAST = 20  # images, so that every part has some


class Recording(NamedTuple):
    """All images of a data set.

    Attributes:
        points: bytes `(n, 64, 64, channels)`, or bits of one channel, eight to a byte, `(n, 64, 8)`.
        codes: whole numbers from 0, one column for each factor, `(n, factors)`.
    """

    points: np.ndarray
    codes: np.ndarray


class Images(Hashable, Protocol):
    """A data set of images with known factors; `zhat.datasets.DSprites` is one. A value: equal ones hold equal images.

    Attributes:
        factors: names of the factors, one for each column of the codes.
        category: the factor that is the label.
        classes: how many categories there are.
        periods: of the factors that come back to their start, after how many codes.
        channels: of an image, 1 or 3.
    """

    @property
    def factors(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def category(self) -> str: ...  # noqa: D102

    @property
    def classes(self) -> int: ...  # noqa: D102

    @property
    def periods(self) -> Mapping[str, float]: ...  # noqa: D102

    @property
    def channels(self) -> int: ...  # noqa: D102

    def find(self) -> Path:
        """Where the images lie; raises `MissingData` where they do not."""

    def read(self, path: Path) -> Recording:
        """All images, from there."""


@dataclass(frozen=True)
class KnownFactors:
    """Single images, drawn with replacement: `x` is the image, the label its category, `z` the codes of all factors.

    Images are bytes, or bits that lie on the device eight to a byte; either become floats right before the encoder.
    A tenth of the images is kept for validation, a tenth for the test, the others are trained on. The seed chooses
    which, so every seed of a row has a split of its own.

    Args:
        images: a data set such as `DSprites()`.
        part: "train", "validation", "test" or "all".
        seed: of the split.

    Reference: reizinger2024, Table 4.
    """

    images: Images
    part: str = "train"
    seed: int = 0

    def __post_init__(self) -> None:
        randomness.stream_seed(self.seed, "split")  # refuses what is not a seed
        if self.part not in PARTS:
            raise BadInput(f"`part` must be one of {', '.join(PARTS)}, but {self.part!r} came.")

    @property
    def views(self) -> int:
        """One: the image."""
        return 1

    @property
    def labels(self) -> int:
        """How many categories there are."""
        return self.images.classes

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the columns of z."""
        return self.images.factors

    @property
    def periods(self) -> Mapping[str, float]:
        """Of the factors that come back to their start, after how many codes."""
        return self.images.periods

    @property
    def held_out(self) -> KnownFactors | None:
        """The test images of the same split; None unless this is the part that is trained on."""
        return replace(self, part="test") if self.part == "train" else None

    @property
    def validation(self) -> KnownFactors | None:
        """The validation images of the same split; None unless this is the part that is trained on."""
        return replace(self, part="validation") if self.part == "train" else None

    def find(self) -> None:
        """Raise `MissingData` where the images are not there."""
        self.images.find()

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` images with their factors, on the generator's device."""
        device = generator.device
        rows = self._rows(device)
        drawn = torch.randint(len(rows), (_checks.count(n, "n"),), generator=generator, device=device)
        return self._batch(rows[drawn])

    def every(self, n: int, *, device: torch.device | str = "cpu") -> Iterator[Batch]:
        """All images of this part once, always in the same order, up to `n` at a time."""
        for rows in self._rows(torch.device(device)).split(_checks.count(n, "n")):
            yield self._batch(rows)

    def __len__(self) -> int:
        return len(self._rows(torch.device("cpu")))

    def _rows(self, device: torch.device) -> Tensor:
        points, _ = _placed(self.images, self.images.find(), device)
        return _split(len(points), self.seed, device)[PARTS.index(self.part)]

    def _batch(self, rows: Tensor) -> Batch:
        points, codes = _placed(self.images, self.images.find(), rows.device)
        z = codes[rows]
        label = z[:, self.factors.index(self.images.category)].long()
        if points.ndim == 3:
            place = torch.arange(7, -1, -1, dtype=torch.uint8, device=rows.device)
            x = (points[rows][..., None] >> place & 1).bool().flatten(-2)[:, None]
        else:
            x = points[rows].permute(0, 3, 1, 2).contiguous()
        return Batch(x=x[None], z=z[None], label=label)


@lru_cache(maxsize=8)
def _placed(images: Images, path: Path, device: torch.device) -> tuple[Tensor, Tensor]:
    if device.type != "cpu":
        points, codes = _placed(images, path, torch.device("cpu"))
        return points.to(device), codes.to(device)
    found = images.read(path)
    _refuse_misfit(images, found, path)
    return torch.from_numpy(np.ascontiguousarray(found.points)), torch.from_numpy(found.codes.astype(np.float32))


def _refuse_misfit(images: Images, found: Recording, path: Path) -> None:
    """Say what a file holds that is no data set of this kind."""
    n = len(found.points)
    packed = (n, SIDE, SIDE // 8) if images.channels == 1 else None
    wanted = (n, SIDE, SIDE, images.channels)
    if found.points.dtype != np.uint8 or found.points.shape not in (packed, wanted):
        raise BadInput(
            f"the images in {path} must be bytes of the shape {wanted}, but {found.points.dtype} of "
            f"{found.points.shape} came. Is it the publisher's file?"
        )
    if found.codes.shape != (n, len(images.factors)):
        raise BadInput(
            f"{path} must name {len(images.factors)} factors ({', '.join(images.factors)}) of each of {n} images, but "
            f"their shape is {found.codes.shape}. Is the file whole?"
        )
    if n < LEAST:
        raise TooFewRows(f"{path} holds {n} images, too few to split. Bring at least {LEAST}.", needed=LEAST)
    labels = found.codes[:, images.factors.index(images.category)]
    if labels.min() < 0 or labels.max() >= images.classes:
        raise BadInput(
            f"{images.category} in {path} must be a whole number from 0 to {images.classes - 1}, but {labels.min()} to "
            f"{labels.max()} came. Is it the publisher's file?"
        )


@lru_cache(maxsize=64)
def _split(n: int, seed: int, device: torch.device) -> tuple[Tensor, ...]:
    """The rows of every part, in the order of `PARTS`."""
    mixed = torch.randperm(n, generator=randomness.generator(seed, "split"))
    tenth = n // 10
    validation, test, train = mixed.split([tenth, tenth, n - 2 * tenth])
    return tuple(part.to(device) for part in (train, validation, test, torch.arange(n)))
