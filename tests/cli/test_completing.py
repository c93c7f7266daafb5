"""What a shell offers; each case starts the program as a shell does."""

import json
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from zhat import papers
from zhat.audit.gate import equivalence
from zhat.cli import completing
from zhat.decoding.decoded import SPLITS
from zhat.equivalence import AFFINE, Equivalence
from zhat.scenes import SCENES

ROOT = Path(__file__).parent.parent.parent


def offered(line, shell="bash", *more):
    words = line.split(" ")
    ran = subprocess.run(
        [sys.executable, *more, "-m", "zhat"],
        capture_output=True,
        text=True,
        env=os.environ
        | {"PYTHONPATH": str(ROOT / "src"), "_ZHAT_COMPLETE": f"complete_{shell}"}
        | {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        check=False,
    )
    return ran


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("zhat re", {"reproduce", "report"}),
        ("zhat reproduce zim", {"zimmermann2021"}),
        ("zhat reproduce roeder2020 --figure ", {"1", "2", "2v", "3b", "3c", "3d", "4"}),
        ("zhat check zimmermann2021 --row T2.1", {"T2.1", "T2.10"}),
        ("zhat audit a.npy b.npy --require s", {"signed_permutation", "scaled_permutation", "similarity"}),
        ("zhat decode h.npy f.csv --split ", set(SPLITS)),
        ("zhat list ma", {"marginals"}),
        ("zhat show ", set(SCENES)),
    ],
)
def test_a_shell_is_offered_what_fits(line, wanted):
    ran = offered(line)
    assert ran.returncode == 0, ran.stderr
    assert set(ran.stdout.split()) == wanted


def test_completing_a_row_loads_no_torch():
    ran = offered("zhat reproduce zimmermann2021 --row T2.1", "bash", "-X", "importtime")
    assert set(ran.stdout.split()) == {"T2.1", "T2.10"}
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "zhat.papers" in loaded
    assert not {"torch", "numpy", "scipy"} & loaded


def test_the_names_a_shell_is_offered_are_those_of_the_papers():
    kept = json.loads(resources.files("zhat.papers").joinpath("names.json").read_text(encoding="utf-8"))
    now = {name: papers.gathered(papers.paper(name)) for name in papers.names()}
    assert kept == now, "papers/names.json is old: run python -m zhat.papers"
    assert papers.words("nobody1999") == {}
    assert sorted(completing.WORLDS) == sorted(SCENES)


def test_a_class_that_is_offered_is_one_that_a_gate_takes():
    assert {equivalence(word) for word in completing.a_class(None, "")} == {e for e in Equivalence if e <= AFFINE}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell):
    ran = subprocess.run(
        [sys.executable, "-m", "zhat", "--show-completion", shell],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert f"_ZHAT_COMPLETE=complete_{shell}" in ran.stdout
