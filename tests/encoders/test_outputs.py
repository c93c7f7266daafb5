import torch

from zhat.dgp import Box, Product, Real, Sphere
from zhat.encoders import OntoBox, OntoSphere, output

ROWS = 3 * torch.randn(50, 4, generator=torch.Generator().manual_seed(0))


def test_outputs_lie_in_their_space():
    for space in (Sphere(4, radius=2.0), Box(4, low=-1.0, high=3.0), Real(4), Product(Box(2), Sphere(2))):
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


def test_every_part_of_a_product_finds_its_own_scale():
    head = output(Product(Box(1, -1.0, 1.0), Sphere(2), Real(1)))
    assert {name: p.tolist() for name, p in head.named_parameters()} == {"parts.0.bound": [2.0], "parts.1.radius": 1.0}
    with torch.no_grad():
        head.parts[1].radius.fill_(3.0)
    h = head(ROWS)
    assert torch.allclose(h[:, 1:3].norm(dim=1), torch.full((50,), 3.0))
    assert torch.equal(h[:, 3], ROWS[:, 3])
    assert list(output(Product(Box(2), Sphere(2)), learnable=False).parameters()) == []


def test_fixed_values_are_not_part_of_the_weights():
    assert output(Sphere(4)).state_dict() == {}
