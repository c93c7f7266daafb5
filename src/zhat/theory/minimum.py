r"""The lowest loss that a world and a batch allow, and how far from it a run stopped.

InfoNCE asks which of the rows of a batch is the positive of an anchor. Nobody answers better than with the
probabilities of the world itself: each candidate c weighs $r(c | a) = p(c | a) / p(c)$, the ratio of the conditional
and the marginal that the others were drawn from. So for every representation, in any number of dimensions,

$$L \ge E\Big[-\log \frac{r(b | a)}{r(b | a) + \sum_k r(a_k | a)}\Big],$$

a mean over batches of the world, estimated from drawn latents. Where the row itself is among its negatives and
nothing is more similar to it than itself (a norm always, a product on a sphere), the term of that self-pair cannot be
made small beside the positive's, and the floor is higher: the minimum over functions of r that stay below their value
at the row.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from zhat import _checks, randomness
from zhat.dgp import Around, Batch, Box, Pairs, Real, Sphere, VonMisesFisher, encoder_input
from zhat.encoders import OntoSphere
from zhat.errors import BadInput
from zhat.objectives import Dot, InfoNCE, NegativeLp
from zhat.results import Curve, Injectivity, Minimum
from zhat.theory.conditions import Setting, last_module, predicted_radius, predicted_stretch

QUERIES = 256  # anchors of a batch whose candidates are weighed
STRETCHES = tuple(2 ** (-k / 4) for k in range(13))  # scales of the true latents, in shares of the predicted one
KNOTS = 14  # of the function of one number that the floor is searched over
FAR = 0.25  # share of rows that count as near in the latents


def minimum(
    process: Any,
    objective: Any,
    encoder: nn.Module | None = None,
    *,
    batch: int = 6144,
    batches: int = 4,
    curve: Curve | None = None,
    seed: int = 0,
) -> Minimum | str:
    """The floor of the loss, the loss of the true latents, and that of an encoder; or why no floor is known.

    Args:
        process: `Pairs`.
        objective: `InfoNCE` in balance with the positive among its candidates.
        encoder: trained; None takes the end of the curve.
        batch: rows.
        batches: drawn ones.
        curve: of the training.
        seed: of the rows.
    """
    _checks.count(batch, "batch", least=2)
    if not isinstance(process, Pairs) or not isinstance(objective, InfoNCE):
        return f"it is known for Pairs with InfoNCE, not for {type(process).__name__} with {type(objective).__name__}"
    if objective.alignment_weight != 0.5 or not objective.include_positive:
        return "the loss is no classification where parts weigh differently or the positive is not among the candidates"
    if objective.against_positive and process.fresh_negatives:
        return "negatives drawn afresh are compared with the positive, whose law is not the one they were drawn for"
    latents: dict[float, list[Tensor]] = {}
    floors, losses = [], []
    for i in range(batches):
        drawn = process.sample(batch, generator=randomness.generator(seed + i, "minimum"))
        assert drawn.z is not None
        floors.append(_floor(process, objective, drawn.z.double()))
        for stretch in STRETCHES:
            ideal = _ideal(process, objective, drawn.z.double(), stretch)
            if ideal is not None:
                latents.setdefault(stretch, []).append(ideal)
        if encoder is not None:
            with torch.no_grad():
                h = torch.stack([encoder(encoder_input(x)) for x in drawn.x]).double()
            losses.append(_on_queries(objective, h))
    near, others = torch.cat([f[0] for f in floors]), torch.cat([f[1] for f in floors])
    every = _classified(near, others)
    in_batch = not process.fresh_negatives and not objective.against_positive
    if in_batch and objective.include_self_pair and _own_is_largest(objective, encoder):
        every = _with_self_pair(near, others)
    every = every - _averaged(objective, others.shape[1] - int(in_batch and not objective.include_self_pair))
    loss = float(torch.cat(losses).mean()) if losses else _end(curve)
    return Minimum(
        floor=float(every.mean()),
        error=float(every.std()) / math.sqrt(len(every)),
        latents=float(torch.cat(latents[1.0]).mean()) if latents else None,
        best=min((float(torch.cat(each).mean()) for each in latents.values()), default=None),
        loss=loss,
        measured=bool(losses),
        batch=batch,
    )


def _own_is_largest(objective: InfoNCE, encoder: Any) -> bool:
    """Whether a row is more similar to itself than to any other: always by a norm, by a product on a sphere."""
    if isinstance(objective.similarity, NegativeLp):
        return True
    return isinstance(encoder, nn.Module) and isinstance(last_module(encoder), OntoSphere)


def _end(curve: Curve | None) -> float | None:
    """The mean of the last tenth of the losses of a curve."""
    if curve is None or not curve.loss:
        return None
    last = curve.loss[-max(1, len(curve.loss) // 10) :]
    return sum(last) / len(last)


def _candidates(objective: InfoNCE, z: Tensor) -> tuple[Tensor, Tensor, Tensor, bool]:
    """Queries, their partners, keys, and whether the key of a query's own row is left out."""
    anchor, positive = z[0], z[1]
    if len(z) == 3:
        return anchor, positive, z[2], False
    return (positive, anchor, anchor, True) if objective.against_positive else (anchor, positive, anchor, True)


