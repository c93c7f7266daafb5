"""Damaged input of every kind that zhat reads, and what became of it.

python -m benchmarks.fuzz --cases 100000 --seed 0 [--only npy,csv] [--jobs 4] [--commands 60] [--out results/fuzz.json]
python -m benchmarks.fuzz --seed 0 --case 1234          one case again, with its traceback

A case draws a kind of input, damages it and hands it to the reader and what follows. It ends in one of these ways:

- read: the input was usable all the same, and every number that came out is finite;
- refused: one of zhat's own errors, which the command line turns into one sentence and exit code 2;
- crashed: any other exception;
- hung: no answer within 20 seconds;
- accepted: damage that the file itself tells was not noticed. A file tells it by a checksum (.npz, .csv.gz, adapters,
  run folders, checkpoints) or by its length (.npy, .safetensors). A changed digit in a .csv or a changed bit in the
  numbers of a .npy cannot be told from another number and counts as read. Numbers that are not finite, or an escape
  code on the terminal, count as accepted as well.

Cases run in forked children of this process. With --commands, that many more run as real programs: damaged files, pipes
and devices as inputs and outputs, names with escape codes, a full disk (where a small one can be mounted), a reader
that leaves.
"""

import argparse
import gzip
import hashlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save, save_file
from typer.testing import CliRunner

from zhat import decoding, metrics, report, runs, theory
from zhat.audit import Adapter, adapt, audit, read_adapter, read_gate
from zhat.cli import app
from zhat.decoding.factors import columns, typed
from zhat.dgp import InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.equivalence import AFFINE, ORTHOGONAL
from zhat.errors import ZhatError
from zhat.files import embeddings
from zhat.files.arrays import read_npy
from zhat.files.ids import row_ids
from zhat.fresh import Fresh
from zhat.objectives import InfoNCE
from zhat.report.comparison import write_comparison
from zhat.results import Answer, Curve, Picture, Prediction, Profile, Record, Score, from_json, to_json
from zhat.training import train

ROOT = Path(__file__).parent.parent
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # where a case writes, so that disks are spared
PATIENCE = 20  # seconds before a case counts as hung
ROWS = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


class Accepted(Exception):
    """Damage that was not noticed."""


class Hung(Exception):
    """No answer in time."""


# --- damage


NASTY = (
    *(b"nan inf -inf NaN 1e999 -1e308 1e-320 0 -0 9223372036854775808 1e77 null None true [] {} \"\"".split()),
    *(b"\xef\xbb\xbf \xff\xfe \x00 \x1b[31m \x1b]0;x\x07 \x9b2J \xc3\x28 \r \n \" ' , ; \t = [ ] { } \\".split(b" ")),
)  # fmt: skip


def hurt(data: bytes, random) -> bytes:
    """Bytes with one to four changes, never the same as before."""
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 4])):
        size = len(changed)
        place, span = int(random.integers(0, max(1, size))), int(2 ** random.uniform(0, 8))
        match random.integers(0, 9):
            case 0 | 1 if size:
                changed[place] ^= 1 << int(random.integers(0, 8))
            case 2:
                changed[place : place + span] = random.bytes(span)
            case 3:
                del changed[place:]
            case 4:
                del changed[place : place + span]
            case 5:
                changed[place:place] = changed[max(0, place - span) : place]
            case 6:
                changed[place : place + span] = bytes(len(changed[place : place + span]))
            case 7:
                word = NASTY[random.integers(0, len(NASTY))]
                changed[place : place + int(random.integers(0, len(word) + 1))] = word
            case 8:
                changed += random.bytes(span)
    return bytes(changed) if bytes(changed) != data else hurt(data, random)


VALUES = (
    None,
    True,
    False,
    0,
    -1,
    3,
    2**70,
    1e308,
    -1e-320,
    0.5,
    "",
    "x",
    "\x1b[2J",
    "<b>",
    [],
    [1],
    [[]],
    {},
    {"a": 1},
)


