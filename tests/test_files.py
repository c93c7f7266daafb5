import errno
import os
import time

import pytest

from zhat import _files
from zhat._files import drafted, make_folder, write_whole, writing
from zhat.errors import BadInput


def test_text_bytes_and_functions_are_written_whole(tmp_path):
    for content in ("ẑ", "ẑ".encode(), lambda draft: draft.write_text("ẑ", encoding="utf-8")):
        assert write_whole(tmp_path / "in" / "x", content).read_text(encoding="utf-8") == "ẑ"
    assert [p.name for p in (tmp_path / "in").iterdir()] == ["x"]


def test_a_link_is_followed_and_its_target_replaced(tmp_path):
    (tmp_path / "target").write_text("before")
    (tmp_path / "link").symlink_to("target")
    write_whole(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "after"


def test_what_is_no_regular_file_is_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(BadInput, match=f"cannot write .*{name}: it is no regular file, and would be lost"):
            write_whole(tmp_path / name, "text")
    assert (tmp_path / "pipe").is_fifo()
    with pytest.raises(BadInput, match="it is a folder. Name a file"):
        write_whole(tmp_path, "text")


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path):
    def fill(draft):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(
        BadInput, match="cannot write to .*x: no space is left there. Free some, or choose another place"
    ):
        write_whole(tmp_path / "x", fill)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BadInput, match="cannot write to .*: Input/output error"), writing(tmp_path):
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_names_that_no_file_can_have_get_a_sentence(tmp_path, name):
    with pytest.raises(BadInput, match="cannot write"):
        write_whole(tmp_path / name, "text")
    with pytest.raises(BadInput, match="cannot write"):
        make_folder(tmp_path / name)


def test_a_long_name_can_be_written(tmp_path):
    assert write_whole(tmp_path / ("ẑ" * 80), "text").exists()


@pytest.mark.parametrize("folder", [False, True])
def test_drafts_of_killed_writers_are_removed_and_those_of_living_ones_stay(tmp_path, folder):
    left = [tmp_path / ".x.old.draft", tmp_path / ".x.young.draft", tmp_path / ".y.old.draft"]
    for path in left:
        path.mkdir() if folder else path.write_text("")
        if "old" in path.name:
            os.utime(path, (time.time() - 2 * _files._FRESH,) * 2)
    with drafted(tmp_path / "x", folder=folder) as living:
        os.utime(living, (time.time() - 2 * _files._FRESH,) * 2)
        with drafted(tmp_path / "x", folder=folder):
            assert living.exists()
            assert [path.exists() for path in left] == [False, True, True]
    assert not living.exists()
