"""Yes-or-no targets of recorded images: scored, judged claim by claim, and read from files that a user has."""

import io
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from tests.datasets.test_imagenet_x import _annotated, image, write
from zhat import cli, papers, runs
from zhat.datasets import ImageNetX
from zhat.datasets.imagenet_x import TARGETS
from zhat.equivalence import AFFINE
from zhat.errors import BadInput, TooFewRows
from zhat.experiment import Evidence, reproduce
from zhat.experiment.targets import Targets, TargetsRead
from zhat.metrics import binary
from zhat.papers import _reizinger2024_features as here
from zhat.progress import compared
from zhat.report.comparison import decodings, figure, latex, markdown, page, write_comparison
from zhat.results import Counts, Curve, PartResult, Record, RowResult, Score, from_json, to_json

PART = papers.paper("reizinger2024").numbered("figure", "3")[0]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ZHAT_DATA", str(tmp_path / "data"))
    _annotated.cache_clear()
    write(tmp_path / "data", n=200, planted=6.0)
    yield tmp_path
    _annotated.cache_clear()


def of_files(*names):
    """Figure 3 of small files."""
    return replace(PART, rows=tuple(here.row(name, name, ImageNetX(name)) for name in names))


def test_a_split_is_scored_by_both_protocols(home):
    (result,) = reproduce(of_files("network"), budget="fast", seeds=2, out=home / "runs")
    folder = home / "runs" / "reizinger2024" / "figure-3" / result.rows[0].name
    record = runs.read(next(folder.glob("*/seed-1")))
    assert tuple(record.counts) == tuple(record.readings) == tuple(record.factors) == TARGETS
    x, y = ImageNetX("network").whole()[:2]
    y = y.numpy() > 0
    by_paper, ours = record.readings["class"]
    scaled = binary.positive_on_average(x.numpy())
    assert by_paper == binary.balanced_logistic(scaled, y[:, 0], *binary.split(y[:, 0], 1))
    assert ours == record.counts["class"].balanced_accuracy > 0.9
    score = record.factors["class"]
    assert score.low < ours <= score.high
    assert score.n + score.n_fit == 200
    assert record.counts["class"].having == y[:, 0].sum()
    noise = [s.chance for s in record.factors.values()]
    assert abs(np.mean(noise) - 0.5) < 0.1  # shuffled targets
    assert not list(folder.rglob("*.safetensors"))  # features have no weights
    (planted, *others) = result.judgement.decoded
    assert (planted.target, planted.found, planted.found_by_paper) == ("class", True, False)
    assert not any(d.found for d in others)


def test_finished_splits_are_assembled_without_the_data(home, monkeypatch):
    part = of_files("network", "network2")
    features = home / "data" / "imagenet_val_features"
    (features / "network2.npz").write_bytes((features / "network.npz").read_bytes())
    first = list(reproduce(part, budget="smoke", out=home / "runs"))
    assert [len(r.judgement.decoded) for r in first] == [17, 34]
    monkeypatch.setenv("ZHAT_DATA", "nowhere")
    (again,) = reproduce(part, budget="smoke", out=home / "runs", train=False)
    assert again.judgement == first[-1].judgement
    assert from_json(to_json(again)) == again
    assert again.notes == here.NOTES


def test_a_target_of_one_image_is_refused_before_anything_is_scored(home):
    top = np.zeros((200, 16), np.uint8)
    top[:, 0] = 1
    write(home / "data", n=200, val_top=top)
    _annotated.cache_clear()
    with pytest.raises(TooFewRows, match="of 'multiple_objects' there are 0 among 200"):  # all have it
        Targets().refuse_few(torch.nn.Identity(), ImageNetX("network"), PART.rows[0].budget("smoke"))


# --- claims

JUDGE = TargetsRead(("a", "b"), ("c",), "t0", ("t1", "t2"), ("t4", "t3", "t2", "t1", "t0"))
READ, SILENT = Counts(4000, 1000, 300, 900, 250, 750), Counts(4000, 1000, 300, 900, 151, 450)
WEAK = Counts(4000, 1000, 300, 900, 200, 600)  # found, and not far above chance
RARE = Counts(4000, 3, 1, 199, 1, 100)


def record(counts, seed):
    score = {name: Score("", 0.5, AFFINE, True, *binary.balanced_interval(c), 0.5, 0.6, 1, 1, True, (0.5,))
             for name, c in counts.items()}  # fmt: skip
    readings = {name: (c.balanced_accuracy + 0.001 * seed, c.balanced_accuracy) for name, c in counts.items()}
    return Record("", seed, {}, {}, 0.0, Curve((), ()), readings=readings, factors=score, counts=counts)


