"""Rows for every step, drawn a block of steps at a time."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from zhat import randomness
from zhat.dgp.batch import Batch


class Process(Protocol):
    """What training asks of a world."""

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` rows of every view, on the generator's device."""


class Stream:
    """Rows for every step, drawn a block of steps at a time from one generator for each seed."""

    def __init__(self, worlds: tuple[Process, ...], seeds: tuple[int, ...], batch: int, device: torch.device) -> None:
        self.worlds, self.batch, self.device = worlds, batch, device
        self.generators = [randomness.generator(seed, "data", device) for seed in seeds]
        # How many steps fit a block depends on the rows alone, never on the number of seeds: draws must not.
        probe = worlds[0].sample(1, generator=randomness.generator(0, "probe", device)).x
        self.width = probe.shape[-1]
        self.length = max(1, min(64, 2**18 // batch, 2**26 // (batch * probe.numel())))
        self.first: int | None = None
        self.before = self._states()  # of the generators, before the present block was drawn
        self.block: tuple[Tensor, Tensor | None, Tensor | None] | None = None

    def block_end(self, step: int) -> int:
        """The first step after the block that holds `step`."""
        return step - step % self.length + self.length

    def rows(self, step: int) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The block that holds `step`: x, z, label, each `(steps, seeds, …)`."""
        first = step - step % self.length
        if self.block is None or self.first != first:
            self.before = self._states()
            n = self.length * self.batch
            drawn = [w.sample(n, generator=g) for w, g in zip(self.worlds, self.generators, strict=True)]
            x = self._by_step([b.x for b in drawn], axis=1)
            z = self._by_step([b.z for b in drawn], axis=1) if drawn[0].z is not None else None
            label = self._by_step([b.label for b in drawn], axis=0) if drawn[0].label is not None else None
            self.block, self.first = (x, z, label), first
        return self.block

    def _by_step(self, parts: list[Any], axis: int) -> Tensor:
        """Stack the seeds and move the step in front: `(steps, seeds, [views,] batch, …)`."""
        stacked = torch.stack([part.unflatten(axis, (self.length, self.batch)) for part in parts])
        return stacked.movedim(axis + 1, 0).contiguous()

    def states_for(self, step: int) -> list[Tensor]:
        """The generator states from which the block that holds `step` is, or will be, drawn."""
        return self.before if self.first == step - step % self.length else self._states()

    def _states(self) -> list[Tensor]:
        return [g.get_state() for g in self.generators]

    def restore(self, states: list[Tensor]) -> None:
        """Go back to the generator states from which the present block is to be drawn."""
        for generator, state in zip(self.generators, states, strict=True):
            generator.set_state(state)
        self.block = None
