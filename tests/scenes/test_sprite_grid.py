"""Drawn sprites: the grid of dSprites without its files."""

import torch

from zhat.datasets import KnownFactors
from zhat.scenes import SpriteGrid, Sprites
from zhat.testing import check_process

SMALL = SpriteGrid(every_orientation=13, every_place=11)


def test_the_grid_holds_every_combination_once():
    everything = KnownFactors(SMALL, part="all")
    assert len(everything) == 3 * 6 * 4 * 3 * 3
    codes = torch.cat([batch.z[0] for batch in everything.every(100)])
    assert len(codes.unique(dim=0)) == len(codes)
    assert codes.max(0).values.tolist() == [2, 5, 39, 22, 22]


def test_pictures_are_those_of_the_scene():
    batch = next(KnownFactors(SMALL, part="all").every(600))
    most = torch.tensor([3.0, 5, 39, 31, 31])
    share = torch.where(torch.arange(5) == 0, (batch.z[0] + 0.5) / 3, batch.z[0] / most)
    x = Sprites().build(5, torch.Generator())(2 * share - 1)
    # a turn of 2π in float32 is not quite none: points on the edge of a square may differ
    assert ((x > 0) == batch.x[0]).float().mean() > 0.9999


def test_it_is_a_process_with_a_split():
    check_process(KnownFactors(SMALL))
    assert KnownFactors(SMALL).labels == 3
