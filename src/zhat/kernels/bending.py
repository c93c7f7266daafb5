"""Bias and leaky ReLU as Triton kernels: one pass over memory each way."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS = 64


def add_bias_and_bend(a: Tensor, bias: Tensor, slope: float, dtype: torch.dtype) -> Tensor:
    """leaky(a + bias) as `dtype`, `(stack, rows, width), (stack, out) -> (stack, rows, width)`; padding stays 0."""
    stack, rows, width = a.shape
    out = a if a.dtype == dtype else torch.empty_like(a, dtype=dtype)
    _bend[(triton.cdiv(rows, _ROWS), stack)](
        a,
        bias.contiguous(),
        out,
        rows,
        bias.shape[1],
        slope,
        WIDTH=width,
        BLOCK=triton.next_power_of_2(width),
        ROWS=_ROWS,
    )
    return out


def unbend(g: Tensor, h: Tensor, slope: float) -> tuple[Tensor, Tensor]:
    """The gradient before the activation, and its sum over rows: `(stack, rows, width) -> same, (stack, width)`."""
    stack, rows, width = g.shape
    blocks = triton.cdiv(rows, _ROWS)
    out = torch.empty_like(g)
    sums = torch.empty(stack, blocks, width, device=g.device, dtype=torch.float32)
    _unbend[(blocks, stack)](
        g.contiguous(), h, out, sums, rows, slope, WIDTH=width, BLOCK=triton.next_power_of_2(width), ROWS=_ROWS
    )
    return out, sums.sum(1)


@triton.jit
def _bend(a, bias, out, rows, outputs, slope, WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    seed = tl.program_id(1).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    b = tl.load(bias + seed * outputs + columns, mask=columns < outputs, other=0.0)
    first = tl.program_id(0) * ROWS
    for i in range(0, ROWS, 4):
        row = first + i + tl.arange(0, 4)
        there = (seed * rows + row[:, None]) * WIDTH + columns[None, :]
        mask = (row[:, None] < rows) & (columns[None, :] < WIDTH)
        v = tl.load(a + there, mask=mask, other=0.0).to(tl.float32) + b[None, :]
        tl.store(out + there, tl.where(v < 0, slope * v, v), mask=mask)


@triton.jit
def _unbend(g, h, out, sums, rows, slope, WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    seed = tl.program_id(1).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    first = tl.program_id(0) * ROWS
    total = tl.zeros((4, BLOCK), tl.float32)
    for i in range(0, ROWS, 4):
        row = first + i + tl.arange(0, 4)
        there = (seed * rows + row[:, None]) * WIDTH + columns[None, :]
        mask = (row[:, None] < rows) & (columns[None, :] < WIDTH)
        v = tl.load(g + there, mask=mask, other=0.0).to(tl.float32)
        bent = tl.load(h + there, mask=mask, other=0.0) < 0
        v = tl.where(bent, slope * v, v)
        total += v
        tl.store(out + there, v, mask=mask)
    blocks = tl.num_programs(0)
    tl.store(sums + (seed * blocks + tl.program_id(0)) * WIDTH + columns, tl.sum(total, 0), mask=columns < WIDTH)
