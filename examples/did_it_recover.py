"""Did a model recover the latents? Train one on a sphere and ask, class by class."""

import zhat
from zhat.dgp import InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.objectives import InfoNCE
from zhat.training import Annealed

world = Pairs(Uniform(Sphere(3)), VonMisesFisher(20.0), InvertibleMLP(layers=3))
encoder = mlp(3, 3, widths=(64, 64), onto=Sphere(3), seed=0)
objective = InfoNCE(temperature=1 / 20)
how = {"steps": 600, "batch": 512, "lr": 5e-3, "sharpness": Annealed(0.5)}

print(zhat.theory.predict(world, objective, encoder))
print(zhat.score(zhat.train(encoder, world, objective, **how).encoder, world))
