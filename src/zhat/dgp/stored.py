"""A world with a fixed number of observations: each is made once and kept.

A renderer is slow where pictures are large, so papers render a fixed number of pictures and look for pairs among them.
`Stored` draws single rows of them, `Neighbours` pairs, `Copies` two augmented copies of a row of any process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.dgp.batch import Batch, encoder_input
from zhat.dgp.marginals import Distribution
from zhat.dgp.mixing import Mixing, built
from zhat.dgp.pairs import Pairs
from zhat.dgp.process import Process
from zhat.dgp.spaces import Space
from zhat.errors import BadInput

PARTS = ("train", "test")
MADE = 2048  # observations made at a time
DISTANCES = {"cuda": 2**28, "cpu": 2**23}  # distances held at a time

Augment = Callable[[Tensor, torch.Generator], Tensor]


class Album:
    """Latents of a fixed number of rows, and their observations, each made when it is first asked for and then kept.

    On a GPU all are made with the first.

    Args:
        latents: `(n, d)`, on the device where observations are to lie.
        observe: makes observations of latents, `(rows, d) -> (rows, …)`.
    """

    def __init__(self, latents: Tensor, observe: Callable[[Tensor], Tensor]) -> None:
        self.latents, self._observe = latents, observe
        self._kept: Tensor | None = None
        self._made = torch.zeros(len(latents), dtype=torch.bool, device=latents.device)
        self._whole = False
        self._squares = latents.square().sum(1)

    def __len__(self) -> int:
        return len(self.latents)

    def __getitem__(self, places: Tensor) -> Tensor:
        """The observations at some places, `(…) -> (…, *shape)`."""
        if self._kept is None:
            # Memory that is never written takes no room on a CPU, so a large album of which little is asked is cheap.
            probe = self._observe(self.latents[:1])
            self._kept = probe.new_empty((len(self), *probe.shape[1:]))
        if not self._whole:
            asked = torch.zeros_like(self._made)
            asked[places.flatten()] = True
            if asked.is_cuda:
                asked.fill_(True)  # seconds for all of them, and nobody has to wait for an answer again
            for some in (asked & ~self._made).nonzero()[:, 0].split(MADE):
                self._kept[some] = self._observe(self.latents[some])
                self._made[some] = True
            self._whole = bool(self._made.all())
        return self._kept[places]

    def nearest(self, z: Tensor, *, but: Tensor | None = None) -> Tensor:
        r"""The place of the row whose latents are nearest to each point, by exact search.

        $$i(z) = \arg\min_i\, \lVert s_i \rVert^2 - 2\, s_i \cdot z$$

        The products are float32, so rows whose distances differ by less than its rounding may be taken for each other.

        Args:
            z: points, `(n, d)`.
            but: for each point, a place that must not be returned, `(n,)`.

        Returns:
            Places, `(n,)`.
        """
        block = max(1, DISTANCES["cuda" if z.is_cuda else "cpu"] // len(self))
        out = torch.empty(len(z), dtype=torch.int64, device=z.device)
        for start in range(0, len(z), block):
            some = slice(start, start + block)
            far = torch.addmm(self._squares, z[some], self.latents.T, alpha=-2)
            if but is not None:
                far.scatter_(1, but[some, None], torch.inf)
            out[some] = far.argmin(1)
        return out


@lru_cache(maxsize=8)
def album(marginal: Distribution, mixing: Mixing, seed: int, rows: int, part: str, device: torch.device) -> Album:
    """The stored rows of a world; drawn on the CPU, so that they are the same on every machine."""
    latents = marginal.sample(rows, generator=randomness.generator(seed, f"stored {part}")).to(device)
    return Album(latents, built(mixing, marginal.space.dim, seed))  # type: ignore[arg-type] # a value: it hashes


@dataclass(frozen=True)
class Stored:
    """Single rows, drawn with replacement from a fixed number of observations of a world.

    Latents come from the marginal of the world. Every observation is made when it is first drawn, and kept on the
    device; bytes stay bytes. The rows of `held_out` are different rows of the same world.

    Args:
        world: whose marginal and mixing are used; its seed says which rows are stored.
        rows: how many there are to train on.
        test_rows: how many are held out.
        part: "train" or "test".
        seed: without effect, because the stored rows are the same for every seed, as in a data set; every process has
            one.

    Reference: zimmermann2021, Table 4 (250,000 pictures, and 25,000 for the test).

    Example:
        >>> from zhat.dgp import Around, Box, Normal, Orthogonal, Uniform
        >>> world = Pairs(Uniform(Box(3)), Around(Normal(Box(3), 0.1)), Orthogonal())
        >>> Stored(world, rows=50, test_rows=20).sample(4, generator=torch.Generator().manual_seed(0)).x.shape
        torch.Size([1, 4, 3])
    """

    world: Pairs
    rows: int = 250_000
    test_rows: int = 25_000
    part: str = "train"
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.world, Pairs):
            raise BadInput(f"`world` must be Pairs(...), whose observations are stored, but {self.world!r} came.")
        _checks.settle(
            self,
            rows=_checks.count(self.rows, "rows", least=2),
            test_rows=_checks.count(self.test_rows, "test_rows", least=2),
        )
        if self.part not in PARTS:
            raise BadInput(f"`part` must be one of {', '.join(PARTS)}, but {self.part!r} came.")
        randomness.stream_seed(self.seed, "data")  # refuses what is not a seed

    @property
    def views(self) -> int:
        """One: the row."""
        return 1

    @property
    def space(self) -> Space:
        """Where the latents live."""
        return self.world.space

    @property
    def held_out(self) -> Stored | None:
        """The rows of the test; None unless this is the part that is trained on."""
        return replace(self, part="test") if self.part == "train" else None

    @property
    def rows_at_once(self) -> int | None:
        """How many rows should be drawn together at most; None if the mixing is cheap."""
        most: int | None = getattr(self.world, "rows_at_once", None)
        return most

    def find(self) -> None:
        """Raise `MissingData` where the mixing reads recorded data that is not there."""
        self.world.find()

    def album(self, device: torch.device) -> Album:
        """The stored rows of this part, on a device."""
        rows = self.rows if self.part == "train" else self.test_rows
        world = self.world
        return album(world.marginal, world.mixing, world.seed, rows, self.part, device)  # type: ignore[arg-type]

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` rows, on the generator's device."""
        stored = self.album(generator.device)
        places = torch.randint(len(stored), (1, _checks.count(n, "n")), generator=generator, device=generator.device)
        return Batch(x=stored[places], z=stored.latents[places])


