from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tests.audit.test_verdict import planted
from zhat.audit import adapt, examine, read_adapter
from zhat.equivalence import AFFINE, ORTHOGONAL
from zhat.errors import BadInput, RunFailed, UnknownName


def kept(tmp_path, up_to=AFFINE, noise=0.0, d=5):
    a, b = planted(up_to, 1000, d, noise)
    return a, b, examine(a, b).adapter().write(tmp_path / "adapter.safetensors")


def test_old_rows_land_on_the_new_ones_and_come_back(tmp_path):
    a, b, path = kept(tmp_path)
    np.save(tmp_path / "old.npy", a)
    out = adapt(read_adapter(path), tmp_path / "old.npy", tmp_path / "new.npy")
    assert np.allclose(np.load(out), b, atol=1e-8)
    back = adapt(read_adapter(path), out, tmp_path / "back.npy", back=True)
    assert np.allclose(np.load(back), a, atol=1e-8)


def test_class_and_held_out_error_travel_with_the_map(tmp_path):
    _, _, path = kept(tmp_path, ORTHOGONAL, noise=0.2)
    found = read_adapter(path)
    assert found.up_to is ORTHOGONAL
    assert torch.allclose(found.matrix @ found.matrix.T, torch.eye(5, dtype=torch.float64))
    # noise of 0.2 standard deviations leaves a root mean square of 0.2 / sqrt(1 + 0.04) of the spread
    assert found.error == pytest.approx(0.2 / np.sqrt(1.04), rel=0.1)
    assert found.rows == 1000


def test_a_map_that_loses_directions_has_no_way_back(tmp_path):
    random = np.random.default_rng(0)
    a = random.normal(size=(1000, 6))
    found = examine(a, a @ random.normal(size=(6, 2)) @ random.normal(size=(2, 6))).adapter()
    assert found.inverse is None
    with pytest.raises(BadInput, match="no way back"):
        found.back(torch.zeros(1, 6))


def test_unrelated_rows_have_no_adapter():
    random = np.random.default_rng(0)
    with pytest.raises(RunFailed, match="no map to keep"):
        examine(random.normal(size=(300, 3)), random.normal(size=(300, 3))).adapter()


