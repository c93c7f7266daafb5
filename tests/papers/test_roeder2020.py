from dataclasses import replace

import pytest
from typer.testing import CliRunner

from tests.datasets.test_cifar10 import pictures, publish
from zhat import cli, papers
from zhat.experiment import run
from zhat.papers import roeder2020
from zhat.theory import predict
from zhat.training import Recipe

ROWS = [(part, row) for part in roeder2020.PAPER.parts for row in part.rows]


def test_the_parts_are_found_by_their_numbers():
    paper = papers.paper("roeder2020")
    assert [p.label for p in paper.numbered("figure", "2")] == ["Figure 2"]
    assert [p.label for p in paper.numbered("figure", "2v")] == ["Figure 2v"]
    names = [row.name for _, row in ROWS]
    assert len(names) == len(set(names))


def test_the_published_setting_has_labels_without_noise():
    for row in roeder2020.FIGURE_2.rows:
        assert (row.process.labels, row.process.scale) == (18, 3.0)
        assert row.process.harmonics is None
        assert row.process.label_noise == 0


@pytest.mark.parametrize("m", roeder2020.DIMENSIONS)
def test_theory_promises_agreement_in_the_variant_exactly_up_to_the_limit(m):
    row = roeder2020.FIGURE_2_VARIANT.row(f"F2v.{m}")
    assert row.process.rank == min(m, 17)
    assert predict(row.process, row.objective).holds == ("yes" if m <= 17 else "no")
    hard = roeder2020.FIGURE_2.row(f"F2.{m}")
    assert predict(hard.process, hard.objective).holds == "no"
    assert roeder2020.determined(row) == pytest.approx(min(1, 17 / m))
    assert any(reading.name == "two roads" for reading in row.readings) == (m <= 17)


def test_the_claim_asks_for_the_level_and_for_the_fall():
    x = roeder2020.FIGURE_2.judge.x
    claim = roeder2020.falls_past_the_limit
    assert claim(x, (99.9, 99.9, 99.8, 99.5, 99.2, 96.0, 82.0, 75.0)) == (
        True,
        "mean CCA is at least 99.20% up to K - 1 = 17 dimensions, and 96.00% to 75.00% beyond",
    )
    assert claim(x, (99.9, 99.9, 99.8, 99.5, 98.9, 96.0, 82.0, 75.0))[0] is False
    assert claim(x, (99.9, 99.9, 99.8, 99.5, 99.2, 99.3, 82.0, 75.0))[0] is False
    assert claim(x, (99.9, 99.9, 99.8, 99.5, 99.2, 99.1, 98.0, 97.0))[0] is False


@pytest.mark.parametrize("name", ["F2v.18"])
def test_rows_train_for_two_steps(name, tmp_path):
    (part, row), *_ = (pair for pair in ROWS if pair[1].name == name)
    budget = replace(row.budget("smoke"), recipe=Recipe(2, 32), rows=512, profile_rows=512)
    (record,) = run(row, budget, seeds=(0,), out=tmp_path, measure=part.measure)
    assert 0 < record.by_paper.value < 1
    assert set(record.readings) == {reading.name for reading in row.readings}


def test_figure_3_has_five_pairs_of_two_networks_and_one_panel_for_each_claim():
    paper = papers.paper("roeder2020")
    assert [p.label for p in paper.numbered("figure", "3")] == ["Figure 3b", "Figure 3c", "Figure 3d"]
    for part in paper.numbered("figure", "3"):
        assert len(part.rows) == len(part.judge.x)
        assert {row.budget("fast").seeds for row in part.rows} == {5}
    assert [row.process.images.images for row in roeder2020.FIGURE_3C.rows] == list(roeder2020.SIZES)
    assert [row.budget("fast").recipe.steps for row in roeder2020.FIGURE_3B.rows] == [300, 1000, 3000, 10_000]
    # The setting that all panels share is one setting.
    shared = roeder2020.FIGURE_3B.rows[-1], roeder2020.FIGURE_3C.rows[-1], roeder2020.FIGURE_3D.rows[1]
    assert len({str(row.settings(row.budget("paper"))) for row in shared}) == 1


def test_a_trend_is_a_rank_correlation():
    claim = roeder2020.Rises("as it grows")
    assert claim((1.0, 2.0, 3.0), (10.0, 20.0, 30.0)) == (
        True,
        "from 10.0% to 30.0% as it grows, rank correlation 1.00",
    )
    assert claim((1.0, 2.0, 3.0, 4.0), (10.0, 30.0, 20.0, 40.0))[0] is True
    assert claim((1.0, 2.0, 3.0), (10.0, 30.0, 20.0))[0] is False


def test_a_row_of_figure_3_trains_on_images_of_the_same_form(tmp_path, monkeypatch):
    publish(tmp_path / "cifar10", pictures(1000))
    publish(tmp_path / "cifar10", pictures(1500, seed=1), "test")
    monkeypatch.setenv("ZHAT_DATA", str(tmp_path))
    row = roeder2020.FIGURE_3C.row("F3c.1")
    budget = replace(row.budget("smoke"), recipe=Recipe(2, 16), rows=1300, profile_rows=1300)
    (record,) = run(row, budget, seeds=(0,), out=tmp_path / "runs", measure=roeder2020.FIGURE_3C.measure)
    assert 0 < record.by_paper.value < 1
    assert record.readings["mean CCA of g"][0] != record.by_paper.value
    assert record.prediction.holds == "unknown"


def test_without_images_a_sentence_says_where_to_put_them(tmp_path):
    words = ["reproduce", "roeder2020", "--figure", "3c", "--row", "F3c.1", "--budget", "smoke", "--device", "cpu"]
    result = CliRunner().invoke(
        cli.app, [*words, "--data", str(tmp_path), "--out", str(tmp_path)], env={"ZHAT_DATA": ""}
    )
    assert result.exit_code == 2
    assert "cifar10 does not exist. Give the folder that holds cifar10 with --data" in result.output + result.stderr
    result = CliRunner().invoke(cli.app, [*words, "--data", str(tmp_path / "none")], env={"ZHAT_DATA": ""})
    assert result.exit_code == 2
    assert "--data must be the folder of recorded data" in result.output + result.stderr


def test_a_row_of_figure_2_can_be_reproduced_from_the_command_line(tmp_path):
    words = ["reproduce", "roeder2020", "--figure", "2", "--row", "F2.4", "--budget", "smoke", "--seeds", "1"]
    result = CliRunner().invoke(cli.app, [*words, "--device", "cpu", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    folder = tmp_path / "roeder2020" / "figure-2" / "smoke+F2.4"
    assert sorted(p.name for p in folder.iterdir()) == [
        "figure.svg",
        "report.html",
        "results.json",
        "table.md",
        "table.tex",
    ]


@pytest.mark.slow
def test_figure_2_at_budget_smoke(tmp_path):
    words = ["reproduce", "roeder2020", "--figure", "2", "--budget", "smoke", "--device", "cpu", "--out", str(tmp_path)]
    result = CliRunner().invoke(cli.app, words)
    assert result.exit_code == 0, result.output
    assert "The claim is not judged: budget smoke is too short for a verdict." in result.output
