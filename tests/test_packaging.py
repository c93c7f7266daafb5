"""What a package index gets: facts about pyproject.toml, the sdist, the page of the README and the workflows."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

from zhat._version import __version__

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
page = runpy.run_path(str(ROOT / "setup.py"), run_name="page")["page"]


def test_the_sdist_holds_every_folder_of_the_repository():
    lines = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    grafted = {line.split()[1] for line in lines if line.startswith("graft ")}
    built = {"src", "build", "dist", "shared", "runs", "carry", "reproduced", "zhat-demo", ".venv", ".git"}
    there = {path.name for path in ROOT.iterdir() if path.is_dir() and "cache" not in path.name}
    there -= built | {path.name for path in ROOT.glob("*.egg-info")} | {".hypothesis"}
    assert there <= grafted
    patterns = next(line for line in lines if line.startswith("include ")).split()[1:]
    kept = {path.name for pattern in patterns for path in ROOT.glob(pattern)}
    files = {path.name for path in ROOT.iterdir() if path.is_file()}
    assert files - kept <= {"pyproject.toml", "setup.py", "MANIFEST.in", ".gitignore", ".git", "PKG-INFO", "setup.cfg"}


def test_an_index_gets_a_readme_without_relative_addresses():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for source in (None, "https://example.org/zhat"):
        shown = re.sub(r"```.*?```", "", page(readme, source), flags=re.S)
        targets = re.findall(r"\]\(([^)]+)\)", shown)
        assert all(target.startswith(("https://", "http://", "#")) for target in targets)
    assert "readme" in PROJECT["dynamic"]


def test_pictures_and_links_point_to_the_source_where_there_is_one():
    text = "![a](docs/a.png)\n\nSee [b](docs/b.md#c) and [d](https://d.org).\n\n```md\n[code](x.md)\n```\n"
    there = page(text, "https://host/zhat")
    assert "![a](https://host/zhat/raw/HEAD/docs/a.png)" in there
    assert "[b](https://host/zhat/blob/HEAD/docs/b.md#c) and [d](https://d.org)" in there
    assert page(text, None) == "See b and [d](https://d.org).\n\n```md\n[code](x.md)\n```\n"


def test_versions_agree():
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_extras_are_no_requirements():
    required = {re.match(r"[\w-]+", name)[0] for name in PROJECT["dependencies"]}
    optional = {"matplotlib", "pandas", "pyarrow", "transformers", "h5py", "zarr", "distributed", "pillow"}
    assert not required & optional


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda p: p.name)
def test_workflows_run_make_targets_that_exist(path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"- run: (.+)", path.read_text(encoding="utf-8"))
    assert commands
    for command in commands:
        program, *targets = command.split()
        assert program == "make"
        for target in targets:
            assert re.search(rf"^{target}:", makefile, re.M), target
