"""The layers of a stack of perceptrons: linear maps with leaky ReLU between them, forward and backward by hand.

On a GPU, bias and activation are one pass over memory, and the gradient of the bias is summed in the same pass as the
gradient of the activation. Under autocast the products run in low precision on buffers padded to multiples of 64;
weights, their gradients, the first layer, whose inputs are observations, and the last, whose outputs are compared,
stay in float32. Elsewhere it is what `torch.nn` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from zhat.kernels.stacking import stack, unstack


def hidden_layers(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], slope: float) -> Tensor:
    r"""$h_{l+1} = \mathrm{leaky}(W_l h_l + b_l)$ for every layer.

    Works under `torch.func.vmap`: a stack of seeds becomes one call.

    Args:
        x: `(rows, m)`.
        weights: one matrix `(out, in)` for each layer.
        biases: one vector `(out,)` for each layer.
        slope: of the leaky ReLU, above 0.

    Returns:
        The last activation, `(rows, out)`, in the dtype of `x`.
    """
    if not (x.is_cuda and find_spec("triton") is not None):
        for weight, bias in zip(weights, biases, strict=True):
            x = F.leaky_relu(F.linear(x, weight, bias), slope)
        return x
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else torch.float32
    with torch.autocast("cuda", enabled=False):
        parameters = [t[None] for pair in zip(weights, biases, strict=True) for t in pair]
        out: Tensor = _Hidden.apply(x[None], (slope, dtype), *parameters)[0]
        return out[0].to(x.dtype)


def last_layer(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """$W h + b$ in float32 also under autocast, `(rows, width) -> (rows, out)`: distances need the digits."""
    with torch.autocast(h.device.type, enabled=False):
        h = h.to(weight.dtype)
        if not h.is_cuda:
            return F.linear(h, weight, bias)
        out: Tensor = _Last.apply(h[None], weight[None], bias[None])
        return out[0]


class _Last(Function):
    """`(stack, rows, width), (stack, out, width), (stack, out) -> (stack, rows, out)`."""

    @staticmethod
    def forward(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.baddbmm(bias[:, None], h, weight.transpose(1, 2))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        h, weight = ctx.saved_tensors
        to_h = torch.bmm(gradient, weight) if ctx.needs_input_grad[0] else None
        return to_h, over_rows(gradient, h), gradient.sum(1)

    @staticmethod
    def vmap(info: Any, in_dims: Any, h: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, int]:
        stacked = (stack(t, dim, info.batch_size) for t, dim in zip((h, weight, bias), in_dims, strict=True))
        return unstack(_Last.apply(*stacked), info.batch_size), 0


class _Hidden(Function):
    """`(stack, rows, m)` and `(stack, out, in), (stack, out)` for each layer `-> (stack, rows, out)`."""

    @staticmethod
    def forward(x: Tensor, how: tuple[float, torch.dtype], *parameters: Tensor) -> tuple[Tensor, ...]:
        slope, dtype = how
        h, kept = x, []
        for i, (weight, bias) in enumerate(zip(parameters[::2], parameters[1::2], strict=True)):
            wide = _padded(weight, dtype if i else torch.float32, inputs=h.shape[-1])
            h = bending().add_bias_and_bend(torch.bmm(h, wide.transpose(1, 2)), bias, slope, dtype)
            kept += [wide, h]
        width = parameters[-1].shape[-1]
        return (h[..., :width].contiguous(), *kept)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, (ctx.slope, ctx.dtype), *parameters = inputs
        ctx.shapes = [p.shape for p in parameters]
        ctx.save_for_backward(x, *output[1:])
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: None) -> tuple[Tensor | None, ...]:
        x, *kept = ctx.saved_tensors
        wides, activations = kept[::2], kept[1::2]
        inputs = [x, *activations[:-1]]
        g = F.pad(gradient.to(ctx.dtype), (0, activations[-1].shape[-1] - gradient.shape[-1]))
        out: list[Tensor | None] = []
        for i in reversed(range(len(wides))):
            g, bias = bending().unbend(g, activations[i], ctx.slope)
            weight = over_rows(g, inputs[i])
            shape = ctx.shapes[2 * i]
            out = [weight[:, : shape[1], : shape[2]], bias[:, : shape[1]], *out]
            if i or ctx.needs_input_grad[0]:
                g = torch.bmm(g.to(wides[i].dtype), wides[i])
        return (g if ctx.needs_input_grad[0] else None, None, *out)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, how: Any, *parameters: Tensor) -> tuple[Any, Any]:
        dims = (in_dims[0], *in_dims[2:])
        stacked = [stack(t, dim, info.batch_size) for t, dim in zip((x, *parameters), dims, strict=True)]
        out = _Hidden.apply(stacked[0], how, *stacked[1:])
        return tuple(unstack(o, info.batch_size) for o in out), (0,) * len(out)


def over_rows(a: Tensor, b: Tensor) -> Tensor:
    """The gradient of a weight, `(stack, rows, m), (stack, rows, n) -> (stack, m, n)`, summed in float32.

    Rows are many and a small result has few tiles, which would leave most of a GPU idle: then rows are summed in
    pieces first.
    """
    rows, m, n = a.shape[1], a.shape[2], b.shape[2]
    pieces = math.gcd(rows, 32) if m * n <= 2**14 and rows >= 2**11 else 1
    across = a.unflatten(1, (pieces, -1)).flatten(0, 1).transpose(1, 2)
    b = b.unflatten(1, (pieces, -1)).flatten(0, 1)
    if a.dtype != b.dtype or a.dtype == torch.float32:
        out = torch.bmm(across.float(), b.float())
    else:
        out = torch.bmm(across, b, out_dtype=torch.float32)
    return out if pieces == 1 else out.unflatten(0, (-1, pieces)).sum(1)


def _padded(weight: Tensor, dtype: torch.dtype, *, inputs: int) -> Tensor:
    """A copy of the weights with outputs padded to a multiple of 64 and inputs to `inputs`, zeros around."""
    outputs = -(-weight.shape[1] // 64) * 64
    return F.pad(weight.to(dtype), (0, inputs - weight.shape[2], 0, outputs - weight.shape[1]))


def bending() -> Any:
    """The Triton kernels, imported where they are used."""
    from zhat.kernels import bending

    return bending
