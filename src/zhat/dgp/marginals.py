"""p(z): how latents are drawn.

The located families (Normal, Laplace, GeneralizedNormal) mean the same noise on every space, placed the way the
papers place it: added on `Real`, added and projected on a `Sphere`, truncated coordinate by coordinate on a `Box`.
Their default centre is zimmermann2021's: e_1 (times the radius) on a sphere, 0 elsewhere, which for `Box(d)` is
a corner. `Around` (conditionals.py) moves the centre to an anchor.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from zhat import _checks
from zhat.dgp import noise
from zhat.dgp.spaces import Box, Product, Real, Space, Sphere
from zhat.errors import BadInput

Centre = float | tuple[float, ...] | None


class Distribution(Protocol):
    """What a marginal knows: its space, how to draw, and its density."""

    @property
    def space(self) -> Space:
        """Where the draws lie."""

    def sample(self, n: int, *, generator: torch.Generator) -> Tensor:
        """`n` independent draws, `(n, dim)`, on the generator's device."""

    def log_prob(self, z: Tensor) -> Tensor:
        """Log density at each point, `(…, dim) -> (…)`, with respect to the space's own volume."""


@dataclass(frozen=True)
class Uniform:
    """Every point of a space of finite volume is equally likely."""

    space: Space

    def __post_init__(self) -> None:
        _log_volume(self.space)

    def sample(self, n: int, *, generator: torch.Generator) -> Tensor:
        """`n` draws, `(n, dim)`."""
        return _uniform(self.space, n, generator)

    def log_prob(self, z: Tensor) -> Tensor:
        """Minus the logarithm of the volume inside the space, minus infinity outside."""
        inside = self.space.contains(z)
        return torch.full_like(z[..., 0], -_log_volume(self.space)).masked_fill(~inside, -math.inf)


class _Located(ABC):
    """Independent noise of density proportional to exp(-|t / width|^p) around a centre, placed on a space."""

    space: Space
    centre: Centre

    @property
    @abstractmethod
    def power(self) -> float:
        """The p of the density exp(-|t / width|^p)."""

    @property
    @abstractmethod
    def width(self) -> float:
        """The width of the density exp(-|t / width|^p)."""

    def _check(self) -> None:
        if self.centre is not None:
            _check_centre(self.space, self.centre)
        log_mass = _log_mass(self.space, self.power, self.width, _centre(self.space, self.centre))
        if not bool((log_mass > -600).all()):
            raise BadInput(
                f"{self!r} puts no mass that float64 can hold into its space. "
                "Move `centre` nearer to the space, or widen the noise."
            )

    def sample(self, n: int, *, generator: torch.Generator) -> Tensor:
        """`n` draws, `(n, dim)`."""
        centre = _centre(self.space, self.centre).to(generator.device, torch.get_default_dtype()).expand(n, -1)
        return self.sample_around(centre, generator=generator)

    def log_prob(self, z: Tensor) -> Tensor:
        """Log density, `(…, dim) -> (…)`."""
        return self.log_prob_around(z, _centre(self.space, self.centre).to(z))

    def sample_around(self, centre: Tensor, *, generator: torch.Generator) -> Tensor:
        """One draw around each given centre, `(…, dim) -> (…, dim)`; the centre of the marginal is not used."""
        return _place(self.space, self.power, self.width, centre, generator)

    def log_prob_around(self, z: Tensor, centre: Tensor) -> Tensor:
        """Log density of `z` around each given centre, `(…, dim), (…, dim) -> (…)`."""
        return _log_density(self.space, self.power, self.width, z, centre)


@dataclass(frozen=True)
class Normal(_Located):
    """Independent Gaussian noise of standard deviation `std` around `centre`, placed on `space`."""

    space: Space
    std: float = 1.0
    centre: Centre = None

    def __post_init__(self) -> None:
        _checks.settle(self, std=_checks.positive(self.std, "std"))
        self._check()

    @property
    def power(self) -> float:
        """The p of the density exp(-|t / width|^p)."""
        return 2.0

    @property
    def width(self) -> float:
        """The width of the density exp(-|t / width|^p)."""
        return self.std * math.sqrt(2)


@dataclass(frozen=True)
class Laplace(_Located):
    r"""Independent Laplace noise around `centre`, placed on `space`.

    The density is $\propto e^{-|t|/\text{scale}}$.
    """

    space: Space
    scale: float = 1.0
    centre: Centre = None

    def __post_init__(self) -> None:
        _checks.settle(self, scale=_checks.positive(self.scale, "scale"))
        self._check()

    @property
    def power(self) -> float:
        """The p of the density exp(-|t / width|^p)."""
        return 1.0

    @property
    def width(self) -> float:
        """The width of the density exp(-|t / width|^p)."""
        return self.scale


