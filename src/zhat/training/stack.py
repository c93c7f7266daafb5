"""Encoders and objectives of all seeds, their tensors stacked on a leading axis."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from zhat import randomness
from zhat.dgp.batch import Batch
from zhat.errors import BadInput
from zhat.fresh import Fresh

Objective = Callable[[Tensor, Batch], Tensor]


class Stack:
    """Encoders and objectives of all seeds, their tensors stacked on a leading axis."""

    def __init__(
        self,
        encoder: nn.Module | Callable[[], nn.Module],
        objective: Objective | Fresh,
        seeds: tuple[int, ...],
        device: torch.device,
    ) -> None:
        if isinstance(encoder, nn.Module) and len(seeds) > 1:
            raise BadInput(
                f"{len(seeds)} seeds need {len(seeds)} encoders with weights of their own, but one module came. "
                "Pass something that makes one, such as Fresh(mlp, 10, 10)."
            )
        self._modules: list[nn.ModuleDict] = []
        self._objective = objective
        for seed in seeds:
            made = (
                copy.deepcopy(encoder) if isinstance(encoder, nn.Module) else randomness.build(encoder, seed, "encoder")
            )
            parts = nn.ModuleDict({"encoder": made})
            judge = randomness.build(objective, seed, "objective") if isinstance(objective, Fresh) else objective
            if isinstance(judge, nn.Module):
                parts["objective"] = judge if isinstance(objective, Fresh) else copy.deepcopy(judge)
            else:
                self._objective = judge
            self._modules.append(parts.to(device).train())
        self.size = len(seeds)
        # One seed needs no stacking, so modules that cannot be stacked still train one at a time.
        self.parameters, self.buffers = stack_module_state(list(self._modules))
        if not self.parameters:
            raise BadInput("the encoder has no parameters, so there is nothing to train.")
        self._template = copy.deepcopy(self._modules[0]).to("meta")

    def losses(self, x: Tensor, z: Tensor | None, label: Tensor | None) -> Tensor:
        """One loss for each seed, from rows stacked on a leading axis."""
        tensors = {"x": x} | ({} if z is None else {"z": z}) | ({} if label is None else {"label": label})
        if self.size == 1:
            first = ({k: v[0] for k, v in part.items()} for part in (self.parameters, self.buffers, tensors))
            return self._loss(*first)[None]
        return vmap(self._loss, randomness="different")(self.parameters, self.buffers, tensors)

    def _loss(self, parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor], rows: dict[str, Tensor]) -> Tensor:
        batch = Batch(**rows)
        state = dict(parameters) | dict(buffers)
        views, n = batch.x.shape[:2]
        h = functional_call(self._template["encoder"], _under(state, "encoder."), (batch.x.flatten(0, 1),))
        h = h.reshape(views, n, *h.shape[1:])
        if "objective" in self._template:
            loss = functional_call(self._template["objective"], _under(state, "objective."), (h, batch))
        else:
            loss = self._objective(h, batch)  # type: ignore[call-arg]
        if loss.ndim != 0:
            raise BadInput(f"an objective returns one number, but a tensor of shape {tuple(loss.shape)} came.")
        return loss  # type: ignore[no-any-return]

    def _filled(self) -> list[nn.ModuleDict]:
        with torch.no_grad():
            for s, module in enumerate(self._modules):
                for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
                    source = self.parameters if name in self.parameters else self.buffers
                    tensor.copy_(source[name][s])
        return self._modules

    def encoders(self) -> tuple[nn.Module, ...]:
        """The encoders with their present weights, in evaluation mode."""
        return tuple(parts["encoder"].eval() for parts in self._filled())

    def objectives(self) -> tuple[Objective, ...]:
        """The objectives with their present weights."""
        if "objective" in self._template:
            return tuple(parts["objective"].eval() for parts in self._filled())
        return (self._objective,) * self.size  # type: ignore[return-value]

    def description(self) -> str:
        """What is trained, as text."""
        return f"{self._template}\n{self._objective!r}"


def _under(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)}
