from dataclasses import replace

import numpy as np
import pytest

from tests.report.test_comparison import FAMILY, LAYERS, SWEEP, TABLE
from tests.test_shown import seeds
from zhat.errors import BadInput
from zhat.report import plots
from zhat.results import Curve, Decoding, Judgement, Measured, Target

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def labels(ax):
    return [t.get_text() for t in ax.get_yticklabels()]


def at(ax, marker):
    """The points of all lines drawn with a marker."""
    return [tuple(p) for line in ax.lines if line.get_marker() == marker for p in line.get_xydata()]


def test_a_ladder_has_a_dot_for_each_seed_a_ring_for_each_bound_and_a_band_for_the_prediction():
    ax = seeds().plot()
    rungs = seeds().across
    assert labels(ax) == [rung.name for rung in rungs]
    assert len(at(ax, "o")) == sum(len(rung.learned) + len(rung.raw) for rung in rungs)
    assert len(ax.patches) == sum(rung.predicted for rung in rungs)


def test_a_table_is_drawn_beside_the_published_numbers():
    ax = TABLE.plot()
    assert labels(ax) == ["T1", "T2"]
    assert sorted(x for x, _ in at(ax, "|")) == [98.0, 99.1]
    assert sorted(x for x, _ in at(ax, "o")) == [50.0, 60.0, 99.0, 99.2]
    assert len({line.get_color() for line in ax.lines if line.get_marker() == "o"}) == 2  # one row is missed


def test_a_figure_is_drawn_along_its_axis():
    ax = SWEEP.plot()
    assert ax.get_xlabel() == "concentration"
    assert ax.get_xscale() == "log"
    assert len(at(ax, "o")) == 4


def test_models_are_drawn_by_how_alike_they_are():
    ax = FAMILY.plot()
    shown = [a for a in LAYERS if a.shown]
    assert labels(ax) == [f"{a.group}, {a.what}" for a in shown]
    assert [x for x, _ in at(ax, "o")] == [a.values[0] for a in shown]


def test_targets_are_filled_where_found_and_hollow_elsewhere():
    cells = [Measured(None, (v,), (v,), v - 5, v + 5) for v in (80.0, 52.0)]
    decoded = tuple(
        Decoding("pixels", name, cell, None, found, 0.01, found)
        for name, cell, found in zip(("dark", "bright"), cells, (True, False), strict=True)
    )
    targets = tuple(Target(name, 100, 50, 60.0, 70.0) for name in ("dark", "bright"))
    ax = replace(FAMILY, judgement=Judgement(targets=targets, decoded=decoded)).plot()
    assert labels(ax) == ["dark", "bright"]
    assert [line.get_markerfacecolor() == "none" for line in ax.lines if line.get_marker() == "o"] == [False, True]


def test_lines_over_time_break_between_series():
    values = np.arange(12.0).reshape(6, 2)
    ax = plots.over_time(values, series=np.array(list("aabbbc")))
    assert sorted(len(line.get_xdata()) for line in ax.lines if line.get_linestyle() == "-") == [1, 1, 2, 2, 3, 3]
    assert len(plots.over_time(values).lines) == 2
    assert plots.over_time(values, time=np.linspace(0, 1, 6)).get_xlabel() == "time"


def test_what_holds_nothing_to_draw_gets_a_sentence():
    with pytest.raises(BadInput, match="nothing was trained, so there is no loss to draw"):
        Curve((), ()).plot()
    with pytest.raises(BadInput, match="Table 1 holds no scored rows"):
        replace(TABLE, rows=()).plot()


def test_axes_that_are_given_are_drawn_on():
    import matplotlib.pyplot as plt

    _, (left, right) = plt.subplots(1, 2)
    assert SWEEP.plot(left) is left
    assert TABLE.plot(ax=right) is right
    assert len(plt.get_fignums()) == 1
