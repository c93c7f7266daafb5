"""A gate: what an audit must show for a release to go on."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from zhat import _checks
from zhat.equivalence import Equivalence
from zhat.errors import BadInput, UnknownName
from zhat.files.reading import read_text, readable
from zhat.results import AuditMatrix, AuditResult, Condition, Gated, LayerAudit, ModelMatrix, Score, from_json
from zhat.results.audits import WHOLE

Audits = AuditResult | AuditMatrix | LayerAudit | ModelMatrix

_CLASSES = tuple(e.value for e in Equivalence if e <= Equivalence.AFFINE)
_SHOWN = 3  # failures named in one line
_NAMES = {
    "require": "the class of maps",
    "min": "R2",
    "max_condition": "the condition number",
    "min_recall": "recall",
    "baseline": "a baseline",
}


@dataclass(frozen=True)
class Gate:
    """Conditions on an audit; those that are None are not asked.

    A required class that explains little is worth little, so `require` alone also asks for an R2 of at least 0.95, the
    strength from which a verdict bears the name of its class. `min=0` asks for the class alone.

    Attributes:
        require: the loosest class allowed.
        min: the least held-out R2 of the class found, judged by the lower end of its interval.
        max_condition: the largest condition number of the map.
        min_recall: the least recall@k behind the map; the audit must have been asked for it.
        baseline: an earlier audit; the R2 of the class it found, and its recall@k, must not be worse now. A score is
            worse where the upper end of its interval now lies below the lower end of its interval then.

    Example:
        >>> Gate(require=Equivalence.AFFINE, min=0.98)
        Gate(require=AFFINE, min=0.98, max_condition=None, min_recall=None)
    """

    require: Equivalence | None = None
    min: float | None = None
    max_condition: float | None = None
    min_recall: float | None = None
    baseline: Audits | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("min", "max_condition", "min_recall"):
            value = getattr(self, name)
            if value is not None:
                _checks.settle(self, **{name: _checks.finite(value, name)})
        if self.require is not None and not self.require <= Equivalence.AFFINE:
            raise BadInput(f"a gate requires affine or a tighter class, but {self.require} came.")

    @property
    def least(self) -> float | None:
        """The R2 that is asked: `min`, or 0.95 where only a class was required."""
        return WHOLE if self.min is None and self.require is not None else self.min

    def __call__(self, result: Audits) -> tuple[bool, str]:
        """Whether the audit passes, and one line for the log; of several audits, every one must pass."""
        found = self.judge(result)
        return found.passed, found.line

    def judge(self, result: Audits) -> Gated:
        """What was asked, what came, and whether it passes; of several audits, every one must pass.

        Args:
            result: of `audit`, `audit_all`, `audit_models` or `audit_all_models`.
        """
        before = _beside(result, self.baseline)
        missing = [name for name in _NAMES if getattr(self, name) is None and not (name == "min" and self.require)]
        if isinstance(result, AuditResult):
            asked = tuple(self._conditions(result, before[0], ""))
            failed = [one.says for one in asked if not one.passed]
            not_asked = tuple(f"{_NAMES[name]}{_came(name, result)}" for name in missing)
            line = f"gate failed: {'; '.join(failed)}" if failed else f"gate passed: {self._passed(result, not_asked)}"
            return Gated(not failed, line, asked, not_asked)
        kind = "ordered pairs" if isinstance(result, AuditMatrix) else "layers"
        not_asked = tuple(_NAMES[name] for name in missing)
        conditions: list[Condition] = []
        lost = []
        for audit, earlier in zip(result.audits, before, strict=True):
            asked = tuple(self._conditions(audit, earlier, f"{audit.a} to {audit.b}"))
            conditions += asked
            failed = [one.says for one in asked if not one.passed]
            if failed:
                lost.append(f"{audit.a} to {audit.b}: {'; '.join(failed)}")
        more = f" | and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        of = f"{len(result.audits)} {kind}"
        line = f"gate passed: all {of}; {self._asked(not_asked)}"
        if lost:
            line = f"gate failed: {len(lost)} of {of} | {' | '.join(lost[:_SHOWN])}{more}"
        return Gated(not lost, line, tuple(conditions), not_asked)

    def _passed(self, result: AuditResult, not_asked: tuple[str, ...]) -> str:
        score = result.score
        value = "" if score is None else f", R2 {score.value:.4f}{_ends(score)}"
        return f"{result.verdict}{value}; {self._asked(not_asked)}"

    def _asked(self, not_asked: tuple[str, ...]) -> str:
        said = []
        if self.require is not None:
            said.append(str(self.require) if self.require is Equivalence.IDENTITY else f"{self.require} or tighter")
        if self.least is not None:
            said.append(f"R2 at least {self.least:g}{' (the default)' if self.min is None else ''}")
        if self.max_condition is not None:
            said.append(f"condition number at most {self.max_condition:g}")
        if self.min_recall is not None:
            said.append(f"recall at least {self.min_recall:g}")
        if self.baseline is not None:
            said.append("no score worse than the baseline")
        asked = f"asked: {', '.join(said)}" if said else "nothing was asked"
        return asked + (f"; not asked: {', '.join(not_asked)}" if not_asked else "")

    def _conditions(self, result: AuditResult, before: AuditResult | None, pair: str) -> Iterator[Condition]:
        """Each condition with what came."""
        score, fits = result.score, True
        if self.require is not None:
            fits = result.up_to is not None and result.up_to <= self.require
            says = f"required {self.require}, found {result.verdict}"
            yield Condition("require", str(self.require), result.verdict, fits, says, pair)
        if self.least is not None and (fits or self.min is not None):  # without a class there is no R2 of it
            low = None if score is None else min(score.value, score.value if score.low is None else score.low)
            default = " (the default)" if self.min is None else ""
            says = f"R2 must be at least {self.least:g}{default}, " + ("none found" if low is None else f"is {low:.4f}")
            yield Condition("min", self.least, low, low is not None and low >= self.least, says, pair)
        if self.max_condition is not None:
            is_now = "infinite" if result.condition is None else f"{result.condition:.4g}"
            passed = result.condition is not None and result.condition <= self.max_condition
            says = f"condition must be at most {self.max_condition:g}, is {is_now}"
            yield Condition("max_condition", self.max_condition, result.condition, passed, says, pair)
        if self.min_recall is not None:
            recall = result.searched
            is_now = "was not measured" if recall is None else f"is {recall.value:.4f}"
            value = None if recall is None else recall.value
            passed = value is not None and value >= self.min_recall
            says = f"recall must be at least {self.min_recall:g}, {is_now}"
            yield Condition("min_recall", self.min_recall, value, passed, says, pair)
        if before is not None:
            yield from _no_worse(result, before, pair)


def _no_worse(now: AuditResult, before: AuditResult, pair: str) -> Iterator[Condition]:
    """The scores of an earlier audit, each compared with the same one now."""
    for then, found in ((before.score, _same(before.score, now)), (before.searched, now.searched)):
        if then is None or (found is not None and found.name != then.name):
            continue
        if found is None and then is before.searched:
            continue  # recall was not asked for this time
        name = f"{then.name} up to {then.up_to}" if then is before.score else then.name
        least = then.value if then.low is None else then.low
        most = None if found is None else found.value if found.high is None else found.high
        is_now = "there is none now" if found is None else f"is {found.value:.4f}{_ends(found)}"
        says = f"{name} was {then.value:.4f}{_ends(then)} in the baseline, {is_now}"
        yield Condition(f"baseline, {name}", least, most, most is not None and most >= least, says, pair)


def _same(then: Score | None, now: AuditResult) -> Score | None:
    """The R2 of the same class now; none where these files have no such map, or nothing relates them."""
    if then is None or now.verdict in ("unrelated", "cannot tell"):
        return None
    return next((s for s in now.ladder if s.up_to is then.up_to), None)


def _ends(score: Score) -> str:
    return "" if score.low is None or score.high is None else f" [{score.low:.4f}, {score.high:.4f}]"


def _came(name: str, result: AuditResult) -> str:
    """What a condition would have looked at."""
    if name == "require":
        return f" ({result.verdict})"
    if name == "min":
        return "" if result.score is None else f" ({result.score.value:.4f})"
    if name == "max_condition":
        return " (infinite)" if result.condition is None else f" ({result.condition:.4g})"
    if name == "min_recall":
        return " (not measured)" if result.searched is None else f" ({result.searched.value:.4f})"
    return ""


def _beside(result: Audits, baseline: Audits | None) -> tuple[AuditResult | None, ...]:
    """The earlier audit of each pair."""
    now = (result,) if isinstance(result, AuditResult) else result.audits
    if baseline is None:
        return (None,) * len(now)
    before = (baseline,) if isinstance(baseline, AuditResult) else baseline.audits
    if type(baseline) is not type(result) or len(before) != len(now):
        raise BadInput(
            f"a baseline must be an audit of the same kind and size, but it is {type(baseline).__name__} of "
            f"{len(before)} and this one {type(result).__name__} of {len(now)}. Write it with: zhat audit … --json."
        )
    if all(one.score is None for one in before):
        raise BadInput("the baseline found no map, so no score can be worse than it. Take an audit that found one.")
    return before


def equivalence(name: str) -> Equivalence:
    """The class of that name, from identity to affine."""
    wanted = name.lower().replace("_", " ").replace("-", " ")
    if wanted not in _CLASSES:
        raise UnknownName("class of maps", name, _CLASSES)
    return Equivalence(wanted)


def read_baseline(path: Path | str) -> Audits:
    """An earlier audit, as `zhat audit --json` printed it.

    Args:
        path: the file.
    """
    path = Path(path)
    if not path.exists():
        raise BadInput(f"there is no baseline {path}. Write one with: zhat audit A B --json > {path.name}.")
    text = read_text(path, "be what zhat audit --json prints")
    try:
        found = from_json(text)
    except BadInput as error:
        raise BadInput(f"{path.name} must be what zhat audit --json prints, but it cannot be read ({error}).") from None
    if not isinstance(found, Audits):
        raise BadInput(f"{path.name} must be what zhat audit --json prints, but it holds {type(found).__name__}.")
    return found


def read_gate(path: Path | str) -> Gate:
    """A gate from a TOML file: `require = "affine"`, `min = 0.98`, `max_condition = 100`, `min_recall = 0.9`.

    Args:
        path: the file; the keys may stand in a table `[gate]`. A `baseline = "audit.json"` is looked for beside it.
    """
    path = Path(path)
    if not path.exists():
        raise BadInput(f'there is no gate {path}. Write one such as: require = "affine".')
    with readable(path, "be TOML"):
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    found = found.get("gate", found)
    if not isinstance(found, dict):
        raise BadInput(f"`gate` in {path.name} must be a table of conditions, but {found!r} came.")
    for name in found:
        if name not in _NAMES:
            raise UnknownName(f"condition in {path.name}", name, tuple(_NAMES))
    if not found:
        raise BadInput(f"{path.name} asks for nothing. Give at least one of {', '.join(_NAMES)}.")
    named = {}
    for name in ("require", "baseline"):
        named[name] = found.pop(name, None)
        if named[name] is not None and not isinstance(named[name], str):
            what = "the name of a class" if name == "require" else "the name of a file"
            raise BadInput(f"`{name}` in {path.name} must be {what}, but {named[name]!r} came.")
    return Gate(
        require=None if named["require"] is None else equivalence(named["require"]),
        baseline=None if named["baseline"] is None else read_baseline(path.parent / named["baseline"]),
        **found,
    )
