import json
import lzma
import os
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from zhat import randomness
from zhat.datasets import CentreWords, Corpus, Windows
from zhat.datasets.text import split
from zhat.errors import BadInput


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("ZHAT_DATA", str(tmp_path))
    return tmp_path


def written(corpus, part="train"):
    return " ".join(corpus.vocabulary[i] for i in corpus.tokens(part))


def test_a_text_becomes_words_and_marks():
    assert split("“Don’t!” she cried; in 1851, no less.") == [
        "don't",
        "!",
        "she",
        "cried",
        ";",
        "in",
        "1851",
        ",",
        "no",
        "less",
        ".",
    ]


def test_the_most_frequent_words_are_the_vocabulary_and_the_rest_is_unknown(place):
    (place / "a.txt").write_text("b a a c b a d " * 10 + "z" * 8)
    corpus = Corpus("a.txt", words=4, held_out=0.1)
    assert corpus.vocabulary == ("<unknown>", "a", "b", "c")  # d is as frequent as c: the alphabet decides
    assert corpus.tokens()[:7].tolist() == [2, 1, 1, 3, 2, 1, 0]
    share = corpus.frequencies()
    assert share.sum() == pytest.approx(1.0)
    assert share[1] == pytest.approx((corpus.tokens() == 1).double().mean())


def test_the_end_of_every_document_is_held_out(place):
    with lzma.open(place / "two.jsonl.xz", "wt") as file:
        for word in ("red", "blue"):
            file.write(json.dumps({"text": f"{word} " * 90 + f"late{word} " * 10}) + "\n")
    corpus = Corpus("two.jsonl.xz", held_out=0.1)
    assert set(written(corpus, "held out").split()) <= {"<unknown>", "red", "blue"} | set(corpus.vocabulary)
    train, late = corpus.tokens(), corpus.tokens("held out")
    assert len(train) + len(late) in (200, 201, 202)  # a cut may split a word
    assert set(corpus.vocabulary) >= {"red", "blue"}
    assert "latered" in corpus.held_out_text()[0] and "lateblue" in corpus.held_out_text()[1]  # noqa: PT018
    assert written(corpus).startswith("red red red")


def test_only_the_beginning_is_read_where_that_is_asked_for(place):
    (place / "long.txt").write_text("abc " * 100)
    assert len(Corpus("long.txt", characters=40, held_out=0.25).tokens()) == 8


def test_windows_are_neighbours_of_the_text_and_the_generator_decides_which(place):
    (place / "n.txt").write_text(" ".join(str(1000 + i) for i in range(400)))
    corpus = Corpus("n.txt", words=1000)
    windows = Windows(corpus, length=6)
    drawn = [windows.sample(64, generator=randomness.generator(s, "data")).x for s in (0, 0, 1)]
    assert drawn[0].shape == (1, 64, 6)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    spoken = [[int(corpus.vocabulary[i]) for i in row] for row in drawn[0][0]]
    assert all(b - a == 1 for row in spoken for a, b in pairwise(row))
    held_out = {int(corpus.vocabulary[i]) for i in corpus.tokens("held out") if i > 0}
    assert not held_out & {word for row in spoken for word in row}
    assert windows.held_out.part == "held out"
    with pytest.raises(BadInput, match="20 words in the part 'held out', fewer than a window of 50"):
        Windows(corpus, length=50).held_out.sample(1, generator=randomness.generator(0, "data"))


def test_the_middle_word_is_the_label(place):
    (place / "n.txt").write_text(" ".join(str(1000 + i) for i in range(400)))
    world = CentreWords(Corpus("n.txt", words=1000), length=5)
    batch = world.sample(32, generator=randomness.generator(0, "data"))
    assert batch.x.shape == (1, 32, 4)
    assert world.labels == 1000
    number = [int(w) if w.isdigit() else -1 for w in world.corpus.vocabulary]
    for context, middle in zip(batch.x[0].tolist(), batch.label.tolist(), strict=True):
        assert [number[i] - number[middle] for i in context] == [-2, -1, 1, 2]


def test_mistakes_are_told(place):
    (place / "a.txt").write_text("a b c")
    with pytest.raises(BadInput, match="a corpus has the parts 'train' and 'held out', but 'test' came"):
        Corpus("a.txt").tokens("test")
    with pytest.raises(BadInput, match="must be a share between 0 and 1, but 1.5 came"):
        Corpus("a.txt", held_out=1.5)


@pytest.mark.data
def test_the_recorded_novels_are_read():
    if not (Path(os.environ.get("ZHAT_DATA", "nowhere")) / "text_english_novels").is_dir():
        pytest.skip("ZHAT_DATA names no folder with text_english_novels")
    corpus = Corpus("text_english_novels/novels95.jsonl.xz", words=100, characters=2_000_000)
    assert corpus.vocabulary[1:4] == (",", "the", ".")
    assert len(corpus.tokens()) > 15 * len(corpus.tokens("held out"))
