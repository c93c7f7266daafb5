"""Everything a later process needs to go on as if nothing had happened, and the file that holds it."""

from __future__ import annotations

import hashlib
import json
import math
import time
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from zhat._files import make_folder, write_whole
from zhat.dgp.process import Process
from zhat.errors import BadInput, CorruptRun
from zhat.files.reading import read_bytes
from zhat.files.sealed import sealed, unsealed
from zhat.fresh import describe
from zhat.results import Curve
from zhat.training.recipe import Reached
from zhat.training.stack import Stack
from zhat.training.stream import Stream

MOMENTS = ("step", "exp_avg", "exp_avg_sq", "momentum")  # what optimisers keep of a parameter


class State:
    """Everything that a later process needs to go on as if nothing had happened."""

    def __init__(
        self,
        stack: Stack,
        stream: Stream,
        adam: torch.optim.Adam,
        steps: int,
        watch_points: list[int],
        until: Reached | None = None,
    ) -> None:
        self.stack, self.stream, self.adam, self.watch_points, self.until = stack, stream, adam, watch_points, until
        self.done, self.seconds = 0, 0.0
        self.losses = torch.full((steps, stack.size), math.nan)
        self.watched = torch.full((len(watch_points), stack.size), math.nan, dtype=torch.float64)
        # Of each seed, the weights with the highest watched number so far; before the first look, the initial ones.
        self.best = {} if until is None else {name: tensor.detach().clone() for name, tensor in self._weights().items()}

    def next_watch(self) -> int:
        """The next step after which to watch."""
        return next((point for point in self.watch_points if point > self.done), len(self.losses))

    def watch(self, values: list[float]) -> None:
        """Record the watched values after the present step; where one is higher than ever, keep the weights."""
        before, found = self._highest(), torch.tensor(values, dtype=torch.float64)
        self.watched[self.watch_points.index(self.done)] = found
        if self.until is None:
            return
        better = (found > before) & (before < self.until.value)
        for name, tensor in self._weights().items():
            for s in better.nonzero().flatten().tolist():
                self.best[name][s] = tensor[s].detach()

    @property
    def enough(self) -> bool:
        """Whether every seed has reached what it is trained until."""
        return self.until is not None and bool((self._highest() >= self.until.value).all())

    def take_best(self) -> None:
        """Give every seed the weights that were kept for it."""
        with torch.no_grad():
            for name, tensor in self.best.items():
                self._weights()[name].copy_(tensor)

    def _highest(self) -> Tensor:
        """The highest watched number of each seed so far."""
        lowest = torch.full((1, self.stack.size), -math.inf, dtype=torch.float64)
        return torch.cat([lowest, self.watched.nan_to_num(-math.inf)]).amax(0)

    def _weights(self) -> dict[str, Tensor]:
        weights = {f"parameter/{name}": tensor for name, tensor in self.stack.parameters.items()}
        return weights | {f"buffer/{name}": tensor for name, tensor in self.stack.buffers.items()}

    def tensors(self) -> dict[str, Tensor]:
        """The state as named tensors."""
        out = {name: tensor.detach() for name, tensor in self._weights().items()}
        out |= {f"best/{name}": tensor for name, tensor in self.best.items()}
        for name, parameter in self.stack.parameters.items():
            out |= {f"adam/{name}/{k}": v for k, v in self.adam.state[parameter].items()}
        out |= {f"generator/{i}": s for i, s in enumerate(self.stream.states_for(self.done))}
        return out | {"losses": self.losses[: self.done], "watched": self.watched}

    def misfit(self, tensors: dict[str, Tensor], done: object, seconds: object) -> str:
        """What of a kept state does not fit this one; empty where everything does."""
        if type(done) is not int or not 0 <= done <= len(self.losses) or type(seconds) is not float:
            return f"it speaks of step {done!r} of {len(self.losses)} after {seconds!r} seconds"
        like = {f"parameter/{k}": v for k, v in self.stack.parameters.items()}
        for name, parameter in self.stack.parameters.items():
            kept = {k: f"adam/{name}/{k}" for k in MOMENTS if f"adam/{name}/{k}" in tensors}
            like |= {key: torch.zeros((), dtype=torch.float32) if k == "step" else parameter for k, key in kept.items()}
        like |= {f"buffer/{k}": v for k, v in self.stack.buffers.items()}
        like |= {f"generator/{i}": s for i, s in enumerate(self.stream.states_for(self.done))}
        like |= {"losses": self.losses[:done], "watched": self.watched}
        like |= {f"best/{name}": tensor for name, tensor in self.best.items()}
        if odd := sorted(like.keys() ^ tensors.keys()):
            return f"{odd[0]} is {'missing' if odd[0] in like else 'not part of the run'}"
        kinds = {k: ((v.dtype, *v.shape), (tensors[k].dtype, *tensors[k].shape)) for k, v in like.items()}
        return next((f"{k} is {came}, not {wanted}" for k, (wanted, came) in kinds.items() if came != wanted), "")

    def restore(self, tensors: dict[str, Tensor], done: int, seconds: float) -> None:
        """Take over a state that fits."""
        with torch.no_grad():
            for name, parameter in self.stack.parameters.items():
                parameter.copy_(tensors[f"parameter/{name}"])
                device = parameter.device
                kept = {k: tensors.get(f"adam/{name}/{k}") for k in MOMENTS}
                if any(v is not None for v in kept.values()):  # a parameter without a gradient has no moments
                    self.adam.state[parameter] = {k: v.to(device) for k, v in kept.items() if v is not None}
            for name, buffer in self.stack.buffers.items():
                buffer.copy_(tensors[f"buffer/{name}"])
        self.stream.restore([tensors[f"generator/{i}"] for i in range(self.stack.size)])
        self.done, self.seconds = done, seconds
        self.losses[:done] = tensors["losses"]
        self.watched[:] = tensors["watched"]
        for name, tensor in self.best.items():
            tensor.copy_(tensors[f"best/{name}"])

    def curve(self, s: int, watch_name: str) -> Curve:
        """The losses of one seed, averaged into at most 200 points."""
        points = torch.linspace(0, self.done, min(200, self.done) + 1).round().long().tolist()
        loss = tuple(float(self.losses[a:b, s].mean()) for a, b in pairwise(points))
        seen = [(p, float(v)) for p, v in zip(self.watch_points, self.watched[:, s], strict=True) if v.isfinite()]
        watched = tuple(p for p, _ in seen), tuple(v for _, v in seen)
        return Curve(tuple(points[1:]), loss, *watched, watch_name if seen else "")


