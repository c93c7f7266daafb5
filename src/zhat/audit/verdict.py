r"""The verdict on two matrices of embeddings: the tightest class of maps that holds, by a statistical rule.

1. For each class the best map is fitted on half of the rows and read on the other half, in the same folds.
2. A class is **related** if its held-out R2 is above 0 and above chance, at a level of 0.1%.
3. A class is **refuted** if a looser class loses less, by more than 1% of what the looser one leaves: in the mean over
   folds or in almost every fold, each at a level of 1%; or if it leaves ten times as much in each of the folds, which
   says enough where they are few.
4. The tightest class that is related and not refuted wins, if every looser class had rows enough to refute it, or if it
   leaves less than 0.1% to explain. Otherwise these rows **cannot tell**.
5. Where a held-out nonlinear probe explains more than 1% of the variance beyond the winner, at 0.1%, the relation is
   **nonlinear**; also where no class is related but the probe or shared neighbours are.
6. The share of the variance that the winner explains on held-out rows names the verdict: at least 95%, the class itself
   ("affine"); at least half, "partly affine"; less than half, **weakly related**, whatever the class. Of a nonlinear
   relation the better one of the affine map and the probe is asked, and less than half is weakly related, too.
7. Where the sampled rows are of two kinds, the one explained by a map and the other by another map or by none
   (`zhat.audit.mixture`), the verdict is **mixed**, whatever all rows together would give, and each part is audited
   by itself.
8. Nothing related, with rows enough for an affine map: **unrelated**; but where one fold holds more than half of a
   column's variance, on average over columns, a few wild rows decide, and these rows cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import torch
from scipy import stats
from torch import Tensor

from zhat import _checks
from zhat._checks import constant
from zhat.audit import beyond, oddities
from zhat.audit.adapter import Adapter
from zhat.audit.ladder import Step, loss, steps
from zhat.audit.mixture import parts, share_of
from zhat.audit.rows import Seen, look
from zhat.equivalence import AFFINE, IDENTITY, Equivalence
from zhat.errors import BadInput, RunFailed, TooFewRows
from zhat.files import Embeddings, embeddings, joined
from zhat.metrics import Alignment, Moments, align
from zhat.metrics.similarity import canonical_correlations
from zhat.metrics.spectrum import TINY
from zhat.metrics.uncertainty import student
from zhat.results import AuditResult, Mixture, Profile, Score, letter, strength
from zhat.runs import stamp

RELATED = 0.998  # two-sided levels of Student's intervals over folds
REFUTED = 0.98
SLACK = 0.01
FAR = 10.0
NOTHING_LEFT = 1e-3
ROUNDING = 1e-9
BEND = 0.01
WILD = 0.5
FEWEST = 20
NEGLIGIBLE = 1e-4  # rows of which one map leaves less than this share of the variance follow one map
_GROUPS = 32  # of columns, in the map of residuals


@dataclass(frozen=True)
class Found:
    """A verdict before it is dressed: what, in which class, why, rows needed, and what else is to be said."""

    verdict: str
    up_to: Equivalence | None
    because: str
    rows_needed: int | None = None
    remark: str = ""


@dataclass(frozen=True, eq=False)
class Examined:
    """An audit with the maps it fitted.

    Attributes:
        result: plain data.
        seen: what the pass has kept.
        steps: every class with its map.
        parts: the audits of the two kinds of sampled rows, the larger part first; empty where there is one kind.
    """

    result: AuditResult
    seen: Seen
    steps: tuple[Step, ...]
    parts: tuple[Examined, ...] = ()

    def adapter(self) -> Adapter:
        """The map of the class found, fitted on all rows; the best affine one where the relation is nonlinear."""
        score = self.result.score
        if score is None:
            raise RunFailed(f"there is no map to keep: {self.result.sentence}")
        whole = reduce(add, self.seen.read, self.seen.fit)
        found = align(whole, score.up_to)
        loses = self.result.condition is None or self.result.dim_a != self.result.dim_b
        return Adapter(
            found.matrix,
            whole.mean_h,
            found(whole.mean_h),
            None if loses else torch.linalg.inv(found.matrix),
            score.up_to,
            score.value,
            math.sqrt(max(0.0, 1 - score.value)),
            self.result.a,
            self.result.b,
            whole.n,
            beyond.has_unit_length(self.seen.target),
            beyond.has_unit_length(self.seen.source),
        )

    def recall(self, k: int = 10, *, metric: str = "distance") -> Score:
        """Expected recall@k of a search among old rows behind the map, against exact search among new ones.

        Args:
            k: neighbours asked for.
            metric: what the search orders rows by: "cosine", "dot" or "distance".
        """
        return beyond.recall(self.seen, self._map(), k, metric)

    def searched(self, k: int = 10, *, metric: str = "distance") -> Examined:
        """The same with recall@k among the scores of the result, and all recalls by that metric."""
        found = self.recall(k, metric=metric)
        recalls = beyond.recalls(self.seen, self._map(), metric)
        shown = (*self.result.beyond, found)
        return replace(self, result=replace(self.result, beyond=shown, searched=found, recall=recalls))

    def _map(self) -> Alignment:
        """The map of the class found."""
        score = self.result.score
        if score is None:
            raise RunFailed(f"there is no map to search behind: {self.result.sentence}")
        return next(s.found for s in self.steps if s.up_to is score.up_to)


def audit(
    a: Any,
    b: Any,
    *,
    key: str | None = None,
    ids: Any = None,
    seed: int = 0,
    among: int = 1,
    executor: Executor | None = None,
    device: str = "cpu",
) -> AuditResult:
    """Say up to which class of maps `b` is `a`, or that nothing can be said.

    Args:
        a: embeddings to map from: an array `(rows, k)`, a file or a folder of shards.
        b: embeddings of the same rows to map to, `(rows, d)`.
        key: which array, for files that hold several.
        ids: joins rows of different order: the name of a key or column in both, or a pair (ids of a, ids of b).
        seed: of the sample and the chance level.
        among: how many pairs are searched for a relation, this one among them; the levels at which a relation is
            believed are divided by it (Bonferroni).
        executor: where the pass over the rows runs, a task for each stretch of them: anything with `submit`, as in
            `concurrent.futures`. None runs it here. The numbers do not depend on it.
        device: where the sums of the pass are taken, such as "cuda"; in float64 everywhere.

    Example:
        >>> x = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
        >>> audit(x, x[:, [2, 0, 1]]).verdict
        'permutation'
    """
    return examine(a, b, key=key, ids=ids, seed=seed, among=among, executor=executor, device=device).result


def examine(
    a: Any,
    b: Any,
    *,
    key: str | None = None,
    ids: Any = None,
    seed: int = 0,
    among: int = 1,
    executor: Executor | None = None,
    device: str = "cpu",
) -> Examined:
    """The audit with its maps, for an adapter or recall; the arguments are those of `audit`."""
    _checks.device(device)
    source, target = opened((a, b), key, ids)
    seen = look(source, target, seed=seed, executor=executor, device=device)
    return examined(seen, source, target, seed, among=among)


def opened(sources: Sequence[Any], key: str | None, ids: Any) -> tuple[Embeddings, ...]:
    """Embeddings with the same rows in the same order, under different names."""
    if len(sources) < 2:
        raise BadInput(f"an audit compares at least two matrices of embeddings, but {len(sources)} came.")
    each = [ids] * len(sources) if ids is None or isinstance(ids, str | Path) else list(ids)
    if len(each) != len(sources):
        raise BadInput(f"`ids` is one name or one for each of {len(sources)} inputs, but {len(each)} came.")
    names = ["" if _is_path(source) else chr(ord("a") + i) for i, source in enumerate(sources)]
    read = [embeddings(s, key=key, ids=i, name=n) for s, i, n in zip(sources, each, names, strict=True)]
    found = _told_apart(joined(*read))
    if found[0].rows < FEWEST:
        raise TooFewRows(
            f"an audit needs at least {FEWEST} rows in {'both' if len(found) == 2 else 'all'} files, but "
            f"{found[0].rows} came.",
            needed=FEWEST,
        )
    return found


def examined(
    seen: Seen, source: Embeddings, target: Embeddings, seed: int, *, look_for_parts: bool = True, among: int = 1
) -> Examined:
    """The audit of what a pass over two files has kept.

    Args:
        seen: what it has kept.
        source: the files it was over.
        target: the other one.
        seed: of the chance level.
        look_for_parts: whether to look for two kinds of rows.
        among: how many pairs are searched for a relation.
    """
    whole = reduce(add, seen.read, seen.fit)
    collapsed = _still(source, target, whole)
    climbed: tuple[Step, ...] = ()
    seen_beyond: tuple[Score, ...] = ()
    if collapsed:
        found = _collapsed(collapsed, seen.same)
    elif _still(source, target, seen.fit) or _still(source, target, reduce(add, seen.read)):
        found = Found("cannot tell", None, f"there are only {seen.distinct} different rows")
    else:
        climbed = steps(seen.fit, seen.read, effective=seen.effective, seed=seed, among=among)
        found, seen_beyond = _decide(seen, climbed, seed, among)
    result = _dressed(found, seen, climbed, seen_beyond, source, target, whole, seed)
    one_map = max((step.score.value for step in climbed), default=0.0) >= 1 - NEGLIGIBLE
    if not look_for_parts or not climbed or seen.same or one_map:
        return Examined(result, seen, climbed)
    places = seen.fresh()
    apart = parts(seen.source[places], seen.target[places], seen.index[places])
    if apart is None:
        return Examined(result, seen, climbed)
    places = places[apart.looked]
    kinds = tuple(_alone(seen, places[mine], source, target, seed) for mine in (~apart.rest, apart.rest))
    mixed = _mixture(seen, places, apart.rest, source, kinds)
    found = Found("mixed", None, mixed.sentence)
    result = _dressed(found, seen, climbed, seen_beyond, source, target, whole, seed)
    return Examined(replace(result, mixed=mixed), seen, climbed, kinds)


def _alone(seen: Seen, rows: Tensor, source: Embeddings, target: Embeddings, seed: int) -> Examined:
    """The audit of some of the sampled rows."""
    one, other = (embeddings(x[rows].numpy(), name=e.name) for x, e in ((seen.source, source), (seen.target, target)))
    return examined(look(one, other, seed=seed), one, other, seed, look_for_parts=False)


def _mixture(seen: Seen, places: Tensor, rest: Tensor, source: Embeddings, kinds: tuple[Examined, ...]) -> Mixture:
    share, low, high = share_of(rest)
    first, second = (e.result for e in kinds)
    return Mixture(
        share=share,
        low=low,
        high=high,
        n=len(rest),
        rows=tuple(_name(source, int(seen.index[place])) for place in places[rest].tolist()),
        verdicts=(first.verdict, second.verdict),
        explained=(first.explained, second.explained),
    )


def _name(source: Embeddings, row: int) -> str:
    return str(row if source.ids is None else source.ids[row])


def _still(source: Embeddings, target: Embeddings, moments: Moments) -> list[str]:
    """The names of those that do not vary at all."""
    return [e.name for e, vary in zip((target, source), moments.varies(), strict=True) if not bool(vary.any())][::-1]


def _is_path(source: Any) -> bool:
    return not hasattr(source, "shape")


def _told_apart(sources: Sequence[Embeddings]) -> tuple[Embeddings, ...]:
    """Under different names: those that share one get a letter as well."""
    names = [s.name for s in sources]
    return tuple(
        s if names.count(s.name) == 1 else replace(s, name=f"{s.name} ({letter(i)})") for i, s in enumerate(sources)
    )


def _collapsed(names: list[str], same: bool) -> Found:
    if same:
        return Found("identity", IDENTITY, "the same numbers, but every row is the same")
    return Found("cannot tell", None, f"every row of {' and of '.join(names)} is the same")


def _decide(seen: Seen, climbed: tuple[Step, ...], seed: int, among: int) -> tuple[Found, tuple[Score, ...]]:
    loosest, level = climbed[-1], 1 - (1 - RELATED) / among
    if seen.same:
        return Found("identity", IDENTITY, "the same numbers in every row"), ()
    candidates = [s for s in climbed if _related(s, level) and not any(_refutes(t, s) for t in climbed)]
    probe = beyond.bending(seen, loosest.found) if loosest.enough else None
    near = beyond.neighbours(seen, seed=seed)
    shown = tuple(s for s in (probe[0] if probe else None, near) if s is not None)
    if not candidates:
        return _nothing_linear(seen, climbed, probe, near, level), shown
    best = candidates[0]
    left = float(best.losses.mean())
    unsure = [t for t in climbed if (t.up_to > best.up_to or t is best) and not t.enough]
    if unsure and left > NOTHING_LEFT:
        because = f"{seen.effective:,} rows show a relation, but cannot tell whether it is up to {best.up_to} or looser"
        return Found("cannot tell", None, because, max(t.needed for t in unsure)), shown
    if probe is not None and left > BEND and student(probe[1], level)[0] > BEND:
        return _bent(loosest, probe[0]), shown
    share = f"it explains {_percent(best.score.value)} of the variance on held-out rows"
    if strength(best.score.value) == "weak":
        share = (
            f"the best map, up to {best.up_to}, explains {_percent(best.score.value)} of the variance on held-out rows"
        )
    elif best.up_to is IDENTITY:
        share = f"the same numbers explain {_percent(best.score.value)} of the variance on held-out rows"
    remark = ""
    if probe is not None and left > NOTHING_LEFT and student(probe[1], level)[0] > 0.1 * min(left, BEND):
        remark = (
            f"the relation bends slightly: a nonlinear probe explains a further {_percent(float(probe[1].mean()))} of "
            f"the variance; it is called nonlinear where more than {_percent(BEND)} is certain"
        )
    return Found(best.up_to.value, best.up_to, share, remark=remark), shown


def _related(step: Step, level: float) -> bool:
    """Whether the held-out R2 is above 0 and above chance beyond doubt."""
    chance = step.score.chance_high if step.score.chance_high is not None else 0.0
    return 1 - student(step.ratios, level)[1] > max(0.0, chance)


def _refutes(looser: Step, tight: Step) -> bool:
    """Whether the looser class loses less beyond doubt, and by enough to matter: in the mean, or in almost every fold.

    The mean has the power where folds are alike, the count of folds where one of them is wild. Where folds are few
    neither has much; but if the tight class held, both would leave the same noise in each fold, not ten times as much.
    """
    if not looser.up_to > tight.up_to:
        return False
    if len(tight.losses) > 1 and bool((tight.losses > FAR * looser.losses + ROUNDING).all()):
        return True
    matters = max(SLACK * float(looser.losses.mean()), ROUNDING)
    if student(tight.losses - looser.losses, REFUTED)[0] > matters:
        return True
    worse = int((tight.losses > (1 + SLACK) * looser.losses + ROUNDING).sum())
    return float(stats.binom.sf(worse - 1, len(tight.losses), 0.5)) < (1 - REFUTED) / 2


def _nothing_linear(
    seen: Seen, climbed: tuple[Step, ...], probe: tuple[Score, Tensor] | None, near: Score | None, level: float
) -> Found:
    loosest = climbed[-1]
    shared = near is not None and near.chance_high is not None and _low(near, level) > near.chance_high
    if not loosest.enough:
        because = (
            f"{seen.effective:,} rows are too few for maps from {loosest.found.matrix.shape[1]} to "
            f"{loosest.found.matrix.shape[0]} dimensions" + (", though neighbours agree" if shared else "")
        )
        return Found("cannot tell", None, because, loosest.needed)
    at_most = max(0.0, 1 - student(loosest.ratios, level)[0])
    if loosest.wildest > WILD:
        because = (
            f"one of {len(seen.read)} folds holds {_percent(loosest.wildest)} of a column's variance, so a few rows "
            "decide"
        )
        return Found("cannot tell", None, because)
    if probe is not None and student(probe[1], level)[0] > 0 and (probe[0].low or 0) > 0:
        return _bent(loosest, probe[0])
    if shared:
        assert near is not None
        because = (
            f"rows share {_percent(near.value)} of their nearest neighbours, {_percent(near.chance or 0)} by chance"
        )
        return Found("nonlinear", None, because)
    because = f"no map explains more than chance; an affine one at most {_percent(at_most)} of the variance"
    return Found("unrelated", None, because)


def _low(near: Score, level: float) -> float:
    """The end of the interval at the level of a relation, from the 95% one; twice as far for one pair."""
    reach = 2 * float(stats.norm.isf((1 - level) / 2) / stats.norm.isf((1 - RELATED) / 2))
    return near.value - reach * (near.value - (near.low if near.low is not None else near.value))


def _bent(affine: Step, probe: Score) -> Found:
    because = (
        f"the best one explains {_percent(max(0.0, affine.score.value))} of the variance on held-out rows, "
        f"a nonlinear probe {_percent(probe.value)}"
    )
    return Found("nonlinear", None, because)


def _percent(share: float) -> str:
    """A share in percent that never says 100 for less than all."""
    if share >= 1 - 1e-9:
        return "100%"
    for digits in (1, 2, 3, 4, 5, 6, 7):
        text = f"{100 * share:.{digits}f}%"
        if not text.startswith("100."):
            return text
    return "99.9999999%"


def _dressed(
    found: Found,
    seen: Seen,
    climbed: tuple[Step, ...],
    seen_beyond: tuple[Score, ...],
    source: Embeddings,
    target: Embeddings,
    whole: Moments,
    seed: int,
) -> AuditResult:
    rank_source = oddities.rank(whole.hh, whole.mean_h, whole.n, source.precision)
    rank_target = oddities.rank(whole.zz, whole.mean_z, whole.n, target.precision)
    wanted = AFFINE if found.verdict in ("nonlinear", "mixed") else found.up_to
    step = next((s for s in climbed if s.up_to is wanted), None)
    explained = None if step is None else step.score.value
    if explained is not None and found.verdict == "nonlinear":
        explained = max(0.0, explained, *(s.value for s in seen_beyond if s.name == beyond.PROBE))
    spectrum: tuple[float, ...] = ()
    condition = None
    if step is not None:
        values = torch.linalg.svdvals(step.found.matrix)
        spectrum = tuple(float(v) for v in values)
        if rank_source <= rank_target and float(values[-1]) > 1e-12 * len(values) * float(values[0]):
            condition = float(values[0] / values[-1])
    drift_mean = drift_covariance = None
    if source.dim == target.dim and float(whole.hh.trace()) > 0:
        drift_mean = float((whole.mean_z - whole.mean_h).norm() / (whole.hh.trace() / whole.n).sqrt())
        drift_covariance = _norm(whole.zz - whole.hh) / _norm(whole.hh)
    affine = climbed[-1] if climbed else None
    return AuditResult(
        verdict=_named(found.verdict, explained),
        up_to=found.up_to,
        because=found.because,
        a=source.name,
        b=target.name,
        n=seen.rows,
        effective=seen.effective,
        dim_a=source.dim,
        dim_b=target.dim,
        rank_a=rank_source,
        rank_b=rank_target,
        ladder=Profile(tuple(s.score for s in climbed)),
        beyond=seen_beyond,
        rows_needed=found.rows_needed,
        directions=directions(seen) if affine is not None and affine.enough else None,
        spectrum=spectrum,
        condition=condition,
        worst=_worst(seen, step.found, source) if step is not None else (),
        drift_mean=drift_mean,
        drift_covariance=drift_covariance,
        notes=(
            *oddities.notes(seen, source, target, rank_source, rank_target, whole),
            *([found.remark] if found.remark else []),
        ),
        provenance={**stamp(seed), "precision": f"{source.precision}, {target.precision}"},
        residuals=_residuals(seen, step.found) if step is not None else (),
        recall=beyond.recalls(seen, step.found) if step is not None else (),
        explained=explained,
        strength=None if explained is None else strength(explained),
    )


def _named(kind: str, explained: float | None) -> str:
    """The word for a relation of that kind which explains so much."""
    if explained is None or strength(explained) == "whole" or kind == "mixed":
        return kind
    if strength(explained) == "weak":
        return "weakly related"
    return kind if kind == "nonlinear" else f"partly {kind}"


def _norm(scatter: Tensor) -> float:
    """The Frobenius norm, also where squares of a scatter leave the range of float64."""
    most = scatter.abs().amax().clamp_min(TINY)
    return float(most * (scatter / most).norm())


def _residuals(seen: Seen, found: Alignment) -> tuple[tuple[float, ...], ...]:
    """What the map leaves in each fold and each column, or in groups of neighbouring columns where there are many."""
    whole = reduce(add, seen.read)
    left = torch.stack([loss(m, found, whole) for m in seen.read])
    groups = left.tensor_split(min(_GROUPS, left.shape[1]), dim=1)
    by_group = torch.stack([g.mean(1) for g in groups], 1)
    return tuple(tuple(float(v) for v in fold) for fold in by_group)


def directions(seen: Seen) -> int:
    """Canonical directions, found on some rows, that share more than half of their variance on the others."""
    fit, read = seen.fit, reduce(add, seen.read)
    rho = canonical_correlations(fit, read, fit.swapped().spectrum().white, fit.spectrum().white)
    return int((rho > math.sqrt(0.5)).sum())


def _worst(seen: Seen, found: Alignment, source: Embeddings) -> tuple[tuple[str, float], ...]:
    held = torch.nonzero(seen.held_out).flatten()
    kept = ~constant(seen.target)
    off = ((seen.target - found(seen.source))[held][:, kept] / seen.target.std(0)[kept]).square().mean(-1).sqrt()
    top = off.topk(min(5, len(off)))
    rows = [int(seen.index[held[i]]) for i in top.indices.tolist()]
    names = [_name(source, row) for row in rows]
    return tuple(zip(names, top.values.tolist(), strict=True))
