"""Settings of one's own: a Python file that declares rows, shares of the work, and shares put together again."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from zhat import runs
from zhat._files import drafted, make_folder, writing
from zhat.equivalence import AFFINE
from zhat.errors import BadInput, RunFailed
from zhat.experiment.judges import Verdicts
from zhat.experiment.ranking import Ranked
from zhat.experiment.reproducing import Watcher
from zhat.experiment.running import Stack, apart, run
from zhat.experiment.settings import Part, Row
from zhat.metrics import Recovery

NAMES = "PART = Part(…), or ROWS = (Row(…), …) and perhaps MEASURE, TITLE and SCORE"


def declared(file: Path | str) -> Part:
    """The part that a Python file declares; the file is run, as `python FILE` would run it.

    Args:
        file: declares `PART`, or `ROWS` and perhaps `MEASURE` (what to score by, R2 up to affine maps if not given),
            `TITLE` (a sentence for the page, the file's docstring if not given) and `SCORE` (what the score is called).
    """
    file = Path(file)
    module = _loaded(file)
    if hasattr(module, "PART"):
        part = module.PART
        if not isinstance(part, Part):
            raise BadInput(f"PART of {file} must be a zhat.experiment.Part, but it is a {type(part).__name__}.")
    else:
        rows = getattr(module, "ROWS", None)
        if not isinstance(rows, list | tuple) or not rows or not all(isinstance(row, Row) for row in rows):
            came = "nothing of that name is there" if rows is None else _told(rows)
            raise BadInput(
                f"ROWS of {file} must be zhat.experiment.Row objects in a list or tuple, but {came}. Declare {NAMES}."
            )
        measure = getattr(module, "MEASURE", Recovery(AFFINE))
        first = (module.__doc__ or f"The settings of {file.name}.").strip().split("\n\n")[0]
        part = Part(
            paper=file.stem,
            label="Sweep",
            caption=str(getattr(module, "TITLE", " ".join(first.split()))),
            score=str(getattr(module, "SCORE", getattr(getattr(measure, "agree", None), "name", "score"))),
            rows=tuple(rows),
            measure=measure,
        )
    _refuse_bad_names(part, file)
    if part.judge == Verdicts() and not any(row.published for row in part.rows):
        part = replace(part, judge=Ranked())
    return replace(part, command=f"zhat sweep {file}")


def _loaded(file: Path) -> ModuleType:
    """The file as a module of its own name, so that worker processes can import what it defines."""
    if not file.is_file() or file.suffix != ".py":
        raise BadInput(f"a sweep is declared in a Python file, but {file} is none. Write one with {NAMES}.")
    if not file.stem.isidentifier():
        raise BadInput(f"{file.name} cannot be imported by its name. Use letters, digits and underscores alone.")
    there = sys.modules.get(file.stem) or importlib.util.find_spec(file.stem)
    place = getattr(there, "__file__", None) or getattr(there, "origin", None) if there is not None else str(file)
    if place is None or Path(place).resolve() != file.resolve():
        raise BadInput(f"{file.stem} is the name of another module already. Call the file otherwise.")
    sys.path.insert(0, str(file.resolve().parent))
    try:
        return import_module(file.stem)
    except BadInput as error:
        raise BadInput(f"{file}{_line(error, file)}: {error}") from None
    except (Exception, SystemExit) as error:
        raise BadInput(f"{file} cannot be run: {type(error).__name__}: {error}{_line(error, file)}.") from None


def _line(error: BaseException, file: Path) -> str:
    """Where in the file an error came up."""
    if isinstance(error, SyntaxError):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == file.resolve()]
    return f" (line {lines[-1]})" if lines else ""


def _told(rows: Any) -> str:
    if not isinstance(rows, list | tuple):
        return f"it is a {type(rows).__name__}"
    odd = [row for row in rows if not isinstance(row, Row)]
    return f"it holds a {type(odd[0]).__name__}" if odd else "it is empty"


def _refuse_bad_names(part: Part, file: Path) -> None:
    """Names of rows become names of folders."""
    names = [row.name for row in (*part.rows, *part.references)]
    for name in (*names, part.paper, part.name):
        if not re.fullmatch(r"\w[\w.+=,-]*", name):
            raise BadInput(
                f"{file}: {name!r} becomes the name of a folder, so it must begin with a letter or digit and hold no "
                "others than letters, digits, and . _ + = , -"
            )
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise BadInput(f"{file}: two rows are called {twice[0]!r}. Give each a name of its own.")


def budget_of(part: Part, name: str | None) -> str:
    """The budget that is meant: the one named, or the only one that all rows have."""
    shared = [b.name for b in part.rows[0].budgets if all(b.name in [o.name for o in r.budgets] for r in part.rows)]
    if name is None and len(shared) == 1:
        return shared[0]
    if name not in shared:
        came = "none was named" if name is None else f"{name!r} came"
        raise BadInput(f"--budget must be one that all rows have ({', '.join(shared) or 'there is none'}), but {came}.")
    return name


def tasks(part: Part, rows: Sequence[str], budget: str, seeds: int | None) -> list[tuple[Row, Stack]]:
    """All trainings of some rows, as on an empty folder: each row's seeds, in the stacks in which they are trained.

    The list depends on the settings alone, so that several machines can divide it without speaking to each other.
    """
    found = []
    for row in part.needed(tuple(part.row(name) for name in rows)):
        how = row.budget(budget)
        found += [(row, stack) for stack in apart(row, how, range(how.seeds if seeds is None else seeds))]
    return found


def share(work: Sequence[tuple[Row, Stack]], words: str) -> list[tuple[Row, Stack]]:
    """One share of the trainings: `2/8` is every eighth of them, from the second on."""
    found = re.fullmatch(r"(\d+)/(\d+)", words)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise BadInput(f"--shard must be a share such as 2/8, from 1/8 to 8/8, but {words!r} came.")
    return list(work[int(found[1]) - 1 :: int(found[2])])


def train_share(
    part: Part,
    work: Sequence[tuple[Row, Stack]],
    budget: str,
    *,
    out: Path,
    device: torch.device | str = "cpu",
    keep_weights: bool = True,
    executor: Executor | None = None,
    progress: Watcher | None = None,
) -> None:
    """Train some of the trainings of a part, and leave their run folders where `reproduce` looks for them.

    Args:
        part: a table of one's own.
        work: which trainings, from `share`.
        budget: its name.
        out: as in `reproduce`.
        device: where to train.
        keep_weights: keep the trained encoders.
        executor: anything with `submit`; its tasks are trainings.
        progress: called while rows are trained in this process.
    """
    failed: RunFailed | None = None
    home = out / part.paper / part.name

    def how(row: Row, stack: Stack) -> dict[str, Any]:
        kept = {"out": home, "device": device, "keep_weights": keep_weights}
        return {"seeds": stack, "measure": row.measure or part.measure, **kept}

    if executor is None:
        for row, stack in work:

            def told(done: int, steps: int, loss: float, name: str = row.name) -> None:
                if progress is not None:
                    progress(name, done, steps, loss)

            try:
                run(row, row.budget(budget), **how(row, stack), progress=told)
            except RunFailed as error:  # the other rows have nothing to do with it
                failed = failed or error
    else:
        futures = [executor.submit(run, row, row.budget(budget), **how(row, stack)) for row, stack in work]
        try:
            for future in as_completed(futures):
                try:
                    future.result()
                except RunFailed as error:
                    failed = failed or error
        finally:
            for future in futures:
                future.cancel()
    if failed is not None:
        raise failed


def join(source: Path, out: Path) -> int:
    """Copy the finished runs of a share that was trained elsewhere; return how many were new.

    Args:
        source: the folder of that share, with its `runs`, or the `runs` themselves.
        out: the folder of runs to copy to. A run that is there already is left as it is.
    """
    inside = source / "runs" if (source / "runs").is_dir() else source
    copied = 0
    for folder in runs.scan(inside):
        place = out / folder.relative_to(inside)
        if place.exists():
            continue
        runs.verify(folder)
        make_folder(place.parent)
        with writing(place), drafted(place, folder=True) as draft:
            shutil.copytree(folder, draft, dirs_exist_ok=True)
            os.rename(draft, place)
        copied += 1
    return copied
