"""Points of roeder2020's Figures 2, 2v and 3 at what one CPU core can afford: one short training, or none.

python -m benchmarks.pairs_on_cpu F2v.17 F2.17                            # one pair of models, two minutes each
python -m benchmarks.pairs_on_cpu --untrained F2.2 F2.17 F3d.1 --data DIR # five pairs that were never trained
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from zhat.experiment import run
from zhat.papers import roeder2020


def main(names: list[str], untrained: bool) -> None:
    """Train and print each point: 800 steps, 1,024 rows for each model, read on 8,192 rows; or as models begin."""
    torch.set_num_threads(1)
    parts = {row.name: (part, row) for part in roeder2020.PAPER.parts for row in part.rows}
    for name in names:
        part, row = parts[name]
        shorter = {"steps": 1, "batch": 64, "lr": 1e-12} if untrained else {"steps": 800, "batch": 2048}  # or none
        budget = replace(row.budget("fast"), recipe=replace(row.budget("fast").recipe, **shorter), rows=8192)
        with tempfile.TemporaryDirectory() as out:
            records = run(row, budget, seeds=range(5 if untrained else 1), out=Path(out), measure=part.measure)
        values = [record.by_paper.value for record in records if record.by_paper is not None]
        if untrained:
            spread = f"{min(values):.4f} to {max(values):.4f}"
            print(
                f"{name}, {row.title}: mean CCA {statistics.fmean(values):.4f} before training ({spread})", flush=True
            )
            continue
        (record,) = records
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--untrained", action="store_true")
    parser.add_argument("--data", help="the folder of recorded data, for Figure 3")
    given = parser.parse_args()
    if given.data:
        os.environ["ZHAT_DATA"] = given.data
    main(given.names, given.untrained)
