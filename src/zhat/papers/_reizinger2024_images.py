"""Table 4 of reizinger2024: known factors of images, decoded from a classifier of one of them (DisLib)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import nn

from zhat.datasets import COIL20, MPI3D, Cars3D, DSprites, KnownFactors, Shapes3D, SmallNORB
from zhat.datasets.known_factors import SIDE, Images
from zhat.encoders import mlp, resnet18
from zhat.equivalence import LINEAR
from zhat.experiment import Budget, Decoded, Part, Row
from zhat.fresh import Fresh
from zhat.metrics import Recovery, pearson
from zhat.objectives import CrossEntropy
from zhat.results import Published
from zhat.scenes import SpriteGrid
from zhat.training import Constant, Reached, Recipe

KEY = "reizinger2024"
WIDTH = 512  # features of either network
MODELS = {"x": "pixels", "m": "MLP", "c": "CNN"}
MEASURE = Recovery(LINEAR, agree=pearson)  # without offset, as `Decoded` fits it for the paper's column

Cells = Mapping[str, tuple[tuple[int, int], tuple[int, int], tuple[int, int]]]
"""Of a factor, the published means and standard deviations of pixels, MLP and CNN, in hundredths."""

# Copied from the paper's Table 4. The factor that the networks are trained on comes first; the paper calls it category.
DSPRITES: Cells = {
    "shape": ((26, 0), (94, 1), (100, 0)),
    "scale": ((62, 0), (98, 0), (92, 5)),
    "posX": ((92, 0), (97, 0), (99, 0)),
    "posY": ((92, 0), (97, 0), (99, 0)),
}
SHAPES3D: Cells = {
    "objType": ((42, 0), (100, 0), (100, 0)),
    "objSize": ((21, 0), (89, 1), (99, 0)),
    "objAzimuth": ((4, 0), (85, 2), (93, 1)),
}
MPI3D_TOY: Cells = {
    "objShape": ((3, 0), (71, 1), (97, 0)),
    "posX": ((28, 0), (76, 1), (90, 1)),
    "posY": ((46, 0), (76, 1), (84, 1)),
}
MPI3D_REAL: Cells = {
    "objShape": ((19, 0), (88, 1), (98, 0)),
    "posX": ((14, 0), (74, 1), (83, 1)),
    "posY": ((44, 0), (54, 1), (71, 2)),
}
CARS3D: Cells = {
    "object_type": ((5, 0), (63, 11), (77, 2)),
    "elevation": ((15, 0), (87, 3), (78, 2)),
}
SMALLNORB: Cells = {
    "category": ((22, 0), (94, 1), (100, 0)),
    "elevation": ((15, 0), (83, 1), (79, 1)),
}


def encoder(model: str, images: Images) -> Fresh:
    """The pixels themselves, the paper's perceptron, or its residual network; either ends in 512 features."""
    shape = (images.channels, SIDE, SIDE)
    if model == "x":
        return Fresh(nn.Flatten)
    if model == "m":
        return Fresh(mlp, shape, None, widths=(WIDTH,) * 3, slope=0.0, batch_norm=True)
    return Fresh(resnet18, shape, None)


def budgets(model: str, n: int, *, judged: bool = True) -> tuple[Budget, ...]:
    """The paper's 100 epochs of 80% of n images; 2,000 smaller steps; 400 for a laptop; one that tries the machinery.

    All end when 99.9% of the validation images are named right, and keep the weights that named most of them. Pixels
    have nothing to train. Seeds of the residual network are trained one at a time: stacked convolutions are slower.
    """
    epoch = math.ceil(0.8 * n / 4096)
    alone = 1 if model == "c" else None

    def how(steps: int, batch: int, every: int) -> Recipe:
        if model == "x":
            return Recipe(0)
        until = Reached(0.999, every)
        return Recipe(steps, batch, 1e-3, Constant(), precision="tf32", together=alone, until=until)

    return (
        Budget("paper", how(100 * epoch, 4096, epoch), seeds=3, judged=judged),
        Budget("fast", how(2_000, 512, 50), seeds=3, judged=judged),
        Budget("laptop", how(400, 512, 50), seeds=1, judged=False),
        Budget("smoke", how(4, 64, 2), seeds=2, judged=False),
    )


def untrained() -> tuple[Budget, ...]:
    """Every budget leaves the network as it was built."""
    names = {"paper": 3, "fast": 3, "laptop": 1, "smoke": 2}
    return tuple(Budget(name, Recipe(0), seeds=k, judged=name in ("paper", "fast")) for name, k in names.items())


def rows(
    first: int,
    letter: str,
    title: str,
    images: Images,
    n: int,
    cells: Cells,
    ours: tuple[str, ...] = (),
    *,
    judged: bool = True,
) -> list[Row]:
    """The rows of a data set: every factor from pixels, MLP and CNN; each of the three is trained once.

    Args:
        first: number of the first factor among the lines of the table.
        letter: put after the number of rows where the data set is measured more than once.
        title: of the data set.
        images: the data set.
        n: how many images it holds.
        cells: the published numbers.
        ours: further factors, without published numbers.
        judged: whether scores get a verdict.
    """
    out = []
    for i, factor in enumerate((*cells, *ours)):
        for j, (model, said) in enumerate(MODELS.items()):
            mean, std = cells[factor][j] if factor in cells else (None, None)
            label = f"category ({factor})" if factor == images.category != "category" else factor
            width = images.channels * SIDE * SIDE if model == "x" else WIDTH
            out.append(
                Row(
                    name=_name(first, i, len(cells), letter, model),
                    title=f"{title} | {label} | {said}",
                    process=KnownFactors(images),
                    encoder=encoder(model, images),
                    objective=Fresh(CrossEntropy, width, images.classes, bias=True),
                    budgets=budgets(model, n, judged=judged),
                    published=None if mean is None or std is None else Published(mean, std, rounding=0.5),
                    same_as=_name(first, 0, len(cells), letter, model) if i else "",
                    shows=factor,
                    against=Decoded(),
                )
            )
    return out


