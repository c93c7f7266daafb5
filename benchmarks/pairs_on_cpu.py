"""Points of roeder2020's Figures 2 and 2v for one pair at a budget that one CPU core can afford, two minutes each.

python -m benchmarks.pairs_on_cpu F2v.17 F2.17
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from zhat.experiment import run
from zhat.papers import roeder2020


def main(names: list[str]) -> None:
    """Train and print each point: 800 steps, 1,024 rows for each model, read on 8,192 rows."""
    torch.set_num_threads(1)
    parts = {row.name: (part, row) for part in roeder2020.PAPER.figures for row in part.rows}
    for name in names:
        part, row = parts[name]
        budget = replace(row.budget("fast"), steps=800, batch=2048, rows=8192)
        with tempfile.TemporaryDirectory() as out:
            (record,) = run(row, budget, seeds=(0,), out=Path(out), measure=part.measure)
        assert record.by_paper is not None, "the figure has a measure"
        correlations = " ".join(f"{v:.2f}" for v in record.by_paper.per_latent)
        roads = record.readings.get("two roads")
        print(
            f"{name}: mean CCA {record.by_paper.value:.4f}"
            + ("" if roads is None else f", two roads {roads[0]:.2f}")
            + f", {record.seconds:.0f} s; correlations {correlations}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
