import re

import numpy as np
from tests.audit.test_verdict import planted

from zhat.audit import audit
from zhat.equivalence import ORTHOGONAL
from zhat.report import write_audit


def test_the_page_opens_with_the_verdict_and_needs_no_network(tmp_path):
    found = audit(*planted(ORTHOGONAL, 500, 80, 0.1))
    page = write_audit(found, tmp_path / "audit.html").read_text(encoding="utf-8")
    assert page.index(found.sentence) < page.index("<svg")
    assert "similarity" in page
    assert not re.search(r"(src|href)=.http", page)
    assert "<script" not in page


def test_a_verdict_without_a_map_has_a_page_too(tmp_path):
    random = np.random.default_rng(0)
    for b in (random.normal(size=(100, 30)), np.ones((100, 30))):
        found = audit(random.normal(size=(100, 30)), b)
        assert "Cannot tell" in write_audit(found, tmp_path / "audit.html").read_text(encoding="utf-8")


def test_names_are_escaped(tmp_path):
    from dataclasses import replace

    found = replace(audit(*planted(ORTHOGONAL, 200, 2, 0.1)), a="<b>old</b>")
    assert "<b>old" not in write_audit(found, tmp_path / "audit.html").read_text(encoding="utf-8")
