r"""The diversity condition as a number, and the linear map between two models from their heads alone.

In the canonical form $p(y \mid x, S) \propto \exp f(x) \cdot g(y)$ two models with the same p have
$L'^\top f'(x) = L^{*\top} f^*(x)$, where the columns of L are M differences $g(y_A) - g(y_B)$ of the same pairs of
labels. Where both L are invertible, $f' = (L^* L'^{-1})^\top f^*$.

Reference: roeder2020, section 3.
"""

from __future__ import annotations

from typing import Any

import torch
from scipy import linalg
from torch import Tensor

from zhat import _checks, randomness
from zhat.equivalence import LINEAR
from zhat.errors import BadInput
from zhat.metrics import Alignment, Recovery, align, divergence
from zhat.metrics.pairing import halves
from zhat.metrics.similarity import varying
from zhat.results import Diversity, ModelPair
from zhat.theory.heads import affine_spread

READ = 20_000  # rows on which probabilities are compared


def diversity(head: Any, candidates: Any = None, *, sets: int = 50, seed: int = 0) -> Diversity:
    r"""How well label vectors meet the diversity condition.

    Sets of M + 1 labels are drawn; the M differences from the first of them are the columns of L. Where few sets are
    any good, draws may miss them all, so one more is chosen greedily by pivoted QR, in the candidate set where its L is
    conditioned best: it is invertible if any is.

    Args:
        head: g, one row for each label, `(labels, M)`. A bias is one more column, with a 1 in the features.
        candidates: the sets S that labels are told apart in, indices of labels, `(any, size)`; None is one set with all
            labels. Each drawn set lies within one of them.
        sets: how many sets are drawn for the condition numbers.
        seed: of the draws.

    Reference: roeder2020, section 3.2, which suggests to draw again until L is well-conditioned.

    Example:
        >>> diversity(torch.eye(3)).missing  # three labels differ in two directions
        1
    """
    g = _head(head, "head")
    inside = _candidates(candidates, len(g))
    drawn = _drawn(inside, (g,), _checks.count(sets, "sets"), seed)
    return _diversity(g, inside, None if drawn is None else _conditions(g, drawn), greedy=1)


