"""One loop: all seeds of a run are one program.

Parameters of all seeds are stacked on a leading axis and updated by one optimiser step; seeds stay independent, so
seed 3 alone gives what seed 3 gives in a stack (to rounding). Rows are drawn for a block of steps at a time, on the
device; nothing inside a block waits for the host.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import torch
from torch import Tensor, nn

from zhat import _checks
from zhat.errors import BadInput, Diverged
from zhat.fresh import Fresh, describe
from zhat.results import Curve
from zhat.training.checkpoint import Keeper, State, fingerprint
from zhat.training.optimisers import Muon, make_optimiser
from zhat.training.schedules import Cosine
from zhat.training.stack import Objective, Stack
from zhat.training.step import make_step
from zhat.training.stream import Process, Stream

Watch = Callable[[int, nn.Module], float]


@dataclass(frozen=True, eq=False)
class Run:
    """What training returns: the trained encoders and how they got there, one entry for each seed."""

    seeds: tuple[int, ...]
    encoders: tuple[nn.Module, ...]
    objectives: tuple[Objective, ...]
    curves: tuple[Curve, ...]
    steps: int
    seconds: float

    @property
    def encoder(self) -> nn.Module:
        """The encoder of a run with one seed."""
        if len(self.encoders) != 1:
            raise BadInput(f"this run holds {len(self.encoders)} encoders; take one from `encoders`.")
        return self.encoders[0]


def train(
    encoder: nn.Module | Callable[[], nn.Module],
    world: Process | Sequence[Process],
    objective: Objective | Fresh,
    *,
    steps: int,
    batch: int = 1024,
    lr: float = 1e-3,
    schedule: Callable[[int, int], float] = Cosine(),
    sharpness: Callable[[int, int], float] | None = None,
    lr_scale: Mapping[str, float] | None = None,
    betas: tuple[float, float] = (0.9, 0.999),
    muon: Muon | None = None,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    device: torch.device | str = "cpu",
    precision: str = "float32",
    graph: bool = True,
    checkpoint: Path | str | None = None,
    checkpoint_every: float = 60.0,
    watch: Watch | None = None,
    watch_every: int | None = None,
    watch_name: str = "watched",
    progress: Callable[[int, int, float], None] | None = None,
) -> Run:
    """Minimise `objective` over draws from `world` with Adam, for all seeds at once.

    Args:
        encoder: a module `(rows, m) -> (rows, k)`, left untouched; or something that makes one when called, such as
            `Fresh(mlp, 10, 10)`, which is needed for several seeds.
        world: a process for all seeds, or one for each seed.
        objective: a callable `(h, batch) -> scalar` with `h` of shape `(views, n, k)`; an `nn.Module` if it owns
            parameters, or a `Fresh` one to make it anew for each seed.
        steps: optimiser steps.
        batch: rows in each step, for each seed.
        lr: Adam's learning rate.
        schedule: factor of the learning rate, a function of `(step, steps)`.
        sharpness: factor of the representation inside the loss, a function of `(step, steps)` that ends at 1, such as
            `Annealed(6.0)`; None leaves the loss as it is given.
        lr_scale: factors for parameters by the last part of their name, for instance `{"bound": 100.0}`.
        betas: Adam's averaging factors.
        muon: how to update the weights of the encoder's linear layers instead of by Adam.
        seed: of initial weights and of draws.
        seeds: several seeds, trained together; overrides `seed`.
        device: where to train.
        precision: of the matrix products in the encoder: "float32", or on a GPU "tf32" or "bf16". Weights, losses and
            scores are float32 in any case.
        graph: on a GPU, record a step as a CUDA graph and replay it; an encoder that looks at values needs False.
        checkpoint: a file that is kept up to date while training, and from which a later call with the same
            arguments goes on, with the same result; at once, if training had ended. Remove it when you have
            put the result where it belongs.
        checkpoint_every: seconds between updates of that file.
        watch: called with `(position of the seed, encoder)` now and then; its value becomes part of the curve.
        watch_every: steps between calls of `watch`.
        watch_name: what the watched value is called in the curve.
        progress: called with `(steps done, steps, mean loss)` now and then.

    Returns:
        The trained encoders, one for each seed, with their curves.

    Raises:
        Diverged: if a loss is no longer a finite number.
        KeyboardInterrupt: after Ctrl-C, when the step in progress is done and the checkpoint written.
    """
    _checks.count(steps, "steps")
    _checks.count(batch, "batch")
    _checks.positive(lr, "lr")
    chosen = (seed,) if seeds is None else tuple(seeds)
    if not chosen or len(set(chosen)) != len(chosen):
        raise BadInput(f"`seeds` must be different whole numbers, but {chosen} came.")
    worlds = tuple(world) if isinstance(world, Sequence) else (world,) * len(chosen)
    if len(worlds) != len(chosen):
        raise BadInput(f"`world` holds {len(worlds)} processes for {len(chosen)} seeds. Give one, or one for each.")
    device = _checks.device(device)
    with _interruptible() as interrupted:
        stack = Stack(encoder, objective, chosen, device)
        _refuse_labels(worlds, stack.labels)
        stream = Stream(worlds, chosen, batch, device)
        stack.refuse_width(stream.width)
        adam = make_optimiser(
            stack.parameters, lr, betas, lr_scale or {}, device, muon, () if muon is None else stack.linear_weights()
        )
        step = make_step(stack, stream, adam, device, precision, graph)
        state = State(stack, stream, adam, steps, _watch_points(steps, watch, watch_every))
        points = state.watch_points
        schedules = describe(schedule), describe(sharpness)
        told = () if muon is None else (muon,)
        settings = (chosen, steps, batch, lr, schedules, lr_scale, betas, precision, device.type, points, *told)
        keeper = Keeper(checkpoint, checkpoint_every, fingerprint(stack, worlds, settings))
        keeper.load_into(state)
        started = time.perf_counter()
        chunk = 1
        while state.done < steps:
            stop = min(steps, stream.block_end(state.done), state.next_watch(), state.done + chunk)
            rates = [schedule(i, steps) for i in range(state.done, stop)]
            sharp = None if sharpness is None else [sharpness(i, steps) for i in range(state.done, stop)]
            state.losses[state.done : stop] = step.run(state.done, rates, sharp)  # the one wait for the device
            _refuse_divergence(state.losses, state.done, stop, chosen)
            now = time.perf_counter()
            chunk = max(1, min(64, int(chunk * 2 if now - started < 0.2 else len(rates) / (now - started))))
            state.done = stop
            if watch is not None and stop in state.watch_points:
                state.watch([watch(i, model) for i, model in enumerate(stack.encoders())])
            state.seconds += time.perf_counter() - started
            started = time.perf_counter()
            if progress is not None:
                progress(stop, steps, float(state.losses[stop - 1].mean()))
            keeper.keep(state, now=bool(interrupted) or stop == steps)
            if interrupted:
                raise KeyboardInterrupt(keeper.hint)
    curves = tuple(state.curve(s, watch_name) for s in range(len(chosen)))
    return Run(chosen, stack.encoders(), stack.objectives(), curves, steps, state.seconds)


def _refuse_labels(worlds: tuple[Process, ...], rows: int | None) -> None:
    """Say here what a GPU would only say by giving up: a label without a row in the head."""
    labels = max((getattr(world, "labels", None) or 0 for world in worlds), default=0)
    if rows is not None and labels > rows:
        raise BadInput(
            f"the objective's head has {rows} rows, but the process hands over {labels} different labels. "
            f"Give the objective labels={labels}."
        )


def _watch_points(steps: int, watch: Watch | None, every: int | None) -> list[int]:
    if watch is None:
        return []
    every = max(1, steps // 20) if every is None else _checks.count(every, "watch_every")
    return sorted({*range(every, steps, every), steps})


def _refuse_divergence(losses: Tensor, start: int, stop: int, seeds: tuple[int, ...]) -> None:
    bad = ~torch.isfinite(losses[start:stop])
    if not bool(bad.any()):
        return
    step, s = (int(i) for i in bad.nonzero()[0])
    step += start
    before = f"after {losses[step - 1, s]:.4g} one step earlier" if step else "at the very first step"
    raise Diverged(
        f"the loss of seed {seeds[s]} became {losses[step, s].item()} at step {step}, {before}. "
        "Lower the learning rate, or look for infinite values in the observations."
    )


@contextmanager
def _interruptible() -> Iterator[list[bool]]:
    """A list that is non-empty once Ctrl-C was pressed; a second Ctrl-C interrupts at once."""
    pressed: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed  # signals reach the main thread only
        return

    def remember(number: int, frame: FrameType | None) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(True)

    previous = signal.signal(signal.SIGINT, remember)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, previous)
