"""Which row scores highest, and what the seeds can tell."""

import random
import statistics
from dataclasses import replace

import pytest
import torch

from tests.experiment.test_sweeping import ROW
from tests.report.test_comparison import TABLE
from zhat.experiment import Evidence, Part
from zhat.experiment.ranking import Ranked, difference
from zhat.results import Measured


def judged(*scores, worlds=1, seeds=None):
    rows = tuple(
        replace(
            TABLE.rows[0],
            name=f"r{i}",
            learned=Measured(None, s, s),
            seeds=tuple(range(len(s))) if seeds is None else seeds[i],
            curves=(),
            failure=False,
            identity=None,
            supervised=None,
        )
        for i, s in enumerate(scores)
    )
    chosen = tuple(
        replace(ROW, process=replace(ROW.process, seed=i % worlds), name=row.name) for i, row in enumerate(rows)
    )
    part = Part("mine", "Sweep", "a caption", "R2", chosen)
    return Ranked()(Evidence(part, chosen, rows, "tiny", torch.device("cpu"), tuple))


def test_the_best_row_is_named_first_and_the_others_in_order():
    said = judged((50.0, 52.0, 51.0), (90.0, 91.0, 92.0), (89.9, 90.9, 92.2))
    assert said.claim == "r1 has the highest held-out R2: 91.00 (mean of 3 seeds)"
    assert [(one.claim, one.holds) for one in said.claims] == [
        ("r1 recovers more than r2", None),
        ("r1 recovers more than r0", True),
    ]
    assert "the 97.5% interval" in said.claims[0].rule
    assert "seed by seed" in said.rule


def test_rows_of_different_worlds_are_not_paired():
    apart = judged((50.0, 60.0, 70.0), (51.0, 61.0, 71.0), worlds=2)
    together = judged((50.0, 60.0, 70.0), (51.0, 61.0, 71.0))
    other_seeds = judged((50.0, 60.0, 70.0), (51.0, 61.0, 71.0), seeds=((0, 1, 2), (3, 4, 5)))
    assert together.claims[0].holds is True  # one point in every world
    assert apart.claims[0].holds is other_seeds.claims[0].holds is None
    assert "independent seeds" in apart.rule


def test_one_seed_gives_an_order_and_no_interval():
    said = judged((50.0,), (90.0,))
    assert said.claims[0].holds is None
    assert said.claims[0].why == "40.00 points of R2; one seed gives no interval."
    assert judged((50.0,)).claims == ()


@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_holds_the_difference_as_often_as_it_says(paired):
    draw, missed, times = random.Random(0), 0, 500
    for _ in range(times):
        worlds = [draw.gauss(0, 5) for _ in range(4)] if paired else [0.0] * 4
        low, high = difference(
            [1 + w + draw.gauss(0, 1) for w in worlds],
            [w + draw.gauss(0, 2) for w in worlds],
            level=0.9,
            paired=paired,
        )
        missed += not low <= 1 <= high
    assert abs(missed / times - 0.1) < 4 * (0.1 * 0.9 / times) ** 0.5


def test_seeds_that_do_not_vary_give_a_point():
    assert difference([3.0, 3.0], [1.0, 1.0], paired=False) == (2.0, 2.0)
    assert difference([3.0], [1.0, 1.0]) == (None, None)
    low, high = difference([3.0, 5.0], [1.0, 2.0])
    assert statistics.fmean((low, high)) == pytest.approx(2.5)
