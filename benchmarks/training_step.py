"""One training step at B = 6144, d = 10, ours against the plain B x B x n loss, in one run.

    python -m benchmarks.training_step

Each variant runs in a process of its own, so that its peak memory is its own. Two columns of ratios: the loss alone
(value and gradient), and the whole step (draw, mix, encode, loss, backward, Adam) with the paper's encoder.
"""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import torch

from zhat.dgp import Around, Box, InvertibleMLP, Laplace, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.kernels import pairwise_logsumexp, reference
from zhat.objectives import InfoNCE, NegativeLp, contrastive

BATCH, DIM = 6144, 10
POWERS = {"dot": None, "p=1": 1.0, "p=2": 2.0, "p=3": 3.0}


def median(function, repeats):
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 2]


def peak(reset=False):
    """Largest resident memory of this process so far; from now on, if reset (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024


def measure(kind, name):
    """Seconds and peak bytes of one variant, in this process."""
    power = POWERS[name]
    plain = kind == "plain"
    implementation = reference.pairwise_logsumexp if plain else pairwise_logsumexp
    contrastive.pairwise_logsumexp = implementation
    space = Sphere(DIM) if power is None else Box(DIM)
    conditional = VonMisesFisher(1.0) if power is None else Around(Laplace(space, 0.05))
    world = Pairs(Uniform(space), conditional, InvertibleMLP())
    objective = InfoNCE() if power is None else InfoNCE(NegativeLp(power))
    encoder = mlp(DIM, DIM, onto=space, seed=0)
    adam = torch.optim.Adam(encoder.parameters(), lr=1e-4, fused=True)
    generator = torch.Generator().manual_seed(0)
    h = torch.rand(BATCH, DIM, requires_grad=True)
    world.sample(2, generator=generator)

    def loss_only():
        implementation(h, h, power=power, scale=1.0).mean().backward()

    def step():
        batch = world.sample(BATCH, generator=generator)
        loss = objective(encoder(batch.x.flatten(0, 1)).reshape(2, BATCH, DIM), batch)
        adam.zero_grad()
        loss.backward()
        adam.step()

    before = peak(reset=True)
    seconds = median(loss_only, 1 if plain else 5)
    memory = peak() - before
    return {
        "loss_s": seconds,
        "loss_bytes": memory,
        "step_s": median(step, 1 if plain else 3),
        "step_bytes": peak() - before,
    }


def main():
    print(f"B = {BATCH}, d = {DIM}, float32, {torch.get_num_threads()} threads")
    print(f"{'':5}{'loss':>9}{'plain':>9}{'ratio':>8}{'peak':>9}{'plain':>9}   {'step':>7}{'plain':>9}{'ratio':>8}")
    out = {}
    for name in POWERS:
        runs = {}
        for kind in ("ours", "plain"):
            command = [sys.executable, "-m", "benchmarks.training_step", kind, name]
            runs[kind] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        ours, plain = runs["ours"], runs["plain"]
        out[name] = {
            "loss_ratio": plain["loss_s"] / ours["loss_s"],
            "step_ratio": plain["step_s"] / ours["step_s"],
            **runs,
        }
        print(
            f"{name:5}{ours['loss_s']:8.2f}s{plain['loss_s']:8.2f}s{out[name]['loss_ratio']:7.1f}x"
            f"{ours['loss_bytes'] / 1e6:6.0f} MB{plain['loss_bytes'] / 1e6:6.0f} MB  "
            f"{ours['step_s']:7.2f}s{plain['step_s']:8.2f}s{out[name]['step_ratio']:7.1f}x",
            flush=True,
        )
    return out


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measure(*sys.argv[1:])))
    else:
        main()
