"""A residual network of 18 layers that lands on a space: the encoder of 3DIdent in zimmermann2021."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from zhat import _checks, randomness
from zhat.dgp.spaces import Space
from zhat.encoders.conv import Images
from zhat.encoders.mlp import Last
from zhat.encoders.outputs import output
from zhat.errors import BadInput
from zhat.fresh import remembered


class Standardised(nn.Module):
    """Every channel minus its mean, divided by its deviation.

    Args:
        mean: of each channel, `(channels,)`.
        std: of each channel, `(channels,)`.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.mean: Tensor
        self.std: Tensor
        for name, values in (("mean", mean), ("std", std)):
            column = torch.tensor([_checks.finite(v, name) for v in values])[:, None, None]
            self.register_buffer(name, column, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """`(rows, channels, height, width)`, of the same shape."""
        return (x - self.mean) / self.std


class ChannelsLast(nn.Module):
    """The same image with the channels of a point side by side in memory, which convolutions read faster."""

    def forward(self, x: Tensor) -> Tensor:
        """`(rows, channels, height, width)`, of the same shape; a stack of seeds stays as it is."""
        if torch._C._functorch.is_batchedtensor(x):
            return x
        return x.contiguous(memory_format=torch.channels_last)


class BasicBlock(nn.Module):
    r"""$h \leftarrow \mathrm{relu}(\mathrm{shortcut}(h) + \mathrm{conv}(\mathrm{relu}(\mathrm{conv}(h))))$.

    Batch normalisation follows every convolution. The shortcut is a 1 × 1 convolution where the shape changes.
    """

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != width:
            self.shortcut.append(nn.Conv2d(channels, width, 1, stride=stride, bias=False))
            self.shortcut.append(nn.BatchNorm2d(width))

    def forward(self, h: Tensor) -> Tensor:
        """`(rows, channels, height, width) -> (rows, width, height / stride, width / stride)`."""
        out = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(h)))))
        return F.relu(self.shortcut(h) + out)


class Averaged(nn.Module):
    """The mean over height and width."""

    def forward(self, h: Tensor) -> Tensor:
        """`(rows, channels, height, width) -> (rows, channels)`."""
        return h.mean((2, 3))


@remembered
def resnet18(
    observed: Sequence[int],
    dim: int | None,
    *,
    hidden: int | None = None,
    small: bool = False,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    onto: Space | None = None,
    learnable: bool | None = None,
    seed: int | None = None,
) -> nn.Sequential:
    """Eight residual blocks of two convolutions, the mean over the image, a linear layer, then a step onto a space.

    Layers and initial weights are torchvision's: a 7 × 7 convolution with stride 2 and a max-pool with stride 2 come
    first, so height and width shrink by 32 in all. Any image of at least 32 × 32 fits. `hidden=100` gives the network
    of zimmermann2021 on 3DIdent.

    Args:
        observed: shape of an image, `(channels, height, width)`.
        dim: dimension k of the representation; None has no linear layer at the end, which leaves 512 features.
        hidden: width of one more linear layer with a leaky ReLU before the outputs; None has none.
        small: begin with a 3 × 3 convolution of stride 1 and no max-pool, for images of about 32 × 32.
        mean: of each channel, taken off the image first; None takes nothing off.
        std: of each channel, by which the image is divided then.
        onto: the space to land on; None leaves the output free.
        learnable: train the radius of the sphere or the bounds of the box; None takes the paper's choice
            (`zhat.encoders.output`).
        seed: of the initial weights; None draws them from torch's global state.

    Returns:
        A module `(rows, channels, height, width) -> (rows, dim)`.

    Reference: he2016; zimmermann2021, Table 4 (the official code).

    Example:
        >>> sum(p.numel() for p in resnet18((3, 224, 224), 10, hidden=100, seed=0).parameters())
        11228822
    """
    if dim is not None:
        _checks.count(dim, "dim")

    def build() -> nn.Sequential:
        images = Images(observed)
        layers: OrderedDict[str, nn.Module] = OrderedDict(images=images)
        channels = images.shape[0]
        if mean is not None or std is not None:
            if mean is None or std is None or {len(mean), len(std)} != {channels}:
                raise BadInput(f"`mean` and `std` must hold {channels} numbers each, but {mean} and {std} came.")
            layers["standardised"] = Standardised(mean, std)
        layers["channels_last"] = ChannelsLast()
        if small:
            layers["conv"] = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        else:
            layers["conv"] = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        layers |= {"norm": nn.BatchNorm2d(64), "relu": nn.ReLU()}
        if not small:
            layers["pool"] = nn.MaxPool2d(3, stride=2, padding=1)
        size = 64
        for i, width in enumerate((64, 64, 128, 128, 256, 256, 512, 512)):
            layers[f"block{i}"] = BasicBlock(size, width, stride=1 if width == size else 2)
            size = width
        layers["averaged"] = Averaged()
        if hidden is not None:
            layers |= {"hidden": nn.Linear(size, _checks.count(hidden, "hidden")), "bent": nn.LeakyReLU()}
            size = hidden
        if dim is not None:
            layers["last"] = Last(size, dim)
            size = dim
        if onto is not None:
            layers["onto"] = output(onto, dim=size, learnable=learnable)
        network = nn.Sequential(layers)
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        return network

    return build() if seed is None else randomness.build(build, seed, "encoder")
