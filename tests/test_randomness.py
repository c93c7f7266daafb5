import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from zhat import randomness
from zhat.errors import BadInput


def test_streams_of_one_seed_share_no_draw():
    draws = [torch.rand(4, generator=randomness.generator(0, s)) for s in ("mixing", "encoder", "data")]
    assert len({tuple(d.tolist()) for d in draws}) == 3


def test_a_stream_is_the_same_on_every_machine():
    # A change of this number moves every result of every seed; it belongs under "Numbers" in the changelog.
    assert randomness.stream_seed(0, "data") == 736872305540241488


def test_building_a_module_leaves_the_global_state_alone():
    before = torch.random.get_rng_state()
    first = randomness.build(lambda: torch.nn.Linear(3, 3).weight, 1, "encoder")
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(first, randomness.build(lambda: torch.nn.Linear(3, 3).weight, 1, "encoder"))


@pytest.mark.parametrize("seed", [1.5, "0", True, None])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(BadInput, match="`seed` is an integer"):
        randomness.stream_seed(seed, "data")


def test_threads_build_what_each_builds_alone():
    def slowly():
        drawn = []
        for _ in range(20):
            drawn.append(torch.rand(1))
            time.sleep(1e-4)  # lets the other threads in
        return torch.cat(drawn)

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: randomness.build(slowly, seed, "encoder"), range(8)))
    for seed, values in enumerate(together):
        assert torch.equal(values, randomness.build(slowly, seed, "encoder"))
