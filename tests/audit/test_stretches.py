import os
import pickle
import signal
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest
import torch

from zhat.audit import audit, copies, embeddings, joined, rows, stretches
from zhat.errors import BadInput

N = 1500


def pair(folder=None, dtype=np.float32, repeated=False):
    """Rows and a rotation of them; as folders of shards if a folder is given."""
    random = np.random.default_rng(3)
    a = random.normal(size=(N, 4)) + 5
    if repeated:
        a = a[random.integers(0, 500, N)]
    b = a @ np.linalg.qr(random.normal(size=(4, 4)))[0]
    found = a.astype(dtype), b.astype(dtype)
    if folder is None:
        return found
    for name, values in zip("ab", found, strict=True):
        (folder / name).mkdir()
        for i, some in enumerate(np.array_split(values, 7)):
            np.save(folder / name / f"{i}.npy", some)
    return folder / "a", folder / "b"


def same(one, other):
    """Whether two passes have kept the same numbers to the last bit."""
    for a, b in zip((one.fit, *one.read), (other.fit, *other.read), strict=True):
        for name in stretches._FIELDS:
            assert torch.equal(getattr(a, name), getattr(b, name)), name
    assert (one.distinct, one.same) == (other.distinct, other.same)
    for name in ("index", "held_out", "source", "target"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("repeated", [False, True])
def test_the_sums_do_not_depend_on_the_workers(monkeypatch, tmp_path, repeated):
    monkeypatch.setattr(stretches, "STRETCH", 100)
    files = [embeddings(one) for one in pair(tmp_path, repeated=repeated)]
    here = rows.look(*files, seed=0)
    for workers in (1, 3):
        with ThreadPoolExecutor(workers) as pool:
            same(rows.look(*files, seed=0, executor=pool), here)


def test_stretches_add_up_to_the_whole(monkeypatch):
    files = [embeddings(x, name=n) for x, n in zip(pair(dtype=float), "ab", strict=True)]
    whole = rows.look(*files, seed=0)
    monkeypatch.setattr(stretches, "STRETCH", 100)
    cut = rows.look(*files, seed=0)
    assert len(whole.read) == len(cut.read)
    for a, b in zip((whole.fit, *whole.read), (cut.fit, *cut.read), strict=True):
        assert a.n == b.n
        assert torch.allclose(a.zh, b.zh, rtol=1e-12, atol=1e-12 * float(a.zh.abs().max()))
    assert torch.equal(whole.source, cut.source)


class Backwards:
    """An executor that does the last thing first, as far as it is given several."""

    def __init__(self):
        self.waiting = []
        self.most = 0

    def submit(self, work, one):
        outer = self

        class Late(Future):
            def result(self, timeout=None):
                for future, what, arguments in reversed(outer.waiting):
                    future.set_result(what(arguments))
                outer.waiting.clear()
                return super().result(timeout)

        future = Late()
        self.waiting.append((future, work, one))
        self.most = max(self.most, len(self.waiting))
        return future


def test_results_come_in_order_and_wait_in_bounded_number():
    pool = Backwards()
    assert list(stretches.in_order(pool, lambda x: x * x, iter(range(20)), 6)) == [x * x for x in range(20)]
    assert 1 < pool.most <= 6


def test_a_row_that_is_not_finite_is_named_by_its_number_in_the_file(monkeypatch):
    monkeypatch.setattr(stretches, "STRETCH", 100)
    a, b = pair()
    b[1234, 2] = np.nan
    with pytest.raises(BadInput, match="row 1234, column 2"), ThreadPoolExecutor(2) as pool:
        audit(a, b, executor=pool)


def test_a_device_that_is_not_there_gets_a_sentence():
    with pytest.raises(BadInput, match="cannot be used here"):
        audit(*pair(), device="cuda:99")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_keys_are_the_same_on_every_device(dtype):
    x = torch.randn(200, 5, dtype=dtype)
    x[7], x[3, 0] = x[9], 0.0
    x[4], x[4, 0] = x[3], -0.0
    odd = 2 * np.random.default_rng(0).integers(0, 2**63, 5, dtype=np.uint64) + np.uint64(1)
    keys = copies.keys_of(x)
    assert np.array_equal(keys, copies._at_once(x, odd))
    assert keys[7] == keys[9]
    assert keys[3] == keys[4]
    assert len(np.unique(keys)) == 198


def test_keys_of_rows_of_zeros_and_ones_differ():
    x = torch.tensor([[float(c) for c in f"{i:012b}"] for i in range(4096)], dtype=torch.float64)
    assert len(np.unique(copies.keys_of(x))) == 4096
    assert len(np.unique(copies.keys_of(x.float()))) == 4096


def test_copies_are_counted_in_groups(monkeypatch):
    monkeypatch.setattr(copies, "_AT_ONCE", 64)
    monkeypatch.setattr(copies, "_TOGETHER", 100)
    values = np.random.default_rng(0).integers(0, 2**64, 700, dtype=np.uint64)
    keys, other = copies.Keys(), copies.Keys()
    for start in range(0, 1400, 200):
        keys.add(np.tile(values, 2)[start : start + 200])
        other.add(np.zeros(200, np.uint64))
    assert (len(keys), keys.distinct(), other.distinct()) == (1400, 700, 1)
    assert keys.distinct_with(other) == 700


def test_many_rows_are_sampled_without_a_list_of_all(monkeypatch):
    monkeypatch.setattr(rows, "_LISTED", 10_000)
    found = rows._sample(50_000, 0)
    assert len(found) == rows.SAMPLE == len(found.unique())
    assert bool((found.diff() > 0).all())
    assert 0 <= int(found[0]) < 1000
    assert 49_000 < int(found[-1]) < 50_000


class Killing:
    """The executor of a Dask client that stops a worker once so many tasks are handed in."""

    def __init__(self, client, after):
        self.client, self.pool, self.after, self.count = client, client.get_executor(), after, 0

    def submit(self, work, one):
        self.count += 1
        future = self.pool.submit(work, one)
        if self.count == self.after:
            os.kill(next(iter(self.client.run(os.getpid).values())), signal.SIGKILL)
        return future


@pytest.mark.slow
def test_a_dask_worker_killed_midway_changes_nothing(monkeypatch, tmp_path):
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    monkeypatch.setattr(stretches, "STRETCH", 50)
    files = [embeddings(one) for one in pair(tmp_path)]
    here = rows.look(*files, seed=0)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        with client.get_executor() as pool:
            same(rows.look(*files, seed=0, executor=pool), here)
        before = set(client.run(os.getpid).values())
        same(rows.look(*files, seed=0, executor=Killing(client, after=12)), here)
        client.wait_for_workers(2)
        assert set(client.run(os.getpid).values()) != before


@pytest.mark.gpu
def test_a_gpu_takes_the_same_sums(tmp_path):
    for dtype in (np.float16, np.float32, float):
        folder = tmp_path / np.dtype(dtype).name
        folder.mkdir()
        files = [embeddings(one) for one in pair(folder, dtype=dtype, repeated=dtype is float)]
        here, there = rows.look(*files, seed=0), rows.look(*files, seed=0, device="cuda")
        assert here.distinct == there.distinct
        for a, b in zip((here.fit, *here.read), (there.fit, *there.read), strict=True):
            assert torch.allclose(a.zh, b.zh, rtol=1e-12, atol=1e-12 * float(a.zh.abs().max()))
        assert torch.equal(here.source, there.source)


class Sent:
    """An executor that runs each task on what comes out of a pickle, as another process would."""

    def submit(self, work, one):
        future = Future()
        future.set_result(pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(one))))))
        return future


