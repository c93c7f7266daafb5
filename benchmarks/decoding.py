"""zhat decode: time against plain probes, false findings among noise, and factors of real images.

python -m benchmarks.decoding [time] [noise] [series] [images]      images need ZHAT_DATA
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
from scipy.signal import lfilter
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression

from zhat import decode


def plain(h, real, names, half):
    """One probe for each factor, fitted on half of the rows: no interval, no chance, no p-value."""
    fitted = [LinearRegression().fit(h[:half], z[:half]).score(h[half:], z[half:]) for z in real.T]
    return fitted + [
        LinearDiscriminantAnalysis(solver="lsqr").fit(h[:half], c[:half]).score(h[half:], c[half:]) for c in names.T
    ]


def timed(n=100_000, k=512):
    random = np.random.default_rng(0)
    h = random.normal(size=(n, k)).astype(np.float32)
    real = h[:, :10] + random.normal(size=(n, 10))
    names = (h[:, 10:20, None] > np.array([-1.0, 0.0, 1.0])).sum(2)
    known = {f"real {j}": real[:, j] for j in range(10)} | {f"name {j}": names[:, j] for j in range(10)}
    started = time.perf_counter()
    found = decode(h, known)
    ours = time.perf_counter() - started
    started = time.perf_counter()
    plain(h, real, names, n // 2)
    theirs = time.perf_counter() - started
    print(f"{n:,} rows, {k} columns, 10 real and 10 categorical factors: {sum(s.found for s in found.scores)} found")
    print(f"decode, with intervals, chance and {found.shuffles} shuffles  {ours:.1f} s")
    print(f"scikit-learn, scores alone, a probe for each factor      {theirs:.1f} s, {theirs / ours:.1f} times")


def noise(times=1000, n=300):
    """How often anything is found among five factors that have nothing to do with the rows."""
    found = small = 0
    for seed in range(times):
        random = np.random.default_rng([7, seed])
        known = {
            "normal": random.normal(size=n),
            "names": random.integers(0, 3, n),
            "angle": random.uniform(0, 360, n),
            "heavy": random.standard_t(2, size=n),
            "rare": np.where(random.random(n) < 0.1, "x", "y"),
        }
        scores = decode(random.normal(size=(n, 5)), known, seed=seed).scores
        found += any(s.found for s in scores)
        small += any(s.p_corrected is not None and s.p_corrected <= 0.05 for s in scores)
    print(
        f"independent rows, {times} times 5 factors of noise: any p at most 0.05 in {small / times:.1%}, found any in "
        f"{found / times:.1%}"
    )


def series(times=100, n=2000):
    """The same for slow series that have nothing to do with each other, split as decode chooses and at random."""
    for memory in (0.5, 0.9, 0.97):
        small, found = {"auto": 0, "rows": 0}, {"auto": 0, "rows": 0}
        for seed in range(times):
            h, z = lfilter([1], [1, -memory], np.random.default_rng([9, seed]).normal(size=(2, n, 4)), axis=1)
            for split in small:
                scores = decode(h, {"a": z[:, 0], "b": z[:, 1]}, seed=seed, split=split).scores
                small[split] += any(s.p_corrected <= 0.05 for s in scores)
                found[split] += any(s.found for s in scores)
        print(f"autoregressive {memory}, {times} times 2 unrelated factors:")
        for split in small:
            some, any_ = small[split] / times, found[split] / times
            print(f"  split {split}: any p at most 0.05 in {some:.1%}, found any in {any_:.1%}")


def blocks(images, size):
    n, side = images.shape[:2]
    cut = images.reshape(n, side // size, size, side // size, size, -1)
    return cut.mean((2, 4)).reshape(n, -1)


def images():
    """Pixels averaged over blocks, against the factors the images were made from."""
    data = Path(os.environ.get("ZHAT_DATA", "."))
    with np.load(data / "dsprites" / "dsprites_grid_3x6x10x16x16.npz") as archive:
        pixels, values = np.unpackbits(archive["images_packed"], axis=-1), archive["latents_values"]
    known = {name: values[:, j] for j, name in enumerate(("shape", "scale", "orientation", "posX", "posY"))}
    print("dSprites, full grid\n", decode(blocks(pixels, 4), known, components=100, disentanglement=True))
    with np.load(data / "coil20" / "coil20_64.npz") as archive:
        pixels, turns = archive["images"].reshape(-1, 64, 64) / 255, archive["azimuth_deg"]
    known = {"object": np.repeat(np.arange(20), 72).astype(str), "azimuth": np.tile(turns, 20)}
    for split in ("auto", "rows"):
        print(f"COIL-20, split {split}\n", decode(blocks(pixels, 4), known, components=60, split=split))
    from PIL import Image

    with np.load(data / "threedident_rerender" / "full_4000_latents.npz") as archive:
        known = {str(name): archive["latents"][:, j] for j, name in enumerate(archive["names"])}
    tiles = np.array(Image.open(data / "threedident_rerender" / "full_4000.webp").convert("RGB"))
    pixels = tiles.reshape(80, 64, 50, 64, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 64, 64, 3) / 255
    print("3DIdent scenes rendered anew\n", decode(blocks(pixels, 8), known))


if __name__ == "__main__":
    asked = sys.argv[1:] or ["time", "noise", "series", "images"]
    for name in asked:
        {"time": timed, "noise": noise, "series": series, "images": images}[name]()
