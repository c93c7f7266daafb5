"""Models on the same data, layer by layer: the features of each are extracted once and audited layer against layer.

A model is a Hugging Face folder as `zhat.files.read_model` reads it or, from Python, any `nn.Module` that you built
yourself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from zhat.audit.rows import look
from zhat.audit.verdict import examined, opened
from zhat.errors import BadInput
from zhat.files import Embeddings, Rows, embeddings, local_folder, read_model, read_npy, read_tokenizer
from zhat.files.reading import first_line, readable
from zhat.results import AuditResult, LayerAudit, ModelMatrix, letter
from zhat.runs import stamp

BATCH = 32
"""Rows that go through a model at a time."""


def audit_models(a: Any, b: Any, data: Any, *, every: bool = False, seed: int = 0) -> LayerAudit:
    """Audit the features of two models on the same data, layer by layer, or each layer with each.

    A row of features is a layer's output for a row of data, its mean over tokens (padding left out) or over pixels.
    Where the models have a different number of layers, each layer of a is compared with the one of b at the same depth.

    Args:
        a: the model to map from: a Hugging Face folder, `hf:ORG/NAME` for one in the local cache of Hugging Face, or an
            `nn.Module`. Nothing is downloaded.
        b: the model to map to.
        data: what both are shown: an array or `.npy` file of token numbers `(rows, length)`, of images
            `(rows, channels, height, width)` or of inputs `(rows, …)` of a module; or for language models a `.txt` file
            with one text in each line, which each model cuts into tokens in its own way.
        every: compare each layer of a with each layer of b. A relation is then believed at levels that are divided by
            the number of pairs, because the best of many pairs looks related by chance.
        seed: of the sample and the chance level.
    """
    return _audited((a, b), data, [(0, 1)], every, seed)[0, 1]


def audit_all_models(models: Sequence[Any], data: Any, *, every: bool = False, seed: int = 0) -> ModelMatrix:
    """Audit every ordered pair of several models on the same data, layer by layer, or each layer with each.

    The features of each model are extracted once, and both directions of a pair of layers come from one pass over them.

    Args:
        models: two or more of what `audit_models` takes.
        data: what all are shown.
        every: compare each layer of one with each layer of the other; levels are divided as in `audit_models`, for each
            pair of models by itself.
        seed: of the sample and the chance level.
    """
    models = tuple(models)
    if len(models) < 2:
        raise BadInput(f"an audit compares at least two models, but {len(models)} came.")
    ways = list(permutations(range(len(models)), 2))
    found = _audited(models, data, ways, every, seed)
    names = (found[i, 1 if i == 0 else 0].a for i in range(len(models)))
    return ModelMatrix(tuple(names), tuple(found[way] for way in ways), stamp(seed))


def _audited(
    models: Sequence[Any], data: Any, ways: Sequence[tuple[int, int]], every: bool, seed: int
) -> dict[tuple[int, int], LayerAudit]:
    """The audits from one model to another, for each of these ways."""
    shown = Path(data).name if isinstance(data, str | Path) else "the data"
    names = [Path(str(m).removeprefix("hf:")).name if isinstance(m, str | Path) else type(m).__name__ for m in models]
    names = [name if names.count(name) == 1 else f"{name} ({letter(i)})" for i, name in enumerate(names)]
    found = [
        {layer: replace(rows, name=f"{name}, {layer}") for layer, rows in layers(model, data).items()}
        for name, model in zip(names, models, strict=True)
    ]
    beside = {way: _beside([*found[way[0]]], [*found[way[1]]], every) for way in ways}
    out: dict[tuple[int, int], LayerAudit] = {}
    for i, j in combinations(range(len(models)), 2):
        audits: dict[tuple[int, int], dict[tuple[str, str], AuditResult]] = {(i, j): {}, (j, i): {}}
        there, back = beside.get((i, j), []), beside.get((j, i), [])
        for one, other in dict.fromkeys([*there, *((a, b) for b, a in back)]):
            a, b = opened((found[i][one], found[j][other]), None, None)
            seen = look(a, b, seed=seed)
            if (one, other) in there:
                among = len(there) if every else 1
                audits[i, j][one, other] = examined(seen, a, b, seed, among=among).result
            if (other, one) in back:
                among = len(back) if every else 1
                audits[j, i][other, one] = examined(seen.swapped(), b, a, seed, among=among).result
        for way in ((i, j), (j, i)):
            if way in beside:
                pairs = beside[way]
                about = {**stamp(seed), "levels divided by": len(pairs)} if every else stamp(seed)
                results = tuple(audits[way][pair] for pair in pairs)
                out[way] = LayerAudit(names[way[0]], names[way[1]], shown, tuple(pairs), results, about)
    return out


def _beside(a: list[str], b: list[str], every: bool) -> list[tuple[str, str]]:
    """Which layers are compared."""
    return [(one, other) for one in a for other in b] if every else _at_the_same_depth(a, b)


def _at_the_same_depth(a: list[str], b: list[str]) -> list[tuple[str, str]]:
    step = (len(b) - 1) / max(1, len(a) - 1)
    return [(name, b[round(i * step)]) for i, name in enumerate(a)]


def layers(model: Any, data: Any) -> dict[str, Embeddings]:
    """The features of every layer of one model, by name and in order, in unnamed temporary files.

    Args:
        model: a Hugging Face folder, `hf:ORG/NAME`, or an `nn.Module`.
        data: what `audit_models` takes.
    """
    folder = None
    if isinstance(model, str | Path):
        folder = local_folder(str(model).removeprefix("hf:")) if str(model).startswith("hf:") else Path(model)
    network: nn.Module = read_model(folder) if folder is not None else model
    if not isinstance(network, nn.Module):
        raise BadInput(f"a model is a folder or an nn.Module, but {type(model).__name__} came.")
    training = network.training
    run = _runner(network)
    spools: dict[str, Any] = {}
    rows = 0
    try:
        network.eval()
        with torch.no_grad():
            for inputs, mask in _batches(data, network, folder):
                rows += len(inputs)
                for name, values in run(inputs, mask):
                    pooled = _pooled(values, mask).float().cpu().numpy()
                    if name not in spools:
                        spools[name] = tempfile.TemporaryFile(), pooled.shape[1]  # noqa: SIM115 (closed below)
                    spools[name][0].write(np.ascontiguousarray(pooled).tobytes())
        found = {}
        for name, (spool, dim) in spools.items():
            spool.flush()
            found[name] = embeddings(np.memmap(spool, np.float32, "r", shape=(rows, dim)), name=name)
        return found
    finally:
        network.train(training)
        for spool, _ in spools.values():
            spool.close()


def _batches(data: Any, model: nn.Module, folder: Path | None) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Some rows of the data at a time, with a mask of the tokens that count."""
    if isinstance(data, str | Path) and Path(data).suffix == ".txt":
        yield from _texts(Path(data), folder)
        return
    values = _array(data)
    words = _vocabulary(model) if hasattr(model, "config") else None
    for start in range(0, len(values), BATCH):
        some = torch.from_numpy(np.array(values[start : start + BATCH]))
        if some.is_floating_point():
            some = some.float()
            if not bool(torch.isfinite(some).all()):
                raise BadInput(f"the data must be finite, but rows {start} to {start + len(some) - 1} are not.")
        else:
            some = some.long()
            least, most = int(some.min()), int(some.max())
            if words is not None and (least < 0 or most >= words):
                raise BadInput(
                    f"token numbers must be from 0 to {words - 1}, but {least} to {most} came in rows {start} to "
                    f"{start + len(some) - 1}. Were they made by this model's tokenizer?"
                )
        yield some, None


