import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from zhat.datasets import ImageNetX
from zhat.datasets.imagenet_x import ANNOTATIONS, FACTORS, TARGETS, _annotated, digest_of
from zhat.errors import BadInput
from zhat.testing import check_process

N = 40  # annotated images; the features know ten more


def image(i):
    return f"ILSVRC2012_val_{i:08d}.JPEG"


def write(home, *, planted=0.0, n=N, seed=0, **changed):
    """Annotations of n images in an order of their own, and features whose first columns say who they are."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    top = np.eye(16, dtype=np.uint8)[np.arange(n) % 16]
    about = {
        "val_file_name": np.array([image(i) for i in order]),
        "val_class": (order * 97 % 1000).astype(np.int16),
        "val_top": top[order],
        "val_multi": np.maximum(top, top[:, ::-1])[order],
        "factor_names": np.array(FACTORS),
        "prototypical_file_name": np.array([image(0), image(9999)]),
    }
    vectors = rng.normal(size=(n + 10, 24)).astype(np.float16)
    vectors[:, 0] = np.arange(n + 10)
    if planted:
        vectors[:n, 1] += planted * (np.arange(n) * 97 % 1000 >= 500)
    (home / "imagenet_x").mkdir(parents=True, exist_ok=True)
    folder = home / "imagenet_val_features"
    folder.mkdir(exist_ok=True)
    np.savez(home / ANNOTATIONS, **{k: v for k, v in (about | changed).items() if v is not None})
    np.savez(folder / "index.npz", file_name=np.array([image(i) for i in range(n + 10)]))
    np.savez(folder / "network.npz", features=changed.get("features", vectors))
    return vectors


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ZHAT_DATA", str(tmp_path))
    _annotated.cache_clear()
    yield tmp_path
    _annotated.cache_clear()


def test_features_and_targets_are_of_the_same_image(home):
    write(home)
    found = ImageNetX("network").whole()
    who = found.features[:, 0].long()
    assert len(who) == N  # images without annotations are left out
    assert list(found.names) == [image(i).removesuffix(".JPEG") for i in who]
    assert torch.equal(found.targets[:, 0], (who * 97 % 1000 >= 500).float())
    assert torch.equal(found.targets[:, 1:].argmax(1), who % 16)
    assert torch.equal(found.targets[:, 1:].sum(1), torch.ones(N))
    every = ImageNetX("network", marks="all").whole().targets
    assert torch.equal(every[:, 1:].sum(1), torch.full((N,), 2.0))
    assert len(ImageNetX("network", prototypes=False).whole().names) == N - 1


def test_it_is_a_process_of_one_view(home):
    write(home)
    process = ImageNetX("network")
    check_process(process)
    batch = process.sample(100, generator=torch.Generator().manual_seed(0))
    assert batch.x.shape == (1, 100, 24)
    assert batch.z.shape == (1, 100, len(TARGETS)) == (1, 100, 17)
    assert torch.equal(batch.z[0, :, 0], (batch.x[0, :, 0] * 97 % 1000 >= 500).float())


def test_columns_of_factors_are_found_by_name(home):
    write(home)
    plain = ImageNetX("network").whole().targets
    top = np.load(home / ANNOTATIONS)["val_top"]
    write(home, factor_names=np.array(FACTORS[::-1]), val_top=top[:, ::-1])
    _annotated.cache_clear()
    assert torch.equal(ImageNetX("network").whole().targets, plain)


@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_your_own_features_are_joined_by_the_names_of_images(kind, home):
    vectors = write(home)
    order = np.random.default_rng(1).permutation(20)
    names = [image(i).removesuffix(".JPEG") if i % 2 else f"val/{image(i)}" for i in order]
    path = home / f"mine.{kind}"
    if kind == "npz":
        np.savez(path, names=np.array(names), features=vectors[order])
    else:
        lines = [",".join([name, *(str(float(v)) for v in vectors[i])]) for name, i in zip(names, order, strict=True)]
        path.write_text("\n".join(["names," + ",".join(f"c{j}" for j in range(24)), *lines]))
    mine = ImageNetX(str(path), digest=digest_of(path)).whole()
    theirs = ImageNetX("network").whole()
    place = [list(theirs.names).index(name) for name in mine.names]
    assert len(mine.names) == 20
    assert torch.equal(mine.features, theirs.features[place])
    assert torch.equal(mine.targets, theirs.targets[place])
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(BadInput, match="has changed since this process was made"):
        ImageNetX(str(path), digest=mine and "0" * 12).whole()


def own(home, **arrays):
    write(home)
    np.savez(home / "mine.npz", **arrays)


def cut(path):
    path.write_bytes(path.read_bytes()[:900])


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/zhat-was-here",)


NAMES = np.array([image(i) for i in range(3)])


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda home: None, "imagenet_val_features/network.npz with --data, .* package imagenet-x"),
        (lambda home: write(home, val_top=None), "must hold val_file_name, .*, but val_top is missing"),
        (lambda home: write(home, val_top=np.zeros((3, 16))), "sixteen factors .* their shape is .3, 16."),
        (lambda home: write(home, features=np.zeros((3, 4))), "one vector for each of the 50 images .* is .3, 4."),
        (lambda home: write(home, features=np.full((50, 4), np.nan)), "must be finite"),
        (lambda home: (write(home), cut(home / ANNOTATIONS)), "must be an archive as numpy.savez writes it"),
        (lambda home: own(home, features=np.eye(3)), "must hold `names` of images and .* it holds features"),
        (lambda home: own(home, names=NAMES, vectors=np.eye(3)), "no array in mine.npz named 'features'"),
        (lambda home: own(home, names=NAMES[:2], features=np.eye(3)), "one id for each of its 3 rows"),
        (lambda home: own(home, names=NAMES[[0, 0, 1]], features=np.eye(3)), "must be unique"),
        (lambda home: own(home, names=np.array(["a", "b", "c"]), features=np.eye(3)), "no name in .*the first is a"),
        (lambda home: own(home, names=np.array([Evil()] * 3, dtype=object), features=np.eye(3)), "Python objects"),
    ],
)  # fmt: skip
def test_foreign_and_damaged_files_get_a_sentence(damage, sentence, home):
    Path("/tmp/zhat-was-here").unlink(missing_ok=True)
    damage(home)
    own = home / "mine.npz"
    with pytest.raises(BadInput, match=sentence):
        ImageNetX(str(own) if own.exists() else "network").whole()
    assert not Path("/tmp/zhat-was-here").exists()


def test_a_pickle_is_not_read(home):
    write(home)
    (home / "imagenet_val_features" / "network.npz").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(BadInput, match="must be an archive as numpy.savez writes it"):
        ImageNetX("network").whole()


def test_mistakes_get_a_sentence():
    with pytest.raises(BadInput, match="there is no file nowhere.npz. Give a file with `names`"):
        ImageNetX("nowhere.npz", digest="0").whole()
    with pytest.raises(BadInput, match="`marks` must be one of top, all, but 'some' came"):
        ImageNetX("network", marks="some")


@pytest.mark.data
def test_the_recorded_images_are_those_of_the_provenance():
    if not (Path(os.environ.get("ZHAT_DATA", "nowhere")) / "imagenet_val_features").is_dir():
        pytest.skip("ZHAT_DATA names no folder with imagenet_val_features")
    _annotated.cache_clear()
    top, every = (ImageNetX("efficientnet_lite0", marks=marks).whole() for marks in ("top", "all"))
    assert top.features.shape == (4889, 1280)
    assert torch.equal(top.targets[:, 1:].sum(1), torch.ones(4889))
    count = dict(zip(TARGETS, top.targets.sum(0).int().tolist(), strict=True))
    assert (count["class"], count["brighter"], count["darker"], count["pose"]) == (2428, 4, 17, 1659)
    assert bool((every.targets >= top.targets).all())
    assert len(ImageNetX("efficientnet_lite0", prototypes=False).whole().names) == 4889 - 273
