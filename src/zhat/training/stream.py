"""Rows for every step, drawn a block of steps at a time."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from zhat import randomness
from zhat.dgp.process import Process
from zhat.errors import BadInput

Rows = dict[str, Tensor]
"""The fields of a batch that there are, by name."""
BYTES = 2**28  # bytes of observations that a block holds for each seed, unless a single step needs more


class Stream:
    """Rows for every step, drawn a block of steps at a time from one generator for each seed.

    Attributes:
        shape: of one row of the observations: `(m,)`, or `(channels, height, width)` for images.
        length: steps in a block. Bytes stay bytes here, so a block of images holds four times as many as of floats.
    """

    def __init__(
        self, worlds: tuple[Process, ...], seeds: tuple[int, ...], batch: int, device: torch.device, *, noise: int = 0
    ) -> None:
        self.worlds, self.batch, self.device, self.noise = worlds, batch, device, noise
        self.generators = [randomness.generator(seed, "data", device) for seed in seeds]
        # How many steps fit a block depends on the rows alone, never on the number of seeds: draws must not.
        probe = worlds[0].sample(1, generator=randomness.generator(0, "probe", device)).x
        self.shape = tuple(probe.shape[2:])
        # Rows that are dear on a CPU are made by the thousand on a GPU, where short blocks would have it wait.
        dear = getattr(worlds[0], "rows_at_once", None) if device.type == "cpu" else None
        most = dear or 2**18
        self.length = max(1, min(64, most // batch, BYTES // (batch * probe.numel() * probe.element_size())))
        self.first: int | None = None
        self.before = self._states()  # of the generators, before the present block was drawn
        self.block: Rows | None = None

    def block_end(self, step: int) -> int:
        """The first step after the block that holds `step`."""
        return step - step % self.length + self.length

    def rows(self, step: int) -> Rows:
        """The block that holds `step`, each field `(steps, seeds, …)`."""
        first = step - step % self.length
        if self.block is None or self.first != first:
            self.before, self.block = self._states(), None  # two blocks at once would take twice the memory
            self.block, self.first = self._drawn(), first
        return self.block

    def _drawn(self) -> Rows:
        """The next block; what one seed draws is put into its place before the next one draws."""
        block: Rows = {}
        for i, (world, generator) in enumerate(zip(self.worlds, self.generators, strict=True)):
            rows = self._of_one(world, generator)
            if i == 0:
                block = {k: part.new_empty(len(part), len(self.worlds), *part.shape[1:]) for k, part in rows.items()}
            if {k: part.shape for k, part in rows.items()} != {k: whole[:, i].shape for k, whole in block.items()}:
                raise BadInput(
                    f"the worlds of all seeds must hand over batches of the same kind and shape, but {world!r} "
                    f"differs from {self.worlds[0]!r}. Train them one by one."
                )
            for name, part in rows.items():
                block[name][:, i] = part
        return block

    def _of_one(self, world: Process, generator: torch.Generator) -> Rows:
        """What one seed draws for a block, the axis of rows cut into steps: `(steps, [views,] batch, …)`."""
        n = self.length * self.batch
        batch = world.sample(n, generator=generator)
        if self.noise:
            shape = (batch.x.shape[0], n, self.noise)
            batch = replace(batch, noise=torch.randn(shape, generator=generator, device=self.device))
        found = {name: part for name in ("x", "z", "label", "noise") if (part := getattr(batch, name)) is not None}
        axes = {name: 0 if name == "label" else 1 for name in found}
        return {
            name: part.unflatten(axes[name], (self.length, self.batch)).movedim(axes[name], 0)
            for name, part in found.items()
        }

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
