"""Several matrices of embeddings at once: a verdict on every ordered pair, from one pass over each file.

Pairs are ordered: a map that loses directions goes one way only. The way back costs no further look at the rows,
because moments of (target, source) are those of (source, target) in another order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import permutations
from typing import Any

from zhat import _checks
from zhat.audit.rows import look_around
from zhat.audit.verdict import Examined, examined, opened
from zhat.results import AuditMatrix


def audit_all(
    sources: Sequence[Any],
    *,
    key: str | None = None,
    ids: Any = None,
    seed: int = 0,
    executor: Executor | None = None,
    device: str = "cpu",
) -> AuditMatrix:
    """Audit every ordered pair of several matrices of embeddings of the same rows.

    Each file is read once (see `rows.look_around`); a map from one to another and the way back come from the same pass.

    Args:
        sources: two or more of what `audit` takes.
        key: which array, for files that hold several.
        ids: joins rows of different order: the name of a key or column in all, or one for each.
        seed: of the sample and the chance level.
        executor: where the pass over the rows runs, as in `audit`.
        device: where its sums are taken.

    Example:
        >>> import torch
        >>> x = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
        >>> audit_all([x, x[:, [2, 0, 1]], 2 * x]).sentence
        '3 pairs of 3 inputs: 1 permutation, 2 scaled permutation.'
    """
    return gathered(examine_all(sources, key=key, ids=ids, seed=seed, executor=executor, device=device))


def examine_all(
    sources: Sequence[Any],
    *,
    key: str | None = None,
    ids: Any = None,
    seed: int = 0,
    executor: Executor | None = None,
    device: str = "cpu",
) -> tuple[Examined, ...]:
    """The audits of `audit_all` with their maps, in the order of `AuditMatrix.audits`."""
    _checks.device(device)
    found = opened(sources, key, ids)
    seen = look_around(found, seed=seed, executor=executor, device=device)
    return tuple(
        examined(seen[i, j] if i < j else seen[j, i].swapped(), found[i], found[j], seed)
        for i, j in permutations(range(len(found)), 2)
    )


def gathered(pairs: Sequence[Examined]) -> AuditMatrix:
    """The results of `examine_all` as one."""
    audits = tuple(e.result for e in pairs)
    m = round((1 + math.sqrt(1 + 4 * len(audits))) / 2)
    to = [audits[m - 1], *audits[: m - 1]]  # one audit that maps to each
    about = {k: v for k, v in audits[0].provenance.items() if k != "precision"}
    return AuditMatrix(tuple(a.b for a in to), tuple(a.dim_b for a in to), audits[0].n, audits, about)
