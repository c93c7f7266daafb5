"""A few hundred damaged inputs, one after the other: each is read or refused, and none ends in anything else."""

import pytest

from benchmarks import fuzz

SLOW = ("results", "checkpoints", "options", "audits")  # tens of milliseconds each: fewer of them


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_damaged_input_is_read_or_refused_and_nothing_else(kind):
    found = fuzz.run(4 if kind in SLOW else 16, 5, (kind,), loud=False, forked=False)
    assert found["faults"] == {}
    assert found["read"] + found["refused"] == found["cases"]


def test_a_crash_a_hang_and_accepted_damage_are_told_apart(monkeypatch):
    def crashes(random, folder):
        raise KeyError("a parser's own")

    def hangs(random, folder):
        while True:
            pass

    def accepts(random, folder):
        fuzz.finite([1.0, float("nan")])

    monkeypatch.setattr(fuzz, "KINDS", {"one": (crashes, 1), "two": (hangs, 1), "three": (accepts, 1)})
    monkeypatch.setattr(fuzz, "PATIENCE", 0.05)
    endings = {kind: fuzz.attempt(0, 0, (kind,))[1] for kind in fuzz.KINDS}
    assert endings == {"one": "crashed", "two": "hung", "three": "accepted"}


def test_a_process_that_ends_is_one_case(monkeypatch):
    monkeypatch.setattr(
        fuzz, "KINDS", {"one": (lambda random, folder: random.integers(0, 2) or fuzz.os.kill(fuzz.os.getpid(), 9), 1)}
    )
    found = fuzz.run(6, 0, loud=False)
    assert found["crashed"] + found["read"] == 6
    assert found["crashed"] > 0
    assert list(found["faults"]) == ["one, crashed: the process ended with -9"]
