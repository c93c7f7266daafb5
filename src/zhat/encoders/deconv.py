"""The way back from a representation to an image: the convolutional encoder in reverse."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from zhat import _checks, randomness
from zhat.encoders.conv import Images
from zhat.errors import BadInput
from zhat.fresh import remembered


@remembered
def deconv(
    dim: int,
    observed: Sequence[int],
    *,
    widths: Sequence[int] = (64, 64, 32, 32),
    top: int = 256,
    seed: int | None = None,
) -> nn.Sequential:
    """A linear layer, a transposed convolution to a small image, then some that double height and width.

    Those that double are 4 × 4 with stride 2 and padding 1. A ReLU follows every layer but the last, whose outputs are
    the logits of the image's points. For images of 64 × 64 this is the decoder of klindt2021.

    Args:
        dim: dimension k of the representation.
        observed: shape of an image, `(channels, height, width)`; height and width are multiples of 2 to the number of
            widths.
        widths: channels before each doubling, the first one first.
        top: width of the first layer.
        seed: of the initial weights; None draws them from torch's global state.

    Returns:
        A module `(rows, dim) -> (rows, channels, height, width)`.

    Reference: klindt2021 (the official code).

    Example:
        >>> deconv(10, (1, 64, 64), seed=0)(torch.zeros(2, 10)).shape
        torch.Size([2, 1, 64, 64])
    """
    for width in (dim, *widths, top):
        _checks.count(width, "widths")

    def build() -> nn.Sequential:
        channels, height, width = Images(observed).shape
        times = 2 ** len(widths)
        if height % times or width % times:
            raise BadInput(
                f"{len(widths)} doublings make images whose height and width are multiples of {times}, but {height} × "
                f"{width} was asked for. Use fewer `widths`."
            )
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            first=nn.Linear(dim, top),
            shape=nn.Unflatten(-1, (top, 1, 1)),
            relu=nn.ReLU(),
            spread=nn.ConvTranspose2d(top, widths[0], (height // times, width // times)),
        )
        nn.init.kaiming_normal_(layers["first"].weight)  # type: ignore[arg-type]
        nn.init.zeros_(layers["first"].bias)  # type: ignore[arg-type]
        for i, (size, wide) in enumerate(pairwise((*widths, channels))):
            layers[f"relu{i}"] = nn.ReLU()
            layers[f"deconv{i}"] = nn.ConvTranspose2d(size, wide, 4, stride=2, padding=1)
        return nn.Sequential(layers)

    return build() if seed is None else randomness.build(build, seed, "decoder")
