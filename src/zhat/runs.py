"""One folder for each finished run, written whole or not at all.

```
…/seed-0/
    run.json             name, seed, settings, provenance, wall time, a checksum of every other file, and its own
    curve.jsonl          one line for each recorded step
    score.json           prediction, scores and what a page draws
    encoder.safetensors  the trained weights, unless they were not to be kept
    objective.safetensors  those of the objective, a classifier's head for instance, where it owns any
```

A folder is written under a temporary name, synced, and renamed; whatever bears the name `seed-…` is complete. The
folders are the truth: an index is a scan. Nothing here is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import nn

from zhat._files import drafted, let_others_read, make_folder, sync, writing
from zhat._version import __version__
from zhat.errors import BadInput, CorruptRun
from zhat.files.reading import read_bytes, readable
from zhat.results import Curve, Record, from_json, to_json
from zhat.results.plain import made

_FILES = ("curve.jsonl", "score.json", "encoder.safetensors", "objective.safetensors")
_ABOUT = {"zhat", "name", "seed", "seconds", "settings", "provenance", "sha256"}


def write(folder: Path, record: Record, encoder: nn.Module | None, objective: object = None) -> Path:
    """Write a finished run; a folder that already exists is left as it is.

    Args:
        folder: the final place, named `seed-<k>`.
        record: what to keep.
        encoder: whose weights to keep; None keeps none.
        objective: the trained objective; its weights are kept beside the encoder's, if it owns any.
    """
    if folder.exists():
        return folder
    make_folder(folder.parent)
    with writing(folder), drafted(folder, folder=True) as draft:
        (draft / "curve.jsonl").write_text(_curve_lines(record.curve), encoding="utf-8")
        kept = replace(record, curve=Curve((), ()), settings={}, provenance={})
        (draft / "score.json").write_text(to_json(kept), encoding="utf-8")
        for part, name in ((encoder, "encoder"), (objective if encoder is not None else None, "objective")):
            if isinstance(part, nn.Module):
                weights = {key: t.detach().cpu().clone() for key, t in part.state_dict().items()}
                if not weights:  # nn.Identity, for instance
                    continue
                (draft / f"{name}.safetensors").write_bytes(save(weights))
        about = {
            "zhat": __version__,
            "name": record.name,
            "seed": record.seed,
            "seconds": record.seconds,
            "settings": dict(record.settings),
            "provenance": dict(record.provenance),
            "sha256": {name: _checksum(draft / name) for name in _FILES if (draft / name).exists()},
        }
        text = json.dumps(sealed(about), indent=1, ensure_ascii=False)
        (draft / "run.json").write_text(text, encoding="utf-8")
        for path in [*draft.iterdir(), draft]:
            let_others_read(path)
            sync(path)
        try:
            os.rename(draft, folder)
        except OSError:
            if not folder.exists():  # otherwise somebody else finished the same run meanwhile
                raise
        sync(folder.parent)
    return folder


def sealed(about: Mapping[str, Any]) -> dict[str, Any]:
    """What run.json holds, with a checksum of all of it."""
    text = json.dumps(about, sort_keys=True, ensure_ascii=False)
    return {"seal": hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest(), **about}


def read(folder: Path) -> Record:
    """The record of a finished run, its files checked."""
    about = _about(folder)
    try:
        kept = from_json((folder / "score.json").read_text(encoding="utf-8"))
        if not isinstance(kept, Record):
            raise BadInput("score.json holds no record of a run")
        lines = (folder / "curve.jsonl").read_text(encoding="utf-8").splitlines()
        return replace(
            kept,
            curve=_curve_from([json.loads(line) for line in lines]),
            settings=from_json(json.dumps(about["settings"])),
            provenance=from_json(json.dumps(about["provenance"])),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptRun(f"{folder} holds no record of a run ({error}). Remove it and run again.") from None


def glance(folder: Path) -> Record:
    """The record of a finished run without its curve, picture and prediction: what a listing of many runs reads.

    The weights are not read, so a damaged file of weights goes unnoticed here.
    """
    about = _about(folder, weights=False)
    try:
        kept = json.loads((folder / "score.json").read_text(encoding="utf-8"))
        record = from_json(json.dumps({**kept, "picture": None, "prediction": None}))
        if not isinstance(record, Record):
            raise BadInput("score.json holds no record of a run")
        return replace(
            record,
            settings=from_json(json.dumps(about["settings"])),
            provenance=from_json(json.dumps(about["provenance"])),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptRun(f"{folder} holds no record of a run ({error}). Remove it and run again.") from None


def weights(folder: Path, part: str = "encoder") -> dict[str, torch.Tensor]:
    """The trained weights of a finished run, for `load_state_dict`: of the "encoder", or of the "objective"."""
    if f"{part}.safetensors" not in _about(folder)["sha256"]:
        raise BadInput(
            f"{folder} was kept without its weights, or its {part} has none. Run it again without --no-keep-weights."
        )
    with readable(folder / f"{part}.safetensors", "be a safetensors file"):
        return load((folder / f"{part}.safetensors").read_bytes())


def verify(folder: Path) -> None:
    """Refuse a folder whose files are missing or differ from what was written."""
    _about(folder)


def _about(folder: Path, *, weights: bool = True) -> dict[str, Any]:
    """What run.json says, if it and all files it names (or all but the weights) are as they were written."""
    if not folder.is_dir():
        raise BadInput(f"{folder} is not a folder. Give the folder of a run, or one that holds runs.")
    try:
        about = json.loads(read_bytes(folder / "run.json", "be JSON").decode())
        seal, names = about.pop("seal", None), {"curve.jsonl", "score.json"}
        if about.keys() != _ABOUT or not all(isinstance(about[k], dict) for k in ("sha256", "settings", "provenance")):
            raise ValueError("sha256, settings or provenance")
        if not names <= about["sha256"].keys() <= set(_FILES):
            raise ValueError("other files than those of a run")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptRun(
            f"{folder} holds no readable run.json ({type(error).__name__}). Remove the folder and run again."
        ) from None
    if seal is not None and sealed(about)["seal"] != seal:  # folders of earlier versions have none
        raise CorruptRun(f"{folder / 'run.json'} differs from what was written. Remove {folder} and run again.")
    for name, wanted in about["sha256"].items():
        path = folder / name
        if not weights and path.suffix == ".safetensors":
            continue
        if not path.is_file() or _checksum(path) != wanted:
            state = "differs from what was written" if path.is_file() else "is missing"
            raise CorruptRun(f"{path} {state}. Remove {folder} and run again.")
    return dict(about)


def scan(root: Path) -> Iterator[Path]:
    """The folders of finished runs under `root`, or `root` itself if it is one; sorted."""
    if not root.is_dir():
        raise BadInput(f"{root} is not a folder. Give the folder of a run, or one that holds runs.")
    if re.fullmatch(r"seed-\d+", root.name):
        yield root
        return
    found = [path for path in root.rglob("seed-*") if path.is_dir() and re.fullmatch(r"seed-\d+", path.name)]
    yield from sorted(found, key=lambda path: (path.parent, int(path.name.removeprefix("seed-"))))


def provenance(device: torch.device | str) -> dict[str, Any]:
    """Versions, device, commit and date: what somebody needs to obtain the same numbers."""
    device = torch.device(device)
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    else:
        name = f"{platform.machine()}, {torch.get_num_threads()} threads"
    return {
        "zhat": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": metadata.version("numpy"),
        "device": f"{device.type} ({name})",
        "platform": platform.platform(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def stamp(seed: int) -> dict[str, Any]:
    """Versions, date and seed: what a result says that was computed from files, without training."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"zhat": __version__, "torch": torch.__version__, "date": now, "seed": seed}