def bent(value, random):
    """JSON with one node replaced, removed or doubled."""
    nodes = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            nodes.append((node, key))
            walk(node[key])

    value = json.loads(json.dumps(value))
    walk(value)
    node, key = nodes[random.integers(0, len(nodes))]
    match random.integers(0, 5):
        case 0:
            del node[key]
        case 1 if isinstance(node, list):
            node.append(node[key])
        case 2:
            other, there = nodes[random.integers(0, len(nodes))]
            node[key] = json.loads(json.dumps(other[there])) if other is not node and there in _keys(other) else None
        case 3 if isinstance(node[key], int | float) and not isinstance(node[key], bool):
            node[key] = float(node[key]) * 10.0 ** float(random.choice([-300, -8, 8, 300])) if node[key] < 1e7 else -1
        case _:
            node[key] = VALUES[random.integers(0, len(VALUES))]
    return value


def _keys(node):
    return node if isinstance(node, dict) else range(len(node))


# --- what is whole before it is damaged


_WHOLE: dict[str, bytes] = {}


def whole(name: str, random) -> bytes:
    """The bytes of an undamaged file of that name, made once."""
    if name not in _WHOLE:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            _MAKERS[path.suffix if path.suffix != ".gz" else ".csv.gz"](path)
            _WHOLE[name] = path.read_bytes()
    return _WHOLE[name]


def _table(separator=","):
    lines = [separator.join(["name", "a", "b", "c"])]
    lines += [separator.join([f"r{i}", *(repr(float(v)) for v in row[:3])]) for i, row in enumerate(ROWS)]
    return "\n".join(lines) + "\n"


def _arrow(path):
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.ipc
    import pyarrow.parquet

    table = pa.table(
        {"name": [f"r{i}" for i in range(50)], "a": ROWS[:, 0], "b": ROWS[:, 1].astype(float), "c": list(range(50))}
    )
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    elif path.suffix == ".feather":
        pa.feather.write_feather(table, path, compression="uncompressed")
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)


def _tensors(path):
    save_file({"x": torch.from_numpy(ROWS)}, path)


def _h5(path):
    import h5py

    with h5py.File(path, "w") as file:
        file["x"] = ROWS


def _mat(path):
    from scipy.io import savemat

    savemat(path, {"x": ROWS.astype(float), "note": "words"})


def _adapter(path):
    matrix = torch.from_numpy(np.random.default_rng(1).normal(size=(4, 4)))
    Adapter(
        matrix, torch.zeros(4).double(), torch.ones(4).double(), matrix.inverse(), AFFINE, 0.9, 0.1, "a", "b", 50
    ).write(path)


_MAKERS = {
    ".npy": lambda path: np.save(path, ROWS),
    ".npz": lambda path: np.savez_compressed(path, x=ROWS),
    ".safetensors": lambda path: _adapter(path) if path.stem == "adapter" else _tensors(path),
    ".csv": lambda path: path.write_text(_table()),
    ".tsv": lambda path: path.write_text(_table("\t")),
    ".csv.gz": lambda path: path.write_bytes(gzip.compress(_table().encode(), mtime=0)),
    ".parquet": _arrow,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".h5": _h5,
    ".mat": _mat,
    ".txt": lambda path: path.write_text("\n".join(f"r{i}" for i in range(50))),
    ".toml": lambda path: path.write_text('[gate]\nrequire = "affine"\nmin = 0.9\nmax_condition = 100\n'),
}  # fmt: skip


def damaged(name: str, folder: Path, random) -> Path:
    path = folder / name
    path.write_bytes(hurt(whole(name, random), random))
    return path


def finite(values) -> None:
    if not np.isfinite(np.asarray(values, dtype=np.float64)).all():
        raise Accepted("numbers that are not finite came out")


# --- kinds


def matrix(name, told=None):
    """A kind: a damaged matrix on disk. `told` says whether the file itself tells its damage: "sum" or "length"."""

    def kind(random, folder):
        path = damaged(name, folder, random)
        ids = "name" if name.startswith("table") else None
        found = embeddings(path, ids=ids)
        rows = np.concatenate(list(found.blocks()))
        finite(rows)
        if told == "sum" and not np.array_equal(rows, ROWS[:, : rows.shape[1]]):
            raise Accepted("another content came out of a file with a checksum")
        if told == "length" and path.stat().st_size < len(whole(name, random)) - 64 and rows.shape == ROWS.shape:
            raise Accepted("a file that was cut gave all of its rows")

    return kind


