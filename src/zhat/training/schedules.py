"""How the learning rate changes: a factor as a function of the step and the number of steps."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Constant:
    """The learning rate stays as it is."""

    def __call__(self, step: int, steps: int) -> float:
        """The factor at a step."""
        return 1.0


@dataclass(frozen=True)
class Cosine:
    """The learning rate rises linearly over the first share `warmup` of the steps, then falls along a cosine to 0."""

    warmup: float = 0.02

    def __call__(self, step: int, steps: int) -> float:
        """The factor at a step."""
        rise = self.warmup * steps
        if step < rise:
            return (step + 1) / (rise + 1)
        return 0.5 * (1 + math.cos(math.pi * (step - rise) / (steps - rise)))
