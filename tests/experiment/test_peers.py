from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

from zhat import runs
from zhat.datasets import CentreWords, Corpus, Windows
from zhat.dgp import Batch
from zhat.encoders import GPT, ContextSum
from zhat.errors import BadInput, UnknownName
from zhat.experiment import (
    Budget,
    Evidence,
    LayersAgree,
    Model,
    Part,
    Peers,
    Row,
    WordsAgree,
    forget,
    pretrained,
    reproduce,
)
from zhat.experiment.peers import stacked, word_map
from zhat.fresh import Fresh
from zhat.objectives import NegativeSampling, NextWord, WordSoftmax
from zhat.report import render, write_comparison
from zhat.results import Judgement, RowResult, from_json, to_json
from zhat.training import Constant, Recipe

CORPUS = Corpus("text.txt", words=20)
BUDGET = Budget("short", Recipe(2, 4, schedule=Constant()), seeds=1, batches=1, rows=30)


def judged(judge, models, budget=BUDGET):
    """What a judge says of some models."""
    rows = {m.row.name: replace(m.row, budgets=(budget,)) for m in models}
    part = Part("roeder2020", "Figure 8", "for tests", "CCA", tuple(rows.values()), judge=judge)
    done = tuple(RowResult(r.name, r.title, False, None, None, None, None, (), 0.0, (0,)) for r in part.rows)
    return judge(Evidence(part, part.rows, done, budget.name, torch.device("cpu"), lambda: models))


