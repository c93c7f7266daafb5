"""Our pictures as a stand-in for Blender's: a network that saw ours alone reads the latents of Blender's.

    python -m benchmarks.reading_blender --data DIR [--steps 8000] [--seed 0] [--out FILE]

A ResNet-18 is trained with supervision on 250,000 pictures of the teapot that zhat.scenes draws. Then it reads the ten
latents of 3,800 pictures that Blender drew of the same scene (DIR/threedident_rerender, without the 200 pictures that
the constants of the lights were fitted to), and of pictures of ours that it has not seen. Nothing is fitted in between.
"""

import argparse
import json
import os
import time
from pathlib import Path

import torch

from benchmarks.rendering import FITTED, FOLDER, RESULTS, blender
from zhat import randomness
from zhat.datasets.place import VARIABLE
from zhat.dgp import encoder_input
from zhat.papers._zimmermann2021_3dident import TABLE_4_TEAPOT
from zhat.scenes import Teapot
from zhat.training import Recipe, train


def r2(z, guess):
    """Of each latent: 1 minus the squared error over the variance."""
    return 1 - (z - guess).square().sum(0) / (z - z.mean(0)).square().sum(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, default=8_000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "reading_blender.json")
    args = parser.parse_args()
    os.environ[VARIABLE] = args.data
    device = "cuda" if torch.cuda.is_available() else "cpu"
    row = TABLE_4_TEAPOT.row("T4t.s")
    how = Recipe(args.steps, args.batch, 1e-3, precision="bf16").on(device)
    started = time.perf_counter()
    (encoder,) = train(row.encoder, row.process, row.objective, how, seeds=[args.seed], device=device).encoders
    seconds = time.perf_counter() - started
    encoder.eval()

    @torch.no_grad()
    def read(x):
        return torch.cat([encoder(encoder_input(part.to(device))).float().cpu() for part in x.split(256)])

    z, theirs = (part[FITTED:] for part in blender(Path(args.data) / FOLDER))
    ours = row.process.held_out.sample(4096, generator=randomness.generator(args.seed, "read", device))
    found = {}
    for name, latents, pictures in (("Blender's", z, theirs), ("ours", ours.z[0].cpu(), ours.x[0])):
        each = r2(latents, read(pictures))
        found[name] = {"mean R2": float(each.mean()), "R2": dict(zip(Teapot.names, each.tolist(), strict=True))}
        print(f"{name}: mean R2 {found[name]['mean R2']:.4f};", *(f"{v:.3f}" for v in each), flush=True)
    settings = {"steps": args.steps, "batch": args.batch, "seed": args.seed, "training seconds": round(seconds)}
    machine = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(found | settings | {"machine": machine}, indent=1) + "\n")


if __name__ == "__main__":
    main()
