"""Why two recipes are what they are, at a size that two cores can train: the numbers of docs/.

python -m benchmarks.recipes tight       T2.5, smaller: when the loss comes to sharpness 1
python -m benchmarks.recipes hard        cross-entropy where reizinger2024 fails although the theorem holds
python -m benchmarks.recipes raw         the worlds of its tables: what the observations themselves tell
python -m benchmarks.recipes bent        T1.11 and T1.12: the loss of the latents themselves
python -m benchmarks.recipes twenty      twenty dimensions, with the latents as targets and with labels
python -m benchmarks.recipes turned      the same with a smaller encoder, by Adam and by Muon

Writes results/recipes.json; a group that is not asked for is kept.
"""

import argparse
import json
import platform
import time
from dataclasses import replace
from pathlib import Path

import torch

from zhat.dgp import Around, Box, GeneralizedNormal, Pairs, Uniform, VonMisesFisher
from zhat.encoders import mlp, residual_mlp
from zhat.equivalence import AFFINE, SCALED_PERMUTATION
from zhat.experiment.scoring import latents_and_observations, represent
from zhat.fresh import Fresh
from zhat.metrics import Recovery, pearson
from zhat.objectives import CrossEntropy, InstanceDiscrimination, Supervised
from zhat.papers.reizinger2024 import world
from zhat.papers.zimmermann2021 import MIXING, MODEL_LAPLACE, TABLE_1
from zhat.training import Annealed, Constant, Cosine, Muon, train

OUT = Path(__file__).parent.parent / "results" / "recipes.json"
SEED = 100  # not among the seeds of any table
PLAIN = {"repeats": 0, "shuffles": 0}
R2 = Recovery(AFFINE, **PLAIN)
KAPPA_50, TEN = replace(world(VonMisesFisher(50.0)), seed=SEED), replace(world(classes=10), seed=SEED)
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
    """Instances where reizinger2024 fails although the theorem holds: the paper's way, ours, and ours less one part."""
    cosine, head = {"schedule": Cosine(), "lr": 2e-3}, {"lr_scale": {"rows": 100.0}}
    paper = {"make": mlp, "batch_norm": True, "beta": 1.0, "how": {"schedule": Constant(), "lr": 1e-3}}
    ours = {"make": residual_mlp, "batch_norm": False, "beta": 0.1, "how": cosine | head | {"muon": Muon()}}
    tried = {
        "the paper's way": paper,
        "ours": ours,
        "ours, no linear map beside the network": ours | {"make": mlp},
        "ours, batch norm": ours | {"batch_norm": True},
        "ours, logits not soft": ours | {"beta": 1.0},
        "ours, Adam alone": ours | {"how": cosine | head},
        "ours, head no faster than the encoder": ours | {"how": cosine | {"muon": Muon()}},
        "the paper's way, with the linear map": paper | {"make": residual_mlp},
    }
    cases = [("kappa = 50", KAPPA_50, name) for name in tried]
    cases += [("10 classes", TEN, name) for name in list(tried)[:3]]
    found = {}
    for where, process, name in cases:
        way, d = tried[name], process.dim
        encoder = Fresh(way["make"], d, d, batch_norm=way["batch_norm"])
        objective = Fresh(InstanceDiscrimination, d, process.labels, inverse_temperature=way["beta"])
        run = train(encoder, process, objective, steps=1500, batch=1024, seed=SEED, **way["how"])
        found[f"{where}, {name}"] = scores(run, process, R2=R2)
        print(list(found.items())[-1], flush=True)
    return found


def raw():
    """How much of the latents an affine map of the observations themselves explains, no model between: five worlds."""
    settings = {
        "kappa = 10": {},
        "kappa = 50": {"conditional": VonMisesFisher(50.0)},
        "10 classes": {"classes": 10},
        "d = 20": {"d": 20},
    }
    found = {}
    for name, how in settings.items():
        rows = (latents_and_observations(replace(world(**how), seed=seed), 8192, 1, "cpu") for seed in range(5))
        values = [100 * R2(z, x).value for z, x in rows]
        found[name] = {
            "R2": round(sum(values) / 5, 1),
            "lowest": round(min(values), 1),
            "highest": round(max(values), 1),
        }
        print(list(found.items())[-1], flush=True)
    return found


