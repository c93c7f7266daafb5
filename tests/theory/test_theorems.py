"""Claims against runs: where a theorem says a class, a small training reaches it and no tighter one."""

from dataclasses import replace

import pytest

import zhat
from zhat.citing import keys
from zhat.dgp import (
    Around,
    Box,
    GeneralizedNormal,
    InvertibleMLP,
    Normal,
    Pairs,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from zhat.encoders import mlp
from zhat.equivalence import AFFINE, ORTHOGONAL, SCALED_PERMUTATION
from zhat.objectives import InfoNCE, NegativeLp
from zhat.theory import THEOREMS, predict


def test_every_theorem_is_cited_and_asks_for_something():
    for theorem in THEOREMS:
        assert theorem.cite in keys()
        assert theorem.conditions


@pytest.mark.slow
def test_on_spheres_the_rotation_is_recovered_and_nothing_tighter():
    world = Pairs(Uniform(Sphere(4)), VonMisesFisher(20.0), InvertibleMLP(layers=3))
    encoder = mlp(4, 4, widths=(128, 128, 128), onto=Sphere(4), seed=0)
    objective = InfoNCE(temperature=1 / 20)
    assert predict(world, objective, encoder).up_to is ORTHOGONAL
    run = zhat.train(encoder, world, objective, steps=2000, batch=512, lr=3e-3)
    profile = zhat.score(run.encoder, world)
    assert profile[ORTHOGONAL].value > 0.98
    assert profile[SCALED_PERMUTATION].value < 0.9


def box_profile(conditional, similarity, onto):
    world = Pairs(Uniform(Box(3)), Around(conditional), InvertibleMLP(layers=2))
    encoder = mlp(3, 3, widths=(128, 128, 128), onto=onto, seed=0)
    scale = {"bound": 20.0} if onto is not None else None
    run = zhat.train(encoder, world, InfoNCE(similarity), steps=3000, batch=512, lr=2e-3, lr_scale=scale)
    return zhat.score(run.encoder, world)


@pytest.mark.slow
def test_in_boxes_the_coordinates_are_recovered_one_by_one():
    profile = box_profile(GeneralizedNormal(Box(3), p=3.0, scale=0.1), NegativeLp(3), Box(3))
    assert profile[SCALED_PERMUTATION].value > 0.95


@pytest.mark.slow
def test_with_squares_and_a_free_output_only_the_affine_map_remains():
    profile = box_profile(Normal(Box(3), std=0.1), NegativeLp(2), None)
    assert profile[AFFINE].value > 0.95
    assert profile[SCALED_PERMUTATION].value < 0.9


@pytest.mark.slow
def test_without_information_in_the_pairs_nothing_is_recovered():
    world = Pairs(Uniform(Sphere(4)), VonMisesFisher(20.0), InvertibleMLP(layers=3))
    blind = replace(world, conditional=VonMisesFisher(0.0))
    encoder = mlp(4, 4, widths=(64, 64), onto=Sphere(4), seed=0)
    run = zhat.train(encoder, blind, InfoNCE(temperature=1 / 20), steps=800, batch=512, lr=3e-3)
    assert zhat.score(run.encoder, world)[AFFINE].value < 0.9
