"""One loop: all seeds of a run are one program.

Parameters of all seeds are stacked on a leading axis and updated by one optimiser step; seeds stay independent, so
seed 3 alone gives what seed 3 gives in a stack (to rounding). Rows are drawn for a block of steps at a time, on the
device; nothing inside a block waits for the host.
"""

from __future__ import annotations

import copy
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from zhat import _checks, randomness
from zhat.dgp.batch import Batch
from zhat.errors import BadInput, CorruptRun, Diverged
from zhat.fresh import Fresh
from zhat.results import Curve


class Process(Protocol):
    """What training asks of a world."""

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` rows of every view, on the generator's device."""


Objective = Callable[[Tensor, Batch], Tensor]
Watch = Callable[[int, nn.Module], float]


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
    lr_scale: Mapping[str, float] | None = None,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    device: torch.device | str = "cpu",
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
        lr_scale: factors for parameters by the last part of their name, for instance `{"bound": 100.0}`.
        seed: of initial weights and of draws.
        seeds: several seeds, trained together; overrides `seed`.
        device: where to train.
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
    device = torch.device(device)
    with _interruptible() as interrupted:
        stack = _Stack(encoder, objective, chosen, device)
        stream = _Stream(worlds, chosen, batch, device)
        adam = _adam(stack.parameters, lr, lr_scale or {})
        step = _Step(stack, stream, adam)
        state = _State(stack, stream, adam, steps, _watch_points(steps, watch, watch_every))
        settings = (steps, batch, lr, schedule, lr_scale, device.type)
        keeper = _Keeper(checkpoint, checkpoint_every, _fingerprint(stack, worlds, settings))
        keeper.load_into(state)
        started = time.perf_counter()
        while state.done < steps:
            stop = min(steps, stream.block_end(state.done), state.next_watch(), state.done + 64)
            rates = [schedule(i, steps) for i in range(state.done, stop)]
            losses = step.run(state.done, rates)
            state.losses[state.done : stop] = losses.cpu()  # the one wait for the device
            _refuse_divergence(state.losses, state.done, stop, chosen)
            state.done = stop
            if watch is not None and stop == state.next_watch():
                state.watch([watch(i, model) for i, model in enumerate(stack.encoders())])
            state.seconds += time.perf_counter() - started
            started = time.perf_counter()
            if progress is not None:
                progress(stop, steps, float(state.losses[stop - 1].mean()))
            keeper.keep(state, now=bool(interrupted) or stop == steps)
            if interrupted and stop < steps:
                raise KeyboardInterrupt(keeper.hint)
    curves = tuple(state.curve(s, watch_name) for s in range(len(chosen)))
    return Run(chosen, stack.encoders(), stack.objectives(), curves, steps, state.seconds)


class _Stack:
    """Encoders and objectives of all seeds, their tensors stacked on a leading axis."""

    def __init__(
        self,
        encoder: nn.Module | Callable[[], nn.Module],
        objective: Objective | Fresh,
        seeds: tuple[int, ...],
        device: torch.device,
    ) -> None:
        if isinstance(encoder, nn.Module) and len(seeds) > 1:
            raise BadInput(
                f"{len(seeds)} seeds need {len(seeds)} encoders with weights of their own, but one module came. "
                "Pass something that makes one, such as Fresh(mlp, 10, 10)."
            )
        self._modules: list[nn.ModuleDict] = []
        self._objective = objective
        for seed in seeds:
            made = copy.deepcopy(encoder) if isinstance(encoder, nn.Module) else _make(encoder, seed, "encoder")
            parts = nn.ModuleDict({"encoder": made})
            judge = _make(objective, seed, "objective") if isinstance(objective, Fresh) else objective
            if isinstance(judge, nn.Module):
                parts["objective"] = judge if isinstance(objective, Fresh) else copy.deepcopy(judge)
            else:
                self._objective = judge
            self._modules.append(parts.to(device).train())
        self.size = len(seeds)
        # One seed needs no stacking, so modules that cannot be stacked still train one at a time.
        self.parameters, self.buffers = stack_module_state(list(self._modules))
        if not self.parameters:
            raise BadInput("the encoder has no parameters, so there is nothing to train.")
        self._template = copy.deepcopy(self._modules[0]).to("meta")

    def losses(self, x: Tensor, z: Tensor | None, label: Tensor | None) -> Tensor:
        """One loss for each seed, from rows stacked on a leading axis."""
        tensors = {"x": x} | ({} if z is None else {"z": z}) | ({} if label is None else {"label": label})
        if self.size == 1:
            first = ({k: v[0] for k, v in part.items()} for part in (self.parameters, self.buffers, tensors))
            return self._loss(*first)[None]
        return vmap(self._loss, randomness="different")(self.parameters, self.buffers, tensors)

    def _loss(self, parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor], rows: dict[str, Tensor]) -> Tensor:
        batch = Batch(**rows)
        state = dict(parameters) | dict(buffers)
        views, n = batch.x.shape[:2]
        h = functional_call(self._template["encoder"], _under(state, "encoder."), (batch.x.flatten(0, 1),))
        h = h.reshape(views, n, *h.shape[1:])
        if "objective" in self._template:
            loss = functional_call(self._template["objective"], _under(state, "objective."), (h, batch))
        else:
            loss = self._objective(h, batch)  # type: ignore[call-arg]
        if loss.ndim != 0:
            raise BadInput(f"an objective returns one number, but a tensor of shape {tuple(loss.shape)} came.")
        return loss  # type: ignore[no-any-return]

    def _filled(self) -> list[nn.ModuleDict]:
        with torch.no_grad():
            for s, module in enumerate(self._modules):
                for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
                    source = self.parameters if name in self.parameters else self.buffers
                    tensor.copy_(source[name][s])
        return self._modules

    def encoders(self) -> tuple[nn.Module, ...]:
        """The encoders with their present weights, in evaluation mode."""
        return tuple(parts["encoder"].eval() for parts in self._filled())

    def objectives(self) -> tuple[Objective, ...]:
        """The objectives with their present weights."""
        if "objective" in self._template:
            return tuple(parts["objective"].eval() for parts in self._filled())
        return (self._objective,) * self.size  # type: ignore[return-value]

    def description(self) -> str:
        """What is trained, as text."""
        return f"{self._template}\n{self._objective!r}"


def _make(factory: Callable[[], Any], seed: int, stream: str) -> Any:
    return randomness.build(factory, seed, stream)


def _under(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)}


class _Stream:
    """Rows for every step, drawn a block of steps at a time from one generator for each seed."""

    def __init__(self, worlds: tuple[Process, ...], seeds: tuple[int, ...], batch: int, device: torch.device) -> None:
        self.worlds, self.batch, self.device = worlds, batch, device
        self.generators = [randomness.generator(seed, "data", device) for seed in seeds]
        # How many steps fit a block depends on the rows alone, never on the number of seeds: draws must not.
        probe = worlds[0].sample(1, generator=randomness.generator(0, "probe", device)).x.numel()
        self.length = max(1, min(64, 2**18 // batch, 2**26 // (batch * probe)))
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


class _Step:
    """Forward, backward and update for a run of steps."""

    def __init__(self, stack: _Stack, stream: _Stream, adam: torch.optim.Adam) -> None:
        self.stack, self.stream, self.adam = stack, stream, adam
        self.base = [float(group["lr"]) for group in adam.param_groups]

    def run(self, first: int, rates: list[float]) -> Tensor:
        """Losses of the steps `first, first + 1, …`, `(steps, seeds)`, still on the device."""
        block = self.stream.rows(first)
        offset = first % self.stream.length
        losses = []
        for i, rate in enumerate(rates):
            for group, base in zip(self.adam.param_groups, self.base, strict=True):
                group["lr"] = base * rate
            x, z, label = (None if part is None else part[offset + i] for part in block)
            loss = self.stack.losses(x, z, label)  # type: ignore[arg-type]
            self.adam.zero_grad()
            loss.sum().backward()
            self.adam.step()
            losses.append(loss.detach())
        return torch.stack(losses)


def _adam(parameters: Mapping[str, Tensor], lr: float, scales: Mapping[str, float]) -> torch.optim.Adam:
    last = {name.rsplit(".", 1)[-1] for name in parameters}
    for key, factor in scales.items():
        _checks.positive(factor, f"lr_scale[{key!r}]")
        if key not in last:
            raise BadInput(f"`lr_scale` names {key!r}, but the parameters are called {', '.join(sorted(last))}.")
    groups: dict[float, list[Tensor]] = {}
    for name, tensor in parameters.items():
        groups.setdefault(scales.get(name.rsplit(".", 1)[-1], 1.0), []).append(tensor)
    return torch.optim.Adam([{"params": p, "lr": lr * factor} for factor, p in groups.items()], fused=True)


def _watch_points(steps: int, watch: Watch | None, every: int | None) -> list[int]:
    if watch is None:
        return []
    every = max(1, steps // 20) if every is None else _checks.count(every, "watch_every")
    return sorted({*range(every, steps, every), steps})


class _State:
    """Everything that a later process needs to go on as if nothing had happened."""

    def __init__(
        self, stack: _Stack, stream: _Stream, adam: torch.optim.Adam, steps: int, watch_points: list[int]
    ) -> None:
        self.stack, self.stream, self.adam, self.watch_points = stack, stream, adam, watch_points
        self.done, self.seconds = 0, 0.0
        self.losses = torch.full((steps, stack.size), math.nan)
        self.watched = torch.full((len(watch_points), stack.size), math.nan, dtype=torch.float64)

    def next_watch(self) -> int:
        """The next step after which to watch."""
        return next((p for i, p in enumerate(self.watch_points) if self.watched[i, 0].isnan()), len(self.losses))

    def watch(self, values: list[float]) -> None:
        """Record the watched values after the present step."""
        self.watched[self.watch_points.index(self.done)] = torch.tensor(values, dtype=torch.float64)

    def tensors(self) -> dict[str, Tensor]:
        """The state as named tensors."""
        out = {f"parameter/{k}": v.detach() for k, v in self.stack.parameters.items()}
        out |= {f"buffer/{k}": v for k, v in self.stack.buffers.items()}
        for name, parameter in self.stack.parameters.items():
            out |= {f"adam/{name}/{k}": v for k, v in self.adam.state[parameter].items()}
        out |= {f"generator/{i}": s for i, s in enumerate(self.stream.states_for(self.done))}
        return out | {"losses": self.losses[: self.done], "watched": self.watched}

    def restore(self, tensors: dict[str, Tensor], done: int, seconds: float) -> None:
        """Take over a state."""
        with torch.no_grad():
            for name, parameter in self.stack.parameters.items():
                parameter.copy_(tensors[f"parameter/{name}"])
                device = parameter.device
                self.adam.state[parameter] = {
                    key: tensors[f"adam/{name}/{key}"].to(device) for key in ("step", "exp_avg", "exp_avg_sq")
                }
            for name, buffer in self.stack.buffers.items():
                buffer.copy_(tensors[f"buffer/{name}"])
        self.stream.restore([tensors[f"generator/{i}"] for i in range(self.stack.size)])
        self.done, self.seconds = done, seconds
        self.losses[:done] = tensors["losses"]
        self.watched[:] = tensors["watched"]

    def curve(self, s: int, watch_name: str) -> Curve:
        """The losses of one seed, averaged into at most 200 points."""
        points = torch.linspace(0, self.done, min(200, self.done) + 1).round().long().tolist()
        loss = tuple(float(self.losses[a:b, s].mean()) for a, b in pairwise(points))
        seen = tuple(float(v) for v in self.watched[:, s])
        return Curve(tuple(points[1:]), loss, tuple(self.watch_points), seen, watch_name if seen else "")


class _Keeper:
    """The checkpoint on disk: one file, replaced as a whole."""

    def __init__(self, path: Path | str | None, every: float, fingerprint: str) -> None:
        self.path = None if path is None else Path(path)
        self.every, self.fingerprint = every, fingerprint
        self.last = time.perf_counter()

    @property
    def hint(self) -> str:
        """What to tell who interrupted."""
        return "nothing was kept" if self.path is None else f"start again to go on from {self.path}"

    def keep(self, state: _State, *, now: bool) -> None:
        """Write the state if it is time."""
        if self.path is None or not (now or time.perf_counter() - self.last > self.every):
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(self.path.name + ".draft")
        about = {"done": state.done, "seconds": state.seconds, "fingerprint": self.fingerprint}
        tensors = {k: v.detach().cpu().contiguous() for k, v in state.tensors().items()}
        save_file(tensors, draft, metadata={"zhat": json.dumps(about)})
        with open(draft, "rb") as file:
            os.fsync(file.fileno())
        os.replace(draft, self.path)
        self.last = time.perf_counter()

    def load_into(self, state: _State) -> None:
        """Go on from the file, if there is one."""
        if self.path is None or not self.path.exists():
            return
        try:
            with safe_open(self.path, framework="pt") as file:
                about = json.loads(file.metadata()["zhat"])
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
        except (SafetensorError, OSError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise CorruptRun(f"the checkpoint {self.path} cannot be read ({error}). Remove it to start anew.") from None
        if about["fingerprint"] != self.fingerprint:
            raise BadInput(
                f"the checkpoint {self.path} belongs to a run with other settings. "
                "Remove it, or choose another checkpoint file."
            )
        state.restore(tensors, about["done"], about["seconds"])


def _fingerprint(stack: _Stack, worlds: tuple[Process, ...], settings: tuple[object, ...]) -> str:
    shapes = [(name, tuple(t.shape)) for name, t in stack.parameters.items()]
    return repr((stack.description(), worlds, shapes, settings))


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
