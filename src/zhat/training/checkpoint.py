"""Everything a later process needs to go on as if nothing had happened, and the file that holds it."""

from __future__ import annotations

import hashlib
import json
import math
import time
from itertools import pairwise
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from zhat._files import make_folder, write_whole
from zhat.errors import BadInput, CorruptRun
from zhat.fresh import describe
from zhat.results import Curve
from zhat.training.stack import Stack
from zhat.training.stream import Process, Stream


class State:
    """Everything that a later process needs to go on as if nothing had happened."""

    def __init__(
        self, stack: Stack, stream: Stream, adam: torch.optim.Adam, steps: int, watch_points: list[int]
    ) -> None:
        self.stack, self.stream, self.adam, self.watch_points = stack, stream, adam, watch_points
        self.done, self.seconds = 0, 0.0
        self.losses = torch.full((steps, stack.size), math.nan)
        self.watched = torch.full((len(watch_points), stack.size), math.nan, dtype=torch.float64)

    def next_watch(self) -> int:
        """The next step after which to watch."""
        return next((point for point in self.watch_points if point > self.done), len(self.losses))

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
                kept = {k: tensors.get(f"adam/{name}/{k}") for k in ("step", "exp_avg", "exp_avg_sq", "momentum")}
                if any(v is not None for v in kept.values()):  # a parameter without a gradient has no moments
                    self.adam.state[parameter] = {k: v.to(device) for k, v in kept.items() if v is not None}
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
        seen = [(p, float(v)) for p, v in zip(self.watch_points, self.watched[:, s], strict=True) if v.isfinite()]
        watched = tuple(p for p, _ in seen), tuple(v for _, v in seen)
        return Curve(tuple(points[1:]), loss, *watched, watch_name if seen else "")


class Keeper:
    """The checkpoint on disk: one file, replaced as a whole."""

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
        write_whole(self.path, lambda draft: save_file(tensors, draft, metadata={"zhat": json.dumps(about)}))
        self.last = time.perf_counter()

    def load_into(self, state: State) -> None:
        """Go on from the file, if there is one."""
        if self.path is None or not self.path.exists():
            return
        try:
            with safe_open(self.path, framework="pt") as file:
                about = json.loads(file.metadata()["zhat"])
                done, seconds, fingerprint = about["done"], about["seconds"], about["fingerprint"]
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
        except (SafetensorError, OSError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise CorruptRun(f"the checkpoint {self.path} cannot be read ({error}). Remove it to start anew.") from None
        if fingerprint != self.fingerprint:
            raise BadInput(
                f"the checkpoint {self.path} belongs to a run with other settings. "
                "Remove it, or choose another checkpoint file."
            )
        state.restore(tensors, done, seconds)


def fingerprint(stack: Stack, worlds: tuple[Process, ...], settings: tuple[object, ...]) -> str:
    """What must be equal for one call to go on from another's checkpoint: settings and initial weights."""
    said = hashlib.sha256(repr((stack.description(), [describe(w) for w in worlds], settings)).encode())
    for name, tensor in (*stack.parameters.items(), *stack.buffers.items()):
        said.update(name.encode())
        said.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return said.hexdigest()
