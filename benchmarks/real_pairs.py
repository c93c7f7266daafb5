"""Audits of real pairs, with what one expects of each written down first.

ZHAT_DATA=/path/to/data python -m benchmarks.real_pairs                writes results/audit/real_pairs.json
ZHAT_DATA=/path/to/data python -m benchmarks.real_pairs --only glove   audits one group again and keeps the others

Without ZHAT_DATA only the pairs that need no files are audited. An expectation is a set of verdicts; where it holds
several, theory or common sense leaves them open. A class counts as found however much it explains.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE, Isomap
from sklearn.neural_network import MLPClassifier
from torch.nn import functional as F

import zhat
from zhat import Fresh
from zhat.audit import audit
from zhat.datasets import CIFAR10, Patches
from zhat.dgp import InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import Towers, mlp
from zhat.objectives import InBatchSoftmax, InfoNCE
from zhat.training import Annealed

AT_MOST_AFFINE = ("orthogonal", "similarity", "linear", "affine")
RELATED = ("linear", "affine", "nonlinear")


def trained_pair(steps):
    """Two encoders of different seeds, trained on one world whose latents lie on a sphere."""
    world = Pairs(Uniform(Sphere(3)), VonMisesFisher(20.0), InvertibleMLP(layers=3))
    encoder = Fresh(mlp, 3, 3, widths=(64, 64), onto=Sphere(3))
    how = {"steps": steps, "batch": 512, "lr": 5e-3, "sharpness": Annealed(0.5), "seeds": (0, 1)}
    run = zhat.train(encoder, [world, world], InfoNCE(temperature=1 / 20), **how)
    x = world.sample(8000, generator=torch.Generator().manual_seed(1)).x[0]
    with torch.no_grad():
        first, second = (trained(x) for trained in run.encoders)
    yield "two encoders trained by zhat, seeds 0 and 1", first, second, AT_MOST_AFFINE
    yield "the observations and the first of these encoders", x, first, ("nonlinear",)


def digits():
    random = np.random.default_rng(0)
    order = random.permutation(1797)
    x, labels = (values[order] for values in load_digits(return_X_y=True))
    centred = x - x.mean(0)
    rotated = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    wide = [x @ random.normal(size=(64, k)) for k in (80, 100)]
    narrow = [x @ random.normal(size=(64, 24)) for _ in range(2)]
    yield "digits and their principal components", x, rotated, ("affine",)
    yield "digits, random projections to 80 and 100 dimensions", *wide, ("linear",)
    yield "digits, two random projections to 24 dimensions", *narrow, RELATED
    yield "digits and their Isomap in 8 dimensions", x, Isomap(n_components=8).fit_transform(x), ("nonlinear",)
    yield "digits and their t-SNE in 2 dimensions", x, TSNE(random_state=0).fit_transform(x), ("nonlinear",)
    network = MLPClassifier((64, 64), max_iter=60, random_state=0).fit(x / 16, labels)
    first = np.maximum(x / 16 @ network.coefs_[0] + network.intercepts_[0], 0)
    second = np.maximum(first @ network.coefs_[1] + network.intercepts_[1], 0)
    yield "a network on digits, hidden layers 1 and 2", first, second, ("nonlinear",)
    yield "digits and digits in another order", x, x[random.permutation(1797)], ("unrelated",)


def glove(data):
    x = np.load(data / "glove_6b_100d_top30k" / "glove100_top30k.npz")["vectors"].astype(np.float32)
    random = np.random.default_rng(0)
    rotation = np.linalg.qr(random.normal(size=(100, 100)))[0].astype(np.float32)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    centred = x - x.mean(0)
    _, _, vt = np.linalg.svd(centred, full_matrices=False)
    step = 2 * np.abs(x).max() / 255
    yield "GloVe and GloVe rotated", x, x @ rotation, ("orthogonal",)
    yield "GloVe and GloVe in 8 bits", x, np.round(x / step) * step, ("identity",)
    yield "GloVe and GloVe with columns reordered", x, x[:, random.permutation(100)], ("permutation",)
    yield (
        "GloVe and GloVe without its mean and first two components",
        x,
        centred - centred @ vt[:2].T @ vt[:2],
        ("affine",),
    )
    yield "GloVe and GloVe at unit length", x, unit, ("nonlinear",)
    yield "GloVe and GloVe of other words", x, x[random.permutation(len(x))], ("unrelated",)


def imagenet(data):
    folder = data / "imagenet_val_features"
    order = np.random.default_rng(0).permutation(5000)
    nets = {i: np.load(folder / f"efficientnet_lite{i}.npz")["features"].astype(np.float32)[order] for i in range(3)}
    top = {}
    for i, x in nets.items():
        centred = x - x.mean(0)
        top[i] = centred @ np.linalg.eigh(centred.T @ centred)[1][:, :-101:-1]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        yield f"EfficientNet-Lite{i} and Lite{j}, first 100 components", top[i], top[j], RELATED
    some = [nets[i][:2500, :300] for i in (0, 1)]  # an affine map between 300 dimensions needs 3,010 rows
    yield "EfficientNet-Lite0 and Lite1, 300 dimensions, 2,500 images", *some, ("cannot tell",)


def resnet(path, images):
    """Features of a CIFAR ResNet of He et al. 2015 after its second and third stage, averaged over pixels."""
    weights = {k: torch.from_numpy(v) for k, v in np.load(path).items()}

    def normed(x, name):
        mean, var, scale, shift = (weights[f"{name}.{k}"] for k in ("running_mean", "running_var", "weight", "bias"))
        return F.batch_norm(x, mean, var, scale, shift)

    def block(x, name, stride):
        y = F.relu(normed(F.conv2d(x, weights[f"{name}.conv1.weight"], stride=stride, padding=1), f"{name}.bn1"))
        y = normed(F.conv2d(y, weights[f"{name}.conv2.weight"], padding=1), f"{name}.bn2")
        missing = y.shape[1] - x.shape[1]
        if stride == 2:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, missing // 2, missing - missing // 2))
        return F.relu(x + y)

    depth = len({k.split(".")[1] for k in weights if k.startswith("layer1.")})
    middle, last = [], []
    with torch.no_grad():
        for some in images.split(250):
            x = F.relu(normed(F.conv2d(some, weights["conv1.weight"], padding=1), "bn1"))
            for stage in (1, 2, 3):
                for b in range(depth):
                    x = block(x, f"layer{stage}.{b}", 2 if stage > 1 and b == 0 else 1)
                if stage == 2:
                    middle.append(x.mean((2, 3)))
            last.append(x.mean((2, 3)))
    score = F.linear(torch.cat(last), weights["linear.weight"], weights["linear.bias"])
    return torch.cat(middle), torch.cat(last), score.argmax(1)


def cifar(data, rows):
    from PIL import Image

    tiles = np.array(Image.open(data / "cifar10" / "test_00.webp").convert("RGB"))
    pixels = tiles.reshape(100, 32, 50, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 32, 32, 3)[:rows]
    labels = np.load(data / "cifar10" / "labels.npz")["test"][: len(pixels)]
    x = torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy()).float() / 255
    mean, spread = (torch.tensor(v).view(3, 1, 1) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    found = {}
    for size in (20, 32, 44, 56):
        middle, last, guess = resnet(data / "cifar10_resnets" / f"resnet{size}.npz", (x - mean) / spread)
        right = float((guess.numpy() == labels).mean())
        assert right > 0.88, f"ResNet-{size} is right on {right:.3f} of the images: the forward pass is wrong"
        found[size] = (middle, last)
    for i, j in ((20, 32), (20, 56), (32, 44), (44, 56)):
        yield f"CIFAR-10 ResNet-{i} and ResNet-{j}, last features", found[i][1], found[j][1], RELATED
    yield "CIFAR-10 ResNet-56, second stage and last features", *found[56], RELATED


def cpc(steps):
    """Two seeds of contrastive predictive coding on CIFAR-10, as in Figure 3 of roeder2020, briefly."""
    patches = Patches(CIFAR10())
    encoder = Fresh(Towers, Fresh(mlp, 768, 64, widths=(256, 256, 256)))
    run = zhat.train(encoder, [patches, patches], InBatchSoftmax(), steps=steps, batch=512, lr=1e-3, seeds=(0, 1))
    x = patches.held_out.sample(10_000, generator=torch.Generator().manual_seed(1)).x
    with torch.no_grad():
        (f, g), (f_again, g_again) = (trained(x) for trained in run.encoders)
    yield "CPC on CIFAR-10, seeds 0 and 1, f of upper patches", f, f_again, RELATED
    yield "CPC on CIFAR-10, seeds 0 and 1, g of lower patches", g, g_again, RELATED


GROUPS = {
    "digits": lambda data, steps, rows: digits(),
    "trained": lambda data, steps, rows: trained_pair(steps),
    "glove": lambda data, steps, rows: glove(data),
    "cifar": lambda data, steps, rows: cifar(data, rows),
    "cpc": lambda data, steps, rows: cpc(steps),
    "imagenet": lambda data, steps, rows: imagenet(data),
}


def audited(group, name, a, b, expected):
    started = time.perf_counter()
    result = audit(a, b)
    score = result.score
    return {
        "group": group,
        "pair": name,
        "rows": result.n,
        "dims": [result.dim_a, result.dim_b],
        "expected": list(expected),
        "verdict": result.verdict,
        "as_expected": (result.verdict if result.up_to is None else result.up_to.value) in expected
        or (result.bent and "nonlinear" in expected),
        "r2": None if score is None else score.value,
        "low": None if score is None else score.low,
        "high": None if score is None else score.high,
        "directions": result.directions,
        "rows_needed": result.rows_needed,
        "sentence": result.sentence,
        "notes": list(result.notes),
        "scores": {f"{s.name}, {s.up_to}": s.value for s in (*result.ladder, *result.beyond)},
        "seconds": time.perf_counter() - started,
    }


def main(data, steps, rows, only, out):
    out = Path(out)
    kept = json.loads(out.read_text())["pairs"] if only is not None and out.exists() else []
    for group in GROUPS if only is None else [only]:
        if group not in ("digits", "trained") and data is None:
            print(f"{group} left out: ZHAT_DATA is not set")
            continue
        kept = [pair for pair in kept if pair["group"] != group]
        for case in GROUPS[group](data, steps, rows):
            found = audited(group, *case)
            kept.append(found)
            value = "" if found["r2"] is None else f" {found['r2']:.4f}"
            said = "as expected" if found["as_expected"] else "NOT EXPECTED"
            print(f"{said:<13}{found['pair']}: {found['verdict']}{value}", flush=True)
        kept.sort(key=lambda pair: list(GROUPS).index(pair["group"]))
        command = f"ZHAT_DATA=… python -m benchmarks.real_pairs --steps {steps} --rows {rows}"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({"command": command, "pairs": kept}, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("ZHAT_DATA"))
    parser.add_argument("--steps", type=int, default=600, help="of training the encoders")
    parser.add_argument("--rows", type=int, default=2000, help="images for the ResNets")
    parser.add_argument("--only", choices=GROUPS)
    parser.add_argument("--out", default=str(Path(__file__).parent.parent / "results" / "audit" / "real_pairs.json"))
    asked = parser.parse_args()
    data = None if asked.data is None else Path(asked.data)
    main(data, asked.steps, asked.rows, asked.only, asked.out)
