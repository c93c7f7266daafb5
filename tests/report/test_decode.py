import re
from dataclasses import replace

import numpy as np

from tests.decoding.test_decoded import planted
from zhat.audit import decode
from zhat.report import write_decode


def test_the_page_opens_with_what_was_found_and_needs_no_network(tmp_path):
    h, known = planted()
    found = decode(h, known | {"still": np.ones(400)})
    page = write_decode(found, tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.index(found.sentence) < page.index("<svg")
    assert "balanced accuracy" in page
    assert "Factors without a score" in page
    assert page.count('<rect class="cell"') == 5 * 4
    assert not re.search(r"(src|href)=.http", page)
    assert "<script" not in page


def test_a_page_without_any_score_is_written_too(tmp_path):
    h, _ = planted()
    page = write_decode(decode(h, {"still": np.ones(400)}), tmp_path / "page.html").read_text(encoding="utf-8")
    assert "it has the same value in all rows" in page


def test_names_are_escaped_and_long_ones_shortened(tmp_path):
    h, known = planted()
    found = decode(h, {"<b>bold</b>": known["noise"], "a" * 60: known["position"]})
    page = write_decode(replace(found, h="<i>"), tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<b>bold" not in page
    assert "<i>" not in page.split("</style>")[1].split("<h2>")[0]
    assert "a" * 23 + "…" in page
