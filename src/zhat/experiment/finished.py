"""What finished runs say of themselves, side by side: listed, filtered, sorted, summarised over seeds."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from zhat import runs
from zhat.errors import BadInput, CorruptRun, UnknownName
from zhat.results import Record, Score, describe


@dataclass(frozen=True)
class Finished:
    """One finished run in a listing; scores are in percent.

    Attributes:
        paper: the paper or sweep it belongs to, as its folder is called; empty where it belongs to none.
        part: the table or figure, likewise.
        row: the setting, as its folder is called.
        budget: how long it was trained, by name.
        seed: of world and encoder.
        setting: the setting, for a reader.
        measure: what the score is.
        score: by the protocol of the table; None where there is none.
        held_out: the same score on rows that the fit has not seen; of a run outside tables, R2 up to the loosest class.
        low: lower end of its 95% interval.
        high: upper end.
        seconds: wall time of the training this seed was part of.
        date: when it was finished.
        commit: of zhat, where it ran from a source tree.
        device: where it was trained.
        zhat: the version.
        folder: where it lies.
        classes: held-out R2 up to each class of maps, by the name of the class.
        readings: further numbers of the row, as the row's readings give them.
        settings: process, encoder, objective and budget, each as its repr.
    """

    paper: str
    part: str
    row: str
    budget: str
    seed: int
    setting: str
    measure: str
    score: float | None
    held_out: float | None
    low: float | None
    high: float | None
    seconds: float
    date: str
    commit: str
    device: str
    zhat: str
    folder: str
    classes: Mapping[str, float] = field(default_factory=dict)
    readings: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """A field by name; a class of maps or a reading likewise, None where this run has none of that name."""
        if name in FIELDS:
            return getattr(self, name)
        return {**self.classes, **self.readings}.get(name)


FIELDS = tuple(f.name for f in fields(Finished) if f.name not in ("classes", "readings", "settings"))


def finished(root: Path | str) -> tuple[tuple[Finished, ...], tuple[str, ...]]:
    """The finished runs under a folder, and a sentence for each that is damaged.

    Args:
        root: the folder of `zhat reproduce`, of `zhat sweep`, of a demo, or any other that holds run folders.
    """
    found, damaged = [], []
    for folder in runs.scan(Path(root)):
        try:
            found.append(_of(folder, Path(root), runs.glance(folder)))
        except CorruptRun as error:
            damaged.append(str(error))
    return tuple(found), tuple(damaged)


def _of(folder: Path, root: Path, record: Record) -> Finished:
    """A run, named by the folders between `runs` (or the folder that was asked for) and the run."""
    parts = folder.resolve().parts
    inside = len(root.resolve().parts)
    start = len(parts) - 1 - parts[::-1].index("runs") + 1 if "runs" in parts else inside
    *above, budget, _ = parts[min(start, len(parts) - 2) :]
    paper, part, row = ("", "", "", *above)[-3:]
    score, held_out = record.by_paper, record.held_out
    if held_out is None and record.learned is not None:
        held_out = record.learned.scores[-1]
    named = score or held_out
    about = record.provenance
    return Finished(
        paper=paper,
        part=part,
        row=row,
        budget=re.sub(r"-[0-9a-f]{8}$", "", budget),
        seed=record.seed,
        setting=record.name,
        measure="" if named is None else f"{named.name} up to {describe(named.up_to, named.shift)}",
        score=_percent(score, "value"),
        held_out=_percent(held_out, "value"),
        low=_percent(held_out, "low"),
        high=_percent(held_out, "high"),
        seconds=record.seconds,
        date=str(about.get("date", "")),
        commit=str(about.get("commit", "")),
        device=str(about.get("device", "")),
        zhat=str(about.get("zhat", "")),
        folder=str(folder),
        classes={s.up_to.name.lower(): round(100 * s.value, 4) for s in record.learned or ()},
        readings={name: by_paper for name, (by_paper, _) in record.readings.items()},
        settings=record.settings,
    )


def _percent(score: Score | None, name: str) -> float | None:
    value = getattr(score, name, None)
    return None if value is None else round(100 * value, 4)


_CONDITION = re.compile(r"\s*([^<>=!]+?)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*")


def where(found: Iterable[Finished], conditions: Sequence[str]) -> tuple[Finished, ...]:
    """The runs that meet every condition.

    Args:
        found: some runs.
        conditions: each a field, one of `= != < <= > >=`, and a value: `score>=90`, `row=T2.*`, `date>=2026-11-01`.
            With `=` and `!=`, a `*` in a text stands for anything. A run without that number does not meet a condition.
    """
    found = tuple(found)
    for condition in conditions:
        parts = _CONDITION.fullmatch(condition)
        if parts is None:
            raise BadInput(
                f"a condition is a field, one of = != < <= > >= and a value, such as score>=90, but {condition!r} came."
            )
        name, sign, value = parts.groups()
        known(found, name)
        found = tuple(run for run in found if _meets(run[name], sign, value, condition))
    return found


def known(found: Sequence[Finished], name: str) -> str:
    """That name, if it is a field, a class of maps or a reading of one of these runs."""
    others = dict.fromkeys(other for run in found for other in (*run.classes, *run.readings))
    if name not in FIELDS and name not in others:
        raise UnknownName("field", name, (*FIELDS, *others))
    return name


def _meets(there: Any, sign: str, value: str, condition: str) -> bool:
    if there is None:
        return False
    if isinstance(there, str):
        if sign in ("=", "!="):
            return fnmatchcase(there, value) is (sign == "=")
        left, right = there, value
    else:
        try:
            left, right = there, float(value)  # type: ignore[assignment]
        except ValueError:
            raise BadInput(f"the condition {condition!r} compares a number, so it ends in one.") from None
    return {"=": left == right, "!=": left != right, "<": left < right, "<=": left <= right}.get(
        sign, left > right if sign == ">" else left >= right
    )


def ordered(found: Sequence[Finished], by: str) -> tuple[Finished, ...]:
    """Sorted by a field, from the largest down where a minus stands before it; runs without that number come last."""
    name = known(found, by.removeprefix("-"))
    have = [run for run in found if run[name] is not None]
    have.sort(key=lambda run: _natural(run[name]), reverse=by.startswith("-"))
    return (*have, *(run for run in found if run[name] is None))


def _natural(value: Any) -> Any:
    """T2.10 comes after T2.9."""
    if not isinstance(value, str):
        return value
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", value) if part]


@dataclass(frozen=True)
class Together:
    """Some runs that are alike in some fields, most often the seeds of a setting.

    Attributes:
        alike: those fields and what they say.
        runs: how many there are.
        means: mean of a number over the runs that have it, by the number's name.
        stds: its standard deviation over them; None for one run.
    """

    alike: Mapping[str, Any]
    runs: int
    means: Mapping[str, float]
    stds: Mapping[str, float | None]


def together(found: Sequence[Finished], by: Sequence[str], numbers: Sequence[str]) -> tuple[Together, ...]:
    """Runs summarised over everything but the fields named.

    Args:
        found: some runs.
        by: fields that tell groups apart, for instance `("row", "budget")`.
        numbers: which numbers to average.
    """
    groups: dict[tuple[Any, ...], list[Finished]] = {}
    for run in found:
        groups.setdefault(tuple(run[known(found, name)] for name in by), []).append(run)
    out = []
    for key, members in groups.items():
        values = {n: [float(run[n]) for run in members if run[n] is not None] for n in numbers}
        out.append(
            Together(
                dict(zip(by, key, strict=True)),
                len(members),
                {n: statistics.fmean(v) for n, v in values.items() if v},
                {n: statistics.stdev(v) if len(v) > 1 else None for n, v in values.items() if v},
            )
        )
    return tuple(out)


def differences(found: Sequence[Finished]) -> dict[str, dict[str, list[str]]]:
    """What differs between the settings of some runs: for each setting its values, and the rows that have them.

    What all values begin and end with is left out.
    """
    out = {}
    for key in dict.fromkeys(key for run in found for key in run.settings):
        values: dict[str, dict[str, None]] = {}
        for run in found:
            values.setdefault(str(run.settings.get(key, "")), {})[run.row] = None
        if len(values) > 1:
            out[key] = {short: list(rows) for short, rows in zip(_middles(list(values)), values.values(), strict=True)}
    return out


def _middles(texts: Sequence[str]) -> list[str]:
    """Each text without what all of them begin and end with, cut between words."""
    words = [re.findall(r"[\w.]+|\W", text) for text in texts]
    most = min(map(len, words))
    start = next((i for i in range(most) if len({w[i] for w in words}) > 1), most)
    end = next((i for i in range(most - start) if len({w[-1 - i] for w in words}) > 1), most - start)
    while start and words[0][start - 1] not in "(, ":  # keep the name before an equal sign
        start -= 1
    return [("…" * bool(start)) + "".join(w[start : len(w) - end]) + "…" * bool(end) for w in words]
