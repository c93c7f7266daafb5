import math

import pytest
import torch

from zhat.equivalence import AFFINE, IDENTITY
from zhat.metrics import Recovery, pearson, uncertainty


def test_the_interval_of_a_correlation_has_the_width_theory_gives():
    # Fisher: the standard error of r is (1 - r^2) / sqrt(n)
    n, r = 4000, 0.6
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(n, 1, generator=generator, dtype=torch.float64)
    h = r * z + math.sqrt(1 - r**2) * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    values = uncertainty.bootstrap(pearson, z, h, repeats=1000, seed=0)
    assert float(values.std()) == pytest.approx((1 - r**2) / math.sqrt(n), rel=0.15)
    low, high = uncertainty.interval(values)
    assert high - low == pytest.approx(2 * 1.96 * (1 - r**2) / math.sqrt(n), rel=0.15)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    # z = h + noise: the population R2 of the identity is 1 - 0.5^2 / (1 + 0.5^2) = 0.8
    covered = 0
    for seed in range(100):
        generator = torch.Generator().manual_seed(seed)
        h = torch.randn(400, 2, generator=generator, dtype=torch.float64)
        z = h + 0.5 * torch.randn(400, 2, generator=generator, dtype=torch.float64)
        score = Recovery(IDENTITY, holdout=0, shuffles=0, seed=seed)(z, h)
        covered += score.low <= 0.8 <= score.high
    assert covered >= 95 - 4 * math.sqrt(100 * 0.95 * 0.05)


def test_chance_of_an_in_sample_fit_is_the_known_inflation():
    # k regressors explain a share k / (n - 1) of noise; held out they explain nothing.
    n, k = 600, 50
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(n, 2, generator=generator)
    h = torch.randn(n, k, generator=generator)
    inside = Recovery(AFFINE, holdout=0, repeats=0)(z, h)
    assert inside.chance == pytest.approx(k / (n - 1), abs=0.02)
    assert inside.chance_high >= inside.chance
    outside = Recovery(AFFINE, repeats=0)(z, h)
    assert outside.chance < 0.02


def test_the_same_seed_gives_the_same_interval():
    z = torch.randn(200, 2)
    h = z + torch.randn(200, 2)
    assert Recovery(AFFINE, seed=3)(z, h) == Recovery(AFFINE, seed=3)(z, h)
    assert Recovery(AFFINE, seed=3)(z, h) != Recovery(AFFINE, seed=4)(z, h)
