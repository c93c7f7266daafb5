import pytest
import torch

import zhat
from zhat.dgp import Batch, Sectors
from zhat.encoders import Pair, mlp
from zhat.errors import BadInput
from zhat.fresh import Fresh
from zhat.objectives import CrossEntropy, Each, InBatchSoftmax


def test_it_is_the_mean_of_either_models_loss_on_its_own_rows():
    objective = Each(Fresh(CrossEntropy, 3, 5))
    h, label = torch.randn(1, 8, 3), torch.randint(5, (8,))
    batch = Batch(x=torch.zeros(1, 8, 2), label=label)
    losses = [m(h[:, i::2], Batch(x=batch.x[:, i::2], label=label[i::2])) for i, m in enumerate(objective.members)]
    assert torch.allclose(objective(h, batch), sum(losses) / 2)
    assert objective.labels == 5
    assert not torch.equal(objective.members[0].head, objective.members[1].head)


def test_candidates_of_one_model_are_its_own_rows_only():
    objective, h = Each(InBatchSoftmax()), torch.randn(2, 8, 3)
    batch = Batch(x=torch.zeros(2, 8, 2))
    assert objective.labels is None
    before = objective(h, batch)
    h[:, 1::2] = h[:, 1::2].flip(1)  # rows of the second model in another order
    assert torch.allclose(objective(h, batch), before)
    assert "InBatchSoftmax()" in repr(objective)


def test_a_model_trains_in_a_pair_as_it_does_alone():
    world, steps, batch = Sectors(6, harmonics=2), 30, 64
    pair = zhat.train(
        Fresh(Pair, Fresh(mlp, 2, 2, widths=(8,))),
        world,
        Fresh(Each, Fresh(CrossEntropy, 2, 6)),
        steps=steps,
        batch=2 * batch,
    )

    class EvenRows:
        """Every other row of a batch twice as large."""

        def sample(self, n, *, generator):
            drawn = world.sample(2 * n, generator=generator)
            return Batch(x=drawn.x[:, ::2], label=drawn.label[::2])

    untrained = zhat.randomness.build(Fresh(Pair, Fresh(mlp, 2, 2, widths=(8,))), 0, "encoder").members[0]
    head = zhat.randomness.build(Fresh(Each, Fresh(CrossEntropy, 2, 6)), 0, "objective").members[0]
    alone = zhat.train(untrained, EvenRows(), head, steps=steps, batch=batch)
    x = torch.randn(50, 2)
    assert torch.allclose(pair.encoder.members[0](x), alone.encoder(x), atol=1e-4)
    assert torch.allclose(pair.objectives[0].members[0].head, alone.objectives[0].head, atol=1e-4)


def test_one_head_for_two_models_is_refused():
    with pytest.raises(BadInput, match=r"two models need two heads, but one module came. Give Fresh\(CrossEntropy"):
        Each(CrossEntropy(3, 5))
