"""Models of other libraries in canonical form: each adapter returns (f, g) as a `Canonical`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from zhat import _checks
from zhat.errors import BadInput, MissingExtra
from zhat.objectives.canonical import AllLabels, Candidates, Canonical, Vocabulary

_BENT: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
}


def from_arrays(head: Any, bias: Any = None, *, candidates: Candidates = AllLabels()) -> Canonical:
    """A head whose features are at hand as arrays: f takes the features themselves.

    Args:
        head: `(labels, M)`.
        bias: `(labels,)`; becomes a last column of g, and features get a last column of ones.
        candidates: the sets within which labels are compared.
    """
    g = _checks.matrix(head, "head")
    if bias is not None:
        column = _checks.matrix(np.reshape(np.asarray(bias), (-1, 1)), "bias").to(g)
        if len(column) != len(g):
            raise BadInput(f"`bias` must hold one value for each of {len(g)} labels, but {len(column)} came.")
        g = torch.cat([g, column], -1)
    biased = bias is not None
    return Canonical(lambda x: _with_one(_checks.matrix(x, "features"), biased), g, candidates, biased)


def from_torch(
    model: nn.Module,
    head: nn.Linear | None = None,
    *,
    candidates: Candidates = AllLabels(),
    call: Callable[[nn.Module, Any], Tensor] | None = None,
) -> Canonical:
    """A torch classifier: f is what enters its last linear layer, g that layer's weights.

    The model is run in evaluation mode, without gradients, and left in the mode it came in.

    Args:
        model: any module that ends in a linear layer.
        head: that layer; None takes the last `nn.Linear` that the model holds.
        candidates: the sets within which labels are compared.
        call: gives the logits of the model for an observation; None calls the model.
    """
    if head is None:
        layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
        if not layers:
            raise BadInput(
                f"a canonical model ends in a linear layer, but {type(model).__name__} holds none. Give it as `head`."
            )
        head = layers[-1]
    last, biased = head, head.bias is not None

    def features(x: Any) -> Tensor:
        entered: list[Tensor] = []
        left: list[Tensor] = []

        def look(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            entered.append(inputs[0])
            left.append(output)

        hook, training = last.register_forward_hook(look), model.training
        try:
            model.eval()
            with torch.no_grad():
                logits = model(x) if call is None else call(model, x)
        finally:
            hook.remove()
            model.train(training)
        if len(left) != 1 or left[0].shape != logits.shape or not torch.allclose(left[0], logits):
            raise BadInput(
                f"{type(model).__name__} does not end in {last}: its output is not what leaves that layer, so the form "
                "exp f(x)·g(y) is not the model's. Give the layer that makes the logits as `head`."
            )
        return _with_one(entered[0], biased)

    g = last.weight.detach()
    if last.bias is not None:
        g = torch.cat([g, last.bias.detach()[:, None]], -1)
    return Canonical(features, g, candidates, biased)


def from_sklearn(classifier: Any) -> Canonical:
    """A fitted scikit-learn classifier with a softmax: logistic regression, a multilayer perceptron, a pipeline of one.

    Of two classes the first gets the vector 0. Classifiers that fit one class against the rest are refused, because
    their probabilities are not of this form.

    Args:
        classifier: fitted, with `predict_proba`.
    """
    steps = getattr(classifier, "steps", None)
    last = steps[-1][1] if steps else classifier
    before = classifier[:-1] if steps and len(steps) > 1 else None
    if hasattr(last, "coefs_"):
        weights, offsets = [np.asarray(w) for w in last.coefs_], [np.asarray(b) for b in last.intercepts_]
        bend = _BENT[last.activation]
        w, b = weights[-1].T, offsets[-1]
    elif hasattr(last, "coef_") and hasattr(last, "predict_proba"):
        weights, offsets, bend = [], [], _BENT["identity"]
        w, b = np.asarray(last.coef_), np.broadcast_to(np.asarray(last.intercept_), (len(last.coef_),))
    else:
        raise BadInput(
            f"a fitted classifier with a softmax is needed, but {type(last).__name__} has no weights for it. Use "
            "LogisticRegression or MLPClassifier, or from_arrays with features and head."
        )
    if len(w) == 1:
        w, b = np.concatenate([np.zeros_like(w), w]), np.concatenate([np.zeros_like(b), b])
    g = torch.from_numpy(np.concatenate([w, b[:, None]], 1).astype(np.float64))

    def features(x: Any) -> Tensor:
        h = np.asarray(x if before is None else before.transform(x), dtype=np.float64)
        for weight, offset in zip(weights[:-1], offsets[:-1], strict=True):
            h = bend(h @ weight + offset)
        return _with_one(torch.from_numpy(h), True)

    model = Canonical(features, g, biased=True)
    probe = np.random.default_rng(0).standard_normal((8, classifier.n_features_in_))
    theirs = torch.from_numpy(np.asarray(classifier.predict_proba(probe), dtype=np.float64))
    if not torch.allclose(model.logits(probe).softmax(-1), theirs, atol=1e-5):
        raise BadInput(
            f"the probabilities of {type(last).__name__} are not a softmax of its weights; it may fit one class "
            "against the rest. Use a multinomial LogisticRegression or an MLPClassifier."
        )
    return model


def from_huggingface(model: Any) -> Canonical:
    """A Hugging Face causal or masked language model: f is what enters the last projection, g the output embeddings.

    Observations are token ids, `(texts, positions)`, or the mapping a tokenizer returns. Labels of positions that are
    not predicted are -100. A causal model predicts the next token: shift labels by one place before asking.

    Args:
        model: a `PreTrainedModel` with a language modelling head.
    """
    try:
        from transformers import PreTrainedModel
    except ImportError:
        raise MissingExtra("transformers", "hf", "reading a Hugging Face model") from None
    head = model.get_output_embeddings() if isinstance(model, PreTrainedModel) else None
    if not isinstance(head, nn.Linear):
        raise BadInput(
            f"a Hugging Face model with a linear language modelling head is needed, but {type(model).__name__} has "
            "none. Load it with AutoModelForCausalLM or AutoModelForMaskedLM."
        )

    def call(module: nn.Module, x: Any) -> Tensor:
        logits: Tensor = module(**(x if hasattr(x, "keys") else {"input_ids": x})).logits
        return logits

    return from_torch(model, head, candidates=Vocabulary(), call=call)


def from_log_bilinear(context: Any, place: Any, target: Any, bias: Any = None) -> Canonical:
    r"""A log-bilinear word model from its tables, the bias folded in: $p(w \mid x) \propto \exp(f(x) \cdot q_w + b_w)$.

    Observations are the numbers of the words of a context, `(…, places)`; $f(x) = \sum_i c_i \odot r_{x_i}$.

    Args:
        context: r, `(words, M)`.
        place: c, `(places, M)`.
        target: q, `(words, M)`.
        bias: b, `(words,)`.
    """
    r, c = _checks.matrix(context, "context"), _checks.matrix(place, "place")
    if c.shape[1] != r.shape[1]:
        raise BadInput(f"`context` has {r.shape[1]} columns and `place` {c.shape[1]}. Give tables of one model.")
    model = from_arrays(target, bias)

    def features(x: Any) -> Tensor:
        ids = torch.as_tensor(x)
        if ids.is_floating_point() or ids.shape[-1] != len(c):
            raise BadInput(
                f"a context is {len(c)} whole numbers, the words around a word, but the shape {tuple(ids.shape)} and "
                f"the dtype {ids.dtype} came."
            )
        return _with_one((r[ids] * c.to(r)).sum(-2), model.biased)

    return Canonical(features, model.head, biased=model.biased)


def from_noise_contrastive(head: Any, bias: Any = None, *, noise: Any = None) -> Canonical:
    r"""A head trained to distinguish words from noise, as the softmax over the vocabulary that it stands for.

    Noise-contrastive estimation fits $\sigma(s(w, x) - \log k\, p_{noise}(w))$; at its minimum $s = \log p(w \mid x)$,
    so the scores are the canonical form as they are. Negative sampling leaves the correction out and ends at
    $s = \log p(w \mid x) - \log p_{noise}(w)$ up to a constant: then $\log p_{noise}$ belongs to the bias.

    Args:
        head: q, `(labels, M)`; features are at hand as arrays.
        bias: b, `(labels,)`.
        noise: the probabilities of noise, `(labels,)`, for a head that was trained without the correction.
    """
    if noise is None:
        return from_arrays(head, bias)
    shares = np.asarray(noise, dtype=np.float64)
    if shares.ndim != 1 or not bool((shares > 0).all()):
        raise BadInput(
            "`noise` must hold one probability above 0 for each label. A label that is never noise has none."
        )
    offset = np.log(shares / shares.sum())
    return from_arrays(head, offset if bias is None else np.asarray(bias, dtype=np.float64) + offset)


def from_metric_learning(embed: Callable[[Any], Tensor], items: Any, *, distance: bool = False) -> Canonical:
    r"""Deep metric learning: an anchor is compared with the items of a batch by its distance to them.

    With dot products (n-pair) $f = g = \phi$. With squared distances (triplet, NCA)
    $e^{-|\phi(x) - \phi(y)|^2} \propto e^{2 \phi(x) \cdot \phi(y) - |\phi(y)|^2}$, so $f = (2 \phi, 1)$ and
    $g = (\phi, -|\phi|^2)$. A triplet has two items: $-\log p$ is then its softplus loss.

    Args:
        embed: phi, from observations to `(n, M)`.
        items: what anchors are compared with; its rows are the labels.
        distance: squared distances instead of dot products.
    """
    g = _checks.matrix(embed(items), "embed(items)")
    if not distance:
        return Canonical(embed, g)
    head = torch.cat([g, -g.square().sum(-1, keepdim=True)], -1)
    return Canonical(lambda x: _with_one(2 * embed(x), True), head, biased=True)


def from_contrastive(f: Callable[[Any], Tensor], g: Callable[[Any], Tensor], items: Any) -> Canonical:
    r"""Contrastive predictive coding: the item that belongs to a context is compared with other items.

    $$p(y \mid x) \propto e^{f(x) \cdot g(y)}$$

    A bilinear score $c^\top W y$ is folded into either side, for instance $f = W^\top c$; a temperature likewise.

    Args:
        f: from contexts to `(n, M)`.
        g: from items to `(n, M)`.
        items: what contexts are compared with; its rows are the labels.

    Reference: roeder2020, section 4 and section 5.2.
    """
    return Canonical(f, _checks.matrix(g(items), "g(items)"))


def _with_one(features: Tensor, biased: bool) -> Tensor:
    return torch.cat([features, torch.ones_like(features[..., :1])], -1) if biased else features