def shards(random, folder):
    """A folder of shards, one of them damaged or of another kind."""
    for i, name in enumerate(random.choice(["x.npy", "x.npz", "x.safetensors"], 3)):
        (folder / f"{i}{Path(name).suffix}").write_bytes(whole(str(name), random))
    damaged(str(random.choice(["x.npy", "x.npz", "x.safetensors", "x.csv"])), folder, random)
    finite(np.concatenate(list(embeddings(folder).blocks(17))))


def ids(random, folder):
    if random.integers(0, 2):
        path = damaged("ids.txt", folder, random)
    else:
        path = folder / "ids.npy"
        np.save(path, odd_array(random, (50,)), allow_pickle=False)
        if random.integers(0, 2):
            path.write_bytes(hurt(path.read_bytes(), random))
    row_ids(path, 50, "x")


def factors(random, folder):
    name = str(
        random.choice(["table.csv", "table.tsv", "table.csv.gz", "table.parquet", "table.arrow", "x.npy", "x.npz"])
    )
    found = columns(damaged(name, folder, random), ids="name" if name.startswith("table") else None)
    for each, values in found.columns.items():
        finite(typed(each, values)[0].columns)


def heads(random, folder):
    paths = [folder / "head.npy", folder / "labels.npy"]
    np.save(paths[0], odd_array(random, (9, 3)), allow_pickle=False)
    np.save(
        paths[1], random.integers(0, 9, 60) if random.integers(0, 2) else odd_array(random, (60,)), allow_pickle=False
    )
    if random.integers(0, 2):
        which = paths[random.integers(0, 2)]
        which.write_bytes(hurt(which.read_bytes(), random))
    if random.integers(0, 3):
        to_json(theory.check_head(*(np.array(read_npy(path)) for path in paths)))
    else:
        to_json(theory.compare_models(np.array(read_npy(paths[0])), odd_array(random, (9, 3))))


def gates(random, folder):
    if random.integers(0, 2):
        read_gate(damaged("gate.toml", folder, random))
        return
    key = random.choice(["require", "min", "max_condition", "min_recall", "gate", "other"])
    value = random.choice(
        ["1e400", "nan", "-inf", "true", '"affine"', '"\\u001b[2J"', "[1]", "{a = 1}", "1979-05-27", "9" * 400]
    )
    (folder / "gate.toml").write_text(f"{key} = {value}\n")
    read_gate(folder / "gate.toml")


def adapters(random, folder):
    path = damaged("adapter.safetensors", folder, random)
    found = read_adapter(path)
    (folder / "whole").write_bytes(whole("adapter.safetensors", random))
    if not torch.equal(found.matrix, read_adapter(folder / "whole").matrix):
        raise Accepted("another map came out of a damaged adapter")


def forged_adapters(random, folder):
    """Whole files that hold something else."""
    tensors = {}
    for name, shape in (("matrix", (4, 4)), ("centre", (4,)), ("offset", (4,))):
        values = np.atleast_1d(np.asarray(odd_array(random, shape), dtype=np.float64))
        tensors[name] = torch.from_numpy(np.array(values, order="C"))
    numbers = bent({"r2": 0.9, "error": 0.1, "rows": 50}, random)
    about = {"format": "zhat adapter 1", "up_to": "AFFINE", "numbers": json.dumps(numbers), "a": "\x1b[2J", "b": "b"}
    about.pop(str(random.choice([*about, "none", "none"])), None)
    (folder / "a.safetensors").write_bytes(save(tensors, metadata=about))
    adapt(read_adapter(folder / "a.safetensors"), ROWS, folder / "out.npy")
    finite(np.load(folder / "out.npy"))


STORED = sorted((ROOT / "results").glob("*/*/*/results.json"), key=lambda path: path.stat().st_size)[:12]
_PARSED: dict[Path, object] = {}


