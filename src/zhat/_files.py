"""Files written whole or not at all, and folders that cannot be written told in a sentence."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from zhat.errors import BadInput


def write_whole(path: Path | str, content: str | Callable[[Path], None]) -> Path:
    """Write a file under a temporary name, sync it, and rename it.

    Args:
        path: where the file goes; whatever is there is replaced.
        content: the text, or a function that writes the file at the path it is given.
    """
    path = Path(path)
    if path.name in ("", ".", "..") or path.is_dir():
        raise BadInput(f"cannot write {path}: it is a folder. Name a file.")
    make_folder(path.parent)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".draft", dir=path.parent)
    os.close(handle)
    draft = Path(name)
    try:
        if callable(content):
            content(draft)
        else:
            draft.write_text(content, encoding="utf-8")
        let_others_read(draft)
        sync(draft)
        os.replace(draft, path)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return path


def make_folder(folder: Path | str) -> Path:
    """Create a folder, or say in a sentence why it cannot be."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write to {folder}: {error.strerror}. Choose another place.") from None
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
