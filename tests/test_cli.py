import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.test_results import record
from zhat import cli, papers, runs
from zhat._version import __version__
from zhat.cli import audit, listing
from zhat.cli.executors import executor_of
from zhat.encoders import mlp
from zhat.equivalence import AFFINE
from zhat.errors import BadInput, Diverged, MissingExtra, RunFailed
from zhat.results import Picture, from_json

ROOT = Path(__file__).parent.parent
COMMANDS = [command.name or command.callback.__name__ for command in cli.app.registered_commands]


def zhat(*words):
    return CliRunner().invoke(cli.app, list(words), env={"COLUMNS": "80"})


def run_folder(tmp_path):
    return runs.write(tmp_path / "row" / "seed-3", record(), mlp(2, 2, widths=(4,), seed=0))


def test_version():
    assert zhat("--version").output.strip() == f"zhat {__version__}"


def test_commands_are_the_documented_ones():
    assert " ".join(sorted(COMMANDS)) == "adapt audit check decode demo list report reproduce runs show sweep"


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


def test_report_writes_the_page_of_a_run(tmp_path):
    folder = run_folder(tmp_path)
    shown = zhat("report", str(folder))
    assert shown.exit_code == 0, shown.output
    assert (folder / "report.html").exists()
    assert zhat("report", str(tmp_path), "--out", str(tmp_path / "page.html")).exit_code == 0
    assert (tmp_path / "page.html").exists()


