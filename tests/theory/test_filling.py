import numpy as np
import pytest
import torch

from zhat.dgp import Box, Laplace, Normal, Product, Real, Sphere, Uniform
from zhat.theory.filling import spaces_filled, tail_index


def drawn(marginal, n=3000, seed=0):
    return marginal.sample(n, generator=torch.Generator().manual_seed(seed)).double().numpy()


@pytest.mark.parametrize("d", [2, 10, 40])
def test_a_sphere_is_found_with_its_radius(d):
    (space,) = spaces_filled(drawn(Uniform(Sphere(d, radius=2.5))))
    assert (space.shape, len(space.columns)) == ("sphere", d)
    assert space.radius == pytest.approx(2.5, rel=1e-5)


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_a_box_is_found_with_its_walls(d):
    (space,) = spaces_filled(drawn(Uniform(Box(d, -1.0, 3.0))))
    assert space.shape == "box"
    assert min(space.low) == pytest.approx(-1, abs=0.02)
    assert max(space.high) == pytest.approx(3, abs=0.02)


@pytest.mark.parametrize("marginal", [Normal(Real(1)), Normal(Real(5)), Laplace(Real(3)), Normal(Real(40))], ids=repr)
def test_tails_are_unbounded(marginal):
    assert [space.shape for space in spaces_filled(drawn(marginal))] == ["unbounded"]


@pytest.mark.parametrize("d", [2, 3, 20])
def test_a_ball_is_found(d):
    random = np.random.default_rng(d)
    z = drawn(Uniform(Sphere(d))) * 2 * random.uniform(size=(3000, 1)) ** (1 / d)
    (space,) = spaces_filled(z)
    assert space.shape == "ball"
    assert space.radius == pytest.approx(2, rel=0.05)


def test_products_are_taken_apart_even_where_their_columns_are_mixed_up():
    z = drawn(Uniform(Product(Sphere(3), Box(2), Sphere(2, radius=4.0))))
    order = [5, 0, 3, 1, 6, 2, 4]
    found = spaces_filled(z[:, order])
    assert [(space.shape, space.columns) for space in found] == [
        ("sphere", (0, 4)),
        ("sphere", (1, 3, 5)),
        ("box", (2, 6)),
    ]
    mixed = spaces_filled(np.hstack([drawn(Uniform(Box(2))), drawn(Normal(Real(2)))]))
    assert [(space.shape, space.columns) for space in mixed] == [("box", (0, 1)), ("unbounded", (2, 3))]


def test_an_ellipsoid_is_no_sphere():
    z = drawn(Uniform(Sphere(3))) * np.array([1.0, 1.0, 1.5])
    assert "sphere" not in [space.shape for space in spaces_filled(z)]


def test_the_tail_index_is_minus_one_at_a_wall_and_zero_for_an_exponential():
    random = np.random.default_rng(0)
    assert tail_index(random.uniform(size=50_000)) == pytest.approx(-1, abs=4 * 2.2 / 5000**0.5)
    assert tail_index(random.exponential(size=50_000)) == pytest.approx(0, abs=4 * 1.2 / 5000**0.5)
