import lzma
import os
from pathlib import Path

import numpy as np
import pytest

from tests.test_cli import zhat
from zhat import papers
from zhat.results import from_json

PAPER = papers.paper("roeder2020")
FAMILIES = {part.label: part for part in PAPER.parts if part.measure is None}


def test_the_figures_of_text_are_declared_with_what_was_read_off_the_notebook():
    assert set(FAMILIES) == {"Figure 1", "Figure 4"}
    published = dict(FAMILIES["Figure 4"].judge.published)
    assert {k: round(sum(means), 2) for k, means in published.items()} == {16: 3.08, 64: 2.91, 256: 2.50, 768: 2.11}
    pairs = FAMILIES["Figure 4"].judge.twice
    assert len(pairs) == 6
    assert (0, 3) not in pairs  # the notebook never compares small and extra large
    assert pairs.count((0, 2)) == 2


def test_the_family_has_two_of_one_width_and_several_widths():
    rows = FAMILIES["Figure 4"].rows
    assert sum(row.budget("fast").seeds for row in rows) >= 4
    assert max(row.budget("fast").seeds for row in rows) >= 2
    assert len(rows) >= 2


@pytest.fixture
def novels(tmp_path):
    """A text of 9,000 different words at the place of the novels."""
    random = np.random.default_rng(0)
    letters = [chr(97 + i) for i in range(26)]
    words = ["".join(letters[(i // 26**k) % 26] for k in range(4)) for i in range(9000)]
    text = " ".join(words[i] for i in (9000 * random.random(60_000) ** 3).astype(int))
    folder = tmp_path / "data" / "text_english_novels"
    folder.mkdir(parents=True)
    (folder / "novels95.jsonl.xz").write_bytes(lzma.compress(b'{"text": "' + text.encode() + b'"}\n'))
    return folder.parent


def test_the_command_draws_figure_1(novels, tmp_path, monkeypatch):
    monkeypatch.setenv("ZHAT_DATA", "")  # put back afterwards: the command sets it
    how = ["--figure", "1", "--row", "W2", "--budget", "smoke", "--out", str(tmp_path / "out"), "--device", "cpu"]
    missing = zhat("reproduce", "roeder2020", *how)
    assert missing.exit_code == 2
    assert "Give the folder that holds it with --data" in missing.output
    shown = zhat("reproduce", "roeder2020", *how, "--data", str(novels))
    assert shown.exit_code == 0, shown.output
    assert "The claim is not judged: budget smoke is too short for a verdict." in shown.output
    folder = tmp_path / "out" / "roeder2020" / "figure-1" / "smoke+W2"
    assert {p.name for p in folder.iterdir()} == {"results.json", "table.md", "table.tex", "report.html", "figure.svg"}
    assert len(from_json((folder / "results.json").read_text()).judgement.agreements) == 2
    again = zhat("report", str(folder / "results.json"))
    assert again.exit_code == 0, again.output
    wrong = zhat("reproduce", "roeder2020", "--figure", "1", "--models", "gpt2,gpt2-medium")
    assert wrong.exit_code == 2
    assert "trains its own models" in wrong.output
    nowhere = zhat("reproduce", "roeder2020", *how, "--data", str(tmp_path / "nowhere"))
    assert nowhere.exit_code == 2


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("figure", ["1", "4"])
def test_figures_run_on_the_recorded_novels(figure, tmp_path):
    if not (Path(os.environ.get("ZHAT_DATA", "nowhere")) / "text_english_novels").is_dir():
        pytest.skip("ZHAT_DATA names no folder with text_english_novels")
    shown = zhat("reproduce", "roeder2020", "--figure", figure, "--budget", "smoke", "--out", str(tmp_path))
    assert shown.exit_code == 0, shown.output