def test_show_draws_what_a_run_recovered(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow reads the picture back")
    z = tuple(tuple(0.1 * (i + j) - 0.9 for j in range(10)) for i in range(4))
    seen = Picture(z, z, AFFINE, ((1.0,),), (1.0,))
    for name, picture in (("seed-0", seen), ("seed-1", record().picture), ("seed-2", None)):
        runs.write(tmp_path / name, replace(record(), picture=picture), mlp(2, 2, widths=(4,), seed=0))
    asked = ("show", "jug", "--side", "16", "--steps", "3", "--out", str(tmp_path / "strip.png"), "--recovered")
    shown = zhat(*asked, str(tmp_path / "seed-0"))
    assert shown.exit_code == 0, shown.output
    assert "below what is drawn from the latents that it recovered" in " ".join(shown.output.split())
    with image.open(tmp_path / "strip.png") as strip:
        assert strip.size == (3 * 18 - 2, 2 * 18 - 2)
    for name, message in (
        ("seed-1", "Jug has 10 latents, but 2 were recovered"),
        ("seed-2", "holds no recovered latents"),
        ("nowhere", "nowhere is not a folder"),
    ):
        refused = zhat(*asked, str(tmp_path / name))
        assert refused.exit_code == 2, refused.output
        assert message in " ".join(refused.output.split())


def test_show_draws_one_line_for_each_latent(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image", reason="Pillow reads the picture back")
    shown = zhat("show", "jug", "--side", "16", "--steps", "3", "--out", str(tmp_path / "new" / "jug.png"))
    assert shown.exit_code == 0, shown.output
    assert "from top to bottom x, y, z, rot_alpha" in " ".join(shown.output.split())
    with image.open(tmp_path / "new" / "jug.png") as picture:
        assert picture.size == (3 * 18 - 2, 10 * 18 - 2)
    monkeypatch.delenv("ZHAT_DATA", raising=False)
    for words, message in (
        (("show", "kettle"), "there is no world named 'kettle'. Known: jug, teapot, room, sprites"),
        (("show", "teapot"), "Give the folder that holds it with --data"),
        (("show", "jug", "--side", "3"), "`side` must be a whole number of at least 8"),
        (("show", "jug", "--steps", "1"), "`steps` must be a whole number of at least 2"),
        (("show", "jug", "--side", "16", "--steps", "2", "--out", str(tmp_path)), "it is a folder"),
        (("show", "teapot", "--data", str(tmp_path / "nowhere")), "--data must be the folder of recorded data"),
    ):
        refused = zhat(*words)
        assert refused.exit_code == 2, refused.output
        assert message in " ".join(refused.output.split())


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


def test_check_of_two_heads_prints_both_maps(tmp_path):
    random = np.random.default_rng(0)
    w, f, a = random.standard_normal((10, 3)), random.standard_normal((500, 3)), random.standard_normal((3, 3))
    for name, array in (("W1", w), ("W2", w @ np.linalg.inv(a)), ("F1", f), ("F2", f @ a.T)):
        np.save(tmp_path / f"{name}.npy", array.astype(np.float32))
    heads = [f"--head={tmp_path / 'W1.npy'}", f"--head={tmp_path / 'W2.npy'}"]
    features = [f"--features={tmp_path / 'F1.npy'}", f"--features={tmp_path / 'F2.npy'}"]
    shown = zhat("check", *heads, *features)
    assert shown.exit_code == 0, shown.output
    for words in ("second head", "condition of L     best", "map from heads", "map from features", "disagreement"):
        assert words in shown.output
    assert "held-out R2        heads 1.0000, features 1.0000 (250 rows)" in shown.output
    pair = from_json(zhat("check", *heads, *features, "--json").output)
    assert np.allclose(pair.from_heads, a, atol=1e-4)
    assert np.allclose(pair.from_features, a, atol=1e-4)
    alone = zhat("check", *heads)
    assert alone.exit_code == 0
    assert "map from heads" in alone.output
    assert "map from features" not in alone.output
    for wrong in ([*heads, features[0]], [heads[0], *features], [*heads, *heads]):
        refused = zhat("check", *wrong)
        assert refused.exit_code == 2
        assert "Give one head (and --labels), two heads, or two heads and the features" in refused.output


def test_check_examines_rows_of_latents(tmp_path):
    import torch

    from zhat.dgp import Sphere, Uniform, VonMisesFisher

    g = torch.Generator().manual_seed(0)
    z = Uniform(Sphere(3)).sample(3000, generator=g)
    near = VonMisesFisher(10.0).sample(z, generator=g)
    np.savez(tmp_path / "pairs.npz", z=z.numpy(), z_next=near.numpy())
    np.save(tmp_path / "z.npy", z.numpy())
    np.save(tmp_path / "near.npy", near.numpy())
    pairs, alone = str(tmp_path / "pairs.npz"), str(tmp_path / "z.npy")
    shown = zhat("check", pairs, "--report", str(tmp_path / "page.html"))
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith(
        "The rows fill a sphere of radius 1 in 3 columns uniformly; z' around z is von Mises-"
    )
    assert "holds         uniform marginal" in shown.stdout
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")
    same = from_json(zhat("check", alone, "--next", str(tmp_path / "near.npy"), "--json").stdout)
    assert same.families == from_json(zhat("check", pairs, "--json").stdout).families
    assert not from_json(zhat("check", alone, "--json").stdout).paired
    assert from_json(zhat("check", alone, "--series", "--json").stdout).n == 2999
    np.savez(tmp_path / "odd.npz", a=z.numpy(), b=z.numpy())
    for words, message in (
        ((str(tmp_path / "odd.npz"),), "must hold the arrays z and z_next, or z alone, but it holds a, b"),
        ((pairs, "--series"), "holds z and z_next already"),
        ((alone, "--series", "--next", pairs), "one or the other"),
        (("--series",), "--next, --series and --report speak of rows"),
        (("nowhere.npz",), "there is no file"),
    ):
        refused = zhat("check", *words)
        assert refused.exit_code == 2, refused.output
        assert message in " ".join(refused.output.split())


@pytest.mark.slow
def test_check_of_a_finished_run_names_the_floor_of_its_loss(tmp_path):
    import zhat as package
    from zhat.dgp import Orthogonal, Pairs, Sphere, Uniform, VonMisesFisher

    world = Pairs(Uniform(Sphere(3)), VonMisesFisher(10.0), Orthogonal())
    encoder = package.Fresh(package.encoders.mlp, 3, 3, widths=(16,), onto=Sphere(3))
    run = package.train(encoder, world, package.objectives.InfoNCE(temperature=0.1), steps=3, batch=64, seeds=[0])
    folder = run.save(tmp_path / "run") / "seed-0"
    shown = zhat("check", str(folder), "--report", str(tmp_path / "page.html"))
    assert shown.exit_code == 0, shown.output
    for words in ("No encoder has an expected loss below", "nats above the floor", "stretches no direction less than"):
        assert words in shown.stdout
    assert "The rows fill a sphere of radius 1 in 3 columns" in shown.stdout
    assert (tmp_path / "page.html").exists()
    minimum, injectivity, examined = from_json(zhat("check", str(folder), "--json").stdout)
    assert minimum.batch == 64
    assert minimum.measured
    assert injectivity.smallest > 0
    assert examined.n == 8192
    assert zhat("check", str(folder), "--series").exit_code == 2


def test_check_judges_a_row_of_a_paper_on_its_own_world():
    shown = zhat("check", "reizinger2024", "--row", "R2.6o")
    assert shown.exit_code == 0, shown.output
    said = " ".join(shown.output.split())
    assert "fix a rotation: 10 classes occur; at least d (d + 3) / 2 = 20 are needed" in said
    assert "Every other condition holds: latents are recovered up to linear" in said
    assert "scale 10" in shown.output


def test_rows_with_an_empty_cell_are_refused_or_left_out_of_all_inputs(tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 2))
    lines = [",".join(map(repr, row)) for row in rows.tolist()]
    lines[7] = "1.0,"
    (tmp_path / "a.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
    np.save(tmp_path / "b.npy", rows)
    refused = zhat("audit", str(tmp_path / "a.csv"), str(tmp_path / "b.npy"))
    assert refused.exit_code == 2
    assert "a.csv has an empty cell (row 7, column 1; row 0 is the first)" in refused.output
    shown = zhat("audit", str(tmp_path / "a.csv"), str(tmp_path / "b.npy"), "--gaps", "drop", "--json")
    assert shown.exit_code == 0, shown.output
    result = from_json(shown.stdout)
    assert (result.verdict, result.n) == ("identity", 299)
    assert "1 rows of a.csv have an empty cell and were left out" in result.notes


def test_escape_codes_of_names_do_not_reach_the_terminal(tmp_path):
    h = np.random.default_rng(0).normal(size=(100, 2))
    np.save(tmp_path / "h.npy", h)
    names = "size\x1b[2J,\x9b31mname"
    (tmp_path / "f.csv").write_text(names + "\n" + "\n".join(f"{a},{b}" for a, b in h.tolist()), encoding="utf-8")
    for words in ([], ["--json"], ["--require", "size\x1b[2J=2"], ["--type", "size\x1b[2J=odd"]):
        shown = zhat("decode", str(tmp_path / "h.npy"), str(tmp_path / "f.csv"), *words)
        assert shown.output
        assert not re.search("[\x1b\x9b]", shown.output)


def test_an_output_that_is_no_file_is_left_alone(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(100, 2)))
    os.mkfifo(tmp_path / "pipe")
    a = str(tmp_path / "a.npy")
    for words in (["--report", "{}"], ["--adapter", "{}"]):
        shown = zhat("audit", a, a, *(word.format(tmp_path / "pipe") for word in words))
        assert shown.exit_code == 2
        assert "it is no regular file, and would be lost" in " ".join(shown.output.split())
    assert (tmp_path / "pipe").is_fifo()


def test_a_reader_that_leaves_changes_no_exit_code(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(100, 2)))
    words = [sys.executable, "-m", "zhat", "audit", "a.npy", "a.npy", "--json"]
    for more, code in (([], 0), (["--min", "2"], 1)):
        here = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([*words, *more], cwd=tmp_path, env=here, **pipes)
        process.stdout.close()
        said = process.stderr.read().decode()
        process.stderr.close()
        assert process.wait() == code, said
        assert "Traceback" not in said
        assert "Broken" not in said


