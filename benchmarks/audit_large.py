"""An audit and a CCA of files that do not fit into memory, in one pass each, against plain programs in memory.

python -m benchmarks.audit_large                 everything; 1,000,000 x 768 are two files of 3 GB in a temporary folder
python -m benchmarks.audit_large --only plain    one group again; results/audit/large.json keeps the others
python -m benchmarks.audit_large --device cuda --rows 10000000 --columns 768
                                                 the group shards alone: two folders of shards of float16, made on the
                                                 device in a temporary folder (31 GB), audited with --device

Groups: shards (two folders of float16; then the first `--compared` rows by CPU and by device, side by side, and the
largest difference of their scores), audit and cca (the large files), plain (least squares, QR + SVD and our CCA on the
same `--part` rows: on a million rows in float64 the plain programs would need more than 20 GB), sklearn. Every program
runs in a process of its own. Memory is read from /proc every 50 ms: `anonymous` is what the process has allocated,
`resident` counts mapped pages of the files as well. `cpu_seconds` are those of all threads; on a shared machine they
say more than `seconds`.
"""

import argparse
import json
import multiprocessing
import os
import platform
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np

BLOCK = 8192


def write(folder, rows, columns):
    """a, and b = a R + noise for a rotation R: float32, a block at a time."""
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((columns, columns)))[0].astype(np.float32)
    spread = np.linspace(0.3, 2, columns, dtype=np.float32)
    files = [np.lib.format.open_memmap(folder / name, "w+", np.float32, (rows, columns)) for name in ("a.npy", "b.npy")]
    for start in range(0, rows, BLOCK):
        some = rng.standard_normal((min(BLOCK, rows - start), columns), dtype=np.float32) * spread
        files[0][start : start + BLOCK] = some
        noise = rng.standard_normal(some.shape, dtype=np.float32)
        files[1][start : start + BLOCK] = some @ rotation + np.float32(0.3) * noise
    for file in files:
        file.flush()


