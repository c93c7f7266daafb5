from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

from zhat.datasets import KnownFactors
from zhat.datasets.known_factors import Recording, _placed
from zhat.dgp import reseeded
from zhat.errors import BadInput, TooFewRows
from zhat.testing import check_process


@dataclass(frozen=True)
class Painted:
    """Images that show the number of their row: in bits, or in the first point of each channel."""

    n: int = 57
    packed: bool = False
    changed: str = ""
    factors: ClassVar = ("row", "kind")
    category: ClassVar = "kind"
    classes: ClassVar = 3
    periods: ClassVar = {"kind": 3.0}

    @property
    def channels(self):
        return 1 if self.packed else 3

    def find(self):
        return Path("painted")

    def read(self, path):
        points = np.zeros((self.n, 64, 8) if self.packed else (self.n, 64, 64, 3), np.uint8)
        points[:, 0, 0] = np.arange(self.n) if self.packed else np.arange(self.n)[:, None] + np.arange(3)
        codes = np.stack([np.arange(self.n), np.arange(self.n) % 3], 1)
        if self.changed == "points":
            points = points[:, :32]
        if self.changed == "codes":
            codes = codes[:, :1]
        if self.changed == "labels":
            codes = codes + 1
        return Recording(points, codes)


def rows(process, n=7):
    return torch.cat([batch.z[0, :, 0] for batch in process.every(n)]).long().tolist()


@pytest.mark.parametrize("packed", [True, False])
def test_a_batch_holds_images_labels_and_codes_of_the_same_rows(packed):
    process = KnownFactors(Painted(packed=packed))
    check_process(process)
    batch = process.sample(500, generator=torch.Generator().manual_seed(0))
    number = batch.z[0, :, 0].long()
    assert torch.equal(batch.label, number % 3)
    if packed:
        assert batch.x.dtype == torch.bool
        bits = batch.x[0, :, 0, 0, :8].long()
        assert torch.equal((bits << torch.arange(7, -1, -1)).sum(1), number)
    else:
        assert batch.x.shape == (1, 500, 3, 64, 64)
        assert torch.equal(batch.x[0, :, :, 0, 0].long(), number[:, None] + torch.arange(3))


def test_a_tenth_is_kept_for_validation_a_tenth_for_the_test_and_no_image_is_in_two_parts():
    train = KnownFactors(Painted())
    parts = [rows(part) for part in (train, train.validation, train.held_out)]
    assert [len(part) for part in parts] == [47, 5, 5]
    assert [len(part) for part in (train, train.validation, train.held_out)] == [47, 5, 5]
    assert sorted(row for part in parts for row in part) == list(range(57))
    assert rows(KnownFactors(Painted(), part="all")) == list(range(57))
    assert rows(train, n=3) == parts[0]  # an order that stays
    drawn = set(train.sample(5000, generator=torch.Generator().manual_seed(0)).z[0, :, 0].long().tolist())
    assert drawn == set(parts[0])


def test_every_seed_has_a_split_of_its_own():
    first, second = KnownFactors(Painted()), reseeded(KnownFactors(Painted()), 1)
    assert second.seed == 1
    assert set(rows(first.held_out)) != set(rows(second.held_out))
    for other in (first.held_out, first.validation, KnownFactors(Painted(), part="all")):
        assert other.held_out is other.validation is None


@pytest.mark.parametrize(
    ("images", "kind", "sentence"),
    [
        (Painted(changed="points"), BadInput, r"must be bytes of the shape \(57, 64, 64, 3\), but uint8 of \(57, 32"),
        (Painted(changed="codes"), BadInput, r"must name 2 factors .row, kind. of each of 57 images"),
        (Painted(changed="labels"), BadInput, "kind in painted must be a whole number from 0 to 2, but 1 to 3 came"),
        (Painted(n=19), TooFewRows, "holds 19 images, too few to split"),
    ],
)
def test_what_does_not_fit_gets_a_sentence(images, kind, sentence):
    with pytest.raises(kind, match=sentence):
        KnownFactors(images).sample(1, generator=torch.Generator())


def test_mistakes_get_a_sentence():
    with pytest.raises(BadInput, match="`part` must be one of train, validation, test, all, but 'dev' came"):
        KnownFactors(Painted(), part="dev")
    with pytest.raises(BadInput, match="`seed` is an integer"):
        KnownFactors(Painted(), seed=0.5)
    with pytest.raises(BadInput, match="`n` must be a whole number"):
        list(KnownFactors(Painted()).every(0))


def test_images_are_read_once():
    _placed.cache_clear()
    for seed in range(3):
        len(KnownFactors(Painted(), seed=seed))
    assert _placed.cache_info().misses == 1
