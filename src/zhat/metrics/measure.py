"""The contract of a metric: what a table can print as its score."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from zhat.equivalence import Equivalence
from zhat.results import Score


class Measure(Protocol):
    """A score of two representations of the same rows.

    Two members are required. A measure may have two more, and whoever uses one of these asks first whether it is there:

    - `held_out(z, h) -> Score`: the same score with everything that is fitted read on other rows.
    - `plain(z, h) -> Score`: the same value without interval and chance level, for a mean over many batches.

    `Recovery` and the similarities (`CCA`, `CKA`, …) are measures; so is any callable of yours with these members.
    """

    @property
    def up_to(self) -> Equivalence:
        """The class of maps of `h` that leave the score as it is."""

    def __call__(self, z: Tensor, h: Tensor) -> Score:
        """The score of `h`, `(n, k)`, against `z`, `(n, d)`."""
