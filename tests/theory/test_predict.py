import math
from dataclasses import replace

import pytest
import torch

from zhat import theory
from zhat.dgp import (
    Around,
    Box,
    GeneralizedNormal,
    InvertibleMLP,
    Laplace,
    Normal,
    Pairs,
    Product,
    Real,
    Sectors,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from zhat.encoders import mlp
from zhat.equivalence import AFFINE, LINEAR, ORTHOGONAL, SCALED_PERMUTATION, SIMILARITY
from zhat.fresh import Fresh
from zhat.objectives import CrossEntropy, Each, InBatchSoftmax, InfoNCE, LearnedSimilarity, NegativeLp, Supervised

SPHERE = Pairs(Uniform(Sphere(4)), VonMisesFisher(20.0), InvertibleMLP())
BOX = Pairs(Uniform(Box(4)), Around(Laplace(Box(4), scale=0.05)), InvertibleMLP())


def onto(space, **how):
    return mlp(4, 4, widths=(8,), onto=space, **how)


def failed(prediction):
    return [a.condition for a in prediction.answers if a.holds == "no"]


def test_matched_spheres_are_identified_up_to_rotation():
    prediction = theory.predict(SPHERE, InfoNCE(temperature=1 / 20), onto(Sphere(4)))
    assert prediction.holds == "yes"
    assert prediction.up_to is ORTHOGONAL
    assert prediction.scale == pytest.approx(1)
    assert prediction.shift is False


def test_a_trained_temperature_asks_for_no_radius_and_no_width():
    wrong = onto(Sphere(4, radius=3.0))
    assert theory.predict(SPHERE, InfoNCE(temperature=0.5), wrong).holds == "no"
    trained = theory.predict(SPHERE, LearnedSimilarity(InfoNCE(temperature=0.5)), wrong)
    assert (trained.holds, trained.up_to, trained.scale) == ("yes", ORTHOGONAL, None)
    assert "the temperature is trained" in str(trained)
    boxed = theory.predict(BOX, LearnedSimilarity(InfoNCE(NegativeLp(1)), 4), onto(Box(4)))
    assert (boxed.holds, boxed.up_to) == ("yes", SCALED_PERMUTATION)
    assert theory.predict(BOX, LearnedSimilarity(InfoNCE(NegativeLp(2))), onto(Box(4))).holds == "no"


def test_the_predicted_radius_is_the_root_of_temperature_times_concentration():
    radius = math.sqrt(0.5 * 20)
    prediction = theory.predict(SPHERE, InfoNCE(temperature=0.5), onto(Sphere(4, radius=radius)))
    assert (prediction.holds, prediction.up_to) == ("yes", SIMILARITY)
    assert prediction.scale == pytest.approx(radius)
    big = replace(SPHERE, marginal=Uniform(Sphere(4, radius=2.0)))
    assert theory.predict(big, InfoNCE(temperature=0.5)).scale == pytest.approx(radius / 2)
    assert theory.predict(SPHERE, InfoNCE(), onto(Sphere(4), learnable=True)).holds == "yes"


def test_a_wrong_radius_is_named_with_both_numbers():
    # zimmermann2021, Table 1: with temperature 1 and a unit sphere only concentration 1 matches.
    prediction = theory.predict(SPHERE, InfoNCE(), onto(Sphere(4)))
    assert failed(prediction) == ["output on the matching sphere"]
    assert "radius 1; theory requires sqrt(temperature * concentration) = 4.472" in str(prediction)
    one = replace(SPHERE, conditional=VonMisesFisher(1.0))
    assert theory.predict(one, InfoNCE(), onto(Sphere(4))).holds == "yes"


def test_matched_boxes_are_identified_up_to_scaled_permutation():
    prediction = theory.predict(BOX, InfoNCE(NegativeLp(1)), Fresh(onto, Box(4)))
    assert (prediction.holds, prediction.up_to, prediction.shift) == ("yes", SCALED_PERMUTATION, True)
    assert prediction.scale == pytest.approx(20)
    cubic = replace(BOX, conditional=Around(GeneralizedNormal(Box(4), p=3.0, scale=0.05)))
    assert theory.predict(cubic, InfoNCE(NegativeLp(3)), onto(Box(4))).scale == pytest.approx(20)


def test_with_squares_only_an_affine_map_is_promised():
    normal = replace(BOX, conditional=Around(Normal(Box(4), std=0.05)))
    prediction = theory.predict(normal, InfoNCE(NegativeLp(2)), onto(Box(4)))
    assert (prediction.holds, prediction.up_to) == ("yes", AFFINE)
    assert prediction.scale == pytest.approx(1 / (0.05 * math.sqrt(2)))


BROKEN = [
    (replace(SPHERE, marginal=Normal(Sphere(4))), InfoNCE(temperature=1 / 20), Sphere(4), "uniform marginal"),
    (
        replace(SPHERE, conditional=Around(Laplace(Sphere(4), 0.05))),
        InfoNCE(),
        Sphere(4),
        "von Mises-Fisher conditional",
    ),
    (replace(SPHERE, conditional=VonMisesFisher(0.0)), InfoNCE(), Sphere(4), "von Mises-Fisher conditional"),
    (SPHERE, InfoNCE(temperature=1 / 20), None, "output on the matching sphere"),
    (SPHERE, InfoNCE(temperature=1 / 20), Box(4), "output on the matching sphere"),
    (SPHERE, InfoNCE(temperature=1 / 20, alignment_weight=0.3), Sphere(4), "InfoNCE with equal weights"),
    (BOX, InfoNCE(), Sphere(4), "latents on a sphere"),
    (SPHERE, InfoNCE(NegativeLp(1)), Box(4), "latents in a convex body"),
    (BOX, InfoNCE(NegativeLp(3)), Box(4), "conditional of the same norm as the loss"),
    (BOX, InfoNCE(NegativeLp(1)), None, "output in the matching box"),
    (BOX, InfoNCE(NegativeLp(1)), Sphere(4), "output in the matching box"),
    (
        Pairs(Normal(Real(4)), Around(Normal(Real(4))), InvertibleMLP()),
        InfoNCE(NegativeLp(2)),
        Box(4),
        "latents in a convex body",
    ),
]


@pytest.mark.parametrize(("process", "objective", "space", "condition"), BROKEN)
def test_a_broken_condition_is_found_and_named(process, objective, space, condition):
    prediction = theory.predict(process, objective, onto(space))
    assert prediction.holds == "no"
    assert condition in failed(prediction)
    assert condition in prediction.sentence


def test_what_cannot_be_told_is_unknown_not_yes():
    without_encoder = theory.predict(SPHERE, InfoNCE(temperature=1 / 20))
    assert without_encoder.holds == "unknown"
    assert "must end on a sphere of radius" in str(without_encoder)

    class Own(torch.nn.Module):
        def forward(self, x):
            return x

    assert theory.predict(SPHERE, InfoNCE(temperature=1 / 20), Own()).holds == "unknown"
    assert theory.predict(BOX, InfoNCE(NegativeLp(1)), Own()).holds == "unknown"
    assert theory.predict(object(), InfoNCE(NegativeLp(1))).holds == "unknown"

    # Of a class of somebody's own zhat cannot say that it is not uniform.
    own = type("Own", (), {"space": Sphere(4), "log_prob": None})()
    unsure = theory.predict(replace(SPHERE, marginal=own), InfoNCE(temperature=1 / 20), onto(Sphere(4)))
    assert unsure.holds == "unknown"

    class Odd:
        def build(self, dim, generator):
            return None

    odd_mixing = replace(SPHERE, mixing=Odd())
    answers = theory.predict(odd_mixing, InfoNCE(temperature=1 / 20), onto(Sphere(4))).answers
    assert [a.holds for a in answers if a.condition == "injective mixing"] == ["unknown"]


def test_a_fixed_box_must_have_the_predicted_width():
    assert theory.predict(BOX, InfoNCE(NegativeLp(1)), onto(Box(4), learnable=False)).holds == "no"
    wide = onto(Box(4, high=20.0), learnable=False)
    assert theory.predict(BOX, InfoNCE(NegativeLp(1)), wide).holds == "yes"


def test_outputs_of_another_dimension_are_no_match():
    wide = mlp(4, 6, widths=(8,), onto=Sphere(6))
    assert theory.predict(SPHERE, InfoNCE(temperature=1 / 20), wide).holds == "no"
    assert theory.predict(BOX, InfoNCE(NegativeLp(1)), mlp(4, 6, widths=(8,), onto=Box(6))).holds == "no"


def test_an_objective_without_a_theorem_gets_no_promise():
    prediction = theory.predict(SPHERE, Supervised())
    assert prediction.up_to is None
    assert prediction.holds == "no"


def test_a_free_output_is_told_even_when_it_is_named():
    assert theory.predict(SPHERE, InfoNCE(temperature=1 / 20), mlp(4, 4, widths=(8,), onto=Real(4))).holds == "no"


def test_boxes_side_by_side_are_a_convex_body():
    space = Product(Box(2), Box(2, high=3.0))
    world = Pairs(Uniform(space), Around(Laplace(space, scale=0.05)), InvertibleMLP())
    answers = {a.condition: a.holds for a in theory.predict(world, InfoNCE(NegativeLp(1))).answers}
    assert answers["latents in a convex body"] == "yes"
    spheres = Product(Sphere(2), Sphere(2))
    world = Pairs(Uniform(spheres), Around(Laplace(spheres, scale=0.05)), InvertibleMLP())
    answers = {a.condition: a.holds for a in theory.predict(world, InfoNCE(NegativeLp(1))).answers}
    assert answers["latents in a convex body"] == "no"


def test_predicting_leaves_the_global_random_state_alone():
    before = torch.random.get_rng_state()
    theory.predict(SPHERE, InfoNCE(), Fresh(onto, Sphere(4)))
    assert torch.equal(before, torch.random.get_rng_state())


def test_theory_of_two_models_asks_for_more_labels_than_features_and_a_finite_minimum():
    def answers(world, dim):
        found = theory.predict(world, Fresh(Each, Fresh(CrossEntropy, dim, world.labels)))
        assert found.up_to is LINEAR
        return [answer.holds for answer in found.answers]

    assert answers(Sectors(6, harmonics=2), 4) == ["yes", "yes"]
    assert answers(Sectors(6, harmonics=2), 5) == ["yes", "yes"]
    assert answers(Sectors(6, harmonics=2), 2) == ["yes", "no"]
    assert answers(Sectors(6, harmonics=3), 6) == ["no", "yes"]
    assert answers(Sectors(6), 2) == ["yes", "no"]
    assert answers(Sectors(6, label_noise=0.1), 2) == ["yes", "unknown"]
    contrastive = theory.predict(SPHERE, Each(InBatchSoftmax()))
    assert [answer.holds for answer in contrastive.answers] == ["unknown", "unknown"]
    assert contrastive.sentence.startswith("Two trained models agree up to linear")
