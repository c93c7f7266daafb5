import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.test_results import record
from zhat import cli, runs
from zhat._version import __version__
from zhat.encoders import mlp
from zhat.errors import BadInput, Diverged, MissingExtra
from zhat.results import from_json

ROOT = Path(__file__).parent.parent
COMMANDS = [command.name or command.callback.__name__ for command in cli.app.registered_commands]


def zhat(*words):
    return CliRunner().invoke(cli.app, list(words), env={"COLUMNS": "80"})


def run_folder(tmp_path):
    return runs.write(tmp_path / "row" / "seed-3", record(), mlp(2, 2, widths=(4,), seed=0))


def test_version():
    assert zhat("--version").output.strip() == f"zhat {__version__}"


def test_commands_are_the_documented_ones():
    assert sorted(COMMANDS) == ["check", "demo", "list", "report", "reproduce"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps_and_is_documented(command):
    shown = zhat(command, "--help")
    assert shown.exit_code == 0
    assert "Usage:" in shown.output
    pages = (ROOT / "README.md").read_text() + (ROOT / "docs" / "cli.md").read_text()
    assert f"zhat {command}" in pages


def test_list_shows_what_there_is():
    shown = zhat("list")
    assert shown.exit_code == 0
    for name in ("Sphere", "VonMisesFisher", "InfoNCE", "linear_r2", "Theorem 6", "SCALED_PERMUTATION"):
        assert name in shown.output
    assert max(len(line.rstrip()) for line in shown.output.splitlines()) <= 80
    only = zhat("list", "metrics").output
    assert "mcc" in only
    assert "Sphere" not in only


def test_list_names_every_public_member_of_the_rooms_it_shows():
    from importlib import import_module

    shown = {member for module, members in cli._ROOMS.values() for member in members}
    contracts = {"Space", "Distribution", "Conditional", "Mixing", "Mixer", "Batch", "BestOf", "AtMost"}
    for module in ("zhat.dgp", "zhat.objectives"):
        parts = {"Dot", "NegativeLp"}
        assert set(import_module(module).__all__) - contracts - parts <= shown


def test_report_writes_the_page_of_a_run(tmp_path):
    folder = run_folder(tmp_path)
    shown = zhat("report", str(folder))
    assert shown.exit_code == 0, shown.output
    assert (folder / "report.html").exists()
    assert zhat("report", str(tmp_path), "--out", str(tmp_path / "page.html")).exit_code == 0
    assert (tmp_path / "page.html").exists()


def test_check_reads_a_head_and_says_what_theory_says(tmp_path):
    random = np.random.default_rng(0)
    np.save(tmp_path / "W.npy", random.standard_normal((10, 4)).astype(np.float32))
    np.save(tmp_path / "L.npy", np.repeat(np.arange(10), 30))
    shown = zhat("check", "--head", str(tmp_path / "W.npy"), "--labels", str(tmp_path / "L.npy"))
    assert shown.exit_code == 0, shown.output
    for words in (
        "classes            10",
        "rank               4 of 4",
        "affine generator   yes",
        "30 to 30",
        "case C4",
    ):
        assert words in shown.output
    as_json = zhat("check", "--head", str(tmp_path / "W.npy"), "--json").output
    assert from_json(as_json).classes == 10
    np.save(tmp_path / "W.npy", random.standard_normal((4, 6)))
    few = zhat("check", "--head", str(tmp_path / "W.npy"))
    assert few.exit_code == 0
    assert "no: 7 classes are needed" in few.output
    assert "rows differ in 3 directions" in few.output


def test_check_judges_a_row_of_a_paper_on_its_own_world():
    shown = zhat("check", "reizinger2024", "--row", "R2.6o")
    assert shown.exit_code == 0, shown.output
    assert "diverse cluster vectors (Assumption 2): rank 10 of 10" in shown.output
    assert "scale 10" in shown.output


MISTAKES = [
    (["list", "nonsense"], "there is no kind named 'nonsense'. Known: spaces"),
    (["report", "/nowhere/at/all"], "/nowhere/at/all is not a folder"),
    (["report", "{empty}"], "holds no finished run"),
    (["report", "{corrupt}"], "differs from what was written"),
    (["report", "{two}"], "holds runs of several settings"),
    (["demo", "--out", "{file}/inside"], "cannot write to"),
    (["demo", "--seeds", "0"], "`--seeds` must be a whole number of at least 1, but 0 came"),
    (["check"], "give --head W.npy (and --labels L.npy), or a paper and --row"),
    (["check", "--labels", "{file}"], "give --head W.npy"),
    (["check", "--head", "{file}"], "must hold one array as numpy.save writes it"),
    (["check", "--head", "/nowhere/W.npy"], "No such file or directory: /nowhere/W.npy"),
    (["check", "--head", "{archive}"], "it is an archive of several"),
    (["check", "--head", "{vector}"], "`head` must have the shape (rows, columns), but (3,) came"),
    (["check", "reizinger2024", "--row", "R9.9"], "there is no row named 'R9.9'. Known: R2.1o"),
    (["demo", "--nonsense"], "No such option"),
    (["nonsense"], "No such command"),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_a_mistake_gets_a_sentence_exit_code_2_and_damages_nothing(words, sentence, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    corrupt = run_folder(tmp_path / "corrupt")
    (corrupt / "score.json").write_text("{}")
    run_folder(tmp_path / "two" / "a")
    from dataclasses import replace

    other = replace(record(), settings={"process": "another"})
    runs.write(tmp_path / "two" / "b" / "seed-0", other, mlp(2, 2, widths=(4,), seed=0))
    np.savez(tmp_path / "archive.npz", np.ones(3), np.ones(3))
    np.save(tmp_path / "vector.npy", np.ones(3))
    places = {name: str(tmp_path / name) for name in ("empty", "corrupt", "two", "file")}
    places |= {"archive": str(tmp_path / "archive.npz"), "vector": str(tmp_path / "vector.npy")}
    before = sorted((p, p.stat().st_mtime_ns) for p in tmp_path.rglob("*"))
    shown = zhat(*(word.format(**places) for word in words))
    assert shown.exit_code == 2
    assert re.sub(r"\s+", " ", sentence) in re.sub(r"[\s│]+", " ", shown.output)
    assert "Traceback" not in shown.output
    assert sorted((p, p.stat().st_mtime_ns) for p in tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInput("a mistake"), 2),
        (MissingExtra("h5py", "h5", "reading HDF5"), 2),
        (Diverged("a failure"), 1),
        (KeyboardInterrupt("start again"), 130),
    ],
)
def test_exit_codes_tell_mistakes_from_failures(error, code, monkeypatch):
    def fails(*args):
        raise error

    monkeypatch.setattr(cli, "import_module", fails)
    shown = zhat("list")
    assert shown.exit_code == code
    assert str(error) in shown.output


def test_ctrl_c_ends_the_demo_with_a_hint_and_a_second_start_goes_on(tmp_path):
    command = [
        sys.executable,
        "-c",
        "from zhat.cli import main; main()",
        "demo",
        "--out",
        str(tmp_path),
        "--seeds",
        "1",
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "80"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen(command, **pipes) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.rglob("demo-*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; start again to go on from" in complaint.replace("\n", " ")
    assert len(list(tmp_path.rglob("checkpoint-*.safetensors"))) == 1
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "orthogonal *" in done.stdout
    assert not list(tmp_path.rglob("checkpoint*"))
