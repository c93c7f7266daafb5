"""Every reader on small files of the publisher's form, written here, and on damaged ones."""

import os
import struct
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from scipy.io import savemat

from zhat.datasets import COIL20, MPI3D, Cars3D, DSprites, KnownFactors, Shapes3D, SmallNORB
from zhat.datasets.dislib import codes_of, resized
from zhat.datasets.known_factors import _placed
from zhat.errors import BadInput, MissingData, MissingExtra

RANDOM = np.random.default_rng(0)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ZHAT_DATA", str(tmp_path))
    _placed.cache_clear()
    yield tmp_path
    _placed.cache_clear()


def whole(images):
    """All images as `(n, channels, 64, 64)`, and all codes."""
    batches = list(KnownFactors(images, part="all").every(50))
    return torch.cat([b.x[0] for b in batches]).numpy(), torch.cat([b.z[0] for b in batches]).numpy()


# --- files of the publishers' form


def write_dsprites(home, **changed):
    images = RANDOM.random((40, 64, 64)) < 0.3
    codes = np.stack([np.zeros(40), *np.unravel_index(np.arange(40), (3, 2, 2, 2, 2))], 1).astype(np.int64)
    metadata = np.array({"a": "pickle, which is never read"}, dtype=object)
    given = {"imgs": images.astype(np.uint8), "latents_classes": codes, "latents_values": codes * 0.5}
    (home / "dsprites").mkdir(exist_ok=True)
    path = home / "dsprites" / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
    np.savez_compressed(path, metadata=metadata, **(given | changed))
    return path, images[:, None], codes[:, 1:]


def write_subset(home, name="random20k", **changed):
    images = RANDOM.random((40, 64, 64)) < 0.3
    codes = np.stack(np.unravel_index(np.arange(40), (3, 2, 2, 2, 2)), 1).astype(np.uint8)
    given = {"images_packed": np.packbits(images, axis=-1), "latents_classes": codes}
    (home / "dsprites").mkdir(exist_ok=True)
    path = home / "dsprites" / f"dsprites_{name}.npz"
    np.savez(path, **(given | changed))
    return path, images[:, None], codes


def write_mpi3d(home, name="mpi3d_toy"):
    images = RANDOM.integers(0, 256, (6 * 2 * 3, 64, 64, 3), dtype=np.uint8)
    (home / "mpi3d").mkdir(exist_ok=True)
    np.savez(home / "mpi3d" / f"{name}.npz", images=images)
    codes = np.stack(np.unravel_index(np.arange(36), (1, 6, 1, 1, 1, 2, 3)), 1)
    return home / "mpi3d" / f"{name}.npz", images.transpose(0, 3, 1, 2), codes


def write_cars(home, names=("b_car", "a_car"), shape=(128, 128, 3, 3, 4), listed=True):
    folder = home / "cars3d" / "cars"
    folder.mkdir(parents=True, exist_ok=True)
    images = {name: RANDOM.integers(0, 256, shape, dtype=np.uint8) for name in names}
    for name, each in images.items():
        savemat(folder / f"{name}.mat", {"im": each})
    if listed:
        (folder / "list.txt").write_text("\n".join(names) + "\n")
    return folder, images


MAGIC = {"u1": 0x1E3D4C55, "i4": 0x1E3D4C54}


def matrix(values):
    """The bytes of a matrix as smallNORB has them: at least three lengths, the missing ones 1."""
    lengths = [*values.shape, *[1] * (3 - values.ndim)]
    kind = MAGIC[values.dtype.str[1:]]
    return struct.pack(f"<ii{len(lengths)}i", kind, values.ndim, *lengths) + values.tobytes()


def write_norb(home, n=24):
    folder = home / "smallnorb"
    folder.mkdir(exist_ok=True)
    kept = []
    for part in SmallNORB.PARTS:
        images = RANDOM.integers(0, 256, (n, 2, 96, 96), dtype=np.uint8)
        category = (np.arange(n) % 5).astype("<i4")
        info = np.stack([np.arange(n) % 3, np.arange(n) % 9, 2 * (np.arange(n) % 18), np.arange(n) % 6], 1)
        for kind, values in (("dat", images), ("cat", category), ("info", info.astype("<i4"))):
            (folder / f"smallnorb-{part}-{kind}.mat").write_bytes(matrix(values))
        kept.append((images, category, info))
    return folder, kept


