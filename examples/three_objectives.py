"""Three objectives on one world: `zhat sweep examples/three_objectives.py` trains them and writes one page.

The positive lies around its anchor by a Laplace distribution, so theory speaks of the L1 distance and of no other.
"""

from zhat import Fresh
from zhat.dgp import Around, Box, InvertibleMLP, Laplace, Pairs, Uniform
from zhat.encoders import mlp
from zhat.equivalence import SCALED_PERMUTATION
from zhat.experiment import Budget, Row
from zhat.metrics import Recovery, pearson
from zhat.objectives import InfoNCE, NegativeLp
from zhat.theory import predict
from zhat.training import Recipe

box = Box(2)
world = Pairs(Uniform(box), Around(Laplace(box, 0.05)), InvertibleMLP(layers=2))
budgets = (Budget("short", Recipe(1000, 256, 5e-3, lr_scale=(("bound", 10.0),)), seeds=3, batches=1, rows=2048),)
objectives = {f"L{p}": InfoNCE(NegativeLp(p)) for p in (1, 2, 4)}

MEASURE, SCORE = Recovery(SCALED_PERMUTATION, agree=pearson, shift=True), "MCC"
ROWS = [
    Row(
        name,
        f"InfoNCE with -|u - v|^{name[1:]}",
        world,
        Fresh(mlp, 2, 2, widths=(64, 64), onto=box),
        objective,
        budgets,
    )
    for name, objective in objectives.items()
]

if __name__ == "__main__":
    for row in ROWS:
        print(f"{row.name}: {predict(row.process, row.objective, row.encoder).sentence}")
