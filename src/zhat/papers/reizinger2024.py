"""Reizinger et al. 2024, Cross-Entropy Is All You Need To Invert the Data Generating Process: Tables 2 to 5; Figures.

Published numbers are copied from the paper's tables, settings from the official code with the sizes the tables name.
"""

from __future__ import annotations

from dataclasses import replace

from zhat.dgp import Around, Clusters, Laplace, Normal, Sphere, VonMisesFisher
from zhat.encoders import residual_mlp
from zhat.equivalence import AFFINE, LINEAR
from zhat.experiment import Budget, HeadOffScale, HeadToVectors, OffScale, Paper, Part, Reading, Row
from zhat.fresh import Fresh
from zhat.metrics import Recovery
from zhat.objectives import CrossEntropy, InstanceDiscrimination
from zhat.papers._reizinger2024_features import FIGURE_3, FIGURE_3_ALL
from zhat.papers._reizinger2024_figures import FIGURES
from zhat.papers._reizinger2024_images import TABLE_4, TABLE_4_DRAWN, TABLE_4_PAST
from zhat.papers._reizinger2024_settings import BATCH, FREE, KEY, R2_W, UNIT, budgets, encoder, linear_first, world
from zhat.results import Bar, Published
from zhat.training import Muon, Recipe

# --- Tables 2 and 5: instance discrimination. One training with rows of unit length (o), one with free rows (a).

MAE_Z, MAE_W, RELATIVE, SWAPPED = "MAE z", "MAE w", "MAE z, relative (%)", "R2 z, rows 9 and 10 swapped"


def unit(
    name: str,
    title: str,
    process: Clusters,
    z: Published,
    w: Published,
    mae_z: Published,
    mae_w: Published,
    *,
    scale: float = 10.0,
    same_as: str = "",
    swapped: Published | None = None,
) -> Row:
    """A row with a head of unit rows, case C3; `scale` is the kappa the official code compares with."""
    readings = (
        Reading(R2_W, HeadToVectors(LINEAR), w),
        Reading(MAE_Z, OffScale(scale), mae_z, in_percent=False),
        Reading(MAE_W, HeadOffScale(), mae_w, in_percent=False),
        Reading(RELATIVE, OffScale(scale, relative=True)),
    )
    return _row(f"{name}o", f"{title} | unit rows", process, True, z, UNIT, readings, same_as, swapped)


def free(
    name: str,
    title: str,
    process: Clusters,
    z: Published,
    w: Published | None,
    *,
    same_as: str = "",
    swapped: Published | None = None,
) -> Row:
    """A row with a free head, case C4."""
    readings = (Reading(R2_W, HeadToVectors(AFFINE), w),)
    return _row(f"{name}a", f"{title} | free rows", process, False, z, FREE, readings, same_as, swapped)


def _row(
    name: str,
    title: str,
    process: Clusters,
    unit_rows: bool,
    published: Published,
    measure: Recovery,
    readings: tuple[Reading, ...],
    same_as: str,
    swapped: Published | None,
) -> Row:
    if swapped is not None:
        readings = (*readings, Reading(SWAPPED, None, swapped))
    objective = Fresh(InstanceDiscrimination, process.dim, process.labels, unit_rows=unit_rows)
    how_long = budgets(process, rows=4096 if unit_rows else 8192, published=published)
    row = Row(name, title, process, encoder(process), objective, how_long, published)
    return replace(row, measure=measure, readings=readings, same_as=f"{same_as}{name[-1]}" if same_as else "")


def P(mean: float, std: float = 0.0) -> Published:
    """A published number; the paper leaves out deviations of 0."""
    return Published(mean, std)


DEFAULT = world()
LAPLACE, NORMAL = Around(Laplace(Sphere(5), scale=1.0)), Around(Normal(Sphere(5), std=1.0))