def test_wrong_files_get_a_sentence(tmp_path):
    a, _, path = kept(tmp_path)
    with pytest.raises(BadInput, match="there is no adapter"):
        read_adapter(tmp_path / "none.safetensors")
    save_file({"x": torch.ones(2)}, tmp_path / "other.safetensors")
    with pytest.raises(BadInput, match="must be an adapter"):
        read_adapter(tmp_path / "other.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadInput, match="must be an adapter"):
        read_adapter(tmp_path / "cut.safetensors")
    with pytest.raises(BadInput, match="takes 5 columns, but"):
        adapt(read_adapter(path), a[:, :3], tmp_path / "new.npy")
    with pytest.raises(BadInput, match="Name a .npy file"):
        adapt(read_adapter(path), a, tmp_path / "new.csv")


@pytest.mark.parametrize(
    "change",
    [
        {"inverse": torch.zeros(4, 5).double()},
        {"inverse": torch.full((5, 5), torch.nan).double()},
        {"matrix": torch.eye(5).long()},
        {"numbers": '{"r2": NaN, "error": 0.1, "rows": 5}'},
        {"normalise": "[1, 0]"},
    ],
    ids=str,
)
def test_a_damaged_adapter_is_refused(change, tmp_path):
    _, _, path = kept(tmp_path)
    with safe_open(path, framework="pt") as file:
        about, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    about |= {k: v for k, v in change.items() if isinstance(v, str)}
    tensors |= {k: v for k, v in change.items() if not isinstance(v, str)}
    save_file(tensors, path, metadata=about)
    with pytest.raises(BadInput, match="must be an adapter"):
        read_adapter(path)


def test_no_infinite_rows_are_written(tmp_path):
    a, _, path = kept(tmp_path)
    huge = replace(read_adapter(path), offset=torch.full((5,), 1e300, dtype=torch.float64))
    with pytest.raises(BadInput, match="beyond what float32 holds"):
        adapt(huge, a.astype(np.float32), tmp_path / "out" / "new.npy")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_failed_adaption_leaves_nothing_behind(tmp_path):
    a, _, path = kept(tmp_path)
    a[900, 1] = np.nan
    with pytest.raises(BadInput, match="row 900"):
        adapt(read_adapter(path), a, tmp_path / "out" / "new.npy")
    assert list((tmp_path / "out").iterdir()) == []


def unit_pair(n=900, d=6):
    """Unit rows, and their rotation with noise at unit length again."""
    random = np.random.default_rng(0)
    a = random.normal(size=(n, d))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b = a @ np.linalg.qr(random.normal(size=(d, d)))[0] + 0.05 * random.normal(size=(n, d))
    return a, b / np.linalg.norm(b, axis=1, keepdims=True)


def test_an_adapter_knows_whether_its_rows_are_to_be_normalised(tmp_path):
    a, b = unit_pair()
    path = examine(a, b).adapter().write(tmp_path / "unit.safetensors")
    found = read_adapter(path)
    assert (found.normalise, found.normalise_back) == (True, True)
    out = adapt(found, a, tmp_path / "new.npy")
    assert np.allclose(np.linalg.norm(np.load(out), axis=1), 1)
    assert np.allclose(np.linalg.norm(np.load(adapt(found, b, tmp_path / "old.npy", back=True)), axis=1), 1)
    _, _, plain = kept(tmp_path)
    assert not read_adapter(plain).normalise
    with safe_open(path, framework="pt") as file:
        assert file.metadata()["format"] == "zhat adapter 2"  # readers of format 1 refuse it: they would not normalise


def test_recall_is_read_by_the_metric_of_the_search():
    random = np.random.default_rng(0)
    a = random.normal(size=(1500, 8))
    lengths = np.exp(random.normal(size=(1500, 1)))  # of the new rows; directions are those of a
    b = (a + 0.05 * random.normal(size=(1500, 8))) * 1.0
    found = examine(a, b)
    scores = {metric: found.recall(10, metric=metric) for metric in ("cosine", "dot", "distance")}
    assert [s.name for s in scores.values()] == ["recall@10 by cosine", "recall@10 by dot", "recall@10 by distance"]
    for metric, score in scores.items():
        assert score.value == pytest.approx(plain_recall(found, 10, metric), abs=1e-9)
    assert len({round(s.value, 6) for s in scores.values()}) == 3
    stretched = examine(a, b * lengths)
    assert stretched.result.score is not None
    searched = stretched.searched(5, metric="cosine").result
    assert searched.searched.name == "recall@5 by cosine"
    assert {s.name.split(" by ")[1] for s in searched.recall} == {"cosine"}
    with pytest.raises(UnknownName, match="no metric named 'euclid'"):
        found.recall(10, metric="euclid")


def plain_recall(found, k, metric):
    """The same number in plain NumPy."""
    held = torch.nonzero(found.seen.held_out).flatten()[:2000]
    step = next(s for s in found.steps if s.up_to is found.result.up_to)
    new, mapped = found.seen.target[held].numpy(), step.found(found.seen.source[held]).numpy()

    def nearest(rows):
        if metric == "distance":
            far = ((new[:, None] - rows[None]) ** 2).sum(-1)
        elif metric == "dot":
            far = -new @ rows.T
        else:
            far = -(new @ rows.T) / np.linalg.norm(rows, axis=1)
        np.fill_diagonal(far, np.inf)
        return np.argsort(far, axis=1)[:, :k]

    pairs = zip(nearest(new), nearest(mapped), strict=True)
    return float(np.mean([len(set(one) & set(other)) / k for one, other in pairs]))


def test_recall_is_one_behind_an_exact_map_and_chance_behind_none():
    a, b = planted(AFFINE, 1000, 5, 0.0)
    assert examine(a, b).recall(10).value == 1
    noisy = examine(*planted(AFFINE, 1000, 5, 0.5)).recall(10)
    assert noisy.chance < noisy.value < 0.9
    with pytest.raises(BadInput, match="recall@0"):
        examine(a, b).recall(0)
