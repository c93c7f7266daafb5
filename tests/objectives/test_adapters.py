import importlib.util
import sys

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from zhat.dgp import Batch
from zhat.encoders import ContextSum
from zhat.errors import BadInput, MissingExtra
from zhat.objectives import (
    InBatch,
    InBatchSoftmax,
    Vocabulary,
    WordSoftmax,
    from_arrays,
    from_contrastive,
    from_huggingface,
    from_log_bilinear,
    from_metric_learning,
    from_noise_contrastive,
    from_sklearn,
    from_torch,
)
from zhat.theory import compare_models

WITH_TRANSFORMERS = importlib.util.find_spec("transformers") is not None


def rows(classes=4, n=200, m=5):
    rng = np.random.default_rng(0)
    label = rng.integers(classes, size=n)
    return 2 * rng.standard_normal((classes, m))[label] + rng.standard_normal((n, m)), label


def network(bias=True):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 4, bias=bias))


@pytest.mark.parametrize("bias", [True, False])
def test_a_torch_classifier_is_its_last_layer_and_what_enters_it(bias):
    x, label = (torch.tensor(a) for a in rows())
    model = network(bias)
    canonical = from_torch(model)
    f = canonical.features(x.float())
    assert f.shape == (200, 8 + bias)
    assert canonical.head.shape == (4, 8 + bias)
    assert canonical.biased is bias
    assert model.training  # as it came
    logits = model.eval()(x.float())
    assert torch.allclose(canonical.logits(x.float()), logits, atol=1e-6)
    expected = -nn.functional.cross_entropy(logits, label, reduction="none")
    assert torch.allclose(canonical.log_prob(x.float(), label), expected, atol=1e-5)
    assert not f.requires_grad


def test_a_model_that_goes_on_after_its_last_layer_is_refused():
    x = torch.randn(10, 5)
    bent = nn.Sequential(nn.Linear(5, 4), nn.Tanh())
    with pytest.raises(BadInput, match="does not end in Linear.*not what leaves that layer"):
        from_torch(bent).features(x)
    model = network()
    with pytest.raises(BadInput, match="does not end in"):
        from_torch(model, model[0]).features(x)
    with pytest.raises(BadInput, match="ends in a linear layer, but Sequential holds none"):
        from_torch(nn.Sequential(nn.Tanh()))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        MLPClassifier((6, 3), activation="relu", max_iter=2000, tol=1e-2, random_state=0),
        MLPClassifier((6,), activation="logistic", max_iter=2000, tol=1e-2, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["logistic", "relu", "sigmoid", "pipeline"],
)
def test_a_scikit_learn_classifier_has_the_probabilities_it_predicts(classifier, classes):
    x, label = rows(classes)
    canonical = from_sklearn(classifier.fit(x, label))
    assert len(canonical.head) == classes
    assert np.allclose(canonical.logits(x).softmax(-1), classifier.predict_proba(x), atol=1e-8)
    theirs = classifier.predict_proba(x)[np.arange(len(x)), label]
    assert np.allclose(canonical.log_prob(x, label).exp(), theirs, atol=1e-8)


def test_classifiers_without_a_softmax_are_refused():
    x, label = rows()
    for classifier in (GaussianNB(), OneVsRestClassifier(LogisticRegression()), LinearRegression()):
        with pytest.raises(BadInput, match="a fitted classifier with a softmax is needed"):
            from_sklearn(classifier.fit(x, label))
    apart = LogisticRegression().fit(x, label)
    apart.predict_proba = lambda x: np.full((len(x), 4), 0.25)  # stands for one class against the rest
    with pytest.raises(BadInput, match="are not a softmax of its weights"):
        from_sklearn(apart)


def test_arrays_are_taken_as_they_are_with_a_bias_folded_in():
    x, label = rows()
    w, b = np.random.default_rng(1).standard_normal((4, 5)), np.arange(4.0)
    canonical = from_arrays(w, b)
    assert np.allclose(canonical.logits(x), x @ w.T + b)
    assert from_arrays(w, candidates=InBatch()).log_prob(x, label).shape == (200,)
    with pytest.raises(BadInput, match="`bias` must hold one value for each of 4 labels, but 3 came"):
        from_arrays(w, b[:3])


def test_without_transformers_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match="needs `transformers`. Install it with: pip install 'zhat.hf.'"):
        from_huggingface(network())


@pytest.mark.skipif(not WITH_TRANSFORMERS, reason="transformers is not installed: pip install 'zhat[hf]'")
@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_a_language_model_is_its_output_embeddings_and_what_enters_them(kind):
    import transformers as hf

    small = {"vocab_size": 50, "num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16}
    torch.manual_seed(0)
    if kind == "gpt2":
        model = hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=50, n_layer=2, n_head=2, n_embd=16))
    else:
        model = hf.BertForMaskedLM(hf.BertConfig(**small, intermediate_size=32))
    canonical = from_huggingface(model)
    ids = torch.randint(50, (3, 7), generator=torch.Generator().manual_seed(0))
    assert isinstance(canonical.candidates, Vocabulary)
    assert canonical.features(ids).shape == (3, 7, 16 + (kind == "bert"))  # BERT's head has a bias
    with torch.no_grad():
        logits = model.eval()(input_ids=ids).logits
    assert torch.allclose(canonical.logits({"input_ids": ids}), logits, atol=1e-5)
    words = ids.clone()
    words[:, ::2] = -100
    expected = -nn.functional.cross_entropy(logits.flatten(0, 1), words.flatten(), reduction="none")[
        (words != -100).flatten()
    ]
    assert torch.allclose(canonical.log_prob(ids, words), expected, atol=1e-4)
    with pytest.raises(BadInput, match="but GPT2Model has none"):
        from_huggingface(hf.GPT2Model(hf.GPT2Config(vocab_size=50, n_layer=1, n_head=2, n_embd=16)))


