"""Forward, backward and update for a run of steps: plain, or as a CUDA graph that is replayed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from zhat.errors import BadInput, RunFailed
from zhat.training.stack import Stack
from zhat.training.stream import Rows, Stream

PRECISIONS = ("float32", "tf32", "bf16")


def make_step(
    stack: Stack, stream: Stream, adam: torch.optim.Adam, device: torch.device, precision: str, graph: bool
) -> Step | GraphedStep:
    """The right kind of step for a device."""
    if precision not in PRECISIONS:
        raise BadInput(f"`precision` must be one of {', '.join(PRECISIONS)}, but {precision!r} came.")
    if precision != "float32" and device.type != "cuda":
        raise BadInput(f"precision {precision!r} needs a GPU, but the device is {device.type!r}. Use 'float32'.")
    kind = GraphedStep if graph and device.type == "cuda" else Step
    return kind(stack, stream, adam, precision)


class Step:
    """One step after the other, each launched from here."""

    def __init__(self, stack: Stack, stream: Stream, adam: torch.optim.Adam, precision: str) -> None:
        self.stack, self.stream, self.adam, self.precision = stack, stream, adam, precision
        self.base = [float(group["lr"]) for group in adam.param_groups]

    def run(self, first: int, rates: list[float], sharpness: list[float] | None = None) -> Tensor:
        """Losses of the steps `first, first + 1, …`, `(steps, seeds)`."""
        block = self.stream.rows(first)
        offset = first % self.stream.length
        losses = []
        for i, rate in enumerate(rates):
            for group, base in zip(self.adam.param_groups, self.base, strict=True):
                _set_rate(group, base * rate)
            rows = {name: part[offset + i] for name, part in block.items()}
            sharp = None if sharpness is None else torch.tensor(sharpness[i], device=self.stream.device)
            losses.append(self.update(rows, sharp))
        return torch.stack(losses).cpu()

    def update(self, rows: Rows, sharpness: Tensor | None) -> Tensor:
        """Forward, backward and Adam; returns the losses, `(seeds,)`."""
        with _products(self.precision):
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.precision == "bf16", cache_enabled=False):
                loss = self.stack.losses(rows, sharpness)
            for parameter in self.stack.parameters.values():
                parameter.grad = None
            loss.sum().backward()
        self.adam.step()
        return loss.detach()


class GraphedStep(Step):
    """The same step recorded once as a CUDA graph and replayed: nothing is launched or waited for in between.

    Rows of a block, the place in it and the learning rates live in buffers on the device.
    """

    WARM_UP = 3  # steps launched one by one first, so that every workspace exists when the graph is recorded

    def __init__(self, stack: Stack, stream: Stream, adam: torch.optim.Adam, precision: str) -> None:
        super().__init__(stack, stream, adam, precision)
        device = stream.device
        self.side = torch.cuda.Stream(device)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.done = 0
        self.block: Rows = {}
        self.place = torch.zeros(1, dtype=torch.int64, device=device)  # of the step in the block
        self.slot = torch.zeros(1, dtype=torch.int64, device=device)  # of the step in this call
        self.rates = torch.zeros(stream.length, device=device)
        self.sharpness: Tensor | None = None
        self.losses = torch.zeros(stream.length, stack.size, device=device)
        self.bases = [torch.tensor(base, device=device) for base in self.base]

    def run(self, first: int, rates: list[float], sharpness: list[float] | None = None) -> Tensor:
        """Losses of the steps `first, first + 1, …`, `(steps, seeds)`."""
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            drawn = self.stream.rows(first)
            if not self.block:
                self.block = {name: part.clone() for name, part in drawn.items()}
            elif first % self.stream.length == 0:
                for name, ours in self.block.items():
                    ours.copy_(drawn[name])
            self.place.fill_(first % self.stream.length)
            self.slot.zero_()
            self.rates[: len(rates)] = torch.tensor(rates, device=self.rates.device)
            if sharpness is not None:
                if self.sharpness is None:
                    self.sharpness = torch.zeros_like(self.rates)
                self.sharpness[: len(rates)] = torch.tensor(sharpness, device=self.rates.device)
            for _ in rates:
                if self.graph is None and self.done >= self.WARM_UP:
                    self.graph = self._record()
                if self.graph is None:
                    self._one()
                else:
                    self.graph.replay()
                self.done += 1
            out = self.losses[: len(rates)].cpu()
        torch.cuda.current_stream().wait_stream(self.side)
        return out

    def _record(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=self.side):
                self._one()
        except RuntimeError as error:
            raise RunFailed(
                f"this encoder or objective cannot be recorded as a CUDA graph ({str(error).splitlines()[0]}). "
                "Train it with graph=False."
            ) from error
        return graph

    def _one(self) -> None:
        rows = {name: part.index_select(0, self.place)[0] for name, part in self.block.items()}
        rate = self.rates.index_select(0, self.slot)[0]
        for group, base in zip(self.adam.param_groups, self.bases, strict=True):
            torch.mul(base, rate, out=group["lr"])
        sharp = None if self.sharpness is None else self.sharpness.index_select(0, self.slot)[0]
        loss = self.update(rows, sharp)
        self.losses.index_copy_(0, self.slot, loss[None])
        self.place.add_(1)
        self.slot.add_(1)


def _set_rate(group: dict[str, object], rate: float) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(rate)
    else:
        group["lr"] = rate


@contextmanager
def _products(precision: str) -> Iterator[None]:
    """The arithmetic of float32 matrix products and convolutions inside the block."""
    cudnn = torch.backends.cudnn
    before = torch.get_float32_matmul_precision(), cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    cudnn.allow_tf32 = precision == "tf32"  # torch's own default is True
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        cudnn.allow_tf32 = before[1]
