"""What changes while training: factors as functions of the step and the number of steps."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Constant:
    """Nothing changes."""

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


@dataclass(frozen=True)
class Plateau:
    """The learning rate rises over the first share `warmup` of the steps, stays, and falls to 0 over the last `fall`.

    For losses whose signal is weak against their noise: nearly all steps are taken at a rate that makes progress.
    """

    warmup: float = 0.02
    fall: float = 0.3

    def __call__(self, step: int, steps: int) -> float:
        """The factor at a step."""
        rise, left = self.warmup * steps, self.fall * steps
        return min(1.0, (step + 1) / (rise + 1), (steps - step) / max(left, 1.0))


@dataclass(frozen=True)
class Annealed:
    r"""A factor that begins at `start` and ends at 1, for the `sharpness` of a loss.

    The representation is stretched by this factor inside the loss. Stretching by s is a temperature of $\tau / s^2$
    for dot products and $\tau / s^p$ for the p-th power of a norm. A start below 1 gives a
    smoother loss, which avoids local minima. A start above 1 gives a sharper loss, with larger gradients for rows that
    are near each other and for weak latents.

    Attributes:
        start: factor during the first share `hold` of the steps; from there it moves geometrically.
        hold: share of the steps at the start value.
        until: share of the steps after which the factor is 1.
    """

    start: float
    hold: float = 0.2
    until: float = 0.5

    def __call__(self, step: int, steps: int) -> float:
        """The factor at a step."""
        share = step / steps
        if share >= self.until:
            return 1.0
        return self.start if share < self.hold else self.start ** ((self.until - share) / (self.until - self.hold))
