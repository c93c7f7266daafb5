"""Batch normalisation and leaky ReLU as Triton kernels: three launches each way for all seeds of a stack.

Forward: moments of blocks of rows, their merger, one pass that normalises and bends. Backward: sums over blocks of
rows, their total, one pass for the gradient. Backward reads the incoming gradient and the values before normalisation,
and makes normalised values and the side of the bend from the latter again: two reads, where keeping either would be a
third. The output alone would not do: to go back from it is to divide by the scale, which may be 0.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS, _COLUMNS = 64, 64  # of a tile of values
_BLOCKS, _NARROW = 64, 32  # of a tile of moments


def moments(
    a: Tensor, offset: Tensor, running_mean: Tensor, running_variance: Tensor, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean and 1 / deviation of every column, and the running mean and variance after these rows.

    Args:
        a: `(stack, rows, width)`, at least two rows.
        offset: `(stack, width)`, what `a` lacks; only the running mean sees it.
        running_mean: `(stack, width)`.
        running_variance: `(stack, width)`; with rows - 1 in the denominator, where the deviation has rows.
        momentum: weight of these rows in the running statistics.
        eps: added to the variance.

    Returns:
        Four tensors `(stack, width)`.
    """
    stack, rows, width = a.shape
    blocks = triton.cdiv(rows, _ROWS)
    means, squares = (a.new_empty(stack, blocks, width) for _ in range(2))
    _block_moments[_grid(a)](a, means, squares, rows, WIDTH=width, ROWS=_ROWS, COLUMNS=_COLUMNS)
    mean, rate, next_mean, next_variance = (a.new_empty(stack, width) for _ in range(4))
    _merge[(triton.cdiv(width, _NARROW), stack)](
        means,
        squares,
        offset.contiguous(),
        running_mean.contiguous(),
        running_variance.contiguous(),
        mean,
        rate,
        next_mean,
        next_variance,
        rows,
        blocks,
        momentum,
        eps,
        WIDTH=width,
        ROWS=_ROWS,
        TILES=triton.cdiv(blocks, _BLOCKS),
        BLOCKS=_BLOCKS,
        COLUMNS=_NARROW,
    )
    return mean, rate, next_mean, next_variance


def normalise_and_bend(a: Tensor, mean: Tensor, rate: Tensor, scale: Tensor, shift: Tensor, slope: float) -> Tensor:
    """leaky(scale (a - mean) rate + shift), `(stack, rows, width)` and four of `(stack, width)`."""
    out = torch.empty_like(a)
    columns = mean, rate, scale.contiguous(), shift.contiguous()
    _normalise[_grid(a)](a, *columns, out, a.shape[1], slope, WIDTH=a.shape[2], ROWS=_ROWS, COLUMNS=_COLUMNS)
    return out


