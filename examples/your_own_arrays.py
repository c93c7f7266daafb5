"""Scores of your own arrays: latents z and representation h of the same rows, as NumPy or torch."""

import numpy as np

from zhat.metrics import linear_r2, mcc, profile

rng = np.random.default_rng(0)
z = rng.normal(size=(4000, 5))
h = np.tanh(z @ rng.normal(size=(5, 8)) / 4) + 0.01 * rng.normal(size=(4000, 8))

print(linear_r2(z, h))
print(mcc(z, h))
print(profile(z, h))
