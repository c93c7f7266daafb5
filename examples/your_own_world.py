"""A world of your own: anything with `sample` that returns a Batch trains and is scored like ours."""

from dataclasses import dataclass

import torch

import zhat
from zhat.dgp import Batch
from zhat.encoders import mlp
from zhat.objectives import InfoNCE, NegativeLp


@dataclass(frozen=True)
class Waves:
    """Two slow phases, seen through sines and cosines; the next moment is near the present one."""

    seed: int = 0
    views: int = 2

    def sample(self, n, *, generator):
        place = {"generator": generator, "device": generator.device}
        now = torch.rand(n, 2, **place)
        z = torch.stack([now, (now + 0.05 * torch.randn(n, 2, **place)).clamp(0, 1)])
        return Batch(x=torch.cat([torch.sin(3 * z), torch.cos(3 * z)], dim=-1), z=z)


run = zhat.train(mlp(4, 2, widths=(64, 64), seed=0), Waves(), InfoNCE(NegativeLp(1)), steps=400, batch=256, lr=3e-3)
print(zhat.score(run.encoder, Waves()))
