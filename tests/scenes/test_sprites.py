"""Sprites: areas and places are those of the formulas, and pictures those of dSprites."""

import math

import pytest
import torch

from zhat.datasets import DSprites, KnownFactors
from zhat.dgp import Around, Box, Neighbours, Normal, Pairs, Stored, Uniform
from zhat.errors import BadInput, MissingData
from zhat.scenes import Sprites
from zhat.scenes.sprites import drawn
from zhat.testing import check_process

BOX = Box(5, -1.0, 1.0)


def sprites(n, shape, generator, scale=1.0):
    """Sprites of one shape and scale, turned and placed at random."""
    turn, x, y = torch.rand(3, n, generator=generator)
    return drawn(torch.full((n,), float(shape)), torch.full((n,), scale), 2 * math.pi * turn, x, y), x, y


# Of the square, of the ellipse, and of the heart: the integral of y dx along its curve is 9.6 * 0.6625 * 45 pi / 4.
AREAS = (19.2**2, math.pi * 12.8 * 7.2, 9.6 * 0.6625 * 45 * math.pi / 4)


@pytest.mark.parametrize("shape", [0, 1, 2])
@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_the_area_is_that_of_the_formula(shape, scale, generator):
    n = 2000
    area = sprites(n, shape, generator, scale)[0].sum((1, 2)).double()
    assert abs(area.mean() - AREAS[shape] * scale**2) < 4 * area.std() / math.sqrt(n)


@pytest.mark.parametrize("shape", [0, 1])
def test_the_middle_is_where_the_latents_say(shape, generator):
    bits, x, y = sprites(300, shape, generator)
    place = torch.arange(64) + 0.5
    for axis, wanted in ((1, x), (2, y)):
        middle = (bits.sum(axis) * place).sum(1) / bits.sum((1, 2))
        assert (middle - (16 + 32 * wanted)).abs().max() < 0.5


def test_latents_become_bytes_of_any_leading_shape(generator):
    draw = Sprites().build(5, generator)
    z = Uniform(BOX).sample(30, generator=generator)
    x = draw(z.reshape(2, 15, 5))
    assert x.shape == (2, 15, *Sprites().shape)
    assert x.dtype == torch.uint8
    assert set(x.unique().tolist()) == {0, 255}
    assert torch.equal(x.flatten(0, 1), draw(z))
    assert torch.equal(draw(z[3]), draw(z)[3])


def test_a_larger_picture_shows_the_same(generator):
    z = Uniform(BOX).sample(40, generator=generator)
    large, small = (Sprites(side).build(5, generator)(z)[:, 0] > 0 for side in (192, 64))
    assert torch.equal(large[:, 1::3, 1::3], small)  # the middle of three points is the middle of one


def test_each_latent_changes_the_picture(generator):
    draw, middle = Sprites().build(5, generator), torch.tensor([0.9, 0.1, 0.3, 0.2, -0.4])
    for j in range(5):
        other = middle.clone()
        other[j] -= 0.7
        assert (draw(middle) != draw(other)).sum() > 20


def test_sprites_are_a_world_and_can_be_stored():
    world = Pairs(Uniform(BOX), Around(Normal(BOX, 0.1)), Sprites())
    check_process(world)
    check_process(Neighbours(Stored(world, rows=100, test_rows=50)))


def test_another_number_of_latents_is_refused(generator):
    with pytest.raises(BadInput, match="Sprites\\(\\) draws 5 latents"):
        Sprites().build(4, generator)


@pytest.mark.data
def test_sprites_are_those_of_dsprites():
    try:
        DSprites("random20k").find()
    except MissingData as error:
        pytest.skip(str(error))
    batch = KnownFactors(DSprites("random20k"), part="all").sample(6000, generator=torch.Generator().manual_seed(0))
    code = batch.z[0].T
    ours = drawn(code[0], 0.5 + 0.1 * code[1], code[2] * (2 * math.pi / 39), code[3] / 31, code[4] / 31)
    same = ours == batch.x[0, :, 0]
    assert same.float().mean() >= 0.999
    assert same.flatten(1).float().mean(1).min() >= 0.99
