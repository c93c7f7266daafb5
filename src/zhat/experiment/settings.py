"""What is to be run: rows, budgets, parts of papers, with the published numbers beside them. Data, no machinery."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

from zhat.dgp import Process
from zhat.errors import BadInput, UnknownName
from zhat.experiment.against import Against, Latents
from zhat.experiment.judges import Judge, Verdicts
from zhat.experiment.readings import Reading
from zhat.fresh import Fresh, describe
from zhat.metrics import Measure
from zhat.objectives import Objective
from zhat.results import Bar, Published
from zhat.training import Recipe

FAST, LAPTOP = "fast", "laptop"


@dataclass(frozen=True)
class Budget:
    """How to train, and on how many rows to score.

    Attributes:
        name: "smoke", "laptop", "fast", "paper" or another word; it becomes part of a path.
        recipe: how to train.
        seeds: how many seeds by default.
        batches: how many batches of fresh rows the paper's score is averaged over.
        rows: rows in each of them.
        profile_rows: rows for the profile of classes; half of them are held out.
        judged: whether scores are worth comparing with published ones; False for budgets that only try the machinery.
        bar: what the score has to reach, for a budget that is too short for published numbers.
        process: the world, where this budget trains in another one than the row names; `title` then says so.
        title: for a reader, instead of the row's.
        encoder: makes the encoder, where this budget trains another one than the row names.
        objective: the loss, where this budget takes another one than the row names.
        about: how this budget differs from the paper, for a reader; notes of a part begin with it.
    """

    name: str
    recipe: Recipe
    seeds: int = 5
    batches: int = 10
    rows: int = 6144
    profile_rows: int = 4096
    judged: bool = True
    # Not in the repr: process, encoder and objective name a run by themselves, bar and words change no run.
    bar: Bar | None = field(default=None, repr=False)
    process: Process | None = field(default=None, repr=False)
    title: str = field(default="", repr=False)
    encoder: Fresh | None = field(default=None, repr=False)
    objective: Objective | Fresh | None = field(default=None, repr=False)
    about: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Row:
    """One setting: a process, an encoder and an objective, made anew for each seed.

    Attributes:
        name: short and unique; it becomes part of a path.
        title: for a reader.
        process: the world; seed k runs in `zhat.dgp.reseeded(process, k)`.
        encoder: makes an encoder.
        objective: the loss, or a `Fresh` one if it owns parameters.
        budgets: how long to train, by name.
        published: the published score, if there is one.
        identity: the published score of the observations themselves, for the same worlds.
        supervised: name of the row that trains the same encoder on the true latents.
        against: what the representation is compared with: the latents, a twin model, known factors, its peers.
        failure: the paper shows that this setting fails; reproducing it means failing as well.
        measure: the row's score where it is not the table's.
        readings: further numbers of the row.
        shows: name of the reading that is this row's score; empty takes the measure's.
        same_as: name of the row of the same table with the very same settings, whose runs serve this row as well.
    """

    name: str
    title: str
    process: Process
    encoder: Fresh
    objective: Objective | Fresh
    budgets: tuple[Budget, ...]
    published: Published | None = None
    identity: Published | None = None
    supervised: str = ""
    failure: bool = False
    measure: Measure | None = None
    readings: tuple[Reading, ...] = ()
    same_as: str = ""
    shows: str = ""
    against: Against = Latents()

    def budget(self, name: str) -> Budget:
        """The budget of that name."""
        for budget in self.budgets:
            if budget.name == name:
                return budget
        raise UnknownName("budget", name, (budget.name for budget in self.budgets))

    def under(self, budget: Budget) -> Row:
        """The row as this budget trains it: with the budget's own world, encoder and objective, where it has them."""
        return replace(
            self,
            title=budget.title or self.title,
            process=budget.process or self.process,
            encoder=budget.encoder or self.encoder,
            objective=budget.objective or self.objective,
        )

    def settings(self, budget: Budget) -> dict[str, str]:
        """What determines the result, each as its repr."""
        row = self.under(budget)
        return {
            "process": describe(row.process),
            "encoder": describe(row.encoder),
            "objective": describe(row.objective),
            "budget": describe(budget),
        }

    def folder(self, budget: Budget) -> str:
        """The path of the results: row, budget, and eight characters that change with the settings."""
        digest = hashlib.sha256(repr(sorted(self.settings(budget).items())).encode()).hexdigest()[:8]
        return f"{self.name}/{budget.name}-{digest}"