@dataclass(frozen=True)
class GeneralizedNormal(_Located):
    r"""Independent noise whose tails fall off with the power p, around `centre`, placed on `space`.

    The density is $\propto e^{-(|t|/\text{scale})^p}$: p = 1 is `Laplace(scale)`, p = 2 is
    `Normal(std=scale / sqrt(2))`.
    """

    space: Space
    p: float
    scale: float = 1.0
    centre: Centre = None

    def __post_init__(self) -> None:
        if not 1 <= _checks.finite(self.p, "p") <= 100:
            raise BadInput(
                f"`p` must lie between 1 and 100, but {self.p} came: below 1 there is no norm, far above it the noise "
                "is uniform."
            )
        _checks.settle(self, p=float(self.p), scale=_checks.positive(self.scale, "scale"))
        self._check()

    @property
    def power(self) -> float:
        """The p of the density exp(-|t / width|^p)."""
        return float(self.p)

    @property
    def width(self) -> float:
        """The width of the density exp(-|t / width|^p)."""
        return self.scale


def _check_centre(space: Space, centre: float | tuple[float, ...]) -> None:
    if isinstance(centre, tuple):
        if len(centre) != space.dim:
            raise BadInput(f"`centre` must have {space.dim} coordinates for {space!r}, but {len(centre)} came.")
        for value in centre:
            _checks.finite(value, "centre")
    else:
        _checks.finite(centre, "centre")


def _centre(space: Space, centre: Centre) -> Tensor:
    if centre is None:
        parts = space.parts if isinstance(space, Product) else (space,)
        values: list[float] = []
        for part in parts:
            first = part.radius if isinstance(part, Sphere) else 0.0
            values += [first] + [0.0] * (part.dim - 1)
    else:
        values = list(centre) if isinstance(centre, tuple) else [centre] * space.dim
    return torch.tensor(values, dtype=torch.float64)


def _log_mass(space: Space, p: float, scale: float, centre: Tensor) -> Tensor:
    """Log of the share of the noise that lands inside, coordinate by coordinate; 0 where nothing is cut off."""
    if isinstance(space, Product):
        parts = zip(space.parts, space.split(centre), strict=True)
        return torch.cat([_log_mass(part, p, scale, c) for part, c in parts], -1)
    if isinstance(space, Box):
        return noise.log_mass_between(p, (space.low - centre) / scale, (space.high - centre) / scale)
    return torch.zeros_like(centre, dtype=torch.float64)


# --- uniform draws, space by space


def _log_volume(space: Space) -> float:
    if isinstance(space, Product):
        return sum(_log_volume(part) for part in space.parts)
    volume = getattr(space, "log_volume", None)
    if volume is None:
        raise BadInput(
            f"Uniform needs a space of finite volume, but {space!r} came. "
            "Use Sphere, Box or a Product of them, or another marginal."
        )
    return float(volume)


@singledispatch
def _uniform(space: Any, n: int, generator: torch.Generator) -> Tensor:
    raise BadInput(f"zhat does not know how to draw uniformly from {space!r}; write a marginal of your own.")


@_uniform.register
def _(space: Sphere, n: int, generator: torch.Generator) -> Tensor:
    return space.project(torch.randn(n, space.dim, generator=generator, device=generator.device))


@_uniform.register
def _(space: Box, n: int, generator: torch.Generator) -> Tensor:
    u = torch.rand(n, space.dim, generator=generator, device=generator.device)
    return space.low + (space.high - space.low) * u


@_uniform.register
def _(space: Product, n: int, generator: torch.Generator) -> Tensor:
    return torch.cat([_uniform(part, n, generator) for part in space.parts], -1)


# --- noise around a centre, space by space


@singledispatch
def _place(space: Any, p: float, scale: float, centre: Tensor, generator: torch.Generator) -> Tensor:
    raise BadInput(f"zhat does not know how to place noise on {space!r}; write a distribution of your own.")


@_place.register
def _(space: Real, p: float, scale: float, centre: Tensor, generator: torch.Generator) -> Tensor:
    return centre + scale * noise.draw(p, centre, generator)


@_place.register
def _(space: Sphere, p: float, scale: float, centre: Tensor, generator: torch.Generator) -> Tensor:
    return space.project(centre + scale * noise.draw(p, centre, generator))


@_place.register
def _(space: Box, p: float, scale: float, centre: Tensor, generator: torch.Generator) -> Tensor:
    low, high = (space.low - centre) / scale, (space.high - centre) / scale
    return (centre + scale * noise.draw_between(p, low, high, generator)).clamp(space.low, space.high)


@_place.register
def _(space: Product, p: float, scale: float, centre: Tensor, generator: torch.Generator) -> Tensor:
    pairs = zip(space.parts, space.split(centre), strict=True)
    return torch.cat([_place(part, p, scale, c, generator) for part, c in pairs], -1)


@singledispatch
def _log_density(space: Any, p: float, scale: float, z: Tensor, centre: Tensor) -> Tensor:
    raise BadInput(f"zhat does not know the density of noise on {space!r}; write a distribution of your own.")


