import errno
import json
import os
import threading
from pathlib import Path

import pytest
import torch

from tests.test_results import record
from zhat import runs
from zhat.encoders import mlp
from zhat.errors import BadInput, CorruptRun

ENCODER = mlp(2, 2, widths=(4,), seed=0)


def written(folder):
    return runs.write(folder / "seed-3", record(), ENCODER)


def test_what_is_written_is_read_back(tmp_path):
    folder = written(tmp_path)
    assert sorted(p.name for p in folder.iterdir()) == [
        "curve.jsonl",
        "encoder.safetensors",
        "run.json",
        "score.json",
    ]
    assert runs.read(folder) == record()
    again = mlp(2, 2, widths=(4,), seed=1)
    again.load_state_dict(runs.weights(folder))
    assert torch.equal(again.last.weight, ENCODER.last.weight)


def test_a_finished_run_is_never_overwritten(tmp_path):
    before = (written(tmp_path) / "run.json").stat().st_mtime_ns
    assert (written(tmp_path) / "run.json").stat().st_mtime_ns == before


def test_a_run_that_fails_while_writing_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "save", lambda *a: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
    with pytest.raises(
        BadInput, match="cannot write to .*seed-3: no space is left there. Free some, or choose another"
    ):
        written(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_of_two_writers_one_wins_and_both_return(tmp_path):
    threads = [threading.Thread(target=written, args=(tmp_path,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [p.name for p in tmp_path.iterdir()] == ["seed-3"]
    runs.verify(tmp_path / "seed-3")


@pytest.mark.parametrize("name", ["curve.jsonl", "score.json", "encoder.safetensors"])
def test_damage_is_noticed_and_named(tmp_path, name):
    folder = written(tmp_path)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] + b"?")
    with pytest.raises(CorruptRun, match=f"{name} differs from what was written"):
        runs.read(folder)
    (folder / name).unlink()
    with pytest.raises(CorruptRun, match=f"{name} is missing"):
        runs.weights(folder)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sha256": {}}', '{"sha256": {"curve.jsonl": 1, "score.json": 2}}'])
def test_an_unreadable_run_json_is_refused(tmp_path, text):
    folder = written(tmp_path)
    (folder / "run.json").write_text(text)
    with pytest.raises(CorruptRun, match="holds no readable run.json"):
        runs.verify(folder)


def test_a_score_of_another_kind_is_refused(tmp_path):
    folder = written(tmp_path)
    (folder / "score.json").write_text('{"a": 1}')
    about = json.loads((folder / "run.json").read_text())
    about["sha256"]["score.json"] = runs._checksum(folder / "score.json")
    (folder / "run.json").write_text(json.dumps(runs.sealed({k: v for k, v in about.items() if k != "seal"})))
    with pytest.raises(CorruptRun, match="holds no record of a run"):
        runs.read(folder)


def test_the_index_is_a_scan(tmp_path):
    for seed in (0, 1, 10):
        runs.write(tmp_path / "row" / f"seed-{seed}", record(), ENCODER)
    runs.write(tmp_path / "row" / "seed-2", record(), ENCODER)
    (tmp_path / "row" / ".seed-5.x.draft").mkdir()
    (tmp_path / "row" / ".seed-5.x.draft" / "run.json").write_text("{}")
    assert [p.name for p in runs.scan(tmp_path)] == ["seed-0", "seed-1", "seed-2", "seed-10"]
    assert list(runs.scan(tmp_path / "row" / "seed-1")) == [tmp_path / "row" / "seed-1"]
    with pytest.raises(BadInput, match="is not a folder"):
        list(runs.scan(tmp_path / "nowhere"))


def test_folders_that_cannot_be_written_get_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot write to .* Choose another place"):
        written(tmp_path / "file" / "inside")
    if os.geteuid() != 0:
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(BadInput, match="permission denied"):
            written(tmp_path / "closed")


def test_others_may_read_what_was_written(tmp_path):
    folder = written(tmp_path)
    mask = os.umask(0)
    os.umask(mask)
    assert folder.stat().st_mode & 0o777 == 0o777 & ~mask
    assert (folder / "encoder.safetensors").stat().st_mode & 0o777 == 0o666 & ~mask


def test_provenance_names_versions_device_and_commit():
    about = runs.provenance("cpu")
    assert about["torch"] == torch.__version__
    assert about["device"].startswith("cpu")
    assert about["date"].endswith("UTC")
    if (Path(runs.__file__).parents[2] / ".git").exists():
        assert about["commit"]


def test_several_runs_say_each_thing_once():
    first = {"commit": "a", "date": "2026-01-02 10:00 UTC", "torch": "2"}
    second = {"commit": "b", "date": "2026-01-01 10:00 UTC", "torch": "2", "command": ""}
    assert runs.assembled([first, second, first]) == {
        "assembled with": runs.version(),
        "commit": "a; b",
        "date": "2026-01-01 10:00 UTC to 2026-01-02 10:00 UTC",
        "torch": "2",
    }
    assert runs.assembled([]) == {"assembled with": runs.version()}


def test_a_run_that_lost_its_run_json_is_not_left_out_silently(tmp_path):
    folder = written(tmp_path / "my.drafts")
    (folder / "run.json").unlink()
    assert list(runs.scan(tmp_path)) == [folder]
    with pytest.raises(CorruptRun, match="holds no readable run.json"):
        runs.read(folder)


def test_tied_weights_are_kept(tmp_path):
    tied = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    folder = runs.write(tmp_path / "seed-0", record(), tied)
    assert torch.equal(runs.weights(folder)["1.weight"], tied[0].weight)


@pytest.mark.parametrize("change", [{"seconds": 9.0}, {"settings": {}}, {"seal": "0"}, {"more": 1}])
def test_a_changed_run_json_is_noticed_and_one_of_earlier_versions_is_read(tmp_path, change):
    folder = written(tmp_path)
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(about | change))
    with pytest.raises(CorruptRun, match="run.json differs from what was written|holds no readable run.json"):
        runs.read(folder)
    del about["seal"]
    (folder / "run.json").write_text(json.dumps(about))
    assert runs.read(folder) == record()


@pytest.mark.parametrize(
    "line", ["3", "[]", '{"loss": 1.0}', '{"step": "1", "loss": 1.0}', '{"step": 1, "loss": NaN}', "{"]
)
def test_a_curve_of_another_shape_is_refused(tmp_path, line):
    folder = written(tmp_path)
    (folder / "curve.jsonl").write_text(line + "\n")
    about = json.loads((folder / "run.json").read_text())
    about["sha256"]["curve.jsonl"] = runs._checksum(folder / "curve.jsonl")
    del about["seal"]
    (folder / "run.json").write_text(json.dumps(about))
    with pytest.raises(CorruptRun, match="holds no record of a run"):
        runs.read(folder)