def test_a_log_bilinear_model_has_its_bias_folded_in():
    torch.manual_seed(0)
    encoder, head = ContextSum(30, 4, places=3, scale=1.0), WordSoftmax(4, 30, scale=1.0)
    nn.init.normal_(head.offsets)
    x, label = torch.randint(30, (20, 3)), torch.randint(30, (20,))
    model = from_log_bilinear(encoder.context, encoder.place, head.rows, head.offsets.detach())
    assert model.biased
    assert model.head.shape == (30, 5)
    loss = head(encoder(x)[None], Batch(x=x[None], label=label))
    assert torch.allclose(-model.log_prob(x, label).mean(), loss, atol=1e-5)
    plain = from_log_bilinear(encoder.context, encoder.place, head.rows)
    assert torch.allclose(plain.logits(x), encoder(x) @ head.rows.T, atol=1e-5)
    with pytest.raises(BadInput, match="a context is 3 whole numbers, .* but the shape \\(20, 2\\)"):
        model.features(x[:, :2])
    with pytest.raises(BadInput, match="`context` has 4 columns and `place` 2"):
        from_log_bilinear(encoder.context, encoder.place[:, :2], head.rows)


def test_a_head_trained_against_noise_stands_for_a_softmax():
    random = np.random.default_rng(0)
    p = random.dirichlet(np.ones(6), size=4)  # p(w | x) of four observations, as scores of a head that fits them
    noise = random.dirichlet(np.ones(6))
    label = torch.tensor([0, 3, 5, 2])
    wanted = torch.from_numpy(np.log(p[np.arange(4), label.numpy()]))
    contrastive = from_noise_contrastive(np.log(p).T)  # f is the unit vector of the observation
    assert torch.allclose(contrastive.log_prob(np.eye(4), label), wanted)
    sampled = from_noise_contrastive((np.log(p) - np.log(noise)).T, np.full(6, 0.7), noise=3 * noise)
    assert torch.allclose(sampled.log_prob(np.eye(4), label), wanted)
    with pytest.raises(BadInput, match="one probability above 0 for each label"):
        from_noise_contrastive(np.log(p).T, noise=np.zeros(6))


def test_metric_learning_compares_anchors_with_the_items_of_the_batch():
    torch.manual_seed(0)
    embed = nn.Linear(5, 3).double()
    anchors, items = torch.randn(6, 5).double(), torch.randn(6, 5).double()
    a, b = embed(anchors).detach(), embed(items).detach()
    label = torch.arange(6)
    pairs = from_metric_learning(lambda x: embed(x).detach(), items)
    assert torch.allclose(pairs.log_prob(anchors, label), (a @ b.T).log_softmax(-1).diagonal())
    near = from_metric_learning(lambda x: embed(x).detach(), items, distance=True)
    squared = torch.cdist(a, b).square()
    assert torch.allclose(near.log_prob(anchors, label), (-squared).log_softmax(-1).diagonal())
    two = from_metric_learning(lambda x: embed(x).detach(), items[:2], distance=True)  # a positive and a negative
    triplet = nn.functional.softplus(squared[:2, 0] - squared[:2, 1])
    assert torch.allclose(-two.log_prob(anchors[:2], torch.tensor([0, 0])), triplet)
    assert torch.allclose(-two.log_prob(anchors[:1], torch.tensor([0])), triplet[:1])  # one anchor, two items


def test_two_torch_classifiers_with_a_bias_can_be_compared():
    """The second has the same probabilities: its features are turned and shifted, and its last layer undoes both."""
    torch.manual_seed(0)
    x, first = torch.randn(500, 3), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 9))
    turn, shift = nn.Linear(4, 4), torch.nn.Linear(4, 9)
    with torch.no_grad():
        turn.weight.copy_(torch.linalg.qr(torch.randn(4, 4))[0])
        shift.weight.copy_(first[2].weight @ turn.weight.T)
        shift.bias.copy_(first[2].bias - shift.weight @ turn.bias)
    a, b = from_torch(first), from_torch(nn.Sequential(*first[:2], turn, shift))
    pair = compare_models(a.head, b.head, a.features(x), b.features(x))
    assert pair.apart < 1e-9 < 0.001 < pair.apart_by_chance
    assert pair.disagreement < 1e-3
    assert min(pair.heads_r2, pair.features_r2) > 0.9999


def test_contrastive_models_have_an_encoder_for_either_side():
    torch.manual_seed(0)
    f, g = nn.Linear(5, 3).double(), nn.Linear(4, 3).double()
    contexts, items = torch.randn(6, 5).double(), torch.randn(6, 4).double()
    model = from_contrastive(lambda x: f(x).detach(), lambda y: g(y).detach(), items)
    loss = InBatchSoftmax()(torch.stack([f(contexts), g(items)]), None)
    assert torch.allclose(-model.log_prob(contexts, torch.arange(6)).mean(), loss)
