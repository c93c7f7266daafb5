import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from zhat.datasets import CIFAR10
from zhat.datasets.cifar10 import read
from zhat.errors import BadInput

FILES = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}


def pictures(n, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)


def as_publisher(images):
    """Rows of a label and the planes of red, green and blue."""
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return np.concatenate([np.full((len(images), 1), 7, np.uint8), planes], 1).tobytes()


def as_tiles(images, columns):
    tiles = images.reshape(-1, columns, 32, 32, 3).transpose(0, 2, 1, 3, 4)
    return Image.fromarray(np.ascontiguousarray(tiles.reshape(-1, 32 * columns, 3)))


def publish(folder, images, split="train"):
    """The publisher's files, a few images in each."""
    folder.mkdir(exist_ok=True)
    for name, part in zip(FILES[split], np.array_split(images, len(FILES[split])), strict=True):
        (folder / name).write_bytes(as_publisher(part))


def test_the_publishers_files_are_read_in_order(tmp_path):
    images = pictures(10)
    publish(tmp_path, images)
    assert np.array_equal(read(tmp_path, "train"), images)


def test_tiled_pictures_are_read_in_order(tmp_path):
    images = pictures(12)
    for i in range(2):
        as_tiles(images[6 * i : 6 * i + 6], columns=3).save(tmp_path / f"test_{i:02}.webp", lossless=True)
    assert np.array_equal(read(tmp_path, "test"), images)


@pytest.mark.parametrize("name", ["cifar10", "cifar-10-batches-bin"])
def test_images_are_found_where_recorded_data_lies(tmp_path, monkeypatch, name):
    publish(tmp_path / name, pictures(10))
    publish(tmp_path / name, pictures(4, seed=1), "test")
    monkeypatch.setenv("ZHAT_DATA", str(tmp_path))
    found = CIFAR10().on("cpu")
    assert (found.shape, found.dtype) == ((10, 32, 32, 3), torch.uint8)
    assert torch.equal(CIFAR10(images=3).on("cpu"), found[:3])
    assert len(CIFAR10("test").on("cpu")) == 4
    with pytest.raises(BadInput, match="11 images were asked for, but CIFAR-10's split 'train' has 10 here"):
        CIFAR10(images=11).on("cpu")


def test_mistakes_get_a_sentence(tmp_path, monkeypatch):
    with pytest.raises(BadInput, match="`split` must be 'train' or 'test', but 'valid' came"):
        CIFAR10("valid")
    with pytest.raises(BadInput, match="holds neither test_batch.bin nor test_00.webp"):
        read(tmp_path, "test")
    (tmp_path / "test_batch.bin").write_bytes(b"short")
    with pytest.raises(BadInput, match="must hold rows of 3073 bytes, but it has 5"):
        read(tmp_path, "test")
    (tmp_path / "test_batch.bin").unlink()
    Image.new("RGB", (40, 32)).save(tmp_path / "test_00.webp")
    with pytest.raises(BadInput, match="must be tiled with images of 32 × 32"):
        read(tmp_path, "test")
    monkeypatch.delenv("ZHAT_DATA", raising=False)
    with pytest.raises(BadInput, match="cifar10 is recorded data, and its folder is not known"):
        CIFAR10().on("cpu")


@pytest.mark.data
def test_the_real_images_are_the_known_ones():
    home = Path(os.environ.get("ZHAT_DATA", "")) / "cifar10"
    if not home.is_dir():
        pytest.skip("ZHAT_DATA names no folder with cifar10/")
    images = CIFAR10().on("cpu")
    assert images.shape == (50_000, 32, 32, 3)
    mean = images.float().mean((0, 1, 2))
    assert mean.tolist() == pytest.approx([125.307, 122.950, 113.865], abs=0.01)
    assert CIFAR10("test").on("cpu").shape == (10_000, 32, 32, 3)