MISTAKES = [
    (["list", "metrics", "--device", "cpu"], "--device says where the time of a paper's rows is measured"),
    (["list", "zimmermann2021", "--device", "nope"], "the device 'nope' cannot be used here"),
    (["audit", "", "{file}"], "an empty word came among the arguments"),
    (["decode", "{file}", "{file}", "--key", ""], "an empty word came among the arguments"),
    (["report", "/dev/null"], "/dev/null must be a file, but it is a device"),
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
    (["check", "--head", "/nowhere/W.npy"], "there is no file /nowhere/W.npy"),
    (["check", "--head", "{archive}"], "it is an archive of several"),
    (["check", "--head", "{vector}"], "`head` must have the shape (rows, columns), but (3,) came"),
    (["check", "reizinger2024", "--row", "R9.9"], "there is no row named 'R9.9'. Known: R2.1o"),
    (["demo", "--nonsense"], "No such option"),
    (["report", "{file}"], "this is not a result written by zhat"),
    (["reproduce", "nobody1999"], "there is no paper named 'nobody1999'. Known: "),
    (
        ["reproduce", "zimmermann2021", "--table", "7"],
        "there is no table of zimmermann2021 named '7'. Known: 1, 2, 1v, 3",
    ),
    (["reproduce", "zimmermann2021", "--row", "T9"], "there is no row named 'T9'. Known: T1.1, T1.2"),
    (["reproduce", "zimmermann2021", "--table", "1", "--figure", "2"], "--table and --figure were both given"),
    (
        ["reproduce", "zimmermann2021", "--budget", "huge"],
        "there is no budget named 'huge'. Known: paper, fast, laptop, smoke",
    ),
    (["reproduce", "zimmermann2021", "--row", "T1.1", "--seeds", "0"], "must be a whole number of at least 1, but 0"),
    (["reproduce", "zimmermann2021", "--row", "T1.1", "--device", "abacus"], "the device 'abacus' cannot be used"),
    (["reproduce", "zimmermann2021", "--executor", "many"], "--executor must be processes:N or dask://HOST:PORT"),
    (["reproduce", "zimmermann2021", "--row", "T1.1", "--budget", "smoke", "--out", "{file}/x"], "cannot write to"),
    (["nonsense"], "No such command"),
]


def test_a_worker_that_is_killed_gets_a_sentence():
    with (
        pytest.raises(RunFailed, match="one of 2 processes ended before its work was done"),
        executor_of("processes:2", after="Give it again.") as pool,
    ):
        pool.submit(os._exit, 9).result()


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

    monkeypatch.setattr(listing, "import_module", fails)
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


