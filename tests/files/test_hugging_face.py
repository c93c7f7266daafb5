"""Hugging Face folders: tiny random models are saved and damaged. Nothing is downloaded and no code is run."""

import json
import os
import pickle
import shutil
import socket
import sys

import pytest
import torch

from tests.audit.test_models import Bomb, needs_transformers, saved
from zhat.errors import BadInput, MissingExtra
from zhat.experiment import pretrained
from zhat.files import local_folder, read_model, read_tokenizer


def with_tokenizer(tmp_path, name="model", seed=0):
    """A tiny GPT-2 that reads three words."""
    import tokenizers
    import transformers

    folder = saved(tmp_path, "gpt2", name, seed)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0, "the": 1, "cat": 2, "sat": 3}, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?").save_pretrained(folder)
    return folder


def change(file, **entries):
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))


def without(folder, *, named, instead=None):
    """Take weights out of a folder, or put others in their place."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    kept = {k: v for k, v in weights.items() if named not in k} | ({} if instead is None else {named: instead})
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


CODE = {"AutoConfig": "code.Config", "AutoModel": "code.Model", "AutoTokenizer": ["code.Tokenizer", None]}
DAMAGES = {
    "auto_map": "asks for code of its own .auto_map in config.json.",
    "nested auto_map": "asks for code of its own .auto_map in config.json.",
    "auto_map in a list": "asks for code of its own .auto_map in config.json.",
    "auto_map of the tokenizer": "asks for code of its own .auto_map in tokenizer_config.json.",
    "only a .bin": "holds no .*safetensors; pickled weights .pytorch_model.bin. are never loaded",
    "a .bin in the index": "must name .*safetensors files beside it, but it names pytorch_model.bin",
    "a .bin in the config": "must name .*safetensors files beside it, but it names adapter_model.bin",
    "weights elsewhere": "must name .*safetensors files beside it, but it names ../model.safetensors",
    "a pickle by another name": "cannot be read as a Hugging Face model",
    "an adapter": "holds an adapter of another model",
    "a weight missing": "lacks weights .h.1.attn.c_attn.weight.; a model with random ones",
    "a layer missing": "lacks weights .h.1.attn.c_attn.bias, .*, ….; a model with random ones",
    "a weight of another shape": "cannot be read as a Hugging Face model|lacks weights .wpe.weight",
    "cut short": "cannot be read as a Hugging Face model",
    "no config": "must be a folder with config.json",
    "a broken config": "config.json must be JSON, but it cannot be read",
    "a config that is a list": "config.json must be JSON of names and values, but it holds a list",
    "a model nobody knows": "cannot be read as a Hugging Face model",
}


def damaged(folder, how):
    """Do what the words say to a folder; whatever runs its code leaves a trace in the working directory."""
    config, weights = folder / "config.json", folder / "model.safetensors"
    (folder / "code.py").write_text("import os\nos.mkdir('zhat-was-here')\n")
    if how == "auto_map":
        change(config, auto_map=CODE)
    elif how == "nested auto_map":
        change(config, vision_config={"model_type": "odd", "inner": {"auto_map": CODE}})
    elif how == "auto_map in a list":
        change(config, parts=[{"auto_map": CODE}])
    elif how == "auto_map of the tokenizer":
        (folder / "tokenizer_config.json").write_text(json.dumps({"auto_map": CODE}))
    elif how == "an adapter":
        (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "gpt2"}))
    elif how in ("only a .bin", "a .bin in the index", "a .bin in the config"):
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))
        (folder / "adapter_model.bin").write_bytes(pickle.dumps(Bomb()))
        if how == "only a .bin":
            weights.unlink()
        elif how == "a .bin in the config":
            change(config, transformers_weights="adapter_model.bin")
        else:
            weights.rename(folder / "other.safetensors")
            index = {"metadata": {}, "weight_map": {"wte.weight": "pytorch_model.bin"}}
            (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    elif how == "weights elsewhere":
        change(config, transformers_weights="../model.safetensors")
    elif how == "a pickle by another name":
        weights.write_bytes(pickle.dumps(Bomb()))
    elif how == "a weight missing":
        without(folder, named="h.1.attn.c_attn.weight")
    elif how == "a layer missing":
        without(folder, named="h.1")
    elif how == "a weight of another shape":
        without(folder, named="wpe.weight", instead=torch.zeros(9, 8))
    elif how == "cut short":
        weights.write_bytes(weights.read_bytes()[:-40])
    elif how == "no config":
        config.unlink()
    elif how == "a broken config":
        config.write_text("{")
    elif how == "a config that is a list":
        config.write_text("[]")
    elif how == "a model nobody knows":
        change(config, model_type="nobody")
    return folder


@needs_transformers
@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_folder_is_refused_and_runs_no_code(tmp_path, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("the network was tried"))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("the user was asked"))
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("a pickle was loaded"))
    folder = damaged(with_tokenizer(tmp_path), how)
    for read in (read_model, pretrained):
        with pytest.raises(BadInput, match=DAMAGES[how]):
            read(str(folder))
    if "auto_map" in how:
        with pytest.raises(BadInput, match=DAMAGES[how]):
            read_tokenizer(folder)
    assert not (tmp_path / "zhat-was-here").exists()


@needs_transformers
def test_a_whole_folder_is_read_with_its_tokenizer(tmp_path):
    model = pretrained(str(with_tokenizer(tmp_path)))
    assert model.name == "model"
    assert not model.encoder.training
    assert model.tokenize("the cat sat down") == [1, 2, 3, 0]


@needs_transformers
def test_shards_named_by_an_index_are_read(tmp_path):
    from transformers import GPT2Model

    folder = saved(tmp_path, "gpt2")
    GPT2Model.from_pretrained(folder).save_pretrained(tmp_path / "shards", max_shard_size="2KB")
    (tmp_path / "shards" / "pytorch_model.bin.index.json").write_text('{"weight_map": {"wte.weight": "a.bin"}}')
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    whole, parts = (read_model(each).state_dict() for each in (folder, tmp_path / "shards"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


@needs_transformers
@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_a_folder_without_a_tokenizer_is_refused(tmp_path, kind):
    with pytest.raises(BadInput, match="holds no tokenizer: none of tokenizer.json, vocab"):
        read_tokenizer(saved(tmp_path, kind))


@needs_transformers
def test_a_damaged_tokenizer_is_refused(tmp_path):
    folder = with_tokenizer(tmp_path)
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(BadInput, match="holds no tokenizer that can be read"):
        read_tokenizer(folder)


@needs_transformers
def test_a_name_in_the_cache_is_a_folder_and_any_other_name_is_refused_offline(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("the network was tried"))
    kept = tmp_path / "cache" / "models--someone--tiny"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text("abc")
    shutil.copytree(with_tokenizer(tmp_path), kept / "snapshots" / "abc")
    assert local_folder("someone/tiny") == kept / "snapshots" / "abc"
    assert pretrained("someone/tiny").name == "tiny"
    for name in ("someone/else", "no name/at/all", str(tmp_path / "nobody")):
        with pytest.raises(BadInput, match="there is no model .* on this machine"):
            local_folder(name)


@needs_transformers
def test_the_settings_of_the_library_are_left_as_they_were(tmp_path):
    import transformers
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE, os.environ.get("HF_HUB_OFFLINE"), transformers.utils.logging.get_verbosity()
    read_model(saved(tmp_path, "gpt2"))
    after = constants.HF_HUB_OFFLINE, os.environ.get("HF_HUB_OFFLINE"), transformers.utils.logging.get_verbosity()
    assert after == before


def test_without_transformers_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(MissingExtra, match="zhat\\[hf\\]"):
        read_model(tmp_path)