@dataclass(frozen=True)
class Neighbours:
    r"""Pairs that are looked up among stored rows by their nearest neighbours in latent space.

    An anchor z and a positive z' are drawn from the world. The stored row nearest to z takes the place of z; the one
    nearest to z' that of z', or the second nearest where the nearest is the anchor's. Distances are Euclidean. Stored
    rows are far apart in many dimensions, so the pairs do not follow the world's conditional: among 250,000 rows in ten
    dimensions, a conditional of width 0.1 becomes one of width 0.26. This process therefore names no conditional.

    Args:
        stored: the rows.
        seed: without effect, as in `Stored`.

    Reference: zimmermann2021, Table 4 (the official code).
    """

    stored: Stored
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.stored, Stored):
            raise BadInput(f"`stored` must be Stored(...), but {self.stored!r} came.")
        randomness.stream_seed(self.seed, "data")  # refuses what is not a seed

    @property
    def views(self) -> int:
        """Two: a row and its positive."""
        return 2

    @property
    def space(self) -> Space:
        """Where the latents live."""
        return self.stored.space

    @property
    def held_out(self) -> Stored | None:
        """Single rows of the test."""
        return self.stored.held_out

    @property
    def rows_at_once(self) -> int | None:
        """How many rows should be drawn together at most; None if the mixing is cheap."""
        return self.stored.rows_at_once

    def find(self) -> None:
        """Raise `MissingData` where the mixing reads recorded data that is not there."""
        self.stored.find()

    def places(self, n: int, *, generator: torch.Generator) -> Tensor:
        """Places of `n` anchors and of their positives among the stored rows, `(2, n)`."""
        world, stored = self.stored.world, self.stored.album(generator.device)
        z = world.marginal.sample(_checks.count(n, "n"), generator=generator)
        positive = world.conditional.sample(z, generator=generator)
        anchor = stored.nearest(z)
        return torch.stack([anchor, stored.nearest(positive, but=anchor)])

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` rows and their positives, on the generator's device."""
        places, stored = self.places(n, generator=generator), self.stored.album(generator.device)
        return Batch(x=stored[places], z=stored.latents[places])


@dataclass(frozen=True)
class Copies:
    """Two augmented copies of each row of a process; both have the latents of the row.

    Args:
        of: a process; the first view of its rows is copied.
        augment: makes augmented rows of rows, as many and of the same kind, on the generator's device; its draws come
            from the generator. A value: `CropAndColour()` is one.
        seed: of the rows.

    Reference: chen2020; zimmermann2021, Table 4, the row with augmentations.
    """

    of: Process
    augment: Augment
    seed: int = 0

    def __post_init__(self) -> None:
        if not callable(self.augment):
            raise BadInput(f"`augment` must be callable as augment(rows, generator), but {self.augment!r} came.")
        randomness.stream_seed(self.seed, "data")  # refuses what is not a seed

    @property
    def views(self) -> int:
        """Two copies."""
        return 2

    @property
    def space(self) -> Space | None:
        """Where the latents live, if the process declares it."""
        return getattr(self.of, "space", None)

    @property
    def plain(self) -> Process:
        """The same rows as they are."""
        return self.of

    @property
    def held_out(self) -> Process | None:
        """Rows as they are, that training never draws, if the process has some."""
        return getattr(self.of, "held_out", None)

    @property
    def rows_at_once(self) -> int | None:
        """How many rows should be drawn together at most, if the process declares it."""
        most: int | None = getattr(self.of, "rows_at_once", None)
        return most

    def find(self) -> None:
        """Raise `MissingData` where recorded data is not there."""
        asked = getattr(self.of, "find", None)
        if asked is not None:
            asked()

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """Two copies of `n` rows, on the generator's device; bytes become bytes again."""
        rows = self.of.sample(n, generator=generator)
        one, bytes_ = encoder_input(rows.x[0]), rows.x.dtype == torch.uint8
        views = torch.stack([self.augment(one, generator) for _ in range(2)])
        if views.shape[1] != n or views.ndim != rows.x.ndim:
            raise BadInput(
                f"`augment` must return rows for rows, {tuple(one.shape)}, but {tuple(views.shape[1:])} came."
            )
        x = (255 * views).round().clamp(0, 255).to(torch.uint8) if bytes_ else views
        z = None if rows.z is None else rows.z[0].expand(2, *rows.z.shape[1:])
        return Batch(x=x, z=z, label=rows.label)