def test_a_terminal_that_knows_ascii_only_gets_no_traceback():
    ran = subprocess.run(
        [sys.executable, "-c", "from zhat.cli import main; main()", "list", "classes"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "COLUMNS": "80"},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert b"SCALED_PERMUTATION" in ran.stdout
    listed = subprocess.run(
        [sys.executable, "-c", "from zhat.cli import main; main()", "--help"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "COLUMNS": "80"},
        check=False,
    )
    assert listed.returncode == 0, listed.stderr


def test_table_1_of_zimmermann2021_at_budget_smoke_is_complete(tmp_path):
    shown = zhat("reproduce", "zimmermann2021", "--table", "1", "--budget", "smoke", "--out", str(tmp_path))
    assert shown.exit_code == 0, shown.output
    assert "12 rows, not judged" in shown.output
    assert max(len(line.rstrip()) for line in shown.output.splitlines() if "Page:" not in line) <= 80
    folder = tmp_path / "zimmermann2021" / "table-1" / "smoke"
    assert sorted(p.name for p in folder.iterdir()) == ["report.html", "results.json", "table.md", "table.tex"]
    table = from_json((folder / "results.json").read_text())
    assert len(table.rows) == table.expected == 12
    for row in table.rows:
        assert all(m.published for m in (row.learned, row.identity, row.supervised))
        assert len(row.learned.values) == len(row.learned.held_out) == len(row.curves) == 2
        assert row.prediction.answers
    assert table.rows[0].prediction.holds == "yes"
    text = (folder / "table.md").read_text()
    assert all(f"| T1.{i} |" in text for i in range(1, 13))

    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").rglob("run.json")}
    again = zhat("reproduce", "zimmermann2021", "--table", "1", "--budget", "smoke", "--out", str(tmp_path))
    assert again.exit_code == 0
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").rglob("run.json")} == before  # nothing trained twice


def test_one_row_alone_leaves_the_whole_table_alone_and_can_be_trained_again(tmp_path):
    words = (
        "reproduce",
        "zimmermann2021",
        "--row",
        "T2.3",
        "--budget",
        "smoke",
        "--seeds",
        "1",
        "--out",
        str(tmp_path),
    )
    assert zhat(*words, "--no-keep-weights").exit_code == 0
    assert (tmp_path / "zimmermann2021" / "table-2" / "smoke+T2.3" / "report.html").exists()
    assert not list(tmp_path.rglob("encoder.safetensors"))
    first = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("run.json")}
    assert len(first) == 2  # the row and its supervised reference
    assert zhat(*words, "--no-resume").exit_code == 0
    second = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("run.json")}
    assert second.keys() == first.keys()
    assert all(second[p] > first[p] for p in first)
    assert zhat(*words, "--no-train", "--no-resume").exit_code == 2
    assert zhat(*words, "--no-train").exit_code == 0
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("run.json")} == second
    assert zhat(*words[:-1], str(tmp_path / "empty"), "--no-train").exit_code == 2
    whole = zhat("reproduce", "zimmermann2021", *words[4:], "--no-train")  # parts that hold nothing are named
    assert whole.exit_code == 0
    assert whole.output.count("Left out: ") == len(papers.paper("zimmermann2021").parts) - 1
    assert "no finished row of Table 1 at budget smoke" in " ".join(whole.output.split())
    page = next(tmp_path.rglob("results.json"))
    assert zhat("report", str(page), "--out", str(tmp_path / "again")).exit_code == 0
    assert (tmp_path / "again" / "table.tex").exists()


def test_rows_can_be_spread_over_a_dask_cluster(tmp_path):
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        where = cluster.scheduler_address.replace("tcp://", "dask://")
        shown = zhat(
            *("reproduce", "zimmermann2021", "--row", "T2.6", "--budget", "smoke", "--seeds", "1"),
            *("--out", str(tmp_path), "--executor", where),
        )
    assert shown.exit_code == 0, shown.output
    assert (tmp_path / "zimmermann2021" / "table-2" / "smoke+T2.6" / "report.html").exists()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ModuleNotFoundError("No module named 'zhat'", name="zhat"), "cannot import zhat. Install the same version"),
        (CancelledError(), "the Dask scheduler at 127.0.0.1:1 went away"),
    ],
    ids=["no zhat", "no scheduler"],
)
def test_what_goes_wrong_on_a_cluster_gets_a_sentence(monkeypatch, error, sentence):
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")

    class Client:
        def __init__(self, where, timeout):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def get_executor(self):
            return nullcontext(self)

    monkeypatch.setattr(distributed, "Client", Client)
    with pytest.raises(RunFailed, match=sentence), executor_of("dask://127.0.0.1:1", after="Give it again."):
        raise error


def test_an_audit_in_processes_prints_what_one_process_prints(tmp_path):
    random = np.random.default_rng(0)
    for name in "ab":
        (tmp_path / name).mkdir()
        for i in range(2):
            np.save(tmp_path / name / f"{i}.npy", random.normal(size=(60, 3)))
    words = ("audit", str(tmp_path / "a"), str(tmp_path / "b"), "--json")
    here, there = (
        json.loads(CliRunner().invoke(cli.app, [*words, *more]).stdout) for more in ((), ("--executor", "processes:1"))
    )
    assert here.pop("provenance") is not None
    assert there.pop("provenance") is not None
    assert here == there
    assert zhat(*words, "--device", "abacus").exit_code == 2
    assert zhat(*words, "--executor", "many").exit_code == 2