def judged(judge=JUDGE, budget="fast", **models):
    """What the judge says of models, each with r (read), w (weakly), s (silent) or x (rare) for each target."""
    kinds = {"r": READ, "w": WEAK, "s": SILENT, "x": RARE}
    rows = tuple(here.row(name, name, ImageNetX(name)) for name in models)
    records = {
        name: tuple(record({f"t{i}": kinds[k] for i, k in enumerate(said)}, seed) for seed in range(3))
        for name, said in models.items()
    }
    done = tuple(RowResult(r.name, r.title, False, None, None, None, None, (), 0.0, (0, 1, 2)) for r in rows)
    part = replace(PART, rows=rows, judge=judge)
    return judge(Evidence(part, rows, done, budget, torch.device("cpu"), tuple, records=records))


@pytest.mark.parametrize(
    ("models", "holds"),
    [
        ({"a": "rrrss", "b": "rrrss", "c": "srrss"}, [True, True, True, True]),
        ({"a": "rrrss", "b": "srrrs", "c": "srsss"}, [False, True, False, True]),
        ({"a": "wrrss", "b": "rrrss", "c": "srrss"}, [False, True, True, True]),
        ({"a": "rssss", "b": "rrrss", "c": "srxss"}, [True, True, None, False]),
        ({"a": "rrsxx", "b": "rrrss", "c": "srxxx"}, [True, True, None, None]),
        ({"a": "rrrss", "b": "rrrss", "c": "ssxss"}, [True, False, False, True]),
    ],
)
def test_claims_are_judged_one_by_one(models, holds):
    # what is too rare is told by the first model, whose images the others share
    rare = {i for said in models.values() for i, k in enumerate(said) if k == "x"}
    models = {
        n: "".join("x" if i in rare and k != "r" else k for i, k in enumerate(said)) for n, said in models.items()
    }
    found = judged(**models)
    assert [one.holds for one in found.claims] == holds
    assert "Rank correlation" in found.claim
    assert all(one.rule and one.why for one in found.claims)


def test_what_is_too_rare_says_so():
    found = judged(a="rrxss", b="rrxss", c="srxss")
    also = found.claims[2]
    assert also.holds is None
    assert "3 of 4,000 images have it, so no accuracy would be found with a probability of 80%." in also.why
    assert str(also).startswith("“t2” is above chance without training as well: cannot be told.")
    target = found.targets[2]
    assert (target.having, target.needed, target.needed_surely) == (3, None, None)
    assert found.targets[0].needed < found.targets[0].needed_surely < 60


def test_claims_are_open_where_models_are_missing_or_only_tried():
    assert judged(a="rrrss", b="rrrss").claims == ()
    tried = judged(budget="smoke", a="rrrss", b="rrrss", c="srrss")
    assert tried.claims == ()
    assert "Claims are not judged: budget smoke is too short for a verdict" in tried.claim
    with pytest.raises(BadInput, match="the paper orders t4, .* but a was read for t0"):
        judged(replace(JUDGE, order=("t4", "t9")), a="rrrss", b="rrrss", c="srrss")


def test_p_values_are_corrected_for_all_targets_and_models():
    found = judged(a="rrrss", b="rrrss", c="srrss").decoded
    alone = binary.of_splits([binary.by_shuffling(READ)] * 3)
    read = [d for d in found if d.found]
    assert len(read) == 8
    assert sorted(d.p / alone for d in read) == pytest.approx([15.0] * 8)  # Holm: equal ones share the largest
    assert all(d.p_by_paper < 0.05 / 15 and d.found_by_paper for d in read)
    assert not any(d.found_by_paper for d in found if d.measured.mean < 51)


# --- pages

RESULT = PartResult(
    paper="reizinger2024", label="Figure 3", caption="What it shows.", score="balanced accuracy", budget="fast",
    rows=tuple(RowResult(n, n, False, None, None, None, None, (Curve((), ()),) * 3, 0.0, (0, 1, 2)) for n in "abc"),
    expected=3, judgement=judged(a="rrrss", b="rrxss", c="srxss"), seconds=0.0, settings={}, provenance={"torch": "2"},
)  # fmt: skip


