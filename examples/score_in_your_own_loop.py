"""Score inside a training loop of your own: plain torch, a `DataLoader`, and every k steps one call of zhat."""

import torch
from torch.utils.data import DataLoader, TensorDataset

import zhat
from zhat.datasets import Loaded
from zhat.dgp import Around, Box, InvertibleMLP, Normal, Pairs, Uniform
from zhat.equivalence import AFFINE

# Stand-ins for your data: pairs of neighbouring rows x, x', with known factors z of x.
box = Box(2)
world = Pairs(Uniform(box), Around(Normal(box, 0.1)), InvertibleMLP(layers=2))
rows = world.sample(6000, generator=torch.Generator().manual_seed(1))
train = TensorDataset(rows.x[0][:5000], rows.x[1][:5000])
held_out = Loaded(TensorDataset(rows.x[0][5000:], rows.z[0][5000:]), ("x", "z"))

torch.manual_seed(0)
encoder = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.LeakyReLU(), torch.nn.Linear(64, 2))
adam = torch.optim.Adam(encoder.parameters(), lr=3e-3)
step = 0
for _ in range(8):
    for x, positive in DataLoader(train, batch_size=250, shuffle=True):
        near, far = encoder(x), encoder(positive)
        distances = torch.cdist(near, far).square()
        loss = torch.nn.functional.cross_entropy(-distances, torch.arange(len(x)))
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 40 == 0:
            found = zhat.score(encoder, held_out, n=1000, classes=[AFFINE])[AFFINE]  # leaves the encoder as it is
            print(f"step {step:3}  loss {loss.item():.3f}  {found}")
        step += 1
