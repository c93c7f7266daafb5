import torch

from zhat.encoders import ContextSum


def test_a_context_is_the_weighed_sum_of_its_words():
    model = ContextSum(10, 3, places=2, scale=0.5)
    x = torch.tensor([[4, 7], [1, 1]])
    r, c = model.context, model.place
    assert torch.allclose(model(x), torch.stack([c[0] * r[4] + c[1] * r[7], (c[0] + c[1]) * r[1]]))
    assert model.context.abs().max() <= 0.5
    assert "words=10, dim=3, places=2, scale=0.5" in repr(model)
