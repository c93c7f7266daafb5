import pytest

from zhat.citing import cite, keys
from zhat.errors import UnknownName


def test_citations_start_with_zhat_and_name_each_key_once():
    text = cite("zimmermann2021", "zimmermann2021")
    assert text.startswith("@software{zhat,")
    assert text.count("@inproceedings{zimmermann2021,") == 1


def test_every_entry_is_complete():
    for key in keys():
        entry = cite(key)
        assert entry.count("{") == entry.count("}")
        assert "title" in entry
        assert "author" in entry


def test_an_unknown_key_is_refused_with_the_known_ones():
    with pytest.raises(UnknownName, match="no reference named 'nobody1900'. Known: zhat, zimmermann2021"):
        cite("nobody1900")
