"""Adam over the stacked parameters of all seeds; matrices may be updated by Muon instead."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from zhat import _checks
from zhat.errors import BadInput

if TYPE_CHECKING:
    from zhat.training.recipe import Recipe

QUINTIC = 3.4445, -4.7750, 2.0315  # jordan2024: brings singular values from (0, 1] to about 1 in few rounds


@dataclass(frozen=True)
class Muon:
    r"""Orthogonalised momentum for the weights of the encoder's linear layers and convolutions; Adam for all others.

    An update of Adam is dominated by the few directions in which gradients are large. Here the momentum
    $M = U \Sigma V^\top$ of a matrix, one gradient ahead (Nesterov), is replaced by about $U V^\top$, so that all
    directions move equally fast; five rounds of $X \leftarrow aX + (bXX^\top + c(XX^\top)^2)X$ do this without a
    decomposition. A matrix of m columns and k rows moves by $\eta \sqrt{\max(1, k/m)}$ times that. A convolution is a
    matrix with one row for each of its output channels.

    Reference: jordan2024.

    Attributes:
        lr: learning rate of these matrices; schedules apply, `lr_scale` does not.
        momentum: averaging factor of gradients.
        rounds: of the iteration above.
    """

    lr: float = 0.01
    momentum: float = 0.95
    rounds: int = 5

    def __post_init__(self) -> None:
        _checks.positive(self.lr, "lr")
        _checks.count(self.rounds, "rounds")
        if not 0 <= self.momentum < 1:
            raise BadInput(f"`momentum` must be at least 0 and below 1, but {self.momentum} came.")


def make_optimiser(
    parameters: Mapping[str, Tensor],
    recipe: Recipe,
    device: torch.device,
    matrices: Collection[str] = (),
) -> torch.optim.Adam:
    """Adam over stacked parameters, one group for each learning rate; with Muon, one more for `matrices`."""
    last = {name.rsplit(".", 1)[-1] for name in parameters}
    scales, muon = dict(recipe.lr_scale), recipe.muon
    for key in scales:
        if key not in last:
            raise BadInput(f"`lr_scale` names {key!r}, but the parameters are called {', '.join(sorted(last))}.")
    on_gpu = device.type == "cuda"
    groups: dict[float, list[Tensor]] = {}
    turned = []
    for name, tensor in parameters.items():
        if not tensor.requires_grad:
            continue  # frozen
        if muon is not None and name in matrices:
            turned.append(tensor)
        else:
            groups.setdefault(scales.get(name.rsplit(".", 1)[-1], 1.0), []).append(tensor)

    def rate(value: float) -> Any:
        return torch.tensor(value, device=device) if on_gpu else value

    described = [{"params": tensors, "lr": rate(recipe.lr * factor)} for factor, tensors in groups.items()]
    if muon is None:
        return torch.optim.Adam(described, lr=recipe.lr, betas=recipe.betas, fused=True, capturable=on_gpu)
    if not turned:
        raise BadInput(
            "Muon updates weights of linear layers and convolutions, but the encoder has none to train. "
            "Leave `muon` out."
        )
    described.append({"params": turned, "lr": rate(muon.lr), "muon": muon})
    return AdamAndMuon(described, lr=recipe.lr, betas=recipe.betas, fused=True, capturable=on_gpu)


class AdamAndMuon(torch.optim.Adam):
    """Adam, and `Muon` for the group that carries one."""

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            if "muon" in group:
                self._turn(group["params"], group["lr"], group["muon"])
        super().step()  # Adam passes by parameters without a gradient

    def _turn(self, parameters: list[Tensor], lr: Tensor | float, muon: Muon) -> None:
        """Move matrices `(seeds, k, m)` and convolutions `(seeds, k, …)`, those of one shape together."""
        shapes: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = {}
        for parameter in parameters:
            grad = parameter.grad
            if grad is None:
                continue
            state = self.state[parameter]
            if not state:
                state["momentum"] = torch.zeros_like(parameter)
            state["momentum"].lerp_(grad, 1 - muon.momentum)
            ahead = grad.lerp(state["momentum"], muon.momentum).flatten(2)
            wide = ahead if ahead.shape[1] <= ahead.shape[2] else ahead.mT
            shapes.setdefault(tuple(wide.shape), []).append((parameter, wide))
            parameter.grad = None
        for together in shapes.values():
            moves = orthogonalised(torch.stack([wide for _, wide in together]), muon.rounds)
            for (parameter, _), move in zip(together, moves, strict=True):
                k, m = parameter.flatten(2).shape[1:]
                move = move if k <= m else move.mT
                parameter.sub_(lr * max(1.0, k / m) ** 0.5 * move.reshape(parameter.shape))


def orthogonalised(matrices: Tensor, rounds: int = 5) -> Tensor:
    r"""About $U V^\top$ for matrices $U \Sigma V^\top$ with k <= m, `(…, n, k, m) -> (…, n, k, m)`.

    Singular values come out between about 0.7 and 1.2, those below a hundredth of the norm smaller. On a GPU in
    bfloat16, which is enough for that.
    """
    a, b, c = QUINTIC
    x: Tensor = matrices / matrices.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-12)
    x = x.flatten(0, -3).to(torch.bfloat16 if x.is_cuda else x.dtype)
    for _ in range(rounds):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.reshape(matrices.shape).to(matrices.dtype)
