import pytest
import torch
from torch import nn

from zhat.dgp import Batch
from zhat.encoders import conv, mlp
from zhat.errors import BadInput
from zhat.fresh import Fresh
from zhat.objectives import InfoNCE
from zhat.training import train
from zhat.training.stack import Stack

CPU = torch.device("cpu")


class Pictures:
    """Images of one shape and type."""

    views, seed = 2, 0

    def __init__(self, *shape, dtype=torch.uint8):
        self.shape, self.dtype = shape, dtype

    def sample(self, n, *, generator):
        x = 256 * torch.rand(2, n, *self.shape, generator=generator)
        return Batch(x=x > 128 if self.dtype == torch.bool else x.to(self.dtype))


def flat():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 2))


class Own(nn.Module):
    """An encoder that flattens by itself."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(64, 2)

    def forward(self, x):
        return self.line(x.flatten(1))


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
@pytest.mark.parametrize("encoder", [Fresh(conv, (1, 8, 8), 2, widths=(4,), top=8), flat, Own])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.float32])
def test_images_of_any_type_train(encoder, dtype, seeds):
    run = train(encoder, Pictures(1, 8, 8, dtype=dtype), InfoNCE(), steps=2, batch=8, lr=1e-3, seeds=seeds)
    assert len(run.encoders) == len(seeds)


def test_encoder_and_objective_see_bytes_as_floats():
    seen = []

    def look(h, batch):
        seen.append(batch.x)
        return h.square().mean()

    class Looks(Own):
        def forward(self, x):
            seen.append(x)
            return super().forward(x)

    x = torch.randint(256, (1, 2, 5, 1, 8, 8), dtype=torch.uint8)
    Stack(Looks, look, (0,), CPU).losses({"x": x})
    assert torch.equal(seen[0], x[0].flatten(0, 1).float() / 255)
    assert torch.equal(seen[1], x[0].float() / 255)


@pytest.mark.parametrize(
    ("encoder", "shape", "message"),
    [
        (Fresh(mlp, 64, 2, widths=(4,)), (1, 8, 8), "takes 64 values a row, but a row of the observations is 1×8×8"),
        (Fresh(mlp, 9, 2, widths=(4,)), (1, 8, 8), "takes 9 values a row, but .* nn.Flatten\\(\\) before one for 64"),
        (Own, (3, 8, 8), "takes 64 values a row, but a row of the observations is 3×8×8"),
        (Fresh(conv, (1, 8, 8), 2, widths=(4,)), (8, 8, 1), "images of 1 channels, but a row .* is 8×8×1. Give images"),
        (Fresh(conv, (1, 8, 8), 2, widths=(4,)), (64,), "images of 1 channels, but a row .* is 64"),
        (Fresh(conv, (1, 8, 8), 2, widths=(4,)), (1, 9, 8), "images of shape \\(1, 8, 8\\), but rows .*\\(1, 9, 8\\)"),
    ],
)
def test_an_encoder_for_other_images_is_refused_in_a_sentence(encoder, shape, message):
    with pytest.raises(BadInput, match=message):
        train(encoder, Pictures(*shape), InfoNCE(), steps=1, batch=4)


def test_an_encoder_that_cannot_be_stacked_says_so_and_trains_alone():
    class Alone(Own):
        stacks = False

    world = Pictures(1, 8, 8)
    train(Alone, world, InfoNCE(), steps=1, batch=4)
    with pytest.raises(BadInput, match="Alone says that it cannot be stacked, but 2 seeds came. Train them one at"):
        train(Alone, world, InfoNCE(), steps=1, batch=4, seeds=(0, 1))
