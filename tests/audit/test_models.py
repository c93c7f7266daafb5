"""Two models layer by layer. Hugging Face models are tiny, random and saved to disk: nothing is downloaded."""

import importlib.util
import pickle
from itertools import permutations

import numpy as np
import pytest
import torch
from torch import nn

from zhat.audit import Gate, audit, audit_all_models, audit_models
from zhat.audit.models import layers
from zhat.equivalence import AFFINE
from zhat.errors import BadInput
from zhat.report import write_audit
from zhat.results import from_json, to_json

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed: pip install 'zhat[hf]'"
)


def network(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5))


def test_modules_are_audited_layer_by_layer():
    x = torch.randn(400, 6, generator=torch.Generator().manual_seed(0))
    first = network(0)
    found = audit_models(first, first, x)
    assert [a.verdict for a in found.audits] == ["identity"] * 3
    assert found.layers == (("0", "0"), ("1", "1"), ("2", "2"))
    assert found.audits[0].a == "Sequential (A), 0"
    other = audit_models(first, network(1), x)
    # eight numbers from six each, so the offset lies among the directions: a linear map; a tanh later it is none
    assert other.audits[0].verdict == "linear"
    assert other.audits[0].score.value > 0.999
    assert other.audits[2].verdict == "nonlinear" or other.audits[2].score.value < 0.999
    assert from_json(to_json(other)) == other
    assert first.training


def test_models_of_different_depth_are_compared_at_the_same_depth():
    torch.manual_seed(0)
    deep = nn.Sequential(*(nn.Linear(6, 6) for _ in range(5)))
    shallow = nn.Sequential(*(nn.Linear(6, 6) for _ in range(3)))
    found = audit_models(deep, shallow, torch.randn(100, 6))
    assert found.layers == (("0", "0"), ("1", "0"), ("2", "1"), ("3", "2"), ("4", "2"))
    passed, line = Gate(require=AFFINE)(found)
    assert passed
    assert line.startswith("gate passed: all 5 layers; asked: affine or tighter, R2 at least 0.95 (the default); not")
    assert "gate failed: 5 of 5 layers" in Gate(max_condition=0.5)(found)[1]


def test_several_models_are_compared_in_every_ordered_pair(tmp_path):
    torch.manual_seed(0)
    x = torch.randn(300, 6)
    deep = nn.Sequential(*(nn.Linear(6, 6) for _ in range(5)))
    models = (network(0), deep, network(1))
    found = audit_all_models(models, x)
    assert found.names == ("Sequential (A)", "Sequential (B)", "Sequential (C)")
    assert [(pair.a[-2], pair.b[-2]) for pair in found.pairs] == [*permutations("ABC", 2)]
    assert found.pairs[0].layers == (("0", "0"), ("1", "2"), ("2", "4"))
    assert found.pairs[2].layers == (("0", "0"), ("1", "0"), ("2", "1"), ("3", "2"), ("4", "2"))
    for i, j in permutations(range(3), 2):
        alone = audit_models(models[i], models[j], x)
        pair = found.pairs[[*permutations(range(3), 2)].index((i, j))]
        for one, other in zip(alone.audits, pair.audits, strict=True):
            assert one.verdict == other.verdict
            assert one.score is None or one.score.value == pytest.approx(other.score.value, abs=1e-9)
    assert from_json(to_json(found)) == found
    passed, line = Gate(require=AFFINE)(found)
    assert not passed
    assert "of 22 layers" in line
    page = write_audit(found, tmp_path / "models.html").read_text()
    assert "Sequential (B) → Sequential (A): 1 → 0" in page
    with pytest.raises(BadInput, match="at least two models"):
        audit_all_models(models[:1], x)


def test_every_layer_is_compared_with_every_layer_at_a_corrected_level():
    x = torch.randn(300, 6, generator=torch.Generator().manual_seed(0))
    first = network(0)
    found = audit_models(first, first, x, every=True)
    assert len(found.audits) == 9
    assert [found.layers[place] for place in found.best] == [("0", "0"), ("1", "1"), ("2", "2")]
    assert found.sentence.startswith("9 pairs of layers of")
    alone = audit_models(first, first, x)
    assert [a.verdict for a in alone.audits] == [found.audits[i].verdict for i in found.best]
    for one, among in zip(alone.audits, (found.audits[i] for i in found.best), strict=True):
        assert among.ladder[AFFINE].value == one.ladder[AFFINE].value
        assert among.ladder[AFFINE].chance_high > one.ladder[AFFINE].chance_high
    assert found.provenance["levels divided by"] == 9


def test_the_best_of_many_pairs_of_noise_is_not_related():
    random = np.random.default_rng(0)
    found = [audit(*random.normal(size=(2, 120, 3)), among=60).verdict for _ in range(20)]
    assert set(found) == {"unrelated"}


