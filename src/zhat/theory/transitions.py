"""How sparse the steps of latents are: the exponent of a generalised normal distribution, fitted to them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.errors import BadInput, TooFewRows
from zhat.results import ExponentFit

LEAST = 100  # steps; fewer tell a Laplace from a normal distribution in half of all cases only
GRID = torch.logspace(math.log10(0.1), math.log10(20.0), 400, dtype=torch.float64)


def fit_exponent(
    steps: Any, *, groups: Any = None, resolution: float = 0.0, repeats: int = 200, seed: int = 0
) -> ExponentFit:
    r"""The exponent p of $p(s) \propto e^{-(|s - m| / a)^p}$ that makes the steps most likely.

    p = 2 is a normal distribution, p = 1 a Laplace distribution; smaller ones are sparser. m is the median. For each p
    the best scale is $a^p = p \cdot \overline{|s - m|^p}$, so one number is searched:

    $$\ell(p) = \log p - \log 2a - \log\Gamma(1/p) - 1/p.$$

    The interval resamples groups of steps, such as tracks of a video, because steps of one track are alike.

    Args:
        steps: differences of a latent between two times, `(n,)`.
        groups: what each step belongs to, `(n,)`; None takes every step by itself.
        resolution: what the steps were rounded to, for instance 1 for whole numbers. Rounding makes many steps equal,
            which no density explains; a uniform draw of this width is added to each step.
        repeats: resampled copies for the 95% interval.
        seed: of the resampling.

    Reference: klindt2021, section 3 (natural transitions); zimmermann2021, Table 3.

    Example:
        >>> steps = torch.randn(20_000, generator=torch.Generator().manual_seed(0))
        >>> abs(fit_exponent(steps).value - 2) < 0.1
        True
    """
    given = torch.as_tensor(steps).detach().cpu().double()
    if given.ndim != 1 or not bool(torch.isfinite(given).all()):
        raise BadInput(f"`steps` must be a finite row of numbers, (n,), but its shape is {tuple(given.shape)}.")
    if len(given) < LEAST:
        raise TooFewRows(f"an exponent needs at least {LEAST} steps, but {len(given)} came.", needed=LEAST)
    if resolution:
        width = _checks.positive(resolution, "resolution")
        jitter = torch.rand(len(given), generator=randomness.generator(seed, "jitter"), dtype=torch.float64)
        given = given + width * (jitter - 0.5)
    size = (given - given.median()).abs()
    if not float(size.max()) > 0:
        raise BadInput("all steps are the same, so they have no exponent.")
    sums, counts = _by_group(size / size.mean(), groups)
    best = _most_likely(sums.sum(0)[None], counts.sum()[None])
    if not GRID[2] < best[0] < GRID[-3]:
        equal = float((size == 0).double().mean())
        raise BadInput(
            f"no exponent between {GRID[0]:g} and {GRID[-1]:g} makes these steps most likely. {equal:.0%} of them "
            "equal the median; if they were rounded, say to what with `resolution`."
        )
    shape = (_checks.count(repeats, "repeats"), len(counts))
    drawn = torch.randint(len(counts), shape, generator=randomness.generator(seed, "bootstrap"))
    weights = torch.zeros(shape, dtype=torch.float64)
    weights.scatter_add_(1, drawn, torch.ones(shape, dtype=torch.float64))
    found = _most_likely(weights @ sums, weights @ counts)
    low, high = (float(v) for v in torch.quantile(found, torch.tensor([0.025, 0.975], dtype=torch.float64)))
    p = float(best[0])
    scale = float((p * size.pow(p).mean()) ** (1 / p))
    return ExponentFit(value=p, low=low, high=high, scale=scale, n=len(given), groups=len(counts))


def _by_group(size: Tensor, groups: Any) -> tuple[Tensor, Tensor]:
    """Sums of |s|^p over each group for every p of the grid, `(groups, grid)`, and how many steps each has."""
    if groups is None:
        codes = torch.arange(len(size)) % min(len(size), 1000)  # steps are alike: a thousand bags of them will do
    else:
        codes = torch.unique(torch.as_tensor(groups), return_inverse=True)[1]
        if codes.shape != size.shape:
            raise BadInput(f"`groups` must name a group for each of {len(size)} steps, but {tuple(codes.shape)} came.")
    counts = torch.bincount(codes).double()
    sums = torch.stack([torch.zeros_like(counts).index_add_(0, codes, size.pow(float(p))) for p in GRID], 1)
    return sums, counts


def _most_likely(sums: Tensor, counts: Tensor) -> Tensor:
    """The exponent of the largest likelihood in each line, between points of the grid by a parabola."""
    mean = sums / counts[:, None]
    scale = (GRID * mean).pow(1 / GRID)
    likely = GRID.log() - (2 * scale).log() - torch.lgamma(1 / GRID) - 1 / GRID
    top = likely.argmax(1).clamp(1, len(GRID) - 2)
    left, middle, right = (likely.gather(1, (top + i)[:, None])[:, 0] for i in (-1, 0, 1))
    bend = left - 2 * middle + right
    shift = torch.where(bend < 0, 0.5 * (left - right) / bend, 0.0).clamp(-1, 1)
    step = float((GRID[1] / GRID[0]).log())
    return (GRID[top].log() + shift * step).exp()
