"""Figure 3 of reizinger2024: what annotators see in ImageNet images, read from the features of networks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torch import nn

from zhat.datasets import ImageNetX
from zhat.datasets.imagenet_x import digest_of
from zhat.experiment import Budget, Part, Row, Targets, TargetsRead
from zhat.fresh import Fresh
from zhat.objectives import Supervised
from zhat.papers._reizinger2024_settings import KEY
from zhat.training import Recipe

NOTHING = Recipe(0)  # networks are pretrained, or are not to be trained
BUDGETS = (
    Budget("paper", NOTHING, seeds=10),
    Budget("fast", NOTHING, seeds=10),  # the same: ten splits of five models take minutes on a CPU
    Budget("smoke", NOTHING, seeds=1, judged=False),
)
ORDER = (
    "object_blocking", "background", "pose", "brighter", "color", "pattern", "larger", "partial_view", "smaller",
    "subcategory", "style", "multiple_objects", "shape", "texture", "darker", "person_blocking", "class",
)  # fmt: skip


def row(name: str, title: str, process: ImageNetX) -> Row:
    """The features of one model; seeds are splits."""
    return Row(name, title, process, Fresh(nn.Identity), Supervised(), BUDGETS, against=Targets())


def yours(path: str) -> Row:
    """The row of a user's own file of features."""
    file = Path(path).resolve()
    return row(file.stem, f"features in {file.name}", ImageNetX(str(file), digest=digest_of(file)))


def of_all_marks(path: str) -> Row:
    """The same with all factors that annotators marked."""
    found = yours(path)
    return replace(found, process=replace(found.process, marks="all"))  # type: ignore[type-var]


def rows(marks: str) -> tuple[Row, ...]:
    """Three trained networks, an untrained one, and pixels."""
    titles = {
        "lite0": ("EfficientNet-Lite0, trained on ImageNet", "efficientnet_lite0"),
        "lite1": ("EfficientNet-Lite1, trained on ImageNet", "efficientnet_lite1"),
        "lite2": ("EfficientNet-Lite2, trained on ImageNet", "efficientnet_lite2"),
        "untrained": ("EfficientNet-Lite0 with random weights", "untrained_efficientnet_lite0"),
        "pixels": ("1,024 random projections of the pixels", "pixel_projection_1024"),
    }
    return tuple(row(name, title, ImageNetX(file, marks=marks)) for name, (title, file) in titles.items())


JUDGE = TargetsRead(
    trained=("lite0", "lite1", "lite2"),
    untrained=("untrained", "pixels"),
    plain="class",
    of_pixels=("brighter", "darker"),
    order=ORDER,
)

NOTES = (
    "The paper's networks (ResNet-50, ViT-B/16) and most of its images are not here, and it prints no "
    "numbers. Its claims are judged on other networks and a tenth of the images. Its 3,000 prototypical images are "
    "left out there; the 273 of them among ours are kept.",
    "The paper's protocol: features with a mean above 0, scaled over all images; 70% to fit on, 30% to "
    "read; either side balanced by leaving out images; logistic regression with scikit-learn's defaults. Scaled that "
    "way the images read are a little known to the fit, and about half of the features whose signs are symmetric "
    "(projected pixels, the untrained network) are dropped.",
    "Ours: scaled by the images fitted, a ridge discriminant on all of them, its penalty chosen by leaving "
    "out one of them at a time; balanced accuracy on the other 30%. The interval is the mean of the splits' intervals "
    "over images; chance is read from fits to shuffled targets.",
)

FIGURE_3 = Part(
    paper=KEY,
    label="Figure 3",
    caption="Seventeen yes-or-no targets read from the features of networks on 4,889 ImageNet validation images: "
    "whether the number of the class is 500 or more, and which of sixteen factors of ImageNet-X annotators found most "
    "important. The paper reads ResNet-50 and ViT-B/16 on about 47,000 images; here they are EfficientNet-Lite0, 1 and "
    "2, one of them also with random weights, and projected pixels.",
    score="balanced accuracy",
    rows=rows("top"),
    judge=JUDGE,
    row_of=yours,
    notes=NOTES,
)

FIGURE_3_ALL = replace(
    FIGURE_3,
    label="Figure 3m",
    caption="Figure 3 with all factors that annotators marked for an image, not only the most important one: rare "
    "factors have up to ninety times as many images. A variant of ours; the images and networks are those of Figure 3.",
    rows=rows("all"),
    row_of=of_all_marks,
)
