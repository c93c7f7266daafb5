"""Milliseconds of a training step on pictures: Table 4 of zimmermann2021.

    python -m benchmarks.pictures [--device cuda] [--row T4.1 …] [--budget fast] [--steps 64] [--out FILE]

Of each row: making all stored pictures (once), drawing a batch (search of neighbours and gathering, or rendering), and
a whole step. Steps are measured after the stored pictures are there. Takes about a minute on one H200.
"""

import argparse
import json
import time
from pathlib import Path

import torch

from zhat import randomness
from zhat.experiment import seconds_per_step
from zhat.papers import _zimmermann2021_3dident as here

ROWS = {row.name: row for part in (here.TABLE_4, here.TABLE_4_PAST) for row in part.rows}
SHOWN = ("T4.1", "T4.5", "T4.s", "T4p.1")


def waited(device):
    """The time, once the device has done what it was asked."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def measured(row, budget, device, steps):
    """Seconds for the first draw, and milliseconds of a batch and of a step."""
    batch, generator = budget.recipe.batch, randomness.generator(0, "time", device)
    started = waited(device)
    row.process.sample(batch, generator=generator)
    first = waited(device) - started
    started = waited(device)
    for _ in range(8):
        row.process.sample(batch, generator=generator)
    draw = (waited(device) - started) / 8
    step = seconds_per_step(row, budget, seeds=1, device=device, steps=steps)
    return {
        "first draw, s": round(first, 2),
        "drawing a batch, ms": round(1e3 * draw, 2),
        "a step, ms": round(1e3 * step, 2),
        "budget, s for one seed": round(step * budget.recipe.steps),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--row", nargs="*", default=SHOWN, choices=tuple(ROWS))
    parser.add_argument("--budget", default="fast")
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--out", help="JSON")
    args = parser.parse_args()
    found = {}
    for name in args.row:
        found[name] = measured(ROWS[name], ROWS[name].budget(args.budget), args.device, args.steps)
        print(f"{name}: " + ", ".join(f"{key} {value:g}" for key, value in found[name].items()), flush=True)
    if torch.device(args.device).type == "cuda":
        found["memory, GB"] = round(torch.cuda.max_memory_allocated() / 1e9, 1)
        print(f"at most {found['memory, GB']} GB")
    if args.out:
        Path(args.out).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