def write_coil(home):
    images = RANDOM.integers(0, 256, (3, 8, 64, 64), dtype=np.uint8)
    (home / "coil20").mkdir(exist_ok=True)
    np.savez(home / "coil20" / "coil20_64.npz", images=images, azimuth_deg=np.arange(8) * 45.0)
    return home / "coil20" / "coil20_64.npz", images.reshape(24, 1, 64, 64)


class File:
    """A stand-in for h5py.File, of the calls that are made: the test's file is an npz archive."""

    def __init__(self, path, mode):
        assert mode == "r"
        self.content = np.load(path, allow_pickle=False)

    def __enter__(self):
        return self.content

    def __exit__(self, *error):
        self.content.close()


@pytest.fixture
def h5py(monkeypatch):
    module = ModuleType("h5py")
    module.File = File
    monkeypatch.setitem(sys.modules, "h5py", module)


def shapes():
    images = RANDOM.integers(0, 256, (120, 64, 64, 3), dtype=np.uint8)
    sizes = (1, 1, 1, 2, 4, 15)
    codes = np.stack(np.unravel_index(np.arange(120), sizes), 1)
    grids = [np.linspace(0, 0.9, 10)] * 3 + [np.linspace(0.75, 1.25, 8), np.arange(4.0), np.linspace(-30, 30, 15)]
    return images, codes, np.stack([grid[code] for grid, code in zip(grids, codes.T, strict=True)], 1)


# --- read as they were written


def test_dsprites_from_the_publishers_file_without_its_pickle(home):
    _, images, codes = write_dsprites(home)
    found, read = whole(DSprites())
    assert np.array_equal(found, images)
    assert np.array_equal(read, codes)


@pytest.mark.parametrize("name", DSprites.SUBSETS[1:])
def test_subsets_of_dsprites(name, home):
    _, images, codes = write_subset(home, name)
    found, read = whole(DSprites(name))
    assert found.dtype == bool
    assert np.array_equal(found, images)
    assert np.array_equal(read, codes)


def test_shapes3d_codes_are_places_on_the_grids(home, h5py):
    images, codes, values = shapes()
    (home / "shapes3d").mkdir()
    with (home / "shapes3d" / "3dshapes.h5").open("wb") as file:
        np.savez(file, images=images, labels=values)
    found, read = whole(Shapes3D())
    assert np.array_equal(found, images.transpose(0, 3, 1, 2))
    assert np.array_equal(read, codes)


def test_shapes3d_through_h5py_itself(home):
    library = pytest.importorskip("h5py", reason="h5py is not installed: pip install 'zhat[images]'")
    images, codes, values = shapes()
    (home / "shapes3d").mkdir()
    with library.File(home / "shapes3d" / "3dshapes.h5", "w") as file:
        file["images"], file["labels"] = images, values
    found, read = whole(Shapes3D())
    assert np.array_equal(found, images.transpose(0, 3, 1, 2))
    assert np.array_equal(read, codes)


