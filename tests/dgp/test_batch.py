import pytest
import torch

from zhat.dgp import encoder_input


def test_bytes_become_floats_from_zero_to_one():
    x = torch.arange(256).to(torch.uint8).reshape(2, 8, 1, 4, 4)
    assert torch.equal(encoder_input(x), x.float() / 255)


def test_bits_become_zero_and_one():
    assert encoder_input(torch.tensor([True, False])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_floats_and_numbers_of_words_stay_as_they_are(dtype):
    x = torch.ones(2, dtype=dtype)
    assert encoder_input(x) is x
