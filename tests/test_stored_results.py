"""What results/ holds comes out of the code again: parts from their stored runs, tables from their JSON."""

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from zhat import papers
from zhat.experiment import reproduce
from zhat.report.comparison import latex, markdown
from zhat.results import from_json

STORED = Path(__file__).parent.parent / "results"
RESULTS = sorted(STORED.glob("*/*/*/results.json"))
ARCHIVED = ("zimmermann2021", "reizinger2024")  # whose runs are stored too


def stored(path):
    return from_json(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives")
    for key in ARCHIVED:
        for path in (STORED / key).glob("runs*.tar.xz"):
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
    return folder / "runs"


@pytest.mark.parametrize(
    "path", [p for p in RESULTS if p.parts[-4] in ARCHIVED], ids=lambda p: "-".join(p.parts[-4:-1])
)
def test_every_number_comes_out_of_the_stored_runs_again(path, unpacked):
    kept = stored(path)
    found = papers.paper(kept.paper)
    (part,) = (part for part in found.parts if part.label == kept.label)
    (again,) = reproduce(
        part,
        budget=kept.budget,
        rows=[row.name for row in (*kept.rows, *kept.absent)],
        seeds=len(kept.rows[0].seeds),
        out=unpacked,
        train=False,
        notes=found.notes,
    )
    about = {"assembled with": kept.provenance["assembled with"]}  # the one thing that may differ
    whole = replace(again, expected=kept.expected)  # rows that were not finished are not asked for again
    assert replace(whole, provenance={**again.provenance, **about}) == kept


@pytest.mark.parametrize("path", RESULTS, ids=lambda p: "-".join(p.parts[-4:-1]))
def test_tables_are_those_of_the_json(path):
    kept = stored(path)
    assert (path.parent / "table.md").read_text(encoding="utf-8") == markdown(kept)
    assert (path.parent / "table.tex").read_text(encoding="utf-8") == latex(kept)


@pytest.mark.parametrize("path", sorted(STORED.glob("*/runs*.tar.xz")), ids=lambda p: "-".join(p.parts[-2:]))
def test_an_archive_holds_scores_and_no_weights(path):
    with tarfile.open(path) as archive:
        assert {Path(name).name for name in archive.getnames() if "." in Path(name).name[3:]} >= {"run.json"}
        assert not [name for name in archive.getnames() if name.endswith(".safetensors")]
