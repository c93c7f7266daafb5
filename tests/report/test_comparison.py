import re
import shutil
import subprocess
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tests.test_results import prediction
from zhat import report
from zhat.report.comparison import agreements, figure, latex, markdown, page, rows
from zhat.results import (
    Agreement,
    Axis,
    Bar,
    Curve,
    Judgement,
    Measured,
    PartResult,
    Published,
    RowResult,
    WordMap,
    from_json,
)


def row(name, values, published, verdict):
    curve = Curve((10, 20), (2.0, 1.0), (20,), (0.9,), "affine R2")
    learned = Measured(published, values, values, min(values) - 0.1, max(values) + 0.1, verdict)
    against = Measured(Published(60.0, 2.0), (61.0, 62.0), (61.0, 62.0), 60.0, 63.0, "reproduced")
    title = "box & sphere, 5% | free_space"
    return RowResult(name, title, False, prediction(), learned, against, None, (curve, curve), 3.0, (0, 1))


TABLE = PartResult(
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
    judgement=Judgement(rule="reproduced: as published."),
    seconds=6.0,
    settings={"T1": {"process": "Pairs(<b>)"}},
    provenance={"torch": "2"},
    notes=("A note.",),
)
AXIS = Axis("concentration", (1.0, 50.0), 20.0, "the conditional's", (0.1, 0.9), "distance")
SWEEP = replace(TABLE, judgement=Judgement(claim="high, then low", holds=True, axis=AXIS))


BARRED = replace(
    TABLE,
    budget="laptop",
    rows=tuple(
        replace(row, learned=replace(row.learned, bar=Bar(95.0), verdict=verdict))
        for row, verdict in zip(TABLE.rows, ("shown", "not shown"), strict=True)
    ),
)


def test_a_bar_has_a_column_and_its_verdict_a_colour():
    grid = rows(BARRED)
    assert [line[grid.header.index("bar")] for line in grid.rows] == ["≥ 95", "≥ 95"]
    assert [line[grid.header.index("verdict")] for line in grid.rows] == ["shown", "not shown"]
    assert "bar" not in rows(TABLE).header
    shown = page(BARRED)
    assert '<td class="not-shown">not shown</td>' in shown
    assert "the bar of the row" in shown
    assert "the bar of the row" not in page(TABLE)


@pytest.mark.parametrize("result", [TABLE, SWEEP, BARRED], ids=["table", "sweep", "barred"])
def test_all_files_are_written_and_say_the_same(result, tmp_path):
    files = report.write_comparison(result, tmp_path / "new")
    assert sorted(files) == sorted(["json", "markdown", "latex", "html"] + (["svg"] if result is SWEEP else []))
    assert from_json(files["json"].read_text()) == result
    for kind in ("markdown", "html"):
        assert "99.10 ± 0.14" in files[kind].read_text()
    assert r"99.10 $\pm$ 0.14" in files["latex"].read_text()


def test_a_pipe_in_a_title_does_not_break_the_markdown_table():
    header = rows(TABLE).header
    lines = [line for line in markdown(TABLE).splitlines() if line.startswith("| T")]
    assert len(lines) == 2
    for line in lines:
        assert len(re.findall(r"(?<!\\)\|", line)) == len(header) + 1


def test_latex_escapes_what_latex_reads():
    text = latex(TABLE)
    assert r"box \& sphere, 5\% $\mid$ free\_space" in text
    assert text.count(r"\\") == 3  # header and two rows


def test_the_summary_counts_and_says_what_is_missing():
    assert TABLE.summary == "1 reproduced, 1 missed, of 2 rows. 1 of 3 are not finished."
    assert "claim holds: high, then low" in SWEEP.summary
    fails, silent = (replace(SWEEP, judgement=replace(SWEEP.judgement, holds=holds)) for holds in (False, None))
    assert "does not hold" in fails.summary
    assert "not judged" in silent.summary
    silent = tuple(replace(r, learned=replace(r.learned, verdict="")) for r in TABLE.rows)
    assert "not judged: budget fast is too short for a verdict" in replace(TABLE, rows=silent).summary
    ours = tuple(replace(r, learned=replace(r.learned, published=None, verdict=""), readings={}) for r in TABLE.rows)
    assert "2 rows of ours, without published numbers." in replace(TABLE, rows=ours).summary


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


# --- models that are compared with each other

NAMES = ("last", *(f"last - {i}" for i in range(1, 9)))
LAYERS = tuple(
    Agreement("4 components", name, (("m0", "m1"),), (0.9 - i / 20,), 0.1, (1.0, 0.9, 0.8, 0.7), 500, before=i)
    for i, name in enumerate(NAMES)
)
LAYERS = tuple(replace(a, shown=a.before % 4 == 0) for a in LAYERS)
LOSS = Measured(None, (2.5,), (2.5,), digits=4)
MODELS = tuple(
    RowResult(
        f"m{i}", "a model", False, None, None, None, None, (Curve((1, 2), (3.0, 2.0)),), 2.0, (i,), {"loss": LOSS}
    )
    for i in (0, 1)
)
FAMILY = PartResult(
    paper="roeder2020",
    label="Figure 4",
    caption="a figure for tests",
    score="SVCCA",
    budget="fast",
    rows=MODELS,
    expected=2,
    judgement=Judgement(claim="the last layer agrees best", holds=True, agreements=LAYERS),
    seconds=4.0,
    settings={"m0": {"encoder": "GPT"}},
    provenance={"torch": "2"},
    notes=("a note",),
)


