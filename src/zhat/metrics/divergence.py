"""How far apart the probabilities of models of the same labels are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from zhat import _checks
from zhat.errors import BadInput

ROOM = 2**23  # scores held at a time, in float64


def divergence(features: Sequence[Any], heads: Sequence[Any]) -> Tensor:
    r"""Symmetrised Kullback-Leibler divergence of every pair of models, a mean over rows, in nats.

    $$D_{ij} = \frac1{2n} \sum_x \sum_y (p_i(y \mid x) - p_j(y \mid x))\,(\log p_i(y \mid x) - \log p_j(y \mid x)),
      \qquad p_i(y \mid x) \propto e^{f_i(x) \cdot g_i(y)}$$

    It is 0 where two models give the same probabilities for every row, which is the premise of theorems about pairs of
    models.

    Args:
        features: f of every model for the same rows, `(n, M)` each; models may differ in M.
        heads: g of every model for the same labels, `(labels, M)` each. A bias is one more column, with a 1 in the
            features.

    Returns:
        `(models, models)`, symmetric, with zeros on the diagonal, in float64.

    Example:
        >>> even, skewed = torch.tensor([[0.5], [0.5]]).log(), torch.tensor([[0.75], [0.25]]).log()
        >>> round(divergence([torch.ones(1, 1)] * 2, [even, skewed])[0, 1].item(), 4)  # log(3) / 8
        0.1373

    Reference: roeder2020, section 3: models with equal probabilities are linear maps of each other.
    """
    if len(features) != len(heads):
        raise BadInput(f"every model has features and a head, but {len(features)} and {len(heads)} came.")
    f = [_checks.matrix(values, f"features[{i}]") for i, values in enumerate(features)]
    g = [
        _checks.matrix(values, f"heads[{i}]").to(a.device, torch.float64)
        for i, (values, a) in enumerate(zip(heads, f, strict=True))
    ]
    shapes = "; ".join(f"{tuple(a.shape)} and {tuple(b.shape)}" for a, b in zip(f, g, strict=True))
    if not f or len({len(a) for a in f}) > 1 or len({len(b) for b in g}) > 1 or len(f[0]) == 0:
        raise BadInput(f"every model must have the same rows and labels, at least one, but the shapes are {shapes}.")
    if any(a.shape[1] != b.shape[1] for a, b in zip(f, g, strict=True)):
        raise BadInput(f"features and head of a model must have as many columns, but the shapes are {shapes}.")
    cross = torch.zeros(len(f), len(f), dtype=torch.float64, device=f[0].device)
    for rows in zip(*(a.split(max(1, ROOM // (len(f) * len(g[0])))) for a in f), strict=True):
        scores = torch.stack([a.double() @ b.T for a, b in zip(rows, g, strict=True)])
        if not bool(torch.isfinite(scores).all()):
            raise BadInput("features times head must be finite, but some scores overflow. Look for a diverged model.")
        log = torch.log_softmax(scores, -1).flatten(1)
        cross += log.exp() @ log.T / len(f[0])  # minus the cross-entropies
    own = cross.diagonal()
    return ((own[:, None] + own - cross - cross.T) / 2).clamp(min=0)