TABLE_2 = Part(
    paper=KEY,
    label="Table 2",
    caption="Instance discrimination: how much of the latents a linear map of the representation explains (R2, in "
    "percent), with rows of the head of unit length (o, without offset) and free rows (a, with offset). Also: "
    "cluster vectors from rows of the head (R2 w), and the distance of singular values from the predicted ones (MAE).",
    measure=FREE,
    score="R2",
    rows=(
        unit("R2.1", "N = 1e3", DEFAULT, P(98.6, 0.01), P(99.9), P(0.01), P(0.0)),
        free("R2.1", "N = 1e3", DEFAULT, P(99.0), P(99.9)),
        unit("R2.2", "N = 1e5", world(instances=100_000), P(98.2, 0.01), P(99.5), P(0.0), P(0.0)),
        free("R2.2", "N = 1e5", world(instances=100_000), P(99.7), P(99.8)),
        unit("R2.3", "d = 5", DEFAULT, P(98.6, 0.01), P(99.9), P(0.01), P(0.0), same_as="R2.1"),
        free("R2.3", "d = 5", DEFAULT, P(99.0), P(99.9), same_as="R2.1"),
        unit("R2.4", "d = 10", world(d=10), P(92.5, 0.01), P(99.6), P(0.01), P(0.0)),
        free("R2.4", "d = 10", world(d=10), P(93.0, 0.03), P(99.6)),
        unit("R2.5", "d = 20", world(d=20), P(70.8, 0.02), P(97.1, 0.01), P(0.03), P(0.0)),
        free("R2.5", "d = 20", world(d=20), P(81.9, 0.01), P(99.7)),
        unit("R2.6", "10 classes", world(classes=10), P(88.6, 0.05), P(85.7, 0.15), P(0.02), P(0.0)),
        free("R2.6", "10 classes", world(classes=10), P(90.0, 0.05), P(99.0, 0.03)),
        unit("R2.7", "100 classes", DEFAULT, P(98.6, 0.01), P(99.9, 0.01), P(0.01), P(0.0), same_as="R2.1"),
        free("R2.7", "100 classes", DEFAULT, P(99.0), P(99.9), same_as="R2.1"),
        unit("R2.8", "1000 classes", world(classes=1000), P(99.3), P(99.9), P(0.0), P(0.0)),
        free("R2.8", "1000 classes", world(classes=1000), P(99.2), P(99.9)),
        unit("R2.9", "vMF(5)", world(VonMisesFisher(5.0)), P(98.6, 0.01), P(99.9, 0.01), P(0.01), P(0.0),
             scale=5.0, swapped=P(99.0)),
        free("R2.9", "vMF(5)", world(VonMisesFisher(5.0)), P(99.0), P(99.8), swapped=P(99.1)),
        unit("R2.10", "vMF(10)", DEFAULT, P(99.0), P(99.9), P(0.0), P(0.0), same_as="R2.1", swapped=P(98.6, 0.01)),
        free("R2.10", "vMF(10)", DEFAULT, P(99.1), P(99.9), same_as="R2.1", swapped=P(99.0)),
        unit("R2.11", "vMF(50)", world(VonMisesFisher(50.0)), P(45.0, 0.06), P(49.7, 0.06), P(0.3), P(0.0),
             scale=50.0),
        free("R2.11", "vMF(50)", world(VonMisesFisher(50.0)), P(72.5, 0.03), P(75.5)),
        unit("R2.12", "vMF(10)", DEFAULT, P(98.6, 0.01), P(99.9, 0.01), P(0.01), P(0.0), same_as="R2.1"),
        free("R2.12", "vMF(10)", DEFAULT, P(99.0), P(99.9), same_as="R2.1"),
        unit("R2.13", "Laplace(1)", world(LAPLACE), P(85.2, 0.01), P(99.7, 0.01), P(0.01), P(0.0)),
        free("R2.13", "Laplace(1)", world(LAPLACE), P(85.4), P(99.5)),
        unit("R2.14", "Normal(1)", world(NORMAL), P(98.7), P(99.8), P(0.01), P(0.0)),
        free("R2.14", "Normal(1)", world(NORMAL), P(98.6), P(99.6)),
    ),
)  # fmt: skip

AROUND_LAPLACE, AROUND_NORMAL = world(vectors=Laplace(Sphere(5))), world(vectors=Normal(Sphere(5)))

