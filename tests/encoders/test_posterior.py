import pytest
import torch
from torch import nn

from zhat.encoders import Posterior
from zhat.errors import BadInput


def test_means_and_variances_are_for_training_and_the_mean_for_scores():
    encoder = Posterior(lambda: nn.Linear(3, 4))
    x = torch.rand(5, 3)
    both = encoder.train()(x)
    assert both.shape == (5, 4)
    assert torch.equal(encoder.eval()(x), both[:, :2])


def test_an_odd_number_of_outputs_gets_a_sentence():
    with pytest.raises(BadInput, match="the network has 3 outputs. Give it twice as many"):
        Posterior(lambda: nn.Linear(2, 3))(torch.rand(4, 2))