def _weights(process: Pairs, objective: InfoNCE, query: Tensor, candidates: Tensor) -> Tensor:
    """log p(candidate | query) / p(candidate) up to a constant for each query, `(queries, candidates)`."""
    law = process.conditional
    energy: Tensor
    own: Tensor | None = None  # minus the logarithm of the normaliser around each candidate, where it differs
    if isinstance(law, VonMisesFisher):
        radius = query.norm(dim=-1, keepdim=True)
        energy = law.concentration * (query / radius) @ (candidates / candidates.norm(dim=-1, keepdim=True)).T
    elif isinstance(law, Around) and isinstance(law.family.space, Box | Real):
        p, width = law.family.power, law.family.width
        energy = -torch.cdist(query / width, candidates / width, p=p).pow(p)
        own = law.log_prob(candidates, candidates)
    else:
        pairs = [(c, asked.expand_as(candidates)) for asked, c in ((q, candidates) for q in query)]
        if objective.against_positive:
            return torch.stack([law.log_prob(asked, c) for c, asked in pairs])
        return torch.stack([law.log_prob(c, asked) for c, asked in pairs]) - process.marginal.log_prob(candidates)
    if objective.against_positive:
        return energy if own is None else energy + own
    return energy - process.marginal.log_prob(candidates)


def _floor(process: Pairs, objective: InfoNCE, z: Tensor) -> tuple[Tensor, Tensor]:
    """The log weights of positives `(queries,)` and of the others `(queries, keys)` for some anchors of a batch."""
    query, partner, keys, skip = _candidates(objective, z)
    some = slice(0, min(QUERIES, len(query)))
    both = _weights(process, objective, query[some], torch.cat([partner[some], keys]))
    asked = both.shape[0]
    near, others = both[:, :asked].diagonal(), both[:, asked:]
    if skip:
        others = others.masked_fill(torch.eye(len(query), dtype=torch.bool)[some], -math.inf)
    return near, others


def _classified(near: Tensor, others: Tensor) -> Tensor:
    """The loss of the world's own probabilities, row by row."""
    return torch.logaddexp(torch.logsumexp(others, 1), near) - near


def _with_self_pair(near: Tensor, others: Tensor) -> Tensor:
    r"""The lowest loss where the row itself is among the negatives and no similarity exceeds that of a row to itself.

    With similarities $f \le 0$ relative to the row's own, the loss is $-f(b) + \log(1 + e^{f(b)} + \sum_k e^{f(a_k)})$.
    It is convex in f, so its minimum depends on a candidate through r(c | a) alone; that function of one number, linear
    between knots and rising, is found by descent.
    """
    peak = torch.cat([near[:, None], others], 1).amax(1)
    near, others = near - peak, others - peak[:, None]
    knots = torch.unique(torch.quantile(near, torch.linspace(0, 1, KNOTS, dtype=near.dtype)))
    knots = torch.cat([knots[:1] - 2 * (knots[-1] - knots[0] + 1), knots])
    steps = knots.diff().clone().add(1e-3).expm1().clamp_max(1e6).log().requires_grad_()  # softplus of these: identity
    top = torch.zeros((), dtype=near.dtype, requires_grad=True)
    least = float(knots[0])
    used = others.clamp_min(least)
    cell_near, cell_others = (torch.searchsorted(knots, x.contiguous()).clamp(1, len(knots) - 1) for x in (near, used))

    def curve(x: Tensor, cell: Tensor) -> Tensor:
        rises = torch.nn.functional.softplus(steps)
        heights = torch.cat([torch.zeros(1, dtype=x.dtype), rises.cumsum(0)]) - rises.sum() - top.square()
        share = (x - knots[cell - 1]) / (knots[cell] - knots[cell - 1])
        value: Tensor = heights[cell - 1] + share * (heights[cell] - heights[cell - 1])
        return value

    def loss() -> Tensor:
        f = curve(near, cell_near)
        rest = torch.logsumexp(torch.where(others.isinf(), -math.inf, curve(used, cell_others)), 1)
        return torch.logaddexp(torch.logaddexp(rest, f), torch.zeros_like(f)) - f

    descent = torch.optim.LBFGS([steps, top], max_iter=25, line_search_fn="strong_wolfe")

    def closure() -> Any:
        descent.zero_grad()
        value = loss().mean()
        value.backward()
        return value

    descent.step(closure)
    with torch.no_grad():
        return loss()


