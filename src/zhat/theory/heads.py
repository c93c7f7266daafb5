"""What a set of cluster vectors, or the head of a classifier, says about identifiability. Arrays in, plain data out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from zhat import _checks
from zhat.equivalence import LINEAR
from zhat.errors import BadInput
from zhat.results import Answer, HeadCheck, Prediction, Spread

ALIKE = 0.01  # counts that come from a uniform law less often than this are called unequal


def spread(matrix: Tensor) -> Spread:
    """Rank and singular values of a matrix; what is below the rounding of its dtype counts as zero."""
    values = torch.linalg.svdvals(matrix.double())
    limit = values[0] * max(matrix.shape) * torch.finfo(matrix.dtype).eps
    kept = values[values > limit]
    full = len(kept) == min(matrix.shape) and len(kept) > 0
    return Spread(
        rank=len(kept),
        of=matrix.shape[1],
        smallest=float(values[-1]) if matrix.shape[0] >= matrix.shape[1] else 0.0,
        largest=float(values[0]),
        condition=float(values[0] / values[-1]) if full and matrix.shape[0] >= matrix.shape[1] else None,
    )


def affine_spread(vectors: Tensor) -> Spread:
    r"""How far vectors are from an affine generator system of $\mathbb R^d$: the spread of $v_c - \bar v$.

    Rank d means that every point is an affine combination of the vectors, for which at least d + 1 are needed.

    Reference: reizinger2024, Assumption 1.
    """
    return spread(vectors - vectors.mean(0))


def diversity_spread(vectors: Tensor) -> Spread:
    r"""The spread of the matrix with rows $[\mathrm{svec}(v_c v_c^\top), v_c]$, `(classes, d (d + 3) / 2)`.

    svec lists the upper triangle of a symmetric matrix, entries off the diagonal times $\sqrt2$, so that
    $\mathrm{svec}(S) \cdot \mathrm{svec}(v v^\top) = v^\top S v$ and the singular values do not depend on the basis.
    Case C3 needs full rank (`labelled.vectors_are_diverse`).
    """
    i, j = torch.triu_indices(vectors.shape[-1], vectors.shape[-1])
    weights = (2 - (i == j).to(vectors.dtype)).sqrt()
    return spread(torch.cat([weights * vectors[:, i] * vectors[:, j], vectors], -1))


def classes_for_a_rotation(dim: int) -> int:
    r"""$d (d + 3) / 2$: the fewest cluster vectors for which `diversity_spread` can have full rank."""
    return dim * (dim + 3) // 2


def check_head(head: Any, labels: Any = None) -> HeadCheck:
    """What theory can say of a trained classifier from the weights of its last layer.

    Args:
        head: W, one row for each class, `(classes, dim)`: the `weight` of a final linear layer.
        labels: the class of each training row, `(n,)`, whole numbers from 0; with it the balance of classes is judged.

    Returns:
        The numbers, and a prediction in which every condition that a head can answer is answered.

    Reference: reizinger2024, Theorems 1 and 2; roeder2020 for two models compared with each other.

    Example:
        >>> check_head(torch.eye(3)).generator  # three vectors span a plane of affine combinations, not space
        False
    """
    head = _checks.moderate(_checks.matrix(head, "head").cpu(), "head")
    classes, dim = head.shape
    if classes < 2:
        raise BadInput(f"`head` must hold one row for each of at least 2 classes, but its shape is {(classes, dim)}.")
    if not bool(head.any()):
        raise BadInput("`head` holds nothing but zeros. Give the weights of a trained last layer.")
    linear, affine = spread(head), affine_spread(head)
    lengths = head.double().norm(dim=-1)
    unit = bool((lengths - 1).abs().max() < 1e-3)
    counts = None if labels is None else _counts(labels, classes)
    answers = (
        _enough(classes, dim),
        generates(affine, "rows"),
        _balanced(counts),
        Answer("latents in clusters on a sphere", "unknown", "a head says nothing of the world behind the data"),
        Answer("the loss is at its minimum", "unknown", "a head says nothing of how well it was trained"),
    )
    prediction = Prediction(
        f"Theorem 1C, case {'C3' if unit else 'C4'}",
        "reizinger2024",
        LINEAR,
        False,
        None,
        answers,
        _notes(affine, classes, dim, unit),
    )
    return HeadCheck(
        classes=classes,
        dim=dim,
        linear=linear,
        affine=affine,
        shortest=float(lengths.min()),
        longest=float(lengths.max()),
        least=None if counts is None else int(counts.min()),
        most=None if counts is None else int(counts.max()),
        prediction=prediction,
    )


def _enough(classes: int, dim: int) -> Answer:
    holds = classes >= dim + 1
    return Answer(
        "at least one class more than dimensions",
        "yes" if holds else "no",
        f"{classes} classes, {dim} dimensions" + ("" if holds else f"; {dim + 1} classes are needed"),
    )


def generates(affine: Spread, what: str) -> Answer:
    """Whether vectors generate their space affinely, with the margin."""
    name = f"{what} generate the space affinely"
    if affine.condition is None:
        return Answer(name, "no", f"their differences span {affine.rank} of {affine.of} dimensions")
    margin = f"smallest singular value {affine.smallest:.3g}, largest {affine.largest:.3g}"
    return Answer(name, "yes", f"their differences span all {affine.of} dimensions; {margin}")


def _counts(labels: Any, classes: int) -> Tensor:
    flat = np.asarray(labels.detach().cpu() if isinstance(labels, Tensor) else labels)
    if flat.ndim != 1 or flat.dtype.kind not in "iu" or len(flat) == 0:
        raise BadInput(
            f"`labels` must hold one whole number for each row, but the shape {flat.shape} and the dtype "
            f"{flat.dtype} came. Give class indices from 0."
        )
    low, high = int(flat.min()), int(flat.max())
    if low < 0 or high >= classes:
        raise BadInput(
            f"`labels` must lie between 0 and {classes - 1}, one for each row of the head, but they run from {low} to "
            f"{high}. Give the labels the head was trained with."
        )
    return torch.bincount(torch.from_numpy(flat.astype(np.int64)), minlength=classes)


def _balanced(counts: Tensor | None) -> Answer:
    name = "classes equally frequent"
    if counts is None:
        return Answer(name, "unknown", "no labels given")
    between = f"{int(counts.min())} to {int(counts.max())} rows in a class"
    if int(counts.min()) == 0:
        return Answer(name, "no", f"{int((counts == 0).sum())} of {len(counts)} classes never occur")
    chance = float(stats.chisquare(counts.numpy()).pvalue)
    if chance < ALIKE:
        return Answer(name, "no", f"{between}, which equal frequencies give with probability {chance:.1g}")
    return Answer(name, "yes", between)


def _notes(affine: Spread, classes: int, dim: int, unit: bool) -> tuple[str, ...]:
    notes = []
    if affine.condition is None:
        notes.append(
            f"the loss sees the representation only along the {affine.rank} directions in which rows differ; the other "
            f"{dim - affine.rank} dimensions are not determined by the labels"
        )
    else:
        notes.append(
            "two models trained on the same data, both with such a head and at the minimum of the loss, agree up to an "
            "invertible linear map [roeder2020]"
        )
    if unit:
        needed = classes_for_a_rotation(dim)
        notes.append(
            f"rows have unit length: the map is a rotation times one scale if the unit sphere is the only quadric that "
            f"holds all rows, which takes at least d (d + 3) / 2 = {needed} different rows; this head has {classes}"
        )
    return tuple(notes)
