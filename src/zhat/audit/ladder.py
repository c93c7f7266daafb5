r"""One held-out score for each class of maps, from moments alone.

For a class with fitted map $\hat t = A s + c$ from source rows s to target rows t, the loss of a fold is
$\frac1d \sum_j \frac{1}{n_f v_j} \sum_{i \in f} (t_{ij} - \hat t_{ij})^2$ with $v_j$ the variance of column j among all
rows read; R2 is one minus its mean. The same folds serve every class, so two classes are compared fold by fold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import torch
from scipy import stats
from torch import Tensor

from zhat.equivalence import AFFINE, Equivalence
from zhat.errors import BadInput
from zhat.metrics import ALIGNABLE, Alignment, Moments, Recovery, align
from zhat.metrics.pairing import unpaired
from zhat.metrics.uncertainty import around, deviation
from zhat.results import Score


@dataclass(frozen=True, eq=False)
class Step:
    """One class: its map, its losses, its score.

    Attributes:
        up_to: the class.
        found: the map fitted.
        losses: one for each fold read, `(folds,)`.
        ratios: 1 - R2 of each fold, linearised around that of all folds, `(folds,)`.
        score: the held-out R2 with interval and chance.
        enough: whether there are rows enough to fit this class.
        needed: rows that are.
        wildest: the largest share of a column's variance that one fold holds, mean over columns.
    """

    up_to: Equivalence
    found: Alignment
    losses: Tensor
    ratios: Tensor
    score: Score
    enough: bool
    needed: int
    wildest: float


def steps(fit: Moments, read: Sequence[Moments], *, effective: int, seed: int, among: int = 1) -> tuple[Step, ...]:
    """Every class that can be fitted, tightest first; where dimensions differ, only linear and affine maps.

    Args:
        fit: moments of the rows to fit on.
        read: moments of the folds to read on.
        effective: rows that count.
        seed: of the chance level.
        among: pairs that are searched for a relation; the upper end of chance is that of the best of so many.
    """
    whole = reduce(add, read)
    d, k = whole.zh.shape
    classes = ALIGNABLE if d == k else ALIGNABLE[-2:]
    shuffles = 20 if d <= 32 else 5 if d <= 256 else 2
    chances = [(f, r) for f, r in unpaired((fit, whole), shuffles=shuffles, seed=seed)]
    return tuple(_step(up_to, fit, read, whole, chances, effective, among) for up_to in classes)


def _step(
    up_to: Equivalence,
    fit: Moments,
    read: Sequence[Moments],
    whole: Moments,
    chances: list[tuple[Moments, Moments]],
    effective: int,
    among: int,
) -> Step:
    found = align(fit, up_to)
    by_column = torch.stack([loss(m, found, whole) for m in read])
    losses = by_column.mean(-1)
    spread = torch.stack([_spread(m, whole) for m in read])
    # R2 is a ratio: a fold that spreads more than the others loses more as well, and that part says nothing.
    linear = (by_column - loss(whole, found, whole) * (spread - 1)).mean(-1)
    low, high = around(float(linear.mean()), linear)
    by_chance = torch.stack([loss(r, align(f, up_to), whole).mean() for f, r in chances])
    each = 1 - loss(whole, found, whole)
    if not bool(torch.isfinite(torch.cat([each, losses, by_chance])).all()):
        raise BadInput(
            "squares of one side in units of the other leave the range of float64. Rescale both to sizes near 1."
        )
    needed = Recovery(up_to).rows_needed(*whole.zh.shape)
    score = Score(
        name="R2",
        value=float(each.mean()),
        up_to=up_to,
        shift=up_to is AFFINE,
        low=1 - high if math.isfinite(high) else None,
        high=min(1.0, 1 - low) if math.isfinite(low) else None,
        chance=1 - float(by_chance.mean()),
        chance_high=1 - _least(by_chance, among),
        n=whole.n,
        n_fit=fit.n,
        held_out=True,
        per_latent=tuple(float(v) for v in each),
    )
    wildest = float((spread / spread.sum(0)).amax(0).mean())
    return Step(up_to, found, losses, linear, score, effective >= needed, needed, wildest)


def _least(losses: Tensor, among: int) -> float:
    """The 5% quantile of losses by chance, divided by the pairs searched; their logarithms are taken as normal.

    Losses are positive, and those of permuted columns of very different spread range over powers of ten. A normal
    distribution of the losses themselves would then reach below 0.
    """
    logarithms = losses.clamp_min(1e-300).log()
    reach = float(stats.norm.isf(0.05 / among))
    return math.exp(float(logarithms.mean()) - reach * deviation(logarithms))


def loss(moments: Moments, found: Alignment, whole: Moments) -> Tensor:
    """Mean squared error of each varying column in units of its variance, `(varying columns,)`."""
    kept = whole.varies()[0]
    off = found(moments.mean_h) - moments.mean_z
    matrix = found.matrix
    error = (
        moments.zz.diagonal()
        - 2 * (matrix * moments.zh).sum(-1)
        + (matrix @ moments.hh * matrix).sum(-1)
        + moments.n * off.square()
    )
    return (error.clamp_min(0) / moments.n)[kept] / (whole.zz.diagonal()[kept] / whole.n)


def _spread(moments: Moments, whole: Moments) -> Tensor:
    """Mean squared distance of each varying column from the mean of all folds, in units of its variance."""
    kept = whole.varies()[0]
    total = moments.zz.diagonal() + moments.n * (moments.mean_z - whole.mean_z).square()
    return (total / moments.n)[kept] / (whole.zz.diagonal()[kept] / whole.n)
