import pytest

from tests.audit.test_verdict import planted
from zhat.audit import Gate, audit, examine, read_gate
from zhat.equivalence import AFFINE, INVERTIBLE, ORTHOGONAL, PERMUTATION
from zhat.errors import BadInput, UnknownName

FOUND = audit(*planted(ORTHOGONAL, 1000, 4, 0.1))


def test_a_gate_passes_its_class_and_tighter_ones():
    assert Gate(require=AFFINE, min=0.98)(FOUND)[0]
    assert Gate(require=ORTHOGONAL)(FOUND)[0]
    passed, line = Gate(require=PERMUTATION)(FOUND)
    assert not passed
    assert line == "gate failed: required permutation, found orthogonal"


def test_a_gate_judges_the_lower_end_of_the_interval():
    score = FOUND.score
    assert Gate(min=score.low - 1e-6)(FOUND)[0]
    assert not Gate(min=score.value)(FOUND)[0]


def test_condition_and_recall_are_asked_for():
    assert Gate(max_condition=1.01)(FOUND)[0]
    assert "condition must be at most 0.5" in Gate(max_condition=0.5)(FOUND)[1]
    assert "was not measured" in Gate(min_recall=0.5)(FOUND)[1]
    searched = examine(*planted(ORTHOGONAL, 1000, 4, 0.1)).searched(5).result
    assert searched.searched is searched.beyond[-1]
    assert Gate(min_recall=searched.searched.value)(searched)[0]
    assert "recall must be at least 1.1, is 0." in Gate(min_recall=1.1)(searched)[1]


def test_a_gate_is_read_from_toml(tmp_path):
    path = tmp_path / "gate.toml"
    path.write_text('[gate]\nrequire = "scaled-permutation"\nmin = 0.9\n')
    assert read_gate(path) == Gate(require=read_gate(path).require, min=0.9)
    for text, sentence in (
        ("require = ", "must be TOML"),
        ("", "asks for nothing"),
        ("require = 3", "name of a class"),
        ("gate = 3", "table of conditions"),
        ('min = "high"', "finite number"),
    ):
        path.write_text(text)
        with pytest.raises(BadInput, match=sentence):
            read_gate(path)
    path.write_text('require = "rotated"')
    with pytest.raises(UnknownName, match="no class of maps named 'rotated'"):
        read_gate(path)
    path.write_text("minimum = 1")
    with pytest.raises(UnknownName, match="condition in gate.toml"):
        read_gate(path)
    with pytest.raises(BadInput, match="there is no gate"):
        read_gate(tmp_path / "none.toml")
    with pytest.raises(BadInput, match="affine or a tighter class"):
        Gate(require=INVERTIBLE)
