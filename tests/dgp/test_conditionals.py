import math

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats

from zhat.dgp import Around, Box, GeneralizedNormal, Laplace, Normal, Real, Sphere, Uniform, VonMisesFisher
from zhat.errors import BadInput
from zhat.testing import check_conditional

CONDITIONALS = [
    (VonMisesFisher(5.0), Sphere(3)),
    (VonMisesFisher(0.0), Sphere(4, radius=2.0)),
    (VonMisesFisher(20.0), Sphere(2)),
    (Around(Normal(Real(2), std=0.4)), Real(2)),
    (Around(Laplace(Box(2), scale=0.1)), Box(2)),
    (Around(GeneralizedNormal(Box(2), p=3.0, scale=0.3)), Box(2)),
    (Around(Laplace(Sphere(3), scale=0.3)), Sphere(3)),
]


@pytest.mark.parametrize(("conditional", "space"), CONDITIONALS, ids=repr)
def test_conditionals_keep_their_contract(conditional, space):
    check_conditional(conditional, space, n=6_000)


def bessel_ratio(dim, kappa):
    """I_{d/2}(kappa) / I_{d/2-1}(kappa) by Gauss's continued fraction, good for every order and argument."""
    if kappa == 0:
        return 0.0
    order, ratio = dim / 2 - 1, 0.0
    for k in range(5000, 0, -1):
        ratio = 1 / (2 * (order + k) / kappa + ratio)
    return ratio


@pytest.mark.parametrize("dim", [2, 3, 10, 64, 256])
@pytest.mark.parametrize("kappa", [0.0, 0.1, 1.0, 10.0, 100.0, 1e4])
def test_mean_resultant_length_is_a_bessel_ratio(dim, kappa, generator):
    law = VonMisesFisher(kappa)
    expected = bessel_ratio(dim, kappa)
    assert law.mean_cosine(dim) == pytest.approx(expected, abs=1e-9)
    n = 4_000
    z = Uniform(Sphere(dim)).sample(n, generator=generator)
    cosine = (z * law.sample(z, generator=generator)).sum(-1).double()
    variance = max(1 - (dim - 1) / kappa * expected - expected**2 if kappa else 1 / dim, 1e-14)
    assert abs(cosine.mean() - expected) < 4 * math.sqrt(variance / n) + 1e-6


@pytest.mark.parametrize(("dim", "kappa"), [(2, 3.0), (3, 0.5), (10, 1.0), (10, 50.0), (100, 200.0)])
def test_cosines_follow_their_law(dim, kappa, generator):
    z = Uniform(Sphere(dim)).sample(20_000, generator=generator).double()
    cosine = (z * VonMisesFisher(kappa).sample(z, generator=generator)).sum(-1).numpy()
    grid = np.linspace(0, math.pi, 20_001)  # the law of the angle has no singular ends
    density = np.exp(kappa * (np.cos(grid) - 1) + (dim - 2) * np.log(np.maximum(np.sin(grid), 1e-300)))
    below = integrate.cumulative_trapezoid(density, grid, initial=0)
    share = np.interp(np.arccos(np.clip(cosine, -1, 1)), grid, below / below[-1])
    assert stats.kstest(share, "uniform").pvalue > 1e-3


def test_tangent_directions_are_uniform(generator):
    anchor = Sphere(4).project(torch.tensor([1.0, -2.0, 0.5, 1.0], dtype=torch.float64)).expand(40_000, -1)
    z = VonMisesFisher(5.0).sample(anchor, generator=generator)
    tangent = z - (z * anchor).sum(-1, keepdim=True) * anchor
    tangent = tangent / tangent.norm(dim=-1, keepdim=True)
    second = tangent.T @ tangent / len(tangent)
    expected = (torch.eye(4, dtype=torch.float64) - torch.outer(anchor[0], anchor[0])) / 3
    assert (second - expected).abs().max() < 5 / math.sqrt(len(tangent)) / 3
    assert tangent.mean(0).abs().max() < 5 / math.sqrt(3 * len(tangent))


@pytest.mark.parametrize("dim", [2, 3, 10, 256])
@pytest.mark.parametrize("kappa", [0.1, 1.0, 50.0, 1e4])
def test_the_normaliser_is_the_bessel_one(dim, kappa):
    order = dim / 2 - 1
    if dim == 256 and kappa < 50:
        # the first terms of I_v(k) = (k/2)^v / Gamma(v+1) (1 + q + …), where scipy's Bessel function underflows
        q = (kappa / 2) ** 2 / (order + 1)
        series = math.log1p(q + q * (kappa / 2) ** 2 / (2 * (order + 2)))
        log_bessel = order * math.log(kappa / 2) - math.lgamma(order + 1) + series - kappa
    else:
        log_bessel = math.log(special.ive(order, kappa))
    expected = order * math.log(kappa) - dim / 2 * math.log(2 * math.pi) - log_bessel
    z = Sphere(dim).project(torch.ones(1, dim, dtype=torch.float64))
    assert float(VonMisesFisher(kappa).log_prob(z, z)) == pytest.approx(expected, rel=1e-9, abs=1e-7)


def test_the_radius_is_honoured(generator):
    z = Uniform(Sphere(3, radius=5.0)).sample(2_000, generator=generator)
    near = VonMisesFisher(30.0).sample(z, generator=generator)
    assert Sphere(3, radius=5.0).contains(near).all()
    unit, near_unit = (z / 5).double(), (near / 5).double()
    big = VonMisesFisher(30.0).log_prob(near.double(), z.double())
    small = VonMisesFisher(30.0).log_prob(near_unit, unit)
    assert torch.allclose(big, small - 2 * math.log(5), atol=1e-5)


def test_stacked_anchors_are_drawn_around_one_by_one(generator):
    z = Uniform(Sphere(3)).sample(60, generator=generator).reshape(3, 20, 3)
    for conditional in (VonMisesFisher(1e4), Around(Normal(Sphere(3), std=0.01))):
        near = conditional.sample(z, generator=generator)
        assert near.shape == z.shape
        assert (near - z).norm(dim=-1).max() < 0.1


def test_a_draw_without_a_direction_is_given_one(monkeypatch):
    # On a circle the one normal that gives the direction is exactly 0 about once in 2^24 draws.
    monkeypatch.setattr(torch.Tensor, "normal_", lambda self, generator=None: self.zero_())
    z = Sphere(2).project(torch.ones(3, 2))
    assert Sphere(2).contains(VonMisesFisher(1.0).sample(z, generator=torch.Generator())).all()


def test_density_off_the_sphere_is_zero():
    z = torch.tensor([[1.0, 0.0]])
    assert VonMisesFisher(1.0).log_prob(2 * z, z).item() == -math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: VonMisesFisher(-1.0), "must not be negative, but -1.0 came"),
        (lambda: VonMisesFisher(math.inf), "`concentration` must be a finite number"),
        (lambda: Around(Uniform(Box(2))), "Around takes Normal, Laplace or GeneralizedNormal"),
        (lambda: Around(Normal(Box(2), centre=0.5)), "give Normal no `centre`"),
        (
            lambda: VonMisesFisher(1.0).sample(torch.ones(3, 1), generator=torch.Generator()),
            "at least 2 dimensions",
        ),
    ],
)
def test_bad_conditionals_get_a_sentence(make, message):
    with pytest.raises(BadInput, match=message):
        make()
