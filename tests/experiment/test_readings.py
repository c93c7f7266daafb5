import pytest
import torch

from zhat.dgp import (
    Around,
    Batch,
    Box,
    Clusters,
    Copies,
    Neighbours,
    Normal,
    Orthogonal,
    Pairs,
    Sphere,
    Stored,
    Uniform,
    VonMisesFisher,
)
from zhat.equivalence import AFFINE, LINEAR, SCALED_PERMUTATION
from zhat.errors import BadInput
from zhat.experiment import Also, HeadOffScale, HeadToVectors, Latents, OffScale, Shortest, Trained
from zhat.metrics import Recovery, pearson
from zhat.objectives import InfoNCE, InstanceDiscrimination

WORLD = Clusters(Uniform(Sphere(4)), VonMisesFisher(10.0), Orthogonal(), classes=40, instances=200)


def trained(rows=None, scale=1.0, world=WORLD):
    class Scaled(torch.nn.Module):
        def forward(self, x):
            return scale * x

    objective = InstanceDiscrimination(4, world.labels)
    if rows is not None:
        objective.rows.data = rows.float()
    return Trained(Scaled(), objective, world, 1024, "cpu")


def vectors(world=WORLD):
    return world.cluster_vectors[torch.arange(world.labels) % world.classes]


