"""A plane cut into sectors: the process of roeder2020's classification experiment, and a softer one of ours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.dgp.batch import Batch
from zhat.dgp.spaces import Real
from zhat.errors import BadInput


@dataclass(frozen=True)
class Sectors:
    r"""Normal points of the plane, labelled by the sector of their angle $\theta$, or by a random one near it.

    $$x = z \sim \mathcal N(0, \sigma^2 I_2), \qquad y = \lfloor K \theta / 2\pi \rfloor, \quad\text{or}\quad
      p(y \mid x) \propto \exp \Big(s \sum_{k=1}^{H} \cos k (\theta - c_y)\Big), \quad c_y \text{ the sector's middle}$$

    Labels of the first kind follow from x, so cross-entropy has no finite minimum: logits grow without bound. The
    second kind (`harmonics`) has one, and its log-probabilities are bilinear: $f(x) \cdot g(y)$ with the 2H coordinates
    $\cos k\theta, \sin k\theta$ of f, all of the same size. A model of `rank` dimensions can be exact; one of fewer
    cannot, and one of more has directions that nothing determines.

    Args:
        labels: K, how many sectors of equal width.
        scale: $\sigma$.
        harmonics: H; None labels by the sector itself.
        sharpness: s, for `harmonics`.
        label_noise: the probability with which a label is replaced by one drawn uniformly.
        seed: without effect, because there is only one such plane; every process has one.

    Reference: roeder2020, section 5.1: K = 18, sigma = 3, labels without noise. Harmonics are ours.

    Example:
        >>> Sectors().sample(5, generator=torch.Generator().manual_seed(0)).label.shape
        torch.Size([5])
        >>> Sectors(harmonics=2).rank, Sectors(harmonics=9).rank
        (4, 17)
    """

    labels: int = 18
    scale: float = 3.0
    harmonics: int | None = None
    sharpness: float = 0.4
    label_noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        _checks.settle(
            self,
            labels=_checks.count(self.labels, "labels", least=2),
            scale=_checks.positive(self.scale, "scale"),
            sharpness=_checks.positive(self.sharpness, "sharpness"),
            label_noise=_checks.finite(self.label_noise, "label_noise"),
        )
        if self.harmonics is not None and _checks.count(self.harmonics, "harmonics") > self.labels // 2:
            raise BadInput(
                f"{self.labels} labels determine at most {self.labels // 2} harmonics, but {self.harmonics} came. "
                "Give fewer harmonics or more labels."
            )
        if not 0 <= self.label_noise <= 1:
            raise BadInput(f"`label_noise` is a probability, from 0 to 1, but {self.label_noise} came.")
        randomness.stream_seed(self.seed, "mixing")  # refuses what is not a seed

    @property
    def views(self) -> int:
        """One."""
        return 1

    @property
    def space(self) -> Real:
        """The plane."""
        return Real(2)

    @property
    def rank(self) -> int:
        r"""How many directions $\log p(y \mid x)$ spans as a function of x, up to a constant for each x.

        Of the harmonic K / 2 the labels see one direction only: in the middle of every sector its cosine is 0.
        """
        if self.harmonics is None:
            return self.labels - 1
        return min(2 * self.harmonics, self.labels - 1)

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` points with their labels, on the generator's device."""
        draw: dict[str, Any] = {"generator": generator, "device": generator.device}
        z = self.scale * torch.randn(_checks.count(n, "n"), 2, **draw)
        if self.harmonics is None:
            turn = _angle(z) / (2 * math.pi) % 1
            label = (turn * self.labels).long().clamp(max=self.labels - 1)  # a turn may round to 1
        else:
            uniform = torch.rand(n, self.labels, **draw).clamp_min(torch.finfo(z.dtype).tiny)
            label = (self._logits(z) - (-uniform.log()).log()).argmax(-1)  # the largest of logits with Gumbel noise
        if self.label_noise:
            other = torch.randint(self.labels, (n,), **draw)
            label = torch.where(torch.rand(n, **draw) < self.label_noise, other, label)
        return Batch(x=z[None], z=z[None], label=label)

    def log_prob(self, x: Tensor) -> Tensor:
        r"""$\log p(y \mid x)$ of every label, `(n, 2) -> (n, labels)`: the best that any classifier can reach.

        Minus infinity where a label cannot occur.
        """
        if self.harmonics is None:
            turn = _angle(x) / (2 * math.pi) % 1
            p = torch.nn.functional.one_hot((turn * self.labels).long().clamp(max=self.labels - 1), self.labels).to(x)
        else:
            p = self._logits(x).softmax(-1)
        return ((1 - self.label_noise) * p + self.label_noise / self.labels).log()

    def _logits(self, x: Tensor) -> Tensor:
        middle = (torch.arange(self.labels).to(x) + 0.5) * (2 * math.pi / self.labels)
        k = torch.arange(1, (self.harmonics or 0) + 1).to(x)
        away, each = _angle(x)[:, None] * k, middle[:, None] * k
        # cos k(a - b) = cos ka cos kb + sin ka sin kb: a product of (n, 2H) and (2H, labels)
        f, g = (torch.cat([angle.cos(), angle.sin()], -1) for angle in (away, each))
        return self.sharpness * f @ g.T


def _angle(x: Tensor) -> Tensor:
    return torch.atan2(x[:, 1], x[:, 0])
