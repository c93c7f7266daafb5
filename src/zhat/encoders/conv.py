"""A small convolutional network that lands on a space: the encoder of images in zimmermann2021."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from zhat import _checks, randomness
from zhat.dgp.spaces import Space
from zhat.encoders.mlp import Last
from zhat.encoders.outputs import output
from zhat.errors import BadInput
from zhat.fresh import remembered

Shape = tuple[int, int, int]


class Images(nn.Module):
    """Let images of one shape pass, and refuse all others in a sentence.

    Args:
        shape: `(channels, height, width)`.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        if len(tuple(shape)) != 3:
            raise BadInput(f"`observed` must be the shape of an image, (channels, height, width), but {shape!r} came.")
        self.shape: Shape = tuple(_checks.count(length, "observed") for length in shape)  # type: ignore[assignment]

    def forward(self, x: Tensor) -> Tensor:
        """`(rows, channels, height, width)`, unchanged."""
        if tuple(x.shape[1:]) != self.shape:
            raise BadInput(
                f"the encoder takes images of shape {self.shape}, but rows of shape {tuple(x.shape[1:])} came. "
                "Give images as (rows, channels, height, width), or make the encoder for theirs."
            )
        return x

    def extra_repr(self) -> str:
        """The shape."""
        return str(self.shape)


@remembered
def conv(
    observed: Sequence[int],
    dim: int,
    *,
    widths: Sequence[int] = (32, 32, 64, 64),
    top: int = 256,
    onto: Space | None = None,
    learnable: bool | None = None,
    seed: int | None = None,
) -> nn.Sequential:
    """Convolutions that halve height and width, a layer over all that is left, then a step onto a space.

    Each convolution is 4 × 4 with stride 2 and padding 1. A ReLU follows every layer but the last. Weights begin
    Kaiming-normal and biases at zero. For images of 64 × 64 this is the network of zimmermann2021 and klindt2021 on
    KITTI Masks; their last convolution covers the 4 × 4 points that are left, which is the linear layer here.

    Args:
        observed: shape of an image, `(channels, height, width)`.
        dim: dimension k of the representation.
        widths: channels of each convolution.
        top: width of the layer over all that is left.
        onto: the space to land on; None leaves the output free.
        learnable: train the radius of the sphere or the bounds of the box; None takes the paper's choice
            (`zhat.encoders.output`).
        seed: of the initial weights; None draws them from torch's global state.

    Returns:
        A module `(rows, channels, height, width) -> (rows, dim)`.

    Reference: zimmermann2021, Table 3 (the official code).

    Example:
        >>> sum(p.numel() for p in conv((1, 64, 64), 10, seed=0).parameters())
        380362
    """
    _checks.count(dim, "dim")
    for width in (*widths, top):
        _checks.count(width, "widths")

    def build() -> nn.Sequential:
        images = Images(observed)
        channels, height, width = images.shape
        left = height >> len(widths), width >> len(widths)
        if min(left) == 0:
            raise BadInput(
                f"{len(widths)} convolutions halve an image of {height} × {width} to nothing. Use fewer `widths`."
            )
        layers: OrderedDict[str, nn.Module] = OrderedDict(images=images)
        sizes = (channels, *widths)
        for i, (size, wide) in enumerate(pairwise(sizes)):
            layers[f"conv{i}"] = nn.Conv2d(size, wide, 4, stride=2, padding=1)
            layers[f"relu{i}"] = nn.ReLU()
        layers |= {"flat": nn.Flatten(), "top": nn.Linear(sizes[-1] * left[0] * left[1], top), "relu": nn.ReLU()}
        layers["last"] = Last(top, dim)
        for layer in layers.values():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
        if onto is not None:
            layers["onto"] = output(onto, dim=dim, learnable=learnable)
        return nn.Sequential(layers)

    return build() if seed is None else randomness.build(build, seed, "encoder")
