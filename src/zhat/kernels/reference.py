"""The plain definition: every pairwise difference held at once. The oracle of the fast versions, not for training."""

from __future__ import annotations

import torch
from torch import Tensor


def pairwise_logsumexp(
    queries: Tensor, keys: Tensor, *, power: float | None, scale: float, skip_diagonal: bool = False
) -> Tensor:
    r"""The logarithm of the summed exponential similarities of each query to all keys, $\log \sum_j e^{s_{ij}}$.

    $$s_{ij} = \text{scale} \cdot q_i \cdot k_j \quad\text{or}\quad s_{ij} = -\text{scale} \sum_c |q_{ic} - k_{jc}|^p$$

    Args:
        queries: `(…, n, d)`.
        keys: `(…, m, d)`.
        power: p of the L^p similarity; None for the dot product.
        scale: factor in front, 1 / temperature.
        skip_diagonal: leave out the terms i = j.

    Returns:
        One value for each query, `(…, n)`. Memory is n·m·d.
    """
    if power is None:
        similarity = scale * torch.einsum("...id,...jd->...ij", queries, keys)
    else:
        difference = queries[..., :, None, :] - keys[..., None, :, :]
        similarity = -scale * (difference.abs() ** power).sum(-1)
    if skip_diagonal:
        diagonal = torch.eye(*similarity.shape[-2:], dtype=torch.bool, device=similarity.device)
        similarity = similarity.masked_fill(diagonal, -torch.inf)
    return torch.logsumexp(similarity, dim=-1)
