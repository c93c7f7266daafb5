import errno
import os
import tempfile

import pytest

from zhat.errors import BadInput, TooFewRows
from zhat.files import embeddings
from zhat.files.embeddings import KNOWN
from zhat.files.ids import read_ids
from zhat.files.reading import read_bytes, read_text, readable


@pytest.mark.parametrize("suffix", KNOWN)
def test_a_pipe_or_a_device_is_refused_at_once(tmp_path, suffix):
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"link{suffix}").symlink_to("/dev/zero")
    with pytest.raises(BadInput, match="must be a file, but it is a pipe"):
        embeddings(tmp_path / f"pipe{suffix}")
    with pytest.raises(BadInput, match="must be a file, but it is a device"):
        embeddings(tmp_path / f"link{suffix}")


@pytest.mark.parametrize("read", [read_ids, lambda p: read_text(p, "be text"), lambda p: read_bytes(p, "be bytes")])
def test_every_reader_goes_through_the_door(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="it is a pipe"):
        read(tmp_path / "pipe")
    with pytest.raises(BadInput, match="there is no file"):
        read(tmp_path / "none")
    with pytest.raises(BadInput, match="it is a folder"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ValueError("two words\nand more"), "x must be good, but it cannot be read \\(two words\\)."),
        (MemoryError(), "x must be good, but it cannot be read \\(MemoryError\\)."),
        (OSError(errno.EACCES, "Permission denied"), "x cannot be read \\(Permission denied\\)."),
        (OSError(errno.ENOSPC, "No space"), f"no space is left in {tempfile.gettempdir()} to unpack x. Free some"),
    ],
)
def test_whatever_is_raised_inside_becomes_one_sentence(tmp_path, error, sentence):
    (tmp_path / "x").write_text("")
    with pytest.raises(BadInput, match=sentence), readable(tmp_path / "x", "be good"):
        raise error


def test_sentences_of_ours_pass(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(TooFewRows, match="few"), readable(tmp_path / "x", "be good"):
        raise TooFewRows("few", needed=3)
