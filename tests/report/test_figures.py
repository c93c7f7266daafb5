import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zhat.report import figures
from zhat.report.figures import Axis, Rung, bars, heatmap, ladder, lines, scatter, sweep

number = st.floats(-1e6, 1e6, allow_nan=False)


def parsed(svg):
    return ElementTree.fromstring(svg)


@given(number, st.floats(1e-6, 1e6))
def test_ticks_are_few_round_and_inside(low, width):
    axis = Axis(low, low + width, 0, 100)
    ticks = axis.ticks()
    assert 1 <= len(ticks) <= 12
    assert all(low - width * 1e-6 <= t <= low + width * (1 + 1e-6) for t in ticks)


def test_values_beyond_the_axis_are_drawn_at_its_end():
    axis = Axis(0, 1, 10, 110)
    assert (axis(-5), axis(0.5), axis(7)) == (10, 60, 110)


def test_every_figure_is_well_formed_and_holds_its_data():
    rungs = [
        Rung("affine", [0.5], [0.9, 0.95], 0.88, 0.96, 0.0, True),
        Rung("a <b>", [], [-3.0], None, None, None, False),
    ]
    figure = ladder(rungs)
    parsed(figure)
    assert figure.count('class="learned"') == 3
    assert figure.count('class="raw"') == 1
    assert "a &lt;b&gt;" in figure
    curve = lines([("seed 0", (0, 10, 20), (3.0, 2.0, 1.0)), ("seed 1", (0, 10), (3.0, 2.5))], "step", "loss")
    assert len(parsed(curve).findall("polyline")) == 2
    points = scatter([0.0, 1.0, 2.0], [0.1, 0.9, 2.1], "z1", "ẑ1", "R² 0.99")
    assert len(parsed(points).findall("circle")) == 3
    assert len(parsed(bars([1.0, 0.5], 0.8, "value")).findall("rect")) == 2
    assert "theory 0.8" in bars([1.0, 0.5], 0.8, "value")
    cells = parsed(heatmap([[0.1, 0.9], [1.0, 0.0]], "h", "z")).findall("rect")
    assert [float(c.get("fill-opacity")) for c in cells] == [0.1, 0.9, 1.0, 0.0]


@pytest.mark.parametrize("value", [0.0, 5.0, -2.0])
def test_a_flat_curve_has_an_axis(value):
    svg = lines([("flat", (0, 1, 2), (value, value, value))], "step", "loss")
    assert not re.search("nan|inf", svg)
    assert math.isfinite(float(parsed(svg).find("polyline").get("points").split(",")[1].split()[0]))


@given(
    st.lists(st.floats(0, 1e5), min_size=1, max_size=8, unique=True),
    st.floats(0, 1e5),
    st.lists(st.floats(-50, 100), min_size=1, max_size=3),
)
def test_a_sweep_draws_every_seed_at_every_point_inside_its_frame(x, mark, scores):
    names = ("concentration", "R2 (%)", "distance", "the mark")
    tree = parsed(sweep(sorted(x), [scores] * len(x), [3.0] * len(x), mark, names=names))
    circles = tree.findall(".//circle")
    assert len(circles) == len(x) * len(scores)
    assert all(64 <= float(c.get("cx")) <= 658 and 20 <= float(c.get("cy")) <= 328 for c in circles)


@pytest.mark.parametrize(
    ("x", "said"),
    [([0.003, 1.1], ("0.01", "0.1", "1")), ([0.02, 0.06], ("0.02", "0.05")), ([0.2, 0.22], ("0.2", "0.21", "0.22"))],
)
def test_a_logarithmic_axis_has_numbers_however_short_it_is(x, said):
    chart = figures.points([("pairs", x, [0.9, 0.5])], "nats", "CCA", level=0.1)
    under = [t.text for t in parsed(chart).findall(".//text") if t.get("y") == "246.0"]
    assert under == list(said)


def test_a_second_score_has_seeds_of_its_own_in_percent():
    names = ("width", "CCA of f (%)", "CCA of g (%)", "the mark")
    chart = sweep([1, 2], [[50, 60], [70, 80]], [40, 55], 1, names=names, beside=[[30, 50], [50, 60]])
    assert chart.count('class="raw"') == 4
    assert chart.count(">100</text>") == 2  # both axes
    assert 'class="raw"' not in sweep([1, 2], [[50], [70]], [0.4, 0.5], 1, names=names)


def test_words_of_two_models_are_joined_by_lines():
    chart = figures.words(["sun", "<sea>"], [(0, 0), (1, 1)], [(0, 1), (1, 0)], "before the map")
    assert chart.count('class="link"') == chart.count('class="raw"') == chart.count('class="learned"') == 2
    assert "&lt;sea&gt;" in chart


def test_panels_stand_side_by_side_and_below_each_other():
    one = figures.lines([("a", [0, 1], [0.1, 0.9])], "x", "y", level=0.2, beside=[[0.3, 0.4]])
    assert "chance" in one
    assert one.count("dotted") == 1
    tall = figures.words(["a"], [(0, 0)], [(1, 1)], "before the map")
    whole = figures.panels([(one, "first"), (one, "a caption of two lines " * 4), (tall, "a < b")])
    assert 'viewBox="0 0 920 822"' in whole  # 270 and two lines, 440 and one line, and two lines between rows
    assert whole.count("<svg ") == 4
    assert 'x="460" y="0"' in whole
    assert 'x="0" y="334"' in whole
    assert whole.count("a caption of two lines") == 4 - 1  # one is broken in two
    assert "a &lt; b" in whole


@pytest.mark.parametrize(
    "ends", [(0, 0), (0, -5), (3e307, 3e307), (-1e308, 1e308), (1e-320, 2e-320), (5.0, 5.0 + 1e-15)]
)
def test_an_axis_of_odd_ends_has_ticks_and_keeps_values_inside(ends):
    axis = figures.Axis(*ends, 0.0, 100.0)
    assert axis.low < axis.high
    assert 1 <= len(axis.ticks()) <= 20
    assert all(0 <= axis(value) <= 100 for value in (*ends, 0.0, 1e308))
