"""A multilayer perceptron that lands on a space: the encoder of zimmermann2021 and reizinger2024."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F

from zhat import _checks, randomness
from zhat.dgp.spaces import Space
from zhat.encoders.outputs import output
from zhat.errors import BadInput
from zhat.fresh import remembered
from zhat.kernels import can_normalise, hidden_layers, last_layer, normalised_layer


class Hidden(nn.Module):
    """Linear layers, each followed by a leaky ReLU, with torch's own initial weights."""

    def __init__(self, sizes: Sequence[int], slope: float) -> None:
        super().__init__()
        layers = [nn.Linear(size, width) for size, width in pairwise(sizes)]
        self.layers: Iterable[nn.Linear] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        """`(…, m) -> (…, width)`."""
        rows = x.reshape(-1, x.shape[-1])
        out = hidden_layers(rows, [m.weight for m in self.layers], [m.bias for m in self.layers], self.slope)
        return out.reshape(*x.shape[:-1], out.shape[-1])

    def extra_repr(self) -> str:
        """The slope."""
        return f"slope={self.slope}"


class Normalised(nn.BatchNorm1d):
    """Batch normalisation and the leaky ReLU after it."""

    running_mean: Tensor  # torch allows None
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, width: int, slope: float) -> None:
        super().__init__(width)
        self.slope = slope

    def forward(self, a: Tensor) -> Tensor:
        """`(rows, width) -> (rows, width)`."""
        return F.leaky_relu(super().forward(a), self.slope)

    def after(self, linear: nn.Linear, x: Tensor) -> Tensor:
        """The same of `linear(x)`, `(rows, m) -> (rows, width)`; in training on a GPU, as one call."""
        if not (self.training and self.momentum is not None and can_normalise(x)):
            out: Tensor = self(linear(x))
            return out
        h, self.running_mean, self.running_var = normalised_layer(
            x,
            (linear.weight, linear.bias),
            (self.weight, self.bias),
            (self.running_mean, self.running_var),
            momentum=self.momentum,
            eps=self.eps,
            slope=self.slope,
        )
        self.num_batches_tracked.add_(1)
        return h

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, slope={self.slope}"


class Layers(nn.Sequential):
    """Modules one after the other, where a linear layer and the normalisation after it may be one call.

    In training on a GPU they are, and forward hooks of these two are then not called.
    """

    def forward(self, x: Tensor) -> Tensor:
        """`(rows, m) -> (rows, dim)`."""
        parts = list(self)
        while parts:
            part, *parts = parts
            following = parts[0] if parts else None
            if isinstance(part, nn.Linear) and isinstance(following, Normalised):
                x, parts = following.after(part, x), parts[1:]
            else:
                x = part(x)
        return x


class Last(nn.Linear):
    """A linear layer that keeps float32 under autocast: distances between outputs need the digits."""

    def forward(self, h: Tensor) -> Tensor:
        """`(…, width) -> (…, dim)`."""
        rows = h.reshape(-1, h.shape[-1])
        return last_layer(rows, self.weight, self.bias).reshape(*h.shape[:-1], self.out_features)


@remembered
def mlp(
    observed: int | Sequence[int],
    dim: int | None,
    *,
    widths: Sequence[int] | None = None,
    onto: Space | None = None,
    learnable: bool | None = None,
    slope: float = 0.01,
    batch_norm: bool = False,
    seed: int | None = None,
) -> nn.Sequential:
    """Linear layers with leaky ReLU between them, then a step onto a space.

    Args:
        observed: dimension m of the observations; or the shape of an image, which is flattened.
        dim: dimension k of the representation; None ends with the last hidden layer, whose width it is then.
        widths: hidden widths; None is zimmermann2021's (10m, 50m, 50m, 50m, 50m, 10m).
        onto: the space to land on; None leaves the output free.
        learnable: train the radius of the sphere or the bounds of the box; None takes the paper's choice
            (`zhat.encoders.output`).
        slope: of the leaky ReLU.
        batch_norm: normalise after each hidden linear layer, as reizinger2024 does.
        seed: of the initial weights; None draws them from torch's global state.

    Returns:
        A module `(…, observed) -> (…, dim)`; of images, `(rows, channels, height, width) -> (rows, dim)`.

    Example:
        >>> from zhat.dgp import Sphere
        >>> sum(p.numel() for p in mlp(10, 10, onto=Sphere(10), seed=0).parameters())
        854210
    """
    shape = (observed,) if isinstance(observed, int) else tuple(observed)
    m = math.prod(_checks.count(length, "observed") for length in shape)
    if widths is None:
        widths = (10 * m, *(50 * m,) * 4, 10 * m)
    for width in widths:
        _checks.count(width, "widths")
    if dim is None and not widths:
        raise BadInput("`dim` is None, which ends with the last hidden layer, but `widths` is empty. Give one of them.")
    k = widths[-1] if dim is None else _checks.count(dim, "dim")

    def build() -> nn.Sequential:
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        if len(shape) > 1:
            layers["flat"] = nn.Flatten()
        sizes = (m, *widths)
        if widths and not batch_norm:
            layers["hidden"] = Hidden(sizes, slope)
        else:
            for i, (size, width) in enumerate(pairwise(sizes)):
                layers[f"linear{i}"] = nn.Linear(size, width)
                layers[f"norm{i}"] = Normalised(width, slope)
        if dim is not None:
            layers["last"] = Last(sizes[-1], dim)
        if onto is not None:
            layers["onto"] = output(onto, dim=k, learnable=learnable)
        return Layers(layers) if batch_norm else nn.Sequential(layers)

    return build() if seed is None else randomness.build(build, seed, "encoder")
