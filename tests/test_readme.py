"""The README is true: its code runs, its commands exist, its numbers are those of results/."""

import re
import runpy
from pathlib import Path

import pytest

import zhat
from zhat.equivalence import ORTHOGONAL

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_code_runs_as_written(capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", README, re.S):
        exec(block, names)
    shown = capsys.readouterr().out
    assert "every condition holds" in shown
    assert "up to affine" in shown
    five_lines = zhat.score(names["first"].encoder, names["world"])
    assert five_lines[ORTHOGONAL].value > 0.95  # what the page says above the code
    assert "MCC" in shown


def test_measured_blocks_are_those_of_results():
    blocks = runpy.run_path(str(ROOT / "docs" / "blocks.py"))
    for name, wanted in blocks["PAGES"].items():
        page = (ROOT / name).read_text(encoding="utf-8")
        assert blocks["filled"](page, wanted) == page, f"{name} differs from results/"


@pytest.mark.parametrize("target", ["demo", "test", "check", "docs"])
def test_make_knows_the_targets_the_pages_name(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)


def test_pictures_exist():
    for path in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README):
        assert (ROOT / path).exists(), path


def test_the_contributing_recipes_run():
    names = {}
    exec(
        "from dataclasses import dataclass\nimport torch\nfrom torch.nn import functional as F\n"
        "from zhat import testing\nfrom zhat.dgp import Real\nfrom zhat.metrics import Recovery, spearman\n"
        "from zhat.datasets import NextRow\nfrom zhat.encoders import conv\n"
        "from zhat.equivalence import COMPONENTWISE\n",
        names,
    )
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, names)
