from dataclasses import replace

import numpy as np
import pytest

from tests.audit.test_verdict import planted
from zhat.audit import Gate, audit, audit_all, examine, read_baseline, read_gate
from zhat.equivalence import AFFINE, INVERTIBLE, ORTHOGONAL, PERMUTATION
from zhat.errors import BadInput, UnknownName
from zhat.results import Profile, from_json, to_json

FOUND_PAIR = planted(ORTHOGONAL, 1000, 4, 0.1)
FOUND = audit(*FOUND_PAIR)


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


def weak(n=2000):
    """A relation that is certain and explains a fiftieth of the variance."""
    random = np.random.default_rng(0)
    a = random.normal(size=(n, 4))
    return audit(a, a + 7 * random.normal(size=(n, 4)))


def test_a_required_class_must_explain_nearly_all_unless_another_share_is_named():
    found = weak()
    assert found.up_to is not None
    assert found.score.value == pytest.approx(1 / 50, abs=0.02)
    passed, line = Gate(require=AFFINE)(found)
    assert not passed
    assert line.startswith("gate failed: R2 must be at least 0.95 (the default), is 0.0")
    assert Gate(require=AFFINE, min=0)(found)[0]
    assert not Gate(require=AFFINE, min=0.1)(found)[0]


def test_a_gate_that_passes_says_what_it_has_not_asked():
    passed, line = Gate(require=AFFINE)(FOUND)
    assert passed
    value = f"orthogonal, R2 {FOUND.score.value:.4f} [{FOUND.score.low:.4f}, {FOUND.score.high:.4f}]"
    asked = "asked: affine or tighter, R2 at least 0.95 (the default)"
    assert line == (
        f"gate passed: {value}; {asked}; not asked: the condition number (1), recall (not measured), a baseline"
    )
    assert Gate(max_condition=2)(FOUND)[1].endswith(
        f"not asked: the class of maps (orthogonal), R2 ({FOUND.score.value:.4f}), recall (not measured), a baseline"
    )


def test_a_result_holds_its_gate_and_survives_json():
    gated = Gate(require=AFFINE, min=0.999, max_condition=3).judge(FOUND)
    assert [(c.name, c.asked, c.passed) for c in gated.conditions] == [
        ("require", "affine", True),
        ("min", 0.999, False),
        ("max_condition", 3.0, True),
    ]
    assert [c.found for c in gated.conditions] == ["orthogonal", FOUND.score.low, FOUND.condition]
    assert not gated.passed
    kept = replace(FOUND, gate=gated)
    assert from_json(to_json(kept)) == kept


def test_a_baseline_fails_where_a_score_is_worse_beyond_both_intervals(tmp_path):
    noisier = audit(*planted(ORTHOGONAL, 1000, 4, 0.2))
    passed, line = Gate(baseline=FOUND)(noisier)
    assert not passed
    assert line.startswith(f"gate failed: R2 up to orthogonal was {FOUND.score.value:.4f} [")
    assert Gate(baseline=noisier)(FOUND)[0]
    assert Gate(baseline=FOUND)(audit(*planted(ORTHOGONAL, 1000, 4, 0.1, seed=1)))[0]
    touching = replace(FOUND.score, high=FOUND.score.low, low=0.5, value=0.6)
    ladder = Profile(tuple(touching if s.up_to is ORTHOGONAL else s for s in FOUND.ladder))
    assert Gate(baseline=FOUND)(replace(FOUND, ladder=ladder))[0]  # the intervals share one number
    lost = audit(FOUND_PAIR[0], np.random.default_rng(5).normal(size=(1000, 4)))
    assert "there is none now" in Gate(baseline=FOUND)(lost)[1]
    path = tmp_path / "audit.json"
    path.write_text(to_json(FOUND))
    assert read_baseline(path) == FOUND
    (tmp_path / "gate.toml").write_text('baseline = "audit.json"')
    assert read_gate(tmp_path / "gate.toml").baseline == FOUND
    with pytest.raises(BadInput, match="found no map"):
        Gate(baseline=lost)(FOUND)
    with pytest.raises(BadInput, match="of the same kind and size"):
        Gate(baseline=audit_all([*FOUND_PAIR, FOUND_PAIR[0]]))(FOUND)
    for text, sentence in (("{}", "it holds dict"), ("[1", "cannot be read")):
        path.write_text(text)
        with pytest.raises(BadInput, match=sentence):
            read_baseline(path)
    with pytest.raises(BadInput, match="there is no baseline"):
        read_baseline(tmp_path / "none.json")


def test_the_recall_of_a_baseline_is_compared_where_both_have_it():
    near = examine(*FOUND_PAIR).searched(5).result
    far = replace(near, searched=replace(near.searched, value=0.1, low=0.05, high=0.15))
    assert Gate(baseline=near)(far)[1].startswith(f"gate failed: {near.searched.name} was")
    assert Gate(baseline=near)(FOUND)[0]


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
        ("baseline = 3", "name of a file"),
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
