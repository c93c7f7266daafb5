"""What is to be run: rows, budgets, tables and figures, with the published numbers beside them. Data, no machinery."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from zhat.errors import UnknownName
from zhat.experiment.readings import Reading
from zhat.experiment.scoring import Measure
from zhat.fresh import Fresh, describe
from zhat.results import Published
from zhat.training import Constant, Muon

if TYPE_CHECKING:
    from zhat.experiment.family import Family


@dataclass(frozen=True)
class Budget:
    """How long and how fast to train, and on how many rows to score.

    Attributes:
        name: "smoke", "fast", "paper" or another word; it becomes part of a path.
        steps: optimiser steps.
        batch: rows in each step, for each seed.
        lr: Adam's learning rate.
        schedule: factor of the learning rate, a function of `(step, steps)`.
        sharpness: factor of the representation inside the loss, a function of `(step, steps)`, or None.
        lr_scale: factors for parameters by name, as pairs: `(("bound", 100.0),)`.
        betas: Adam's averaging factors.
        precision: of the encoder's matrix products on a GPU; a CPU uses float32.
        seeds: how many seeds by default.
        batches: how many batches of fresh rows the paper's score is averaged over.
        rows: rows in each of them.
        profile_rows: rows for the profile of classes; half of them are held out.
        judged: whether scores are worth comparing with published ones; False for budgets that only try the machinery.
        muon: how to update the weights of linear layers instead of by Adam.
    """

    name: str
    steps: int
    batch: int
    lr: float
    schedule: Callable[[int, int], float] = Constant()
    sharpness: Callable[[int, int], float] | None = None
    lr_scale: tuple[tuple[str, float], ...] = ()
    betas: tuple[float, float] = (0.9, 0.999)
    precision: str = "float32"
    seeds: int = 5
    batches: int = 10
    rows: int = 6144
    profile_rows: int = 4096
    judged: bool = True
    muon: Muon | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        said = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr or getattr(self, f.name))
        return f"Budget({', '.join(said)})"


@dataclass(frozen=True)
class Row:
    """One setting: a process, an encoder and an objective, made anew for each seed.

    Attributes:
        name: short and unique; it becomes part of a path.
        title: for a reader.
        process: the world; seed k runs in `replace(process, seed=k)`.
        encoder: makes an encoder.
        objective: the loss, or a `Fresh` one if it owns parameters.
        budgets: how long to train, by name.
        published: the published score, if there is one.
        identity: the published score of the observations themselves, for the same worlds.
        supervised: name of the row that trains the same encoder on the true latents.
        failure: the paper shows that this setting fails; reproducing it means failing as well.
        measure: the row's score where it is not the table's.
        readings: further numbers of the row.
        same_as: name of the row of the same table with the very same settings, whose runs serve this row as well.
    """

    name: str
    title: str
    process: Any
    encoder: Fresh
    objective: Any
    budgets: tuple[Budget, ...]
    published: Published | None = None
    identity: Published | None = None
    supervised: str = ""
    failure: bool = False
    measure: Measure | None = None
    readings: tuple[Reading, ...] = ()
    same_as: str = ""

    def budget(self, name: str) -> Budget:
        """The budget of that name."""
        for budget in self.budgets:
            if budget.name == name:
                return budget
        raise UnknownName("budget", name, (budget.name for budget in self.budgets))

    def settings(self, budget: Budget) -> dict[str, str]:
        """What determines the result, each as its repr."""
        return {
            "process": describe(self.process),
            "encoder": describe(self.encoder),
            "objective": describe(self.objective),
            "budget": describe(replace(budget, muon=None)),  # Muon by itself, so that other folders keep their names
        } | ({} if budget.muon is None else {"muon": describe(budget.muon)})

    def folder(self, budget: Budget) -> str:
        """The path of the results: row, budget, and eight characters that change with the settings."""
        digest = hashlib.sha256(repr(sorted(self.settings(budget).items())).encode()).hexdigest()[:8]
        return f"{self.name}/{budget.name}-{digest}"


class Part:
    """What a table and a figure have in common: a label, and rows that are found by their names."""

    label: str
    rows: tuple[Row, ...]
    references: tuple[Row, ...] = ()

    @property
    def name(self) -> str:
        """The label as part of a path."""
        return self.label.lower().replace(" ", "-")

    def row(self, name: str) -> Row:
        """The row or reference of that name."""
        every = (*self.rows, *self.references)
        for row in every:
            if row.name == name:
                return row
        raise UnknownName("row", name, (row.name for row in self.rows))


@dataclass(frozen=True)
class Table(Part):
    """A table of a paper: rows, the rows they refer to, and the score it prints.

    Attributes:
        paper: key in `references.bib`.
        label: for instance "Table 1".
        caption: what the table shows, for a reader who has not read the paper.
        measure: the score as the paper reads it; the held-out score is the same with `holdout=0.5`.
        score: the name of the score, for instance "R2".
        rows: the settings.
        references: supervised settings that rows name.
    """

    paper: str
    label: str
    caption: str
    measure: Measure
    score: str
    rows: tuple[Row, ...]
    references: tuple[Row, ...] = ()

    def needed(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """What has to be run for the given rows: the references they name, then the rows, each setting once."""
        names = {row.supervised for row in rows}
        runs = {row.same_as or row.name: None for row in rows}
        return (*(r for r in self.references if r.name in names), *(self.row(name) for name in runs))


@dataclass(frozen=True)
class Sweep(Part):
    """A figure of a paper: one setting along an axis, scored at each point.

    Attributes:
        paper: key in `references.bib`.
        label: for instance "Figure 2".
        caption: what the figure shows.
        measure: the score as the paper reads it.
        score: the name of the score.
        rows: one setting for each point.
        x: the value on the axis of each row.
        x_name: what the axis shows.
        mark: a value on the axis worth a line.
        mark_name: what it is.
        second: a quantity on a second axis: a function of the row, or the name of one of its readings.
        second_name: what it is.
        claim: what the paper says of the figure, a function of `(x, scores)` that returns whether it holds and why;
            where `second` is a reading, that has to hold as well.
    """

    paper: str
    label: str
    caption: str
    measure: Measure
    score: str
    rows: tuple[Row, ...]
    x: tuple[float, ...]
    x_name: str
    mark: float
    mark_name: str
    second: Callable[[Row], float] | str
    second_name: str
    claim: Callable[[tuple[float, ...], tuple[float, ...]], tuple[bool, str]]

    def needed(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """The given rows; a sweep has no references."""
        return rows


@dataclass(frozen=True)
class Paper:
    """The tables and figures of one paper.

    Attributes:
        key: in `references.bib`.
        title: of the paper.
        tables: those that can be reproduced.
        figures: those that can be reproduced.
        notes: differences from the official code that a reader should know.
    """

    key: str
    title: str
    tables: tuple[Table, ...] = ()
    figures: tuple[Sweep | Family, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Table | Sweep | Family, ...]:
        """Everything that can be reproduced."""
        return (*self.tables, *self.figures)

    def numbered(self, kind: str, number: str) -> tuple[Table | Sweep | Family, ...]:
        """The table or figure with that number; of a figure with panels (5a, 5b), one panel or all of them."""
        parts: tuple[Table | Sweep | Family, ...] = self.tables if kind == "table" else self.figures
        found = tuple(p for p in parts if number in (p.label.split()[-1], p.label.split()[-1].rstrip("abcdef")))
        if found:
            return found
        raise UnknownName(f"{kind} of {self.key}", number, (part.label.split()[-1] for part in parts))
