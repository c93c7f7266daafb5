import pytest
import torch

from zhat import randomness
from zhat.encoders import GPT
from zhat.errors import BadInput


def model(**how):
    return randomness.build(lambda: GPT(50, width=16, depth=3, heads=2, length=12, **how), 0, "encoder").eval()


def text(n=2, length=12):
    return torch.randint(50, (n, length), generator=torch.Generator().manual_seed(0))


def test_a_word_is_predicted_from_those_before_it_only():
    x = text()
    other = x.clone()
    other[:, 7:] = (other[:, 7:] + 1) % 50
    first, second = model()(x), model()(other)
    assert torch.allclose(first[:, :7], second[:, :7], atol=1e-6)
    assert not torch.allclose(first[:, 7:], second[:, 7:], atol=1e-3)


def test_scores_are_the_last_state_times_the_word_table():
    gpt, x = model(), text()
    states = gpt.hidden_states(x)
    assert [s.shape for s in states] == [torch.Size([2, 12, 16])] * 4
    assert torch.allclose(gpt(x), states[-1] @ gpt.words.weight.T, atol=1e-6)
    assert states[-1].mean(-1).abs().max() < 1e-5  # after the final norm
    assert torch.allclose(states[-1].var(-1, unbiased=False), torch.ones(2, 12), atol=0.05)
    assert torch.allclose(states[0], gpt.words.weight[x] + gpt.places.weight)


def test_attention_is_the_causal_softmax():
    block = model().blocks[0]
    h = torch.randn(2, 5, 16)
    q, k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in block.ask(h).chunk(3, -1))
    scores = (q @ k.transpose(-1, -2) / 8**0.5).masked_fill(torch.ones(5, 5).triu(1).bool(), -torch.inf)
    by_hand = block.answer((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
    assert torch.allclose(block.attend(h), by_hand, atol=1e-6)


def test_mistakes_are_told():
    with pytest.raises(BadInput, match="`heads` must divide `width`, but 3 heads and a width of 16 came"):
        GPT(50, width=16, depth=1, heads=3)
    with pytest.raises(BadInput, match="reads at most 12 words at once, but 13 came"):
        model()(text(length=13))