def results(random, folder):
    """A results.json with one node changed, or some bytes."""
    path = STORED[int(random.integers(0, len(STORED)))]
    if path not in _PARSED:
        _PARSED[path] = json.loads(path.read_text(encoding="utf-8"))
    value = _PARSED[path]
    text = json.dumps(bent(value, random)) if random.integers(0, 4) else None
    if text is None:
        text = hurt(json.dumps(value).encode(), random).decode("utf-8", errors="replace")
    found = from_json(text)
    if from_json(to_json(found)) != found:
        raise Accepted("a result that does not survive being written")
    if type(found).__name__ == "PartResult" and not random.integers(0, 4):
        for file in write_comparison(found, folder / "out").values():
            if "\x1b" in file.read_text(encoding="utf-8"):
                raise Accepted(f"an escape code in {file.name}")


def record():
    score = Score("R2", 0.9, AFFINE, True, 0.8, 0.95, 0.0, 0.01, 100, 100, True, (0.9, 0.9))
    profile = Profile((score, Score("R2", 0.7, ORTHOGONAL, True, 0.6, 0.8, 0.0, 0.0, 100, 100, True, (0.7, 0.7))))
    picture = Picture(((0.0, 1.0), (0.5, 0.2)), ((0.1, 0.9), (0.4, 0.3)), AFFINE, ((1.0, 0.0), (0.0, 1.0)), (1.0, 0.9))
    prediction = Prediction("Theorem 2", "zimmermann2021", ORTHOGONAL, False, 1.0, (Answer("c", "yes", "b"),))
    return Record(
        "a run", 3, {"process": "Pairs(…)"}, {"torch": "2.13"}, 1.5, Curve((1, 2), (2.0, 1.0), (2,), (0.5,), "watched"),
        (3,), prediction=prediction, raw=profile, learned=profile, picture=picture, by_paper=score, held_out=score,
    )  # fmt: skip


def run_folders(random, folder):
    """A finished run with one file damaged."""
    place = runs.write(folder / "row" / "seed-3", record(), mlp(2, 2, widths=(4,), seed=0))
    path = place / str(random.choice(["run.json", "curve.jsonl", "score.json", "encoder.safetensors"]))
    path.write_bytes(hurt(path.read_bytes(), random))
    if runs.read(place) != record():
        raise Accepted("another record came out of a damaged folder")
    runs.weights(place)


def forged_runs(random, folder):
    """A run whose checksums are right and whose content is not."""
    place = runs.write(folder / "row" / "seed-3", record(), None)
    about = json.loads((place / "run.json").read_text())
    match random.integers(0, 3):
        case 0:
            text = json.dumps(bent(json.loads((place / "score.json").read_text()), random))
            (place / "score.json").write_text(text)
        case 1:
            lines = [json.loads(line) for line in (place / "curve.jsonl").read_text().splitlines()]
            (place / "curve.jsonl").write_text("\n".join(json.dumps(line) for line in bent(lines, random)))
        case 2:
            about = bent(about, random)
    if isinstance(about.get("sha256"), dict):
        about["sha256"] |= {
            n: hashlib.sha256((place / n).read_bytes()).hexdigest() for n in ("score.json", "curve.jsonl")
        }
    if "seal" in about and hasattr(runs, "sealed"):
        about = runs.sealed({key: value for key, value in about.items() if key != "seal"})
    (place / "run.json").write_text(json.dumps(about))
    found = runs.read(place)
    if from_json(to_json(found)) != found:
        raise Accepted("a record that does not survive being written")
    report.write([found], folder / "report.html")


WORLD = Pairs(Uniform(Sphere(2)), VonMisesFisher(10.0), InvertibleMLP(layers=1))
HOW = {"steps": 2, "batch": 4, "lr": 1e-2}


def checkpoints(random, folder):
    path = folder / "state.safetensors"
    if "checkpoint" not in _WHOLE:
        done = train(Fresh(mlp, 2, 2, widths=(2,)), WORLD, InfoNCE(), checkpoint=path, **HOW)
        _WHOLE["checkpoint"] = path.read_bytes()
        _WHOLE["trained"] = save(dict(done.encoder.state_dict()))
    path.write_bytes(hurt(_WHOLE["checkpoint"], random))
    again = train(Fresh(mlp, 2, 2, widths=(2,)), WORLD, InfoNCE(), checkpoint=path, **HOW)
    if save(dict(again.encoder.state_dict())) != _WHOLE["trained"]:
        raise Accepted("other weights came out of a damaged checkpoint")


