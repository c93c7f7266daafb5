"""Eight seeds as one program, with a bar, a checkpoint and the score of each seed."""

import tempfile
from pathlib import Path

import zhat
from zhat import Fresh
from zhat.dgp import Around, Box, InvertibleMLP, Laplace, Pairs, Uniform
from zhat.encoders import mlp
from zhat.equivalence import AFFINE
from zhat.objectives import InfoNCE, NegativeLp

box = Box(2)
world = Pairs(Uniform(box), Around(Laplace(box, 0.05)), InvertibleMLP(layers=2))
encoder = Fresh(mlp, 2, 2, widths=(32, 32), onto=box)
with tempfile.TemporaryDirectory() as folder, zhat.Progress("training 8 seeds") as progress:
    run = zhat.train(
        encoder,
        world,
        InfoNCE(NegativeLp(1)),
        steps=300,
        batch=256,
        lr=3e-3,
        lr_scale={"bound": 10.0},
        seeds=range(8),
        checkpoint=Path(folder) / "checkpoint.safetensors",
        progress=progress,
    )
for seed, trained in zip(run.seeds, run.encoders, strict=True):
    print(seed, zhat.score(trained, world)[AFFINE])
