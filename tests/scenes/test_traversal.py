import pytest
import torch

from zhat.errors import BadInput
from zhat.scenes import Jug, drawn_again, traversal


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


def test_what_was_recovered_is_drawn_below_what_was_there():
    scene = Jug(side=16)
    z = torch.rand(3, 10, generator=torch.Generator().manual_seed(0)) * 2 - 1
    same, beyond = drawn_again(scene, z.tolist(), z.tolist()), drawn_again(scene, z.tolist(), (5 * z).tolist())
    assert torch.equal(same[0], same[1])
    assert torch.equal(same[0], beyond[0])
    mixer = scene.build(10, torch.Generator())
    assert (beyond[1].int() - mixer((5 * z).clamp(-1, 1)).int()).abs().max() <= 1


def test_latents_of_another_world_are_refused():
    with pytest.raises(BadInput, match="Jug has 10 latents, but 3 were recovered"):
        drawn_again(Jug(side=16), [[0.0] * 3], [[0.0] * 3])
