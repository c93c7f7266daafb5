import io

from rich.console import Console

from tests.report.test_comparison import BARRED, SWEEP, TABLE
from zhat import Progress, progress
from zhat.progress import Growing, clock, compared, spoken


def test_the_bar_shows_steps_loss_and_time_left():
    screen = io.StringIO()
    with Progress("training", console=Console(file=screen, force_terminal=True, width=100)) as progress:
        progress(50, 100, 1.2345)
        progress._bar.refresh()
    shown = screen.getvalue()
    assert "50/100" in shown
    assert "loss 1.234" in shown
    assert "left" in shown


def drawn(thing, width=80):
    screen = io.StringIO()
    Console(file=screen, width=width).print(thing)
    return screen.getvalue()


def test_the_comparison_fits_80_columns_and_shows_both_numbers():
    for result in (TABLE, SWEEP, BARRED):
        shown = drawn(compared(result))
        assert max(len(line) for line in shown.splitlines()) <= 80
        assert "99.10 ± 0.14" in shown
        assert "…" not in shown
    assert "-43.00" in drawn(compared(TABLE))
    assert "missed" in drawn(compared(TABLE))
    assert "≥ 95" in drawn(compared(BARRED))
    assert "not shown" in drawn(compared(BARRED))


def test_a_growing_table_says_what_runs_and_when_it_ends():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with Growing("a paper", {"T1": 100, "T2": 100}, console=console) as growing:
        growing.started -= 50
        growing.training("T1", 50, 100, 1.5)
        assert "T1: step 50 of 100, loss 1.5 · 0:50 so far, about 2:30 left" in drawn(growing._drawn())
        growing.training("T2", 50, 100, 1.5)
        assert "about 0:25 left" in drawn(growing._drawn())  # 100 steps in 50 s, 50 to go
        growing.grown(TABLE)
        assert "reproduced" in drawn(growing._drawn())


def test_without_a_terminal_each_finished_row_is_one_line():
    screen = io.StringIO()
    with Growing("a paper", {"T1": 100}, console=Console(file=screen, width=80)) as growing:
        growing.grown(TABLE)
        growing.grown(TABLE)
    assert screen.getvalue().splitlines() == ["T1: 99.10 ± 0.14 reproduced (3 s)", "T2: 55.00 ± 7.07 missed (3 s)"]


def test_without_a_terminal_a_line_is_printed_now_and_then(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    screen = io.StringIO()
    with Growing("a paper", {"T1": 100}, console=Console(file=screen, width=80)) as growing:
        for step in range(100):
            now[0] += 0.5
            growing.training("T1", step, 100, 1.5)
    assert screen.getvalue().splitlines() == ["T1: step 59 of 100, loss 1.5 · 0:30 so far, about 0:21 left"]


def test_a_time_is_said_as_one_would_say_it():
    assert [spoken(s) for s in (0.2, 89, 100, 5000, 7000, 400_000)] == [
        "1 s",
        "89 s",
        "2 min",
        "83 min",
        "1.9 h",
        "111 h",
    ]


def test_a_clock_reads_like_one():
    assert (clock(5), clock(65), clock(3600 + 61)) == ("0:05", "1:05", "1:01:01")
