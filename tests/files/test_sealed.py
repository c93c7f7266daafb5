import pytest
import torch
from safetensors.torch import save

from zhat.files.sealed import sealed, unsealed

TENSORS = {"x": torch.arange(6.0).reshape(2, 3), "y": torch.ones(1)}


def test_what_was_sealed_comes_back():
    tensors, about = unsealed(sealed(TENSORS, {"name": 'a "quoted" name'}))
    assert {name: t.tolist() for name, t in tensors.items()} == {name: t.tolist() for name, t in TENSORS.items()}
    assert about["name"] == 'a "quoted" name'


def test_a_changed_byte_is_noticed_wherever_it_lies():
    data = sealed(TENSORS, {"name": "x"})
    for must in (True, False):
        for place in range(len(data)):
            for bit in (1, 32):  # 32 makes small letters of the checksum large
                damaged = bytearray(data)
                damaged[place] ^= bit
                try:
                    _, about = unsealed(bytes(damaged), must=must)
                except ValueError:
                    continue
                assert not must
                assert "sha256" not in about  # its name was changed: whoever knows that there must be one refuses


def test_a_file_without_a_checksum_is_refused_unless_it_may_lack_one():
    data = save(TENSORS, metadata={"name": "x"})
    with pytest.raises(ValueError, match="it holds no checksum of its content"):
        unsealed(data)
    assert unsealed(data, must=False)[1] == {"name": "x"}
    with pytest.raises(ValueError, match="it is not what zhat writes|it holds no checksum"):
        unsealed(b"nonsense")