def bent():
    """T1.11 and T1.12: the loss of the latents themselves at their best scale, beside that of the runs of Table 1."""
    table = json.loads((OUT.parent / "zimmermann2021" / "table-1" / "fast" / "results.json").read_text())
    found = {}
    for name in ("T1.5", "T1.11", "T1.12"):
        row = TABLE_1.row(name)
        batches = [row.process.sample(6144, generator=torch.Generator().manual_seed(i)) for i in range(3)]

        def loss(size, row=row, batches=batches):
            return sum(float(row.objective(size * batch.z, batch)) for batch in batches) / len(batches)

        low, high = 0.1, 10.0  # thirds of the interval, until the best scale is known to 2%
        while high > 1.02 * low:
            a, b = low * (high / low) ** (1 / 3), low * (high / low) ** (2 / 3)
            low, high = (low, b) if loss(a) < loss(b) else (a, high)
        trained = next(r for r in table["rows"] if r["name"] == name)
        found[f"{name}, the latents, {low:.2f} times their size"] = {"R2": 100.0, "loss": round(loss(low), 3)}
        found[f"{name}, as trained"] = {
            "R2": round(sum(trained["learned"]["values"]) / len(trained["learned"]["values"]), 1),
            "loss": round(sum(curve["loss"][-1] for curve in trained["curves"]) / len(trained["curves"]), 3),
        }
        print(list(found.items())[-2:], flush=True)
    return found


def twenty():
    """Twenty dimensions: the latents as targets, and class labels, with the same encoder and as many steps."""
    found = {}
    for d in (5, 20):
        process = replace(world(d=d, by_class=True), seed=SEED)
        for name, objective in (("latents as targets", Supervised()), ("class labels", Fresh(CrossEntropy, d, 100))):
            encoder = Fresh(mlp, d, d, batch_norm=True)
            run = train(encoder, process, objective, steps=1000, batch=1024, lr=2e-3, schedule=Cosine(), seed=SEED)
            found[f"d = {d}, {name}"] = scores(run, process, R2=R2)
            print(list(found.items())[-1], flush=True)
    return found


def turned():
    """Twenty dimensions and an encoder of six layers of 200: Adam, and Muon for its matrices."""
    process = replace(world(d=20, by_class=True), seed=SEED)
    found = {}
    for name, objective in (("latents as targets", Supervised()), ("class labels", Fresh(CrossEntropy, 20, 100))):
        for optimiser, how in (
            ("Adam", {"lr": 1e-3}),
            ("Adam, twice the rate", {"lr": 2e-3}),
            ("Muon", {"lr": 1e-3, "muon": Muon()}),
        ):
            encoder = Fresh(mlp, 20, 20, widths=(200,) * 6)
            run = train(encoder, process, objective, steps=2000, batch=512, schedule=Cosine(), seed=SEED, **how)
            found[f"{name}, {optimiser}"] = scores(run, process, R2=R2) | {"seconds": round(run.seconds)}
            print(list(found.items())[-1], flush=True)
    return found


GROUPS = (tight, hard, raw, bent, twenty, turned)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("group", nargs="?", choices=[group.__name__ for group in GROUPS])
    asked = parser.parse_args().group
    kept = json.loads(OUT.read_text()) if OUT.exists() else {}
    for group in GROUPS:
        if asked in (None, group.__name__):
            began = time.perf_counter()
            kept[group.__name__] = {
                "command": f"python -m benchmarks.recipes {group.__name__}",
                "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}",
                "found": group(),
                "seconds": round(time.perf_counter() - began),
            }
            OUT.write_text(json.dumps(kept, indent=1) + "\n")
