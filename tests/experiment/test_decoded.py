from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

from zhat import runs
from zhat.datasets import KnownFactors
from zhat.datasets.known_factors import Recording
from zhat.encoders import mlp
from zhat.equivalence import LINEAR
from zhat.errors import BadInput, MissingData, TooFewRows
from zhat.experiment import Budget, Decoded, Part, Row, Trained, reproduce
from zhat.experiment.decoded import decoded
from zhat.fresh import Fresh
from zhat.metrics import Recovery, pearson
from zhat.objectives import CrossEntropy, InfoNCE
from zhat.report.comparison import latex, markdown, page
from zhat.results import Published, from_json, to_json
from zhat.training import Constant, Reached, Recipe


@dataclass(frozen=True)
class Dials:
    """Grey images with a few lit points: a kind, a size, a turn and a factor that never changes; some noise."""

    n: int = 900
    there: bool = True
    factors: ClassVar = ("kind", "size", "turn", "still")
    category: ClassVar = "kind"
    classes: ClassVar = 3
    periods: ClassVar = {"turn": 12.0}
    channels: ClassVar = 1

    def find(self):
        if not self.there:
            raise MissingData("dials.npz is nowhere.", wanted="dials.npz is not among the recorded data.")
        return Path("dials")

    def read(self, path):
        draw = np.random.default_rng(0)
        codes = np.stack([draw.integers(0, k, self.n) for k in (3, 8, 12)] + [np.zeros(self.n, int)], 1)
        angle = codes[:, 2] * (2 * np.pi / 12)
        lit = [
            60 * (codes[:, 0] == 1),
            60 * (codes[:, 0] == 2),
            20 * codes[:, 1],
            100 * np.cos(angle),
            80 * np.sin(angle),
        ]
        points = np.zeros((self.n, 64, 64, 1), np.uint8)
        points[:, 5, 5:10, 0] = np.clip(np.stack(lit, 1) + 100 + draw.normal(0, 20, (self.n, 5)), 0, 255)
        return Recording(points, codes)


class Band(nn.Module):
    """The lines of points that hold the lit ones."""

    def forward(self, x):
        return x[:, 0, 4:7].flatten(1)


WORLD = KnownFactors(Dials())
ENCODER = Fresh(mlp, (1, 64, 64), None, widths=(16,), slope=0.0, batch_norm=True)
OBJECTIVE = Fresh(CrossEntropy, 16, 3, bias=True)
BUDGETS = (
    Budget("short", Recipe(40, 128, 1e-2, Constant(), until=Reached(0.8, 5)), seeds=2),
    Budget("none", Recipe(0), seeds=2),
)


def by_hand(part):
    x = torch.cat([b.x[0, :, 0, 4:7].flatten(1) for b in part.every(100)]).double().numpy() / 255
    return x, torch.cat([b.z[0] for b in part.every(100)]).double().numpy()


def test_scores_are_those_of_plain_least_squares():
    found = decoded(Band(), WORLD, repeats=50)
    (x, z), (x_val, z_val), (x_test, z_test) = (by_hand(p) for p in (WORLD, WORLD.validation, WORLD.held_out))
    assert list(found) == ["kind", "size", "turn"]  # what never changes has no score
    for name in ("kind", "size"):
        j = WORLD.factors.index(name)
        y = (z[:, j] - z[:, j].mean()) / z[:, j].std()
        weights = np.linalg.pinv(x.T @ x, rcond=1e-10, hermitian=True) @ x.T @ y
        by_paper, ours = found[name]
        assert by_paper == pytest.approx(np.corrcoef(x_val @ weights, z_val[:, j])[0, 1], abs=1e-6)
        lit = x.std(0) > 0
        line = LinearRegression().fit(x[:, lit], y)
        assert ours.value == pytest.approx(np.corrcoef(line.predict(x_test[:, lit]), z_test[:, j])[0, 1], abs=1e-6)
        assert (ours.n, ours.n_fit, ours.held_out) == (90, 720, True)
        assert ours.low < ours.value < ours.high


def test_a_circular_factor_is_read_as_cosine_and_sine():
    _, ours = decoded(Band(), WORLD, repeats=50)["turn"]
    (x, z), (x_test, z_test) = (by_hand(p) for p in (WORLD, WORLD.held_out))
    lit = x.std(0) > 0
    each = []
    for wave in (np.cos, np.sin):
        line = LinearRegression().fit(x[:, lit], wave(z[:, 2] * np.pi / 6))
        each.append(np.corrcoef(line.predict(x_test[:, lit]), wave(z_test[:, 2] * np.pi / 6))[0, 1])
    assert ours.per_latent == pytest.approx(each, abs=1e-6)
    assert ours.value == pytest.approx(np.mean(each), abs=1e-6)
    assert ours.value > 0.9  # its code as a number would jump where the turn is complete


def test_chance_is_near_zero_and_so_is_noise():
    for _, score in decoded(Band(), WORLD, repeats=50).values():
        assert abs(score.chance) < 5 / np.sqrt(score.n * 20)
        assert score.chance < score.chance_high < 5 / np.sqrt(score.n)

    class Noise(nn.Module):
        def forward(self, x):
            return torch.randn(len(x), 4, generator=torch.Generator().manual_seed(len(x)))

    for by_paper, score in decoded(Noise(), WORLD, repeats=50).values():
        assert abs(score.value) < 5 / np.sqrt(score.n)
        assert abs(by_paper) < 5 / np.sqrt(score.n)


def test_blocks_of_rows_do_not_move_a_score(monkeypatch):
    whole = decoded(Band(), WORLD, repeats=20)
    monkeypatch.setattr("zhat.experiment.decoded.VALUES", 64 * 64 * 100)
    cut = decoded(Band(), WORLD, repeats=20)
    for name in whole:
        assert cut[name][0] == pytest.approx(whole[name][0], abs=1e-9)
        assert cut[name][1].value == pytest.approx(whole[name][1].value, abs=1e-9)


