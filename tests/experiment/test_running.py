import shutil
from collections import OrderedDict
from dataclasses import replace

import pytest
import torch

import zhat
from zhat import runs
from zhat.datasets import NextRow
from zhat.demo import DEMO
from zhat.dgp import Embedding, InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.equivalence import AFFINE, ORTHOGONAL
from zhat.errors import BadInput, RunFailed, TooFewRows, UnknownName
from zhat.experiment import Budget, Factors, Row, against, run
from zhat.experiment.running import seconds_per_step, stacks
from zhat.fresh import Fresh
from zhat.metrics import Recovery
from zhat.objectives import InfoNCE
from zhat.training import Constant, Recipe

ROW = Row(
    name="tiny",
    title="a tiny row",
    process=Pairs(Uniform(Sphere(3)), VonMisesFisher(10.0), InvertibleMLP(layers=2)),
    encoder=Fresh(mlp, 3, 3, widths=(8,), onto=Sphere(3)),
    objective=InfoNCE(temperature=0.1),
    budgets=(
        Budget("short", Recipe(20, 64, 1e-2, Constant()), rows=200, batches=2, profile_rows=200),
        Budget("shorter", Recipe(10, 64, 1e-2, Constant()), profile_rows=200),
    ),
)
SHORT = ROW.budget("short")


def test_a_row_can_name_its_own_folder():
    short, shorter = ROW.budgets
    assert ROW.folder(short).startswith("tiny/short-")
    assert ROW.folder(short) != ROW.folder(shorter)
    assert ROW.budget("shorter") is shorter
    with pytest.raises(UnknownName, match="no budget named 'long'. Known: short, shorter"):
        ROW.budget("long")


def test_the_folder_of_a_row_is_the_same_in_every_process_and_tells_functions_apart():
    def one(h, batch):
        return h.mean()

    def two(h, batch):
        return h.sum()

    folders = [replace(ROW, objective=objective).folder(SHORT) for objective in (one, two, lambda h, b: h.mean())]
    assert len(set(folders)) == 3
    assert " at 0x" not in str(replace(ROW, objective=one).settings(SHORT))


def test_raw_observations_that_are_the_same_are_profiled_once(monkeypatch):
    asked = []
    monkeypatch.setattr(against, "profile", lambda z, h, **how: asked.append(h) or len(asked))
    monkeypatch.setattr(against, "_PROFILES", OrderedDict())
    z, x = torch.rand(2, 60, 3, generator=torch.Generator().manual_seed(99))
    assert [against._of_observations(z.clone(), x.clone(), True) for _ in range(3)] == [1, 1, 1]
    assert against._of_observations(z, x, False) == 2
    assert against._of_observations(z, x + 1e-6, True) == 3
    assert against._of_observations(z + 1e-6, x, True) == 4
    for i in range(9):
        against._of_observations(z, x + i + 1, True)
    assert len(against._PROFILES) == 8


def test_only_missing_seeds_are_trained(tmp_path):
    told = []
    how = {"out": tmp_path, "progress": lambda *now: told.append(now)}
    first = run(ROW, SHORT, seeds=(0, 1), **how)
    assert [r.seed for r in first] == [0, 1]
    before = len(told)
    assert before > 0
    again = run(ROW, SHORT, seeds=(1, 2), **how)
    assert len(told) == 2 * before
    assert again[0] == first[1]
    assert run(ROW, SHORT, seeds=(0, 1, 2), **how) == (*first, again[1])
    assert len(told) == 2 * before
    assert sorted(p.name for p in (tmp_path / ROW.folder(SHORT)).iterdir()) == ["seed-0", "seed-1", "seed-2"]


