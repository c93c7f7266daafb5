"""An encoder that gives a normal distribution instead of a point."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from zhat.errors import BadInput


class Posterior(nn.Module):
    r"""$q(h \mid x) = N(\mu(x), \mathrm{diag}\, e^{\lambda(x)})$ with $(\mu, \lambda)$ from one network of 2k outputs.

    While training, an objective such as `zhat.objectives.SlowVAE` sees means and log-variances side by side. In
    evaluation the representation is the mean alone, so scores, pages and audits need not know.

    Args:
        make: makes the network, `(rows, …) -> (rows, 2k)`, for instance `Fresh(conv, (1, 64, 64), 20)`.

    Reference: klindt2021.
    """

    def __init__(self, make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.network = make()

    def forward(self, x: Tensor) -> Tensor:
        """`(rows, …) -> (rows, 2k)` while training, `(rows, k)` in evaluation."""
        both: Tensor = self.network(x)
        if both.shape[-1] % 2:
            raise BadInput(
                f"a posterior has a mean and a log-variance for each coordinate, but the network has {both.shape[-1]} "
                "outputs. Give it twice as many as the representation shall have."
            )
        return both if self.training else both.chunk(2, -1)[0]