@_log_density.register
def _(space: Real, p: float, scale: float, z: Tensor, centre: Tensor) -> Tensor:
    return (noise.log_density(p, (z - centre) / scale) - math.log(scale)).sum(-1)


@_log_density.register
def _(space: Box, p: float, scale: float, z: Tensor, centre: Tensor) -> Tensor:
    each = noise.log_density(p, (z - centre).double() / scale) - math.log(scale)
    mass = _log_mass(space, p, scale, centre)
    return torch.where(space.contains(z), (each - mass).sum(-1), -math.inf).to(z.dtype)


@_log_density.register
def _(space: Sphere, p: float, scale: float, z: Tensor, centre: Tensor) -> Tensor:
    shape = torch.broadcast_shapes(z.shape, centre.shape)
    direction = (z.double() / z.double().norm(dim=-1, keepdim=True)).expand(shape).reshape(-1, space.dim)
    origin = centre.double().expand(shape).reshape(-1, space.dim)
    rows = max(1, 2**22 // (space.dim + _EXTRA_CUTS) // _NODES // space.dim)
    pieces = [
        _log_radial_integral(p, u / scale, c / scale)
        for u, c in zip(direction.split(rows), origin.split(rows), strict=True)
    ]
    ambient = torch.cat(pieces).reshape(shape[:-1]) - space.dim * math.log(scale)
    density = ambient - (space.dim - 1) * math.log(space.radius)
    return torch.where(space.contains(z), density, -math.inf).to(z.dtype)


@_log_density.register
def _(space: Product, p: float, scale: float, z: Tensor, centre: Tensor) -> Tensor:
    parts = zip(space.parts, space.split(z), space.split(centre.expand_as(z)), strict=True)
    return torch.stack([_log_density(part, p, scale, zi, ci) for part, zi, ci in parts]).sum(0)


# --- noise projected to a sphere: integrate the ambient density along the ray through each point

_NODES = 12
_EXTRA_CUTS = 12
_GAUSS_X, _GAUSS_W = (torch.as_tensor(a) for a in np.polynomial.legendre.leggauss(_NODES))


def _log_radial_integral(p: float, u: Tensor, c: Tensor) -> Tensor:
    r"""$\log \int_0^\infty r^{d-1} \prod_j f_p(r u_j - c_j)\, dr$ for each row of `u` and `c`.

    The exponent is concave in r, so the integrand has one peak. Bisection locates it; the range where the integrand
    exceeds e^-50 of its peak is cut where a coordinate's noise has its kink and at some further points; on each
    piece, where the integrand is smooth, Gauss-Legendre is exact to rounding.
    """
    d = u.shape[-1]
    log_constant = d * (math.log(2) + math.lgamma(1 + 1 / p))

    def exponent(r: Tensor) -> Tensor:  # r: (rows, m)
        t = r[..., None] * u[:, None, :] - c[:, None, :]
        return (d - 1) * r.log() - noise._power(p, t).sum(-1)

    def slope(r: Tensor) -> Tensor:  # r: (rows,)
        t = r[:, None] * u - c
        return (d - 1) / r - p * (t.abs() ** (p - 1) * t.sign() * u).sum(-1)

    # The peak lies below `reach`: there the pull of the noise outweighs (d - 1) / r.
    reach = 4 * (c.norm(p=p, dim=-1) + d) / u.norm(p=p, dim=-1)
    low, high = reach * 1e-9, reach.clone()
    for _ in range(40):
        middle = 0.5 * (low + high)
        rising = slope(middle) > 0
        low, high = torch.where(rising, middle, low), torch.where(rising, high, middle)
    peak = 0.5 * (low + high)
    floor = exponent(peak[:, None])[:, 0] - 50

    def edge(inside: Tensor, outside: Tensor) -> Tensor:
        for _ in range(24):
            middle = 0.5 * (inside + outside)
            above = exponent(middle[:, None])[:, 0] > floor
            inside, outside = torch.where(above, middle, inside), torch.where(above, outside, middle)
        return outside

    far = peak
    while bool((near := exponent(far[:, None])[:, 0] > floor).any()):
        far = torch.where(near, 2 * far, far)
    left, right = edge(peak, torch.zeros_like(peak)), edge(peak, far)
    evenly = torch.linspace(0, 1, _EXTRA_CUTS + 1, dtype=u.dtype, device=u.device)
    cuts = left[:, None] + (right - left)[:, None] * evenly
    kinks = (c / u).nan_to_num(0.0, 0.0, 0.0).clamp(left[:, None], right[:, None])
    cuts = torch.cat([cuts, kinks], -1).sort(-1).values
    half = 0.5 * cuts.diff(dim=-1)
    middle = 0.5 * (cuts[:, 1:] + cuts[:, :-1])
    x, w = _GAUSS_X.to(u.device), _GAUSS_W.to(u.device)
    r = (middle[..., None] + half[..., None] * x).flatten(1)
    weights = (half[..., None] * w).flatten(1)
    return torch.logsumexp(exponent(r) + weights.clamp_min(1e-300).log(), -1) - log_constant
