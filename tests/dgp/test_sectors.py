import math

import pytest
import torch

from zhat.dgp import Sectors
from zhat.errors import BadInput


def sample(world, n=20_000, seed=0):
    return world.sample(n, generator=torch.Generator().manual_seed(seed))


def test_labels_are_the_sectors_of_the_angle():
    batch = sample(Sectors())
    assert batch.x.shape == batch.z.shape == (1, 20_000, 2)
    x, y = batch.x[0].T
    for label in range(18):
        middle = 2 * math.pi * (label + 0.5) / 18
        cosine = (x * math.cos(middle) + y * math.sin(middle)) / torch.hypot(x, y)
        inside = cosine > math.cos(math.pi / 18)
        assert float((inside == (batch.label == label)).float().mean()) > 0.999


@pytest.mark.parametrize("world", [Sectors(), Sectors(harmonics=3)], ids=["hard", "soft"])
def test_points_have_the_spread_of_the_paper_and_labels_are_equally_frequent(world):
    batch = sample(world)
    assert float(batch.x.std()) == pytest.approx(3, abs=4 * 3 / math.sqrt(2 * 40_000))
    counts = torch.bincount(batch.label, minlength=18)
    share = 1 / 18
    assert float((counts / 20_000 - share).abs().max()) < 4 * math.sqrt(share * (1 - share) / 20_000)


def test_label_noise_replaces_that_share_of_labels_and_no_points():
    clean, noisy = sample(Sectors(labels=4)), sample(Sectors(labels=4, label_noise=0.4))
    assert torch.equal(clean.x, noisy.x)
    changed = float((clean.label != noisy.label).float().mean())  # a quarter of the replaced ones are right by chance
    assert changed == pytest.approx(0.3, abs=4 * math.sqrt(0.3 * 0.7 / 20_000))


@pytest.mark.parametrize(
    "world", [Sectors(harmonics=2, sharpness=1.0), Sectors(harmonics=9, label_noise=0.3), Sectors(label_noise=0.5)]
)
def test_labels_are_drawn_with_the_probabilities_it_says(world):
    """A proper score: the mean log-probability of drawn labels is minus the mean entropy."""
    batch = sample(world)
    log_p = world.log_prob(batch.x[0])
    assert torch.allclose(log_p.exp().sum(-1), torch.ones(20_000), atol=1e-5)
    drawn = log_p.gather(1, batch.label[:, None])[:, 0]
    entropy = -(log_p.exp() * log_p).sum(-1)
    assert float((drawn + entropy).mean()) == pytest.approx(0, abs=4 * float((drawn + entropy).std()) / 20_000**0.5)


def test_labels_without_noise_are_certain():
    batch = sample(Sectors(), n=100)
    log_p = Sectors().log_prob(batch.x[0])
    assert torch.equal(log_p.argmax(-1), batch.label)
    assert float(log_p.max(-1).values.abs().max()) == 0
    assert bool((log_p.min(-1).values == -math.inf).all())


@pytest.mark.parametrize(("labels", "harmonics"), [(18, 1), (18, 4), (18, 8), (18, 9), (7, 3)])
def test_log_probabilities_span_as_many_directions_as_the_rank_says(labels, harmonics):
    world = Sectors(labels, harmonics=harmonics)
    log_p = world.log_prob(sample(world, n=4000).x[0].double())
    values = torch.linalg.svdvals((log_p - log_p.mean(1, keepdim=True)) / math.sqrt(4000))
    assert int((values > 1e-6).sum()) == world.rank == min(2 * harmonics, labels - 1)
    assert float(values[world.rank - 1]) > 0.5 * float(values[0])  # no direction is weak


def test_the_same_generator_gives_the_same_draw():
    assert torch.equal(sample(Sectors(), seed=1).x, sample(Sectors(seed=5), seed=1).x)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": 1}, "`labels` must be a whole number of at least 2"),
        ({"scale": 0}, "`scale` must be above 0"),
        ({"sharpness": -1.0}, "`sharpness` must be above 0"),
        ({"harmonics": 10}, "18 labels determine at most 9 harmonics, but 10 came"),
        ({"label_noise": 1.5}, "`label_noise` is a probability, from 0 to 1"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_mistakes_get_a_sentence(arguments, message):
    with pytest.raises(BadInput, match=message):
        Sectors(**arguments)
