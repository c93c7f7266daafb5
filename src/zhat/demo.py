"""The demo: a small world whose latents can be recovered according to theory, and an encoder that recovers them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from zhat import report
from zhat._files import make_folder, write_whole
from zhat.dgp import InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.experiment import Budget, Row, run
from zhat.fresh import Fresh
from zhat.objectives import InfoNCE
from zhat.results import Record, to_json
from zhat.training import Annealed, Recipe

DEMO = Row(
    name="demo",
    title="Contrastive learning on a sphere",
    process=Pairs(Uniform(Sphere(5)), VonMisesFisher(20.0), InvertibleMLP(layers=3)),
    encoder=Fresh(mlp, 5, 5, widths=(128, 128, 128), onto=Sphere(5)),
    objective=InfoNCE(temperature=1 / 20),
    budgets=(Budget("demo", Recipe(1500, 512, 3e-3, sharpness=Annealed(0.5))),),
)


def demo(
    out: Path | str = "zhat-demo",
    *,
    seeds: tuple[int, ...] = (0, 1, 2),
    progress: Callable[[int, int, float], None] | None = None,
) -> tuple[Record, ...]:
    """Train a small contrastive encoder with several seeds; write `report.html`, `results.json` and the runs.

    Args:
        out: the folder to write to.
        seeds: of worlds and encoders.
        progress: called with `(steps done, steps, mean loss)` now and then.
    """
    out = make_folder(out)
    records = run(DEMO, DEMO.budget("demo"), seeds=seeds, out=out / "runs", progress=progress)
    write_whole(out / "results.json", to_json(records))
    report.write(records, out / "report.html")
    return records