def judged(**how):
    return replace(FAMILY, judgement=replace(FAMILY.judgement, **how))


def test_the_table_of_models_has_a_column_only_where_there_is_something_to_say():
    found = agreements(FAMILY)
    assert found.header == ("models", "what", "SVCCA", "chance", "rows compared")
    assert found.rows[0] == ("4 components", "last", "0.9000", "0.1000", "500")
    pairs = (("m0", "m1"), ("m0", "m2"))
    fuller = judged(
        agreements=tuple(
            replace(a, pairs=pairs, values=(0.9, 0.7), untrained=0.3, by_paper=0.8, published=0.85) for a in LAYERS
        )
    )
    found = agreements(fuller)
    cells = dict(zip(found.header, found.rows[0], strict=True))
    assert found.rows[0][2:4] == ("0.8000 ± 0.1414", "0.7000 to 0.9000")
    assert (cells["before training"], cells["published"]) == ("0.3000", "0.85")
    assert any("Dotted: before training" in caption for _, caption in figure(fuller))


def test_distances_between_probabilities_have_a_column_and_a_plot_where_pairs_are_many():
    pairs = (("m0", "m1"), ("m0", "m2"), ("m1", "m2"))
    every = Agreement("words", "g(y)", pairs, (0.9, 0.5, 0.4), 0.1, (0.7, 0.5), 500, apart=(0.01, 0.0, 2.0))
    lowest = replace(every, pairs=pairs[:1], values=(0.9,), apart=(0.01,), chosen="the two lowest losses of 3")
    result = judged(agreements=(every, lowest))
    found = agreements(result)
    cells = [dict(zip(found.header, row, strict=True)) for row in found.rows]
    assert [c["nats apart"] for c in cells] == ["0.0000 to 2.0000", "0.0100"]
    assert [c["lowest and highest pair"] for c in cells] == ["0.4000 to 0.9000", "–"]
    assert [c["what"] for c in cells] == ["g(y)", "g(y), the two lowest losses of 3"]
    ((chart, caption),) = figure(result)
    assert chart.count('class="learned"') == 4  # three pairs, and one in the legend
    assert "words, all 3 pairs" in caption
    assert "symmetrised divergence" in page(result)
    assert "symmetrised divergence" not in page(FAMILY)


def test_of_many_layers_some_have_a_curve_and_all_have_a_mean():
    (curves, _), (means, caption) = figure(FAMILY)
    assert curves.count("<polyline") == 3
    assert means.count("<polyline") == 1
    assert "every layer" in caption


def test_the_page_of_models_says_what_was_found():
    assert FAMILY.summary == "By our rule the paper's claim holds: the last layer agrees best."
    html = page(FAMILY)
    for words in ("roeder2020, Figure 4", "a note", "2.5000", "last - 8", "GPT"):
        assert words in html
    assert "| 4 components | last - 8 | 0.5000 |" in markdown(FAMILY)
    assert r"\begin{tabular}{lllll}" in latex(FAMILY)


def test_models_without_a_comparison_have_a_page():
    early = replace(judged(agreements=(), holds=None, claim="not all rows are finished"), rows=MODELS[:1])
    assert "1 of 2 are not finished" in page(early)
    assert "The figure" not in page(early)


def test_words_are_drawn_before_and_after_the_map():
    drawn = WordMap("two models", ("sun", "sea"), ((0, 0), (1, 1)), ((0, 1), (1, 0)), ((0, 0), (1, 1)))
    found = figure(judged(words=(drawn,), agreements=()))
    assert [caption for _, caption in found] == [
        "two models: 2 words, before the map. Dots: first model; rings: second model.",
        "two models: 2 words, after the map. Dots: first model; rings: second model.",
    ]
    assert "first model" in page(judged(words=(drawn,)))


def test_what_could_run_or_break_a_table_is_escaped():
    title = (
        r"\input{/etc/passwd} \write18{rm} $x$ <script>alert(1)</script> [a](javascript:b) | \x1b[2J" + "\nnext line"
    )
    odd = replace(TABLE, caption=title, rows=(replace(TABLE.rows[0], title=title),), paper=r"x}\input{y")
    text = latex(odd)
    assert r"\input" not in text.replace(r"\textbackslash{}input", "")
    assert r"\textbackslash{}write18\{rm\} \$x\$" in text
    assert "xinput" not in text  # no key of references.bib; the paper whose theorem speaks of the row is cited
    assert r"\cite{zimmermann2021}" in text
    shown = markdown(odd)
    assert "&lt;script>" in shown
    assert "<" not in shown
    assert "](" not in shown
    (line,) = (line for line in shown.splitlines() if line.startswith("| T1"))
    assert "next line" in line
    assert "\x1b" not in text + shown + page(replace(odd, paper=TABLE.paper))
