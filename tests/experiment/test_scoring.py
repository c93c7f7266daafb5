import statistics

import pytest
import torch

import zhat
from zhat.dgp import Around, Box, InvertibleMLP, Laplace, Orthogonal, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.equivalence import AFFINE, LINEAR, ORTHOGONAL
from zhat.errors import BadInput
from zhat.experiment.scoring import PROJECTED, Raw, averaged, latents_and_observations, represent
from zhat.metrics import Recovery
from zhat.objectives import InfoNCE, Supervised

SPHERE = Pairs(Uniform(Sphere(4)), VonMisesFisher(10.0), Orthogonal())


def test_scoring_a_perfect_encoder_gives_one_up_to_its_class():
    profile = zhat.score(torch.nn.Identity(), SPHERE)
    assert profile[ORTHOGONAL].value == pytest.approx(1, abs=1e-6)
    assert profile[ORTHOGONAL].shift is False
    box = Pairs(Uniform(Box(4)), Around(Laplace(Box(4), 0.1)), Orthogonal())
    assert zhat.score(torch.nn.Identity(), box)[ORTHOGONAL].shift is True
    assert zhat.score(torch.nn.Identity(), box, shift=False)[ORTHOGONAL].shift is False


def test_any_process_that_knows_its_latents_can_be_scored():
    class Own:
        def sample(self, n, *, generator):
            z = torch.randn(1, n, 3, generator=generator)
            return zhat.dgp.Batch(x=2 * z, z=z)

    assert zhat.score(torch.nn.Identity(), Own())[AFFINE].value == pytest.approx(1)


def test_a_world_without_latents_cannot_be_scored():
    class Blind:
        def sample(self, n, *, generator):
            return zhat.dgp.Batch(x=torch.randn(1, n, 3, generator=generator))

    with pytest.raises(BadInput, match="nothing to score against"):
        zhat.score(torch.nn.Identity(), Blind())


def test_representing_leaves_the_mode_of_the_encoder_alone():
    encoder = torch.nn.Sequential(torch.nn.BatchNorm1d(3)).train()
    before = encoder[0].running_mean.clone()
    represent(encoder, torch.randn(10, 3) + 5)
    assert encoder.training
    assert torch.equal(encoder[0].running_mean, before)


def test_with_a_batch_rows_are_normalised_by_the_statistics_of_their_batch():
    encoder = torch.nn.Sequential(torch.nn.BatchNorm1d(3, affine=False)).eval()
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0)) + 5
    h = represent(encoder, x, batch=20)
    assert h.reshape(3, 20, 3).mean(1).abs().max() < 1e-5
    assert represent(encoder, x).mean() > 4  # gathered statistics: none yet
    assert not encoder.training
    assert torch.equal(encoder[0].running_mean, torch.zeros(3))
    assert encoder[0].num_batches_tracked == 0


def test_the_papers_score_is_the_mean_over_batches_of_fresh_rows():
    class Bent(torch.nn.Module):
        def forward(self, x):
            return torch.sign(x)

    measure = Recovery(AFFINE, holdout=0)
    rows = [latents_and_observations(SPHERE, 500, 100 + i, "cpu") for i in range(10)]
    pairs = [(z, represent(Bent(), x)) for z, x in rows]
    one = [averaged(measure, pairs[:1]).value]
    many = averaged(measure, pairs)
    assert many.n == 5000
    assert many.low is None
    assert many.value == pytest.approx(one[0], abs=0.05)
    assert sum(many.per_latent) / 4 == pytest.approx(many.value)


def test_images_are_scored_through_a_fixed_projection_and_narrow_rows_as_they_are():
    images = torch.randint(0, 256, (20, 3, 16, 16), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    seen = represent(Raw(), images)
    assert seen.shape == (20, PROJECTED)
    assert torch.equal(seen, represent(Raw(), images))
    rows = torch.randn(20, 5)
    assert torch.equal(represent(Raw(), rows), rows)


def test_a_projection_keeps_what_an_affine_map_can_read():
    z = torch.randn(2000, 2, generator=torch.Generator().manual_seed(0))
    wide = z @ torch.randn(2, 900, generator=torch.Generator().manual_seed(1))
    assert Recovery(AFFINE)(z, represent(Raw(), wide)).value == pytest.approx(1, abs=1e-4)


def test_a_run_is_scored_seed_by_seed_with_bounds_beside():
    world = Pairs(Uniform(Sphere(3)), VonMisesFisher(20.0), InvertibleMLP(layers=2))
    run = zhat.train(zhat.Fresh(mlp, 3, 3, widths=(8,)), world, InfoNCE(), steps=2, batch=16, seeds=(0, 5))
    upper = zhat.train(mlp(3, 3, widths=(8,), seed=0), world, Supervised(), steps=2, batch=16)
    found = zhat.score(run, world, n=400, classes=[LINEAR, AFFINE], supervised=upper)
    assert found.seeds == (0, 5)
    assert found.learned == tuple(zhat.score(e, world, n=400, classes=[LINEAR, AFFINE]) for e in run.encoders)
    assert found.raw == (zhat.score(Raw(), world, n=400, classes=[LINEAR, AFFINE]),)
    assert found.upper[AFFINE] == zhat.score(upper.encoder, world, n=400, classes=[AFFINE])[AFFINE].value
    assert found[AFFINE].mean == statistics.fmean(p[AFFINE].value for p in found.learned)
    assert found.prediction is not None
    assert "supervised" in str(found)


def test_a_run_on_a_world_for_each_seed_is_scored_on_them():
    worlds = [Pairs(Uniform(Sphere(3)), VonMisesFisher(20.0), InvertibleMLP(layers=2), seed=s) for s in (0, 1)]
    run = zhat.train(zhat.Fresh(mlp, 3, 3, widths=(8,)), worlds, InfoNCE(), steps=2, batch=16, seeds=(0, 1))
    found = zhat.score(run, worlds, n=200, classes=[AFFINE])
    assert found.raw[0] != found.raw[1]
    assert found.learned[1] == zhat.score(run.encoders[1], worlds[1], n=200, classes=[AFFINE])
    with pytest.raises(BadInput, match="holds 3 processes for 2 seeds"):
        zhat.score(run, [*worlds, worlds[0]])
    with pytest.raises(BadInput, match="one encoder is scored in one world, but 2 came"):
        zhat.score(run.encoders[0], worlds)
    with pytest.raises(BadInput, match="stands beside the scores of a run"):
        zhat.score(run.encoders[0], worlds[0], supervised=run)