def odd_array(random, shape):
    """An array that is strange in one way or another, of about that shape."""
    values = random.normal(size=shape)
    match int(random.integers(0, 22)):
        case 0:
            return values * 10.0 ** float(random.uniform(-320, 307))
        case 1:
            return values * 10.0 ** random.uniform(-300, 300, shape[-1:])
        case 2:
            return values + 10.0 ** float(random.uniform(0, 300))
        case 3:
            return values.astype(np.longdouble)
        case 4:
            return values.astype(
                random.choice([np.float16, np.float32, np.int8, np.uint16, np.int64, np.bool_, np.complex64])
            )
        case 5:
            values.flat[random.integers(0, values.size)] = random.choice([np.nan, np.inf, -np.inf, 1e308, -0.0])
            return values
        case 6:
            return values.astype(">f8")
        case 7:
            return np.zeros(shape)
        case 8:
            return np.round(values)
        case 9:
            return np.repeat(values[:1], len(values), 0)
        case 10:
            return values[:: int(random.integers(1, 9))]
        case 11:
            return np.asfortranarray(values)
        case 12:
            return values[::-1]
        case 13:
            return values.astype(str)
        case 14:
            return np.array(["2020-01-01"] * len(values), dtype="datetime64[D]")
        case 15:
            return values.reshape(-1)
        case 16:
            return values[None]
        case 17:
            return values[:0]
        case 18:
            return np.sign(values) * 1e308
        case 19:
            values[0] = 1e200
            return values
        case 20:
            return values.astype([("a", float)]) if random.integers(0, 2) else np.array(1.0)
        case _:
            return values


def metric(random, folder):
    """Odd arrays in a score."""
    z = random.normal(size=(60, 2))
    h = odd_array(random, (60, 2))
    if random.integers(0, 2):
        z, h = h, z
    if random.integers(0, 4) == 0:
        z = odd_array(random, (60, 2))
    measures = (metrics.mcc, metrics.linear_r2, metrics.CCA(), metrics.CKA(), metrics.Procrustes(), metrics.PWCCA())
    to_json(measures[random.integers(0, len(measures))](z, h))


def audits(random, folder):
    """Odd arrays in an audit."""
    a = random.normal(size=(60, 2))
    b = (
        odd_array(random, (60, 2))
        if random.integers(0, 2)
        else a @ random.normal(size=(2, 2)) * 10.0 ** random.uniform(-300, 300)
    )
    pair = (a, b) if random.integers(0, 2) else (b, a)
    to_json(audit(*pair))


def decodes(random, folder):
    """Odd arrays as a representation, or as a factor."""
    h = odd_array(random, (80, 2)) if random.integers(0, 2) else random.normal(size=(80, 2))
    known = {"one": odd_array(random, (80,)), "two\x1b[2J": random.integers(0, 3, 80)}
    to_json(decoding.decode(h, known, disentanglement=not random.integers(0, 8)))


WORDS = (
    *("", "\x1b[2J", "\udcff", "0", "-1", "nan", "1e400", "x", "../x", ".", "/dev/null", "9" * 20, "page.html"),
    *("a.npy", "b.npy", "f.csv", "identity", "affine", "one=real", "one=0", "nope", "papers", "metrics"),
    *("--json", "--key", "--ids", "--require", "--min", "--gate", "--recall", "--report", "--adapter", "--seed"),
    *("--split", "--components", "--type", "--period", "--head", "--labels", "--row", "--device", "--out", "--gaps"),
    *("audit", "decode", "adapt", "check", "report", "list"),
)


