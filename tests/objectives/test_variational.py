import math

import pytest
import torch
from scipy import integrate, stats

import zhat
from zhat import Fresh
from zhat.datasets import NextRow
from zhat.dgp import Batch
from zhat.encoders import Posterior, conv, deconv
from zhat.errors import BadInput
from zhat.objectives import SlowVAE
from zhat.objectives.variational import expected_distance

DECODER = Fresh(deconv, 2, (1, 16, 16), widths=(8, 8), top=16)


def batch(n=5, dim=2):
    generator = torch.Generator().manual_seed(0)
    x = (torch.rand(2, n, 1, 16, 16, generator=generator) > 0.5).float()
    return Batch(x=x, noise=torch.randn(2, n, dim, generator=generator))


@pytest.mark.parametrize(("mean", "sigma"), [(0.0, 1.0), (0.7, 0.3), (-2.0, 1.5), (3.0, 0.01)])
def test_the_expected_distance_is_the_integral(mean, sigma):
    density = stats.norm(mean, sigma).pdf
    ends = (mean - 12 * sigma, mean + 12 * sigma)
    expected, error = integrate.quad(lambda h: abs(h) * density(h), *ends, points=[0.0, mean], limit=200)
    found = expected_distance(torch.tensor(mean).double(), torch.tensor(2 * math.log(sigma)).double())
    assert float(found) == pytest.approx(expected, abs=error + 1e-7)


def test_the_loss_is_what_the_formula_says_for_views_that_agree():
    objective = SlowVAE(DECODER, 2, beta=2.0, gamma=3.0, rate=6.0)
    torch.nn.init.zeros_(objective.decoder[-1].weight)
    torch.nn.init.zeros_(objective.decoder[-1].bias)  # logits 0: every point costs log 2
    loss = objective(torch.zeros(2, 5, 4), batch()).detach()  # mean 0 and variance 1 in both views
    entropy = math.log(2 * math.pi * math.e)  # of two standard normals
    laplace = 2 * 2 * (6 * math.sqrt(2 / math.pi) - math.log(3))  # two views of two coordinates
    expected = 2 * 256 * math.log(2) + 2.0 * 0.0 + 3.0 * (laplace - entropy)
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_latents_that_move_cost_more_and_a_faster_prior_forgives_them():
    objective = SlowVAE(DECODER, 2)
    still = torch.zeros(2, 5, 4)
    moved = still.clone()
    moved[1, :, 0] = 1.0
    rows = batch()
    rows = Batch(x=rows.x, noise=torch.zeros_like(rows.noise))
    torch.nn.init.zeros_(objective.decoder[-1].weight)
    assert objective(moved, rows) > objective(still, rows)
    slow, fast = (SlowVAE(DECODER, 2, rate=rate) for rate in (6.0, 1.0))
    for each in (slow, fast):
        torch.nn.init.zeros_(each.decoder[-1].weight)
    cost = [(each(moved, rows) - each(still, rows)).item() for each in (slow, fast)]
    assert cost[0] > cost[1]


def test_bad_input_gets_a_sentence():
    objective = SlowVAE(DECODER, 2)
    with pytest.raises(BadInput, match=r"SlowVAE takes means and log-variances of 2 views, \(2, n, 4\)"):
        objective(torch.zeros(2, 5, 2), batch())
    with pytest.raises(BadInput, match="needs `batch.noise`, which `zhat.train` adds"):
        objective(torch.zeros(2, 5, 4), Batch(x=batch().x))
    with pytest.raises(BadInput, match="`rate` must be"):
        SlowVAE(DECODER, 2, rate=0.0)


def test_seeds_in_a_stack_draw_what_they_draw_alone():
    frames = (torch.rand(40, 1, 16, 16, generator=torch.Generator().manual_seed(1)) > 0.5).to(torch.uint8) * 255
    encoder = Fresh(Posterior, Fresh(conv, (1, 16, 16), 4, widths=(4, 4), top=8))
    how = {"steps": 3, "batch": 8, "lr": 1e-3}
    objective = Fresh(SlowVAE, DECODER, 2)
    stacked = zhat.train(encoder, NextRow(frames), objective, seeds=(0, 7), **how)
    alone = zhat.train(encoder, NextRow(frames), objective, seed=7, **how)
    assert stacked.curves[1].loss == pytest.approx(alone.curves[0].loss, rel=1e-5)
    assert stacked.curves[0].loss != pytest.approx(alone.curves[0].loss, rel=1e-3)
    assert alone.encoder(torch.rand(3, 1, 16, 16)).shape == (3, 2)  # in evaluation, the mean alone


@pytest.mark.slow
def test_a_square_that_moves_is_found_by_slowness():
    """The two latents, the place of a square, move rarely; the representation holds them."""
    generator = torch.Generator().manual_seed(0)
    place = torch.zeros(600, 2)
    for i in range(1, 600):
        moves = torch.rand(2, generator=generator) < 0.3
        place[i] = (place[i - 1] + 2 * moves * torch.randn(2, generator=generator)).clamp(0, 11)
    frames = torch.zeros(600, 1, 16, 16, dtype=torch.uint8)
    for i, (y, x) in enumerate(place.round().long().tolist()):
        frames[i, 0, y : y + 5, x : x + 5] = 255
    encoder = Fresh(Posterior, Fresh(conv, (1, 16, 16), 4, widths=(8, 8), top=32))
    decoder = Fresh(deconv, 2, (1, 16, 16), widths=(8, 8), top=32)
    run = zhat.train(encoder, NextRow(frames), Fresh(SlowVAE, decoder, 2), steps=500, batch=32, lr=3e-3)
    h = run.encoder(frames / 255.0).detach()
    assert zhat.metrics.linear_r2(place, h).value > 0.8
