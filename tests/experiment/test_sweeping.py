"""A file of one's own becomes rows; shares of the work are the whole work."""

import sys

import pytest

from zhat import Fresh, runs
from zhat.dgp import Around, Box, Laplace, Linear, Pairs, Uniform
from zhat.encoders import mlp
from zhat.equivalence import AFFINE
from zhat.errors import BadInput
from zhat.experiment import Budget, Part, Row, Verdicts, reproduce
from zhat.experiment.ranking import Ranked
from zhat.experiment.sweeping import budget_of, declared, join, share, tasks, train_share
from zhat.metrics import Recovery
from zhat.objectives import InfoNCE, NegativeLp
from zhat.training import Recipe

BUDGET = Budget("tiny", Recipe(2, 16, 1e-3, together=2), seeds=3, batches=1, rows=64, profile_rows=256)
ROW = Row(
    "one",
    "L1",
    Pairs(Uniform(Box(2)), Around(Laplace(Box(2), 0.1)), Linear()),
    Fresh(mlp, 2, 2, widths=(4,), onto=Box(2)),
    InfoNCE(NegativeLp(1)),
    (BUDGET,),
)

DECLARED = '''"""Two distances.

And more about them.
"""
from dataclasses import replace
from tests.experiment.test_sweeping import ROW
from zhat.objectives import InfoNCE, NegativeLp

ROWS = [ROW, replace(ROW, name="two", title="L2", objective=InfoNCE(NegativeLp(2)))]
'''


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a Python file and forgets its module afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)

    def written(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    yield written
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_rows_of_a_file_become_a_part(write):
    file = write("two_distances.py", DECLARED)
    part = declared(file)
    assert (part.paper, part.label, part.caption, part.score) == ("two_distances", "Sweep", "Two distances.", "R2")
    assert [row.name for row in part.rows] == ["one", "two"]
    assert part.measure.up_to is AFFINE
    assert part.judge == Ranked()
    assert part.command == f"zhat sweep {file}"
    assert declared(file) == part  # a second time as well


def test_a_part_of_a_file_is_taken_as_it_is(write):
    text = DECLARED + (
        "from zhat.experiment import Part\nfrom zhat.results import Published\n"
        "PART = Part('mine', 'Table 9', 'a caption', 'R2', (replace(ROW, published=Published(90.0, 1.0)),))\n"
    )
    part = declared(write("a_part.py", text))
    assert (part.label, part.judge) == ("Table 9", Verdicts())


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.py", None, "a sweep is declared in a Python file, but .* is none"),
        ("rows.txt", "ROWS = []", "a sweep is declared in a Python file"),
        ("two-words.py", "", "cannot be imported by its name"),
        ("torch.py", DECLARED, "torch is the name of another module already"),
        (
            "nothing.py",
            "",
            "ROWS of .* must be zhat.experiment.Row objects in a list or tuple, but nothing of that name",
        ),
        ("empty.py", "ROWS = []", "but it is empty"),
        ("numbers_only.py", "ROWS = [1]", "but it holds a int"),
        ("no_part.py", "PART = 1", "PART of .* must be a zhat.experiment.Part, but it is a int"),
        ("broken.py", "\nROWS = nonsense", r"cannot be run: NameError: name 'nonsense' is not defined \(line 2\)"),
        ("no_python.py", "ROWS = (", "cannot be run: SyntaxError"),
        ("leaves.py", "raise SystemExit(0)", "cannot be run: SystemExit"),
        ("refused.py", "\nfrom zhat.dgp import Box\nBox(0)", r"refused.py \(line 3\): `dim`"),
        ("twice.py", DECLARED + "ROWS = [ROW, ROW]", "two rows are called 'one'"),
        ("slash.py", DECLARED + "ROWS = [replace(ROW, name='a/../b')]", "'a/../b' becomes the name of a folder"),
    ],
)
def test_a_file_that_declares_no_rows_gets_a_sentence(write, tmp_path, name, text, message):
    file = tmp_path / name if text is None else write(name, text)
    with pytest.raises(BadInput, match=message):
        declared(file)


def test_the_budget_is_the_one_that_all_rows_have():
    part = Part("mine", "Sweep", "", "R2", (ROW,))
    assert budget_of(part, None) == budget_of(part, "tiny") == "tiny"
    with pytest.raises(BadInput, match=r"--budget must be one that all rows have \(tiny\), but 'huge' came"):
        budget_of(part, "huge")


def test_shares_are_the_whole_work_and_no_training_is_in_two():
    part = Part("mine", "Sweep", "", "R2", (ROW,))
    work = tasks(part, ("one",), "tiny", 5)
    assert [stack for _, stack in work] == [(0, 1), (2, 3), (4,)]
    for n in (1, 2, 3, 7):
        shares = [share(work, f"{i}/{n}") for i in range(1, n + 1)]
        assert sorted(stack for each in shares for _, stack in each) == [(0, 1), (2, 3), (4,)]
    for words in ("0/2", "3/2", "2", "1/0", "a/b"):
        with pytest.raises(BadInput, match="--shard must be a share such as 2/8"):
            share(work, words)


def test_shares_trained_apart_and_joined_are_what_one_machine_trains(tmp_path):
    part = Part("mine", "Sweep", "", "R2", (ROW,), measure=Recovery(AFFINE), judge=Ranked())
    work = tasks(part, ("one",), "tiny", None)
    for i in (1, 2):
        train_share(part, share(work, f"{i}/2"), "tiny", out=tmp_path / f"machine-{i}" / "runs")
        join(tmp_path / f"machine-{i}", tmp_path / "joined")
    assert join(tmp_path / "machine-1", tmp_path / "joined") == 0  # they are there
    (shared,) = reproduce(part, budget="tiny", out=tmp_path / "joined", train=False)
    *_, alone = reproduce(part, budget="tiny", out=tmp_path / "alone")
    assert shared.rows[0].learned.values == alone.rows[0].learned.values
    assert shared.rows[0].seeds == (0, 1, 2)


def test_a_damaged_run_is_not_joined(tmp_path):
    part = Part("mine", "Sweep", "", "R2", (ROW,), measure=Recovery(AFFINE))
    train_share(part, tasks(part, ("one",), "tiny", 1), "tiny", out=tmp_path / "there" / "runs")
    (folder,) = runs.scan(tmp_path / "there")
    (folder / "encoder.safetensors").write_bytes(b"")
    with pytest.raises(BadInput, match="differs from what was written"):
        join(tmp_path / "there", tmp_path / "here")
    assert not list((tmp_path / "here").rglob("*"))
