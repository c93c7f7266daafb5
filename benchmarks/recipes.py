"""Why two recipes are what they are, at a size that two cores can train: one seed each, the numbers of docs/.

python -m benchmarks.recipes tight       T2.5, smaller: when the loss comes to sharpness 1
python -m benchmarks.recipes hard        cross-entropy where reizinger2024 fails although the theorem holds
python -m benchmarks.recipes bent        T1.11 and T1.12: the loss of the best linear map of the latents

Writes results/recipes.json; a group that is not asked for is kept.
"""

import argparse
import json
import platform
import time
from dataclasses import replace
from pathlib import Path

import torch

from zhat.dgp import Around, Box, GeneralizedNormal, Orthogonal, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.equivalence import AFFINE, SCALED_PERMUTATION
from zhat.experiment.scoring import latents_and_observations, represent
from zhat.fresh import Fresh
from zhat.metrics import Recovery, pearson
from zhat.objectives import CrossEntropy
from zhat.papers.reizinger2024 import world
from zhat.papers.zimmermann2021 import MIXING, MODEL_LAPLACE, TABLE_1
from zhat.training import Annealed, Constant, Cosine, Plateau, train

OUT = Path(__file__).parent.parent / "results" / "recipes.json"
SEED = 100  # not among the seeds of any table
PLAIN = {"repeats": 0, "shuffles": 0}
R2 = Recovery(AFFINE, **PLAIN)
KAPPA_50 = replace(world(VonMisesFisher(50.0), by_class=True), seed=SEED)
TEN = replace(world(classes=10, by_class=True), seed=SEED)
MCC = Recovery(SCALED_PERMUTATION, agree=pearson, shift=True, **PLAIN)


def scores(run, process, **measures):
    z, x = latents_and_observations(process, 8192, 1, "cpu")
    h = represent(run.encoder, x)
    found = {name: round(100 * measure(z, h).value, 1) for name, measure in measures.items()}
    return found | {"loss": round(run.curves[0].loss[-1], 3)}


def tight():
    """Four latents in a box, light-tailed noise, a Laplace model: the setting of T2.5, smaller."""
    box = Box(4)
    process = Pairs(Uniform(box), Around(GeneralizedNormal(box, p=3.0, scale=0.05)), MIXING, seed=SEED)
    found = {}
    for hold, until in ((0.5, 0.75), (0.15, 0.3)):
        run = train(
            Fresh(mlp, 4, 4, onto=box), process, MODEL_LAPLACE, steps=3000, batch=512, lr=1e-3, schedule=Cosine(),
            sharpness=Annealed(4.0, hold=hold, until=until), lr_scale={"bound": 10.0}, seed=SEED,
        )  # fmt: skip
        found[f"sharpness 1 after {until:.0%}"] = scores(run, process, R2=R2, MCC=MCC)
        print(list(found.items())[-1], flush=True)
    return found


def hard():
    """Class labels where reizinger2024 fails although the theorem holds: the paper's way, and others."""
    paper, steady = {"schedule": Constant(), "lr": 1e-3}, {"schedule": Plateau(), "lr": 2e-3}
    ours = {"schedule": Plateau(), "lr": 5e-3, "lr_scale": {"rows": 20.0}}
    soft = ours | {"sharpness": Annealed(0.1, hold=0.5, until=0.75)}
    tried = (
        ("kappa = 50, free head, batch norm (the paper's)", KAPPA_50, True, False, paper),
        ("kappa = 50, free head", KAPPA_50, False, False, steady),
        ("kappa = 50, unit head and output", KAPPA_50, False, True, ours),
        ("kappa = 50, unit head and output, begins soft, batch norm", KAPPA_50, True, True, soft),
        ("kappa = 50, unit head and output, begins soft", KAPPA_50, False, True, soft),
        ("10 classes, free head, batch norm (the paper's)", TEN, True, False, paper),
        ("10 classes, free head", TEN, False, False, steady | {"lr_scale": {"rows": 5.0}}),
        ("10 classes, unit head and output, begins soft", TEN, False, True, soft),
    )
    found = {}
    for name, process, norm, unit, how in tried:
        d, onto, head = process.dim, {}, {}
        if unit:
            onto = {"onto": Sphere(d)}
            head = {"unit_rows": True, "inverse_temperature": process.conditional.concentration}
        encoder = Fresh(mlp, d, d, batch_norm=norm, **onto)
        objective = Fresh(CrossEntropy, d, process.labels, **head)
        run = train(encoder, process, objective, steps=2500, batch=512, seed=SEED, **how)
        found[name] = scores(run, process, R2=R2)
        print(list(found.items())[-1], flush=True)
    return found


def bent():
    """T1.11 and T1.12: what the loss thinks of the latents themselves, under the best linear map, and of our runs."""
    table = json.loads((OUT.parent / "zimmermann2021" / "table-1" / "fast" / "results.json").read_text())
    ours = {row["name"]: [curve["loss"][-1] for curve in row["curves"]] for row in table["rows"]}
    found = {}
    for name in ("T1.5", "T1.11", "T1.12"):
        row = TABLE_1.row(name)
        process = replace(row.process, mixing=Orthogonal(), seed=SEED)
        encoder = Fresh(torch.nn.Linear, 10, 10)
        run = train(encoder, process, row.objective, steps=300, batch=6144, lr=3e-2, schedule=Cosine(), seed=SEED)
        z, x = latents_and_observations(process, 8192, 1, "cpu")
        found[f"{name}, linear map of the latents"] = {
            "R2": round(100 * R2(z, represent(run.encoder, x)).value, 1),
            "loss": round(sum(run.curves[0].loss[-20:]) / 20, 3),
        }
        trained = next(r for r in table["rows"] if r["name"] == name)["learned"]["values"]
        found[f"{name}, as trained"] = {
            "R2": round(sum(trained) / len(trained), 1),
            "loss": round(sum(ours[name]) / len(ours[name]), 3),
        }
        print(list(found.items())[-2:], flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("group", nargs="?", choices=("tight", "hard", "bent"))
    asked = parser.parse_args().group
    kept = json.loads(OUT.read_text()) if OUT.exists() else {}
    for group in (tight, hard, bent):
        if asked in (None, group.__name__):
            began = time.perf_counter()
            kept[group.__name__] = {
                "command": f"python -m benchmarks.recipes {group.__name__}",
                "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}",
                "found": group(),
                "seconds": round(time.perf_counter() - began),
            }
            OUT.write_text(json.dumps(kept, indent=1) + "\n")
