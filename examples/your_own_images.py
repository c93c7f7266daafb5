"""Your own images with known factors: train a convolutional encoder on neighbours in time, score it, write a page."""

import tempfile
from pathlib import Path

import torch

import zhat
from zhat import Fresh
from zhat.datasets import NextRow
from zhat.encoders import conv
from zhat.experiment import Budget, Factors, Row, run
from zhat.objectives import InfoNCE, NegativeLp
from zhat.training import Recipe

# Stand-ins for your arrays: a disc that wanders over images of 32 × 32, and where its centre is.
steps = 0.15 * torch.randn(6000, 2, generator=torch.Generator().manual_seed(0))
position = (0.9 * torch.sin(steps.cumsum(0))).float()  # (rows, factors), between -0.9 and 0.9
grid = torch.stack(torch.meshgrid(*2 * [torch.linspace(-1.2, 1.2, 32)], indexing="ij"))
images = ((grid - position[:, :, None, None]).norm(dim=1, keepdim=True) < 0.3).to(torch.uint8) * 255

later = NextRow(images[5000:], z=position[5000:])  # rows that training never sees
row = Row(
    name="disc",
    title="a wandering disc",
    process=NextRow(images[:5000], z=position[:5000], held_out=later),
    encoder=Fresh(conv, (1, 32, 32), 2, widths=(16, 16, 32), top=64),
    objective=InfoNCE(NegativeLp(2)),
    budgets=(Budget("short", Recipe(steps=150, batch=128, lr=2e-3), profile_rows=2000),),
    against=Factors(),
)
out = Path(tempfile.mkdtemp())
(record,) = run(row, row.budget("short"), seeds=[0], out=out)
print(record.learned)  # held-out R2 of the disc's position for each class of maps
print("page:", zhat.report.write(record, out / "page.html"))
