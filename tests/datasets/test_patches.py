from dataclasses import dataclass

import pytest
import torch

from zhat.datasets import CIFAR10, Patches
from zhat.errors import BadInput


@dataclass(frozen=True)
class Numbered:
    """Images that say in every point which image, line and column it is."""

    split: str = "train"
    images: int | None = None

    def on(self, device):
        many = 5 if self.split == "train" else 3
        which, line, column = torch.meshgrid(*map(torch.arange, (many, 8, 12)), indexing="ij")
        return torch.stack([which, line, column], -1).to(torch.uint8)


def points(world, n, seed=0):
    """Image, line and column of every point of every patch, `(views, n, size, size, 3)`."""
    x = world.sample(n, generator=torch.Generator().manual_seed(seed)).x
    return ((x + 1) * 127.5).round().reshape(2, n, world.size, world.size, 3)


def test_a_row_is_an_upper_and_a_lower_patch_of_one_image():
    p = points(Patches(Numbered(), size=3), 500)
    which, line, column = p.unbind(-1)
    assert torch.equal(which, which[:1, :, :1, :1].expand_as(which))
    assert torch.equal(line[:, :, 1:] - line[:, :, :-1], torch.ones(2, 500, 2, 3))
    assert torch.equal(column[:, :, :, 1:] - column[:, :, :, :-1], torch.ones(2, 500, 3, 2))
    assert set(line[0, :, 0, 0].tolist()) == {0, 1}  # of 4 lines in the upper half
    assert set(line[1, :, 0, 0].tolist()) == {4, 5}
    assert set(column[0, :, 0, 0].tolist()) == set(range(10))
    assert not torch.equal(column[0], column[1])


def test_every_image_comes_once_before_any_comes_again():
    order = points(Patches(Numbered(), size=4), 13)[0, :, 0, 0, 0]
    assert sorted(order[:5].tolist()) == sorted(order[5:10].tolist()) == [0, 1, 2, 3, 4]
    assert len(set(order[10:].tolist())) == 3
    assert order[:5].tolist() != order[5:10].tolist()


def test_the_same_generator_gives_the_same_draw():
    world = Patches(Numbered(), size=4)
    assert torch.equal(points(world, 7, seed=3), points(world, 7, seed=3))
    assert not torch.equal(points(world, 7, seed=3), points(world, 7, seed=4))


def test_values_go_from_minus_one_to_one_and_latents_are_not_known():
    batch = Patches(Numbered(), size=4).sample(6, generator=torch.Generator())
    assert batch.x.shape == (2, 6, 48)
    assert batch.z is None
    assert float(batch.x.min()) == -1


def test_what_is_held_out_are_all_test_images():
    assert Patches(CIFAR10("train", 100)).held_out == Patches(CIFAR10("test"))
    world = Patches(Numbered(images=2), size=4).held_out
    assert set(points(world, 30)[0, :, 0, 0, 0].tolist()) == {0, 1, 2}


def test_a_patch_must_fit_into_half_an_image():
    with pytest.raises(BadInput, match="half an image is 4 high, but patches of 5 were asked for"):
        Patches(Numbered(), size=5).sample(1, generator=torch.Generator())
