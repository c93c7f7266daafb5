"""`zhat runs` lists, filters and compares finished runs within 80 columns."""

import json

from typer.testing import CliRunner

from tests.experiment.test_finished import kept
from zhat import cli


def zhat(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words], env={"COLUMNS": "80"})


def three(root):
    kept(root, "T1.2", 0, 0.9)
    kept(root, "T1.2", 1, 0.8)
    kept(root, "T1.10", 0, 0.5)
    return root


def test_runs_are_listed_and_what_they_share_stands_above(tmp_path):
    shown = zhat("runs", three(tmp_path), "--sort", "-score")
    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.output.splitlines()]
    assert shown.output.startswith("3 runs: paper paper1999, part table-1, budget fast, commit abcdef12")
    assert lines[1] == ["row", "seed", "score", "held", "out", "date"]
    assert lines[2] == ["T1.2", "0", "90.00", "89.00", "2026-11-10"]
    assert [line[0] for line in lines[2:5]] == ["T1.2", "T1.2", "T1.10"]
    assert "Score: R2 up to affine, in percent." in shown.output
    assert max(map(len, shown.output.splitlines())) <= 80


def test_seeds_are_averaged_and_settings_compared(tmp_path):
    shown = zhat("runs", three(tmp_path), "--by", "row", "--sort", "-score", "--diff", "--show", "linear")
    assert shown.exit_code == 0, shown.output
    assert "T1.2      2  85.00 ± 7.07  84.00 ± 7.07" in shown.output
    assert "  …p=T1.10…  (T1.10)" in shown.output
    assert "linear" in shown.output


def test_json_holds_all_fields_of_the_chosen_runs(tmp_path):
    shown = zhat("runs", three(tmp_path), "--where", "row=T1.2", "--where", "seed=1", "--json")
    (one,) = json.loads(shown.stdout)
    assert (one["row"], one["score"], one["classes"]["linear"]) == ("T1.2", 80.0, 70.0)
    assert one["settings"]["encoder"] == "mlp"
    (group, _) = json.loads(zhat("runs", tmp_path, "--by", "row", "--sort", "-score", "--json").stdout)
    assert (group["alike"], group["runs"]) == ({"row": "T1.2"}, 2)


def test_a_damaged_run_is_named_with_exit_code_1(tmp_path):
    next(three(tmp_path).rglob("score.json")).write_text("{}")
    shown = zhat("runs", tmp_path)
    assert shown.exit_code == 1
    assert shown.stdout.startswith("2 runs")
    assert "differs from what was written" in shown.stderr


def test_mistakes_get_a_sentence_and_code_2(tmp_path):
    three(tmp_path)
    (tmp_path / "empty").mkdir()
    for words, message in (
        (["empty"], "holds no finished run"),
        (["nowhere"], "is not a folder"),
        (["", "--where", "rows=1"], "there is no field named 'rows'. Known: paper"),
        (["", "--sort", "rows"], "there is no field named 'rows'"),
        (["", "--by", "rows"], "there is no field named 'rows'"),
        (["", "--by", "row", "--sort", "date"], "with --by, sort by one of row, score"),
        (["", "--show", "rows"], "there is no field named 'rows'"),
    ):
        shown = zhat("runs", tmp_path / words[0], *words[1:])
        assert shown.exit_code == 2, words
        assert message in " ".join(shown.stderr.split())
