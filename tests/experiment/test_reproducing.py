import shutil
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import permutations
from multiprocessing import get_context
from threading import Thread
from types import SimpleNamespace

import pytest

from tests.experiment.test_running import ROW
from zhat import report, runs
from zhat.equivalence import AFFINE, IDENTITY
from zhat.errors import BadInput, Diverged, UnknownName
from zhat.experiment import Latents, Part, Reading, reproduce, verdict
from zhat.experiment.reproducing import _read_off
from zhat.metrics import CCA, CKA, Recovery
from zhat.objectives import Supervised
from zhat.report.comparison import markdown, page
from zhat.results import Judgement, Published, from_json, to_json

R2 = Recovery(AFFINE, holdout=0)
TABLE = Part(
    paper="zimmermann2021",
    label="Table 9",
    caption="a table for tests",
    measure=R2,
    score="R2",
    rows=tuple(
        replace(ROW, name=f"T9.{i}", published=Published(99.0, 1.0), identity=Published(60.0, 50.0), supervised="ref")
        for i in (1, 2)
    ),
    references=(replace(ROW, name="ref", objective=Supervised(), published=Published(99.0, 1.0)),),
)


def last(part, **how):
    results = list(reproduce(part, budget="short", seeds=2, **how))
    return results[-1]


def test_a_table_grows_row_by_row_and_is_complete_at_the_end(tmp_path):
    results = list(reproduce(TABLE, budget="short", seeds=2, out=tmp_path))
    assert [len(r.rows) for r in results] == [1, 2]
    assert all(r.expected == 2 for r in results)
    table = results[-1]
    row = table.rows[0]
    assert (row.name, row.seeds) == ("T9.1", (0, 1))
    assert len(row.learned.values) == len(row.learned.held_out) == 2
    assert row.learned.low < row.learned.high
    assert row.learned.verdict in ("reproduced", "exceeded", "missed")
    assert row.identity.verdict == "reproduced"
    assert row.supervised.published == Published(99.0, 1.0)
    assert row.prediction.holds == "yes"
    assert table.provenance["torch"]
    assert sum(table.verdicts.values()) == 2
    assert from_json(to_json(table)) == table
    assert (tmp_path / "zimmermann2021" / "table-9" / ROW.folder(ROW.budget("short")).replace("tiny", "T9.1")).is_dir()


def test_only_the_rows_asked_for_and_what_they_refer_to_are_run(tmp_path):
    table = last(TABLE, rows=["T9.2"], out=tmp_path)
    assert [r.name for r in table.rows] == ["T9.2"]
    folders = sorted(p.name for p in (tmp_path / "zimmermann2021" / "table-9").iterdir())
    assert folders == ["T9.2", "ref"]
    with pytest.raises(UnknownName, match="no row named 'T9.7'. Known: T9.1, T9.2"):
        last(TABLE, rows=["T9.7"], out=tmp_path)


