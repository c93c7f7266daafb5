import math

import pytest
import torch

from benchmarks.coverage import coverage
from zhat.equivalence import AFFINE, IDENTITY
from zhat.metrics import Recovery, pearson, spearman, uncertainty
from zhat.metrics.agreement import ranks


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


def test_influences_are_the_derivatives_with_respect_to_weights():
    z, h = torch.randn(40, 3, dtype=torch.float64), torch.randn(40, 3, dtype=torch.float64)
    h = h + z
    rows = torch.cat([torch.ones(40, 1, dtype=torch.float64), pearson.contributions(z, h)], 1)

    def formula(sums):
        return pearson.formula(sums[:1].expand(3), *sums[1:].chunk(5)).mean()

    found = uncertainty.influences(formula, rows)
    weights = torch.ones(40, dtype=torch.float64)
    weights[7] += 1e-6
    assert float(found[7]) == pytest.approx(
        40 * float(formula(weights @ rows) - formula(rows.sum(0))) / 1e-6, rel=1e-3, abs=1e-4
    )
    assert float(found.mean()) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_an_interval_is_the_same_where_no_gradients_are_kept(mode):
    z, h = torch.randn(60, 2), torch.randn(60, 2, requires_grad=True)
    before = Recovery(AFFINE, shuffles=0)(z, h)
    with mode():
        assert Recovery(AFFINE, shuffles=0)(z + 0, h + 0) == before


def test_the_interval_of_a_mean_of_normal_numbers_is_students():
    values = torch.linspace(-1, 1, 9, dtype=torch.float64)  # of smaller kurtosis than normal numbers
    assert uncertainty.around(0.0, values) == pytest.approx(uncertainty.student(values))
    wild = torch.cat([values, torch.tensor([30.0], dtype=torch.float64)])
    low, high = uncertainty.around(float(wild.mean()), wild)
    assert high - low > 2 * (uncertainty.student(wild)[1] - uncertainty.student(wild)[0])  # one value holds it all
    assert uncertainty.around(0.5, torch.zeros(5)) == (0.5, 0.5)
    assert uncertainty.around(0.5, torch.zeros(1)) == (-math.inf, math.inf)
    huge = uncertainty.around(0.0, 1e200 * values)
    assert huge == pytest.approx(tuple(1e200 * end for end in uncertainty.student(values)))


def test_influences_on_a_rank_correlation_are_those_of_leaving_a_row_out():
    n = 60
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(n, 1, generator=generator, dtype=torch.float64)
    h = z + torch.randn(n, 1, generator=generator, dtype=torch.float64)
    found = uncertainty.of_ranks(ranks(z), ranks(h))
    whole = float(spearman(z, h))
    left = []
    for i in range(n):
        kept = torch.arange(n) != i
        left.append((n - 1) * (whole - float(spearman(z[kept], h[kept]))))
    left = torch.tensor(left, dtype=torch.float64)
    assert float(torch.corrcoef(torch.stack([found, left]))[0, 1]) > 0.99
    assert float(found.std() / left.std()) == pytest.approx(1, abs=0.1)


def test_shares_near_one_have_an_interval():
    low, high = uncertainty.shares(torch.tensor([30.0, 30.0]), torch.tensor([30.0, 30.0]))
    assert 0.9 < low < 0.95
    assert high == 1
    one = uncertainty.shares(torch.tensor([50.0]), torch.tensor([100.0]))
    assert one == pytest.approx((0.4038, 0.5962), abs=1e-4)  # Wilson's own


MANY = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("linear R2", "t, R2 0.5"),
        *(pytest.param("linear R2", case, marks=MANY) for case in ("Gaussian, R2 0.5", "noise")),
        *(pytest.param("MCC", case, marks=MANY) for case in ("Gaussian, R2 0.5", "noise", "t, R2 0.95")),
        *(pytest.param("rank MCC", case, marks=MANY) for case in ("Gaussian, R2 0.5", "noise")),
        *(pytest.param(name, "Gaussian, R2 0.5", marks=MANY) for name in ("audit", "decode")),
    ],
)
def test_intervals_hold_the_true_value_as_often_as_they_say(name, case):
    repeats = 150
    held = coverage(name, case, 200, repeats, first=0)["held"]
    assert abs(held - 0.95) < 0.02 + 3 * math.sqrt(0.95 * 0.05 / repeats)


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