def assembled(provenances: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What several runs say of themselves, and this version of zhat; where they differ, each thing they say."""
    found: dict[str, list[str]] = {}
    for provenance in provenances:
        for key, value in provenance.items():
            if value and str(value) not in found.setdefault(key, []):
                found[key].append(str(value))
    if len(found.get("date", [])) > 1:
        found["date"] = [f"{min(found['date'])} to {max(found['date'])}"]
    return {"assembled with": version(), **{key: "; ".join(values) for key, values in found.items()}}


def version() -> str:
    """This version of zhat, with its commit where it runs from a source tree."""
    commit = _commit()
    return f"zhat {__version__}" + (f" ({commit})" if commit else "")


def _commit() -> str:
    """The commit of the source tree the package runs from; empty for an installed one."""
    given = os.environ.get("ZHAT_COMMIT", "")  # where a copy of the tree runs on another machine
    here = Path(__file__).resolve().parent
    if given or not (here.parent.parent / ".git").exists():
        return given
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _curve_lines(curve: Curve) -> str:
    lines = [{"step": step, "loss": loss} for step, loss in zip(curve.steps, curve.loss, strict=True)]
    for step, value in zip(curve.watched_steps, curve.watched, strict=True):
        lines.append({"step": step, curve.watched_name: value})
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)


def _curve_from(lines: list[dict[str, Any]]) -> Curve:
    losses = [line for line in lines if "loss" in line]
    watched = [line for line in lines if "loss" not in line]
    name = next((key for line in watched for key in line if key != "step"), "")
    return made(
        Curve,
        steps=tuple(line["step"] for line in losses),
        loss=tuple(line["loss"] for line in losses),
        watched_steps=tuple(line["step"] for line in watched),
        watched=tuple(line[name] for line in watched),
        watched_name=name,
    )


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
