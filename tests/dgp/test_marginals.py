import math

import pytest
import torch
from scipy import stats

from zhat import dgp
from zhat.dgp import Box, GeneralizedNormal, Laplace, Normal, Product, Real, Sphere, Uniform
from zhat.errors import BadInput
from zhat.testing import check_distribution

MARGINALS = [
    Uniform(Sphere(3)),
    Uniform(Sphere(4, radius=2.0)),
    Uniform(Box(3, low=-1.0, high=1.0)),
    Uniform(Product(Sphere(2), Box(2))),
    Normal(Real(3)),
    Normal(Sphere(3), std=0.5),
    Normal(Box(2), std=0.3),
    Normal(Product(Sphere(2), Box(1)), std=0.5),
    Laplace(Real(2), scale=0.3),
    Laplace(Sphere(3, radius=2.0), scale=0.5),
    Laplace(Box(2), scale=0.2, centre=(0.3, 1.5)),
    GeneralizedNormal(Real(2), p=3.0),
    GeneralizedNormal(Sphere(2), p=3.0, scale=0.7),
    GeneralizedNormal(Box(2), p=3.0, scale=0.5, centre=0.5),
]


@pytest.mark.parametrize("marginal", MARGINALS, ids=repr)
def test_marginals_keep_their_contract(marginal):
    check_distribution(marginal, n=8_000)


def test_every_marginal_is_in_the_list():
    exported = (getattr(dgp, name) for name in dgp.__all__)
    named = {m for m in exported if m.__module__ == "zhat.dgp.marginals" and hasattr(m, "sample")} - {dgp.Distribution}
    assert {type(m) for m in MARGINALS} == named


@pytest.mark.parametrize("dim", [2, 3, 10, 64])
def test_uniform_points_of_a_sphere_have_beta_distributed_coordinates(dim, generator):
    z = Uniform(Sphere(dim, radius=3.0)).sample(40_000, generator=generator)
    share = ((z[:, 0] / 3.0 + 1) / 2).double().numpy()
    assert stats.kstest(share, stats.beta((dim - 1) / 2, (dim - 1) / 2).cdf).pvalue > 1e-3


def test_the_papers_centres_are_the_defaults(generator):
    on_sphere = Normal(Sphere(5, radius=2.0), std=0.01).sample(100, generator=generator)
    assert torch.allclose(on_sphere[:, 0], torch.tensor(2.0), atol=1e-2)
    in_corner = Normal(Box(4), std=0.1).sample(50_000, generator=generator)
    half_normal_mean = 0.1 * math.sqrt(2 / math.pi)
    assert in_corner.mean() == pytest.approx(half_normal_mean, abs=4 * 0.1 / math.sqrt(200_000))


def test_projected_noise_has_the_density_of_its_rays():
    # In two dimensions: integrate the ambient density along each ray by brute force.
    r = torch.linspace(1e-6, 12, 200_001, dtype=torch.float64)
    for family in (Normal(Sphere(2), 0.6), Laplace(Sphere(2), 0.6), GeneralizedNormal(Sphere(2), 3.0, 0.6)):
        flat = type(family)(Real(2), *([3.0] if isinstance(family, GeneralizedNormal) else []), 0.6, centre=(1.0, 0.0))
        for angle in (0.0, 0.4, 1.5, 3.0):
            u = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
            brute = torch.trapezoid(r * flat.log_prob(r[:, None] * u).exp(), r)
            assert float(family.log_prob(u).exp()) == pytest.approx(float(brute), rel=1e-6)


def test_isotropic_noise_on_a_sphere_has_the_known_closed_form():
    # Projected N(0, s^2 I) is uniform, whatever s.
    z = Uniform(Sphere(10)).sample(50, generator=torch.Generator().manual_seed(0)).double()
    family = Normal(Sphere(10), std=0.7, centre=0.0)
    assert torch.allclose(family.log_prob(z), torch.tensor(-Sphere(10).log_volume, dtype=torch.float64), atol=1e-9)


def test_density_outside_the_space_is_zero():
    outside = torch.tensor([[1.5, 0.2]])
    for marginal in (Uniform(Box(2)), Normal(Box(2)), Uniform(Sphere(2)), Laplace(Sphere(2))):
        assert marginal.log_prob(outside).item() == -math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Uniform(Real(3)), "Uniform needs a space of finite volume"),
        (lambda: Uniform(Product(Box(2), Real(1))), "Uniform needs a space of finite volume"),
        (lambda: Normal(Real(3), std=-1.0), "`std` must be above 0, but -1.0 came"),
        (lambda: Normal(Real(3), std=math.nan), "`std` must be a finite number"),
        (lambda: GeneralizedNormal(Real(3), p=0.5), "`p` must lie between 1 and 100, but 0.5 came"),
        (lambda: Laplace(Real(3), centre=(0.0, 1.0)), "`centre` must have 3 coordinates .* but 2 came"),
        (
            lambda: GeneralizedNormal(Box(1), p=7.0, scale=0.1, centre=3.0),
            "puts no mass that float64 can hold",
        ),
    ],
)
def test_bad_marginals_get_a_sentence(make, message):
    with pytest.raises(BadInput, match=message):
        make()


def test_noise_much_wider_than_its_box_is_uniform_there():
    wide = Normal(Box(2), std=1e13)
    z = wide.sample(4000, generator=torch.Generator().manual_seed(0))
    assert len(z[:, 0].unique()) > 3900
    assert stats.kstest(z[:, 0].double().numpy(), "uniform").pvalue > 1e-3
    assert torch.allclose(wide.log_prob(z), torch.zeros(4000), atol=1e-5)


def test_densities_keep_the_digits_of_float64():
    z = Uniform(Sphere(5)).sample(3, generator=torch.Generator()).double()
    assert float(Uniform(Sphere(5)).log_prob(z)[0]) == -Sphere(5).log_volume
    near = Normal(Real(1), std=1e-6, centre=0.1)
    x = torch.tensor([[0.1]], dtype=torch.float64)
    assert float(near.log_prob(x)) == pytest.approx(-math.log(1e-6 * math.sqrt(2 * math.pi)), abs=1e-6)


def test_a_space_of_ones_own_is_refused_with_advice():
    class Odd:
        dim = 2
        log_volume = 0.0

        def project(self, z):
            return z

        def contains(self, z):
            return torch.isfinite(z).all(-1)

    generator = torch.Generator()
    with pytest.raises(BadInput, match="write a marginal of your own"):
        Uniform(Odd()).sample(3, generator=generator)
    with pytest.raises(BadInput, match="write a distribution of your own"):
        Normal(Odd()).sample(3, generator=generator)
    with pytest.raises(BadInput, match="write a distribution of your own"):
        Normal(Odd()).log_prob(torch.zeros(1, 2))
