"""Budget laptop on seeds that no table shows: the score of each row, its bar, and what it costs.

python -m benchmarks.laptop zimmermann2021 --table 2
python -m benchmarks.laptop zimmermann2021 --row T2.3 --seeds 100 101 102

Recipes are chosen by this; tables show seeds 0, 1, 2, … CPU seconds are those of training and scoring together. On two
quiet cores a row takes about half of them, because operations share the cores. With --out a row is written to
results/laptop.json; rows that are not asked for are kept there.
"""

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path

import torch

from zhat.experiment import run
from zhat.papers import paper

OUT = Path(__file__).parent.parent / "results" / "laptop.json"


def measured(part, row, budget, seeds):
    """Scores in percent, and CPU seconds of training and scoring."""
    began = time.process_time()
    with tempfile.TemporaryDirectory() as out:
        how = {"measure": row.measure or part.measure, "keep_weights": False}
        records = run(row, budget, seeds=seeds, out=Path(out), **how)  # seeds are stacked, as in a table
    return [100 * record.by_paper.value for record in records], time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paper")
    parser.add_argument("--table")
    parser.add_argument("--figure")
    parser.add_argument("--row", action="append", default=[])
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101])
    parser.add_argument("--out", action="store_true", help="write results/laptop.json")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    found = paper(asked.paper)
    kinds = [(kind, number) for kind in ("table", "figure") if (number := getattr(asked, kind))]
    parts = [part for kind, number in kinds for part in found.numbered(kind, number)] or found.parts
    for part in parts:
        rows = tuple(row for row in part.rows if not row.same_as and (not asked.row or row.name in asked.row))
        for row in rows if asked.row else part.needed(rows):
            budget = row.budget("laptop")
            scores, spent = measured(part, row, budget, asked.seeds)
            mean, bar = sum(scores) / len(scores), budget.bar
            verdict = "" if bar is None else "shown" if bar.met(mean) else "not shown"
            told = ", ".join(f"{score:.1f}" for score in scores)
            print(f"{row.name:8} {told:14} {bar or ''!s:6} {verdict:10} {spent:5.0f} CPU s", flush=True)
            if asked.out:
                kept = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
                kept.setdefault(asked.paper, {})[row.name] = {
                    "seeds": asked.seeds,
                    "scores": [round(score, 2) for score in scores],
                    "bar": str(bar or ""),
                    "cpu_seconds": round(spent),
                    "settings": row.folder(budget),
                    "machine": f"{platform.machine()}, 1 thread, torch {torch.__version__}",
                }
                OUT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