def test_a_dask_cluster_that_is_not_there_gets_a_sentence(tmp_path, monkeypatch):
    words = ("reproduce", "zimmermann2021", "--row", "T2.6", "--budget", "smoke", "--out", str(tmp_path))
    monkeypatch.setitem(sys.modules, "distributed", None)
    shown = zhat(*words, "--executor", "dask://127.0.0.1:1")
    assert shown.exit_code == 2
    assert "pip install 'zhat[dask]'" in shown.output


def told(monkeypatch, *words):
    """What is said before a training of ten seconds a step, and the budget that would be trained."""
    from zhat import experiment
    from zhat.experiment import forecast

    asked = []

    def refuses(part, **how):
        asked.append(how["budget"])
        raise BadInput("stop here")

    monkeypatch.setattr(forecast, "seconds_per_step", lambda row, budget, **how: 0.01 * budget.recipe.batch / 512)
    monkeypatch.setattr(experiment, "reproduce", refuses)
    shown = zhat("reproduce", "zimmermann2021", "--device", "cpu", *words)
    assert "stop here" in shown.output
    return " ".join(shown.output.split()), asked


def test_without_a_gpu_the_budget_is_laptop_and_a_long_training_is_foretold(monkeypatch):
    said, asked = told(monkeypatch, "--table", "2")
    assert asked == ["laptop"]
    assert (
        "Table 2 at budget laptop: about 8 min of training on cpu. Faster: one row, such as --row T2.6 (50 s); a"
        in said
    )
    assert "--budget laptop" not in said


def test_a_budget_for_a_gpu_names_the_laptop_as_what_would_be_faster(monkeypatch):
    said, asked = told(monkeypatch, "--row", "T2.8", "--budget", "fast")
    assert asked == ["fast"]
    # 10,000 steps of T2.8 and as many of its reference, five seeds of 0.12 s a step
    assert "Table 2 at budget fast: about 3.3 h of training on cpu. Faster: --budget laptop (" in said
    assert "--row" not in said


def test_a_short_training_is_not_foretold(monkeypatch):
    said, asked = told(monkeypatch, "--table", "2", "--budget", "smoke")
    assert asked == ["smoke"]
    assert "about" not in said


def test_a_part_without_the_budget_is_left_out_where_others_have_it(monkeypatch, tmp_path):
    from zhat.experiment import forecast

    monkeypatch.setattr(forecast, "seconds_per_step", lambda row, budget, **how: 0.0)
    words = ("--no-train", "--out", str(tmp_path), "--budget", "laptop")
    (folder := tmp_path / "runs" / "zimmermann2021").mkdir(parents=True)
    shown = zhat("reproduce", "zimmermann2021", "--table", "4", *words)
    assert (shown.exit_code, "there is no budget named 'laptop'" in shown.output) == (2, True)
    assert not list(folder.iterdir())


def test_a_paper_is_listed_with_its_rows_and_measured_times(monkeypatch):
    from zhat.experiment import forecast

    asked = []

    def two_steps(row, budget, **how):
        asked.append((row.name, budget.name))
        return 0.01 if budget.recipe.muon is None else 0.02

    monkeypatch.setattr(forecast, "seconds_per_step", two_steps)
    shown = zhat("list", "zimmermann2021")
    assert shown.exit_code == 0, shown.output
    assert max(len(line.rstrip()) for line in shown.output.splitlines()) <= 80
    for words in ("T1.12", "T2.10", "F2.8", "98.62 ± 0.05", "paper", "fast", "smoke", "4:10:00"):
        assert words in shown.output  # 300,003 steps x 5 seeds x 10 ms
    parts = papers.paper("zimmermann2021").parts
    every = sum(len(row.budgets) for part in parts for row in part.needed(part.rows))
    assert 6 <= len(asked) < every / 3  # each kind of step once, not each row
    lines = [line.split("│") for line in shown.output.splitlines() if "│ T2.5 " in line or "│ T2.4 " in line]
    fast = {cells[1].strip(): cells[5].strip() for cells in lines}
    assert fast == {"T2.4": "10:00", "T2.5": "16:40"}  # 12,000 of Adam and 10,000 of Muon, five seeds each


def audited(tmp_path, noise=0.05):
    random = np.random.default_rng(0)
    a = random.normal(size=(600, 4))
    b = a @ np.linalg.qr(random.normal(size=(4, 4)))[0] + noise * random.normal(size=(600, 4))
    np.save(tmp_path / "old.npy", a)
    np.save(tmp_path / "new.npy", b)
    np.save(tmp_path / "other.npy", random.normal(size=(600, 4)))
    return [str(tmp_path / name) for name in ("old.npy", "new.npy", "other.npy")]


