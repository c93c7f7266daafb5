"""Stored rows: the search is exact, observations are made once, pairs are as far apart as geometry says."""

import math
from dataclasses import dataclass, field, replace

import pytest
import torch

from zhat import testing
from zhat.dgp import (
    Around,
    Box,
    Copies,
    CropAndColour,
    Neighbours,
    Normal,
    Orthogonal,
    Pairs,
    Stored,
    Uniform,
)
from zhat.dgp.stored import Album
from zhat.errors import BadInput, MissingData

BOX = Box(3, -1.0, 1.0)
WORLD = Pairs(Uniform(BOX), Around(Normal(BOX, 0.1)), Orthogonal())


@dataclass(frozen=True)
class Stripes:
    """A picture whose channels are as bright as three latents; it counts how many it has made."""

    made: list = field(default_factory=list, compare=False, hash=False)

    def build(self, dim, generator):
        def mixer(z):
            self.made.append(z.reshape(-1, dim).shape[0])
            return (127.5 * (z[..., :3] + 1)).to(torch.uint8)[..., None, None].expand(*z.shape[:-1], 3, 8, 8)

        return mixer


def pictures(seed=0, **how):
    return Stored(Pairs(Uniform(BOX), Around(Normal(BOX, 0.1)), Stripes(), seed=seed), **how)


def test_the_search_finds_the_nearest_row(generator):
    latents, z = (2 * torch.rand(n, 10, generator=generator) - 1 for n in (3000, 500))
    found = Album(latents, lambda z: z).nearest(z)
    distances = torch.cdist(z.double(), latents.double(), compute_mode="donot_use_mm_for_euclid_dist")
    assert torch.equal(found, distances.argmin(1))


def test_the_search_leaves_out_the_place_it_is_told(generator):
    latents, z = (2 * torch.rand(n, 10, generator=generator) - 1 for n in (3000, 500))
    stored = Album(latents, lambda z: z)
    distances = torch.cdist(z.double(), latents.double(), compute_mode="donot_use_mm_for_euclid_dist")
    first, second = distances.topk(2, largest=False).indices.T
    assert torch.equal(stored.nearest(z, but=first), second)
    assert torch.equal(stored.nearest(z, but=second), first)


def test_blocks_of_distances_change_nothing(generator, monkeypatch):
    latents, z = (torch.rand(n, 4, generator=generator) for n in (200, 90))
    stored = Album(latents, lambda z: z)
    whole = stored.nearest(z, but=stored.nearest(z))
    monkeypatch.setitem(__import__("zhat.dgp.stored", fromlist=["_"]).DISTANCES, "cpu", 7 * 200)
    assert torch.equal(stored.nearest(z, but=stored.nearest(z)), whole)


def test_an_observation_is_made_once_and_only_when_it_is_drawn(generator):
    world = pictures(seed=11, rows=400, test_rows=100)
    made = world.world.mixing.made
    world.sample(50, generator=generator)
    assert sum(made) <= 51  # one more, for the shape
    for _ in range(30):
        world.sample(400, generator=generator)
    assert sum(made) == 401
    assert Neighbours(world).sample(64, generator=generator).x.dtype == torch.uint8
    assert sum(made) == 401


def test_observations_are_those_of_their_latents(generator):
    for process in (pictures(rows=300), Neighbours(pictures(rows=300))):
        batch = process.sample(40, generator=generator)
        assert (batch.x[..., 0, 0].float() - 127.5 * (batch.z + 1)).abs().max() <= 1


def test_held_out_rows_are_others(generator):
    world = Neighbours(Stored(WORLD, rows=500, test_rows=300))
    train, test = (p.album(torch.device("cpu")).latents for p in (world.stored, world.held_out))
    assert (len(train), len(test)) == (500, 300)
    assert not (train[:, None] == test).all(-1).any()
    assert world.held_out.held_out is None


def test_a_row_is_never_its_own_positive(generator):
    world = Neighbours(Stored(WORLD, rows=20, test_rows=20))
    anchor, positive = world.places(500, generator=generator)
    assert (anchor != positive).all()
    assert {int(p) for p in anchor} <= set(range(20))


