"""Tensors in a safetensors file with a checksum in its header: a changed byte anywhere is noticed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

CHECKSUM = re.compile(rb'"sha256":"([0-9a-f]{64})"')  # in the header: it comes first, and escapes quotes in values


def sealed(tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> bytes:
    """The bytes of a file.

    Args:
        tensors: by name, on the CPU and contiguous.
        about: what else to keep, as text.
    """
    return _with_checksum(save(dict(tensors), metadata={**about, "sha256": "0" * 64}))


def unsealed(data: bytes, *, must: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """What `sealed` was given; a `ValueError` says what is wrong with the bytes.

    Args:
        data: of a file.
        must: refuse a file without a checksum.
    """
    checked = CHECKSUM.search(data) is not None
    if checked and _with_checksum(data) != data:
        raise ValueError("its content differs from its checksum")
    try:
        tensors = load(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except SafetensorError as error:
        raise ValueError(f"it is not what zhat writes ({error})") from None
    about = header.get("__metadata__", {})
    if not checked and (must or "sha256" in about):  # a checksum that cannot be read is damage as well
        raise ValueError("it holds no checksum of its content")
    return tensors, about


def _with_checksum(data: bytes) -> bytes:
    """The file with the checksum of everything else at the place in the header that is kept for it."""
    found = CHECKSUM.search(data)
    assert found is not None, "safetensors writes its header as compact JSON"
    start, end = found.span(1)
    said = hashlib.sha256(data[:start])
    said.update(memoryview(data)[end:])
    return b"".join((data[:start], said.hexdigest().encode(), memoryview(data)[end:]))
