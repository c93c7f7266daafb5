import itertools
import math

import pytest
import torch
from torch.nn import functional as F

from zhat import testing, train
from zhat.dgp import Batch, Clusters, InvertibleMLP, Orthogonal, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.errors import BadInput
from zhat.fresh import Fresh
from zhat.objectives import CrossEntropy, InstanceDiscrimination

SWITCHES = [
    dict(zip(("bias", "unit_rows", "unit_features", "learnable"), values, strict=True))
    for values in itertools.product((False, True), repeat=4)
]
WORLD = Clusters(Uniform(Sphere(3)), VonMisesFisher(10.0), Orthogonal(), classes=6, instances=30)


def made(dim=3, labels=7, **how):
    torch.manual_seed(0)
    objective = InstanceDiscrimination(dim, labels, inverse_temperature=2.5, **how).double()
    if objective.offsets is not None:
        torch.nn.init.normal_(objective.offsets)
    return objective


def plainly(objective, h, label):
    """The loss with all logits held at once, by torch's own cross-entropy."""
    h = F.normalize(h, dim=-1) if objective.unit_features else h
    rows = F.normalize(objective.rows, dim=-1) if objective.unit_rows else objective.rows
    logits = objective.log_beta.exp() * h @ rows.T
    logits = logits if objective.offsets is None else logits + objective.offsets
    return F.cross_entropy(logits, label, label_smoothing=objective.label_smoothing)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("how", SWITCHES, ids=str)
