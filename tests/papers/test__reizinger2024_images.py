"""Table 4 as data: published numbers, settings, and every row trained for two steps on tiny images."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from zhat import papers
from zhat.datasets import KnownFactors
from zhat.datasets.known_factors import Recording
from zhat.experiment import run
from zhat.papers import _reizinger2024_images as here

PAPER = papers.paper("reizinger2024")
SHARED = (Path("/work/shared"), Path(__file__).parents[3] / "shared")
TARGETS = next((p / "papers" / "targets.json" for p in SHARED if (p / "papers").is_dir()), Path("targets.json"))
NAMES = {
    "dSprites, 20,000 random images": "dsprites",
    "dSprites, grid of 46,080 images": "dsprites",
    "Shapes3D": "shapes3d",
    "MPI3D toy": "mpi3d",
    "MPI3D real": "mpi3d_real",
    "Cars3D": "cars3d",
    "smallNORB": "smallnorb",
}
MODELS = {"pixels": "pixels", "MLP": "mlp", "CNN": "cnn_resnet18"}


def target(row):
    """The name of a published number among the recorded targets."""
    name, factor, model = row.title.split(" | ")
    return f"R4.{NAMES[name]}.{factor.split(' (')[0]}.{MODELS[model]}"


@pytest.mark.skipif(not TARGETS.exists(), reason=f"{TARGETS} is not here")
def test_published_numbers_are_those_of_the_recorded_targets():
    wanted = {
        t["row_id"]: (round(100 * t["published_mean"], 6), round(100 * t["published_std"], 6))
        for t in json.loads(TARGETS.read_text())
        if t["experiment"] == "table4_dislib"
    }
    assert len(wanted) == 51
    first = {target(r): r.published for r in here.ROWS if r.published and "grid" not in r.title}
    grid = {target(r): r.published for r in here.ROWS if r.published and "grid" in r.title}
    assert {name: (p.mean, p.std) for name, p in first.items()} == wanted
    assert len(grid) == 12
    assert all((p.mean, p.std) == wanted[name] for name, p in grid.items())
    assert {p.rounding for p in first.values()} == {0.5}


def test_drawn_sprites_stand_beside_the_numbers_of_dsprites():
    read = {r.title.split(" | ", 1)[1]: r for r in here.ROWS[:15]}
    for row in here.TABLE_4_DRAWN.rows:
        beside = read[row.title.split(" | ", 1)[1]]
        assert (row.published, row.encoder, row.shows) == (beside.published, beside.encoder, beside.shows)
        assert row.budget("paper").recipe.steps in (0, 100 * 144)
    assert sum(row.published is not None for row in here.TABLE_4_DRAWN.rows) == 12
    assert here.DRAWN.count == 737_280


def test_published_numbers_add_up_to_those_of_the_paper():
    found = [r.published for r in here.ROWS if r.published and "grid" not in r.title]
    assert len(found) == 51
    by_model = [sum(p.mean for p in found[j::3]) for j in range(3)]
    assert by_model == [550, 1426, 1539]  # the columns x, MLP and CNN, in hundredths
    assert sum(p.std for p in found) == 42


def test_every_number_of_a_model_comes_from_one_training():
    for table in (here.TABLE_4, here.TABLE_4_DRAWN, here.TABLE_4_PAST):
        assert len({row.name for row in table.rows}) == len(table.rows)
        for row in table.rows:
            other = table.row(row.same_as or row.name)
            assert row.settings(row.budget("fast")) == other.settings(other.budget("fast"))
            assert row.shows in row.process.factors
    assert len(here.TABLE_4.needed(here.ROWS)) == 7 * 3
    assert len(here.TABLE_4_DRAWN.needed(here.TABLE_4_DRAWN.rows)) == 3
    assert len(here.TABLE_4_PAST.needed(here.TABLE_4_PAST.rows)) == 2 + 5
    assert PAPER.numbered("table", "4") == (here.TABLE_4,)
    assert PAPER.numbered("table", "4s") == (here.TABLE_4_DRAWN,)
    assert PAPER.numbered("table", "4p") == (here.TABLE_4_PAST,)


def test_settings_are_those_of_the_official_code():
    rows = {row.name: row for row in here.ROWS}
    how = rows["R4.1m"].budget("paper").recipe
    assert (how.steps, how.batch, how.lr, how.until.value, how.until.every) == (400, 4096, 1e-3, 0.999, 4)
    assert rows["R4.5c"].budget("paper").recipe.steps == 100 * 94
    assert rows["R4.1x"].budget("paper").recipe.steps == 0
    assert rows["R4.1m"].budget("paper").seeds == 3
    assert not rows["R4.1gm"].budget("paper").judged
    assert rows["R4.14m"].process.labels == 183
    assert "20,000 random images" in here.TABLE_4.caption
    sizes = [sum(p.numel() for p in rows[name].encoder().parameters()) for name in ("R4.1m", "R4.5m", "R4.1c", "R4.5c")]
    assert sizes == [2_626_048, 6_820_352, 11_170_240, 11_176_512]  # 2.63 M, 6.82 M, 11.2 M


@dataclass(frozen=True)
class Tiny:
    """Images of the same form as a data set's, with a few lit points that follow the factors."""

    like: Any
    n: int = 110

    def __getattr__(self, name):
        return getattr(self.like, name)

    def find(self):
        return Path("tiny")

    def read(self, path):
        draw = np.random.default_rng(0)
        codes = draw.integers(0, 4, (self.n, len(self.like.factors)))
        codes[:, self.like.factors.index(self.like.category)] %= self.like.classes
        points = np.zeros((self.n, 64, 64, self.like.channels), np.uint8)
        points[:, 30:33, 30 : 30 + codes.shape[1]] = 60 * codes[:, None, :, None] + draw.integers(
            0, 20, (self.n, 3, codes.shape[1], 1)
        )
        return Recording(points, codes)


TRAINED = [row for table in (here.TABLE_4, here.TABLE_4_DRAWN, here.TABLE_4_PAST) for row in table.needed(table.rows)]


ALWAYS = ("R4.1c", "R4.5c")  # other residual networks differ only in their images, and take long


def slow_or_not(row):
    large = "resnet18" in repr(row.encoder) and row.name not in ALWAYS
    return pytest.param(row, marks=pytest.mark.slow if large else (), id=row.name)


@pytest.mark.parametrize("row", [slow_or_not(row) for row in TRAINED])
def test_every_row_trains_two_steps_and_decodes_its_factors(row, tmp_path):
    images = Tiny(row.process.images)
    assert row.encoder()(torch.rand(2, images.channels, 64, 64)).shape[1] in (512, images.channels * 64 * 64)
    if images.channels == 3 and row.name.endswith("x"):
        return  # moments of 12,288 columns take a gigabyte
    full = row.budget("smoke")
    steps = min(2, full.recipe.steps)
    budget = replace(full, recipe=replace(full.recipe, steps=steps, batch=8))
    tiny = replace(row, process=KnownFactors(images), against=replace(row.against, repeats=10))
    (record,) = run(tiny, budget, seeds=(0,), out=tmp_path, measure=here.MEASURE, keep_weights=False)
    assert set(record.readings) == set(record.factors) == set(images.factors)
    assert all(np.isfinite(value) for pair in record.readings.values() for value in pair)
    assert len(record.curve.watched) == (steps > 0)
    assert record.samples.startswith("data:image/png")
