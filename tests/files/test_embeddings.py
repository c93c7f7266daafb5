import os
import pickle
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from zhat.errors import BadInput, MissingExtra, UnknownName
from zhat.files import embeddings, joined

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
        ("cut tensors", "shorter or longer than its header"),
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


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'zhat[parquet]'")


NAMES = [f"row-{i}" for i in range(50)]


def as_table(arrow, form, dtype=np.float32):
    """X as an Arrow table with a column of ids in between."""
    x = X.astype(dtype)
    if form == "columns":
        parts = {"a": x[:, 0], "b": x[:, 1], "id": NAMES, "c": x[:, 2], "d": x[:, 3]}
        return arrow.table({name: arrow.array(values) for name, values in parts.items()})
    flat = arrow.array(x.ravel())
    if form == "lists":
        return arrow.table({"id": NAMES, "x": arrow.ListArray.from_arrays(np.arange(0, 201, 4, dtype=np.int32), flat)})
    return arrow.table({"id": NAMES, "x": arrow.FixedSizeListArray.from_arrays(flat, 4)})


def put(arrow, table, path):
    if path.suffix == ".parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, path, row_group_size=17)
    elif path.name.startswith("stream"):
        with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=17)
    else:
        with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=17)
    return path


@pytest.mark.parametrize("form", ["columns", "lists", "lists of one size"])
@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.feather", "stream.arrow"])
def test_parquet_and_arrow_give_the_same_rows_with_their_ids(tmp_path, arrow, form, name):
    found = embeddings(put(arrow, as_table(arrow, form), tmp_path / name), ids="id")
    assert np.array_equal(found.block(slice(0, 50)), X)
    assert list(found.ids) == NAMES
    assert found.precision == "float32"
    with pytest.raises(UnknownName, match="no column in .* named 'key'"):
        embeddings(tmp_path / name, ids="key")


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_tables_keep_their_precision(tmp_path, arrow, dtype):
    found = embeddings(put(arrow, as_table(arrow, "lists", dtype), tmp_path / "x.parquet"), ids="id")
    assert found.precision == np.dtype(dtype).name
    assert np.array_equal(found.block(slice(0, 50)), X.astype(dtype).astype(found.take([0]).dtype))


def test_a_folder_of_parquet_shards_is_joined_by_its_ids(tmp_path, arrow):
    (tmp_path / "shards").mkdir()
    table = as_table(arrow, "lists")
    put(arrow, table.slice(0, 20), tmp_path / "shards" / "part-0.parquet")
    put(arrow, table.slice(20), tmp_path / "shards" / "part-1.arrow")
    order = np.random.default_rng(0).permutation(50)
    np.savez(tmp_path / "x.npz", x=X[order], id=np.array(NAMES)[order])
    left, right = joined(embeddings(tmp_path / "shards", ids="id"), embeddings(tmp_path / "x.npz", ids="id"))
    assert left.rows == 50
    assert np.array_equal(left.block(slice(0, 50)), right.block(slice(0, 50)))


def test_shards_of_bfloat16_are_read_in_order(tmp_path):
    values = torch.from_numpy(X).bfloat16()
    for i, some in enumerate(values.split(15)):
        save_file({"x": some.contiguous()}, tmp_path / f"model-{i:05d}.safetensors")
    found = embeddings(tmp_path)
    assert found.precision == "bfloat16"
    assert np.array_equal(np.concatenate(list(found.blocks(8))), values.float().numpy())


def spoiled(tmp_path, arrow, what):
    path = tmp_path / "x.parquet"
    x = arrow.array(X[:, 0])
    tables = {
        "a missing number": {"x": arrow.array([1.0, None, 3.0])},
        "text": {"x": x, "y": NAMES},
        "numbers as text": {"x": ["1.5", "2.5"]},
        "dates": {"x": arrow.array([1, 2], arrow.timestamp("s"))},
        "ragged lists": {"x": arrow.array([[1.0], [1.0, 2.0, 3.0]])},
        "a missing list": {"x": arrow.array([[1.0, 2.0], None])},
        "lists of text": {"x": arrow.array([["a"], ["b"]])},
        "empty lists": {"x": arrow.array([[], []], arrow.list_(arrow.float32()))},
        "no rows": {"x": arrow.array([], arrow.float32())},
    }
    put(arrow, arrow.table(tables.get(what, {"x": x})), path)
    if what == "truncated":
        path.write_bytes(path.read_bytes()[:-30])
    elif what == "corrupt":
        data = path.read_bytes()
        path.write_bytes(data[:4] + b"\xff" * (len(data) - 12) + data[-8:])
    elif what == "pickled":
        path.write_bytes(pickle.dumps(Bomb()))
    elif what == "an empty file":
        path.write_bytes(b"")
    elif what == "truncated arrow":
        path = put(arrow, arrow.table({"x": x}), tmp_path / "x.arrow")
        path.write_bytes(path.read_bytes()[:-30])
    elif what == "no arrow":
        path = tmp_path / "x.arrow"
        path.write_bytes(b"nothing of the kind" * 9)
    return path


@pytest.mark.parametrize(
    "what",
    [
        *(
            "text",
            "numbers as text",
            "dates",
            "ragged lists",
            "a missing list",
            "lists of text",
            "empty lists",
            "no rows",
        ),
        *("truncated", "corrupt", "pickled", "an empty file", "truncated arrow", "no arrow"),
    ],
)
def test_a_bad_table_gets_a_sentence_and_runs_no_code(tmp_path, arrow, what):
    with pytest.raises(BadInput, match="must hold (columns|rows) of numbers"):
        embeddings(spoiled(tmp_path, arrow, what))
    assert not os.path.exists("/tmp/zhat-was-here")


def test_a_missing_number_of_a_table_is_named_by_its_row(tmp_path, arrow):
    with pytest.raises(BadInput, match="row 1, column 0"):
        list(embeddings(spoiled(tmp_path, arrow, "a missing number")).blocks())


def test_a_folder_of_many_shards_holds_no_descriptors(tmp_path):
    for i in range(30):
        np.save(tmp_path / f"{i:02}.npy", np.full((2, 3), float(i)))
    np.savez(tmp_path / "98.npz", x=np.full((2, 3), 98.0))
    (tmp_path / "99.csv").write_text("99,99,99\n")
    before = len(os.listdir("/proc/self/fd"))
    found = embeddings(tmp_path)
    assert found.block(slice(0, found.rows))[::2, 0].tolist() == [*range(30), 98, 99]
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # what archives and tables were unpacked into


def test_a_file_that_changes_while_it_is_read_gets_a_sentence(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((5000, 3)))
    found = embeddings(tmp_path / "x.npy")
    (tmp_path / "x.npy").write_bytes(b"")
    with pytest.raises(BadInput, match="x.npy must stay as it was"):
        found.block(slice(0, 3))
    (tmp_path / "x.npy").unlink()
    with pytest.raises(BadInput, match="there is no file"):
        found.block(slice(0, 3))
