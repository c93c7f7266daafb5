"""How near drawn sprites are to the real pictures of dSprites.

    python -m benchmarks.sprites --data DIR      writes results/sprites.json

Equal: the share of points that are equal. Overlap: of white points, how many both pictures have, of those that either
has. The heart was fitted to pictures of the grid; the random pictures were not looked at, but 1,246 are in both.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path

import torch

from zhat.datasets import DSprites, KnownFactors
from zhat.datasets.place import VARIABLE
from zhat.scenes.sprites import drawn

OUT = Path(__file__).parent.parent / "results" / "sprites.json"
SUBSETS = {"random20k": "20,000 random pictures", "grid_3x6x10x16x16": "grid of 46,080 pictures"}


def compared(subset):
    """Of every shape: equal points, the least of a picture, overlap, and pictures without any difference."""
    codes, images, ours, seconds = [], [], [], 0.0
    for batch in KnownFactors(DSprites(subset), part="all").every(4096):
        shape, scale, orientation, x, y = batch.z[0].T
        started = time.perf_counter()
        ours.append(drawn(shape, 0.5 + 0.1 * scale, orientation * (2 * math.pi / 39), x / 31, y / 31))
        seconds += time.perf_counter() - started
        codes.append(shape)
        images.append(batch.x[0, :, 0])
    codes, images, ours = torch.cat(codes), torch.cat(images), torch.cat(ours)
    out = {"pictures": len(codes), "pictures a second": round(len(codes) / seconds)}
    for i, name in enumerate(("square", "ellipse", "heart")):
        a, b = images[codes == i].flatten(1), ours[codes == i].flatten(1)
        equal = (a == b).double().mean(1)
        overlap = (a & b).sum(1) / (a | b).sum(1)
        out[name] = {
            "equal": round(float(equal.mean()), 6),
            "least equal": round(float(equal.min()), 6),
            "overlap": round(float(overlap.mean()), 4),
            "without any difference": round(float((equal == 1).double().mean()), 4),
        }
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="the folder of recorded data; the variable ZHAT_DATA if not given")
    data = parser.parse_args().data
    if data:
        os.environ[VARIABLE] = data
    found = {}
    for subset, title in SUBSETS.items():
        found[title] = compared(subset)
        print(f"{title}: {found[title].pop('pictures a second'):,} drawn a second on {torch.get_num_threads()} threads")
        for name in ("square", "ellipse", "heart"):
            print(f"  {name:<8}" + ", ".join(f"{key} {value:.4%}" for key, value in found[title][name].items()))
    OUT.write_text(json.dumps(found, indent=1) + "\n")
    print(f"written to {OUT}")


if __name__ == "__main__":
    main()
