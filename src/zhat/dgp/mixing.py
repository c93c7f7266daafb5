r"""x = g(z): how latents become observations.

A mixing is a value; its weights appear when a process builds it for a seed. Those of this file become a stack of linear
maps, each followed by a leaky ReLU (slope 1 means none), together with its exact inverse. `zhat.scenes` has mixings
that draw pictures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.errors import BadInput

Array = npt.NDArray[np.floating]


class Mixing(Protocol):
    """What a mixing knows: how to become a function of latents of a given dimension.

    A mixing may have more, and whoever uses one of these asks first whether it is there:

    - `dim`: the only number of latents that it takes.
    - `names`: names of these latents.
    - `rows_at_once`: how many rows a process should draw together at most, because an observation is expensive.
    - `find()`: raises `MissingData` where it needs recorded data that is not there.
    """

    def build(self, dim: int, generator: torch.Generator) -> Mixer:
        """Draw the weights; `generator` lives on the CPU, so a world is the same on every machine."""


class Mixer(Protocol):
    """A built mixing. It may have an `inverse(x)` that gives the latents back."""

    def __call__(self, z: Tensor) -> Tensor:
        """Observations of latents, `(…, d) -> (…, m)`, or `(…, channels, height, width)` for pictures."""


class Layers:
    """Linear maps with leaky ReLUs: `x = layers(z)` and `z = layers.inverse(x)`.

    Args:
        weights: matrices `(out, in)` in float64, applied first to last.
        slopes: leaky-ReLU slope after each of them; 1 leaves the values as they are.
    """

    def __init__(self, weights: Sequence[Tensor], slopes: Sequence[float]) -> None:
        self.weights = tuple(weights)
        self.slopes = tuple(slopes)
        self._forward = _per_device(self.weights)
        self._backward = _per_device([torch.linalg.pinv(weight) for weight in self.weights])

    @property
    def observed(self) -> int:
        """Dimension of the observations."""
        return int(self.weights[-1].shape[0])

    def __call__(self, z: Tensor) -> Tensor:
        """Observations of latents, `(…, d) -> (…, m)`."""
        for weight, slope in zip(self._forward(z), self.slopes, strict=True):
            z = z @ weight.T
            z = torch.where(z < 0, slope * z, z) if slope != 1 else z
        return z

    def inverse(self, x: Tensor) -> Tensor:
        """Latents of observations, `(…, m) -> (…, d)`."""
        for weight, slope in zip(reversed(self._backward(x)), reversed(self.slopes), strict=True):
            x = torch.where(x < 0, x / slope, x) if slope != 1 else x
            x = x @ weight.T
        return x


@lru_cache(maxsize=256)
def built(mixing: Mixing, dim: int, seed: int) -> Mixer:
    """The mixing of the world with that seed; built once."""
    return mixing.build(dim, randomness.generator(seed, "mixing"))


class _per_device:
    """Float64 matrices, handed out in the dtype and on the device of what they are applied to."""

    def __init__(self, matrices: Sequence[Tensor]) -> None:
        self._matrices = tuple(matrices)
        self._copies: dict[tuple[torch.device, torch.dtype], tuple[Tensor, ...]] = {}

    def __call__(self, like: Tensor) -> tuple[Tensor, ...]:
        key = (like.device, like.dtype)
        if key not in self._copies:
            self._copies[key] = tuple(matrix.to(*key) for matrix in self._matrices)
        return self._copies[key]


@dataclass(frozen=True)
class BestOf:
    """The best-conditioned of `draws` random matrices.

    The official code of zimmermann2021 takes the best of one set of 25,000 as a threshold and redraws each matrix
    until it meets it. That wait has an infinite expectation; taking the best of 25,000 for each matrix gives
    nearly the same condition numbers (3.9 on average at d = 10, against about 3.5) in a known time.
    """

    draws: int = 25_000

    def __post_init__(self) -> None:
        _checks.count(self.draws, "draws")

    def choose(self, candidates: Iterator[Array]) -> Tensor:
        """The best of the next `draws` candidates."""
        best, condition, seen = np.empty(0), math.inf, 0
        while seen < self.draws:
            block = next(candidates)[:, :, : self.draws - seen]
            seen += block.shape[2]
            for part in (block[:, :, :64], block):  # a few first: the filter wants a limit to start from
                hopeful = _may_reach(part, condition)
                conditions = np.linalg.cond(hopeful)
                if conditions.min(initial=math.inf) < condition:
                    best, condition = hopeful[conditions.argmin()].copy(), float(conditions.min())
        return torch.from_numpy(best)


@dataclass(frozen=True)
class AtMost:
    """The first random matrix whose condition number is at most `limit`."""

    limit: float

    def __post_init__(self) -> None:
        if _checks.finite(self.limit, "limit") <= 1:
            raise BadInput(f"`limit` must be above 1, the condition number of a rotation, but {self.limit} came.")

    def choose(self, candidates: Iterator[Array]) -> Tensor:
        """The first of the next candidates below the limit."""
        for _ in range(_PATIENCE):
            hopeful = _may_reach(next(candidates), self.limit)
            within = np.linalg.cond(hopeful) <= self.limit
            if within.any():
                return torch.from_numpy(hopeful[within.argmax()].copy())
        raise BadInput(
            f"no matrix with a condition number of at most {self.limit} came up in {_PATIENCE * _BLOCK:,} draws. "
            "Use a larger limit, or Orthogonal()."
        )


@dataclass(frozen=True)
class InvertibleMLP:
    """A square network with an exact inverse: `layers` matrices, leaky ReLU between them, no bias.

    Each matrix has entries from U(-1, 1), columns of unit length, and a condition number bounded by `condition`.

    Reference: zimmermann2021 (3 layers), reizinger2024 (4 layers); both with slope 0.2 and the best of 25,000.
    """

    layers: int = 3
    slope: float = 0.2
    condition: BestOf | AtMost = BestOf()

    def __post_init__(self) -> None:
        _checks.settle(self, layers=_checks.count(self.layers, "layers"), slope=_checks.positive(self.slope, "slope"))
        if not isinstance(self.condition, BestOf | AtMost):
            raise BadInput(f"`condition` must be BestOf(draws) or AtMost(limit), but {self.condition!r} came.")

    def build(self, dim: int, generator: torch.Generator) -> Layers:
        """Draw the matrices."""
        candidates = _candidates(dim, generator)
        weights = [self.condition.choose(candidates) for _ in range(self.layers)]
        return Layers(weights, [self.slope] * (self.layers - 1) + [1.0])


@dataclass(frozen=True)
class Linear:
    """One random matrix with unit-length columns and a bounded condition number."""

    condition: BestOf | AtMost = BestOf()

    def build(self, dim: int, generator: torch.Generator) -> Layers:
        """Draw the matrix."""
        return InvertibleMLP(layers=1, condition=self.condition).build(dim, generator)


@dataclass(frozen=True)
class Orthogonal:
    """One random rotation or reflection, uniform over the orthogonal group."""

    def build(self, dim: int, generator: torch.Generator) -> Layers:
        """Draw the matrix."""
        return Layers([_orthonormal(dim, dim, generator)], [1.0])


@dataclass(frozen=True)
class Embedding:
    """More observed dimensions than latents: a random isometry into R^observed, then `mixing` there.

    The inverse is exact on the image; elsewhere it is the latent of the nearest point before `mixing`.
    """

    observed: int
    mixing: InvertibleMLP | Linear | Orthogonal = InvertibleMLP()

    def __post_init__(self) -> None:
        _checks.count(self.observed, "observed")

    def build(self, dim: int, generator: torch.Generator) -> Layers:
        """Draw the isometry and the mixing after it."""
        if self.observed < dim:
            raise BadInput(
                f"Embedding(observed={self.observed}) cannot hold {dim} latents without losing some. "
                f"Use observed={dim} or more."
            )
        after = self.mixing.build(self.observed, generator)
        into = _orthonormal(self.observed, dim, generator)
        return Layers([into, *after.weights], [1.0, *after.slopes])


def _orthonormal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """A matrix with orthonormal columns, uniform among them."""
    q, r = torch.linalg.qr(torch.randn(rows, columns, generator=generator, dtype=torch.float64))
    signed: Tensor = q * r.diagonal().sign()
    return signed


_BLOCK = 4096
_PATIENCE = 500  # blocks


def _candidates(dim: int, generator: torch.Generator) -> Iterator[Array]:
    """Endless blocks of matrices with entries from U(-1, 1), `(row, column, block)`, in float32.

    The block is the innermost axis: the filter below then runs over whole blocks at the speed of memory.
    """
    seed = int(torch.randint(2**62, (1,), generator=generator))
    random = np.random.Generator(np.random.SFC64(seed))
    while True:
        yield 2 * random.random((dim, dim, _BLOCK), dtype=np.float32) - 1


def _may_reach(block: Array, limit: float) -> Array:
    r"""The matrices, columns scaled to unit length, whose condition number may be at most `limit`.

    The others provably exceed it: for a Gram matrix G with eigenvalues within a ratio $c = \text{limit}^2$,
    Schweitzer's inequality says $\mathrm{tr}\,G \; \mathrm{tr}\,G^{-1} \le d^2 (1 + c)^2 / 4c$, and both traces
    cost a tenth of a singular value decomposition. A slack of 2% covers the float32 arithmetic of the filter.

    Args:
        block: `(row, column, block)`.
        limit: the largest condition number of interest.

    Returns:
        The remaining matrices in float64, `(remaining, row, column)`.
    """
    if math.isfinite(limit):
        dim, c = block.shape[0], limit**2
        block = block[:, :, dim * _trace_inverse_gram(block) <= 1.02 * dim**2 * (1 + c) ** 2 / (4 * c)]
    matrices: Array = np.moveaxis(block, 2, 0).astype(np.float64)
    matrices /= np.linalg.norm(matrices, axis=1, keepdims=True)
    return matrices


def _trace_inverse_gram(block: Array) -> Array:
    """tr (A^T A)^-1 of each matrix A with its columns scaled to unit length, by Gram-Schmidt: |R^-1|^2."""
    dim = block.shape[0]
    q = block / np.sqrt(np.einsum("rcb,rcb->cb", block, block))
    r = np.zeros_like(block)
    inverse = np.zeros_like(block)
    trace: Array = np.zeros_like(block[0, 0])
    for i in range(dim):
        column = q[:, i]
        shrink = 1 / np.sqrt(np.einsum("rb,rb->b", column, column))
        inverse[i, i] = shrink
        inverse[:i, i] = -np.einsum("jkb,kb->jb", inverse[:i, :i], r[:i, i]) * shrink
        trace += np.einsum("jb,jb->b", inverse[: i + 1, i], inverse[: i + 1, i])
        column = column * shrink
        r[i, i + 1 :] = np.einsum("rb,rcb->cb", column, q[:, i + 1 :])
        q[:, i + 1 :] -= column[:, None] * r[i, i + 1 :]
    return trace
