"""The pairwise log-sum-exp with its gradient: picks the implementation, keeps what backward needs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from zhat.kernels import streamed
from zhat.kernels.stacking import stack, unstack


def pairwise_logsumexp(
    queries: Tensor, keys: Tensor, *, power: float | None, scale: float, skip_diagonal: bool = False
) -> Tensor:
    r"""The logarithm of the summed exponential similarities of each query to all keys, $\log \sum_j e^{s_{ij}}$.

    $$s_{ij} = \text{scale} \cdot q_i \cdot k_j \quad\text{or}\quad s_{ij} = -\text{scale} \sum_c |q_{ic} - k_{jc}|^p$$

    Forward keeps one number for each query; backward recomputes the similarities. Memory is linear in the rows.
    Works under `torch.func.vmap`: a stack of seeds becomes one call.

    Args:
        queries: `(…, n, d)`.
        keys: `(…, m, d)`; pass the very same tensor as `queries` to get the cheaper symmetric gradient.
        power: p of the L^p similarity; None for the dot product.
        scale: factor in front, 1 / temperature.
        skip_diagonal: leave out the terms i = j.

    Returns:
        One value for each query, `(…, n)`.
    """
    shape = queries.shape[:-1]
    how = (power, float(scale), skip_diagonal)
    if keys is queries:
        out: Tensor = _Within.apply(queries.reshape(-1, *queries.shape[-2:]), how)
    else:
        out = _Between.apply(queries.reshape(-1, *queries.shape[-2:]), keys.reshape(-1, *keys.shape[-2:]), how)
    return out.reshape(shape)


How = tuple[float | None, float, bool]


WIDEST = 64  # coordinates that a Triton kernel holds one by one; compiling hundreds of them takes longer than training


def _implementation(x: Tensor) -> Any:
    """The Triton kernels for float32 rows of up to 64 coordinates on a GPU, blocks of rows in plain torch otherwise."""
    if x.is_cuda and x.dtype == torch.float32 and x.shape[-1] <= WIDEST and find_spec("triton") is not None:
        from zhat.kernels import fused

        return fused
    return streamed


class _Within(Function):
    """Queries and keys are the same points: `(stack, n, d) -> (stack, n)`."""

    @staticmethod
    def forward(x: Tensor, how: How) -> Tensor:
        x = x.contiguous()
        return _implementation(x).forward(x, x, *how)  # type: ignore[no-any-return]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, How], output: Tensor) -> None:
        ctx.how = inputs[1]
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        x, level = ctx.saved_tensors
        side = (level, gradient.contiguous())
        x = x.contiguous()
        return _implementation(x).pull(x, x, *ctx.how, side, side), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, how: How) -> tuple[Tensor, int]:
        return unstack(_Within.apply(stack(x, in_dims[0], info.batch_size), how), info.batch_size), 0


class _Between(Function):
    """Queries and keys are different points: `(stack, n, d), (stack, m, d) -> (stack, n)`."""

    @staticmethod
    def forward(queries: Tensor, keys: Tensor, how: How) -> Tensor:
        queries, keys = queries.contiguous(), keys.contiguous()
        return _implementation(queries).forward(queries, keys, *how)  # type: ignore[no-any-return]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, How], output: Tensor) -> None:
        ctx.how = inputs[2]
        ctx.save_for_backward(*inputs[:2], output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        queries, keys, level = ctx.saved_tensors
        queries, keys = queries.contiguous(), keys.contiguous()
        side = (level, gradient.contiguous())
        pull = _implementation(queries).pull
        to_queries = pull(queries, keys, *ctx.how, side, None) if ctx.needs_input_grad[0] else None
        to_keys = pull(keys, queries, *ctx.how, None, side) if ctx.needs_input_grad[1] else None
        return to_queries, to_keys, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, queries: Tensor, keys: Tensor, how: How) -> tuple[Tensor, int]:
        stacked = (stack(t, dim, info.batch_size) for t, dim in zip((queries, keys), in_dims, strict=False))
        return unstack(_Between.apply(*stacked, how), info.batch_size), 0
