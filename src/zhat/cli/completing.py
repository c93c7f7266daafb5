"""What a shell offers for a word that is half typed. Nothing here loads torch: a shell waits for the answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import typer

RUN_FIELDS = (  # those of zhat.experiment.finished, which loads torch
    *("paper", "part", "row", "budget", "seed", "setting", "measure", "score", "held_out", "low", "high", "seconds"),
    *("date", "commit", "device", "zhat", "folder"),
)
WORLDS = ("jug", "teapot", "room", "sprites")  # those of zhat.scenes, which loads torch

Offer = Callable[[typer.Context, str], list[str]]


def _starting(words: Iterable[str], begun: str) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.startswith(begun)]


def one_of(*words: str) -> Offer:
    """Offers some words."""

    def offer(ctx: typer.Context, incomplete: str) -> list[str]:
        return _starting(words, incomplete)

    return offer


def a_paper(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offers the keys of papers."""
    from zhat import papers

    return _starting(papers.names(), incomplete)


def a_kind_or_a_paper(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offers what `zhat list` takes."""
    from zhat.cli.listing import KINDS

    return [*_starting((*KINDS, "papers"), incomplete), *a_paper(ctx, incomplete)]


def of_the_paper(kind: str) -> Offer:
    """Offers tables, figures, rows or budgets of the paper that stands before; of all papers where none does."""

    def offer(ctx: typer.Context, incomplete: str) -> list[str]:
        from zhat import papers

        line = os.environ.get("_TYPER_COMPLETE_ARGS", os.environ.get("COMP_WORDS", "")).split()
        asked = [name for name in papers.names() if name in line] or papers.names()
        return _starting((word for name in asked for word in papers.words(name).get(kind, ())), incomplete)

    return offer


def a_class(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offers the classes of maps that a gate takes."""
    from zhat.equivalence import Equivalence

    return _starting((up_to.name.lower() for up_to in Equivalence if up_to <= Equivalence.AFFINE), incomplete)


def a_field(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offers what runs can be listed by; behind a minus as well."""
    sign = "-" if incomplete.startswith("-") else ""
    classes = a_class(ctx, "")
    return [sign + word for word in _starting((*RUN_FIELDS, *classes), incomplete.removeprefix("-"))]


A_DEVICE = one_of("auto", "cpu", "cuda")
A_WORLD = one_of(*WORLDS)
