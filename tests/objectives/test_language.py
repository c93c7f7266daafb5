import pytest
import torch
from torch.nn import functional as F

from zhat.dgp import Batch
from zhat.errors import BadInput
from zhat.objectives import NegativeSampling, NextWord, WordSoftmax


def rows(n=40, dim=3, words=12):
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(1, n, dim, generator=generator)
    return h, Batch(x=torch.zeros(1, n, 4).long(), label=torch.randint(words, (n,), generator=generator))


def test_next_word_scores_each_place_against_the_word_after_it():
    x = torch.randint(9, (1, 2, 5), generator=torch.Generator().manual_seed(0))
    h = torch.randn(1, 2, 5, 9)
    by_hand = [-h[0, i, t].log_softmax(-1)[x[0, i, t + 1]] for i in range(2) for t in range(4)]
    assert torch.allclose(NextWord()(h, Batch(x=x)), torch.stack(by_hand).mean())
    with pytest.raises(BadInput, match="Use Windows\\(...\\) and GPT"):
        NextWord()(h[..., :3, :], Batch(x=x))


def test_the_softmax_is_over_all_words_with_a_bias():
    h, batch = rows()
    objective = WordSoftmax(3, 12)
    torch.nn.init.normal_(objective.offsets)
    scores = h[0] @ objective.rows.T + objective.offsets
    assert torch.allclose(objective(h, batch), -scores.log_softmax(-1)[torch.arange(40), batch.label].mean())
    folded = torch.cat([objective.rows, objective.offsets[:, None]], 1)  # the canonical form
    assert torch.allclose(scores, torch.cat([h[0], torch.ones(40, 1)], 1) @ folded.T, atol=1e-6)
    shares = torch.full((12,), 1 / 12)
    assert torch.allclose(WordSoftmax(3, 12, frequencies=lambda: shares).offsets, shares.log())
    with pytest.raises(BadInput, match="without labels came"):
        objective(h, Batch(x=batch.x))


def test_negative_sampling_takes_the_words_of_following_rows_as_noise():
    h, batch = rows()
    objective = NegativeSampling(3, 12, noise=2, scale=1.0)
    s = h[0] @ objective.rows.T + objective.offsets
    y = batch.label
    by_hand = [
        -F.logsigmoid(s[i, y[i]]) - (F.logsigmoid(-s[i, y[(i + 1) % 40]]) + F.logsigmoid(-s[i, y[(i + 2) % 40]])) / 2
        for i in range(40)
    ]
    assert torch.allclose(objective(h, batch), torch.stack(by_hand).mean(), atol=1e-6)
    with pytest.raises(BadInput, match="25 noise words need a batch of at least 26 rows, but 20 came"):
        NegativeSampling(3, 12)(h[:, :20], Batch(x=batch.x[:, :20], label=y[:20]))
    assert "noise=2" in repr(objective)


def test_log_weights_make_negative_sampling_a_softmax():
    """Where s = log p(w|x) - log p(w), as at its minimum, the log-weights give p(w|x) back."""
    torch.manual_seed(0)
    p = torch.rand(5, 7).softmax(-1)
    shares = p.mean(0)
    model, plain = NegativeSampling(5, 7), WordSoftmax(5, 7)
    with torch.no_grad():
        model.rows.copy_((p.log() - shares.log()).T)
        plain.offsets.copy_(torch.randn(7))
    scores = torch.eye(5) @ model.rows.T + model.log_weights(shares)
    assert torch.allclose(scores.softmax(-1), p, atol=1e-6)
    assert torch.equal(plain.log_weights(shares), plain.offsets)
