"""A layer with batch normalisation in a stack of perceptrons, on a GPU: forward and backward by hand.

Normalisation takes the mean away, and with it the bias of the linear map. So the bias is never added and its gradient
is exactly 0: two passes over memory less. Only the running mean, which evaluation takes away again, has to know it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from zhat.kernels.hidden import over_rows
from zhat.kernels.stacking import stack, unstack


def can_normalise(x: Tensor) -> bool:
    """Whether `normalised_layer` takes these rows: at least two, float32, on a GPU with Triton, without autocast."""
    on_gpu = x.is_cuda and find_spec("triton") is not None and not torch.is_autocast_enabled("cuda")
    return on_gpu and x.dtype == torch.float32 and x.ndim == 2 and x.shape[0] > 1


def normalised_layer(
    x: Tensor,
    linear: tuple[Tensor, Tensor],
    norm: tuple[Tensor, Tensor],
    running: tuple[Tensor, Tensor],
    *,
    momentum: float,
    eps: float,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""A linear map, batch normalisation over the rows and leaky ReLU.

    $$h = \mathrm{leaky}\Big(\gamma\, \frac{a - \bar a}{\sqrt{\mathrm{var}\, a + \epsilon}} + \beta\Big),
      \qquad a = W x + b$$

    Works under `torch.func.vmap`: a stack of seeds becomes one call. Products are float32, or TF32 where torch is told
    so; sums over rows are float32.

    Args:
        x: `(rows, m)`, such that `can_normalise(x)`.
        linear: W `(out, m)` and b `(out,)`.
        norm: gamma and beta, `(out,)` each.
        running: mean and variance so far, `(out,)` each; they are left as they are.
        momentum: weight of these rows in the running statistics.
        eps: added to the variance.
        slope: of the leaky ReLU.

    Returns:
        h, `(rows, out)`, and running mean and variance after these rows, `(out,)` each.
    """
    tensors = (t[None] for t in (x, *linear, *norm, *running))
    h, mean, variance = _Normalised.apply(*tensors, (momentum, eps, slope))[:3]
    return h[0], mean[0], variance[0]


class _Normalised(Function):
    """`(stack, rows, m), (stack, out, m)`, five of `(stack, out)` `-> (stack, rows, out)`, two of `(stack, out)`."""

    @staticmethod
    def forward(
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        scale: Tensor,
        shift: Tensor,
        running_mean: Tensor,
        running_variance: Tensor,
        how: tuple[float, float, float],
    ) -> tuple[Tensor, ...]:
        momentum, eps, slope = how
        a = torch.bmm(x, weight.transpose(1, 2))
        mean, rate, *after = normalising().moments(a, bias, running_mean, running_variance, momentum, eps)
        h = normalising().normalise_and_bend(a, mean, rate, scale, shift, slope)
        return h, *after, a, mean, rate

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, weight, _, scale, shift, _, _, (_, _, ctx.slope) = inputs
        ctx.save_for_backward(x, weight, *output[3:], scale, shift)
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: None) -> tuple[Tensor | None, ...]:
        x, weight, *columns = ctx.saved_tensors
        g, to_scale, to_shift = normalising().unbend_and_restore(gradient, *columns, ctx.slope)
        to_x = torch.bmm(g, weight) if ctx.needs_input_grad[0] else None
        return to_x, over_rows(g, x), torch.zeros_like(to_shift), to_scale, to_shift, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> tuple[Any, Any]:
        stacked = (stack(t, dim, info.batch_size) for t, dim in zip(inputs[:-1], in_dims[:-1], strict=True))
        out = _Normalised.apply(*stacked, inputs[-1])
        return tuple(unstack(o, info.batch_size) for o in out), (0,) * len(out)


def normalising() -> Any:
    """The Triton kernels, imported where they are used."""
    from zhat.kernels import normalising

    return normalising
