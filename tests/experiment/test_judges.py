from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.experiment.test_running import ROW
from zhat.equivalence import AFFINE
from zhat.experiment import Along, Part, reproduce, verdict
from zhat.experiment.judges import RULE_OF_EFFECTS, verdict_of_effect, verdict_of_error
from zhat.metrics import Recovery
from zhat.results import Bar, Published, from_json, to_json

R2 = Recovery(AFFINE, holdout=0)


def test_the_rule_of_verdicts():
    assert verdict(Published(99.42, 0.05), [99.2]) == "reproduced"  # within 0.3 points
    assert verdict(Published(99.42, 0.05), [99.1]) == "missed"
    assert verdict(Published(99.42, 0.05), [99.73]) == "exceeded"
    assert verdict(Published(58.0, 3.0), [63.9]) == "reproduced"  # within 2 published standard deviations
    assert verdict(Published(90.0, 0.1), [86.0, 92.0]) == "reproduced"  # within 2 of our standard errors
    assert verdict(Published(58.0, 3.0), [63.9], failure=True) == "reproduced"
    assert verdict(Published(58.0, 3.0), [40.0], failure=True) == "reproduced"
    assert verdict(Published(58.0, 3.0), [70.0], failure=True) == "missed"


@given(st.floats(0, 100), st.floats(0, 5), st.lists(st.floats(0, 100), min_size=1, max_size=6))
def test_a_better_score_never_has_a_worse_verdict(mean, std, values):
    order = ["missed", "reproduced", "exceeded"]
    shifted = [v + 1.0 for v in values]
    assert order.index(verdict(Published(mean, std), values)) <= order.index(verdict(Published(mean, std), shifted))


def test_the_rule_for_errors():
    assert verdict_of_error(Published(0.3, 0.0), [0.31]) == "reproduced"
    assert verdict_of_error(Published(0.3, 0.0), [0.1]) == "exceeded"
    assert verdict_of_error(Published(0.0, 0.0), [0.03]) == "missed"


def test_the_rule_of_effects():
    assert verdict_of_effect(Bar(90.0), [91.0, 89.0]) == "shown"  # the mean reaches it
    assert verdict_of_effect(Bar(90.0), [91.0, 88.0]) == "not shown"
    assert verdict_of_effect(Bar(75.0, below=True), [60.0, 75.0]) == "shown"  # where the paper fails, so do we
    assert verdict_of_effect(Bar(75.0, below=True), [60.0, 99.0]) == "not shown"


def test_a_budget_with_a_bar_is_judged_by_it_and_by_no_published_number(tmp_path):
    short = ROW.budget("short")
    numbers = {"published": Published(99.9, 0.0), "identity": Published(99.9, 0.0), "supervised": "ref"}
    rows = tuple(
        replace(ROW, name=f"T9.{i}", budgets=(replace(short, bar=bar, about=("A short way.",)),), **numbers)
        for i, bar in enumerate((Bar(-1000.0), Bar(99.9)))
    )
    table = Part(
        "zimmermann2021", "Table 9", "a table for tests", "R2", rows, R2,
        references=(replace(ROW, name="ref", published=Published(99.9, 0.0)),),
    )  # fmt: skip
    *_, found = reproduce(table, budget="short", seeds=1, out=tmp_path, notes=("A note.",))
    assert [row.learned.verdict for row in found.rows] == ["shown", "not shown"]
    assert {row.identity.verdict for row in found.rows} | {row.supervised.verdict for row in found.rows} == {""}
    assert found.judgement.rule == RULE_OF_EFFECTS
    assert found.summary == "1 shown, 1 not shown, of 2 rows."
    assert found.notes == ("A short way.", "A note.")
    assert from_json(to_json(found)) == found


def test_a_sweep_holds_its_axis_and_judges_the_claim(tmp_path):
    def claim(x, scores):
        return scores[0] > 0, f"at {x[0]} it is {scores[0]:.1f}"

    sweep = Part(
        paper="zimmermann2021",
        label="Figure 9",
        caption="a figure for tests",
        measure=R2,
        score="R2",
        rows=tuple(replace(ROW, name=f"F9.{i}") for i in (1, 2)),
        judge=Along(
            x=(1.0, 2.0),
            name="x",
            mark=1.5,
            mark_name="middle",
            second=lambda row: float(row.name[-1]),
            second_name="number",
            claim=claim,
        ),
    )
    first, second = reproduce(sweep, budget="short", seeds=1, out=tmp_path)
    assert (first.judgement.holds, second.judgement.holds) == (None, True)
    assert first.judgement.claim == "not all points are finished"
    assert second.judgement.axis.values == (1.0, 2.0)
    assert second.judgement.axis.second == (1.0, 2.0)
    assert second.rows[0].learned.verdict == ""
    trial = tuple(replace(b, judged=False) for b in ROW.budgets)
    unjudged = replace(sweep, rows=tuple(replace(r, budgets=trial) for r in sweep.rows))
    *_, untold = reproduce(unjudged, budget="short", seeds=1, out=tmp_path / "trial")
    assert (untold.judgement.holds, untold.judgement.claim) == (None, "budget short is too short for a verdict")
    assert from_json(to_json(second)) == second


def test_a_number_printed_with_few_digits_is_known_to_half_of_its_last_digit():
    assert verdict(Published(100.0, 0.0, rounding=0.5), [99.55]) == "reproduced"
    assert verdict(Published(100.0, 0.0), [99.55]) == "missed"
    assert str(Published(94.0, 1.0, rounding=0.5)) == "94 ± 1"
