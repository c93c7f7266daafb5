import re
from dataclasses import replace

import torch

from zhat.dgp import Around, Box, Laplace, Uniform
from zhat.report import write_examined
from zhat.results import Curve, Minimum
from zhat.theory import examine


def found(n=2000):
    g = torch.Generator().manual_seed(0)
    z = Uniform(Box(2)).sample(n, generator=g)
    return examine(z, Around(Laplace(Box(2), 0.1)).sample(z, generator=g))


def test_the_page_opens_with_the_verdict_and_shows_what_was_fitted(tmp_path):
    page = write_examined(found(), tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.index("The rows fill a box") < page.index("<svg")
    assert page.count("<svg") == 2
    assert page.count('class="bar"') == 40 + 48
    assert page.count("<polyline") == 2
    assert "cannot tell" in page.lower()
    assert not re.search(r"(src|href)=.http", page)
    assert "<script" not in page


def test_the_page_of_a_run_shows_nats_above_the_floor(tmp_path):
    minimum = Minimum(2.0, 0.01, 2.005, 2.004, 2.1, True, 512)
    curve = Curve((1, 10, 20), (4.0, 2.5, 2.1))
    page = write_examined(found(), tmp_path / "page.html", minimum=minimum, curve=curve).read_text(encoding="utf-8")
    assert "0.1000 nats above the floor" in page
    assert "nats above the floor against step" in page


def test_names_are_escaped(tmp_path):
    odd = replace(found(), name="<b>bold</b>")
    assert "<b>bold" not in write_examined(odd, tmp_path / "page.html").read_text(encoding="utf-8")
