import pytest
import torch

import zhat
from zhat.dgp import Around, Box, Laplace, Orthogonal, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.equivalence import AFFINE, ORTHOGONAL
from zhat.errors import BadInput
from zhat.experiment.scoring import averaged, represent
from zhat.metrics import Recovery

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


def test_the_papers_score_is_the_mean_over_batches_of_fresh_rows():
    class Bent(torch.nn.Module):
        def forward(self, x):
            return torch.sign(x)

    measure = Recovery(AFFINE, holdout=0)
    one = [averaged(measure, Bent(), SPHERE, batches=1, rows=500, device="cpu").value]
    many = averaged(measure, Bent(), SPHERE, batches=10, rows=500, device="cpu")
    assert many.n == 5000
    assert many.low is None
    assert many.value == pytest.approx(one[0], abs=0.05)
    assert sum(many.per_latent) / 4 == pytest.approx(many.value)