def memory():
    """Anonymous and resident bytes of this process now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon", "VmRSS"))}
    return found["RssAnon"], found["VmRSS"]


class Watched:
    """The most memory while something runs, above what there was before."""

    def __enter__(self):
        self.before = memory()
        self.most = self.before
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        self.started = time.perf_counter(), time.process_time()
        return self

    def watch(self):
        while not self.over.wait(0.05):
            self.most = tuple(max(pair) for pair in zip(self.most, memory(), strict=True))

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.started[0]
        self.cpu = time.process_time() - self.started[1]
        self.over.set()
        self.thread.join()

    def numbers(self):
        names = ("anonymous", "resident")
        grown = {f"{n}_growth_mb": (m - b) / 1e6 for n, m, b in zip(names, self.most, self.before, strict=True)}
        took = {"seconds": self.seconds, "cpu_seconds": self.cpu}
        return {**took, **{f"{n}_mb": m / 1e6 for n, m in zip(names, self.most, strict=True)}, **grown}


def audited(folder, rows):
    from zhat.audit import rows as passes
    from zhat.audit import verdict

    spent = []
    look = verdict.look

    def timed(*arguments, **settings):
        started = time.perf_counter(), time.process_time()
        seen = look(*arguments, **settings)
        spent.extend((time.perf_counter() - started[0], time.process_time() - started[1]))
        return seen

    passed = []
    once = passes.passed

    def counted(files, *arguments, **settings):
        passed.append(len(files))
        return once(files, *arguments, **settings)

    verdict.look, passes.passed = timed, counted
    with Watched() as watched:
        found = verdict.audit(folder / "a.npy", folder / "b.npy")
    return {
        **watched.numbers(),
        "rows": rows,
        "pass_seconds": spent[0],
        "pass_cpu_seconds": spent[1],
        "passes_over_each_file": len(passed),
        "verdict": found.verdict,
        "r2": found.score.value,
        "affine_r2": found.ladder.scores[-1].value,
    }


SHARDS = 64


def write_shards(folder, rows, columns, device):
    """Folders a and b of float16 shards, b = a R + noise for a rotation R; drawn on the device, written by threads."""
    import torch

    draw = torch.Generator(device).manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=draw, device=device)

    rotation = torch.linalg.qr(normal(columns, columns).double())[0].float()
    spread = torch.linspace(0.3, 2, columns, device=device)
    for name in "ab":
        (folder / name).mkdir()
    bounds = np.linspace(0, rows, min(SHARDS, rows) + 1).astype(int)
    with ThreadPoolExecutor(8) as pool:
        waiting = []
        for i, (start, end) in enumerate(pairwise(bounds.tolist())):
            a = normal(end - start, columns) * spread
            b = a @ rotation + 0.3 * normal(end - start, columns)
            for name, values in (("a", a), ("b", b)):
                values = values.half().cpu().numpy()
                waiting.append(pool.submit(np.save, folder / name / f"shard-{i:04d}.npy", values))
            while len(waiting) > 32:
                waiting.pop(0).result()
        for one in waiting:
            one.result()


def audited_on(folder, device, rows):
    """An audit of the first rows of both folders of shards: its numbers, how long each part took, the most memory."""
    import torch

    from zhat.audit import verdict
    from zhat.files import embeddings

    sources = [embeddings(folder / name) for name in "ab"]
    sources = [one if one.rows == rows else one.part(0, rows) for one in sources]
    if device != "cpu":
        torch.zeros(1, device=device) @ torch.zeros(1, device=device)  # loads what torch loads late
        torch.cuda.reset_peak_memory_stats()
    spent = {}
    look = verdict.look

    def timed(*arguments, **settings):
        started = time.perf_counter()
        seen = look(*arguments, **settings)
        spent["pass_seconds"] = time.perf_counter() - started
        spent["pass_anonymous_growth_mb"] = (memory()[0] - watched.before[0]) / 1e6
        return seen

    verdict.look = timed
    with Watched() as watched:
        found = verdict.audit(*sources, device=device)
    verdict.look = look
    most = {} if device == "cpu" else {"device_mb": torch.cuda.max_memory_allocated() / 1e6}
    return {
        **watched.numbers(),
        **spent,
        **most,
        "rows": found.n,
        "verdict": found.verdict,
        "r2": found.score.value,
        "scores": [value for s in found.ladder.scores for value in (s.value, s.low, s.high, s.chance)],
    }


def shards(rows, columns, device, compared, place):
    import torch

    with tempfile.TemporaryDirectory(dir=place) as name:
        started = time.perf_counter()
        write_shards(Path(name), rows, columns, device)
        took = {"making_seconds": time.perf_counter() - started, "threads": torch.get_num_threads()}
        where = torch.cuda.get_device_name() if device != "cpu" else "cpu"
        print(json.dumps({**took, "device": where}), flush=True)
        found = {"audit": apart(audited_on, Path(name), device, rows)}
        print(json.dumps(found), flush=True)
        some = min(rows, compared)
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            begun = [pool.apply_async(audited_on, (Path(name), one, some)) for one in dict.fromkeys(("cpu", device))]
            for one, work in zip(dict.fromkeys(("cpu", device)), begun, strict=True):
                found[f"{some} rows, {one}"] = work.get()
    ladders = [np.array(found[f"{some} rows, {one}"]["scores"]) for one in ("cpu", device)]
    return {
        **took,
        "device": where,
        **found,
        "largest_difference_of_scores": float(np.abs(ladders[0] - ladders[1]).max()),
    }


def least_squares(folder, rows):
    """The affine map by LAPACK's least squares on all rows in memory."""
    a, b = (np.load(folder / name) for name in ("a.npy", "b.npy"))
    with Watched() as watched:
        x = np.concatenate([a.astype(np.float64), np.ones((rows, 1))], axis=1)
        left = b - x @ np.linalg.lstsq(x, b.astype(np.float64), rcond=None)[0]
    return {**watched.numbers(), "rows": rows, "affine_r2_in_sample": float((1 - left.var(0) / b.var(0)).mean())}


def cca(folder, rows):
    from zhat.metrics import CCA

    a, b = (np.load(folder / name, mmap_mode="r")[:rows] for name in ("a.npy", "b.npy"))
    some = 20 * a.shape[1]
    CCA()(np.array(a[:some]), np.array(b[:some]), shuffles=0)  # loads what torch loads late
    with Watched() as watched:
        found = CCA()(a, b, shuffles=0)
    largest = sorted(found.per_latent, reverse=True)[:8]
    return {**watched.numbers(), "rows": rows, "mean": found.value, "largest": largest}


