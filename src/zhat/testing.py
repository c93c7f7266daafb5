"""The contracts as checks, so that a class of yours meets the same bar as ours.

Each check raises AssertionError with a sentence that names the broken promise.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from zhat import randomness
from zhat.dgp import (
    Batch,
    Conditional,
    Distribution,
    Mixing,
    Process,
    Space,
    Uniform,
    encoder_input,
    reseeded,
)
from zhat.equivalence import (
    AFFINE,
    COMPONENTWISE,
    IDENTITY,
    LINEAR,
    ORTHOGONAL,
    PERMUTATION,
    SCALED_PERMUTATION,
    SIGNED_PERMUTATION,
    SIMILARITY,
    Equivalence,
)
from zhat.errors import BadInput

__all__ = [
    "check_space",
    "check_distribution",
    "check_conditional",
    "check_mixing",
    "check_process",
    "check_encoder",
    "check_objective",
    "check_metric",
]


def _promise(kept: Any, sentence: str) -> None:
    if not bool(kept):
        raise AssertionError(sentence)


def check_space(space: Space, *, seed: int = 0) -> None:
    """A space projects into itself, leaves its own points alone, and knows what lies outside."""
    z = 3 * torch.randn(500, space.dim, generator=randomness.generator(seed, "check"))
    inside = space.project(z)
    _promise(inside.shape == z.shape, f"{space!r} changes the shape of points when projecting")
    _promise(space.contains(inside).all(), f"{space!r} projects points to places it does not contain")
    _promise(
        torch.allclose(space.project(inside), inside, atol=1e-5),
        f"{space!r} moves points that lie in it already",
    )
    nearer = (inside - z).norm(dim=-1) <= (space.project(z.roll(1, 0)) - z).norm(dim=-1) + 1e-5
    _promise(nearer.all(), f"{space!r} does not project to the nearest point")
    _promise(not space.contains(torch.full((1, space.dim), math.nan)).any(), f"{space!r} contains NaN")


def check_distribution(distribution: Distribution, *, n: int = 20_000, seed: int = 0) -> None:
    """Draws lie in the space, repeat with the generator, leave the global state alone, and follow the density.

    Agreement with the density is tested by importance weights, which works well in up to about five dimensions.
    """
    space = distribution.space

    def draw(seed: int) -> Tensor:
        return distribution.sample(n, generator=randomness.generator(seed, "check"))

    z = _repeats(draw, repr(distribution), seed)
    _promise(z.shape == (n, space.dim), f"{distribution!r} draws the shape {tuple(z.shape)}, not {(n, space.dim)}")
    _promise(space.contains(z).all(), f"{distribution!r} draws points outside {space!r}")
    _follows(z.double(), lambda points: distribution.log_prob(points), space, repr(distribution), seed)


def check_conditional(conditional: Conditional, space: Space, *, n: int = 20_000, seed: int = 0) -> None:
    """Like `check_distribution`, around a few anchors of `space`."""
    anchors = space.project(torch.randn(3, space.dim, generator=randomness.generator(seed, "anchors")))
    for anchor in anchors:
        around = anchor.expand(n, -1)

        def draw(seed: int, around: Tensor = around) -> Tensor:
            return conditional.sample(around, generator=randomness.generator(seed, "check"))

        z = _repeats(draw, repr(conditional), seed)
        _promise(
            z.shape == around.shape,
            f"{conditional!r} draws {tuple(z.shape)} for anchors {tuple(around.shape)}",
        )
        _promise(space.contains(z).all(), f"{conditional!r} draws points outside {space!r}")

        def log_prob(points: Tensor, anchor: Tensor = anchor) -> Tensor:
            return conditional.log_prob(points, anchor.to(points).expand_as(points))

        _follows(z.double(), log_prob, space, f"{conditional!r} around {anchor.tolist()}", seed)


def _repeats(draw: Callable[[int], Tensor], name: str, seed: int) -> Tensor:
    before = torch.random.get_rng_state()
    z = draw(seed)
    _promise(torch.equal(before, torch.random.get_rng_state()), f"{name} uses torch's global random state")
    _promise(torch.equal(z, draw(seed)), f"{name} draws differently from equal generators")
    _promise(not torch.equal(z, draw(seed + 1)), f"{name} draws the same from different generators")
    _promise(torch.isfinite(z).all(), f"{name} draws values that are not finite")
    return z


def _follows(z: Tensor, log_prob: Callable[[Tensor], Tensor], space: Space, name: str, seed: int) -> None:
    r"""Draws `z` from p against its claimed density: $E_p f = E_q[f\, p/q]$ for draws of a known, broader q.

    q is uniform where the space has a volume, and Laplace with twice the width of the draws elsewhere. The functions f
    are 1 (the normaliser) and cosines of random projections.
    """
    generator = randomness.generator(seed, "follow")
    n, dim = z.shape
    try:
        uniform: Uniform | None = Uniform(space)
    except BadInput:  # the space has no finite volume
        uniform = None
    if uniform is not None:
        points = uniform.sample(5 * n, generator=generator).double()
        log_q = uniform.log_prob(points)
    else:
        middle = z.median(0).values
        width = 2 * (z - middle).abs().mean(0)
        u = torch.rand(5 * n, dim, generator=generator, dtype=torch.float64) - 0.5
        step = u.sign() * -torch.log1p(-2 * u.abs())
        points = middle + width * step
        log_q = (-step.abs() - math.log(2) - width.log()).sum(-1)
    weight = (log_prob(points) - log_q).exp()
    _promise(torch.isfinite(log_prob(z)).all(), f"{name} draws points where its density is zero or not finite")
    spread = z.std(0).mean()
    directions = torch.randn(dim, 6, generator=generator, dtype=torch.float64) / spread
    for i in range(7):
        if i == 0:
            mine, theirs = torch.ones(n, dtype=torch.float64), weight
        else:
            mine, theirs = (z @ directions[:, i - 1]).cos(), weight * (points @ directions[:, i - 1]).cos()
        error = (mine.var() / n + theirs.var() / len(theirs)).sqrt()
        gap = (mine.mean() - theirs.mean()).abs()
        what = "does not integrate to 1" if i == 0 else "does not match its draws"
        _promise(
            gap <= 5 * error + 1e-6,
            f"the density of {name} {what}: off by {gap:.3g}, {gap / error:.1f} standard errors",
        )


def check_mixing(mixing: Mixing, dim: int = 4, *, seed: int = 0) -> None:
    """A mixing is built the same from equal generators, and its inverse, if it has one, gives the latents back."""
    dim = getattr(mixing, "dim", dim)
    mixers = [mixing.build(dim, randomness.generator(seed, "check")) for _ in range(2)]
    z = torch.randn(20, dim, generator=randomness.generator(seed, "latents"), dtype=torch.float64)
    x = mixers[0](z)
    _promise(x.shape[:1] == z.shape[:1], f"{mixing!r} changes the number of rows")
    _promise(mixers[0](z.view(4, 5, dim)).shape == (4, 5, *x.shape[1:]), f"{mixing!r} changes the axes of rows")
    _promise(torch.equal(x, mixers[1](z)), f"{mixing!r} is built differently from equal generators")
    inverse = getattr(mixers[0], "inverse", None)
    if inverse is not None:
        _promise(torch.allclose(inverse(x), z, atol=1e-9), f"the inverse of {mixing!r} does not give z back")


def check_process(process: Process, *, n: int = 32, seed: int = 0) -> None:
    """A process hands over batches of one shape, repeats with the generator, and keeps what its members promise."""
    name = repr(process)

    def draw(seed: int, n: int = n) -> Batch:
        return process.sample(n, generator=randomness.generator(seed, "check"))

    batch = draw(seed)
    views = process.views
    _repeats(lambda seed: encoder_input(draw(seed).x).double(), name, seed)
    _promise(batch.x.shape[:2] == (views, n), f"{name} says views={views}, but hands over x of {tuple(batch.x.shape)}")
    _promise(draw(seed, 2 * n).x.shape[2:] == batch.x.shape[2:], f"{name} changes the shape of a row between draws")
    if batch.z is not None:
        _promise(batch.z.shape[:2] == (views, n), f"{name} hands over {tuple(batch.z.shape)} latents for {n} rows")
        _promise(torch.isfinite(batch.z).all(), f"{name} hands over latents that are not finite")
        space = getattr(process, "space", None)
        _promise(space is None or space.contains(batch.z[0]).all(), f"{name} draws latents outside {space!r}")
    if batch.label is not None:
        _promise(batch.label.shape == (n,), f"{name} hands over labels of the shape {tuple(batch.label.shape)}")
        _promise(batch.label.dtype == torch.long, f"{name} hands over labels of {batch.label.dtype}, not whole numbers")
        labels = getattr(process, "labels", None)
        inside = labels is None or bool(((batch.label >= 0) & (batch.label < labels)).all())
        _promise(inside, f"{name} says labels={labels}, but hands over others")
    _promise(reseeded(process, process.seed) == process, f"{name} is not equal to itself with its own seed")
    held_out = getattr(process, "held_out", None)
    if held_out is not None:
        _promise(held_out != process, f"{name} holds nothing out: `held_out` is the process itself")
        check_process(held_out, n=n, seed=seed)


def check_encoder(encoder: nn.Module, x: Tensor) -> None:
    """An encoder gives every row k finite numbers that depend on this row alone, learns, and can be stacked over seeds.

    Args:
        encoder: `(rows, …) -> (rows, k)`. If it has a member `stacks` that is False, stacking is not tried.
        x: at least 4 rows of observations.
    """
    name, rows = type(encoder).__name__, encoder_input(x)
    module = copy.deepcopy(encoder).eval()
    h = module(rows)
    _promise(h.ndim == 2 and len(h) == len(rows), f"{name} makes {tuple(h.shape)} of {len(rows)} rows, not (rows, k)")
    _promise(torch.isfinite(h).all(), f"{name} gives values that are not finite")
    _promise(torch.equal(h, module(rows)), f"{name} gives different values for the same rows in evaluation mode")
    _promise(
        torch.allclose(module(rows[:2]), h[:2], rtol=1e-3, atol=1e-4 * float(h.detach().abs().max())),
        f"{name} makes the value of a row depend on the other rows in evaluation mode",
    )
    parameters = {key: p for key, p in module.named_parameters() if p.requires_grad}
    _promise(parameters, f"{name} has nothing to train")
    slopes = torch.autograd.grad(module(rows).square().sum(), list(parameters.values()), allow_unused=True)
    _promise(
        all(s is None or bool(torch.isfinite(s).all()) for s in slopes), f"{name} has a gradient that is not finite"
    )
    _promise(
        any(s is not None and bool(s.abs().max() > 0) for s in slopes), f"{name} does not depend on its parameters"
    )
    if not getattr(encoder, "stacks", True):
        return
    other = copy.deepcopy(module)
    with torch.no_grad():
        for p in other.parameters():
            p.mul_(1.01)
    stacked, buffers = torch.func.stack_module_state([module, other])

    def call(parameters: Any, buffers: Any) -> Tensor:
        return torch.func.functional_call(module, (parameters, buffers), (rows,))  # type: ignore[no-any-return]

    both = torch.func.vmap(call)(stacked, buffers)
    _promise(
        torch.allclose(both, torch.stack([h, other(rows)]), rtol=1e-3, atol=1e-4 * float(h.detach().abs().max())),
        f"{name} gives other values when seeds are stacked; set `stacks = False` on it",
    )


def check_objective(
    objective: Callable[[Tensor, Batch], Tensor], *, views: int = 2, n: int = 24, dim: int = 3, seed: int = 0
) -> None:
    """An objective is one finite number, differentiable, blind to the order of rows, and can be stacked over seeds."""
    generator = randomness.generator(seed, "check")
    h = torch.randn(3, views, n, dim, generator=generator, dtype=torch.float64)
    z = torch.randn(3, views, n, dim, generator=generator, dtype=torch.float64)
    label = torch.randint(4, (3, n), generator=generator)

    def value(h: Tensor, z: Tensor, label: Tensor) -> Tensor:
        return objective(h, Batch(x=z, z=z, label=label))

    name = repr(objective)
    points = h[0].clone().requires_grad_()
    loss = value(points, z[0], label[0])
    _promise(loss.ndim == 0, f"{name} returns the shape {tuple(loss.shape)}, not one number")
    _promise(torch.isfinite(loss), f"{name} is {loss.item()} on ordinary representations")
    (gradient,) = torch.autograd.grad(loss, points)
    _promise(torch.isfinite(gradient).all(), f"{name} has a gradient that is not finite")
    _promise(gradient.abs().max() > 0, f"{name} does not depend on the representation")
    _promise(torch.equal(loss, value(h[0], z[0], label[0])), f"{name} gives different values for the same rows")
    order = torch.randperm(n, generator=generator)
    shuffled = value(h[0][:, order], z[0][:, order], label[0][order])
    _promise(torch.isclose(loss, shuffled, rtol=1e-9), f"{name} depends on the order of rows")
    alone = torch.stack([value(h[s], z[s], label[s]) for s in range(3)])
    stacked = torch.func.vmap(value)(h, z, label)
    _promise(torch.allclose(alone, stacked, rtol=1e-9), f"{name} gives other values when seeds are stacked")


_CLASSES = (
    IDENTITY,
    PERMUTATION,
    SIGNED_PERMUTATION,
    SCALED_PERMUTATION,
    ORTHOGONAL,
    SIMILARITY,
    LINEAR,
    AFFINE,
    COMPONENTWISE,
)


def check_metric(metric: Any, *, dim: int = 4, n: int = 1500, seed: int = 0) -> None:
    """A metric keeps the promise of its `up_to` both ways.

    It is 1 for a perfect copy, unmoved by every map in its class, moved by maps of every class beyond it, near 0 for
    noise, honest about a duplicated coordinate, blind to the order of rows, and never gives a score for NaN.
    """
    generator = randomness.generator(seed, "check")
    z = torch.randn(n, dim, generator=generator, dtype=torch.float64)
    h = z + 0.3 * torch.randn(n, dim, generator=generator, dtype=torch.float64)
    name, up_to = repr(metric), metric.up_to
    _promise(abs(metric(z, z).value - 1) < 1e-6, f"{name} is {metric(z, z).value}, not 1, for a perfect copy")
    before = metric(z, h).value
    for kind in _CLASSES:
        if kind <= up_to:
            after = metric(z, _map_of(kind, dim, generator)(h)).value
            _promise(
                abs(after - before) < 1e-6,
                f"{name} moves from {before:.6f} to {after:.6f} under a map up to {kind}",
            )
    blind = (up_to, AFFINE) if up_to is LINEAR and getattr(metric, "shift", False) else (up_to,)
    for kind in _CLASSES:
        if not any(kind <= known for known in blind):
            moved = min(metric(z, _map_of(kind, dim, generator)(z)).value for _ in range(6))
            _promise(
                moved < 0.99,
                f"{name} claims to be blind only up to {up_to}, but no map up to {kind} moves it",
            )
    noise = metric(z, torch.randn(n, dim, generator=generator, dtype=torch.float64)).value
    _promise(noise < 0.2, f"{name} is {noise:.3f} for noise")
    copied = z.clone()
    copied[:, 1] = z[:, 0]
    with warnings.catch_warnings(action="ignore"):  # a metric may say that a direction is empty
        lost = metric(z, copied).value
    _promise(lost < 1 - 0.5 / dim, f"{name} does not notice that a latent was lost to a duplicate")
    order = torch.randperm(n, generator=generator)
    _promise(abs(metric(z[order], h[order]).value - before) < 0.05, f"{name} depends on the order of rows")
    broken = h.clone()
    broken[3, 1] = math.nan
    try:
        value = metric(z, broken).value
    except BadInput:
        return
    _promise(math.isnan(value), f"{name} gives the score {value} although the representation holds NaN")


def _map_of(kind: Equivalence, dim: int, generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    """A random map of a class that, as a rule, belongs to no tighter one."""
    options = {"generator": generator, "dtype": torch.float64}
    order = torch.randperm(dim, generator=generator)
    sign = 1 - 2 * torch.randint(2, (dim,), generator=generator).double()
    size = 0.5 + 2 * torch.rand(dim, **options)  # type: ignore[call-overload]
    square = torch.randn(dim, dim, **options)  # type: ignore[call-overload]
    rotation = torch.linalg.qr(square).Q
    full = rotation @ torch.diag(size) @ torch.linalg.qr(square.T).Q
    maps: dict[Equivalence, Callable[[Tensor], Tensor]] = {
        IDENTITY: lambda h: h,
        PERMUTATION: lambda h: h[:, order],
        SIGNED_PERMUTATION: lambda h: h[:, order] * sign,
        SCALED_PERMUTATION: lambda h: h[:, order] * sign * size,
        ORTHOGONAL: lambda h: h @ rotation.T,
        SIMILARITY: lambda h: h @ rotation.T * (1 + size[0]),
        LINEAR: lambda h: h @ full.T,
        AFFINE: lambda h: h @ full.T + 3 * size,
        COMPONENTWISE: lambda h: (h[:, order] * sign * size).exp(),
    }
    return maps[kind]
