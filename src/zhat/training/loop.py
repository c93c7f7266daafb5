"""One loop: all seeds of a run are one program.

Parameters of all seeds are stacked on a leading axis and updated by one optimiser step; seeds stay independent, so
seed 3 alone gives what seed 3 gives in a stack (to rounding). Rows are drawn for a block of steps at a time, on the
device; nothing inside a block waits for the host.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Unpack

import torch
from torch import Tensor, nn

from zhat import _checks
from zhat.dgp.process import Process, refuse_no_process
from zhat.errors import BadInput, Diverged
from zhat.fresh import Fresh
from zhat.objectives import Objective
from zhat.results import Curve
from zhat.training.checkpoint import Keeper, State, fingerprint
from zhat.training.optimisers import make_optimiser
from zhat.training.recipe import Recipe, Settings, recipe_of
from zhat.training.run import Run
from zhat.training.stack import Stack
from zhat.training.step import make_step
from zhat.training.stream import Stream

Watch = Callable[[int, nn.Module, Objective], float]


def train(
    encoder: nn.Module | Callable[[], nn.Module],
    world: Process | Sequence[Process],
    objective: Objective | Fresh,
    recipe: Recipe | None = None,
    *,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    device: torch.device | str = "cpu",
    checkpoint: Path | str | None = None,
    checkpoint_every: float = 60.0,
    watch: Watch | None = None,
    watch_every: int | None = None,
    watch_name: str = "watched",
    progress: Callable[[int, int, float], None] | None = None,
    **settings: Unpack[Settings],
) -> Run:
    """Minimise `objective` over draws from `world` with Adam, for all seeds at once.

    Args:
        encoder: a module `(rows, m) -> (rows, k)`, left untouched; or something that makes one when called, such as
            `Fresh(mlp, 10, 10)`, which is needed for several seeds.
        world: a process for all seeds, or one for each seed.
        objective: a callable `(h, batch) -> scalar` with `h` of shape `(views, n, k)`; an `nn.Module` if it owns
            parameters, or a `Fresh` one to make it anew for each seed.
        recipe: how to train; its fields may also be given one by one, as `steps=600, batch=512, lr=5e-3`, and then
            replace those of the recipe.
        seed: of initial weights and of draws.
        seeds: several seeds, trained together; overrides `seed`.
        device: where to train.
        checkpoint: a file that is kept up to date while training, and from which a later call with the same
            arguments goes on, with the same result; at once, if training had ended. Remove it when you have
            put the result where it belongs.
        checkpoint_every: seconds between updates of that file.
        watch: called with `(position of the seed, encoder, objective)` now and then; its value becomes part of the
            curve. `Recipe(until=Reached(…))` asks it whether to stop.
        watch_every: steps between calls of `watch`; `until` has its own.
        watch_name: what the watched value is called in the curve.
        progress: called with `(steps done, steps, mean loss)` now and then.
        **settings: fields of `Recipe`.

    Returns:
        The trained encoders, one for each seed, with their curves.

    Raises:
        Diverged: if a loss is no longer a finite number.
        KeyboardInterrupt: after Ctrl-C, when the step in progress is done and the checkpoint written.
    """
    how = recipe_of(recipe, settings)
    steps = how.steps
    chosen = (seed,) if seeds is None else tuple(seeds)
    if not chosen or len(set(chosen)) != len(chosen):
        raise BadInput(f"`seeds` must be different whole numbers, but {chosen} came.")
    for each in world if isinstance(world, Sequence) else (world,):
        refuse_no_process(each)
    worlds = tuple(world) if isinstance(world, Sequence) else (world,) * len(chosen)
    if len(worlds) != len(chosen):
        raise BadInput(f"`world` holds {len(worlds)} processes for {len(chosen)} seeds. Give one, or one for each.")
    about = {"process": worlds, "encoder": encoder, "objective": objective, "recipe": how}
    device = _checks.device(device)
    if how.until is not None and watch is None:
        raise BadInput("`until` stops when a watched number is high enough, but nothing is watched. Give `watch`.")
    with _interruptible() as interrupted:
        stack = Stack(encoder, objective, chosen, device)
        _refuse_labels(worlds, stack.labels)
        if steps == 0:
            return Run(chosen, stack.encoders(), stack.objectives(), (Curve((), ()),) * len(chosen), 0, 0.0, about)
        stack.refuse_nothing()
        stream = Stream(worlds, chosen, how.batch, device, noise=stack.noise)
        stack.refuse_shape(stream.shape)
        adam = make_optimiser(stack.parameters, how, device, stack.matrices())
        step = make_step(stack, stream, adam, device, how.precision, how.graph)
        points = _watch_points(steps, watch, watch_every if how.until is None else how.until.every)
        state = State(stack, stream, adam, steps, points, how.until)
        settled = (chosen, replace(how, graph=True, together=None), device.type, state.watch_points)
        keeper = Keeper(checkpoint, checkpoint_every, fingerprint(stack, worlds, settled))
        keeper.load_into(state)
        started = time.perf_counter()
        chunk = 1
        while state.done < steps and not state.enough:
            stop = min(steps, stream.block_end(state.done), state.next_watch(), state.done + chunk)
            rates = [how.schedule(i, steps) for i in range(state.done, stop)]
            sharp = None if how.sharpness is None else [how.sharpness(i, steps) for i in range(state.done, stop)]
            state.losses[state.done : stop] = step.run(state.done, rates, sharp)  # the one wait for the device
            _refuse_divergence(state.losses, state.done, stop, chosen)
            now = time.perf_counter()
            chunk = max(1, min(64, int(chunk * 2 if now - started < 0.2 else len(rates) / (now - started))))
            state.done = stop
            if watch is not None and stop in state.watch_points:
                pairs = enumerate(zip(stack.encoders(), stack.objectives(), strict=True))
                state.watch([watch(i, model, loss) for i, (model, loss) in pairs])
            state.seconds += time.perf_counter() - started
            started = time.perf_counter()
            if progress is not None:
                progress(stop, steps, float(state.losses[stop - 1].mean()))
            keeper.keep(state, now=bool(interrupted) or stop == steps or state.enough)
            if interrupted:
                raise KeyboardInterrupt(keeper.hint)
    curves = tuple(state.curve(s, watch_name) for s in range(len(chosen)))
    state.take_best()
    return Run(chosen, stack.encoders(), stack.objectives(), curves, state.done, state.seconds, about)


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
