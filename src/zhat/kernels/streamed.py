"""The pairwise log-sum-exp in plain torch, a block of rows at a time: runs on every device.

`forward` keeps one number for each row; `pull` recomputes the similarities and returns the gradient. A block is chosen
to stay in a processor's cache. Dot products and squares are matrix products; other powers go coordinate by coordinate.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

Side = tuple[Tensor, Tensor]
"""A side's log-sum-exp and the gradient that arrives at it, each `(stack, rows)`."""


@contextmanager
def _exact() -> Iterator[None]:
    """Matrix products in the precision of their inputs, whatever the encoder around them computes in."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.autocast("cuda", enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


@_exact()
def forward(x: Tensor, y: Tensor, power: float | None, scale: float, skip_diagonal: bool) -> Tensor:
    """Row-wise log-sum-exp of the similarities, `(stack, n, d), (stack, m, d) -> (stack, n)`."""
    out = x.new_empty(x.shape[:-1])
    for s in range(len(x)):
        keys = _Keys(y[s], power, scale, skip_diagonal, within=x is y)
        for start, rows in _blocks(x[s], len(y[s])):
            out[s, start : start + len(rows)] = torch.logsumexp(keys.similarities(rows, start), dim=-1)
    return out


@_exact()
def pull(
    x: Tensor,
    y: Tensor,
    power: float | None,
    scale: float,
    skip_diagonal: bool,
    row: Side | None,
    column: Side | None,
) -> Tensor:
    r"""Gradient with respect to `x`: $\sum_j c_{ij}\, \partial s_{ij} / \partial x_i$.

    The coefficients are $c_{ij} = g_i e^{s_{ij} - \ell_i}$ where `x` were the queries (`row`), and
    $g_j e^{s_{ij} - \ell_j}$ where `y` were the queries (`column`); both where the two are the same points.
    """
    out = torch.empty_like(x)
    for s in range(len(x)):
        keys = _Keys(y[s], power, scale, skip_diagonal, within=x is y)
        for start, rows in _blocks(x[s], len(y[s])):
            stop = start + len(rows)
            similarity = keys.similarities(rows, start)
            weight: Tensor | None = None
            if column is not None:
                level, gradient = column[0][s], column[1][s]
                weight = (similarity - level).exp_().mul_(gradient)
            if row is not None:
                level, gradient = row[0][s, start:stop, None], row[1][s, start:stop, None]
                own = similarity.sub_(level).exp_().mul_(gradient)
                weight = own if weight is None else weight.add_(own)
            assert weight is not None, "a gradient comes from rows or from columns"
            out[s, start:stop] = keys.pull(rows, weight)
    return out


def _blocks(rows: Tensor, keys: int) -> list[tuple[int, Tensor]]:
    """Blocks of rows with the index of their first row."""
    if rows.is_cuda:
        size = max(1, 2**27 // keys)
    else:
        size = max(1, 2**18 // keys)
    return [(start, rows[start : start + size]) for start in range(0, len(rows), size)]


class _Keys:
    """Keys of one stack entry, with whatever can be prepared once for all blocks of rows."""

    def __init__(self, keys: Tensor, power: float | None, scale: float, skip_diagonal: bool, *, within: bool) -> None:
        self.keys, self.power, self.scale, self.skip_diagonal = keys, power, scale, skip_diagonal
        self.within = within  # rows and keys are the same points
        if power == 2:
            # |x - y|^2 = |x|^2 + |y|^2 - 2 x.y loses digits far from the origin; move the origin to the middle
            self.middle = keys.mean(0)
            self.keys = keys - self.middle
            self.squares = self.keys.square().sum(-1)
        elif power is not None:
            self.columns = keys.T.contiguous()

    def similarities(self, rows: Tensor, start: int) -> Tensor:
        """`(block, m)`, a fresh tensor."""
        if self.power is None:
            out = self.scale * rows @ self.keys.T
        elif self.power == 2:
            rows = rows - self.middle
            near = torch.addmm(self.squares, rows, self.keys.T, alpha=-2).add_(rows.square().sum(-1)[:, None])
            out = near.clamp_min_(0).mul_(-self.scale)
            if self.within:
                out.diagonal(offset=start).zero_()  # a point's distance to itself, without rounding
        elif self.power == 1:
            out = torch.cdist(rows, self.keys, p=1).mul_(-self.scale)
        else:
            out = rows.new_zeros(len(rows), len(self.keys))
            for difference, size in self._differences(rows):
                if self.power == 3:
                    out.addcmul_(size, difference.square_())
                else:
                    out.add_(size.pow_(self.power))
            out.mul_(-self.scale)
        if self.skip_diagonal:
            out.diagonal(offset=start).fill_(-torch.inf)
        return out

    def pull(self, rows: Tensor, weight: Tensor) -> Tensor:
        """The sum over keys of weight times the derivative of the similarity, `(block, d)`."""
        if self.power is None:
            return self.scale * (weight @ self.keys)
        if self.power == 2:
            rows = rows - self.middle
            return 2 * self.scale * (weight @ self.keys - weight.sum(-1, keepdim=True) * rows)
        out = torch.empty_like(rows)
        for c, (difference, size) in enumerate(self._differences(rows)):
            if self.power == 1:
                slope = difference.sign_()
            elif self.power == 3:
                slope = difference.mul_(size)
            else:
                slope = difference.sign_().mul_(size.pow_(self.power - 1))
            out[:, c] = torch.einsum("ij,ij->i", weight, slope)
        return out.mul_(-self.scale * self.power)

    def _differences(self, rows: Tensor):  # type: ignore[no-untyped-def]
        """For each coordinate: rows minus keys and its size, `(block, m)` each, in buffers that are reused."""
        difference = rows.new_empty(len(rows), len(self.keys))
        size = torch.empty_like(difference)
        for c, column in enumerate(self.columns):
            torch.sub(rows[:, c, None], column, out=difference)
            if self.power != 1:
                torch.abs(difference, out=size)
            yield difference, size
