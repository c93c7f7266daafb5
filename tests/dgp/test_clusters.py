import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from zhat.dgp import (
    Around,
    Box,
    Clusters,
    GeneralizedNormal,
    InvertibleMLP,
    Laplace,
    Normal,
    Orthogonal,
    Real,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from zhat.errors import BadInput

SPHERE = Sphere(4)
WORLD = Clusters(Uniform(SPHERE), VonMisesFisher(30.0), InvertibleMLP(layers=2), classes=6, instances=60, seed=3)


def sample(world, n=1000, seed=0):
    return world.sample(n, generator=torch.Generator().manual_seed(seed))


def test_a_row_has_one_view_a_latent_an_observation_and_a_label():
    rows = sample(WORLD)
    assert rows.z.shape == rows.x.shape == (1, 1000, 4)
    assert (rows.label.shape, rows.label.dtype) == ((1000,), torch.int64)
    assert WORLD.views == 1
    assert torch.allclose(WORLD.mixer.inverse(rows.x.double()), rows.z.double(), atol=1e-5)
    assert SPHERE.contains(rows.z).all()


def test_equal_processes_are_equal_worlds():
    again = Clusters(Uniform(Sphere(4)), VonMisesFisher(30.0), InvertibleMLP(layers=2), 6, 60, seed=3)
    assert again == WORLD
    assert hash(again) == hash(WORLD)
    assert eval(repr(WORLD), globals() | {"BestOf": type(WORLD.mixing.condition)}) == WORLD
    a, b = sample(WORLD), sample(again)
    assert torch.equal(a.x, b.x)
    assert torch.equal(a.label, b.label)
    other = replace(WORLD, seed=4)
    assert not torch.allclose(WORLD.cluster_vectors, other.cluster_vectors, atol=1e-2)


def test_the_global_random_state_is_left_alone():
    before = torch.random.get_rng_state()
    sample(replace(WORLD, seed=17, label_noise=0.3))
    assert torch.equal(before, torch.random.get_rng_state())


def test_labels_are_uniform_and_each_belongs_to_the_class_it_gives_modulo_the_classes():
    n = 60_000
    rows = sample(WORLD, n)
    counts = torch.bincount(rows.label, minlength=60)
    expected = n / 60
    assert (counts - expected).abs().max() < 5 * math.sqrt(expected)
    assert WORLD.labels == 60
    assert WORLD.class_counts.tolist() == [10] * 6
    shown = sample(replace(WORLD, by_class=True), n)
    assert torch.equal(shown.label, rows.label % 6)
    assert replace(WORLD, by_class=True).labels == 6


def test_latents_lie_around_the_vector_of_their_class():
    n = 60_000
    rows = sample(WORLD, n)
    cosine = (rows.z[0].double() * WORLD.cluster_vectors[rows.label % 6]).sum(-1)
    slack = 5 / math.sqrt(n)  # a cosine has a variance below 1
    assert abs(cosine.mean() - VonMisesFisher(30.0).mean_cosine(4)) < slack
    wrong = (rows.z[0].double() * WORLD.cluster_vectors[(rows.label + 1) % 6]).sum(-1)
    assert wrong.mean() < 0.9 * cosine.mean()


def test_fresh_latents_differ_from_draw_to_draw_and_fixed_instances_do_not():
    def spread(world):
        rows = sample(world, 20_000)
        return torch.stack([rows.z[0][rows.label == i].std(0).norm() for i in range(5)]).max()

    fixed = replace(WORLD, augmentation=VonMisesFisher(1e6))
    assert spread(WORLD) > 0.1
    assert spread(fixed) < 5e-3
    # Instances of one class are different points around the same vector.
    rows = sample(fixed, 20_000)
    first, second = (rows.z[0][rows.label == i].mean(0) for i in (0, 6))
    assert (first - second).norm() > 0.05
    assert torch.equal(sample(fixed, 50).z, sample(replace(fixed), 50).z)


@pytest.mark.parametrize(("noise", "by_class"), [(0.0, False), (0.4, False), (0.4, True), (1.0, False)])
def test_label_noise_replaces_the_given_share_by_uniform_labels(noise, by_class):
    n = 50_000
    world = replace(WORLD, by_class=by_class, label_noise=noise, conditional=VonMisesFisher(1e4))
    rows = sample(world, n)
    nearest = (rows.z[0].double() @ world.cluster_vectors.T).argmax(-1)
    right = (rows.label % 6 == nearest).double().mean()
    wanted = 1 - noise + noise / 6  # a uniform label still hits the right class once in six
    assert abs(right - wanted) < 4 * math.sqrt(0.25 / n) + 1e-9


def test_cluster_vectors_may_be_drawn_around_the_first_unit_vector():
    # reizinger2024, Table 5: Laplace and Normal around e_1, projected
    for family in (Laplace(SPHERE), Normal(SPHERE)):
        vectors = replace(WORLD, vectors=family, classes=2000, instances=2000).cluster_vectors
        assert torch.allclose(vectors.norm(dim=-1), torch.ones(2000, dtype=torch.float64))
        assert vectors[:, 0].mean() > 0.2
        assert vectors[:, 1:].mean(0).abs().max() < 5 / math.sqrt(2000)


@pytest.mark.parametrize("given", [np.eye(4), torch.eye(4), np.eye(4).tolist(), tuple(map(tuple, np.eye(4).tolist()))])
def test_cluster_vectors_may_be_given(given):
    world = Clusters(given, VonMisesFisher(10.0), Orthogonal(), instances=40)
    assert (world.classes, world.labels, world.dim, world.space) == (4, 40, 4, Sphere(4))
    assert torch.equal(world.cluster_vectors, torch.eye(4, dtype=torch.float64))
    assert replace(world, seed=1).cluster_vectors.equal(world.cluster_vectors)
    assert hash(world) == hash(replace(world))


def test_a_map_of_ones_own_says_which_class_an_instance_has():
    world = replace(WORLD, classes=3, instances=None, class_of=(2, 2, 0, 1, 2), conditional=VonMisesFisher(1e4))
    rows = sample(world, 5000)
    assert world.labels == 5
    assert world.class_counts.tolist() == [1, 1, 3]
    nearest = (rows.z[0].double() @ world.cluster_vectors.T).argmax(-1)
    assert torch.equal(nearest, torch.tensor(world.class_of)[rows.label])
    shown = sample(replace(world, by_class=True), 5000)
    assert torch.equal(shown.label, nearest)


CONDITIONALS = [
    (VonMisesFisher(10.0), SPHERE),
    (Around(Normal(SPHERE, std=1.0)), SPHERE),
    (Around(Laplace(SPHERE, scale=1.0)), SPHERE),
    (Around(GeneralizedNormal(SPHERE, p=1.5, scale=1.0)), SPHERE),
    (Around(Laplace(Box(4, -2, 2), scale=1.0)), Box(4, -2, 2)),
    (Around(Normal(Real(4))), Real(4)),
]


@pytest.mark.parametrize(("conditional", "space"), CONDITIONALS, ids=lambda v: repr(v))
def test_latents_live_where_the_conditional_puts_them(conditional, space):
    world = replace(WORLD, conditional=conditional)
    assert world.space == space
    z = sample(world, 2000).z[0]
    assert space.contains(z).all()
    assert SPHERE.contains(z).all() == (space == SPHERE)  # a truncated Laplace is not projected


MISTAKES = [
    ({"classes": None}, "`classes` must be a whole number of at least 1"),
    ({"classes": 3, "vectors": np.eye(4)}, "`classes` is 3, but 4 cluster vectors came. Leave `classes` out"),
    ({"label_noise": 1.5}, "`label_noise` is a probability, from 0 to 1, but 1.5 came"),
    ({"class_of": (0, 6), "instances": None}, "`class_of` names a class from 0 to 5 .* but class 6 came"),
    ({"class_of": (), "instances": None}, "but an empty map came"),
    ({"class_of": (0, 1)}, "`class_of` holds 2 instances, but `instances` is 60"),
    ({"conditional": Around(Laplace(Sphere(3)))}, "cluster vectors have 4 dimensions, but the conditional is on"),
    ({"vectors": 2 * np.eye(4) + 1 * np.eye(4, k=1), "classes": None}, "VonMisesFisher stays on a sphere"),
    ({"vectors": Uniform(Box(4))}, "VonMisesFisher stays on a sphere, but the cluster vectors are on Box"),
    ({"conditional": 3}, "`conditional` must have a `sample`, but 3 came"),
    ({"seed": 0.5}, "`seed` is an integer"),
]


@pytest.mark.parametrize(("how", "sentence"), MISTAKES)
def test_a_world_without_a_meaning_is_refused(how, sentence):
    with pytest.raises(BadInput, match=sentence):
        replace(WORLD, **how)
