"""Roeder et al. 2020, On Linear Identifiability of Learned Representations: every setting as data.

The paper prints no table and no number of the experiments below, and most of its hyper-parameters are not known to us:
claims are the paper's, grids and budgets are ours. One run is one *pair*: two models with weights and draws of their
own in the same world, scored against each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy import stats

from zhat.datasets import CIFAR10, Patches
from zhat.dgp import Sectors
from zhat.encoders import Pair, Towers, mlp
from zhat.experiment import (
    Alike,
    Along,
    Budget,
    Chance,
    FirstComponents,
    LeastAlike,
    LinearR2,
    Paper,
    Part,
    Reading,
    Row,
    Twin,
    TwoRoads,
)
from zhat.fresh import Fresh
from zhat.metrics import CCA
from zhat.objectives import CrossEntropy, Each, InBatchSoftmax
from zhat.papers import _roeder2020_text as text
from zhat.training import Constant, Recipe

KEY = "roeder2020"
MEAN_CCA = "mean CCA"

# What every pair is asked besides its mean CCA.
OF_PAIRS = (
    Reading("chance", Chance()),
    Reading("least correlation", LeastAlike()),
    Reading("R2 1 from 2", LinearR2(of=1)),
    Reading("R2 2 from 1", LinearR2(of=2)),
)

# --- Figure 2: 18 radial sectors of the plane, and the number of features across the limit of the theory

K = 18
DIMENSIONS = (2, 4, 8, 16, 17, 18, 24, 32)

SECTOR_BUDGETS = (
    Budget("paper", Recipe(10_000, schedule=Constant()), batches=1, rows=4096),
    Budget(*("fast", Recipe(10_000, 8192, 2e-3, lr_scale=(("rows", 10.0),), precision="tf32")), batches=1, rows=16_384),
    Budget("smoke", Recipe(20, 128), seeds=2, batches=1, rows=1024, profile_rows=1024, judged=False),
)


def classifiers(name: str, title: str, process: Sectors, dim: int) -> Row:
    """Pairs of classifiers with `dim` features and a head without bias: three hidden layers of 256."""
    # Where the heads can be diverse, there is a map between models from heads alone.
    roads = (Reading("two roads", TwoRoads(), in_percent=False),) if dim < process.labels else ()
    readings = (*OF_PAIRS, Reading("SVCCA 2", FirstComponents(2)), *roads)
    encoder = Fresh(Pair, Fresh(mlp, 2, dim, widths=(256, 256, 256)))
    objective = Fresh(Each, Fresh(CrossEntropy, dim, process.labels))
    return Row(name, title, process, encoder, objective, SECTOR_BUDGETS, readings=readings, against=Twin())


def determined(row: Row) -> float:
    """The share of directions of f that log-probabilities of K labels can determine: K - 1 at most."""
    dim = row.encoder.args[0].args[1]
    return float(min(dim, K - 1) / dim)


def falls_past_the_limit(x: tuple[float, ...], scores: tuple[float, ...]) -> tuple[bool, str]:
    """Mean CCA is at least 99% wherever there are more labels than dimensions, and falls where there are not."""
    within = min(s for v, s in zip(x, scores, strict=True) if v <= K - 1)
    beyond = [s for v, s in zip(x, scores, strict=True) if v > K - 1]
    holds = within >= 99 and max(beyond) < within and beyond[-1] <= within - 5
    return holds, (
        f"mean CCA is at least {within:.2f}% up to K - 1 = {K - 1} dimensions, and {beyond[0]:.2f}% to "
        f"{beyond[-1]:.2f}% beyond"
    )


FIGURE_2 = Part(
    paper=KEY,
    label="Figure 2",
    caption="Two classifiers of 18 radial sectors of the plane, trained independently: how well their features agree "
    "up to a linear map (mean CCA), against the number of features M. Theory needs more labels than features. Labels "
    "follow from the point, as in the paper; the grid of M is ours.",
    measure=CCA(),
    score=MEAN_CCA,
    rows=tuple(classifiers(f"F2.{m}", f"sectors, M = {m}", Sectors(K), m) for m in DIMENSIONS),
    judge=Along(
        x=tuple(float(m) for m in DIMENSIONS),
        name="M, features",
        mark=float(K - 1),
        mark_name="limit K - 1",
        second=determined,
        second_name="determined share of directions",
        claim=falls_past_the_limit,
    ),
)


def soft(dim: int) -> Sectors:
    """Sectors whose log-probabilities span `dim` directions, or as many as 18 labels allow."""
    return Sectors(K, harmonics=min((dim + 1) // 2, K // 2))


FIGURE_2_VARIANT = Part(
    paper=KEY,
    label="Figure 2v",
    caption="A variant of ours of Figure 2 in which the theorem applies: labels are drawn, and their log-probabilities "
    "span exactly M directions of the same size (K - 1 at most). Then cross-entropy has a finite minimum, and every "
    "model that reaches it is a linear map of every other.",
    measure=CCA(),
    score=MEAN_CCA,
    rows=tuple(classifiers(f"F2v.{m}", f"soft sectors, M = {m}", soft(m), m) for m in DIMENSIONS),
    judge=FIGURE_2.judge,
)

# --- Figure 3: which lower patch of an image belongs to an upper one? Two networks, f for the upper, g for the lower

SHARES = (0.03, 0.1, 0.3, 1.0)
SIZES = (1_000, 5_000, 10_000, 25_000, 50_000)
WIDTHS = (64, 256, 1024, 4096, 8192)
STEPS = 20_000
FEATURES, INPUTS = 64, 16 * 16 * 3
OF_G = "mean CCA of g"


@dataclass(frozen=True)
class Fast:
    """Steps and learning rate of the budget `fast`."""

    steps: int = 10_000
    lr: float = 1e-3


def patch_models(
    name: str, title: str, *, images: int = 50_000, width: int = 256, share: float = 1.0, fast: Fast = Fast()
) -> Row:
    """Pairs of models of patches: f and g have three hidden layers and 64 features each.

    The widest do not fit the memory of a small machine, so they have no budget `smoke`.
    """
    smoke = Budget("smoke", Recipe(4, 64, 3e-4), seeds=2, batches=1, rows=1400, profile_rows=1400, judged=False)
    ours = Recipe(round(share * fast.steps), 1024, fast.lr, precision="bf16")
    budgets = (
        Budget("paper", Recipe(round(share * STEPS), schedule=Constant()), batches=1, rows=10_000),
        Budget("fast", ours, batches=1, rows=10_000),
        *((smoke,) if width <= 1024 else ()),
    )
    encoder = Fresh(Pair, Fresh(Towers, Fresh(mlp, INPUTS, FEATURES, widths=(width,) * 3)))
    readings = (Reading(OF_G, Alike(view=1)), *OF_PAIRS)
    patches, objective = Patches(CIFAR10("train", images)), Fresh(Each, InBatchSoftmax())
    return Row(name, title, patches, encoder, objective, budgets, readings=readings, against=Twin())


@dataclass(frozen=True)
class Rises:
    """The claim that mean CCA rises along the axis: a rank correlation of at least 0.8."""

    what: str

    def __call__(self, x: tuple[float, ...], scores: tuple[float, ...]) -> tuple[bool, str]:
        """Whether it holds, and the numbers."""
        rank = float(stats.spearmanr(x, scores).statistic)
        return (
            rank >= 0.8 - 1e-9,  # four points with one swap have 0.8 to rounding
            f"from {scores[0]:.1f}% to {scores[-1]:.1f}% {self.what}, rank correlation {rank:.2f}",
        )


def panel(letter: str, caption: str, rows: tuple[Row, ...], x: tuple[float, ...], x_name: str, claim: Rises) -> Part:
    """A panel of Figure 3; the line marks what the other panels have on this axis."""
    return Part(
        paper=KEY,
        label=f"Figure 3{letter}",
        caption=f"{caption} Models learn which lower patch of a CIFAR-10 image belongs to an upper one; read on test "
        "images. Grid of ours; the paper gives no values.",
        measure=CCA(),
        score="mean CCA of f",
        rows=rows,
        judge=Along(
            x=x,
            name=x_name,
            mark={"b": 1.0, "c": 50_000.0, "d": 256.0}[letter],
            mark_name=f"{x_name} of the other panels",
            second=OF_G,
            second_name=OF_G,
            claim=claim,
        ),
    )


FIGURE_3B = panel(
    "b",
    "Mean CCA of two models against the length of training.",
    tuple(patch_models(f"F3b.{i}", f"{s:.0%} of the steps", share=s) for i, s in enumerate(SHARES, 1)),
    SHARES,
    "share of the training steps",
    Rises("as training becomes longer"),
)
FIGURE_3C = panel(
    "c",
    "Mean CCA of two models against the number of training images.",
    tuple(patch_models(f"F3c.{i}", f"{n:,} images", images=n) for i, n in enumerate(SIZES, 1)),
    tuple(float(n) for n in SIZES),
    "training images",
    Rises("as there are more images"),
)
FIGURE_3D = panel(
    "d",
    "Mean CCA of two models against the width of their hidden layers. Budget fast trains 3,000 steps at a rate of "
    "0.0003, the other panels 10,000 at 0.001.",
    tuple(patch_models(f"F3d.{i}", f"width {w}", width=w, fast=Fast(3_000, 3e-4)) for i, w in enumerate(WIDTHS, 1)),
    tuple(float(w) for w in WIDTHS),
    "width of the hidden layers",
    Rises("as layers become wider"),
)

PAPER = Paper(
    key=KEY,
    title="On Linear Identifiability of Learned Representations",
    parts=(text.FIGURE_1, FIGURE_2, FIGURE_2_VARIANT, FIGURE_3B, FIGURE_3C, FIGURE_3D, text.FIGURE_4),
    notes=(
        *text.NOTES,
        "One seed is one pair: two models with weights of their own, trained on different draws from the same world. "
        "Of every batch either model takes half of the rows.",
        "Mean CCA is read on fresh rows, with directions fitted on the same rows, as in the paper; held out, directions"
        " are fitted on one half of these rows and read on the other. The chance level is that of shuffled rows.",
        "The paper prints no numbers here. Its dimension of f, its network, optimiser, batch and steps are not known "
        "to us: three hidden layers of 256 with leaky ReLU (slope 0.01), Adam.",
        "Figure 3: patches of 16 x 16, one from the upper and one from the lower half of an image; batches of 512 for "
        "each model; points of panel b are trainings of that length, each with a learning rate that falls to 0.",
        "Two roads: the linear map between two models from their heads alone against the one from their features, "
        "|A - B| / |B|; there is none where labels are too few.",
    ),
)
