"""The last step of an encoder: land on a space."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zhat.dgp.spaces import Box, Product, Real, Space, Sphere
from zhat.errors import BadInput


class OntoSphere(nn.Module):
    """Rescale every row to the radius; `learnable=True` trains the radius, starting from the sphere's own."""

    def __init__(self, space: Sphere, *, learnable: bool = False) -> None:
        super().__init__()
        self.space, self.learnable = space, learnable
        radius = torch.tensor(float(space.radius))
        if learnable:
            self.radius = nn.Parameter(radius)
        else:
            self.register_buffer("radius", radius, persistent=False)

    def forward(self, h: Tensor) -> Tensor:
        """`(…, d) -> (…, d)`."""
        return self.radius * nn.functional.normalize(h, dim=-1)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.space}, learnable={self.learnable}"


class OntoBox(nn.Module):
    r"""$\text{low} + \text{bound}_j\, \sigma(h_j)$; the bounds are trained unless `learnable=False`.

    Bounds start at the width of the box. They are zimmermann2021's choice: the scale of the latents that the loss
    prefers is not known beforehand, so the box must be able to grow.
    """

    def __init__(self, space: Box, *, learnable: bool = True) -> None:
        super().__init__()
        self.space, self.learnable = space, learnable
        bound = torch.full((space.dim,), float(space.high - space.low))
        if learnable:
            self.bound = nn.Parameter(bound)
        else:
            self.register_buffer("bound", bound, persistent=False)

    def forward(self, h: Tensor) -> Tensor:
        """`(…, d) -> (…, d)`."""
        return self.space.low + self.bound * torch.sigmoid(h)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.space}, learnable={self.learnable}"


class OntoProduct(nn.Module):
    """Every part of a product of spaces by its own module; radii are trained unless `learnable=False`, like bounds.

    The parts share one loss, so each must be able to find its own scale.
    """

    def __init__(self, space: Product, *, learnable: bool = True) -> None:
        super().__init__()
        self.space = space
        self.parts = nn.ModuleList(output(part, learnable=learnable) for part in space.parts)

    def forward(self, h: Tensor) -> Tensor:
        """`(…, d) -> (…, d)`."""
        return torch.cat([part(p) for part, p in zip(self.parts, self.space.split(h), strict=True)], -1)


def output(space: Space, *, dim: int | None = None, learnable: bool | None = None) -> nn.Module:
    """The module that lands on `space`.

    Args:
        space: `Sphere`, `Box` or `Real`, or a `Product` of them.
        dim: dimension of what is to land; None does not compare it with that of the space.
        learnable: train the radius or the bounds; None takes zimmermann2021's choice, which is a fixed radius
            and trained bounds; in a product both are trained.
    """
    if dim is not None and space.dim != dim:
        raise BadInput(f"the encoder ends in {dim} dimensions, but {space!r} has {space.dim}. Make them agree.")
    if isinstance(space, Sphere):
        return OntoSphere(space, learnable=bool(learnable))
    if isinstance(space, Box):
        return OntoBox(space, learnable=learnable is not False)
    if isinstance(space, Product):
        return OntoProduct(space, learnable=learnable is not False)
    if isinstance(space, Real):
        return nn.Identity()
    raise BadInput(
        f"no output lands on {space!r}. Use Sphere, Box, Real or a Product of them, or end the encoder with a "
        "module of yours."
    )
