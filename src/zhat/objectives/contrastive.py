r"""Contrastive objectives: tell the positive of a row from the other rows.

The similarity is an object, so that theory can ask for it: `Dot()` for spheres, `NegativeLp(p)` for boxes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from zhat import _checks
from zhat.dgp.batch import Batch
from zhat.errors import BadInput
from zhat.kernels import pairwise_logsumexp


@dataclass(frozen=True)
class Dot:
    r"""$s(u, v) = u \cdot v$."""

    def __call__(self, u: Tensor, v: Tensor) -> Tensor:
        """Row by row, `(…, d), (…, d) -> (…)`."""
        return (u * v).sum(-1)


@dataclass(frozen=True)
class NegativeLp:
    r"""$s(u, v) = -\sum_c |u_c - v_c|^p$: the p-th power of the norm, no root and no factor 1/2."""

    p: float

    def __post_init__(self) -> None:
        if _checks.finite(self.p, "p") < 1:
            raise BadInput(f"`p` must be at least 1, but {self.p} came: below 1 there is no norm.")

    def __call__(self, u: Tensor, v: Tensor) -> Tensor:
        """Row by row, `(…, d), (…, d) -> (…)`."""
        return -((u - v).abs() ** self.p).sum(-1)


@dataclass(frozen=True)
class InfoNCE:
    r"""The contrastive loss of zimmermann2021, by default exactly as its official code computes it.

    With anchors $a_i$, positives $b_i$, similarity s and temperature $\tau$:

    $$L = \frac1n \sum_i 2\Big[-\alpha\, s(a_i, b_i)/\tau + (1-\alpha) \log\Big(e^{s(a_i, b_i)/\tau}
          + \sum_k e^{s(a_i, a_k)/\tau}\Big)\Big], \qquad \alpha = \tfrac12$$

    The sum over k runs over **all** anchors of the batch, k = i included: in the official code the negatives are
    the anchors themselves, only rolled by one place. In ten dimensions this self-pair is what keeps the scale of
    the representation finite (docs/learner.md).

    Where a process has a third view (`Pairs(…, fresh_negatives=True)`), those rows are the negatives. The
    loss as the paper prints it, equations (1) and (6), compares them with the positive:
    `InfoNCE(against_positive=True)` on such a process.

    Args:
        similarity: `Dot()` or `NegativeLp(p)`.
        temperature: $\tau$.
        include_self_pair: keep the term k = i among in-batch negatives.
        include_positive: keep the positive's term in the denominator.
        against_positive: compare negatives with the positive $b_i$ instead of the anchor $a_i$; in-batch negatives
            are then the anchors of the other rows.
        average_negatives: use the mean instead of the sum of the exponentials, which takes log n off the loss.
        alignment_weight: $\alpha$; 1/2 weighs both parts alike.

    Reference: zimmermann2021, equations (1) and (6).
    """

    similarity: Dot | NegativeLp = Dot()
    temperature: float = 1.0
    include_self_pair: bool = True
    include_positive: bool = True
    against_positive: bool = False
    average_negatives: bool = False
    alignment_weight: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.similarity, Dot | NegativeLp):
            raise BadInput(f"`similarity` must be Dot() or NegativeLp(p), but {self.similarity!r} came.")
        _checks.positive(self.temperature, "temperature")
        if not 0 < _checks.finite(self.alignment_weight, "alignment_weight") < 1:
            raise BadInput(f"`alignment_weight` must lie between 0 and 1, but {self.alignment_weight} came.")

    def __call__(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of representations `(views, n, k)`; a scalar."""
        if h.ndim != 3 or h.shape[0] not in (2, 3):
            raise BadInput(
                f"InfoNCE compares 2 views of each row (and fresh negatives as a third), but representations of "
                f"shape {tuple(h.shape)} came. Use Pairs(...), or an objective for single rows such as Supervised."
            )
        anchor, positive = h[0], h[1]
        if h.shape[1] < 2:
            raise BadInput("InfoNCE needs at least 2 rows in a batch: the other rows are the negatives.")
        query = positive if self.against_positive else anchor
        fresh = h.shape[0] == 3
        if fresh:
            keys, skip = h[2], False
        elif self.against_positive:
            keys, skip = anchor, True  # the own anchor is the positive's partner, not a negative
        else:
            keys, skip = query, not self.include_self_pair
        near = self.similarity(anchor, positive) / self.temperature
        power = self.similarity.p if isinstance(self.similarity, NegativeLp) else None
        spread = pairwise_logsumexp(query, keys, power=power, scale=1 / self.temperature, skip_diagonal=skip)
        count = keys.shape[0] - int(skip)
        if self.include_positive:
            spread, count = torch.logaddexp(spread, near), count + 1
        if self.average_negatives:
            spread = spread - math.log(count)
        alpha = self.alignment_weight
        return 2 * (-alpha * near + (1 - alpha) * spread).mean()