def test_audit_says_the_verdict_first_within_80_columns(tmp_path):
    old, new, _ = audited(tmp_path)
    shown = zhat("audit", old, new, "--recall", "5", "--metric", "cosine", "--report", str(tmp_path / "page.html"))
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("new.npy is old.npy up to an orthogonal map")
    for word in ("similarity", "recall@5 by cosine", "directions  4 of 4 agree", "condition number"):
        assert word in shown.output
    assert max(len(line.rstrip()) for line in shown.stdout.splitlines()) <= 80
    assert (tmp_path / "page.html").exists()


def test_audit_prints_json_that_can_be_read_back(tmp_path):
    old, new, _ = audited(tmp_path)
    shown = zhat("audit", old, new, "--json")
    found = from_json(shown.stdout)
    assert found.verdict == "orthogonal"
    documented = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8").split("## JSON")[1]
    for name in vars(found):
        assert f"`{name}`" in documented


def test_a_gate_fails_with_one_line_and_exit_code_1(tmp_path):
    old, new, other = audited(tmp_path)
    assert zhat("audit", old, new, "--require", "affine", "--min", "0.98").exit_code == 0
    failed = zhat("audit", old, other, "--require", "affine")
    assert failed.exit_code == 1
    assert failed.stderr == "gate failed: required affine, found unrelated\n"
    random = np.random.default_rng(1)
    np.save(tmp_path / "faint.npy", np.load(old) + 3 * random.normal(size=(600, 4)))
    faint = zhat("audit", old, str(tmp_path / "faint.npy"), "--require", "affine")
    assert faint.exit_code == 1
    assert "weakly related" in faint.stdout
    assert "R2 must be at least 0.95 (the default), is 0." in faint.stderr
    gate = tmp_path / "gate.toml"
    gate.write_text('require = "permutation"\nmin_recall = 0.1\n')
    assert "required permutation, found orthogonal" in zhat("audit", old, new, "--gate", str(gate)).stderr
    assert zhat("audit", old, new, "--gate", str(gate), "--min", "0.5").exit_code == 2


def test_a_failing_gate_keeps_the_adapter_or_says_why_there_is_none(tmp_path):
    old, new, other = audited(tmp_path)
    kept, none = tmp_path / "adapter.safetensors", tmp_path / "none.safetensors"
    failed = zhat("audit", old, new, "--require", "identity", "--adapter", str(kept))
    assert failed.exit_code == 1
    assert "gate failed" in failed.stderr
    assert f"Adapter: {kept}, written although the gate failed" in failed.stderr
    assert kept.exists()
    failed = zhat("audit", old, other, "--require", "affine", "--adapter", str(none))
    assert failed.exit_code == 1
    assert "no map to keep" in failed.stderr
    assert not none.exists()


def test_json_holds_the_gate_and_is_the_baseline_of_the_next_audit(tmp_path):
    old, new, other = audited(tmp_path)
    before = zhat("audit", old, new, "--json", "--require", "affine")
    assert before.exit_code == 0
    gate = from_json(before.stdout).gate
    assert gate.passed
    assert [c.name for c in gate.conditions] == ["require", "min"]
    assert gate.line == before.stderr.strip()
    (tmp_path / "audit.json").write_text(before.stdout)
    assert zhat("audit", old, new, "--baseline", str(tmp_path / "audit.json")).exit_code == 0
    worse = zhat("audit", old, other, "--baseline", str(tmp_path / "audit.json"), "--json")
    assert worse.exit_code == 1
    assert "R2 up to orthogonal was 0.99" in worse.stderr
    assert not from_json(worse.stdout).gate.passed
    assert zhat("audit", old, new, "--baseline", str(tmp_path / "none.json")).exit_code == 2


def test_adapt_carries_rows_over(tmp_path):
    old, new, other = audited(tmp_path, noise=0.0)
    kept, out = str(tmp_path / "adapter.safetensors"), str(tmp_path / "carried.npy")
    assert zhat("audit", old, new, "--adapter", kept).exit_code == 0
    assert zhat("adapt", kept, old, "-o", out).exit_code == 0
    assert np.allclose(np.load(out), np.load(new), atol=1e-8)
    assert zhat("audit", old, other, "--adapter", str(tmp_path / "none.safetensors")).exit_code == 1
    assert not (tmp_path / "none.safetensors").exists()


def test_two_models_in_one_store_are_said_and_each_part_gets_its_adapter(tmp_path):
    from benchmarks.two_models import planted

    store, fresh, rest = planted(1, 2000, 6, 0.25, "map", 0.05, 0.0)
    np.save(tmp_path / "store.npy", store)
    np.save(tmp_path / "fresh.npy", fresh)
    words = ("audit", str(tmp_path / "store.npy"), str(tmp_path / "fresh.npy"))
    shown = zhat(*words, "--adapter", str(tmp_path / "map.safetensors"), "--report", str(tmp_path / "page.html"))
    assert shown.exit_code == 0, shown.output
    assert "store.npy and fresh.npy hold two kinds of rows" in shown.stdout.replace("\n", " ")
    assert "other rows  of 2,000 sampled: " in shown.stdout
    assert "Two kinds of rows" in (tmp_path / "page.html").read_text(encoding="utf-8")
    for name, mine in (("map", ~rest), ("map-rest", rest)):
        out = str(tmp_path / f"{name}.npy")
        assert zhat("adapt", str(tmp_path / f"{name}.safetensors"), words[1], "-o", out).exit_code == 0
        assert np.square(np.load(out) - fresh)[mine].mean() < 0.01 * fresh.var()


