"""Whether refits agree: every pair of representations of the same rows, mapped both ways, held out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

from zhat import _checks, randomness
from zhat.errors import BadInput
from zhat.metrics.pairing import order
from zhat.metrics.similarity import linear_r2_both_ways
from zhat.metrics.uncertainty import student
from zhat.results import Consistency


def consistency(
    representations: Sequence[Any], *, names: Sequence[str] | None = None, shuffles: int = 5, seed: int = 0
) -> Consistency:
    r"""Held-out linear R2 between refits, both ways for every pair.

    Entry (i, j) is the share of the variance of representation j that an affine map of representation i explains; the
    map is fitted on a random half of the rows and read on the other. Fits that recovered the same latents up to a
    linear map score near 1; fits that found different things do not, however small their losses are. The interval is
    Student's over pairs of refits (the mean of both ways). It takes pairs for independent; those that share a refit
    are not quite.

    Args:
        representations: at least two arrays `(n, k_i)` of the same rows, in the same order.
        names: of the refits; None numbers them from 1.
        shuffles: shuffled copies of each pair for the chance level; 0 leaves it out.
        seed: of the halves and the shuffles.

    Blind to: affine maps of any representation.
    Reference: roeder2020, section 5; the same question with canonical correlations.

    Example:
        >>> h = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
        >>> round(consistency([h, h @ torch.randn(3, 3), 1 - 2 * h]).mean, 3)
        1.0
    """
    arrays = [_checks.matrix(h, f"representations[{i}]") for i, h in enumerate(representations)]
    if len(arrays) < 2:
        raise BadInput(f"consistency compares refits, so give at least 2 representations, but {len(arrays)} came.")
    if len({len(h) for h in arrays}) > 1:
        rows = ", ".join(str(len(h)) for h in arrays)
        raise BadInput(f"all representations must have the same rows, but they have {rows}.")
    called = tuple(str(i + 1) for i in range(len(arrays))) if names is None else tuple(names)
    if len(called) != len(arrays):
        raise BadInput(f"`names` must hold {len(arrays)} names, but {len(called)} came.")
    _checks.count(shuffles, "shuffles", least=0)
    for i, h in enumerate(arrays):
        _checks.varying(h, f"representations[{i}]")
    matrix = [[1.0] * len(arrays) for _ in arrays]
    means, by_chance = [], []
    generator = randomness.generator(seed, "shuffle")
    read = 0
    for i, j in itertools.combinations(range(len(arrays)), 2):
        to_i, to_j = linear_r2_both_ways(arrays[i], arrays[j], seed=seed)
        matrix[j][i], matrix[i][j], read = to_i.value, to_j.value, to_i.n
        means.append((to_i.value + to_j.value) / 2)
        for _ in range(shuffles):
            mixed = order(len(arrays[j]), generator, arrays[j].device)
            ways = linear_r2_both_ways(arrays[i], arrays[j][mixed], seed=seed)
            by_chance.append((ways[0].value + ways[1].value) / 2)
    mean = sum(means) / len(means)
    low = high = None
    if len(means) > 1:
        low, high = student(torch.tensor(means, dtype=torch.float64))
    return Consistency(
        names=called,
        r2=tuple(tuple(row) for row in matrix),
        mean=mean,
        low=low,
        high=high,
        chance=sum(by_chance) / len(by_chance) if by_chance else None,
        n=read,
        n_fit=len(arrays[0]) - read,
    )
