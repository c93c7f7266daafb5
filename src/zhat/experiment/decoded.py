"""Known factors read one by one from a representation: as reizinger2024 does, and on images kept from the fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from zhat import _checks, randomness
from zhat.dgp import Process
from zhat.equivalence import AFFINE, LINEAR
from zhat.errors import BadInput, TooFewRows
from zhat.experiment.readings import Trained
from zhat.experiment.samples import samples
from zhat.experiment.scoring import represent
from zhat.metrics import Measure, Moments, align, pearson
from zhat.metrics.pairing import order
from zhat.metrics.uncertainty import bootstrap, interval
from zhat.results import Record, Score, Sides

if TYPE_CHECKING:
    from zhat.experiment.settings import Budget, Row

SHUFFLES = 20  # refits of shuffled factors
LEAST = 10  # images in a part
VALUES = 2**25  # points of images in a block


@dataclass(frozen=True)
class Decoded:
    r"""Known factors of recorded images, each predicted by least squares from the representation of all images.

    The code of a factor is a number, brought to mean 0 and variance 1 on the training images. A factor with a period
    is two numbers, the cosine and the sine of its angle, and its score is the mean of theirs. The score is the Pearson
    correlation of prediction and factor, read in two ways:

    - by the paper's protocol: a linear map **without offset**, fitted on the training images, read on the validation
      images, on which the paper also chooses its checkpoint;
    - ours: with offset, fitted on the training images, read on the test images, which nothing else looks at. The
      interval comes from resampled test images, the chance level from refits of shuffled factors.

    While training it watches how often the objective's head names the label of a validation image. The process has
    the members `every`, `validation`, `held_out`, `factors` and `periods`, as `zhat.datasets.KnownFactors` has.

    Args:
        repeats: bootstrap repeats for the intervals.

    Reference: reizinger2024, Table 4.
    """

    repeats: int = 400
    watched: ClassVar[str] = "validation accuracy"
    sides: ClassVar[Sides] = Sides(
        question="Which known factors can be read from the representation?",
        truth="the known factors",
        one="factor",
        raw="",
    )

    def refuse_few(self, encoder: nn.Module, world: Process, budget: Budget) -> None:
        """Raise `TooFewRows` where a part holds almost no images."""
        for part in _parts(world):
            if len(part) < LEAST:
                raise TooFewRows(
                    f"{part!r} holds {len(part)} images; a correlation needs at least {LEAST}.", needed=10 * LEAST
                )

    def watch(self, trained: Trained, budget: Budget) -> float:
        """The share of validation images whose label the objective's head names."""
        logits = getattr(trained.objective, "logits", None)
        if logits is None:
            raise BadInput(
                f"the share of images named right is watched, but {type(trained.objective).__name__} has no `logits`. "
                "Use CrossEntropy."
            )
        _, validation, _ = _parts(trained.world)
        right = 0.0
        with torch.no_grad():
            for batch in _blocks(validation, trained.device):
                right += float((logits(represent(trained.encoder, batch.x[0])).argmax(1) == batch.label).sum())
        return right / len(validation)

    def scored(self, record: Record, trained: Trained, row: Row, budget: Budget, measure: Measure | None) -> Record:
        """The score of every factor that varies, by its name; the measure of the part is not asked."""
        found = decoded(trained.encoder, trained.world, device=trained.device, repeats=self.repeats)
        return replace(
            record,
            sides=self.sides,
            samples=samples(trained.world, trained.device),
            readings={name: (by_paper, ours.value) for name, (by_paper, ours) in found.items()},
            factors={name: ours for name, (_, ours) in found.items()},
        )


