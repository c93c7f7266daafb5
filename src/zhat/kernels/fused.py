"""The pairwise log-sum-exp as Triton kernels: a tile of pairs at a time, in registers; nothing of size n x m in memory.

Points arrive as `(stack, rows, d)` and are read coordinate by coordinate from a transposed copy. Exponentials are
taken to base 2, so similarities carry a factor log2(e). Sums are float32; every pass is deterministic (no atomics).
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from zhat.kernels.streamed import Side

_LOG2E = math.log2(math.e)
_KINDS = {None: 0, 1.0: 1, 2.0: 2, 3.0: 3}
_GENERAL = 4


def forward(x: Tensor, y: Tensor, power: float | None, scale: float, skip_diagonal: bool) -> Tensor:
    """Row-wise log-sum-exp of the similarities, `(stack, n, d), (stack, m, d) -> (stack, n)`."""
    stack, n, d = x.shape
    out = torch.empty(stack, n, device=x.device, dtype=torch.float32)
    m = y.shape[1]
    x, y = _by_coordinate(x, y)
    rows, columns, warps = _forward_tile(d)
    _forward[(triton.cdiv(n, rows), stack)](
        x,
        y,
        out,
        n,
        m,
        _factor(power, scale),
        float(power or 0),
        D=d,
        KIND=_KINDS.get(power, _GENERAL),
        SKIP=skip_diagonal,
        TILES=triton.cdiv(m, columns),
        ROWS=rows,
        COLUMNS=columns,
        num_warps=warps,
    )
    return out


def pull(
    x: Tensor, y: Tensor, power: float | None, scale: float, skip_diagonal: bool, row: Side | None, column: Side | None
) -> Tensor:
    """Gradient with respect to `x`; see `streamed.pull`."""
    stack, n, d = x.shape
    m = y.shape[1]
    out = torch.empty_like(x)
    x, y = _by_coordinate(x, y)
    none = (out, out)  # never read
    rows, columns, warps = _pull_tile(d)
    _pull[(triton.cdiv(n, rows), stack)](
        x,
        y,
        *(row or none),
        *(column or none),
        out,
        n,
        m,
        _factor(power, scale),
        scale if power is None else -scale * power,
        float(power or 0),
        D=d,
        KIND=_KINDS.get(power, _GENERAL),
        SKIP=skip_diagonal,
        BY_ROW=row is not None,
        BY_COLUMN=column is not None,
        TILES=triton.cdiv(m, columns),
        ROWS=rows,
        COLUMNS=columns,
        num_warps=warps,
    )
    return out


def _by_coordinate(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    across = x.transpose(1, 2).contiguous()
    return across, across if y is x else y.transpose(1, 2).contiguous()


def _factor(power: float | None, scale: float) -> float:
    return (scale if power is None else -scale) * _LOG2E


def _forward_tile(d: int) -> tuple[int, int, int]:
    """Rows, columns and warps of a program."""
    return 16, 128, 4


def _pull_tile(d: int) -> tuple[int, int, int]:
    """The pull holds one accumulator tile for each coordinate; more coordinates leave room for smaller tiles."""
    if d <= 12:
        return 8, 128, 4
    if d <= 24:
        return 8, 64, 4
    return 8, 32, 4


@triton.jit
def _similarities(
    x,
    y,
    rows,
    columns,
    n,
    m,
    factor,
    p,
    D: tl.constexpr,
    KIND: tl.constexpr,
    SKIP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Similarities of a tile to base 2; minus infinity for pairs that do not count."""
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for c in tl.static_range(D):
        a = tl.load(x + c * n + rows, mask=rows < n, other=0.0)[:, None]
        b = tl.load(y + c * m + columns, mask=columns < m, other=0.0)[None, :]
        if KIND == 0:
            total += a * b
        else:
            t = tl.abs(a - b)
            if KIND == 1:
                total += t
            elif KIND == 2:
                total += t * t
            elif KIND == 3:
                total += t * t * t
            else:
                total += tl.exp2(p * tl.log2(tl.maximum(t, 1.2e-38)))
    counts = columns[None, :] < m
    if SKIP:
        counts = counts & (rows[:, None] != columns[None, :])
    return tl.where(counts, total * factor, float("-inf"))


