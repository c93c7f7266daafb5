import pytest
import torch

from zhat.errors import BadInput
from zhat.scenes import Jug, traversal


def test_in_each_line_one_latent_moves_and_the_others_stand_still():
    scene = Jug(side=16)
    lines = traversal(scene, steps=3)
    mixer = scene.build(10, torch.Generator())
    still = torch.tensor(scene.still)
    for latent, column, value in ((0, 0, -1.0), (5, 1, 0.0), (9, 2, 1.0)):
        z = still.clone()
        z[latent] = value
        assert (lines[latent, column].int() - mixer(z[None])[0].int()).abs().max() <= 1
    assert all(not torch.equal(line[0], line[2]) for line in lines)


def test_one_picture_is_no_line():
    with pytest.raises(BadInput, match="`steps` must be a whole number of at least 2"):
        traversal(Jug(side=16), steps=1)
