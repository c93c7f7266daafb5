import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from zhat.datasets import KITTIMasks
from zhat.datasets.kitti_masks import PUBLISHED, REBUILT, _placed
from zhat.errors import BadInput
from zhat.testing import check_process

LENGTHS = np.array([3, 2, 9, 4, 2, 6, 2, 2, 3, 5, 2, 4, 3])


def tracks(seed=0):
    """Masks whose first row of points is the number of their frame, in binary; latents that name it too."""
    frames = int(LENGTHS.sum())
    masks = np.random.default_rng(seed).random((frames, 64, 64)) < 0.2
    masks[:, 0, :8] = np.unpackbits(np.arange(frames, dtype=np.uint8)[:, None], axis=1)
    latents = np.stack([np.arange(frames), np.repeat(np.arange(len(LENGTHS)), LENGTHS), masks.sum((1, 2))], 1)
    return masks, latents.astype(np.float32)


def rebuild(folder, **changed):
    masks, latents = tracks()
    meta = np.zeros((len(LENGTHS), 5), np.int32)
    meta[:, 3] = np.arange(len(LENGTHS))
    kept = {"masks_packed": np.packbits(masks, axis=-1), "latents": latents, "lengths": LENGTHS, "meta": meta}
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / REBUILT, **(kept | changed))


def publish(folder, content=None):
    masks, latents = tracks()
    cuts = np.cumsum(LENGTHS)[:-1]
    given = {"pedestrians": np.split(masks, cuts), "pedestrians_latents": np.split(latents, cuts)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PUBLISHED).write_bytes(pickle.dumps(given if content is None else content))


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ZHAT_DATA", str(tmp_path))
    _placed.cache_clear()
    yield tmp_path / "kitti_masks"
    _placed.cache_clear()


def drawn(process, n=4000):
    return process.sample(n, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("form", [rebuild, publish])
def test_a_batch_holds_masks_and_latents_of_the_same_frames(form, home):
    form(home)
    batch = drawn(KITTIMasks(longest=5, part="all"))
    masks, latents = (torch.from_numpy(part) for part in tracks())
    frames = batch.z[..., 0].long()
    assert batch.x.dtype == torch.bool
    assert torch.equal(batch.x[:, :, 0], masks[frames])
    assert torch.equal(batch.z, latents[frames])
    check_process(KITTIMasks(longest=5))


def test_a_positive_is_uniformly_later_and_never_leaves_its_track(home):
    rebuild(home)
    z = drawn(KITTIMasks(longest=3, part="all"), n=40_000).z
    (now, later), track = z[..., 0].long().numpy(), z[..., 1].long().numpy()
    assert (track[0] == track[1]).all()
    last = np.cumsum(LENGTHS) - 1
    assert set(now) == set(range(LENGTHS.sum())) - set(last)  # every frame but the last of its track
    start = 5  # the first frame of the track of nine
    counts = np.bincount(later[now == start] - start, minlength=4)
    share = counts / counts.sum()
    assert share[0] == 0
    assert np.abs(share[1:] - 1 / 3).max() < 5 * np.sqrt(2 / 9 / counts.sum())
    assert set(later[now == last[2] - 1]) == {last[2]}  # clipped
    one = drawn(KITTIMasks(longest=1, part="all")).z[..., 0]
    assert torch.equal(one[1] - one[0], torch.ones(4000))


def test_held_out_pedestrians_are_not_those_of_training(home):
    rebuild(home)
    process = KITTIMasks()
    seen, other = (set(drawn(p).z[..., 1].flatten().tolist()) for p in (process, process.held_out))
    assert seen == set(range(13)) - {9}
    assert other == {9}
    assert process.held_out.held_out is None
    meta = np.zeros((13, 5), np.int32)
    meta[:, 3] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 10]  # three tracks of one pedestrian
    rebuild(home, meta=meta)
    _placed.cache_clear()
    assert set(drawn(process.held_out).z[..., 1].flatten().tolist()) == {9, 10, 11}


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/zhat-was-here",)


def test_a_pickle_runs_nothing(home):
    Path("/tmp/zhat-was-here").unlink(missing_ok=True)
    publish(home, {"pedestrians": [Evil()], "pedestrians_latents": []})
    with pytest.raises(BadInput, match=r"the pickle asks for (posix|nt)\.system.*Nothing of it was run"):
        drawn(KITTIMasks())
    assert not Path("/tmp/zhat-was-here").exists()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda home: home.mkdir(), "holds neither kitti_masks_rebuilt.npz nor kitti_peds_v2.pickle"),
        (lambda home: rebuild(home, latents=np.zeros((4, 3))), "with three latents each, but they have"),
        (lambda home: rebuild(home, latents=np.full((47, 3), np.nan)), "are not finite"),
        (lambda home: rebuild(home, meta=np.zeros((2, 5))), "must describe each of 13 tracks"),
        (lambda home: publish(home, {"cars": []}), "does not hold lists of masks and latents .KeyError"),
        (lambda home: (publish(home), cut(home / PUBLISHED)), "does not hold lists of masks and latents"),
        (lambda home: (rebuild(home), cut(home / REBUILT)), "cannot be read .BadZipFile"),
    ],
)
def test_foreign_and_damaged_files_get_a_sentence(damage, sentence, home):
    damage(home)
    with pytest.raises(BadInput, match=sentence):
        drawn(KITTIMasks())


def cut(path):
    path.write_bytes(path.read_bytes()[:2000])


def test_mistakes_get_a_sentence():
    with pytest.raises(BadInput, match="`part` must be one of train, test, all, but 'validation' came"):
        KITTIMasks(part="validation")
    with pytest.raises(BadInput, match="`longest` must be a whole number"):
        KITTIMasks(longest=0)


@pytest.mark.data
def test_the_recorded_masks_are_those_of_the_paper():
    if not (Path(os.environ.get("ZHAT_DATA", "nowhere")) / "kitti_masks").is_dir():
        pytest.skip("ZHAT_DATA names no folder with kitti_masks")
    _placed.cache_clear()
    batch = drawn(KITTIMasks(part="all"), n=512)
    found = _placed(Path(os.environ["ZHAT_DATA"]) / "kitti_masks", "all", torch.device("cpu"))
    assert len(found.anchors) == 82_506  # transitions, as published
    assert torch.equal(batch.x[0].sum((1, 2, 3)).float(), batch.z[0, :, 2])
