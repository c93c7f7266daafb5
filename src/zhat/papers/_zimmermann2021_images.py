"""Table 3 of zimmermann2021: silhouettes of pedestrians (KITTI Masks)."""

from __future__ import annotations

from dataclasses import replace

from zhat.datasets import KITTIMasks
from zhat.dgp import Box
from zhat.encoders import conv
from zhat.equivalence import COMPONENTWISE
from zhat.experiment import Budget, Factors, Part, Row
from zhat.fresh import Fresh
from zhat.metrics import Padded, Recovery, spearman
from zhat.objectives import InfoNCE, NegativeLp
from zhat.results import Published
from zhat.training import Constant, Recipe

K = 10  # coordinates of the representation, for three known factors
FREE, INTO_BOX = Fresh(conv, (1, 64, 64), K), Fresh(conv, (1, 64, 64), K, onto=Box(K))
SHORT, LONG = KITTIMasks(longest=1), KITTIMasks(longest=5)
LAPLACE, NORMAL = InfoNCE(NegativeLp(1)), InfoNCE(NegativeLp(2))


def budgets() -> tuple[Budget, ...]:
    """The paper's 300,000 steps of 32 pairs; the first 40,000 of them; one of a few seconds."""
    how = Recipe(300_000, 32, 1e-4, Constant(), precision="tf32")
    return (
        Budget("paper", how, seeds=10, batches=1, rows=10_000),
        Budget("fast", replace(how, steps=40_000), seeds=10, batches=1, rows=10_000),
        Budget("smoke", Recipe(20, 32, 1e-3), seeds=2, batches=1, rows=1000, profile_rows=1400, judged=False),
    )


def row(name: str, title: str, process: KITTIMasks, encoder: Fresh, objective: InfoNCE, mean: float, std: float) -> Row:
    """A row of the table; the paper's score is read on frames that training draws from."""
    published = Published(mean, std)
    return Row(name, title, process, encoder, objective, budgets(), published, against=Factors(seen=True))


TABLE_3 = Part(
    paper="zimmermann2021",
    label="Table 3",
    caption="Centre of mass and area of pedestrians from their masks (mean rank correlation of three factors with "
    "their coordinates, in percent), for positives 0.05 s and 0.15 s later. By the paper's protocol 10,000 training "
    "frames are matched and read, with noise beside the factors; held out are pedestrians that training never sees. "
    "We train on nine of ten pedestrians of the rebuilt data, the paper on all.",
    measure=Padded(Recovery(COMPONENTWISE, agree=spearman, holdout=0)),
    score="MCC",
    rows=(
        row("T3.2", "0.05 s, Laplace, unbounded", SHORT, FREE, LAPLACE, 77.1, 1.0),
        row("T3.3", "0.05 s, Laplace, box", SHORT, INTO_BOX, LAPLACE, 74.1, 4.4),
        row("T3.4", "0.05 s, Normal, unbounded", SHORT, FREE, NORMAL, 58.3, 5.4),
        row("T3.5", "0.05 s, Normal, box", SHORT, INTO_BOX, NORMAL, 59.9, 5.5),
        row("T3.7", "0.15 s, Laplace, unbounded", LONG, FREE, LAPLACE, 79.4, 1.9),
        row("T3.8", "0.15 s, Laplace, box", LONG, INTO_BOX, LAPLACE, 80.9, 3.8),
        row("T3.9", "0.15 s, Normal, unbounded", LONG, FREE, NORMAL, 60.2, 8.7),
        row("T3.10", "0.15 s, Normal, box", LONG, INTO_BOX, NORMAL, 68.4, 6.7),
    ),
)
