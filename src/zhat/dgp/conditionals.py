"""p(z' | z): how the second view moves away from an anchor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from scipy import special
from scipy.interpolate import CubicHermiteSpline
from torch import Tensor

from zhat import _checks
from zhat.dgp.marginals import GeneralizedNormal, Laplace, Normal
from zhat.dgp.noise import Table
from zhat.dgp.spaces import SLACK
from zhat.errors import BadInput

Array = npt.NDArray[np.float64]


class Conditional(Protocol):
    """What a conditional knows: how to draw around an anchor, and its density."""

    def sample(self, z: Tensor, *, generator: torch.Generator) -> Tensor:
        """One draw around each anchor, `(…, dim) -> (…, dim)`, on the anchors' device."""

    def log_prob(self, z_next: Tensor, z: Tensor) -> Tensor:
        """Log density of `z_next` given the anchor `z`, `(…, dim), (…, dim) -> (…)`."""


@dataclass(frozen=True)
class Around:
    """A located family with its centre moved to the anchor: `Around(Laplace(Box(10), scale=0.05))`."""

    family: Normal | Laplace | GeneralizedNormal

    def __post_init__(self) -> None:
        if not isinstance(self.family, Normal | Laplace | GeneralizedNormal):
            raise BadInput(f"Around takes Normal, Laplace or GeneralizedNormal, but {self.family!r} came.")
        if self.family.centre is not None:
            raise BadInput(f"Around puts the centre at the anchor; give {type(self.family).__name__} no `centre`.")

    def sample(self, z: Tensor, *, generator: torch.Generator) -> Tensor:
        """One draw around each anchor."""
        return self.family.sample_around(z, generator=generator)

    def log_prob(self, z_next: Tensor, z: Tensor) -> Tensor:
        """Log density around each anchor."""
        return self.family.log_prob_around(z_next, z)


