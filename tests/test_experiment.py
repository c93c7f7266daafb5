import pytest
import torch

import zhat
from zhat.demo import DEMO
from zhat.dgp import Around, Box, InvertibleMLP, Laplace, Orthogonal, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.equivalence import AFFINE, ORTHOGONAL
from zhat.errors import BadInput, UnknownName
from zhat.experiment import Budget, Row, represent, run
from zhat.fresh import Fresh
from zhat.objectives import InfoNCE

ROW = Row(
    name="tiny",
    title="a tiny row",
    process=Pairs(Uniform(Sphere(3)), VonMisesFisher(10.0), InvertibleMLP(layers=2)),
    encoder=Fresh(mlp, 3, 3, widths=(8,), onto=Sphere(3)),
    objective=InfoNCE(temperature=0.1),
    budgets=(Budget("short", steps=20, batch=64, lr=1e-2), Budget("shorter", steps=10, batch=64, lr=1e-2)),
)


def test_a_row_can_name_its_own_folder():
    short, shorter = ROW.budgets
    assert ROW.folder(short).startswith("tiny/short-")
    assert ROW.folder(short) != ROW.folder(shorter)
    assert ROW.budget("shorter") is shorter
    with pytest.raises(UnknownName, match="no budget named 'long'. Known: short, shorter"):
        ROW.budget("long")


def test_only_missing_seeds_are_trained(tmp_path):
    told = []
    how = {"out": tmp_path, "n": 200, "progress": lambda *now: told.append(now)}
    first = run(ROW, ROW.budget("short"), seeds=(0, 1), **how)
    assert [r.seed for r in first] == [0, 1]
    assert len(told) == 20  # one for each look at the watched score
    again = run(ROW, ROW.budget("short"), seeds=(1, 2), **how)
    assert len(told) == 40
    assert again[0] == first[1]
    assert run(ROW, ROW.budget("short"), seeds=(0, 1, 2), **how) == (*first, again[1])
    assert len(told) == 40
    assert sorted(p.name for p in (tmp_path / ROW.folder(ROW.budgets[0])).iterdir()) == [
        "seed-0",
        "seed-1",
        "seed-2",
    ]


def test_a_record_holds_prediction_raw_and_learned_scores(tmp_path):
    (record,) = run(ROW, ROW.budget("short"), seeds=(0,), out=tmp_path, n=200)
    assert record.prediction.up_to is ORTHOGONAL
    assert record.learned[AFFINE].n == 100
    assert record.raw[AFFINE].value > 0.5
    assert record.settings["objective"].startswith("InfoNCE(")
    assert len(record.picture.z) == 100
    assert len(record.picture.singular_values) == 3
    assert record.curve.watched_name == "affine R2"


def test_scoring_a_perfect_encoder_gives_one_up_to_its_class():
    world = Pairs(Uniform(Sphere(4)), VonMisesFisher(10.0), Orthogonal())
    profile = zhat.score(torch.nn.Identity(), world)
    assert profile[ORTHOGONAL].value == pytest.approx(1, abs=1e-6)
    assert profile[ORTHOGONAL].shift is False
    box = Pairs(Uniform(Box(4)), Around(Laplace(Box(4), 0.1)), Orthogonal())
    assert zhat.score(torch.nn.Identity(), box)[ORTHOGONAL].shift is True


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


def test_seeds_must_differ(tmp_path):
    with pytest.raises(BadInput, match="`seeds` must be different"):
        run(ROW, ROW.budget("short"), seeds=(0, 0), out=tmp_path)


def test_the_demo_is_a_row_whose_conditions_hold():
    prediction = zhat.theory.predict(DEMO.process, DEMO.objective, DEMO.encoder)
    assert prediction.holds == "yes"