def test_what_is_watched_is_how_often_the_head_names_the_label():
    head = CrossEntropy(2, 3, bias=True)
    with torch.no_grad():
        head.rows.zero_()
        head.offsets[1] = 1.0  # names everything 1
    share = np.mean(by_hand(WORLD.validation)[1][:, 0] == 1)

    class Two(nn.Module):
        def forward(self, x):
            return x.flatten(1)[:, :2]

    budget = BUDGETS[0]
    trained = Trained(Two(), head, WORLD, budget.rows, "cpu")
    assert Decoded().watch(trained, budget) == pytest.approx(share)
    with pytest.raises(BadInput, match="InfoNCE has no `logits`. Use CrossEntropy"):
        Decoded().watch(replace(trained, objective=InfoNCE()), budget)


def test_images_must_be_kept_from_training_and_enough():
    with pytest.raises(BadInput, match="keeps none. Use KnownFactors"):
        decoded(nn.Flatten(), WORLD.held_out)
    with pytest.raises(TooFewRows, match="holds 9 images; a correlation needs at least 10"):
        Decoded().refuse_few(nn.Flatten(), KnownFactors(Dials(n=90)), BUDGETS[0])


def row(name, shows, *, process=WORLD, encoder=ENCODER, objective=OBJECTIVE, same_as="", published=None):
    how = {"same_as": same_as, "shows": shows, "against": Decoded(repeats=20)}
    return Row(name, f"{shows} of {name}", process, encoder, objective, BUDGETS, published, **how)


LOST = KnownFactors(Dials(there=False))
TABLE = Part(
    "reizinger2024",
    "Table 9",
    "a table for tests",
    "Pearson r",
    rows=(
        row("T9.1", "kind", published=Published(90, 1, rounding=0.5)),
        row("T9.2", "size", same_as="T9.1", published=Published(99, 0, rounding=0.5)),
        row("T9.3", "kind", process=LOST, published=Published(42, 0, rounding=0.5)),
        row("T9.4", "size", process=LOST, same_as="T9.3"),
    ),
    measure=Recovery(LINEAR, agree=pearson),
)


def test_rows_show_their_factor_and_rows_without_data_are_not_measured(tmp_path):
    part = replace(TABLE, notes=("of this part",))
    table = list(reproduce(part, budget="short", out=tmp_path, notes=("of the paper",)))[-1]
    assert table.notes == ("of this part",)
    assert [r.name for r in table.rows] == ["T9.1", "T9.2"]
    assert table.expected == 4
    cell = table.rows[1].learned
    assert cell.low < cell.held_out_mean < cell.high
    assert abs(cell.chance) < 10
    assert cell.verdict
    assert [a.name for a in table.absent] == ["T9.3", "T9.4"]
    assert table.absent[0].published == Published(42, 0, rounding=0.5)
    command = "zhat reproduce reizinger2024 --table 9 --budget short --data FOLDER"
    (said,) = table.not_measured
    assert said.startswith("T9.3, T9.4: dials.npz is not among the recorded data. With it in FOLDER")
    assert said.endswith(command)
    assert "2 of 4 are not measured, because their data are not here." in table.summary
    assert "not finished" not in table.summary
    assert from_json(to_json(table)) == table
    for text in (markdown(table), page(table)):
        assert "Not measured: T9.3, T9.4" in text
        assert command in text
    assert "| T9.3 | kind of T9.3 | 42 ± 0 | not measured | – | – | – |" in markdown(table)
    assert r"T9.3 & kind of T9.3 & 42 $\pm$ 0 & not measured" in latex(table)


def test_finished_rows_need_no_data_and_rows_that_are_not_finished_are_named_without_training(tmp_path):
    list(reproduce(TABLE, budget="short", out=tmp_path))
    again = list(reproduce(TABLE, budget="short", out=tmp_path, train=False))[-1]
    assert [r.name for r in again.rows] == ["T9.1", "T9.2"]
    assert [a.name for a in again.absent] == ["T9.3", "T9.4"]
    finished = replace(TABLE, rows=TABLE.rows[:2])
    for run in runs.scan(tmp_path):
        assert runs.read(run).factors
    assert list(reproduce(finished, budget="short", out=tmp_path))[-1].absent == ()


def test_where_no_row_has_its_data_the_sentence_is_raised(tmp_path):
    with pytest.raises(MissingData, match="dials.npz is nowhere"):
        list(reproduce(TABLE, budget="short", rows=["T9.3", "T9.4"], out=tmp_path))


def test_pixels_are_decoded_without_training(tmp_path):
    pixels = row("T9.x", "size", encoder=Fresh(nn.Flatten), objective=Fresh(CrossEntropy, 4096, 3))
    table = list(reproduce(replace(TABLE, rows=(pixels,)), budget="none", out=tmp_path))[-1]
    seeds = table.rows[0].learned.held_out
    expected = [100 * decoded(Band(), replace(WORLD, seed=s), repeats=1)["size"][1].value for s in (0, 1)]
    assert seeds == pytest.approx(expected)  # all other points are black
    assert seeds[0] != seeds[1]  # every seed has a split of its own


def test_early_stopping_is_part_of_the_record(tmp_path):
    list(reproduce(replace(TABLE, rows=TABLE.rows[:1]), budget="short", out=tmp_path))
    records = [runs.read(run) for run in runs.scan(tmp_path)]
    assert all(r.curve.watched_name == "validation accuracy" for r in records)
    assert max(records[0].curve.watched) >= 0.8
    assert records[0].curve.steps[-1] < 40
