"""The import drawing of ARCHITECTURE.md, checked against the import statements."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "zhat"

# Top to bottom; a line may import from lines below it. Neighbours on a line do not import each other.
DRAWING = (
    ("cli",),
    ("demo",),
    ("testing", "report", "progress"),
    ("papers",),
    ("experiment", "audit"),
    ("training", "theory", "runs"),
    ("encoders", "objectives", "metrics", "datasets"),
    ("dgp", "kernels"),
    ("results", "randomness", "citing"),
    ("_checks", "_files"),
    ("equivalence", "errors", "fresh", "_version"),
)
LEVEL = {room: len(DRAWING) - i for i, line in enumerate(DRAWING) for room in line}
WORDS = {room for line in DRAWING[-3:] for room in line}
ONLY_WORDS = ("report", "metrics", "progress")  # rooms that read nothing but the words all rooms share


def rooms_imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "zhat":
            if node.module == "zhat":
                yield from (alias.name for alias in node.names if alias.name != "__version__")
            else:
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("zhat."))


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def test_every_room_has_its_place_in_the_drawing():
    assert {room_of(path) for path in FILES} == set(LEVEL)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path):
    here = room_of(path)
    for there in rooms_imported(path):
        assert there == here or LEVEL[there] < LEVEL[here], f"{here} imports {there}, which is not below it"
        if here in ONLY_WORDS:
            assert there == here or there in WORDS, f"{here} imports {there}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_modules_open_with_a_sentence_and_bear_a_name_of_their_own(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert path.stem not in {"utils", "helpers", "common", "misc", "base"}


def test_the_drawing_in_the_architecture_page_is_this_one():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    drawn = page.split("```imports\n")[1].split("```")[0]
    lines = [tuple(line.replace("*", "").split()) for line in drawn.strip().splitlines()]
    assert tuple(lines) == DRAWING


def test_tests_mirror_the_package():
    for path in (ROOT / "tests").rglob("test_*.py"):
        room = path.relative_to(ROOT / "tests").parts[0]
        if room.endswith(".py"):
            continue
        assert (SOURCE / room).is_dir(), f"{path} tests a room that does not exist"
        named = SOURCE / room / (path.stem.removeprefix("test_") + ".py")
        assert named.exists(), f"{path} names no module of {room}"


def test_nothing_is_unpickled():
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        for word in ("import pickle", "torch.load(", "allow_pickle=True", "joblib"):
            assert word not in text, f"{path} holds {word}"
