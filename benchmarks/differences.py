"""What our differences from the official code of zimmermann2021 change, measured on a small world.

    python -m benchmarks.differences [--out FILE]

Self-pair: a box of four dimensions, Laplace noise of 0.05, L1 loss, three seeds, with and without the anchor among its
own negatives. Conditioning: the condition numbers of mixing layers, best of 25,000 against redrawn until as good as the
best of one set. Evaluation: the same encoders scored on the rows of the fit and on others.
"""

import argparse
import json
import statistics

import torch

from zhat.dgp import Around, Box, InvertibleMLP, Laplace, Pairs, Uniform
from zhat.encoders import mlp
from zhat.equivalence import AFFINE, SCALED_PERMUTATION
from zhat.experiment.scoring import latents_and_observations, represent
from zhat.fresh import Fresh
from zhat.metrics import Recovery, pearson
from zhat.objectives import InfoNCE, NegativeLp
from zhat.training import train

DIM, SEEDS = 4, (0, 1, 2)
R2 = Recovery(AFFINE, repeats=0, shuffles=0)
MCC = Recovery(SCALED_PERMUTATION, agree=pearson, shift=True, repeats=0, shuffles=0)


def trained(include_self_pair, steps):
    box = Box(DIM)
    world = Pairs(Uniform(box), Around(Laplace(box, 0.05)), InvertibleMLP(layers=3))
    objective = InfoNCE(NegativeLp(1), include_self_pair=include_self_pair)
    encoder = Fresh(mlp, DIM, DIM, widths=(64, 128, 64))
    run = train(encoder, world, objective, steps=steps, batch=512, lr=3e-3, seeds=SEEDS)
    return world, run.encoders


def self_pair(steps):
    out = {}
    for included in (True, False):
        world, encoders = trained(included, steps)
        z, x = latents_and_observations(world, 8192, 0, "cpu")
        found = [represent(encoder, x) for encoder in encoders]
        out["with" if included else "without"] = {
            "R2": [100 * R2(z, h).value for h in found],
            "MCC": [100 * MCC(z, h).value for h in found],
            "standard deviation of a coordinate": [float(h.std(0).mean()) for h in found],
        }
        if included:
            out["evaluation"] = evaluation(world, encoders)
    return out


def evaluation(world, encoders):
    """In sample minus held out, in points, mean over seeds."""
    out = {}
    for rows in (200, 1000, 6144):
        z, x = latents_and_observations(world, 2 * rows, 1, "cpu")
        gaps = {}
        for name, measure in (("R2", R2), ("MCC", MCC)):
            same = Recovery(measure.up_to, agree=measure.agree, shift=measure.shift, holdout=0, repeats=0, shuffles=0)
            gaps[name] = statistics.fmean(
                100 * (same(z[:rows], represent(e, x[:rows])).value - measure(z, represent(e, x)).value)
                for e in encoders
            )
        out[str(rows)] = gaps
    return out


def conditioning(worlds=8, draws=25_000):
    """Condition numbers of 10 x 10 layers with columns of unit length: best of a set, and redrawn until as good."""
    generator = torch.Generator().manual_seed(0)

    def numbers():
        matrices = 2 * torch.rand(draws, 10, 10, generator=generator) - 1
        return torch.linalg.cond(matrices / matrices.norm(dim=1, keepdim=True))

    best, redrawn, sets = [], [], []
    for _ in range(worlds):
        threshold = float(numbers().min())
        best.append(threshold)
        for tries in range(1, 41):  # the wait has no finite mean: stop after a million draws and say so
            again = numbers()
            if bool((again <= threshold).any()):
                redrawn.append(float(again[again <= threshold][0]))
                sets.append(tries)
                break
    return {
        "best of 25,000": best,
        "redrawn": redrawn,
        "sets of 25,000 drawn": sets,
        "gave up after a million": worlds - len(redrawn),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    out = {"self-pair": self_pair(arguments.steps), "conditioning": conditioning()}
    out["evaluation"] = out["self-pair"].pop("evaluation")
    print(json.dumps(out, indent=1))
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(out, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
