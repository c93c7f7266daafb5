"""Log a training to an experiment tracker: losses through `progress=`, a held-out score through `watch=`.

The tracker below writes JSON lines and has the two methods of the well-known ones, so that theirs fit in its place:
`log(numbers, step=…)` and `finish()`.
"""

import json
import tempfile
from pathlib import Path

import zhat
from zhat import Fresh
from zhat.dgp import InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.equivalence import ORTHOGONAL
from zhat.objectives import InfoNCE


class JSONLines:
    """A tracker: one line of JSON for each call of `log`."""

    def __init__(self, path, config):
        self.file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115
        self.log({"config": config})

    def log(self, numbers, step=None):
        print(json.dumps({"step": step, **numbers}), file=self.file)

    def finish(self):
        self.file.close()


world = Pairs(Uniform(Sphere(3)), VonMisesFisher(20.0), InvertibleMLP(layers=3))
encoder, objective = Fresh(mlp, 3, 3, widths=(64, 64), onto=Sphere(3)), InfoNCE(temperature=1 / 20)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "log.jsonl"
tracker = JSONLines(path, {"world": repr(world), "encoder": repr(encoder), "objective": repr(objective)})
seeds, every, steps = (0, 1), 100, 400
seen = dict.fromkeys(seeds, 0)  # how often each seed was watched


def progress(done, of, loss):
    tracker.log({"loss": loss}, step=done)


def watch(i, encoder, objective):
    value = zhat.score(encoder, world, n=1024, classes=[ORTHOGONAL])[ORTHOGONAL].value
    seen[seeds[i]] += every
    tracker.log({f"R2 up to orthogonal, seed {seeds[i]}": value}, step=seen[seeds[i]])
    return value


how = {"steps": steps, "batch": 256, "lr": 5e-3, "watch": watch, "watch_every": every, "watch_name": "R2"}
run = zhat.train(encoder, world, objective, seeds=seeds, progress=progress, **how)
tracker.finish()

lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
print(len([line for line in lines if "loss" in line]) > 1, *[key for key in lines[-1] if key != "step"])
print(run)
folder.cleanup()