@pytest.mark.parametrize(
    "process",
    [
        Stored(WORLD, rows=60, test_rows=30),
        Neighbours(Stored(WORLD, rows=60, test_rows=30)),
        pictures(rows=60, test_rows=30),
        Copies(pictures(rows=60, test_rows=30), CropAndColour()),
        Copies(WORLD, lambda x, generator: x + torch.randn(x.shape, generator=generator)),
    ],
    ids=lambda p: type(p).__name__,
)
def test_the_contract_of_a_process_is_kept(process):
    testing.check_process(process)


def test_copies_are_of_the_same_row_and_stay_bytes(generator):
    copies = Copies(pictures(rows=60), CropAndColour(area=(1.0, 1.0), strength=0.0, grey=0.0, blurred=0.0))
    batch = copies.sample(16, generator=generator)
    assert batch.x.dtype == torch.uint8
    assert torch.equal(batch.z[0], batch.z[1])
    assert (
        batch.x[..., 4, 4].float() - 127.5 * (batch.z + 1)
    ).abs().max() <= 3  # a crop of an even picture is that picture


def test_the_seed_of_the_world_says_which_rows_are_stored():
    here, there = (Stored(replace(WORLD, seed=s), rows=50).album(torch.device("cpu")).latents for s in (0, 1))
    assert not torch.equal(here, there)
    assert torch.equal(here, Stored(WORLD, rows=50, seed=7).album(torch.device("cpu")).latents)


def test_missing_data_of_a_mixing_is_found_before_training():
    @dataclass(frozen=True)
    class Absent(Stripes):
        def find(self):
            raise MissingData("not here", wanted="a mesh")

    world = Pairs(Uniform(BOX), Around(Normal(BOX, 0.1)), Absent())
    for process in (world, Stored(world), Neighbours(Stored(world)), Copies(Stored(world), CropAndColour())):
        with pytest.raises(MissingData, match="not here"):
            process.find()
    Neighbours(Stored(WORLD)).find()
    Copies(WORLD, CropAndColour()).find()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Stored(BOX), r"`world` must be Pairs\(...\)"),
        (lambda: Stored(WORLD, rows=1), "`rows` must be a whole number of at least 2"),
        (lambda: Stored(WORLD, part="all"), "`part` must be one of train, test"),
        (lambda: Neighbours(WORLD), r"`stored` must be Stored\(...\)"),
        (lambda: Copies(WORLD, 3), "`augment` must be callable"),
        (
            lambda: Copies(WORLD, lambda x, g: x[:1]).sample(4, generator=torch.Generator()),
            "`augment` must return rows for rows",
        ),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(BadInput, match=sentence):
        make()


def snapping(rows, dim, n, generator):
    """Mean distance to the nearest stored row, share of equal neighbours, and the width of the displacement."""
    box = Box(dim, -1.0, 1.0)
    world = Neighbours(Stored(Pairs(Uniform(box), Around(Normal(box, 0.1)), Orthogonal()), rows=rows))
    stored = world.stored.album(generator.device)
    z = world.stored.world.marginal.sample(n, generator=generator)
    near = world.stored.world.conditional.sample(z, generator=generator)
    anchor = stored.nearest(z)
    same = (stored.nearest(near) == anchor).double().mean()
    positive = stored.nearest(near, but=anchor)
    moved = (stored.latents[positive] - stored.latents[anchor]).std(0).mean()
    return float((z - stored.latents[anchor]).norm(dim=1).mean()), float(same), float(moved)


def test_the_snapping_distance_on_a_line_is_that_of_a_poisson_process(generator):
    rows, n = 2000, 20_000
    distance, _, _ = snapping(rows, 1, n, generator)
    # n points on [-1, 1]: the distance to the nearest is exponential with mean 1 / (2 density) = 1 / rows, squared
    # deviation 1 / rows^2; draws share the stored rows, which fluctuate by 1 / sqrt(rows) themselves.
    assert abs(distance * rows - 1) < 4 * (1 / math.sqrt(n) + 1 / math.sqrt(rows))


@pytest.mark.slow
def test_pairs_among_250000_rows_are_as_far_apart_as_the_paper_s(generator):
    n = 2000
    distance, same, moved = snapping(250_000, 10, n, generator)
    # Measured independently with 250,000 uniform points in ten dimensions: 0.54, 40% and 0.26, to two digits.
    assert distance == pytest.approx(0.54, abs=0.01)
    assert same == pytest.approx(0.40, abs=0.005 + 4 * math.sqrt(0.24 / n))
    assert moved == pytest.approx(0.26, abs=0.005 + 4 * 0.26 / math.sqrt(2 * 10 * n))
