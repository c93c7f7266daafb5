"""The import drawing of ARCHITECTURE.md, checked against the import statements."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "zhat"

# Top to bottom; a line may import from lines below it. Neighbours on a line do not import each other.
DRAWING = (
    ("__main__",),
    ("cli",),
    ("demo", "estimator"),
    ("testing", "report", "progress"),
    ("papers", "decoding"),
    ("experiment", "audit"),
    ("training", "theory", "scenes"),
    ("encoders", "objectives", "metrics", "datasets", "runs"),
    ("dgp", "kernels", "files"),
    ("results", "randomness", "citing"),
    ("_checks", "_files", "fresh", "shown"),
    ("equivalence", "errors", "_version"),
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


PICKLES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
LOADER = SOURCE / "files" / "hugging_face.py"  # the one that may ask the library for a model, and says how
PLAIN = SOURCE / "datasets" / "kitti_masks.py"  # a pickle of its publisher, of which lists and arrays are admitted


def unsafe(tree):
    """What a module does that may run the code of a file: every line of it, by the meaning of the names it uses."""
    named = {}  # what a name in this module stands for, in full
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named |= {
                a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names
            }
        elif isinstance(node, ast.ImportFrom) and node.module:
            named |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    yield from (f"import {full}" for full in named.values() if full.split(".")[0] in PICKLES)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            name = ast.unparse(node)
            first, dot, rest = name.partition(".")
            full = named.get(first, first) + dot + rest
            if full in ("torch.load", "torch.jit.load", "torch.export.load", "torch.hub.load", "torch.package"):
                yield f"{full}, line {node.lineno}"
            if full.split(".")[-1] == "from_pretrained":
                yield f"from_pretrained, line {node.lineno}"
        if isinstance(node, ast.Call):
            words = {word.arg: word.value for word in node.keywords}
            for word, allowed in (("allow_pickle", False), ("trust_remote_code", False), ("weights_only", True)):
                if word in words and getattr(words[word], "value", None) is not allowed:
                    yield f"{word}={ast.unparse(words[word])}, line {node.lineno}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_nothing_is_unpickled(path):
    found = list(unsafe(ast.parse(path.read_text(encoding="utf-8"))))
    admitted = {LOADER: "from_pretrained", PLAIN: "import pickle"}
    assert [each for each in found if not each.startswith(admitted.get(path, "nothing"))] == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import load as read",
        "import joblib.numpy_pickle as j",
        "import torch as t\nt.load('x')",
        "from torch import load\nload('x')",
        "from torch import jit\njit.load('x')",
        "read = torch.load",
        "np.load('x', allow_pickle=True)",
        "np.load('x', allow_pickle=asked)",
        "AutoModel.from_pretrained('x')",
        "read = transformers.AutoModel.from_pretrained",
        "read('x', trust_remote_code=True)",
        "read('x', weights_only=False)",
    ],
)
def test_what_may_run_code_is_noticed(code):
    assert list(unsafe(ast.parse(code)))


def test_the_one_unpickler_admits_arrays_alone():
    from zhat.datasets.kitti_masks import _Plain

    assert {module for module, _ in _Plain.ADMITTED} == {
        "numpy.core.multiarray",
        "numpy._core.multiarray",
        "numpy",
        "_codecs",
    }
    used = [n for n in ast.walk(ast.parse(PLAIN.read_text(encoding="utf-8"))) if isinstance(n, ast.Attribute)]
    assert {ast.unparse(n) for n in used if ast.unparse(n).startswith("pickle.")} == {"pickle.Unpickler"}


def test_the_one_loader_takes_safetensors_of_this_machine_and_no_code():
    calls = [n for n in ast.walk(ast.parse(LOADER.read_text(encoding="utf-8"))) if isinstance(n, ast.Call)]
    loads = [call for call in calls if ast.unparse(call.func).endswith(".from_pretrained")]
    assert len(loads) == 2
    for call in loads:
        words = {word.arg: ast.unparse(word.value) for word in call.keywords}
        assert words["local_files_only"] == "True"
        assert words["trust_remote_code"] == "False"
        if "AutoModel" in ast.unparse(call.func):
            assert words["use_safetensors"] == words["output_loading_info"] == "True"
