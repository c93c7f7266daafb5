"""Hugging Face folders: the one place that loads a model's weights or tokenizer.

Only what runs no code of the folder: config.json and safetensors weights, of an architecture that is part of the
installed `transformers`. Pickled checkpoints, folders with code of their own, folders that lack weights and folders
that lead to others are refused. Nothing is downloaded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zhat.errors import BadInput, MissingExtra
from zhat.files.reading import first_line, readable

if TYPE_CHECKING:
    from torch import nn


def local_folder(name: str) -> Path:
    """A folder on this machine: of that path, or where the cache of Hugging Face keeps the model of that name.

    Args:
        name: for instance "gpt2".
    """
    if Path(name).is_dir():
        return Path(name)
    why = "it is no folder, and not in the cache"
    with _library():
        from huggingface_hub import try_to_load_from_cache

        try:
            cached = try_to_load_from_cache(name, "config.json")
        except ValueError as error:  # it cannot be a name
            cached, why = None, first_line(error)
    if not isinstance(cached, str):
        raise BadInput(
            f"there is no model {name!r} on this machine ({why}). Give a folder with a model and its tokenizer, or a "
            "name that is in the cache of Hugging Face."
        )
    return Path(cached).parent


def read_model(folder: Path | str) -> nn.Module:
    """The model in a Hugging Face folder, in evaluation mode; of an encoder with a decoder, the encoder."""
    folder = Path(folder)
    _refuse_code(folder)
    if not list(folder.glob("*.safetensors")):
        raise BadInput(
            f"{folder} holds no *.safetensors; pickled weights (pytorch_model.bin) are never loaded. Convert them with "
            "save_pretrained(…, safe_serialization=True) where you trust them."
        )
    with _library() as transformers:
        try:
            model, about = transformers.AutoModel.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, output_loading_info=True
            )
        except Exception as error:  # the library raises whatever its parts raise
            raise BadInput(f"{folder} cannot be read as a Hugging Face model ({first_line(error)}).") from None
    lacking = {*about["missing_keys"], *(str(key[0]) for key in about["mismatched_keys"])}
    missing = sorted(name for name in lacking if "pooler" not in name)  # a pooler is no layer
    if missing:
        raise BadInput(
            f"{folder} lacks weights ({', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}); a model with "
            "random ones would be audited. Save the whole model."
        )
    found: nn.Module = model.get_encoder() if getattr(model.config, "is_encoder_decoder", False) else model
    return found.eval()


def read_tokenizer(folder: Path | str) -> Any:
    """The tokenizer in a Hugging Face folder, as `save_pretrained` writes it."""
    folder = Path(folder)
    _refuse_code(folder)
    with _library() as transformers:
        try:
            found = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        except Exception as error:  # the library raises whatever its parts raise
            raise BadInput(f"{folder} holds no tokenizer that can be read ({first_line(error)}).") from None
    files = list(dict.fromkeys(["tokenizer.json", *found.vocab_files_names.values()]))
    if found.vocab_files_names and not any((folder / name).is_file() for name in files):  # the library makes up one
        raise BadInput(f"{folder} holds no tokenizer: none of {', '.join(files)} is there. Save the model's own.")
    return found


def _refuse_code(folder: Path) -> None:
    """Refuse a folder whose settings ask for code of its own, or for files of another kind or place."""
    if not (folder / "config.json").is_file():
        raise BadInput(
            f"{folder} must be a folder with config.json and *.safetensors, as save_pretrained writes it. Other "
            "checkpoints (.pt, .bin, TorchScript, exported programs) hold or need code, which zhat does not run; "
            "extract embeddings with your own code and audit those."
        )
    for entry in folder.iterdir():
        if not (entry.is_file() or entry.is_dir()):  # a pipe would never end
            raise BadInput(f"{entry} must be a file, but it is something else.")
    if (folder / "adapter_config.json").exists():
        raise BadInput(f"{folder} holds an adapter of another model. Merge the two, and save the whole.")
    for file in sorted((*folder.glob("*config.json"), *folder.glob("*.safetensors.index.json"))):
        with readable(file, "be JSON"):
            settings = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=partial(_looked, file))
        if not isinstance(settings, dict):
            raise BadInput(f"{file} must be JSON of names and values, but it holds a {type(settings).__name__}.")


def _looked(file: Path, entries: list[tuple[str, Any]]) -> dict[str, Any]:
    """Settings at any level, if they ask for no code and for no weights of another kind or place."""
    settings = dict(entries)
    if "auto_map" in settings:
        raise BadInput(f"{file.parent} asks for code of its own (auto_map in {file.name}), which zhat does not run.")
    shards = settings.get("weight_map")
    for name in (settings.get("transformers_weights"), *(shards.values() if isinstance(shards, dict) else ())):
        if name is not None and (Path(str(name)).name != name or Path(name).suffix != ".safetensors"):
            raise BadInput(f"{file} must name *.safetensors files beside it, but it names {name}.")
    return settings


@contextmanager
def _library() -> Iterator[Any]:
    """`transformers`, for a while without a log and without a network."""
    try:
        import transformers
        from huggingface_hub import constants
    except ImportError:
        raise MissingExtra("transformers", "hf", "reading Hugging Face models") from None
    log = transformers.utils.logging
    log.disable_progress_bar()
    before = log.get_verbosity(), constants.HF_HUB_OFFLINE, os.environ.get("HF_HUB_OFFLINE")
    log.set_verbosity_error()
    constants.HF_HUB_OFFLINE, os.environ["HF_HUB_OFFLINE"] = True, "1"
    try:
        yield transformers
    finally:
        log.set_verbosity(before[0])
        constants.HF_HUB_OFFLINE = before[1]
        if before[2] is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = before[2]
