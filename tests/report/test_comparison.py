import re
import shutil
import subprocess
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from tests.test_results import prediction

from zhat import report
from zhat.report.comparison import cells, latex, markdown, page, summary
from zhat.results import Curve, Measured, Published, RowResult, SweepResult, TableResult, from_json


def row(name, values, published, verdict):
    curve = Curve((10, 20), (2.0, 1.0), (20,), (0.9,), "affine R2")
    learned = Measured(published, values, values, min(values) - 0.1, max(values) + 0.1, verdict)
    against = Measured(Published(60.0, 2.0), (61.0, 62.0), (61.0, 62.0), 60.0, 63.0, "reproduced")
    title = "box & sphere, 5% | free_space"
    return RowResult(name, title, False, prediction(), learned, against, None, (curve, curve), 3.0, (0, 1))


TABLE = TableResult(
    paper="zimmermann2021",
    label="Table 1",
    caption="What a table shows.",
    score="R2",
    budget="fast",
    rows=(
        row("T1", (99.0, 99.2), Published(99.1, 0.1), "reproduced"),
        row("T2", (60.0, 50.0), Published(98.0, 0.1), "missed"),
    ),
    expected=3,
    seconds=6.0,
    settings={"T1": {"process": "Pairs(<b>)"}},
    provenance={"torch": "2"},
    rule="reproduced: as published.",
    notes=("A note.",),
)
SHARED = ("paper", "label", "caption", "score", "budget", "rows", "expected", "seconds", "settings", "provenance")
SWEEP = SweepResult(
    **{name: getattr(TABLE, name) for name in SHARED},
    x=(1.0, 50.0),
    x_name="concentration",
    mark=20.0,
    mark_name="the conditional's",
    second=(0.1, 0.9),
    second_name="distance",
    holds=True,
    claim="high, then low",
)


@pytest.mark.parametrize("result", [TABLE, SWEEP], ids=["table", "sweep"])
def test_all_files_are_written_and_say_the_same(result, tmp_path):
    files = report.write_comparison(result, tmp_path / "new")
    assert sorted(files) == sorted(
        ["json", "markdown", "latex", "html"] + (["svg"] if isinstance(result, SweepResult) else [])
    )
    assert from_json(files["json"].read_text()) == result
    for kind in ("markdown", "html"):
        assert "99.10 ± 0.14" in files[kind].read_text()
    assert r"99.10 $\pm$ 0.14" in files["latex"].read_text()


def test_a_pipe_in_a_title_does_not_break_the_markdown_table():
    header, _ = cells(TABLE)
    lines = [line for line in markdown(TABLE).splitlines() if line.startswith("| T")]
    assert len(lines) == 2
    for line in lines:
        assert len(re.findall(r"(?<!\\)\|", line)) == len(header) + 1


def test_latex_escapes_what_latex_reads():
    text = latex(TABLE)
    assert r"box \& sphere, 5\% $\mid$ free\_space" in text
    assert text.count(r"\\") == 3  # header and two rows


def test_the_summary_counts_and_says_what_is_missing():
    assert summary(TABLE) == "1 reproduced, 1 missed, of 2 rows. 1 of 3 are not finished."
    assert "claim holds: high, then low" in summary(SWEEP)
    assert "does not hold" in summary(replace(SWEEP, holds=False))
    assert "not judged" in summary(replace(SWEEP, holds=None))
    silent = tuple(replace(r, learned=replace(r.learned, verdict="")) for r in TABLE.rows)
    assert "not judged: budget fast only tries the machinery" in summary(replace(TABLE, rows=silent))


def test_the_page_is_self_contained_and_safe():
    text = page(TABLE)
    assert "Pairs(&lt;b&gt;)" in text
    assert "<script" not in text
    assert not re.search(r"(src|href)\s*=", text)
    assert 'class="missed"' in text
    assert "every condition holds" in text


def test_the_figure_is_a_picture_of_its_own(tmp_path):
    svg = report.write_comparison(SWEEP, tmp_path)["svg"].read_text()
    tree = ElementTree.fromstring(svg)
    assert tree.tag == "{http://www.w3.org/2000/svg}svg"
    circles = tree.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 4  # two seeds at two points


def test_a_browser_shows_the_page(tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser is installed (Debian: apt install chromium)")
    files = report.write_comparison(TABLE, tmp_path)
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    shown = subprocess.run(
        [*command, "--dump-dom", files["html"].as_uri()], capture_output=True, text=True, timeout=60, check=True
    )
    assert "At a glance" in shown.stdout
    assert "1 reproduced, 1 missed" in shown.stdout
