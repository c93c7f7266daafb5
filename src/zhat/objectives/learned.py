r"""InfoNCE whose similarity is trained as well: its temperature, or one weight for each coordinate."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zhat import _checks
from zhat.dgp.batch import Batch
from zhat.errors import BadInput
from zhat.objectives.contrastive import Dot, InfoNCE


class LearnedSimilarity(nn.Module):
    r"""InfoNCE of a representation that is stretched by trained factors before rows are compared.

    $$s(u, v) = \sum_c w_c\, u_c v_c \quad\text{or}\quad -\sum_c w_c\, |u_c - v_c|^p, \qquad w_c = e^{q a_c},$$

    with q = 2 for the dot product and q = p for a norm; a is trained and begins at 0. One factor for all coordinates is
    a learned temperature $\tau / w$; one for each is an anisotropic similarity.

    What theory says. On a sphere, one factor removes the condition on the radius: at the minimum $w / \tau$ times the
    squared radius is the concentration, and the latents are recovered up to a rotation. One factor for each coordinate
    gives nothing more where the encoder ends on a sphere of as many dimensions as the latents: $\sqrt{w_c} h_c$ must be
    a rotated sphere, and h has one length, so all $w_c$ are equal at the minimum. In boxes and in R^d the factors can
    be moved into the last layer of the encoder: with p other than 2 the latents are recovered up to a scaled
    permutation, with other scales, and with p = 2 up to an affine map. So an anisotropic similarity identifies what the
    plain one identifies; it matches conditionals whose scale differs between coordinates, which the plain one does not
    where the encoder's output cannot stretch coordinates one by one.

    Args:
        base: the loss without factors.
        dim: dimension of the representation, for one factor for each coordinate; None for one factor.

    Example:
        >>> LearnedSimilarity(InfoNCE(temperature=0.5)).temperature
        0.5
    """

    def __init__(self, base: InfoNCE, dim: int | None = None) -> None:
        super().__init__()
        if not isinstance(base, InfoNCE):
            raise BadInput(f"LearnedSimilarity takes an InfoNCE, but {base!r} came.")
        self.base = base
        self.log_scale = nn.Parameter(torch.zeros(1 if dim is None else _checks.count(dim, "dim")))

    @property
    def power(self) -> float:
        """How a similarity grows with the representation: 2 for the dot product, p for a norm."""
        return 2.0 if isinstance(self.base.similarity, Dot) else float(self.base.similarity.p)

    @property
    def weights(self) -> Tensor:
        """The factors w, `(1,)` or `(dim,)`."""
        return (self.power * self.log_scale.detach()).exp()

    @property
    def temperature(self) -> float:
        """The temperature that the loss has now: the base's over the geometric mean of the factors."""
        return float(self.base.temperature / self.weights.log().mean().exp())

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of representations `(views, n, k)`; a scalar."""
        if len(self.log_scale) not in (1, h.shape[-1]):
            raise BadInput(
                f"this similarity has {len(self.log_scale)} factors, but the representation has {h.shape[-1]} "
                f"coordinates. Give LearnedSimilarity(…, dim={h.shape[-1]})."
            )
        return self.base(h * self.log_scale.exp().to(h.dtype), batch)

    def extra_repr(self) -> str:
        """The base and how many factors."""
        return f"{self.base!r}, factors={len(self.log_scale)}"