def test_audit_joins_rows_by_ids(tmp_path):
    old, new, _ = audited(tmp_path)
    order = np.random.default_rng(1).permutation(600)
    np.save(tmp_path / "mixed.npy", np.load(new)[order])
    for name, ids in (("a.txt", range(600)), ("b.txt", order)):
        (tmp_path / name).write_text("\n".join(str(i) for i in ids))
    words = ("audit", old, str(tmp_path / "mixed.npy"))
    assert "unrelated" in zhat(*words).output
    joined = zhat(*words, "--ids", str(tmp_path / "a.txt"), "--ids", str(tmp_path / "b.txt"))
    assert "up to an orthogonal map" in joined.output


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "OLD", "missing.npy"),
        ("audit", "OLD", "NEW", "--require", "rotated"),
        ("audit", "OLD", "NEW", "--gate", "missing.toml"),
        ("audit", "OLD", "NEW", "--metric", "euclid"),
        ("audit", "OLD", "NEW", "--ids", "id"),
        ("adapt", "missing.safetensors", "OLD", "-o", "out.npy"),
    ],
)
def test_mistakes_in_an_audit_are_exit_code_2_and_one_sentence(tmp_path, words):
    old, new, _ = audited(tmp_path)
    shown = zhat(*[{"OLD": old, "NEW": new}.get(word, word) for word in words])
    assert shown.exit_code == 2, shown.output
    assert shown.stderr.startswith("zhat: ")
    assert shown.stdout == ""


def known_factors(tmp_path):
    random = np.random.default_rng(0)
    h = random.normal(size=(300, 3))
    np.save(tmp_path / "h.npy", h)
    rows = [
        f"{a:.4f},{'up' if b > 0 else 'down'},{c:.4f},7"
        for a, b, c in zip(*h[:, :2].T, random.normal(size=300), strict=True)
    ]
    (tmp_path / "f.csv").write_text("\n".join(["a_position_with_a_long_name,side,noise,still", *rows]))
    return str(tmp_path / "h.npy"), str(tmp_path / "f.csv")


def test_decode_says_what_was_found_first_within_80_columns(tmp_path):
    h, factors = known_factors(tmp_path)
    shown = zhat("decode", h, factors, "--report", str(tmp_path / "page.html"))
    assert shown.exit_code == 0
    assert shown.stdout.startswith("2 of 4 factors can be read from h.npy by a linear map")
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80
    assert "still: it has the same value in all rows" in shown.stdout
    assert (tmp_path / "page.html").exists()


def test_decode_prints_json_whose_fields_are_documented(tmp_path):
    h, factors = known_factors(tmp_path)
    shown = zhat("decode", h, factors, "--type", "side=categorical", "--json")
    result = from_json(shown.stdout)
    documented = (ROOT / "docs" / "decode.md").read_text(encoding="utf-8").split("## JSON")[1]
    for kind in (result, result.scores[0]):
        for name in vars(kind):
            assert f"`{name}`" in documented, name


def test_decode_gates_with_an_exit_code(tmp_path):
    h, factors = known_factors(tmp_path)
    passed = zhat("decode", h, factors, "--require", "side=0.8")
    assert passed.exit_code == 0
    assert "gate passed: side" in passed.stderr
    failed = zhat("decode", h, factors, "--require", "noise=0.1")
    assert failed.exit_code == 1
    assert "gate failed: R2 of noise must be at least 0.1, none was found" in failed.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--type", "side"), "--type is given as NAME=VALUE, but 'side' came"),
        (("--period", "noise=often"), "--period noise=… takes a number, but 'often' came"),
        (("--require", "nobody=1"), "there is no factor named 'nobody'"),
        (("--ids", "a", "--ids", "b", "--ids", "c"), "--ids is given once or twice"),
        (("--split", "half"), "there is no split named 'half'"),
    ],
)
def test_decode_ends_with_a_sentence_and_code_2_for_a_mistake(tmp_path, words, message):
    h, factors = known_factors(tmp_path)
    shown = zhat("decode", h, factors, *words, "--report", str(tmp_path / "page.html"))
    assert shown.exit_code == 2
    assert message in shown.stderr
    assert not (tmp_path / "page.html").exists()


