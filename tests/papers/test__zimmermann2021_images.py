"""Table 3 as data: published numbers as printed, settings of the official code, every row trained for two steps."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from zhat.datasets.kitti_masks import REBUILT, _placed
from zhat.papers import _zimmermann2021_images as here
from zhat.training import train

SHARED = (Path("/work/shared"), Path(__file__).parents[3] / "shared")
TARGETS = next((p / "papers" / "targets.json" for p in SHARED if (p / "papers").is_dir()), Path("targets.json"))

# Table 3 as printed: mean and standard deviation over ten seeds, in percent.
PRINTED = {
    "T3.1": (66.1, 4.5),
    "T3.2": (77.1, 1.0),
    "T3.3": (74.1, 4.4),
    "T3.4": (58.3, 5.4),
    "T3.5": (59.9, 5.5),
    "T3.6": (79.6, 5.8),
    "T3.7": (79.4, 1.9),
    "T3.8": (80.9, 3.8),
    "T3.9": (60.2, 8.7),
    "T3.10": (68.4, 6.7),
}
EVERY = (*here.TABLE_3.rows, *here.TABLE_3.references, *here.TABLE_3_PAST.rows)


@pytest.fixture(scope="module")
def pedestrians(tmp_path_factory):
    """A folder of twelve short tracks of random masks."""
    home, frames = tmp_path_factory.mktemp("data"), 12 * 6
    draw = np.random.default_rng(0)
    masks = draw.random((frames, 64, 64)) < 0.2
    meta = np.zeros((12, 5), np.int32)
    meta[:, 3] = np.arange(12)
    (home / "kitti_masks").mkdir()
    np.savez(
        home / "kitti_masks" / REBUILT,
        masks_packed=np.packbits(masks, axis=-1),
        latents=draw.random((frames, 3)).astype(np.float32),
        lengths=np.full(12, 6),
        meta=meta,
    )
    _placed.cache_clear()
    yield home
    _placed.cache_clear()


def test_published_numbers_are_those_of_the_paper():
    assert {row.name: (row.published.mean, row.published.std) for row in here.TABLE_3.rows} == PRINTED


@pytest.mark.skipif(not TARGETS.exists(), reason=f"{TARGETS} is not here")
def test_published_numbers_are_those_of_the_recorded_targets():
    targets = [t for t in json.loads(TARGETS.read_text()) if t["experiment"] == "table3_kitti_masks"]
    wanted = {t["row_id"]: (t["published_mean"], t["published_std"]) for t in targets}
    names = {row.name: row.title.replace(" s,", ",").lower().split(", ") for row in here.TABLE_3.rows}
    assert {f"T3.dt{'.'.join(words)}": PRINTED[name] for name, words in names.items()} == wanted


def test_settings_are_those_of_the_official_code():
    for row in here.TABLE_3.rows:
        how = row.budget("paper")
        assert (how.recipe.steps, how.recipe.batch, how.recipe.lr, how.seeds) == (300_000, 32, 1e-4, 10)
        assert row.process.longest == (1 if row.title.startswith("0.05 s") else 5)
        if "SlowVAE" not in row.title:
            assert row.objective.similarity.p == (1 if "Laplace" in row.title else 2)
            assert row.objective.include_self_pair
            assert ("onto" in repr(row.encoder)) == row.title.endswith("box")


def test_a_box_can_grow_as_far_at_every_budget_of_ours():
    """The sum of all rates bounds how far Adam moves a bound: 30 at the paper's budget."""
    how = {b.name: b.recipe for b in here.TABLE_3.row("T3.3").budgets}
    reach = {
        name: dict(r.lr_scale).get("bound", 1.0) * sum(r.lr * r.schedule(i, r.steps) for i in range(r.steps))
        for name, r in how.items()
    }
    assert reach["paper"] == pytest.approx(30)
    assert reach["fast"] == pytest.approx(35, rel=0.01)
    assert reach["laptop"] == pytest.approx(35, rel=0.01)


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.name)
def test_every_row_trains(row, pedestrians, monkeypatch):
    monkeypatch.setenv("ZHAT_DATA", str(pedestrians))
    recipe = row.budget("fast").recipe.on("cpu")
    if recipe.steps:
        recipe = replace(recipe, steps=2, batch=4)
    run = train(row.encoder, row.process, row.objective, recipe)
    assert len(run.curves[0].loss) == recipe.steps
    assert all(math.isfinite(v) for v in run.curves[0].loss)
