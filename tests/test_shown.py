import builtins
from dataclasses import dataclass

import pytest

from tests.test_results import prediction, record, score
from zhat import shown
from zhat.errors import BadInput, MissingExtra
from zhat.results import (
    Absent,
    Consistency,
    Curve,
    Judgement,
    PartResult,
    Profile,
    SeedScores,
)
from zhat.results.papers import Measured, Published, RowResult


def part():
    cell = Measured(Published(98.6, 0.1), (98.5, 98.7), (98.4, 98.6), 98.0, 99.0, "reproduced", chance=12.0)
    row = RowResult("T2.1", "a box", False, None, cell, None, None, (Curve((1,), (2.0,)),) * 2, 3.0, (0, 1))
    lost = Absent("T2.2", "another", None, "the file is not here")
    return PartResult("zimmermann2021", "Table 2", "What.", "MCC", "fast", (row,), 2, Judgement("a rule"), 3.0, {}, {},
                      absent=(lost,))  # fmt: skip


def seeds():
    profile = Profile((score(), score(0.7)))
    return SeedScores((0, 1), (profile, profile), (profile,), prediction=prediction("yes"))


CONSISTENCY = Consistency(("a", "b"), ((1.0, 0.9), (0.8, 1.0)), 0.85, None, None, 0.0, 50, 50)
RESULTS = [score(), record().learned, record(), record().curve, record().picture, seeds(), part(), CONSISTENCY]


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: type(r).__name__)
def test_a_result_has_a_frame_a_picture_and_a_cell(result):
    pytest.importorskip("matplotlib").use("agg")
    pytest.importorskip("pandas")
    assert len(result.to_frame()) > 0
    ax = result.plot()
    assert result.plot(ax) is ax
    cell = result._repr_html_()
    assert cell.lstrip().startswith('<div class="zhat">')
    assert "<svg" in cell
    assert cell.count("<div") == cell.count("</div>")


def test_a_prediction_is_shown_as_its_conditions():
    said = prediction("yes", "no")
    assert "condition 1" in said._repr_html_()
    assert list(said.to_frame()["holds"]) == ["yes", "no"]


def test_a_frame_holds_the_numbers():
    frame = part().to_frame()
    assert list(frame["row"]) == ["T2.1", "T2.2"]
    assert frame["value"][0] == pytest.approx(98.6)
    assert list(seeds().to_frame()["seed"]) == [0, 0, 1, 1]
    assert list(CONSISTENCY.to_frame()["r2"]) == [0.9, 0.8]


def test_what_a_repr_leaves_out_is_counted():
    @dataclass(frozen=True, repr=False)
    class Long(shown.Brief):
        values: tuple = ()
        inside: object = None

    many = Long(tuple(range(200)), Long())
    assert repr(many) == "Long(values=(0, 1, 2, … 200 in all), inside=Long(…))"
    assert len(repr(Long(("x" * 500,) * 2))) < 150


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: type(r).__name__)
def test_a_repr_fits_a_screen(result):
    assert len(repr(result)) < 1200
    assert "\n" not in repr(result)


@pytest.mark.parametrize(("package", "call"), [("pandas", "to_frame"), ("matplotlib", "plot")])
def test_a_package_that_is_absent_gets_a_sentence(monkeypatch, package, call):
    real = builtins.__import__

    def without(name, *rest, **kwargs):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=rf"{call} needs `{package}`. Install it with: pip install 'zhat\["):
        getattr(score(), call)()


def test_axes_that_are_none_get_a_sentence():
    with pytest.raises(BadInput, match="`ax` must be axes of matplotlib"):
        score().plot(3)


def test_a_cell_leaves_the_notebook_alone():
    style = score()._repr_html_().split("<style>")[1].split("</style>")[0]
    assert style.lstrip().startswith(".zhat {")
    assert ":root" not in style
    assert "body {" not in style
    assert '[theme="dark"] .zhat' in style


def test_scores_over_seeds_print_their_bounds():
    text = str(seeds())
    assert "raw x" in text.splitlines()[0]
    assert "mean of 2 seeds" in " ".join(text.split())
    with pytest.raises(BadInput, match="no score up to ORTHOGONAL"):
        seeds()[prediction().up_to]
    with pytest.raises(BadInput, match="one profile for each seed"):
        SeedScores((0, 1), (record().learned,), (record().learned,))
