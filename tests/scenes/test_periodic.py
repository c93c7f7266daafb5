"""Latents on circles: the scene's own pictures within half a turn, and no seam beyond."""

import math

import pytest
import torch

from zhat import testing
from zhat.dgp import Around, Normal, Pairs, Uniform
from zhat.errors import BadInput
from zhat.scenes import Jug, Periodic, Sprites

SMALL = Periodic(Jug(side=16))


def rolled(raw):
    """Latents of the scene as numbers of a box and points of circles."""
    angle = raw[:, Periodic.ROUND] * math.pi / 2
    points = torch.stack([angle.cos(), angle.sin()], -1).flatten(1)
    return torch.cat([raw[:, Periodic.ENDS], points], 1)


def test_within_half_a_turn_it_is_the_scene_itself(generator):
    raw = 1.99 * torch.rand(50, 10, generator=generator) - 0.995
    assert torch.allclose(SMALL.unrolled(rolled(raw)), raw, atol=1e-5)
    assert SMALL.space.contains(rolled(raw)).all()
    both = SMALL.build(15, generator)(rolled(raw[:4])), Jug(side=16).build(10, generator)(raw[:4])
    assert (both[0].float() - both[1].float()).abs().mean() < 1


def test_pictures_have_no_seam_where_a_circle_closes(generator):
    draw = SMALL.build(15, generator)
    for j in Periodic.ROUND:
        raw = torch.full((3, 10), 0.2)
        raw[:, j] = torch.tensor([1.999, -1.999, 0.0])  # just before and just after the half turn; far away
        before, after, far = draw(rolled(raw)).float()
        assert (before - after).abs().mean() < 0.5
        assert (before - far).abs().mean() > 4 * (before - after).abs().mean()


def test_names_go_with_the_numbers():
    assert len(Periodic().names) == Periodic().dim == 15
    assert Periodic().names[5:7] == (f"cos of {Jug.names[3]}", f"sin of {Jug.names[3]}")


def test_it_is_a_world():
    world = Pairs(Uniform(SMALL.space), Around(Normal(SMALL.space, 0.1)), SMALL)
    testing.check_process(world, n=4)
    world.find()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Periodic(Sprites()), r"`scene` must be a still life such as Jug\(\)"),
        (lambda: Periodic().build(10, torch.Generator()), "Periodic has 15 numbers"),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(BadInput, match=sentence):
        make()
