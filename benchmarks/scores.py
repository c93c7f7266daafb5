"""R2 and MCC of a hundred thousand rows, ours against scikit-learn and NumPy, in one run.

python -m benchmarks.scores
"""

import time

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from zhat.equivalence import AFFINE, SCALED_PERMUTATION
from zhat.metrics import Recovery, linear_r2, mcc, pearson


def best(function, *arguments, repeats=5):
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        value = function(*arguments)
        times.append(time.perf_counter() - started)
    return min(times), value


def sklearn_r2(z, h):
    return r2_score(z, LinearRegression().fit(h, z).predict(h))


def numpy_mcc(z, h):
    correlation = np.abs(np.corrcoef(z.T, h.T)[: z.shape[1], z.shape[1] :])
    rows, columns = linear_sum_assignment(-correlation)
    return correlation[rows, columns].mean()


def main(n=100_000):
    out = {}
    bare = {"holdout": 0, "repeats": 0, "shuffles": 0}
    print(f"n = {n:,}, in sample as in the papers, best of 5; last column: held out, with interval and chance level")
    for dim in (10, 100):
        generator = torch.Generator().manual_seed(0)
        z = torch.randn(n, dim, generator=generator)
        h = torch.tanh(z @ torch.randn(dim, dim, generator=generator)) + z
        arrays = z.double().numpy(), h.double().numpy()
        cases = (
            ("R2", Recovery(AFFINE, **bare), sklearn_r2, linear_r2),
            ("MCC", Recovery(SCALED_PERMUTATION, agree=pearson, shift=True, **bare), numpy_mcc, mcc),
        )
        for name, ours, plain, full in cases:
            (a, mine), (b, theirs) = best(ours, z, h), best(plain, *arrays)
            c, _ = best(full, z, h, repeats=1)
            mine = mine.value
            out[f"{name}, d={dim}"] = {
                "ours_s": a,
                "plain_s": b,
                "ratio": b / a,
                "full_s": c,
                "difference": abs(mine - theirs),
            }
            print(
                f"{name:4} d = {dim:3}: {1e3 * a:6.0f} ms, plain {1e3 * b:6.0f} ms, ratio {b / a:.1f}x, "
                f"difference {abs(mine - theirs):.0e}; {1e3 * c:6.0f} ms"
            )
    return out


if __name__ == "__main__":
    main()
