"""Encoders and objectives of all seeds, their tensors stacked on a leading axis."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.modules.dropout import _DropoutNd

from zhat import randomness
from zhat.dgp.batch import Batch, encoder_input
from zhat.errors import BadInput
from zhat.fresh import Fresh, describe
from zhat.objectives import Objective

Tensors = Mapping[str, Tensor]


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
            if not isinstance(made, nn.Module):
                raise BadInput(f"`encoder` must be or make an nn.Module, but it made {describe(made)}.")
            if len(seeds) > 1 and not getattr(made, "stacks", True):
                raise BadInput(
                    f"{type(made).__name__} says that it cannot be stacked, but {len(seeds)} seeds came. "
                    "Train them one at a time."
                )
            parts = nn.ModuleDict({"encoder": made})
            judge = randomness.build(objective, seed, "objective") if isinstance(objective, Fresh) else objective
            if isinstance(judge, nn.Module):
                parts["objective"] = judge if isinstance(objective, Fresh) else copy.deepcopy(judge)
            else:
                self._objective = judge
            self._modules.append(parts.to(device).train())
        for name, module in self._modules[0].named_modules():
            if isinstance(module, _DropoutNd) and module.p > 0:
                raise BadInput(
                    f"{name} is {module}, which draws from torch's global random state: a seed would then give "
                    "something else alone than among others. Remove it, or set p=0."
                )
        self.size = len(seeds)
        self.parameters, self.buffers = stack_module_state(list(self._modules))
        self._template = self._modules[0]

    def refuse_nothing(self) -> None:
        """Raise where there is nothing to train."""
        if not any(p.requires_grad for p in self.parameters.values()):
            raise BadInput("the encoder has no parameters, so there is nothing to train.")

    def refuse_shape(self, row: tuple[int, ...]) -> None:
        """Say in a sentence what a product would say in shapes: an encoder for other observations than these rows."""
        encoder = self._template["encoder"]
        first = next((m for m in encoder.modules() if m._parameters), None)
        came, size = "×".join(str(length) for length in row), math.prod(row)
        if isinstance(first, nn.Conv2d) and (len(row) != 3 or row[0] != first.in_channels):
            raise BadInput(
                f"the encoder takes images of {first.in_channels} channels, but a row of the observations is {came}. "
                "Give images as (rows, channels, height, width), and make the encoder for their channels."
            )
        if not isinstance(first, nn.Linear) or first.in_features == row[-1]:
            return
        if len(row) == 1:
            raise BadInput(
                f"the encoder takes {first.in_features} values a row, but the observations have {size}. "
                f"Make it for {size}."
            )
        flattens = not isinstance(encoder, nn.Sequential) or any(isinstance(m, nn.Flatten) for m in encoder.modules())
        if first.in_features != size or not flattens:
            raise BadInput(
                f"the encoder takes {first.in_features} values a row, but a row of the observations is {came}. "
                f"Use an encoder for images such as zhat.encoders.conv, or nn.Flatten() before one for {size} values."
            )

    def matrices(self) -> tuple[str, ...]:
        """The names of the weights of the encoder's linear layers and convolutions."""
        layers = (name for name, m in self._template.named_modules() if isinstance(m, nn.Linear | nn.Conv2d))
        return tuple(f"{name}.weight" for name in layers if name.startswith("encoder"))

    def losses(self, rows: Tensors, sharpness: Tensor | None = None) -> Tensor:
        """One loss for each seed, from rows stacked on a leading axis; representations are stretched by `sharpness`."""
        if self.size == 1:  # without vmap, so that modules that cannot be stacked still train one at a time
            alone = [{k: v[0] for k, v in part.items()} for part in (self.parameters, self.buffers, rows)]
            loss, changed = self._loss(alone[0], alone[1], alone[2], sharpness)
            losses, changed = loss[None], {k: v[None] for k, v in changed.items()}
        else:
            in_dims = (0, 0, 0, None)
            losses, changed = vmap(self._loss, in_dims)(self.parameters, self.buffers, rows, sharpness)
        if changed:
            with torch.no_grad():  # all at once: on a GPU each copy by itself would be a launch
                torch._foreach_copy_([self.buffers[name] for name in changed], list(changed.values()))
        return losses

    def _loss(
        self, parameters: Tensors, buffers: Tensors, rows: Tensors, sharpness: Tensor | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of one seed, and the buffers that were assigned anew instead of changed in place."""
        batch = Batch(**{**rows, "x": encoder_input(rows["x"])})
        changed: dict[str, Tensor] = {}

        def call(part: str, *arguments: Any) -> Tensor:
            every = {**parameters, **buffers}
            mine = {k.removeprefix(f"{part}."): v for k, v in every.items() if k.startswith(f"{part}.")}
            before = dict(mine)
            out: Tensor = functional_call(self._template[part], mine, arguments)  # writes assigned buffers into `mine`
            changed.update({f"{part}.{k}": mine[k].detach() for k in mine if mine[k] is not before[k]})
            return out

        if getattr(self._template["encoder"], "sees_views", False):
            h = call("encoder", batch.x)
        else:
            h = call("encoder", batch.x.flatten(0, 1))
            h = h.reshape(*batch.x.shape[:2], *h.shape[1:])
        h = h if sharpness is None else sharpness * h
        if "objective" in self._template:
            loss = call("objective", h, batch)
        else:
            loss = self._objective(h, batch)  # type: ignore[call-arg]
        if loss.ndim != 0:
            raise BadInput(f"an objective returns one number, but a tensor of shape {tuple(loss.shape)} came.")
        return loss, changed

    def _filled(self) -> list[nn.ModuleDict]:
        with torch.no_grad():
            for s, module in enumerate(self._modules):
                for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
                    source = self.parameters if name in self.parameters else self.buffers
                    tensor.copy_(source[name][s])
        return self._modules

    def encoders(self) -> tuple[nn.Module, ...]:
        """Copies of the encoders with their present weights, in evaluation mode."""
        return tuple(copy.deepcopy(parts["encoder"]).eval() for parts in self._filled())

    def objectives(self) -> tuple[Objective, ...]:
        """The objectives with their present weights."""
        if "objective" in self._template:
            return tuple(copy.deepcopy(parts["objective"]).eval() for parts in self._filled())
        return (self._objective,) * self.size  # type: ignore[return-value]

    @property
    def labels(self) -> int | None:
        """How many labels the objective has rows for; None where it asks for none."""
        return getattr(self._template["objective"], "labels", None) if "objective" in self._template else None

    @property
    def noise(self) -> int:
        """How many normal numbers the objective wants for each row and view."""
        owned = [part for name, part in self._template.items() if name == "objective"]
        return int(getattr(owned[0] if owned else self._objective, "noise", 0))

    def description(self) -> str:
        """What is trained, as text."""
        return f"{self._template}\n{describe(self._objective)}"