def test_without_h5py_the_extra_is_named(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    (home / "shapes3d").mkdir()
    (home / "shapes3d" / "3dshapes.h5").write_bytes(b"")
    with pytest.raises(MissingExtra, match=r"reading 3dshapes.h5 needs `h5py`.*zhat\[images\]"):
        whole(Shapes3D())


@pytest.mark.parametrize(("images", "name"), [(MPI3D(), "mpi3d_toy"), (MPI3D(real=True), "mpi3d_real")])
def test_mpi3d_is_a_grid_with_the_last_factor_fastest(images, name, home, monkeypatch):
    monkeypatch.setattr(MPI3D, "GRID", (1, 6, 1, 1, 1, 2, 3))
    _, points, codes = write_mpi3d(home, name)
    found, read = whole(images)
    assert np.array_equal(found, points)
    assert np.array_equal(read, codes)


def test_cars_are_counted_as_listed_and_halved_in_size(home):
    _, images = write_cars(home)
    found, codes = whole(Cars3D())
    assert found.shape == (24, 3, 64, 64)
    for row, (elevation, azimuth, car) in enumerate(codes.astype(int)):
        original = images[("b_car", "a_car")[car]][:, :, :, azimuth, elevation].astype(float)
        small = resized(original[None].astype(np.uint8))[0]
        assert np.array_equal(found[row], small.transpose(2, 0, 1))
    assert len(np.unique(codes, axis=0)) == 24
    (home / "cars3d" / "cars" / "list.txt").unlink()
    _placed.cache_clear()
    by_name, _ = whole(Cars3D())
    assert np.array_equal(by_name[:12], found[12:])  # a_car comes first


def test_smallnorb_takes_the_first_camera_of_both_splits(home):
    _, kept = write_norb(home)
    found, codes = whole(SmallNORB())
    assert found.shape == (48, 1, 64, 64)
    images, category, info = (np.concatenate(each) for each in zip(*kept, strict=True))
    assert np.array_equal(found[:, 0], resized(images[:, 0, :, :, None])[..., 0])
    expected = np.concatenate([category[:, None], info], 1)
    expected[:, 3] //= 2  # angles come as 0, 2, …, 34
    assert np.array_equal(codes, expected)


def test_coil20_is_objects_by_angles(home):
    _, images = write_coil(home)
    found, codes = whole(COIL20())
    assert np.array_equal(found, images)
    assert codes[9].tolist() == [1, 1]


# --- rounding and resizing


def test_codes_are_rounded_where_the_official_code_truncates():
    values = np.arange(183) / 182
    truncated = (values / np.unique(values)[1]).astype(int)
    assert len(np.unique(truncated)) == 138  # the official code: 45 cars are merged with others
    assert np.array_equal(codes_of(values[:, None], Path("cars"))[:, 0], np.arange(183))
    hue, turn = np.linspace(0, 0.9, 10), np.linspace(-30, 30, 15)
    for grid in (hue, turn, np.linspace(0.75, 1.25, 8), np.linspace(0, 2 * np.pi, 40).astype(np.float32)):
        assert np.array_equal(codes_of(grid[:, None], Path("grid"))[:, 0], np.arange(len(grid)))
    assert (codes_of(np.full((5, 1), 3.0), Path("still")) == 0).all()
    with pytest.raises(BadInput, match="must be finite numbers"):
        codes_of(np.full((5, 1), np.nan), Path("broken"))


def test_resizing_keeps_flat_images_and_smooths_fine_ones():
    flat = np.full((2, 96, 96, 1), 77, np.uint8)
    assert (resized(flat) == 77).all()
    stripes = np.tile(np.array([0, 200], np.uint8), (1, 128, 64))[..., None]
    assert np.abs(resized(stripes)[0, :, 2:-2].astype(int) - 100).max() <= 1
    same = RANDOM.integers(0, 256, (1, 64, 64, 3), dtype=np.uint8)
    assert resized(same) is same


# --- files that are missing, damaged or of somebody else


@pytest.mark.parametrize(
    ("images", "file", "source"),
    [
        (DSprites(), "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz", "google-deepmind/dsprites-dataset"),
        (DSprites("random20k"), "dsprites_random20k.npz", "neuromatch_ssl_tutorial"),
        (Shapes3D(), "3dshapes.h5", "google-deepmind/3d-shapes"),
        (MPI3D(), "mpi3d_toy.npz", "rr-learning/disentanglement_dataset"),
        (MPI3D(real=True), "mpi3d_real.npz", "rr-learning/disentanglement_dataset"),
        (Cars3D(), "cars3d/cars", "scottreed.info"),
        (SmallNORB(), "smallnorb", "norb-v1.0-small"),
        (COIL20(), "coil20_64.npz", "columbia.edu"),
    ],
)
def test_a_missing_file_is_named_with_its_publisher(images, file, source, home):
    with pytest.raises(MissingData, match=f"{file} does not exist. It is published .*{source}"):
        KnownFactors(images).find()
    with pytest.raises(MissingData, match="with --data"):
        whole(images)


def cut(path):
    path.write_bytes(path.read_bytes()[:1500])


DAMAGES = [
    (DSprites(), lambda home: cut(write_dsprites(home)[0]), "cannot be read .BadZipFile"),
    (DSprites(), lambda home: write_dsprites(home, imgs=np.array([{}], dtype=object)), "cannot be read .ValueError"),
    (DSprites(), lambda home: write_dsprites(home, latents_classes=np.zeros((40, 5))), "six factors of each, but"),
    (
        DSprites(),
        lambda home: write_dsprites(home, imgs=np.zeros((40, 32, 64))),
        r"of the shape \(40, 64, 64, 1\), but",
    ),
    (DSprites("random20k"), lambda home: cut(write_subset(home)[0]), "cannot be read .BadZipFile"),
    (DSprites("random20k"), lambda home: write_subset(home, latents_classes=np.zeros((3, 5))), "must name 5 factors"),
    (MPI3D(), lambda home: write_mpi3d(home), r"must hold 1,036,800 images, the grid 6 × 6 × 2 × .*, but 36 came"),
    (MPI3D(), lambda home: cut(write_mpi3d(home)[0]), "cannot be read .BadZipFile"),
    (Cars3D(), lambda home: write_cars(home, shape=(128, 128, 3)), r"must be bytes \(height, width, 3, sides, heights"),
    (Cars3D(), lambda home: (write_cars(home)[0] / "a_car.mat").unlink(), "but a_car.mat and 0 others of list.txt are"),
    (Cars3D(), lambda home: (home / "cars3d" / "cars").mkdir(parents=True), "must hold one .mat file for each car. Un"),
    (Cars3D(), lambda home: (write_cars(home)[0] / "a_car.mat").write_bytes(b"no"), "a_car.mat cannot be read"),
    (Cars3D(), lambda home: savemat(write_cars(home)[0] / "a_car.mat", {"x": 1}), "cannot be read .KeyError"),
    (COIL20(), lambda home: cut(write_coil(home)[0]), "cannot be read .BadZipFile"),
    (SmallNORB(), lambda home: (home / "smallnorb").mkdir(), "training-dat.mat cannot be read .No such file"),
]


@pytest.mark.parametrize(("images", "damage", "sentence"), DAMAGES)
def test_foreign_and_damaged_files_get_a_sentence(images, damage, sentence, home):
    damage(home)
    with pytest.raises(BadInput, match=sentence):
        whole(images)


def test_a_damaged_h5_file_gets_a_sentence(home, h5py):
    (home / "shapes3d").mkdir()
    (home / "shapes3d" / "3dshapes.h5").write_bytes(b"nothing")
    with pytest.raises(BadInput, match="3dshapes.h5 cannot be read"):
        whole(Shapes3D())


@pytest.mark.parametrize(
    ("kind", "change", "sentence"),
    [
        ("dat", lambda data: data[:5000], r"must have \d+ bytes for a matrix of \(24, 2, 96, 96\), but it has 5000"),
        ("dat", lambda data: b"\x1f\x8b\x08\x00" + data, "is no matrix of smallNORB: it begins with 1f8b0800"),
        ("cat", lambda data: b"", "is no matrix of smallNORB"),
        ("info", lambda data: data[:12], r"must have \d+ bytes"),
        ("cat", lambda data: matrix(np.zeros(7, "<i4")), "must speak of the same pairs of images"),
    ],
)
def test_a_damaged_matrix_of_smallnorb_gets_a_sentence(kind, change, sentence, home):
    folder, _ = write_norb(home)
    path = folder / f"smallnorb-{SmallNORB.PARTS[0]}-{kind}.mat"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BadInput, match=sentence):
        whole(SmallNORB())


def test_a_subset_that_does_not_exist_is_refused():
    with pytest.raises(BadInput, match="`subset` must be one of '', 'random20k', .* but 'all' came"):
        DSprites("all")


# --- the recorded data themselves


@pytest.mark.data
@pytest.mark.parametrize(
    ("images", "n"), [(DSprites("random20k"), 20_000), (DSprites("grid_3x6x10x16x16"), 46_080), (COIL20(), 1_440)]
)
def test_the_recorded_images_are_those_of_their_publishers(images, n):
    try:
        images.find()
    except MissingData as error:
        pytest.skip(str(error))
    found, codes = whole(images)
    assert len(found) == n
    if isinstance(images, DSprites):
        rows = np.flatnonzero((codes[:, 0] == 0) & (codes[:, 1] == 5))  # large squares move right with posX
        middle = [(found[i, 0].any(0).nonzero()[0].mean(), codes[i, 3]) for i in rows[:300]]
        assert np.corrcoef(np.array(middle).T)[0, 1] > 0.99
    assert os.environ["ZHAT_DATA"]
