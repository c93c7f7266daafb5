import pytest

from zhat.datasets import recorded
from zhat.errors import BadInput


def test_recorded_data_lies_where_the_variable_says(tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text("one")
    monkeypatch.setenv("ZHAT_DATA", str(tmp_path))
    assert recorded("text.txt") == tmp_path / "text.txt"
    with pytest.raises(BadInput, match="other.txt does not exist. Give the folder that holds other.txt with --data"):
        recorded("other.txt")


def test_without_a_place_a_sentence_says_how_to_give_one(monkeypatch):
    monkeypatch.delenv("ZHAT_DATA", raising=False)
    with pytest.raises(
        BadInput, match="text.txt is recorded data, .* --data, or set the environment variable ZHAT_DATA"
    ):
        recorded("text.txt")
