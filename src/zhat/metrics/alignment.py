r"""The best map inside a class, fitted on some rows: $\hat z = A h + b$.

Every class from `IDENTITY` to `AFFINE` is fitted by least squares from the moments alone, so one pass over the rows
serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from zhat.equivalence import (
    AFFINE,
    IDENTITY,
    LINEAR,
    ORTHOGONAL,
    PERMUTATION,
    SCALED_PERMUTATION,
    SIGNED_PERMUTATION,
    SIMILARITY,
    Equivalence,
)
from zhat.errors import BadInput
from zhat.metrics.moments import Moments

ALIGNABLE = (
    IDENTITY,
    PERMUTATION,
    SIGNED_PERMUTATION,
    SCALED_PERMUTATION,
    ORTHOGONAL,
    SIMILARITY,
    LINEAR,
    AFFINE,
)
"""The classes with a closed-form best map, tightest first."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """A fitted map from representation to latents.

    Attributes:
        matrix: A, `(d, k)`.
        offset: b, `(d,)`.
        up_to: the class it was chosen from.
    """

    matrix: Tensor
    offset: Tensor
    up_to: Equivalence

    def __call__(self, h: Tensor) -> Tensor:
        """z_hat = A h + b, `(n, k) -> (n, d)`."""
        return h @ self.matrix.T + self.offset


def align(moments: Moments, up_to: Equivalence, *, shift: bool = False) -> Alignment:
    r"""The map of class `up_to` that minimises $\sum_i \lVert z_i - A h_i - b \rVert^2$.

    Args:
        moments: of the rows to fit on.
        up_to: one of `ALIGNABLE`.
        shift: whether a constant offset b is free; it always is for `AFFINE`.

    Where the representation has more coordinates than there are latents, permutations pick the best coordinates;
    where it has fewer, the latents left over are predicted by a constant. `ORTHOGONAL` then means orthonormal rows
    or columns.

    Reference: schonemann1966 for `ORTHOGONAL` and `SIMILARITY`.
    """
    shift = shift or up_to is AFFINE
    zz, zh, hh = moments.scatter(shift=shift)
    matrix = _best_matrix(up_to, zz, zh, hh)
    offset = moments.mean_z - matrix @ moments.mean_h if shift else torch.zeros_like(moments.mean_z)
    return Alignment(matrix, offset, up_to)


def _best_matrix(up_to: Equivalence, zz: Tensor, zh: Tensor, hh: Tensor) -> Tensor:
    d, k = zh.shape
    if up_to is IDENTITY:
        if d != k:
            raise BadInput(f"an identity needs as many coordinates as latents, but there are {k} and {d}.")
        return torch.eye(d, dtype=zh.dtype, device=zh.device)
    if up_to in (LINEAR, AFFINE):
        return least_squares(zh, hh)
    if up_to in (ORTHOGONAL, SIMILARITY):
        return _procrustes(zh, hh, scaled=up_to is SIMILARITY)
    size = hh.diagonal()
    if up_to is PERMUTATION:
        # |z_i - h_j|^2 = zz_i - 2 zh_ij + hh_j, and zz_i for a latent left over
        gain, value = 2 * zh - size, torch.ones_like(zh)
    elif up_to is SIGNED_PERMUTATION:
        gain, value = 2 * zh.abs() - size, torch.where(zh < 0, -1.0, 1.0).to(zh)
    elif up_to is SCALED_PERMUTATION:
        value = torch.where(size > 0, zh / size.clamp_min(torch.finfo(zh.dtype).tiny), 0.0)
        # Each latent counts alike, whatever its variance: the share of it that is explained decides.
        gain = value * zh / zz.diagonal().clamp_min(torch.finfo(zh.dtype).tiny)[:, None]
    else:
        names = ", ".join(c.name for c in ALIGNABLE)
        raise BadInput(f"no best map can be fitted up to {up_to.name}. Use one of {names}.")
    rows, columns = match(gain)
    matrix = torch.zeros_like(zh)
    matrix[rows, columns] = value[rows, columns]
    return matrix


def _procrustes(zh: Tensor, hh: Tensor, *, scaled: bool) -> Tensor:
    r"""The matrix $s R$ with orthonormal rows or columns R (and s = 1 unless `scaled`) that fits best.

    With no more coordinates than latents, $\mathrm{tr}(R\,hh\,R^T)$ does not depend on R and one singular value
    decomposition solves it (schonemann1966). With more, some coordinates are dropped and the best choice is found by
    iteration: each step solves the problem with the quadratic term replaced by its tangent, which never fits worse. It
    starts from several places, the best signed permutation among them.
    """
    d, k = zh.shape

    def size(rotation: Tensor) -> Tensor:
        if not scaled:
            return torch.ones((), dtype=zh.dtype, device=zh.device)
        return (rotation * zh).sum() / (rotation @ hh * rotation).sum()

    def error(rotation: Tensor) -> Tensor:
        s = size(rotation)
        return s**2 * (rotation @ hh * rotation).sum() - 2 * s * (rotation * zh).sum()

    rotation = _polar(zh)
    if k > d:
        top = torch.linalg.eigvalsh(hh)[-1]
        starts = [rotation, _polar(least_squares(zh, hh)), _best_matrix(SIGNED_PERMUTATION, hh[:d, :d], zh, hh)]
        found = []
        for start in starts:
            for _ in range(200):
                s = size(start)
                start, before = _polar(zh + s * (top * start - start @ hh)), start
                if float((start - before).abs().max()) < 1e-10:
                    break
            found.append(start)
        rotation = min(found, key=lambda r: float(error(r)))
    return rotation * size(rotation)


def _polar(matrix: Tensor) -> Tensor:
    """The nearest matrix with orthonormal rows or columns."""
    u, _, vt = torch.linalg.svd(matrix, full_matrices=False)
    nearest: Tensor = u @ vt
    return nearest


def match(gain: Tensor) -> tuple[Tensor, Tensor]:
    """The one-to-one matching of latents to coordinates with the largest total gain, `(d, k)` -> indices."""
    rows, columns = linear_sum_assignment(gain.cpu().numpy(), maximize=True)
    return torch.as_tensor(rows, device=gain.device), torch.as_tensor(columns, device=gain.device)


def least_squares(zh: Tensor, hh: Tensor) -> Tensor:
    r"""$A = zh\, hh^{+}$, directions of the representation without variance left out, `(d, k)`.

    Columns are first brought to unit size, so that a coordinate in small units is not mistaken for an empty one.
    """
    size = hh.diagonal().clamp_min(0).sqrt()
    unit = torch.where(size > 0, 1 / size.clamp_min(torch.finfo(hh.dtype).tiny), 0.0)
    values, vectors = torch.linalg.eigh(unit[:, None] * hh * unit)
    kept = values > values[-1].clamp_min(0) * len(values) * torch.finfo(hh.dtype).eps
    inverse = torch.where(kept, 1 / torch.where(kept, values, 1.0), 0.0)
    matrix: Tensor = ((zh * unit) @ vectors * inverse) @ vectors.T * unit
    return matrix