@pytest.mark.parametrize(
    "pool", [lambda: ThreadPoolExecutor(2), lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn"))]
)
def test_rows_spread_over_an_executor_give_the_same_table(tmp_path, pool):
    with pool() as executor:
        spread = last(TABLE, out=tmp_path / "spread", executor=executor)
    here = last(TABLE, out=tmp_path / "here")
    assert sorted(r.name for r in spread.rows) == ["T9.1", "T9.2"]
    for row in here.rows:
        (other,) = (r for r in spread.rows if r.name == row.name)
        assert other.learned.values == pytest.approx(row.learned.values, abs=0.05)


class InThisOrder(Executor):
    """Runs the tasks one after the other, in an order of its own, once all are submitted."""

    def __init__(self, *order: str):
        self.order, self.waiting = order, {}

    def submit(self, fn, row, *args, **how):
        future = Future()

        def work():
            try:
                future.set_result(fn(row, *args, **how))
            except Exception as error:
                future.set_exception(error)

        self.waiting[row.name] = work
        if len(self.waiting) == len(self.order):
            Thread(target=lambda: [self.waiting[name]() for name in self.order]).start()
        return future


def test_the_last_result_is_complete_in_whatever_order_the_rows_finish(tmp_path):
    for order in permutations(("ref", "T9.1", "T9.2")):  # trained once, then read from their folders
        assert len(last(TABLE, out=tmp_path, executor=InThisOrder(*order)).rows) == 2, order


def test_what_is_finished_is_set_side_by_side_without_training(tmp_path, monkeypatch):
    with pytest.raises(BadInput, match="no finished row of Table 9 at budget short.*--no-train"):
        last(TABLE, out=tmp_path, train=False)
    whole = last(TABLE, out=tmp_path, rows=["T9.2"])
    monkeypatch.setattr("zhat.experiment.running.train", None)  # would fail if it were called
    (table,) = reproduce(TABLE, budget="short", seeds=2, out=tmp_path, train=False)
    assert [r.name for r in table.rows] == ["T9.2"]
    assert table.expected == 2
    assert table.rows[0].supervised == whole.rows[0].supervised
    shutil.rmtree(tmp_path / "zimmermann2021" / "table-9" / "ref")
    (table,) = reproduce(TABLE, budget="short", seeds=2, out=tmp_path, train=False)
    assert table.rows[0].supervised is None
    assert table.rows[0].learned == whole.rows[0].learned
    assert "T9.2" in page(table)
    with pytest.raises(BadInput, match="with the seeds asked for"):
        list(reproduce(TABLE, budget="short", seeds=3, out=tmp_path, train=False))


def test_a_verdict_that_rests_on_the_spread_of_our_seeds_says_so(tmp_path):
    whole, published = last(TABLE, rows=["T9.1"], out=tmp_path), Published(98.8, 0.02)
    (row,) = whole.rows

    def told(*values, failure=False):
        learned = replace(row.learned, published=published, values=values, verdict=verdict(published, values))
        return replace(whole, rows=(replace(row, learned=learned, failure=failure),)).summary

    because = "T9.1 counts only through the spread of our seeds: 98.80, 98.82, 81.27."
    assert told(98.80, 98.82, 81.27) == f"1 reproduced, of 1 rows. {because}"
    assert told(98.80, 98.82, 98.60) == "1 reproduced, of 1 rows."
    assert told(98.80, 98.82, 81.27, failure=True) == "1 reproduced, of 1 rows."
    assert told(90.0, 90.1, 90.2) == "1 missed, of 1 rows."


def test_progress_names_the_row(tmp_path):
    told = []
    last(TABLE, out=tmp_path, progress=lambda *now: told.append(now))
    assert {name for name, *_ in told} == {"ref", "T9.1", "T9.2"}


def parity(trained):
    return 0.5, 0.25


def test_where_the_paper_shows_a_low_number_a_lower_one_of_ours_is_no_miss():
    records = [SimpleNamespace(name="a row", readings={"MCC": (0.5, 0.4)}, factors={})]

    def said(published, failure):
        reading = Reading("MCC", parity, Published(published, 1.0), failure=failure)
        return _read_off(reading, records, judged=True).verdict

    assert said(60.0, failure=False) == "missed"
    assert said(60.0, failure=True) == "reproduced"
    assert said(40.0, failure=True) == "missed"
    assert said(40.0, failure=False) == "exceeded"


def test_rows_may_share_a_training_and_carry_further_numbers(tmp_path):
    readings = (
        Reading("share", parity, Published(50.0, 0.0)),
        Reading("error", parity, Published(0.1, 0.0), in_percent=False),
        Reading("the score again", None, Published(0.0, 0.0)),
    )
    first = replace(ROW, name="T9.1", published=Published(99.0, 1.0), readings=readings[:2])
    second = replace(first, name="T9.2", readings=readings, same_as="T9.1")
    table = last(replace(TABLE, rows=(first, second), references=()), out=tmp_path)
    assert [p.name for p in (tmp_path / "zimmermann2021" / "table-9").iterdir()] == ["T9.1"]
    one, two = table.rows
    assert one.learned == two.learned
    assert one.readings["share"].values == (50.0, 50.0)
    assert one.readings["share"].held_out == (25.0, 25.0)
    assert one.readings["share"].verdict == "reproduced"
    assert one.readings["error"].values == (0.5, 0.5)
    assert one.readings["error"].verdict == "missed"
    assert two.readings["the score again"].values == two.learned.values
    assert table.reading_verdicts == {"reproduced": 2, "exceeded": 1, "missed": 2}
    assert "Errors (MAE)" in table.judgement.rule
    assert from_json(to_json(table)) == table
    text = markdown(table)
    assert "50.00 ± 0.00 (50.00 ± 0.00), held out 25.00, reproduced" in text
    assert "2 reproduced, 1 exceeded, 2 missed" in text
    assert "supervised" not in text  # nothing stands between bounds here
    assert page(table)
    alone = last(replace(TABLE, rows=(first, second), references=()), rows=["T9.2"], out=tmp_path)
    assert [r.name for r in alone.rows] == ["T9.2"]


def test_a_row_may_have_a_score_of_its_own(tmp_path):
    own = replace(ROW, name="T9.1", measure=Recovery(IDENTITY, holdout=0))
    table = last(replace(TABLE, rows=(own, replace(ROW, name="T9.2")), references=()), out=tmp_path)
    strict, loose = (row.learned.mean for row in table.rows)
    assert strict < loose - 10  # the same training, read up to nothing and up to an affine map


def test_runs_without_a_reading_that_is_asked_for_later_say_so(tmp_path):
    row = replace(ROW, name="T9.1")
    last(replace(TABLE, rows=(row,), references=()), out=tmp_path)
    later = replace(row, readings=(Reading("share", parity),))
    with pytest.raises(BadInput, match="hold no 'share': they were finished before .* --no-resume"):
        last(replace(TABLE, rows=(later,), references=()), out=tmp_path)


@dataclass(frozen=True)
class Half:
    """A measure of somebody's own: nothing but the contract of a metric."""

    up_to = AFFINE

    def __call__(self, z, h):
        return replace(R2.plain(z, h), name="half", value=0.5, per_latent=(0.5,) * z.shape[1])


@pytest.mark.parametrize("measure", [CKA(), CCA(), Half()], ids=lambda m: type(m).__name__)
def test_anything_with_the_contract_of_a_metric_can_be_what_a_table_prints(measure, tmp_path):
    table = last(replace(TABLE, measure=measure, rows=TABLE.rows[:1]), out=tmp_path)
    (row,) = table.rows
    assert all(0 < value <= 100 for value in (*row.learned.values, *row.learned.held_out, *row.identity.values))
    assert row.learned.values == (50.0, 50.0) or not isinstance(measure, Half)


class Stricter:
    """A judge of somebody's own: every row has to reach a level."""

    load = None

    def __call__(self, evidence):
        worst = min(row.learned.mean for row in evidence.rows)
        return Judgement(claim=evidence.open or f"the lowest row has {worst:.1f}%", holds=worst > 99.9)


def test_a_judge_of_ones_own_is_one_class(tmp_path):
    first, second = reproduce(replace(TABLE, judge=Stricter()), budget="short", seeds=1, out=tmp_path)
    assert first.judgement.claim == "not all rows are finished"
    assert second.summary.startswith("By our rule the paper's claim does not hold: the lowest row has ")
    assert "the lowest row has" in page(second)
    assert from_json(to_json(second)) == second


@dataclass(frozen=True)
class Named(Latents):
    """Known factors one by one: the mean of each latent, by name."""

    def scored(self, record, trained, row, budget, measure):
        found = super().scored(record, trained, row, budget, measure)
        score = replace(found.held_out, value=0.5, low=0.4, high=0.6, chance=0.1)
        return replace(found, readings={"area": (0.7, 0.5)}, factors={"area": score})


def test_a_row_may_show_a_known_factor_with_its_interval_and_chance(tmp_path):
    whole = replace(TABLE.rows[0], against=Named(), supervised="", identity=None)
    area = replace(whole, name="T9.3", shows="area", same_as="T9.1", published=Published(72.0, 1.0, rounding=0.5))
    found = last(replace(TABLE, rows=(whole, area)), out=tmp_path)
    cell = found.rows[1].learned
    assert (cell.values, cell.held_out) == ((70.0, 70.0), (50.0, 50.0))
    assert (cell.low, cell.high, cell.chance, cell.verdict) == (40.0, 60.0, 10.0, "reproduced")
    assert "72 ± 1 | 70.00 ± 0.00 | 50.00 [40.00, 60.00] | reproduced | 10.00" in markdown(found)
    assert from_json(to_json(found)) == found
    with pytest.raises(BadInput, match="hold no 'size'"):
        last(replace(TABLE, rows=(whole, replace(area, shows="size"))), out=tmp_path)


def test_a_row_without_steps_shows_the_encoder_as_it_was_built(tmp_path):
    budget = ROW.budget("short")
    untrained = replace(ROW, budgets=(replace(budget, recipe=replace(budget.recipe, steps=0)),))
    table = last(replace(TABLE, rows=(untrained,)), out=tmp_path)
    assert table.rows[0].seconds == 0
    assert table.rows[0].curves[0].steps == ()
    assert "Nothing was trained" in report.render([runs.read(f) for f in runs.scan(tmp_path)])
    assert "row by row" in page(table).lower()


def diverges(h, batch):
    return h.sum() * float("nan")


@pytest.mark.parametrize("executor", [None, InThisOrder("T9.1", "T9.2")])
def test_a_row_that_fails_does_not_keep_the_others_from_finishing(tmp_path, executor):
    good = replace(TABLE.rows[1], supervised="")
    table = replace(TABLE, rows=(replace(good, name="T9.1", objective=diverges), good), references=())
    seen = []
    with pytest.raises(Diverged, match="the loss of seed 0 became nan"):
        seen.extend(reproduce(table, budget="short", seeds=2, out=tmp_path, executor=executor))
    for result in reproduce(table, budget="short", seeds=2, out=tmp_path, train=False):
        assert [row.name for row in result.rows] == ["T9.2"]
