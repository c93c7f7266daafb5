"""Files written whole or not at all; what cannot be written told in a sentence; text without commands in it.

A file or folder is made under the name of a draft and renamed when it is whole. Whoever writes holds a lock on the
draft; drafts that nobody holds were left by a process that was killed, and the next writer removes them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from zhat.errors import BadInput

try:
    import fcntl
except ImportError:  # Windows: drafts of killed processes stay
    fcntl = None  # type: ignore[assignment]

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FRESH = 60  # seconds in which a draft is not touched, because its writer may not hold its lock yet


def printable(text: str) -> str:
    """Text without what a terminal would take for a command; a name in a file may hold anything."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def write_whole(path: Path | str, content: str | bytes | Callable[[Path], None]) -> Path:
    """Write a file under a temporary name, sync it, and rename it. A link is followed.

    Args:
        path: where the file goes; a regular file there is replaced, anything else refused.
        content: the text, the bytes, or a function that writes the file at the path it is given.
    """
    path = Path(path)
    with writing(path):
        place = path.resolve() if path.is_symlink() else path
        if place.name in ("", ".", "..") or place.is_dir():
            raise BadInput(f"cannot write {path}: it is a folder. Name a file.")
        if place.exists() and not stat.S_ISREG(place.stat().st_mode):
            raise BadInput(f"cannot write {path}: it is no regular file, and would be lost. Name another.")
        make_folder(place.parent)
        with drafted(place) as draft:
            if isinstance(content, str):
                draft.write_text(content, encoding="utf-8")
            elif isinstance(content, bytes):
                draft.write_bytes(content)
            else:
                content(draft)
            let_others_read(draft)
            sync(draft)
            os.replace(draft, place)
    return path


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in a sentence why something cannot be written there, a full disk for instance."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise BadInput(
                f"cannot write to {path}: no space is left there. Free some, or choose another place."
            ) from None
        raise BadInput(f"cannot write to {path}: {error.strerror or error}. Choose another place.") from None
    except ValueError as error:  # a name that no file can have
        if isinstance(error, BadInput) or "null" not in str(error):
            raise
        raise BadInput(f"cannot write {str(path)!r}: {error}. Choose another name.") from None


@contextlib.contextmanager
def drafted(place: Path, *, folder: bool = False) -> Iterator[Path]:
    """An empty file or folder beside `place` under a name of its own, removed in the end unless it was renamed."""
    _sweep(place)
    name = place.name.encode()[:100].decode(errors="ignore")  # a name has at most 255 bytes
    if folder:
        draft = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".draft", dir=place.parent))
        handle = os.open(draft, os.O_RDONLY)
    else:
        handle, made = tempfile.mkstemp(prefix=f".{name}.", suffix=".draft", dir=place.parent)
        draft = Path(made)
    try:
        if fcntl is not None:
            with contextlib.suppress(OSError):  # some file systems have no locks
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield draft
    finally:
        os.close(handle)
        _remove(draft)


def _sweep(place: Path) -> None:
    """Remove drafts of this file or folder whose writer is gone."""
    if fcntl is None or not place.parent.is_dir():
        return
    start = f".{place.name.encode()[:100].decode(errors='ignore')}."
    for left in place.parent.iterdir():
        if not (left.name.startswith(start) and left.name.endswith(".draft")):
            continue
        with contextlib.suppress(OSError):
            if time.time() - left.lstat().st_mtime < _FRESH or left.is_symlink():
                continue
            handle = os.open(left, os.O_RDONLY | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where somebody still writes
                _remove(left)
            finally:
                os.close(handle)


def _remove(draft: Path) -> None:
    with contextlib.suppress(OSError):
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)


def make_folder(folder: Path | str) -> Path:
    """Create a folder, or say in a sentence why it cannot be."""
    folder = Path(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise BadInput(f"cannot write to {folder}: permission denied. Choose another place.")
    return folder


def let_others_read(path: Path) -> None:
    """Give a temporary file or folder the permissions a plain one would have."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def sync(path: Path) -> None:
    """Wait until the disk has it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
