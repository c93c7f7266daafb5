"""Mean CCA from moments, against QR and SVD of the whole matrices and against scikit-learn's CCA, in one run.

python -m benchmarks.similarity                                          seconds
python -m benchmarks.similarity --rows 1000000 --columns 768             two memory-mapped files of 3 GB each
python -m benchmarks.similarity --sklearn-rows 20000 --sklearn-columns 512   hours, for scikit-learn
"""

import argparse
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.cross_decomposition import CCA as SklearnCCA

from zhat.metrics import CCA


def timed(function, *arguments):
    started = time.perf_counter()
    value = function(*arguments)
    return time.perf_counter() - started, value


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def write(folder, rows, columns):
    """Two related representations in float32, written a block at a time."""
    rng = np.random.default_rng(0)
    mix = [rng.standard_normal((columns, columns)).astype(np.float32) / columns**0.5 for _ in range(2)]
    paths = [folder / "z.npy", folder / "h.npy"]
    files = [np.lib.format.open_memmap(p, "w+", np.float32, (rows, columns)) for p in paths]
    for start in range(0, rows, 4096):
        shared = rng.standard_normal((min(4096, rows - start), columns), dtype=np.float32)
        for file, matrix in zip(files, mix, strict=True):
            noise = rng.standard_normal(shared.shape, dtype=np.float32)
            file[start : start + 4096] = shared @ matrix + 0.5 * noise
    for file in files:
        file.flush()
    return paths


def one_pass(z, h):
    return CCA()(z, h, shuffles=0).value


def whole(z, h):
    z, h = (np.linalg.qr(m.astype(np.float64) - m.mean(0, dtype=np.float64))[0] for m in (z, h))
    return np.linalg.svd(z.T @ h, compute_uv=False).mean()


def scikit(z, h, tolerance=1e-6, iterations=500):
    model = SklearnCCA(n_components=z.shape[1], tol=tolerance, max_iter=iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says when its iteration has not converged; the value shows it as well
        a, b = model.fit_transform(z, h)
    a, b = (m - m.mean(0) for m in (a, b))
    return (np.abs((a * b).sum(0)) / np.linalg.norm(a, axis=0) / np.linalg.norm(b, axis=0)).mean()


def main(rows=50_000, columns=256, sklearn_rows=2000, sklearn_columns=32):
    out = {}
    cases = ("QR + SVD", rows, columns, whole), ("scikit-learn", sklearn_rows, sklearn_columns, scikit)
    for name, n, d, plain in cases:
        with tempfile.TemporaryDirectory() as folder:
            paths = write(Path(folder), n, d)
            one_pass(*(np.load(path)[: 10 * d] for path in paths))  # the first call loads what torch loads late
            before = peak()
            a, mine = timed(one_pass, *(np.load(path, mmap_mode="r") for path in paths))
            grown = peak() - before
            b, theirs = timed(plain, *(np.load(path) for path in paths))
        out[f"{name}, {n} x {d}"] = {
            "ours_s": a,
            "plain_s": b,
            "ratio": b / a,
            "difference": abs(mine - theirs),
            "peak_growth_bytes": grown,
        }
        print(
            f"{n:,} x {d}: ours {a:.2f} s, {name} {b:.2f} s, {b / a:.1f} times faster; mean CCA {mine:.8f} and "
            f"{theirs:.8f}, apart {abs(mine - theirs):.1e}; resident memory grew by {grown / 1e6:.0f} MB, of which the "
            f"mapped files may be {2 * n * d * 4 / 1e6:.0f} MB"
        )
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--sklearn-rows", type=int, default=2000)
    parser.add_argument("--sklearn-columns", type=int, default=32)
    main(**vars(parser.parse_args()))
