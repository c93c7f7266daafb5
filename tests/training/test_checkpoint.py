"""A checkpoint resumes to the same weights, or is refused with one sentence."""

import hashlib
import json
import random
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save, save_file

from zhat.dgp import InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.errors import CorruptRun
from zhat.fresh import Fresh
from zhat.objectives import InfoNCE
from zhat.training import Muon, train

WORLD = Pairs(Uniform(Sphere(3)), VonMisesFisher(10.0), InvertibleMLP(layers=2))
ENCODER = Fresh(mlp, 3, 3, widths=(4,), onto=Sphere(3), batch_norm=True)
SHORT = {"steps": 6, "batch": 16, "lr": 1e-2, "watch": lambda i, encoder, objective: 0.5, "watch_every": 2}
SENTENCE = r"the checkpoint {} is damaged: [^.]*\. Remove it to train from the beginning\.$"


def weights(run):
    return torch.cat([v.double().flatten() for e in run.encoders for v in e.state_dict().values()])


class Stopped(Exception):
    """Somebody pulls the plug."""


def stop_early(done, steps, loss):
    if done >= 4:
        raise Stopped


@pytest.fixture(params=[{}, {"muon": Muon()}, {"seeds": (0, 1)}], ids=["adam", "muon", "stack"])
def broken_off(request, tmp_path):
    """The settings of a run and its checkpoint after some of the steps."""
    path = tmp_path / "state.safetensors"
    how = SHORT | request.param | {"checkpoint": path, "checkpoint_every": 0.0}
    with pytest.raises(Stopped):
        train(ENCODER, WORLD, InfoNCE(), progress=stop_early, **how)
    return how, path


def refused(how, path):
    with pytest.raises(CorruptRun, match=SENTENCE.format(re.escape(str(path)))):
        train(ENCODER, WORLD, InfoNCE(), **how)


def test_an_intact_checkpoint_resumes_to_the_weights_of_an_unbroken_run(broken_off):
    how, path = broken_off
    assert 0 < about(path)["done"] < 6
    resumed = train(ENCODER, WORLD, InfoNCE(), **how)
    unbroken = train(ENCODER, WORLD, InfoNCE(), **how | {"checkpoint": None})
    assert torch.equal(weights(resumed), weights(unbroken))
    assert resumed.curves == unbroken.curves


def about(path):
    data = Path(path).read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return json.loads(header["__metadata__"]["zhat"])


def test_a_checkpoint_is_a_safetensors_file(broken_off):
    _, path = broken_off
    assert "losses" in load(path.read_bytes())


def test_a_changed_byte_is_refused_wherever_it_lies(broken_off):
    how, path = broken_off
    intact, chance = path.read_bytes(), random.Random(0)
    places = {*range(8), *(chance.randrange(len(intact)) for _ in range(100))}
    for place in places:
        damaged = bytearray(intact)
        damaged[place] ^= chance.randrange(1, 256)
        path.write_bytes(damaged)
        refused(how, path)
        assert path.read_bytes() == damaged  # left for its owner to look at
    path.write_bytes(intact)
    train(ENCODER, WORLD, InfoNCE(), **how)


def test_a_file_that_was_cut_or_has_grown_is_refused(broken_off):
    how, path = broken_off
    intact = path.read_bytes()
    for length in (0, 1, 7, 8, 9, 100, len(intact) // 2, len(intact) - 1):
        path.write_bytes(intact[:length])
        refused(how, path)
    path.write_bytes(intact + b"\0")
    refused(how, path)


def test_a_file_without_a_checksum_is_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    how = SHORT | {"checkpoint": path}
    train(ENCODER, WORLD, InfoNCE(), **how)
    kept = about(path)
    save_file(load(path.read_bytes()), path, metadata={"zhat": json.dumps(kept)})  # as older versions wrote it
    with pytest.raises(CorruptRun, match="is damaged: it holds no checksum of its content. Remove it"):
        train(ENCODER, WORLD, InfoNCE(), **how)
    path.unlink()
    path.mkdir()
    with pytest.raises(CorruptRun, match="is damaged: .* must be a file, but it is a folder"):
        train(ENCODER, WORLD, InfoNCE(), **how)


def forged(path, change):
    """A file with another content and the right checksum."""
    tensors, said = load(path.read_bytes()), about(path)
    change(tensors, said)
    data = save(tensors, metadata={"zhat": json.dumps(said), "sha256": "0" * 64})
    before, after = re.split(b"0{64}", data, maxsplit=1)
    path.write_bytes(before + hashlib.sha256(before + after).hexdigest().encode() + after)


FORGED = [
    (lambda tensors, said: None, None),
    (lambda tensors, said: said.pop("done"), "it is not what zhat writes"),
    (lambda tensors, said: said.update(done=99), "it speaks of step 99 of 6"),
    (lambda tensors, said: said.update(done=True), "it speaks of step True of 6"),
    (lambda tensors, said: said.update(seconds="long"), "of 6 after 'long' seconds"),
    (lambda tensors, said: said.update(done=3), "losses is .*6, 1.*, not .*3, 1"),
    (lambda tensors, said: tensors.pop("watched"), "watched is missing"),
    (lambda tensors, said: tensors.pop("generator/0"), "generator/0 is missing"),
    (lambda tensors, said: tensors.update(more=torch.ones(1)), "more is not part of the run"),
    (
        lambda tensors, said: tensors.update({"parameter/encoder.last.bias": torch.ones(1)}),
        r"parameter/encoder.last.bias is \(torch.float32, 1\), not \(torch.float32, 1, 3\)",
    ),
    (
        lambda tensors, said: tensors.update({k: v.double() for k, v in tensors.items() if k.endswith("exp_avg")}),
        "exp_avg is .torch.float64, .*, not .torch.float32",
    ),
]


@pytest.mark.parametrize(("change", "why"), FORGED)
def test_a_content_that_does_not_fit_the_run_is_refused(tmp_path, change, why):
    path = tmp_path / "state.safetensors"
    how = SHORT | {"checkpoint": path}
    train(ENCODER, WORLD, InfoNCE(), **how)
    forged(path, change)
    if why is None:
        train(ENCODER, WORLD, InfoNCE(), **how)
        return
    with pytest.raises(CorruptRun, match=f"is damaged: .*{why}.* Remove it to train from the beginning"):
        train(ENCODER, WORLD, InfoNCE(), **how)