def unbend_and_restore(
    g: Tensor, a: Tensor, mean: Tensor, rate: Tensor, scale: Tensor, shift: Tensor, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients by `a`, `scale` and `shift` from the one by the output, `(stack, rows, width), 2 * (stack, width)`."""
    stack, rows, width = a.shape
    blocks = triton.cdiv(rows, _ROWS)
    values = g.contiguous(), a, mean, rate, scale.contiguous(), shift.contiguous()
    tile = {"WIDTH": width, "ROWS": _ROWS, "COLUMNS": _COLUMNS}
    sums = a.new_empty(2, stack, blocks, width)
    _block_sums[_grid(a)](*values, sums[0], sums[1], rows, slope, **tile)
    to_scale, to_shift = sums.sum(2)
    out = torch.empty_like(a)
    _restore[_grid(a)](*values, to_scale, to_shift, out, rows, slope, **tile)
    return out, to_scale, to_shift


def _grid(a: Tensor) -> tuple[int, int, int]:
    stack, rows, width = a.shape
    return triton.cdiv(rows, _ROWS), triton.cdiv(width, _COLUMNS), stack


@triton.jit
def _tile(rows, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Places of a program's values, which of them exist, and the same for its columns among all seeds' columns."""
    seed = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    corner = (seed * rows + tl.program_id(0) * ROWS) * WIDTH
    there = corner + (tl.arange(0, ROWS)[:, None] * WIDTH + column[None, :])
    exists = column < WIDTH
    return there, (row[:, None] < rows) & exists[None, :], seed * WIDTH + column, exists


@triton.jit
def _store_for_block(values, sums, WIDTH: tl.constexpr, COLUMNS: tl.constexpr):
    """One number for each column of this program's block of rows, into `(stack, blocks, width)`."""
    block = tl.program_id(2).to(tl.int64) * tl.num_programs(0) + tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(sums + block * WIDTH + column, values, mask=column < WIDTH)


@triton.jit
def _block_moments(a, means, squares, rows, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    there, mask, _, _ = _tile(rows, WIDTH, ROWS, COLUMNS)
    v = tl.load(a + there, mask=mask, other=0.0)
    n = tl.minimum(rows - tl.program_id(0) * ROWS, ROWS).to(tl.float32)
    mean = tl.sum(v, 0) / n
    mean += tl.sum(tl.where(mask, v - mean[None, :], 0.0), 0) / n  # what rounding left, so that constants vary by 0
    apart = tl.where(mask, v - mean[None, :], 0.0)
    _store_for_block(mean, means, WIDTH, COLUMNS)
    _store_for_block(tl.sum(apart * apart, 0), squares, WIDTH, COLUMNS)


@triton.jit
def _merge(
    means,
    squares,
    offset,
    running_mean,
    running_variance,
    mean_out,
    rate_out,
    next_mean,
    next_variance,
    rows,
    blocks,
    momentum,
    eps,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    TILES: tl.constexpr,
    BLOCKS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    seed = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = column < WIDTH
    first = seed * blocks * WIDTH + column
    near = tl.load(means + first, mask=exists, other=0.0)
    total = tl.zeros((BLOCKS, COLUMNS), tl.float32)
    for tile in range(TILES):
        block = tile * BLOCKS + tl.arange(0, BLOCKS)
        mask = (block[:, None] < blocks) & exists[None, :]
        n = tl.minimum(rows - block * ROWS, ROWS).to(tl.float32)
        m = tl.load(means + (first[None, :] + block[:, None] * WIDTH), mask=mask, other=0.0)
        total += tl.where(mask, n[:, None] * (m - near[None, :]), 0.0)
    mean = near + tl.sum(total, 0) / rows
    total = tl.zeros((BLOCKS, COLUMNS), tl.float32)
    for tile in range(TILES):
        block = tile * BLOCKS + tl.arange(0, BLOCKS)
        mask = (block[:, None] < blocks) & exists[None, :]
        n = tl.minimum(rows - block * ROWS, ROWS).to(tl.float32)
        there = first[None, :] + block[:, None] * WIDTH
        apart = tl.load(means + there, mask=mask, other=0.0) - mean[None, :]
        within = tl.load(squares + there, mask=mask, other=0.0)
        total += tl.where(mask, within + n[:, None] * apart * apart, 0.0)
    square = tl.sum(total, 0)
    here = seed * WIDTH + column
    tl.store(mean_out + here, mean, mask=exists)
    tl.store(rate_out + here, 1.0 / tl.sqrt(square / rows + eps), mask=exists)
    seen = mean + tl.load(offset + here, mask=exists, other=0.0)
    before = tl.load(running_mean + here, mask=exists, other=0.0)
    tl.store(next_mean + here, (1 - momentum) * before + momentum * seen, mask=exists)
    before = tl.load(running_variance + here, mask=exists, other=0.0)
    tl.store(next_variance + here, (1 - momentum) * before + momentum * (square / (rows - 1)), mask=exists)


@triton.jit
def _normalised(a, mean, rate, there, mask, here, exists):
    m = tl.load(mean + here, mask=exists, other=0.0)
    r = tl.load(rate + here, mask=exists, other=0.0)
    return (tl.load(a + there, mask=mask, other=0.0) - m[None, :]) * r[None, :]


@triton.jit
def _before_bend(v, scale, shift, here, exists):
    s = tl.load(scale + here, mask=exists, other=0.0)
    b = tl.load(shift + here, mask=exists, other=0.0)
    return v * s[None, :] + b[None, :]


@triton.jit
def _normalise(
    a,
    mean,
    rate,
    scale,
    shift,
    out,
    rows,
    slope,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    there, mask, here, exists = _tile(rows, WIDTH, ROWS, COLUMNS)
    v = _before_bend(_normalised(a, mean, rate, there, mask, here, exists), scale, shift, here, exists)
    tl.store(out + there, tl.where(v > 0, v, slope * v), mask=mask)


@triton.jit
def _block_sums(
    g,
    a,
    mean,
    rate,
    scale,
    shift,
    by_scale,
    by_shift,
    rows,
    slope,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    there, mask, here, exists = _tile(rows, WIDTH, ROWS, COLUMNS)
    v = _normalised(a, mean, rate, there, mask, here, exists)
    u = tl.load(g + there, mask=mask, other=0.0)
    u = tl.where(_before_bend(v, scale, shift, here, exists) > 0, u, slope * u)
    _store_for_block(tl.sum(u * v, 0), by_scale, WIDTH, COLUMNS)
    _store_for_block(tl.sum(u, 0), by_shift, WIDTH, COLUMNS)


@triton.jit
def _restore(
    g,
    a,
    mean,
    rate,
    scale,
    shift,
    to_scale,
    to_shift,
    out,
    rows,
    slope,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    there, mask, here, exists = _tile(rows, WIDTH, ROWS, COLUMNS)
    v = _normalised(a, mean, rate, there, mask, here, exists)
    u = tl.load(g + there, mask=mask, other=0.0)
    u = tl.where(_before_bend(v, scale, shift, here, exists) > 0, u, slope * u)
    along = tl.load(to_scale + here, mask=exists, other=0.0) / rows
    level = tl.load(to_shift + here, mask=exists, other=0.0) / rows
    factor = tl.load(scale + here, mask=exists, other=0.0) * tl.load(rate + here, mask=exists, other=0.0)
    tl.store(out + there, factor[None, :] * (u - level[None, :] - v * along[None, :]), mask=mask)
