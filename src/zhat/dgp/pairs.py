"""Two views of one latent: the process behind contrastive learning."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.dgp.batch import Batch
from zhat.dgp.conditionals import Around, Conditional, VonMisesFisher
from zhat.dgp.marginals import Distribution
from zhat.dgp.mixing import Mixer, Mixing, built
from zhat.dgp.spaces import Space, Sphere
from zhat.errors import BadInput


@dataclass(frozen=True)
class Pairs:
    """An anchor z ~ p(z), a positive z' ~ p(z'|z), and the images of both under the same mixing g.

    Args:
        marginal: p(z).
        conditional: p(z'|z).
        mixing: g, built once for each `seed`.
        seed: which world of this kind; equal processes are equal worlds.
        fresh_negatives: return a third view of rows drawn independently from p(z), for the contrastive loss
            as the paper writes it. By default the other anchors of the batch serve as negatives.

    Example:
        >>> from zhat.dgp import InvertibleMLP, Sphere, Uniform, VonMisesFisher
        >>> world = Pairs(Uniform(Sphere(3)), VonMisesFisher(10.0), InvertibleMLP(layers=2), seed=0)
        >>> world.sample(5, generator=torch.Generator().manual_seed(0)).x.shape
        torch.Size([2, 5, 3])
    """

    marginal: Distribution
    conditional: Conditional
    mixing: Mixing
    seed: int = 0
    fresh_negatives: bool = False

    def __post_init__(self) -> None:
        for name, member in (("marginal", "log_prob"), ("conditional", "sample"), ("mixing", "build")):
            if not hasattr(getattr(self, name), member):
                raise BadInput(f"`{name}` must have a `{member}`, but {getattr(self, name)!r} came.")
        if isinstance(self.conditional, VonMisesFisher) and not isinstance(self.marginal.space, Sphere):
            raise BadInput(
                f"VonMisesFisher stays on a sphere, but the marginal is on {self.marginal.space!r}. Use Around(...)."
            )
        if isinstance(self.conditional, Around) and self.conditional.family.space != self.marginal.space:
            raise BadInput(
                f"both views live in one space, but the marginal is on {self.marginal.space!r} and the conditional "
                f"on {self.conditional.family.space!r}. Give both the same space."
            )
        randomness.stream_seed(self.seed, "mixing")  # refuses what is not a seed

    @property
    def views(self) -> int:
        """2, or 3 with fresh negatives."""
        return 3 if self.fresh_negatives else 2

    @property
    def space(self) -> Space:
        """Where the latents live."""
        return self.marginal.space

    @property
    def mixer(self) -> Mixer:
        """The mixing of this world; those of `zhat.dgp` have an inverse."""
        return built(self.mixing, self.marginal.space.dim, self.seed)  # type: ignore[arg-type] # a value: it hashes

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the latents: those of the mixing, or z1, z2, …"""
        numbered = tuple(f"z{i + 1}" for i in range(self.marginal.space.dim))
        return tuple(getattr(self.mixing, "names", numbered))

    @property
    def rows_at_once(self) -> int | None:
        """How many rows should be drawn together at most; None if the mixing is cheap."""
        most: int | None = getattr(self.mixing, "rows_at_once", None)
        return most

    def find(self) -> None:
        """Raise `MissingData` where the mixing needs recorded data that is not there."""
        if hasattr(self.mixing, "find"):
            self.mixing.find()

    def observe(self, z: Tensor) -> Tensor:
        """x = g(z), `(…, d) -> (…, m)`, or `(…, channels, height, width)` where the mixing draws pictures."""
        return self.mixer(z)

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` rows of every view, on the generator's device."""
        _checks.count(n, "n")
        anchor = self.marginal.sample(n, generator=generator)
        views = [anchor, self.conditional.sample(anchor, generator=generator)]
        if self.fresh_negatives:
            views.append(self.marginal.sample(n, generator=generator))
        z = torch.stack(views)
        return Batch(x=self.observe(z), z=z)
