"""Budget laptop on seeds that no table shows: each row's score, its bar, and what it costs.

python -m benchmarks.laptop zimmermann2021 --table 2 [--row T2.3] [--seeds 100 101]

Recipes are chosen by this; tables show seeds 0, 1, 2, … Prints one line for each row: scores of the seeds, bar, and CPU
seconds of training and scoring, from which minutes on two quiet cores follow (both seeds, both cores busy).
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import torch

from zhat.experiment import run
from zhat.papers import paper


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paper")
    parser.add_argument("--table")
    parser.add_argument("--figure")
    parser.add_argument("--row", action="append")
    parser.add_argument("--budget", default="laptop")
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101])
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    found = paper(asked.paper)
    kinds = [(kind, number) for kind in ("table", "figure") if (number := getattr(asked, kind))]
    parts = [part for kind, number in kinds for part in found.numbered(kind, number)] or found.parts
    for part in parts:
        rows = [row for row in part.rows if not row.same_as and (not asked.row or row.name in asked.row)]
        for row in rows if asked.row else part.needed(tuple(rows)):
            budget = row.budget(asked.budget)
            measure = row.measure or part.measure
            began = time.process_time()
            with tempfile.TemporaryDirectory() as out:
                records = run(
                    row, budget, seeds=asked.seeds, out=Path(out), measure=measure, keep_weights=False
                )  # seeds are stacked, as in a table
            spent = time.process_time() - began
            scores = [100 * record.by_paper.value for record in records]
            mean, bar = sum(scores) / len(scores), budget.bar
            verdict = "" if bar is None else "shown" if bar.met(mean) else "not shown"
            print(
                f"{row.name:8} {', '.join(f'{s:.1f}' for s in scores):14} {bar or '':6} {verdict:10} "
                f"{spent:5.0f} CPU s, {spent / min(2, os.cpu_count() or 1) / 60:.1f} min on two cores",
                flush=True,
            )


if __name__ == "__main__":
    main()
