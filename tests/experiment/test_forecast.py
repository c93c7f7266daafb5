"""How long trainings will take: what is measured, what is counted, what is left out."""

import math
from dataclasses import replace

import pytest

from tests.experiment.test_reproducing import TABLE
from tests.experiment.test_running import ROW
from zhat.experiment import forecast as here
from zhat.experiment import run
from zhat.experiment.forecast import Forecast
from zhat.training import Muon

SHORT = ROW.budget("short")  # 20 steps, five seeds
LONG = replace(SHORT, name="long", recipe=replace(SHORT.recipe, steps=1000))


@pytest.fixture
def measured(monkeypatch):
    asked = []

    def a_tenth(row, budget, **how):
        asked.append((row, budget))
        return 0.1

    monkeypatch.setattr(here, "seconds_per_step", a_tenth)
    return asked


def test_a_row_takes_its_step_times_steps_and_seeds(measured):
    found = Forecast("cpu")
    assert found.seconds(ROW, LONG) == pytest.approx(0.1 * 1000 * 5)
    assert found.seconds(ROW, LONG, 2) == pytest.approx(0.1 * 1000 * 2)


def test_equal_steps_are_measured_once(measured):
    found = Forecast("cpu")
    found.seconds(ROW, LONG)
    found.seconds(ROW, SHORT)  # as many rows, the same network and loss: only the number of steps differs
    assert len(measured) == 1
    found.seconds(ROW, replace(LONG, recipe=replace(LONG.recipe, muon=Muon())))
    assert len(measured) == 2


def test_a_step_nobody_would_wait_for_is_not_measured(measured):
    huge = replace(LONG, recipe=replace(LONG.recipe, batch=2**30))
    assert Forecast("cpu").seconds(ROW, huge) == math.inf
    assert not measured


def test_what_is_left_counts_references_and_leaves_out_what_is_finished(measured, tmp_path):
    rows = [replace(row, budgets=(LONG,)) for row in (*TABLE.rows, *TABLE.references)]
    table = replace(TABLE, rows=tuple(rows[:2]), references=(rows[2],))
    assert Forecast("cpu").left(table, table.rows, "long", 2, tmp_path) == pytest.approx(3 * 2 * 100)
    assert Forecast("cpu").left(table, table.rows[:1], "long", 2, tmp_path) == pytest.approx(2 * 2 * 100)
    home = tmp_path / table.paper / table.name / rows[2].folder(LONG)
    (home / "seed-0").mkdir(parents=True)
    assert Forecast("cpu").left(table, table.rows[:1], "long", 2, tmp_path) == pytest.approx(3 * 100)


def test_a_few_steps_are_done_before_they_are_measured(measured, tmp_path):
    assert Forecast("cpu").left(TABLE, TABLE.rows, "short", 2, tmp_path) == 0.0  # 40 steps a row
    assert not measured


def test_a_step_is_measured_with_the_encoder_of_the_budget(tmp_path):
    from zhat.encoders import mlp
    from zhat.fresh import Fresh

    own = replace(SHORT, encoder=Fresh(mlp, 3, 3, widths=(16,)))
    assert Forecast("cpu").seconds(ROW, own) > 0
    (record,) = run(ROW, own, seeds=(0,), out=tmp_path)
    assert "widths=(16,)" in record.settings["encoder"]
