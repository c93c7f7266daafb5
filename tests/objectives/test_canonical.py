import math

import pytest
import torch
from torch.nn import functional as F

from zhat.dgp import Batch
from zhat.errors import BadInput
from zhat.objectives import AllLabels, Canonical, InBatch, InBatchSoftmax, Vocabulary
from zhat.testing import check_objective


def made(n=20, labels=7, dim=3):
    generator = torch.Generator().manual_seed(0)
    f, g = (torch.randn(c, dim, generator=generator, dtype=torch.float64) for c in (n, labels))
    return f, g, torch.randint(labels, (n,), generator=generator)


def test_all_labels_is_the_softmax_of_a_classifier():
    f, g, label = made()
    expected = F.log_softmax(f @ g.T, -1).gather(1, label[:, None])[:, 0]
    assert torch.allclose(AllLabels()(f, g, label), expected)


def test_in_batch_is_the_softmax_over_the_rows_that_came():
    f, g, label = made()
    expected = F.log_softmax(f @ g[label].T, -1).diagonal()
    assert torch.allclose(InBatch()(f, g, label), expected)
    assert not torch.allclose(InBatch()(f, g, label), AllLabels()(f, g, label))


def test_a_vocabulary_leaves_out_positions_that_are_not_predicted():
    f, g, label = made()
    texts, words = f.reshape(4, 5, 3), label.reshape(4, 5).clone()
    words[:, ::2] = -100
    assert torch.allclose(Vocabulary()(texts, g, words), AllLabels()(f, g, label).reshape(4, 5)[:, 1::2].flatten())


def test_an_offset_of_all_label_vectors_does_not_move_probabilities_and_another_one_does():
    f, g, label = made()
    for candidates in (AllLabels(), InBatch()):
        before = candidates(f, g, label)
        assert torch.allclose(candidates(f, g + torch.tensor([1.0, -2.0, 3.0]), label), before)
        assert not torch.allclose(candidates(f, 2 * g, label), before)


def test_an_invertible_map_of_f_and_its_inverse_on_g_give_the_same_model():
    f, g, label = made()
    a = torch.tensor([[2.0, 1, 0], [0, 1, 1], [1, 0, 3]], dtype=torch.float64)
    one, two = Canonical(lambda x: x, g), Canonical(lambda x: x @ a.T, g @ torch.linalg.inv(a))
    assert torch.allclose(one.log_prob(f, label), two.log_prob(f, label))
    assert torch.allclose(one.logits(f), two.logits(f))


def test_in_batch_softmax_keeps_the_contract_of_objectives():
    check_objective(InBatchSoftmax(), views=2)


def test_in_batch_softmax_of_collapsed_rows_is_log_n_and_of_perfect_ones_nothing():
    flat = torch.ones(2, 30, 4)
    assert float(InBatchSoftmax()(flat, Batch(x=flat))) == pytest.approx(math.log(30), rel=1e-6)
    sharp = 100 * torch.eye(30).expand(2, 30, 30)
    assert float(InBatchSoftmax()(sharp, Batch(x=sharp))) == pytest.approx(0, abs=1e-6)


def test_in_batch_softmax_is_the_in_batch_form():
    f, g, label = made()
    h = torch.stack([f, g[label]])
    assert torch.allclose(InBatchSoftmax()(h, Batch(x=h)), -InBatch()(f, g, label).mean())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f, g, y: InBatchSoftmax()(f[None], Batch(x=f[None])), "compares 2 views .* shape .1, 20, 3. came"),
        (lambda f, g, y: Canonical(lambda x: x, g[:, :2]).logits(f), "f and g must have the same dimension"),
        (
            lambda f, g, y: Canonical(lambda x: x, g).log_prob(f, y[:5]),
            "`label` must hold one whole number for each row",
        ),
        (lambda f, g, y: Canonical(lambda x: x, g).log_prob(f, y.double()), "`label` must hold one whole number"),
        (lambda f, g, y: Canonical(lambda x: x, g).log_prob(f, y > 0), "`label` must hold one whole number"),
        (lambda f, g, y: Canonical(lambda x: x, g).log_prob(f, y - 100), "`label` must lie between 0 and"),
        (lambda f, g, y: Canonical(lambda x: x, g).log_prob(f, y + 100), "`label` must lie between 0 and"),
    ],
)
def test_mistakes_get_a_sentence(call, message):
    with pytest.raises(BadInput, match=message):
        call(*made())