def _vocabulary(model: Any) -> int | None:
    """How many tokens a Hugging Face model knows; None for one that takes no tokens."""
    found: int | None = getattr(model.get_input_embeddings(), "num_embeddings", None)
    return found


def _array(data: Any) -> Rows:
    if isinstance(data, str | Path):
        path = Path(data)
        if not path.is_file() or path.suffix != ".npy":
            raise BadInput(f"the data must be a .npy or .txt file, but {path} is none.")
        data = read_npy(path)
    values = np.asarray(data.detach().cpu() if isinstance(data, Tensor) else data)
    if values.ndim < 2 or 0 in values.shape or values.dtype.kind not in "iuf":
        raise BadInput(f"the data must be numbers of shape (rows, …), but {values.dtype} of shape {values.shape} came.")
    return values


def _texts(path: Path, folder: Path | None) -> Iterator[tuple[Tensor, Tensor | None]]:
    if folder is None:
        raise BadInput("texts need the tokenizer of a Hugging Face folder. Give a module numbers.")
    if not path.is_file():
        raise BadInput(f"there is no file {path}.")
    cut = read_tokenizer(folder)
    if cut.pad_token is None:
        cut.pad_token = cut.eos_token or cut.unk_token
    with readable(path, "hold one text in each line"):
        lines = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    if not lines:
        raise BadInput(f"{path.name} must hold one text in each line, but it is empty.")
    most = min(int(cut.model_max_length), 512)
    for start in range(0, len(lines), BATCH):
        found = cut(lines[start : start + BATCH], padding=True, truncation=True, max_length=most, return_tensors="pt")
        yield found["input_ids"], found["attention_mask"]