def options(random, folder):
    """Words in any order on the command line, in this process."""
    np.save(folder / "a.npy", ROWS)
    np.save(folder / "b.npy", ROWS[:, ::-1])
    (folder / "f.csv").write_text("one,two\n" + "\n".join(f"{i % 3},{i}" for i in range(50)))
    begin = {
        "audit": ["a.npy", "b.npy"],
        "decode": ["a.npy", "f.csv"],
        "adapt": ["a.npy"],
        "check": [],
        "report": ["."],
        "list": ["metrics"],
    }
    name = str(random.choice(list(begin)))
    words = [name, *begin[name], *(str(w) for w in random.choice(WORDS, int(random.integers(1, 4))))]
    if random.integers(0, 4) == 0:
        del words[int(random.integers(1, len(words)))]
    before = Path.cwd()
    os.chdir(folder)
    try:
        said = CliRunner().invoke(app, words, env={"COLUMNS": "80", "NO_COLOR": "1"})
    finally:
        os.chdir(before)
    if said.exception is not None and not isinstance(said.exception, SystemExit):
        raise said.exception
    output = said.output.replace("nan\n", "\n") if "nan" in words else said.output  # a file of that name was written
    judged(said.exit_code, output, gate=bool({"--require", "--min", "--gate"} & set(words)))


def judged(code: int, said: str, *, gate: bool) -> None:
    """Whether a command has ended as it should."""
    if "Traceback" in said or code not in ((0, 1, 2) if gate else (0, 2)):
        raise RuntimeError(f"exit code {code}: {said[-300:]!r}")
    if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", said):
        raise Accepted(f"an escape code on the terminal: {said[-200:]!r}")
    if code == 0 and re.search(r"\b(nan|inf|NaN|Infinity)\b", said):
        raise Accepted("numbers that are not finite on the terminal")


# --- real programs


def command(random, folder):
    """A real program on odd input or output: its words, whether a gate was asked for, and what must be as before."""
    np.save(folder / "a.npy", ROWS)
    np.save(folder / "b.npy", ROWS[:, ::-1])
    (folder / "f.csv").write_text("one,two\n" + "\n".join(f"{i % 3},{i}" for i in range(50)))
    _adapter(folder / "adapter.safetensors")
    os.mkfifo(folder / "pipe.npy")
    os.mkfifo(folder / "pipe.csv")
    (folder / "zero.npy").symlink_to("/dev/zero")
    (folder / "null").symlink_to("/dev/null")
    (folder / "e\x1b[2J.csv").write_text("a\x1b[2J,b\n" + "\n".join(f"{i % 3},{i}" for i in range(50)))
    audited, decoded = ["audit", "a.npy", "b.npy"], ["decode", "a.npy", "f.csv"]
    choices = [
        *[["audit", str(damaged(f"x{kind}", folder, random)), "b.npy"] for kind in (".npy", ".npz", ".h5", ".mat")],
        ["decode", "a.npy", str(damaged("table.csv", folder, random)), "--ids", "name"],
        ["audit", "pipe.npy", "b.npy"], ["audit", "a.npy", "zero.npy"], ["decode", "a.npy", "pipe.csv"],
        ["decode", "a.npy", "e\x1b[2J.csv"], [*audited, "--ids", "pipe.csv", "--ids", "pipe.csv"],
        ["check", "--head", "pipe.npy"], ["check", "--head", "zero.npy"], ["report", "pipe.csv"],
        ["adapt", "pipe.npy", "a.npy", "-o", "out.npy"], ["adapt", "adapter.safetensors", "zero.npy", "-o", "out.npy"],
        ["adapt", "adapter.safetensors", "a.npy", "-o", "pipe.npy"], [*audited, "--gate", "pipe.csv"],
        [*audited, "--report", "null"], [*audited, "--report", "/dev/null"], [*audited, "--adapter", "pipe.npy"],
        [*decoded, "--report", "pipe.csv"], [*decoded, "--json"], [*audited, "--json"], ["audit", "", "b.npy"],
        ["list", "zimmermann2021", "--device", "nope"], ["list", "papers"], ["--help"],
    ]  # fmt: skip
    full = small_disk()
    if full is not None:
        choices += [
            ["adapt", "adapter.safetensors", "long.npy", "-o", f"{full}/out.npy"],
            [*decoded, "--report", f"{full}/x.html"],
        ]
        np.save(folder / "long.npy", np.ones((20_000, 4), dtype=np.float32))
    return choices[random.integers(0, len(choices))]


_SMALL: list[Path | None] = []


