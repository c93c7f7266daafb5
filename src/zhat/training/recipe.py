"""How to train, as one value: what a budget holds, what `train` takes whole, what a run is named by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import TypedDict

import torch

from zhat import _checks
from zhat.errors import BadInput
from zhat.fresh import describe
from zhat.training.optimisers import Muon
from zhat.training.schedules import Cosine

PRECISIONS = ("float32", "tf32", "bf16")
Schedule = Callable[[int, int], float]
"""A factor as a function of `(step, steps)`."""


@dataclass(frozen=True)
class Reached:
    """Early stopping: a seed has learned enough once the watched number reaches a value.

    A seed keeps the weights with its highest watched number up to then, the earliest of them if several are equal. It
    stays in its stack until all seeds of the stack have reached the value, and its weights are no longer affected.

    Attributes:
        value: of the watched number.
        every: steps between two looks.
    """

    value: float
    every: int = 100

    def __post_init__(self) -> None:
        _checks.settle(self, value=_checks.finite(self.value, "value"), every=_checks.count(self.every, "every"))


@dataclass(frozen=True, repr=False)
class Recipe:
    """How long, how fast and with which arithmetic to train.

    The repr names the fields that differ from their defaults, so a new field leaves the names of old runs alone.

    Attributes:
        steps: optimiser steps; with 0 the encoder stays as it was built, a baseline without training.
        batch: rows in each step, for each seed.
        lr: Adam's learning rate.
        schedule: factor of the learning rate, a function of `(step, steps)`.
        sharpness: factor of the representation inside the loss, a function of `(step, steps)` that ends at 1, such as
            `Annealed(6.0)`; None leaves the loss as it is given.
        lr_scale: factors for parameters by the last part of their name, for instance `{"bound": 100.0}`; kept as pairs.
        betas: Adam's averaging factors.
        muon: how to update the weights of the encoder's linear layers and convolutions instead of by Adam.
        precision: of the matrix products in the encoder: "float32", or on a GPU "tf32" or "bf16". Weights, losses and
            scores are float32 in any case.
        graph: on a GPU, record a step as a CUDA graph and replay it; an encoder that looks at values needs False.
        together: how many seeds at most are trained as one program; None takes as many as fit into memory.
        until: end before the last step, once the watched number is high enough, and keep the best weights seen on the
            way; None trains all steps and keeps the last weights.
    """

    steps: int
    batch: int = 1024
    lr: float = 1e-3
    schedule: Schedule = Cosine()
    sharpness: Schedule | None = None
    lr_scale: tuple[tuple[str, float], ...] | Mapping[str, float] = ()
    betas: tuple[float, float] = (0.9, 0.999)
    muon: Muon | None = None
    precision: str = "float32"
    graph: bool = True
    together: int | None = None
    until: Reached | None = None

    def __post_init__(self) -> None:
        scales = dict(self.lr_scale or ())
        _checks.settle(
            self,
            steps=_checks.count(self.steps, "steps", least=0),
            batch=_checks.count(self.batch, "batch"),
            lr=_checks.positive(self.lr, "lr"),
            lr_scale=tuple((key, _checks.positive(value, f"lr_scale[{key!r}]")) for key, value in scales.items()),
        )
        if self.together is not None:
            _checks.count(self.together, "together")
        if self.precision not in PRECISIONS:
            raise BadInput(f"`precision` must be one of {', '.join(PRECISIONS)}, but {self.precision!r} came.")

    def __repr__(self) -> str:
        told = ((f.name, getattr(self, f.name)) for f in fields(self) if f.default is MISSING or self._differs(f.name))
        return f"Recipe({', '.join(f'{name}={describe(value)}' for name, value in told)})"

    def _differs(self, name: str) -> bool:
        return bool(getattr(self, name) != type(self).__dataclass_fields__[name].default)

    def on(self, device: torch.device | str) -> Recipe:
        """The same recipe as this device can follow it: a CPU computes in float32."""
        return self if torch.device(device).type == "cuda" else replace(self, precision="float32")


class Settings(TypedDict, total=False):
    """The fields of a recipe by name, for calls that say them one by one."""

    steps: int
    batch: int
    lr: float
    schedule: Schedule
    sharpness: Schedule | None
    lr_scale: tuple[tuple[str, float], ...] | Mapping[str, float]
    betas: tuple[float, float]
    muon: Muon | None
    precision: str
    graph: bool
    together: int | None
    until: Reached | None


def recipe_of(recipe: Recipe | None, settings: Settings) -> Recipe:
    """A recipe with some fields changed, or a new one of these fields."""
    unknown = [name for name in settings if name not in Settings.__annotations__]
    if unknown:
        known = ", ".join(Settings.__annotations__)
        raise TypeError(f"train() has no argument {unknown[0]!r}. How to train is said by {known}.")
    if recipe is not None:
        return replace(recipe, **settings)
    if "steps" not in settings:
        raise BadInput("training needs to know how long: give `steps`, or a Recipe.")
    return Recipe(**settings)