@dataclass(frozen=True)
class Part:
    """A table or a figure of a paper: rows, the rows they refer to, and a judge.

    Attributes:
        paper: key in `references.bib`.
        label: for instance "Table 1".
        caption: what it shows, for a reader who has not read the paper.
        score: the name of the score, for instance "R2".
        rows: the settings.
        measure: the score as the paper reads it, anything with the contract of a metric; None for models that are only
            compared with each other.
        judge: what to make of the rows: verdicts beside published numbers, a claim along an axis, agreement of models.
        references: supervised settings that rows name.
        models: names of models that the user gives instead of the trained ones.
        row_of: makes a row of something that the user has, for instance the path of a file; None where that has no
            meaning.
        notes: what a reader of this part should know; empty takes the paper's notes.
        command: what measures this part, for a part that is no paper's; empty is `zhat reproduce`.
    """

    paper: str
    label: str
    caption: str
    score: str
    rows: tuple[Row, ...]
    measure: Measure | None = None
    judge: Judge = Verdicts()
    references: tuple[Row, ...] = ()
    models: tuple[str, ...] = ()
    row_of: Callable[[str], Row] | None = None
    notes: tuple[str, ...] = ()
    command: str = ""

    @property
    def name(self) -> str:
        """The label as part of a path."""
        return self.label.lower().replace(" ", "-")

    @property
    def number(self) -> str:
        """The number in the label, with the letter of a panel."""
        return self.label.split()[-1]

    def row(self, name: str) -> Row:
        """The row or reference of that name."""
        every = (*self.rows, *self.references)
        for row in every:
            if row.name == name:
                return row
        raise UnknownName("row", name, (row.name for row in self.rows))

    def needed(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """What has to be run for the given rows: the references they name, then the rows, each setting once."""
        if self.models:
            return ()
        names = {row.supervised for row in rows}
        runs = {row.same_as or row.name: None for row in rows}
        return (*(r for r in self.references if r.name in names), *(self.row(name) for name in runs))

    def budget_on(self, device: torch.device | str) -> str:
        """The budget where none is named: "fast" on a GPU, "laptop" elsewhere if every row has one."""
        every = (*self.rows, *self.references)
        on_gpu = torch.device(device).type == "cuda"
        small = all(any(budget.name == LAPTOP for budget in row.budgets) for row in every)
        return LAPTOP if small and not on_gpu else FAST

    def given(self, models: tuple[str, ...]) -> Part:
        """The same part of models that the user has: as rows where the part can make them, else for its judge."""
        if self.row_of is not None:
            rows = tuple(map(self.row_of, models))
            if len({row.name for row in rows}) != len(rows):
                names = ", ".join(row.name for row in rows)
                raise BadInput(f"--models needs files of different names, but they are called {names}. Rename one.")
            return replace(self, rows=rows)
        if self.judge.load is None:
            raise BadInput(f"{self.label} of {self.paper} trains its own models; it cannot be drawn of {models[0]!r}.")
        if len(set(models)) != len(models) or len(models) < 2:
            raise BadInput(f"--models needs at least two different models, but {', '.join(models)} came.")
        return replace(self, models=models)


@dataclass(frozen=True)
class Paper:
    """The tables and figures of one paper.

    Attributes:
        key: in `references.bib`.
        title: of the paper.
        parts: everything that can be reproduced.
        notes: differences from the official code that a reader should know.
    """

    key: str
    title: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()

    def numbered(self, kind: str, number: str) -> tuple[Part, ...]:
        """The table or figure with that number; of a figure with panels (5a, 5b), one panel or all of them."""
        parts = tuple(part for part in self.parts if part.label.lower().startswith(kind))
        found = tuple(part for part in parts if number in (part.number, part.number.rstrip("abcdef")))
        if found:
            return found
        raise UnknownName(f"{kind} of {self.key}", number, (part.number for part in parts))
