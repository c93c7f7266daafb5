import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from zhat import dgp
from zhat.dgp import Box, Product, Real, Space, Sphere
from zhat.errors import BadInput
from zhat.testing import check_space

SPACES = [
    Real(3),
    Sphere(2),
    Sphere(5, radius=2.5),
    Box(3),
    Box(2, low=-1.0, high=3.0),
    Product(Sphere(3, radius=2.0), Box(2), Real(1)),
]


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_spaces_keep_their_contract(space):
    check_space(space)


def test_every_space_is_in_the_list():
    kinds = {getattr(dgp, name) for name in dgp.__all__ if isinstance(getattr(dgp, name), type)}
    spaces = {kind for kind in kinds if kind is not Space and hasattr(kind, "contains")}
    assert {type(space) for space in SPACES} == spaces


@given(st.integers(2, 12), st.floats(0.01, 100))
def test_points_of_a_sphere_have_the_radius_as_norm(dim, radius):
    points = Sphere(dim, radius).project(torch.randn(20, dim, dtype=torch.float64))
    assert torch.allclose(points.norm(dim=-1), torch.tensor(radius, dtype=torch.float64))


def test_known_volumes():
    assert Sphere(2).log_volume == pytest.approx(math.log(2 * math.pi))
    assert Sphere(3, radius=2.0).log_volume == pytest.approx(math.log(16 * math.pi))
    assert Box(3, low=-1.0, high=1.0).log_volume == pytest.approx(math.log(8))


def test_a_product_prints_as_written_and_splits_its_points():
    space = Product(Sphere(2), Box(1))
    assert repr(space) == "Product(Sphere(dim=2, radius=1.0), Box(dim=1, low=0.0, high=1.0))"
    assert [part.shape[-1] for part in space.split(torch.zeros(4, 3))] == [2, 1]
    assert space == Product(Sphere(2), Box(1))
    assert hash(space) == hash(Product(Sphere(2), Box(1)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sphere(1), "`dim` must be a whole number of at least 2"),
        (lambda: Sphere(3, radius=0.0), "`radius` must be above 0"),
        (lambda: Box(3, low=1.0, high=0.0), "`low` below `high`, but low=1.0 and high=0.0"),
        (lambda: Real(0), "`dim` must be a whole number of at least 1"),
        (lambda: Real(2.0), "`dim` must be a whole number"),
        (lambda: Product(), "at least one space"),
        (lambda: Product(Sphere(3), 2), "made of spaces, but 2 came"),
    ],
)
def test_bad_spaces_get_a_sentence(make, message):
    with pytest.raises(BadInput, match=message):
        make()
