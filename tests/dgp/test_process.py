import pytest
import torch

from zhat.dgp import Batch, InvertibleMLP, Pairs, Sectors, Sphere, Uniform, VonMisesFisher, reseeded
from zhat.errors import BadInput

WORLD = Pairs(Uniform(Sphere(3)), VonMisesFisher(10.0), InvertibleMLP(layers=2))


class Recording:
    """A process that is no dataclass."""

    views, seed = 1, 0

    def sample(self, n, *, generator):
        return Batch(x=torch.zeros(1, n, 2))


def test_a_simulated_world_gets_the_seed():
    other = reseeded(WORLD, 5)
    assert other.seed == 5
    assert reseeded(other, 0) == WORLD
    assert not torch.equal(other.observe(torch.eye(3)), WORLD.observe(torch.eye(3)))


def test_recorded_data_is_the_same_world_for_every_seed():
    recording = Recording()
    assert reseeded(recording, 5) is recording


def test_what_is_no_seed_is_refused():
    for process in (Sectors(4), Recording()):
        with pytest.raises(BadInput, match="`seed` is an integer, but 'x' came"):
            reseeded(process, "x")
