"""Two models in one store: how often an audit sees it, and how often it sees it where there is one model.

python -m benchmarks.two_models                      writes results/audit/two_models.json
python -m benchmarks.two_models --only none          1,000 pairs of one model (or unrelated), of eleven kinds
python -m benchmarks.two_models --only planted       shares of 1, 10 and 50%, with noise and with drift

A planted store holds two models' rotations of the same latents, or rows of one model and unrelated rows; fresh rows are
a third rotation with noise. `zhat.audit.mixture.parts` is asked, which decides in an audit, of at most 4,096 sampled
rows, whether the verdict is "mixed".
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch

from zhat.audit.mixture import parts, share_of

SIZES = ((1000, 16), (4000, 8), (4000, 32), (4000, 128))


def rotation(d, random):
    return np.linalg.qr(random.normal(size=(d, d)))[0]


def planted(seed, n, d, share, other, noise, drift):
    """A store in which a share of the rows is of another model or of none, the rows embedded anew, and which it is."""
    random = np.random.default_rng([seed, n, d])
    z = random.normal(size=(n, d)) * np.linspace(0.5, 2, d)
    store, second, fresh = (z @ rotation(d, random) for _ in range(3))
    if other == "none":
        second = random.permutation(second)
    rest = np.zeros(n, bool)
    rest[random.permutation(n)[: round(share * n)]] = True
    moved = drift * np.linspace(0, 1, n)[:, None] * random.normal(size=d)
    fresh = fresh + fresh.std() * (noise * random.normal(size=(n, d)) + moved)
    return np.where(rest[:, None], second, store), fresh, rest


def clusters(random, n, d):
    which = random.integers(0, 6, n)
    return 3 * random.normal(size=(6, d))[which] + random.normal(size=(n, d)), which


def one_model(kind, seed):
    """Rows and their image under one map, or none: nothing of two kinds."""
    random = np.random.default_rng([seed, 100])
    n, d = int(random.choice([300, 1000, 2500, 4000])), int(random.choice([2, 4, 8, 16, 32]))
    a = random.normal(size=(n, d)) * np.linspace(0.5, 2, d)
    turn = rotation(d, random)
    noise = float(random.choice([0.02, 0.2, 0.6])) * random.normal(size=(n, d))
    if kind == "rotated, normal noise":
        return a, a @ turn + noise
    if kind == "rotated, noise with 3 degrees of freedom":
        return a, a @ turn + 0.2 * random.standard_t(3, size=(n, d))
    if kind == "rotated, noise of a size of its own for each row":
        return a, a @ turn + 0.1 * random.standard_t(2, size=(n, 1)) * random.normal(size=(n, d))
    if kind == "heavy-tailed rows":
        a = random.standard_t(2, size=(n, d))
        return a, a @ turn + noise
    if kind == "clusters":
        a, _ = clusters(random, n, d)
        return a, a @ turn + noise
    if kind == "clusters with noise of their own size":
        a, which = clusters(random, n, d)
        return a, a @ turn + np.linspace(0.05, 0.5, 6)[which][:, None] * random.normal(size=(n, d))
    if kind == "bent":
        return a, np.tanh(a @ turn) + noise
    if kind == "bent clusters":
        a, _ = clusters(random, n, d)
        return a, np.tanh(a @ turn / 2) + noise
    if kind == "drift":
        return a, a @ turn + noise + np.linspace(0, 1, n)[:, None] * random.normal(size=d)
    if kind == "unit length":
        b = a @ turn + noise
        return a, b / np.linalg.norm(b, axis=1, keepdims=True)
    if kind == "unrelated":
        return a, random.normal(size=(n, d))
    raise KeyError(kind)


KINDS = (
    "rotated, normal noise",
    "rotated, noise with 3 degrees of freedom",
    "rotated, noise of a size of its own for each row",
    "heavy-tailed rows",
    "clusters",
    "clusters with noise of their own size",
    "bent",
    "bent clusters",
    "drift",
    "unit length",
    "unrelated",
)


def alarms(pairs, first):
    found = dict.fromkeys(KINDS, 0)
    tried = dict.fromkeys(KINDS, 0)
    for seed in range(first, first + pairs):
        kind = KINDS[seed % len(KINDS)]
        tried[kind] += 1
        found[kind] += parts(*(torch.from_numpy(x) for x in one_model(kind, seed))) is not None
    return [{"kind": kind, "pairs": tried[kind], "alarms": found[kind]} for kind in KINDS]


def power(repeats, first):
    rows = []
    for n, d in SIZES:
        for other in ("map", "none"):
            for noise, drift in ((0.1, 0.0), (0.4, 0.0), (0.2, 0.5)):
                for share in (0.01, 0.1, 0.5):
                    seen, right, held = 0, [], 0
                    for seed in range(first, first + repeats):
                        store, fresh, rest = planted(seed, n, d, share, other, noise, drift)
                        found = parts(torch.from_numpy(store), torch.from_numpy(fresh))
                        if found is None:
                            continue
                        seen += 1
                        said, looked = found.rest.numpy(), rest[found.looked.numpy()]
                        right.append(float(max((said == looked).mean(), (said != looked).mean())))
                        _, low, high = share_of(found.rest)
                        held += any(low <= s <= high for s in (rest.mean(), 1 - rest.mean()))
                    row = {"n": n, "d": d, "rest": other, "noise": noise, "drift": drift, "share": share}
                    rows.append({**row, "repeats": repeats, "seen": seen, "held": held, "right": right})
                    print(rows[-1], flush=True)
    return rows


def main(only, pairs, repeats, first, out):
    out = Path(out)
    kept = json.loads(out.read_text()) if out.exists() else {}
    for name, measure in (("none", lambda: alarms(pairs, first)), ("planted", lambda: power(repeats, first))):
        if only in (None, name):
            started = time.perf_counter()
            kept[name] = {"rows": measure(), "seconds": round(time.perf_counter() - started)}
    kept |= {"command": "python -m benchmarks.two_models", "machine": platform.processor() or platform.machine()}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(kept, indent=1) + "\n")
    if "none" in kept:
        counts = [sum(row[name] for row in kept["none"]["rows"]) for name in ("alarms", "pairs")]
        print("{} alarms in {} pairs of one model".format(*counts))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("none", "planted"))
    parser.add_argument("--pairs", type=int, default=1000, help="of one model")
    parser.add_argument("--repeats", type=int, default=5, help="of each planted store")
    parser.add_argument("--seed", type=int, default=1000, help="the first one")
    parser.add_argument("--out", default=str(Path(__file__).parent.parent / "results" / "audit" / "two_models.json"))
    asked = parser.parse_args()
    main(asked.only, asked.pairs, asked.repeats, asked.seed, asked.out)
