"""Worlds that break a condition of a theorem on purpose, each with its exact density.

Latents that are correlated or unequally spread (`Correlated`), a mixture of marginals (`Mixture`), a conditional that
is not the same everywhere (`Halves`), a mixture of conditionals (`Either`), one of its own for each part of a product,
or for each coordinate (`Beside`), and a mixing that folds (`Folded`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from zhat import _checks
from zhat.dgp.conditionals import Conditional
from zhat.dgp.marginals import Distribution
from zhat.dgp.mixing import Mixer, Mixing
from zhat.dgp.spaces import Box, Product, Real, Space
from zhat.errors import BadInput


@dataclass(frozen=True)
class Correlated:
    r"""Normal latents of which every two have the same correlation; in a box, their ranks, which are uniform each.

    On `Real` the coordinates have the standard deviations `std`. In a `Box` each coordinate is
    $\Phi(x_c)$ of standard normal x, stretched to the box: uniform by itself, and dependent on the others (a Gaussian
    copula).

    Args:
        space: `Real` or `Box`.
        correlation: of every two coordinates (in a box: of x), above -1 / (d - 1) and below 1.
        std: one for all coordinates or one for each; in a box 1.

    Breaks: independent coordinates; in a box a uniform marginal.
    """

    space: Real | Box
    correlation: float
    std: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.space, Real | Box):
            raise BadInput(f"Correlated takes Real or Box, but {self.space!r} came.")
        lowest = -1 / max(self.space.dim - 1, 1)
        if not lowest < _checks.finite(self.correlation, "correlation") < 1:
            raise BadInput(f"`correlation` must lie between {lowest:.3g} and 1, but {self.correlation} came.")
        each = self.std if isinstance(self.std, tuple) else (self.std,)
        if len(each) not in (1, self.space.dim):
            raise BadInput(f"`std` must have one value or {self.space.dim}, but {len(each)} came.")
        for value in each:
            _checks.positive(value, "std")
        if isinstance(self.space, Box) and self.std != 1.0:
            raise BadInput("in a Box every coordinate is uniform, so `std` stays 1; stretch the box instead.")

    def _factor(self) -> Tensor:
        d = self.space.dim
        covariance = self.correlation + (1 - self.correlation) * torch.eye(d, dtype=torch.float64)
        factor: Tensor = torch.linalg.cholesky(covariance)
        return factor

    def _stds(self) -> Tensor:
        each = self.std if isinstance(self.std, tuple) else (self.std,) * self.space.dim
        return torch.tensor(each, dtype=torch.float64)

    def sample(self, n: int, *, generator: torch.Generator) -> Tensor:
        """`n` draws, `(n, dim)`."""
        x = torch.randn(n, self.space.dim, generator=generator, device=generator.device)
        x = x @ self._factor().T.to(x)
        if isinstance(self.space, Box):
            share: Tensor = torch.special.ndtr(x)
            return self.space.low + (self.space.high - self.space.low) * share
        return x * self._stds().to(x)

    def log_prob(self, z: Tensor) -> Tensor:
        """Log density, `(…, dim) -> (…)`."""
        inside = self.space.contains(z)
        if isinstance(self.space, Box):
            width = self.space.high - self.space.low
            share = (z.double() - self.space.low) / width
            x = torch.special.ndtri(share.clamp(1e-300, 1 - 1e-16))
            own = -0.5 * x.square().sum(-1)
            stretched = self.space.dim * math.log(width)
        else:
            x = z.double() / self._stds().to(z.device)
            own = torch.full_like(x[..., 0], 0.5 * self.space.dim * math.log(2 * math.pi))
            stretched = float(self._stds().log().sum())
        factor = self._factor().to(z.device)
        white = torch.linalg.solve_triangular(factor, x.reshape(-1, x.shape[-1]).T, upper=False).T.reshape(x.shape)
        density = -0.5 * white.square().sum(-1) - factor.diagonal().log().sum() - own - stretched
        return torch.where(inside, density, -math.inf).to(z.dtype)


@dataclass(frozen=True)
class Mixture:
    """One of several distributions on one space, drawn anew for each row.

    Args:
        parts: the distributions.
        weights: their shares; equal ones if left out.

    Breaks: a uniform marginal.
    """

    parts: tuple[Distribution, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _check_weights(self.parts, self.weights, "Mixture")
        if len({part.space for part in self.parts}) != 1:
            raise BadInput(f"the parts of a Mixture live on one space, but {[p.space for p in self.parts]} came.")

    @property
    def space(self) -> Space:
        """Where the draws lie."""
        return self.parts[0].space

    def sample(self, n: int, *, generator: torch.Generator) -> Tensor:
        """`n` draws, `(n, dim)`."""
        which = _drawn(self.parts, self.weights, n, generator)
        every = torch.stack([part.sample(n, generator=generator) for part in self.parts])
        return every[which, torch.arange(n, device=which.device)]

    def log_prob(self, z: Tensor) -> Tensor:
        """Log density, `(…, dim) -> (…)`."""
        every = torch.stack([part.log_prob(z) for part in self.parts], -1)
        return torch.logsumexp(every + _log_shares(self.parts, self.weights).to(every), -1)


@dataclass(frozen=True)
class Either:
    """A conditional that is one of several, drawn anew for each row: heavier tails than any of them.

    Args:
        parts: the conditionals.
        weights: their shares; equal ones if left out.

    Breaks: a conditional of one family.
    """

    parts: tuple[Conditional, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _check_weights(self.parts, self.weights, "Either")

    def sample(self, z: Tensor, *, generator: torch.Generator) -> Tensor:
        """One draw around each anchor."""
        rows = z.reshape(-1, z.shape[-1])
        which = _drawn(self.parts, self.weights, len(rows), generator)
        every = torch.stack([part.sample(rows, generator=generator) for part in self.parts])
        return every[which, torch.arange(len(rows), device=z.device)].reshape(z.shape)

    def log_prob(self, z_next: Tensor, z: Tensor) -> Tensor:
        """Log density around each anchor."""
        every = torch.stack([part.log_prob(z_next, z) for part in self.parts], -1)
        return torch.logsumexp(every + _log_shares(self.parts, self.weights).to(every), -1)


@dataclass(frozen=True)
class Halves:
    """One conditional where the first coordinate of the anchor is below `at`, another one above.

    Breaks: one concentration everywhere.
    """

    below: Conditional
    above: Conditional
    at: float = 0.0

    def __post_init__(self) -> None:
        _checks.settle(self, at=_checks.finite(self.at, "at"))

    def sample(self, z: Tensor, *, generator: torch.Generator) -> Tensor:
        """One draw around each anchor."""
        first = self.below.sample(z, generator=generator)
        second = self.above.sample(z, generator=generator)
        return torch.where(z[..., :1] < self.at, first, second)

    def log_prob(self, z_next: Tensor, z: Tensor) -> Tensor:
        """Log density around each anchor."""
        return torch.where(z[..., 0] < self.at, self.below.log_prob(z_next, z), self.above.log_prob(z_next, z))


@dataclass(frozen=True)
class Beside:
    """A conditional of its own for each part of a product of spaces.

    With one-dimensional parts this is noise of another scale, or of another family, in each coordinate.

    Args:
        space: the product.
        parts: one conditional for each of its parts.

    Breaks: one space; one concentration in all directions.

    Example:
        >>> from zhat.dgp import Around, Normal
        >>> space = Product(Box(1), Box(1))
        >>> law = Beside(space, (Around(Normal(Box(1), 0.1)), Around(Normal(Box(1), 0.3))))
        >>> law.sample(torch.full((4, 2), 0.5), generator=torch.Generator().manual_seed(0)).shape
        torch.Size([4, 2])
    """

    space: Product
    parts: tuple[Conditional, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.space, Product) or len(self.parts) != len(self.space.parts):
            raise BadInput(
                f"Beside takes a Product and one conditional for each of its parts, but {self.space!r} and "
                f"{len(self.parts)} conditionals came."
            )

    def sample(self, z: Tensor, *, generator: torch.Generator) -> Tensor:
        """One draw around each anchor."""
        pieces = zip(self.parts, self.space.split(z), strict=True)
        return torch.cat([part.sample(piece.contiguous(), generator=generator) for part, piece in pieces], -1)

    def log_prob(self, z_next: Tensor, z: Tensor) -> Tensor:
        """Log density around each anchor."""
        pieces = zip(self.parts, self.space.split(z_next), self.space.split(z), strict=True)
        return torch.stack([part.log_prob(near, piece) for part, near, piece in pieces]).sum(0)


@dataclass(frozen=True)
class Folded:
    """A mixing of latents whose first coordinate was folded: z and its mirror image at `at` look the same.

    Breaks: an injective mixing.
    """

    mixing: Mixing
    at: float = 0.0

    def __post_init__(self) -> None:
        _checks.settle(self, at=_checks.finite(self.at, "at"))

    def build(self, dim: int, generator: torch.Generator) -> Mixer:
        """Draw the weights of the mixing behind the fold."""
        mixer = self.mixing.build(dim, generator)

        def folded(z: Tensor) -> Tensor:
            first = self.at + (z[..., :1] - self.at).abs()
            return mixer(torch.cat([first, z[..., 1:]], -1))

        return folded


def _check_weights(parts: tuple[object, ...], weights: tuple[float, ...] | None, name: str) -> None:
    if len(parts) < 2:
        raise BadInput(f"{name} takes at least two parts, but {len(parts)} came.")
    if weights is not None and len(weights) != len(parts):
        raise BadInput(f"{name} takes one weight for each part, but {len(weights)} came for {len(parts)} parts.")
    for weight in weights or ():
        _checks.positive(weight, "weights")


def _log_shares(parts: tuple[object, ...], weights: tuple[float, ...] | None) -> Tensor:
    shares = torch.tensor(weights or (1.0,) * len(parts), dtype=torch.float64)
    return (shares / shares.sum()).log()


def _drawn(parts: tuple[object, ...], weights: tuple[float, ...] | None, n: int, generator: torch.Generator) -> Tensor:
    ends = _log_shares(parts, weights).exp().cumsum(0).to(generator.device, torch.float32)
    which = torch.searchsorted(ends, torch.rand(n, generator=generator, device=generator.device))
    return which.clamp_max(len(parts) - 1)