def test_a_record_holds_prediction_raw_and_learned_scores(tmp_path):
    (record,) = run(ROW, SHORT, seeds=(0,), out=tmp_path, measure=Recovery(AFFINE, holdout=0))
    assert record.prediction.up_to is ORTHOGONAL
    assert record.learned[AFFINE].n == 100
    assert record.raw[AFFINE].value > 0.5
    assert record.settings["objective"].startswith("InfoNCE(")
    assert len(record.picture.z) == 100
    assert len(record.picture.singular_values) == 3
    assert record.curve.watched_name == "affine R2"
    assert (record.by_paper.held_out, record.by_paper.n) == (False, 400)
    assert record.held_out.held_out is True
    assert record.held_out.low is not None


def test_weights_may_be_left_behind(tmp_path):
    run(ROW, SHORT, seeds=(0,), out=tmp_path, keep_weights=False)
    (folder,) = zhat.runs.scan(tmp_path)
    assert not (folder / "encoder.safetensors").exists()
    assert zhat.runs.read(folder).seed == 0
    with pytest.raises(BadInput, match="was kept without its weights"):
        zhat.runs.weights(folder)


def test_too_few_rows_for_scoring_are_refused_before_training(tmp_path):
    wide = replace(ROW, process=replace(ROW.process, mixing=Embedding(12)), encoder=Fresh(mlp, 12, 3, widths=(8,)))
    told = []
    with pytest.raises(TooFewRows, match="Bring at least 130 rows"):
        run(wide, replace(SHORT, profile_rows=100), seeds=(0,), out=tmp_path, progress=lambda *now: told.append(now))
    assert told == []


def test_a_collapsed_seed_fails_the_run_and_the_others_are_kept(tmp_path):
    class Dead(torch.nn.Module):
        made = 0

        def __init__(self):
            super().__init__()
            Dead.made += 1
            self.inner = torch.nn.Linear(3, 3)
            self.register_buffer("alive", torch.tensor(float(Dead.made != 2)))

        def forward(self, x):
            return self.alive * self.inner(x)

    row = replace(ROW, encoder=Fresh(Dead), objective=InfoNCE())
    Dead.made = -2  # two are made to look at sizes and shapes
    with pytest.raises(RunFailed, match="a trained encoder has no score. seed 1: `h` is constant in 3 of 3 columns"):
        run(row, SHORT, seeds=(0, 1, 2), out=tmp_path)
    assert [p.name for p in zhat.runs.scan(tmp_path)] == ["seed-0", "seed-2"]


def test_many_seeds_make_no_long_file_names(tmp_path):
    checkpoints = []

    def look(*now):
        checkpoints.extend(p.name for p in tmp_path.rglob("checkpoint*"))

    run(ROW, ROW.budget("shorter"), seeds=range(10**9, 10**9 + 24), out=tmp_path, progress=look)
    assert len(list(zhat.runs.scan(tmp_path))) == 24
    assert all(len(name) < 60 for name in checkpoints)


def test_seeds_must_differ(tmp_path):
    with pytest.raises(BadInput, match="`seeds` must be different"):
        run(ROW, SHORT, seeds=(0, 0), out=tmp_path)


def test_the_time_of_a_step_is_measured():
    assert 0 < seconds_per_step(ROW, SHORT, seeds=2, device="cpu") < 5


def test_the_demo_is_a_row_whose_conditions_hold():
    prediction = zhat.theory.predict(DEMO.process, DEMO.objective, DEMO.encoder)
    assert prediction.holds == "yes"


def test_seeds_that_do_not_fit_one_stack_are_trained_one_after_the_other(tmp_path, monkeypatch):
    told = []
    together = run(ROW, SHORT, seeds=(0, 1), out=tmp_path / "a", progress=lambda *now: told.append(now))
    once = len(told)
    monkeypatch.setattr("zhat.experiment.running.STACKED", 1)
    apart = run(ROW, SHORT, seeds=(0, 1), out=tmp_path / "b", progress=lambda *now: told.append(now))
    assert len(told) == 3 * once
    assert apart[0].seconds != apart[1].seconds
    for one, other in zip(together, apart, strict=True):
        assert one.learned[AFFINE].value == pytest.approx(other.learned[AFFINE].value, abs=1e-3)


