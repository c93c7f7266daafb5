"""Which recipe finds the latents of pictures soonest? Row T4.1 of zimmermann2021, trained in several ways on one seed.

    python -m benchmarks.picture_recipes [--only NAME …] [--seed 100] [--out FILE]

Prints the scores of the paper's protocol and the held-out ones, the last loss, and R2 of every latent while training.
"pairs" are the pairs of T4.1; the last three settings ask what the others have in common: the same network with the
latents as targets, and the loss without the anchor among its own negatives. Seeds below 100 are refused, because the
tables show them. Takes half a minute a setting on one H200. results/zimmermann2021/picture_recipes.json holds what came
out; a setting that is not asked for is kept.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import torch

from zhat.dgp import reseeded
from zhat.equivalence import AFFINE
from zhat.experiment.readings import Trained
from zhat.experiment.scoring import latents_and_observations, represent
from zhat.metrics import Recovery
from zhat.objectives import InfoNCE, NegativeLp
from zhat.papers import _zimmermann2021_3dident as here
from zhat.training import Annealed, Muon, train

OUT = Path(__file__).parent.parent / "results" / "zimmermann2021" / "picture_recipes.json"
PAIRS, TARGETS = here.TABLE_4.row("T4.1"), here.TABLE_4.row("T4.s")
EACH = Recovery(AFFINE, repeats=0, shuffles=0)


def settings():
    """Row, objective and recipe of each setting, by name."""
    fast = replace(PAIRS.budget("fast").recipe, steps=1500, muon=Muon(0.01))
    recipes = {
        "Adam": replace(fast, muon=None),
        "Muon 0.01": fast,
        "Muon 0.03": replace(fast, muon=Muon(0.03)),
        "Muon 0.01, half the batch": replace(fast, steps=3000, batch=256),
        "Muon 0.01, from sharpness 8": replace(fast, sharpness=Annealed(8.0, hold=0.5, until=0.75)),
        "Muon 0.01, from sharpness 20": replace(fast, sharpness=Annealed(20.0, hold=0.5, until=0.75)),
        "Muon 0.01, twice the steps": replace(fast, steps=3000),
    }
    alone, plain = InfoNCE(NegativeLp(2), include_self_pair=False), replace(fast, sharpness=None)
    return {
        **{name: (PAIRS, PAIRS.objective, recipe) for name, recipe in recipes.items()},
        "targets": (TARGETS, TARGETS.objective, replace(plain, lr_scale=())),
        "no self-pair": (PAIRS, alone, replace(plain, steps=2000)),
        "no self-pair, batch 2048": (PAIRS, alone, replace(plain, steps=700, batch=2048)),
    }


def measured(row, objective, recipe, seed, device, rows):
    """Scores, loss and time of one training."""
    world = reseeded(row.process, seed)
    z, x = latents_and_observations(world, rows, 0, device)
    every, course = max(1, min(250, recipe.steps // 6)), []

    def watch(i, encoder, objective):
        score = EACH(z, represent(encoder, x))
        course.append([round(100 * value) for value in score.per_latent])
        return score.value

    started = time.perf_counter()
    how = {"seeds": [seed], "device": device, "watch": watch, "watch_every": every}
    run = train(row.encoder, world, objective, recipe.on(device), **how)
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    trained = Trained(run.encoder, run.objectives[0], world, rows, device)
    found = {}
    for name, measure in (("R2", here.R2), ("MCC", here.MCC)):
        by_paper, held_out = here.READ.both_ways(replace(measure, repeats=0, shuffles=0), trained)
        found |= {name: round(100 * by_paper.value, 2), f"{name}, held out": round(100 * held_out.value, 2)}
    found |= {"loss": round(run.curves[0].loss[-1], 4), "seconds": round(seconds, 1)}
    return found | {"R2 of each latent": course, "every": every, "recipe": repr(recipe)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=tuple(settings()), choices=tuple(settings()), metavar="NAME")
    parser.add_argument("--steps", type=int, help="instead of each setting's own, to try the command")
    parser.add_argument("--batch", type=int, help="likewise")
    parser.add_argument("--rows", type=int, default=4096, help="test pictures that are read")
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    if args.seed < 100:
        parser.error("recipes are chosen on seeds from 100 on; lower ones are the tables'")
    kept = json.loads(args.out.read_text()) if args.out.exists() else {}
    for name in args.only:
        row, objective, recipe = settings()[name]
        recipe = replace(recipe, steps=args.steps or recipe.steps, batch=args.batch or recipe.batch)
        kept[name] = {"seed": args.seed, **measured(row, objective, recipe, args.seed, args.device, args.rows)}
        print(
            f"{name}: {', '.join(f'{key} {value}' for key, value in kept[name].items() if key != 'recipe')}", flush=True
        )
        args.out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
