"""A training step never waits for its own numbers: a GPU would stand still, and no CUDA graph could be recorded."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from zhat.dgp import reseeded
from zhat.papers import paper
from zhat.training import Recipe
from zhat.training.optimisers import make_optimiser
from zhat.training.stack import Stack
from zhat.training.step import Step, make_step
from zhat.training.stream import Stream

CPU = torch.device("cpu")
ROWS = {
    "zimmermann2021": ("T1.1", "T2.1", "T2.2", "T2.5", "sphere-uniform"),
    "reizinger2024": ("R2.1o", "R2.1a", "R3.1", "R3.1p"),
    "roeder2020": ("F2.4", "F2v.4"),
}


class Waits(TorchDispatchMode):
    """The operations whose result decides a number or a shape in Python."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.__name__
        if name.startswith("index"):  # by a mask: how many rows come out is known only afterwards
            by_mask = any(isinstance(t, torch.Tensor) and t.dtype == torch.bool for t in tree_leaves(args))
        else:
            by_mask = False
        if by_mask or name.startswith(("_local_scalar_dense", "nonzero", "masked_select", "_unique", "bincount")):
            self.found.append(name)
        return operation(*args, **(kwargs or {}))


def waits(row):
    stack = Stack(row.encoder, row.objective, (0, 1), CPU)
    worlds = tuple(reseeded(row.process, seed) for seed in (0, 1))
    stream = Stream(worlds, (0, 1), row.budget("smoke").recipe.batch, CPU)
    adam = make_optimiser(stack.parameters, row.budget("fast").recipe, CPU, stack.matrices())
    step = make_step(stack, stream, adam, CPU, "float32", False)
    rows = {name: part[0] for name, part in stream.rows(0).items()}
    with Waits() as mode:
        step.update(rows, torch.tensor(1.0))
    return mode.found


def declared(key, name):
    every = [row for part in paper(key).parts for row in (*part.rows, *part.references)]
    return next(row for row in every if row.name == name)


@pytest.mark.parametrize(("key", "name"), [(key, name) for key, names in ROWS.items() for name in names])
def test_a_step_of_a_paper_never_waits(key, name):
    assert waits(declared(key, name)) == []


def test_a_loss_that_looks_at_its_rows_is_found():
    def peeking(h, batch):
        return h[h > 0].sum()

    row = declared("zimmermann2021", "T1.1")
    stack = Stack(row.encoder, peeking, (0,), CPU)
    with Waits() as mode:
        stack.losses({"x": torch.randn(1, 2, 8, 10)})
    assert mode.found


def test_convolutions_are_float32_unless_tf32_is_asked_for():
    seen = []

    class Looks(torch.nn.Linear):
        def forward(self, x):
            seen.append(torch.backends.cudnn.allow_tf32)
            return super().forward(x)

    before = torch.backends.cudnn.allow_tf32
    stack = Stack(lambda: Looks(3, 2), lambda h, batch: h.square().mean(), (0,), CPU)
    adam = make_optimiser(stack.parameters, Recipe(1), CPU)
    Step(stack, None, adam, "float32").update({"x": torch.randn(1, 1, 4, 3)}, None)
    assert seen == [False]
    assert torch.backends.cudnn.allow_tf32 == before
