"""A listing of runs says what the runs say, and filters, sorts and averages it."""

import shutil
from dataclasses import replace

import pytest

from tests.test_results import record, score
from zhat import runs
from zhat.cli.completing import RUN_FIELDS
from zhat.encoders import mlp
from zhat.equivalence import AFFINE
from zhat.errors import BadInput
from zhat.experiment.finished import FIELDS, differences, finished, known, ordered, together, where


def kept(root, row, seed, value, **more):
    """One run as `zhat reproduce` leaves it."""
    paper = replace(score(value, AFFINE), held_out=False)
    one = replace(
        record(),
        name=f"setting {row}",
        seed=seed,
        by_paper=paper,
        held_out=replace(paper, value=value - 0.01, held_out=True),
        settings={"process": f"Pairs(Uniform(Box(2)), p={row})", "encoder": "mlp"},
        provenance={"date": f"2026-11-1{seed} 10:00 UTC", "commit": "abcdef123456", "zhat": "0.1"},
        **more,
    )
    folder = root / "runs" / "paper1999" / "table-1" / row / "fast-0123abcd" / f"seed-{seed}"
    return runs.write(folder, one, mlp(2, 2, widths=(4,), seed=0))


@pytest.fixture
def three(tmp_path):
    kept(tmp_path, "T1.2", 0, 0.9)
    kept(tmp_path, "T1.2", 1, 0.8)
    kept(tmp_path, "T1.10", 0, 0.5, readings={"error": (0.25, 0.3)})
    return tmp_path


def test_a_run_is_listed_with_its_place_and_its_scores(three):
    found, damaged = finished(three)
    assert damaged == ()
    one = next(run for run in found if run.row == "T1.2" and run.seed == 1)
    assert (one.paper, one.part, one.budget, one.setting) == ("paper1999", "table-1", "fast", "setting T1.2")
    assert (one.score, one.held_out, one.measure) == (80.0, 79.0, "R2 up to affine")
    assert (one["date"], one["linear"]) == ("2026-11-11 10:00 UTC", 70.0)
    assert one["error"] is None
    inside = finished(three / "runs" / "paper1999" / "table-1" / "T1.2")[0]
    assert [(run.paper, run.row) for run in inside] == [("paper1999", "T1.2")] * 2


def test_a_run_outside_tables_has_the_loosest_class_as_its_score(tmp_path):
    runs.write(tmp_path / "demo" / "demo-0123abcd" / "seed-3", record(), None)
    (one,) = finished(tmp_path)[0]
    assert (one.paper, one.part, one.row, one.budget) == ("", "", "demo", "demo")
    assert one.score is None
    assert one.held_out == pytest.approx(70.0)


def test_a_damaged_run_is_named_and_the_others_are_listed(three):
    spoiled = next(three.rglob("score.json"))
    spoiled.write_text("{}")
    found, damaged = finished(three)
    assert len(found) == 2
    assert len(damaged) == 1
    assert str(spoiled) in damaged[0]


@pytest.mark.parametrize(
    ("conditions", "rows"),
    [
        (["score>=80"], {("T1.2", 0), ("T1.2", 1)}),
        (["score>80"], {("T1.2", 0)}),
        (["row=T1.1*"], {("T1.10", 0)}),
        (["row!=T1.1*", "seed = 1"], {("T1.2", 1)}),
        (["date<2026-11-11"], {("T1.2", 0), ("T1.10", 0)}),
        (["error<=0.25"], {("T1.10", 0)}),
        (["error!=7"], {("T1.10", 0)}),  # a run without the number meets no condition on it
        (["linear<100", "score<1"], set()),
    ],
)
def test_runs_are_filtered(three, conditions, rows):
    assert {(run.row, run.seed) for run in where(finished(three)[0], conditions)} == rows


def test_runs_are_sorted_as_people_count(three):
    found = finished(three)[0]
    assert [run.row for run in ordered(found, "row")] == ["T1.2", "T1.2", "T1.10"]
    assert [run.score for run in ordered(found, "-score")] == [90.0, 80.0, 50.0]
    assert ordered(found, "error")[0].row == "T1.10"  # the others have none


def test_runs_alike_in_a_field_are_averaged(three):
    first, second = sorted(together(finished(three)[0], ["row"], ["score", "error"]), key=lambda group: -group.runs)
    assert first.alike == {"row": "T1.2"}
    assert first.means == {"score": 85.0}
    assert first.stds["score"] == pytest.approx(50**0.5)
    assert second.means == {"score": 50.0, "error": 0.25}
    assert second.stds["score"] is None


def test_settings_are_compared_without_what_they_share(three):
    assert differences(finished(three)[0]) == {"process": {"…p=T1.10…": ["T1.10"], "…p=T1.2…": ["T1.2"]}}
    shutil.rmtree(three / "runs" / "paper1999" / "table-1" / "T1.10")
    assert differences(finished(three)[0]) == {}


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        (["score"], "a condition is a field, one of = != < <= > >= and a value"),
        (["scores>3"], "there is no field named 'scores'. Known: paper, part, row"),
        (["score>high"], "the condition 'score>high' compares a number"),
    ],
)
def test_a_condition_that_cannot_be_asked_gets_a_sentence(three, conditions, message):
    with pytest.raises(BadInput, match=message):
        where(finished(three)[0], conditions)


def test_a_shell_is_offered_the_fields_of_a_run(three):
    assert RUN_FIELDS == FIELDS
    assert known(finished(three)[0], "error") == "error"