def test_a_seed_that_is_missing_from_a_finished_stack_is_trained_with_its_stack(tmp_path):
    first = run(ROW, SHORT, seeds=(0, 1, 2), out=tmp_path)
    home = tmp_path / ROW.folder(SHORT)
    shutil.rmtree(home / "seed-1")
    assert stacks(ROW, SHORT, (0, 1), tmp_path) == [(0, 1, 2)]
    again = run(ROW, SHORT, seeds=(0, 1, 2), out=tmp_path)
    assert again[1].learned == first[1].learned  # to the last digit: alone, rounding would differ
    assert again[1].curve == first[1].curve
    assert again[0] == first[0]
    assert again[1].stack == (0, 1, 2)


def test_a_kill_between_two_folders_goes_on_from_the_checkpoint_of_the_stack(tmp_path, monkeypatch):
    whole = run(ROW, SHORT, seeds=(0, 1), out=tmp_path / "whole")
    write = zhat.runs.write

    def killed(folder, *args):
        if folder.name == "seed-1":
            raise KeyboardInterrupt
        return write(folder, *args)

    monkeypatch.setattr("zhat.runs.write", killed)
    with pytest.raises(KeyboardInterrupt):
        run(ROW, SHORT, seeds=(0, 1), out=tmp_path / "killed")
    home = tmp_path / "killed" / ROW.folder(SHORT)
    assert sorted(p.name.split("-")[0] for p in home.iterdir()) == ["checkpoint", "seed"]
    monkeypatch.setattr("zhat.runs.write", write)
    told = []
    after = run(ROW, SHORT, seeds=(0, 1), out=tmp_path / "killed", progress=lambda *now: told.append(now))
    assert told == []  # nothing was trained again
    assert after[1].learned == whole[1].learned
    assert sorted(p.name for p in home.iterdir()) == ["seed-0", "seed-1"]


def test_seeds_that_nobody_began_make_a_stack_of_their_own(tmp_path):
    run(ROW, SHORT, seeds=(0, 1), out=tmp_path)
    assert stacks(ROW, SHORT, (0, 1, 2, 3), tmp_path) == [(2, 3)]
    two = replace(SHORT, recipe=replace(SHORT.recipe, together=2))
    assert stacks(ROW, two, range(5), tmp_path) == [(0, 1), (2, 3), (4,)]


def test_recorded_rows_that_are_no_dataclass_can_be_the_process_of_a_row(tmp_path):
    z = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
    x = torch.cat([z, z.tanh()], 1)
    recorded = NextRow(x, z=z)
    row = Row("own", "own rows", recorded, Fresh(mlp, 4, 2, widths=(8,)), InfoNCE(), ROW.budgets, against=Factors())
    (record,) = run(row, SHORT, seeds=(1,), out=tmp_path, measure=Recovery(AFFINE))
    assert record.sides.truth == "the known factors"
    assert record.raw[AFFINE].value == pytest.approx(1, abs=1e-4)
    assert record.by_paper.held_out is True


def test_a_finished_row_is_loaded_with_its_trained_encoders(tmp_path):
    budget = ROW.budgets[0]
    run(ROW, budget, seeds=[0, 1], out=tmp_path)
    folder = tmp_path / ROW.folder(budget)
    loaded = zhat.load(folder)
    assert loaded.seeds == (0, 1)
    for seed, encoder in zip(loaded.seeds, loaded.encoders, strict=True):
        kept = runs.weights(folder / f"seed-{seed}")
        assert all(torch.equal(kept[name], tensor) for name, tensor in encoder.state_dict().items())
    assert loaded.settings == ROW.settings(budget)
    run(ROW, budget, seeds=[0], out=tmp_path / "bare", keep_weights=False)
    with pytest.raises(BadInput, match="was kept without weights"):
        zhat.load(tmp_path / "bare")
