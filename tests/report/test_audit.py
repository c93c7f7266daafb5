import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from tests.audit.test_verdict import planted
from zhat.audit import audit, audit_all
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


def drawn(tmp_path, kind):
    random = np.random.default_rng(0)
    a = random.normal(size=(600, 40))
    b = a @ np.linalg.qr(random.normal(size=(40, 40)))[0] + 0.1 * random.normal(size=(600, 40))
    if kind == "two":
        return write_audit(audit(a, b), tmp_path / "page.html")
    return write_audit(audit_all([a, b, a[:, :7], random.normal(size=(600, 5)), a * 2]), tmp_path / "page.html")


def test_the_page_shows_where_the_map_is_wrong_and_what_a_search_would_find(tmp_path):
    page = drawn(tmp_path, "two").read_text(encoding="utf-8")
    assert 'aria-label="what the map leaves unexplained"' in page
    assert 'aria-label="recall behind the map"' in page
    assert page.count('class="cell worst"') == 32 * 30  # 32 groups of 40 columns, 600 / 20 pieces


def test_the_matrix_page_has_a_picture_and_says_each_verdict(tmp_path):
    page = drawn(tmp_path, "several").read_text(encoding="utf-8")
    picture = page.split('aria-label="verdict on each ordered pair"')[1].split("</svg>")[0]
    assert picture.count('class="cell"') == 20
    assert picture.count(">unrelated<") == 8
    assert page.count("<details>") == 20
    assert not re.search(r"(src|href)=.http", page)


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# A window of a headless browser is never narrower than 500 pixels, so a phone is a frame inside of it.
FRAME = """<!doctype html><meta name="color-scheme" content="light dark"><body>
<iframe id="phone" style="border:0;width:WIDTHpx;height:800px" srcdoc="PAGE"></iframe><script>
document.getElementById("phone").onload = event => {
  const page = event.target.contentDocument, style = event.target.contentWindow.getComputedStyle(page.body);
  const seen = [...page.querySelectorAll("svg")].filter(
    s => s.getBoundingClientRect().width > 0 && !s.closest("details"));
  const sizes = seen.flatMap(s => [...s.querySelectorAll("text")].map(t =>
    parseFloat(event.target.contentWindow.getComputedStyle(t).fontSize)
      * s.getBoundingClientRect().width / s.viewBox.baseVal.width));
  document.body.textContent = JSON.stringify({
    page: page.documentElement.scrollWidth, window: event.target.contentWindow.innerWidth, figures: seen.length,
    smallest: Math.min(...sizes), background: style.backgroundColor, ink: style.color,
    text: page.body.innerText.length});
};
</script>"""


def in_browser(tmp_path, page, width, *, dark):
    frame = tmp_path / "frame.html"
    text = html.escape(page.read_text(encoding="utf-8"))
    frame.write_text(FRAME.replace("WIDTH", str(width)).replace("PAGE", text), encoding="utf-8")
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    flags += "--disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=3000"
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    command = [BROWSER, *flags.split(), scheme, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1300,900"]
    out = subprocess.run(
        [*command, "--dump-dom", frame.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    return json.loads(html.unescape(re.search(r"\{.*\}", out.stdout.split("<body>")[1]).group()))


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine; install it with: apt-get install chromium")
@pytest.mark.parametrize(("kind", "figures"), [("two", 4), ("several", 1)])
def test_a_real_browser_shows_the_page_in_both_schemes_and_on_a_phone(tmp_path, kind, figures):
    page = drawn(tmp_path, kind)
    light, dark = (in_browser(tmp_path, page, 390, dark=dark) for dark in (False, True))
    window = in_browser(tmp_path, page, 1200, dark=False)
    for seen, width in ((light, 390), (dark, 390), (window, 1200)):
        assert seen["window"] == width
        assert seen["page"] <= width  # wide tables and pictures scroll in their own box
        assert seen["figures"] == figures
        assert seen["smallest"] > 9
        assert seen["text"] > 1500
    assert light["background"] == "rgb(255, 255, 255)"
    assert dark["background"] == "rgb(20, 23, 27)"
    assert light["ink"] != dark["ink"]
