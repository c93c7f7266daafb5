import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tests.test_results import prediction, record
from zhat import report
from zhat.equivalence import AFFINE
from zhat.errors import BadInput
from zhat.results import Curve, Picture


def records():
    curve = Curve((10, 20, 30), (3.0, 2.0, 1.5), (15, 30), (0.5, 0.9), "affine R2")
    rows = tuple((0.1 * i, -0.1 * i) for i in range(-5, 6))
    picture = Picture(rows, rows, AFFINE, ((1.0, 0.1), (0.2, 0.9)), (1.0, 0.9))
    one = replace(record(), curve=curve, picture=picture)
    return [replace(one, seed=s) for s in (0, 1)]


def test_the_page_holds_what_the_issue_asks_for():
    page = report.render(records())
    for words in (
        "Theory",
        "Measurement",
        "every condition holds",
        "Up to which class of maps?",
        "What theory asks for",
        "Learning",
        "The latents and what came back",
        "Singular values",
        "|Correlation|",
        "Settings and provenance",
        "How to cite",
        "@inproceedings{zimmermann2021",
        "prefers-color-scheme: dark",
        "@media print",
    ):
        assert words in page


def test_the_page_is_self_contained():
    page = report.render(records())
    assert "<script" not in page
    assert not re.search(r"(src|href)\s*=", page)
    assert "http" not in re.sub(r"http://www.w3.org/\S+", "", page)


def test_text_from_settings_cannot_become_markup():
    evil = replace(records()[0], name="<script>alert(1)</script>", settings={"process": "<img src=x>"})
    page = report.render(evil)
    assert "<script>" not in page
    assert "<img" not in page


def test_every_tag_is_closed():
    class Balance(HTMLParser):
        void = ("meta", "br", "hr", "line", "rect", "circle")

        def __init__(self):
            super().__init__()
            self.open = []

        def handle_starttag(self, tag, attrs):
            if tag not in self.void:
                self.open.append(tag)

        def handle_startendtag(self, tag, attrs):
            pass

        def handle_endtag(self, tag):
            if tag not in self.void:
                assert self.open.pop() == tag

    parser = Balance()
    parser.feed(report.render(records()))
    assert parser.open == []


def test_a_run_without_a_prediction_says_so():
    bare = replace(records()[0], prediction=None, curve=Curve((1,), (1.0,)))
    assert "No prediction was recorded." in report.render(bare)
    none = replace(records()[0], prediction=replace(prediction(), up_to=None, cite=""))
    assert "No theorem known to zhat" in report.render(none)


def test_the_page_is_written_whole_or_not_at_all(tmp_path):
    path = report.write(records(), tmp_path / "page.html")
    assert path.read_text(encoding="utf-8").endswith("</html>")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot write to .* Choose another place"):
        report.write(records(), tmp_path / "file" / "page.html")
    with pytest.raises(BadInput, match="it is a folder. Name a file"):
        report.write(records(), tmp_path)
    with pytest.raises(BadInput, match="at least one finished run"):
        report.write([], tmp_path / "page.html")


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PROBE = """<script>
const style = getComputedStyle(document.body);
document.body.innerHTML = JSON.stringify({
  page: document.documentElement.scrollWidth, window: innerWidth, background: style.backgroundColor, ink: style.color,
  figures: document.querySelectorAll("svg").length, text: document.body.innerText.length,
  blank: [...document.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().width < 100).length});
</script></html>"""


def in_browser(tmp_path, width, *, dark):
    import json

    page = tmp_path / "probe.html"
    page.write_text(report.render(records()).replace("</html>", PROBE), encoding="utf-8")
    scheme = "--blink-settings=preferredColorScheme=" + ("0" if dark else "1")
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    flags += "--disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=2000"
    command = [
        BROWSER,
        *flags.split(),
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={width},900",
        scheme,
    ]
    out = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    return json.loads(re.search(r"\{.*\}", out.stdout.split("<body>")[1]).group())


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine; install it with: apt-get install chromium")
@pytest.mark.parametrize("width", [500, 1200])
def test_a_real_browser_shows_the_page_in_both_schemes_without_overflow(tmp_path, width):
    light, dark = (in_browser(tmp_path, width, dark=dark) for dark in (False, True))
    for seen in (light, dark):
        assert seen["page"] <= seen["window"]
        assert seen["figures"] == 7
        assert seen["blank"] == 0
        assert seen["text"] > 1500
    assert light["background"] == "rgb(255, 255, 255)"
    assert dark["background"] == "rgb(20, 23, 27)"
    assert light["ink"] != dark["ink"]
