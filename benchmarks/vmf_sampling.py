"""A million von Mises-Fisher draws in ten dimensions, ours against a vectorised NumPy rejection sampler, in one run.

python -m benchmarks.vmf_sampling
"""

import time

import numpy as np
import torch

from zhat.dgp import Sphere, Uniform, VonMisesFisher


def rejection(mu, kappa, random):
    """Wood's sampler, vectorised: the whole remainder is drawn again until nothing is left."""
    n, d = mu.shape
    m = d - 1
    b = m / (np.sqrt(4 * kappa**2 + m**2) + 2 * kappa)
    x = (1 - b) / (1 + b)
    c = kappa * x + m * np.log(1 - x * x)
    w, todo = np.empty(n), np.arange(n)
    while len(todo):
        beta = random.beta(m / 2, m / 2, size=len(todo))
        cosine = (1 - (1 + b) * beta) / (1 - (1 - b) * beta)
        good = kappa * cosine + m * np.log(1 - x * cosine) - c >= np.log(random.random(len(todo)))
        w[todo[good]] = cosine[good]
        todo = todo[~good]
    v = random.standard_normal((n, d))
    v -= (v * mu).sum(1, keepdims=True) * mu
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    return w[:, None] * mu + np.sqrt(1 - w * w)[:, None] * v


def best(function, repeats=7):
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def main(n=1_000_000, dim=10):
    generator, random = torch.Generator().manual_seed(0), np.random.default_rng(0)
    z = Uniform(Sphere(dim)).sample(n, generator=generator)
    mu = z.double().numpy()
    out = {}
    print(f"n = {n:,}, d = {dim}, {torch.get_num_threads()} threads, best of 7")
    for kappa in (1.0, 20.0, 1000.0):
        law = VonMisesFisher(kappa)
        ours = best(lambda law=law: law.sample(z, generator=generator))
        plain = best(lambda kappa=kappa: rejection(mu, kappa, random))
        out[f"kappa={kappa:g}"] = {"ours_s": ours, "plain_s": plain, "ratio": plain / ours}
        print(
            f"kappa {kappa:6g}: {1e3 * ours:6.0f} ms, NumPy rejection {1e3 * plain:6.0f} ms, ratio {plain / ours:.1f}x"
        )
    return out


if __name__ == "__main__":
    main()
