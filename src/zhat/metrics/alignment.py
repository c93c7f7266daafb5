r"""The best map inside a class, fitted on some rows: $\hat z = A h + b$.

Every class from `IDENTITY` to `AFFINE` is fitted by least squares from the moments alone, so one pass over the rows
serves all of them. Sums are taken around the means, and an offset enters by its difference only: maps without an offset
are right for means of up to 1e8 standard deviations in float64, where sums around the origin have no digit left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
from zhat.metrics.spectrum import TINY

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
        """z_hat = A h + b, `(n, k) -> (n, d)`, in the precision of A."""
        return h.to(self.matrix) @ self.matrix.T + self.offset


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
    matrix = _best_matrix(up_to, moments, shift=shift)
    offset = moments.mean_z - matrix @ moments.mean_h if shift else torch.zeros_like(moments.mean_z)
    return Alignment(matrix, offset, up_to)


def _best_matrix(up_to: Equivalence, m: Moments, *, shift: bool) -> Tensor:
    d, k = m.zh.shape
    if up_to is IDENTITY:
        if d != k:
            raise BadInput(f"an identity needs as many coordinates as latents, but there are {k} and {d}.")
        return torch.eye(d, dtype=m.zh.dtype, device=m.zh.device)
    if up_to in (LINEAR, AFFINE):
        return least_squares(m, shift=shift)
    if up_to in (ORTHOGONAL, SIMILARITY):
        return _procrustes(m, shift=shift, scaled=up_to is SIMILARITY)
    if up_to not in (PERMUTATION, SIGNED_PERMUTATION, SCALED_PERMUTATION):
        names = ", ".join(c.name for c in ALIGNABLE)
        raise BadInput(f"no best map can be fitted up to {up_to.name}. Use one of {names}.")
    return _permutation(up_to, m, shift=shift)


def _permutation(up_to: Equivalence, m: Moments, *, shift: bool) -> Tensor:
    r"""The best matching, with signs or scales $v_{ij}$ where they are free.

    Coordinate j leaves $|z_i - v h_j|^2 = zz_i - 2 v\, zh_{ij} + v^2 hh_j + n (\bar z_i - v \bar h_j)^2$ of latent i,
    and a latent left over keeps $|z_i|^2$. With scales free each latent counts alike: the share left decides.
    """
    d, k = m.zh.shape
    free = 0.0 if shift else 1.0
    mean_z, mean_h, zz, hh = free * m.mean_z[:, None], free * m.mean_h, m.zz.diagonal()[:, None], m.hh.diagonal()
    cross, size, whole = m.zh + m.n * mean_z * mean_h, hh + m.n * mean_h.square(), zz + m.n * mean_z.square()
    value = torch.ones_like(cross)
    if up_to is SIGNED_PERMUTATION:
        value = torch.where(cross < 0, -1.0, 1.0).to(cross)
    elif up_to is SCALED_PERMUTATION:
        value = torch.where(size > 0, cross / size.clamp_min(TINY), 0.0)
    left = zz + value * (value * hh - 2 * m.zh) + m.n * (mean_z - value * mean_h).square()
    if up_to is SCALED_PERMUTATION:
        left, whole = left / whole.clamp_min(TINY), torch.ones_like(whole)
    rows, columns = match(-left if d <= k else whole - left)  # every latent is matched: what is whole does not matter
    matrix = torch.zeros_like(cross)
    matrix[rows, columns] = value[rows, columns]
    return matrix


def _procrustes(m: Moments, *, shift: bool, scaled: bool) -> Tensor:
    r"""The matrix $s R$ with orthonormal rows or columns R (and s = 1 unless `scaled`) that fits best.

    With no more coordinates than latents, $\mathrm{tr}(R\,hh\,R^T)$ does not depend on R and one singular value
    decomposition solves it (schonemann1966). With more, some coordinates are dropped and the best choice is found by
    iteration: each step solves the problem with the quadratic term replaced by its tangent, which never fits worse. It
    starts from several places, the best signed permutation among them.
    """
    _, zh, hh = m.scatter(shift=shift)
    d, k = zh.shape
    rotation = _polar(zh) if shift else _polar_from_origin(m)
    starts = [rotation]
    if k > d:
        starts += [_polar(least_squares(m, shift=shift)), _permutation(SIGNED_PERMUTATION, m, shift=shift)]
    place, zh, hh, starts = zh.device, zh.cpu(), hh.cpu(), [start.cpu() for start in starts]

    def size(rotation: Tensor) -> Tensor:
        if not scaled:
            return torch.ones((), dtype=zh.dtype)
        return (rotation * zh).sum() / (rotation @ hh * rotation).sum()

    def error(rotation: Tensor) -> Tensor:
        s = size(rotation)
        return s**2 * (rotation @ hh * rotation).sum() - 2 * s * (rotation * zh).sum()

    if k > d:
        with _one_thread():
            top = torch.linalg.eigvalsh(hh)[-1]
            for i, start in enumerate(starts):
                for _ in range(200):
                    s = size(start)
                    start, before = _polar(zh + s * (top * start - start @ hh)), start
                    if float((start - before).abs().max()) < 1e-10:
                        break
                starts[i] = start
    best = min(starts, key=lambda r: float(error(r)))
    return (best * size(best)).to(place)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Thousands of small products and decompositions: more threads would mostly wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _polar(matrix: Tensor) -> Tensor:
    """The nearest matrix with orthonormal rows or columns."""
    u, _, vt = torch.linalg.svd(matrix, full_matrices=False)
    nearest: Tensor = u @ vt
    return nearest


def _polar_from_origin(m: Moments) -> Tensor:
    r"""The nearest such matrix to $zh + n \bar z \bar h^T$, the cross scatter around the origin.

    Where the means outweigh the scatter, sums around the origin round it away. Then the mean of h is turned onto that
    of z, and the scatter decides about the directions perpendicular to them; from a factor of 1e6 on, the best rotation
    explains more by less than 1e-6 of the variance that an error of the mean takes.
    """
    size_z, size_h = m.mean_z.norm(), m.mean_h.norm()
    if float(m.n * size_z * size_h) <= 1e6 * float(m.zh.abs().max()):
        return _polar(m.scatter(shift=False)[1])
    z, h = _perpendicular(m.mean_z / size_z), _perpendicular(m.mean_h / size_h)
    return torch.outer(m.mean_z / size_z, m.mean_h / size_h) + z.T @ _polar(z @ m.zh @ h.T) @ h


def _perpendicular(unit: Tensor) -> Tensor:
    """Orthonormal rows perpendicular to a unit vector, `(d,) -> (d - 1, d)`: a Householder reflection."""
    mirror = unit.clone()
    mirror[0] += 1.0 if float(unit[0]) >= 0 else -1.0
    eye = torch.eye(len(unit), dtype=unit.dtype, device=unit.device)
    return (eye - torch.outer(mirror, mirror) * (2 / mirror.square().sum()))[1:]


def match(gain: Tensor) -> tuple[Tensor, Tensor]:
    """The one-to-one matching of latents to coordinates with the largest total gain, `(d, k)` -> indices."""
    rows, columns = linear_sum_assignment(gain.cpu().numpy(), maximize=True)
    return torch.as_tensor(rows, device=gain.device), torch.as_tensor(columns, device=gain.device)


def least_squares(m: Moments, *, shift: bool) -> Tensor:
    r"""$A = zh\, hh^{+}$, directions of the representation without variance left out, `(d, k)`.

    Without a shift, $A + r u^T$ minimises $\sum_i |z_i - A h_i|^2$ with $r = \bar z - A \bar h$ and
    $u = n\, hh^{+} \bar h / (1 + n \bar h^T hh^{+} \bar h)$. Where the mean of h leaves the directions in which h
    varies, as a constant column does, that part of it is an offset for free.
    """
    found = m.spectrum()
    white = found.white
    matrix: Tensor = m.zh @ white @ white.T
    if shift:
        return matrix
    still, mean = torch.where(found.unit > 0, 0.0, m.mean_h), found.unit * m.mean_h
    empty = mean - found.vectors @ (found.vectors.T @ mean)
    if bool((still != 0).any()):
        along = still / still.square().sum()
    elif float(empty.square().sum()) > found.floor * float(mean.square().sum()):
        along = found.unit * empty / (empty @ mean)
    else:
        whitened = white.T @ m.mean_h
        along = white @ whitened * (m.n / (1 + m.n * whitened.square().sum()))
    return matrix + torch.outer(m.mean_z - matrix @ m.mean_h, along)