class Keeper:
    """The checkpoint on disk: one safetensors file with a checksum in its header, replaced as a whole."""

    def __init__(self, path: Path | str | None, every: float, fingerprint: str) -> None:
        self.path = None if path is None else Path(path)
        if self.path is not None:
            make_folder(self.path.parent)
        self.every, self.fingerprint = every, fingerprint
        self.last = time.perf_counter()

    @property
    def hint(self) -> str:
        """What to tell who interrupted."""
        return "nothing was kept" if self.path is None else f"start again to go on from {self.path}"

    def keep(self, state: State, *, now: bool) -> None:
        """Write the state if it is time."""
        if self.path is None or not (now or time.perf_counter() - self.last > self.every):
            return
        about = {"done": state.done, "seconds": state.seconds, "fingerprint": self.fingerprint}
        tensors = {k: v.detach().cpu().contiguous() for k, v in state.tensors().items()}
        write_whole(self.path, sealed(tensors, {"zhat": json.dumps(about)}))
        self.last = time.perf_counter()

    def load_into(self, state: State) -> None:
        """Go on from the file, if there is one; nothing is taken from a damaged one."""
        if self.path is None or not self.path.exists():
            return
        try:
            tensors, said = unsealed(read_bytes(self.path, "be a checkpoint"))
        except ValueError as error:
            raise self._damaged(str(error).rstrip(".")) from None
        try:
            about = json.loads(said["zhat"])
            done, seconds, fingerprint = about["done"], about["seconds"], about["fingerprint"]
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged(f"it is not what zhat writes ({error!r})") from None
        if fingerprint != self.fingerprint:
            raise BadInput(
                f"the checkpoint {self.path} belongs to a run with other settings. "
                "Remove it, or choose another checkpoint file."
            )
        if wrong := state.misfit(tensors, done, seconds):
            raise self._damaged(wrong)
        state.restore(tensors, done, seconds)

    def _damaged(self, why: str) -> CorruptRun:
        return CorruptRun(f"the checkpoint {self.path} is damaged: {why}. Remove it to train from the beginning.")


def fingerprint(stack: Stack, worlds: tuple[Process, ...], settings: tuple[object, ...]) -> str:
    """What must be equal for one call to go on from another's checkpoint: settings and initial weights."""
    said = hashlib.sha256(repr((stack.description(), [describe(w) for w in worlds], settings)).encode())
    for name, tensor in (*stack.parameters.items(), *stack.buffers.items()):
        said.update(name.encode())
        said.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return said.hexdigest()
