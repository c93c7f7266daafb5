import torch

from zhat.dgp import Box, Real, Sphere
from zhat.encoders import OntoBox, OntoSphere, output

ROWS = 3 * torch.randn(50, 4, generator=torch.Generator().manual_seed(0))


def test_outputs_lie_in_their_space():
    for space in (Sphere(4, radius=2.0), Box(4, low=-1.0, high=3.0), Real(4)):
        assert space.contains(output(space)(ROWS)).all()


def test_the_papers_choices_are_the_defaults():
    assert list(output(Sphere(4)).parameters()) == []
    (bound,) = output(Box(4)).parameters()
    assert torch.equal(bound, torch.ones(4))


def test_radius_and_bound_can_be_trained_or_fixed():
    (radius,) = output(Sphere(4, radius=2.0), learnable=True).parameters()
    assert radius.item() == 2.0
    assert list(output(Box(4), learnable=False).parameters()) == []
    head = OntoBox(Box(4))
    with torch.no_grad():
        head.bound.fill_(5.0)
    assert head(ROWS + 9).max() > 4
    assert "learnable=True" in repr(head)
    assert "radius=1.0" in repr(OntoSphere(Sphere(4)))


def test_fixed_values_are_not_part_of_the_weights():
    assert output(Sphere(4)).state_dict() == {}
