import numpy as np
import pytest

from tests.audit.test_verdict import planted
from tests.test_results import record
from tests.test_shown import RESULTS, part
from zhat import results
from zhat.audit import audit, audit_all
from zhat.decoding import decode
from zhat.equivalence import ORTHOGONAL
from zhat.report import plots, showing
from zhat.report.audit import write_audit
from zhat.report.html import render
from zhat.results import LayerAudit
from zhat.shown import Drawn, Shown


@pytest.fixture(scope="module")
def found():
    a, b = planted(ORTHOGONAL, 300, 3, 0.1)
    pair = audit(a, b)
    return {
        "AuditResult": pair,
        "AuditMatrix": audit_all([a, b, a * 2]),
        "LayerAudit": LayerAudit("old", "new", "rows", (("0", "0"), ("1", "1")), (pair, pair)),
        "DecodeResult": decode(b, {"first": np.asarray(a)[:, 0], "second": np.asarray(a)[:, 1]}),
    }


def kinds(base):
    return {k.__name__ for k in vars(results).values() if isinstance(k, type) and issubclass(k, base)}


def test_every_result_that_can_be_shown_has_a_renderer():
    assert {k.__name__ for k in showing.html.registry} - {"object", "tuple"} == kinds(Shown)
    assert {k.__name__ for k in plots.draw.registry} - {"object", "tuple"} == kinds(Drawn)


def test_no_result_is_left_out_of_these_tests(found):
    assert found.keys() | {type(r).__name__ for r in RESULTS} | {"Prediction"} == kinds(Shown)


@pytest.mark.parametrize("kind", ["AuditResult", "AuditMatrix", "LayerAudit", "DecodeResult"])
def test_a_verdict_has_a_frame_a_picture_and_a_cell(found, kind):
    pytest.importorskip("matplotlib").use("agg")
    pytest.importorskip("pandas")
    result = found[kind]
    assert len(result.to_frame()) > 1
    assert result.plot().get_figure() is not None
    cell = result._repr_html_()
    assert cell.lstrip().startswith('<div class="zhat">')
    assert cell.count("<div") == cell.count("</div>")
    assert "<html" not in cell
    assert len(repr(result)) < 1500


def test_a_cell_is_the_first_part_of_the_page(found, tmp_path):
    pair = found["AuditResult"]
    page = write_audit(pair, tmp_path / "page.html").read_text(encoding="utf-8")
    for whole, cell in ((page, pair._repr_html_()), (render(record()), record()._repr_html_())):
        svg = cell[cell.index("<svg") : cell.index("</svg>")]
        assert svg in whole
        assert len(cell) < len(whole)


def test_a_frame_of_several_audits_names_each_pair(found):
    pytest.importorskip("pandas")
    frame = found["AuditMatrix"].to_frame()
    assert list(zip(frame["from"], frame["to"], strict=True))[:2] == [("a", "b"), ("a", "c")]
    assert frame["verdict"].nunique() >= 1
    assert list(found["LayerAudit"].to_frame()["from"]) == ["0", "1"]


def test_what_has_no_renderer_is_refused():
    with pytest.raises(TypeError, match="nothing shows a int"):
        showing.html(3)
    with pytest.raises(TypeError, match="nothing draws a int"):
        plots.draw(3)


def test_names_in_a_cell_are_escaped():
    from dataclasses import replace

    assert "<b>x" not in replace(part(), caption="<b>x</b>")._repr_html_()
    assert "<b>x" not in replace(record(), name="<b>x</b>")._repr_html_()