def test_value_and_gradient_are_those_of_the_plain_definition(how, smoothing, generator):
    objective = made(**how, label_smoothing=smoothing)
    h = torch.randn(1, 40, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    label = torch.randint(7, (40,), generator=generator)
    ours = objective(h, Batch(x=h, label=label))
    plain = plainly(objective, h[0], label)
    wanted = [h, *objective.parameters()]
    torch.testing.assert_close(ours, plain, rtol=1e-12, atol=0)
    for mine, theirs in zip(torch.autograd.grad(ours, wanted), torch.autograd.grad(plain, wanted), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-13)


def test_a_hundred_thousand_labels_are_summed_exactly_and_never_held_at_once(generator, monkeypatch):
    labels, n = 100_000, 64
    objective = made(5, labels)
    h = torch.randn(1, n, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    label = torch.randint(labels, (n,), generator=generator)
    plain = plainly(objective, h[0], label)
    wanted = [h, objective.rows]
    expected = torch.autograd.grad(plain, wanted)
    sizes = []
    kept = torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t)
    with kept:
        ours = objective(h, Batch(x=h, label=label))
    torch.testing.assert_close(ours, plain, rtol=1e-12, atol=0)
    for mine, theirs in zip(torch.autograd.grad(ours, wanted), expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-15)
    assert max(sizes) <= labels * 5 < labels * n


def test_collapsed_representations_cost_the_logarithm_of_the_labels():
    objective = made()
    zero = torch.zeros(1, 20, 3, dtype=torch.float64)
    label = torch.arange(20) % 7
    assert objective(zero, Batch(x=zero, label=label)).item() == pytest.approx(math.log(7), rel=1e-12)


@pytest.mark.parametrize("how", SWITCHES[::3], ids=str)
def test_the_contract_of_objectives_holds(how):
    testing.check_objective(made(**how), views=1)


def test_several_views_of_a_row_share_its_label(generator):
    objective = made()
    h = torch.randn(2, 15, 3, generator=generator, dtype=torch.float64)
    label = torch.randint(7, (15,), generator=generator)
    apart = [objective(view[None], Batch(x=view[None], label=label)) for view in h]
    torch.testing.assert_close(objective(h, Batch(x=h, label=label)), (apart[0] + apart[1]) / 2)


@pytest.mark.parametrize(
    ("features", "rows", "case"),
    [(True, True, "C1"), (True, False, "C2"), (False, True, "C3"), (False, False, "C4")],
)
def test_the_switches_are_the_cases_of_the_theorem(features, rows, case):
    objective = CrossEntropy(3, 7, unit_features=features, unit_rows=rows)
    assert objective.case == case
    lengths = objective.head.norm(dim=-1)
    assert torch.allclose(lengths, torch.ones(7)) is rows
    h = torch.randn(1, 9, 3)
    batch = Batch(x=h, label=torch.arange(9) % 7)
    assert torch.isclose(objective(h, batch), objective(5 * h, batch)).item() is features


def test_the_inverse_temperature_is_trained_only_where_asked_for():
    fixed, free = made(), made(learnable=True)
    assert free.inverse_temperature == pytest.approx(2.5)
    assert fixed.inverse_temperature == pytest.approx(2.5)
    assert "log_beta" not in dict(fixed.named_parameters())
    assert "log_beta" in dict(free.named_parameters())


def test_seeds_in_a_stack_train_as_each_does_alone():
    encoder = Fresh(mlp, 3, 3, widths=(8, 8), batch_norm=True)
    objective = Fresh(InstanceDiscrimination, 3, 30, unit_rows=True, learnable=True)
    how = {"steps": 12, "batch": 64, "lr": 1e-2}
    together = train(encoder, WORLD, objective, seeds=(0, 1, 2), **how)
    alone = train(encoder, WORLD, objective, seeds=(2,), **how)
    head = together.objectives[2].head
    torch.testing.assert_close(head, alone.objectives[0].head, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(head, together.objectives[1].head, atol=1e-2)
    assert together.curves[2].loss == pytest.approx(alone.curves[0].loss, rel=1e-4)


MISTAKES = [
    ({"labels": 1}, "`labels` must be a whole number of at least 2"),
    ({"inverse_temperature": 0.0}, "`inverse_temperature` must be above 0"),
    ({"label_smoothing": 1.0}, "`label_smoothing` must be at least 0 and below 1"),
]


@pytest.mark.parametrize(("how", "sentence"), MISTAKES)
def test_settings_without_a_meaning_are_refused(how, sentence):
    with pytest.raises(BadInput, match=sentence):
        CrossEntropy(3, **{"labels": 7} | how)


def test_rows_without_labels_or_of_another_dimension_get_a_sentence():
    objective, h = CrossEntropy(3, 7), torch.zeros(1, 4, 3)
    with pytest.raises(BadInput, match="CrossEntropy tells labels apart, but this process has none. Use Clus"):
        objective(h, Batch(x=h))
    with pytest.raises(BadInput, match="has a head for 3 dimensions, but the encoder ends in 2"):
        objective(h[..., :2], Batch(x=h, label=torch.zeros(4, dtype=torch.long)))


def test_a_label_without_a_row_is_refused_before_training():
    with pytest.raises(
        BadInput, match="head has 29 rows, but the process hands over 30 different labels. Give the obj"
    ):
        train(mlp(3, 3, widths=(8,)), WORLD, Fresh(InstanceDiscrimination, 3, 29), steps=1)


def test_the_head_can_have_a_learning_rate_of_its_own():
    world = Clusters(Uniform(Sphere(3)), VonMisesFisher(10.0), InvertibleMLP(layers=1), classes=6)

    def steps_apart(**how):
        runs = [
            train(mlp(3, 3, widths=(8,), seed=0), world, Fresh(CrossEntropy, 3, 6), steps=steps, lr=1e-2, **how)
            for steps in (1, 4)
        ]
        return (runs[0].objectives[0].head - runs[1].objectives[0].head).abs().max()

    assert steps_apart() > 1e-3
    assert steps_apart(lr_scale={"rows": 1e-6}) < 1e-6


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_loss_is_the_cross_entropy_of_the_logits(bias, unit):
    generator = torch.Generator().manual_seed(0)
    objective = CrossEntropy(4, 6, bias=bias, unit_rows=unit, unit_features=unit, inverse_temperature=2.0)
    if bias:
        torch.nn.init.normal_(objective.offsets, generator=generator)
    h, label = torch.randn(9, 4, generator=generator), torch.randint(6, (9,), generator=generator)
    expected = torch.nn.functional.cross_entropy(objective.logits(h), label)
    loss = objective(h[None], Batch(x=h[None], label=label))
    assert loss.item() == pytest.approx(expected.item(), abs=1e-5)