def compare_models(
    first_head: Any,
    second_head: Any,
    first_features: Any = None,
    second_features: Any = None,
    *,
    sets: int = 50,
    seed: int = 0,
) -> ModelPair:
    r"""The linear map between two models by two independent roads: from heads alone, and from features alone.

    $$f_2 = A f_1, \qquad A = (L_1 L_2^{-1})^\top \text{ for the pairs of labels with the best conditioned } L_1, L_2$$

    and $f_2 \approx B f_1$ by least squares without an offset, on a random half of the rows. Where both models have the
    same conditional distribution and are diverse, A = B. How far those distributions are apart stands beside.

    Args:
        first_head: g of the first model, `(labels, M)`.
        second_head: g of the second model, same labels in the same order.
        first_features: f of the first model, `(n, M)`; None leaves the second road out.
        second_features: f of the second model, of the same rows.
        sets: how many sets of labels are drawn.
        seed: of the draws and of the halves.

    Reference: roeder2020, Theorem 1.
    """
    one, two = _head(first_head, "first_head"), _head(second_head, "second_head")
    if one.shape != two.shape:
        raise BadInput(
            f"both heads must hold the same labels and dimensions, but their shapes are {tuple(one.shape)} and "
            f"{tuple(two.shape)}. A linear map between models needs as many dimensions on either side."
        )
    inside = _candidates(None, len(one))
    drawn = _drawn(inside, (one, two), _checks.count(sets, "sets"), seed)
    both = [None if drawn is None else _conditions(g, drawn) for g in (one, two)]
    from_heads, residual, condition = None, None, None
    if drawn is not None and both[0] is not None and both[1] is not None:
        worse = torch.maximum(both[0], both[1])
        best = int(worse.argmin())
        if bool(torch.isfinite(worse[best])):
            a, b = (_differences(g, drawn[best : best + 1])[0] for g in (one, two))
            from_heads, condition = torch.linalg.solve(b, a), float(worse[best])  # A^T L2 = L1, transposed
            centred_one, centred_two = (g.double() - g.double().mean(0) for g in (one, two))
            residual = float((centred_two @ from_heads - centred_one).norm() / centred_one.norm())
    from_features = read_features = read_heads = rows = None
    differ: tuple[float | None, float | None] = (None, None)
    if first_features is not None and second_features is not None:
        first = _features(first_features, "first_features", one.shape[1])
        second = _features(second_features, "second_features", one.shape[1])
        metric = Recovery(LINEAR)
        metric.refuse_few(len(first), second.shape[1], first.shape[1])
        fit, read = halves(second, first, seed=seed, names=("second_features", "first_features"))
        by_features, rows = align(fit, LINEAR), read.n
        from_features = by_features.matrix.cpu()
        vary = varying(read.zz, read.mean_z, read.n, "second_features")  # a bias or a dead unit has no R2
        read_features = float(metric.agreement(read, by_features)[vary].mean())
        differ = _apart(one, two, first, second, seed)
        if from_heads is not None:
            by_heads = Alignment(from_heads.to(read.zh), torch.zeros_like(read.mean_z), LINEAR)
            read_heads = float(metric.agreement(read, by_heads)[vary].mean())
    disagreement = None
    if from_heads is not None and from_features is not None:
        disagreement = float((from_heads - from_features).norm() / from_features.norm())
    return ModelPair(
        first=_diversity(one, inside, both[0], greedy=2),
        second=_diversity(two, inside, both[1], greedy=2),
        condition=condition,
        from_heads=_rows(from_heads),
        residual=residual,
        from_features=_rows(from_features),
        disagreement=disagreement,
        heads_r2=read_heads,
        features_r2=read_features,
        n=rows,
        apart=differ[0],
        apart_by_chance=differ[1],
    )


def _features(values: Any, name: str, dim: int) -> Any:
    """Features as `(n, M)`, whatever axes come before the last; nothing is read yet."""
    shape = tuple(getattr(values, "shape", ()))
    if len(shape) < 2 or shape[-1] != dim:
        raise BadInput(
            f"`{name}` must have one column for each of the head's {dim} dimensions, but its shape is {shape}. Give "
            "what the head is multiplied with; a bias is a column of ones."
        )
    return values.reshape(-1, dim) if len(shape) > 2 else values


def _apart(first_head: Tensor, second_head: Tensor, first: Any, second: Any, seed: int) -> tuple[float, float]:
    """Divergence of two models' probabilities on at most `READ` rows drawn; and with these rows paired at random."""
    generator = randomness.generator(seed, "rows")
    rows = torch.randperm(len(first), generator=generator)[:READ].sort().values
    others = rows[torch.randperm(len(rows), generator=generator)]
    features = [_at(first, rows), _at(second, rows), _at(second, others)]
    found = divergence(features, [first_head, second_head, second_head])
    return float(found[0, 1]), float(found[0, 2])


def _at(values: Any, rows: Tensor) -> Any:
    """Some rows of a tensor or of an array, which may be a file."""
    return values[rows] if isinstance(values, Tensor) else values[rows.numpy()]


def _rows(matrix: Tensor | None) -> tuple[tuple[float, ...], ...] | None:
    return None if matrix is None else tuple(tuple(row) for row in matrix.tolist())


def _head(values: Any, name: str) -> Tensor:
    g = _checks.moderate(_checks.matrix(values, name).cpu(), name)
    if len(g) < 2:
        raise BadInput(
            f"`{name}` must hold one row for each of at least 2 labels, but its shape is {tuple(g.shape)}. "
            "Give the weights of a last layer, (labels, dimensions)."
        )
    return g