def sources(folder):
    """The same rows in many forms, by name; some of them rounded alike."""
    values = pair(dtype=np.float16)[0].astype(np.float32)
    np.save(folder / "plain.npy", values)
    np.save(folder / "columns.npy", np.asfortranarray(values))
    np.save(folder / "swapped.npy", values.astype(">f4"))
    np.savez(folder / "archive.npz", values)
    np.savetxt(folder / "table.csv", values, delimiter=",", fmt="%.17g")
    (folder / "mixed").mkdir()
    for i, kind in enumerate((np.float16, np.float32, float)):
        np.save(folder / "mixed" / f"{i}.npy", np.array_split(values, 3)[i].astype(kind))
    found = {name: embeddings(folder / name) for name in ("plain.npy", "columns.npy", "swapped.npy", "archive.npz")}
    found |= {name: embeddings(folder / name) for name in ("table.csv", "mixed")}
    order = np.random.default_rng(0).permutation(N)
    names = np.array([f"row {i}" for i in range(N)])
    np.save(folder / "shuffled.npy", values[order])
    by_id = [embeddings(folder / name, ids=i) for name, i in (("plain.npy", names), ("shuffled.npy", names[order]))]
    some = names[::3]  # joined in this order, near to how they lie
    few = embeddings(values[::3], ids=some, name="few")
    return values, found | {"ids": joined(*by_id)[1]}, joined(few, by_id[0])[1], values[::3]


def test_every_kind_of_file_travels_to_another_process(tmp_path, monkeypatch):
    monkeypatch.setattr(stretches, "STRETCH", 100)
    values, found, few, third = sources(tmp_path)
    target = embeddings(pair()[1], name="target")
    monkeypatch.chdir(tmp_path)
    here = rows.look(embeddings(values, name="values"), target, seed=0)
    for name, source in found.items():
        there = rows.look(source, target, seed=0, executor=Sent())
        assert torch.allclose(there.fit.zh, here.fit.zh, rtol=1e-12), name
        assert torch.equal(there.source, here.source), name
        assert there.distinct == here.distinct, name
    again = rows.look(few, few, seed=0, executor=Sent())
    assert again.same
    assert torch.equal(again.source, torch.from_numpy(third).double())


def test_a_task_holds_where_rows_lie_and_not_the_rows(tmp_path):
    np.save(tmp_path / "large.npy", np.zeros((200_000, 8), np.float32))
    source = embeddings(tmp_path / "large.npy")
    assert len(pickle.dumps(source.part(1000, 150_000))) < 5000
    assert source.part(1000, 150_000).first == 1000
    assert source.part(1000, 150_000).take.nbytes == 0
    assert embeddings(np.zeros((100, 8), np.float32)).part(10, 20).take.nbytes == 10 * 8 * 4