def _averaged(objective: InfoNCE, others: int) -> float:
    return math.log(others + 1) if objective.average_negatives else 0.0


def _ideal(process: Pairs, objective: InfoNCE, z: Tensor, stretch: float = 1.0) -> Tensor | None:
    """The loss of the true latents at the scale that theory predicts, times `stretch`; None where it predicts none."""
    setting = Setting(process, objective)
    if isinstance(objective.similarity, Dot):
        radius, space = predicted_radius(setting), process.space
        scale = radius / space.radius if radius is not None and isinstance(space, Sphere) else None
    else:
        scale = predicted_stretch(setting) if isinstance(process.conditional, Around) else None
    return None if scale is None else _on_queries(objective, scale * stretch * z)


def _on_queries(objective: InfoNCE, h: Tensor) -> Tensor:
    """The loss of the same anchors as the floor's, row by row."""
    query, partner, keys, skip = _candidates(objective, h)
    if not objective.against_positive:
        skip = skip and not objective.include_self_pair
    some = slice(0, min(QUERIES, len(query)))
    near = objective.similarity(query[some], partner[some]) / objective.temperature
    if isinstance(objective.similarity, Dot):
        others = query[some] @ keys.T / objective.temperature
    else:
        p = float(objective.similarity.p)
        others = -torch.cdist(query[some], keys, p=p).pow(p) / objective.temperature
    if skip:
        others = others.masked_fill(torch.eye(len(query), dtype=torch.bool)[some], -math.inf)
    spread = torch.logaddexp(torch.logsumexp(others, 1), near)
    return spread - near - _averaged(objective, len(keys) - int(skip))


def injectivity(process: Any, encoder: nn.Module, *, rows: int = 256, of: int = 2048, seed: int = 0) -> Injectivity:
    r"""Whether an encoder loses something along its data: the least stretch of $f \circ g$, and collisions.

    A singular value of the Jacobian near zero means that a direction of the latents leaves no trace in the
    representation there. On a sphere directions along its surface are asked. A collision is a row whose nearest
    neighbour in the representation is far away in the latents: f folds.

    Args:
        process: a world with known latents, whose `observe` can be differentiated.
        encoder: trained.
        rows: where Jacobians are taken.
        of: rows among which neighbours are looked for.
        seed: of the rows.
    """
    batch: Batch = process.sample(of, generator=randomness.generator(seed, "injectivity"))
    if batch.z is None or not hasattr(process, "observe"):
        raise BadInput("injectivity is asked of worlds with known latents, such as Pairs(...).")
    z = batch.z[0]

    def through(one: Tensor) -> Tensor:
        found: Tensor = encoder(encoder_input(process.observe(one[None])))[0]
        return found

    was = encoder.training
    encoder.eval()
    slopes = []
    for one in z[:rows]:
        slope = torch.autograd.functional.jacobian(through, one).detach()
        if isinstance(getattr(process, "space", None), Sphere):
            basis = torch.linalg.svd(one[None], full_matrices=True).Vh[1:]
            slope = slope @ basis.T
        slopes.append(torch.linalg.svdvals(slope.double()))
    with torch.no_grad():
        h = encoder(encoder_input(batch.x[0])).double()
    encoder.train(was)
    stretch = torch.stack(slopes)
    latent = torch.cdist(z.double(), z.double())
    nearest = (torch.cdist(h, h) + torch.diag(torch.full((of,), math.inf, dtype=torch.float64))).argmin(1)
    near = torch.quantile(latent[: min(of, 512)], FAR, dim=1)
    collided = latent[torch.arange(of), nearest][: len(near)] > near
    lost = max(0, z.shape[1] - int(isinstance(getattr(process, "space", None), Sphere)) - stretch.shape[1])
    return Injectivity(
        smallest=0.0 if lost else float(stretch.min()),
        typical=float(stretch[:, 0].median()),
        rows=len(stretch),
        collisions=float(collided.double().mean()),
        of=of,
    )