TABLE_5 = Part(
    paper=KEY,
    label="Table 5",
    caption="Instance discrimination with cluster vectors drawn uniformly, and around the first unit vector; columns "
    "as in Table 2.",
    measure=FREE,
    score="R2",
    rows=(
        unit("R5.1", "uniform", DEFAULT, P(98.6, 0.01), P(99.9, 0.01), P(0.01), P(0.0)),
        free("R5.1", "uniform", DEFAULT, P(99.0), P(99.9)),
        unit("R5.2", "Laplace around e_1", AROUND_LAPLACE, P(98.7), P(99.5), P(0.01), P(0.0)),
        free("R5.2", "Laplace around e_1", AROUND_LAPLACE, P(99.1), P(99.8)),
        unit("R5.3", "Normal around e_1", AROUND_NORMAL, P(98.2, 0.01), P(99.2, 0.01), P(0.01), P(0.0)),
        free("R5.3", "Normal around e_1", AROUND_NORMAL, P(99.2), P(99.8)),
    ),
)


# --- Table 3: class labels, free head


def supervised(name: str, title: str, process: Clusters, z: Published, *, same_as: str = "") -> Row:
    """A row with class labels, case C4."""
    process = replace(process, by_class=True)
    objective = Fresh(CrossEntropy, process.dim, process.labels)
    row = Row(name, title, process, encoder(process), objective, budgets(process, published=z), z)
    return replace(row, same_as=same_as)


TABLE_3 = Part(
    paper=KEY,
    label="Table 3",
    caption="Supervised classification: how much of the latents an affine map of the representation explains (R2, in "
    "percent), with class labels and a free head.",
    measure=FREE,
    score="R2",
    rows=(
        supervised("R3.1", "d = 5", DEFAULT, P(99.8)),
        supervised("R3.2", "d = 10", world(d=10), P(97.2, 0.01)),
        supervised("R3.3", "d = 20", world(d=20), P(82.1, 0.02)),
        supervised("R3.4", "10 classes", world(classes=10), P(97.5, 0.03)),
        supervised("R3.5", "100 classes", DEFAULT, P(99.8), same_as="R3.1"),
        supervised("R3.6", "1000 classes", world(classes=1000), P(99.8)),
        supervised("R3.7", "10,000 classes, of which 1000 occur", world(classes=10_000), P(99.8)),
        supervised("R3.8", "vMF(5)", world(VonMisesFisher(5.0)), P(99.7)),
        supervised("R3.9", "vMF(10)", DEFAULT, P(99.7), same_as="R3.1"),
        supervised("R3.10", "vMF(50)", world(VonMisesFisher(50.0)), P(65.5, 0.09)),
        supervised("R3.11", "vMF(10)", DEFAULT, P(99.8), same_as="R3.1"),
        supervised("R3.12", "Laplace(1)", world(LAPLACE), P(85.4, 0.01)),
        supervised("R3.13", "Normal(1)", world(NORMAL), P(99.6)),
    ),
)


# --- Not in the paper: the rows of Tables 2 and 3 trained in another way, beside the numbers of the paper's.


def past_the_papers_way(name: str, title: str, process: Clusters, z: Published | None) -> Row:
    """An encoder that begins as a linear map, soft logits, a fast head, Muon, no batch normalisation.

    Nothing in it knows the world: head and output are free (case C4), as in the rows that it stands beside.
    """
    d = process.dim
    kind = CrossEntropy if process.by_class else InstanceDiscrimination
    objective = Fresh(kind, d, process.labels, inverse_temperature=0.1)
    how_long = (
        with_muon("paper", 50_000, BATCH),
        with_muon("fast", 10_000 if d < 20 else 14_000, 4096),
        with_muon_on_two_cores(process, z),
        budgets(process)[-1],
    )
    return Row(name, title, process, Fresh(residual_mlp, d, d), objective, how_long, z)


def with_muon(name: str, steps: int, batch: int) -> Budget:
    """Muon for the encoder, and a head that learns a hundred times as fast as Adam's rate for the rest."""
    recipe = Recipe(steps, batch, 2e-3, lr_scale=(("rows", 100.0),), muon=Muon(), precision="tf32")
    return Budget(name, recipe, batches=1, rows=8192)


