import json
import pickle

import pytest
import torch
from torch import nn

import zhat
from zhat import Fresh, papers, runs
from zhat.dgp import Box, Clusters, InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import Pair, Posterior, conv, deconv, mlp, residual_mlp, resnet18
from zhat.equivalence import AFFINE
from zhat.errors import BadInput, CorruptRun
from zhat.fresh import describe, reading
from zhat.objectives import CrossEntropy, InfoNCE, NegativeLp
from zhat.results import Curve
from zhat.training.run import BUILDERS, Run, architecture, said

WORLD = Pairs(Uniform(Sphere(3)), VonMisesFisher(20.0), InvertibleMLP(layers=2))
ENCODER = Fresh(mlp, 3, 3, widths=(8,), onto=Sphere(3))
X = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))


def trained(encoder=ENCODER, objective=InfoNCE(NegativeLp(2), temperature=0.5), world=WORLD, **how):
    return zhat.train(encoder, world, objective, **({"steps": 3, "batch": 16, "seeds": (0, 4)} | how))


@pytest.fixture(scope="module")
def run():
    return trained(watch=lambda i, encoder, objective: 0.5 + i, watch_name="R2")


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 2)

    def forward(self, x):
        return self.line(x)


def test_a_loaded_run_is_the_saved_one(run, tmp_path):
    assert run.save(tmp_path / "run") == tmp_path / "run"
    again = zhat.load(tmp_path / "run")
    for old, new in zip(run.encoders, again.encoders, strict=True):
        assert torch.equal(old(X), new(X))
        assert not new.training
    assert (again.seeds, again.curves, again.steps) == (run.seeds, run.curves, run.steps)
    assert again.objectives == run.objectives
    assert again.provenance["zhat"] == zhat.__version__
    assert again.settings["encoder"] == "Fresh(mlp, 3, 3, widths=(8,), onto=Sphere(dim=3, radius=1.0))"
    assert str(again) == str(run)
    one = zhat.load(tmp_path / "run" / "seed-4")
    assert torch.equal(one.encoder(X), run.encoders[1](X))
    again.save(tmp_path / "copy")
    assert zhat.load(tmp_path / "copy").provenance == again.provenance


def test_only_json_and_safetensors_are_written(run, tmp_path):
    run.save(tmp_path)
    assert {p.suffix for p in tmp_path.rglob("*") if p.is_file()} == {".json", ".jsonl", ".safetensors"}


def test_a_module_that_a_builder_made_is_made_again(tmp_path):
    trained(mlp(3, 2, widths=(8,), onto=Box(2), seed=3), seeds=(0,)).save(tmp_path)
    loaded = zhat.load(tmp_path)
    assert loaded.settings["encoder"].startswith("Fresh(mlp, 3, 2, widths=(8,), onto=Box(dim=2")
    assert loaded.encoder(X).shape == (7, 2)


@pytest.mark.parametrize(
    "make",
    [
        Fresh(residual_mlp, 3, 2, widths=(4,), batch_norm=True),
        Fresh(conv, (1, 16, 16), 2, widths=(2, 2), top=4),
        Fresh(resnet18, (3, 32, 32), None, small=True, mean=(0.5, 0.5, 0.5), std=(1.0, 1.0, 1.0)),
        Fresh(deconv, 2, (1, 16, 16), widths=(2, 2), top=4),
        Fresh(Pair, Fresh(mlp, 3, 2, widths=(4,))),
        Fresh(Posterior, Fresh(mlp, 3, 4, widths=(4,))),
        Fresh(nn.Identity),
    ],
    ids=lambda make: make.make.__name__,
)
def test_an_architecture_is_read_from_its_text(make):
    network = architecture(repr(make))()
    assert repr(network) == repr(make())
    assert pickle.loads(pickle.dumps(network)).state_dict().keys() == network.state_dict().keys()
    if hasattr(network, "made"):
        assert said(network) == repr(make)


def test_a_head_is_saved_beside_the_encoder(tmp_path):
    world = Clusters(Uniform(Sphere(3)), VonMisesFisher(20.0), InvertibleMLP(layers=2), classes=5)
    run = trained(objective=Fresh(CrossEntropy, 3, 5), world=world)
    run.save(tmp_path)
    for old, new in zip(run.objectives, zhat.load(tmp_path).objectives, strict=True):
        assert torch.equal(old.head, new.head)


def test_an_objective_of_ones_own_is_named_and_left_out(tmp_path):
    run = trained(objective=lambda h, batch: h.square().mean())
    run.save(tmp_path)
    loaded = zhat.load(tmp_path)
    assert loaded.objectives == ()
    assert loaded.settings["objective"].startswith("<lambda>#")
    assert zhat.score(loaded, WORLD, n=200, classes=[AFFINE]).prediction is None


def test_a_network_of_ones_own_is_given_when_it_is_loaded(tmp_path):
    run = trained(Own(), InfoNCE(NegativeLp(2)), seeds=(0,))
    run.save(tmp_path)
    with pytest.raises(BadInput, match=r"is Own, which zhat cannot make .*zhat.load\(folder, encoder=my_module\)"):
        zhat.load(tmp_path)
    for given in (Own(), Own):
        assert torch.equal(zhat.load(tmp_path, encoder=given).encoder(X), run.encoder(X))
    with pytest.raises(BadInput, match="do not fit the network: 0.bias is not part of the run|do not fit the network"):
        zhat.load(tmp_path, encoder=nn.Sequential(nn.Linear(3, 2)))
    with pytest.raises(BadInput, match="must be or make an nn.Module"):
        zhat.load(tmp_path, encoder=dict)


