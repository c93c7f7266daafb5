import math

import numpy as np
import pytest
import torch
from scipy import stats

from zhat.dgp import noise

POWERS = [1.0, 1.5, 2.0, 3.0, 8.0]


def uniform_after_transform(cdf_values):
    """Kolmogorov-Smirnov against the uniform law; draws and distribution function must agree."""
    return stats.kstest(cdf_values, "uniform").pvalue


@pytest.mark.parametrize("p", POWERS)
def test_draws_follow_the_generalised_normal_law(p, generator):
    t = noise.draw(p, torch.empty(100_000), generator).double().numpy()
    assert uniform_after_transform(stats.gennorm(p).cdf(t)) > 1e-3


@pytest.mark.parametrize("p", POWERS)
def test_moments_are_those_of_the_gamma_function(p, generator):
    n = 200_000
    t = noise.draw(p, torch.empty(n), generator).double()
    second, fourth = (math.gamma((k + 1) / p) / math.gamma(1 / p) for k in (2, 4))
    assert abs(t.mean()) < 4 * math.sqrt(second / n)
    assert abs(t.square().mean() - second) < 4 * math.sqrt((fourth - second**2) / n)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.2), (-0.1, 30.0), (1.0, 1.5), (-1.8, -1.2)])
def test_truncated_draws_follow_the_truncated_law(p, low, high, generator):
    n = 50_000
    t = noise.draw_between(p, torch.full((n,), low), torch.full((n,), high), generator).double().numpy()
    law = stats.gennorm(p)
    # From the tail that holds the interval, where the distribution function keeps its digits.
    if low + high > 0:
        share = (law.sf(t) - law.sf(high)) / (law.sf(low) - law.sf(high))
    else:
        share = (law.cdf(t) - law.cdf(low)) / (law.cdf(high) - law.cdf(low))
    assert low <= t.min() <= t.max() <= high
    assert uniform_after_transform(np.clip(share, 0, 1)) > 1e-3


@pytest.mark.parametrize("p", POWERS)
def test_densities_integrate_to_one(p):
    t = torch.linspace(-40, 40, 400_001, dtype=torch.float64)
    assert torch.trapezoid(noise.log_density(p, t).exp(), t) == pytest.approx(1, abs=1e-6)
    inside = (t >= -0.7) & (t <= 2)
    mass = noise.log_mass_between(p, torch.tensor(-0.7), torch.tensor(2.0)).exp()
    assert torch.trapezoid(noise.log_density(p, t[inside]).exp(), t[inside]) == pytest.approx(float(mass), abs=1e-4)


def test_mass_far_in_a_tail_keeps_its_digits():
    far = noise.log_mass_between(2.0, torch.tensor(10.0, dtype=torch.float64), torch.tensor(11.0, dtype=torch.float64))
    law = stats.norm(scale=1 / math.sqrt(2))
    assert float(far) == pytest.approx(float(law.logsf(10)), rel=1e-9)


@pytest.mark.parametrize("p", [1.5, 3.0, 8.0])
def test_the_transport_table_is_exact_to_1e_9(p):
    y = torch.linspace(0.001, 6, 5000, dtype=torch.float64)
    t = noise._transport(p)(y)
    tail = 2 * stats.gennorm(p).sf(t.numpy())
    assert np.allclose(tail, 2 * stats.norm.sf(y.numpy()), rtol=1e-7, atol=1e-9)
