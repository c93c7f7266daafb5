"""A multilayer perceptron beside a linear map: an encoder that begins without folds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from torch import Tensor, nn

from zhat import randomness
from zhat.dgp.spaces import Space
from zhat.encoders.mlp import Last, mlp
from zhat.encoders.outputs import output
from zhat.fresh import remembered


class Residual(nn.Module):
    r"""$f(x) = A x + b + \mathrm{net}(x)$ with A orthogonal and b = 0 to begin with."""

    def __init__(self, observed: int, dim: int, net: nn.Module) -> None:
        super().__init__()
        self.line, self.net = Last(observed, dim), net
        nn.init.orthogonal_(self.line.weight)
        nn.init.zeros_(self.line.bias)

    def forward(self, x: Tensor) -> Tensor:
        """`(…, observed) -> (…, dim)`."""
        h: Tensor = self.line(x) + self.net(x)
        return h


@remembered
def residual_mlp(
    observed: int,
    dim: int,
    *,
    widths: Sequence[int] | None = None,
    onto: Space | None = None,
    slope: float = 0.01,
    batch_norm: bool = False,
    seed: int | None = None,
) -> nn.Sequential:
    r"""`mlp` beside a linear map: $f(x) = A x + b + \mathrm{mlp}(x)$.

    `mlp` begins small (by torch's initial weights; with `batch_norm` its last layer is made so), and f begins close to
    an orthogonal map of x. A random network folds: it gives far observations nearly the same representation, and where
    labels are nearly sure, a loss that tells labels apart hardly unfolds it again. A linear map of full rank folds
    nothing.

    Args:
        observed: dimension m of the observations.
        dim: dimension k of the representation. A map to fewer dimensions than m has can fold like any other.
        widths: hidden widths; None as in `mlp`.
        onto: the space to land on; None leaves the output free.
        slope: of the leaky ReLU.
        batch_norm: normalise after each hidden linear layer.
        seed: of the initial weights; None draws them from torch's global state.

    Returns:
        A module `(…, observed) -> (…, dim)`.

    Example:
        >>> import torch
        >>> encoder = residual_mlp(3, 3, widths=(16,), seed=0)
        >>> encoder(torch.zeros(7, 3)).shape
        torch.Size([7, 3])
    """

    def build() -> nn.Sequential:
        net = mlp(observed, dim, widths=widths, slope=slope, batch_norm=batch_norm)
        if batch_norm:  # which makes up for torch's small initial weights
            nn.init.normal_(net.get_parameter("last.weight"), std=0.001)
        layers: OrderedDict[str, nn.Module] = OrderedDict(residual=Residual(observed, dim, net))
        if onto is not None:
            layers["onto"] = output(onto, dim=dim)
        return nn.Sequential(layers)

    return build() if seed is None else randomness.build(build, seed, "encoder")
