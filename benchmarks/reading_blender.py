"""Train on our pictures alone, read the latents of Blender's: the strongest test of a renderer.

    python -m benchmarks.reading_blender --data DIR [--steps 20000] [--batch 512] [--device cuda] [--out FILE]

A ResNet-18 with 100 units before its ten outputs learns the latents of freshly drawn teapots with supervision. Then it
is given pictures of Blender that it has never seen, and 4,096 of ours for comparison. The score is the R2 of each
latent as predicted, without any further fit. A shift of brightness or blur between the renderers would cost here.
DIR holds threedident_rerender/. Results go to results/rendering/reading_blender.json.
"""

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.rendering import FITTED, FOLDER, RESULTS, blender
from zhat.dgp import Batch, Box, Uniform
from zhat.encoders import resnet18
from zhat.experiment.scoring import represent
from zhat.objectives import Supervised
from zhat.randomness import generator
from zhat.scenes import Teapot
from zhat.training import Cosine, train


@dataclass(frozen=True)
class OneView:
    """Uniform latents and their pictures; `rows_at_once` keeps a block of steps small."""

    scene: Teapot
    seed: int = 0
    views: int = 1
    rows_at_once: int = 2048

    @property
    def space(self):
        return Box(10, -1.0, 1.0)

    def sample(self, n, *, generator):
        z = Uniform(self.space).sample(n, generator=generator)[None]
        return Batch(x=self.scene.build(10, torch.Generator())(z), z=z)


def r2(z, h):
    """The share of each latent's variance that is predicted, `(d,)`."""
    return 1 - (z - h).square().sum(0) / (z - z.mean(0)).square().sum(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=RESULTS / "reading_blender.json")
    asked = parser.parse_args()
    folder = Path(asked.data) / FOLDER
    scene = Teapot(file=str(folder / "teapot.npz"))
    world = OneView(scene, seed=asked.seed)
    started = time.perf_counter()
    run = train(
        resnet18(scene.shape, 10, hidden=100, mean=(0.35,) * 3, std=(0.15,) * 3, seed=asked.seed),
        world,
        Supervised(),
        steps=asked.steps,
        batch=asked.batch,
        lr=1e-3,
        schedule=Cosine(),
        precision="tf32" if asked.device.startswith("cuda") else "float32",
        device=asked.device,
        seed=asked.seed,
    )
    seconds = time.perf_counter() - started
    encoder = run.encoder.to(asked.device)
    rows = world.sample(4096 if asked.device != "cpu" else 256, generator=generator(0, "score", asked.device))
    z, theirs = (part[FITTED:].to(asked.device) for part in blender(folder))
    found = {"steps": asked.steps, "batch": asked.batch, "seed": asked.seed, "seconds": round(seconds)}
    for name, latents, pictures in (("ours", rows.z[0], rows.x[0]), ("Blender's", z, theirs)):
        scores = r2(latents.double(), represent(encoder, pictures).double())
        found[name] = {
            "pictures": len(latents),
            "mean R2": round(float(scores.mean()), 4),
            "R2": {k: round(float(v), 4) for k, v in zip(scene.names, scores, strict=True)},
        }
    print(json.dumps(found, indent=1))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
