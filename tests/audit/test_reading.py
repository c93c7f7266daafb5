import os
import pickle
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from zhat.audit.reading import embeddings, joined
from zhat.errors import BadInput, MissingExtra, UnknownName

X = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


def written(tmp_path, kind):
    path = tmp_path / f"x{kind}"
    if kind == ".npy":
        np.save(path, X)
    elif kind == ".npz":
        np.savez_compressed(path, x=X, other=np.arange(3))
    elif kind == ".safetensors":
        save_file({"x": torch.from_numpy(X), "bias": torch.ones(4)}, path)
    elif kind == ".csv":
        path.write_text("a,b,c,d\n" + "\n".join(",".join(repr(float(v)) for v in row) for row in X) + "\n")
    else:
        path = tmp_path / "shards"
        path.mkdir()
        np.save(path / "0.npy", X[:20])
        save_file({"x": torch.from_numpy(X[20:])}, path / "1.safetensors")
    return path


@pytest.mark.parametrize("kind", [".npy", ".npz", ".safetensors", ".csv", "a folder"])
def test_every_kind_of_file_gives_the_same_rows(tmp_path, kind):
    found = embeddings(written(tmp_path, kind), key="x" if kind == ".npz" else None)
    assert (found.rows, found.dim) == X.shape
    assert np.array_equal(np.concatenate(list(found.blocks(7))), X)
    assert np.array_equal(found.block(np.array([40, 3, 19, 20])), X[[40, 3, 19, 20]])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_precision_is_read_and_named(tmp_path, dtype):
    values = torch.from_numpy(X).to(dtype)
    save_file({"x": values}, tmp_path / "x.safetensors")
    found = embeddings(tmp_path / "x.safetensors")
    assert found.precision == str(dtype).removeprefix("torch.")
    assert np.array_equal(found.block(slice(0, 50)), values.to(torch.float64).numpy().astype(found.take([0]).dtype))


def test_bfloat16_as_numpy_saves_it_is_two_bytes_without_a_type(tmp_path):
    values = torch.from_numpy(X).bfloat16()
    np.save(tmp_path / "x.npy", values.view(torch.int16).numpy().view("V2"))
    assert np.array_equal(embeddings(tmp_path / "x.npy").block(slice(0, 50)), values.float().numpy())


def test_a_mapped_file_is_not_read_until_asked(tmp_path):
    np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (10**7, 64)).flush()  # 2.5 GB, mostly a hole
    found = embeddings(tmp_path / "x.npy")
    assert found.rows == 10**7
    assert np.array_equal(found.block(slice(10**7 - 2, 10**7)), np.zeros((2, 64)))


def test_rows_of_different_order_are_joined_by_id():
    order = np.random.default_rng(1).permutation(50)[:45]
    a = embeddings(X, ids=np.arange(50))
    b = embeddings(X[order], ids=order)
    left, right = joined(a, b)
    assert left.rows == 45
    assert np.array_equal(left.block(slice(0, 45)), right.block(slice(0, 45)))


def test_ids_come_from_a_column_a_key_or_a_file(tmp_path):
    names = [f"row-{i}" for i in range(50)]
    cells = "\n".join(f"{n},{','.join(repr(float(v)) for v in row)}" for n, row in zip(names, X, strict=True))
    (tmp_path / "x.csv").write_text("id,a,b,c,d\n" + cells)
    np.savez(tmp_path / "x.npz", x=X, id=np.array(names))
    (tmp_path / "ids.txt").write_text("\n".join(names))
    from_csv = embeddings(tmp_path / "x.csv", ids="id")
    from_npz = embeddings(tmp_path / "x.npz", ids="id")
    from_file = embeddings(X, ids=tmp_path / "ids.txt")
    for found in (from_csv, from_npz, from_file):
        assert found.dim == 4
        assert list(found.ids) == names


class Bomb:
    def __reduce__(self):
        return os.system, ("touch /tmp/zhat-was-here",)


