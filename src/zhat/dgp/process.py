"""What every world has in common, and how to get another world of the same kind."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol, TypeVar

import torch

from zhat import randomness
from zhat.dgp.batch import Batch
from zhat.errors import BadInput


class Process(Protocol):
    """A world that can be drawn from. Equal processes are equal worlds.

    Three members are required: `views`, `seed` and `sample`. A process may have more, and whoever uses one of these
    asks first whether it is there:

    - `space`: the `Space` in which latents live, or None.
    - `labels`: how many different labels there are; labels are whole numbers from 0 to `labels - 1`.
    - `held_out`: the same process over rows that training never draws, or None. Recorded data is scored on it; a
      simulated world needs none, because its draws are fresh.
    - `plain`: the same rows without augmentation, where training draws augmented ones.
    - `validation`: the same over rows on which training may be watched and stopped, or None.
    - `every(n, device=…)`: batches of at most n rows that hold each recorded row once, in an order that stays.
    - `factors`, `periods`: names of the columns of z, and the period of those that come back to their start.
    - `find()`: raises `MissingData` where recorded data is not there, without reading it.
    - `rows_at_once`: how many rows a CPU draws together at most, where a row is dear, such as a rendered picture.
    - `marginal`, `conditional`, `mixing`: what it is made of, for the theorems of `zhat.theory`.
    """

    @property
    def views(self) -> int:
        """How many observations of each row a batch holds."""

    @property
    def seed(self) -> int:
        """Which world of this kind."""

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` rows of every view, on the generator's device; all draws come from the generator."""


def refuse_no_process(world: Any) -> None:
    """Say in a sentence what is missing where something is drawn from that is no process."""
    if not callable(getattr(world, "sample", None)):
        raise BadInput(
            f"`world` must be a process, which has `sample(n, generator=…)`, but a {type(world).__name__} came. A "
            "Dataset, a DataLoader or an iterable of batches becomes one as zhat.datasets.Loaded(…), an array of rows "
            "as Arrays, NextRow or SameLabel."
        )


P = TypeVar("P")


def reseeded(process: P, seed: int) -> P:
    """Another world of this kind.

    Args:
        process: a process. A dataclass with a field `seed` gets the seed. Everything else is recorded data: it is the
            same world for every seed, and is returned as it is.
        seed: of the other world.

    Example:
        >>> from zhat.dgp import Sectors
        >>> reseeded(Sectors(4), 3) == Sectors(4, seed=3)
        True
    """
    randomness.stream_seed(seed, "world")  # refuses what is not a seed
    if is_dataclass(process) and any(field.name == "seed" for field in fields(process)):
        changed: Any = replace(process, seed=seed)  # type: ignore[type-var]
        return changed  # type: ignore[no-any-return]
    return process