def random_map(seed=0):
    return torch.randn(4, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_head_that_is_an_affine_image_of_the_vectors_has_r2_one():
    rows = vectors() @ random_map() + 3
    assert HeadToVectors(AFFINE)(trained(rows)) == pytest.approx((1, 1), abs=1e-5)
    linear = HeadToVectors(LINEAR)
    assert linear(trained(vectors() @ random_map())) == pytest.approx((1, 1), abs=1e-5)
    assert max(linear(trained(rows))) < 0.999  # an offset is not forgiven


def test_a_random_head_has_r2_near_zero_by_both_protocols():
    rows = torch.randn(200, 4, generator=torch.Generator().manual_seed(1))
    by_paper, ours = HeadToVectors()(trained(rows))
    assert by_paper < 0.1
    assert ours < 0.1


def test_what_is_learned_for_seen_classes_only_is_credited_by_the_paper_and_not_by_us():
    # Each class has a code of its own, the same for all its labels: half of the labels tell the other half.
    world = Clusters(Uniform(Sphere(4)), VonMisesFisher(10.0), Orthogonal(), classes=4, instances=200)
    codes = torch.randn(4, 4, generator=torch.Generator().manual_seed(2)).double()
    by_paper, ours = HeadToVectors(LINEAR)(trained(codes[torch.arange(200) % 4], world=world))
    assert by_paper > 0.99
    assert ours < 0.5


def test_class_labels_are_classes_themselves():
    from dataclasses import replace

    world = replace(WORLD, classes=100, instances=100, by_class=True)
    rows = world.cluster_vectors @ random_map()
    assert HeadToVectors()(trained(rows, world=world)) == pytest.approx((1, 1), abs=1e-5)


def test_the_scale_is_compared_with_the_prediction_absolutely_and_relatively():
    exact = trained(scale=10.0)
    assert OffScale(10.0)(exact) == pytest.approx((0, 0), abs=1e-6)
    # h = 8 z: singular values of the map back are 1/8 = 0.125 where 0.1 was predicted, a quarter too much
    off = trained(scale=8.0)
    assert OffScale(10.0)(off) == pytest.approx((0.025, 0.025), abs=1e-6)
    assert OffScale(10.0, relative=True)(off) == pytest.approx((0.25, 0.25), abs=1e-5)


def test_a_rotated_head_is_on_scale_and_a_stretched_one_is_not():
    rotation = torch.linalg.qr(random_map()).Q
    assert HeadOffScale()(trained(vectors() @ rotation)) == pytest.approx(0, abs=1e-5)
    assert HeadOffScale()(trained(2 * vectors() @ rotation)) == pytest.approx(0.5, abs=1e-5)


def test_without_a_head_there_is_nothing_to_read():
    with pytest.raises(BadInput, match="compares the rows of a head with cluster vectors"):
        HeadToVectors()(Trained(torch.nn.Identity(), InfoNCE(), WORLD, 100, "cpu"))


MCC = Recovery(SCALED_PERMUTATION, agree=pearson, holdout=0, shift=True)


class Counting(torch.nn.Module):
    """The observations, normalised by batch; counts the rows it has seen."""

    def __init__(self, dim):
        super().__init__()
        self.norm, self.rows = torch.nn.BatchNorm1d(dim, affine=False), []

    def forward(self, x):
        self.rows.append(len(x))
        return self.norm(x)


def stored(dim=3, mixing=None):
    box = Box(dim)
    pairs = Pairs(Uniform(box), Around(Normal(box, 0.1)), mixing or Orthogonal())
    return Neighbours(Stored(pairs, rows=400, test_rows=300))


def test_another_measure_reads_the_rows_of_the_score():
    found = Trained(torch.nn.Identity(), None, stored(), 256, "cpu")
    by_paper, ours = Also(MCC)(found)
    z, x = found.represented(256, 100)
    assert by_paper == pytest.approx(MCC(z, x).value)
    assert ours == pytest.approx(MCC.held_out(*found.represented(512, 99)).value)


def test_readings_of_the_same_rows_are_represented_once():
    encoder = Counting(3).eval()
    found = Trained(encoder, None, stored(), 256, "cpu")
    for measure in (MCC, Recovery(AFFINE), MCC):
        Also(measure)(found)
    assert encoder.rows == [256, 512]


def test_seen_rows_are_those_that_training_draws_from():
    world = stored()
    found = Trained(torch.nn.Identity(), None, world, 256, "cpu")
    assert isinstance(Also(MCC, Latents(seen=True))(found), float)
    rows, _ = found.represented(256, 100, seen=True)
    kept = world.stored.album(torch.device("cpu")).latents
    assert (rows[:, None] == kept).all(-1).any(1).all()
    others, _ = found.represented(256, 100)
    assert not (others[:, None] == kept).all(-1).any()


def test_rows_that_training_augments_are_read_as_they_are():
    rows = stored().stored
    noisy = Copies(rows, lambda x, generator: x + torch.randn(x.shape, generator=generator))
    of_copies, of_rows = (
        Trained(torch.nn.Identity(), None, world, 256, "cpu").represented(256, 100, seen=True)
        for world in (noisy, rows)
    )
    assert torch.equal(of_copies[1], of_rows[1])
    assert not torch.equal(
        noisy.sample(8, generator=torch.Generator()).x[0], rows.sample(8, generator=torch.Generator()).x[0]
    )


def test_batch_statistics_are_those_of_the_rows_that_are_scored():
    encoder = Counting(3).eval()
    found = Trained(encoder, None, stored(), 256, "cpu")
    _, h = found.represented(256, 100, batch=64)
    assert h.reshape(4, 64, 3).mean(1).abs().max() < 1e-4
    _, plain = found.represented(256, 100)
    assert plain.mean().abs() > 0.01


def test_the_shortest_map_is_scikit_learns_where_columns_outnumber_rows():
    from sklearn.linear_model import LinearRegression
    from sklearn.metrics import r2_score

    ways = torch.randn(3, 300, generator=torch.Generator().manual_seed(0))

    class Bent:
        views, seed = 1, 0

        def sample(self, n, *, generator):
            z = torch.rand(1, n, 3, generator=generator)
            return Batch(x=(3 * z @ ways).sin(), z=z)

    found = Trained(torch.nn.Identity(), None, Bent(), 200, "cpu")
    z, x = (side.double().numpy() for side in found.represented(200, 100))
    fit = LinearRegression().fit(x[:100], z[:100])
    assert Shortest()(found)[0] == pytest.approx(r2_score(z[100:], fit.predict(x[100:])), abs=1e-4)
