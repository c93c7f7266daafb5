import json
import sys

import numpy as np
import pytest

from zhat.errors import BadInput, MissingExtra, UnknownName
from zhat.files import embeddings
from zhat.files.containers import container_shapes

X = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


def put(path, arrays):
    if path.suffix == ".zarr":
        zarr = pytest.importorskip("zarr", reason="zarr is not installed: pip install 'zhat[zarr]'")
        group = zarr.open_group(str(path), mode="w")
        for name, array in arrays.items():
            group.create_array(name, data=array)
    elif path.suffix == ".mat" and path.stem != "new":
        from scipy.io import savemat

        savemat(path, {**arrays, "note": "words"})
    else:
        h5py = pytest.importorskip("h5py", reason="h5py is not installed: pip install 'zhat[hdf5]'")
        with h5py.File(path, "w", userblock_size=512 if path.suffix == ".mat" else 0) as file:
            for name, array in arrays.items():
                file[name] = array.T if path.suffix == ".mat" else array
        if path.suffix == ".mat":
            with path.open("r+b") as raw:
                raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return path


@pytest.mark.parametrize("name", ["x.h5", "x.hdf5", "x.mat", "new.mat", "x.zarr"])
def test_every_container_gives_the_rows_that_went_in(tmp_path, name):
    beside = {} if name.endswith(".mat") else {"bias": np.arange(3.0)}  # a vector of MATLAB is a matrix
    path = put(tmp_path / name, {"x": X, **beside})
    assert container_shapes(path)["x"] == X.shape
    found = embeddings(path)  # the only matrix
    assert np.array_equal(np.concatenate(list(found.blocks(7))), X)
    put(path, {"x": X, "y": X + 1})
    with pytest.raises(BadInput, match="holds 2 arrays .*Name one with --key"):
        embeddings(path)
    assert np.array_equal(embeddings(path, key="y").block(slice(0, 50)), X + 1)
    with pytest.raises(UnknownName, match="no array in .* named 'z'. Known: x, y"):
        embeddings(path, key="z")


def test_arrays_in_groups_are_named_by_their_path_and_links_are_not_followed(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed: pip install 'zhat[hdf5]'")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["deep/x"] = X
        file["elsewhere"] = h5py.ExternalLink("/dev/zero", "x")
        file["words"] = ["a", "b"]
    assert container_shapes(tmp_path / "x.h5") == {"deep/x": (50, 4)}


def test_ids_lie_beside_the_rows(tmp_path):
    path = put(tmp_path / "x.h5", {"x": X, "id": np.arange(50)})
    assert embeddings(path, ids="id").ids.tolist() == list(range(50))


@pytest.mark.parametrize(("name", "package", "extra"), [("x.h5", "h5py", "hdf5"), ("x.zarr", "zarr", "zarr")])
def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch, name, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(
        MissingExtra, match=f"reading {name} needs `{package}`. Install it with: pip install 'zhat.{extra}"
    ):
        embeddings(tmp_path / name)


@pytest.mark.parametrize("where", ["compressor", "filters", "codecs"])
def test_a_codec_that_may_run_code_is_refused(tmp_path, monkeypatch, where):
    monkeypatch.setitem(sys.modules, "zarr", type(sys)("zarr"))
    codec = {"id": "pickle"} if where != "codecs" else {"name": "numcodecs.pickle"}
    about = {where: codec if where == "compressor" else [codec]}
    (tmp_path / "x.zarr" / "a").mkdir(parents=True)
    (tmp_path / "x.zarr" / "a" / "zarr.json").write_text(json.dumps({"metadata": [about]}))
    with pytest.raises(BadInput, match="x.zarr is packed with the codec .*pickle', which zhat does not run"):
        embeddings(tmp_path / "x.zarr")
