from dataclasses import replace

import numpy as np
import pytest
import torch

from zhat.dgp import Around, Box, Embedding, InvertibleMLP, Laplace, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.errors import BadInput

WORLD = Pairs(Uniform(Sphere(4)), VonMisesFisher(50.0), InvertibleMLP(layers=2), seed=3)


def sample(world, n=100, seed=0):
    return world.sample(n, generator=torch.Generator().manual_seed(seed))


def test_a_batch_holds_two_views_of_each_latent():
    batch = sample(WORLD)
    assert batch.z.shape == batch.x.shape == (2, 100, 4)
    assert batch.label is None
    assert torch.equal(batch.x, WORLD.observe(batch.z))
    assert (batch.z[0] - batch.z[1]).norm(dim=-1).mean() < 0.5


def test_equal_processes_are_equal_worlds():
    again = Pairs(Uniform(Sphere(4)), VonMisesFisher(50.0), InvertibleMLP(layers=2), seed=3)
    assert again == WORLD
    assert hash(again) == hash(WORLD)
    assert torch.equal(sample(again).x, sample(WORLD).x)


def test_another_seed_is_another_mixing_of_the_same_latents():
    other = sample(replace(WORLD, seed=4))
    assert torch.equal(other.z, sample(WORLD).z)
    assert not torch.allclose(other.x, sample(WORLD).x)


def test_the_repr_is_the_config():
    names = {n: globals()[n] for n in ("Pairs", "Uniform", "Sphere", "VonMisesFisher", "InvertibleMLP")}
    from zhat.dgp import BestOf

    assert eval(repr(WORLD), names | {"BestOf": BestOf}) == WORLD


def test_fresh_negatives_are_a_third_independent_view():
    batch = sample(replace(WORLD, fresh_negatives=True), n=4000)
    assert batch.x.shape == (3, 4000, 4)
    assert (batch.z[0] * batch.z[2]).sum(-1).mean().abs() < 4 / (4 * 4000) ** 0.5
    assert torch.equal(batch.z[0], sample(WORLD, n=4000).z[0])


def test_observations_may_have_more_dimensions_than_latents():
    world = Pairs(Uniform(Box(3)), Around(Laplace(Box(3), scale=0.05)), Embedding(8))
    batch = sample(world)
    assert batch.x.shape == (2, 100, 8)
    assert torch.allclose(world.mixer.inverse(batch.x), batch.z, atol=1e-4)


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(BadInput, match="VonMisesFisher stays on a sphere"):
        Pairs(Uniform(Box(3)), VonMisesFisher(1.0), InvertibleMLP())
    with pytest.raises(BadInput, match="`conditional` must have a `sample`, but None came"):
        Pairs(Uniform(Box(3)), None, InvertibleMLP())
    with pytest.raises(BadInput, match="`mixing` must have a `build`, but 'mlp' came"):
        Pairs(Uniform(Sphere(3)), VonMisesFisher(1.0), "mlp")


def test_numpy_scalars_become_plain_numbers():
    world = Pairs(Uniform(Sphere(np.int64(4))), VonMisesFisher(np.float32(50.0)), InvertibleMLP(layers=2), seed=3)
    assert world == WORLD
    assert repr(world) == repr(WORLD)


def test_views_in_different_spaces_are_refused():
    with pytest.raises(BadInput, match="both views live in one space"):
        Pairs(Uniform(Box(3)), Around(Laplace(Box(3, high=2.0))), InvertibleMLP())
    with pytest.raises(BadInput, match="`n` must be a whole number of at least 1"):
        sample(WORLD, n=0)