def decoded(
    encoder: nn.Module, world: Process, *, device: torch.device | str = "cpu", repeats: int = 400, seed: int = 0
) -> dict[str, tuple[float, Score]]:
    """Every factor that varies, by its name: the paper's score, and ours.

    Args:
        encoder: a module `(rows, …) -> (rows, k)`.
        world: recorded images with known factors, such as `KnownFactors(DSprites())`.
        device: where the encoder lives.
        repeats: bootstrap repeats for the intervals.
        seed: of shuffles and bootstrap.
    """
    train, validation, test = _parts(world)
    codes = torch.cat([batch.z[0].double() for batch in _blocks(train, device)])
    every = _columns(world.factors, world.periods, codes)  # type: ignore[attr-defined]
    columns = {name: column for name, column in every.items() if not bool(_checks.constant(column, least=1.0).any())}
    if not columns:
        raise BadInput(f"every factor of {world!r} has the same value in all training images.")
    names = [name for name, place in columns.items() for _ in range(place.shape[1])]
    z = torch.cat(list(columns.values()), 1)
    mean, std = z.mean(0), z.std(0)
    generator = randomness.generator(seed, "chance")
    truth = (z - mean) / std
    shuffled = [truth[order(len(truth), generator, truth.device)] for _ in range(SHUFFLES)]
    moments, done = None, 0
    wide = torch.cat([truth, *shuffled], 1)
    for batch in _blocks(train, device):
        h = represent(encoder, batch.x[0])
        part = Moments.of(wide[done : done + len(h)], h)
        moments, done = part if moments is None else moments + part, done + len(h)
    assert moments is not None, "a part is never empty"

    def read(part: Any, fitted: Any) -> tuple[Tensor, Tensor]:
        """The factors of a part, and the predictions of all columns."""
        pairs = [
            (batch.z[0].double(), fitted(represent(encoder, batch.x[0]).double())) for batch in _blocks(part, device)
        ]
        given = _columns(world.factors, world.periods, torch.cat([z for z, _ in pairs]))  # type: ignore[attr-defined]
        kept = torch.cat([given[name] for name in columns], 1)
        return (kept - mean) / std, torch.cat([z_hat for _, z_hat in pairs])

    width = truth.shape[1]
    z_val, guess = read(validation, align(moments, LINEAR))
    by_paper = pearson(z_val, guess[:, :width])
    z_test, guess = read(test, align(moments, AFFINE))
    ours = pearson(z_test, guess[:, :width])
    apart = [z_test[order(len(z_test), generator, z_test.device)] for _ in shuffled]
    by_chance = torch.stack([pearson(*pair) for pair in zip(apart, guess[:, width:].split(width, 1), strict=True)])
    out = {}
    for name in columns:
        mine = [i for i, other in enumerate(names) if other == name]
        chance = by_chance[:, mine].mean(1)
        low, high = interval(bootstrap(pearson, z_test[:, mine], guess[:, mine], repeats=repeats, seed=seed))
        each = tuple(float(v) for v in ours[mine])
        score = Score(
            name=pearson.name,
            value=math.fsum(each) / len(each),
            up_to=AFFINE,
            shift=True,
            low=low,
            high=high,
            chance=float(chance.mean()),
            chance_high=float(chance.quantile(0.95)),
            n=len(z_test),
            n_fit=moments.n,
            held_out=True,
            per_latent=each,
        )
        out[name] = float(by_paper[mine].mean()), score
    return out


def _columns(names: Sequence[str], periods: Mapping[str, float], codes: Tensor) -> dict[str, Tensor]:
    """The numbers of every factor: its code, or the cosine and the sine of its angle, `(n, 1 or 2)`."""
    out = {}
    for name, code in zip(names, codes.T, strict=True):
        angle = None if name not in periods else code * (2 * math.pi / periods[name])
        column = code[:, None] if angle is None else torch.stack([angle.cos(), angle.sin()], 1)
        out[name] = column
    return out


def _parts(world: Process) -> tuple[Any, Any, Any]:
    """Training, validation and test images."""
    validation, test = getattr(world, "validation", None), getattr(world, "held_out", None)
    if validation is None or test is None or not hasattr(world, "every"):
        raise BadInput(
            f"factors are read on images kept from training, but {world!r} keeps none. Use "
            "KnownFactors(…, part='train')."
        )
    return world, validation, test


def _blocks(part: Any, device: torch.device | str) -> Iterator[Any]:
    """All rows of a part, some at a time."""
    size = math.prod(part.sample(1, generator=randomness.generator(0, "probe", device)).x.shape)
    return iter(part.every(max(1, VALUES // size), device=device))
