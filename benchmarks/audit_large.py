"""An audit and a CCA of files that do not fit into memory, in one pass each, against plain programs in memory.

python -m benchmarks.audit_large                    1,000,000 x 768, two files of 3 GB in a temporary folder; writes
                                                    results/audit/large.json
python -m benchmarks.audit_large --rows 20000 --columns 64 --part 5000 --sklearn-rows 2000 --sklearn-columns 32 --out -

Every part runs in a process of its own. Memory is read from /proc every 50 ms: `anonymous` is what the process has
allocated, `resident` counts mapped pages of the files as well. The plain programs hold everything in float64 several
times (a million rows: more than 20 GB), so they run on `--part` rows and their time is multiplied by rows / part: both
are linear in the rows.
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
        self.started = time.perf_counter()
        return self

    def watch(self):
        while not self.over.wait(0.05):
            self.most = tuple(max(pair) for pair in zip(self.most, memory(), strict=True))

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.started
        self.over.set()
        self.thread.join()

    def numbers(self):
        names = ("anonymous", "resident")
        grown = {f"{n}_growth_mb": (m - b) / 1e6 for n, m, b in zip(names, self.most, self.before, strict=True)}
        return {"seconds": self.seconds, **{f"{n}_mb": m / 1e6 for n, m in zip(names, self.most, strict=True)}, **grown}


def audited(folder, rows):
    from zhat.audit import rows as passes
    from zhat.audit import verdict

    spent = []
    look = verdict.look

    def timed(*arguments, **settings):
        started = time.perf_counter()
        seen = look(*arguments, **settings)
        spent.append(time.perf_counter() - started)
        return seen

    passed = []
    together = passes._together

    def counted(sources):
        passed.append(len(sources))
        return together(sources)

    verdict.look, passes._together = timed, counted
    with Watched() as watched:
        found = verdict.audit(folder / "a.npy", folder / "b.npy")
    return {
        **watched.numbers(),
        "pass_seconds": spent[0],
        "passes_over_each_file": len(passed),
        "verdict": found.verdict,
        "r2": found.score.value,
        "affine_r2": found.ladder.scores[-1].value,
    }


def least_squares(folder, rows):
    """The affine map by LAPACK's least squares on rows in memory, with its R2 on as many others."""
    a, b = (np.load(folder / name, mmap_mode="r")[: 2 * rows] for name in ("a.npy", "b.npy"))
    with Watched() as watched:
        x = np.concatenate([a[:rows].astype(np.float64), np.ones((rows, 1))], axis=1)
        found = np.linalg.lstsq(x, b[:rows].astype(np.float64), rcond=None)[0]
    read = b[rows:].astype(np.float64)
    left = read - a[rows:].astype(np.float64) @ found[:-1] - found[-1]
    return {**watched.numbers(), "affine_r2": float((1 - left.var(0) / read.var(0)).mean())}


def cca(folder, rows):
    from zhat.metrics import CCA

    a, b = (np.load(folder / name, mmap_mode="r")[:rows] for name in ("a.npy", "b.npy"))
    some = 20 * a.shape[1]
    CCA()(np.array(a[:some]), np.array(b[:some]), shuffles=0)  # loads what torch loads late
    with Watched() as watched:
        found = CCA()(a, b, shuffles=0)
    return {**watched.numbers(), "mean": found.value, "largest": sorted(found.per_latent, reverse=True)[:64]}


def whole_cca(folder, rows):
    a, b = (np.load(folder / name, mmap_mode="r")[:rows] for name in ("a.npy", "b.npy"))
    with Watched() as watched:
        q, r = (np.linalg.qr(m.astype(np.float64) - m.mean(0, dtype=np.float64))[0] for m in (a, b))
        values = np.linalg.svd(q.T @ r, compute_uv=False)
    return {**watched.numbers(), "mean": float(values.mean())}


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
    return {**watched.numbers(), "components": components, "mean": float(found.mean()), "not_converged": stopped}


def apart(work, *arguments):
    """The result of a function in a process of its own, so that its memory is its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(work, arguments)


def main(rows, columns, part, sklearn_rows, sklearn_columns, components, out):
    result = {
        "command": f"python -m benchmarks.audit_large --rows {rows} --columns {columns} --part {part} "
        f"--sklearn-rows {sklearn_rows} --sklearn-columns {sklearn_columns} --components {components}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start",
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, rows, columns)
        result["audit"] = apart(audited, folder, rows)
        print("audit", result["audit"])
        result["least squares"] = apart(least_squares, folder, part)
        result["cca"] = apart(cca, folder, rows)
        print("cca", {k: v for k, v in result["cca"].items() if k != "largest"})
        result["QR + SVD"] = apart(whole_cca, folder, part)
        result["cca of the same part"] = apart(cca, folder, part)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, sklearn_rows, sklearn_columns)
        result["small cca"] = apart(cca, folder, sklearn_rows)
        result["scikit-learn"] = apart(scikit, folder, sklearn_rows, components)
    times = rows / part
    for name in ("least squares", "QR + SVD"):
        result[name]["rows"] = part
        result[name]["seconds_for_all_rows"] = result[name]["seconds"] * times
    ours = np.mean(result["small cca"]["largest"][:components])
    result["ratios"] = {
        "audit over least squares": result["audit"]["seconds"] / result["least squares"]["seconds_for_all_rows"],
        "QR + SVD over cca": result["QR + SVD"]["seconds_for_all_rows"] / result["cca"]["seconds"],
        "QR + SVD, mean apart": abs(result["QR + SVD"]["mean"] - result["cca of the same part"]["mean"]),
        "scikit-learn over cca": result["scikit-learn"]["seconds"] / result["small cca"]["seconds"],
        "scikit-learn, mean of its components below ours": float(ours - result["scikit-learn"]["mean"]),
    }
    result["machine"] += f", {os.getloadavg()[0]:.1f} at the end"
    for each in result.values():
        if isinstance(each, dict):
            each.pop("largest", None)
    text = json.dumps(result, indent=1)
    print(text)
    if out != "-":
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        Path(out).write_text(text + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("--part", type=int, default=50_000, help="rows for the plain programs")
    parser.add_argument("--sklearn-rows", type=int, default=20_000)
    parser.add_argument("--sklearn-columns", type=int, default=512)
    parser.add_argument(
        "--components", type=int, default=4, help="of scikit-learn's CCA, of as many as there are columns"
    )
    parser.add_argument("--out", default=str(Path(__file__).parent.parent / "results" / "audit" / "large.json"))
    main(**vars(parser.parse_args()))
