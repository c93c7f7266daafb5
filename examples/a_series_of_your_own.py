"""A recorded series in scikit-learn's manners: fit twice, ask whether the fits agree, and what they recovered."""

import numpy as np

import zhat

rng = np.random.default_rng(0)
walk = rng.normal(0, 0.1, size=(4000, 2)).cumsum(0)
z = np.abs((walk + 0.5) % 2 - 1)  # a walk reflected at the walls of a unit square; you would not know it
angle, radius = 5 * z[:, 0], 1 + z[:, 1]
x = np.stack([radius * np.cos(angle), radius * np.sin(angle), radius**2], 1) @ rng.normal(size=(3, 6))
x += 0.05 * rng.normal(size=x.shape)

how = {"objective": "lp", "p": 2.0, "steps": 400, "batch": 256, "widths": (64, 64), "lr": 3e-3}
past, future = slice(0, 3000), slice(3000, 4000)
fits = [zhat.IdentifiableEncoder(2, random_state=seed, **how).fit(x[past]) for seed in (0, 1)]
h = [fit.transform(x[future]) for fit in fits]

print(zhat.consistency(h, names=["seed 0", "seed 1"]))
truth = {"z1": z[future, 0], "z2": z[future, 1]}
for name, rows in (("x", x[future]), ("h", h[0])):
    scores = zhat.decode(rows, truth).scores
    print(f"held-out R2 of the latents from {name}:", *(f"{s.name} {s.value:.3f}" for s in scores))
