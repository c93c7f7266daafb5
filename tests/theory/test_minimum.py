import math

import pytest
import torch
from torch import nn

from zhat.dgp import Around, Box, Laplace, Linear, Normal, Orthogonal, Pairs, Real, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.objectives import CrossEntropy, Dot, InfoNCE, NegativeLp
from zhat.results import Curve, from_json, to_json
from zhat.theory import injectivity, minimum

SPHERE = Pairs(Uniform(Sphere(3)), VonMisesFisher(10.0), Orthogonal())
BOX = Pairs(Uniform(Box(2)), Around(Laplace(Box(2), 0.1)), Orthogonal())


@pytest.mark.parametrize(
    ("world", "objective"),
    [
        (SPHERE, InfoNCE(temperature=0.1, include_self_pair=False)),
        (BOX, InfoNCE(NegativeLp(1), temperature=0.5, include_self_pair=False)),
        (Pairs(Uniform(Box(2)), Around(Normal(Box(2), 0.2)), Orthogonal()), InfoNCE(NegativeLp(2), 1.0, False)),
    ],
    ids=["sphere", "Laplace", "normal"],
)
def test_the_floor_is_the_loss_of_the_true_latents_where_loss_and_world_match(world, objective):
    found = minimum(world, objective, batch=300, batches=2)
    assert found.floor == pytest.approx(found.latents, abs=1e-4)


def test_positives_that_say_nothing_leave_the_logarithm_of_the_candidates():
    nothing = Pairs(Uniform(Sphere(3)), VonMisesFisher(0.0), Orthogonal())
    found = minimum(nothing, InfoNCE(include_self_pair=False), batch=50, batches=1)
    assert found.floor == pytest.approx(math.log(50))
    mean = minimum(nothing, InfoNCE(include_self_pair=False, average_negatives=True), batch=50, batches=1)
    assert mean.floor == pytest.approx(0.0, abs=1e-9)


def test_the_loss_is_that_of_the_objective():
    encoder = mlp(3, 3, widths=(8,), onto=Sphere(3), seed=0)
    objective = InfoNCE(temperature=0.2)
    found = minimum(SPHERE, objective, encoder, batch=200, batches=1)
    from zhat import randomness

    drawn = SPHERE.sample(200, generator=randomness.generator(0, "minimum"))
    with torch.no_grad():
        direct = objective(torch.stack([encoder(x) for x in drawn.x]).double(), drawn)
    assert found.loss == pytest.approx(float(direct), rel=1e-5)
    assert found.measured
    assert found.above == pytest.approx(found.loss - found.floor)
    assert from_json(to_json(found)) == found


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_no_similarity_that_is_largest_to_itself_falls_below_the_floor_with_a_self_pair(p):
    objective = InfoNCE(NegativeLp(p), include_self_pair=True)
    law = Laplace(Box(2), 0.1) if p == 1 else Normal(Box(2), 0.1)
    world = Pairs(Uniform(Box(2)), Around(law), Orthogonal())
    found = minimum(world, objective, batch=120, batches=1)
    loose = minimum(world, InfoNCE(NegativeLp(p), include_self_pair=False), batch=120, batches=1)
    assert loose.floor < found.floor <= found.best + 1e-6
    for seed in range(2):
        for width in (1.0, 10.0):
            encoder = nn.Sequential(mlp(2, 3, widths=(16,), seed=seed), Scaled(width))
            assert minimum(world, objective, encoder, batch=120, batches=1).loss > found.floor


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        return self.width * x


def test_a_marginal_that_is_not_uniform_counts():
    # Positives of normal noise around normal latents lie further out than negatives: that alone tells them apart.
    world = Pairs(Normal(Real(4)), Around(Normal(Real(4))), Orthogonal())
    found = minimum(world, InfoNCE(NegativeLp(2), temperature=2.0, include_self_pair=False), batch=300, batches=2)
    assert found.floor < found.latents - 0.1


def test_negatives_from_elsewhere_have_their_own_floor():
    fresh = Pairs(Uniform(Sphere(3)), VonMisesFisher(10.0), Orthogonal(), fresh_negatives=True)
    found = minimum(fresh, InfoNCE(temperature=0.1), batch=300, batches=2)
    assert found.floor == pytest.approx(found.latents, abs=1e-4)
    turned = minimum(SPHERE, InfoNCE(temperature=0.1, against_positive=True), batch=300, batches=2)
    assert turned.floor == pytest.approx(turned.latents, abs=1e-4)


def test_without_an_encoder_the_end_of_the_curve_counts():
    found = minimum(SPHERE, InfoNCE(), batch=50, batches=1, curve=Curve((1, 2), (5.0, 4.0)))
    assert (found.loss, found.measured) == (4.0, False)


def test_where_no_floor_is_known_it_is_said_why():
    assert "not for Pairs with CrossEntropy" in minimum(SPHERE, CrossEntropy(3, 4))
    assert "parts weigh differently" in minimum(SPHERE, InfoNCE(alignment_weight=0.4))
    assert "the positive is not among the candidates" in minimum(SPHERE, InfoNCE(include_positive=False))


def test_a_rotation_loses_nothing_and_a_fold_does():
    plane = Pairs(Normal(Real(2)), Around(Normal(Real(2), 0.1)), Orthogonal())
    whole = injectivity(plane, nn.Identity(), rows=20, of=300)
    assert whole.smallest == pytest.approx(1, abs=1e-5)
    assert whole.collisions == 0
    folded = injectivity(plane, Folded(), rows=20, of=300)
    assert folded.collisions > 0.2
    flat = injectivity(plane, nn.Linear(2, 1), rows=20, of=300)
    assert flat.smallest == 0
    assert injectivity(SPHERE, nn.Identity(), rows=20, of=300).smallest == pytest.approx(1, abs=1e-5)
    squeezed = Pairs(Normal(Real(2)), Around(Normal(Real(2), 0.1)), Linear())
    assert injectivity(squeezed, nn.Identity(), rows=5, of=300).smallest < 1


class Folded(nn.Module):
    def forward(self, x):
        return x.abs()


def test_the_floor_of_a_dot_product_counts_the_self_pair_where_the_encoder_ends_on_a_sphere():
    onto = mlp(3, 3, widths=(8,), onto=Sphere(3), seed=0)
    free = mlp(3, 3, widths=(8,), seed=0)
    with_own, without = (minimum(SPHERE, InfoNCE(Dot(), 0.1), e, batch=200, batches=1).floor for e in (onto, free))
    assert with_own > without