def whole_cca(folder, rows):
    a, b = (np.load(folder / name, mmap_mode="r")[:rows] for name in ("a.npy", "b.npy"))
    with Watched() as watched:
        q, r = (np.linalg.qr(m.astype(np.float64) - m.mean(0, dtype=np.float64))[0] for m in (a, b))
        values = np.linalg.svd(q.T @ r, compute_uv=False)
    return {**watched.numbers(), "rows": rows, "mean": float(values.mean())}


def scikit(folder, rows, components):
    """scikit-learn's CCA with some components: mean of their correlations, read on the rows themselves."""
    from sklearn.cross_decomposition import CCA

    a, b = (np.load(folder / name, mmap_mode="r")[:rows].astype(np.float64) for name in ("a.npy", "b.npy"))
    with Watched() as watched, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        u, v = CCA(n_components=components, max_iter=500).fit_transform(a, b)
    u, v = (m - m.mean(0) for m in (u, v))
    found = np.abs((u * v).sum(0)) / np.linalg.norm(u, axis=0) / np.linalg.norm(v, axis=0)
    stopped = sum("iterations" in str(w.message) for w in said)
    return {**watched.numbers(), "rows": rows, "correlations": found.tolist(), "not_converged": stopped}


def apart(work, *arguments):
    """The result of a function in a process of its own, so that its memory is its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(work, arguments)


def large(rows, columns, programs):
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), rows, columns)
        return {title: apart(work, Path(name), rows, *more) for title, (work, *more) in programs.items()}


def groups(rows, columns, part, sklearn_rows, sklearn_columns, components, device, compared, folder):
    return {
        "shards": lambda: shards(rows, columns, device, compared, folder),
        "audit": lambda: large(rows, columns, {"audit": (audited,)}),
        "cca": lambda: large(rows, columns, {"cca": (cca,)}),
        "plain": lambda: large(
            part,
            columns,
            {
                "least squares": (least_squares,),
                "our audit": (audited,),
                "QR + SVD": (whole_cca,),
                "our CCA": (cca,),
            },
        ),
        "sklearn": lambda: large(
            sklearn_rows, sklearn_columns, {"our CCA": (cca,), "scikit-learn's CCA": (scikit, components)}
        ),
    }


def main(out, only, **sizes):
    out = Path(out)
    only = "shards" if sizes["device"] is not None else only
    sizes["device"] = sizes["device"] or "cpu"
    kept = json.loads(out.read_text()) if only is not None and out.exists() else {}
    for group, work in groups(**sizes).items():
        if only in (None, group):
            before = os.getloadavg()[0]
            found = work()
            machine = f"{platform.machine()}, {os.cpu_count()} cores, load {before:.1f} to {os.getloadavg()[0]:.1f}"
            asked = " ".join(
                f"--{name.replace('_', '-')} {value}" for name, value in sizes.items() if value is not None
            )
            command = f"python -m benchmarks.audit_large --only {group} {asked}"
            kept[group] = {"command": command, "machine": machine, **found}
            print(json.dumps(kept[group], indent=1), flush=True)
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("--part", type=int, default=20_000, help="rows for the plain programs")
    parser.add_argument("--sklearn-rows", type=int, default=20_000)
    parser.add_argument("--sklearn-columns", type=int, default=512)
    parser.add_argument(
        "--components", type=int, default=1, help="of scikit-learn's CCA, of as many as there are columns"
    )
    parser.add_argument("--only", choices=("shards", "audit", "cca", "plain", "sklearn"))
    parser.add_argument("--device", help="runs the group shards alone, on this device")
    parser.add_argument("--compared", type=int, default=200_000, help="rows audited by CPU and by device")
    parser.add_argument("--folder", help="where the temporary folder of shards is made")
    parser.add_argument("--out", default=str(Path(__file__).parent.parent / "results" / "audit" / "large.json"))
    main(**vars(parser.parse_args()))
