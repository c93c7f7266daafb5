import numpy as np
import pytest
import torch
from scipy import stats

from zhat.dgp import Box, Normal, Sphere, Uniform
from zhat.theory import uniformity
from zhat.theory.uniformity import groups_independent, in_ball, in_box, independent, on_sphere


def drawn(marginal, n, seed):
    return marginal.sample(n, generator=torch.Generator().manual_seed(seed)).double().numpy()


@pytest.mark.parametrize("d", [2, 3, 12])
def test_p_values_on_a_sphere_are_uniform_for_uniform_rows(d):
    p = [on_sphere(drawn(Uniform(Sphere(d)), 300, seed))[0] for seed in range(150)]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("d", [1, 2, 12])
def test_p_values_in_a_box_are_uniform_for_uniform_rows(d):
    p = [in_box(drawn(Uniform(Box(d)), 300, seed))[0] for seed in range(150)]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_a_tilt_of_a_sphere_has_its_exact_size():
    # The density 1 + e cos has the mean squared relative deviation e^2 / d; von Mises-Fisher with small kappa is that.
    from zhat.dgp import VonMisesFisher

    d, kappa, n = 4, 0.4, 40_000
    pole = torch.eye(d, dtype=torch.float64)[:1].expand(n, -1)
    z = VonMisesFisher(kappa).sample(pole, generator=torch.Generator().manual_seed(0)).numpy()
    p, size = on_sphere(z / np.linalg.norm(z, axis=1, keepdims=True))
    density = VonMisesFisher(kappa).log_prob(torch.from_numpy(drawn(Uniform(Sphere(d)), n, 1)), pole).exp()
    exact = float((density * np.exp(Sphere(d).log_volume)).sub(1).square().mean().sqrt())
    assert p < 1e-10
    assert size.low < exact < size.high


def test_clusters_that_no_tilt_and_no_stretch_shows_are_seen():
    corners = np.sign(np.random.default_rng(0).normal(size=(3000, 3)))  # eight corners of a cube
    z = corners + 0.2 * np.random.default_rng(1).normal(size=(3000, 3))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    p, size = on_sphere(z)
    assert p < 1e-6
    assert size.size < 0.1


def test_a_density_and_a_dependence_in_a_box_are_seen():
    random = np.random.default_rng(0)
    u = random.uniform(size=(4000, 2))
    assert in_box(np.sqrt(u))[0] < 1e-10
    assert in_box(np.stack([u[:, 0], (u[:, 0] + 0.6 * u[:, 1]) % 1], 1))[0] < 1e-10


def test_a_ball_is_uniform_or_not():
    random = np.random.default_rng(0)
    direction = drawn(Uniform(Sphere(3)), 3000, 0)
    radius = random.uniform(size=(3000, 1))
    assert in_ball(direction * radius ** (1 / 3))[0] > 1e-3
    assert in_ball(direction * radius)[0] < 1e-10


def test_dependence_without_correlation_is_dependence():
    z = np.random.default_rng(0).normal(size=(3000, 2))
    p, size, largest = independent(z)
    assert p > 1e-3
    assert size.high < 0.15
    assert largest < 0.1
    scale = np.exp(np.random.default_rng(1).normal(size=(3000, 1)))
    p, size, largest = independent(scale * z)
    assert p < 1e-10
    assert size.low > 0.1
    assert largest < 0.1


def test_groups_of_columns_that_share_something_are_not_independent():
    z = drawn(Normal(uniformity_space()), 3000, 0)
    assert groups_independent(z[:, :2], z[:, 2:]).p_value > 1e-3
    assert groups_independent(z[:, :2], z[:, 1:]).p_value < 1e-10


def uniformity_space():
    from zhat.dgp import Real

    return Real(4)


def test_rows_beyond_the_last_block_still_count_in_low_degrees():
    z = drawn(Uniform(Sphere(3)), 2 * uniformity.BLOCK * uniformity.BLOCKS, 0)
    z[len(z) // 2 :, 0] = np.abs(z[len(z) // 2 :, 0])
    assert on_sphere(z)[0] < 1e-10