def _candidates(values: Any, labels: int) -> Tensor:
    if values is None:
        return torch.arange(labels)[None]
    sets = torch.as_tensor(values).cpu()
    if sets.ndim != 2 or sets.is_floating_point() or sets.dtype == torch.bool or sets.numel() == 0:
        raise BadInput(
            f"`candidates` must hold one set of label indices in each row, but the shape {tuple(sets.shape)} and the "
            f"dtype {sets.dtype} came. Give whole numbers, (sets, size)."
        )
    if int(sets.min()) < 0 or int(sets.max()) >= labels:
        raise BadInput(
            f"`candidates` must lie between 0 and {labels - 1}, one for each row of the head, but they run from "
            f"{int(sets.min())} to {int(sets.max())}."
        )
    return sets.long()


def _drawn(inside: Tensor, heads: tuple[Tensor, ...], sets: int, seed: int) -> Tensor | None:
    """Sets of M + 1 different labels, each within one candidate set: one chosen for each head, then drawn ones.

    `(heads + sets, M + 1)`, or None where no candidate set is large enough.
    """
    generator = randomness.generator(seed, "diversity")
    dim = heads[0].shape[1]
    large = [labels for labels in (row.unique() for row in inside) if len(labels) > dim]
    if not large:
        return None
    each = [torch.stack([_greedy(g, labels) for labels in large]) for g in heads]
    chosen = [sets_of[int(_conditions(g, sets_of).argmin())] for g, sets_of in zip(heads, each, strict=True)]
    for i in torch.randint(len(large), (sets,), generator=generator).tolist():
        chosen.append(large[i][torch.randperm(len(large[i]), generator=generator)[: dim + 1]])
    return torch.stack(chosen)


def _greedy(g: Tensor, labels: Tensor) -> Tensor:
    """M + 1 labels far apart: the one farthest from the middle, then each as far as can be from those before it."""
    vectors = g.double()[labels]
    first = int((vectors - vectors.mean(0)).norm(dim=-1).argmax())
    _, order = linalg.qr((vectors - vectors[first]).T.numpy(), mode="r", pivoting=True)
    others = [int(i) for i in order if i != first][: g.shape[1]]
    return labels[[first, *others]]


def _differences(g: Tensor, drawn: Tensor) -> Tensor:
    """L transposed: one difference in each row, `(sets, M, M)`, in float64."""
    vectors = g.double()[drawn]
    return vectors[:, 1:] - vectors[:, :1]


def _conditions(g: Tensor, drawn: Tensor) -> Tensor:
    """The condition number of each L, infinite where it is singular to the rounding of the head's dtype."""
    values = torch.stack([torch.linalg.svdvals(_differences(g, one[None])[0]) for one in drawn])
    singular = values[:, -1] <= values[:, 0] * values.shape[1] * torch.finfo(g.dtype).eps
    return torch.where(singular, torch.inf, values[:, 0] / torch.where(singular, 1.0, values[:, -1]))


def _diversity(g: Tensor, inside: Tensor, conditions: Tensor | None, *, greedy: int) -> Diversity:
    vectors = [g[labels.unique()] for labels in inside]
    worst = min((affine_spread(v) for v in vectors), key=lambda s: (s.rank, s.smallest))
    fewest = min(len(v) for v in vectors)
    every = torch.empty(0) if conditions is None else conditions
    finite, drawn = every[torch.isfinite(every)], every[greedy:][torch.isfinite(every[greedy:])]
    return Diversity(
        labels=fewest,
        dim=g.shape[1],
        rank=worst.rank,
        missing=max(0, g.shape[1] + 1 - fewest),
        smallest=worst.smallest,
        largest=worst.largest,
        sets=len(every[greedy:]),
        invertible=len(drawn),
        best=float(finite.min()) if len(finite) else None,
        typical=float(drawn.median()) if len(drawn) else None,
    )