def test_a_network_that_was_changed_is_not_taken_for_the_one_that_was_made(tmp_path):
    network = mlp(3, 3, widths=(8,), seed=0)
    network.append(nn.Tanh())  # the weights fit both
    trained(network, seeds=(0,)).save(tmp_path / "changed")
    with pytest.raises(BadInput, match="is Sequential, which zhat cannot make"):
        zhat.load(tmp_path / "changed")


def test_a_builder_that_bears_the_name_of_ours_is_not_taken_for_it(tmp_path):
    def mlp(m, k):
        return nn.Linear(m, k)

    mlp.__qualname__ = "mlp"
    assert said(Fresh(mlp, 3, 3)) == "own Fresh(mlp, 3, 3)"
    run = trained(Fresh(mlp, 3, 3), InfoNCE(NegativeLp(2)), seeds=(0,))
    run.save(tmp_path)
    with pytest.raises(BadInput, match=r"is own Fresh\(mlp, 3, 3\), which zhat cannot make"):
        zhat.load(tmp_path)
    assert torch.equal(zhat.load(tmp_path, encoder=Fresh(mlp, 3, 3)).encoder(X), run.encoder(X))


def test_a_run_is_never_written_over(run, tmp_path):
    run.save(tmp_path)
    with pytest.raises(BadInput, match="holds a run already, and would be lost"):
        run.save(tmp_path)


def test_runs_of_several_settings_are_not_mixed(run, tmp_path):
    run.save(tmp_path / "a")
    run.save(tmp_path / "b")
    with pytest.raises(BadInput, match="holds several runs. Give the folder of one of them"):
        zhat.load(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="holds no run"):
        zhat.load(tmp_path / "empty")
    with pytest.raises(BadInput, match="is not a folder"):
        zhat.load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["run.json", "curve.jsonl", "score.json", "encoder.safetensors"])
def test_a_damaged_file_is_named(run, tmp_path, name):
    run.save(tmp_path)
    path = tmp_path / "seed-4" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRun, match="seed-4"):
        zhat.load(tmp_path)
    path.unlink()
    with pytest.raises(CorruptRun, match="seed-4"):
        zhat.load(tmp_path)


def resealed(folder, **settings):
    """A run whose settings somebody changed, with checksums that fit."""
    path = folder / "run.json"
    about = json.loads(path.read_text())
    about.pop("seal")
    about["settings"] |= settings
    path.write_text(json.dumps(runs.sealed(about)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os').system('true')", "neither a plain value nor a call"),
        ("Fresh(eval, '1')", "neither a plain value nor a call"),
        ("open('/etc/passwd')", "open is not a name that zhat builds from"),
        ("Fresh(mlp, 3, 3).make", "neither a plain value nor a call"),
        ("[x for x in (1,)]", "neither a plain value nor a call"),
        ("Fresh(mlp, 10**9, 3)", "neither a plain value nor a call"),
        ("Fresh(mlp, 3", "is not a setting that zhat wrote"),
        ("(" * 5000, "is not a setting that zhat wrote"),
        ("Fresh(Sphere, 3)", "makes no network"),
        ("Fresh()", "cannot be made"),
        ("3", "makes no network"),
        ("Fresh(mlp, 3, 3, width=(8,))", "cannot be made"),
        ("Fresh(mlp, 100000, 3)", "do not fit the network"),
        ("Fresh(mlp, 3, 3, widths=(9,))", "do not fit the network"),
    ],
)
def test_a_text_that_is_no_architecture_is_refused_and_never_run(run, tmp_path, text, message):
    run.save(tmp_path)
    for seed in run.seeds:
        resealed(tmp_path / f"seed-{seed}", encoder=text)
    with pytest.raises(BadInput, match=message.replace("(", r"\(")):
        zhat.load(tmp_path)


def test_a_run_prints_within_a_screen(run):
    assert len(repr(run)) < 100
    text = str(run)
    assert "2 seeds (0, 4), 3 steps" in text
    assert "R2         1.0000 ± 0.7071" in text
    assert all(len(line) <= 112 for line in text.splitlines())


def test_a_run_has_a_frame_a_picture_and_a_cell(run):
    pytest.importorskip("matplotlib").use("agg")
    pytest.importorskip("pandas")
    frame = run.to_frame()
    assert list(frame.columns) == ["seed", "step", "loss", "R2"]
    assert set(frame["seed"]) == {0, 4}
    assert len(run.plot().lines) == 2
    assert "<svg" in run._repr_html_()


def test_one_encoder_is_taken_from_several_by_its_place(run):
    with pytest.raises(BadInput, match="this run holds 2 encoders"):
        run.encoder  # noqa: B018
    untrained = Run((0,), (nn.Identity(),), (), (Curve((), ()),), 0, 0.0)
    assert "0 parameters" in str(untrained)
    assert isinstance(untrained.encoder, nn.Identity)


@pytest.mark.slow
def test_every_network_of_a_paper_is_read_from_its_text():
    rows = [row for name in papers.names() for part in papers.paper(name).parts for row in part.rows]
    texts = {describe(row.encoder): row.encoder for row in rows}
    assert len(texts) > 10
    for text, make in texts.items():
        with torch.device("meta"):
            wanted, found = make(), architecture(text)()
        assert {k: v.shape for k, v in found.state_dict().items()} == {
            k: v.shape for k, v in wanted.state_dict().items()
        }


@pytest.mark.slow
def test_objectives_of_papers_that_are_values_are_read_from_their_text():
    rows = [row for name in papers.names() for part in papers.paper(name).parts for row in part.rows]
    read = 0
    for text, objective in {describe(row.objective): row.objective for row in rows}.items():
        try:
            found = reading(text, BUILDERS)
        except BadInput:
            continue
        read += describe(found) == describe(objective)
    assert read >= 10
