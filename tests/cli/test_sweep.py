"""`zhat sweep` trains settings of a file and writes one page; shares of it are put together again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.experiment.test_sweeping import DECLARED, write  # noqa: F401 - a fixture
from zhat import cli
from zhat.results import from_json

ROOT = Path(__file__).parent.parent.parent


def zhat(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words], env={"COLUMNS": "80"})


def test_a_sweep_leaves_a_page_and_goes_on_share_by_share(write, tmp_path):  # noqa: F811
    words = ("sweep", write("shared_rows.py", DECLARED), "--seeds", "2", "--out", tmp_path / "out")
    first = zhat(*words, "--shard", "1/2")
    assert first.exit_code == 0, first.output
    assert "Share 1/2: 1 of 2 trainings are done." in first.stdout
    page = tmp_path / "out" / "shared_rows" / "sweep" / "tiny"
    assert len(from_json((page / "results.json").read_text()).rows) == 1
    whole = zhat(*words)
    assert whole.exit_code == 0, whole.output
    assert "recovers more than" in " ".join(whole.stdout.split())
    result = from_json((page / "results.json").read_text())
    assert [row.name for row in result.rows] == ["one", "two"]
    html = (page / "report.html").read_text(encoding="utf-8")
    for said in ("The result", "has the highest held-out R2", "Two distances.", "up to scaled permutation"):
        assert said in html
    for wrong in ("the paper's own protocol", "published mean"):
        assert wrong not in html
    assert r"\cite{zimmermann2021}" in (page / "table.tex").read_text(encoding="utf-8")
    shown = zhat("runs", tmp_path / "out", "--by", "row")
    assert shown.exit_code == 0
    assert shown.stdout.split()[:2] == ["row", "runs"]


def test_mistakes_get_a_sentence_and_code_2(write, tmp_path):  # noqa: F811
    file = write("mistaken_rows.py", DECLARED)
    for words, message in (
        ((tmp_path / "none.py",), "a sweep is declared in a Python file"),
        ((file, "--budget", "huge"), "--budget must be one that all rows have (tiny), but 'huge' came"),
        ((file, "--row", "three"), "there is no row named 'three'. Known: one, two"),
        ((file, "--shard", "3/2"), "--shard must be a share such as 2/8"),
        ((file, "--shard", "1/2", "--no-train"), "--shard trains a share of what is missing"),
        ((file, "--no-train"), "holds no finished row of Sweep"),
        ((file, "--join", tmp_path / "none"), "is not a folder"),
        ((file, "--executor", "many"), "--executor must be processes:N or dask://HOST:PORT"),
    ):
        shown = zhat("sweep", *words, "--out", tmp_path / "out")
        assert shown.exit_code == 2, shown.output
        assert message in " ".join(shown.stderr.split())


@pytest.mark.slow
def test_the_example_compares_three_objectives_in_processes(tmp_path):
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "zhat", "sweep", str(ROOT / "examples" / "three_objectives.py")),
            *("--out", str(tmp_path), "--executor", "processes:2"),
        ],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    result = from_json((tmp_path / "three_objectives" / "sweep" / "short" / "results.json").read_text())
    assert [row.name for row in result.rows] == ["L1", "L2", "L4"]
    assert result.rows[0].learned.held_out_mean > 95  # theory speaks of this one
    assert "has the highest held-out MCC" in result.judgement.claim
    assert len(result.judgement.claims) == 2


@pytest.mark.slow
def test_a_setting_that_no_process_can_be_sent_gets_a_sentence(write, tmp_path):  # noqa: F811
    file = write("a_lambda.py", DECLARED + "ROWS = [replace(ROW, objective=lambda h, batch: h.square().mean())]\n")
    shown = zhat("sweep", file, "--out", tmp_path / "out", "--executor", "processes:1")
    assert shown.exit_code == 2, shown.output
    assert "a lambda has none" in " ".join(shown.stderr.split())