def small_disk() -> Path | None:
    """A disk of 16 KiB, where this process may mount one."""
    if not _SMALL:
        place = Path(tempfile.mkdtemp(prefix="fuzz.full."))
        mounted = (
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", place], capture_output=True).returncode
            == 0
        )
        _SMALL.append(place if mounted else None)
    return _SMALL[0]


def programs(count: int, seed: int) -> dict:
    """So many real programs: how often each exit code came, and which ended as they should not."""
    codes, faults = Counter(), []
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    devices = [os.stat(path).st_rdev for path in ("/dev/null", "/dev/zero")]
    for index in range(count):
        random = np.random.default_rng([seed, index, 1])
        with tempfile.TemporaryDirectory(prefix="fuzz.") as folder:
            words = command(random, Path(folder))
            leaves = not random.integers(0, 4)
            process = subprocess.Popen(
                [sys.executable, "-m", "zhat", *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env=here,
            )  # fmt: skip
            if leaves:
                process.stdout.close()
                process.stdout = None
            try:
                out, err = process.communicate(timeout=6 * PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                faults.append({"words": words, "why": "hung"})
                continue
            codes[process.returncode] += 1
            try:
                judged(process.returncode, ((out or b"") + err).decode(errors="replace"), gate=False)
                if [os.stat(path).st_rdev for path in ("/dev/null", "/dev/zero")] != devices:
                    raise Accepted("a device was replaced")
                if not Path(folder, "pipe.npy").is_fifo() or not Path(folder, "pipe.csv").is_fifo():
                    raise Accepted("a pipe was replaced")
            except (Accepted, RuntimeError) as error:
                faults.append({"words": words, "why": str(error)})
                print(words, error, flush=True)
    if _SMALL and _SMALL[0] is not None:
        subprocess.run(["umount", _SMALL[0]], check=True)
        _SMALL[0].rmdir()
    return {"programs": count, "exit codes": {str(code): n for code, n in sorted(codes.items())}, "faults": faults}


KINDS = {  # with how often each is drawn
    "npy": (matrix("x.npy", "length"), 14),
    "npz": (matrix("x.npz", "sum"), 14),
    "safetensors": (matrix("x.safetensors", "length"), 10),
    "csv": (matrix("table.csv"), 8),
    "tsv": (matrix("table.tsv"), 3),
    "csv.gz": (matrix("table.csv.gz", "sum"), 6),
    "parquet": (matrix("table.parquet"), 8),
    "arrow": (matrix("table.arrow"), 6),
    "feather": (matrix("table.feather"), 6),
    "h5": (matrix("x.h5"), 6),
    "mat": (matrix("x.mat"), 6),
    "shards": (shards, 3),
    "ids": (ids, 8),
    "factors": (factors, 12),
    "heads": (heads, 6),
    "gates": (gates, 6),
    "adapters": (adapters, 6),
    "forged adapters": (forged_adapters, 4),
    "results": (results, 8),
    "run folders": (run_folders, 4),
    "forged runs": (forged_runs, 4),
    "checkpoints": (checkpoints, 2),
    "metrics": (metric, 6),
    "audits": (audits, 1),
    "decodes": (decodes, 3),
    "options": (options, 2),
}  # fmt: skip


# --- running


def attempt(seed: int, index: int, only: tuple[str, ...] = ()) -> tuple[str, str, str]:
    """The kind of a case, how it ended, and where or why."""
    name, random = kind_of(seed, index, only)

    def late(*_):
        raise Hung

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="fuzz.", dir=MEMORY) as folder,
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
        ):
            warnings.simplefilter("ignore")
            KINDS[name][0](random, Path(folder))
        return name, "read", ""
    except ZhatError as error:
        return name, "refused", type(error).__name__
    except Accepted as error:
        return name, "accepted", str(error)
    except Hung:
        return name, "hung", ""
    except Exception as error:
        return name, "crashed", f"{where(error)} {type(error).__name__}: {str(error)[:160]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def where(error: Exception) -> str:
    """The innermost place in zhat."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f"{os.sep}zhat{os.sep}" in f.filename]
    return f"{frames[-1].filename.split(f'{os.sep}zhat{os.sep}')[-1]}:{frames[-1].lineno}" if frames else "outside"


def run(cases: int, seed: int, only: tuple[str, ...] = (), *, loud=True, forked=True, jobs=1) -> dict:
    """So many cases: how they ended by kind, and the first example of every place that is not as it should be."""
    counts: dict[str, Counter] = {}
    faults: dict[str, dict] = {}
    started = time.perf_counter()
    for done, (index, name, ended, why) in enumerate((_forked if forked else _here)(cases, seed, only, jobs), 1):
        counts.setdefault(name, Counter())[ended] += 1
        if ended not in ("read", "refused"):
            place = f"{name}, {ended}: {why.split(': ')[0]}"
            if place not in faults and loud:
                print(f"case {index}: {name} {ended} {why}", flush=True)
            faults.setdefault(place, {"first": index, "times": 0, "why": why})["times"] += 1
        if loud and done % 5000 == 0:
            print(f"{done:,} cases, {time.perf_counter() - started:.0f} s", flush=True)
    total = sum(counts.values(), Counter())
    return {
        "cases": cases,
        "seed": seed,
        "seconds": round(time.perf_counter() - started),
        **{ended: total[ended] for ended in ("read", "refused", "crashed", "hung", "accepted")},
        "kinds": {name: dict(sorted(found.items())) for name, found in sorted(counts.items())},
        "faults": faults,
    }


def _here(cases, seed, only, jobs):
    for index in range(cases):
        yield index, *attempt(seed, index, only)


class Lane:
    """Some cases in a child process, one after the other; a child that dies is followed by another."""

    def __init__(self, indices, seed, only):
        self.indices, self.seed, self.only = indices, seed, only
        self.start()

    def start(self):
        self.reading, writing = os.pipe()
        self.child, self.since, self.left = os.fork(), time.monotonic(), b""
        if self.child == 0:
            os.close(self.reading)
            for index in self.indices:
                os.write(writing, json.dumps([index, *attempt(self.seed, index, self.only)]).encode() + b"\n")
            os._exit(0)
        os.close(writing)

    def answers(self):
        """What the child has said; where it has ended or does not answer, that is the answer of its case."""
        said = os.read(self.reading, 2**16)
        *lines, self.left = (self.left + said).split(b"\n")
        self.since = time.monotonic()
        self.indices = self.indices[len(lines) :]
        yield from (json.loads(line) for line in lines)
        if not said:
            yield from self.ended("crashed")

    def ended(self, how):
        if how == "hung":
            os.kill(self.child, signal.SIGKILL)
        os.close(self.reading)
        code = os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])
        self.reading = None
        if self.indices:
            index, self.indices = self.indices[0], self.indices[1:]
            yield index, kind_of(self.seed, index, self.only)[0], how, f"the process ended with {code}"
        if self.indices:
            self.start()


def _forked(cases, seed, only, jobs):
    """Cases in child processes, so that one that ends its process, or does not answer, is one case and not the end."""
    lanes = [Lane(range(first, cases, jobs), seed, only) for first in range(min(jobs, cases))]
    while lanes:
        ready = select.select([lane.reading for lane in lanes], [], [], 1.0)[0]
        for lane in lanes:
            if lane.reading in ready:
                yield from lane.answers()
            elif time.monotonic() - lane.since > 3 * PATIENCE:
                yield from lane.ended("hung")
        lanes = [lane for lane in lanes if lane.reading is not None]


def kind_of(seed, index, only):
    """The kind of a case, and the generator that draws the rest of it."""
    random = np.random.default_rng([seed, index])
    names = [name for name in KINDS if not only or name in only]
    weights = np.array([KINDS[name][1] for name in names], dtype=float)
    return str(random.choice(names, p=weights / weights.sum())), random


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--case", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--commands", type=int, default=0)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    only = tuple(filter(None, asked.only.split(",")))
    if asked.case is not None:
        where = lambda error: traceback.print_exception(error) or ""  # noqa: E731
        print(*attempt(asked.seed, asked.case, only))
        sys.exit()
    found = run(asked.cases, asked.seed, only, jobs=asked.jobs)
    found["commands"] = programs(asked.commands, asked.seed)
    text = json.dumps(found, indent=1)
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n", encoding="utf-8")
    sys.exit(1 if found["faults"] or found["commands"]["faults"] else 0)
