import pytest
import torch

from zhat import testing
from zhat.dgp import Around, Box, Normal, Pairs, Uniform, reseeded
from zhat.encoders import conv
from zhat.errors import BadInput, MissingData
from zhat.experiment import score
from zhat.experiment.samples import samples
from zhat.objectives import InfoNCE
from zhat.scenes import Jug, Teapot
from zhat.training import train
from zhat.training.stream import Stream

BOX = Box(10, -1.0, 1.0)
WORLD = Pairs(Uniform(BOX), Around(Normal(BOX, 0.3)), Jug(side=16))


def drawn(scene, z):
    return scene.build(10, torch.Generator())(z)


def test_a_scene_is_a_mixing_and_pairs_of_its_pictures_are_a_process():
    testing.check_mixing(Jug(side=16))
    testing.check_process(WORLD, n=4)
    assert Jug(side=16).shape == (3, 16, 16)
    assert WORLD.factors == Jug.names
    assert reseeded(WORLD, 3).mixer is WORLD.mixer  # nothing about a scene is random


def test_pictures_are_bytes_and_repeat():
    z = torch.rand(2, 3, 10, generator=torch.Generator().manual_seed(0)) * 2 - 1
    x = drawn(Jug(side=16), z)
    assert x.dtype == torch.uint8
    assert x.shape == (2, 3, 3, 16, 16)
    assert torch.equal(x, drawn(Jug(side=16), z))


def test_a_batch_equals_pictures_one_by_one():
    z = torch.rand(11, 10, generator=torch.Generator().manual_seed(1)) * 2 - 1
    together = drawn(Jug(side=32), z)
    alone = torch.cat([drawn(Jug(side=32), row[None]) for row in z])
    apart = (together.int() - alone.int()).abs()
    assert apart.max() <= 1  # products of another shape are rounded differently


def test_every_latent_moves_the_picture_and_each_differently():
    middle = torch.full((10,), 0.1)
    start = drawn(Jug(), middle[None]).float()
    moves = drawn(Jug(), middle + 0.4 * torch.eye(10)).float() - start
    moves = moves.flatten(1)
    assert (moves.abs().mean(1) > 0.3).all()
    directions = moves / moves.norm(dim=1, keepdim=True)
    alike = (directions @ directions.T - torch.eye(10)).abs()
    assert alike.max() < 0.8


def test_scores_training_and_pages_take_a_world_of_pictures(monkeypatch):
    monkeypatch.setattr(Jug, "rows_at_once", 8)  # fewer pictures for two steps
    encoder = conv((3, 16, 16), 10, seed=0)
    assert score(encoder, WORLD, n=128).scores[0].n == 64
    assert samples(WORLD, "cpu").startswith("data:image/png")
    run = train(encoder, WORLD, InfoNCE(), steps=2, batch=4, seed=0)
    assert run.steps == 2


def test_training_draws_few_pictures_at_a_time():
    stream = Stream((WORLD,), (0,), 64, torch.device("cpu"))
    assert stream.length == Jug.rows_at_once // 64


def test_another_number_of_latents_is_refused():
    with pytest.raises(BadInput, match=r"Jug is moved by 10 latents \(x, y, z, .*\), but 3 came. Use .* Box\(10"):
        Pairs(Uniform(Box(3)), Around(Normal(Box(3), 0.1)), Jug()).sample(1, generator=torch.Generator())
    with pytest.raises(BadInput, match="`side` must be a whole number of at least 8"):
        Jug(side=0)


def test_a_teapot_without_its_file_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv("ZHAT_DATA", raising=False)
    world = Pairs(Uniform(BOX), Around(Normal(BOX, 0.3)), Teapot())
    with pytest.raises(MissingData, match=r"teapot.npz is recorded data.*3DIdent"):
        world.find()
    with pytest.raises(BadInput, match=r"must be an npz file, but .*nowhere.npz is not there"):
        drawn(Teapot(file=str(tmp_path / "nowhere.npz")), torch.zeros(1, 10))
    WORLD.find()
