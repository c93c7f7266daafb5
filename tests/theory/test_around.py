import math

import numpy as np
import pytest
import torch
from scipy import integrate

from zhat.dgp import VonMisesFisher
from zhat.theory import around
from zhat.theory.around import concentration, fit_noise, mean_cosine


@pytest.mark.parametrize("d", [2, 3, 10, 64, 256])
@pytest.mark.parametrize("kappa", [0.1, 1.0, 30.0, 2000.0])
def test_the_mean_cosine_is_that_of_the_law_and_is_inverted(d, kappa):
    mean = mean_cosine(kappa, d)
    assert mean == pytest.approx(VonMisesFisher(kappa).mean_cosine(d), abs=1e-8)
    assert concentration(mean, d) == pytest.approx(kappa, rel=1e-5)


def test_a_mean_cosine_that_is_not_above_zero_has_no_concentration():
    assert concentration(0.0, 5) == concentration(-0.1, 5) == 0.0


def test_angles_follow_their_law():
    angle, below = around._cosines(4, 3.0)
    exact = integrate.quad(lambda a: math.exp(3 * math.cos(a)) * math.sin(a) ** 2, 0, 1.0)[0]
    whole = integrate.quad(lambda a: math.exp(3 * math.cos(a)) * math.sin(a) ** 2, 0, math.pi)[0]
    assert float(np.interp(1.0, angle, below)) == pytest.approx(exact / whole, abs=1e-6)


def entries(p, n, d, walls, seed=0):
    from zhat.dgp import Around, Box, GeneralizedNormal, Real

    g = torch.Generator().manual_seed(seed)
    space = Box(d) if walls else Real(d)
    z = torch.rand(n, d, generator=g)
    step = (Around(GeneralizedNormal(space, p, 0.3)).sample(z, generator=g) - z).double().numpy()
    z = z.double().numpy()
    far = np.full(z.shape, np.inf)
    return around._Entries(step, z if walls else far, 1 - z if walls else far)


@pytest.mark.parametrize("walls", [False, True])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_exponent_and_scales_come_back_also_where_walls_cut_the_noise_off(p, walls):
    found = entries(p, 4000, 3, walls)
    value, scales, settled = fit_noise(found)
    error = around._error_of_exponent(found, value, scales)
    assert settled
    assert abs(math.log(value / p)) < 4 * error
    assert scales == pytest.approx(0.3, rel=0.25 if walls else 0.1)


def test_the_likelihood_of_cut_off_noise_integrates_to_one():
    grid = np.linspace(-0.2, 0.8, 20_001)[:, None]
    cut = around._Entries(grid, np.full(grid.shape, 0.2), np.full(grid.shape, 0.8))
    for p in (1.0, 2.7):
        density = np.exp(around._log_density(cut, p, np.array([0.4])))[:, 0]
        assert np.trapezoid(density, grid[:, 0]) == pytest.approx(1, abs=1e-4)
        share = around._distribution(cut, p, np.array([0.4]))[:, 0]
        assert share[[0, -1]] == pytest.approx([0, 1], abs=1e-4)
        assert np.allclose(np.gradient(share, grid[:, 0])[2:-2], density[2:-2], atol=2e-2)


@pytest.mark.slow
def test_intervals_of_the_exponent_hold_the_truth_about_as_often_as_they_say():
    held = []
    for seed in range(40):
        found = entries(1.5, 600, 2, True, seed)
        p, scales, _ = fit_noise(found)
        held.append(abs(math.log(p / 1.5)) < 1.96 * around._error_of_exponent(found, p, scales))
    assert sum(held) >= 40 * 0.95 - 4 * (40 * 0.95 * 0.05) ** 0.5