def bad(tmp_path, what):
    path = tmp_path / "x.npy"
    np.save(path, X)
    data = path.read_bytes()
    if what == "truncated":
        path.write_bytes(data[:-100])
    elif what == "empty":
        path.write_bytes(b"")
    elif what == "corrupt":
        path.write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': nonsense" + data[30:])
    elif what == "pickled":
        path.write_bytes(pickle.dumps(Bomb()))
    elif what == "objects":
        np.save(path, np.array([[Bomb(), 1], [2, 3]], dtype=object), allow_pickle=True)
    elif what == "text":
        np.save(path, np.array([["a", "b"]]))
    elif what == "no rows":
        np.save(path, X[:0])
    elif what == "one axis":
        np.save(path, X[0])
    elif what == "object archive":
        path = tmp_path / "x.npz"
        np.savez(path, x=np.array([[Bomb(), 1]], dtype=object), allow_pickle=True)
    elif what == "broken archive":
        path = tmp_path / "x.npz"
        np.savez(path, x=X)
        path.write_bytes(path.read_bytes()[:200])
    elif what == "cut tensors":
        path = tmp_path / "x.safetensors"
        save_file({"x": torch.from_numpy(X)}, path)
        path.write_bytes(path.read_bytes()[:-8])
    elif what == "no header":
        path = tmp_path / "x.safetensors"
        path.write_bytes(b"\xff" * 64)
    elif what == "words":
        path = tmp_path / "x.csv"
        path.write_text("1,2\n3,four\n")
    elif what == "ragged":
        path = tmp_path / "x.csv"
        path.write_text("1,2\n3\n")
    elif what == "empty table":
        path = tmp_path / "x.csv"
        path.write_text("")
    elif what == "unknown kind":
        path = tmp_path / "x.bin"
        path.write_bytes(b"1")
    elif what == "empty folder":
        path = tmp_path / "none"
        path.mkdir()
    return path


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("truncated", "must hold one array of numbers"),
        ("empty", "must hold one array of numbers"),
        ("corrupt", "must hold one array of numbers"),
        ("pickled", "must hold one array of numbers"),
        ("objects", "must hold one array of numbers"),
        ("text", "must hold real numbers"),
        ("no rows", "not empty"),
        ("one axis", "must be a matrix"),
        ("object archive", "Python objects|cannot be read|Name one"),
        ("broken archive", "archive as numpy.savez"),
        ("cut tensors", "shorter than its header"),
        ("no header", "no sensible length"),
        ("words", "must hold numbers"),
        ("ragged", "line 2 has 1"),
        ("empty table", "is empty"),
        ("unknown kind", "must be one of"),
        ("empty folder", "holds no embeddings"),
    ],
)
def test_a_bad_file_gets_a_sentence_and_runs_no_code(tmp_path, what, sentence):
    with pytest.raises(BadInput, match=sentence):
        embeddings(bad(tmp_path, what))
    assert not os.path.exists("/tmp/zhat-was-here")


def test_a_missing_file_a_missing_key_and_several_arrays_are_said(tmp_path):
    with pytest.raises(BadInput, match="there is no file"):
        embeddings(tmp_path / "none.npy")
    np.savez(tmp_path / "x.npz", x=X, y=X)
    with pytest.raises(BadInput, match="holds 2 arrays"):
        embeddings(tmp_path / "x.npz")
    with pytest.raises(UnknownName, match="no array in x.npz named 'z'"):
        embeddings(tmp_path / "x.npz", key="z")


def test_a_nan_is_named_by_its_row():
    spoiled = X.copy()
    spoiled[33, 2] = np.nan
    with pytest.raises(BadInput, match="row 33, column 2"):
        list(embeddings(spoiled).blocks(10))


def test_rows_that_cannot_be_paired_are_refused():
    with pytest.raises(BadInput, match="50 rows and .* 49"):
        joined(embeddings(X), embeddings(X[:49]))
    with pytest.raises(BadInput, match="must be unique"):
        joined(embeddings(X, ids=np.zeros(50, int)), embeddings(X, ids=np.arange(50)))
    with pytest.raises(BadInput, match="no id of"):
        joined(embeddings(X, ids=np.arange(50)), embeddings(X, ids=np.arange(50) + 100))
    with pytest.raises(BadInput, match="one id for each"):
        embeddings(X, ids=np.arange(3))


def test_parquet_without_its_extra_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtra, match="zhat\\[parquet\\]"):
        embeddings(tmp_path / "x.parquet")
