"""Labelled latents around cluster vectors: the process behind classification and instance discrimination."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.dgp.batch import Batch
from zhat.dgp.conditionals import Around, Conditional, VonMisesFisher
from zhat.dgp.marginals import Distribution
from zhat.dgp.mixing import Mixer, Mixing, built
from zhat.dgp.spaces import SLACK, Space, Sphere
from zhat.errors import BadInput

Vectors = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Clusters:
    r"""A label i, its class C(i), a latent around the class's cluster vector, and its image under the mixing g.

    $$i \sim \mathrm{Uniform}\{0, \dots, N-1\}, \qquad z \mid i \sim p(\cdot \mid v_{C(i)}), \qquad x = g(z)$$

    By default every draw of a label has a new latent, as reizinger2024 does: an instance is a label, not a point.
    With `augmentation` every instance is one fixed latent, drawn once around its cluster vector, and a row is an
    augmentation of it.

    Where latents end follows from the conditional's space: `Around(Laplace(Sphere(5)))` adds noise and projects to the
    sphere; `Around(Laplace(Box(5, -2, 2)))` truncates every coordinate to [-2, 2] and does not project, so those
    latents leave the sphere, as the truncated Laplace of reizinger2024 does.

    Args:
        vectors: how cluster vectors are drawn, once for each seed: `Uniform(Sphere(5))`, or `Laplace(Sphere(5))` and
            `Normal(Sphere(5))` around e_1; or the vectors themselves, `(classes, d)`.
        conditional: p(z|v).
        mixing: g, built once for each `seed`.
        classes: how many cluster vectors; may be left out where they are given.
        instances: N, how many labels; None makes every class one label.
        class_of: the class of each instance; None takes the label modulo the number of classes, which is balanced where
            that number divides N.
        by_class: use the class as the label of a row, instead of the instance.
        label_noise: the probability with which a label is replaced by one drawn uniformly.
        augmentation: how a row moves away from its fixed instance; None draws new latents.
        seed: which world of this kind; equal processes are equal worlds.

    Reference: reizinger2024, Assumptions 1 and 1C.

    Example:
        >>> from zhat.dgp import InvertibleMLP, Uniform
        >>> world = Clusters(Uniform(Sphere(3)), VonMisesFisher(10.0), InvertibleMLP(layers=2), classes=8, instances=80)
        >>> rows = world.sample(5, generator=torch.Generator().manual_seed(0))
        >>> rows.x.shape, rows.label.shape
        (torch.Size([1, 5, 3]), torch.Size([5]))
    """

    vectors: Distribution | Vectors
    conditional: Conditional
    mixing: Mixing
    classes: int | None = None
    instances: int | None = None
    class_of: tuple[int, ...] | None = None
    by_class: bool = False
    label_noise: float = 0.0
    augmentation: Conditional | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not hasattr(self.vectors, "log_prob"):
            rows = self.vectors if hasattr(self.vectors, "shape") else torch.tensor(self.vectors, dtype=torch.float64)
            _checks.settle(self, vectors=tuple(tuple(row) for row in _checks.matrix(rows, "vectors").double().tolist()))
            given = len(self.vectors)
            if self.classes not in (None, given):
                raise BadInput(f"`classes` is {self.classes}, but {given} cluster vectors came. Leave `classes` out.")
            _checks.settle(self, classes=given)
        for name, member in (("conditional", "sample"), ("mixing", "build")):
            if not hasattr(getattr(self, name), member):
                raise BadInput(f"`{name}` must have a `{member}`, but {getattr(self, name)!r} came.")
        _checks.settle(self, classes=_checks.count(self.classes, "classes"))
        if self.class_of is not None:
            self._settle_map()
        _checks.settle(
            self, instances=self.classes if self.instances is None else _checks.count(self.instances, "instances")
        )
        if not 0 <= _checks.finite(self.label_noise, "label_noise") <= 1:
            raise BadInput(f"`label_noise` is a probability, from 0 to 1, but {self.label_noise} came.")
        _checks.settle(self, label_noise=float(self.label_noise))
        self._check_spaces()
        randomness.stream_seed(self.seed, "mixing")  # refuses what is not a seed

    def _settle_map(self) -> None:
        map_ = tuple(_checks.count(c, "class_of", least=0) for c in self.class_of or ())
        if not map_ or max(map_) >= self._classes:
            raise BadInput(
                f"`class_of` names a class from 0 to {self._classes - 1} for each instance, but "
                f"{f'class {max(map_)}' if map_ else 'an empty map'} came. Give more `classes`, or correct the map."
            )
        if self.instances not in (None, len(map_)):
            raise BadInput(
                f"`class_of` holds {len(map_)} instances, but `instances` is {self.instances}. Leave `instances` out."
            )
        _checks.settle(self, class_of=map_, instances=len(map_))

    def _check_spaces(self) -> None:
        for conditional in (self.conditional, self.augmentation):
            if isinstance(conditional, Around) and conditional.family.space.dim != self.dim:
                raise BadInput(
                    f"cluster vectors have {self.dim} dimensions, but the conditional is on "
                    f"{conditional.family.space!r}. Make them agree."
                )
        if isinstance(self.conditional, VonMisesFisher) and not isinstance(self._home, Sphere):
            raise BadInput(
                f"VonMisesFisher stays on a sphere, but the cluster vectors are on {self._home!r}. Use Around(...), or "
                "vectors of one length."
            )

    @property
    def _classes(self) -> int:
        assert self.classes is not None, "settled when made"
        return self.classes

    @property
    def _instances(self) -> int:
        assert self.instances is not None, "settled when made"
        return self.instances

    @property
    def views(self) -> int:
        """1: a row and its label."""
        return 1

    @property
    def dim(self) -> int:
        """Dimension of the latents."""
        return len(self.vectors[0]) if isinstance(self.vectors, tuple) else self.vectors.space.dim

    @property
    def labels(self) -> int:
        """How many different labels a row may carry."""
        return self._classes if self.by_class else self._instances

    @property
    def _home(self) -> Space | None:
        """Where the cluster vectors live; None for given ones of different lengths."""
        if not isinstance(self.vectors, tuple):
            return self.vectors.space
        length = torch.tensor(self.vectors, dtype=torch.float64).norm(dim=-1)
        alike = bool((length - length[0]).abs().max() <= SLACK * length[0]) and float(length[0]) > 0 and self.dim > 1
        if not alike:
            return None
        radius = float(length[0])
        return Sphere(self.dim, radius=1.0 if abs(radius - 1) <= SLACK else radius)

    @property
    def space(self) -> Space | None:
        """Where the latents live, if the conditional or the cluster vectors determine it."""
        if isinstance(self.conditional, Around):
            return self.conditional.family.space
        return getattr(self.conditional, "space", self._home)

    @property
    def cluster_vectors(self) -> Tensor:
        """The cluster vectors of this world, `(classes, d)`, in float64 on the CPU."""
        return _vectors(self)

    @property
    def class_counts(self) -> Tensor:
        """How many instances each class has, `(classes,)`."""
        return torch.bincount(self.classes_of(torch.arange(self._instances)), minlength=self._classes)

    def classes_of(self, instance: Tensor) -> Tensor:
        """The class of each instance, `(…) -> (…)`."""
        if self.class_of is None:
            return instance % self._classes
        return _placed(self, instance.device, torch.get_default_dtype())[1][instance]

    @property
    def mixer(self) -> Mixer:
        """The mixing of this world; those of `zhat.dgp` have an inverse."""
        return built(self.mixing, self.dim, self.seed)  # type: ignore[arg-type] # a value: it hashes

    def observe(self, z: Tensor) -> Tensor:
        """x = g(z), `(…, d) -> (…, m)`."""
        return self.mixer(z)

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` rows with their labels, on the generator's device."""
        _checks.count(n, "n")
        draw: dict[str, Any] = {"generator": generator, "device": generator.device}
        vectors, _, fixed = _placed(self, generator.device, torch.get_default_dtype())
        instance = torch.randint(self._instances, (n,), **draw)
        class_ = self.classes_of(instance)
        if self.augmentation is not None:
            z = self.augmentation.sample(fixed[instance], generator=generator)
        else:
            z = self.conditional.sample(vectors[class_], generator=generator)
        label = class_ if self.by_class else instance
        if self.label_noise > 0:
            wrong = torch.rand(n, **draw) < self.label_noise
            label = torch.where(wrong, torch.randint(self.labels, (n,), **draw), label)
        z = z[None]
        return Batch(x=self.observe(z), z=z, label=label)


@lru_cache(maxsize=64)
def _vectors(world: Clusters) -> Tensor:
    if isinstance(world.vectors, tuple):
        return torch.tensor(world.vectors, dtype=torch.float64)
    drawn = world.vectors.sample(world._classes, generator=randomness.generator(world.seed, "clusters"))
    return world.vectors.space.project(drawn.double())


@lru_cache(maxsize=64)
def _placed(world: Clusters, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Cluster vectors, the class of each instance, and the fixed instances, where they are used.

    The last two are empty where the world has none. All are drawn on the CPU, so a world is the same everywhere.
    """
    vectors = _vectors(world).to(dtype)
    map_ = torch.tensor(world.class_of or (), dtype=torch.int64)
    fixed = vectors[:0]
    if world.augmentation is not None:
        label = torch.arange(world._instances)
        class_ = label % world._classes if world.class_of is None else map_
        fixed = world.conditional.sample(vectors[class_], generator=randomness.generator(world.seed, "instances"))
    return vectors.to(device), map_.to(device), fixed.to(device)
