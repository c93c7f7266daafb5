"""A gate: what an audit must show for a release to go on."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from zhat import _checks
from zhat.equivalence import Equivalence
from zhat.errors import BadInput, UnknownName
from zhat.files.reading import readable
from zhat.results import AuditMatrix, AuditResult, LayerAudit

_CLASSES = tuple(e.value for e in Equivalence if e <= Equivalence.AFFINE)
_SHOWN = 3  # failures named in one line


@dataclass(frozen=True)
class Gate:
    """Conditions on an audit; those that are None are not asked.

    Attributes:
        require: the loosest class allowed.
        min: the least held-out R2 of the class found, judged by the lower end of its interval.
        max_condition: the largest condition number of the map.
        min_recall: the least recall@k behind the map; the audit must have been asked for it.

    Example:
        >>> Gate(require=Equivalence.AFFINE, min=0.98)
        Gate(require=AFFINE, min=0.98, max_condition=None, min_recall=None)
    """

    require: Equivalence | None = None
    min: float | None = None
    max_condition: float | None = None
    min_recall: float | None = None

    def __post_init__(self) -> None:
        for name in ("min", "max_condition", "min_recall"):
            value = getattr(self, name)
            if value is not None:
                _checks.settle(self, **{name: _checks.finite(value, name)})
        if self.require is not None and not self.require <= Equivalence.AFFINE:
            raise BadInput(f"a gate requires affine or a tighter class, but {self.require} came.")

    def __call__(self, result: AuditResult | AuditMatrix | LayerAudit) -> tuple[bool, str]:
        """Whether the audit passes, and one line for the log; of several audits, every one must pass."""
        if isinstance(result, AuditMatrix | LayerAudit):
            kind = "ordered pairs" if isinstance(result, AuditMatrix) else "layers"
            lost = [f"{a.a} to {a.b}: {'; '.join(self._failed(a))}" for a in result.audits if self._failed(a)]
            if not lost:
                return True, f"gate passed: all {len(result.audits)} {kind}"
            more = f" | and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
            shown = " | ".join(lost[:_SHOWN])
            return False, f"gate failed: {len(lost)} of {len(result.audits)} {kind} | {shown}{more}"
        failed = self._failed(result)
        if failed:
            return False, f"gate failed: {'; '.join(failed)}"
        value = "" if result.score is None else f", R2 {result.score.value:.4f}"
        return True, f"gate passed: {result.verdict}{value}"

    def _failed(self, result: AuditResult) -> list[str]:
        """The conditions that do not hold, in words."""
        failed = []
        score = result.score
        if self.require is not None and (result.up_to is None or not result.up_to <= self.require):
            failed.append(f"required {self.require}, found {result.verdict}")
        if self.min is not None:
            low = None if score is None else min(score.value, score.value if score.low is None else score.low)
            if low is None or low < self.min:
                failed.append(
                    f"R2 must be at least {self.min:g}, " + ("none found" if low is None else f"is {low:.4f}")
                )
        if self.max_condition is not None and (result.condition is None or result.condition > self.max_condition):
            is_now = "infinite" if result.condition is None else f"{result.condition:.4g}"
            failed.append(f"condition must be at most {self.max_condition:g}, is {is_now}")
        if self.min_recall is not None:
            recall = result.searched
            if recall is None or recall.value < self.min_recall:
                is_now = "was not measured" if recall is None else f"is {recall.value:.4f}"
                failed.append(f"recall must be at least {self.min_recall:g}, {is_now}")
        return failed


def equivalence(name: str) -> Equivalence:
    """The class of that name, from identity to affine."""
    wanted = name.lower().replace("_", " ").replace("-", " ")
    if wanted not in _CLASSES:
        raise UnknownName("class of maps", name, _CLASSES)
    return Equivalence(wanted)


def read_gate(path: Path | str) -> Gate:
    """A gate from a TOML file: `require = "affine"`, `min = 0.98`, `max_condition = 100`, `min_recall = 0.9`.

    Args:
        path: the file; the keys may stand in a table `[gate]`.
    """
    path = Path(path)
    if not path.exists():
        raise BadInput(f'there is no gate {path}. Write one such as: require = "affine".')
    with readable(path, "be TOML"):
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    found = found.get("gate", found)
    if not isinstance(found, dict):
        raise BadInput(f"`gate` in {path.name} must be a table of conditions, but {found!r} came.")
    known = ("require", "min", "max_condition", "min_recall")
    for name in found:
        if name not in known:
            raise UnknownName(f"condition in {path.name}", name, known)
    if not found:
        raise BadInput(f"{path.name} asks for nothing. Give at least one of {', '.join(known)}.")
    require = found.pop("require", None)
    if require is not None and not isinstance(require, str):
        raise BadInput(f"`require` in {path.name} must be the name of a class, but {require!r} came.")
    return Gate(require=None if require is None else equivalence(require), **found)
