from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from zhat import runs
from zhat.datasets import CentreWords, Corpus
from zhat.encoders import ContextSum
from zhat.errors import BadInput, UnknownName
from zhat.experiment import Budget, Family, Row, WordsAgree, forget, reproduce
from zhat.fresh import Fresh
from zhat.objectives import NegativeSampling, WordSoftmax
from zhat.report import write_comparison
from zhat.results import FamilyResult, from_json, to_json
from zhat.training import Cosine

CORPUS = Corpus("text.txt", words=64)
BUDGETS = (
    Budget("short", 12, 128, 0.05, Cosine(), seeds=2, batches=2, rows=400),
    Budget("trial", 2, 128, 0.05, seeds=2, batches=2, rows=400, judged=False),
)


def row(name, objective=WordSoftmax, dim=2):
    encoder = Fresh(ContextSum, 64, dim, scale=0.1)
    return Row(name, f"words, {name}", CentreWords(CORPUS, 5), encoder, Fresh(objective, dim, 64), BUDGETS)


FAMILY = Family(
    paper="roeder2020",
    label="Figure 9",
    caption="a figure for tests",
    score="mean CCA",
    rows=(row("W2"), row("W3", NegativeSampling, 3)),
    compare=WordsAgree(frequent=50, drawn=range(1, 6), consistent=("W2",), least=0.0),
)


@pytest.fixture(autouse=True)
def text(tmp_path, monkeypatch):
    """A text in which a word depends on the one before it."""
    random, word, words = np.random.default_rng(0), 0, []
    for _ in range(8000):
        word = (2 * word + random.integers(12)) % 70
        words.append(f"w{chr(97 + word % 26)}{chr(97 + word // 26)}")
    (tmp_path / "text.txt").write_text(" ".join(words))
    monkeypatch.setenv("ZHAT_DATA", str(tmp_path))


def test_models_are_trained_kept_and_compared(tmp_path):
    told = []
    results = list(reproduce(FAMILY, budget="short", out=tmp_path / "runs", progress=lambda *now: told.append(now)))
    assert [len(r.rows) for r in results] == [1, 2, 3, 4]
    assert [bool(r.agreements) for r in results] == [False, False, False, True]
    assert results[0].claim == "not all models are finished"
    last = results[-1]
    assert isinstance(last, FamilyResult)
    assert [r.name for r in last.rows] == ["W2, seed 0", "W2, seed 1", "W3, seed 0", "W3, seed 1"]
    assert {name for name, *_ in told} == {r.name for r in last.rows}
    assert FAMILY.steps(FAMILY.rows, "short", None) == {r.name: 12 for r in last.rows}
    assert last.rows[0].loss < np.log(64)  # better than guessing
    assert [(a.group, a.name) for a in last.agreements] == [
        ("words, W2", "50 words, g(y)"),
        ("words, W2", "held-out contexts, f(x)"),
        ("words, W3", "50 words, g(y)"),
        ("words, W3", "held-out contexts, f(x)"),
    ]
    assert all(0 <= a.chance < 1 and 0 <= a.mean <= 1 for a in last.agreements)
    assert last.holds is True
    (drawn,) = last.words  # of two dimensions only
    assert len(drawn.words) == len(drawn.mapped) == 5
    assert from_json(to_json(last)) == last
    files = write_comparison(last, tmp_path / "page")
    assert set(files) == {"json", "markdown", "latex", "html", "svg"}
    assert "held-out contexts, f(x)" in files["markdown"].read_text()
    assert "<h2>The figure</h2>" in files["html"].read_text()
    assert write_comparison(results[0], tmp_path / "early")["html"].exists()


def test_finished_models_are_not_trained_again(tmp_path):
    *_, first = reproduce(FAMILY, budget="trial", out=tmp_path / "runs")
    told = []
    *_, second = reproduce(FAMILY, budget="trial", out=tmp_path / "runs", progress=lambda *now: told.append(now))
    assert not told
    assert second.agreements == first.agreements
    assert (second.holds, second.claim) == (None, "budget trial only tries the machinery")
    forget(FAMILY, FAMILY.rows[:1], "trial", tmp_path / "runs")
    list(reproduce(FAMILY, budget="trial", out=tmp_path / "runs", progress=lambda *now: told.append(now)))
    assert {name for name, *_ in told} == {"W2, seed 0", "W2, seed 1"}
    (same,) = list(reproduce(FAMILY, budget="trial", out=tmp_path / "runs", train=False))[-1:]
    assert same.agreements == first.agreements
    forget(FAMILY, FAMILY.rows[:1], "trial", tmp_path / "runs")
    with pytest.raises(BadInput, match="holds no finished W2, seed 0; W2, seed 1. Say how many"):
        list(reproduce(FAMILY, budget="trial", out=tmp_path / "runs", train=False))
    folder = next(runs.scan(tmp_path / "runs"))
    assert runs.read_model(folder).seed == 0
    with pytest.raises(BadInput, match="holds a model that is compared with others of its family"):
        runs.read(folder)


def test_models_spread_over_an_executor_are_the_same(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        *_, spread = reproduce(FAMILY, budget="trial", out=tmp_path / "spread", executor=executor)
    *_, here = reproduce(FAMILY, budget="trial", out=tmp_path / "here")
    assert [r.name for r in spread.rows] == [r.name for r in here.rows]
    assert [a.values for a in spread.agreements] == [a.values for a in here.agreements]


@pytest.mark.gpu
def test_on_a_gpu_models_are_compared_there(tmp_path):
    family = replace(FAMILY, compare=replace(FAMILY.compare, least=0.0))
    *_, last = reproduce(family, budget="short", seeds=3, out=tmp_path, device="cuda")
    assert [len(a.values) for a in last.agreements] == [3, 1, 3, 1] * 2
    assert all(0 <= value <= 1 for a in last.agreements for value in a.values)


def test_rows_can_be_chosen_and_mistakes_are_told(tmp_path):
    *_, result = reproduce(FAMILY, budget="trial", rows=["W3"], seeds=3, out=tmp_path / "runs")
    assert len(result.rows) == 3
    assert [len(a.values) for a in result.agreements] == [3, 1, 3, 1]  # all pairs; the two lowest losses
    assert not result.words
    *_, judged = reproduce(FAMILY, budget="short", rows=["W3"], out=tmp_path / "runs")
    assert judged.holds is None  # the claim is about W2
    with pytest.raises(UnknownName, match="no row named 'W9'. Known: W2, W3"):
        list(reproduce(FAMILY, budget="trial", rows=["W9"], out=tmp_path / "runs"))
    with pytest.raises(BadInput, match="one model came. Ask for at least two seeds"):
        list(reproduce(FAMILY, budget="trial", seeds=1, out=tmp_path / "runs"))
    with pytest.raises(BadInput, match="compares models by their weights"):
        list(reproduce(FAMILY, budget="trial", out=tmp_path / "runs", keep_weights=False))
    with pytest.raises(BadInput, match="trains its own models; it cannot be drawn of 'gpt2'"):
        FAMILY.given(["gpt2", "gpt2-medium"])
    with pytest.raises(BadInput, match="at least two different models, but gpt2 came"):
        replace(FAMILY, load=lambda name: None).given(["gpt2"])
