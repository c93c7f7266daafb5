"""How often printed 95% intervals hold the true value.

python -m benchmarks.coverage                          writes results/audit/coverage.json
python -m benchmarks.coverage --rows 500 --repeats 100 fewer

The true value is that of the fitted map on endless rows, computed from the exact covariances. Five latents z are seen
as h = (z + noise) A, and noise has the size that gives the population R2 named. "t" are Student's t with 3 degrees of
freedom, whose fourth moment is infinite: of latents and noise, or of latents alone. "noise" is h without any z.

Scores: linear R2 (affine, half of the rows held out), MCC and rank MCC (A = 1), the affine R2 of an audit, and the R2
of one real factor in decode. CKA, CCA and the disentanglement scores print no interval.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
import torch

from zhat.audit.ladder import loss, steps
from zhat.audit.rows import look
from zhat.equivalence import AFFINE, COMPONENTWISE, SCALED_PERMUTATION
from zhat.files import embeddings
from zhat.metrics import Moments, Recovery, align, pearson, spearman
from zhat.metrics.decoding import Factor, decode_rows

D = 5
CASES = {
    "Gaussian, R2 0.5": ("normal", "normal", 0.5),
    "Gaussian, R2 0.95": ("normal", "normal", 0.95),
    "noise": ("normal", "normal", 0.0),
    "t, R2 0.5": ("t", "t", 0.5),
    "t, R2 0.95": ("t", "t", 0.95),
    "t, noise": ("t", "t", 0.0),
    "t latents, normal noise, R2 0.5": ("t", "normal", 0.5),
    "t latents, normal noise, R2 0.95": ("t", "normal", 0.95),
}
LINEAR = Recovery(AFFINE, shuffles=0)
MCC = Recovery(SCALED_PERMUTATION, agree=pearson, shift=True, shuffles=0)
RANKS = Recovery(COMPONENTWISE, agree=spearman, shift=True, shuffles=0)


def draw(kind, random, *shape):
    """Numbers of variance 1."""
    return random.normal(size=shape) if kind == "normal" else random.standard_t(3, shape) / math.sqrt(3)


def world(case, n, seed, mixed):
    """Latents, observations, and the moments of endless rows of both."""
    latents, noise, r2 = CASES[case]
    random = np.random.default_rng([seed, n, list(CASES).index(case)])
    signal, size = (1.0, math.sqrt((1 - r2) / r2)) if r2 else (0.0, 1.0)
    a = np.random.default_rng(seed).normal(size=(D, D)) if mixed else np.eye(D)
    z = draw(latents, random, n, D)
    h = (signal * z + size * draw(noise, random, n, D)) @ a
    zero, many = torch.zeros(D, dtype=torch.float64), 10**12
    a = torch.from_numpy(a)
    exact = (torch.eye(D, dtype=torch.float64), signal * a, (signal**2 + size**2) * a.T @ a)
    return z, h, Moments(many, zero, zero, *(many * m for m in exact), zero, zero)


def fitted(measure, z, h):
    """The map that a measure has fitted."""
    (z_fit, h_fit), _ = measure._split(torch.from_numpy(z), torch.from_numpy(h))
    return measure._align(Moments.of(z_fit, h_fit))


def linear_r2(case, n, seed):
    z, h, endless = world(case, n, seed, mixed=True)
    return LINEAR(z, h), float(LINEAR.agreement(endless, fitted(LINEAR, z, h)).mean())


def mcc(case, n, seed):
    z, h, endless = world(case, n, seed, mixed=False)
    return MCC(z, h), float(MCC.agreement(endless, fitted(MCC, z, h)).mean())


def rank_mcc(case, n, seed):
    z, h, _ = world(case, n, seed, mixed=False)
    matched = fitted(RANKS, z, h).matrix
    return RANKS(z, h), float((matched.diagonal() * true_ranks(case)).mean())


def true_ranks(case, known={}):  # noqa: B006 (kept between calls)
    """The rank correlation of a latent and its coordinate, from a million rows."""
    if case not in known:
        z, h, _ = world(case, 10**6, 12345, mixed=False)
        ranks = (np.argsort(np.argsort(x[:, 0])) for x in (z, h))
        known[case] = float(np.corrcoef(*ranks)[0, 1]) if CASES[case][2] else 0.0
    return known[case]


def audit(case, n, seed):
    z, h, endless = world(case, n, seed, mixed=True)
    seen = look(embeddings(h), embeddings(z), seed=seed)
    found = align(seen.fit, AFFINE)
    score = steps(seen.fit, seen.read, effective=n, seed=seed)[-1].score
    return score, 1 - float(loss(endless, found, endless).mean())


def decode(case, n, seed):
    z, h, endless = world(case, n, seed, mixed=True)
    held_out = np.random.default_rng(seed).permutation(n) < n // 2
    factor = Factor.real("z", z[:, 0])
    mask = torch.from_numpy(held_out)
    score = decode_rows(lambda: iter([h]), [factor], mask, shuffles=9).scores[0]
    first = Moments.of(z[~held_out, :1], h[~held_out])
    one = Moments(
        endless.n, endless.mean_z[:1], endless.mean_h, endless.zz[:1, :1], endless.zh[:1], endless.hh,
        endless.rest_z[:1], endless.rest_h,
    )  # fmt: skip
    return score, float(LINEAR.agreement(one, align(first, AFFINE)).mean())


SCORES = {"linear R2": linear_r2, "MCC": mcc, "rank MCC": rank_mcc, "audit": audit, "decode": decode}


def coverage(name, case, n, repeats, first):
    """How often the interval held the true value, lay below it, lay above it; and its median width."""
    held, below, above, widths = 0, 0, 0, []
    for seed in range(first, first + repeats):
        score, true = SCORES[name](case, n, seed)
        below += score.high < true
        above += score.low > true
        held += score.low <= true <= score.high
        widths.append(score.high - score.low)
    return {
        "score": name,
        "case": case,
        "rows": n,
        "repeats": repeats,
        "held": held / repeats,
        "below": below / repeats,
        "above": above / repeats,
        "width": float(np.median(widths)),
    }


def main(scores, rows, repeats, first, out):
    out = Path(out)
    torch.set_num_threads(1)
    found = json.loads(out.read_text())["intervals"] if out.exists() else []
    for n in rows:
        for name in scores:
            for case in CASES:
                one = coverage(name, case, n, repeats, first)
                print(f"{n:5} {name:10} {case:34} {100 * one['held']:5.1f}%  width {one['width']:.3f}", flush=True)
                same = [(f["score"], f["case"], f["rows"]) == (name, case, n) for f in found]
                found = [f for f, again in zip(found, same, strict=True) if not again] + [one]
                found.sort(key=lambda f: (f["rows"], list(SCORES).index(f["score"]), list(CASES).index(f["case"])))
                out.parent.mkdir(parents=True, exist_ok=True)
                command = "python -m benchmarks.coverage"
                out.write_text(json.dumps({"command": command, "intervals": found}, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scores", nargs="+", choices=SCORES, default=list(SCORES))
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 500, 2000])
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1000, help="the first one")
    parser.add_argument("--out", default=str(Path(__file__).parent.parent / "results" / "audit" / "coverage.json"))
    asked = parser.parse_args()
    main(asked.scores, asked.rows, asked.repeats, asked.seed, asked.out)
