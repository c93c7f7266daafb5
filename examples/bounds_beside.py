"""How much each class of maps recovers: mean and spread over seeds, between a lower and an upper bound."""

import zhat
from zhat import Fresh
from zhat.dgp import InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.objectives import InfoNCE, Supervised
from zhat.training import Annealed

world = Pairs(Uniform(Sphere(3)), VonMisesFisher(20.0), InvertibleMLP(layers=3))
how = {"steps": 400, "batch": 256, "lr": 5e-3, "seeds": range(4)}
encoder, onto = Fresh(mlp, 3, 3, widths=(64, 64)), Fresh(mlp, 3, 3, widths=(64, 64), onto=Sphere(3))
run = zhat.train(onto, world, InfoNCE(temperature=1 / 20), sharpness=Annealed(0.5), **how)
upper = zhat.train(encoder, world, Supervised(), **how)  # the same network, told the latents

scores = zhat.score(run, world, supervised=upper)
print(scores)
print("up to orthogonal:", " ".join(f"{value:.3f}" for value in scores[zhat.equivalence.ORTHOGONAL].learned))