def _name(first: int, i: int, published: int, letter: str, model: str) -> str:
    """Lines of the paper are counted through; a factor of ours follows the last line of its data set."""
    line = first + min(i, published - 1)
    return f"R4.{line}{letter}{'o' * (i >= published)}{model}"


NOTES = (
    "The paper's protocol: codes of factors brought to mean 0 and variance 1, least squares without offset on all "
    "training images, Pearson correlation on the validation images. Held out: with offset, read on the test images. "
    "The category is decoded as a number too, so its row is no accuracy.",
    "The official code stops at a validation accuracy above 99.9% and keeps the best checkpoint, as we do. It draws an "
    "epoch without replacement, we draw images with replacement.",
    "The pixels of dSprites are 0 and 1 here, 0 and 1/255 in the official code. Codes are rounded; the official code "
    "truncates them, which leaves 138 of the 183 cars.",
)
RANDOM, GRID = DSprites("random20k"), DSprites("grid_3x6x10x16x16")
ROWS = (
    *rows(1, "", "dSprites, 20,000 random images", RANDOM, 20_000, DSPRITES, ("orientation",)),
    *rows(1, "g", "dSprites, grid of 46,080 images", GRID, 46_080, DSPRITES, ("orientation",), judged=False),
    *rows(5, "", "Shapes3D", Shapes3D(), 480_000, SHAPES3D),
    *rows(8, "", "MPI3D toy", MPI3D(), 1_036_800, MPI3D_TOY),
    *rows(11, "", "MPI3D real", MPI3D(real=True), 1_036_800, MPI3D_REAL),
    *rows(14, "", "Cars3D", Cars3D(), 17_568, CARS3D),
    *rows(16, "", "smallNORB", SmallNORB(), 48_600, SMALLNORB),
)

TABLE_4 = Part(
    paper=KEY,
    label="Table 4",
    caption="Known factors of images, decoded by least squares from the pixels, and from the 512 features of an MLP "
    "and a CNN (ResNet-18) that were trained to name the category alone (Pearson correlation in percent). The paper "
    "trains on all 737,280 images of dSprites; we measure two real subsets of it. Verdicts are on 20,000 random "
    "images; a full grid of 46,080 (rows with a g) stands beside the same numbers without verdicts. Orientation (rows "
    "with an o) is ours: a circular factor, which the paper leaves out.",
    measure=MEASURE,
    score="Pearson r",
    rows=ROWS,
    notes=NOTES,
)


DRAWN = SpriteGrid(every_orientation=1, every_place=1)
TABLE_4_DRAWN = Part(
    paper=KEY,
    label="Table 4s",
    caption="The dSprites lines of Table 4 on all 737,280 images, drawn anew. Formulas of ours draw the grid of "
    "dSprites' factors; 99.99% of the points of the real images that we have are equal to theirs. This shows what the "
    "number of images does to the rows of Table 4. No file is needed.",
    measure=MEASURE,
    score="Pearson r",
    rows=tuple(rows(1, "s", "drawn sprites, all 737,280", DRAWN, DRAWN.count, DSPRITES, ("orientation",))),
    notes=NOTES,
)


def of_ours(number: int, title: str, images: Images, factors: tuple[str, ...], kinds: tuple[str, ...]) -> list[Row]:
    """Rows without published numbers: trained networks, and the same before training (u)."""
    out = []
    for kind in kinds:
        model, trained = kind[0], kind[-1] != "u"
        said = MODELS[model] if trained else f"untrained {MODELS[model]}"
        width = images.channels * SIDE * SIDE if model == "x" else WIDTH
        for i, factor in enumerate(factors):
            out.append(
                Row(
                    name=f"R4p.{number + i}{kind}",
                    title=f"{title} | {factor} | {said}",
                    process=KnownFactors(images),
                    encoder=encoder(model, images),
                    objective=Fresh(CrossEntropy, width, images.classes, bias=True),
                    budgets=budgets(model, 1_440) if trained else untrained(),
                    same_as=f"R4p.{number}{kind}" if i else "",
                    shows=factor,
                    against=Decoded(),
                )
            )
    return out


TABLE_4_PAST = Part(
    paper=KEY,
    label="Table 4p",
    caption="What the networks of Table 4 know before they are trained (dSprites, 20,000 random images), and COIL-20, "
    "1,440 photographs of 20 objects on a turntable: object and azimuth, a circular factor. All rows are ours, without "
    "published numbers.",
    measure=MEASURE,
    score="Pearson r",
    rows=(
        *of_ours(1, "dSprites, 20,000 random images", RANDOM, RANDOM.factors, ("mu", "cu")),
        *of_ours(6, "COIL-20", COIL20(), COIL20.factors, ("x", "m", "c", "mu", "cu")),
    ),
    notes=NOTES,
)
