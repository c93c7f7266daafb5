"""How long trainings will take on a machine, from a few measured steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from zhat import _checks
from zhat.errors import BadInput
from zhat.experiment.running import missing, parameters, seconds_per_step
from zhat.experiment.settings import Budget, Part, Row
from zhat.training import Constant

FEW = 100
"""So few steps, of all seeds together, are done before they are measured."""


class Forecast:
    """Training times on one device. A step is measured once for equal networks, losses and recipes.

    Args:
        device: where the training will be.
    """

    def __init__(self, device: torch.device | str) -> None:
        self.device = _checks.device(device)
        self._steps: dict[Any, float | None] = {}

    def seconds(self, row: Row, budget: Budget, seeds: int | None = None) -> float | None:
        """Seconds of training a row: one seed's measured step times the steps of all seeds.

        None where recorded data is not here, infinite where a step is too dear to be measured on a CPU.

        Args:
            row: of a part.
            budget: one of the row's.
            seeds: how many; None takes the budget's number.
        """
        row, recipe = row.under(budget), budget.recipe
        key = (row.encoder, row.objective, replace(recipe, steps=1, schedule=Constant(), sharpness=None))
        if key not in self._steps:
            self._steps[key] = self._step(row, budget)
        step = self._steps[key]
        return None if step is None else float(step * recipe.steps * (budget.seeds if seeds is None else seeds))

    def left(self, part: Part, rows: Sequence[Row], budget: str, seeds: int | None, out: Path) -> float:
        """Seconds until these rows and their references are trained.

        What `out` holds is not counted, nor are rows whose recorded data is not here.

        Args:
            part: of a paper.
            rows: of the part.
            budget: its name.
            seeds: how many; None takes the budget's number.
            out: as in `reproduce`.
        """
        total = 0.0
        for row in part.needed(tuple(rows)):
            how = row.budget(budget)
            absent = len(missing(row, how, range(how.seeds if seeds is None else seeds), out / part.paper / part.name))
            if absent * how.recipe.steps <= FEW:
                continue
            total += self.seconds(row, how, absent) or 0.0
        return total

    def _step(self, row: Row, budget: Budget) -> float | None:
        """Seconds of one step; None without data, infinite where nobody would wait for it."""
        size, batch = parameters(row), budget.recipe.batch
        dear = getattr(row.process, "rows_at_once", None) or batch
        if self.device.type == "cpu" and (size > 2**26 or size * batch > 2**34 or batch > dear):
            return math.inf
        try:
            return seconds_per_step(row, budget, seeds=1, device=self.device)
        except BadInput:
            return None
