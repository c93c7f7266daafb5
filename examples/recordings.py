"""Several recordings with trials, from files: fit, ask whether refits agree, draw what was found, keep the model."""

import tempfile
from pathlib import Path

import numpy as np
from scipy.io import savemat

import zhat
from zhat import Fresh
from zhat.encoders import residual_mlp

rng = np.random.default_rng(0)
folder = tempfile.TemporaryDirectory()
lift = rng.normal(size=(3, 12))


def recording(trials=12, length=150):
    """Rates of 12 channels while two latents drift; each trial begins somewhere else."""
    walks = rng.normal(0, 0.15, size=(trials, length, 2)).cumsum(1) + rng.uniform(0, 2, size=(trials, 1, 2))
    z = np.abs((walks + 0.5) % 2 - 1).reshape(-1, 2)
    x = np.stack([z[:, 0], z[:, 1], z[:, 0] * z[:, 1]], 1) @ lift
    return x + 0.02 * rng.normal(size=x.shape), np.repeat(np.arange(trials), length)


files, trials = [], []
for name in ("monday", "tuesday"):
    rates, trial = recording()
    savemat(Path(folder.name) / f"{name}.mat", {"rates": rates})
    files.append(Path(folder.name) / f"{name}.mat")
    trials.append(trial)

network = Fresh(residual_mlp, 12, 2, widths=(64, 64))
how = {"objective": "lp", "p": 2.0, "encoder": network, "steps": 400, "batch": 256, "lr": 3e-3}
fits = [zhat.IdentifiableEncoder(2, random_state=seed, **how).fit(files, series=trials) for seed in (0, 1)]
h = [fit.transform(files) for fit in fits]  # a list: one array for each recording
print([part.shape for part in h[0]])

agree = zhat.consistency([np.concatenate(parts) for parts in h], names=["seed 0", "seed 1"])
print(agree)
try:
    import matplotlib

    matplotlib.use("agg")
    fits[0].plot(files[0], series=trials[0]).get_figure().savefig(Path(folder.name) / "over-time.png")
    agree.plot().get_figure().savefig(Path(folder.name) / "refits.png")
except ImportError:
    print("pip install 'zhat[plots]' for pictures")

fits[0].save(Path(folder.name) / "model")
again = zhat.IdentifiableEncoder.load(Path(folder.name) / "model")
print("same after loading:", np.array_equal(again.transform(files[1]), h[0][1]))
folder.cleanup()
