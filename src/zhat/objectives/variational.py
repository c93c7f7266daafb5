"""Variational objectives: a representation from which observations can be drawn again."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from zhat import _checks
from zhat.dgp.batch import Batch
from zhat.errors import BadInput


class SlowVAE(nn.Module):
    r"""A variational autoencoder whose latents move little and rarely from one view to the next.

    The encoder gives $q(h \mid x) = N(\mu, \mathrm{diag}\,\sigma^2)$ for either view (`zhat.encoders.Posterior`). With
    the decoder's logits $d(h)$ of a drawn $h$, entropies $H(q) = \sum_c \tfrac12 \log 2\pi e \sigma_c^2$ and
    cross-entropies to a standard normal and to a Laplace distribution of rate $\lambda$ around the other view's mean,

    $$L = 2 R + \beta\,(C_N - H) + \gamma\,(C_L - H), \qquad R = -\log p(x \mid d(h)),$$
    $$C_N = \sum_c \tfrac12(\mu_c^2 + \sigma_c^2 + \log 2\pi), \qquad
      C_L = \sum_{\text{views}} \sum_c \lambda\, E|h_c - \mu'_c| - \log(\lambda/2),$$
    $$E|h_c - \mu'_c| = \sigma\sqrt{2/\pi}\, e^{-m^2/2\sigma^2} + m\,(2\Phi(m/\sigma) - 1), \qquad m = \mu_c - \mu'_c.$$

    $R$, $C_N$ and $H$ are means over images and $C_L$ is the sum of both directions, a mean over pairs, as in the
    official code; so the entropy of one view is missing beside $C_L$. Points of an image are 0 or 1, or shares between.

    Args:
        decoder: makes the decoder, `(rows, k) -> images`, for instance `Fresh(deconv, 10, (1, 64, 64))`.
        dim: k.
        beta: $\beta$.
        gamma: $\gamma$.
        rate: $\lambda$; larger is slower and sparser.

    Reference: klindt2021, equation (11); zimmermann2021, Table 3 (beta 1, gamma 10, rate 6).
    """

    def __init__(
        self, decoder: Callable[[], nn.Module], dim: int, *, beta: float = 1.0, gamma: float = 10.0, rate: float = 6.0
    ) -> None:
        super().__init__()
        self.noise = _checks.count(dim, "dim")
        self.beta, self.gamma = _checks.positive(beta, "beta"), _checks.positive(gamma, "gamma")
        self.rate = _checks.positive(rate, "rate")
        self.decoder = decoder()

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of means and log-variances `(2, n, 2k)`; a scalar."""
        if h.ndim != 3 or h.shape[0] != 2 or h.shape[2] != 2 * self.noise:
            raise BadInput(
                f"SlowVAE takes means and log-variances of 2 views, (2, n, {2 * self.noise}), but {tuple(h.shape)} "
                "came. Let the encoder be a Posterior of a network with twice as many outputs as `dim`, and the "
                "process one of pairs."
            )
        if batch.noise is None:
            raise BadInput("SlowVAE draws from its posterior and needs `batch.noise`, which `zhat.train` adds.")
        mean, log_variance = h.chunk(2, -1)
        drawn = mean + (log_variance / 2).exp() * batch.noise
        logits = self.decoder(drawn.flatten(0, 1))
        truth = batch.x.flatten(0, 1)
        recovered = F.binary_cross_entropy_with_logits(logits, truth, reduction="sum") / len(truth)
        entropy = 0.5 * (log_variance + math.log(2 * math.pi * math.e)).sum(-1).mean()
        normal = 0.5 * (mean.square() + log_variance.exp() + math.log(2 * math.pi)).sum(-1).mean()
        far = expected_distance(mean - mean.flip(0), log_variance)
        laplace = (self.rate * far - math.log(self.rate / 2)).sum((0, -1)).mean()
        return 2 * recovered + self.beta * (normal - entropy) + self.gamma * (laplace - entropy)


def expected_distance(mean: Tensor, log_variance: Tensor) -> Tensor:
    r"""$E|h|$ for $h \sim N(m, \sigma^2)$, elementwise.

    Example:
        >>> expected_distance(torch.tensor([0.0, 3.0]), torch.tensor([0.0, -30.0]))
        tensor([0.7979, 3.0000])
    """
    sigma = (log_variance / 2).exp()
    bell = sigma * math.sqrt(2 / math.pi) * torch.exp(-mean.square() / (2 * sigma.square()))
    return bell + mean * torch.erf(mean / (sigma * math.sqrt(2)))