@dataclass(frozen=True)
class VonMisesFisher:
    r"""The bell curve of a sphere, around the anchor.

    $$p(z'|z) \propto e^{\kappa \cos\angle(z', z)}$$

    The radius is that of the anchor, so the same object serves spheres of every radius. The cosine is drawn by
    pushing a standard normal through the transport map to its exact law
    $\propto e^{\kappa w}(1-w^2)^{(d-3)/2}$: no rejection, no waiting for a GPU.

    Reference: zimmermann2021, section 3; wood1994 for the decomposition into cosine and tangent direction.
    """

    concentration: float

    def __post_init__(self) -> None:
        if _checks.finite(self.concentration, "concentration") < 0:
            raise BadInput(f"`concentration` must not be negative, but {self.concentration} came.")
        _checks.settle(self, concentration=float(self.concentration))

    def sample(self, z: Tensor, *, generator: torch.Generator) -> Tensor:
        """One draw around each anchor, `(…, dim) -> (…, dim)`."""
        dim = z.shape[-1]
        rows = z.reshape(-1, dim)
        fall = _cosine_law(dim, float(self.concentration)).fall
        # Blocks of rows stay in a processor's cache; on a GPU everything is one block.
        block = len(rows) if z.is_cuda else 2**16
        out = torch.empty_like(rows)
        for anchor, target in zip(rows.split(block), out.split(block), strict=True):
            radius = _dot(anchor, anchor).sqrt()
            normal = torch.empty_like(anchor).normal_(generator=generator)
            # The draw around e_1: first coordinate 1 - s, the others a random direction times the sine.
            s = fall(normal[:, 0].clone())
            normal[:, 0] = 0
            size = _dot(normal, normal).sqrt()
            none = size == 0  # about one draw in 2^24 on a circle: any direction will do
            normal[:, 1] += none
            first, sine = 1 - s, (s * (2 - s)).clamp_min(0).sqrt() / (size + none)
            # Then the Householder reflection that takes e_1 to the anchor; nothing cancels in it.
            head = anchor[:, 0] / radius
            sign = torch.where(head < 0, -1.0, 1.0).to(z.dtype)
            share = ((head + sign) * first + sine * _dot(anchor, normal) / radius) / (1 + head.abs())
            torch.mul(normal, (-sign * radius * sine)[:, None], out=target)
            target.addcmul_(anchor, (sign * share)[:, None])
            target[:, 0] = -sign * radius * (first - share * (head + sign))
        return out.reshape(z.shape)

    def log_prob(self, z_next: Tensor, z: Tensor) -> Tensor:
        """Log density with respect to surface area; minus infinity off the anchor's sphere."""
        dim = z.shape[-1]
        radius = z.norm(dim=-1)
        # |z' - z|^2 = 2 r^2 (1 - cos), which keeps its digits when the two are close
        fall = (z_next - z).square().sum(-1) / (2 * radius.square())
        log_peak = _cosine_law(dim, float(self.concentration)).log_peak
        density = log_peak - self.concentration * fall - (dim - 1) * radius.log()
        off = (z_next.norm(dim=-1) / radius - 1).abs() > SLACK
        return torch.where(off, -math.inf, density)

    def mean_cosine(self, dim: int) -> float:
        r"""$E[\cos\angle(z', z)] = I_{d/2}(\kappa) / I_{d/2-1}(\kappa)$."""
        return _cosine_law(dim, float(self.concentration)).mean


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Row by row; a batched product is several times faster than a sum over a short last axis."""
    return torch.bmm(a[:, None, :], b[:, :, None])[:, 0, 0]


@dataclass(frozen=True)
class _CosineLaw:
    """The law of 1 - cosine: its transport map from a standard normal, peak log density on S^{d-1}, mean cosine."""

    fall: Table
    log_peak: float
    mean: float


@lru_cache(maxsize=64)
def _cosine_law(dim: int, concentration: float) -> _CosineLaw:
    r"""The law of $s = 1 - \cos\angle$, density $\propto e^{-\kappa s} (s(2-s))^{(d-3)/2}$ on (0, 2).

    In the variable $r = \log(s / (2 - s))$ the density is smooth on the whole line with exponential tails, so
    Gauss-Legendre on small panels gives the mass of every panel to rounding. Masses are summed from each tail
    separately; matching them with the normal tails gives the transport map, whose slope is known exactly.
    """
    if dim < 2:
        raise BadInput(f"VonMisesFisher needs points in at least 2 dimensions, but {dim} came.")
    m = dim - 1

    def log_q(r: Array) -> Array:  # density in r, up to a constant
        log_s, log_rest = -np.logaddexp(0, -r), -np.logaddexp(0, r)  # log(s / 2), log((2 - s) / 2)
        out: Array = 0.5 * m * (log_s + log_rest) - 2 * concentration * np.exp(log_s)
        return out

    peak_s = 2 * m / (2 * concentration + m + math.hypot(2 * concentration, m))
    peak = math.log(peak_s) - math.log(2 - peak_s)
    top = float(log_q(np.array(peak)))

    def edge(direction: float) -> float:
        step = 1e-3
        while log_q(np.array(peak + direction * step)) > top - 60:
            step *= 1.25
        return peak + direction * step

    cuts = np.linspace(edge(-1.0), edge(1.0), 4 * 4096 + 1)
    x, w = np.polynomial.legendre.leggauss(6)
    half = 0.5 * (cuts[1] - cuts[0])
    nodes = (0.5 * (cuts[1:] + cuts[:-1]))[:, None] + half * x
    density = np.exp(log_q(nodes) - top)
    panel = half * (density * w).sum(1)
    total = panel.sum()
    below = np.concatenate([[0.0], np.cumsum(panel)])
    above = np.concatenate([np.cumsum(panel[::-1])[::-1], [0.0]])
    with np.errstate(divide="ignore"):
        y = np.where(below < above, special.ndtri(below / total), -special.ndtri(above / total))
    inner = np.isfinite(y)
    y, r = y[inner], cuts[inner]
    slope = np.exp(-(y**2) / 2 - 0.5 * math.log(2 * math.pi) - (log_q(r) - top)) * total
    low, high = max(y[0], -8.6), min(y[-1], 8.6)
    grid = np.linspace(low, high, 4097)
    spline = CubicHermiteSpline(y, r, slope)
    r = spline(grid)
    s = 2 * special.expit(r)
    fall = Table(low, high, s, 0.5 * s * (2 - s) * spline(grid, 1))

    # dr = 2 ds / (s (2 - s)) and (s/2)((2-s)/2) = s(2-s)/4 turn the integral over r into the one over s.
    log_integral = math.log(total) + top + m * math.log(2) - math.log(2)
    log_area = math.log(2) + 0.5 * m * math.log(math.pi) - math.lgamma(0.5 * m)  # of S^{d-2}
    mean_fall = (half * (density * 2 * special.expit(nodes) * w).sum()) / total
    return _CosineLaw(fall, -log_integral - log_area, 1 - float(mean_fall))
