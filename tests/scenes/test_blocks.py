import pytest
import torch

from zhat.scenes import blocks


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_blocks_come_back_in_order_and_the_number_of_threads_is_left_alone():
    seen = []

    def draw(block):
        seen.append(torch.get_num_threads())
        return 2 * block

    out = blocks.drawn(draw, torch.arange(12.0).split(3), torch.device("cpu"))
    assert torch.equal(torch.cat(out), 2 * torch.arange(12.0))
    assert set(seen) == {1}
    assert torch.get_num_threads() == 2


def test_the_number_of_threads_comes_back_after_an_error():
    with pytest.raises(ZeroDivisionError):
        blocks.drawn(lambda block: 1 / 0, [1], torch.device("cpu"))
    assert torch.get_num_threads() == 2