def test_several_inputs_give_a_matrix_within_80_columns(tmp_path):
    from zhat.results import VERDICTS, AuditMatrix

    old, new, other = audited(tmp_path)
    shown = zhat("audit", old, new, other, "--report", str(tmp_path / "page.html"))
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("3 pairs of 3 inputs: 1 orthogonal, 2 unrelated.")
    assert "C  other.npy, 4 columns" in shown.output
    assert "From each to each other" in (tmp_path / "page.html").read_text(encoding="utf-8")
    found = from_json(zhat("audit", old, new, other, "--json").stdout)
    documented = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8").split("## JSON")[1]
    for name in vars(found):
        assert f"`{name}`" in documented
    many = [replace(found[0, 1], verdict=VERDICTS[i % len(VERDICTS)]) for i in range(72)]
    names = tuple(f"a rather long name of embeddings number {i}.safetensors" for i in range(9))
    out = io.StringIO()
    audit._show_audits(AuditMatrix(names, (4,) * 9, 600, tuple(many)), Console(file=out, width=80))
    text = out.getvalue()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "…" not in text
    assert "scaled perm." in text
    assert "to I" in text


def test_several_inputs_pass_one_gate_and_have_no_adapter(tmp_path):
    old, new, other = audited(tmp_path)
    failed = zhat("audit", old, new, other, "--require", "affine")
    assert failed.exit_code == 1
    assert failed.stderr.startswith("gate failed: 4 of 6 ordered pairs | old.npy to other.npy: required affine")
    refused = zhat("audit", old, new, other, "--adapter", str(tmp_path / "map.safetensors"))
    assert refused.exit_code == 2
    assert "Give two" in refused.stderr
    assert zhat("audit", old).exit_code == 2


def test_models_are_compared_layer_by_layer(tmp_path):
    pytest.importorskip("transformers", reason="transformers is not installed: pip install 'zhat[hf]'")
    from tests.audit.test_models import saved

    model = str(saved(tmp_path, "gpt2"))
    np.save(tmp_path / "tokens.npy", np.random.default_rng(0).integers(0, 50, (200, 5)))
    words = ("audit", "--model", model, "--model", model, "--data", str(tmp_path / "tokens.npy"))
    shown = zhat(*words, "--report", str(tmp_path / "page.html"), "--require", "identity")
    assert shown.exit_code == 0, shown.output
    assert "3 layers of model (A) and model (B) on tokens.npy: 3 identity." in shown.stdout
    assert "block 2" in shown.stdout
    assert max(len(line.rstrip()) for line in shown.stdout.splitlines()) <= 80
    assert "Each layer" in (tmp_path / "page.html").read_text(encoding="utf-8")
    for wrong in (words[:3], words[:5], (*words, "x.npy"), (*words, "--recall", "3")):
        refused = zhat(*wrong)
        assert refused.exit_code == 2
        assert "models are compared with: zhat audit --model A --model B [--model C …] --data FILE" in refused.stderr


@pytest.mark.parametrize(
    "how", ["auto_map", "nested auto_map", "auto_map of the tokenizer", "only a .bin", "a weight missing"]
)
def test_a_model_that_cannot_be_trusted_is_exit_code_2_for_both_commands(tmp_path, monkeypatch, how):
    pytest.importorskip("transformers", reason="transformers is not installed: pip install 'zhat[hf]'")
    from tests.files.test_hugging_face import damaged, with_tokenizer

    monkeypatch.chdir(tmp_path)
    models = [str(with_tokenizer(tmp_path, "whole")), str(damaged(with_tokenizer(tmp_path, "odd", 1), how))]
    np.save(tmp_path / "tokens.npy", np.zeros((40, 5), int))
    out = str(tmp_path / "out")
    for words in (
        ("audit", "--model", models[0], "--model", models[1], "--data", "tokens.npy", "--report", out),
        ("reproduce", "roeder2020", "--figure", "4", "--budget", "smoke", "--models", ",".join(models), "--out", out),
    ):
        refused = zhat(*words)
        assert refused.exit_code == 2, refused.output
        assert refused.stderr.startswith(f"zhat: {models[1]} ")
        assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "zhat-was-here").exists()


@pytest.mark.parametrize(
    "what",
    ["truncated", "corrupt", "pickled", "objects", "text", "no rows", "empty", "NaN", "mismatched", "cut tensors"],
)
def test_a_bad_input_is_exit_code_2_one_sentence_and_no_output(tmp_path, what):
    from tests.files.test_embeddings import bad

    old, new, _ = audited(tmp_path)
    (tmp_path / "bad").mkdir()
    if what in ("NaN", "mismatched"):
        spoiled = np.load(new)
        spoiled[300, 1] = np.nan
        np.save(tmp_path / "bad" / "x.npy", spoiled if what == "NaN" else np.load(new)[:500])
        wrong = tmp_path / "bad" / "x.npy"
    else:
        wrong = bad(tmp_path / "bad", what)
    before = sorted(tmp_path.rglob("*"))
    asked = ("--report", str(tmp_path / "page.html"), "--adapter", str(tmp_path / "map.safetensors"))
    shown = zhat("audit", old, str(wrong), *asked)
    several = zhat("audit", old, new, str(wrong), *asked[:2], "--json")
    for refused in (shown, several):
        assert refused.exit_code == 2, refused.output
        assert refused.stdout == ""
        assert refused.stderr.startswith("zhat: ")
        assert refused.stderr.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before
    assert not os.path.exists("/tmp/zhat-was-here")