def test_every_medium_shows_targets_by_models(tmp_path):
    grid = decodings(RESULT)
    assert grid.header == ("target", "images", "a", "b", "c", "chance", "found with 80%", "with 95%")
    assert len(grid.rows) == 5
    assert grid.rows[0][2].startswith("83.3*")
    assert grid.rows[3][2].startswith("50.2 [")
    for text in (markdown(RESULT), page(RESULT)):
        assert "83.3*" in text
        assert "cannot be told" in text
        assert "it holds if" in text
        assert "A cell shows held-out balanced accuracy" in text
    assert "83.3*" in latex(RESULT)
    ((chart, caption),) = figure(RESULT)
    assert chart.count("<circle") == 15 + 3  # and the legend
    assert chart.count('class="hollow') == sum(not d.found for d in RESULT.judgement.decoded)
    assert chart.count('class="needed"') == sum(t.needed is not None for t in RESULT.judgement.targets)
    assert "Filled: found above chance" in caption
    files = write_comparison(RESULT, tmp_path)
    assert from_json(files["json"].read_text()) == RESULT
    assert files["svg"].read_text().count("<circle") == 18
    screen = io.StringIO()
    Console(file=screen, width=80).print(compared(RESULT))
    assert "83.3*" in screen.getvalue()


# --- the command


def zhat(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words], catch_exceptions=False, env={"COLUMNS": "200"})


@pytest.mark.parametrize("count", [1, 2])
def test_the_command_takes_features_of_your_own(count, home):
    rng = np.random.default_rng(0)
    names = np.array([image(i) for i in rng.permutation(150)])
    files = [home / f"my_{letter}.npz" for letter in "ab"[:count]]
    for file in files:
        np.savez(file, names=names, features=rng.normal(size=(150, 8)))
    how = ("--figure", "3", "--data", home / "data", "--budget", "smoke", "--device", "cpu", "--out", home / "out")
    shown = zhat("reproduce", "reizinger2024", *how, "--models", ",".join(map(str, files)))
    assert shown.exit_code == 0, shown.output
    assert "Targets above chance, of 17: my_a 0 (0 by the paper's test)" in shown.output
    folder = home / "out" / "reizinger2024" / "figure-3" / "+".join(["smoke", *(f.name for f in files)])
    found = from_json((folder / "results.json").read_text())
    assert [row.name for row in found.rows] == [f.stem for f in files]
    assert len(found.judgement.decoded) == 17 * count
    assert found.judgement.claims == ()
    np.savez(files[0], names=names, features=rng.normal(size=(150, 8)))  # another file is another row
    again = zhat("reproduce", "reizinger2024", *how, "--models", files[0])
    assert again.exit_code == 0, again.output
    changed = from_json((folder.parent / "smoke+my_a.npz" / "results.json").read_text())
    assert changed.judgement.decoded[0].measured != found.judgement.decoded[0].measured


def test_mistakes_at_the_command_get_a_sentence(home):
    np.savez(home / "a.npz", names=np.array(["cat"]), features=np.ones((1, 2)))
    (home / "b").mkdir()
    np.savez(home / "b" / "a.npz", names=np.array(["cat"]), features=np.ones((1, 2)))
    how = ("reproduce", "reizinger2024", "--figure", "3", "--data", home / "data", "--out", home / "out")
    for models, sentence in (
        (home / "nowhere.npz", "there is no file"),
        (home / "a.npz", "is that of an annotated ImageNet validation image"),
        (f"{home / 'a.npz'},{home / 'b' / 'a.npz'}", "files of different names, but they are called a, a"),
    ):
        refused = zhat(*how, "--models", models)
        assert refused.exit_code == 2
        assert sentence in refused.output.replace("\n", " ")
    both = zhat(*how, "--models", home / "a.npz", "--row", "lite0")
    assert both.exit_code == 2
    assert "Give one of them" in both.output


@pytest.mark.slow
@pytest.mark.data
def test_figure_3_runs_on_the_recorded_features(tmp_path):
    if not (Path(os.environ.get("ZHAT_DATA", "nowhere")) / "imagenet_val_features").is_dir():
        pytest.skip("ZHAT_DATA names no folder with imagenet_val_features")
    (*_, result) = reproduce(PART, budget="smoke", out=tmp_path)
    found = {(d.model, d.target): d for d in result.judgement.decoded}
    trained = [found[name, "class"].measured.held_out_mean for name in ("lite0", "lite1", "lite2")]
    assert min(trained) > 75 > 65 > found["pixels", "class"].measured.held_out_mean
