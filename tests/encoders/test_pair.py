import pytest
import torch

from zhat.encoders import Pair, Towers, mlp
from zhat.errors import BadInput
from zhat.fresh import Fresh

SMALL = Fresh(mlp, 3, 2, widths=(4,))


def test_members_have_weights_of_their_own():
    one, two = Pair(SMALL).members
    assert not torch.equal(one.last.weight, two.last.weight)


def test_each_member_of_a_pair_sees_every_other_row():
    pair, x = Pair(SMALL), torch.randn(1, 6, 3)
    h = pair(x)
    for i, member in enumerate(pair.members):
        assert torch.allclose(h[:, i::2], member(x[:, i::2]))
        assert not torch.allclose(h[:, 1 - i :: 2], member(x[:, 1 - i :: 2]))


def test_each_view_has_a_tower_of_its_own():
    towers, x = Towers(SMALL), torch.randn(2, 5, 3)
    h = towers(x)
    assert h.shape == (2, 5, 2)
    for v in range(2):
        assert torch.allclose(h[v], towers.towers[v](x[v]))


def test_a_pair_of_towers_gives_the_network_of_a_view():
    pair, x = Pair(Fresh(Towers, SMALL)), torch.randn(2, 6, 3)
    h = pair(x)
    for view in range(2):
        for i, network in enumerate(pair.of_view(view)):
            assert torch.allclose(h[view, i::2], network(x[view, i::2]))
    plain = Pair(SMALL)
    assert plain.of_view(1) == tuple(plain.members)


def test_mistakes_get_a_sentence():
    with pytest.raises(BadInput, match="takes every other row, but 5 rows came. Use an even batch"):
        Pair(SMALL)(torch.randn(1, 5, 3))
    with pytest.raises(BadInput, match="has 2 towers, but rows of 1 views came"):
        Towers(SMALL)(torch.randn(1, 5, 3))
