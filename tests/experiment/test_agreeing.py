from dataclasses import replace

import pytest
import torch
from torch import nn

from zhat.datasets import Corpus, Windows
from zhat.dgp import Batch
from zhat.encoders import GPT
from zhat.errors import BadInput
from zhat.experiment import Budget, Family, LayersAgree, Model, Row, WordsAgree, pretrained, reproduce
from zhat.experiment.agreeing import stacked, word_map
from zhat.fresh import Fresh
from zhat.objectives import NextWord

CORPUS = Corpus("text.txt", words=20)
BUDGET = Budget("short", 2, 4, 1e-3, seeds=1, batches=1, rows=30)


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
    budget = replace(BUDGET, batch=400, rows=400)
    found = agree(tuple(three[i] for i in order), budget, torch.device("cpu"))
    every, lowest = (a for a in found.agreements if "g(y)" in a.name)
    assert len(every.values) == 3
    assert lowest.name.endswith("the two lowest losses of 3")
    assert set(lowest.pairs[0]) == {"m0", "m1"}
    assert lowest.mean == pytest.approx(1.0, abs=1e-5)
    assert every.mean < 0.9
    assert found.holds
    assert found.claim.startswith("mean CCA of words: 1.000 for words (the two lowest losses; all 3 pairs: 0.")
    assert "the distance between probabilities -" in found.claim
    assert found.claim.endswith(". At least 0.95 is asked of words")
    assert len(every.apart) == 3
    assert lowest.apart == every.apart[:1]
    two = agree((three[0], three[2]), budget, torch.device("cpu"))
    assert not two.holds
    assert len(two.agreements) == 2


@pytest.mark.parametrize(("judged", "rows"), [(True, 20_000), (False, 400)])
def test_losses_are_compared_on_as_many_training_rows_as_it_takes(judged, rows):
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
    agree(two, replace(BUDGET, rows=400, judged=judged), torch.device("cpu"))
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
    found = LayersAgree(components=(2, 64), every=1)(models(), BUDGET, torch.device("cpu"))
    assert [a.name for a in found.agreements[:4]] == ["last", "last - 1", "last - 2", "last - 3"]
    assert [a.group for a in found.agreements[::4]] == ["2 components", "7 components"]
    assert found.agreements[0].pairs == (("m0", "m1"), ("m0", "m2"), ("m1", "m2"))
    assert all(a.n == 30 * 16 and len(a.values) == 3 for a in found.agreements)
    means = [a.mean for a in found.agreements[4:]]
    assert means == sorted(means, reverse=True)
    assert means[0] > 0.8 > 0.4 > means[-1]
    assert "2 components" in found.claim


def test_the_claim_holds_where_the_last_layer_agrees_best_and_only_there():
    compare, cpu = LayersAgree(components=(64,), every=1), torch.device("cpu")
    assert compare(models(), BUDGET, cpu).holds is True
    assert compare(models(noise=(0.0, 0.3, 1.0, 3.0)), BUDGET, cpu).holds is False
    assert compare(models(noise=(3.0, 1.0, 0.0, 0.3)), BUDGET, cpu).holds is False  # the last but one is best


def test_published_means_stand_beside_the_models_they_were_read_of():
    compare = LayersAgree(
        components=(2,), every=2, published=((2, (0.9, 0.8)),), of=("m0", "m1", "m2"), twice=((0, 1), (0, 1), (1, 2))
    )
    last, _, second, _ = compare(models(), BUDGET, torch.device("cpu")).agreements
    assert (last.published, second.published) == (0.9, 0.8)
    assert last.by_paper == pytest.approx((2 * last.values[0] + last.values[2]) / 3)
    others = replace(compare, of=("gpt2",))(models(), BUDGET, torch.device("cpu")).agreements
    assert others[0].published is None
    with pytest.raises(BadInput, match="but one model came. Leave --row out"):
        compare(models()[:1], BUDGET, torch.device("cpu"))


def test_a_small_family_is_trained_and_compared(tmp_path):
    budget = replace(BUDGET, batch=8, rows=40)
    encoders = {w: Fresh(GPT, 20, width=w, depth=2, heads=2, length=12) for w in (8, 12)}
    rows = tuple(Row(f"G{w}", f"{w} wide", Windows(CORPUS, 12), e, NextWord(), (budget,)) for w, e in encoders.items())
    family = Family("roeder2020", "Figure 8", "for tests", "SVCCA", rows, LayersAgree(components=(2, 256), every=1))
    *_, result = reproduce(family, budget="short", out=tmp_path / "runs")
    assert [a.group for a in result.agreements] == ["2 components"] * 3 + ["7 components"] * 3
    assert [r.name for r in result.rows] == ["G8", "G12"]
    assert all(a.untrained == pytest.approx(a.mean, abs=0.3) and a.untrained != a.mean for a in result.agreements)


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
    family = Family("roeder2020", "Figure 8", "for tests", "SVCCA", rows, compare, load=pretrained)
    (result,) = reproduce(family.given(folders[:2]), budget="short", out=tmp_path / "runs")
    assert [r.name for r in result.rows] == ["tiny-0", "tiny-1"]
    assert [a.name for a in result.agreements] == ["last", "last - 1", "last - 2"]  # as many as the shallower has
    assert result.agreements[0].n == 160  # all that is held out
    assert result.agreements[0].by_paper == pytest.approx(result.agreements[0].mean)
    with pytest.raises(BadInput, match="tiny-2 and tiny-0 cut text into different pieces"):
        list(reproduce(family.given([folders[0], folders[2]]), budget="short", out=tmp_path / "runs"))
    with pytest.raises(BadInput, match="there is no model .*nobody' on this machine"):
        pretrained(str(tmp_path / "nobody"))


def test_states_of_texts_become_rows():
    found = stacked(lambda n: [torch.full((1, n, 2), float(k)) for k in range(3)], [2, 3], most=2)
    assert [f.shape for f in found] == [(5, 2), (5, 2)]
    assert float(found[-1][0, 0]) == 2.0
