"""Keep a run and take it up again: weights, architecture, settings and provenance, without pickle."""

import tempfile
from pathlib import Path

import torch

import zhat
from zhat import Fresh
from zhat.dgp import InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.objectives import InfoNCE

world = Pairs(Uniform(Sphere(3)), VonMisesFisher(20.0), InvertibleMLP(layers=3))
run = zhat.train(
    Fresh(mlp, 3, 3, widths=(32, 32), onto=Sphere(3)), world, InfoNCE(temperature=1 / 20), steps=50, seeds=(0, 1)
)
x = world.sample(5, generator=torch.Generator().manual_seed(0)).x[0]

with tempfile.TemporaryDirectory() as folder:
    run.save(Path(folder) / "run")
    again = zhat.load(Path(folder) / "run")
    print("same outputs:", torch.equal(again.encoders[1](x), run.encoders[1](x)))
    print(again.settings["encoder"])
    print(again.provenance["zhat"] == zhat.__version__)

    # A network of your own: its weights are kept, and you make the network again.
    own = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    zhat.train(own, world, InfoNCE(temperature=1 / 20), steps=50).save(Path(folder) / "own")
    made = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    print("own network:", zhat.load(Path(folder) / "own", encoder=made).encoder(x).shape)
