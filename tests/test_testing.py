"""The contracts can fail: each check is tried on something that breaks the promise."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from zhat import testing
from zhat.datasets import NextRow
from zhat.dgp import (
    Batch,
    InvertibleMLP,
    Normal,
    Orthogonal,
    Pairs,
    Real,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from zhat.encoders import conv, mlp
from zhat.equivalence import AFFINE, IDENTITY, LINEAR
from zhat.metrics import Recovery


def refuses(check, thing, message, *args, **kwargs):
    with pytest.raises(AssertionError, match=message):
        check(thing, *args, **kwargs)


@dataclass(frozen=True)
class Logistic:
    """The distribution of the docs: three members, no base class."""

    space: Real

    def sample(self, n, *, generator):
        return torch.logit(torch.rand(n, self.space.dim, generator=generator), eps=1e-6)

    def log_prob(self, z):
        return (-z - 2 * F.softplus(-z)).sum(-1)


def test_a_distribution_of_ones_own_passes():
    testing.check_distribution(Logistic(Real(3)))


class Shrunk(Sphere):
    def project(self, z):
        return 0.9 * super().project(z)


class Anywhere(Sphere):
    def project(self, z):
        return super().project(z.flip(-1))


class Careless(Real):
    def contains(self, z):
        return torch.ones(z.shape[:-1], dtype=torch.bool)


def test_broken_spaces_are_found():
    refuses(testing.check_space, Shrunk(3), "does not contain")
    refuses(testing.check_space, Anywhere(3), "moves points that lie in it already|nearest point")
    refuses(testing.check_space, Careless(3), "contains NaN")


@dataclass(frozen=True)
class Wrong(Logistic):
    fault: str = ""

    def sample(self, n, *, generator):
        if self.fault == "global":
            return torch.randn(n, self.space.dim)
        if self.fault == "shape":
            return super().sample(n, generator=generator)[:, :1]
        if self.fault == "fixed":
            return torch.linspace(-2, 2, n * self.space.dim).reshape(n, -1)
        return super().sample(n, generator=generator) * (1.1 if self.fault == "draws" else 1.0)

    def log_prob(self, z):
        return super().log_prob(z) + (0.1 if self.fault == "mass" else 0.0)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("global", "global random state"),
        ("shape", "draws the shape"),
        ("fixed", "the same from different generators"),
        ("mass", "does not integrate to 1"),
        ("draws", "does not match its draws"),
    ],
)
def test_broken_distributions_are_found(fault, message):
    refuses(testing.check_distribution, Wrong(Real(2), fault), message)


def test_a_sampler_off_its_space_is_found():
    class Off(Uniform):
        def sample(self, n, *, generator):
            return 1.1 * super().sample(n, generator=generator)

    refuses(testing.check_distribution, Off(Sphere(3)), "draws points outside")


def test_a_conditional_that_ignores_its_anchor_is_found():
    class Ignoring:
        def sample(self, z, *, generator):
            return Normal(Real(2)).sample(len(z), generator=generator)

        def log_prob(self, z_next, z):
            return Normal(Real(2)).log_prob(z_next - z)

    refuses(testing.check_conditional, Ignoring(), "does not match its draws", Real(2))


def test_a_mixing_with_a_wrong_inverse_is_found():
    class Lossy(Orthogonal):
        def build(self, dim, generator):
            mixer = super().build(dim, generator)
            mixer.inverse = lambda x: x
            return mixer

    refuses(testing.check_mixing, Lossy(), "does not give z back")


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (lambda h, b: h.sum(-1), "not one number"),
        (lambda h, b: (h.sum() * 0 + 1).log() / 0, "is nan|is inf"),
        (lambda h, b: b.z.sum() + 0 * h.sum(), "does not depend on the representation"),
        (lambda h, b: (h * torch.arange(h.shape[1])[:, None]).sum(), "order of rows"),
        (lambda h, b: h.sum() + torch.rand(()), "different values for the same rows"),
        (lambda h, b: (0 * h).sqrt().sum() + h.sum(), "gradient that is not finite"),
    ],
)
def test_broken_objectives_are_found(objective, message):
    refuses(testing.check_objective, objective, message, views=1)


def test_an_objective_of_ones_own_passes():
    def variance_floor(h, batch):
        return torch.relu(1 - h.std(dim=(0, 1))).mean()

    testing.check_objective(variance_floor, views=1)


@dataclass(frozen=True)
class Claims:
    """A metric that claims another class than it has, or is broken in another way."""

    inner: Recovery
    up_to: object
    fault: str = ""

    def __call__(self, z, h):
        if self.fault == "nan":
            h = torch.nan_to_num(torch.as_tensor(h))
        score = self.inner(z, h)
        if self.fault == "optimist":
            object.__setattr__(score, "value", max(score.value, 0.9))
        if self.fault == "offset":
            object.__setattr__(score, "value", score.value - 0.01)
        return score


FAST = {"repeats": 0, "shuffles": 0}


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (Claims(Recovery(IDENTITY, **FAST), LINEAR), "moves from .* under a map up to"),
        (Claims(Recovery(AFFINE, **FAST), IDENTITY), "but no map up to permutation moves it"),
        (Claims(Recovery(AFFINE, **FAST), AFFINE, "optimist"), "for noise"),
        (Claims(Recovery(AFFINE, **FAST), AFFINE, "offset"), "not 1, for a perfect copy"),
        (Claims(Recovery(AFFINE, **FAST), AFFINE, "nan"), "although the representation holds NaN"),
    ],
)
def test_broken_metrics_are_found(metric, message):
    refuses(testing.check_metric, metric, message)


def test_a_metric_that_misses_a_lost_latent_is_found():
    class Best(Claims):
        def __call__(self, z, h):
            score = super().__call__(z, h)
            object.__setattr__(score, "value", max(score.per_latent))
            return score

    refuses(testing.check_metric, Best(Recovery(AFFINE, **FAST), AFFINE), "lost to a duplicate")
    assert math.isfinite(Recovery(AFFINE, **FAST)(torch.randn(50, 2), torch.randn(50, 2)).value)


# --- processes and encoders


class Wandering:
    """Images of a dot, with its place as latents."""

    views = 2
    seed = 0
    labels = 5

    def __init__(self, **wrong):
        self.wrong = wrong

    def sample(self, n, *, generator):
        z = torch.rand(2, n, 2, generator=generator)
        x = (z.sum(-1)[..., None, None, None] * torch.ones(1, 4, 4) * 100).to(torch.uint8)
        label = torch.randint(5, (n,), generator=generator)
        return Batch(**({"x": x, "z": z, "label": label} | {k: f(x, z, label) for k, f in self.wrong.items()}))


def test_a_process_of_images_passes():
    testing.check_process(Wandering())
    testing.check_process(Pairs(Uniform(Sphere(3)), VonMisesFisher(5.0), InvertibleMLP()))
    later = NextRow(torch.rand(40, 3))
    testing.check_process(NextRow(torch.rand(50, 3), z=torch.rand(50, 2), held_out=later))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"x": lambda x, z, label: x[:1]}, "says views=2, but hands over x of"),
        ({"x": lambda x, z, label: torch.rand(x.shape)}, "uses torch's global random state"),
        ({"x": lambda x, z, label: torch.zeros(x.shape)}, "draws the same from different generators"),
        ({"z": lambda x, z, label: z[:, :3]}, "latents for 32 rows"),
        ({"z": lambda x, z, label: z / 0}, "latents that are not finite"),
        ({"label": lambda x, z, label: label + 3}, "says labels=5, but hands over others"),
        ({"label": lambda x, z, label: label.float()}, "not whole numbers"),
    ],
)
def test_a_process_that_breaks_a_promise_is_named(wrong, sentence):
    with pytest.raises(AssertionError, match=sentence):
        testing.check_process(Wandering(**wrong))


def test_a_process_that_holds_nothing_out_is_named():
    process = Wandering()
    process.held_out = process
    with pytest.raises(AssertionError, match="holds nothing out"):
        testing.check_process(process)


class Leaking(nn.Linear):
    def forward(self, x):
        h = super().forward(x)
        return h - h.mean(0)


class Counting(nn.Linear):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x) + self.calls


class Frozen(nn.Linear):
    def forward(self, x):
        return super().forward(x).detach() + 0 * self.weight.sum()


def test_our_encoders_pass():
    rows = torch.rand(6, 4, generator=torch.Generator().manual_seed(0))
    for encoder in (mlp(4, 2, widths=(8,), seed=0), mlp(4, 3, widths=(8,), onto=Sphere(3), seed=0)):
        testing.check_encoder(encoder, rows)
    images = torch.randint(256, (6, 1, 32, 32), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    testing.check_encoder(conv((1, 32, 32), 3, widths=(4, 4), top=8, seed=0), images)


@pytest.mark.parametrize(
    ("encoder", "sentence"),
    [
        (Leaking(4, 2), "depend on the other rows"),
        (Counting(4, 2), "different values for the same rows"),
        (Frozen(4, 2), "does not depend on its parameters"),
        (nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (2, 3))), r"not \(rows, k\)"),
        (nn.Identity(), "has nothing to train"),
    ],
)
def test_an_encoder_that_breaks_a_promise_is_named(encoder, sentence):
    with pytest.raises(AssertionError, match=sentence):
        testing.check_encoder(encoder, torch.rand(6, 4, generator=torch.Generator().manual_seed(0)))