@needs_transformers
def test_a_name_of_the_cache_is_read_and_nothing_is_downloaded(tmp_path, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--some--model"
    (snapshot / "refs").mkdir(parents=True)
    (snapshot / "refs" / "main").write_text("0" * 40)
    saved(snapshot / "snapshots", "gpt2", "0" * 40)
    tokens = np.random.default_rng(0).integers(0, 50, (60, 5))
    assert set(layers("hf:some/model", tokens)) == {"input", "block 1", "block 2"}
    with pytest.raises(BadInput, match="there is no model 'some/other' on this machine"):
        layers("hf:some/other", tokens)


def test_convolutions_are_averaged_over_pixels():
    images = torch.randn(40, 3, 9, 9)
    found = layers(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), images)
    assert {name: e.dim for name, e in found.items()} == {"0": 4, "1": 4}


def saved(tmp_path, kind, name="model", seed=0):
    import transformers as hf

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if kind == "gpt2":
            model = hf.GPT2Model(hf.GPT2Config(vocab_size=50, n_layer=2, n_head=2, n_embd=8, n_positions=16))
        elif kind == "bert":
            small = {"num_hidden_layers": 3, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 16}
            model = hf.BertModel(hf.BertConfig(vocab_size=60, max_position_embeddings=32, **small))
        else:
            small = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 16}
            model = hf.ViTModel(hf.ViTConfig(image_size=8, patch_size=4, **small))
    model.save_pretrained(tmp_path / name)
    return tmp_path / name


@needs_transformers
def test_hugging_face_folders_are_read_and_audited(tmp_path):
    a, b = saved(tmp_path, "gpt2", "old"), saved(tmp_path, "bert", "new")
    tokens = np.random.default_rng(0).integers(0, 50, (150, 6))
    np.save(tmp_path / "tokens.npy", tokens)
    found = audit_models(a, b, tmp_path / "tokens.npy")
    assert (found.a, found.b, found.data) == ("old", "new", "tokens.npy")
    assert found.layers == (("input", "input"), ("block 1", "block 2"), ("block 2", "block 3"))
    assert all(x.n == 150 for x in found.audits)
    with pytest.raises(BadInput, match="token numbers must be from 0 to 49"):
        layers(a, tokens + 20)
    with pytest.raises(BadInput, match="takes token numbers"):
        layers(a, np.ones((3, 4), np.float32))
    with pytest.raises(BadInput, match="cannot take data of shape"):
        layers(a, np.ones((3, 40), int))


@needs_transformers
def test_images_go_through_a_vision_model(tmp_path):
    path = saved(tmp_path, "vit")
    images = np.random.default_rng(0).normal(size=(30, 3, 8, 8)).astype(np.float32)
    found = layers(path, images)
    assert {name: (e.rows, e.dim) for name, e in found.items()} == {
        "input": (30, 8),
        "block 1": (30, 8),
        "block 2": (30, 8),
    }


@needs_transformers
def test_texts_are_cut_by_each_model_itself_and_padding_does_not_count(tmp_path):
    import transformers as hf
    from tokenizers import Tokenizer, models, pre_tokenizers

    path = saved(tmp_path, "bert")
    words = {"[PAD]": 0, "[UNK]": 1, **{f"w{i}": 2 + i for i in range(50)}}
    cut = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    cut.pre_tokenizer = pre_tokenizers.Whitespace()
    hf.PreTrainedTokenizerFast(tokenizer_object=cut, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(path)
    (tmp_path / "texts.txt").write_text("w1 w2\nw3 w4 w5 w6 w7\n\nw8 unheard\n")
    found = layers(path, tmp_path / "texts.txt")
    alone = layers(path, np.array([[3, 4]]))
    assert found["input"].rows == 3
    for name, values in found.items():
        assert np.allclose(values.take(slice(0, 1)), alone[name].take(slice(0, 1)), atol=1e-5)


class Bomb:
    def __reduce__(self):
        import os

        return os.mkdir, ("zhat-was-here",)


def test_data_that_cannot_be_shown_get_a_sentence(tmp_path):
    (tmp_path / "x.npy").write_bytes(pickle.dumps(Bomb()))
    for data, sentence in (
        (tmp_path / "none.npy", "must be a .npy or .txt file"),
        (tmp_path / "x.npy", "must hold one array of numbers"),
        (tmp_path / "x.txt", "texts need the tokenizer"),
        (np.array([["a", "b"]]), "must be numbers of shape"),
        (np.full((40, 6), np.nan), "must be finite"),
        (np.ones((40, 3)), "cannot take data of shape"),
    ):
        with pytest.raises(BadInput, match=sentence):
            layers(network(0), data)
    with pytest.raises(BadInput, match="a folder or an nn.Module"):
        layers(3, np.ones((4, 4)))
