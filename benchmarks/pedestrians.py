"""What keeps the rank correlation on KITTI Masks at 80? Settings beside the paper's, on seeds that no table shows.

    python -m benchmarks.pedestrians --data DIR [--only TEXT …] [--steps N] [--seeds 100 101 102] [--out FILE]

Every setting changes the row T3.7 of zimmermann2021 (Laplace, unbounded, positives up to 5 frames later) in a few
places. Prints the paper's score, the held-out one, and the rank correlation of each factor.
"""

import argparse
import json
import os
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from zhat.datasets import KITTIMasks
from zhat.datasets.place import VARIABLE
from zhat.dgp import Box
from zhat.encoders import conv
from zhat.equivalence import COMPONENTWISE
from zhat.experiment.scoring import latents_and_observations, represent
from zhat.fresh import Fresh
from zhat.metrics import Padded, Recovery, spearman
from zhat.objectives import InfoNCE, NegativeLp
from zhat.training import Cosine, Recipe, train

MEASURE = Padded(Recovery(COMPONENTWISE, agree=spearman, holdout=0))
ROWS = 10_000


@dataclass(frozen=True)
class Setting:
    """A row of T3.7 with some fields changed."""

    dim: int = 10
    longest: int = 5
    pairs: int = 32
    power: float = 1.0
    bounds: float = 0.0
    lr: float = 1e-3
    steps: int = 7_000

    def __str__(self):
        box = f"box whose bounds learn {self.bounds:g} times as fast, " if self.bounds else ""
        return (
            f"{self.dim} dimensions, up to {self.longest} frames, {self.pairs} pairs, exponent {self.power:g}, {box}"
            f"{self.steps} steps from {self.lr:g}"
        )


SETTINGS = (
    *(Setting(dim=d, longest=t) for d, t in ((10, 5), (10, 20), (40, 5), (40, 20), (100, 20))),
    Setting(dim=40, longest=20, pairs=8),
    Setting(dim=40, longest=20, power=0.7),
    *(Setting(longest=1, bounds=factor) for factor in (1.0, 10.0, 100.0)),  # the box of T3.3
)


def measured(setting, seeds, device):
    """Scores of a setting, one entry for each seed."""
    world = KITTIMasks(longest=setting.longest)
    scale = {"bound": setting.bounds} if setting.bounds else {}
    how = Recipe(setting.steps, setting.pairs, setting.lr, Cosine(), lr_scale=scale, precision="tf32").on(device)
    box = {"onto": Box(setting.dim)} if setting.bounds else {}
    encoder = Fresh(conv, (1, 64, 64), setting.dim, **box)
    started = time.perf_counter()
    stacks = [seeds] if setting.pairs <= 64 else [[s] for s in seeds]  # stacked convolutions are slow when large
    encoders = []
    for stack in stacks:
        run = train(encoder, world, InfoNCE(NegativeLp(setting.power)), how, seeds=stack, device=device)
        encoders += run.encoders
    seconds = time.perf_counter() - started
    out = {
        "setting": str(setting),
        "seeds": list(seeds),
        "seconds": seconds,
        "paper": [],
        "held out": [],
        "factors": [],
    }
    for model in encoders:
        z, x = latents_and_observations(world, ROWS, 2, device, seen=True)
        score = MEASURE(z, represent(model, x))
        z, x = latents_and_observations(world, ROWS, 2, device)
        out["paper"].append(score.value)
        out["factors"].append(score.per_latent)
        out["held out"].append(MEASURE.held_out(z, represent(model, x)).value)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder that holds kitti_masks")
    parser.add_argument("--only", nargs="*", default=[""], help="settings whose description holds one of these texts")
    parser.add_argument("--steps", type=int, help="instead of each setting's own")
    parser.add_argument("--seeds", type=int, nargs="*", default=[100, 101, 102])
    parser.add_argument("--out", help="JSON")
    args = parser.parse_args()
    os.environ[VARIABLE] = args.data
    device = "cuda" if torch.cuda.is_available() else "cpu"
    found = []
    for setting in SETTINGS:
        if not any(text in str(setting) for text in args.only):
            continue
        setting = replace(setting, steps=args.steps or setting.steps)
        found.append(measured(setting, args.seeds, device))
        last = found[-1]
        paper, ours = statistics.fmean(last["paper"]), statistics.fmean(last["held out"])
        factors = (statistics.fmean(column) for column in zip(*last["factors"], strict=True))
        told = ", ".join(f"{value:.3f}" for value in factors)
        print(f"{setting}: {paper:.3f}, held out {ours:.3f} (factors {told}), {last['seconds']:.0f} s", flush=True)
        if args.out:
            Path(args.out).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