@pytest.fixture(autouse=True)
def text(tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text("\n\n".join("the cat sat on the mat and ate a rat " * 3 for _ in range(200)))
    monkeypatch.setenv("ZHAT_DATA", str(tmp_path))


def test_the_map_is_fitted_in_the_direction_in_which_it_is_used():
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(300, 2, generator=generator)
    second = first @ torch.tensor([[0.0, 3.0], [-0.5, 0.2]])  # neither symmetric nor orthogonal
    drawn = word_map("two models", ["a", "b"], [3, 7], first, second)
    assert torch.allclose(torch.tensor(drawn.mapped), torch.tensor(drawn.first), atol=1e-3)
    assert not torch.allclose(torch.tensor(drawn.second), torch.tensor(drawn.first), atol=0.3)


class Contexts:
    """Rows of two numbers, and a word each that goes by the sign of the first."""

    def sample(self, n, *, generator):
        x = torch.randn(1, n, 2, generator=generator)
        return Batch(x, label=(x[0, :, 0] > 0).long())

    corpus, held_out = CORPUS, property(lambda self: self)


class Words(nn.Module):
    """Scores that are right (large), or wrong (the other way round); the same words up to a linear map, or others."""

    def __init__(self, right, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.rows, self.right = torch.randn(40, 2, generator=torch.Generator().manual_seed(0)), right
        self.rows = (
            self.rows @ torch.randn(2, 2, generator=generator) if right else torch.randn(40, 2, generator=generator)
        )
        self.offsets = torch.zeros(40)

    def log_weights(self, frequencies):
        return self.offsets

    def forward(self, h, batch):
        sign = 5.0 if self.right else -5.0
        return nn.functional.binary_cross_entropy_with_logits(sign * h[0, :, 0], batch.label.float())


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_of_many_word_models_the_two_of_lowest_loss_are_judged(order):
    row = Row("W", "words", Contexts(), Fresh(nn.Identity), None, (BUDGET,))
    three = [Model(f"m{i}", nn.Identity(), Words(right, seed=i), row) for i, right in enumerate((True, True, False))]
    agree = WordsAgree(frequent=30, drawn=range(1, 4), consistent=("W",))
    budget = replace(BUDGET, rows=400)
    found = judged(agree, tuple(three[i] for i in order), budget)
    every, lowest = found.agreements[:2]  # of words; those of contexts follow
    assert every.name == lowest.name == "30 words, g(y)"
    assert len(every.values) == 3
    assert lowest.chosen == "the two lowest losses of 3"
    assert set(lowest.pairs[0]) == {"m0", "m1"}
    assert lowest.mean == pytest.approx(1.0, abs=1e-5)
    assert every.mean < 0.9
    assert found.holds
    assert found.claim.startswith("mean CCA of words: 1.000 for words (the two lowest losses; all 3 pairs: 0.")
    rank = spearmanr(every.values, every.apart).statistic
    assert f"rank correlation with the distance between probabilities {rank:.2f})" in found.claim
    assert found.claim.endswith(". At least 0.95 is asked of words")
    assert len(every.apart) == 3
    assert lowest.apart == every.apart[:1]
    two = judged(agree, (three[0], three[2]), budget)
    assert not two.holds
    assert len(two.agreements) == 2


@pytest.mark.parametrize(("counts", "rows"), [(True, 20_000), (False, 400)])
def test_losses_are_compared_on_as_many_training_rows_as_it_takes(counts, rows):
    class Counted(Contexts):
        drawn = 0
        held_out = property(lambda self: Contexts())

        def sample(self, n, *, generator):
            self.drawn += n
            return super().sample(n, generator=generator)

    process = Counted()
    row = Row("W", "words", process, Fresh(nn.Identity), None, (BUDGET,))
    two = tuple(Model(f"m{i}", nn.Identity(), Words(True, seed=i), row) for i in range(2))
    agree = WordsAgree(frequent=30, drawn=range(1, 4), consistent=("W",), read=20_000)
    judged(agree, two, replace(BUDGET, rows=400, judged=counts))
    assert process.drawn == 2 * (rows - rows % min(rows, 1024))


class Layered(nn.Module):
    """Four layers: those of another model, mapped linearly, with more and more noise towards the first."""

    def __init__(self, seed, noise=(3.0, 1.0, 0.3, 0.0)):
        super().__init__()
        self.generator, self.noise = torch.Generator().manual_seed(seed), noise
        self.maps = torch.randn(4, 8, 8, generator=self.generator)

    def hidden_states(self, x):
        base = torch.sin(x[..., None] * torch.arange(1, 9) + torch.arange(8))
        rough = [base + n * torch.randn(base.shape, generator=self.generator) for n in self.noise]
        return [h @ m for h, m in zip(rough, self.maps, strict=True)]


def models(**how):
    row = Row("G", "four layers", Windows(CORPUS, 16), Fresh(Layered, 0), NextWord(), (BUDGET,))
    return tuple(Model(f"m{i}", Layered(i, **how), row=row) for i in range(3))


def test_layers_are_compared_from_the_last_over_all_pairs():
    found = judged(LayersAgree(components=(2, 64), every=1), models())
    assert [a.name for a in found.agreements[:4]] == ["last", "last - 1", "last - 2", "last - 3"]
    assert [a.group for a in found.agreements[::4]] == ["2 components", "7 components"]
    assert found.agreements[0].pairs == (("m0", "m1"), ("m0", "m2"), ("m1", "m2"))
    assert all(a.n == 30 * 16 and len(a.values) == 3 for a in found.agreements)
    means = [a.mean for a in found.agreements[4:]]
    assert means == sorted(means, reverse=True)
    assert means[0] > 0.8 > 0.4 > means[-1]
    assert "2 components" in found.claim


def test_the_claim_holds_where_the_last_layer_agrees_best_and_only_there():
    compare = LayersAgree(components=(64,), every=1)
    assert judged(compare, models()).holds is True
    assert judged(compare, models(noise=(0.0, 0.3, 1.0, 3.0))).holds is False
    assert judged(compare, models(noise=(3.0, 1.0, 0.0, 0.3))).holds is False  # the last but one is best


def test_published_means_stand_beside_the_models_they_were_read_of():
    compare = LayersAgree(
        components=(2,), every=2, published=((2, (0.9, 0.8)),), of=("m0", "m1", "m2"), twice=((0, 1), (0, 1), (1, 2))
    )
    last, hidden, second, _ = judged(compare, models()).agreements
    assert (last.shown, hidden.shown, second.shown) == (True, False, True)
    assert (last.before, second.before) == (0, 2)
    assert (last.published, second.published) == (0.9, 0.8)
    assert last.by_paper == pytest.approx((2 * last.values[0] + last.values[2]) / 3)
    others = judged(replace(compare, of=("gpt2",)), models()).agreements
    assert others[0].published is None
    with pytest.raises(BadInput, match="but one model came. Leave --row out"):
        judged(compare, models()[:1])


def test_a_small_family_is_trained_and_compared(tmp_path):
    budget = replace(BUDGET, recipe=replace(BUDGET.recipe, batch=8, together=1), rows=40)
    encoders = {w: Fresh(GPT, 20, width=w, depth=2, heads=2, length=12) for w in (8, 12)}
    rows = tuple(
        Row(f"G{w}", f"{w} wide", Windows(CORPUS, 12), e, NextWord(), (budget,), against=Peers())
        for w, e in encoders.items()
    )
    judge = LayersAgree(components=(2, 256), every=1)
    family = Part("roeder2020", "Figure 8", "for tests", "SVCCA", rows, judge=judge)
    *_, result = reproduce(family, budget="short", out=tmp_path / "runs")
    agreements = result.judgement.agreements
    assert [a.group for a in agreements] == ["2 components"] * 3 + ["7 components"] * 3
    assert [r.name for r in result.rows] == ["G8", "G12"]
    assert all(a.untrained == pytest.approx(a.mean, abs=0.3) and a.untrained != a.mean for a in agreements)


@pytest.fixture
def folders(tmp_path):
    """Three tiny GPT-2 models with random weights; the last reads other words."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    found = []
    for i, words in enumerate((("the", "cat", "sat"), ("the", "cat", "sat"), ("mat", "the", "rat", "on"))):
        torch.manual_seed(i)
        config = transformers.GPT2Config(vocab_size=8, n_positions=16, n_embd=12, n_layer=2 + i, n_head=2)
        folder = tmp_path / f"tiny-{i}"
        transformers.GPT2Model(config).save_pretrained(folder)
        vocabulary = {"?": 0} | {word: n for n, word in enumerate(words, start=1)}
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="?"))
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?").save_pretrained(folder)
        found.append(str(folder))
    return found


def test_given_models_are_read_from_disk_and_compared(folders, tmp_path):
    rows = (Row("G", "not trained", Windows(CORPUS, 16), Fresh(Layered, 0), NextWord(), (BUDGET,)),)
    compare = LayersAgree(components=(2,), every=1, corpus=CORPUS, window=16, of=("tiny-0", "tiny-1"), twice=((0, 1),))
    family = Part("roeder2020", "Figure 8", "for tests", "SVCCA", rows, judge=replace(compare, load=pretrained))
    (result,) = reproduce(family.given(tuple(folders[:2])), budget="short", out=tmp_path / "runs")
    agreements = result.judgement.agreements
    assert agreements[0].pairs == (("tiny-0", "tiny-1"),)
    assert [a.name for a in agreements] == ["last", "last - 1", "last - 2"]  # as many as the shallower has
    assert agreements[0].n == 160  # all that is held out
    assert agreements[0].by_paper == pytest.approx(agreements[0].mean)
    with pytest.raises(BadInput, match="tiny-2 and tiny-0 cut text into different pieces"):
        list(reproduce(family.given((folders[0], folders[2])), budget="short", out=tmp_path / "runs"))
    with pytest.raises(BadInput, match="there is no model .*nobody' on this machine"):
        pretrained(str(tmp_path / "nobody"))


def test_states_of_texts_become_rows():
    found = stacked(lambda n: [torch.full((1, n, 2), float(k)) for k in range(3)], [2, 3], most=2)
    assert [f.shape for f in found] == [(5, 2), (5, 2)]
    assert float(found[-1][0, 0]) == 2.0


# --- trained here, kept and compared

VERSE = Corpus("verse.txt", words=64)
BUDGETS = (
    Budget("short", Recipe(12, 128, 0.05, together=1), seeds=2, batches=2, rows=400),
    Budget("trial", Recipe(2, 128, 0.05, together=1), seeds=2, batches=2, rows=400, judged=False),
)


def row(name, objective=WordSoftmax, dim=2):
    encoder = Fresh(ContextSum, 64, dim, scale=0.1)
    contexts, loss = CentreWords(VERSE, 5), Fresh(objective, dim, 64)
    return Row(name, f"words, {name}", contexts, encoder, loss, BUDGETS, against=Peers())


FAMILY = Part(
    paper="roeder2020",
    label="Figure 9",
    caption="a figure for tests",
    score="mean CCA",
    rows=(row("W2"), row("W3", NegativeSampling, 3)),
    judge=WordsAgree(frequent=50, drawn=range(1, 6), consistent=("W2",)),
)


@pytest.fixture(autouse=True)
def verse(tmp_path, text):
    """A text in which a word depends on the one before it."""
    random, word, words = np.random.default_rng(0), 0, []
    for _ in range(8000):
        word = (2 * word + random.integers(12)) % 70
        words.append(f"w{chr(97 + word % 26)}{chr(97 + word // 26)}")
    (tmp_path / "verse.txt").write_text(" ".join(words))


def test_models_are_trained_kept_and_compared(tmp_path):
    told = []
    results = list(reproduce(FAMILY, budget="short", out=tmp_path / "runs", progress=lambda *now: told.append(now)))
    assert [len(r.rows) for r in results] == [1, 2]
    assert results[0].judgement == Judgement(claim="not all rows are finished")
    last = results[-1]
    assert [(r.name, r.seeds) for r in last.rows] == [("W2", (0, 1)), ("W3", (0, 1))]
    assert {(name, steps) for name, _, steps, _ in told} == {("W2", 24), ("W3", 24)}  # two models, one after the other
    assert max(last.rows[0].readings["held-out loss"].values) < np.log(64)  # better than guessing
    assert len(last.rows[0].readings["training loss"].values) == 2
    found = last.judgement
    assert [(a.group, a.name) for a in found.agreements] == [
        ("words, W2", "50 words, g(y)"),
        ("words, W2", "held-out contexts, f(x)"),
        ("words, W3", "50 words, g(y)"),
        ("words, W3", "held-out contexts, f(x)"),
    ]
    assert all(0 <= a.chance < 1 and 0 <= a.mean <= 1 for a in found.agreements)
    assert found.holds is (found.agreements[0].mean >= 0.95)
    (drawn,) = found.words  # of two dimensions only
    assert len(drawn.words) == len(drawn.mapped) == 5
    assert from_json(to_json(last)) == last
    files = write_comparison(last, tmp_path / "page")
    assert set(files) == {"json", "markdown", "latex", "html", "svg"}
    assert "held-out contexts, f(x)" in files["markdown"].read_text()
    assert "<h2>The figure</h2>" in files["html"].read_text()
    assert write_comparison(results[0], tmp_path / "early")["html"].exists()


@pytest.mark.parametrize(("least", "holds"), [(-0.1, True), (1.1, False)])
def test_the_claim_follows_the_level_that_is_asked_for(least, holds, tmp_path):
    asked = replace(FAMILY, judge=replace(FAMILY.judge, least=least))
    *_, result = reproduce(asked, budget="short", rows=["W2"], out=tmp_path / "runs")
    assert result.judgement.holds is holds


def test_finished_models_are_not_trained_again(tmp_path):
    *_, first = reproduce(FAMILY, budget="trial", out=tmp_path / "runs")
    told = []
    *_, second = reproduce(FAMILY, budget="trial", out=tmp_path / "runs", progress=lambda *now: told.append(now))
    assert not told
    assert second.judgement == first.judgement
    assert (second.judgement.holds, second.judgement.claim) == (None, "budget trial is too short for a verdict")
    forget(FAMILY, FAMILY.rows[:1], "trial", tmp_path / "runs")
    list(reproduce(FAMILY, budget="trial", out=tmp_path / "runs", progress=lambda *now: told.append(now)))
    assert {name for name, *_ in told} == {"W2"}
    (same,) = list(reproduce(FAMILY, budget="trial", out=tmp_path / "runs", train=False))[-1:]
    assert same.judgement == first.judgement
    forget(FAMILY, FAMILY.rows[:1], "trial", tmp_path / "runs")
    (partly,) = reproduce(FAMILY, budget="trial", out=tmp_path / "runs", train=False)
    assert partly.judgement.claim == "not all rows are finished"
    record = runs.read(next(runs.scan(tmp_path / "runs")))
    assert (record.seed, record.learned) == (0, None)
    with pytest.raises(BadInput, match="no page of its own: it was kept by Run.save, or is compared with its peers"):
        render(record)


def test_models_spread_over_an_executor_are_the_same(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        *_, spread = reproduce(FAMILY, budget="trial", out=tmp_path / "spread", executor=executor)
    *_, here = reproduce(FAMILY, budget="trial", out=tmp_path / "here")
    assert [r.name for r in spread.rows] == [r.name for r in here.rows]
    assert spread.judgement == here.judgement


@pytest.mark.gpu
def test_on_a_gpu_models_are_compared_there(tmp_path):
    *_, last = reproduce(FAMILY, budget="short", seeds=3, out=tmp_path, device="cuda")
    assert [len(a.values) for a in last.judgement.agreements] == [3, 1, 3, 1] * 2
    assert all(0 <= value <= 1 for a in last.judgement.agreements for value in a.values)


def test_rows_can_be_chosen_and_mistakes_are_told(tmp_path):
    *_, result = reproduce(FAMILY, budget="trial", rows=["W3"], seeds=3, out=tmp_path / "runs")
    assert [r.seeds for r in result.rows] == [(0, 1, 2)]
    assert [len(a.values) for a in result.judgement.agreements] == [3, 1, 3, 1]  # all pairs; the two lowest losses
    assert not result.judgement.words
    *_, judged = reproduce(FAMILY, budget="short", rows=["W3"], out=tmp_path / "runs")
    assert judged.judgement.holds is None  # the claim is about W2
    with pytest.raises(UnknownName, match="no row named 'W9'. Known: W2, W3"):
        list(reproduce(FAMILY, budget="trial", rows=["W9"], out=tmp_path / "runs"))
    with pytest.raises(BadInput, match="one model came. Ask for at least two seeds"):
        list(reproduce(FAMILY, budget="trial", seeds=1, out=tmp_path / "runs"))
    with pytest.raises(BadInput, match="compares models by their weights"):
        list(reproduce(FAMILY, budget="trial", out=tmp_path / "runs", keep_weights=False))
    with pytest.raises(BadInput, match="trains its own models; it cannot be drawn of 'gpt2'"):
        FAMILY.given(("gpt2", "gpt2-medium"))
    with pytest.raises(BadInput, match="at least two different models, but gpt2 came"):
        replace(FAMILY, judge=LayersAgree(load=pretrained)).given(("gpt2",))