def with_muon_on_two_cores(process: Clusters, published: Published | None) -> Budget:
    """The same with a small encoder and fewer, smaller steps. Chosen on seeds 100 and up.

    Bars are those of Tables 2 and 3 without a failure: past the paper, tight clusters have to be found as well, at 90.
    """
    encoder, steps = linear_first(process, 1_500)
    recipe = Recipe(steps, 512, 2e-3, lr_scale=(("rows", 100.0),), muon=Muon(0.03))
    bar = None if published is None else Bar(min(95.0, max(90.0, round(published.mean - 3.0, 1))))
    return Budget(
        "laptop",
        recipe,
        seeds=2,
        batches=1,
        rows=8192,
        bar=bar,
        encoder=encoder,
        about=(PAST_ON_TWO_CORES,),
    )


PAST_ON_TWO_CORES = (
    "Budget laptop: the net beside the linear map has three hidden layers of 128 (256 from ten dimensions on), and "
    "1,500 steps of 512 rows (3,000 from ten dimensions on and with 10 classes) stand for 10,000 of 4096. Worlds, "
    "losses and scores are the same."
)


def past_the_paper(label: str, caption: str, rows: tuple[Row, ...]) -> Part:
    """The same settings and published numbers, trained by `past_the_papers_way`."""
    again = tuple(
        past_the_papers_way(f"{r.name}p", r.title.removesuffix(" | free rows"), r.process, r.published)
        for r in rows
        if not r.same_as and isinstance(r.process, Clusters) and r.process.instances == 1000
    )
    return Part(KEY, label, caption, "R2", again, FREE)


TABLE_2_PAST = past_the_paper(
    "Table 2p",
    "Table 2 in another way, of ours: an encoder that begins as a linear map, soft logits, Muon. Published numbers are "
    "those of the paper's free head.",
    tuple(row for row in TABLE_2.rows if row.name.endswith("a")),
)
TABLE_3_PAST = past_the_paper(
    "Table 3p",
    "Table 3 in another way, of ours: an encoder that begins as a linear map, soft logits, Muon.",
    TABLE_3.rows,
)


PAPER = Paper(
    key=KEY,
    title="Cross-Entropy Is All You Need To Invert the Data Generating Process",
    parts=(
        TABLE_2,
        TABLE_3,
        TABLE_4,
        TABLE_5,
        TABLE_2_PAST,
        TABLE_3_PAST,
        TABLE_4_DRAWN,
        TABLE_4_PAST,
        FIGURE_3,
        FIGURE_3_ALL,
        *FIGURES,
    ),
    notes=(
        "The paper's protocol: fitted on half of 8192 fresh rows with offset (free rows of the head) or of 4096 "
        "without (unit rows), read on the other half; held-out scores do the same on twice as many other rows.",
        "R2 w, paper's protocol: fitted on half of the labels and read on the others, which share classes; see "
        "HeadToVectors for ours.",
        "MAE compares singular values with 1 / concentration, and with 1 / 10 for Laplace and normal noise, as the "
        "official code does; it is fitted and read on the same rows. Relative, it is divided by that value.",
        "Published standard deviations are kept as printed; beside percentages they look like fractions, so 0.01 may "
        "mean one point. Verdicts take them as printed.",
        "In Table 2 the rows 1, 3, 7, 10 and 12 are the same setting and share one training. Row 10 carries other "
        "numbers than its setting does elsewhere, and row 9 carries those: the two look swapped, and are judged both "
        "ways.",
        "In row R3.7 only 1000 of the 10,000 classes can occur, because 1000 instances belong to at most 1000 classes.",
        "Rows of unit length are normalised inside the loss; the official code overwrites them before every step.",
        "Mixing matrices are the best-conditioned of 25,000 each; the official code redraws until a threshold is met.",
        "Tables with N = 1e3 take one step in an epoch: 50,000 in all. N = 1e5 takes 97; whether the paper ran all "
        "4.85 million is not known.",
    ),
)
