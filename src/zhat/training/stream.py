"""Rows for every step, drawn a block of steps at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from zhat import randomness
from zhat.dgp.process import Process
from zhat.errors import BadInput

Rows = tuple[Tensor, Tensor | None, Tensor | None]
BYTES = 2**28  # bytes of observations that a block holds for each seed, unless a single step needs more


class Stream:
    """Rows for every step, drawn a block of steps at a time from one generator for each seed.

    Attributes:
        shape: of one row of the observations: `(m,)`, or `(channels, height, width)` for images.
        length: steps in a block. Bytes stay bytes here, so a block of images holds four times as many as of floats.
    """

    def __init__(self, worlds: tuple[Process, ...], seeds: tuple[int, ...], batch: int, device: torch.device) -> None:
        self.worlds, self.batch, self.device = worlds, batch, device
        self.generators = [randomness.generator(seed, "data", device) for seed in seeds]
        # How many steps fit a block depends on the rows alone, never on the number of seeds: draws must not.
        probe = worlds[0].sample(1, generator=randomness.generator(0, "probe", device)).x
        self.shape = tuple(probe.shape[2:])
        self.length = max(1, min(64, 2**18 // batch, BYTES // (batch * probe.numel() * probe.element_size())))
        self.first: int | None = None
        self.before = self._states()  # of the generators, before the present block was drawn
        self.block: Rows | None = None

    def block_end(self, step: int) -> int:
        """The first step after the block that holds `step`."""
        return step - step % self.length + self.length

    def rows(self, step: int) -> Rows:
        """The block that holds `step`: x, z, label, each `(steps, seeds, …)`."""
        first = step - step % self.length
        if self.block is None or self.first != first:
            self.before, self.block = self._states(), None  # two blocks at once would take twice the memory
            self.block, self.first = self._drawn(), first
        return self.block

    def _drawn(self) -> Rows:
        """The next block; what one seed draws is put into its place before the next one draws."""
        block: list[Tensor | None] = []
        for i, (world, generator) in enumerate(zip(self.worlds, self.generators, strict=True)):
            batch = world.sample(self.length * self.batch, generator=generator)
            parts = [self._by_step(batch.x, 1), self._by_step(batch.z, 1), self._by_step(batch.label, 0)]
            if i == 0:
                block = [None if p is None else p.new_empty(len(p), len(self.worlds), *p.shape[1:]) for p in parts]
            for whole, part in zip(block, parts, strict=True):
                if (None if whole is None else whole[:, i].shape) != (None if part is None else part.shape):
                    raise BadInput(
                        f"the worlds of all seeds must hand over batches of the same kind and shape, but {world!r} "
                        f"differs from {self.worlds[0]!r}. Train them one by one."
                    )
                if whole is not None and part is not None:
                    whole[:, i] = part
        x, z, label = block
        assert x is not None, "every batch has observations"
        return x, z, label

    def _by_step(self, part: Tensor | None, axis: int) -> Tensor | None:
        """The axis of rows cut into steps, which come first: `(steps, [views,] batch, …)`."""
        return None if part is None else part.unflatten(axis, (self.length, self.batch)).movedim(axis, 0)

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
