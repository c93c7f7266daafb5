from dataclasses import dataclass

import pytest
import torch

from zhat.dgp import Batch
from zhat.errors import BadInput
from zhat.training.stream import BYTES, Stream

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Drawn:
    """Rows of one shape and type, with or without latents."""

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    latents: bool = True
    views: int = 2
    seed: int = 0

    def sample(self, n, *, generator):
        x = (256 * torch.rand(self.views, n, *self.shape, generator=generator)).to(self.dtype)
        z = torch.rand(self.views, n, 2, generator=generator) if self.latents else None
        return Batch(x=x, z=z, label=torch.randint(5, (n,), generator=generator))


def test_a_block_holds_the_rows_each_seed_draws_alone():
    world = Drawn((1, 4, 4), torch.uint8)
    stream = Stream((world,) * 2, (0, 1), 16, CPU)
    rows = stream.rows(0)
    assert rows["x"].shape == (64, 2, 2, 16, 1, 4, 4)
    assert rows["x"].dtype == torch.uint8
    assert rows["z"].shape == (64, 2, 2, 16, 2)
    assert rows["label"].shape == (64, 2, 16)
    for s in (0, 1):
        alone = Stream((world,), (s,), 16, CPU).rows(0)
        assert rows.keys() == alone.keys()
        assert all(torch.equal(rows[name][:, s], alone[name][:, 0]) for name in rows)


def test_noise_is_drawn_for_every_row_and_view_and_is_normal():
    stream = Stream((Drawn((3,)),) * 2, (0, 1), 16, CPU, noise=5)
    noise = stream.rows(0)["noise"]
    assert noise.shape == (64, 2, 2, 16, 5)
    n = noise.numel()
    assert abs(float(noise.mean())) < 4 / n**0.5
    assert abs(float(noise.var()) - 1) < 4 * (2 / n) ** 0.5
    assert torch.equal(noise[:, 1], Stream((Drawn((3,)),), (1,), 16, CPU, noise=5).rows(0)["noise"][:, 0])


def test_the_rows_of_a_step_are_consecutive_draws():
    world = Drawn((3,))
    stream = Stream((world,), (0,), 8, CPU)
    state = stream.generators[0].get_state()
    rows = stream.rows(0)
    again = world.sample(64 * 8, generator=torch.Generator().set_state(state))
    assert torch.equal(rows["x"][5, 0], again.x[:, 40:48])
    assert torch.equal(rows["label"][5, 0], again.label[40:48])


@pytest.mark.parametrize(
    ("shape", "dtype", "batch", "steps"),
    [
        ((10,), torch.float32, 6144, 42),  # of the papers: 2**18 rows
        ((3, 64, 64), torch.float32, 512, 5),
        ((3, 64, 64), torch.uint8, 512, 21),
        ((3, 224, 224), torch.uint8, 512, 1),
        ((3, 224, 224), torch.float32, 512, 1),  # a single step is larger than a block
    ],
)
def test_the_length_of_a_block_follows_bytes(shape, dtype, batch, steps):
    stream = Stream((Drawn(shape, dtype),), (0,), batch, CPU)
    assert stream.length == steps
    assert stream.shape == shape
    row = 2 * torch.Size(shape).numel() * torch.tensor([], dtype=dtype).element_size()
    assert steps == 1 or steps * batch * row <= BYTES


@pytest.mark.parametrize("other", [Drawn((3,), latents=False), Drawn((1,)), Drawn((3,), views=1)])
def test_worlds_that_hand_over_different_batches_are_refused(other):
    with pytest.raises(BadInput, match="the worlds of all seeds must hand over batches of the same kind and shape"):
        Stream((Drawn((3,)), other), (0, 1), 8, CPU).rows(0)