@triton.jit
def _forward(
    x,
    y,
    out,
    n,
    m,
    factor,
    p,
    D: tl.constexpr,
    KIND: tl.constexpr,
    SKIP: tl.constexpr,
    TILES: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    seed = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    x += seed * D * n
    y += seed * D * m
    # Every place of the tile keeps a running maximum and mass of its own; rows are summed up once, at the end.
    top = tl.full((ROWS, COLUMNS), -1e30, tl.float32)
    mass = tl.zeros((ROWS, COLUMNS), tl.float32)
    for tile in range(TILES):
        columns = tile * COLUMNS + tl.arange(0, COLUMNS)
        s = _similarities(x, y, rows, columns, n, m, factor, p, D, KIND, SKIP, ROWS, COLUMNS)
        new = tl.maximum(top, s)
        mass = mass * tl.exp2(top - new) + tl.exp2(s - new)
        top = new
    peak = tl.max(top, 1)
    mass = tl.sum(mass * tl.exp2(top - peak[:, None]), 1)
    level = (peak + tl.log2(mass)) * 0.6931471805599453
    tl.store(out + seed * n + rows, level, mask=rows < n)


@triton.jit
def _pull(
    x,
    y,
    row_level,
    row_gradient,
    column_level,
    column_gradient,
    out,
    n,
    m,
    factor,
    slope_factor,
    p,
    D: tl.constexpr,
    KIND: tl.constexpr,
    SKIP: tl.constexpr,
    BY_ROW: tl.constexpr,
    BY_COLUMN: tl.constexpr,
    TILES: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    seed = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    x += seed * D * n
    y += seed * D * m
    if BY_ROW:
        level = tl.load(row_level + seed * n + rows, mask=rows < n, other=0.0) * 1.4426950408889634
        gradient = tl.load(row_gradient + seed * n + rows, mask=rows < n, other=0.0)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    sums = ()
    for _ in tl.static_range(D):
        sums = sums + (tl.zeros((ROWS, COLUMNS), tl.float32),)
    for tile in range(TILES):
        columns = tile * COLUMNS + tl.arange(0, COLUMNS)
        s = _similarities(x, y, rows, columns, n, m, factor, p, D, KIND, SKIP, ROWS, COLUMNS)
        weight = tl.zeros((ROWS, COLUMNS), tl.float32)
        if BY_ROW:
            weight += gradient[:, None] * tl.exp2(s - level[:, None])
        if BY_COLUMN:
            there = column_level + seed * m + columns
            column = tl.load(there, mask=columns < m, other=0.0) * 1.4426950408889634
            back = tl.load(column_gradient + seed * m + columns, mask=columns < m, other=0.0)
            weight += back[None, :] * tl.exp2(s - column[None, :])
        if KIND == 1:
            total += weight
        grown = ()
        for c in tl.static_range(D):
            b = tl.load(y + c * m + columns, mask=columns < m, other=0.0)[None, :]
            if KIND == 0:
                grown = grown + (sums[c] + weight * b,)
            else:
                a = tl.load(x + c * n + rows, mask=rows < n, other=0.0)[:, None]
                t = a - b
                if KIND == 1:
                    # 1, 1/2 or 0 for t above, at or below 0: the sign, up to a factor and the total weight
                    step = weight * tl.minimum(tl.maximum(t * 1e30 + 0.5, 0.0), 1.0)
                elif KIND == 2:
                    step = weight * t
                elif KIND == 3:
                    step = weight * t * tl.abs(t)
                else:
                    size = tl.exp2((p - 1) * tl.log2(tl.maximum(tl.abs(t), 1.2e-38)))
                    step = tl.where(t == 0, 0.0, tl.where(t > 0, weight * size, -weight * size))
                grown = grown + (sums[c] + step,)
        sums = grown
    for c in tl.static_range(D):
        slope = tl.sum(sums[c], 1)
        if KIND == 1:
            slope = 2 * slope - tl.sum(total, 1)
        tl.store(out + (seed * n + rows) * D + c, slope * slope_factor, mask=rows < n)