def _runner(model: nn.Module) -> Callable[[Tensor, Tensor | None], list[tuple[str, Tensor]]]:
    """What gives the output of every layer for some inputs."""
    if hasattr(model, "config") and hasattr(model, "main_input_name"):
        return lambda inputs, mask: _hidden_states(model, inputs, mask)
    return lambda inputs, mask: _outputs(model, inputs)


def _hidden_states(model: Any, inputs: Tensor, mask: Tensor | None) -> list[tuple[str, Tensor]]:
    wanted = model.main_input_name
    if (wanted == "input_ids") == inputs.is_floating_point():
        kind = "token numbers (whole numbers)" if wanted == "input_ids" else f"{wanted} (real numbers)"
        raise BadInput(f"{type(model).__name__} takes {kind}, but the data are {inputs.dtype}.")
    more = {} if mask is None else {"attention_mask": mask}
    try:
        states = model(**{wanted: inputs}, **more, output_hidden_states=True).hidden_states
    except (RuntimeError, ValueError, IndexError) as error:
        raise BadInput(
            f"{type(model).__name__} cannot take data of shape {tuple(inputs.shape)} ({first_line(error)})."
        ) from None
    return [("input" if i == 0 else f"block {i}", state) for i, state in enumerate(states)]


def _outputs(model: nn.Module, inputs: Tensor) -> list[tuple[str, Tensor]]:
    """The outputs of a module's children in the order in which they run; those of a Sequential one by one."""
    kept: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        def hook(module: nn.Module, arguments: Any, output: Any) -> None:
            if isinstance(output, Tensor):
                kept[name] = output

        return hook

    hooks = [child.register_forward_hook(keep(name)) for name, child in _children(model)]
    try:
        model(inputs)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise BadInput(
            f"{type(model).__name__} cannot take data of shape {tuple(inputs.shape)} ({first_line(error)})."
        ) from None
    finally:
        for hook in hooks:
            hook.remove()
    return list(kept.items())


def _children(model: nn.Module, within: str = "") -> Iterator[tuple[str, nn.Module]]:
    for name, child in model.named_children():
        full = f"{within}{name}"
        if isinstance(child, nn.Sequential | nn.ModuleList):
            yield from _children(child, f"{full}.")
        else:
            yield full, child


def _pooled(values: Tensor, mask: Tensor | None) -> Tensor:
    """One vector for each row: the mean over tokens `(rows, tokens, dim)` or pixels `(rows, channels, h, w)`."""
    if values.ndim == 3 and mask is not None:
        weight = mask.to(values)[..., None]
        return (values * weight).sum(1) / weight.sum(1).clamp_min(1)
    if values.ndim == 3:
        return values.mean(1)
    return values.flatten(2).mean(2) if values.ndim > 3 else values
