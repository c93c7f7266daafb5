"""Several inputs: the verdict of each ordered pair is the one it would get alone, from one pass over each file."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from tests.audit.test_verdict import rotation
from zhat.audit import Gate, audit, audit_all, embeddings, rows
from zhat.equivalence import AFFINE, LINEAR
from zhat.errors import BadInput
from zhat.results import from_json, to_json


def several(n=900, seed=0):
    random = np.random.default_rng(seed)
    a = random.normal(size=(n, 6)) * np.linspace(0.5, 2, 6)
    turned = a @ rotation(6, random) + 0.05 * random.normal(size=(n, 6))
    return [a, turned, a @ random.normal(size=(6, 3)), random.normal(size=(n, 4))]


SEVERAL = several()
MATRIX = audit_all(SEVERAL)


def test_every_ordered_pair_gets_the_verdict_it_gets_alone():
    assert len(MATRIX.audits) == 12
    for i, j in permutations(range(4), 2):
        found = MATRIX[i, j]
        assert (found.a, found.b) == ("abcd"[i], "abcd"[j])
        if (i, j) not in ((0, 1), (1, 2), (2, 1), (3, 0)):  # the others would say the same
            continue
        alone = audit(SEVERAL[i], SEVERAL[j])
        assert found.verdict == alone.verdict
        assert [s.value for s in found.ladder] == pytest.approx([s.value for s in alone.ladder], abs=1e-9)
        assert found.directions == alone.directions


def test_a_map_that_loses_directions_shows_in_one_order_only():
    there, back = MATRIX[0, 2], MATRIX[2, 0]
    assert (there.verdict, back.verdict) == ("linear", "partly linear")
    assert there.up_to is back.up_to is LINEAR
    assert there.score.value > 0.999
    assert back.score.value < 0.8
    assert MATRIX[0, 3].verdict == "unrelated"
    assert MATRIX.sentence == "6 pairs of 4 inputs: 1 orthogonal, 2 partly linear, 3 unrelated."
    with pytest.raises(BadInput, match="two different numbers below 4"):
        MATRIX[1, 1]


def test_a_matrix_survives_json():
    assert from_json(to_json(MATRIX)) == MATRIX


class Counted:
    """Rows of a source, and how many were asked for."""

    def __init__(self, source, reads, name):
        self.source, self.reads, self.name = source, reads, name

    def __call__(self, which):
        return self.counted(self.source(which))

    def stored(self, which):
        return self.counted(self.source.stored(which))

    def counted(self, some):
        self.reads[self.name] = self.reads.get(self.name, 0) + len(some)
        return some


def counted(source, name, reads):
    whole = embeddings(source, name=name)
    return replace(whole, take=Counted(whole.take, reads, name))


def test_each_file_is_read_once_whatever_the_number_of_pairs():
    reads = {}
    rows.look_around([counted(x, f"input {i}", reads) for i, x in enumerate(SEVERAL)], seed=0)
    for n in reads.values():
        assert n == 900 + 900  # the whole, and the first 4096 rows to see whether neighbours are alike


def test_a_file_with_copies_costs_one_pass_more_and_decides_the_split():
    random = np.random.default_rng(1)
    pick = random.integers(0, 300, 900)
    copied = [x[pick] for x in several(300, seed=2)[:2]]
    fresh = random.normal(size=(900, 5))
    reads = {}
    found = audit_all([counted(x, f"input {i}", reads) for i, x in enumerate((*copied, fresh))])
    assert set(reads.values()) == {3 * 900}
    distinct = len(np.unique(pick))
    assert found[0, 1].effective == distinct
    assert found[0, 1].verdict == "orthogonal"
    assert found[0, 2].verdict == "unrelated"


def test_moments_that_do_not_fit_are_taken_pair_by_pair_with_the_same_verdicts(monkeypatch):
    monkeypatch.setattr(rows, "_MOST_BYTES", 1)
    found = audit_all(SEVERAL[1:])
    assert [found[i, j].verdict for i, j in permutations(range(3), 2)] == [
        MATRIX[i, j].verdict for i, j in permutations(range(1, 4), 2)
    ]


def test_rows_of_several_files_are_joined_by_id():
    random = np.random.default_rng(3)
    orders = [random.permutation(900)[: 800 + 20 * i] for i in range(4)]
    found = audit_all([x[o] for x, o in zip(SEVERAL, orders, strict=True)], ids=orders)
    assert found.n == len(set.intersection(*(set(o.tolist()) for o in orders)))
    assert found[0, 1].verdict == "orthogonal"
    with pytest.raises(BadInput, match="one for each of 4 inputs"):
        audit_all(SEVERAL, ids=orders[:2])
    with pytest.raises(BadInput, match="at least two"):
        audit_all(SEVERAL[:1])


def test_files_of_one_name_get_a_letter(tmp_path):
    paths = []
    for i, x in enumerate(SEVERAL[:3]):
        (tmp_path / str(i)).mkdir()
        np.save(tmp_path / str(i) / ("x.npy" if i else "y.npy"), x)
        paths.append(tmp_path / str(i) / ("x.npy" if i else "y.npy"))
    assert audit_all(paths).names == ("y.npy", "x.npy (B)", "x.npy (C)")


def test_a_gate_asks_every_ordered_pair():
    passed, line = Gate(require=AFFINE)(MATRIX)
    assert not passed
    assert line.startswith("gate failed: 8 of 12 ordered pairs | a to d: required affine, found unrelated | ")
    assert line.endswith(" | and 5 more")
    related = audit_all(SEVERAL[:3])
    assert Gate(require=AFFINE, min=0)(related) == (
        True,
        "gate passed: all 6 ordered pairs; asked: affine or tighter, R2 at least 0; not asked: the condition number, "
        "recall, a baseline",
    )
    assert "c to a: R2 must be at least 0.95 (the default), is 0." in Gate(require=AFFINE)(related)[1]
    assert "c to a: R2 must be at least 0.9" in Gate(min=0.9)(related)[1]
